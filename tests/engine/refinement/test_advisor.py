"""Advice by hand: every proxy, their mean, and the three branches."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from engine.cases.query import Query
from engine.commands.refine import advise as advise_command
from engine.core.values import Hit, Passage
from engine.methods.refinement.advisor import (
    CORPUS,
    TASKS,
    advise,
    branch_of,
    overlap,
    passage_count,
    score_spread,
    similarity,
    source_mix,
    specific_words,
    specificity,
)
from engine.workbench import Workbench


def made(count, documents=None, labels=None):
    return [
        Passage(
            id=f"p{i}", document=f"d{i % (documents or count)}", title="", ordinal=i, start=0, end=9, text=f"a b c{i}",
            relevant=labels[i % len(labels)] if labels else None,
        )
        for i in range(count)
    ]  # fmt: skip


def hits(*scores, **parts):
    return [Hit(passage=p, score=s, parts=parts) for p, s in zip(made(len(scores)), scores, strict=True)]


def test_the_score_spread_reads_the_first_ten():
    found = score_spread(hits(*[0.8] * 9, 0.2, 0.0))
    assert (found.figure, found.part) == pytest.approx((0.75, 0.25))
    assert score_spread(hits(0.6, 0.6)).part == 1
    assert score_spread(()).part is None


def test_the_number_of_passages_runs_from_the_papers_five_to_its_fifteen():
    assert [passage_count(n).part for n in (3, 5, 10, 15, 20)] == [0, 0, 0.5, 1, 1]


def test_the_mix_of_sources():
    assert source_mix(made(5, documents=1)).part == 0
    assert source_mix(made(5)).part == 1
    assert source_mix(made(5, documents=3)).part == pytest.approx(0.5)


def test_similarity_by_hand_and_without_vectors():
    vectors = np.array([[1, 0], [1, 0], [0, 1]], dtype=float)
    assert similarity(made(3), vectors).figure == pytest.approx(1 / 3)
    assert similarity(made(2), None).figure == pytest.approx(2 / 4)
    assert similarity(made(1), None).part is None


@pytest.mark.parametrize(
    ("question", "part"),
    [
        ("How much did Tamsin Vale receive?", 0.0),
        ("Who owns Pellworth?", 0.25),
        ("who owns the company?", 0.5),
        ("Explain the ownership.", 1.0),
        ("Describe what Pellworth did.", 0.75),
    ],
)
def test_specific_questions_are_clean_and_open_ones_noisy(question, part):
    assert specificity(question).part == part


def test_specific_words_are_names_codes_and_numbers():
    assert specific_words("What did EUR 604,000 on 9 April pay?") == ("EUR", "604,000", "9", "April")


def test_the_difficulty_is_the_mean_of_the_parts_there_are():
    found = advise("Who owns Pellworth?", made(15), s3=0.6)
    parts = {p.name: p.part for p in found.proxies}
    assert parts["top score against tenth"] is None
    given = [p for p in parts.values() if p is not None]
    assert found.difficulty == pytest.approx(np.mean(given))
    assert parts["S3 of the answer"] == pytest.approx(0.4)
    assert overlap(None).part is None


def test_the_three_branches():
    assert branch_of(5, 0.34, [])[0] == "nothing"
    assert branch_of(5, 0.35, [])[0] == "overlap heuristic, always on"
    assert branch_of(10, 0.5, [])[0] == "overlap heuristic"
    assert branch_of(10, 0.49, [])[0] == "overlap heuristic, always on"
    assert branch_of(10, 0.2, [True, False])[0] == "overlap heuristic"


@pytest.mark.parametrize(
    ("passages", "difficulty", "labels", "why"),
    [
        (3, 0.8, [], "at most 5 passages, but not under 0.35."),
        (7, 0.4, [], "more than 5 passages and fewer than 10."),
        (12, 0.2, [True], "at least 10 passages, but under 0.50 and without labels of both kinds."),
    ],
)
def test_an_unclear_case_says_which_condition_fails(passages, difficulty, labels, why):
    assert branch_of(passages, difficulty, labels)[1].endswith(why)


def test_labels_bring_v2c_and_self_refine_is_always_advised_against():
    noisy = advise("Explain it.", made(12, labels=[True, False]), s3=0.5)
    assert noisy.branch == "overlap heuristic"
    assert len(noisy.also) == 2
    assert "v2c" in noisy.also[1]
    clean = advise("How much did Tamsin Vale get?", made(3, documents=1, labels=[True]), hits(0.9, 0.1, 0.1), s3=1.0)
    assert clean.branch == "nothing"
    assert len(clean.also) == 1
    assert "Self-Refine" in clean.also[0]


def test_more_noise_is_never_less_difficult():
    base = advise("Who owns Pellworth?", made(8, documents=2), hits(0.9, 0.3), s3=0.9).difficulty
    assert advise("Who owns Pellworth?", made(14, documents=2), hits(0.9, 0.3), s3=0.9).difficulty > base
    assert advise("Who owns Pellworth?", made(8), hits(0.9, 0.3), s3=0.9).difficulty > base
    assert advise("Who owns Pellworth?", made(8, documents=2), hits(0.9, 0.8), s3=0.9).difficulty > base
    assert advise("Who owns Pellworth?", made(8, documents=2), hits(0.9, 0.3), s3=0.5).difficulty > base


def test_the_task_table_has_the_papers_six_with_both_shapes():
    assert len(TASKS) == 6
    assert [task.noisy for task in TASKS] == [False, False, True, True, True, True]
    assert all(task.k <= 5 for task in TASKS if not task.noisy)
    assert all(task.k >= 10 for task in TASKS if task.noisy)


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_a_task_becomes_a_case_of_the_shape_that_the_table_supposes(task, sample_home):
    bench = Workbench()
    made = bench.ask_task(task)
    kept = bench.cases.load(made.id)
    assert (kept.title, kept.tags, kept.question, kept.corpus) == (task.name, ("aml",), task.question, CORPUS)
    assert kept.answer.finished and kept.answer.text
    assert len(kept.passages) == task.k
    assert [row.id for row in bench.cases.rows(Query(tag="aml"))] == [made.id]


def test_the_command_prints_proxies_difficulty_and_branch(tmp_path):
    file = tmp_path / "cases.jsonl"
    record = {
        "id": "c1",
        "question": "Who built the bridge?",
        "passages": ["Lind built it.", "It is red."],
        "answer": "Lind",
    }
    file.write_text(json.dumps(record) + "\n" + json.dumps({"id": "c2", "question": "q", "passages": []}))
    result = CliRunner().invoke(advise_command, [str(file)])
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.exit_code == 1
    assert rows[0]["id"] == "c1"
    assert 0 <= rows[0]["difficulty"] <= 1
    assert rows[0]["branch"] in ("nothing", "overlap heuristic", "overlap heuristic, always on")
    assert rows[0]["proxies"]["S3 of the answer"]["figure"] == 1
    assert rows[1]["error"]["type"] == "RecordError"


@pytest.mark.parametrize("question", ["", "Who? " * 2000])
def test_the_command_refuses_a_question_that_cannot_be_asked(question):
    record = {"id": "c", "question": question, "passages": ["Lind built it."], "answer": "Lind"}
    result = CliRunner().invoke(advise_command, ["-"], input=json.dumps(record))
    assert result.exit_code == 1 and json.loads(result.stdout)["error"]["type"] == "QuestionError"
