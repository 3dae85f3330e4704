"""Attr-RAG: occlusion-guided context selection, stage 2 as a whole (Attr-RAG, sections IV-B-c and IV-B-d).

Chunk sets come aligned and re-ranked (engine/retrieve/search.py). Then: the answer from all sets, the answer without
each (regeneration.py), alpha in six metrics, votes and expansion, gap filling, and the answer from what is left:
documents ordered by their best set, chunks in document order. Every step is a value of its own in `AttrRag`.
The paper leaves numbering, floors, cap and order open: docs/methods/attr-rag.md. Left out: nothing of the two sections.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count, islice, pairwise, takewhile

import numpy as np
from msgspec.structs import replace

from engine.answer.context import Steps, without_overlap
from engine.answer.prompt import build_prompt
from engine.core.errors import AttributionError, PromptTooLong
from engine.core.metrics import bleu
from engine.core.progress import Watch, whole
from engine.core.settings import PAPERS, Occlusion, Prompting, Selection
from engine.core.values import Answer, Attribution, ChunkSet, Hit, Passage, Step, Value
from engine.methods.occlusion import occlusion
from engine.methods.regeneration import PLACEBOS, Answering, Regeneration, regenerate, similarities
from engine.methods.subject import answer_for, banner
from engine.models.protocols import Embedder, LanguageModel, Reranker
from engine.retrieve.search import rerank_hits

# Gap filling: {55, 57, 59} becomes 55 to 59, from the document itself, also where retrieval never returned the chunk.

Lookup = Callable[[str, int], Passage | None]
"""(document id, ordinal) to the passage there, None where the document has none."""


def missing_ordinals(ordinals: Sequence[int], max_gap: int) -> tuple[int, ...]:
    """Ordinals that fill the gaps of `ordinals`.

    >>> missing_ordinals([59, 55, 57, 70], 2)
    (56, 58)
    """
    steps = pairwise(sorted(set(ordinals)))
    return tuple(n for low, high in steps if high - low <= max_gap for n in range(low + 1, high))


def fill_gaps(passages: Sequence[Passage], lookup: Lookup, max_gap: int) -> tuple[Passage, ...]:
    """The passages that filling adds, in order of documents as given and then of ordinals."""
    held: dict[str, list[int]] = {}
    for passage in passages:
        held.setdefault(passage.document, []).append(passage.ordinal)
    found = (lookup(document, gap) for document, there in held.items() for gap in missing_ordinals(there, max_gap))
    return tuple(passage for passage in found if passage is not None)


def by_best_set(passages: Sequence[Passage], added: Sequence[Passage]) -> tuple[Passage, ...]:
    """Documents in order of their first passage in `passages` (their best set), chunks in document order.

    Overlapping chunks lose the characters that the one before them has, so that none stands twice in a prompt.
    """
    documents: dict[str, dict[int, Passage]] = {passage.document: {} for passage in passages}
    for passage in (*added, *passages):
        documents[passage.document][passage.ordinal] = passage
    return tuple(p for own in documents.values() for p in without_overlap([own[ordinal] for ordinal in sorted(own)]))


# Selection: votes, expansion, cap. Sets are in re-rank order, which breaks every tie. Floor, cap and the reading
# `chain` of the expansion are ours; `as_published` has none of them.

_ROUNDING = 1e-9  # 0.90 - 0.85 is 0.05000000000000004
NOTHING_CHANGED = "No set changed the answer"


class Selected(Value, frozen=True):
    """The chosen sets and the reasons; indices count the sets from 0 in re-rank order.

    `votes[j]` = metrics that score set j highest, `chosen_by[j]` = metrics whose expansion takes set j,
    `primary` = S* (None if no set is above the floor), `chosen` ascending, `limit` = most sets that may be kept.
    `reasons[j]` says why set j was kept or dropped; `without_floor`, with its own reasons, and `by_paper`
    (`as_published`) are what the same alphas would have kept under other rules.
    """

    primary: int | None
    chosen: tuple[int, ...]
    votes: tuple[int, ...]
    chosen_by: tuple[tuple[str, ...], ...]
    limit: int
    capped: bool
    reasons: tuple[str, ...] = ()
    without_floor: tuple[int, ...] = ()
    reasons_without_floor: tuple[str, ...] = ()
    by_paper: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()

    def why(self, j: int) -> tuple[str, str, str]:
        """Why set j was kept or dropped, why without the floor, and whether the paper's rule keeps it."""
        own = self.reasons[j]
        free, published = ("kept" if j in rule else "dropped" for rule in (self.without_floor, self.by_paper))
        if self.reasons_without_floor:  # older results have none
            free = "the same" if self.reasons_without_floor[j] == own else self.reasons_without_floor[j]
        return own, free, published


