"""A check of a case's answer: the case's passages and its corpus in, an `Analysis` with its stamp out."""

from __future__ import annotations

from collections.abc import Sequence

from engine.core.errors import Cancelled
from engine.core.files import now, package_versions
from engine.core.progress import Watch
from engine.core.settings import Settings
from engine.core.values import (
    Analysis,
    Case,
    Stamp,
    inputs_hash,
)
from engine.corpus.collection import Collection
from engine.methods.are.are import check_answer
from engine.methods.are.evidence import Sources
from engine.methods.are.task import Tools
from engine.methods.are.values import AreRecord
from engine.models.protocols import Embedder
from engine.prompts import templates_hash

KIND = "facts"
TEMPLATES = ("clauses", "facts", "verdict", "expand", "edit")


def facts_of(
    case: Case,
    tools: Tools,
    settings: Settings,
    embedder: Embedder,
    collection: Collection | None = None,
    watch: Watch | None = None,
) -> Analysis:
    """ARE on the case's answer; on cancel `Cancelled.partial` is the analysis as far as it came."""
    sources = Sources(embedder=embedder, case=case.passages, collection=collection)
    try:
        record = check_answer(case.question, case.answer.text, sources, tools, settings.verification, watch)
    except Cancelled as stopped:
        if isinstance(stopped.partial, AreRecord):
            raise Cancelled(str(stopped), analysis_of(case, stopped.partial, settings)) from stopped
        raise
    return analysis_of(case, record, settings)


def analysis_of(case: Case, record: AreRecord, settings: Settings) -> Analysis:
    """The record as an analysis of the case, stamped with what made it."""
    stamp = Stamp(
        model=record.verifier,
        template=templates_hash(*TEMPLATES),
        settings={
            "verification": settings.verification.to_dict(),
            "decomposer": record.decomposer,
            "editor": record.editor,
            "demonstrations": settings.prompting.demonstrations,
        },
        versions=package_versions(),
        inputs=inputs_hash(case.question, case.passages, case.answer.text),
        created=now(),
    )
    return Analysis(id=f"{KIND}:{record.verifier}", kind=KIND, stamp=stamp, result=record.to_dict())


def record_of(case: Case) -> AreRecord | None:
    """The check that was added to the case last."""
    found: Sequence[Analysis] = [analysis for analysis in case.analyses if analysis.kind == KIND]
    return AreRecord.from_dict(found[-1].result) if found else None
