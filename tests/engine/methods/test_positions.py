"""Removing tokens and dividing them into parts: properties over random cuts."""

from __future__ import annotations

from hypothesis import given, strategies as st

from engine.answer.prompt import passage_segments
from engine.core.values import Passage, Prompt
from engine.methods.aggregate import sentence_sources
from engine.methods.spans import drop_positions, passage_numbers, passage_positions
from engine.models.protocols import TokenPrompt
from engine.models.scripted import ScriptedScorer, reads
from tests.tiny import tiny_prompt


@st.composite
def prompts(draw):
    lengths = draw(st.lists(st.integers(1, 5), min_size=1, max_size=6))
    spans, at = [], 0
    for index, length in enumerate(lengths):
        spans.append((index, at, at + length))
        at += length
    numbers = tuple(draw(st.sampled_from([None, index + 1])) for index in range(len(lengths)))
    return TokenPrompt(ids=tuple(range(100, 100 + at)), spans=tuple(spans), numbers=numbers)


@given(prompts(), st.data())
def test_dropping_a_passages_positions_is_the_prompt_without_it(prompt, data):
    known = passage_numbers(prompt)
    gone = data.draw(st.sets(st.sampled_from(known))) if known else set()
    assert drop_positions(prompt, passage_positions(prompt, gone)) == prompt.without(gone)


@given(prompts(), st.data())
def test_what_is_left_keeps_its_ids_order_and_spans(prompt, data):
    gone = data.draw(st.sets(st.integers(0, len(prompt.ids) - 1)))
    left = drop_positions(prompt, gone)
    assert left.ids == tuple(i for p, i in enumerate(prompt.ids) if p not in gone)
    assert [i for _, start, end in left.spans for i in left.ids[start:end]] == list(left.ids)
    assert len(left.spans) == len(left.numbers)


def test_sentences_of_a_passage_do_not_share_tokens_and_leave_the_number_alone():
    model = ScriptedScorer(reads(()))
    prompt = tiny_prompt(4)
    coded = model.encode(prompt)
    found = sentence_sources(model, prompt, coded, (2, 4))
    positions = [p for source in found for p in source.positions]
    assert len(positions) == len(set(positions))
    assert set(positions) < passage_positions(coded, (2, 4))
    text = {s.number: s.text for s in prompt.segments}
    assert text[2][found[0].start : found[0].end].startswith("The bridge was repaired")


def test_a_passage_whose_text_stands_in_the_template_too_is_found_at_its_own_place():
    model = ScriptedScorer(reads(()))
    passage = Passage(id="p", document="d", title="", ordinal=0, start=0, end=1, text="1")
    prompt = Prompt(segments=passage_segments([passage]))
    (found,) = sentence_sources(model, prompt, model.encode(prompt), (1,))
    assert prompt.segments[0].text[: found.start] == "\n\nPassage 1: "
