"""The parts of a case and how each is computed again; an analysis of a kind that is not here cannot be replayed.

`stored` takes from a case what is compared, `again` computes it from a stripped case; both in one shape.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from engine.answer.generate import stamp_of
from engine.answer.quoting_reader import QuotingReader
from engine.attribute import registry
from engine.attribute.on_case import method_of, occlusion_of, token_map_of
from engine.cases.replay.outcome import Outcome, Tools, plain
from engine.errors import GroundworkError
from engine.models.embedder import DEFAULT
from engine.models.protocols import Embedder, LanguageModel, require
from engine.retrieve.rerank import rerank
from engine.retrieve.search import search
from engine.settings import Reader, Retrieval, Settings
from engine.types import Analysis, Case, Hit, Passage, Stamp, inputs_hash

Again = Callable[[Case, Analysis, Tools], Outcome]
# What a run costs, what it says in words, and how large its rounding was are no results.
NOT_COMPARED = {"seconds", "forwards", "backwards", "notes", "numerical_floor", "numerical_floor_by_span", "steps"}
FLOOR_TEXTS = 40  # texts that the embedder's rounding is measured on
STAGES = ("prompting", "decoding", "occlusion", "gradient")


# Inputs


def stored_inputs(case: Case) -> Any:
    """The hash of question and passages."""
    return case.stamp.inputs


def inputs_again(case: Case, tools: Tools) -> Outcome:
    """The hash, computed from the texts."""
    return Outcome(values=inputs_hash(case.question, case.passages))


# Retrieval


def stored_hits(case: Case) -> Any:
    """Each retrieved passage in rank order: rank, score, parts."""
    return plain([_hit(rank, hit) for rank, hit in enumerate(case.hits)])


def _hit(rank: int, hit: Hit) -> dict[str, Any]:
    return {"rank": rank, "score": hit.score, "parts": hit.parts}


def hits_again(case: Case, tools: Tools) -> Outcome:
    """The search again, in the collection as it is now."""
    settings = case.stamp.settings.get("retrieval")
    if case.corpus is None or settings is None:
        return Outcome(why="the stamp names no collection or no retrieval settings")
    collection = tools.collection(case.corpus)
    known = {passage.id for passage in collection.snapshot().passages}
    gone = [hit.passage.id for hit in case.hits if hit.passage.id not in known]
    if gone:
        return Outcome(why=f"the collection {case.corpus!r} has changed: {gone[0]} is no longer in it")
    found = {
        hit.passage.id: (rank, hit)
        for rank, hit in enumerate(search(collection, case.question, Retrieval.from_dict(settings)))
    }
    values = [_hit(*found[hit.passage.id]) if hit.passage.id in found else None for hit in case.hits]
    texts = [hit.passage.text for hit in case.hits]
    return Outcome(values=plain(values), floor=embedding_floor(collection.embedder, case.question, texts))


def stored_sets(case: Case) -> Any:
    """The re-ranker's score of each chunk set, in stored order."""
    return plain([{"score": chunk_set.score} for chunk_set in case.chunk_sets])


def sets_again(case: Case, tools: Tools) -> Outcome:
    """The re-ranker again, on the same sets."""
    scored = {_key(s.passages): s.score for s in rerank(case.question, case.chunk_sets, tools.reranker())}
    values = plain([{"score": scored[_key(s.passages)]} for s in case.chunk_sets])
    texts = [passage.text for s in case.chunk_sets for passage in s.passages]
    return Outcome(values=values, floor=embedding_floor(tools.embedder(DEFAULT), case.question, texts))


def _key(passages: tuple[Passage, ...]) -> tuple[str, ...]:
    return tuple(passage.id for passage in passages)


# The quoting reader


def stored_answer(case: Case) -> Any:
    """The answer of the quoting reader: its text and what it quoted."""
    return plain({"text": case.answer.text, "quotes": case.answer.quotes})


def answer_again(case: Case, tools: Tools) -> Outcome:
    """The quoting reader again, on the same passages."""
    answer = _reader(case.stamp, tools)[0].read(case.question, case.passages)
    return Outcome(values=plain({"text": answer.text, "quotes": answer.quotes}))


