"""Step by step on a case: its question, options and corpus in, a run of RAISE or a baseline with its stamp out.

In a replay what the model wrote is an input; every search is made again in the collection as it is now."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from engine.analyses.again import Repeating, Reply, check_unchanged
from engine.analyses.attribution import settings_of
from engine.analyses.floors import embedding_floor
from engine.analyses.kind import COSTS, STEPS, Again, ByModel, Kind, Loaders, Outcome, RunContext, less
from engine.answer.citations import annotate
from engine.answer.prompt import stamp_of
from engine.cases.blocks import Block, Cell, Facts, Fold, Notice, Section, Table, exchanged, part, place, plain, table
from engine.cases.review import Review
from engine.cases.store import added
from engine.core.errors import GroundworkError, RecordError
from engine.core.progress import Watch
from engine.core.settings import Reasoning, Retrieval, Settings
from engine.core.text import counted
from engine.core.values import Analysis, Answer, Case, Hit, Json, Stamp, Value, inputs_hash
from engine.corpus.collection import Collection
from engine.methods.raise_.solve import UNNAMED, Find, Means, known_calls, solutions
from engine.methods.raise_.steps import TEMPLATES
from engine.methods.raise_.threshold import threshold_for
from engine.methods.raise_.values import (
    METHODS,
    Call,
    Problem,
    ReasoningMethod,
    ReasonStep,
    Solution,
    check_options,
    letter,
    method_of,
    similarity,
)
from engine.models.protocols import Writer
from engine.models.self_test import identity
from engine.retrieve.search import check_query, search


def finder(collection: Collection, k: int) -> Find:
    """Dense search of a collection: T is a cosine, so no other score may order the passages."""
    how = Retrieval(k=k, mode="dense")
    return lambda text: tuple(search(collection, text, how))


def collection_for(method: ReasoningMethod, corpus: str | None, tools: Loaders) -> Collection | None:
    """The collection that a method searches; None for a method that does not search.

    Raise `RecordError` for a method that searches and a case without a corpus.
    """
    if method.searches is None:
        return None
    if not corpus:
        raise RecordError(f"This case has no corpus for {method.label} to search. Open the problem with a corpus.")
    return tools.collection(corpus)


def means_for(
    collection: Collection | None,
    model: Writer,
    settings: Settings,
    method: ReasoningMethod,
    known: dict[str, Call] | None = None,
) -> Means:
    """Model, search and T as every page and command gives them to a run."""
    corpus, embedder = (collection.name, collection.manifest.embedder) if collection is not None else ("", "")
    threshold = settings.reasoning.threshold
    if threshold is None and method.thresholded:
        threshold = threshold_for(embedder, corpus).value
    return Means(
        model=model,
        find=finder(collection, settings.reasoning.k) if collection is not None else lambda text: (),
        threshold=threshold,
        decoding=settings.decoding,
        max_steps=settings.reasoning.max_steps,
        demonstrations=settings.reasoning.demonstrations,
        known=known or {},
        corpus=corpus,
        embedder=embedder,
    )


class StepsOptions(ByModel, frozen=True):
    """Which method of `METHODS`, and who writes."""

    method: str = "raise"


def _run(case: Case, options: StepsOptions, context: RunContext) -> Iterator[Analysis]:
    """A run after every call and search; calls that the case already holds for this model are taken over."""
    model, settings = context.tools.generator(options.model), context.settings
    chosen, known, corpus = method_of(options.method), dict[str, Call](), case.corpus
    for earlier in case.analyses:
        stamp = earlier.stamp
        if earlier.kind == STEPS and (stamp.model, stamp.revision, stamp.dtype) == identity(model):
            run = KIND.read(earlier)
            corpus = corpus or run.corpus  # older runs searched the primer where a case had no corpus
            known.update(known_calls(run, model, settings.decoding))
    means = means_for(collection_for(chosen, corpus, context.tools), model, settings, chosen, known)
    problem = Problem(question=case.question, options=case.options)
    for solution in solutions(problem, chosen, means, context.watch):
        stamp = stamp_of(model, settings.prompting, settings.decoding, inputs_hash(case.question, ()), TEMPLATES)
        used = {**settings.reasoning.to_dict(), "threshold": solution.threshold, "corpus": solution.corpus}
        stamp = replace(stamp, settings={**stamp.settings, "reasoning": used})
        name = f"{STEPS}:{solution.method}:{solution.model}"  # one a method and model
        yield Analysis(id=name, kind=STEPS, stamp=stamp, result=solution)


def new_case(problem: Problem, corpus: str, case_id: str, created: str) -> Case:
    """A case for a problem that is not answered yet; raise `RecordError` where nobody can choose among its options."""
    check_options(problem.options)
    return Case(
        id=case_id,
        question=check_query(problem.question),
        options=problem.options,
        passages=(),
        answer=Answer(text="", finished=False),
        stamp=Stamp(model="not answered yet"),
        corpus=corpus,
        created=created,
    )


def answered(case: Case, analysis: Analysis) -> Case:
    """The case with the run's final answer as its answer, if it has none of its own."""
    solution = Solution.from_dict(analysis.result)
    if case.answer.text or solution.final is None:
        return case
    answer = annotate(Answer(text=solution.final.reply, finished=solution.final.finished), 0)
    return replace(case, answer=answer, prompt=solution.final.prompt, stamp=analysis.stamp)


