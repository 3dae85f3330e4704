"""The command line as a script sees it: lines in, lines out, exit status."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest
from click.testing import CliRunner

from engine.commands import main
from engine.commands.shared import GROUP, run_records
from engine.commands.verify import TextRecord
from engine.core.errors import Cancelled, InputError, ServerError
from engine.core.files import ROOT, VERSION, home
from engine.core.progress import Watch
from engine.core.settings import PAPERS, Settings
from engine.corpus.collection import Collection
from engine.models.embedder import ScriptedEmbedder
from engine.models.registry import forget_models
from engine.workbench import Workbench
from tests.tiny import save_tiny, tiny_model
from tests.trust.replies import Replies


def run(*arguments, stdin=None):
    return CliRunner().invoke(main, list(arguments), input=stdin)


def lines(result):
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_every_command_shows_an_example_in_its_help():
    for name, command in main.commands.items():
        assert f"python -m engine {name}" in (command.help or ""), name


def called(code, **how):
    return subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True, cwd=ROOT, **how)


def test_a_command_starts_without_the_libraries_that_only_some_need():
    slow = "import engine.commands, sys; print({'pandas', 'torch', 'scipy', 'chromadb'} & {*sys.modules})"
    assert called(slow, stdout=subprocess.PIPE).stdout == "set()\n"


def test_ctrl_c_while_a_command_starts_ends_quietly():
    ended = called("""
import runpy, sys
class Pressed:
    def find_spec(self, name, path=None, target=None):
        if name == "engine.commands":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Pressed())
