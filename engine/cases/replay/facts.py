"""Atomic facts (ARE): clauses, facts, evidence, verdicts, edits and the attribution report, from the answer's text."""

from __future__ import annotations

from engine.cases.replay.floors import Listening, embedding_floor
from engine.cases.replay.outcome import (
    Json,
    Kind,
    Outcome,
    Tools,
    less,
)
from engine.cases.replay.retrieval import changed_since
from engine.core.errors import GroundworkError
from engine.core.settings import Verification
from engine.core.values import Analysis, Case
from engine.corpus.collection import Collection
from engine.methods.are.are import check_answer
from engine.methods.are.decompose import RULES
from engine.methods.are.evidence import Sources
from engine.methods.are.task import Tools as Judges
from engine.methods.are.values import AreRecord
from engine.models.embedder import DEFAULT

ROUNDED = 1e-4  # scores are stored with four decimals, so one may move by its last
BY_PROMPT = "a language model took part, and not every reply of it is kept; check the answer again instead"


def given(result: Json) -> Json:
    """Who measured, whether a language model took part, and which passages of the corpus were considered."""
    record = AreRecord.from_dict(result)
    seen = [e for fact in record.facts for done in fact.iterations for e in done.considered if e.source == "corpus"]
    exchanged = record.decomposition.exchanges or any(d.exchanges for f in record.facts for d in f.iterations)
    return {
        "finished": record.finished,
        "verifier": record.report.after.by if record.report else record.verifier,
        "by_prompt": bool(exchanged) or record.decomposer != RULES,
        "corpus": list(dict.fromkeys(e.passage for e in seen)),
    }


def again(case: Case, analysis: Analysis, tools: Tools) -> Outcome:
    """The whole check again."""
    asked = analysis.result
    if not asked.get("finished"):
        return Outcome(why="the check was stopped before its end; check the answer again, then replay it")
    if asked["by_prompt"]:
        return Outcome(why=BY_PROMPT)
    settings = Verification.from_dict(analysis.stamp.settings.get("verification", {}))
    collection, why = _collection(case, settings, asked["corpus"], tools)
    if why:
        return Outcome(why=why)
    embedder, verifier = tools.embedder(DEFAULT), Listening(tools.verifier(asked["verifier"]))
    sources = Sources(embedder=embedder, case=case.passages, collection=collection)
    record = check_answer(case.question, case.answer.text, sources, Judges(verifier), settings)
    cosines = embedding_floor(embedder, case.answer.text, [p.text for p in case.passages])
    most = max(verifier.floor, cosines) + ROUNDED
    return Outcome(values=less(record.to_dict()), floor=most)


def _collection(case: Case, settings: Verification, seen: list[str], tools: Tools) -> tuple[Collection | None, str]:
    """The corpus that evidence was looked for in, and why it cannot be held against what was found then."""
    if case.corpus is None or settings.evidence_from == "case":
        return None, ""
    try:
        collection = tools.collection(case.corpus)
    except GroundworkError as error:
        # It may not have been there then either: nothing of it was considered.
        return None, str(error) if seen else ""
    return collection, changed_since(collection, seen)


KIND = Kind(again, given)
