"""Windows, thresholds and the note, with scripted probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from engine.models.protocols import Judged
from engine.models.verdicts import Precision, Thresholds, combine, decide, softmax, verdict_note, windows


def test_short_evidence_is_one_window():
    assert windows("One sentence. And another.") == [(0, 26)]
    assert windows("") == [(0, 0)]


def test_windows_share_a_short_sentence():
    text = "Aa bb cc dd. Ee ff gg hh. Ii jj kk ll."
    assert [text[a:b] for a, b in windows(text, words=8)] == ["Aa bb cc dd. Ee ff gg hh.", "Ee ff gg hh. Ii jj kk ll."]


def test_a_very_long_sentence_is_cut_at_blanks():
    text = " ".join(f"w{i}" for i in range(200))
    pieces = [text[a:b] for a, b in windows(text)]
    assert "".join(pieces) == text
    assert [len(piece.split()) for piece in pieces] == [80, 80, 40]


@settings(max_examples=50)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=12))
def test_windows_cover_every_word_in_order_within_budget(sizes):
    text = " ".join(" ".join(["Word"] * size) + "." for size in sizes)
    spans = windows(text, words=50)
    covered = {i for a, b in spans for i in range(a, b)}
    assert all(i in covered for i, c in enumerate(text) if c != " ")
    assert spans == sorted(spans)
    assert all(len(text[a:b].split()) <= 60 for a, b in spans)


LIMITS = Thresholds(supportive=0.6, editing_required=0.8)


@pytest.mark.parametrize(
    ("supportive", "editing", "verdict"),
    [
        (0.60, 0.10, "supportive"),
        (0.55, 0.10, "irrelevant"),
        (0.30, 0.79, "irrelevant"),
        (0.30, 0.80, "editing_required"),
        (0.65, 0.81, "supportive"),
        (0.61, 0.95, "editing_required"),
    ],
)
def test_the_verdict_is_the_one_further_above_its_threshold(supportive, editing, verdict):
    assert decide(supportive, editing, LIMITS) == verdict


def test_combine_takes_each_maximum_and_names_the_window():
    probabilities = np.array([[0.2, 0.7, 0.1], [0.6, 0.1, 0.3], [0.1, 0.1, 0.8]], np.float32)
    result = combine(probabilities, [(0, 5), (6, 9), (10, 12)], LIMITS)
    assert result.verdict == "supportive"
    assert (result.window, result.windows) == ((6, 9), 3)
    assert result.scores == pytest.approx({"supportive": 0.6 / 1.3, "editing_required": 0.7 / 1.3, "irrelevant": 0.0})


@settings(max_examples=50)
@given(st.lists(st.lists(st.floats(-5, 5), min_size=3, max_size=3), min_size=1, max_size=5), st.randoms())
def test_scores_sum_to_one_and_window_order_does_not_matter(logits, random):
    rows = softmax(np.array(logits, np.float32))
    spans = [(i, i + 1) for i in range(len(rows))]
    order = list(range(len(rows)))
    random.shuffle(order)
    one, other = combine(rows, spans), combine(rows[order], spans)
    assert sum(one.scores.values()) == pytest.approx(1.0, abs=1e-5)
    assert (one.verdict, one.scores) == (other.verdict, pytest.approx(other.scores))


def test_a_verdict_under_a_low_threshold_is_unsure_whatever_else_is_likely():
    judged = combine(np.array([[0.31, 0.03, 0.66]]), [(0, 1)], Thresholds(0.3, 0.4))
    assert judged.verdict == "supportive" and verdict_note(judged, "V").endswith("; unsure")


def test_the_note_says_who_how_often_right_and_unsure():
    judged = Judged("editing_required", {"supportive": 0.2, "editing_required": 0.55, "irrelevant": 0.25})
    known = (
        Precision(verdict="editing_required", measured_on="VitaminC dev", share=0.714, called=210),
        Precision(verdict="supportive", measured_on="VitaminC dev", share=0.8, called=300),
    )
    assert verdict_note(judged, "embedded", known) == (
        "editing required by embedded, 71% (VitaminC dev, n = 210) of its editing required verdicts are right; unsure"
    )
    more = (*known, Precision(verdict="editing_required", measured_on="HealthVer", share=0.39, called=84))
    assert verdict_note(judged, "embedded", more) == (
        "editing required by embedded, 39% to 71% (by test set, 2 sets) of its editing required verdicts are right;"
        " unsure"
    )
