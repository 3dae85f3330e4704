"""Step by step on a case: its question, options and corpus in, an `Analysis` with its stamp out, and back again.

The analysis is handed over after every call, so that a case on the disk holds what was finished whatever happens.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from engine.answer.citations import annotate
from engine.answer.write import stamp_of
from engine.core.errors import Cancelled, RecordError
from engine.core.progress import Watch
from engine.core.settings import Retrieval, Settings
from engine.core.values import (
    Analysis,
    Answer,
    Case,
    Hit,
    Stamp,
    inputs_hash,
)
from engine.corpus.collection import Collection
from engine.methods.raise_.solve import (
    Find,
    Means,
    known_calls,
    solve,
)
from engine.methods.raise_.threshold import threshold_for
from engine.methods.raise_.values import Asked, Method, Problem, ReasonStep, Solution, method_of
from engine.models.protocols import Writer
from engine.retrieve.search import check_query, search

KIND = "steps"
OnAnalysis = Callable[[Analysis], object]


def finder(collection: Collection, k: int) -> Find:
    """Dense search of a collection: T is a cosine, so no other score may order the passages."""
    how = Retrieval(k=k, mode="dense")

    def find(text: str) -> tuple[Hit, ...]:
        return tuple(search(collection, text, how))

    return find


def means_for(
    collection: Collection, model: Writer, settings: Settings, method: Method, known: dict[str, Asked] | None = None
) -> Means:
    """Model, search and T as every page and command gives them to a run."""
    embedder = collection.manifest.embedder
    threshold = settings.reasoning.threshold
    if threshold is None and method.thresholded:
        threshold = threshold_for(embedder, collection.name).value
    return Means(
        model=model,
        find=finder(collection, settings.reasoning.k),
        threshold=threshold,
        decoding=settings.decoding,
        max_steps=settings.reasoning.max_steps,
        demonstrations=settings.reasoning.demonstrations,
        known=known or {},
        corpus=collection.name,
        embedder=embedder,
    )


def steps_of(
    case: Case,
    method: str,
    model: Writer,
    collection: Collection,
    settings: Settings,
    *,
    watch: Watch | None = None,
    on_analysis: OnAnalysis | None = None,
) -> Analysis:
    """Run a method on a case's question; calls that the case already holds for this model are taken over.

    `on_analysis` gets the run after every call. `Cancelled` carries the analysis as it stood in `partial`.
    """
    chosen, known = method_of(method), {}
    for earlier in solutions_of(case):
        known.update(known_calls(earlier, model, settings.decoding))
    means = means_for(collection, model, settings, chosen, known)

    def told(solution: Solution) -> None:
        if on_analysis is not None:
            on_analysis(analysis_of(case, solution, model, settings))

    problem = Problem(question=case.question, options=case.options)
    try:
        return analysis_of(case, solve(problem, chosen, means, watch, told), model, settings)
    except Cancelled as stop:
        partial = analysis_of(case, stop.partial, model, settings) if isinstance(stop.partial, Solution) else None
        raise Cancelled(str(stop), partial=partial) from stop


def analysis_of(case: Case, solution: Solution, model: Writer, settings: Settings) -> Analysis:
    """A run as an analysis of the case; one a method and model."""
    stamp = stamp_of(model, settings.prompting, settings.decoding, inputs_hash(case.question, ()))
    used = {**settings.reasoning.to_dict(), "threshold": solution.threshold, "corpus": solution.corpus}
    stamp = replace(stamp, settings={**stamp.settings, "reasoning": used})
    return Analysis(id=f"{KIND}:{solution.method}:{solution.model}", kind=KIND, stamp=stamp, result=solution.to_dict())


def solutions_of(case: Case) -> tuple[Solution, ...]:
    """The runs that a case holds, the one added last at the end."""
    return tuple(Solution.from_dict(analysis.result) for analysis in case.analyses if analysis.kind == KIND)


def new_case(problem: Problem, corpus: str, case_id: str, created: str) -> Case:
    """A case for a problem that is not answered yet."""
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
    """A step as a case of its own: sub-question, the passages it kept, sub-answer and the exact prompt.

    Attribution and facts run on it as on any other. Raises `RecordError` where the step has no answer yet.
    """
    solution = Solution.from_dict(analysis.result)
    step = _step(solution, number)
    asked = step.asked or (solution.final if solution.decomposition is None else None)
    if asked is None:
        raise RecordError(f"Step {number} has no answer yet. Let the run finish, or start it again.")
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


def _step(solution: Solution, number: int) -> ReasonStep:
    for step in solution.steps:
        if step.number == number:
            return step
    raise RecordError(f"The run has {len(solution.steps)} steps; there is no step {number}.")
