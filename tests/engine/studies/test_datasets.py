"""Every layout by a record written after it, errors with their lines, samples and strata."""

from __future__ import annotations

import csv
import json

import pytest

from engine.core.errors import FileError, InputError, RecordError
from engine.core.metrics import contains_answer
from engine.corpus.worlds import load_world, overlaps
from engine.studies.datasets import LAYOUTS, WORLDS, detect, load
from engine.studies.datasets.files import stratum
from engine.studies.example import NEEDS, lacks

DOC = {"title": "Iron", "text": "Iron rusts in damp air.", "answers_found": [1, 0]}
RECORDS = {
    "alce": {
        "sample_id": "a7",
        "question": "What rusts?",
        "qa_pairs": [{"short_answers": ["iron", "Fe"]}, {"short_answers": ["steel"]}],
        "answer": "Iron and steel rust.",
        "docs": [DOC, {"title": "Gold", "text": "Gold shines.", "answers_found": [0, 0]}],
    },
    "garage": {
        "sample_id": "g1",
        "question": "Why does iron rust?",
        "question_category": "science",
        "grounding": ["[cite_1] Water and oxygen attack iron.", "[cite_2] Gold shines."],
        "evidence_relevant": ["YES", "NO"],
        "answer_generate": "Water and oxygen attack it [cite_1].",
    },
    "hotpotqa": {
        "_id": "h1",
        "question": "Which metal of the first bridge rusts?",
        "answer": "iron",
        "type": "bridge",
        "supporting_facts": [["Bridge", 1]],
        "context": [["Bridge", ["It was built in 1779.", " It is of iron."]], ["Gold", ["Gold shines."]]],
    },
    "gpqa": {
        "Record ID": "rec1",
        "Question": "What rusts?",
        "Correct Answer": "iron",
        "Incorrect Answer 1": "gold",
        "Incorrect Answer 2": "tin",
        "Incorrect Answer 3": "lead",
        "High-level domain": "Chemistry",
    },
    "supergpqa": {
        "uuid": "s1",
        "question": "What rusts?",
        "options": ["gold", "iron", "tin"],
        "answer": "iron",
        "answer_letter": "B",
        "discipline": "Science",
    },
    "mmlu-pro": {
        "question_id": 70,
        "question": "What rusts?",
        "options": ["gold", "N/A", "iron", "N/A"],
        "answer": "C",
        "answer_index": 2,
        "category": "chemistry",
    },
    "mmlu": {"question": "What rusts?", "choices": ["gold", "iron"], "answer": 1, "subject": "metals"},
    "strategyqa": {
        "qid": "q1",
        "question": "Does gold rust?",
        "answer": False,
        "decomposition": ["What rusts?", "Is gold #1?"],
        "evidence": [[[["Rust-1"]], ["operation"]], [[["Rust-1", "Gold-2"]], ["no_evidence"]]],
    },
    "mintaka": {
        "id": "m1",
        "question": "Which metals rust?",
        "category": "metals",
        "complexityType": "generic",
        "answer": {
            "answerType": "entity",
            "mention": "iron and steel",
            "answer": [{"name": "Q1", "label": {"en": "iron"}}, {"name": "Q2", "label": {"en": "steel"}}],
        },
    },
    "expertqa": {
        "example_id": 5,
        "question": "Why does iron rust?",
        "metadata": {"field": "Chemistry", "question_type": "why"},
        "answers": {"gpt4": {"answer_string": "Because of air.", "revised_answer_string": "Because of damp air."}},
    },
    "nq": {"question": "what rusts", "answer": ["iron", "steel"]},
    "own": {
        "id": "o1",
        "question": "What rusts?",
        "passages": ["Gold shines.", {"text": "Iron rusts.", "relevant": True}],
        "options": ["gold", "iron"],
        "correct": "B",
        "short_answers": ["iron", ["1779", "the year 1779"]],
        "answer": "Gold rusts.",
        "spans": [{"start": 0, "end": 4, "label": "false"}],
        "errors": [{"wrong": "Gold", "right": "Iron", "kind": "owner"}],
        "clauses": [{"text": "Gold rusts.", "facts": ["Gold rusts."]}],
    },
}


def written(folder, records, name="set.jsonl"):
    path = folder / name
    path.write_text("\n".join(json.dumps(record) for record in records) + "\n", encoding="utf-8")
    return path


def one(folder, layout, **changed):
    (example,) = load(written(folder, [{**RECORDS[layout], **changed}]))
    return example


