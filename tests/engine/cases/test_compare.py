from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, strategies as st

from engine.cases.review import MarkDraft, append, review_of
from engine.core.values import Analysis, AuditRecord, Passage, Stamp
from engine.report.compare import align, compare_cases, word_diff
from tests.engine.cases.samples import ANSWER, attribution, full_case, passage


def span(document: str, start: int, text: str) -> Passage:
    return Passage(
        id=f"{document}:{start}", document=document, title="", ordinal=0, start=start, end=start + len(text), text=text
    )


@given(st.text(max_size=60), st.text(max_size=60))
def test_the_parts_of_a_word_diff_spell_both_texts(left, right):
    found = word_diff(left, right)
    assert "".join(w.text for w in found if w.change != "added") == left
    assert "".join(w.text for w in found if w.change != "removed") == right


def test_equal_texts_have_no_changes():
    assert [w.change for w in word_diff(ANSWER, ANSWER)] == ["same"]


def test_a_citation_marker_changes_whole_and_space_alone_joins_no_changes():
    found = word_diff("Iron rusts red [cite_1].", "Gold shines red [cite_12].")
    assert [(w.text, w.change) for w in found] == [
        ("Iron rusts", "removed"),
        ("Gold shines", "added"),
        (" red ", "same"),
        ("[cite_1]", "removed"),
        ("[cite_12]", "added"),
        (".", "same"),
    ]


def test_passages_are_aligned_by_id_then_text_then_overlap():
    left = (span("a", 0, "aaaa"), span("b", 0, "bbbb"), span("c", 0, "cccccccc"), span("d", 0, "dddd"))
    right = (span("c", 4, "ccccxx"), span("z", 0, "bbbb"), span("a", 0, "aaaa"), span("e", 0, "eeee"))
    assert align(left, right) == [
        (1, 3, "same passage"),
        (2, 2, "same text"),
        (3, 1, "overlapping span"),
        (4, None, "only here"),
        (None, 4, "only here"),
    ]


def test_pasted_passages_match_by_their_text_alone():
    one, other = (
        AuditRecord(question="Q?", passages=passages).as_passages()
        for passages in (("Iron rusts.", "Tin bends."), ("Gold shines.", "Iron rusts.", "Tin bends. It is soft."))
    )
    assert align(one, other) == [
        (1, 2, "same text"),
        (2, None, "only here"),
        (None, 1, "only here"),
        (None, 3, "only here"),
    ]
    assert align(one[1:], other[1:]) == [(1, None, "only here"), (None, 1, "only here"), (None, 2, "only here")]
    longer = AuditRecord(question="Q?", passages=("Iron rusts. It is heavy.",)).as_passages()
    assert align(one[:1], longer) == [(1, 1, "overlapping span")]


def test_each_passage_is_used_once_and_none_is_lost():
    twice = (passage(1, "x"), passage(1, "x"))
    assert align(twice, twice[:1]) == [(1, 1, "same passage"), (2, None, "only here")]


def test_settings_that_differ_stand_on_top_and_times_do_not():
    left = full_case()
    stamp = msgspec.structs.replace(left.stamp, settings={"k": 5}, created="2030", seed=7)
    differences = compare_cases(left, msgspec.structs.replace(left, stamp=stamp)).settings
    assert [(d.name, d.left, d.right) for d in differences] == [("settings.k", "3", "5"), ("seed", "not set", "7")]


def test_attribution_of_two_cases_is_on_one_scale():
    left = full_case()
    analysis = msgspec.structs.replace(left.analyses[0], result=attribution(((20.0, 10.0), (0, 0), (0, 0))))
    right = full_case("other", analyses=(analysis,))
    found = compare_cases(left, right)
    assert found.methods == ("occlusion",)
    assert [row.attribution["occlusion"] for row in found.passages] == [(1.0, 1.0), (pytest.approx(-0.025), 0.5)]
    assert [row.cited for row in found.passages] == [(1, 1), (0, 0)]


def test_a_passage_says_in_what_it_differs():
    left = full_case()
    assert not any(row.differences for row in compare_cases(left, left).passages)
    uncited = msgspec.structs.replace(left, answer=msgspec.structs.replace(left.answer, citations=()))
    assert [row.differences for row in compare_cases(left, uncited).passages] == [("cited differently",), ()]
    turned = msgspec.structs.replace(left, passages=left.passages[::-1], analyses=())
    assert compare_cases(left, turned).passages[1].differences[0] == "ranked differently"
    alone = msgspec.structs.replace(left, passages=(passage(9, "Tin bends."),))
    sides = [row.differences for row in compare_cases(left, alone).passages]
    assert sides == [("only on the left",), ("only on the left",), ("only on the right",)]


def test_verdicts_that_changed_are_listed_and_the_reviewers_own_after_them():
    def facts(verdict):
        result = {
            "facts": [{"text": "The sky is blue.", "verdict": verdict}, {"text": "Same.", "verdict": "supportive"}]
        }
        return (Analysis(id="facts", kind="facts", stamp=Stamp(model="v"), result=result),)

    left, right = full_case(analyses=facts("supportive")), full_case(analyses=facts("irrelevant"))
    draft = MarkDraft(kind="override", author="Ada", target="fact:1", value="supportive", reason="It says so.")
    review = review_of((append(right, (), draft, "2026-11-20T10:00:00+00:00"),))
    found = compare_cases(left, right, right_review=review)
    assert [(d.name, d.left, d.right) for d in found.verdicts] == [("The sky is blue.", "borne out", "not found")]
    assert [(d.name, d.left, d.right) for d in found.reviews] == [("fact 1", "not reviewed", "supportive")]
    other = msgspec.structs.replace(right, question="What melts ice?")
    found = compare_cases(left, other, right_review=review)
    assert found.questions_differ and not found.verdicts and not found.reviews