runpy.run_module("engine", run_name="__main__")
""")
    assert (ended.returncode, ended.stderr) == (130, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_an_output_that_cannot_be_written_is_a_wrong_call():
    with open("/dev/full", "w") as full:
        ended = called("from engine.commands import main; main(['models'])", stdout=full)
    assert ended.returncode == 2
    assert ended.stderr == "The output cannot be written (No space left on device). Free some space and run again.\n"


def test_the_version_is_the_one_that_stamps_name():
    said = run("--version")
    assert (said.exit_code, said.stdout) == (0, f"Groundwork, version {VERSION}\n")


def test_a_broken_line_has_a_number_of_its_own():
    result = run("audit", "-", "--json", stdin='\n{"question": "Q?", "passages": ["A."], "answer": ""}\nbroken\n')
    assert [row["id"] for row in lines(result) if "id" in row] == ["2", "3"]
    result = run("check", "-", stdin='\n{"claim": "A.", "evidence": ""}\nbroken\n')
    assert [row["id"] for row in lines(result) if "error" in row][-1] == "3"


def test_records_of_a_file_are_looked_at_in_groups_and_those_of_a_pipe_one_by_one(capsys):
    written = [json.dumps({"text": f"Line {number}."}) for number in range(GROUP + 1)]
    written[2] = "broken"
    groups = []

    def work(record):
        return [{"id": record.id, "seen": sum(map(len, groups))}]

    with pytest.raises(SystemExit):
        run_records(io.StringIO("\n".join(written)), TextRecord, work, ahead=groups.append)
    assert [len(group) for group in groups] == [GROUP - 1, 1]
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line.get("seen") for line in said] == [63, 63, None, *[63] * (GROUP - 3), 64]
    groups.clear()
    run_records(iter(written[:2]), TextRecord, work, ahead=groups.append)
    assert groups == []


def test_a_claim_of_a_file_has_the_verdict_that_it_has_alone(tmp_path):
    claims = [f"Hanna Lind built the bridge in {year}." for year in (1871, 1874, 1879)]
    records = [json.dumps({"claim": one, "evidence": "Hanna Lind built it in 1874, after a flood."}) for one in claims]
    (tmp_path / "claims.jsonl").write_text("\n".join(records))
    together = lines(run("check", str(tmp_path / "claims.jsonl")))
    alone = [lines(run("check", "-", stdin=record))[0] for record in records]
    for one, other in zip(together, alone, strict=True):
        assert one["scores"] == pytest.approx(other["scores"], abs=2e-4)
        assert (one["verdict"], one["note"]) == (other["verdict"], other["note"])


def test_an_unknown_corpus_is_a_wrong_call(tmp_path):
    result = run("search", "why", "--corpus", "absent")
    assert result.exit_code == 2
    assert "CorpusNotFound" in result.stderr
    assert result.stdout == ""


def test_an_unknown_setting_is_a_wrong_call():
    result = run("ask", "why", "--corpus", "x", "--set", "retrieval.depth=3")
    assert result.exit_code == 2
    assert "retrieval.k" in result.stderr


@pytest.mark.parametrize("command", [("attribute", "--method", "word-overlap"), ("facts",)])
def test_commands_on_answers_read_the_names_of_other_systems(command):
    own = {
        "question": "When did the mill open?",
        "passages": ["The mill opened in 1902."],
        "answer": "It opened in 1902.",
    }
    other = dict(zip(("user_input", "retrieved_contexts", "response"), own.values(), strict=True))
    name, *options = command
    told = [lines(run(name, "-", *options, stdin=json.dumps({"id": "1", **record})))[0] for record in (own, other)]
    assert "error" not in told[0] and [{**line, "seconds": 0} for line in told] == [{**told[0], "seconds": 0}] * 2


def test_ask_says_whether_the_documents_answer_and_names_the_words_that_none_has(tmp_path):
    path = tmp_path / "bridge.md"
    path.write_text("Hanna Lind built the stone bridge over the Alm in 1874.")
    run("ingest", str(path), "--corpus", "bridges")
    asked = ("--corpus", "bridges", "--model", "reader")
    assert (
        "The documents probably answer the question (probability that they do: 0."
        in run("ask", "Who built the bridge?", *asked).stdout
    )
    said = run("ask", "Who paid the bridgge toll?", *asked).stdout
    assert "No document has “bridgge”; the nearest word is “bridge”. No document has “toll”." in said


def test_a_question_of_some_documents_says_so_in_the_case_its_report_and_its_replay(tmp_path):
    for name, river in (("alm, north.md", "Alm"), ("lech.md", "Lech"), ("isar.md", "Isar")):
        (tmp_path / name).write_text(f"Hanna Lind built the stone bridge over the {river} in 1874.")
    run("ingest", str(tmp_path), "--corpus", "bridges")
    asked = ("ask", "Who built the stone bridge?", "--corpus", "bridges", "--model", "reader")
    (case,) = lines(run(*asked, "--json", "--document", "alm, *", "--document", "lech.md"))
    assert {hit["passage"]["document"] for hit in case["hits"]} == {"alm, north.md", "lech.md"}
    assert case["stamp"]["settings"]["retrieval"]["documents"] == ["alm, *", "lech.md"]
    run("report", case["id"], "--md", str(tmp_path / "report.md"))
    assert "- Documents searched: alm, \\*, lech.md" in (tmp_path / "report.md").read_text()
    run("analyse", case["id"], "facts", "--set", "verification.evidence_from=corpus")
    seen = Workbench().result(case["id"], "facts").facts[0].iterations[0].considered
    assert {evidence.document for evidence in seen} == {"alm, north.md", "lech.md"}
    summary = lines(run("replay", case["id"]))[-1]["summary"]
    assert summary["reproduced"] > 0 and summary["drifted"] == summary["cannot"] == 0
    weak = run("ask", "What does the ferry cost?", "--corpus", "bridges", "--model", "reader", "--document", "isar.md")
    assert "The chosen documents of “bridges” do not seem to answer" in weak.stdout
    wrong = run(*asked, "--document", "izar.md")
    assert wrong.exit_code == 2 and "no document 'izar.md'. Is it 'isar.md'" in wrong.stderr


def test_an_answer_that_failed_is_no_case_and_a_served_model_needs_its_address(tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    (tmp_path / "bridge.md").write_text("Hanna Lind built the stone bridge over the Alm in 1874.")
    run("ingest", str(tmp_path / "bridge.md"), "--corpus", "bridges")
    asked = ("ask", "Who built the bridge?", "--corpus", "bridges", "--model")
    bare = run(*asked, "openai:foo")
    assert (bare.exit_code, bare.stdout) == (2, "") and "Write openai:foo@BASE_URL" in bare.stderr
    served = Replies("no", status=400)
    try:
        refused = run(*asked, served.model)
    finally:
        served.stop()
    assert (refused.exit_code, refused.stdout) == (2, "") and "ServerError" in refused.stderr
    assert run("cases").stdout == run("cases", "--deleted").stdout == ""


def test_an_answer_that_broke_off_or_was_stopped_is_a_case(tmp_path):
    bench = Workbench()
    (tmp_path / "bridge.md").write_text("Hanna Lind built the stone bridge over the Alm in 1874.")
    bench.ingest([tmp_path / "bridge.md"], "bridges")
    served = Replies("Hanna Lind built it in 1874, and Bo Ray kept it.", breaks=1)
    try:
        with pytest.raises(ServerError):
            bench.ask("Who built the bridge?", "bridges", model=served.model, case_id="broken")
    finally:
        served.stop()
    assert bench.cases.load("broken").answer.text == "Hanna Lind built it in 1874, and Bo Ray "
    watch = Watch()
    watch = replace(watch, case=lambda case: watch.cancel.set() if case.passages else None)
    with pytest.raises(Cancelled):
        bench.ask("Who built the bridge?", "bridges", model="reader", case_id="stopped", watch=watch)
    assert bench.cases.load("stopped").passages and not bench.cases.load("stopped").answer.text


def test_audit_with_json_says_how_far_each_sentence_is_borne_out():
    record = {"id": "a", "question": "Does iron rust?", "passages": ["Iron rusts in the rain."]}
    record["answer"] = "Iron rusts in the rain [1]. The bank opened in 1920."
    result = run("audit", "-", "--json", stdin=json.dumps(record) + "\n")
    line = json.loads(result.stdout)
    copied, made_up = line["support"]
    assert copied["support"] > 0.5 > made_up["support"]
    assert record["answer"][made_up["start"] : made_up["end"]] == "The bank opened in 1920."
    assert line["answerable"] == Workbench().cases.load(line["case"]).answerable > 0.8


def test_an_audited_question_that_its_passages_do_not_answer_is_told():
    record = {"question": "Who founded the bank of Ostra?", "passages": ["Iron rusts in the rain."], "answer": "Holm."}
    result = run("audit", "-", "--json", stdin=json.dumps(record) + "\n")
    assert json.loads(result.stdout)["answerable"] < 0.2


def test_audit_saves_good_records_and_leaves_an_error_in_the_place_of_bad_ones():
    good = {"id": "g", "question": "Why?", "passages": ["Because."], "answer": "Because. [cite_1]"}
    empty = {"_id": "e", "question": "Why?", "passages": [" "], "answer": "x"}
    text = "\n".join([json.dumps(good), "no json", json.dumps(empty), json.dumps({"id": "m", "passages": []})])
    result = run("audit", "-", stdin=text)
    first, second, third, fourth = lines(result)
    assert result.exit_code == 1
    assert second["error"]["type"] == third["error"]["type"] == fourth["error"]["type"] == "RecordError"
    assert third["id"] == "e"
    listed = lines(run("cases"))
    assert [row["id"] for row in listed] == [first["case"]]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"answer": ""}, "has no answer. Give it as answer, response"),
        ({"answer": "  "}, "has no answer"),
        ({"passages": []}, "has no source to check the answer against. Name a corpus"),
    ],
)
def test_audit_names_what_a_record_lacks_and_makes_no_case_of_it(wrong, said):
    record = {"question": "Why?", "passages": ["Because."], "answer": "Because."} | wrong
    result = run("audit", "-", stdin=json.dumps(record))
    (line,) = lines(result)
    assert (result.exit_code, line["error"]["type"]) == (1, "RecordError") and said in line["error"]["message"]
    assert run("cases").stdout == ""


def test_audit_stores_the_name_of_the_file(tmp_path):
    (tmp_path / "answers.jsonl").write_text('{"question": "Why?", "passages": ["Because."], "answer": "Because."}')
    (made,) = lines(run("audit", str(tmp_path / "answers.jsonl")))
    assert Workbench().cases.load(made["case"]).stamp.settings["file"] == "answers.jsonl"


def test_audit_reads_the_table_that_another_system_exports():
    result = run("audit", "-", stdin="user_input,response,retrieved_contexts\nWhy?,Because.,['Because.']\n")
    (line,) = lines(result)
    assert (result.exit_code, line["id"]) == (0, "1") and lines(run("cases"))[0]["id"] == line["case"]


def test_audit_refuses_a_verifier_that_is_none(tmp_path):
    record = json.dumps({"question": "Why?", "passages": ["Because."], "answer": "Because."})
    for more in ((), ("--json",)):
        result = run("audit", "-", "--verifier", str(tmp_path / "absent"), *more, stdin=record)
        assert (result.exit_code, result.stdout) == (2, "") and "absent" in result.stderr


def test_a_search_of_the_library_that_finds_nothing_says_so():
    assert "Give a case" in run("export").stderr
    for asked in (("--matching", "nothing"), ("--all",)):
        found = run("export", *asked)
        assert found.exit_code == 2 and "Nothing was found" in found.stderr
    assert run("cases", "--since", "2026-11-27T13:00").exit_code == 0
    offset = run("cases", "--since", "2026-11-27T13:00+02:00")
    assert offset.exit_code == 2 and "UTC without an offset" in offset.stderr


def test_the_facts_of_all_cases_are_one_table():
    for question in ("Why?", "How?"):
        run("audit", "-", stdin=json.dumps({"question": question, "passages": ["Because."], "answer": "Because."}))
    table = run("export", "--all", "--facts").stdout.splitlines()
    assert table[0].startswith("case,question,") and {line.split(",")[1] for line in table[1:]} == {"Why?", "How?"}


def test_a_review_with_several_options_is_written_as_a_whole_or_not_at_all():
    record = {"question": "When?", "passages": ["The gate opened in 1934."], "answer": "The gate opened in 1932."}
    case = lines(run("audit", "-", stdin=json.dumps(record)))[0]["case"]
    refused = run("review", case, "--note", "Seen.", "--withdraw", "99")
    assert refused.exit_code == 2 and "entry:99" in refused.stderr
    assert lines(run("review", case))[0]["history"] == []
    strange = run("review", case, "--note", os.fsdecode(b"caf\xe9"))
    assert strange.exit_code == 2 and "not valid UTF-8" in strange.stderr
    (found,) = lines(run("review", case, "--note", "Seen.", "--relevant", "1", "--status", "in review"))
    assert [mark["kind"] for mark in found["history"]] == ["note", "relevance", "status"]
    late = run("review", case, "--note", "Late.", "--status", "signed off", "--seen", found["history"][0]["hash"])
    assert late.exit_code == 2 and len(lines(run("review", case))[0]["history"]) == 3


def test_a_review_of_another_head_is_refused_also_without_entries_and_where_the_history_was_emptied():
    record = {"question": "When?", "passages": ["The gate opened in 1934."], "answer": "The gate opened in 1932."}
    case = lines(run("audit", "-", stdin=json.dumps(record)))[0]["case"]
    emptied = run("review", case, "--note", "Late.", "--seen", "0" * 64)
    assert emptied.exit_code == 2 and "taken from this case" in emptied.stderr
    (found,) = lines(run("review", case, "--note", "Seen.", "--seen", ""))
    assert run("review", case, "--seen", found["head"]).exit_code == 0
    for more in ((), ("--new-version",)):
        assert run("review", case, "--seen", "0" * 64, *more).exit_code == 2


def test_review_refuses_a_place_that_the_case_does_not_have_and_a_verdict_that_is_none():
    record = {"question": "When?", "passages": ["The gate opened in 1934."], "answer": "The gate opened in 1932."}
    case = lines(run("audit", "-", stdin=json.dumps(record)))[0]["case"]
    run("analyse", case, "facts")
    own = ("review", case, "--reviewer", "Ada", "--reason", "Read it.")
    (edit,) = json.loads(run("analyse", case, "facts").stdout)["result"]["edits"]
    at = f"edit:{edit['id']}"
    for asked, said in (
        (
            ("--note", "Seen.", "--on", "passage:9"),
            "'passage:9' is not a place of this case. Its places include: passage:1.",
        ),
        (("--override", "contradicted", "--on", "fact:9.9"), "Its places include: fact:1.1."),
        (("--override", "banana", "--on", "fact:1.1"), "Choose one of: borne out, contradicted, not found."),
        (("--override", "banana", "--on", at), "Choose one of: accepted, rejected."),
        (("--note", "Seen.", "--on", "roof"), "case, answer, passage:1"),
    ):
        result = run(*own, *asked)
        assert (result.exit_code, result.stdout) == (2, "") and said in result.stderr, asked
    assert lines(run("review", case))[0]["history"] == []
    for value, target in (("contradicted", "fact:1.1"), ("accepted", at), ("It opened late.", "sentence:1")):
        assert run(*own, "--override", value, "--on", target).exit_code == 0
    assert run(*own, "--note", "Seen.", "--on", "passage:1").exit_code == 0
    told = {mark["target"]: mark["machine"] for mark in lines(run("review", case))[0]["history"]}
    assert told["fact:1.1"] == "editing_required" and edit["new"] in told[at]
    assert told["sentence:1"] == record["answer"]


def test_a_sign_off_takes_a_conclusion_with_a_reason_as_on_the_page():
    record = {"question": "When?", "passages": ["The gate opened in 1934."], "answer": "The gate opened in 1932."}
    case = lines(run("audit", "-", stdin=json.dumps(record)))[0]["case"]
    (edit,) = json.loads(run("analyse", case, "facts").stdout)["result"]["edits"]
    own, signed = ("review", case, "--reviewer", "Ada"), ("--status", "signed off")
    answer = ("--on", "answer", "--override")
    for asked, said in (
        (signed, "needs your conclusion on the answer"),
        ((*answer, "fine", "--reason", "Read it.", *signed), "stands as edited"),
        ((*answer, "stands", *signed), "Give a reason"),
        (("--relevant", "1", "--not-relevant", "1"), "Passage 1 is labelled relevant and not relevant"),
    ):
        result = run(*own, *asked)
        assert (result.exit_code, result.stdout) == (2, "") and said in result.stderr, asked
    assert run(*own, "--override", "accepted", "--on", f"edit:{edit['id']}").exit_code == 0
    unfit = run(*own, *answer, "stands", "--reason", "Read it.", *signed)
    assert unfit.exit_code == 2 and "Choose one of: stands as edited, does not stand." in unfit.stderr
    (found,) = lines(run(*own, *answer, "stands as edited", "--reason", "Read it.", *signed))
    *_, conclusion, status = found["history"]
    assert (conclusion["value"], conclusion["machine"]) == ("stands as edited", "1 fact: 1 contradicted")
    assert status["value"] == found["review"]["status"] == "signed off"


def test_an_audited_case_that_reproduces_exits_0_and_says_that_its_answer_is_not_compared():
    record = {"question": "When?", "passages": ["The gate opened in 1934."], "answer": "The gate opened in 1932."}
    case = lines(run("audit", "-", stdin=json.dumps(record)))[0]["case"]
    run("analyse", case, "facts")
    result = run("replay", case)
    *numbers, last = lines(result)
    assert (result.exit_code, last["summary"]["drifted"], last["summary"]["cannot"]) == (0, 0, 1)
    assert "could not be compared (answer: the answer was imported" in last["summary"]["text"]
    assert all(n["floor"] == 0 for n in numbers if isinstance(n["stored"], int) and isinstance(n["replayed"], int))


@pytest.mark.parametrize("day", ["foo", "2026-13-45", "20261120", "2026-1-5", ""])
@pytest.mark.parametrize("option", ["--since", "--until"])
def test_a_day_that_is_none_is_a_wrong_call(option, day):
    result = run("cases", option, day)
    assert (result.exit_code, result.stdout) == (2, "") and "Write YYYY-MM-DD" in result.stderr
    assert run("cases", option, "2026-11-20").exit_code == 0


def test_audit_takes_a_corpus_in_place_of_passages(tmp_path):
    (tmp_path / "rust.md").write_text("Iron rusts in the rain.")
    run("ingest", str(tmp_path / "rust.md"), "--corpus", "metals")
    record = {"id": "c", "question": "Does iron rust?", "passages": [], "answer": "Iron rusts in the rain."}
    result = run("audit", "-", stdin="\n".join(json.dumps(record | {"corpus": name}) for name in ("metals", "none")))
    kept, refused = lines(result)
    assert refused["error"]["type"] == "CorpusNotFound"
    assert Workbench().cases.load(kept["case"]).corpus == "metals"
    found = json.loads(run("analyse", kept["case"], "facts").stdout)
    assert [fact["outcome"] for fact in found["result"]["facts"]] == ["supported"]
    after = found["result"]["report"]["after"]
    assert {name: found[name] for name in ("attr_r", "attr_p", "pres")} == {
        name: after[name] for name in ("attr_r", "attr_p", "pres")
    }
    assert (found["outcomes"], found["unsure"]) == ({"supported": 1}, 0)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """The folder of a tiny model, as `--model` takes it."""
    yield str(save_tiny(tmp_path_factory.mktemp("model")))
    forget_models()


def test_attribute_writes_a_line_a_method_with_a_number_a_passage_a_span(tiny):
    record = {"id": "r", "question": "Why?", "passages": ["Ice melts.", "Tin bends."], "answer": "Ice melts. [cite_1]"}
    result = run(
        "attribute", "-", "--model", tiny, "--method", "occlusion,keep-one,input-x-gradient", stdin=json.dumps(record)
    )
    found = lines(result)
    assert result.exit_code == 0
    assert [line["method"] for line in found] == ["occlusion", "keep-one", "input-x-gradient"]
    assert all(len(line["scores"]) == 1 and len(line["scores"][0]) == 2 for line in found)
    assert found[0]["numerical_floor"] is not None
    tokens = [(t.start, t.end) for t in tiny_model("llama").encode_answer(record["answer"]).tokens]
    assert len(found[0]["per_token"]) == len(found[2]["per_token"]) == len(tokens)
    assert found[0]["tokens"] == found[2]["tokens"] and "tokens" not in found[1]
    assert [(t["start"], t["end"]) for t in found[0]["tokens"]] == tokens
    assert all(t["text"] == record["answer"][t["start"] : t["end"]] for t in found[0]["tokens"])


def test_a_span_is_widened_to_the_tokens_that_it_touches_and_one_without_any_is_an_error(tiny):
    record = {
        "id": "r",
        "question": "Why?",
        "passages": ["Ice melts.", "Tin bends."],
        "answer": "Ice is cited. [cite_1]",
    }
    tokens = [(t.start, t.end) for t in tiny_model("llama").encode_answer(record["answer"]).tokens]
    start, end = next((s, e) for s, e in tokens if e - s == 2 and " " not in record["answer"][s:e])
    spans = {"inside": [start + 1, end], "whole": [start, end], "blank": [3, 4], "marker": [14, 22], "in it": [16, 18]}
    asked = ("attribute", "-", "--method", "occlusion,word-overlap", "--model", tiny)
    found = lines(run(*asked, stdin="\n".join(json.dumps(record | {"spans": [span]}) for span in spans.values())))
    inside, _, whole, _, *wrong = found
    assert inside["scores"] == whole["scores"] != [[0.0, 0.0]]
    assert [line["error"]["type"] for line in wrong] == ["RecordError"] * 3
    assert all("has no words of its own" in line["error"]["message"] for line in wrong)
    assert "Span [3, 4) of the answer, ' '" in wrong[0]["error"]["message"]
    (words,) = lines(run(*asked[:3], "word-overlap", stdin=json.dumps(record | {"spans": [[1, 2]]})))
    assert words["scores"] == [[1.0, 0.0]]
    (empty,) = lines(run(*asked[:3], "word-overlap", stdin=json.dumps(record | {"answer": ""})))
    assert "has no answer" in empty["error"]["message"]


def test_a_method_that_fails_leaves_the_lines_of_the_others(tiny):
    record = {"id": "r", "question": "Why?", "passages": ["Ice melts."], "answer": "Ice, it melts.", "spans": [[3, 4]]}
    asked = ("attribute", "-", "--model", tiny, "--method")
    result = run(*asked, "word-overlap,occlusion", stdin="\n".join(map(json.dumps, (record, {**record, "spans": []}))))
    done, failed, *second = lines(result)
    assert (done["id"], done["method"]) == ("r", "occlusion") and result.exit_code == 1
    assert (failed["id"], failed["methods"]) == ("r", ["word-overlap"]) and "no words" in failed["error"]["message"]
    assert [line["method"] for line in second] == ["word-overlap", "occlusion"]
    more = record | {"passages": ["Ice melts.", "Tin bends."]}
    many = run(*asked, "keep-one,occlusion", "--set", "occlusion.max_sources=1", stdin=json.dumps(more))
    one, failed = lines(many)
    assert one["method"] == "occlusion" and "keep-one scores up to 1 passages" in failed["error"]["message"]
    unknown = run(*asked, "occlusion,word-overlp", stdin=json.dumps(record))
    assert (unknown.exit_code, unknown.stdout) == (2, "") and "'word-overlp'" in unknown.stderr


def test_an_audited_record_keeps_its_spans_for_what_explains_them(tiny):
    record = {"question": "Why?", "passages": ["Ice melts.", "Tin bends."], "answer": "Ice melts. Tin bends too."}
    spans = [[0, 3], [11, 20]]
    outside, kept = lines(
        run("audit", "-", stdin="\n".join(json.dumps(record | {"spans": s}) for s in ([[0, 99]], spans)))
    )
    assert "Span [0, 99) is not inside the answer" in outside["error"]["message"]
    padded = record | {"answer": f"  {record['answer']}\n", "spans": [[2, 5]]}
    (line,) = lines(run("audit", "-", stdin=json.dumps(padded)))
    found = json.loads(run("analyse", line["case"], "word overlap").stdout)["result"]
    assert found["spans"][-1] == [2, 5], "they count the answer as it is given"
    for kind, given in (
        ("occlusion", (f"model={tiny}", "floors=false")),
        ("word overlap", ()),
        ("occlusion of sentences", (f"model={tiny}",)),
    ):
        result = run("analyse", kept["case"], kind, *(part for one in given for part in ("--with", one)))
        found = json.loads(result.stdout)["result"]
        assert found["spans"][:3] == [[0, 25], [0, 10], [11, 25]]
        wide = found["spans"][3:]
        assert all(a <= start < end <= b for (start, end), (a, b) in zip(spans, wide, strict=True)), kind
    assert run("replay", kept["case"]).exit_code == 0


def test_a_number_that_is_not_finite_is_named_and_the_other_records_are_read():
    good = {"user_input": "Why?", "retrieved_contexts": ["Ice melts."], "response": "Ice melts.", "faithfulness": 1.0}
    bad = good | {"scores": {"faithfulness": [1.0, float("nan")]}}
    for written, place in (
        (json.dumps([bad, good]), "Record 1: `scores.faithfulness[1]`"),
        ("\n".join(map(json.dumps, (bad, good))), "Line 1: `scores.faithfulness[1]`"),
    ):
        for command in ("audit", "import"):
            refused, kept = lines(run(command, "-", stdin=written))
            assert refused["error"]["message"].startswith(f"{place} is NaN or infinite"), command
            assert "case" in kept
    deep = '{"user_input": "Why?", "x": ' + "[" * 600 + "NaN" + "]" * 600 + "}"
    refused, kept = lines(run("audit", "-", stdin=f"{deep}\n{json.dumps(good)}"))
    assert "is NaN or infinite" in refused["error"]["message"] and "case" in kept
    latin = json.dumps([bad, good | {"response": "Caf\u00e9 ice."}], ensure_ascii=False).encode("latin-1")
    assert "UTF-8" in run("audit", "-", stdin=latin).output, "no sign is replaced in silence"


def test_a_field_that_looks_misspelt_is_told_once_and_other_fields_are_passed_over():
    record = {"id": "r", "claim": "Ice melts.", "evidence": "Ice melts.", "gold": "supportive", "claims": 3}
    told = run("check", "-", stdin=json.dumps(record))
    assert (told.exit_code, told.stderr) == (0, "")
    answer = {"id": "r", "question": "Why?", "pasages": ["Ice melts."], "answer": "Ice melts."}
    told = run("facts", "-", "--evidence-from", "case", stdin="\n".join(map(json.dumps, (answer, answer))))
    assert told.stderr == "Record r: the field 'pasages' is not read. Is it 'passages'?\n"


def test_word_overlap_is_counted_without_a_model():
    record = {
        "id": "r",
        "question": "Why?",
        "passages": ["Tin bends ice.", "Ice melts."],
        "answer": "Ice melts. [cite_2]",
    }
    asked = ("attribute", "-", "--method", "word-overlap", "--model", "there-is-none")
    (line,) = lines(run(*asked, stdin=json.dumps(record)))
    assert (line["id"], line["method"], line["model"], line["unit"]) == ("r", "word-overlap", "", "share of words")
    assert line["scores"] == [[0.5, 1.0]] and line["word_for_word"] == [[False, True]]
    spans = {**record, "spans": [[0, 3], [4, 9]]}
    (line,) = lines(run(*asked, stdin=json.dumps(spans)))
    assert line["scores"] == [[1.0, 1.0], [0.0, 1.0]]
    wrong = run(
        "attribute", "-", "--method", "word-overlap,occlusion", "--model", "there-is-none", stdin=json.dumps(record)
    )
    assert wrong.exit_code == 2, "a model that is none is told where another method needs one"


def test_unrelated_passages_come_from_records_of_other_questions_and_without_any_from_the_primer(tiny):
    texts = (["Ice melts.", "Tin bends."], ["Cats purr.", "Tin bends."], ["Rain falls."])
    records = [
        {"id": str(n), "question": f"Why {n}?", "passages": passages, "answer": passages[0]}
        for n, passages in enumerate(texts)
    ]
    short = ("--set", "decoding.max_new_tokens=4", "--set", "occlusion.placebos=2")
    asked = ("attribute", "-", "--model", tiny, "--method", "occlusion,occlusion-regenerate", *short)
    found = lines(run(*asked, stdin="\n".join(map(json.dumps, records))))
    assert [line["method"] for line in found] == ["occlusion", "occlusion-regenerate"] * 3
    assert all(line["placebo_floor"] is not None for line in found[::2])
    assert any("uses 2 unrelated passages" in note for note in found[1]["notes"])
    assert all(line["seconds"] > 0 for line in found)
    alone = lines(run(*asked, stdin=json.dumps(records[0])))
    assert alone[0]["placebo_floor"] > 0 and alone[0]["placebo_floor"] != found[0]["placebo_floor"]
    assert any("uses 2 unrelated passages" in note for note in alone[1]["notes"]), "of the science primer"
    same = [record | {"question": "Why?"} for record in records]
    first, *_ = lines(run(*asked, stdin="\n".join(map(json.dumps, same))))
    assert first["placebo_floor"] == lines(run(*asked, stdin=json.dumps(same[0])))[0]["placebo_floor"]


def test_a_file_whose_records_share_their_passages_has_placebos_of_the_primer(tiny):
    record = {"passages": ["Ice melts.", "Tin bends."], "answer": "Ice melts."}
    both = [{**record, "id": str(n), "question": f"Why {n}?"} for n in range(2)]
    asked = ("attribute", "-", "--model", tiny, "--set", "occlusion.placebos=2")
    assert all(line["placebo_floor"] for line in lines(run(*asked, stdin="\n".join(map(json.dumps, both)))))


def test_the_placebo_floor_of_a_record_does_not_depend_on_the_order_of_the_file(tiny):
    records = [
        {"id": str(n), "question": f"Why {n}?", "passages": [f"{word} melts at {n} degrees."], "answer": word}
        for n, word in enumerate(("Ice", "Tin", "Lead", "Zinc", "Iron", "Gold"))
    ]
    asked = ("attribute", "-", "--model", tiny, "--set", "occlusion.placebos=2")
    ways = [lines(run(*asked, stdin="\n".join(map(json.dumps, order)))) for order in (records, records[::-1])]
    first, last = ({line["id"]: line["placebo_floor"] for line in way} for way in ways)
    assert first == last and all(first.values())


def test_a_span_outside_the_answer_is_an_error_of_that_record(tiny):
    record = {"id": "r", "question": "Why?", "passages": ["Ice."], "answer": "Ice.", "spans": [[0, 99]]}
    result = run("attribute", "-", "--model", tiny, stdin=json.dumps(record))
    assert result.exit_code == 1
    assert "Span [0, 99)" in lines(result)[0]["error"]["message"]


def test_a_map_comes_with_its_check_unless_the_settings_say_otherwise(tiny):
    record = {"id": "r", "question": "Why?", "passages": ["Ice melts.", "Tin bends."], "answer": "Ice melts."}
    case = lines(run("audit", "-", stdin=json.dumps(record)))[0]["case"]
    fast = ("--set", "faithfulness.steps=2", "--set", "faithfulness.rankings=9")
    asked = ("analyse", case, "token map", "--with", f"model={tiny}", *fast)
    (bare,) = lines(run(*asked, "--set", "faithfulness.check_maps=false"))
    assert bare["kind"] == "token map" and "check" not in bare
    assert [a.kind for a in Workbench().cases.load(case).analyses] == ["token map"]
    first = run(*asked)
    (checked,) = lines(first)
    assert {**checked, "stamp": None} == {**bare, "stamp": None, "check": checked["check"]}
    assert checked["check"]["random_abpc"]["n"] == 9 and isinstance(checked["check"]["above_random"], bool)
    assert first.stderr.count("forward passes") == 1
    held = Workbench().cases.load(case)
    assert [a.kind for a in held.analyses] == ["token map", "faithfulness"]
    again = run(*asked)
    assert lines(again)[0]["check"] == checked["check"] and "forward passes" not in again.stderr


def test_faithfulness_ends_with_a_summary(tiny):
    record = {"id": "r", "question": "Why?", "passages": ["Ice melts.", "Tin bends."], "answer": "Ice melts."}
    fast = ("--model", tiny, "--set", "faithfulness.steps=2", "--set", "faithfulness.rankings=2")
    found = lines(run("faithfulness", "-", *fast, stdin=json.dumps(record)))
    assert -1 <= found[0]["abpc"] <= 1
    assert found[-1] == {"summary": {"n": 1, "unit": "case", "abpc": found[0]["abpc"], "interval": None}}


def test_faithfulness_of_several_methods_is_a_line_each(tiny):
    record = {"id": "r", "question": "Why?", "passages": ["Ice melts.", "Tin bends."], "answer": "Ice melts."}
    fast = ("--model", tiny, "--set", "faithfulness.steps=2", "--set", "faithfulness.rankings=2")
    found = lines(run("faithfulness", "-", *fast, "--method", "occlusion,attention", stdin=json.dumps(record)))
    assert [line["method"] for line in found[:2]] == ["occlusion", "attention"]
    assert found[0]["morf"][0] == found[1]["morf"][0] == found[1]["lerf"][0]
    assert found[-1]["summary"]["methods"]["attention"]["abpc"] == found[1]["abpc"]
    wrong = run("faithfulness", "-", "--method", "astrology", stdin=json.dumps(record))
    assert wrong.exit_code == 2
    assert "input-x-gradient" in wrong.output


def test_ingest_maps_fields_and_search_finds_by_record_id(tmp_path, monkeypatch):
    monkeypatch.setattr("engine.corpus.collection.DEFAULT", ScriptedEmbedder().name)
    path = tmp_path / "records.jsonl"
    path.write_text('{"key": "k1", "name": "Kilns", "body": "The kiln of Ostrel is green."}\n', encoding="utf-8")
    mapped = run("ingest", str(path), "--corpus", "kilns", "--fields", "id=key,title=name,text=body")
    assert mapped.exit_code == 0, mapped.output
    assert lines(mapped)[0]["added"] == 1
    again = run("ingest", str(path), "--corpus", "kilns", "--fields", "id=key,title=name,text=body")
    assert lines(again)[0]["unchanged"] == 1
    hit = lines(run("search", "kiln of Ostrel", "--corpus", "kilns"))[0]["hits"][0]
    assert (hit["document"], hit["text"]) == ("k1", "The kiln of Ostrel is green.")
    listed = lines(run("corpora"))
    assert (listed[0]["name"], listed[0]["health"]) == ("kilns", "good")
    (home() / "corpora" / "kilns" / "manifest.json").write_text("{")
    (damaged,) = lines(run("corpora"))
    assert (damaged["name"], damaged["health"], damaged["documents"]) == ("kilns", "damaged", None)
    assert "Remove it" in damaged["notes"][0]


def test_a_folder_that_no_corpus_can_be_named_by_leaves_the_others_listed(tmp_path, monkeypatch):
    monkeypatch.setattr("engine.corpus.collection.DEFAULT", ScriptedEmbedder().name)
    (tmp_path / "kilns.txt").write_text("The kiln of Ostrel is green.", encoding="utf-8")
    assert run("ingest", str(tmp_path / "kilns.txt"), "--corpus", "kilns").exit_code == 0
    shutil.copytree(home() / "corpora" / "kilns", home() / "corpora" / "a (copy)")
    copied, whole = lines(run("corpora"))
    assert (copied["name"], copied["health"]) == ("a (copy)", "damaged")
    assert (whole["name"], whole["health"]) == ("kilns", "good")
    assert "cannot name a corpus" in copied["notes"][0]


def test_ingest_says_which_document_was_replaced_by_which_file(tmp_path, monkeypatch):
    monkeypatch.setattr("engine.corpus.collection.DEFAULT", ScriptedEmbedder().name)
    folder = tmp_path / "kilns"
    for name in ("a", "b"):
        (folder / name).mkdir(parents=True)
    one, other, rows = folder / "a" / "x.txt", folder / "b" / "x.txt", folder / "rows.jsonl"
    one.write_text("The kiln is green.")
    other.write_text("The kiln is red.")
    rows.write_text('{"_id": "r", "text": "The oven is green."}')
    (first,) = lines(run("ingest", str(one), str(rows), "--corpus", "kilns"))
    assert (first["added"], first["replacements"]) == (2, [])
    rows.write_text('{"_id": "r", "text": "The oven is red."}')
    (second,) = lines(run("ingest", str(other), str(rows), "--corpus", "kilns"))
    assert (second["replaced"], second["replacements"]) == (2, [["x.txt", str(other)], ["r", str(rows)]])
    (whole,) = lines(run("ingest", str(folder / "a"), str(folder / "b"), "--corpus", "kilns"))
    assert (whole["replaced"], len(whole["skipped"])) == (1, 1)
    (both,) = lines(run("ingest", str(folder), "--corpus", "folders"))
    assert {"added": both["added"], "replacements": both["replacements"]} == {"added": 3, "replacements": []}


def test_a_new_corpus_of_which_nothing_can_be_read_is_gone_again(tmp_path, monkeypatch):
    monkeypatch.setattr("engine.corpus.collection.DEFAULT", ScriptedEmbedder().name)
    (tmp_path / "kiln.xyz").write_text("The kiln is green.")
    refused = run("ingest", str(tmp_path / "kiln.xyz"), "--corpus", "kilns")
    assert refused.exit_code == 1 and "unknown format" in refused.output
    assert lines(run("corpora")) == []
    (tmp_path / "kiln.txt").write_text("The kiln is green.")
    assert run("ingest", str(tmp_path / "kiln.txt"), "--corpus", "kilns").exit_code == 0
    assert run("ingest", str(tmp_path / "kiln.xyz"), "--corpus", "kilns").exit_code == 1
    assert [corpus["documents"] for corpus in lines(run("corpora"))] == [1]


def test_a_line_that_is_not_utf_8_is_told_in_its_place_and_a_byte_order_mark_is_passed_over(tmp_path, monkeypatch):
    monkeypatch.setattr("engine.corpus.collection.DEFAULT", ScriptedEmbedder().name)
    (tmp_path / "kiln.txt").write_text("The kiln is green.")
    assert run("ingest", str(tmp_path / "kiln.txt"), "--corpus", "kilns").exit_code == 0
    queries = tmp_path / "queries.jsonl"
    queries.write_bytes(
        b'\xef\xbb\xbf{"id": "a", "text": "kiln"}\n{"id": "b", "text": "caf\xe9"}\n{"id": "c", "text": "green"}'
    )
    result = run("search", "--queries", str(queries), "--corpus", "kilns")
    first, second, third = lines(result)
    assert result.exit_code == 1 and (first["id"], third["id"]) == ("a", "c") and first["hits"] and third["hits"]
    assert second["error"] == {"type": "RecordError", "message": "Line 2 is not UTF-8 text. Save the file as UTF-8."}
    claim = b'\xef\xbb\xbf{"id": "r", "claim": "Ice melts.", "evidence": "Ice melts."}'
    assert [line["id"] for line in lines(run("check", "-", stdin=claim))] == ["r"]


def test_search_takes_settings(tmp_path, monkeypatch):
    monkeypatch.setattr("engine.corpus.collection.DEFAULT", ScriptedEmbedder().name)
    pools = []
    monkeypatch.setattr("engine.workbench.Workbench.reranker", None)
    monkeypatch.setattr("engine.commands.corpora.rerank_hits", lambda text, hits, _: pools.append(len(hits)) or hits)
    path = tmp_path / "kilns.jsonl"
    path.write_text("\n".join(json.dumps({"_id": f"k{i}", "text": f"Kiln {i} is green."}) for i in range(6)))
    assert run("ingest", str(path), "--corpus", "kilns").exit_code == 0
    asked = ("search", "kiln", "--corpus", "kilns", "--rerank", "--set")
    assert len(lines(run(*asked, "retrieval.rerank_pool=4", "-k", "2"))[0]["hits"]) == 2
    assert len(lines(run(*asked, "retrieval.k=5"))[0]["hits"]) == 5
    assert pools == [4, 6]
    asked = ("search", "kiln", "--corpus", "kilns", "-k", "2", "--mode", "bm25")
    paper = ("--set", "paper=attr-rag", "--set", f"retrieval.embedder={ScriptedEmbedder().name}")  # k = 30, dense
    (found,), (alone,) = lines(run(*asked, *paper)), lines(run(*asked))
    assert found == alone and len(found["hits"]) == 2


def test_a_corpus_keeps_the_embedder_that_it_was_made_with(tmp_path):
    scripted = ScriptedEmbedder().name
    path = tmp_path / "kilns.jsonl"
    path.write_text('{"_id": "k1", "title": "Kilns", "text": "The kiln of Ostrel is green."}\n', encoding="utf-8")
    assert run("ingest", str(path), "--corpus", "kilns", "--embedder", scripted).exit_code == 0
    assert [(row["name"], row["embedder"]) for row in lines(run("corpora"))] == [("kilns", scripted)]
    other = run("search", "kiln", "--corpus", "kilns", "--set", "retrieval.embedder=all-MiniLM-L6-v2")
    assert other.exit_code == 2 and 'corpora rebuild "kilns" --embedder "all-MiniLM-L6-v2"' in other.stderr
    again = run("ingest", str(path), "--corpus", "kilns", "--embedder", "all-MiniLM-L6-v2")
    assert again.exit_code == 2 and "was embedded with" in again.stderr
    (rebuilt,) = lines(run("corpora", "rebuild", "kilns", "--embedder", "all-MiniLM-L6-v2", "--chunking", "words"))
    assert (rebuilt["embedder"], rebuilt["dimensions"], rebuilt["chunking"]["method"]) == (
        "all-MiniLM-L6-v2",
        384,
        "words",
    )
    asked = ("search", "kiln caf\udce9", "--corpus", "kilns")  # a byte that is not UTF-8, as a shell hands it over
    found = lines(run(*asked, "--set", "retrieval.embedder=all-MiniLM-L6-v2"))
    assert found[0]["hits"][0]["document"] == "k1"
    assert lines(run("corpora", "rebuild", "kilns"))[0]["chunking"]["method"] == "words"


def test_an_embedder_that_cannot_be_had_is_told_before_a_corpus_is_made(tmp_path):
    path = tmp_path / "kilns.txt"
    path.write_text("The kiln is green.")
    absent = run("ingest", str(path), "--corpus", "kilns", "--embedder", str(tmp_path / "absent"))
    assert absent.exit_code == 2 and "cannot be loaded" in absent.stderr
    lonely = run("ingest", str(path), "--corpus", "kilns", "--embedder", "towers:one")
    assert lonely.exit_code == 2 and "towers:QUESTION_ENCODER,PASSAGE_ENCODER" in lonely.stderr
    assert lines(run("corpora")) == []


def test_a_paper_sets_everything_that_it_gives_and_what_follows_it_comes_after():
    settings = Settings().apply(["retrieval.k=7", "paper=attr-rag", "selection.min_metrics=2"])
    assert (settings.retrieval.k, settings.retrieval.mode, settings.selection.min_metrics) == (30, "dense", 2)
    for name, paper in PAPERS.items():
        as_given = Settings().apply([f"paper={name}"])
        assert {path: as_given.value(path) for path in paper.gives} == {p: g.value for p, g in paper.gives.items()}
    elsewhere = ["refinement.ranked_by=occlusion", "refinement.trigger=concentration", "paper=refinement"]
    second = Settings().apply(elsewhere)
    assert (second.refinement.ranked_by, second.refinement.trigger) == ("input x gradient", "auto")
    assert second.occlusion.count_citation_markers  # the paper's first ten tokens are any tokens
    with pytest.raises(InputError, match="attr-rag, refinement, raise, are"):
        Settings().apply(["paper=dpr"])


def test_what_a_command_has_no_use_for_is_a_wrong_call():
    assert run("audit", "-", "--set", "retrieval.k=3", stdin="").exit_code == 2
    result = run("facts", "-", "--method", "rarr", "--entropy", "embedded", stdin="")
    assert result.exit_code == 2 and "Leave out one of the two" in result.stderr


@pytest.mark.parametrize("command", ["audit", "decompose", "advise", "import"])
@pytest.mark.parametrize("given", ["", "\n"])
def test_a_file_without_records_is_an_error(command, given):
    result = run(command, "-", stdin=given)
    assert result.exit_code == 1 and [line["error"]["type"] for line in lines(result)] == ["RecordError"]


def test_an_empty_list_of_records_is_an_error_and_delete_and_restore_need_a_case():
    result = run("audit", "-", stdin="[]")
    assert result.exit_code == 1 and "no records" in lines(result)[0]["error"]["message"]
    assert [run(command).exit_code for command in ("delete", "restore")] == [2, 2]


def test_a_reserved_name_of_a_corpus_is_called_so(tmp_path):
    result = run("ingest", str(tmp_path), "--corpus", "nul")
    assert result.exit_code == 2 and "'nul' is a reserved name" in result.stderr
    assert "1 to 64 letters" in run("ingest", str(tmp_path), "--corpus", "a/b").stderr


def test_a_mapping_that_is_none_is_a_wrong_call(tmp_path):
    for wrong in ("body", "id", "text="):
        assert run("ingest", str(tmp_path), "--corpus", "x", "--fields", wrong).exit_code == 2


def test_an_empty_id_field_numbers_the_records(tmp_path, monkeypatch):
    monkeypatch.setattr("engine.corpus.collection.DEFAULT", ScriptedEmbedder().name)
    (tmp_path / "r.jsonl").write_text('{"_id": "k1", "text": "The kiln is green."}\n', encoding="utf-8")
    numbered = run("ingest", str(tmp_path / "r.jsonl"), "--corpus", "kilns", "--fields", "id=")
    assert numbered.exit_code == 0, numbered.output
    assert list(Collection.open("kilns").snapshot().documents) == ["r.jsonl#1"]


def test_an_unknown_way_of_answering_is_refused_and_not_taken_for_the_default():
    with pytest.raises(InputError, match=r"'attr_rag'.*attr-rag"):
        Workbench().ask("What rusts?", "metals", method="attr_rag")


def test_steps_without_a_method_is_a_wrong_call():
    result = run("steps", "-", "--corpus", "metals", "--method", ",", stdin="")
    assert result.exit_code == 2 and "No method was given" in result.stderr


def test_a_setting_that_is_a_list_is_written_with_commas():
    assert Settings().apply(["refinement.seeds=1, 2"]).refinement.seeds == (1, 2)
    with pytest.raises(InputError, match="wrong type"):
        Settings().apply(["refinement.seeds=1,two"])


@pytest.mark.parametrize(
    "wrong", ["faithfulness.steps=0", "retrieval.k=-3", "selection.max_share=7", "decoding.top_p=2"]
)
def test_a_setting_out_of_its_range_is_a_wrong_call(wrong):
    result = run("ask", "why", "--corpus", "x", "--set", wrong)
    assert result.exit_code == 2 and f"$.{wrong.partition('=')[0]}" in result.stderr


def test_a_calibrated_verifier_checks_and_a_dry_run_keeps_none():
    pairs = [
        {"claim": f"Box {n} holds {n} coins.", "evidence": f"Box {n} holds {n + n % 2} coins.", "verdict": verdict}
        for n, verdict in enumerate(["supportive", "editing_required"] * 30)
    ]
    text = "\n".join(map(json.dumps, pairs))
    (dry,) = lines(run("calibrate-verifier", "-", "--name", "boxes", "--dry-run", stdin=text))
    assert (dry["kept"], dry["pairs"], dry["base"]) == (False, 60, "embedded")
    one = json.dumps(pairs[0])
    assert run("check", "-", "--verifier", dry["verifier"], stdin=one).exit_code == 2
    assert lines(run("calibrate-verifier", "-", "--name", "boxes", stdin=text)) == [{**dry, "kept": True}]
    (ruled,) = lines(run("check", "-", "--verifier", dry["verifier"], stdin=one))
    assert (ruled["verdict"], ruled["verifier"]) == ("supportive", "calibrated:boxes")
    assert "your pairs of boxes" in ruled["note"]
    torn = run("calibrate-verifier", "-", "--name", "torn", stdin=text + '\n{"claim": "A.", "evidence": "B."}')
    assert (torn.exit_code, torn.stdout) == (2, "")