@pytest.mark.parametrize("layout", RECORDS)
def test_each_layout_is_recognised_by_its_record(layout, tmp_path):
    assert detect(written(tmp_path, [RECORDS[layout]])) == layout


@pytest.mark.parametrize("layout", ["gpqa", "supergpqa", "mmlu-pro", "mmlu", "own"])
def test_the_right_option_is_iron_wherever_it_stands(layout, tmp_path):
    example = one(tmp_path, layout)
    assert example.options[example.correct] == "iron"
    assert "N/A" not in example.options


@pytest.mark.parametrize(
    ("layout", "field", "answer"),
    [
        ("mmlu-pro", "options", {"answer": "C", "answer_index": 2}),
        ("mmlu", "choices", {"answer": 2}),
        ("supergpqa", "options", {"answer_letter": "C"}),
    ],
)
def test_an_empty_option_moves_no_letter_and_no_index(layout, field, answer, tmp_path):
    example = one(tmp_path, layout, **answer, **{field: ["gold", " ", "iron", "tin"]})
    assert (example.options, example.correct, example.references) == (("gold", "iron", "tin"), 1, ("iron",))
    with pytest.raises(RecordError, match="an empty option"):
        one(tmp_path, layout, **answer, **{field: ["gold", "tin", "", "iron"]})


def test_gpqa_is_shuffled_by_the_seed_and_by_the_record_alone(tmp_path):
    rows = [{**RECORDS["gpqa"], "Record ID": f"rec{i}"} for i in range(30)]
    path = written(tmp_path, rows)
    first, again, other = (list(load(path, seed=seed)) for seed in (1, 1, 2))
    assert first == again
    assert [e.correct for e in first] != [e.correct for e in other]
    assert {e.correct for e in first} == {0, 1, 2, 3}
    few = list(load(path, limit=5, seed=1))
    assert all(e in first for e in few) and len(few) == 5
    with pytest.raises(InputError, match="limit = -2 is negative"):
        list(load(path, limit=-2))


def test_alce_and_garage_keep_relevance_and_what_is_to_be_found(tmp_path):
    alce, garage = one(tmp_path, "alce"), one(tmp_path, "garage")
    assert (alce.id, alce.short_answers) == ("a7", (("iron", "Fe"), ("steel",)))
    assert [p.relevant for p in alce.passages] == [True, False] and alce.gold == (alce.passages[0].id,)
    assert [p.relevant for p in garage.passages] == [True, False]
    assert garage.domain == "science" and garage.references == ("Water and oxygen attack it [cite_1].",)


def test_hotpotqa_spans_are_its_supporting_sentences(tmp_path):
    example = one(tmp_path, "hotpotqa")
    (span,) = example.gold_spans
    (passage,) = [p for p in example.passages if p.relevant]
    assert passage.text[span.start : span.end].strip() == "It is of iron."
    assert overlaps(passage, span) and example.gold == (passage.id,)


def test_hotpotqa_as_columns_reads_the_same(tmp_path):
    record = dict(RECORDS["hotpotqa"])
    record["context"] = {"title": ["Bridge", "Gold"], "sentences": [s for _, s in RECORDS["hotpotqa"]["context"]]}
    record["supporting_facts"] = {"title": ["Bridge"], "sent_id": [1]}
    (columns,) = load(written(tmp_path, [record]))
    assert columns == one(tmp_path, "hotpotqa")


def test_mintaka_names_every_entity_and_strategyqa_its_paragraphs_once(tmp_path):
    assert one(tmp_path, "mintaka").short_answers == (("iron",), ("steel",))
    strategy = one(tmp_path, "strategyqa")
    assert strategy.gold == ("Rust-1", "Gold-2")
    assert strategy.options[strategy.correct] == "No" and len(strategy.steps) == 2


def test_the_simplified_original_of_nq_reads_its_token_spans(tmp_path):
    record = {
        "example_id": -5,
        "question_text": "what rusts",
        "document_text": "In damp air iron rusts .",
        "annotations": [{"yes_no_answer": "NONE", "short_answers": [{"start_token": 3, "end_token": 4}]}],
    }
    (example,) = load(written(tmp_path, [record]))
    assert (example.id, example.short_answers) == ("-5", (("iron",),))


def test_lists_of_dense_retrieval_are_labelled(tmp_path):
    contexts = {"positive_ctxs": [{"title": "a", "text": "Iron rusts."}], "hard_negative_ctxs": [{"text": "Gold."}]}
    (example,) = load(written(tmp_path, [{"question": "what rusts", "answers": ["iron"], **contexts}]))
    assert [p.relevant for p in example.passages] == [True, False]
    assert lacks(example, ["relevance labels", "options"]) == ("options",)


