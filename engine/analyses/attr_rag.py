"""Attr-RAG on a question of a collection: its passages fill the gaps and are the placebos; the stamp says which.

In a replay the quoting reader reads again; what a language model wrote is an input, and its tokens are scored anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from engine.analyses.again import Repeating, Reply, reranked
from engine.analyses.attribution import (
    PLACEBOS_GONE,
    attribution_blocks,
    check_stamped,
    other_revision,
    placebos,
    placebos_for,
    settings_of,
)
from engine.analyses.floors import embedding_floor, token_floor
from engine.analyses.kind import AS_IT_CAME, ATTR_RAG, COSTS, Again, ByModel, Kind, Loaders, Outcome, RunContext, less
from engine.answer.write import Write, Written, prompting, quoting
from engine.cases.blocks import Block, Cell, Facts, Fold, Notice, Table, Text, answer_runs, part, short, table
from engine.cases.review import Review
from engine.core.errors import AttributionError, GroundworkError
from engine.core.progress import Watch
from engine.core.settings import Occlusion, Reader, Selection, Settings
from engine.core.values import Analysis, Case, ChunkSet, Json, Passage, Stamp, Step, Value
from engine.corpus.store import Snapshot
from engine.methods.attr_rag import WHY, AttrRag, Lookup, Score, attr_rag, scored_by, with_drops
from engine.methods.regeneration import PLACEBOS, answering
from engine.models.choices import READER
from engine.models.embedder import DEFAULT
from engine.models.protocols import Embedder
from engine.models.server import SERVED


@dataclass(frozen=True)
class AttrRagRun:
    """A run, the additions to the answer's stamp (selection, seed, ids of the placebos), and all that was written."""

    found: AttrRag
    chosen: Json
    written: Sequence[Written]

    def analysis(self, stamp: Stamp) -> Analysis:
        """The run as an analysis of the case whose answer carries `stamp`."""
        own = replace(stamp, settings={**stamp.settings, **self.chosen})
        return Analysis(id=ATTR_RAG, kind=ATTR_RAG, stamp=own, result=self.found)


def attr_rag_run(
    case: Case,
    corpus: Sequence[Passage],
    writer: Callable[[Sequence[Passage]], Write],
    *,
    embedder: Embedder,
    settings: Selection,
    seed: int,
    score: Score | None = None,
    watch: Watch | None = None,
    on_step: Callable[[Step], None] | None = None,
) -> AttrRagRun:
    """Attr-RAG on the case's question and chunk sets, from the passages `corpus`.

    `writer` makes who writes, given the passages whose numbers stay. Raises what `attr_rag` raises.
    """
    done: list[Written] = []
    placebos = _drawn(case, corpus, seed)
    found = attr_rag(
        case.question,
        case.chunk_sets,
        answering(writer(()), watch, done),
        ablate=lambda passages: answering(writer(passages), watch, done),
        embedder=embedder,
        lookup=lookup_in(corpus),
        placebos=placebos,
        score=score,
        settings=settings,
        seed=seed,
        watch=watch,
        on_step=on_step,
    )
    chosen = {"selection": settings.to_dict(), "seed": seed, "placebos": [p.id for p in placebos]}
    return AttrRagRun(found, chosen, done)


def _drawn(case: Case, corpus: Sequence[Passage], seed: int) -> tuple[Passage, ...]:
    """The placebos: of documents that no chunk set of the case holds."""
    seen = replace(case, passages=tuple(passage for chunk_set in case.chunk_sets for passage in chunk_set.passages))
    return placebos_for(seen, corpus, PLACEBOS, seed)


def lookup_in(passages: Sequence[Passage]) -> Lookup:
    """Finds a passage by its document and its ordinal there."""
    at = {(passage.document, passage.ordinal): passage for passage in passages}
    return lambda document, ordinal: at.get((document, ordinal))