def unchecked(case: Case, run: Solution) -> tuple[str, ...]:
    """The note that no verdict on the case is about the run's final answer; empty where it is the case's answer."""
    if run.final is None or case.answer.text in ("", run.final.reply):
        return ()
    return ("This answer was not checked. The verdict on the case is about the case's own answer.",)


def at_threshold(solution: Solution, threshold: float | None) -> Solution:
    """The same run with the passages split at another T: no call, no search; answers stay those of the run's own T."""
    steps = tuple(replace(step, threshold=threshold) if step.search else step for step in solution.steps)
    return replace(solution, steps=steps, threshold=threshold)


def changed_steps(solution: Solution, threshold: float | None) -> tuple[int, ...]:
    """Numbers of the steps that would read other passages at that T."""
    moved = at_threshold(solution, threshold)
    pairs = zip(solution.steps, moved.steps, strict=True)
    return tuple(old.number for old, new in pairs if old.passages != new.passages)


def step_case(case: Case, analysis: Analysis, number: int, case_id: str) -> Case:
    """A step as a case of its own, for attribution and facts; raise `RecordError` where it has no answer yet."""
    solution = Solution.from_dict(analysis.result)
    step = next((step for step in solution.steps if step.number == number), None)
    if step is None:
        raise RecordError(f"The run has {len(solution.steps)} steps; there is no step {number}.")
    asked = step.asked or (solution.final if solution.decomposition is None else None)
    if asked is None:
        raise RecordError(f"Step {number} has no answer yet. Wait for the run to finish, or start it again.")
    style = analysis.stamp.settings["prompting"]["citations"]
    answer = annotate(Answer(text=asked.reply, finished=asked.finished), len(step.passages), style)
    return Case(
        id=case_id,
        title=f"Step {number} of: {case.title or case.question}",
        question=step.question,
        options=() if solution.decomposition else case.options,
        passages=step.passages,
        answer=answer,
        prompt=asked.prompt,
        stamp=replace(analysis.stamp, inputs=inputs_hash(step.question, step.passages)),
        corpus=solution.corpus or case.corpus,
        created=analysis.stamp.created,
        hits=step.search.hits if step.search else (),
        parent=case.id,
    )


STATES = {
    "running": "not finished",
    "done": "finished",
    "unparsed": "the reply was unreadable",
    "stopped": "stopped early",
}