def test_ragtruth_needs_its_sources_beside_it(tmp_path):
    answer = {"id": "1", "source_id": "9", "model": "m", "response": "It is gold.", "labels": []}
    path = written(tmp_path, [answer], "response.jsonl")
    with pytest.raises(FileError, match=r"source_info\.jsonl"):
        list(load(path))
    info = {"source_id": "9", "task_type": "QA", "source_info": {"question": "What?", "passages": "passage 1: Iron."}}
    written(tmp_path, [info], "source_info.jsonl")
    (example,) = load(tmp_path)
    assert (example.writer, example.domain, example.spans) == ("m", "QA", ())
    assert lacks(example, ["labelled spans", "a reference answer"]) == ("a reference answer",)


def test_beir_leaves_out_what_is_not_judged(tmp_path):
    written(tmp_path, [{"_id": "q1", "text": "what rusts"}, {"_id": "q2", "text": "what shines"}], "queries.jsonl")
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\t0\n")
    (example,) = load(tmp_path, corpus="metals")
    assert (example.id, example.gold, example.corpus) == ("q1", ("d1",), "metals")
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\tyes\n")
    with pytest.raises(RecordError, match=r"test\.tsv, row 1: a judgement needs"):
        list(load(tmp_path, corpus="metals"))


def test_mmlus_own_tables_have_no_head_and_name_the_subject(tmp_path):
    with (tmp_path / "college_physics_test.csv").open("w", newline="") as file:
        csv.writer(file).writerows(
            [["What rusts?", "gold", "iron", "tin", "lead", "B"], ["x?", "1", "2", "3", "4", "A"]]
        )
    first, second = load(tmp_path)
    assert (first.domain, first.options[first.correct]) == ("college physics", "iron")
    assert (second.id, second.correct) == ("college physics-2", 0)


def test_a_first_question_with_the_word_question_is_not_a_head(tmp_path):
    with (tmp_path / "virology_test.csv").open("w", newline="") as file:
        csv.writer(file).writerows(
            [["Which question is open?", "1", "2", "3", "4", "B"], ["x?", "1", "2", "3", "4", "A"]]
        )
    assert [(found.question, found.correct) for found in load(tmp_path)] == [("Which question is open?", 1), ("x?", 0)]


def test_a_letter_is_the_option_that_stands_under_it_though_another_reads_like_it(tmp_path):
    groups = ["O", "A", "B", "AB"]
    with (tmp_path / "virology_test.csv").open("w", newline="") as file:
        csv.writer(file).writerow(["Which group has neither antigen?", *groups, "A"])
    (example,) = load(tmp_path)
    assert example.options[example.correct] == "O"
    super_gpqa = RECORDS["supergpqa"] | {"options": groups, "answer_letter": "B"}
    (example,) = load(written(tmp_path, [super_gpqa]))
    assert example.options[example.correct] == "A"


def test_a_long_cell_is_read_whatever_was_read_before(tmp_path):
    csv.field_size_limit(131_072)
    question = "Which one rusts? " * 10_000
    with (tmp_path / "long_test.csv").open("w", newline="") as file:
        csv.writer(file).writerow([question, "gold", "iron", "tin", "lead", "B"])
    (example,) = load(tmp_path)
    assert example.question == question.strip() and example.options[example.correct] == "iron"


@pytest.mark.parametrize(
    ("layout", "change"),
    [
        ("hotpotqa", {"supporting_facts": [["Iron"]]}),
        ("mintaka", {"answer": {"mention": "iron", "answer": [{"label": "iron"}]}}),
        ("nq", {"annotations": ["NONE"], "answer": []}),
    ],
)
def test_a_field_of_another_kind_is_named_by_its_line(layout, change, tmp_path):
    with pytest.raises(RecordError, match=r"set\.jsonl, line 1: A field does not match"):
        list(load(written(tmp_path, [RECORDS[layout] | change]), layout=layout))


def test_parquet_and_json_lists_read_like_lines(tmp_path):
    import pyarrow
    from pyarrow import parquet

    rows = [RECORDS["mmlu-pro"]]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "set.parquet")
    (tmp_path / "set.json").write_text(json.dumps({"data": rows}))
    (expected,) = load(written(tmp_path, rows))
    assert [next(load(tmp_path / name)) for name in ("set.parquet", "set.json")] == [expected] * 2


