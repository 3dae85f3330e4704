"""Refinement over the library: gain by quartile of S3, advice on a case, the task table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.analyses.refinement import LIBRARY, reports_of
from engine.answer.context import find_context
from engine.answer.quoting_reader import whole_id
from engine.cases.review import review_of, with_labels
from engine.cases.store import CaseStore
from engine.core.errors import GroundworkError
from engine.core.progress import Watch
from engine.core.settings import Retrieval
from engine.core.values import Case, Hit, Passage
from engine.corpus.collection import Collection
from engine.methods.refinement import advisor
from engine.methods.refinement.run import report_scores
from engine.models.protocols import Embedder
from engine.models.reranker import load_reranker


def labelled_case(cases: CaseStore, case_id: str) -> Case:
    """A case with the reviewers' labels in place."""
    case, marks = cases.load_whole(case_id)
    return with_labels(case, review_of(marks))


def library_quartiles(cases: CaseStore, watch: Watch = Watch()) -> advisor.QuartileStudy:
    """Gain of D over A in citation precision by quartile of S3, over the library's runs with the gate always."""
    points: list[advisor.Point] = []
    rows = cases.rows(limit=LIBRARY)
    for done, row in enumerate(rows):
        watch.step("reading cases", done, len(rows))
        points.extend(_points(labelled_case(cases, row.id)))
    return advisor.gain_by_quartile(points)


def _points(case: Case) -> list[advisor.Point]:
    """One point for each ungated run of the case whose A and D have a citation precision."""
    found = []
    for report in reports_of(case).values():
        if report.refinement.gate == "always":
            s3, scores = report.refinement.signals.s3, report_scores(report, case.passages)
            first, second = (scores[n].citation_precision if n in scores else None for n in ("A", "D"))
            if s3 is not None and first is not None and second is not None:
                found.append(advisor.Point(question=case.question, s3=s3, gain=second - first))
    return found


def advice_on(
    question: str,
    passages: tuple[Passage, ...],
    hits: Sequence[Hit] = (),
    corpus: str | None = None,
    s3: float | None = None,
    embedder: Embedder | None = None,
) -> advisor.Advice:
    """Advice by the vectors of the corpus if it has the passages, else of `embedder`, else by words (it says so)."""
    vectors = stored_vectors(corpus, passages)
    if vectors is None and embedder is not None:
        embedded = embedder.embed([question, *(passage.text for passage in passages)])
        vectors = embedded[1:]
        hits = [Hit(passage=p, score=float(s)) for p, s in zip(passages, vectors @ embedded[0], strict=True)]
    return advisor.advise(question, passages, hits, vectors, s3)


def stored_vectors(corpus: str | None, passages: tuple[Passage, ...]) -> NDArray[np.float32] | None:
    """The corpus's vectors of these passages; None where it is gone or holds other ones."""
    if corpus is None:
        return None
    try:
        snapshot = Collection.open(corpus).snapshot()
    except GroundworkError:
        return None  # a case outlives its corpus
    whole = [whole_id(passage) for passage in passages]
    rows = snapshot.rows(whole)
    if len(rows) < len(whole):  # also where two are pieces of one passage: each would have the vector of the whole
        return None
    return snapshot.vectors[[rows[name] for name in whole]]


def task_advice(watch: Watch = Watch()) -> tuple[advisor.Advice, ...]:
    """The advisor on the passages that each example of the task table retrieves from the sample investigation."""
    collection = Collection.open(advisor.CORPUS)
    found = []
    for done, task in enumerate(advisor.TASKS):
        watch.step("retrieving", done, len(advisor.TASKS))
        how = Retrieval(k=max(10, task.k), keep=task.k)
        context = find_context(task.question, collection, load_reranker(), how, reranked=False)
        found.append(advice_on(task.question, context.passages, context.hits, advisor.CORPUS))
    return tuple(found)
