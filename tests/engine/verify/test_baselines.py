from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from engine.core.errors import CannotDo, InputError
from engine.methods.are.baselines import NAMES, run_baseline
from engine.methods.are.decomposer_scores import d_correct, n_c, paired
from engine.methods.are.entropy import entropy
from engine.models.scripted import ScriptedScorer, ScriptedWriter
from tests.engine.verify.scripted import WordVerifier
from tests.engine.verify.test_are import sources

ANSWER = "The bridge opened in 1932. It rained all day."
TEXTS = ("The bridge opened in 1934.", "It rained all day.")


def run(name, writer=None):
    return run_baseline(name, "What of the bridge?", ANSWER, sources(TEXTS), WordVerifier(), writer=writer)


def test_drqa_retrieves_once_and_edits_nothing():
    found = run("drqa")
    assert (found.revised, len(found.queries), found.measures.pres) == (ANSWER, 1, 1)
    assert found.aggregated is None


@pytest.mark.parametrize("name", NAMES)
def test_every_baseline_has_measures_by_the_verifier(name):
    found = run(name)
    assert found.measures.by == "word table"
    assert 0 <= found.measures.attr_p <= 1


def test_rarr_passes_the_gate_and_edits_with_a_model():
    def reply(asked):
        if asked.startswith("You plan"):
            return "When did it open? | bridge"
        if asked.startswith("You compare a fact"):
            return "It says 1934.\ndisagrees" if "1934" in asked and "1932" in asked else "Fine.\nagrees"
        return "The year.\n" + ANSWER.replace("1932", "1934")

    found = run("rarr", ScriptedWriter(reply))
    assert found.revised == ANSWER.replace("1932", "1934")
    assert found.queries == ("When did it open?", "When did it open?")


def test_an_unknown_baseline_is_named_with_those_there_are():
    with pytest.raises(InputError, match="drqa"):
        run("magic")


def test_entropy_by_hand():
    model = ScriptedScorer(lambda passages, words, t: math.log(0.5))
    found = entropy(["a b", "c"], model)
    assert found.entropy == pytest.approx(0.25 * math.log(4) + 0.5 * math.log(2))
    assert found.surprisal == pytest.approx((math.log(4) + math.log(2)) / 2)
    assert found.per_token == pytest.approx(math.log(2))
    assert (found.texts, found.tokens) == (2, 3)
    with pytest.raises(CannotDo):
        entropy(["a"], ScriptedWriter([]))


def test_the_pairing_is_the_largest_one():
    rng = np.random.default_rng(3)
    for _ in range(20):
        both = rng.random((3, 4)) < 0.4
        brute = max(sum(both[i, p[i]] for i in range(3)) for p in itertools.permutations(range(4), 3))
        assert paired(both) == brute


def test_a_fact_is_paired_once():
    entails = WordVerifier().entailment
    assert d_correct(["a b", "a b"], ["b a"], entails) == 0.5
    assert d_correct([], ["a"], entails) == 0
    assert n_c([["a"]], [["b", "c"]]) == 0
