"""Judging with scripted judges: both orders, blinding, parsing, and counts against scipy."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.stats import binomtest

from engine.core.errors import CannotDo
from engine.methods.judge import (
    CRITERIA,
    PairJudgement,
    decide,
    judge_criteria,
    judge_pair,
    judge_relevance,
    judge_warning,
    pair_prompt,
    parse_criteria,
    parse_pair,
    parse_relevance,
    swapped,
    tally,
)
from engine.models.protocols import Can
from engine.models.scripted import ScriptedScorer, ScriptedWriter

PASSAGES = ("The bridge was built in 1874.", "It was repaired in 1931.")
GOOD, BAD = "It was built in 1874 [cite_1].", "It was built in 1900 [cite_2]."


def prefers(text):
    """A judge that votes for the answer `text`, wherever it stands."""
    return ScriptedWriter(lambda asked: f"Reason.\nVerdict: {'X' if f'Answer X: {text}' in asked else 'Y'}")


def test_a_judge_that_prefers_an_answer_is_counted_in_both_orders():
    for x, y, winner in ((GOOD, BAD, "x"), (BAD, GOOD, "y")):
        found = judge_pair(prefers(GOOD), "When?", PASSAGES, x, y)
        assert (found.winner, found.orders) == (winner, (winner, winner))


def test_a_judge_that_prefers_a_place_is_not_counted():
    found = judge_pair(ScriptedWriter(lambda asked: "Verdict: X"), "When?", PASSAGES, GOOD, BAD)
    assert (found.winner, found.orders) == ("disagreed", ("x", "y"))


def test_equal_answers_are_a_tie_that_nobody_is_asked_about():
    for judge in (ScriptedWriter(["Verdict: X"] * 2), Prefers(GOOD)):
        found = judge_pair(judge, "When?", PASSAGES, GOOD, GOOD)
        assert (found.winner, found.preferred, found.prompts) == ("tie", None, ("", ""))
        assert (judge.prompts, judge.forwards) == ([], 0)
        counted = tally([found])
        assert (counted.ties, counted.disagreed, counted.first_share, counted.mean) == (1, 0, None, 0.0)


def test_an_unreadable_reply_is_kept_and_counted_apart():
    found = judge_pair(ScriptedWriter(["Verdict: X", "Both are fine."]), "When?", PASSAGES, GOOD, BAD)
    assert (found.winner, found.orders) == ("unparsed", ("x", None))
    assert found.raw == ("Verdict: X", "Both are fine.")


def test_the_judge_sees_everything_but_who_wrote_what():
    judge = prefers(GOOD)
    judge_pair(judge, "When was it built?", PASSAGES, GOOD, BAD)
    first, second = judge.prompts
    assert first.startswith(pair_prompt("When was it built?", PASSAGES, GOOD, BAD).text)
    assert second.startswith(pair_prompt("When was it built?", PASSAGES, BAD, GOOD).text)
    for text in (*PASSAGES, GOOD, BAD, "When was it built?", "Length and style do not count"):
        assert text in first
    assert not any(name in first for name in ("baseline", "Self-Refine", "v2c", "variant"))
    assert sorted(first.split()) == sorted(second.split())


class Prefers(ScriptedScorer):
    """Scores the letter of the answer `text` as four times as likely as the other letter and as "tie"."""

    def __init__(self, text):
        super().__init__(lambda passages, words, t: self.nats[words[t]])
        self.text = text
        self.nats = {}

    def encode(self, prompt):
        letter = "X" if f"Answer X: {self.text}" in prompt.text else "Y"
        self.nats = dict.fromkeys(("X", "Y", "tie"), math.log(0.1)) | {letter: math.log(0.4)}
        return super().encode(prompt)


def test_a_judge_that_scores_votes_by_likelihood_and_writes_nothing():
    judge = Prefers(GOOD)
    for x, y, winner in ((GOOD, BAD, "x"), (BAD, GOOD, "y")):
        found = judge_pair(judge, "When?", PASSAGES, x, y)
        assert (found.winner, found.orders, found.by, found.raw) == (winner, (winner, winner), "likelihood", ("", ""))
        for shares in found.probabilities:
            assert shares == pytest.approx({"x": 1 / 6, "y": 1 / 6, "tie": 1 / 6} | {winner: 2 / 3})
        assert PairJudgement.from_dict(found.to_dict()) == found
    assert judge.prompts == []


def test_a_stored_judgement_of_earlier_times_still_opens():
    old = {"winner": "x", "orders": ["x", "x"], "raw": ["a", "b"], "prompts": ["p", "q"], "judge": "j"}
    assert PairJudgement.from_dict(old).by == "reply"


def test_six_questions_where_the_judge_scores():
    judge = ScriptedScorer(lambda passages, words, t: -abs(int(words[t]) - 4.0))
    found = judge_criteria(judge, "How?", "First a, then b.", "a")
    assert (found.scores, found.total, found.by) == (dict.fromkeys(CRITERIA, 4), 24, "likelihood")
    assert judge.forwards == 6 * 6
    assert all(sum(shares.values()) == pytest.approx(1) for shares in found.probabilities.values())


def test_the_level_by_likelihood():
    judge = ScriptedScorer(lambda passages, words, t: 0.0 if words[t] == "partial" else -2.0)
    found = judge_relevance(judge, "p", "s", "d")
    assert (found.option, found.by, found.reply) == ("partial", "likelihood", "")
    assert found.probabilities["partial"] == pytest.approx(1 / (1 + 3 * math.exp(-2)))


@pytest.mark.parametrize(
    ("reply", "vote"),
    [
        ("Verdict: X", "x"),
        ("**Verdict: Y**", "y"),
        ("X is longer.\n\nVerdict: tie.", "tie"),
        ("verdict:  x ", "x"),
        ("Verdict: X\nVerdict: X", "x"),
        ("Verdict: X\nVerdict: Y", None),
        ("Verdict: X or Y", None),
        ("X", "x"),
        ("Both cite it.\n\n**tie**\n\nLet me know!", "tie"),
        ("X:\nlong\n\nY:\nlong", None),
        ("I would give the verdict: X", None),
        ("", None),
    ],
)
def test_reading_a_vote(reply, vote):
    assert parse_pair(reply) == vote


@given(st.text(max_size=200))
def test_no_text_without_a_line_that_ends_in_an_option_is_a_vote(text):
    words = [re.findall(r"\w+", line.casefold())[-1:] for line in text.splitlines()]
    if not any(word and word[0].endswith(("x", "y", "tie")) for word in words):
        assert parse_pair(text) is None


def test_deciding():
    votes = ("x", "y", "tie")
    assert [decide(a, b) for a in votes for b in votes] == [
        *("x", "disagreed", "disagreed"),
        *("disagreed", "y", "disagreed"),
        *("disagreed", "disagreed", "tie"),
    ]
    assert decide(None, "x") == decide("x", None) == "unparsed"
    assert [swapped(v) for v in (*votes, None)] == ["y", "x", "tie", None]


def test_the_tally_by_hand_and_against_scipy():
    winners = ["x"] * 11 + ["tie"] * 12 + ["y"] * 1 + ["disagreed"] * 3 + ["unparsed"] * 2  # the paper's table 10
    found = tally(winners)
    assert (found.wins, found.ties, found.losses, found.disagreed, found.unparsed) == (11, 12, 1, 3, 2)
    assert found.win_share == pytest.approx(11 / 12)
    assert found.mean == pytest.approx(10 / 24)
    assert found.p == pytest.approx(binomtest(11, 12).pvalue)
    assert (found.low, found.high) == pytest.approx((0.167, 0.625), abs=0.05)  # the paper's interval


def test_the_interval_is_the_bootstrap_of_the_mean():
    values = np.array([1.0] * 11 + [0.0] * 12 + [-1.0])
    rng = np.random.default_rng(0)
    means = rng.choice(values, size=(20_000, values.size)).mean(axis=1)
    found = tally(["x"] * 11 + ["tie"] * 12 + ["y"])
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])), abs=0.05)


def test_few_or_no_judgements_have_no_interval_and_no_share():
    assert tally(["x"] * 9).low is None
    empty = tally([])
    assert (empty.mean, empty.win_share, empty.p) == (None, None, 1.0)
    assert tally(["tie"] * 12).win_share is None


def test_position_bias_is_the_share_of_votes_for_the_answer_shown_first():
    asked = (GOOD, BAD)
    always_x = judge_pair(ScriptedWriter(["Verdict: X"] * 2), "When?", PASSAGES, *asked)
    fair = judge_pair(ScriptedWriter(["Verdict: X", "Verdict: Y"]), "When?", PASSAGES, *asked)
    tied = judge_pair(ScriptedWriter(["Verdict: tie"] * 2), "When?", PASSAGES, *asked)
    assert (always_x.winner, fair.winner, tied.winner) == ("disagreed", "x", "tie")
    assert tally([always_x]).first_share == 1.0
    assert tally([fair]).first_share == 0.5
    assert tally([always_x, fair, tied]).first_share == 0.75
    assert tally([tied]).first_share is None and tally(["x"]).first_share is None


def test_the_preferred_answer_has_the_larger_mean_share_of_both_orders():
    said = {"orders": ("x", "y"), "raw": ("", ""), "prompts": ("", ""), "judge": "", "winner": "disagreed"}
    shares = ({"x": 0.9, "y": 0.1, "tie": 0.0}, {"x": 0.4, "y": 0.6, "tie": 0.0})
    assert PairJudgement(**said, by="likelihood", probabilities=shares).preferred == "x"
    assert PairJudgement(**said).preferred is None


def test_swapping_the_answers_mirrors_the_tally():
    winners = ["x"] * 7 + ["y"] * 3 + ["tie"] * 4
    mirrored = [{"x": "y", "y": "x"}.get(w, w) for w in winners]
    one, other = tally(winners), tally(mirrored)
    assert one.mean == -other.mean
    assert one.p == other.p


def test_six_criteria_are_read_and_added():
    reply = "relevance: 5\ncorrectness: 4\n- Completeness: 3/5\n**coherence**: 2\nclarity = 1\nmissing steps: 0"
    judge = ScriptedWriter([reply])
    found = judge_criteria(judge, "How?", "First a, then b.", "a")
    assert list(found.scores.values()) == [5, 4, 3, 2, 1, 0]
    assert found.total == 15
    assert "First a, then b." in judge.prompts[0]


def test_a_missing_criterion_leaves_no_total():
    found = judge_criteria(ScriptedWriter(["relevance: 5\nclarity: 9\ncoherence: 2\ncoherence: 3"]), "q", "r", "a")
    assert found.total is None
    assert found.scores == {**dict.fromkeys(CRITERIA), "relevance": 5}
    assert parse_criteria("") == dict.fromkeys(CRITERIA)


@pytest.mark.parametrize("level", ["none", "superficial", "partial", "full"])
def test_four_levels(level):
    judge = ScriptedWriter([f"It says so.\nRelevance: {level}"])
    found = judge_relevance(judge, "the problem", "the step", "the document")
    assert found.option == level
    assert all(text in judge.prompts[0] for text in ("the problem", "the step", "the document"))
    assert parse_relevance("Relevance: full\nRelevance: none") is None
    assert parse_relevance("It is full of holes.") is None


def test_a_judge_of_its_own_answers_carries_a_warning():
    assert "its own answers" in judge_warning("m", ["m"])
    assert judge_warning("m", ["other"]) == ""


def test_a_model_that_cannot_write_cannot_judge():
    judge = prefers(GOOD)
    judge.can = Can(generate=False, why_not="Choose another.")
    with pytest.raises(CannotDo):
        judge_pair(judge, "q", PASSAGES, GOOD, BAD)
