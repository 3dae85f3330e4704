"""S1 to S3 by hand, against brute force, and what must hold for any text."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

from engine.answer.citations import annotate
from engine.answer.prompt import build_prompt
from engine.core.settings import SecondPass
from engine.core.text import content_words
from engine.core.values import Answer, Citation, Passage
from engine.methods.signals import overlap_threshold, overlap_words, s1, s2, s3, scores_of
from engine.models.scripted import ScriptedScorer
from tests.engine.refinement.refine_cases import passages


def passage(text):
    return Passage(id="p", document="d", title="", ordinal=0, start=0, end=len(text), text=text)


def words_of(answer, *texts):
    return [(answer[w.start : w.end], w.found) for w in overlap_words(answer, [passage(t) for t in texts])]


def test_s1_by_hand():
    # Longest common subsequence "the bridge stands" (3) of 4 and 5 words: 2 * 3 / (4 + 5).
    assert s1("the old bridge stands", "the bridge stands in Lind") == pytest.approx(6 / 9)
    assert s1("one two", "three four") == 0
    assert s1("same words", "same words") == 1


def test_s2_by_hand_is_the_mean_gain_of_all_tokens_and_of_those_outside_markers():
    # With passages: -1 a word, -0.5 for a marker; without: -3 and -9.
    def logprob(given, words, t):
        marker = "cite" in words[t]
        return (-0.5 if marker else -1.0) if given else (-9.0 if marker else -3.0)

    model = ScriptedScorer(logprob)
    text = "Lind built it [cite_1]"
    answer = model.encode_answer(text)
    answer = Answer(text=text, tokens=answer.tokens, citations=(Citation(start=14, end=22, number=1, valid=True),))
    whole, content = s2(model, build_prompt("q", passages()), answer)
    assert whole == pytest.approx((2 + 2 + 2 + 8.5) / 4)
    assert content == pytest.approx(2.0)
    assert model.forwards == 2


def test_s2_of_a_model_equals_two_forwards_by_hand():
    torch = pytest.importorskip("torch")
    from tests.tiny import passages as given, tiny_model

    model = tiny_model("llama")
    prompt = build_prompt("Who built the bridge?", given(3))
    answer = model.encode_answer("Hanna Lind built it.")
    ids = [t.id for t in answer.tokens]
    means = []
    for shown in (prompt, prompt.keep(set())):
        row = torch.tensor([[*model.encode(shown).ids, *ids]])
        with torch.no_grad():
            logits = model.module(row).logits[0].log_softmax(-1)
        first = row.shape[1] - len(ids) - 1
        means.append(np.mean([float(logits[first + i, token]) for i, token in enumerate(ids)]))
    assert s2(model, prompt, answer)[0] == pytest.approx(means[0] - means[1], abs=1e-4)


def test_s3_by_hand_with_numbers_in_every_variant():
    answer = "Add 1,200 mL twice, then wait Two hours [cite_1]."
    found = words_of(answer, "Take 1200.0 ml.", "It took 2 hours; add salt.")
    assert found == [
        ("Add", True),
        ("1,200", True),
        ("mL", True),
        ("twice", False),
        ("wait", False),
        ("Two", True),
        ("hours", True),
    ]
    assert s3(overlap_words(answer, [passage("Take 1200.0 ml."), passage("It took 2 hours; add salt.")])) == 5 / 7


def test_s3_of_an_answer_without_content_words_is_not_defined():
    assert s3(overlap_words("It is the [cite_1].", [passage("it")])) is None


def test_s3_leaves_the_numbers_of_a_list_out():
    assert words_of("1. Heat 5 g.\n(2) Stir.", "Heat 5 g. Stir.") == [
        ("Heat", True),
        ("5", True),
        ("g", True),
        ("Stir", True),
    ]


def test_s3_counts_characters_where_words_have_no_spaces():
    assert words_of("冰在零度。", "冰在一百度沸腾。") == [("冰", True), ("在", True), ("零", False), ("度", True)]


def test_markers_are_no_words_of_an_answer():
    answer = annotate(Answer(text="Ice melts [cite_1]. Water boils [cite_2, cite_9]."), 2, "garage")
    assert scores_of(answer, [passage("Ice melts."), passage("Water boils.")]).words == 4


def test_s3_does_not_see_what_stands_in_titles_or_across_hyphens():
    assert words_of("hot-water bath", "hot water bath") == [("hot-water", False), ("bath", True)]


@given(st.text(alphabet="aB1 ,.[]_cite'\n-é2", max_size=60))
def test_the_marked_words_are_the_content_words_in_order(text):
    assume(not re.search(r"(?m)^[ \t]*\d+\.\s", text))  # the number of a list does not count as a word
    known = content_words(text)
    marked = overlap_words(text, [passage(text + " .")])
    assert [content_words(text[w.start : w.end])[0] for w in marked] == list(known)
    assert all(w.found for w in marked)
    assert all(a.end <= b.start for a, b in itertools.pairwise(marked))


@given(st.lists(st.sampled_from(["iron", "salt", "water", "flask", "heat"]), min_size=1), st.permutations(range(3)))
def test_s3_does_not_depend_on_the_order_of_passages_and_grows_with_them(words, order):
    texts = [passage("iron salt"), passage("water"), passage("stone")]
    answer = " ".join(words)
    base = s3(overlap_words(answer, texts))
    assert s3(overlap_words(answer, [texts[i] for i in order])) == base
    assert s3(overlap_words(answer, [*texts, passage("flask")])) >= base
    assert s3(overlap_words(answer, [*texts, passage("flask heat")])) == 1


def test_the_threshold_is_fixed_until_there_are_twenty_cases():
    lone = overlap_threshold([0.1] * 19)
    assert (lone.value, lone.n) == (0.75, 19)
    values = [i / 20 for i in range(20)]
    found = overlap_threshold(values)
    assert found.value == pytest.approx(np.quantile(values, 0.4)) == pytest.approx(0.38)
    assert sum(v < found.value for v in values) == 8  # 40% of 20
    assert overlap_threshold(values, SecondPass(overlap_percentile=50)).value == pytest.approx(0.475)
