"""Prompt, writing, citations, stamp: through a script and through tiny models."""

from __future__ import annotations

import pytest

from engine.answer.prompt import REFUSAL, build_prompt, stamp_of
from engine.answer.write import prompting
from engine.core.errors import CannotDo, PromptTooLong
from engine.core.progress import Watch
from engine.core.settings import Decoding, Prompting
from engine.core.values import Segment
from engine.models.protocols import Can
from engine.models.scripted import ScriptedWriter
from tests.tiny import passages, tiny_model

QUESTION = "Who built the bridge?"


def written(writer, given, how=Prompting(), decoding=Decoding(), watch=Watch()):
    """The prompt that was sent and the answer."""
    found = prompting(writer, how, decoding)(QUESTION, given, watch)
    return found.prompt, found.answer


def test_a_writer_is_given_no_listener_where_nobody_reads_along():
    class Writer(ScriptedWriter):
        def generate(self, prompt, decoding, on_text=None, watch=Watch()):
            listeners.append(on_text)
            return super().generate(prompt, decoding, on_text, watch)

    listeners, seen = [], []
    written(Writer(["Hanna Lind.", "Hanna Lind."]), passages(1))
    written(Writer(["Hanna Lind."]), passages(1), watch=Watch(text=seen.append))
    assert listeners[0] is None and listeners[1] is not None and seen[-1] == "Hanna Lind."


def test_the_answer_is_annotated_and_the_prompt_is_what_was_sent():
    writer = ScriptedWriter(["Hanna Lind built it [cite_1]. It was repaired in 1931 [cite_2][cite_9]."])
    seen: list[str] = []
    prompt, answer = written(writer, passages(3), watch=Watch(text=seen.append))
    assert writer.prompts == [prompt.text]
    assert prompt.numbers == (1, 2, 3) and prompt.segments[-1].kind == "question"
    assert [(c.number, c.valid) for c in answer.citations] == [(1, True), (2, True), (9, False)]
    assert len(answer.sentences) == 2 and seen[-1] == answer.text


def test_alce_style_is_asked_for_and_read():
    writer = ScriptedWriter(["Hanna Lind [1]."])
    prompt, answer = written(writer, passages(1), Prompting(citations="alce"))
    assert "[1]" in prompt.segments[0].text and "cite_" not in prompt.text
    assert [c.number for c in answer.citations] == [1]


def test_without_passages_the_question_is_asked_from_memory():
    prompt, answer = written(ScriptedWriter([REFUSAL]), ())
    assert prompt.numbers == () and prompt.segments[0].text.startswith("You answer questions from what you know")
    assert answer.refused


def test_demonstrations_stand_before_the_passages():
    shot = Segment(kind="demonstration", text="\n\nQuestion: a\nAnswer: b")
    prompt = build_prompt(QUESTION, passages(1), demonstrations=[shot])
    assert [s.kind for s in prompt.segments] == ["system", "demonstration", "passage", "question"]


def test_as_many_worked_examples_as_the_settings_ask_for():
    for count in (0, 1, 3):
        prompt = build_prompt(QUESTION, passages(2), Prompting(citations="alce", demonstrations=count))
        shots = prompt.segments[1 : 1 + 2 * count]
        assert [s.role for s in shots] == ["user", "assistant"] * count
        assert all(s.kind == "demonstration" and "cite_" not in s.text for s in shots)
        assert all(s.text == s.text.strip() and "[" in s.text for s in shots[1::2])
        assert prompt.numbers == (1, 2)
        assert prompt.segments[1 + 2 * count].kind == "passage"
    recalled = build_prompt(QUESTION, (), Prompting(demonstrations=2))  # ARE, A.1: examples from memory, none cites
    assert [s.role for s in recalled.segments] == ["system", *["user", "assistant"] * 2, "user"]
    assert "[" not in recalled.text and not recalled.numbers
    assert build_prompt(QUESTION, passages(2), Prompting(demonstrations=2), ()) == build_prompt(QUESTION, passages(2))


def test_a_prompt_that_is_too_long_names_the_passages_to_leave_out():
    with pytest.raises(PromptTooLong, match="would fit without passages") as caught:
        written(tiny_model("llama"), passages(20))
    assert str(caught.value).endswith(", 20.")


def test_a_model_that_cannot_write_says_so():
    writer = ScriptedWriter(["x"])
    writer.can = Can(generate=False, why_not="Choose another.")
    with pytest.raises(CannotDo, match=r"cannot write text\. Choose another\."):
        written(writer, ())


def test_a_tiny_model_answers_with_tokens_that_spell_the_text():
    _, answer = written(tiny_model("qwen3"), passages(2), decoding=Decoding(max_new_tokens=12))
    assert len(answer.tokens) == 12 and not answer.finished
    assert {i for t in answer.tokens for i in range(t.start, t.end)} == set(range(len(answer.text)))


def test_the_stamp_tells_runs_apart():
    model = tiny_model("llama")
    stamp = stamp_of(model, Prompting(), Decoding())
    assert (stamp.model, stamp.revision, stamp.dtype) == (model.name, model.revision, "float32")
    assert stamp.template.endswith(model.template) and stamp.seed is None
    assert stamp.settings["decoding"]["max_new_tokens"] == 512 and "torch" in stamp.versions
    assert stamp_of(model, Prompting(), Decoding(temperature=0.7, seed=42)).seed == 42
    assert stamp_of(tiny_model("llama", seed=1), Prompting(), Decoding()).revision != stamp.revision
    assert stamp_of(ScriptedWriter([]), Prompting(), Decoding()).revision == ""
