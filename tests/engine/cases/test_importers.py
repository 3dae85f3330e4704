"""Public layouts, each from a small file of the same shape written for the test."""

from __future__ import annotations

import json

import pytest

from engine.cases.case_file import read_case_file, write_case_file
from engine.cases.importers import detect, read_cases
from engine.core.errors import GroundworkError, RecordError
from engine.report.build import labels_of

ALCE = {
    "args": {"model": "some-model"},
    "data": [
        {
            "question": "Who built the bridge?",
            "docs": [
                {"id": "1", "title": "Bridge", "text": "Hanna Lind built it.", "answers_found": [1, 0]},
                {"id": "2", "title": "Sea", "text": "The sea is deep.", "answers_found": [0, 0]},
            ],
            "answer": "Hanna Lind",
            "qa_pairs": [{"question": "Who?", "short_answers": ["Hanna Lind"]}],
            "output": "Hanna Lind built it [1][3].\nAnother line.",
        }
    ],
}
GARAGE = {
    "sample_id": "g1",
    "question": "What is the rate?",
    "question_date": "2024-05-01",
    "grounding": [
        {"text": "[cite_1] The rate is 4 per cent.", "date": "2024", "provider": "web"},
        "[cite_2] Rates differ.",
    ],
    "evidence_relevant": ["YES", "NO"],
    "evidence_correct": ["ANSWER-THE-QUESTION", "UNKNOWN"],
    "evidence_cited": ["YES", "NO"],
    "answer_generate": "It is 4 per cent [cite_1].",
}
SOURCE = {
    "source_id": "s1",
    "task_type": "QA",
    "source": "MARCO",
    "source_info": {"question": "how to cook beets", "passages": "passage 1:Wash them.\n\npassage 2:Boil them.\n\n"},
}
RESPONSE = {
    "id": "r1",
    "source_id": "s1",
    "model": "some-model",
    "labels": [
        {
            "start": 11,
            "end": 24,
            "text": "roast for 9 h",
            "meta": "Not in the passages.",
            "label_type": "Evident Baseless Info",
            "implicit_true": True,
        }
    ],
    "quality": "good",
    "response": "Wash, then roast for 9 h.",
}


def lines(*records) -> bytes:
    return "\n".join(json.dumps(record) for record in records).encode()


def one(data: bytes, **options):
    ((_, found),) = read_cases(data, **options)
    assert not isinstance(found, GroundworkError), found
    return found[0]


def test_alce_keeps_citations_references_and_which_passage_holds_the_answer():
    case = one(json.dumps(ALCE).encode())
    assert case.answer.text == "Hanna Lind built it [1][3]."
    assert [(c.number, c.valid) for c in case.answer.citations] == [(1, True), (3, False)]
    assert [p.relevant for p in case.passages] == [True, False]
    assert case.stamp.model == "some-model"
    assert case.analyses[0].stored()["facts"]["answer"] == "Hanna Lind"


def test_garage_keeps_relevance_labels_and_strips_the_marker_of_a_passage():
    case = one(lines(GARAGE))
    assert [p.text for p in case.passages] == ["The rate is 4 per cent.", "Rates differ."]
    assert [p.relevant for p in case.passages] == [True, False]
    assert [c.number for c in case.answer.citations] == [1]
    assert case.analyses[0].stored()["passages"]["1"] == "relevant: YES; content: ANSWER-THE-QUESTION; cited: YES"
    assert case.title == "g1"


def test_ragtruth_joins_its_two_files_and_keeps_hallucination_spans_at_their_offsets():
    case = one(lines(RESPONSE), sources=lines(SOURCE))
    assert case.question == "how to cook beets"
    assert [p.text for p in case.passages] == ["Wash them.", "Boil them."]
    ((start, end, label),) = labels_of(case)
    assert case.answer.text[start:end] == "roast for 9 h"
    assert label == "Evident Baseless Info"
    assert case.analyses[0].stored()["spans"][0]["note"] == "Not in the passages.; implicit true"


def test_ragtruth_summary_and_structured_data():
    text = {**SOURCE, "task_type": "Summary", "source_info": "A long text."}
    assert [p.text for p in one(lines(RESPONSE), sources=lines(text)).passages] == ["A long text."]
    data = {**SOURCE, "task_type": "Data2txt", "source_info": {"name": "Subway", "stars": 3.0}}
    (passage,) = one(lines(RESPONSE), sources=lines(data)).passages
    assert json.loads(passage.text) == {"name": "Subway", "stars": 3.0}