WHY = ("Chunk set", "Under these settings", "Without the floor", "The paper's rule alone")  # columns of `Selected.why`


def votes(alphas: Mapping[str, Sequence[float]], floors: Mapping[str, float]) -> tuple[int, ...]:
    """Metrics whose largest alpha is set j's; a tie votes for each; a metric under its floor does not vote."""
    best = [[v == max(row) and v > floors.get(metric, 0.0) for v in row] for metric, row in alphas.items()]
    return tuple(map(sum, zip(*best, strict=True)))


def chain(values: Sequence[float], threshold: float) -> frozenset[int]:
    """Sets reached from the top while each step down is at most `threshold`.

    >>> sorted(chain([0.50, 0.10, 0.46, 0.42], 0.05))
    [0, 2, 3]
    """
    order = _descending(values)
    steps = takewhile(lambda step: values[step[0]] - values[step[1]] <= threshold + _ROUNDING, pairwise(order))
    return frozenset(order[:1]).union(below for _, below in steps)


def neighbour(values: Sequence[float], threshold: float) -> frozenset[int]:
    """Sets that exceed the next lower one by at most `threshold`, wherever they stand; the last has no next.

    >>> sorted(neighbour([0.50, 0.10, 0.46, 0.12], 0.05))
    [0, 3]
    """
    steps = pairwise(_descending(values))
    return frozenset(above for above, below in steps if values[above] - values[below] <= threshold + _ROUNDING)


EXPANSIONS = {"chain": chain, "neighbour": neighbour}


def _descending(values: Sequence[float]) -> list[int]:
    return sorted(range(len(values)), key=lambda j: (-values[j], j))


def select(
    alphas: Mapping[str, Sequence[float]], floors: Mapping[str, float], settings: Selection = Selection()
) -> Selected:
    """Choose chunk sets from alpha_M (each metric one value per set, in [0, 1]) and the floors of regeneration."""
    used = {} if settings.floor == "none" else floors
    found, free = (_choose(alphas, own, settings) for own in (used, {}))
    return replace(
        found,
        without_floor=free.chosen,
        reasons_without_floor=free.reasons,
        by_paper=_choose(alphas, {}, as_published(settings)).chosen,
    )


def as_published(settings: Selection) -> Selection:
    """The paper's rule alone: its majority, no floor, no cap, and its wording of the expansion read literally.

    A set without which the answer is the same (alpha 0 in a metric) is not chosen by that metric here either.
    """
    given = {path.partition(".")[::2]: paper.value for path, paper in PAPERS["attr-rag"].gives.items()}
    return replace(settings, **{name: value for (stage, name), value in given.items() if stage == "selection"})


def _choose(alphas: Mapping[str, Sequence[float]], floors: Mapping[str, float], settings: Selection) -> Selected:
    tally = votes(alphas, floors)
    count = len(tally)
    limit = max(1, int(settings.max_share * count + _ROUNDING))
    expand = EXPANSIONS[settings.expansion]
    taken = {metric: expand(values, settings.neighbour_threshold) for metric, values in alphas.items()}
    chosen_by = tuple(
        tuple(m for m, values in alphas.items() if j in taken[m] and values[j] > floors.get(m, 0.0))
        for j in range(count)
    )
    means = np.mean([list(values) for values in alphas.values()], axis=0)
    primary = min(range(count), key=lambda j: (-tally[j], -means[j], j)) if any(tally) else None
    others = [j for j in range(count) if j != primary and len(chosen_by[j]) >= settings.min_metrics]
    wanted = sorted(others, key=lambda j: (-len(chosen_by[j]), -means[j], j))
    wanted = list(range(limit)) if primary is None else [primary, *wanted]
    notes: tuple[str, ...] = ()
    if primary is None:
        why = "No set is above its floor in any metric" if means.any() else NOTHING_CHANGED
        notes = (f"{why}; the first {limit} of {count} in re-rank order are kept.",)
    elif len(wanted) > limit:
        notes = (f"The cap of {limit} of {count} sets applies: {len(wanted) - limit} more would be kept.",)
    found = Selected(
        primary=primary,
        chosen=tuple(sorted(wanted[:limit])),
        votes=tally,
        chosen_by=chosen_by,
        limit=limit,
        capped=len(wanted) > limit,
        notes=notes,
    )
    return replace(found, reasons=tuple(_reason(found, j, alphas, floors, settings) for j in range(count)))


