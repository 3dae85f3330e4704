"""Public layouts, each from a small file of the same shape written for the test."""

from __future__ import annotations

import csv
import io
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


def test_an_answer_is_stored_with_the_name_of_its_file_and_a_case_file_as_it_is():
    data = lines({"question": "Q?", "passages": ["One."], "answer": "A."})
    ((_, (case, history)),) = read_cases(data, file="/some/folder/answers.jsonl")
    assert case.stamp.settings == {"file": "answers.jsonl"}
    ((_, (again, _)),) = read_cases(write_case_file(case, history), file="case.json")
    assert again == case
    ((_, (bare, _)),) = read_cases(data)
    assert bare.stamp.settings == {}


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
        (lines({"question": "Q?", "docs": "none", "output": "A."}), {}, "docs"),
        (lines({"other": 1}), {}, "no known layout: other. Name them question"),
        (lines({"question": "Q?", "passages": ["One."]}), {}, "has no answer. Give it as answer, response,"),
        (lines({"response": "A.", "passages": ["One."]}), {}, "has no question. Give it as question, user_input,"),
        (lines({"question": "Q?", "answer": "A."}), {}, "has no source to check the answer against. Name a corpus"),
        (lines({"question": "Q?", "answer": "A.", "sources": ["a.pdf"]}), {}, "a.pdf is a place and not a text"),
        (lines({"question": "Q?", "answer": "A.", "passages": [{"name": "x"}]}), {}, "A passage has no text"),
        (b"question,answer,context\nWhen?,2021, I think,P.", {}, "more cells than the header line"),
        (b"Frage,Antwort\nWann?,2021", {}, "no known layout: Frage, Antwort."),
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


def test_a_bad_record_is_named_by_its_id_or_its_line():
    bad = {**OWN, "id": "q7", "answer": ""}
    assert [name for name, _ in read_cases(b"\n" + lines(bad, OWN) + b"\nbroken")] == ["q7", "3", "4"]


def test_case_files_are_one_layout_more_also_as_lines_with_separators_in_their_text():
    case = one(lines({"question": "A\u2028B\x85C?", "passages": ["One.\u2029Two."], "answer": "A."}))
    files = write_case_file(case) + write_case_file(case)
    assert [row[0] for _, row in read_cases(files)] == [case, case]
    assert read_case_file(write_case_file(case)).case == case


def test_an_empty_source_before_a_full_one_is_refused_because_citations_go_by_number():
    rows = table(("Question", "Answer", "Source 1", "Source 2"), (ASKED, SAID, "", TANK), mark=";")
    ((_, error),) = read_cases(rows)
    assert isinstance(error, RecordError) and "source 1 is empty" in str(error)


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


# Exports of other systems. Each has the two passages and the answer of PUMP under its own names.

PUMP, TANK = "The pump was replaced in March 2021.", "The tank holds 40 litres."
ASKED, SAID = "When was the pump replaced?", "In March 2021 [1]. The tank holds 40 litres [2]."


def document(text, name):
    return {"page_content": text, "metadata": {"source": name, "page": 2, "page_label": "3"}, "type": "Document"}


def node(text, name):
    return {"node": {"id_": "n", "metadata": {"file_name": name}, "text": text}, "score": 0.9}


def dumped(text, name):
    kwargs = {"page_content": text, "metadata": {"source": name}}
    return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "document", "Document"], "kwargs": kwargs}


def table(*rows, mark=","):
    out = io.StringIO()
    csv.writer(out, delimiter=mark).writerows(rows)
    return out.getvalue().encode("utf-8-sig")


