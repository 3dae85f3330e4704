from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from engine import workbench
from engine.analyses.kind import Loaders
from engine.commands import main
from engine.models.protocols import Judged
from engine.models.scripted import ScriptedWriter
from tests.engine.are.scripted import WordVerifier
from tests.engine.are.test_baselines import asked_of


@pytest.fixture(autouse=True)
def words(monkeypatch):
    models(monkeypatch)


def models(monkeypatch, writer=None):
    """Whatever is named, the word table is the verifier and `writer` the language model."""
    tools = Loaders(verifier=lambda name: WordVerifier(), writer=lambda name: writer)
    monkeypatch.setattr(workbench, "Loaders", lambda: tools)


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
    assert 0.5 < found[0]["relevance"] <= 1
    assert [line["error"]["type"] for line in found[1:]] == ["RecordError", "RecordError"]


def test_check_says_that_evidence_against_a_claim_bears_on_it_and_other_evidence_does_not():
    against = {"id": "a", "claim": "Ice never melts.", "evidence": "Ice melts at 0 degrees."}
    beside = {"id": "b", "claim": "Ice never melts.", "evidence": "The bank opened in 1920."}
    _, (first, second) = lines("check", [against, beside])
    assert first["relevance"] > 0.5 > second["relevance"]


def test_a_verdict_by_its_own_threshold_is_told_where_another_class_scores_higher(monkeypatch):
    class Thresholds(WordVerifier):
        def judge(self, pairs, watch=None):
            scores = {"supportive": 0.44, "editing_required": 0.08, "irrelevant": 0.48}
            return [Judged("supportive" if claim == "Ice melts." else "irrelevant", scores) for claim, _ in pairs]

    tools = Loaders(verifier=lambda name: Thresholds(), writer=lambda name: None)
    monkeypatch.setattr(workbench, "Loaders", lambda: tools)
    _, (lower, highest) = lines("check", [{"claim": claim, "evidence": "E."} for claim in ("Ice melts.", "Tin.")])
    assert lower["note"].endswith("; supportive by its own threshold; irrelevant scores higher")
    assert "threshold" not in highest["note"]


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


def test_a_language_model_rules_and_edits_by_its_replies(monkeypatch):
    record = {"id": "a", "claim": "It cost 5 euros.", "evidence": "It cost 6 euros."}
    replies = ["It says 6.\ndisagrees", "It says 6.\ndisagrees", "It says 6, not 5.\nMy fix: It cost 6 euros."]
    writer = ScriptedWriter(replies, name="lm")
    models(monkeypatch, writer)
    _, (ruled,) = lines("check", [record], "--verifier", "lm:any")
    assert (ruled["verdict"], ruled["reasoning"], ruled["raw"]) == ("editing_required", "It says 6.", replies[0])
    assert ruled["verifier"] == "lm:any"
    _, (edited,) = lines("edit", [record], "--verifier", "lm:any")
    assert (edited["edited"], edited["made_by"]) == ("It cost 6 euros.", "lm")


def answer_lines(monkeypatch, *options, more=()):
    from engine.models.embedder import ScriptedEmbedder
    from engine.workbench import Workbench

    monkeypatch.setattr(Workbench, "embedder", ScriptedEmbedder(256))
    record = {
        "id": "a",
        "question": "When?",
        "answer": "The gate opened in 1932.",
        "passages": ["The gate opened in 1934."],
    }
    return lines("facts", [record, *more], *options)


def test_facts_gives_the_whole_record(monkeypatch):
    empty = {"id": "b", "question": "When?", "answer": ""}
    code, found = answer_lines(monkeypatch, "--evidence-from", "case", more=[empty])
    assert code == 1
    assert found[0]["revised"] == "The gate opened in 1934."
    assert {"attr_r", "attr_p", "pres", "facts", "edits", "decomposition", "report"} <= found[0].keys()
    assert found[0]["outcomes"] == {"edited": 1}
    assert found[1]["error"]["type"] == "RecordError"


