"""Attr-RAG beside vanilla and re-ranked RAG at k = 10, 20, 30 (Attr-RAG, Tables I and II).

Table I: seven similarities of the answer to the reference; the winner of a question is the method that most of them
favour. Table II: six criteria from 0 to 5, total 30, by the model that `judge` names. The pool, k, selection and
decoding are the engine's settings; Attr-RAG works on chunk sets from the top `retrieval.k`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from engine.answer.citations import without_markers
from engine.answer.context import find_context
from engine.answer.write import Write, Written
from engine.attribute.attr_rag import answers_needed
from engine.attribute.attr_rag_run import attr_rag_run
from engine.attribute.rag_baselines import DEPTHS, METHODS, against_reference, rag_baselines
from engine.attribute.regeneration import PLACEBOS, Answering
from engine.evaluate.config import Config
from engine.evaluate.example import Example
from engine.evaluate.studies._attr_rag_tables import criteria_table, judge_notes, similarity_tables
from engine.evaluate.studies._cases import case_of, tokens_of
from engine.evaluate.study import Study
from engine.evaluate.tools import Tools
from engine.evaluate.values import Estimate, Found, Results, Row, Unit
from engine.judge import judge_criteria
from engine.progress import Watch
from engine.refine.costs import metered
from engine.retrieve.search import search
from engine.types import Answer, Case, Passage, Stamp

OURS = "attr-rag"
BASELINES = {f"{method}-{depth}": (method, depth) for method in METHODS for depth in DEPTHS}


def run(tools: Tools, unit: Unit, example: Example, watch: Watch) -> Found:
    """One question by one method: its answer against the reference and under the judge."""
    with metered(None if tools.reads else tools.writer) as meter:
        case, more = (_ours if unit.method == OURS else _baseline)(tools, unit, example, watch)
    text = without_markers(case.answer.text)
    scores = against_reference({unit.method: text}, example.references[0], tools.embedder)[unit.method]
    values: dict[str, Any] = {**scores, **more, "passages": len(case.passages), "refused": case.answer.refused}
    unparsed = 0
    if tools.judge is not None:
        judged = judge_criteria(tools.judge, example.question, example.references[0], text, watch)
        values |= {"criteria": judged.scores, "total": judged.total}
        unparsed = int(judged.total is None)
    cost = replace(meter.cost, written=more.get("written", len(case.answer.tokens)))
    return Found(values=values, case=case, cost=cost, unparsed=unparsed)


def _baseline(tools: Tools, unit: Unit, example: Example, watch: Watch) -> tuple[Case, dict[str, Any]]:
    method, depth = BASELINES[unit.method]
    retrieval = tools.settings(unit.seed).retrieval
    pool = retrieval.rerank_pool if method == "re-ranked" else depth
    hits = search(tools.collection(example.corpus), example.question, replace(retrieval, k=pool))
    last: list[Written] = []
    write = _keeping(tools.write(unit.seed), last, watch)
    found = rag_baselines(example.question, hits, tools.reranker, write, (depth,), watch, (method,))
    return case_of(example, found[0].passages, last[0], hits=hits), {}


def _ours(tools: Tools, unit: Unit, example: Example, watch: Watch) -> tuple[Case, dict[str, Any]]:
    settings, collection = tools.settings(unit.seed), tools.collection(example.corpus)
    context = find_context(example.question, collection, tools.reranker, settings.retrieval)
    last: list[Written] = []
    unanswered = case_of(example, (), Written(answer=Answer(text=""), stamp=Stamp(model="")))
    made = attr_rag_run(
        replace(unanswered, chunk_sets=context.sets),
        collection.snapshot().passages,
        _keeping(tools.write(unit.seed), last, watch),
        lambda passages: _keeping(tools.write(unit.seed, passages), last, watch),
        embedder=tools.embedder,
        settings=settings.selection,
        seed=unit.seed,
        watch=watch,
    )
    found = made.found
    case = case_of(example, found.passages, last[-1], hits=context.hits)
    case = replace(case, chunk_sets=context.sets, analyses=(made.analysis(case.stamp),))
    more = {"sets": len(found.sets), "kept": len(found.selection.chosen), "filled": len(found.filled)}
    return case, {**more, "answers": len(last), "written": sum(len(w.answer.tokens) for w in last)}


def _keeping(write: Write, kept: list[Written], watch: Watch) -> Answering:
    """A writer of answers that adds to `kept` what it has written."""

    def written(question: str, passages: Sequence[Passage]) -> Answer:
        kept.append(write(question, passages, None, watch))
        return kept[-1].answer

    return written


def cost(tools: Tools, unit: Unit, example: Example) -> Estimate:
    """One answer for a baseline; for Attr-RAG one for each chunk set and those of the floor."""
    settings, judged = tools.settings(unit.seed), int(tools.judge is not None)
    depth = settings.retrieval.k if unit.method == OURS else BASELINES[unit.method][1]
    collection = tools.collection(example.corpus)
    hits = search(collection, example.question, replace(settings.retrieval, k=depth))
    calls = 1
    if unit.method == OURS:
        sets = find_context(example.question, collection, tools.reranker, settings.retrieval).sets
        calls = answers_needed(len(sets), PLACEBOS)
    each = tokens_of(example.question, *(hit.passage.text for hit in hits)) + settings.decoding.max_new_tokens
    return Estimate(calls=calls, judged=judged, tokens=calls * each)


def results(config: Config, rows: Sequence[Row]) -> Results:
    """Table I, question by question and over all; Table II where there is a judge."""
    found = similarity_tables(rows)
    if not config.judge:
        said = ("Six criteria (Table II): off, the config names no judge.",)
        return Results(tables=found.tables, figures=found.figures, notes=said)
    tables = (*found.tables, criteria_table(rows))
    return Results(tables=tables, figures=found.figures, notes=judge_notes(config))


STUDY = Study(
    name="attr-rag-answers",
    title="Attr-RAG beside vanilla and re-ranked RAG",
    shows=("Attr-RAG, Tables I and II",),
    methods=(*BASELINES, OURS),
    run=run,
    results=results,
    cost=cost,
    needs=("a corpus", "a reference answer"),
    writes_first=lambda config, unit, example: unit.method != OURS,
)