def _blocks(case: Case, run: Solution, review: Review) -> list[Block]:
    planned = run.decomposition.notes if run.decomposition else ()
    blocks: list[Block] = [Facts(_made(run)), *(Notice(note) for note in dict.fromkeys((*planned, *run.notes)))]
    if run.decomposition is not None and run.decomposition.subquestions:
        plan = ((str(n), sub.question, sub.query) for n, sub in enumerate(run.decomposition.subquestions, start=1))
        blocks.append(table("The plan", ("Step", "Sub-question", "Search query"), plan))
    blocks += [_step(step) for step in run.steps]
    if run.final is not None:
        said = plain(run.final.reply.strip() or "(nothing)", "answer")
        blocks.append(part(_final_title(run), [said, *map(Notice, unchecked(case, run))]))
    return [*blocks, *call_blocks(run.calls)]


def _made(run: Solution) -> tuple[tuple[str, str], ...]:
    method = next((method for method in METHODS if method.name == run.method), None)
    cost = run.cost
    written = "not counted" if cost.written is None else f"{cost.written:,}"
    threshold = "none" if run.threshold is None else f"{run.threshold:.2f}"
    pairs = (
        ("Method", f"{method.label}: {method.said}" if method else run.method),
        ("Model", run.model),
        ("State", STATES[run.state]),
        ("Corpus", run.corpus),
        ("Embedder", run.embedder),
        ("T, the lowest similarity at which a passage is kept", threshold),
        ("Cost", f"calls {cost.calls}, searches {cost.searches}, tokens written {written}, {cost.seconds:.1f} s"),
    )
    return tuple((name, value) for name, value in pairs if value)


def _step(step: ReasonStep) -> Section:
    blocks: list[Block] = [Facts(_asked_for(step)), *(Notice(note) for note in step.notes)]
    if step.search is not None:
        texts = ((str(rank), hit.passage.text) for rank, hit in enumerate(step.search.hits, start=1))
        full = table(f"Texts of the passages found in step {step.number}", ("Rank", "Text"), texts)
        blocks += [_hits(step, step.search.hits), Fold("The passages in full", (full,))]
    if step.principle is not None:
        blocks += [plain("Principle given to the model", "note"), plain(step.principle.reply, "answer")]
    if step.asked is not None:
        blocks += [plain("Sub-answer", "note"), plain(step.answer or "(the model wrote nothing)", "answer")]
    return part(f"Step {step.number}. {step.question}", blocks)


def _asked_for(step: ReasonStep) -> tuple[tuple[str, str], ...]:
    if step.search is None:
        return (("Search query", step.query), ("Searched", "nothing: this method does not search"))
    count = len(step.search.hits)
    return (
        ("Search query", step.query),
        (f"Searched: the {step.search.kind}", step.search.text),
        ("Kept", f"{len(step.kept)} of {count} passages"),
        ("Dropped under T", "T is not used" if step.threshold is None else f"{len(step.dropped)} of {count}"),
    )


def _hits(step: ReasonStep, hits: Sequence[Hit]) -> Table:
    kept = {hit.passage.id for hit in step.kept}
    rows = (
        (
            str(rank),
            Cell(hit.passage.label, note=place(hit.passage)),
            f"{similarity(hit):.3f}",
            "kept" if hit.passage.id in kept else Cell("dropped", faint=True),
        )
        for rank, hit in enumerate(hits, start=1)
    )
    limit = "every passage is given" if step.threshold is None else f"T = {step.threshold:.2f}"
    caption = f"Passages found in step {step.number}, most similar first; {limit}"
    return table(caption, ("Rank", "Passage", "Similarity", "By T"), rows, numeric={2})


def _final_title(run: Solution) -> str:
    source = "from the passages" if run.decomposition is None else "from the steps, without documents"
    if not run.problem.options:
        return f"Final answer, {source}"
    chosen = run.choice
    named = "it does not name an option" if chosen is None else f"({letter(chosen)}) {run.problem.options[chosen]}"
    return f"Final answer, {source}: {named}"


def call_blocks(calls: Sequence[Call]) -> list[Block]:
    """Calls of the model, folded: each with its exact prompt and the raw reply."""
    blocks: list[Block] = []
    for number, asked in enumerate(calls, start=1):
        cut = "" if asked.finished else ", cut at the length limit"
        tokens = "" if asked.written is None else f" {counted(asked.written, 'token')} written,"
        said = f"Call {number}, {asked.purpose}: the prompt, then the reply{cut}.{tokens} {asked.seconds:.1f} s."
        blocks += exchanged(said, asked.prompt.text, asked.reply, f" {number}")
    return [Fold(f"Exact prompts and raw replies ({len(calls)})", tuple(blocks))] if blocks else []