TEXTS = [PUMP, TANK]
FOUND = [document(PUMP, "pumps.pdf"), document(TANK, "tanks.pdf")]
EXPORTS = {
    "ragas": lines({"user_input": ASKED, "retrieved_contexts": TEXTS, "response": SAID, "reference": "2021"}),
    "ragas 0.1": lines([{"question": ASKED, "contexts": TEXTS, "answer": SAID, "ground_truth": "2021"}]),
    "columns": lines({"question": [ASKED], "contexts": [TEXTS], "answer": [SAID]}),
    "pandas": lines({"question": {"0": ASKED}, "contexts": {"0": TEXTS}, "answer": {"0": SAID}}),
    "ragas.csv": table(("user_input", "retrieved_contexts", "response"), (ASKED, str(TEXTS), SAID)),
    "numpy in a cell": table(("question", "contexts", "answer"), (ASKED, f"['{PUMP}'\n '{TANK}']", SAID)),
    "json in a cell": table(
        ("inputs", "outputs"), (json.dumps({"question": ASKED}), json.dumps({"answer": SAID, "contexts": TEXTS}))
    ),
    "a column each": table(("Question", "Answer", "Source 1", "Source 2"), (ASKED, SAID, PUMP, TANK), mark=";"),
    "deepeval": lines(
        {"testCases": [{"input": ASKED, "actualOutput": SAID, "retrievalContext": TEXTS, "context": ["The key."]}]}
    ),
    "langsmith": lines(
        {"id": "7", "inputs": {"query": ASKED}, "outputs": {"result": SAID, "source_documents": FOUND}}
    ),
    "langchain": lines({"input": ASKED, "context": FOUND, "answer": {"content": SAID, "type": "ai"}}),
    "langchain dumps": lines(
        {"query": ASKED, "result": SAID, "source_documents": [dumped(PUMP, "pumps.pdf"), dumped(TANK, "tanks.pdf")]}
    ),
    "llama index": lines(
        {"query": ASKED, "response": SAID, "source_nodes": [node(PUMP, "pumps.pdf"), node(TANK, "tanks.pdf")]}
    ),
    "chat": lines(
        {
            "messages": [
                {"role": "user", "content": "Hello"},
                {"role": "assistant", "content": "Hello."},
                {"role": "user", "content": [{"type": "text", "text": ASKED}]},
                {"role": "assistant", "content": SAID},
            ],
            "documents": [{"title": "pumps", "content": PUMP}, {"title": "tanks", "content": TANK}],
        }
    ),
    "chat completion": lines(
        {
            "object": "chat.completion",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": SAID}, "finish_reason": "stop"}],
            "question": ASKED,
            "passages": TEXTS,
        }
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EXPORTS)
def test_an_export_is_read_by_the_names_that_its_system_has(name):
    case = one(EXPORTS[name])
    assert (case.question, case.answer.text) == (ASKED, SAID)
    assert [passage.text for passage in case.passages] == TEXTS
    assert [(c.number, c.valid) for c in case.answer.citations] == [(1, True), (2, True)]


def test_titles_and_pages_of_sources_are_kept():
    assert [p.title for p in one(EXPORTS["langsmith"]).passages] == ["pumps.pdf, page 3", "tanks.pdf, page 3"]
    assert [p.title for p in one(EXPORTS["llama index"]).passages] == ["pumps.pdf", "tanks.pdf"]


def test_file_citations_of_openai_are_written_into_the_answer():
    """The first place is the end of the first sentence's words; the second file was found twice."""
    found = [("pumps.pdf", PUMP), ("tanks.pdf", TANK), ("tanks.pdf", "It is made of steel.")]
    text = "In March 2021. The tank holds 40 litres."
    noted = [("pumps.pdf", 13), ("tanks.pdf", 39)]
    reply = {
        "object": "response",
        "model": "served",
        "question": ASKED,
        "output": [
            {"type": "reasoning", "summary": []},
            {"type": "file_search_call", "results": [{"filename": name, "text": text} for name, text in found]},
            {
                "type": "message",
                "role": "assistant",
                "content": [
                    {
                        "type": "output_text",
                        "text": text,
                        "annotations": [{"type": "file_citation", "index": at, "filename": name} for name, at in noted],
                    }
                ],
            },
        ],
    }
    case = one(lines(reply))
    assert case.answer.text == "In March 2021 [1]. The tank holds 40 litres [2][3]."
    assert ([p.text for p in case.passages], case.stamp.model) == ([text for _, text in found], "served")


def test_citations_of_anthropic_are_written_into_the_answer_and_their_words_are_the_sources():
    def cited(text, words, index):
        where = {"type": "char_location", "cited_text": words, "document_index": index, "document_title": "pumps"}
        return {"type": "text", "text": text, "citations": [where]}

    blocks = [
        {"type": "thinking", "thinking": "Which pump?"},
        {"type": "text", "text": "I looked. "},
        cited("It was replaced in March 2021", PUMP, 1),
        {"type": "text", "text": ". "},
        cited("The tank holds 40 litres.", TANK, 0),
    ]
    reply = {"type": "message", "role": "assistant", "content": blocks, "question": ASKED}
    case = one(lines(reply))
    assert case.answer.text == "I looked. It was replaced in March 2021 [1]. The tank holds 40 litres. [2]"
    assert [(p.text, p.title) for p in case.passages] == [(PUMP, "pumps"), (TANK, "pumps")]
    # With the documents themselves the numbers are theirs.
    case = one(lines({**reply, "documents": [TANK, PUMP]}))
    assert case.answer.text == "I looked. It was replaced in March 2021 [2]. The tank holds 40 litres. [1]"


def test_an_answer_with_documents_of_its_own_is_not_taken_for_alce():
    """ALCE's `answer` is a reference: read as ALCE, this answer would be empty."""
    case = one(lines({"question": ASKED, "docs": [{"text": PUMP}], "answer": SAID}))
    assert (case.answer.text, case.tags, case.analyses) == (SAID, (), ())


def test_a_corpus_may_stand_in_for_passages():
    case = one(lines({"question": ASKED, "answer": SAID, "corpus": "field-notes"}))
    assert (case.corpus, case.passages) == ("field-notes", ())


def test_a_broken_first_line_does_not_make_a_table_of_the_others():
    found = [row for _, row in read_cases(b"oops, cut\n" + lines(OWN))]
    assert [isinstance(row, GroundworkError) for row in found] == [True, False]


def test_a_chat_next_to_as_many_passages_is_one_record():
    chat = [{"role": "user", "content": ASKED}, {"role": "assistant", "content": SAID}]
    case = one(lines({"messages": chat, "passages": TEXTS}))
    assert (case.question, case.answer.text, len(case.passages)) == (ASKED, SAID, 2)


def test_the_records_of_all_lists_of_an_object_are_read():
    parts = {"train": [{**OWN, "id": "a"}], "notes": ["of May"], "test": [{**OWN, "id": "b"}, {**OWN, "id": "c"}]}
    assert [name for name, _ in read_cases(lines(parts))] == ["a", "b", "c"]


def test_a_table_with_a_column_twice_is_refused_because_the_earlier_cells_would_be_lost():
    given = table(("Question", "Answer", "Context", "context"), (ASKED, SAID, PUMP, TANK), (ASKED, SAID, PUMP, TANK))
    ((_, error),) = read_cases(given)
    assert isinstance(error, RecordError) and "the column 'Context' twice" in str(error)
    assert one(table(("Question", "Answer", "Context", "", ""), (ASKED, SAID, PUMP, "", ""))).question == ASKED


@pytest.mark.parametrize(
    ("data", "what"),
    [(b"", "empty"), (b"\xef\xbb\xbf \n", "empty"), (b"PK\x03\x04\0\0 word/document.xml\n\0\n", "not text in UTF-8")],
)
def test_a_file_that_holds_no_text_is_refused_as_a_whole(data, what):
    ((identity, error),) = read_cases(data)
    assert identity == "1" and isinstance(error, RecordError)
    assert str(error) == f"The file is {what}. Give answers as JSON, JSONL, CSV or TSV (docs/review.md)."


def test_a_damaged_line_costs_no_other_line():
    line = b'{"question": "Q", "passages": ["P."], "answer": "P."}\n'
    first, second = read_cases(b'{"question": "\0"}\n' + line)
    assert isinstance(first[1], RecordError) and not isinstance(second[1], GroundworkError)
