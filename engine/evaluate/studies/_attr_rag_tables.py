"""Attr-RAG's tables from rows: seven similarities to the reference, winners, six criteria."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from engine.attribute.rag_baselines import winners
from engine.evaluate.config import Config
from engine.evaluate.studies._drawing import line, notes, questions_in
from engine.evaluate.summary import compare, comparison_table, measure, of_method
from engine.evaluate.values import Axis, Cell, Column, Figure, Measure, Results, Row, Table
from engine.judge import CRITERIA, judge_warning

SIMILARITIES = {
    "cosine": "cosine",
    "bleu": "BLEU",
    "jaccard": "Jaccard",
    "rouge_1": "ROUGE-1 F1",
    "rouge_2": "ROUGE-2 F1",
    "rouge_l": "ROUGE-L F1",
    "rouge_lsum": "ROUGE-Lsum F1",
}
OURS = "attr-rag"


def methods_in(rows: Sequence[Row]) -> list[str]:
    """The methods in running order."""
    return list(dict.fromkeys(row.unit.method for row in rows))


def similarity_tables(rows: Sequence[Row]) -> Results:
    """Means over questions, the same question by question, wins, Attr-RAG against each baseline."""
    names = methods_in(rows)
    tables = [_means(rows, names), _by_question(rows, names)]
    if OURS in names and len(names) > 1:
        found = compare(rows, "rouge_l", names, against=OURS)
        tables.append(comparison_table("against_attr_rag", "ROUGE-L F1 of each baseline", "F1", OURS, found))
    return Results(tables=tuple(tables), figures=(_figure(rows, names),))


def _means(rows: Sequence[Row], names: Sequence[str]) -> Table:
    won = wins(rows)
    columns = [Column(name=title, unit="0 to 1", better="higher") for title in SIMILARITIES.values()]
    return Table(
        name="similarities",
        title="Answers against the reference, mean over questions",
        columns=(
            Column(name="method"),
            *columns,
            Column(name="won", unit="questions", better="higher"),
            Column(name="passages"),
            Column(name="failed", unit="units"),
        ),
        rows=tuple(
            (
                name,
                *(measure(of_method(rows, name), field) for field in SIMILARITIES),
                won[name],
                measure(of_method(rows, name), "passages", None),
                sum(row.state == "failed" for row in of_method(rows, name)),
            )
            for name in names
        ),
        n=questions_in(rows),
        shows="Attr-RAG, Table I",
        notes=notes(rows, "Won: most of the seven metrics favour the method; methods can tie. A failed unit counts 0."),
    )


def wins(rows: Sequence[Row]) -> Counter[str]:
    """Questions (under a seed) that each method wins; a failed unit has 0 in every metric."""
    groups: dict[tuple[str, int], dict[str, dict[str, float]]] = {}
    for row in rows:
        own = {field: float(row.values.get(field) or 0.0) for field in SIMILARITIES}
        groups.setdefault((row.unit.example, row.unit.seed), {})[row.unit.method] = own
    return Counter(name for table in groups.values() for name in winners(table))


def _by_question(rows: Sequence[Row], names: Sequence[str]) -> Table:
    """As the paper prints it: a block a question, a line a metric, a column a method."""
    lines: list[tuple[Cell, ...]] = []
    for example in dict.fromkeys(row.unit.example for row in rows):
        own = [row for row in rows if row.unit.example == example]
        for field, title in SIMILARITIES.items():
            lines.append((example, title, *(measure(of_method(own, name), field).value for name in names)))
    return Table(
        name="similarities_by_question",
        title="Answers against the reference, question by question",
        columns=(
            Column(name="question"),
            Column(name="metric"),
            *(Column(name=name, better="higher") for name in names),
        ),
        rows=tuple(lines),
        n=questions_in(rows),
        shows="Attr-RAG, Table I",
        notes=notes(rows)[1:],
    )


def _figure(rows: Sequence[Row], names: Sequence[str]) -> Figure:
    shown = {"rouge_l": "ROUGE-L F1", "cosine": "cosine", "bleu": "BLEU"}
    return Figure(
        name="similarities",
        title="Answers against the reference",
        kind="bars",
        x=Axis(name="method"),
        y=Axis(name="similarity", unit="0 to 1"),
        series=tuple(
            line(title, {name: measure(of_method(rows, name), field) for name in names})
            for field, title in shown.items()
        ),
        shows="Attr-RAG, Table I",
    )


def criteria_table(rows: Sequence[Row]) -> Table:
    """Mean scores by criterion over the replies that could be read, and how many could not."""
    names = methods_in(rows)
    return Table(
        name="criteria",
        title="Six criteria by the judge",
        columns=(
            Column(name="method"),
            *(Column(name=name, unit="0 to 5", better="higher") for name in CRITERIA),
            Column(name="total", unit="0 to 30", better="higher"),
            Column(name="read", unit="replies"),
            Column(name="unparsed", unit="replies"),
            Column(name="failed", unit="units"),
        ),
        rows=tuple((name, *_criteria(of_method(rows, name))) for name in names),
        n=questions_in(rows),
        shows="Attr-RAG, Table II",
        notes=notes(rows, "A reply without all six scores has no total; its readable scores stay in their columns."),
    )


def _criteria(rows: Sequence[Row]) -> tuple[Cell, ...]:
    flat = [replace(row, values={**row.values, **(row.values.get("criteria") or {})}) for row in rows]
    scores: list[Measure] = [measure(flat, name, None) for name in (*CRITERIA, "total")]
    failed = sum(row.state == "failed" for row in rows)
    unparsed = sum(row.unparsed for row in rows)
    return (*scores, len(rows) - failed - unparsed, unparsed, failed)


def judge_notes(config: Config) -> tuple[str, ...]:
    """What has to stand beside this judge."""
    said = judge_warning(config.judge, [config.model])
    return (said,) if said else ()
