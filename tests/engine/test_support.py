"""Support of answer sentences: what each part is, where it points, and what moves it."""

from __future__ import annotations

import numpy as np
import pytest

from engine.answer.citations import annotate
from engine.core.values import Answer, AuditRecord
from engine.methods.support import answer_support, best_windows, passage_windows
from engine.models.protocols import Judged
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


def test_the_windows_with_most_of_the_words_are_read():
    found = passage_windows(PASSAGES)
    assert found[best_windows("Does gold shine?", found, 1)[0]].number == 2


def test_nothing_to_go_by_gives_nothing():
    assert answer_support(answered("Gold."), (), Copies(), OneAxisPerWord()) == ()
    assert answer_support(answered(""), PASSAGES, Copies(), OneAxisPerWord()) == ()
