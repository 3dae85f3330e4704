"""Teacher-forced occlusion: scripted scorers by hand, tiny models against brute force."""

from __future__ import annotations

import numpy as np
import pytest

from engine.analyses.occlusion import top_passages
from engine.core.errors import AttributionError, CannotDo
from engine.core.settings import Occlusion
from engine.core.values import Answer, Prompt, Segment
from engine.methods.aggregate import sentence_sources
from engine.methods.occlusion import occluding, occlusion, rows_needed
from engine.models.hooks import count_forwards
from engine.models.scripted import ScriptedScorer, ScriptedWriter, reads
from tests.stopping import before_the_stop, stop_at
from tests.tiny import ANSWER, KINDS, tiny_answer, tiny_model, tiny_prompt


def a_prompt(*texts: str) -> Prompt:
    segments = [Segment(kind="passage", text=f"\nPassage {i}: {t}", number=i) for i, t in enumerate(texts, start=1)]
    return Prompt(segments=(Segment(kind="instruction", text="Answer."), *segments))


def word_overlap(passages, words, t):
    """A lexical scorer: what an attribution must not be."""
    return -5.0 + sum(words[t].strip() in text for text in passages.values())


def test_a_model_that_ignores_passages_gives_zero_everywhere():
    model = ScriptedScorer(reads(()))
    result = occlusion(model, tiny_prompt(4), tiny_answer(model), alone=True)
    assert np.array(result.scores).any() is np.False_
    assert not np.array(result.per_token).any()
    assert not np.array(result.details.alone).any()


def test_a_model_that_reads_one_passage_scores_that_one_alone_whatever_words_the_others_share():
    model = ScriptedScorer(reads({3}, gain=0.5))
    prompt = a_prompt("Other.", ANSWER, "Nothing to see.", "More.")
    result = occlusion(model, prompt, tiny_answer(model))
    content = 4 + 1 + 5 - 0  # Hanna Lind built the / bridge / It was repaired in 1931; markers are words of their own
    assert result.sources == ((1,), (2,), (3,), (4,))
    assert result.scores[0] == pytest.approx((0, 0, 0.5 * content, 0))
    assert result.details.with_markers[0] == pytest.approx([0, 0, 0.5 * (content + 2), 0])
    assert result.unit == "nats"


def test_scores_are_differences_by_hand_for_answer_sentence_and_token():
    def logprob(passages, words, t):
        return -3.0 + (1.0 if 1 in passages and t < 5 else 0.0) - (0.25 if 2 in passages else 0.0)

    model = ScriptedScorer(logprob)
    result = occlusion(model, a_prompt("a", "b"), tiny_answer(model))
    assert result.spans[0] == (0, len(ANSWER))
    assert len(result.spans) == 3
    assert np.array(result.scores) == pytest.approx(np.array([[5, -2.5], [5, -1.25], [0, -1.25]]))
    assert np.array(result.per_token)[:, 0] == pytest.approx([1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0])


def test_sentences_add_up_to_the_answer_and_groups_are_left_out_together():
    model = tiny_model("llama")
    result = occlusion(model, tiny_prompt(4), tiny_answer(model), sources=[(1, 3), (2,)], floors=False)
    scores = np.array(result.scores)
    assert result.sources == ((1, 3), (2,))
    assert scores[1:].sum(axis=0) == pytest.approx(scores[0], rel=1e-9)


def test_duplicated_evidence_scores_zero_left_out_and_counts_alone():
    def either(passages, words, t):
        return -2.0 + (1.0 if {1, 2} & passages.keys() else 0.0)

    model = ScriptedScorer(either)
    result = occlusion(model, a_prompt("same", "same", "other"), tiny_answer(model), alone=True)
    assert result.scores[0] == pytest.approx((0, 0, 0))
    assert result.details.alone[0] == pytest.approx([10, 10, 0])


