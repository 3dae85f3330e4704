"""Aligned kinds: cases worked by hand, and what must hold for any text."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from engine.models.alignment import (
    ALONE,
    EQUAL,
    KINDS,
    LARGER,
    NAME,
    OTHER,
    RUN,
    SHARED,
    SMALLER,
    align,
    clean,
    kinds,
    stem,
    words,
)


def kinds_of(claim: str, evidence: str) -> dict[str, int]:
    mine = words(claim)
    return {claim[w.start : w.end]: k for w, k in zip(mine, kinds(mine, words(evidence)), strict=True)}


def test_hand_worked_kinds():
    found = kinds_of("The bridge was opened by Lind in 1874.", "In 1931 the bridge was opening; Hanna repaired it.")
    assert found == {
        "The": RUN,
        "bridge": RUN,
        "was": RUN,
        "opened": RUN,
        "by": OTHER,
        "Lind": NAME,
        "in": SHARED,
        "1874": SMALLER,
    }


@pytest.mark.parametrize(
    ("claim", "evidence", "kind"),
    [
        ("about 1,200 men", "some 1200 men came", EQUAL),
        ("1.5 million euros", "1,500,000 euros", EQUAL),
        ("two ships", "2 ships", EQUAL),
        ("over 23.5 million sales", "a total of 24 million sales", SMALLER),
        ("a score of 68%", "a score of 57% from 90 critics", LARGER),
        ("in 1874 it opened", "it opened to 300 guests", ALONE),
        ("a fee of 40 euros", "there is no fee", ALONE),
    ],
)
def test_numbers_meet_their_counterpart(claim, evidence, kind):
    mine = words(claim)
    number = next(i for i, word in enumerate(mine) if word.value is not None)
    assert kinds(mine, words(evidence))[number] == kind


def test_of_several_numbers_the_one_among_the_same_words_is_the_counterpart():
    evidence = "5 March: 300 boats left the harbour. 9 sailors stayed ashore."
    assert kinds_of("12 sailors stayed", evidence)["12"] == LARGER
    assert kinds_of("200 boats left", evidence)["200"] == SMALLER


def test_a_word_that_opens_a_sentence_is_no_name():
    assert [w.capital for w in words("Cork is wet. Rain fell in Cork.")] == [False] * 3 + [False, False, False, True]


def test_clean_reads_tokenised_brackets():
    assert clean("  Kiel -LRB- a `` city '' -RRB- \n grew") == 'Kiel ( a " city " ) grew'


def test_stems_join_forms_of_a_word():
    assert stem("directed") == stem("directing") == stem("director") == stem("direction") == "direct"
    assert stem("is") == "is"


TEXT = st.text(alphabet=st.sampled_from("ab AB.,'12%é中\n-"), max_size=60)


@settings(max_examples=60)
@given(TEXT, TEXT)
def test_any_text_has_kinds_in_range_and_spans_inside_it(claim, evidence):
    mine, other = align(claim, evidence)
    assert len(mine) == len(claim) + 1 and len(other) == len(evidence) + 1
    assert set(np.unique(mine)) <= set(range(KINDS))
    assert all(0 <= w.start < w.end <= len(claim) for w in words(claim))


@settings(max_examples=40)
@given(TEXT)
def test_a_text_lacks_nothing_of_itself(text):
    found = words(text)
    assert not {OTHER, NAME, SMALLER, LARGER, ALONE} & set(kinds(found, found))


def test_superscripts_and_circled_digits_are_words_and_no_numbers():
    text = "① About 10² m, or 10⁻³."
    values = {text[w.start : w.end]: w.value for w in words(text)}
    assert {name: values[name] for name in "①²³"} == {"①": None, "²": None, "³": None}
    assert values["10"] == 10.0
