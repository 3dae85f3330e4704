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
    under_floor,
)
from engine.analyses.floors import embedding_floor, token_floor
from engine.analyses.kind import AS_IT_CAME, ATTR_RAG, COSTS, Again, ByModel, Kind, Loaders, Outcome, RunContext, less
from engine.answer.quoting_reader import whole_id
from engine.answer.write import Write, Written, prompting, quoting
from engine.cases.blocks import Block, Cell, Facts, Fold, Notice, Table, Text, answer_runs, of_passages, part, table
from engine.cases.review import Review
from engine.core.errors import AttributionError, GroundworkError
from engine.core.progress import Watch, whole
from engine.core.settings import Occlusion, Reader, Selection, Settings
from engine.core.values import Analysis, Attribution, Case, ChunkSet, Json, Passage, Stamp, Value
from engine.corpus.store import Snapshot
from engine.methods.attr_rag import WHY, AttrRag, Lookup, Score, Selected, attr_rag, scored_by, selecting, with_drops
from engine.methods.occlusion import rows_needed
from engine.methods.regeneration import PLACEBOS, answering
from engine.methods.subject import occlusion_stamped
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


def attr_rag_runs(
    question: str,
    chunk_sets: Sequence[ChunkSet],
    corpus: Sequence[Passage],
    writer: Callable[[Sequence[Passage]], Write],
    *,
    embedder: Embedder,
    settings: Selection,
    seed: int,
    score: Score | None = None,
    watch: Watch = Watch(),
) -> Iterator[AttrRagRun]:
    """Attr-RAG on a question and its chunk sets, from the passages `corpus`: the run after each step.

    `writer` makes who writes, given the passages whose numbers stay. Raises what `attr_rag` raises.
    """
    done: list[Written] = []
    placebos = _drawn(chunk_sets, corpus, seed)
    chosen = {"selection": settings.to_dict(), "seed": seed, "placebos": [p.id for p in placebos]}
    for found in selecting(
        question,
        chunk_sets,
        lambda numbered: answering(writer(numbered), watch, done),
        embedder=embedder,
        lookup=lookup_in(corpus),
        placebos=placebos,
        score=score,
        settings=settings,
        seed=seed,
        watch=watch,
    ):
        yield AttrRagRun(found, chosen, done)


attr_rag_run = whole(attr_rag_runs)


def _drawn(chunk_sets: Sequence[ChunkSet], corpus: Sequence[Passage], seed: int) -> tuple[Passage, ...]:
    """The placebos: of documents that no chunk set holds."""
    seen = [passage for chunk_set in chunk_sets for passage in chunk_set.passages]
    return placebos_for(seen, corpus, PLACEBOS, seed)


def lookup_in(passages: Sequence[Passage]) -> Lookup:
    """Finds a passage by its document and its ordinal there."""
    at = {(passage.document, passage.ordinal): passage for passage in passages}
    return lambda document, ordinal: at.get((document, ordinal))


def _blocks(case: Case, found: AttrRag, review: Review) -> list[Block]:
    blocks = selection_blocks(case, found)
    if found.selection.reasons:
        blocks.append(why_table(case, found))
    before = Text(answer_runs(found.regeneration.full, found.context), "answer")
    blocks.append(Fold("The answer from all sets, before the selection", (before,)))
    if found.drops:
        blocks.append(part("Teacher-forced drop of each set", attribution_blocks(case, found.drops)))
    return blocks


def selection_blocks(case: Case, found: AttrRag) -> list[Block]:
    """How many sets were kept, the notes of the run, and every set with its figures."""
    capped = ", cut off at the largest share" if found.selection.capped else ""
    facts = (
        ("Sets kept", f"{len(found.selection.chosen)} of {len(found.sets)}{capped}"),
        ("Passages", f"{len(found.kept)} kept, {len(found.filled)} filled in between them"),
        ("Answers written", str(found.regeneration.written)),
    )
    notes = dict.fromkeys((*found.notes, *found.selection.notes, *found.regeneration.notes))
    return [Facts(facts), *map(Notice, notes), _sets(case, found)]


UNDER = "under its floor"
# With a hyphen that does not break: the heads of narrow columns wrap.
METRICS = {
    "jaccard": "Jaccard",
    "rouge_1": "ROUGE‑1",
    "rouge_2": "ROUGE‑2",
    "rouge_l": "ROUGE‑L",
    "rouge_lsum": "ROUGE‑Lsum",
}


