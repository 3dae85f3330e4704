"""Our metrics and statistics agree with rouge-score, sacrebleu, scipy and scikit-learn on generated inputs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

from engine.core import metrics, statistics as stats

WORD = st.text("abcde12", min_size=1, max_size=4)
TEXT = st.lists(WORD, max_size=14).map(" ".join)
LETTERS = st.text("abcdefgh", min_size=2, max_size=5)
SENTENCES = st.lists(st.lists(LETTERS, min_size=2, max_size=6).map(" ".join), min_size=1, max_size=3)
FLOATS = st.floats(-5, 5).map(lambda x: round(x, 2))
PAIRED = st.lists(st.tuples(FLOATS, FLOATS), min_size=3, max_size=40)
P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=12)


@settings(max_examples=40)
@given(TEXT, TEXT)
def test_rouge_is_rouge_scores(reference, text):
    from rouge_score.rouge_scorer import RougeScorer

    theirs = RougeScorer(["rouge1", "rouge2", "rougeL"]).score(reference, text)
    assert metrics.rouge_1(reference, text) == pytest.approx(theirs["rouge1"].fmeasure)
    assert metrics.rouge_2(reference, text) == pytest.approx(theirs["rouge2"].fmeasure)
    assert metrics.rouge_l(reference, text) == pytest.approx(theirs["rougeL"].fmeasure)


@settings(max_examples=40)
@example(["aa aa"], ["aa ca", "aa aaa"])
@given(SENTENCES, SENTENCES)
def test_rouge_lsum_is_rouge_scores_with_a_sentence_a_line(reference, text):
    from rouge_score.rouge_scorer import RougeScorer

    # No full stops: "ca." is an abbreviation, which ends no sentence.
    ours = metrics.rouge_lsum(*("! ".join(s.capitalize() for s in part) + "!" for part in (reference, text)))
    theirs = RougeScorer(["rougeLsum"]).score("\n".join(reference), "\n".join(text))["rougeLsum"].fmeasure
    assert ours == pytest.approx(theirs)


@settings(max_examples=40)
@given(TEXT, TEXT)
def test_bleu_is_sacrebleus(reference, text):
    import sacrebleu

    theirs = sacrebleu.BLEU(effective_order=True).sentence_score(text, [reference]).score / 100
    assert metrics.bleu(reference, text) == pytest.approx(theirs)


@settings(max_examples=40)
@given(TEXT, TEXT)
def test_jaccard_and_cosine_are_scikit_learns(first, second):
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.metrics import jaccard_score
    from sklearn.metrics.pairwise import cosine_similarity

    if not (first and second):
        return
    counts = CountVectorizer(token_pattern=r"\S+").fit_transform([first, second]).toarray()
    assert metrics.cosine(*counts) == pytest.approx(cosine_similarity(counts)[0, 1])
    assert metrics.jaccard(first, second) == pytest.approx(jaccard_score(*(counts > 0)))


@settings(max_examples=40)
@given(PAIRED)
def test_rank_correlation_and_effect_are_scipys(pairs):
    from scipy.stats import spearmanr, ttest_rel

    first, second = zip(*pairs, strict=True)
    rho = stats.rank_correlation(first, second)
    if rho is not None:
        assert rho == pytest.approx(spearmanr(first, second).statistic)
    effect = stats.cohens_dz([a - b for a, b in pairs])
    if effect is not None:
        assert effect * math.sqrt(len(pairs)) == pytest.approx(float(ttest_rel(first, second).statistic), rel=1e-6)


@settings(max_examples=40)
@given(st.integers(0, 40), st.integers(0, 40), st.floats(0.05, 0.95))
def test_binomials_are_scipys(successes, more, probability):
    from scipy.stats import binom, binomtest

    trials = successes + more
    assert stats.binomial_at_least(successes, trials, probability) == pytest.approx(
        float(binom.sf(successes - 1, trials, probability)), abs=1e-9
    )
    if trials:
        assert stats.binomial_test(successes, trials) == pytest.approx(binomtest(successes, trials).pvalue)


@settings(max_examples=40)
@given(P_VALUES)
def test_holm_lies_between_scipys_false_discovery_rate_and_bonferroni(p_values):
    from scipy.stats import false_discovery_control

    rates, family = false_discovery_control(p_values), stats.holm(p_values)
    for p, q, h in zip(p_values, rates, family, strict=True):
        assert p - 1e-12 <= q <= h + 1e-12 <= min(1.0, p * len(p_values)) + 2e-12


@settings(max_examples=15)
@given(st.lists(st.tuples(FLOATS, FLOATS), min_size=10, max_size=30))
def test_the_paired_bootstrap_is_scipys_within_the_noise_of_resampling(pairs):
    from scipy.stats import bootstrap

    first, second = (np.array(side) for side in zip(*pairs, strict=True))
    differences = first - second
    if np.ptp(differences) < 1e-9:
        return
    ours = stats.paired_bootstrap(first, second)
    theirs = bootstrap((differences,), np.mean, method="percentile", n_resamples=10_000, rng=1).bootstrap_distribution
    # Both ends are quantiles of 10,000 resampled means: with tied differences those means lie on a grid, so the
    # noise is counted in probability (five standard errors of a quantile's level, twice), not in units of the mean.
    noise = 5 * math.sqrt(2 * 0.025 * 0.975 / 10_000)
    for end, level in ((ours.low, 0.025), (ours.high, 0.975)):
        assert np.quantile(theirs, level - noise) - 1e-9 <= end <= np.quantile(theirs, level + noise) + 1e-9
    assert ours.low <= ours.mean + 1e-9 and ours.mean <= ours.high + 1e-9