@pytest.mark.parametrize("method", ["drqa", "rarr", "ccver", "efec-style"])
def test_facts_runs_the_methods_that_are_is_compared_with(monkeypatch, method):
    writer = asked_of("Did the gate open in 1932?", "The gate opened in 1932.")
    models(monkeypatch, writer)
    code, found = answer_lines(monkeypatch, "--method", method, "--judge", "some-model")
    assert code == 0
    assert (found[0]["method"], found[0]["name"]) == (method, method)
    assert found[0]["revised"] == ("The gate opened in 1932." if method == "drqa" else "The gate opened in 1934.")
    assert found[0]["attr_r"] == found[0]["measures"]["attr_r"]


def test_a_method_that_asks_by_a_model_is_refused_without_one():
    result = CliRunner().invoke(main, ["facts", "-", "--method", "rarr"], input="")
    assert result.exit_code == 2
    assert "language model" in result.output and "--judge MODEL" in result.output


def test_facts_without_any_source_checks_nothing(monkeypatch):
    bare = {"id": "b", "question": "When?", "answer": "The gate opened in 1932."}
    code, found = answer_lines(monkeypatch, more=[bare])
    assert code == 1 and found[0]["outcomes"] == {"edited": 1}
    assert found[1]["error"] == {
        "type": "RecordError",
        "message": "The record has no source. Give `passages` or a corpus.",
    }
    for asked in (["--evidence-from", "corpus"], ["--set", "verification.evidence_from=corpus"]):
        code, found = lines("facts", [bare], *asked)
        assert code == 1 and "Give --corpus NAME" in found[0]["error"]["message"]


def test_facts_searches_the_corpus_that_a_record_names(monkeypatch, tmp_path):
    (tmp_path / "gate.md").write_text("The gate opened in 1934.")
    CliRunner().invoke(main, ["ingest", str(tmp_path / "gate.md"), "--corpus", "gates"])
    monkeypatch.setattr(workbench, "Loaders", lambda: Loaders(verifier=lambda name: WordVerifier()))
    record = {"id": "r", "question": "When did the gate open?", "answer": "The gate opened in 1932.", "corpus": "gates"}
    code, found = lines("facts", [record, {**record, "corpus": "none"}])
    assert code == 1 and found[0]["revised"] == "The gate opened in 1934."
    assert found[1]["error"]["type"] == "CorpusNotFound"


@pytest.mark.parametrize("command", ["check", "edit", "decompose", "facts"])
def test_a_command_that_reads_a_setting_takes_it(command):
    record = {"claim": "Ice melts.", "evidence": "Ice melts.", "text": "Ice melts.", "question": "Why?"}
    given = {**record, "answer": "Ice melts.", "passages": ["Ice melts."]}
    code, found = lines(command, [given], "--seed", "3", "--set", "verification.demonstrations=1")
    assert code == 0 and "error" not in found[0]


def test_the_evidence_that_was_asked_for_is_used_next_to_a_paper(monkeypatch):
    """The paper searches a corpus alone: the flag, given by hand, decides."""
    code, found = answer_lines(monkeypatch, "--evidence-from", "case", "--set", "paper=are")
    assert code == 0 and found[0]["revised"] == "The gate opened in 1934."


def test_an_ablation_is_a_setting(monkeypatch):
    code, found = answer_lines(monkeypatch, "--set", "verification.edit=false")
    assert (code, found[0]["edits"], found[0]["facts"][0]["outcome"]) == (0, [], "contradicted")


def test_a_language_models_verdict_stands_beside_and_the_verifier_decides(monkeypatch):
    from engine.models.scripted import ScriptedWriter

    models(monkeypatch, ScriptedWriter(["It fits.\nagrees"] * 9))
    code, found = answer_lines(monkeypatch, "--judge", "some-model")
    check = found[0]["facts"][0]["iterations"][0]["checks"][0]
    assert code == 0
    assert (check["ruling"]["verdict"], check["second"]["verdict"]) == ("editing_required", "supportive")
    assert found[0]["facts"][0]["outcome"] == "edited"


def test_gold_facts_give_a_summary_of_the_decomposer():
    code, found = lines("decompose", [{"id": "a", "text": "Ann won and lost.", "gold": ["Ann won", "Ann lost"]},
                                      {"id": "b", "text": "Ann won and lost.", "gold": ["Ann won"]}])  # fmt: skip
    assert code == 0
    assert found[-1]["summary"] == {"n_c": 0.5, "d_correct": 0.75, "n": 2, "by": "word table"}