def test_own_records_with_either_citation_style():
    record = {"question": "Q?", "passages": ["One.", {"text": "Two.", "relevant": False}], "answer": "A [2]."}
    case = one(lines(record))
    assert case.answer.citations[0].number == 2
    assert case.passages[1].relevant is False


@pytest.mark.parametrize(
    ("data", "options", "said"),
    [
        (lines({**RESPONSE, "source_id": "gone"}), {"sources": lines(SOURCE)}, "source_info.jsonl"),
        (lines({**RESPONSE, "labels": [{"start": 0, "end": 999}]}), {"sources": lines(SOURCE)}, "is not within"),
        (lines({**GARAGE, "evidence_relevant": ["YES"]}), {}, "one tag for each of the 2"),
        (lines({"question": "Q?", "docs": "none"}), {}, "docs"),
        (lines({"other": 1}), {}, "no known layout"),
        (lines({"question": "Q?", "passages": ["One."], "response": "A."}), {}, "has no answer"),
        (b"{", {}, "not JSON"),
        (b"[3]", {}, "not a JSON object"),
        ('{"question": "Où ?"}'.encode("latin-1"), {}, "not UTF-8"),
    ],
)
def test_what_does_not_fit_is_said(data, options, said):
    ((_, found),) = read_cases(data, **options)
    assert isinstance(found, GroundworkError)
    assert said in str(found)


def test_a_byte_order_mark_is_passed_over():
    whole = json.dumps(ALCE, indent=1).encode()
    assert one(b"\xef\xbb\xbf" + whole).question == one(b"\xef\xbb\xbf" + lines(ALCE)).question == one(whole).question


def test_a_bad_record_does_not_stop_the_file():
    found = [row for _, row in read_cases(lines(GARAGE, {"other": 1}, GARAGE))]
    assert [isinstance(row, GroundworkError) for row in found] == [False, True, False]


def test_case_files_are_one_layout_more_also_as_lines_with_separators_in_their_text():
    case = one(lines({"question": "A\u2028B\x85C?", "passages": ["One.\u2029Two."], "answer": "A."}))
    files = write_case_file(case) + write_case_file(case)
    assert [row[0] for _, row in read_cases(files)] == [case, case]
    assert read_case_file(write_case_file(case)).case == case


def test_layouts_are_told_by_their_fields():
    assert [detect(r) for r in (ALCE["data"][0], GARAGE, RESPONSE)] == ["alce", "garage", "ragtruth"]
    with pytest.raises(RecordError):
        detect({})


OWN = {"question": "Q?", "passages": ["One."], "answer": "A."}


@pytest.mark.parametrize(
    ("given", "ids"),
    [
        ({**OWN, "id": 7}, ["7"]),
        ([{**OWN, "id": 7}, {**OWN, "id": None}, {**OWN, "_id": "x"}], ["7", "2", "x"]),
        ({"data": [{**ALCE["data"][0], "sample_id": "s9"}]}, ["s9"]),
    ],
)
def test_a_record_has_the_same_id_in_a_list_as_in_lines(given, ids):
    every = given if isinstance(given, list) else given.get("data", [given])
    for data in (json.dumps(given).encode(), lines(*every, *every)):
        found = [(identity, case[0].title) for identity, case in read_cases(data)][: len(ids)]
        assert found == [(name, name) for name in ids]


def test_a_label_is_held_against_its_own_text():
    """The emoji is one character, and two in UTF-16, as a browser counts: 14 to 27 instead of 13 to 26."""
    label = RESPONSE["labels"][0]
    shifted = {**RESPONSE, "response": "\U0001f525 Wash, then roast for 9 h."}
    for start in (13, 14):
        labels = [{**label, "start": start, "end": start + 13}]
        ((begin, end, _),) = labels_of(one(lines({**shifted, "labels": labels}), sources=lines(SOURCE)))
        assert (begin, end) == (13, 26)
    ((_, wrong),) = read_cases(lines({**shifted, "labels": [label]}), sources=lines(SOURCE))
    assert isinstance(wrong, RecordError) and "'roast for 9 h' is not at its text" in str(wrong)
