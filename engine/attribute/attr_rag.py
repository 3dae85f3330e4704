"""Attr-RAG: occlusion-guided context selection, stage 2 as a whole (sections IV-B-c and d).

Chunk sets come aligned and re-ranked (engine.retrieve). Then: the answer from all sets, the answer without each,
alpha in six metrics, votes and expansion, gap filling, and the answer from what is left: documents ordered by
their best set, chunks in document order. Every step is a value of its own in `AttrRag`.
Under the quoting reader the sets that count are those it quoted, and no others: its `alphas` say so by themselves.
Left open by the paper and fixed in METHODS section 1: numbering, floors, cap, order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from engine.answer.context import Steps
from engine.answer.prompt import build_prompt
from engine.attribute.gap_fill import Lookup, by_best_set, fill_gaps, without_overlap
from engine.attribute.occlusion import occlusion
from engine.attribute.regeneration import Answering, Regeneration, regenerate
from engine.attribute.scorer import answer_for, banner
from engine.attribute.selection import Selected, select
from engine.errors import AttributionError
from engine.models.protocols import Embedder, LanguageModel
from engine.progress import Watch
from engine.settings import Prompting, Selection
from engine.types import Answer, Attribution, ChunkSet, Passage, Step, Value

Score = Callable[[str, Sequence[Passage], Answer, Sequence[Sequence[int]]], Attribution]
"""(question, passages, answer, groups of passage numbers) to teacher-forced scores of the groups."""


class AttrRag(Value, frozen=True):
    """Every step of one run. Set indices count `sets` from 0 in re-rank order.

    `context` are the passages of all sets in prompt order; `drops` the teacher-forced scores of the sets (nats; the
    seventh column, which does not vote), None without a scorer. `kept` are the passages of the chosen sets, `filled`
    those that gap filling added, `passages` both in the order of the last prompt, `answer` what was written from them.
    """

    question: str
    sets: tuple[ChunkSet, ...]
    context: tuple[Passage, ...]
    regeneration: Regeneration
    drops: Attribution | None
    selection: Selected
    kept: tuple[Passage, ...]
    filled: tuple[Passage, ...]
    passages: tuple[Passage, ...]
    answer: Answer
    steps: tuple[Step, ...] = ()
    notes: tuple[str, ...] = ()


def attr_rag(
    question: str,
    chunk_sets: Sequence[ChunkSet],
    write: Answering,
    *,
    embedder: Embedder | None = None,
    lookup: Lookup | None = None,
    placebos: Sequence[Passage] = (),
    ablate: Callable[[Sequence[Passage]], Answering] | None = None,
    score: Score | None = None,
    settings: Selection | None = None,
    seed: int = 1337,
    watch: Watch | None = None,
    on_step: Callable[[Step], None] | None = None,
) -> AttrRag:
    """Run stage 2 on re-ranked `chunk_sets`; `answers_needed` says how many answers are written.

    `write` is any writer; `ablate` makes of all passages the writer of A_full and the ablated answers, for which each
    passage keeps its number (default `write`). `lookup` finds the passages that fill gaps; without it none are filled.
    Raises `AttributionError` without sets, `Cancelled` whose `partial` is the `Regeneration` so far.
    """
    settings, watch = settings or Selection(), watch or Watch()
    sources = _sources(chunk_sets)
    context = tuple(passage for source in sources for passage in source)
    without = ablate(context) if ablate is not None else write
    steps = Steps(watch, on_step)
    regeneration = steps.run(
        "occlusion by regeneration",
        lambda: regenerate(question, sources, without, embedder, placebos=placebos, seed=seed, watch=watch),
        lambda r: {"answers": r.written},
    )
    drops = _drops(steps, score, question, context, regeneration.full, _numbers(sources))
    selection = _selection(steps, regeneration, settings)
    kept = tuple(passage for j in selection.chosen for passage in sources[j])
    filled = fill_gaps(kept, lookup, settings.max_gap) if lookup is not None else ()
    passages = by_best_set(kept, filled)
    answer = steps.run("final answer", lambda: write(question, passages), lambda a: {"passages": len(passages)})
    return AttrRag(
        question=question,
        sets=tuple(chunk_sets),
        context=context,
        regeneration=regeneration,
        drops=drops,
        selection=selection,
        kept=kept,
        filled=filled,
        passages=passages,
        answer=answer,
        steps=steps.done,
        notes=(*selection.notes, *regeneration.notes, *_quoted(regeneration.full)),
    )


def _sources(chunk_sets: Sequence[ChunkSet]) -> list[list[Passage]]:
    """The passages of each set, no character twice."""
    if not chunk_sets:
        raise AttributionError("No passages were found, so there is nothing to select. Ask another question.")
    return [without_overlap(chunk_set.passages) for chunk_set in chunk_sets]


def _selection(steps: Steps, regeneration: Regeneration, settings: Selection) -> Selected:
    return steps.run(
        "selection",
        lambda: select(regeneration.alphas, regeneration.floors, settings),
        lambda s: {"kept": len(s.chosen), "sets": len(regeneration.alphas)},
    )


def _drops(
    steps: Steps,
    score: Score | None,
    question: str,
    context: tuple[Passage, ...],
    full: Answer,
    groups: tuple[tuple[int, ...], ...],
) -> Attribution | None:
    if score is None:
        return None
    return steps.run(
        "teacher-forced drop", lambda: score(question, context, full, groups), lambda a: {"forwards": a.forwards}
    )


def with_drops(found: AttrRag, score: Score) -> AttrRag:
    """The same run with its sets' teacher-forced drops scored afterwards: no answer is written again."""
    groups = _numbers([without_overlap(chunk_set.passages) for chunk_set in found.sets])
    return replace(found, drops=score(found.question, found.context, found.regeneration.full, groups))


def answers_needed(sets: int, placebos: int) -> int:
    """What one run writes: A_full, one without each set, A_full again, one with each placebo, the last answer."""
    return sets + placebos + 3


def _quoted(answer: Answer) -> tuple[str, ...]:
    if not answer.quotes:
        return ()
    return ("Under the quoting reader occlusion only returns the sets that it quoted.",)


def _numbers(sources: Sequence[Sequence[Passage]]) -> tuple[tuple[int, ...], ...]:
    """Citation numbers of each source's passages, counted through.

    >>> _numbers([["a", "b"], ["c"]])
    ((1, 2), (3,))
    """
    groups: list[tuple[int, ...]] = []
    reached = 1
    for source in sources:
        groups.append(tuple(range(reached, reached + len(source))))
        reached += len(source)
    return tuple(groups)


def scored_by(
    model: LanguageModel,
    writer: str,
    prompting: Prompting | None = None,
    *,
    watch: Watch | None = None,
) -> Score:
    """Teacher-forced drops under `model`; where it is not the writer, the banner stands in the notes."""
    prompting = prompting or Prompting()

    def score(
        question: str, passages: Sequence[Passage], answer: Answer, groups: Sequence[Sequence[int]]
    ) -> Attribution:
        own = answer_for(model, answer, writer, len(passages), prompting.citations)
        result = occlusion(model, build_prompt(question, passages, prompting), own, sources=groups, watch=watch)
        said = banner(writer, model.name)
        details = {**result.details, "revision": getattr(model, "revision", "")}
        return replace(result, notes=(said, *result.notes) if said else result.notes, details=details)

    return score
