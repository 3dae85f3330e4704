import pytest
from msgspec.structs import replace

from engine.answer.write import Written
from engine.cases.case_file import read_case_file
from engine.core.errors import InputError
from engine.core.metrics import rouge_l
from engine.core.values import Answer, Hit, Stamp
from engine.studies.catalogue import attr_rag_answers, attr_rag_chunks
from engine.studies.config import parse_config
from engine.studies.evaluate import evaluate
from engine.studies.example import Example, case_of
from engine.studies.values import Failure, Row, Unit
from tests.engine.studies.stand_ins import StandIns

CONFIG = """
study = "attr-rag-answers"
data = "bench-chemistry"
n = 2
methods = ["vanilla-10", "re-ranked-10", "attr-rag"]
judge = "judge"

[where]
kind = "long"

[settings.retrieval]
mode = "bm25"
k = 4
"""
CRITERIA = "relevance: 5\ncorrectness: 4\ncompleteness: 3\ncoherence: 5\nclarity: 4\nmissing steps: 2"


def reply(text):
    """The first words of every passage in the prompt."""
    lines = [line for line in text.splitlines() if "cite_" in line]
    return " ".join(" ".join(line.split()[:6]) for line in lines) or "Nothing."


def test_tables_one_and_two(sample_home, tmp_path):
    asked = []

    def judge(text):
        asked.append(text)
        return CRITERIA if len(asked) % 6 else "No idea."

    tools = StandIns(parse_config(CONFIG), reply, judge)
    found = evaluate(CONFIG, tmp_path / "run", tools=tools)
    assert len(found.rows) == 6 and not found.failures and len(asked) == 6
    tables = {table.name: table for table in found.results.tables}
    criteria = {row[0]: row for row in tables["criteria"].rows}
    assert sum(row[-2] for row in criteria.values()) == 1  # one reply could not be read
    assert {row[7].value for row in criteria.values()} == {23.0}
    means = {row[0]: row for row in tables["similarities"].rows}
    assert means["re-ranked-10"][1:8] == means["vanilla-10"][1:8]  # this re-ranker keeps the order
    assert sum(row[8] for row in means.values()) >= 2  # each question has a winner
    for row in found.rows:
        case = read_case_file((tmp_path / "run" / "cases" / f"{row.case}.json").read_bytes()).case
        assert len(case.passages) == row.values["passages"]
        if row.unit.method == "attr-rag":
            assert row.values["answers"] == row.values["sets"] + 3 + 3 and case.analyses[0].kind == "attr-rag"
    assert tables["similarities_by_question"].n == 2 and len(tables["similarities_by_question"].rows) == 14


CHUNKS = """
study = "attr-rag-chunks"
data = "bench-chemistry"
n = 3
methods = ["top-5", "top-10"]

[settings.retrieval]
mode = "bm25"
"""


def test_rouge_l_is_that_of_the_answer_written(sample_home, tmp_path):
    found = evaluate(
        CHUNKS, tmp_path / "run", tools=StandIns(parse_config(CHUNKS), lambda text: "Filter the crystals.")
    )
    assert {figure.name for figure in found.results.figures} == {"fig_1a", "fig_1b", "fig_1c"}
    from engine.studies.datasets import load

    references = {example.id: example.references[0] for example in load("bench-chemistry")}
    for row in found.rows:
        assert row.values["rouge_l"] == rouge_l(references[row.unit.example], "Filter the crystals.")


def test_a_depth_that_is_not_run_is_said_before_the_run(sample_home, tmp_path):
    config = f"{CHUNKS}\n[options]\ndepth = 12\n"
    tools = StandIns(parse_config(config), lambda text: pytest.fail("something was asked"))
    with pytest.raises(InputError, match="depth is 12"):
        evaluate(config, tmp_path / "run", tools=tools)


def failed(example, method):
    failure = Failure(type="ModelError", message="gone")
    return Row(unit=Unit(example=example, method=method, seed=1), state="failed", failure=failure)


def counted(example, method, needed, rouge_l):
    values = {"needed": needed, "gold": 4, "found": 2, "recall": 0.5, "density": 0.2, "rouge_l": rouge_l}
    return Row(unit=Unit(example=example, method=method, seed=1), state="done", values=values)


def test_a_failed_unit_belongs_to_the_group_of_its_question():
    """Question a needs 4 passages, b needs 1, c needs 2; b fails at 5, c at 10."""
    rows = [counted("a", "top-5", 4, 0.8), failed("b", "top-5"), counted("c", "top-5", 2, 0.6)]
    rows += [counted("a", "top-10", 4, 0.6), counted("b", "top-10", 1, 1.0), failed("c", "top-10")]
    found = attr_rag_chunks.results(parse_config(CHUNKS), rows)
    by_depth, by_needed = found.tables
    assert [(line[0], line[4].value, line[4].n) for line in by_depth.rows] == [(5, 0.8, 1), (10, 0.6, 1)]
    assert [(line[0], line[1].value) for line in by_needed.rows] == [(1, 1.0), (2, 0.0), (4, 0.6)]
    every = attr_rag_chunks.results(parse_config(CHUNKS), [failed("a", "top-5"), *rows[1:]])
    assert every.tables[0].rows[0][4].value == 0.0, "all failed at 5, and there are answers at 10"


def test_where_lengths_are_known_a_question_of_unknown_length_is_not_a_long_one():
    known = [counted("a", "top-5", 4, 0.8), counted("b", "top-5", None, 0.2)]
    by_depth = attr_rag_chunks.results(parse_config(CHUNKS), known).tables[0]
    assert [(line[0], line[4].value, line[4].n) for line in by_depth.rows] == [(5, 0.8, 1)]
    unknown = attr_rag_chunks.results(parse_config(CHUNKS), [replace_needed(one) for one in known]).tables[0]
    assert unknown.rows[0][4].n == 2 and "All questions" in " ".join(unknown.notes)


def replace_needed(one):
    return replace(one, values={**one.values, "needed": None})


def test_a_question_is_won_once_whatever_its_seeds():
    low, high = (dict.fromkeys(attr_rag_answers.SIMILARITIES, value) for value in (0.2, 0.9))
    scores = {("x", 1): high, ("y", 1): low, ("x", 2): low, ("y", 2): low}
    rows = [Row(unit=Unit(example="a", method=m, seed=s), state="done", values=v) for (m, s), v in scores.items()]
    assert attr_rag_answers.wins(rows) == {"x": 1}


def test_nobody_wins_a_question_that_all_methods_failed():
    scores = dict.fromkeys(attr_rag_answers.SIMILARITIES, 0.5)
    done = Row(unit=Unit(example="b", method="x", seed=1), state="done", values=scores)
    rows = [failed("a", "x"), failed("a", "y"), done, failed("b", "y")]
    assert attr_rag_answers.wins(rows) == {"x": 1}


def test_gold_that_lost_an_overlap_counts_as_read(sample_home):
    tools = StandIns(parse_config(CONFIG), reply, reply)
    passages = tools.collection("bench-chemistry").snapshot().passages
    whole, other = passages[0], passages[5]
    cut = [replace(whole, id=f"{whole.id}+21", start=whole.start + 21, text=whole.text[21:]), other]
    example = Example(id="1", question="Why?", gold=(whole.id, passages[9].id), corpus="bench-chemistry")
    answer = Written(answer=Answer(text=""), stamp=Stamp(model="m"))
    case = case_of(example, cut, answer, hits=[Hit(passage=whole, score=1.0)])
    assert attr_rag_answers._gold(tools, example, case) == {"gold_found": 0.5, "gold_read": 0.5}