def test_any_span_comes_from_the_same_rows():
    model = ScriptedScorer(reads({2}))
    start = ANSWER.index("repaired")
    result = occlusion(model, a_prompt("a", "b"), tiny_answer(model), spans=[(start, start + len("repaired"))])
    assert result.scores == ((0.0, 1.0),)


@pytest.mark.parametrize("kind", KINDS)
def test_agrees_with_scoring_each_prompt_by_itself(kind):
    model, prompt = tiny_model(kind), tiny_prompt(4)
    answer = tiny_answer(model)
    result = occlusion(model, prompt, answer, alone=True, floors=False)
    full, *rows = (brute_force(model, prompt.without(gone), answer) for gone in (set(), {1}, {2}, {3}, {4}))
    mask = np.array([not any(c.start < t.end and t.start < c.end for c in answer.citations) for t in answer.tokens])
    expected = [(full - row)[mask].sum() for row in rows]
    assert np.abs(expected[3]) > 1e-2  # a sliding window may leave the first passages out of reach
    assert result.scores[0] == pytest.approx(expected, rel=1e-4, abs=1e-4)
    none = brute_force(model, prompt.keep(set()), answer)
    only = [(brute_force(model, prompt.keep({n}), answer) - none)[mask].sum() for n in (1, 2, 3, 4)]
    assert result.details.alone[0] == pytest.approx(only, rel=1e-4, abs=1e-4)


def brute_force(model, prompt, answer):
    """Log-probabilities by one plain forward over everything."""
    import torch

    ids = [*model.encode(prompt).ids, *(t.id for t in answer.tokens)]
    count = len(answer.tokens)
    with torch.no_grad():
        logits = model.module(input_ids=torch.tensor([ids])).logits[0].double()
    rows = logits[-count - 1 : -1].log_softmax(-1)
    return rows[torch.arange(count), torch.tensor(ids[-count:])].numpy()


def test_an_order_blind_scorer_gives_permuted_scores_for_permuted_passages():
    gains = {"alpha": 1.0, "beta": 2.0, "gamma": -0.5}

    def logprob(passages, words, t):
        return -4.0 + sum(gain for text in passages.values() for name, gain in gains.items() if name in text)

    model = ScriptedScorer(logprob)
    first = occlusion(model, a_prompt("alpha", "beta", "gamma"), tiny_answer(model), floors=False)
    second = occlusion(model, a_prompt("gamma", "alpha", "beta"), tiny_answer(model), floors=False)
    assert second.scores[0] == pytest.approx([first.scores[0][i] for i in (2, 0, 1)])


def test_forwards_are_n_plus_one_rows_without_floors():
    model = tiny_model("qwen2")
    with count_forwards(model) as count:
        result = occlusion(model, tiny_prompt(4), tiny_answer(model), floors=False)
    assert result.forwards == count.rows == 5
    full = occlusion(model, tiny_prompt(4), tiny_answer(model), alone=True, placebos=["Ships sail."] * 5)
    assert full.forwards == rows_needed(4, alone=True, placebos=5) == 5 + 5 + 5 + 4


def test_floors_are_there_and_the_numerical_one_is_small_in_float32():
    model = tiny_model("qwen3")
    result = occlusion(model, tiny_prompt(4), tiny_answer(model), placebos=["Ships sail on the sea."] * 5)
    assert 0 <= result.numerical_floor < 1e-3
    assert result.placebo_floor > result.numerical_floor
    assert len(result.details.placebo_floor_by_span) == len(result.spans)


def test_too_few_placebos_are_said():
    model = ScriptedScorer(reads({1}))
    result = occlusion(model, a_prompt("a", "b"), tiny_answer(model), placebos=["x y z"])
    assert any("1 unrelated" in note for note in result.notes)
    assert result.placebo_floor == 0.0


