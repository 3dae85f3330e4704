"""The bench's own arithmetic: pairs made from drafts, and the words where a set is absent."""

from __future__ import annotations

import numpy as np
import pytest

from bench.verifier import (
    Measured,
    floors,
    interval,
    plain,
    reliability_table,
    row,
    sentence_pairs,
    sets_that_are_there,
)
from training.verifier_held_out import HeldOut

PASSAGES = ["Lind paid 40 euros on 3 May.", "Moor owns the mill."]
AMOUNT = {"kind": "amount", "wrong": "90 euros", "right": "40 euros", "evidence": [{"quote": PASSAGES[0]}]}
NOWHERE = {"kind": "unsupported", "wrong": "He is tall.", "right": "", "evidence": [{"quote": PASSAGES[1]}]}


def test_a_planted_error_gives_the_wrong_and_the_corrected_sentence():
    assert sentence_pairs("Lind paid 90 euros [cite_1].", [AMOUNT], PASSAGES) == [
        ("Lind paid 90 euros.", PASSAGES[0], 1),
        ("Lind paid 40 euros.", PASSAGES[0], 0),
    ]


def test_other_sentences_are_supportive_and_claims_from_nowhere_irrelevant():
    assert sentence_pairs("Moor owns the mill [cite_2] [cite_9].", [AMOUNT], PASSAGES) == [
        ("Moor owns the mill.", PASSAGES[1], 0)
    ]
    assert sentence_pairs("He is tall.", [NOWHERE], PASSAGES) == [("He is tall.", PASSAGES[1], 2)]
    assert sentence_pairs("No citation at all.", [], PASSAGES) == []


def test_markers_are_taken_out():
    assert plain("A [cite_1], b [cite_2] [cite_3].") == "A, b."


def test_an_absent_folder_is_said(tmp_path, capsys):
    names = [data.name for data in sets_that_are_there(tmp_path)]
    assert names == ["bank investigation, drafts"]
    assert "Public sets skipped" in capsys.readouterr().out


def test_the_row_by_hand():
    scores = np.array([[0.9, 0.05, 0.05], [0.1, 0.8, 0.1], [0.7, 0.2, 0.1]], np.float32)
    one = Measured("own", np.array([0, 1, 1]), np.array([0, 1, 0]), scores, 0.5, (0.25, 0.4))
    assert row(one).startswith("own | 3 | 0.667 (")
    assert row(one).endswith(" | 0.25 / 0.40 | 0.67 / 0.67 / - | 0.50 / 1.00 / - | 0.333 | 6")
    assert reliability_table([one])[-1] == "| 0.9 to 1.0 | 1 | 0.90 | 1.00 |"


def test_the_interval_holds_the_score_and_is_a_point_where_all_are_right():
    labels = np.array([0, 1, 2] * 30)
    assert interval(labels, labels) == (1.0, 1.0)
    called = np.where(np.arange(90) % 5 == 0, (labels + 1) % 3, labels)
    low, high = interval(labels, called)
    assert low < 0.8 < high


def test_overlap_is_cut_where_the_fitted_part_says():
    shared, apart = ("heavy rain fell", "heavy rain fell", 0), ("heavy rain fell", "nobody came home", 2)
    data = HeldOut("made", [shared, apart] * 4, [True] * 4 + [False] * 4)
    overlapping, majority = floors(data)
    assert overlapping == 1.0
    assert majority == pytest.approx(1 / 3)


def test_a_set_that_nothing_is_fitted_on_has_no_floor():
    assert np.isnan(floors(HeldOut("drafts", [("a", "b", 0)], [False]))).all()
