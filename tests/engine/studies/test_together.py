"""Answers written together: the run is the one that writes them one by one, undisturbed or not."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from engine.answer.prompt import stamp_of
from engine.cases.case_file import read_case_file
from engine.core.errors import Cancelled, GroundworkError, ModelError
from engine.core.progress import Watch
from engine.core.settings import Decoding, Prompting
from engine.core.values import Prompt, Segment
from engine.models.huggingface import HuggingFaceModel
from engine.models.protocols import WritingRequest, WrittenAnswer
from engine.models.scripted import ScriptedScorer
from engine.studies.config import parse_config
from engine.studies.evaluate import evaluate
from engine.studies.run import Control, Journal
from engine.studies.together import Together
from engine.studies.tools import StudyTools
from tests.tiny import WINDOW, tiny_model

CONFIG = """
study = "abpc"
data = "{data}"
model = "embedded"
batch = {batch}
seeds = [1, 2]

[settings.decoding]
max_new_tokens = 8
temperature = 0.9

[settings.faithfulness]
steps = 2
rankings = 1

[options]
rankings = []
"""


class Listed(HuggingFaceModel):
    """A tiny model that lists what it is asked, one by one and together."""

    def __init__(self):
        model = tiny_model("llama")
        super().__init__("tiny", model.module, model.tokenizer)
        self.alone, self.together, self.most = [], [], 0

    def generate(self, prompt, decoding, on_text=None, watch=Watch()):
        self.alone.append((prompt, decoding))
        return super().generate(prompt, decoding, on_text, watch)

    def write_stream(self, take, rows, exact, watch=Watch()):
        going = 0

        def listed():
            nonlocal going
            asked = take()
            if asked is not None:
                going += 1
                self.together.append(asked)
                self.most = max(self.most, going)
            return asked

        for written in super().write_stream(listed, rows, exact, watch):
            going -= 1
            yield written


class One(StudyTools):
    """One model for everything."""

    def __init__(self, text, model):
        super().__init__(parse_config(text))
        self.writer = self.scorer = model


@pytest.fixture
def data(tmp_path):
    """Two questions, each to be asked under two seeds."""
    texts = ("Iron rusts.", "Gold does not rust in damp air.")
    rows = [{"id": f"q{i}", "question": f"What of {i}?", "passages": texts[: i + 1]} for i in range(2)]
    path = tmp_path / "data.jsonl"
    path.write_bytes(b"\n".join(map(msgspec.json.encode, rows)))
    return path


def run(data, folder, batch, **more):
    """The rows and the cases, and the model that was asked."""
    model, text = Listed(), CONFIG.format(data=data, batch=batch)
    found = evaluate(text, folder, tools=One(text, model), **more)
    cases = [read_case_file((folder / "cases" / f"{row.case}.json").read_bytes()) for row in found.rows if row.case]
    return [timeless(row.to_dict()) for row in found.rows], [timeless(case.to_dict()) for case in cases], model


def timeless(value):
    """Without what differs between two equal runs: times, last bits of log-probabilities, and hashes over these."""
    if isinstance(value, dict):
        return {k: None if k in ("seconds", "created", "logprob", "hashes") else timeless(v) for k, v in value.items()}
    return [timeless(v) for v in value] if isinstance(value, list | tuple) else value


def test_a_run_in_batches_is_the_run_one_by_one(data, tmp_path):
    """Rows with their counts of forwards and tokens, cases with their stamps; every answer once."""
    rows, cases, one = run(data, tmp_path / "one", 1)
    together, same, many = run(data, tmp_path / "many", 3)
    assert together == rows and same == cases and len(cases) == 4
    assert (len(one.alone), one.together) == (4, [])
    assert (many.alone, len(many.together)) == ([], 4) and 1 < many.most <= 3
    assert all(row["cost"]["forwards"] > 8 and row["cost"]["tokens"] > 100 for row in rows)


def test_stopped_in_the_middle_and_resumed_nothing_is_done_twice(data, tmp_path):
    """Stopped with one answer of a batch handed out: the other is written again, what has a row is not."""
    whole, _, _ = run(data, tmp_path / "whole", 1)
    folder, control = tmp_path / "run", Control(tell=lambda progress: progress.done == 2 and control.watch.cancel.set())
    with pytest.raises(Cancelled):
        run(data, folder, 3, control=control)
    before = Journal(folder).rows()
    assert 2 <= len(before) < 4
    rows, _, model = run(data, folder, 2, resume=True)  # another size of batch is no other run
    assert rows == whole and Journal(folder).rows()[: len(before)] == before
    assert len(model.together) + len(model.alone) == 4 - len(before)


def test_a_prompt_that_is_too_long_fails_its_own_unit_alone(data, tmp_path):
    bad = msgspec.json.encode({"id": "long", "question": "Why?", "passages": ["Iron rusts. " * WINDOW]})
    data.write_bytes(bad + b"\n" + data.read_bytes())
    rows, cases, _ = run(data, tmp_path / "one", 1)
    together, same, _ = run(data, tmp_path / "many", 3)
    assert together == rows and same == cases
    assert [row["state"] for row in rows] == ["failed"] * 2 + ["done"] * 4
    assert rows[0]["failure"]["type"] == "PromptTooLong"


class Gated(ScriptedScorer):
    """A script that begins to write when a gate opens, what it has got by then, and breaks at the text `fails`."""

    def __init__(self, fails=""):
        super().__init__(lambda passages, words, t: -1.0, lambda text: f"On {text}.")
        self.fails, self.begun, self.gate = fails, threading.Event(), threading.Event()
        self.taken, self.alone, self.most = [], [], 0
        self._texts = {}

    def writes_together(self, exact):
        return True

    def request(self, prompt, decoding):
        asked = WritingRequest((1, 2), 8, decoding)
        self._texts[asked] = prompt
        return asked

    def generate(self, prompt, decoding, on_text=None, watch=Watch()):
        self.alone.append(prompt.text)
        if prompt.text == self.fails:
            raise ModelError("It broke.")
        return super().generate(prompt, decoding, on_text, watch)

    def write_stream(self, take, rows, exact, watch=Watch()):
        going = []
        while True:
            while len(going) < rows and (asked := take()) is not None:
                going.append(asked)
                self.taken.append(self._texts[asked].text)
            self.most = max(self.most, len(going))
            self.begun.set()
            while not self.gate.wait(0.01):
                watch.step("writing")
            if not going:
                return
            asked = going.pop(0)
            prompt = self._texts[asked]
            if prompt.text == self.fails:
                raise ModelError("It broke.")
            yield WrittenAnswer(asked, super().generate(prompt, asked.decoding), 1.0)


def asked(model, texts, rows, watches=None):
    """The answer or error of each text; the gate opens when the first is being written and the others have asked."""
    shared, watches = Together(model, rows, exact=True), watches or {}

    def ask(text):
        prompt = Prompt(segments=(Segment(kind="question", text=text),))
        try:
            return shared.generate(prompt, Decoding(), None, watches.get(text, Watch())).text
        except GroundworkError as error:
            return type(error).__name__

    with ThreadPoolExecutor(len(texts)) as pool:
        first = pool.submit(ask, texts[0])
        assert model.begun.wait(30)
        others = [pool.submit(ask, text) for text in texts[1:]]
        while len(shared._waiting) + sum(other.done() for other in others) < len(others):
            threading.Event().wait(0.01)
        model.gate.set()
        return [one.result(30) for one in (first, *others)]


def test_who_asks_joins_the_batch_and_no_more_than_its_rows():
    model = Gated()
    assert asked(model, ["a", "b", "c", "d"], 2) == ["On a.", "On b.", "On c.", "On d."]
    assert (sorted(model.taken), model.most, model.alone) == (["a", "b", "c", "d"], 2, [])


def test_a_batch_that_fails_leaves_its_fault_to_the_one_that_has_it():
    model = Gated(fails="c")
    assert asked(model, ["a", "b", "c", "d"], 8) == ["On a.", "On b.", "ModelError", "On d."]
    assert "c" in model.alone


def test_who_is_cancelled_while_it_waits_is_not_written():
    cancel, model = threading.Event(), Gated()
    cancel.set()
    watches = {"b": Watch(cancel=cancel)}
    assert asked(model, ["a", "b", "c", "d"], 8, watches) == ["On a.", "Cancelled", "On c.", "On d."]
    assert "b" not in model.taken


def test_writing_stops_when_nobody_waits_and_begins_anew_for_the_next():
    model, cancel = Gated(), threading.Event()
    shared = Together(model, 8, exact=True)
    prompt = Prompt(segments=(Segment(kind="question", text="a"),))
    with ThreadPoolExecutor(1) as pool:
        one = pool.submit(shared.generate, prompt, Decoding(), None, Watch(cancel=cancel))
        assert model.begun.wait(30)
        cancel.set()
        with pytest.raises(Cancelled):
            one.result(30)
        while shared._writing:
            threading.Event().wait(0.01)
    model.gate.set()
    assert shared.generate(prompt, Decoding()).text == "On a."
    assert model.taken == ["a", "a"]


@pytest.mark.parametrize("exact", [True, False])
def test_the_stamp_of_an_answer_tells_of_a_batch_that_was_not_to_be_exact(exact):
    stamp = stamp_of(Together(Listed(), 8, exact), Prompting(), Decoding())
    assert stamp.settings.get("batch") == (None if exact else {"exact": False})
