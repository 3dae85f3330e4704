"""The refinement study's rules by hand: thresholds and triggers are the config's, the judged pair is the gated one."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from engine.core.settings import SecondPass
from engine.studies.catalogue.refinement import gated, judge_tables, judged_pairs
from engine.studies.config import Config
from engine.studies.refinement_tables import (
    cost_tables,
    fires,
    flag_table,
    of_condition,
    run_threshold,
    score_tables,
    signal_table,
    triggers,
)
from engine.studies.summary import measure
from engine.studies.values import Row, Unit

ANSWERED = {name: {"outcome": "answered"} for name in ("A", "D", "E", "v2c")}
PAIRS = (("v2c", "D"), ("D", "A"), ("v2c", "E"))
WINNERS = {"v2c-D": "y", "D-A": "x", "v2c-A": "x", "v2c-E": "x", "E-A": "x"}
HALF = SecondPass(overlap_threshold=0.5)


def row(number, s3, labels, concentration):
    return Row(
        unit=Unit(example=f"q{number}", method="conditions", seed=1),
        state="done",
        values={
            "s3": s3,
            "fired": {"labels": labels, "concentration": concentration},
            "conditions": ANSWERED,
            "judged": WINNERS,
        },
    )


ROWS = (
    row(0, 0.2, True, False),  # D fires under 0.5, v2c by labels alone
    row(1, 0.9, True, True),  # D does not fire
    row(2, 0.2, False, False),
    row(3, 0.9, False, None),
)


def test_a_rule_that_does_not_fire_stands_for_a_in_the_judged_pair():
    """By hand: v2c against D itself, then v2c against A, then A against D (turned around), then a tie."""
    marks = fires(ROWS, ("D", "E", "v2c"), HALF)
    found = gated(ROWS, PAIRS, marks, SecondPass(trigger="labels"))
    assert found["v2c against D, labels"] == ["y", "x", "y", "tie"]
    assert found["D against A"] == ["x", "tie", "x", "tie"]
    assert found["v2c against E, labels"] == ["x", "x", "y", "y"]  # where v2c is A, E beats it
    other = gated(ROWS, PAIRS, marks, SecondPass(trigger="concentration"))
    assert other["v2c against D, concentration"] == ["y", "x", "y", None]


def test_every_pair_that_stands_in_is_asked_about():
    config = Config(study="refinement", data="d", judge="j", options={"pairs": ["v2c-D", "E-A"]})
    assert judged_pairs(config) == (("v2c", "D"), ("E", "A"), ("v2c", "A"), ("D", "A"))
    plain = Config(study="refinement", data="d", judge="j", options={"pairs": ["E-A", "C2-A"]})
    assert judged_pairs(plain) == (("E", "A"), ("C2", "A"))


@pytest.mark.parametrize(("threshold", "fired"), [(0.5, 2), (0.95, 4), (0.1, 0)])
def test_d_fires_under_the_threshold_of_the_config(threshold, fired):
    assert sum(fires(ROWS, ("D",), SecondPass(overlap_threshold=threshold))["D"].values()) == fired
    assert run_threshold(ROWS, SecondPass(overlap_cases=4, overlap_percentile=100.0)).value == pytest.approx(0.9)


def flags(names, how):
    """The rows of the table of flag rates."""
    return flag_table(ROWS, names, fires(ROWS, names, how), how).rows


def test_each_trigger_that_the_config_asks_for_has_a_row():
    assert triggers(SecondPass()) == ("labels", "concentration")
    assert triggers(SecondPass(trigger="concentration")) == ("concentration",)
    both = flags(("A", "v2a", "v2c"), HALF)
    assert [line[:4] for line in both] == [("v2a, v2c", "flags from labels", 2, 4), ("v2a, v2c", "concentration", 1, 3)]
    one = flags(("A", "v2c"), SecondPass(trigger="concentration"))
    assert [line[1] for line in one] == ["concentration"]


def scored(number, s3, before, after):
    """A run whose D costs 3 calls and 2 seconds of its own behind A's 5 and 4."""
    spent = {"forwards": 8, "backwards": 0, "tokens": None, "written": 8, "seconds": 6.0}
    own = {"forwards": 3, "backwards": 0, "tokens": None, "written": 3, "seconds": 2.0}
    a, d = ({"outcome": "answered", "citation_precision": value} for value in (before, after))
    conditions = {"A": a, "D": {**d, "cost": spent, "own_cost": own}}
    return replace(row(number, s3, None, None), values={"s3": s3, "conditions": conditions})


def test_a_second_pass_is_compared_where_its_rule_fires_and_where_it_does_not():
    given = [scored(0, 0.2, 0.0, 1.0), scored(1, 0.3, 0.5, 1.0), scored(2, 0.9, 1.0, 0.5), scored(3, 0.9, 1.0, 1.0)]
    names = ("A", "D")
    tables = {t.name: t for t in score_tables(given, names, [("D", "A")], fires(given, names, HALF))}
    place = [column.name for column in tables["by_firing"].columns].index("NLI citation precision")
    found = [(*line[:3], line[place].value, line[place].n) for line in tables["by_firing"].rows]
    assert found == [("D", "yes", 2, 0.75, 2), ("D", "no", 2, -0.25, 2)]
    assert (tables["by_firing"].shows, tables["gated"].shows) == ("grounded refinement, section 3.8", "")


