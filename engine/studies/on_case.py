"""Refinement over the library: run on a saved case, S3 of a model's answers, gain by quartile, the task table.

What needs the library or a corpus beside the case stands here; what needs the case alone is in engine/refine.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from engine.analyses.refinement import (
    Report,
    analysis_id,
    analysis_of,
    overlap_history,
    refine_case,
    report_scores,
    reports_of,
    request_for,
)
from engine.answer.context import find_context
from engine.cases.review import review_of, with_labels
from engine.cases.store import CaseStore
from engine.core.errors import GroundworkError
from engine.core.progress import Watch
from engine.core.settings import Retrieval, Settings
from engine.core.values import Analysis, Case, Passage
from engine.corpus.collection import Collection
from engine.methods.are.values import AreRecord
from engine.methods.judge import PairJudgement, judge_pair
from engine.methods.refinement.advisor import (
    CORPUS,
    TASKS,
    Advice,
    Point,
    QuartileStudy,
    advise,
    gain_by_quartile,
    point_of,
)
from engine.methods.refinement.values import Gate
from engine.models.protocols import Entailment, LanguageModel, Writer
from engine.models.reranker import load_reranker

LIBRARY = 500  # cases read at most, last changed first
OnCase = Callable[[Case], None]


def labelled_case(cases: CaseStore, case_id: str) -> Case:
    """A case with the reviewers' labels in place."""
    case, marks = cases.load_whole(case_id)
    return with_labels(case, review_of(marks))


def history_of(cases: CaseStore, model: str, settings: Settings) -> tuple[float, ...]:
    """S3 of the library's answers by a model; empty under the number of cases that a threshold needs."""
    rows = [row.id for row in cases.rows(limit=LIBRARY) if row.model == model]
    if len(rows) < settings.refinement.overlap_cases:
        return ()
    return overlap_history((cases.load(case_id) for case_id in rows), model)


def refine_saved(
    cases: CaseStore,
    case_id: str,
    writer: Writer,
    settings: Settings,
    *,
    variants: tuple[str, ...],
    gate: Gate = "own",
    use_answer: bool = False,
    scorer: LanguageModel | None = None,
    verifier: Entailment | None = None,
    on_case: OnCase | None = None,
    on_text: Callable[[str, str], None] | None = None,
    watch: Watch | None = None,
) -> Report:
    """Run conditions on a saved case, going on from what it holds; the case is saved after every step."""
    case = labelled_case(cases, case_id)
    request = request_for(
        case,
        writer,
        settings,
        variants=variants,
        gate=gate,
        use_answer=use_answer,
        scorer=scorer,
        history=history_of(cases, writer.name, settings),
    )

    def save(report: Report) -> None:
        saved = cases.add_analysis(case_id, analysis_of(case, report, use_answer))
        if on_case is not None:
            on_case(saved)

    earlier = reports_of(case).get(analysis_id(writer.name, use_answer))
    facts = facts_of(case) if use_answer else ()
    return refine_case(
        case, request, earlier=earlier, verifier=verifier, facts=facts, save=save, on_text=on_text, watch=watch
    )


def facts_of(case: Case) -> tuple[tuple[str, str], ...]:
    """The atomic facts of the case's answer with their verdicts, where facts were run on this very answer."""
    for analysis in reversed(case.analyses):
        if analysis.kind == "facts":
            record = AreRecord.from_dict(analysis.result)
            if record.answer == case.answer.text:
                return tuple((f.fact.text, f.ruling.verdict if f.ruling else "not checked") for f in record.facts)
    return ()


def judge_saved(
    cases: CaseStore, case: Case, report: Report, first: str, second: str, judge: Writer, watch: Watch | None = None
) -> PairJudgement:
    """Have two conditions of a case compared; the raw replies are kept with the case."""
    texts = [passage.text for passage in case.passages]
    x, y = (_text(report, name) for name in (first, second))
    found = judge_pair(judge, case.question, texts, x, y, watch)
    stamp = replace(analysis_of(case, report, use_answer=False).stamp, settings={"judge": judge.name})
    result = {"x": first, "y": second, "judgement": found.to_dict()}
    identity = f"judgement:{judge.name}:{first}:{second}"
    cases.add_analysis(case.id, Analysis(id=identity, kind="judgement", stamp=stamp, result=result))
    return found


def _text(report: Report, name: str) -> str:
    answer = report.refinement.variants[name].answer
    return answer.text if answer else ""


def library_quartiles(cases: CaseStore, watch: Watch | None = None) -> QuartileStudy:
    """Gain of D over A in citation precision by quartile of S3, over the library's runs with the gate always."""
    points: list[Point] = []
    rows = cases.rows(limit=LIBRARY)
    for done, row in enumerate(rows):
        (watch or Watch()).step("reading cases", done, len(rows))
        points.extend(_points(labelled_case(cases, row.id)))
    return gain_by_quartile(points)


def _points(case: Case) -> list[Point]:
    """One point for each ungated run of the case whose A and D have a citation precision."""
    found = []
    for report in reports_of(case).values():
        if report.refinement.gate == "always":
            scores = report_scores(report, case.passages)
            first, second = (scores[n].citation_precision if n in scores else None for n in ("A", "D"))
            found.append(point_of(case.question, report.refinement, first, second))
    return [point for point in found if point is not None]


def case_advice(case: Case, s3: float | None = None) -> Advice:
    """Advice from what is stored: vectors from the corpus where it still holds the passages, nothing embedded."""
    return advise(case.question, case.passages, case.hits, stored_vectors(case.corpus, case.passages), s3)


def stored_vectors(corpus: str | None, passages: tuple[Passage, ...]) -> NDArray[np.float32] | None:
    """The corpus's vectors of these passages; None where it is gone or holds other ones."""
    if corpus is None:
        return None
    try:
        snapshot = Collection.open(corpus).snapshot()
    except GroundworkError:
        return None  # a case outlives its corpus: the advisor then compares words and says so
    rows = {passage.id: row for row, passage in enumerate(snapshot.passages)}
    if any(passage.id not in rows for passage in passages):
        return None
    found: NDArray[np.float32] = snapshot.vectors[[rows[passage.id] for passage in passages]]
    return found


def task_advice(watch: Watch | None = None) -> tuple[Advice, ...]:
    """The advisor on the passages that each example of the task table retrieves from the sample investigation."""
    collection = Collection.open(CORPUS)
    found = []
    for done, task in enumerate(TASKS):
        (watch or Watch()).step("retrieving", done, len(TASKS))
        how = Retrieval(k=max(10, task.k), keep=task.k)
        context = find_context(task.question, collection, load_reranker(), how, reranked=False)
        vectors = stored_vectors(CORPUS, context.passages)
        found.append(advise(task.question, context.passages, context.hits, vectors))
    return tuple(found)
