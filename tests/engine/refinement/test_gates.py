"""When a condition fires: by hand, on stored rows and labels, without a model."""

from __future__ import annotations

import pytest

from engine.core.settings import Gradient, SecondPass, Settings
from engine.core.statistics import binomial_at_least
from engine.methods.refinement.gates import flags_of, flags_trigger, gated, overlap_trigger
from engine.methods.refinement.values import OverlapThreshold
from tests.engine.refinement.refine_cases import rows

NONE = {1: None, 2: None, 3: None}
THRESHOLD = OverlapThreshold(value=0.75, rule="fixed", n=0)
ONE = Settings(gradient=Gradient(used_top=1))


def test_d_fires_strictly_under_the_threshold():
    assert overlap_trigger(0.74, THRESHOLD).fired
    assert not overlap_trigger(0.75, THRESHOLD).fired
    assert not overlap_trigger(None, THRESHOLD).fired
    assert overlap_trigger(0.5, THRESHOLD).figures["S3"] == 0.5


def test_a_passage_labelled_not_relevant_and_high_on_three_of_ten_tokens_fires():
    gradient = rows(*[(1, 0, -3)] * 3, *[(2, 1, 0)] * 7)
    trigger = flags_trigger(gradient, "", {1: True, 2: True, 3: False}, ONE)
    assert (trigger.rule, trigger.fired, trigger.passages) == ("labels", True, (3,))
    assert "passage 3 on 3 of 10" in trigger.sentence
    assert not flags_trigger(gradient, "", {1: True, 2: False, 3: True}, ONE).fired
    less = rows(*[(1, 0, -3)] * 2, *[(2, 1, 0)] * 8)
    assert not flags_trigger(less, "", {1: True, 2: True, 3: False}, ONE).fired


def test_the_chance_rate_stands_beside_the_flag():
    gradient = rows(*[(1, 0, -3)] * 10)
    trigger = flags_trigger(gradient, "", {1: True, 2: True, 3: False}, ONE)
    assert trigger.figures["chance that one passage is high"] == pytest.approx(binomial_at_least(3, 10, 1 / 3))
    assert 0 < trigger.figures["random rankings: flag"] < 1
    assert "says little" in trigger.sentence


def test_marking_a_passage_changes_the_rule_from_concentration_to_labels():
    gradient = rows(*[(0, 0, 5)] * 10)
    before = flags_trigger(gradient, "", NONE, Settings())
    assert (before.rule, before.passages) == ("concentration", (3,))
    assert "negative result" in before.sentence
    assert before.figures["random rankings: fires"] == 1.0  # one of the three has all, in whatever order
    after = flags_trigger(gradient, "", {**NONE, 3: False}, Settings())
    assert (after.rule, after.fired, after.passages) == ("labels", True, (3,))
    assert not flags_trigger(gradient, "", {**NONE, 3: True}, Settings()).fired


def test_concentration_is_measured_against_the_share_of_the_length():
    # Passage 3 takes 60% of the relevance: more than 1.5 times a third, less than 1.5 times one half of the length.
    assert flags_trigger(rows(*[(2, 2, 6)] * 10), "", NONE, Settings()).fired
    long = flags_trigger(rows(*[(2, 2, 6)] * 10, lengths=(10, 10, 20)), "", NONE, Settings())
    assert not long.fired


def test_the_rule_can_be_chosen():
    gradient = rows(*[(0, 0, 5)] * 10)
    forced = Settings(refinement=SecondPass(trigger="labels"))
    assert not flags_trigger(gradient, "", NONE, forced).fired
    other = Settings(refinement=SecondPass(trigger="concentration"))
    assert flags_trigger(gradient, "", {3: True}, other).rule == "concentration"


def test_without_gradients_the_rule_says_what_is_missing():
    trigger = flags_trigger(None, "It gives no gradients.", NONE, Settings())
    assert (trigger.rule, trigger.fired, trigger.sentence) == ("unavailable", False, "It gives no gradients.")


def test_always_fires_and_keeps_what_the_rule_said():
    own = overlap_trigger(0.9, THRESHOLD)
    assert gated(own, "own", None, NONE) is own
    always = gated(own, "always", None, NONE)
    assert always.fired
    assert "would not have fired" in always.sentence
    assert always.passages == ()


def test_always_names_what_can_be_named():
    gradient = rows(*[(0, 0, 0)] * 10, scores=(1.0, -9.0, 4.0))
    own = flags_trigger(gradient, "", NONE, Settings())
    assert not own.fired
    assert gated(own, "always", gradient, NONE).passages == (2,)
    assert gated(own, "always", gradient, {1: None, 2: True, 3: None}).passages == (3,)
    marked = {1: False, 2: None, 3: False}
    missing = flags_trigger(None, "none", marked, Settings())
    assert gated(missing, "always", None, marked).passages == (1, 3)
    assert gated(missing, "always", None, NONE).passages == ()


def test_one_passage_cannot_be_ranked_and_labels_of_passages_that_are_not_shown_do_not_count():
    alone = rows(*[(5,)] * 10, lengths=(10,))
    for labels in (NONE, {1: False}):
        for wanted in ("auto", "labels", "concentration"):
            own = flags_trigger(alone, "", labels, Settings(refinement=SecondPass(trigger=wanted)))
            assert (own.rule, own.fired) == ("unavailable", False) and "one passage" in own.sentence
    assert "the own rule is not available" in gated(own, "always", alone, {1: False}).sentence
    assert flags_trigger(rows(*[(0, 0, 5)] * 10), "", {**NONE, 4: False}, Settings()).rule == "concentration"
    forced = Settings(refinement=SecondPass(trigger="labels"))
    assert "No passage of the prompt is labelled" in flags_trigger(rows((1, 1, 1)), "", {4: True}, forced).sentence


def test_flags_do_not_depend_on_the_passages_that_are_labelled_relevant():
    gradient = rows(*[(3, 2, 1)] * 10)
    assert flags_of(gradient, {1: False}, ONE).flagged == flags_of(gradient, {1: False, 2: True}, ONE).flagged == (1,)