def _reason(
    found: Selected, j: int, alphas: Mapping[str, Sequence[float]], floors: Mapping[str, float], settings: Selection
) -> str:
    metrics, reach, own = len(alphas), len(found.chosen_by[j]), [values[j] for values in alphas.values()]
    needed = f"{reach} of {metrics} metrics choose it, {settings.min_metrics} are needed"
    tied = found.primary is not None and found.votes.count(found.votes[found.primary]) > 1
    if j == found.primary:
        most = f"Kept: it has the most votes ({found.votes[j]} of {metrics} metrics)"
        return f"{most} and wins a tie by its mean or rank." if tied else f"{most}."
    if found.primary is None and j in found.chosen:
        return f"Kept: no metric chose a set, and it is among the first {found.limit} in re-rank order."
    if j in found.chosen:
        return f"Kept: {needed}."
    if found.primary is not None and reach >= settings.min_metrics:
        return f"Dropped by the limit of {found.limit} sets: {needed}."
    if not any(own):
        return "Dropped: the answer is the same without it."
    if all(values[j] <= floors.get(metric, 0.0) for metric, values in alphas.items()):
        return "Dropped: under its floor in every metric."
    if tied and found.primary is not None and found.votes[j] == found.votes[found.primary]:
        return f"Dropped: it loses a tie in votes by its mean or rank; {needed}."
    return f"Dropped: {needed}."


Score = Callable[[str, Sequence[Passage], Answer, Sequence[Sequence[int]]], Attribution]
"""(question, passages, answer, groups of passage numbers) to teacher-forced scores of the groups."""


class AttrRag(Value, frozen=True):
    """Every step of one run, as far as it came. Set indices count `sets` from 0 in re-rank order.

    `context` are the passages of all sets in prompt order; `drops` the teacher-forced scores of the sets (nats; the
    seventh column, which does not vote), None without a scorer. `kept` are the passages of the chosen sets, `filled`
    those that gap filling added, `passages` both in the order of the last prompt, `answer` what was written from them.
    """

    question: str
    sets: tuple[ChunkSet, ...]
    context: tuple[Passage, ...]
    regeneration: Regeneration
    drops: Attribution | None = None
    selection: Selected = Selected(primary=None, chosen=(), votes=(), chosen_by=(), limit=0, capped=False)
    kept: tuple[Passage, ...] = ()
    filled: tuple[Passage, ...] = ()
    passages: tuple[Passage, ...] = ()
    answer: Answer = Answer(text="", finished=False)
    steps: tuple[Step, ...] = ()
    notes: tuple[str, ...] = ()


def selecting(
    question: str,
    chunk_sets: Sequence[ChunkSet],
    write: Callable[[Sequence[Passage]], Answering],
    *,
    embedder: Embedder,
    lookup: Lookup | None = None,
    placebos: Sequence[Passage] = (),
    score: Score | None = None,
    settings: Selection = Selection(),
    seed: int = 1337,
    watch: Watch = Watch(),
) -> Iterator[AttrRag]:
    """Stage 2 on re-ranked `chunk_sets`: the run after each step; `answers_needed` says how many answers are written.

    `write` makes any writer, given the passages whose numbers stay: for A_full and the ablated answers those of all
    sets, for the last answer none. `lookup` finds the passages that fill gaps; without it none are filled. Raises
    `AttributionError` without sets, `Cancelled`.
    """
    if not chunk_sets:
        raise AttributionError("The search returned no passages, so there is nothing to select. Ask another question.")
    sources = _sources(chunk_sets)
    steps, context = Steps(watch), tuple(passage for source in sources for passage in source)
    written = steps.run(
        "occlusion by regeneration",
        lambda: regenerate(
            question, sources, write(context), embedder, placebos=placebos, floor=settings.floor, seed=seed, watch=watch
        ),
        lambda r: {"answers": r.written},
    )
    sets = tuple(chunk_sets)
    run = AttrRag(question=question, sets=sets, context=context, regeneration=written, steps=steps.done)
    yield run
    if score is not None:
        try:
            drops = steps.run("teacher-forced drop", lambda: _drops(run, score), lambda a: {"forwards": a.forwards})
            run = replace(run, drops=drops, steps=steps.done)
        except (AttributionError, PromptTooLong) as error:  # this column does not vote
            run = replace(run, notes=(f"The teacher-forced drops are missing. {error}",))
        yield run
    chosen = steps.run(
        "selection",
        lambda: select(written.alphas, written.floors, settings),
        lambda s: {"kept": len(s.chosen), "sets": len(sources)},
    )
    run = replace(_with_selection(run, chosen, lookup, settings.max_gap), steps=steps.done)
    yield run
    passages = run.passages
    answer = steps.run("final answer", lambda: write(())(question, passages), lambda a: {"passages": len(passages)})
    yield replace(run, answer=answer, steps=steps.done)


