"""The three kinds of cases, each by hand in both directions."""

from __future__ import annotations

import pytest

from bench.refinement_kinds import overlap_heuristic_prunes, rewrite_keeps_grounded, self_refine_adds_unsupported
from engine.methods.refinement.run import RefinementReport, assessed, refine
from engine.methods.refinement.values import Trigger
from tests.engine.refinement.refine_cases import NoTrains, passages, request, writer

GOOD, BAD = "Lind built it [cite_1].", "Lind loved trains [cite_1]."


def report(**replies):
    value = refine(request(writer(**replies), variants=("A", "D", "E", "v2c"), gate="always"))
    return assessed(RefinementReport(refinement=value), passages(), NoTrains())


@pytest.mark.parametrize(
    ("a", "e", "found"),
    [
        (GOOD, f"{GOOD} {BAD}", True),
        (GOOD, GOOD, False),
        (BAD, BAD, False),
        (BAD, GOOD, False),
        (GOOD, "Trains.", True),
    ],
)
def test_self_refine_adds_an_unsupported_sentence(a, e, found):
    assert self_refine_adds_unsupported(report(A=a, E=e), passages()) is found


@pytest.mark.parametrize(
    ("a", "d", "found"),
    [(f"{GOOD} Repaired in 1931 [cite_2].", GOOD, True), (GOOD, GOOD, False), (f"{GOOD} {BAD}", GOOD, False)],
)
def test_the_heuristic_prunes_what_was_supported(a, d, found):
    assert overlap_heuristic_prunes(report(A=a, grounding=d), passages()) is found


@pytest.mark.parametrize(
    ("a", "rewrite", "found"),
    [
        (GOOD, GOOD, True),
        (GOOD, f"{GOOD} {BAD}", False),
        (BAD, GOOD, False),
        (f"{GOOD} Repaired [cite_2].", GOOD, False),
    ],
)
def test_the_rewrite_keeps_a_grounded_answer(a, rewrite, found):
    assert rewrite_keeps_grounded(report(A=a, grounding=rewrite), passages()) is found


def test_a_rewrite_that_did_not_fire_keeps_nothing():
    from msgspec.structs import replace

    given = report(A=GOOD, grounding=GOOD)
    value = given.refinement
    quiet = replace(value.variants["v2c"], trigger=Trigger(rule="labels", fired=False, sentence=""))
    silent = replace(given, refinement=replace(value, variants={**value.variants, "v2c": quiet}))
    assert not rewrite_keeps_grounded(silent, passages())