def _blocks(case: Case, found: AttrRag, review: Review) -> list[Block]:
    capped = ", cut off at the largest share" if found.selection.capped else ""
    facts = (
        ("Sets kept", f"{len(found.selection.chosen)} of {len(found.sets)}{capped}"),
        ("Passages", f"{len(found.kept)} kept, {len(found.filled)} filled in between them"),
        ("Answers written", str(found.regeneration.written)),
    )
    notes = dict.fromkeys((*found.notes, *found.selection.notes, *found.regeneration.notes))
    blocks: list[Block] = [Facts(facts), *(Notice(note) for note in notes), _table(found)]
    if found.selection.reasons:
        blocks.append(_why(found))
    before = Text(answer_runs(found.regeneration.full, found.context), "answer")
    blocks.append(Fold("The answer from all sets, before the selection", (before,)))
    if found.drops:
        blocks.append(part("Teacher-forced drop of each set", attribution_blocks(case, found.drops)))
    return blocks


def _table(found: AttrRag) -> Table:
    alphas, floors, selection = found.regeneration.alphas, found.regeneration.floors, found.selection
    rows: list[list[Cell | str]] = []
    for j, chunk_set in enumerate(found.sets):
        why = ", ".join(selection.chosen_by[j]) if j < len(selection.chosen_by) else ""
        state = "chosen first" if j == selection.primary else "chosen" if j in selection.chosen else "not chosen"
        row: list[Cell | str] = [f"{j + 1} {_name(chunk_set)}", Cell(state, note=f"by {why}" if why else "")]
        row.append(str(selection.votes[j]) if j < len(selection.votes) else "")
        for metric, values in alphas.items():
            under = j < len(values) and values[j] <= floors.get(metric, 0.0)
            alpha = short(values[j]) if j < len(values) else ""
            row.append(Cell(alpha, note="under its floor" if under else "", faint=under))
        rows.append(row)
    rows.append(["Floor", "", "", *(short(floors.get(metric)) for metric in alphas)])
    return table(
        "Change of the answer without each set: alpha = 1 - similarity. The metrics are correlated.",
        ("Chunk set", "Selection", "Votes", *alphas),
        rows,
        numeric=range(2, len(alphas) + 3),
    )


def _why(found: AttrRag) -> Table:
    return table(
        "Why each set was kept or dropped. The paper's rule has no floor or cap and reads the expansion literally.",
        WHY,
        ((f"{j + 1} {_name(chunk_set)}", *found.selection.why(j)) for j, chunk_set in enumerate(found.sets)),
    )


def _name(chunk_set: ChunkSet) -> str:
    if not chunk_set.passages:
        return "(empty)"
    first, ordinals = chunk_set.passages[0], [str(p.ordinal + 1) for p in chunk_set.passages]
    return f"{first.label}, {'passage' if len(ordinals) == 1 else 'passages'} {', '.join(ordinals)}"


GONE = "the corpus is not available, so floors, filled gaps and the final answer cannot be recomputed"


class AttrRagGiven(Value, frozen=True):
    """Every reply in the order of writing, and who scored the teacher-forced drops."""

    replies: tuple[Reply, ...] = ()
    scorer: str = ""
    revision: str | None = None


def _given(stored: AttrRag) -> AttrRagGiven:
    written = stored.regeneration
    answers = (written.full, *written.ablated, *written.repeats, stored.answer)
    return AttrRagGiven(
        replies=tuple(map(Reply.of, answers)),
        scorer=stored.drops.model if stored.drops else "",
        revision=stored.drops.details.revision if stored.drops else None,
    )


def _compared(result: Any) -> Any:
    """Without costs, steps, reasons (they only say the votes and choices), and a model's own text and token ids."""
    values = less(result, COSTS | {"steps", "reasons", "reasons_without_floor"})
    if values.get("drops"):
        values["drops"]["details"].pop("revision", None)
    written = values.get("regeneration", {})
    for answer in (written.get("full"), *written.get("ablated", ()), *written.get("repeats", ()), values.get("answer")):
        if answer and answer.get("tokens"):
            answer["tokens"] = less(answer["tokens"], AS_IT_CAME)
            answer.pop("text", None)
    return values


