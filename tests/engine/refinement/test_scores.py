"""Scores of an answer by hand: ALCE's precision and recall, RFCP, distractors; costs; facts kept."""

from __future__ import annotations

import pytest

from engine.analyses.refinement import _costs
from engine.answer.citations import annotate
from engine.core.values import Answer
from engine.methods.refinement.run import refine
from engine.methods.refinement.values import Cost
from engine.methods.signals import deployed_cost, facts_kept, remembered, scores_of
from tests.engine.refinement.refine_cases import TEXTS, passages, request, scorer

LABELS = (True, False, None)
ASKED = []


def entails(pairs):
    """Lind is in passage 1, the repair in passage 2; both need both."""
    ASKED.append(list(pairs))
    return [_bears_out(claim, evidence) for claim, evidence in pairs]


def _bears_out(claim, evidence):
    needed = {"Lind built it": [TEXTS[0]], "It was repaired": [TEXTS[1]], "Built and repaired": list(TEXTS[:2])}
    found = next(texts for start, texts in needed.items() if claim.startswith(start))
    return 0.9 if all(text in evidence for text in found) else 0.2


def score(text, labels=LABELS, **options):
    answer = annotate(Answer(text=text), 3)
    return scores_of(answer, passages(labels), entails, **options)


def test_citation_precision_counts_pairs_and_an_invalid_citation():
    found = score("Lind built it [cite_1] [cite_2]. It was repaired [cite_2]. Lind built it [cite_9].")
    assert found.citation_precision == pytest.approx(2 / 4)  # 1 yes, 2 no, 2 yes, 9 invalid
    assert found.citation_recall == pytest.approx(2 / 3)  # joined 1 and 2 bear the first out
    assert found.distractor_share == pytest.approx(2 / 4)
    assert found.rfcp == pytest.approx(1 / 4)  # (1, passage 1): entailed and relevant; passage 2 is not relevant
    assert found.citations == 4


def test_alce_precision_lets_a_citation_stand_that_is_needed_with_others():
    # Neither passage alone bears the sentence out, together they do: both are needed, ALCE counts both.
    found = score("Built and repaired [cite_1] [cite_2]. Lind built it [cite_1] [cite_3].")
    assert found.alce_precision == pytest.approx(3 / 4)  # passage 3 is not needed beside 1
    assert found.citation_precision == pytest.approx(1 / 4)
    assert found.citation_recall == 1


def test_an_uncited_sentence_lowers_recall_alone():
    found = score("Lind built it [cite_1]. It was repaired.")
    assert (found.citation_precision, found.citation_recall) == (1, 0.5)


def test_what_cannot_be_had_is_none_and_said():
    found = scores_of(annotate(Answer(text="Lind built it."), 3), passages((None, None, None)))
    assert found.citation_precision is None and found.rfcp is None and found.str_em is None
    assert set(found.missing) == {"citation_precision", "alce_precision", "rfcp", "distractor_share", "str_em"}
    uncited = score("Lind built it.")
    for name in ("citation_precision", "alce_precision", "rfcp", "distractor_share"):
        assert getattr(uncited, name) is None and uncited.missing[name] == "The answer does not cite any passages."


def test_citations_of_passages_without_a_label_say_nothing_of_relevance():
    labels = (False, None, True)
    unlabelled = score("Lind built it [cite_2].", labels=labels)
    assert unlabelled.rfcp is None and unlabelled.distractor_share is None
    assert unlabelled.missing["rfcp"] == "The answer cites passages without a label only."
    both = score("Lind built it [cite_1] [cite_2].", labels=labels)
    assert (both.rfcp, both.distractor_share) == (0.0, 1.0)


def test_each_number_that_does_not_exist_is_a_citation_of_its_own():
    assert score("Lind built it [cite_1] [cite_7] [cite_8] [cite_8].").citation_precision == pytest.approx(1 / 3)


def test_the_number_of_a_citation_is_no_gold_answer():
    assert score("Lind built it [cite_3].", golds=["3"]).str_em is False


def test_text_scores_by_hand():
    found = score("Lind built it in 1874 with zeal [cite_1].", golds=["1874", "1875"])
    assert found.str_em is True
    assert found.s3 == pytest.approx(3 / 4)
    assert found.unsupported == 1
    assert score("Lind built it.", golds=["1900"]).str_em is False


def test_no_pair_is_judged_twice():
    ASKED.clear()
    score("Lind built it [cite_1]. Lind built it [cite_1].")
    flat = [pair for pairs in ASKED for pair in pairs]
    assert len(flat) == len(set(flat)) == 1
    ask = remembered(entails, {})
    assert ask([("Lind built it", TEXTS[0])] * 2) == [0.9, 0.9]


def test_a_condition_as_deployed_costs_what_it_stands_on():
    value = refine(request(scorer(), variants=("A", "B", "C2", "E")))
    a, b, e = (value.variants[n].cost for n in ("A", "B", "E"))
    assert deployed_cost(value, "E").forwards == a.forwards + e.forwards
    assert deployed_cost(value, "B").forwards == b.forwards
    assert deployed_cost(value, "A") == a


def test_facts_of_a_that_an_answer_still_says():
    kept = facts_kept([("Lind built it", "supportive"), ("It was repaired", "irrelevant")], TEXTS[0], entails)
    assert [(f.fact, f.verdict, f.kept) for f in kept] == [
        ("Lind built it", "supportive", 0.9),
        ("It was repaired", "irrelevant", 0.2),
    ]
    assert facts_kept([], "x", entails) == ()


def test_a_fact_that_is_a_sentence_of_the_answer_is_said_whatever_the_verifier_thinks():
    facts = [("It was repaired in 1900", "supportive"), ("It was repaired", "supportive")]
    answer = "Lind built it [cite_1]. It was repaired in 1900 [cite_2]."
    whole, part = facts_kept(facts, answer, lambda pairs: [0.2] * len(pairs))
    assert (whole.kept, part.kept) == (1.0, 0.2)
    (absent,) = facts_kept(facts[:1], "No, it was not repaired in 1900.", lambda pairs: [0.2])
    assert absent.state(whole) == "gone" and whole.state(whole) == "said" and whole.state(part) == "unclear"


def test_passes_that_nobody_counted_are_unknown():
    first, second = (Cost(written=n, seconds=1.0) for n in (0, 19))
    figures = {row[0]: row[1:] for row in _costs([first, second])}
    assert figures["Forward passes"] == figures["Token positions through the model"] == ("0", "unknown")
    assert figures["Tokens written"] == ("0", "19")