def reading_again(case: Case, analysis: Analysis, tools: Tools) -> Outcome:
    """Every candidate sentence of the quoting reader with the parts of its score."""
    reader, embedder = _reader(analysis.stamp, tools)
    reading = reader.reading(case.question, case.passages)
    texts = [case.passages[c.number - 1].text[c.start : c.end] for c in reading.candidates]
    return Outcome(values=comparable(reading.to_dict()), floor=embedding_floor(embedder, case.question, texts))


def _reader(stamp: Stamp, tools: Tools) -> tuple[QuotingReader, Embedder]:
    embedder = tools.embedder(stamp.revision)
    return QuotingReader(embedder, Reader.from_dict(stamp.settings.get("reader", {}))), embedder


def embedding_floor(embedder: Embedder, question: str, texts: Sequence[str]) -> float:
    """Twice the largest difference of a cosine when a text is embedded among others and alone.

    Twice, because the stored and the replayed number may each be off by it, in opposite directions.
    """
    ordered = sorted(set(texts), key=len)
    sample = ordered[:: max(1, len(ordered) // FLOOR_TEXTS)]
    if not sample:
        return 0.0
    query = embedder.embed([question])[0]
    together = embedder.embed(ordered)[[ordered.index(text) for text in sample]]
    # With a space at its end a text has the same tokens and is none that the embedder remembers.
    apart = np.concatenate([embedder.embed([f"{text} "]) for text in sample])
    return 2 * float(np.abs(together @ query - apart @ query).max())


# Scores of a language model


def scores_again(case: Case, analysis: Analysis, tools: Tools) -> Outcome:
    """A likelihood- or gradient-based analysis again, with the stamped model, revision, dtype and settings."""
    writer = tools.writer(analysis.stamp.model)
    require(writer, "score")
    model: LanguageModel = writer  # type: ignore[assignment]
    settings = _settings(analysis.stamp)
    here = stamp_of(model, settings.prompting, settings.decoding)
    for name in ("revision", "dtype", "template"):
        was, now = getattr(analysis.stamp, name), getattr(here, name)
        if was != now:
            return Outcome(why=f"the model's {name} was {was or 'none'}, here it is {now or 'none'}")
    again, missing = _compute(case, analysis, model, settings, tools)
    floor = again.result.get("numerical_floor") or 0.0
    values = comparable(again.result)
    if missing:
        values.pop("placebo_floor", None)
        values.get("details", {}).pop("placebo_floor_by_span", None)
    return Outcome(values=values, floor=float(floor), why=missing)


def _compute(
    case: Case, analysis: Analysis, model: LanguageModel, settings: Settings, tools: Tools
) -> tuple[Analysis, str]:
    """The analysis, and why its placebo floor could not be measured again (empty where it could)."""
    if analysis.kind == "token map":
        return token_map_of(case, model, settings), ""
    if analysis.kind not in ("occlusion", "occlusion of chunk sets"):
        return method_of(case, analysis.kind, model, settings), ""
    wanted = analysis.stamp.settings.get("placebos") or []
    try:
        known = {p.id: p for p in tools.collection(case.corpus).snapshot().passages} if case.corpus and wanted else {}
    except GroundworkError:
        known = {}
    found = tuple(known[name] for name in wanted if name in known)
    missing = "" if len(found) == len(wanted) else "the unrelated passages of the placebo floor are no longer here"
    by_set = analysis.kind == "occlusion of chunk sets"
    return occlusion_of(case, model, settings, by_set=by_set, placebos=() if missing else found), missing


def _settings(stamp: Stamp) -> Settings:
    return Settings.from_dict({name: stamp.settings[name] for name in STAGES if name in stamp.settings})


def comparable(result: Any) -> Any:
    """A stored result less what is no result: cost, words, and the rounding floor itself."""
    if isinstance(result, dict):
        return {key: comparable(value) for key, value in plain(result).items() if key not in NOT_COMPARED}
    return [comparable(value) for value in result] if isinstance(result, list) else result


def replayer_of(analysis: Analysis) -> Again | None:
    """How an analysis is computed again; None for a kind that has no replay."""
    if analysis.kind == "reading":
        return reading_again
    scored = {"occlusion", "occlusion of chunk sets", "token map", *(method.name for method in registry.methods())}
    return scores_again if analysis.kind in scored else None


def unreplayable(analysis: Analysis) -> str:
    """Why an analysis of a kind without replay is not compared."""
    if analysis.kind == "labels":
        return "these labels were imported; nothing computes them"
    return f"there is no replay of the kind {analysis.kind!r} yet"
