"""Served models against a real server in a process of its own: streams, retries, refusals, deaths."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine.answer.prompt import stamp_of
from engine.answer.write import prompting
from engine.core.errors import BudgetSpent, Cancelled, CannotDo, ModelError, ModelNotFound, PromptTooLong, ServerError
from engine.core.progress import Watch
from engine.core.settings import Decoding, Prompting
from engine.models.protocols import LanguageModel, Writer, require
from engine.models.registry import load_writer
from engine.models.self_test import self_test
from engine.models.server import Budget, ServerModel, byte_tokens
from tests.engine.models.served import TEXT
from tests.tiny import passages, tiny_prompt

SCRIPT = Path(__file__).with_name("served.py")


@dataclass
class Server:
    process: subprocess.Popen
    address: str

    def model(self, name: str, timeout=20.0, attempts=ServerModel.attempts, **options) -> ServerModel:
        model = ServerModel(f"openai:{name}@{self.address}", **options)
        model.timeout, model.attempts, model.backoff = timeout, attempts, 0.0
        return model

    def seen(self) -> dict:
        with urllib.request.urlopen(self.address + "/seen") as reply:
            return json.loads(reply.read())


def start() -> Server:
    process = subprocess.Popen([sys.executable, str(SCRIPT)], stdout=subprocess.PIPE, text=True)
    return Server(process, f"http://127.0.0.1:{process.stdout.readline().strip()}/v1")


@pytest.fixture
def server(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    running = start()
    yield running
    running.process.kill()
    running.process.wait()
    running.process.stdout.close()


def test_it_streams_and_keeps_log_probabilities(server):
    seen: list[str] = []
    answer = server.model("words").generate(tiny_prompt(2), Decoding(), seen.append)
    assert answer.text == TEXT == seen[-1] and answer.finished
    assert len(seen) > 3 and all(TEXT.startswith(text) for text in seen)
    assert [(TEXT[t.start : t.end], t.logprob) for t in answer.tokens[:2]] == [("Hanna", -0.5), (" Lind", -0.5)]
    assert [TEXT[t.start : t.end] for t in answer.tokens[4:6]] == [" 👩", "👩"]


@pytest.mark.parametrize(
    ("sent", "text"),
    [
        (["Iron \ud83d", "\ude00 rusts"], "Iron 😀 rusts"),
        (["Iron \ud83d", " rusts"], "Iron � rusts"),
        (["\ude00 rusts \ud83d"], "� rusts �"),
        ([[{"type": "text", "text": "Iron "}, {"type": "thinking", "thinking": "Hm."}], "rusts"], "Iron rusts"),
    ],
)
@pytest.mark.parametrize("first", [[1, 2], "hi", {"choices": None}, {"choices": [None]}])
def test_text_that_comes_in_halves_or_parts_is_put_together(server, sent, text, first):
    said = json.dumps([json.dumps(first), *sent]).replace("\\", "%")
    seen: list[str] = []
    answer = server.model(f"odd:{said}").generate(tiny_prompt(1), Decoding(), seen.append)
    assert answer.text == text and answer.finished
    assert all(said.encode() for said in seen)


def test_a_text_in_the_place_of_a_delta_is_read(server):
    first = json.dumps({"choices": [{"index": 0, "delta": "Iron ", "finish_reason": None}]})
    answer = server.model(f"odd:{json.dumps([first, 'rusts'])}").generate(tiny_prompt(1), Decoding())
    assert answer.text == "Iron rusts"


def test_what_is_not_text_is_an_error_that_names_the_model(server):
    with pytest.raises(ServerError, match=r"odd:.* sent something that is not text") as raised:
        server.model('odd:["{}", "Iron", 5]').generate(tiny_prompt(1), Decoding())
    assert raised.value.partial == "Iron"


@pytest.mark.parametrize("strange", ["none", "byte"])
def test_tokens_that_cannot_be_read_are_left_out(server, strange):
    answer = server.model(f"tokens:{strange}").generate(tiny_prompt(1), Decoding())
    assert (answer.text, answer.tokens) == ("Iron", ())


def test_the_request_says_what_the_settings_say(server):
    model = server.model("words")
    model.generate(tiny_prompt(1, system=True), Decoding(temperature=0.7, top_p=0.9, seed=42, max_new_tokens=9))
    model.generate(tiny_prompt(1), Decoding())
    first, second = server.seen()["bodies"]
    assert [m["role"] for m in first["messages"]] == ["system", "user"]
    assert first["messages"][1]["content"] == tiny_prompt(1).text
    assert {k: first[k] for k in ("temperature", "top_p", "seed", "max_tokens")} == {
        "temperature": 0.7,
        "top_p": 0.9,
        "seed": 42,
        "max_tokens": 9,
    }
    assert second["temperature"] == 0 and "top_p" not in second


def test_an_answer_that_reached_its_limit_is_not_finished(server):
    answer = server.model("length").generate(tiny_prompt(1), Decoding())
    assert (answer.text, answer.finished) == ("Hanna Lind built", False)


def test_a_server_that_dies_in_the_middle_leaves_the_text_so_far(server):
    model = server.model("die")
    with pytest.raises(ServerError, match=r"disconnected in the middle.*Ask again; the text so far is kept") as caught:
        model.generate(tiny_prompt(1), Decoding())
    assert caught.value.partial == "Hanna Lind built"
    with pytest.raises(ServerError, match="cannot be reached"):
        model.generate(tiny_prompt(1), Decoding())


def test_a_server_that_is_killed_in_the_middle_leaves_the_text_so_far(server):
    def kill(text: str) -> None:
        if text == "Hanna Lind built":
            server.process.kill()

    with pytest.raises(ServerError) as caught:
        server.model("hang:3").generate(tiny_prompt(1), Decoding(), kill)
    assert caught.value.partial == "Hanna Lind built"


@pytest.mark.parametrize("mode", ["silent", "midway"])
def test_a_stream_that_ends_badly_is_no_answer(server, mode):
    with pytest.raises(ServerError) as caught:
        server.model(mode).generate(tiny_prompt(1), Decoding())
    assert caught.value.partial == "Hanna Lind"


def test_a_passing_failure_is_tried_again_and_said(server):
    said: list[tuple[str, int]] = []
    watch = Watch(report=lambda stage, done, total: said.append((stage, done)))
    answer = server.model("flaky:2").generate(tiny_prompt(1), Decoding(), None, watch)
    assert answer.text == TEXT and server.seen()["asked"]["flaky:2"] == 3
    assert [s for s in said if "waiting to ask" in s[0]] == [("waiting to ask flaky:2 again", n) for n in (1, 2)]


def test_attempts_end(server):
    with pytest.raises(ServerError, match="status 503"):
        server.model("flaky:9", attempts=3).generate(tiny_prompt(1), Decoding())
    assert server.seen()["asked"]["flaky:9"] == 3


def test_overload_is_said(server):
    with pytest.raises(ServerError, match="accepts no more requests"):
        server.model("busy", attempts=2).generate(tiny_prompt(1), Decoding())


def test_waiting_as_long_as_the_server_asks_can_be_cancelled(server):
    watch = Watch(report=lambda stage, done, total: "again" in stage and watch.cancel.set())
    with pytest.raises(Cancelled):
        server.model("busy:25").generate(tiny_prompt(1), Decoding(), None, watch)
    assert server.seen()["asked"]["busy:25"] == 1


def test_optional_parameters_that_are_refused_are_left_out_from_then_on(server):
    model = server.model("nologprobs")
    answer = model.generate(tiny_prompt(1), Decoding())
    assert (answer.text, answer.tokens) == (TEXT, ()) and model.ignored == {"logprobs", "seed"}
    model.generate(tiny_prompt(1), Decoding())
    assert server.seen()["asked"]["nologprobs"] == 3


def test_the_newer_name_of_the_limit_is_used_where_it_is_asked_for(server):
    server.model("newlimit").generate(tiny_prompt(1), Decoding(max_new_tokens=7))
    assert server.seen()["bodies"][-1]["max_completion_tokens"] == 7


def test_a_refused_temperature_is_an_error_and_not_left_out(server):
    with pytest.raises(ServerError, match=r"does not accept the request: .*400 - temperature must be 1\. Change"):
        server.model("badrequest").generate(tiny_prompt(1), Decoding())
    assert server.seen()["asked"]["badrequest"] == 1


def test_a_prompt_that_is_too_long_for_the_server(server):
    with pytest.raises(PromptTooLong, match="Leave out some passages"):
        server.model("toolong").generate(tiny_prompt(1), Decoding())

    with pytest.raises(PromptTooLong, match="available context size"):  # llama.cpp's words
        server.model("small").generate(tiny_prompt(1), Decoding())


def test_a_model_that_is_not_there(server):
    with pytest.raises(ServerError, match=r"has no model nothing .*does not exist.*often ends in /v1"):
        server.model("nothing").generate(tiny_prompt(1), Decoding())


@pytest.mark.parametrize(
    ("delta", "text", "finished"),
    [
        ("content=<think>Who?</think>\nHanna.|stop", "Hanna.", True),
        ("content=Who?</think>\nHanna.|stop", "Hanna.", True),  # the opening tag was a part of the prompt
        ("refusal=I cannot say.|stop", "I cannot say.", True),
        ("content=Hanna.|eos_token", "Hanna.", True),
        ("content=Hanna|content_filter", "Hanna", False),
        ("content=|stop", "", True),
    ],
)
def test_what_comes_apart_from_the_answer_or_ends_it_otherwise(server, delta, text, finished):
    answer = server.model(f"delta:{delta}").generate(tiny_prompt(1), Decoding())
    assert (answer.text, answer.finished) == (text, finished)


@pytest.mark.parametrize(
    ("delta", "said"),
    [
        ("reasoning_content=Who?|length", "thought until the limit of tokens"),
        ("content=<think>Who?|length", "thought until the limit of tokens"),
        ("content=|content_filter", "content filter"),
        ("content=|tool_calls", "called a tool"),
    ],
)
def test_an_answer_that_was_cut_before_its_first_word_is_an_error(server, delta, said):
    with pytest.raises(ModelError, match=said):
        server.model(f"delta:{delta}").generate(tiny_prompt(1), Decoding())


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("whole", r"nothing that can be read as a streamed chat.*often ends in /v1"),
        ("denied", r"refused the key \(.*No access to this model"),
        ("quota", r"accepts no more requests for now \(.*exceeded your quota"),
        ("blocked", r"ended the stream with an error \(Prompt is blocked\)"),
    ],
)
def test_the_reason_that_a_server_gives_is_passed_on_and_it_is_asked_once(server, mode, said):
    with pytest.raises(ServerError, match=said):
        server.model(mode).generate(tiny_prompt(1), Decoding())
    assert server.seen()["asked"][mode] == 1


def test_a_refusal_in_other_fields_is_read_too(server):
    model = server.model("strict")
    assert model.generate(tiny_prompt(1), Decoding()).text == TEXT and model.ignored == {"seed"}


def test_a_system_message_that_is_refused_opens_the_users(server):
    """As for a local model whose chat template has no system role."""
    model = server.model("nosystem")
    assert model.generate(tiny_prompt(1, system=True), Decoding()).text == TEXT
    (message,) = server.seen()["bodies"][-1]["messages"]
    system = next(segment.text for segment in tiny_prompt(1, system=True).segments if segment.role == "system")
    assert message["role"] == "user" and message["content"].startswith(system)


def test_the_key_comes_from_the_environment_and_goes_nowhere_else(server, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ServerError, match=r"refused the key\. Set OPENAI_API_KEY"):
        server.model("key").generate(tiny_prompt(1), Decoding())
    monkeypatch.setenv("OPENAI_API_KEY", "right")
    model = server.model("key")
    answer = prompting(model, Prompting(), Decoding())("Who?", passages(1)).answer
    stamp = stamp_of(model, Prompting(), Decoding())
    assert answer.citations[0].number == 1
    assert "right" not in json.dumps([answer.to_dict(), stamp.to_dict()]) + repr(vars(model)["name"])
    assert stamp.model == f"openai:key@{server.address}"


def test_nothing_is_sent_once_the_user_asked_to_stop(server):
    watch = Watch()
    watch.cancel.set()
    with pytest.raises(Cancelled):
        server.model("words").generate(tiny_prompt(1), Decoding(), None, watch)
    assert server.seen()["bodies"] == []


def test_cancel_leaves_a_silent_server(server):
    watch = Watch()
    with pytest.raises(Cancelled):
        server.model("hang").generate(tiny_prompt(1), Decoding(), lambda text: watch.cancel.set(), watch)


def test_a_mute_server_times_out(server):
    with pytest.raises(ServerError, match=r"did not reply for 0\.2 seconds"):
        server.model("mute", timeout=0.2).generate(tiny_prompt(1), Decoding())
    assert server.seen()["asked"]["mute"] == 1  # it would compute the same again


def test_no_more_requests_at_a_time_than_allowed(server):
    model = server.model("pairs", concurrency=2)
    texts: list[str] = []
    threads = [
        threading.Thread(target=lambda: texts.append(model.generate(tiny_prompt(1), Decoding()).text)) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == [TEXT] * 6 and server.seen()["most"] == 2


def test_names_and_addresses(monkeypatch):
    model = load_writer("openai:org/model@v2@http://127.0.0.1:9/v1/")
    assert (model.model, model.base_url) == ("org/model@v2", "http://127.0.0.1:9/v1")
    assert load_writer(model.name).name == model.name
    assert load_writer("openai:m@http://127.0.0.1:9/v1/chat/completions").name == "openai:m@http://127.0.0.1:9/v1"
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:1/v1")
    assert ServerModel("openai:m").name == "openai:m@http://localhost:1/v1"
    monkeypatch.delenv("OPENAI_BASE_URL")
    with pytest.raises(ModelNotFound, match="openai:m@BASE_URL"):
        ServerModel("openai:m")
    unusable = ("http://", "http://user:secret@host/v1", "http://h/v1?key=1", "http://h:port/v1", "http://[::1/v1")
    for bad in ("openai:", *(f"openai:m@{address}" for address in unusable)):
        with pytest.raises(ModelNotFound):
            ServerModel(bad)


def test_what_it_cannot_do_is_said_with_the_way_out(server):
    model = server.model("words")
    assert isinstance(model, Writer) and not isinstance(model, LanguageModel)
    with pytest.raises(CannotDo, match="Score its answers with embedded"):
        require(model, "score")
    assert [(c.name, c.passed) for c in self_test(model)] == [("writes text", True), ("not offered", True)]


def test_tokens_that_do_not_spell_the_text_are_left_out():
    assert byte_tokens("ab", [(b"a", -1.0)]) == ()
    assert byte_tokens("", []) == ()
    assert [(t.start, t.end) for t in byte_tokens("a", [(b"", -1.0), (b"a", -1.0), (b"", -1.0)])] == [
        (0, 0),
        (0, 1),
        (1, 1),
    ]


def test_a_budget_of_calls_stops_before_the_next_request(server):
    model = server.model("words", budget=Budget(calls=1))
    model.generate(tiny_prompt(1), Decoding())
    with pytest.raises(BudgetSpent):
        model.generate(tiny_prompt(1), Decoding())
    assert len(server.seen()["bodies"]) == 1
    assert model.budget.spent.tokens == (len(tiny_prompt(1).text) + len(TEXT)) // 4
