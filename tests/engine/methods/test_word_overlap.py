"""Word overlap: by hand, invariants, the bench's former formula, and as an analysis of a case."""

from __future__ import annotations

import numpy as np
import pytest

from bench.real_answers import VERBATIM, rows_of
from engine.analyses.attribution import attribution_of
from engine.analyses.kind import RunContext
from engine.analyses.registry import kind_named
from engine.analyses.token_map import methods_run
from engine.answer.citations import annotate
from engine.cases.store import added
from engine.core.progress import last
from engine.core.text import content_words
from engine.core.values import Answer, AuditRecord, Case, Stamp
from engine.methods.word_overlap import METHOD, word_overlap
from engine.report.build import html_report
from tests.analysing import replay_here

PASSAGES = (
    "The kiln of Ostrel is\npainted green [4].",
    "Green kilns are old; Ostrel has one.",
    "Ships sail on the sea.",
)
ANSWER = "The kiln of Ostrel is painted green. [cite_1] It is old."


def counted(part, *passages):
    found = word_overlap(part, passages, [(0, len(part))])
    return found.words[0], found.shared[0], found.word_for_word[0]


def test_by_hand():
    """Content words: kiln, ostrel, painted, green; and old. Line break, case and markers do not count."""
    found = word_overlap(ANSWER, PASSAGES, [(0, len(ANSWER)), (0, 45), (46, 56)])
    assert found.words == (5, 4, 1)
    assert found.shared == ((4, 3, 0), (4, 2, 0), (0, 1, 0))
    assert found.word_for_word == ((False,) * 3, (True, False, False), (False,) * 3)
    assert np.array(found.shares) == pytest.approx(np.array([[0.8, 0.6, 0], [1, 0.5, 0], [0, 1, 0]]))


def test_a_passage_that_has_the_answer_word_for_word_is_first():
    part = "Tin melts at 232 degrees"
    jumbled = "At 232 degrees melts tin, lead at 327"
    assert counted(part, jumbled, f"Note: {part}, lead later.") == (4, (4, 4), (False, True))
    assert counted("tin", "Tinned, martin's", "A tin!") == (1, (0, 1), (False, True)), "not inside a word"
    order = [2, 0, 1]
    found, other = (word_overlap(ANSWER, texts, [(0, 45)]) for texts in (PASSAGES, [PASSAGES[i] for i in order]))
    assert [found.shared[0][i] for i in order] == list(other.shared[0])
    assert [found.word_for_word[0][i] for i in order] == list(other.word_for_word[0])


@pytest.mark.parametrize("part", ["It is not.", "[cite_1]", "", "..."])
def test_stop_words_alone_do_not_decide(part):
    assert counted(part, f"{part} Ice.", "It is not. [1]", "") == (0, (0, 0, 0), (False,) * 3)


def test_agrees_with_the_former_numbers_of_the_bench():
    """There a passage that contained the characters had 1000, and each different content word that it shares 1."""
    for part in ("Ostrel", "painted green", "the kiln is green", "green kilns", "2 ships"):
        texts = tuple(" ".join(text.split()) for text in PASSAGES)
        given = {"question": "Why?", "answer": part, "passages": texts, "starts": [0]}
        values = rows_of({**given, "left_out": [[0.0]] * 2 ** len(texts)})
        shared = [len(set(content_words(part)) & set(content_words(text))) for text in texts]
        former = [1000 * (part.lower() in text.lower()) + n for text, n in zip(texts, shared, strict=True)]
        assert values["word overlap"].tolist() == shared
        assert values[VERBATIM].tolist() == former


@pytest.fixture
def case():
    given = AuditRecord(question="What?", passages=PASSAGES, answer=ANSWER).as_passages()
    answer = annotate(Answer(text=ANSWER), len(given))
    bare = Case(id="c", question="What?", passages=given, answer=answer, stamp=Stamp(model="someone"))
    kind = kind_named(METHOD)
    return added(bare, last(kind.run(bare, kind.options(), RunContext())))


def test_the_report_shows_the_counts_and_a_replay_repeats_them(case):
    drawn = html_report(case)
    assert "word for word" in drawn and "Counted, not scored." in drawn
    assert "Scored by no model" not in drawn
    places = [number for number in replay_here(case).numbers if number.place.startswith(f"analyses[{METHOD}")]
    assert places and {number.status for number in places} == {"reproduced"}


def test_counts_are_never_taken_for_scores(case):
    assert attribution_of(case.analyses[-1]) is None
    assert methods_run(case, case.analyses[-1].stamp.model) == {}
