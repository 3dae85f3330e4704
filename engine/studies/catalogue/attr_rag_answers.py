"""Attr-RAG compared with vanilla and re-ranked RAG at k = 10, 20, 30 (Attr-RAG, Tables I and II), and at 4 and 7.

The paper has no baseline that reads as few passages as the selection keeps; without one, a gain could come from reading
less, whatever is read.
Table I: seven similarities of the answer to the reference; the winner of a question is the method that most of them
favour. Table II: six criteria from 0 to 5, total 30, by the model that `judge` names. The pool, k, selection and
decoding are the engine's settings; Attr-RAG works on chunk sets from the top `retrieval.k`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from engine.analyses.attr_rag import attr_rag_run
from engine.answer.citations import all_said
from engine.answer.context import find_context
from engine.answer.quoting_reader import whole_id
from engine.core.progress import Watch
from engine.core.values import Case, Json
from engine.methods.attr_rag import DEPTHS, METHODS, against_reference, answers_needed, baseline_passages, winners
from engine.methods.judge import CRITERIA, judge_criteria, judge_warning
from engine.methods.refinement.costs import metered
from engine.models.embedder import DEFAULT
from engine.models.reranker import title_of
from engine.retrieve.search import search
from engine.studies.config import Config
from engine.studies.example import Example, case_of, gold_in, tokens_of
from engine.studies.summary import against, by_method, by_question, counts, figure, line, measure, of_method, table
from engine.studies.tools import Study, StudyTools
from engine.studies.values import Cell, Column, Estimate, Figure, Found, Results, Row, StudyTable, Unit

# Attr-RAG's tables from rows: seven similarities to the reference, winners, six criteria.

SIMILARITIES = {
    "cosine": "cosine",
    "bleu": "BLEU",
    "jaccard": "Jaccard",
    "rouge_1": "ROUGE-1 F1",
    "rouge_2": "ROUGE-2 F1",
    "rouge_l": "ROUGE-L F1",
    "rouge_lsum": "ROUGE-Lsum F1",
}


def _means(rows: Sequence[Row], by: Mapping[str, Sequence[Row]]) -> tuple[StudyTable, Figure]:
    won = wins(rows)
    similar = {field: {name: measure(own, field) for name, own in by.items()} for field in SIMILARITIES}
    columns = (Column(name=title, unit="0 to 1", better="higher") for title in SIMILARITIES.values())
    counted = "won (questions) ↑ | passages | gold found (share of gold) | gold read (share of gold) ↑ | failed (units)"
    title, shows = "Answers against the reference", "Attr-RAG, Table I"
    means = table(
        "similarities",
        f"{title}, mean over questions",
        (*Column.row("method"), *columns, *Column.row(counted)),
        (
            (
                name,
                *(measures[name] for measures in similar.values()),
                won[name],
                *(measure(own, field, None) for field in ("passages", "gold_found", "gold_read")),
                sum(row.state == "failed" for row in own),
            )
            for name, own in by.items()
        ),
        rows,
        "Won: most of the seven metrics favour the method; methods can tie. A failed unit counts 0.",
        shows=shows,
    )
    bars = (line(SIMILARITIES[field], similar[field]) for field in ("rouge_l", "cosine", "bleu"))
    return means, figure("bars", "similarities", title, "method", "similarity (0 to 1)", bars, shows)


def wins(rows: Sequence[Row]) -> Counter[str]:
    """Questions that each method wins by its mean over the seeds; one that failed under every seed wins none."""
    groups: dict[str, dict[str, dict[str, float]]] = {}
    for name, own in by_method(rows).items():
        means = {field: by_question(own, field) for field in SIMILARITIES}
        for question in dict.fromkeys(row.unit.example for row in own if row.state == "done"):
            groups.setdefault(question, {})[name] = {field: means[field].get(question, 0.0) for field in means}
    return Counter(name for table in groups.values() for name in winners(table))


def _by_question(rows: Sequence[Row], names: Sequence[str]) -> StudyTable:
    """As the paper prints it: one block per question, one line per metric, one column per method."""
    lines: list[tuple[Cell, ...]] = []
    for example in dict.fromkeys(row.unit.example for row in rows):
        own = [row for row in rows if row.unit.example == example]
        for field, title in SIMILARITIES.items():
            lines.append((example, title, *(measure(of_method(own, name), field).value for name in names)))
    columns = (*Column.row("question | metric"), *(Column(name=name, better="higher") for name in names))
    title, shows = "Answers against the reference, question by question", "Attr-RAG, Table I"
    return table("similarities_by_question", title, columns, lines, rows, shows=shows, intervals=())


def criteria_table(rows: Sequence[Row]) -> StudyTable:
    """Mean scores by criterion over the replies that could be read, and how many could not."""

    def line_of(name: str, own: Sequence[Row]) -> tuple[Cell, ...]:
        _, failed, unparsed = counts(own)
        means = (measure(own, ("criteria", criterion), None) for criterion in CRITERIA)
        return name, *means, measure(own, "total", None), len(own) - failed - unparsed, unparsed, failed

    criteria = (Column(name=name, unit="0 to 5", better="higher") for name in CRITERIA)
    counted = Column.row("total (0 to 30) ↑ | read (replies) | unparsed (replies) | failed (units)")
    return table(
        "criteria",
        "Six criteria by the judge",
        (*Column.row("method"), *criteria, *counted),
        (line_of(*each) for each in by_method(rows).items()),
        rows,
        "A reply without all six scores has no total; its readable scores stay in their columns.",
        shows="Attr-RAG, Table II",
    )


OURS = "attr-rag"
FEWER = (4, 7)  # about as many passages as the selection keeps of 10 and of 30
BASELINES = {f"{method}-{depth}": (method, depth) for method in METHODS for depth in (*FEWER, *DEPTHS)}


def run(tools: StudyTools, unit: Unit, example: Example, watch: Watch) -> Found:
    """One question by one method: its answer against the reference and under the judge."""
    with metered(None if tools.config.reads else tools.writer) as meter:
        case, more = (_ours if unit.method == OURS else _baseline)(tools, unit, example, watch)
    text = all_said(case.answer.text)
    scores = against_reference(text, example.references[0], tools.loaders.embedder(DEFAULT))
    values: Json = {**scores, **more, "passages": len(case.passages), "refused": case.answer.refused}
    values |= _gold(tools, example, case)
    unparsed = 0
    if tools.judge is not None:
        judged = judge_criteria(tools.judge, example.question, example.references[0], text, watch)
        values |= {"criteria": judged.scores, "total": judged.total}
        unparsed = int(judged.total is None)
    cost = replace(meter.cost, written=more.get("written", len(case.answer.tokens)))
    return Found(values=values, case=case, cost=cost, unparsed=unparsed)


def _gold(tools: StudyTools, example: Example, case: Case) -> dict[str, float | None]:
    """The share of the gold passages that was retrieved, and that the answer was written from."""
    gold = gold_in(example, tools.collection(example.corpus).snapshot())
    found = {"gold_found": (hit.passage.id for hit in case.hits), "gold_read": map(whole_id, case.passages)}
    return {name: len(gold.intersection(ids)) / len(gold) if gold else None for name, ids in found.items()}


def _baseline(tools: StudyTools, unit: Unit, example: Example, watch: Watch) -> tuple[Case, dict[str, int]]:
    method, depth = BASELINES[unit.method]
    retrieval = tools.config.stages(unit.seed).retrieval
    pool = retrieval.rerank_pool if method == "re-ranked" else depth
    hits = search(tools.collection(example.corpus), example.question, replace(retrieval, k=pool))
    passages = baseline_passages(method, depth, example.question, hits, tools.loaders.reranker(retrieval.reranker))
    watch.step("baselines", 0, 1)
    written = tools.write(unit.seed)(example.question, passages, watch)
    return case_of(example, passages, written, hits=hits), {}


def _ours(tools: StudyTools, unit: Unit, example: Example, watch: Watch) -> tuple[Case, dict[str, int]]:
    settings, collection = tools.config.stages(unit.seed), tools.collection(example.corpus)
    reranker = tools.loaders.reranker(settings.retrieval.reranker)
    context = find_context(example.question, collection, reranker, settings.retrieval)
    made = attr_rag_run(
        example.question,
        context.sets,
        collection.snapshot().passages,
        lambda numbered: tools.write(unit.seed, numbered),
        embedder=tools.loaders.embedder(DEFAULT),
        settings=settings.selection,
        seed=unit.seed,
        watch=watch,
    )
    found, written = made.found, made.written
    case = case_of(example, found.passages, written[-1], hits=context.hits)
    case = replace(case, chunk_sets=context.sets, analyses=(made.analysis(case.stamp),))
    more = {"sets": len(found.sets), "kept": len(found.selection.chosen), "filled": len(found.filled)}
    return case, {**more, "answers": len(written), "written": sum(len(w.answer.tokens) for w in written)}


def cost(tools: StudyTools, unit: Unit, example: Example) -> Estimate:
    """One answer for a baseline; for Attr-RAG one for each chunk set and those of the floor."""
    settings, judged = tools.config.stages(unit.seed), int(tools.judge is not None)
    depth = settings.retrieval.k if unit.method == OURS else BASELINES[unit.method][1]
    collection = tools.collection(example.corpus)
    hits = search(collection, example.question, replace(settings.retrieval, k=depth))
    calls = 1
    if unit.method == OURS:
        reranker = tools.loaders.reranker(settings.retrieval.reranker)
        sets = find_context(example.question, collection, reranker, settings.retrieval).sets
        calls = answers_needed(len(sets))
    each = tokens_of(example.question, *(hit.passage.text for hit in hits)) + settings.decoding.max_new_tokens
    return Estimate(calls=calls, judged=judged, tokens=calls * each)


def results(config: Config, rows: Sequence[Row]) -> Results:
    """Table I, question by question and over all; Table II where there is a judge."""
    by = by_method(rows)
    means, similarities = _means(rows, by)
    tables = [means, _by_question(rows, list(by))]
    names, title = {name: name for name in by}, "ROUGE-L F1 of each baseline"
    tables += against(OURS, rows, "rouge_l", names, "against_attr_rag", title, "F1")
    said = "Six criteria (Table II): off, because the config has no judge."
    if config.judge:
        tables.append(criteria_table(rows))
        said = judge_warning(config.judge, [config.model])
    by_whom = f"Re-ranked by {title_of(config.stages(config.seeds[0]).retrieval.reranker)}."
    return Results(tables=tuple(tables), figures=(similarities,), notes=tuple(filter(None, (said, by_whom))))


STUDY = Study(
    name="attr-rag-answers",
    title="Attr-RAG compared with vanilla and re-ranked RAG",
    shows=("Attr-RAG, Tables I and II",),
    methods=(*BASELINES, OURS),
    run=run,
    results=results,
    cost=cost,
    searches=lambda config, method: True,
    needs=("a corpus", "a reference answer"),
)
