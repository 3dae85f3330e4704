"""Token spans: characters covered, for tokens that are parts of characters too."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings, strategies as st

from engine.models.offsets import close_gaps, common_length, spans_of_ids, stable_text
from tests.tiny import tiny_model

TRICKY = "é e\u0301 👩‍👩‍👧 naïve — 12.5 °C [cite_1]\n\n字 end"


def test_by_hand_a_character_of_two_tokens():
    """é is two bytes; one token each. Then b."""
    texts = {1: "�", 2: "é", 3: "éb"}
    assert spans_of_ids([7, 8, 9], "éb", lambda ids: texts[len(ids)]) == ((0, 1), (0, 1), (1, 2))


def test_by_hand_a_token_that_ends_one_character_and_starts_the_next():
    """Two characters of two bytes as tokens of 1, 2 and 1 bytes."""
    texts = {1: "�", 2: "é�", 3: "éß"}
    assert spans_of_ids([7, 8, 9], "éß", lambda ids: texts[len(ids)]) == ((0, 1), (0, 2), (1, 2))


def test_a_special_token_that_is_left_out_has_an_empty_span():
    texts = {1: "a", 2: "a", 3: "ab"}
    assert spans_of_ids([7, 2, 9], "ab", lambda ids: texts[len(ids)]) == ((0, 1), (1, 1), (1, 2))


@pytest.mark.parametrize("text", [TRICKY, "plain words", " leading", "trailing \n", ""])
def test_both_ways_agree_on_a_byte_level_tokenizer(text):
    model = tiny_model("llama")
    answer = model.encode_answer(text)
    ids = [t.id for t in answer.tokens]
    assert model.decode(ids) == text
    assert tuple((t.start, t.end) for t in answer.tokens) == spans_of_ids(ids, text, model.decode)


@settings(max_examples=60)
@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=40))
def test_spans_cover_every_character_in_order(text):
    tokens = tiny_model("qwen2").encode_answer(text).tokens
    assert {i for t in tokens for i in range(t.start, t.end)} == set(range(len(text)))
    assert all(a.start <= b.start and a.end <= b.end for a, b in pairwise(tokens))


def test_gaps_that_a_tokenizer_trims_are_closed():
    assert close_gaps([(0, 1), (2, 3), (2, 3), (4, 5)], 6) == ((0, 1), (1, 3), (2, 3), (3, 6))
    assert close_gaps([], 0) == ()


def test_small_parts():
    assert common_length("same", "same") == 4
    assert common_length("", "x") == 0
    assert stable_text("caf�") == "caf"