def test_own_lines_say_what_is_wrong_and_where(tmp_path):
    fine = {"question": "What rusts?"}
    for bad, said in (
        ({"question": "What?", "pasages": []}, "pasages"),
        ({"question": "  "}, "question"),
        ({"question": "What?", "options": ["a", "b"], "correct": "C"}, "not one of the 2 options"),
        ({"question": "What?", "answer": "x", "spans": [{"start": 0, "end": 9}]}, "0 to 9"),
        ({"question": "What?", "answer": "a a", "errors": [{"wrong": "a", "right": "b"}]}, "exactly once"),
    ):
        with pytest.raises(RecordError, match=r"set\.jsonl, line 2: .*" + said):
            list(load(written(tmp_path, [fine, bad]), layout="own"))
    path = tmp_path / "broken.jsonl"
    path.write_text('{"question": "What?"}\n\n{"question": \n')
    with pytest.raises(RecordError, match=r"broken\.jsonl: Line 3 is not JSON"):
        list(load(path))


def test_a_file_of_no_layout_is_refused_with_their_names(tmp_path):
    with pytest.raises(RecordError, match=r"no known layout .*colour.*alce"):
        list(load(written(tmp_path, [{"colour": "red"}])))
    with pytest.raises(FileError, match="bench-chemistry"):
        list(load(tmp_path / "nothing.jsonl"))
    with pytest.raises(RecordError, match="occurs twice"):
        list(load(written(tmp_path, [{"question": "a?", "id": "1"}, {"question": "b?", "id": "1"}])))


def test_strata_are_of_mixed_relevance_and_interleaved(tmp_path):
    rows = []
    for number, relevant in enumerate([0, 1, 1, 2, 2, 3, 3, 4]):
        marks = [{"text": f"{number} {i}", "relevant": i < relevant} for i in range(4)]
        rows.append({"question": f"Question {number}?", "passages": marks})
    found = [stratum(e) for e in load(written(tmp_path, rows), per_stratum=2)]
    assert found == ["low", "medium", "high", "low", "medium", "high"]


def test_of_each_question_so_many_passages_are_kept(tmp_path):
    rows = [{"question": "a?", "passages": [{"text": f"p{i}"} for i in range(9)]}]
    (found,) = load(written(tmp_path, rows), passages=5)
    assert [passage.text for passage in found.passages] == [f"p{i}" for i in range(5)]


def test_relevant_passages_are_kept_before_others_unless_an_answer_counts_them(tmp_path):
    marks = [{"text": f"p{i}", "relevant": i in (2, 4)} for i in range(6)]
    rows = [{"question": "a?", "passages": marks}, {"question": "b?", "passages": marks, "answer": "p2 [cite_3]."}]
    found = [[passage.text for passage in example.passages] for example in load(written(tmp_path, rows), passages=3)]
    assert found == [["p0", "p2", "p4"], ["p0", "p1", "p2"]]


def test_the_worlds_bring_what_their_studies_need():
    chemistry, bank, primer = (list(load(name)) for name in WORLDS[:3])
    assert [len(chemistry), len(bank), len(primer)] == [103, 28, 122]
    assert not lacks(chemistry[0], ["gold passages", "a reference answer", "the number of passages needed", "a corpus"])
    assert not lacks(bank[0], ["passages", "relevance labels", "gold passages"])
    assert not lacks(primer[0], ["options", "the right option", "gold steps", "a domain"])
    drafts = list(load("bank-investigation-drafts"))
    assert len(drafts) == 74 and all(lacks(d, NEEDS) for d in drafts)
    assert all(d.answer.count(e.wrong) == 1 for d in drafts for e in d.errors)


def test_short_answers_of_the_bank_questions_are_found_in_the_reference_and_in_no_other():
    bank = [example for example in load("bank-investigation") if example.short_answers]
    assert len(bank) == 18
    for example in bank:
        (reference,) = example.references
        for spellings in example.short_answers:
            assert contains_answer(reference, spellings)
        assert not contains_answer("The papers do not say who it was or when it happened.", example.short_answers[0])


def test_gold_spans_of_a_world_quote_its_documents():
    world = load_world("science-primer")
    for example in load("science-primer", limit=10):
        for step in example.steps:
            assert all(world.documents[s.document].text[s.start : s.end].strip() for s in step.gold_spans)


def test_every_layout_is_tried_here():
    assert set(LAYOUTS) - set(RECORDS) == {"beir", "ragtruth"}
