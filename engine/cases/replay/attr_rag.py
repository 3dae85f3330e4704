"""Attr-RAG's second stage: re-ranking, alphas, floors, votes, gap filling and the last answer, from the same sets.

The quoting reader reads again; what a language model wrote is an input, and its tokens are scored anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from engine.analyses.attr_rag import lookup_in
from engine.analyses.attribution import placebos_for
from engine.answer.write import Write, prompting, quoting
from engine.cases.replay.attribution import (
    PLACEBOS_GONE,
    differs,
    other_revision,
    placebos,
    settings_of,
)
from engine.cases.replay.floors import embedding_floor, token_floor
from engine.cases.replay.outcome import (
    AS_IT_CAME,
    COSTS,
    Json,
    Kind,
    Outcome,
    Tools,
    less,
)
from engine.cases.replay.reading import READER
from engine.cases.replay.replies import Repeating, Reply
from engine.cases.replay.retrieval import reranked
from engine.core.errors import GroundworkError
from engine.core.settings import Occlusion, Reader, Selection
from engine.core.values import (
    Analysis,
    Case,
    Passage,
    Stamp,
)
from engine.corpus.store import Snapshot
from engine.methods.attr_rag import (
    AttrRag,
    Score,
    attr_rag,
    scored_by,
)
from engine.methods.regeneration import PLACEBOS, Answering
from engine.models.embedder import DEFAULT
from engine.models.registry import SERVED

GONE = "the collection is not here, so floors, filled gaps and the last answer cannot be had again"


def given(result: Json) -> Json:
    """Every reply in the order of writing, and who scored the teacher-forced drops."""
    stored = AttrRag.from_dict(result)
    written = stored.regeneration
    answers = (written.full, *written.ablated, *written.repeats, stored.answer)
    return {
        "replies": [Reply.of(answer).to_dict() for answer in answers],
        "scorer": stored.drops.model if stored.drops else "",
        "revision": stored.drops.details.get("revision") if stored.drops else None,
    }


def compared(result: Json) -> Any:
    """All but the costs, the steps as they ran, and of a language model's answers the text and tokens as they came."""
    values = less(result, COSTS | {"steps"})
    if values.get("drops"):
        values["drops"]["details"].pop("revision", None)
    written = values.get("regeneration", {})
    for answer in (written.get("full"), *written.get("ablated", ()), *written.get("repeats", ()), values.get("answer")):
        if answer and answer.get("tokens"):
            answer["tokens"] = less(answer["tokens"], AS_IT_CAME)
            answer.pop("text", None)
    return values


def again(case: Case, analysis: Analysis, tools: Tools) -> Outcome:
    """The whole stage again."""
    stamp = replace(case.stamp, settings={**case.stamp.settings, **analysis.stamp.settings})
    case = replace(case, stamp=stamp, chunk_sets=reranked(case, tools))
    snapshot = _snapshot(case, tools)
    embedder = tools.embedder(DEFAULT)
    writer, repeating, why = _writer(case, analysis, tools)
    if why:
        return Outcome(why=why)
    found, missing = _placebos(case, analysis, tools, snapshot)
    score, changed = _scored(analysis, stamp, tools)
    result = attr_rag(
        case.question,
        case.chunk_sets,
        _answering(writer(())),
        ablate=lambda passages: _answering(writer(passages)),
        embedder=embedder,
        lookup=lookup_in(snapshot.passages) if snapshot is not None else None,
        placebos=found,
        score=score,
        # Until the floor could be chosen it was the largest placebo.
        settings=Selection.from_dict({"floor": "largest", **stamp.settings.get("selection", {})}),
        seed=int(stamp.settings.get("seed", Occlusion().seed)),
    )
    values = compared(result.to_dict())
    if snapshot is None:
        missing = GONE
        values = {name: value for name, value in values.items() if name not in ("filled", "passages", "answer")}
    if changed:
        values.pop("drops")
    if missing:
        values["regeneration"] = less(values["regeneration"], {"floors", "repeats", "written"})
    if repeating is not None and not repeating.can.score:
        values = less(values, {"logprob"})
    texts = [answer.text for answer in (result.regeneration.full, *result.regeneration.ablated)]
    floors = {"score": embedding_floor(embedder, case.question, [s.text for s in case.chunk_sets])}
    if repeating is not None and repeating.rows:
        floors["logprob"] = token_floor(repeating, repeating.rows)
    floor = embedding_floor(embedder, texts[0], texts)
    return Outcome(values=values, floor=floor, floors=floors, why=missing or changed)


def _scored(analysis: Analysis, stamp: Stamp, tools: Tools) -> tuple[Score | None, str]:
    """What scores the drops, and why it cannot; drops from before revisions were stored go by the model's name."""
    name, was = str(analysis.result.get("scorer", "")), analysis.result.get("revision")
    if not name:
        return None, ""
    model = tools.writer(name)
    now = getattr(model, "revision", "")
    if was is not None and was != now:
        return None, other_revision(name, was, now)
    return scored_by(model, stamp.model, settings_of(stamp).prompting), ""  # type: ignore[arg-type]


def _snapshot(case: Case, tools: Tools) -> Snapshot | None:
    try:
        return tools.collection(case.corpus).snapshot() if case.corpus else None
    except GroundworkError:
        return None


def _placebos(case: Case, analysis: Analysis, tools: Tools, snapshot: Snapshot | None) -> tuple[Sequence[Passage], str]:
    if snapshot is None:
        return (), PLACEBOS_GONE
    if "placebos" in analysis.stamp.settings:
        return placebos(case, analysis.stamp, tools)
    # Before they were stamped they were drawn by the seed alone.
    seen = replace(case, passages=tuple(p for chunk_set in case.chunk_sets for p in chunk_set.passages))
    return placebos_for(seen, snapshot.passages, PLACEBOS, Occlusion().seed), ""


def _answering(write: Write) -> Answering:
    return lambda question, passages: write(question, passages).answer


def _writer(
    case: Case, analysis: Analysis, tools: Tools
) -> tuple[Callable[[Sequence[Passage]], Write], Repeating | None, str]:
    """Who wrote (given the passages whose numbers stay), whether it only repeats, why its tokens cannot be scored."""
    stamp, settings = case.stamp, settings_of(case.stamp)
    if stamp.model == READER:
        reader = Reader.from_dict(stamp.settings.get("reader", {}))
        write = quoting(tools.embedder(stamp.revision), reader)
        return lambda numbered: write, None, ""
    model = None if stamp.model.startswith(SERVED) else tools.writer(stamp.model)
    replies = [Reply.from_dict(reply) for reply in analysis.result.get("replies", ())]
    repeating = Repeating(replies, model, stamp.model)
    how = settings.prompting, settings.decoding
    why = "" if model is None else differs(stamp, model)
    return lambda numbered: prompting(repeating, *how, numbered), repeating, why


KIND = Kind(again, given, compared)
