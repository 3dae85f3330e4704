"""The library's door: what a script may hand over, and what it is told where that does not fit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from engine.analyses.facts import FactsOptions
from engine.analyses.kind import options_of
from engine.analyses.registry import kind_named
from engine.analyses.steps import new_case
from engine.core.canonical import settled
from engine.core.errors import Cancelled, CorpusNotFound, InputError, QuestionError, RecordError
from engine.core.progress import Watch
from engine.core.values import AuditRecord
from engine.methods.are.values import AreRecord
from engine.methods.raise_.values import Problem
from engine.studies.config import parse_config
from engine.workbench import Workbench


@pytest.mark.parametrize("kind", [str, lambda path: path, lambda path: [str(path)]])
def test_one_path_is_one_file_and_not_the_folders_of_its_letters(tmp_path, monkeypatch, kind):
    (tmp_path / "notes.txt").write_text("Ice melts at 0 degrees.", encoding="utf-8")
    (tmp_path / "secret.txt").write_text("The key is under the mat.", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    report = Workbench().ingest(kind(tmp_path / "notes.txt"), "own")
    assert report.documents == 1


def test_a_record_may_be_plain_data_and_is_checked_as_a_files_line():
    bench = Workbench()
    given = {
        "question": "What rusts?",
        "passages": [{"text": "Iron rusts.", "title": "Metals"}],
        "answer": "Iron rusts.",
    }
    case = bench.audit(given)
    assert (case.passages[0].title, case.answer.text) == ("Metals", "Iron rusts.")
    for record in (
        AuditRecord(question="What rusts?", passages="Rust", answer="Iron."),
        AuditRecord(question="What rusts?", passages=("Iron rusts.",), answer=5),
        {**given, "model": 5},
    ):
        with pytest.raises(RecordError, match="not a valid AuditRecord"):
            bench.audit(record)
    for record, said in (({**given, "question": None}, "no question. Give it as"), (None, "not a JSON object")):
        with pytest.raises(RecordError, match=said):
            bench.audit(record)


def test_a_row_of_a_table_is_read_as_the_command_reads_its_line():
    table = pd.DataFrame(
        {
            "id": [7, 8],
            "user_input": ["What rusts?", "What never rusts?"],
            "retrieved_contexts": [np.array(["Iron rusts.", "Gold never rusts."]), ("Gold never rusts.",)],
            "response": ["Iron rusts.", "Gold."],
            "model": [float("nan"), "some system"],
        }
    )
    cases = [Workbench().audit(row) for row in table.to_dict("records")]
    assert [(case.title, case.stamp.model, len(case.passages)) for case in cases] == [
        ("7", "imported", 2),
        ("8", "some system", 1),
    ]


def test_a_records_accents_are_in_their_letters_and_its_spans_follow():
    apart = "Malmo\u0308 is Jose\u0301's town."  # as macOS and some PDF files write them
    given = {"question": "Whose is Malmo\u0308?", "passages": [apart], "answer": apart, "spans": [[10, 15], [0, 99]]}
    record = AuditRecord.from_dict(given)
    assert [record.answer[a:b] for a, b in record.spans] == ["José", "Malmö is José's town."]
    with pytest.raises(RecordError, match="not inside"):
        Workbench().audit(record)
    case = Workbench().audit({**given, "spans": [[10, 15]]})
    assert case.question == "Whose is Malmö?"
    assert case.answer.text == case.passages[0].text == record.answer == "Malmö is José's town."
    assert len(case.passages[0].text) == case.passages[0].end


def test_a_problem_has_no_option_or_several():
    with pytest.raises(RecordError, match="one option"):
        new_case(Problem(question="Why?", options=("Because.",)), "c", "id", "")
    assert new_case(Problem(question="Why?"), "c", "id", "").options == ()


def test_a_problem_is_saved_as_a_case_of_a_corpus(tmp_path):
    bench = Workbench()
    with pytest.raises(CorpusNotFound):
        bench.problem("Why?", "primer")
    (tmp_path / "notes.txt").write_text("Ice melts at 0 degrees.", encoding="utf-8")
    bench.ingest(tmp_path / "notes.txt", "primer")
    posed = bench.problem("At how many degrees does ice melt?", "primer", ["0", "100"])
    assert bench.cases.load(posed.id) == posed
    assert (posed.corpus, posed.options, posed.answer.finished) == ("primer", ("0", "100"), False)


def test_a_seed_is_written_once():
    with pytest.raises(InputError, match="a seed twice"):
        parse_config('study = "abpc"\ndata = "d"\nseeds = [1, 1]')


def test_a_result_is_its_kinds_value_fresh_and_from_the_library():
    bench = Workbench()
    case = bench.audit({"question": "What rusts?", "passages": ["Iron rusts."], "answer": "Iron rusts."})
    assert bench.result(case, "facts") is None
    fresh = bench.result(bench.analyse(case, "facts"), "facts")
    assert isinstance(fresh, AreRecord) and fresh.report is not None
    assert Workbench().result(case.id, "facts") == settled(fresh)
    with pytest.raises(InputError, match=r"name 'fact'.*facts"):
        bench.result(case, "fact")


def test_options_may_be_plain_data_and_are_checked_before_anything_runs():
    bench = Workbench()
    case = bench.audit({"question": "What rusts?", "passages": ["Iron rusts."], "answer": "Iron rusts. Gold does."})
    found = bench.result(bench.analyse(case, "word overlap", {"spans": [[0, 4]]}), "word overlap")
    assert (0, 4) in found.spans
    for kind, options, said in (
        ("word overlap", {"span": [[0, 4]]}, "no option 'span'.*spans"),
        ("word overlap", {"spans": "Iron"}, "wrong kind.*spans"),
        ("occlusion", FactsOptions(verifier="medium"), "no option 'verifier'"),
    ):
        for run in (bench.analyse, bench.examine, bench.cost):
            with pytest.raises(InputError, match=said):
                run(case, kind, options)
    assert options_of(kind_named("occlusion"), ["spans=[[0, 4]]"]).spans == ((0, 4),)
    assert kind_named("input-x-gradient").name == kind_named("input x gradient").name == "input x gradient"
    with pytest.raises(InputError, match="No analysis has the name 'in-put'"):
        kind_named("in-put")


def test_a_corpus_or_question_that_is_no_text_and_half_of_a_character_are_told():
    bench = Workbench()
    given = {"question": "What rusts?", "passages": ["Iron rusts."], "answer": "Iron rusts."}
    for call, error, said in (
        (lambda: bench.ask("What rusts?", None), InputError, "None cannot name a corpus"),
        (lambda: bench.ingest("notes.txt", None), InputError, "None cannot name a corpus"),
        (lambda: bench.ask(None, "metals"), QuestionError, "The question is empty"),
        (lambda: bench.audit({**given, "passages": ["Iron\ud800"]}), RecordError, "half of a character"),
        (lambda: bench.audit({**given, "answer": "Iron\ud800"}), RecordError, "half of a character"),
    ):
        with pytest.raises(error, match=said):
            call()
    assert bench.audit({**given, "question": "What\ud800 rusts?"}).question == "What\ufffd rusts?"


def test_many_cases_are_checked_one_by_one_and_a_failure_or_a_stop_leaves_the_rest():
    bench, told = Workbench(), []
    given = {"question": "What rusts?", "passages": ["Iron rusts."], "answer": "Iron rusts."}
    first, second = bench.audit(given), bench.audit(given).id
    failed = bench.analyse_all([first, "nowhere", second], "facts", watch=Watch(report=lambda *of: told.append(of)))
    assert list(failed) == ["nowhere"] and "nowhere" in failed["nowhere"]
    assert all(bench.result(case, "facts") for case in (first.id, second))
    assert told == [("answers", done, 3) for done in range(3)]
    watch = Watch(report=lambda stage, done, total: watch.cancel.set() if done else None)
    third, fourth = (bench.audit(given).id for _ in range(2))
    with pytest.raises(Cancelled):
        bench.analyse_all([third, fourth], "facts", watch=watch)
    assert bench.result(third, "facts") and bench.result(fourth, "facts") is None
    assert bench.analyse_all(fourth, "facts") == {} and bench.result(fourth, "facts")
