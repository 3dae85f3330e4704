"""RAISE (section 3 and Algorithm 1) and, through the same loop, its baselines.

x -> (r_i, q_i); per i in order: q*_i, the top k for it, those under T dropped, a_i; then y from x and all (r, a). A
step for which T keeps nothing is answered from the earlier steps and says so. `solutions` yields the run after every
call, so a run that is stopped or fails keeps what was finished. Left out: nothing of Algorithm 1; `max_steps` bounds
a model that does not stop listing sub-questions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace

from engine.core.errors import PromptTooLong
from engine.core.progress import Watch, whole
from engine.core.settings import Decoding
from engine.core.values import Hit, Passage, Prompt
from engine.methods.raise_.steps import (
    chain_of_thought_prompt,
    decompose_prompt,
    final_answer_prompt,
    parse,
    search_prompt,
    sub_answer_prompt,
)
from engine.methods.raise_.values import (
    Call,
    Problem,
    ProblemDecomposition,
    Purpose,
    ReasoningMethod,
    ReasonStep,
    Search,
    Searched,
    Solution,
    SubQuestion,
)
from engine.methods.refinement.costs import metered
from engine.models.closed import after, by_likelihood, can_score
from engine.models.protocols import Writer, require

Find = Callable[[str], tuple[Hit, ...]]
NOTHING_KEPT = "No passage reached T. The earlier steps and the model's own knowledge answered this step."
NOTHING_FOUND = "The search found no passages. The earlier steps and the model's own knowledge answered this step."
EMPTY_ANSWER = "The model wrote nothing for this step."
UNPARSED = "The reply contains no readable sub-question, so there are no steps and no answer."
NO_OPTION = "The answer does not name an option, so none counts as chosen."
OPTION_ASKED = "The answer does not name an option. Asked for one, the model ranks ({}) first, with a share of {:.0%}."


@dataclass(frozen=True)
class Means:
    """The inputs of a run: the same for every compared method.

    `find` gives the top k passages of a text, best first. `known` holds calls of an earlier run with this model and
    decoding by the text of their prompts: they are not made again, and count as if they were.
    """

    model: Writer
    find: Find
    threshold: float | None = None
    decoding: Decoding = field(default_factory=Decoding)
    max_steps: int = 30
    demonstrations: int = 0
    known: Mapping[str, Call] = field(default_factory=dict)
    corpus: str = ""
    embedder: str = ""


def known_calls(earlier: Solution, model: Writer, decoding: Decoding) -> dict[str, Call]:
    """The calls of an earlier run that another one may take over; none where model or decoding differ."""
    if (earlier.model, earlier.decoding) != (model.name, decoding):
        return {}
    return {asked.prompt.text: asked for asked in earlier.calls}


def solutions(
    problem: Problem, method: ReasoningMethod, means: Means, watch: Watch | None = None
) -> Iterator[Solution]:
    """The run as it grows, one value after every call and every search; the last one is finished.

    Raises what the model or the search raises.
    """
    require(means.model, "generate")
    watch = watch or Watch()
    start = Solution(
        method=method.name,
        model=means.model.name,
        problem=problem,
        decoding=means.decoding,
        corpus=means.corpus,
        embedder=means.embedder if method.searches else "",
        threshold=means.threshold if method.thresholded else None,
    )
    return _by_steps(start, method, means, watch) if method.decomposed else _directly(start, method, means, watch)


solve = whole(solutions)


def _by_steps(solution: Solution, method: ReasoningMethod, means: Means, watch: Watch) -> Iterator[Solution]:
    """Algorithm 1."""
    decomposition = decompose(solution.problem, means, watch)
    solution = replace(solution, decomposition=decomposition)
    yield solution
    if not decomposition.subquestions:
        yield replace(solution, state="unparsed", notes=(UNPARSED,))
        return
    count = len(decomposition.subquestions)
    for number, sub in enumerate(decomposition.subquestions, start=1):
        watch.step(f"step {number} of {count}", number - 1, count)
        earlier = solution.steps
        for step in _step(
            solution, ReasonStep(number=number, question=sub.question, query=sub.query), method, means, watch
        ):
            solution = replace(solution, steps=(*earlier, step))
            yield solution
    prompt = final_answer_prompt(solution.problem, solution.steps)
    yield from _finished(solution, ask(means, "answer", prompt, watch), means, watch)


def _directly(solution: Solution, method: ReasoningMethod, means: Means, watch: Watch) -> Iterator[Solution]:
    """Without decomposition: the problem is its own only step, and the answer sees the passages."""
    passages: tuple[Passage, ...] = ()
    if method.searches is not None:
        question = solution.problem.question
        search = search_for(method.searches, SubQuestion(question=question, query=question), means, watch)
        step = _searched(ReasonStep(number=1, question=question, query=question), search, solution.threshold)
        passages = step.passages
        solution = replace(solution, steps=(step,))
        yield solution
    asked = ask(means, "answer", chain_of_thought_prompt(solution.problem, passages), watch)
    yield from _finished(solution, asked, means, watch)


def _step(
    solution: Solution, step: ReasonStep, method: ReasoningMethod, means: Means, watch: Watch
) -> Iterator[ReasonStep]:
    """One step: search with T where the method searches, principle where it steps back, sub-answer."""
    sub, earlier = SubQuestion(question=step.question, query=step.query), solution.steps
    if method.searches is not None:
        step = _searched(step, search_for(method.searches, sub, means, watch), solution.threshold)
        yield step
    if method.principled:
        prompt = search_prompt("principle", sub, means.demonstrations)
        step = replace(step, principle=ask(means, "principle", prompt, watch))
        yield step
    asked = ask(means, "sub-answer", sub_answer_prompt(solution.problem, earlier, step), watch)
    empty = () if asked.reply.strip() else (EMPTY_ANSWER,)
    yield replace(step, asked=asked, notes=(*step.notes, *empty))


def decompose(problem: Problem, means: Means, watch: Watch) -> ProblemDecomposition:
    """Ask for the sub-questions and read the reply; an unreadable one has no sub-questions."""
    asked = ask(means, "sub-questions", decompose_prompt(problem, means.demonstrations), watch)
    subquestions, notes = parse(asked.reply, means.max_steps)
    return ProblemDecomposition(subquestions=subquestions, asked=asked, notes=notes)


def search_for(kind: Searched, sub: SubQuestion, means: Means, watch: Watch) -> Search:
    """Find the top k for the text of that kind; a text that the model left empty gives way to the search query."""
    asked, text, note = None, sub.question, ""
    if kind == "logical query" or kind == "principle" or kind == "hypothetical answer":
        asked = ask(means, kind, search_prompt(kind, sub, means.demonstrations), watch)
        text = asked.reply.strip()
    if not text:
        text, note = sub.query, f"The model did not write a {kind}, so the search used the search query."
    watch.step("search")
    return Search(kind=kind, text=text, hits=means.find(text), asked=asked, note=note)


def ask(means: Means, purpose: Purpose, prompt: Prompt, watch: Watch) -> Call:
    """One call, or the same one out of an earlier run."""
    if prompt.text in means.known:
        return means.known[prompt.text]
    watch.step(purpose)
    with metered(means.model) as meter:
        answer = means.model.generate(prompt, means.decoding, None, watch)
    encode = getattr(means.model, "encode", None)
    return Call(
        purpose=purpose,
        prompt=prompt,
        reply=answer.text,
        read=len(encode(prompt).ids) if encode is not None else None,
        written=len(answer.tokens) if answer.tokens or not answer.text else None,
        seconds=meter.cost.seconds,
        finished=answer.finished,
    )


def _searched(step: ReasonStep, search: Search, threshold: float | None) -> ReasonStep:
    """The step with its search and T, and a note where nothing is left to read."""
    step = replace(step, search=search, threshold=threshold)
    notes = [search.note] if search.note else []
    if not step.kept:
        notes.append(NOTHING_KEPT if search.hits else NOTHING_FOUND)
    return replace(step, notes=tuple(notes))


def _finished(solution: Solution, asked: Call, means: Means, watch: Watch) -> Iterator[Solution]:
    """The run with its answer; if the answer does not name an option, the model is asked for one."""
    done = replace(solution, final=asked, state="done")
    if not done.problem.options or done.choice is not None:
        yield done
        return
    option = ask_option(done.problem, asked, means, watch)
    if option is None:
        yield replace(done, notes=(*done.notes, NO_OPTION))
        return
    note = OPTION_ASKED.format(option.reply, option.probabilities[option.reply])
    yield replace(done, option=option, notes=(*done.notes, note))


def ask_option(problem: Problem, answered: Call, means: Means, watch: Watch) -> Call | None:
    """The letter that is likeliest after an answer; None where the model cannot score, or its window is full."""
    if not can_score(means.model):
        return None
    prompt = after(answered.prompt, answered.reply, problem.letters)
    if prompt.text in means.known:
        return means.known[prompt.text]
    watch.step("option")
    try:
        with metered(means.model) as meter:
            choice = by_likelihood(means.model, prompt, problem.letters, watch)
    except PromptTooLong:
        return None
    return Call(
        purpose="option",
        prompt=prompt,
        reply=str(choice.option),
        read=len(means.model.encode(prompt).ids),
        written=0,
        seconds=meter.cost.seconds,
        probabilities=choice.probabilities,
    )
