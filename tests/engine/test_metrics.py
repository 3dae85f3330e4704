"""Text metrics: hand-worked examples, invariants, and agreement with the reference packages."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from engine.core import metrics
from engine.core.metrics import CitedSentence
from engine.core.values import Answer, Citation

SAME = "The solid was filtered and washed. It was dried for an hour."


def test_terms_keep_letters_of_every_script():
    assert metrics.terms("Crème brûlée, 3.5 %") == ["crème", "brûlée", "3", "5"]
    assert metrics.terms("हिन्दी भाषा") == ["हिन्दी", "भाषा"]
    assert metrics.terms("水を加える") == ["水", "を", "加", "え", "る"]
    assert metrics.terms("[cite_3] (x)") == ["cite", "3", "x"]


@pytest.mark.parametrize("text", ["水を加える", "Добавьте воду и перемешайте", "أضف الماء ببطء", SAME])
def test_rouge_is_one_for_equal_texts_in_any_script(text):
    for rouge in (metrics.rouge_1, metrics.rouge_2, metrics.rouge_l, metrics.rouge_lsum):
        assert rouge(text, text) == pytest.approx(1.0)


def test_rouge_worked_by_hand():
    reference, text = "the cat sat on the mat", "the cat on a mat"
    # unigrams shared: the, cat, on, mat = 4; P 4/5, R 4/6
    assert metrics.rouge_1(reference, text) == pytest.approx(2 * (4 / 5) * (4 / 6) / (4 / 5 + 4 / 6))
    # bigrams shared: "the cat"; P 1/4, R 1/5
    assert metrics.rouge_2(reference, text) == pytest.approx(2 * (1 / 4) * (1 / 5) / (1 / 4 + 1 / 5))
    # longest common subsequence: the cat on mat
    assert metrics.rouge_l(reference, text) == pytest.approx(2 * (4 / 5) * (4 / 6) / (4 / 5 + 4 / 6))


def test_rouge_lsum_does_not_mind_the_order_of_sentences():
    first, second = "Water is added slowly. The flask is heated.", "The flask is heated. Water is added slowly."
    assert metrics.rouge_lsum(first, second) == pytest.approx(1.0)
    assert metrics.rouge_l(first, second) < 0.6


def test_rouge_agrees_with_the_reference_package_on_ascii_words():
    from rouge_score.rouge_scorer import RougeScorer

    reference, text = "Stir the acid for ten minutes\nCool the flask", "Cool the acid\nStir the flask for ten minutes"
    theirs = RougeScorer(["rouge1", "rouge2", "rougeL"]).score(reference, text)
    assert metrics.rouge_1(reference, text) == pytest.approx(theirs["rouge1"].fmeasure)
    assert metrics.rouge_2(reference, text) == pytest.approx(theirs["rouge2"].fmeasure)
    assert metrics.rouge_l(reference, text) == pytest.approx(theirs["rougeL"].fmeasure)


def test_rouge_lsum_agrees_with_the_reference_package_on_one_sentence_a_line():
    from rouge_score.rouge_scorer import RougeScorer

    reference = "Stir the acid well.\nCool the flask."
    text = "Cool the acid.\nStir the flask well."
    theirs = RougeScorer(["rougeLsum"]).score(reference, text)["rougeLsum"].fmeasure
    assert metrics.rouge_lsum(reference.replace("\n", " "), text.replace("\n", " ")) == pytest.approx(theirs)


def test_bleu_agrees_with_sacrebleu_and_runs_from_zero_to_one():
    import sacrebleu

    text = "The flask was heated for an hour and then cooled."
    assert metrics.bleu(SAME, text) == pytest.approx(sacrebleu.sentence_bleu(text, [SAME]).score / 100)
    assert metrics.bleu(SAME, SAME) == pytest.approx(1.0)
    assert metrics.bleu(SAME, "") == 0.0


def test_jaccard_counts_distinct_words():
    assert metrics.jaccard("a b c", "b c d d") == pytest.approx(2 / 4)
    assert metrics.jaccard("", "...") == 1.0


def test_cosine_by_hand():
    assert metrics.cosine([1, 0], [1, 1]) == pytest.approx(2**-0.5)
    assert metrics.cosine([0, 0], [1, 1]) == 0.0


@given(st.text(max_size=40), st.text(max_size=40))
def test_lexical_metrics_are_symmetric_and_bounded(first, second):
    for metric in metrics.LEXICAL.values():
        assert 0 <= metric(first, second) <= 1 + 1e-9
        assert metric(first, second) == pytest.approx(metric(second, first))


def test_preservation_by_hand():
    assert metrics.preservation("abcd", "abcd") == 1.0
    assert metrics.preservation("abcd", "abxd") == 0.75
    assert metrics.preservation("ab", "completely other") == 0.0
    assert (metrics.preservation("", ""), metrics.preservation("", "a")) == (1.0, 0.0)


def test_attribution_recall_takes_the_best_evidence_of_each_clause():
    assert metrics.attribution_recall([[0.9, 0.1], [0.2, 0.4]]) == pytest.approx((0.9 + 0.4) / 2)
    assert metrics.attribution_recall([]) == 0.0


def test_attribution_precision_paired_and_unpaired():
    assert metrics.attribution_precision([True, False, True, True]) == 0.75
    assert metrics.attribution_precision_unpaired([[1, 0], [0, 0], [0, 1]]) == pytest.approx(2 / 3)
    assert metrics.attribution_precision([]) == 0.0


def test_harmonic_mean():
    assert metrics.harmonic_mean(0.5, 1.0) == pytest.approx(2 / 3)
    assert metrics.harmonic_mean(0.0, 0.0) == 0.0


PASSAGES = {1: "iron rusts", 2: "gold shines", 3: "noise"}
SUPPORTS = {("Iron rusts.", "iron rusts"), ("Iron rusts.", "iron rusts\nnoise"), ("Both.", "iron rusts\ngold shines")}


def entails(pairs):
    return [1.0 if pair in SUPPORTS else 0.1 for pair in pairs]


CITED = [
    CitedSentence("Iron rusts.", (1, 3)),
    CitedSentence("Both.", (1, 2)),
    CitedSentence("Gold sings.", (2, None)),
    CitedSentence("No citation.", ()),
]


def test_nli_precision_counts_invalid_citations_as_not_precise():
    # (Iron, 1) is entailed; (Iron, 3), (Both, 1), (Both, 2), (Gold, 2), (Gold, invalid) are not
    assert metrics.nli_citation_precision(CITED, PASSAGES, entails) == pytest.approx(1 / 6)
    assert metrics.nli_citation_precision(CITED[3:], PASSAGES, entails) is None


def test_alce_recall_joins_the_cited_passages():
    assert metrics.alce_citation_recall(CITED, PASSAGES, entails) == pytest.approx(2 / 4)


def test_alce_precision_forgives_parts_that_are_needed_together():
    # Iron: 1 precise, 3 neither entails nor is needed. Both: 1 and 2 needed together. Gold: not supported.
    assert metrics.alce_citation_precision(CITED, PASSAGES, entails) == pytest.approx(3 / 6)


def test_rfcp_wants_entailed_and_relevant():
    assert metrics.rfcp(CITED, PASSAGES, {1: True, 2: True, 3: False}, entails) == pytest.approx(1 / 6)
    assert metrics.rfcp(CITED, PASSAGES, {1: False, 2: True}, entails) == 0.0


def answer_with_citations() -> Answer:
    text = "Iron rusts [cite_1][cite_3]. Gold shines [cite_9]. [cite_2]"
    marks = [(11, 19, 1, True), (19, 27, 3, True), (41, 49, 9, False), (51, 59, 2, True)]
    citations = tuple(Citation(start=a, end=b, number=n, valid=v) for a, b, n, v in marks)
    assert all(text[c.start : c.end] == f"[cite_{c.number}]" for c in citations)
    return Answer(text=text, sentences=((0, 28), (29, 50), (51, 59)), citations=citations)


def test_cited_sentences_lose_their_markers_and_keep_invalid_ones_as_none():
    assert metrics.statements(answer_with_citations()) == [
        CitedSentence("Iron rusts.", (1, 3)),
        CitedSentence("Gold shines.", (None,)),
    ]


def test_distractor_share_is_over_all_citations():
    assert metrics.distractor_share(answer_with_citations(), {1: True, 2: False, 3: False}) == 2 / 4
    assert metrics.distractor_share(Answer(text="x"), {}) is None


def test_contains_answer_ignores_case_and_empty_golds():
    assert metrics.contains_answer("It is PARIS.", ["london", "Paris"])
    assert not metrics.contains_answer("It is Rome.", ["", "Paris"])