def test_sentences_inside_passages_are_sources():
    model = tiny_model("llama")
    prompt = tiny_prompt(4)
    coded = model.encode(prompt)
    found = sentence_sources(model, prompt, coded, (1, 4))
    removed = [source.positions for source in found]
    sources = [(source.number,) for source in found]
    result = occlusion(model, prompt, tiny_answer(model), sources=sources, removed=removed)
    where = [(source.number, source.start, source.end) for source in found]
    texts = {s.number: s.text for s in prompt.segments}
    assert next(texts[n][a:b] for n, a, b in where) == "Hanna Lind built the bridge in 1874."
    assert {n for n, _, _ in where} == {1, 4}
    assert all(abs(score) > 1e-4 for score in result.scores[0])


def test_top_passages_are_those_with_the_highest_scores():
    model = ScriptedScorer(lambda p, w, t: -9.0 + sum(p.keys()))
    result = occlusion(model, a_prompt("a", "b", "c", "d"), tiny_answer(model), floors=False)
    assert top_passages(result) == (4, 3, 2)


def test_above_the_limit_a_surrogate_stands_in_and_says_so():
    model = ScriptedScorer(reads({7, 20}, gain=0.3))
    prompt = a_prompt(*["x"] * 24)
    result = occlusion(model, prompt, tiny_answer(model), settings=Occlusion(max_sources=20))
    ranked = np.argsort(result.scores[0])[::-1]
    assert {result.sources[j][0] for j in ranked[:2]} == {7, 20}
    assert result.scores[0][6] == pytest.approx(3.0, rel=0.1)
    assert result.details.approximate is True
    assert "held-out" in result.notes[0]


def test_an_answer_of_markers_only_is_refused():
    model = ScriptedScorer(reads({1}))
    with pytest.raises(AttributionError, match="no content tokens"):
        occlusion(model, a_prompt("a"), tiny_answer(model, "[cite_1]"))
    counted = occlusion(
        model, a_prompt("a"), tiny_answer(model, "[cite_1]"), settings=Occlusion(count_citation_markers=True)
    )
    assert counted.scores[0] == (1.0,)
    with pytest.raises(AttributionError):
        occlusion(model, a_prompt("a"), Answer(text=""))


def test_a_model_that_cannot_score_and_a_prompt_without_sources_are_refused():
    scorer = ScriptedScorer(reads({1}))
    with pytest.raises(CannotDo):
        occlusion(ScriptedWriter(["x"]), a_prompt("a"), tiny_answer(scorer))
    with pytest.raises(AttributionError, match="no source"):
        occlusion(scorer, a_prompt(), tiny_answer(scorer))
    with pytest.raises(AttributionError, match="does not contain passage 7"):
        occlusion(scorer, a_prompt("a"), tiny_answer(scorer), sources=[(7,)])


def test_a_source_without_a_finite_probability_is_left_out_and_named():
    model = ScriptedScorer(lambda p, w, t: -1.0 if 2 in p else float("nan"))
    result = occlusion(model, a_prompt("a", "b", "c"), tiny_answer(model), floors=False)
    assert result.sources == ((1,), (3,))
    assert any("passage 2" in note for note in result.notes)
    broken = ScriptedScorer(lambda p, w, t: float("nan"))
    with pytest.raises(AttributionError, match="finite"):
        occlusion(broken, a_prompt("a"), tiny_answer(broken))


def test_a_stopped_run_keeps_the_sources_that_were_scored():
    model = tiny_model("llama")
    answer = tiny_answer(model)
    whole = occlusion(model, tiny_prompt(4), answer, floors=False)
    import engine.models.scoring as scoring

    before = scoring.CPU_TOKENS
    scoring.CPU_TOKENS = 400
    try:
        told = before_the_stop(occluding(model, tiny_prompt(4), answer, floors=False, watch=stop_at(4)))
    finally:
        scoring.CPU_TOKENS = before
    partial = told[-1]
    assert 0 < len(partial.sources) < 4
    for source, score in zip(partial.sources, partial.scores[0], strict=True):
        assert score == pytest.approx(whole.scores[0][whole.sources.index(source)], rel=1e-4)
    assert any("has not reached them" in note for note in partial.notes)
