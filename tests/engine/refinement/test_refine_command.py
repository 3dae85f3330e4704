"""The command line on a tiny model saved in a folder: records in, records out."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from engine.commands.refine import refine
from engine.models.registry import forget_models
from tests.engine.refinement.refine_cases import QUESTION, TEXTS
from tests.tiny import save_tiny

SET = ["--set", "refinement.max_new_tokens=4"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    yield str(save_tiny(tmp_path_factory.mktemp("model")))
    forget_models()


def run(tmp_path, folder, records, *options):
    file = tmp_path / "records.jsonl"
    file.write_text("\n".join(r if isinstance(r, str) else json.dumps(r) for r in records))
    result = CliRunner().invoke(refine, [str(file), "--model", folder, *SET, *options])
    return result.exit_code, [json.loads(line) for line in result.stdout.splitlines()]


def test_a_record_gives_its_variants_with_signals_and_counts(tmp_path, folder):
    record = {"id": "q1", "question": QUESTION, "passages": list(TEXTS), "answer": "Hanna Lind built it in 1874."}
    code, rows = run(tmp_path, folder, [record], "--variants", "A,B,D", "--gate", "own")
    assert code == 0
    found = rows[0]["variants"]
    assert rows[0]["id"] == "q1"
    assert set(found) == {"A", "B", "D"}
    assert found["A"]["answer"] == found["D"]["answer"] == record["answer"]
    assert found["D"]["triggered"] is False
    assert found["A"]["forwards"] == found["D"]["forwards"] == 0
    assert found["B"]["forwards"] > 0
    assert found["A"]["signals"]["S3"] == 1
    assert isinstance(found["A"]["signals"]["S2"], float)
    assert found["B"]["seconds"] > 0
    assert rows[0]["threshold"]["value"] == 0.75


def test_a_bad_record_stands_in_its_place(tmp_path, folder):
    good = {"id": "b", "question": QUESTION, "passages": [{"text": TEXTS[0], "relevant": False}]}
    code, rows = run(tmp_path, folder, ["{", {"id": "a", "passages": []}, good], "--variants", "A", "--gate", "always")
    assert code == 1
    assert [row["id"] for row in rows] == ["1", "a", "b"]
    assert "error" in rows[0] and "error" in rows[1]
    assert rows[2]["variants"]["A"]["answer"]


def test_twenty_records_set_their_own_threshold_and_nothing_is_written_twice(tmp_path, folder):
    stated = [" ".join(["Hanna"] * i + ["zzz"] * (20 - i)) for i in range(1, 21)]
    records = [{"id": str(i), "question": QUESTION, "passages": [TEXTS[0]], "answer": a} for i, a in enumerate(stated)]
    code, rows = run(tmp_path, folder, records, "--variants", "A,D", "--gate", "own")
    assert code == 0
    assert {row["threshold"]["n"] for row in rows} == {20}
    fired = [row["variants"]["D"]["triggered"] for row in rows]
    assert fired == [True] * 8 + [False] * 12  # the lower 40%
    always = run(tmp_path, folder, records, "--variants", "A,D", "--gate", "always")[1]
    assert [row["threshold"] for row in always] == [row["threshold"] for row in rows]


def test_two_records_of_one_id_keep_their_own_answers(tmp_path, folder):
    stated = [" ".join(["Hanna"] * i + ["zzz"] * (20 - i)) for i in range(1, 21)]
    records = [{"question": QUESTION, "passages": [TEXTS[0]], "answer": answer} for answer in stated]
    records[0]["id"] = records[-1]["id"] = "s1"
    records[4]["id"] = "2"  # the second record has no id, so it is called by its number
    code, rows = run(tmp_path, folder, records, "--variants", "A,D", "--gate", "own")
    assert code == 0
    assert [row["variants"]["A"]["answer"] for row in rows] == stated
    assert {row["threshold"]["n"] for row in rows} == {20}
    assert [rows[i]["id"] for i in (0, 1, 4, 19)] == ["s1", "2", "2", "s1"]


def test_judge_prints_winner_orders_and_raw_and_a_summary(tmp_path, monkeypatch):
    from engine.analyses.kind import Loaders
    from engine.commands import refine as module, shared
    from engine.models.scripted import ScriptedWriter
    from engine.workbench import Workbench

    judge = ScriptedWriter(lambda asked: f"Verdict: {'X' if 'Answer X: Lind' in asked else 'Y'}", name="scripted")
    monkeypatch.setattr(shared, "workbench", lambda: Workbench(tools=Loaders(writer=lambda name: judge)))
    file = tmp_path / "pairs.jsonl"
    pair = {"id": "p", "question": QUESTION, "passages": [TEXTS[0], {"text": TEXTS[1]}], "x": "Lind", "y": "Nobody"}
    bad = [{"id": "q"}, pair | {"passages": []}, pair | {"x": ""}, pair | {"y": " "}]
    file.write_text("\n".join(map(json.dumps, [pair, *bad])))
    result = CliRunner().invoke(module.judge, [str(file), "--judge", "scripted"])
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.exit_code == 1
    assert rows[0] == {
        "id": "p",
        "winner": "x",
        "orders": ["x", "x"],
        "preferred": None,
        "raw": ["Verdict: X", "Verdict: Y"],
        "judge": "scripted",
    }
    assert [row["error"]["type"] for row in rows[1:5]] == ["RecordError"] * 4
    said = ("has no passages", "The answer x is empty", "The answer y is empty")
    assert all(words in row["error"]["message"] for words, row in zip(said, rows[2:5], strict=True))
    assert (rows[5]["summary"]["wins"], rows[5]["summary"]["ties"]) == (1, 0)