attr_rag = whole(selecting)


def _sources(chunk_sets: Sequence[ChunkSet]) -> list[list[Passage]]:
    return [without_overlap(chunk_set.passages) for chunk_set in chunk_sets]


def _with_selection(run: AttrRag, chosen: Selected, lookup: Lookup | None, max_gap: int) -> AttrRag:
    """The run with the chosen sets, their passages and those that fill their gaps, and all notes."""
    sources = _sources(run.sets)
    kept = tuple(passage for j in chosen.chosen for passage in sources[j])
    filled = fill_gaps(kept, lookup, max_gap) if lookup is not None else ()
    quoted = "With the quoting reader, occlusion only shows which sets it quoted."
    return replace(
        run,
        selection=chosen,
        kept=kept,
        filled=filled,
        passages=by_best_set(kept, filled),
        notes=(*run.notes, *chosen.notes, *run.regeneration.notes, *([quoted] if run.regeneration.full.quotes else [])),
    )


def _drops(run: AttrRag, score: Score) -> Attribution:
    number = count(1)
    groups = [tuple(islice(number, len(source))) for source in _sources(run.sets)]
    return score(run.question, run.context, run.regeneration.full, groups)


def with_drops(run: AttrRag, score: Score) -> AttrRag:
    """The same run with its sets' teacher-forced drops scored afterwards: no answer is written again."""
    return replace(run, drops=_drops(run, score))


def answers_needed(sets: int) -> int:
    """The answers of one run: A_full, one without each set, A_full again, one with each placebo, the last answer."""
    return sets + PLACEBOS + 3


def scored_by(
    model: LanguageModel,
    writer: str,
    prompting: Prompting = Prompting(),
    settings: Occlusion = Occlusion(),
    *,
    watch: Watch = Watch(),
) -> Score:
    """Teacher-forced drops under `model`; if it is not the writer, the notes have the banner."""

    def score(
        question: str, passages: Sequence[Passage], answer: Answer, groups: Sequence[Sequence[int]]
    ) -> Attribution:
        own = answer_for(model, answer, writer, len(passages))
        prompt = build_prompt(question, passages, prompting)
        result = occlusion(model, prompt, own, sources=groups, settings=settings, watch=watch)
        said = banner(writer, model.name)
        details = replace(result.details, revision=getattr(model, "revision", ""))
        return replace(result, notes=(said, *result.notes) if said else result.notes, details=details)

    return score


# Its baselines and its table (section V): vanilla and re-ranked RAG at k = 10, 20, 30. Against a reference: cosine,
# BLEU, Jaccard, ROUGE-1/2/L/Lsum F1; the winner is the method that most metrics favour. Left out: eight further metrics
# that the paper computes and does not report.

DEPTHS = (10, 20, 30)  # Attr-RAG, Table I
METHODS = ("vanilla", "re-ranked")


def baseline_passages(
    method: str, depth: int, question: str, retrieved: Sequence[Hit], reranker: Reranker
) -> tuple[Passage, ...]:
    """The passages that vanilla or re-ranked RAG reads: the first `depth` of the pool, `retrieved` in this order."""
    hits = rerank_hits(question, retrieved, reranker) if method == "re-ranked" else retrieved
    return tuple(hit.passage for hit in hits[:depth])


def against_reference(answer: str, reference: str, embedder: Embedder) -> dict[str, float]:
    """The seven similarities of an answer to the reference."""
    return {**similarities(reference, answer, embedder), "bleu": bleu(reference, answer)}


def winners(table: Mapping[str, Mapping[str, float]]) -> tuple[str, ...]:
    """The methods that most metrics favour; a tied metric favours each, and methods can tie. None of an empty table."""
    best = {metric: max(row[metric] for row in table.values()) for row in table.values() for metric in row}
    wins = {method: sum(row[metric] == best[metric] for metric in best) for method, row in table.items()}
    return tuple(method for method, count in wins.items() if count == max(wins.values()))