def test_the_cost_under_its_own_rule_has_the_second_pass_where_it_fires():
    given = [scored(n, s3, 0.0, 0.0) for n, s3 in enumerate((0.2, 0.9, 0.9, 0.9))]
    always, ruled = cost_tables(given, ("D",), fires(given, ("D",), HALF))
    assert "every second pass on" in always.title and always.rows[0][1].value == 8
    name, rate, forwards, _, tokens, _, seconds = ruled.rows[0]
    assert (name, rate.value, forwards.value, tokens.value, seconds.value) == ("D", 0.25, 5.75, None, 4.5)


def test_answers_that_were_told_what_the_labels_flag_have_no_row_of_the_concentration_trigger():
    names = ("D", "v2a", "v2c")
    assert list(fires(ROWS, names, HALF)) == ["D", "v2a, labels", "v2c, labels", "v2c, concentration"]
    pairs = (("v2a", "A"), ("v2c", "A"))
    judged = list(gated(ROWS, pairs, fires(ROWS, names, HALF), HALF))
    assert judged == ["v2a against A, labels", "v2c against A, labels", "v2c against A, concentration"]
    assert judge_tables(ROWS, (("v2a", "A"),), fires(ROWS, names, HALF), HALF)[2].n == 0
    alone = SecondPass(trigger="concentration")  # here the critiques name what is concentrated
    assert list(fires(ROWS, names, alone)) == ["D", "v2a, concentration", "v2c, concentration"]
    bare = [row(n, 0.5, None, True) for n in range(3)]
    assert sum(fires(bare, names, HALF)["v2a, concentration"].values()) == 3


def test_the_flagged_runs_are_those_of_the_trigger_and_every_pass_on_is_a_table_of_its_own():
    tables = {table.name: table for table in judge_tables(ROWS, PAIRS, fires(ROWS, ("D", "E", "v2c"), HALF), HALF)}
    assert list(tables) == ["judge", "judge_flagged_labels", "judge_flagged_concentration", "judge_always"]
    assert (tables["judge_flagged_labels"].n, tables["judge_flagged_concentration"].n) == (2, 1)
    flagged = {line[0]: line for line in tables["judge_flagged_labels"].rows}
    assert flagged["v2c against D, labels"][1:4] == (1, 0, 1)
    assert {line[0]: line[1:4] for line in tables["judge_always"].rows}["v2c against D"] == (0, 0, 4)


def test_an_answer_that_a_condition_cannot_write_is_not_a_lost_one():
    written, not_there = {"outcome": "answered", "str_em": True}, {"outcome": "not applicable"}
    (one,) = of_condition([replace(ROWS[0], values={"conditions": {"A": written, "v2a": not_there}})], "v2a")
    assert measure([one], "str_em").value is None


def test_a_signal_is_correlated_with_the_scores_of_a_over_questions():
    """Twelve questions: S3 rises with citation precision, S1 falls with it, S2 is known of one alone."""
    rows = [
        Row(
            unit=Unit(example=f"q{n}", method="conditions", seed=1),
            state="done",
            values={
                "s1": 1 - n / 12,
                "s2": 2.0 if n == 0 else None,
                "s3": n / 12,
                "conditions": {"A": {"outcome": "answered", "citation_precision": n / 20}},
            },
        )
        for n in range(12)
    ]
    by_signal = {line[0][:2]: line[1:] for line in signal_table(rows).rows}
    mean, precision, exact = by_signal["S3"]
    assert (mean.value, mean.n) == (pytest.approx(11 / 24), 12)
    assert (precision.value, precision.n) == (pytest.approx(1.0), 12)
    assert by_signal["S1"][1].value == pytest.approx(-1.0)
    assert by_signal["S2"][1].value is None and exact.value is None and exact.n == 0


def test_the_sign_test_of_the_judge_counts_a_question_once_whatever_its_seeds():
    """Four questions under three seeds, all won by D: p is 2 / 2**4, not 2 / 2**12."""
    seeds = [replace(one, unit=replace(one.unit, seed=seed)) for one in ROWS for seed in (1, 2, 3)]
    won = [replace(one, values={**one.values, "judged": {"D-A": "x"}}) for one in seeds]
    always = judge_tables(won, (("D", "A"),), fires(won, ("D",), HALF), HALF)[-1]
    p = [column.name for column in always.columns].index("p, sign test")
    assert (always.rows[0][1], always.rows[0][p]) == (12, 0.125)


def test_an_answer_that_never_came_is_not_a_short_one():
    written = {"outcome": "answered", "words": 40, "citations": 2, "str_em": True}
    conditions = [{"A": written, "E": written}, {"A": written, "E": {"outcome": "failed"}}]
    rows = [replace(row(n, 0.9, None, None), values={"s3": 0.9, "conditions": c}) for n, c in enumerate(conditions)]
    scores = score_tables(rows, ("A", "E"), [("E", "A")], {})[0]
    names = [column.name for column in scores.columns]
    second = scores.rows[1]
    assert [second[names.index(name)].value for name in ("words", "citations", "STR-EM")] == [40, 2, 0.5]


def test_runs_that_a_rule_cannot_be_asked_of_are_not_gains_of_nothing():
    scored_v2c = {"A": {"outcome": "answered", "str_em": 0.0}, "v2c": {"outcome": "answered", "str_em": 1.0}}
    rows = [row(n, 0.9, True if n < 2 else None, None) for n in range(6)]
    rows = [replace(one, values={**one.values, "conditions": scored_v2c}) for one in rows]
    marks = fires(rows, ("v2c",), SecondPass(trigger="labels"))
    gated_table = {t.name: t for t in score_tables(rows, ("A", "v2c"), [], marks)}["gated"]
    name, fired, not_asked, *differences = gated_table.rows[0]
    assert (name, fired, not_asked) == ("v2c, labels", 2, 4)
    assert [(d.value, d.n) for d in differences if d.value is not None] == [(1.0, 2)]
