"""Support of answer sentences: what each part is, where it points, and what moves it."""

from __future__ import annotations

import re

import numpy as np
import pytest
from msgspec.structs import replace

from engine.answer.citations import annotate
from engine.answer.prompt import build_prompt
from engine.core.errors import PromptTooLong
from engine.core.values import Answer, AuditRecord, Token
from engine.methods.support import answer_support, best_windows, passage_windows, surprise_explained
from engine.models.protocols import Judged, TokenPrompt
from tests.engine.retrieve.test_relevance import OneAxisPerWord

PASSAGES = AuditRecord(question="q", passages=("Iron rusts in rain.", "Gold shines. Gold never rusts.")).as_passages()


class Copies:
    """A verifier for which evidence bears out a claim that it contains word for word."""

    name = "copies"

    def judge(self, pairs, watch=None):
        self.asked = list(pairs)
        return [self.judged(claim.strip(".").lower() in evidence.lower()) for claim, evidence in pairs]

    def judged(self, held):
        scores = {"supportive": 0.9 if held else 0.1, "editing_required": 0.05 if held else 0.3}
        return Judged("supportive" if held else "irrelevant", {**scores, "irrelevant": 1 - sum(scores.values())})

    def entailment(self, pairs, watch=None):
        return np.array([one.scores["supportive"] for one in self.judge(pairs)], np.float32)


def answered(text):
    return annotate(Answer(text=text), len(PASSAGES), "alce")


def test_a_copied_sentence_has_more_support_than_one_from_nowhere():
    answer = answered("Gold never rusts [2]. Silver sings loudly [1].")
    copied, made_up = answer_support(answer, PASSAGES, Copies(), OneAxisPerWord())
    assert copied.support > made_up.support
    assert (copied.passage, copied.parts["verdict"], copied.parts["words"]) == (2, 0.9, pytest.approx(1.0))
    assert made_up.parts["words"] == 0.0
    assert PASSAGES[1].text[slice(*copied.window)] == PASSAGES[1].text


def test_offsets_are_the_answers_and_markers_are_not_read():
    answer, verifier = answered("Iron rusts in rain [1]."), Copies()
    (only,) = answer_support(answer, PASSAGES, verifier, OneAxisPerWord())
    assert answer.text[only.start : only.end] == answer.text
    assert {claim for claim, _ in verifier.asked} == {"Iron rusts in rain."}


def test_support_is_the_mean_of_its_parts():
    for one in answer_support(answered("Iron rusts in rain. Silver sings."), PASSAGES, Copies(), OneAxisPerWord()):
        assert set(one.parts) == {"verdict", "closest", "similarity", "words"}
        assert one.support == pytest.approx(np.mean(list(one.parts.values())), abs=1e-3)


class Remembers:
    """Scores with fixed surprises: the first row with the passages, the second without."""

    name, surprises = "remembers", ((1.0, 4.0, 0.5, 2.0), (1.0, 8.0, 1.0, 2.0))

    def encode(self, prompt):
        return TokenPrompt.of((i, (i,), segment.number) for i, segment in enumerate(prompt.segments))

    def score(self, prompts, answer_ids, watch=None):
        full, bare = prompts
        assert {1, 2} <= set(full.numbers) and not {1, 2} & set(bare.numbers)
        return -np.array(self.surprises)[:, : len(answer_ids)]


def in_words(text):
    words = [Token(id=i, start=m.start(), end=m.end()) for i, m in enumerate(re.finditer(r"\S+", text))]
    return replace(answered(text), tokens=tuple(words))


def test_surprise_explained_is_the_share_of_the_rarer_half():
    answer, prompt = in_words("Iron rusts in rain"), build_prompt("q", PASSAGES)
    found = surprise_explained(Remembers(), prompt, answer, [(0, 18), (0, 4), (18, 18)])
    assert found == pytest.approx([1 - 6 / 10, 0.0, 0.0])  # "rusts" and "rain": 6 nats with the passages, 10 without


def test_the_first_token_of_a_later_sentence_does_not_count():
    answer, prompt = in_words("Iron rusts in rain"), build_prompt("q", PASSAGES)
    later, alone = surprise_explained(Remembers(), prompt, answer, [(5, 18), (5, 10)])
    assert later == pytest.approx(1 - 2 / 2)  # "in" and "rain": "rusts" opens the sentence
    assert alone == pytest.approx(0.5)  # its only token counts


def test_with_a_scorer_support_has_one_part_more():
    answer, prompt = in_words("Iron rusts in rain"), build_prompt("q", PASSAGES)
    (one,) = answer_support(answer, PASSAGES, Copies(), OneAxisPerWord(), (Remembers(), prompt, answer))
    assert one.parts["explained"] == pytest.approx(0.4)
    assert one.support == pytest.approx(np.mean(list(one.parts.values())), abs=1e-3)


def test_where_the_passages_exceed_the_window_the_other_parts_decide():
    class Narrow(Remembers):
        def score(self, prompts, answer_ids, watch=None):
            raise PromptTooLong("too long")

    answer, prompt = in_words("Iron rusts in rain"), build_prompt("q", PASSAGES)
    (one,) = answer_support(answer, PASSAGES, Copies(), OneAxisPerWord(), (Narrow(), prompt, answer))
    assert "explained" not in one.parts


def test_the_windows_with_most_of_the_words_are_read():
    found = passage_windows(PASSAGES)
    assert found[best_windows("Does gold shine?", found)[0]].number == 2


class Alike(Copies):
    """A verifier that prefers the evidence that comes first."""

    def entailment(self, pairs, watch=None):
        return np.linspace(0.9, 0.8, len(pairs), dtype=np.float32)


def test_a_sentence_that_a_passage_has_word_for_word_rests_on_that_passage():
    texts = ("Never rusts: gold.", "Rusts never. Gold!", "Rusts? Gold, never.", "So gold\nnever rusts, they say.")
    passages = AuditRecord(question="q", passages=texts).as_passages()
    answer = annotate(Answer(text="Gold never rusts."), len(passages), "alce")
    (one,) = answer_support(answer, passages, Alike(), OneAxisPerWord())
    assert one.passage == 4


def test_nothing_to_go_by_gives_nothing():
    assert answer_support(answered("Gold."), (), Copies(), OneAxisPerWord()) == ()
    assert answer_support(answered(""), PASSAGES, Copies(), OneAxisPerWord()) == ()