# Beside costs: the tokens read and written, and the replies themselves.
LEFT_OUT = COSTS - {"notes"} | {"read", "written", "reply", "finished"}


def _comparable(solution: Value | Json) -> Json:
    """The part of a run that a replay compares: without a model it does not rank options."""
    kept = less(solution, LEFT_OUT | {"option"})
    return {**kept, "notes": [note for note in kept.get("notes", ()) if not note.startswith(UNNAMED)]}


class StepsGiven(Value, frozen=True):
    """The replies with the hashes of their prompts, the method, and which passages were found."""

    replies: tuple[Reply, ...]
    method: str
    finished: bool
    passages: tuple[str, ...]


def _given(solution: Solution) -> StepsGiven:
    replies = (Reply.of(Answer(text=a.reply, finished=a.finished), a.prompt) for a in solution.calls)
    found = (hit.passage.id for step in solution.steps if step.search for hit in step.search.hits)
    return StepsGiven(
        replies=tuple(replies),
        method=solution.method,
        finished=solution.state in ("done", "unparsed"),
        passages=tuple(dict.fromkeys(found)),
    )


def run_settings(stamp: Stamp) -> Settings:
    """The stamped settings of a run."""
    own, stamped = settings_of(stamp), dict(stamp.settings.get("reasoning", {}))
    stamped.pop("corpus", None)
    reasoning = Reasoning.from_dict({"demonstrations": 0, **stamped})  # older runs were shown none
    return Settings(prompting=own.prompting, decoding=own.decoding, reasoning=reasoning)


def _again(case: Case, analysis: Analysis, tools: Loaders) -> Outcome:
    """The run again; where a prompt is another one than then, it ends there."""
    asked, stamp = StepsGiven.from_dict(analysis.result), analysis.stamp
    if not asked.finished:
        return Outcome(why="the run was stopped early; let it finish, then replay it")
    method, corpus = method_of(asked.method), stamp.settings.get("reasoning", {}).get("corpus", "")
    collection = collection_for(method, corpus or case.corpus, tools)
    if collection is not None:
        check_unchanged(collection, asked.passages)
    repeating = Repeating(asked.replies, name=stamp.model)
    solution, why = None, ""
    try:
        means = means_for(collection, repeating, run_settings(stamp), method)
        means = dataclasses.replace(means, corpus=corpus or means.corpus)  # older runs name one in any case
        problem = Problem(question=case.question, options=case.options)
        for grown in solutions(problem, method, means, Watch()):
            solution = grown
    except GroundworkError as error:
        why = str(error)
    if solution is None:
        return Outcome(why=why)
    texts = [hit.passage.text for step in solution.steps if step.search for hit in step.search.hits]
    floor = embedding_floor(collection.embedder, case.question, texts) if collection is not None else 0.0
    return Outcome(values=_comparable(solution), floor=floor, why=why)


def _cost(case: Case, options: StepsOptions, settings: Settings) -> str:
    """Calls of the model for a short plan and for a long one."""
    method = method_of(options.method)
    low, high = method.calls(2), method.calls(5)
    calls = f"{low} calls of the model"
    return calls if low == high else f"{low} to {high} calls of the model for 2 to 5 sub-questions"


KIND: Kind[Solution] = Kind(
    name=STEPS,
    title="Step by step",
    result=Solution,
    blocks=_blocks,
    options=StepsOptions,
    run=_run,
    cost=_cost,
    terms=("raise", "threshold"),
    again=Again(_again, _given, _comparable),
    keeps_each=True,
    entered=lambda case, analysis: answered(added(case, analysis), analysis),
    stopped=lambda analysis: replace(analysis, result=replace(KIND.read(analysis), state="stopped")),
    scores_answer=False,
)
