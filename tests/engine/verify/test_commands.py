from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from engine.commands import main, verify
from tests.engine.verify.scripted import WordVerifier


@pytest.fixture(autouse=True)
def words(monkeypatch):
    monkeypatch.setattr(verify, "load_entailment", lambda name: WordVerifier())


def lines(command, records, *options):
    text = "\n".join(record if isinstance(record, str) else json.dumps(record) for record in records)
    result = CliRunner().invoke(main, [command, "-", *options], input=text)
    return result.exit_code, [json.loads(line) for line in result.stdout.splitlines()]


def test_check_gives_a_verdict_and_scores_a_line_and_goes_on_after_a_bad_record():
    code, found = lines(
        "check", [{"id": "a", "claim": "Ice melts.", "evidence": "Ice melts."}, "{", {"claim": " ", "evidence": ""}]
    )
    assert code == 1
    assert (found[0]["id"], found[0]["verdict"]) == ("a", "supportive")
    assert sum(found[0]["scores"].values()) == pytest.approx(1)
    assert [line["error"]["type"] for line in found[1:]] == ["RecordError", "RecordError"]


def test_decompose_gives_verbatim_clauses_with_facts():
    text = "Ann won and lost. It rained."
    code, found = lines("decompose", [{"_id": 7, "text": text}])
    assert code == 0
    clauses = found[0]["clauses"]
    assert all(text[c["start"] : c["end"]] == c["text"] for c in clauses)
    assert clauses[0]["facts"] == ["Ann won", "Ann lost"]
    assert found[0]["id"] == "7"


def test_edit_says_what_changed_and_leaves_the_rest():
    code, found = lines("edit", [{"id": "a", "claim": "It cost 5 euros.", "evidence": "It cost 6 euros."},
                                 {"id": "b", "claim": "Ice melts.", "evidence": "Ice melts."}])  # fmt: skip
    assert code == 0
    assert (found[0]["edited"], found[0]["changed"]) == ("It cost 6 euros.", [[8, 9, "5", "6"]])
    assert (found[1]["edited"], found[1]["changed"]) == ("Ice melts.", [])


def test_facts_gives_the_whole_record(monkeypatch):
    from engine.models.embedder import ScriptedEmbedder
    from engine.workbench import Workbench

    monkeypatch.setattr(Workbench, "embedder", ScriptedEmbedder(256))
    record = {
        "id": "a",
        "question": "When?",
        "answer": "The gate opened in 1932.",
        "passages": ["The gate opened in 1934."],
    }
    code, found = lines("facts", [record, {"id": "b", "question": "When?", "answer": ""}], "--evidence-from", "case")
    assert code == 1
    assert found[0]["revised"] == "The gate opened in 1934."
    assert {"attr_r", "attr_p", "pres", "facts", "edits", "decomposition", "report"} <= found[0].keys()
    assert found[0]["outcomes"] == {"edited": 1}
    assert found[1]["error"]["type"] == "RecordError"