def _sets(case: Case, found: AttrRag) -> Table:
    """One row per set: its alpha by each metric, votes, drop, and whether it was kept; then the floors."""
    floors, metrics, drops = found.regeneration.floors, list(found.regeneration.alphas), found.drops
    rows: list[list[Cell | str]] = []
    for j in range(len(found.sets)):
        cells = [_alpha(found, metric, j) for metric in metrics]
        under = all(cell.note == UNDER for cell in cells)  # said once, next to the selection
        rows.append(
            [
                _named(case, found, j),
                *(Cell(cell.text, faint=True) if under else cell for cell in cells),
                *map(str, found.selection.votes[j : j + 1] or ("",)),
                *([] if drops is None else [_drop(drops, j)]),
                _kept(found.selection, j, "none above its floor" if under else ""),
            ]
        )
    after = [""] * (2 if drops is None else 3)
    rows.append(["Regeneration floor", *(f"{floors.get(metric, 0.0):.3f}" for metric in metrics), *after])
    alphas = (f"α {METRICS.get(metric, metric)}" for metric in metrics)
    return table(
        "α = 1 - similarity of the answers with and without the set; high: the answer changed. The metrics are "
        "correlated: three that agree are not three independent findings. Bold: the metric chose the set.",
        ("Chunk set", *alphas, "Votes", *([] if drops is None else ["Drop, nats"]), "Selection"),
        rows,
        numeric=range(1, len(metrics) + len(after)),
    )


def _alpha(found: AttrRag, metric: str, j: int) -> Cell:
    values, floor = found.regeneration.alphas[metric], found.regeneration.floors.get(metric, 0.0)
    if j >= len(values):
        return Cell("not run")
    chose = any(metric in by for by in found.selection.chosen_by[j : j + 1])  # without a floor also under it
    if not chose and values[j] <= floor:
        return Cell(f"{values[j]:.3f}", note=UNDER, faint=True)
    return Cell(f"{values[j]:.3f}", kind="chosen" if chose else "", tint=values[j])


def _drop(drops: Attribution, j: int) -> Cell:
    if j not in drops.details.kept:
        return Cell("not scored")
    row = drops.scores[0]
    value, most = row[drops.details.kept.index(j)], max(map(abs, row))
    under = under_floor(value, drops.numerical_floor, None)
    return Cell(f"{value:+z,.2f}", note=under, faint=bool(under), tint=value / most if most and not under else 0.0)


def _kept(selection: Selected, j: int, note: str) -> Cell:
    by = ", ".join(METRICS.get(metric, metric) for chosen in selection.chosen_by[j : j + 1] for metric in chosen)
    state = "kept, most votes" if j == selection.primary else "kept" if j in selection.chosen else "dropped"
    return Cell(state, note=f"by {by}" if by else note)


def why_table(case: Case, found: AttrRag) -> Table:
    """Why each set was kept or dropped, here and under the two other rules."""
    rows = ((_named(case, found, j), *found.selection.why(j)) for j in range(len(found.selection.reasons)))
    caption = "The paper's rule has no floor or cap and reads the expansion literally; a set with α = 0 stays out."
    return table(f"Why each set was kept or dropped. {caption}", WHY, rows)


def _named(case: Case, found: AttrRag, j: int) -> Cell:
    """A set by its place, with the numbers that its passages have in the case."""
    ids = {whole_id(passage) for passage in found.sets[j].passages}
    numbers = tuple(n for n, passage in enumerate(case.passages, start=1) if whole_id(passage) in ids)
    return Cell(f"{j + 1} {set_name(found.sets[j])}", places=of_passages(*numbers))


def set_name(chunk_set: ChunkSet) -> str:
    """A chunk set by its document and the places of its passages there."""
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
    values = less(result, COSTS | {"steps", "reasons", "reasons_without_floor", "revision"})
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
        lambda numbered: answering(writer(numbered)),
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
    used = settings_of(stamp)
    return scored_by(model, stamp.model, used.prompting, used.occlusion), ""  # type: ignore[arg-type]


def _placebos(
    case: Case, analysis: Analysis, tools: Loaders, snapshot: Snapshot | None
) -> tuple[Sequence[Passage], str]:
    if snapshot is None:
        return (), PLACEBOS_GONE
    if "placebos" in analysis.stamp.settings:
        return placebos(case, analysis.stamp, tools)
    # Before they were stamped they were drawn by the seed alone.
    return _drawn(case.chunk_sets, snapshot.passages, Occlusion().seed), ""


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
    stored = case.analysis(ATTR_RAG)
    if stored is None:
        raise AttributionError("This case has no Attr-RAG run. Ask with the method Attr-RAG first.")
    scorer = context.tools.scorer(options.model)
    # Under the prompt of the answers; the stamp says how the drops are scored.
    prompting, how = settings_of(case.stamp).prompting, occlusion_stamped(context.settings)
    score = scored_by(scorer, case.stamp.model, prompting, context.settings.occlusion, watch=context.watch)
    stamp = replace(stored.stamp, settings={**less(stored.stamp.settings, {"occlusion"}), **how})
    yield replace(stored, stamp=stamp, result=with_drops(KIND.read(stored), score))


def _cost(case: Case, options: ByModel, settings: Settings) -> str:
    held = KIND.of(case)
    return f"{rows_needed(len(held[-1].sets))} forward passes; the new column does not vote" if held else ""


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