def _again(case: Case, analysis: Analysis, tools: Loaders) -> Outcome:
    stamp = replace(case.stamp, settings={**case.stamp.settings, **analysis.stamp.settings})
    case = replace(case, stamp=stamp, chunk_sets=reranked(case, tools))
    snapshot = None
    with suppress(GroundworkError):
        snapshot = tools.collection(case.corpus).snapshot() if case.corpus else None
    embedder = tools.embedder(DEFAULT)
    asked = AttrRagGiven.from_dict(analysis.result)
    writer, repeating = _writer(case, asked, tools)
    found, missing = _placebos(case, analysis, tools, snapshot)
    score, changed = _scored(asked, stamp, tools)
    result = attr_rag(
        case.question,
        case.chunk_sets,
        answering(writer(())),
        ablate=lambda passages: answering(writer(passages)),
        embedder=embedder,
        lookup=lookup_in(snapshot.passages) if snapshot is not None else None,
        placebos=found,
        score=score,
        # Until the floor could be chosen it was the largest placebo.
        settings=Selection.from_dict({"floor": "largest", **stamp.settings.get("selection", {})}),
        seed=int(stamp.settings.get("seed", Occlusion().seed)),
    )
    values = _compared(result.to_dict())
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


def _scored(asked: AttrRagGiven, stamp: Stamp, tools: Loaders) -> tuple[Score | None, str]:
    """The scorer of the drops, or why it is missing; drops stored without a revision use the model's name."""
    name, was = asked.scorer, asked.revision
    if not name:
        return None, ""
    model = tools.writer(name)
    now = getattr(model, "revision", "")
    if was is not None and was != now:
        return None, other_revision(name, was, now)
    return scored_by(model, stamp.model, settings_of(stamp).prompting), ""  # type: ignore[arg-type]


def _placebos(
    case: Case, analysis: Analysis, tools: Loaders, snapshot: Snapshot | None
) -> tuple[Sequence[Passage], str]:
    if snapshot is None:
        return (), PLACEBOS_GONE
    if "placebos" in analysis.stamp.settings:
        return placebos(case, analysis.stamp, tools)
    # Before they were stamped they were drawn by the seed alone.
    return _drawn(case, snapshot.passages, Occlusion().seed), ""


def _writer(
    case: Case, asked: AttrRagGiven, tools: Loaders
) -> tuple[Callable[[Sequence[Passage]], Write], Repeating | None]:
    """Who wrote (given the passages whose numbers stay), and whether it only repeats."""
    stamp, settings = case.stamp, settings_of(case.stamp)
    if stamp.model == READER:
        reader = Reader.from_dict(stamp.settings.get("reader", {}))
        write = quoting(tools.embedder(stamp.revision), reader)
        return lambda numbered: write, None
    model = None if stamp.model.startswith(SERVED) else tools.writer(stamp.model)
    repeating = Repeating(asked.replies, model, stamp.model)
    how = settings.prompting, settings.decoding
    if model is not None:
        check_stamped(stamp, model)
    return lambda numbered: prompting(repeating, *how, numbered), repeating


def _run(case: Case, options: ByModel, context: RunContext) -> Iterator[Analysis]:
    """The case's Attr-RAG run, which `ask` made, with the teacher-forced drop of each set."""
    stored = next((analysis for analysis in case.analyses if analysis.id == ATTR_RAG), None)
    if stored is None:
        raise AttributionError("This case has no Attr-RAG run. Ask with the method Attr-RAG first.")
    scorer = context.tools.scorer(options.model)
    score = scored_by(scorer, case.stamp.model, context.settings.prompting, watch=context.watch)
    yield replace(stored, result=with_drops(KIND.read(stored), score))


def _cost(case: Case, options: ByModel, settings: Settings) -> str:
    held = KIND.of(case)
    return f"{len(held[-1].sets) + 4} forward passes; the new column does not vote" if held else ""


KIND = Kind(
    name=ATTR_RAG,
    title="Context selection (Attr-RAG)",
    result=AttrRag,
    blocks=_blocks,
    run=_run,
    cost=_cost,
    terms=("regeneration", "votes"),
    again=Again(_again, _given, _compared),
    scores_answer=False,
)
