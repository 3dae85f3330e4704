"""Rows to figures, by hand: seeds together, failures in the denominator, corrections named."""

from __future__ import annotations

import pytest

from engine.core.statistics import holm, sign_test
from engine.studies.summary import against, by_question, compare, counts, measure, of_method, table
from engine.studies.values import Failure, Row, Unit


def row(example, method, value, seed=1, unparsed=0):
    unit = Unit(example=example, method=method, seed=seed)
    if value == "failed":
        return Row(unit=unit, state="failed", failure=Failure(type="ModelError", message="gone"))
    return Row(unit=unit, state="done", values={"score": value}, unparsed=unparsed)


def test_seeds_are_averaged_within_the_question():
    rows = [row("a", "m", 1.0, 1), row("a", "m", 0.0, 2), row("b", "m", 1.0, 1), row("b", "m", None, 2)]
    assert by_question(rows, "score") == {"a": 0.5, "b": 1.0}
    assert measure(rows, "score").n == 2 and measure(rows, "score").low is None


def test_a_value_inside_another_is_named_by_its_path():
    one, other, lacking = row("a", "m", {"recall": 1.0}), row("b", "m", {"recall": 0.5}), row("c", "m", None)
    assert one.value("score", "recall") == 1.0 and one.value("score", "recall", "x") is one.value("none") is None
    assert by_question([one, other, lacking], ("score", "recall")) == {"a": 1.0, "b": 0.5}


def test_failed_units_stay_in_the_denominator_and_undefined_values_leave_it():
    rows = [row("a", "m", 1.0), row("b", "m", "failed"), row("c", "m", None)]
    assert (measure(rows, "score").value, measure(rows, "score").n) == (0.5, 2)
    assert measure(rows, "score", failed=None).value == 1.0
    assert measure([], "score").value is None
    assert counts([*rows, row("a", "m", 1.0, 2, unparsed=3)]) == (3, 1, 3)


def test_comparisons_are_paired_by_question_and_corrected_together():
    rows = [row(str(q), "base", 0.0) for q in range(12)]
    rows += [row(str(q), "better", 1.0 if q < 8 else 0.0) for q in range(12)]
    rows += [row(str(q), "same", 0.0) for q in range(12)]
    better, same = compare(rows, "score", ["base", "better", "same"], "base")
    assert (better.method, better.higher, better.lower, better.ties) == ("better", 8, 0, 4)
    assert better.difference.value == pytest.approx(8 / 12) and better.difference.low > 0
    alone = sign_test([1.0] * 8, [0.0] * 8).p
    assert [better.p, same.p] == pytest.approx(holm([alone, 1.0]))
    assert same.effect is None and same.difference.value == 0.0
    labels, named = {"base": "Base", "better": "Better", "same": "Same"}, ("t", "T", "share")
    (drawn,) = against("base", rows, "score", labels, *named)
    assert against("base", rows, "score", {"base": "Base"}, *named) == []
    assert against("base", rows, "score", {"same": "Same"}, *named) == []
    assert [name for name, *_ in drawn.rows] == ["Better", "Same"] and drawn.columns[1].name == "minus Base"
    assert drawn.n == 12 and any("Holm" in note for note in drawn.notes)


def test_only_questions_that_both_have_are_compared():
    rows = [row("a", "base", 0.0), row("b", "base", 0.0), row("a", "other", 1.0)]
    (found,) = compare(rows, "score", ["other"], "base")
    assert (found.difference.n, found.difference.value, found.difference.low) == (1, 1.0, None)
    assert len(of_method(rows, "other")) == 1


def test_equal_values_in_another_order_of_seeds_are_a_tie():
    values = {"first": (1, 1 / 3, 3 / 4), "second": (1, 3 / 4, 1 / 3)}
    rows = [row("a", method, v, seed) for method, own in values.items() for seed, v in enumerate(own)]
    (found,) = compare(rows, "score", ["first"], "second")
    assert (found.difference.value, found.ties, found.lower) == (0.0, 1, 0)


def test_a_comparison_without_a_common_question_is_not_tested():
    rows = [row(str(q), "base", 0.0) for q in range(6)] + [row(str(q), "better", 1.0) for q in range(6)]
    better, apart = compare([*rows, row("z", "apart", 1.0)], "score", ["better", "apart"], "base")
    assert better.p == pytest.approx(2 / 2**6), "a family of one: not doubled"
    assert (apart.p, apart.difference.value, apart.ties) == (None, None, 0)


def test_the_note_on_failed_units_is_true_of_a_mean_that_leaves_them_out():
    rows = [row("a", "m", 1.0), row("b", "m", "failed")]
    drawn = table("t", "T", "method | score", [("m", measure(rows, "score", None))], rows)
    assert drawn.notes[-1] == (
        "1 of 2 units failed, 0 replies were unreadable; both stay in the denominators, except where n is smaller."
    )
    assert drawn.rows[0][1].n == 1 < drawn.n == 2
