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
from engine.methods.raise_ import steps
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
)
from engine.methods.refinement.costs import metered
from engine.models.closed import after, by_likelihood, can_score
from engine.models.protocols import Writer, require

Find = Callable[[str], tuple[Hit, ...]]
NOTHING_KEPT = "No passage reached T. The earlier steps and the model's own knowledge answered this step."
NOTHING_FOUND = "The search found no passages. The earlier steps and the model's own knowledge answered this step."
EMPTY_ANSWER = "The model wrote nothing for this step."
UNPARSED = "The reply contains no readable sub-question, so there are no steps and no answer."
UNNAMED = "The answer does not name an option"
NO_OPTION = UNNAMED + ", so none counts as chosen."
OPTION_ASKED = UNNAMED + ". Asked for one, the model ranks ({}) first, with a share of {:.0%}."


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


def solutions(problem: Problem, method: ReasoningMethod, means: Means, watch: Watch = Watch()) -> Iterator[Solution]:
    """The run after every call and every search, finished at last; raises what the model or the search raises."""
    require(means.model, "generate")
    start = Solution(
        method=method.name,
        model=means.model.name,
        problem=problem,
        decoding=means.decoding,
        corpus=means.corpus,
        embedder=means.embedder if method.searches else "",
        threshold=means.threshold if method.thresholded else None,
    )
    run = _Reasoning(method, means, watch)
    return run.by_steps(start) if method.decomposed else run.directly(start)


solve = whole(solutions)


@dataclass(frozen=True)
class _Reasoning:
    method: ReasoningMethod
    means: Means
    watch: Watch

    def by_steps(self, solution: Solution) -> Iterator[Solution]:
        """Algorithm 1."""
        asked = self._ask("sub-questions", steps.decompose_prompt(solution.problem, self.means.demonstrations))
        subquestions, notes = steps.parse(asked.reply, self.means.max_steps)
        listed = ProblemDecomposition(subquestions=subquestions, asked=asked, notes=notes)
        solution = replace(solution, decomposition=listed)
        yield solution
        if not subquestions:
            yield replace(solution, state="unparsed", notes=(UNPARSED,))
            return
        count = len(subquestions)
        for number, sub in enumerate(subquestions, start=1):
            self.watch.step(f"step {number} of {count}", number - 1, count)
            earlier = solution.steps
            for step in self._step(solution, ReasonStep(number=number, question=sub.question, query=sub.query)):
                solution = replace(solution, steps=(*earlier, step))
                yield solution
        yield self._finished(solution, steps.final_answer_prompt(solution.problem, solution.steps))

    def directly(self, solution: Solution) -> Iterator[Solution]:
        """Without decomposition: the problem is its own only step, and the answer sees the passages."""
        passages: tuple[Passage, ...] = ()
        if self.method.searches is not None:
            question = solution.problem.question
            step = ReasonStep(number=1, question=question, query=question)
            step = self._searched(step, self.method.searches, solution.threshold)
            passages = step.passages
            solution = replace(solution, steps=(step,))
            yield solution
        yield self._finished(solution, steps.chain_of_thought_prompt(solution.problem, passages))

    def _step(self, solution: Solution, step: ReasonStep) -> Iterator[ReasonStep]:
        """One step: search with T where the method searches, principle where it steps back, sub-answer."""
        if self.method.searches is not None:
            step = self._searched(step, self.method.searches, solution.threshold)
            yield step
        if self.method.principled:
            prompt = steps.search_prompt("principle", step, self.means.demonstrations)
            step = replace(step, principle=self._ask("principle", prompt))
            yield step
        asked = self._ask("sub-answer", steps.sub_answer_prompt(solution.problem, solution.steps, step))
        empty = () if asked.reply.strip() else (EMPTY_ANSWER,)
        yield replace(step, asked=asked, notes=(*step.notes, *empty))

    def _searched(self, step: ReasonStep, kind: Searched, threshold: float | None) -> ReasonStep:
        """The step with T and the top k for the text of that kind, and a note where nothing is left to read.

        A text that the model left empty gives way to the search query.
        """
        asked, text = None, step.question
        if kind == "logical query" or kind == "principle" or kind == "hypothetical answer":
            asked = self._ask(kind, steps.search_prompt(kind, step, self.means.demonstrations))
            text = asked.reply.strip()
        note = "" if text else f"The model did not write a {kind}, so the search used the search query."
        text = text or step.query
        self.watch.step("search")
        search = Search(kind=kind, text=text, hits=self.means.find(text), asked=asked, note=note)
        step = replace(step, search=search, threshold=threshold)
        nothing = () if step.kept else (NOTHING_KEPT if search.hits else NOTHING_FOUND,)
        return replace(step, notes=tuple(filter(None, (note, *nothing))))

    def _finished(self, solution: Solution, prompt: Prompt) -> Solution:
        """The run with its answer; if the answer does not name an option, the model is asked for one."""
        final = self._ask("answer", prompt)
        done = replace(solution, final=final, state="done")
        if not done.problem.options or done.choice is not None:
            return done
        option = self._option(done.problem, final)
        note = OPTION_ASKED.format(option.reply, option.probabilities[option.reply]) if option else NO_OPTION
        return replace(done, option=option, notes=(*done.notes, note))

    def _ask(self, purpose: Purpose, prompt: Prompt) -> Call:
        """One call, or the same one out of an earlier run."""
        model = self.means.model
        if prompt.text in self.means.known:
            return self.means.known[prompt.text]
        self.watch.step(purpose)
        with metered(model) as meter:
            answer = model.generate(prompt, self.means.decoding, None, self.watch)
        encode = getattr(model, "encode", None)
        return Call(
            purpose=purpose,
            prompt=prompt,
            reply=answer.text,
            read=len(encode(prompt).ids) if encode is not None else None,
            written=len(answer.tokens) if answer.tokens or not answer.text else None,
            seconds=meter.cost.seconds,
            finished=answer.finished,
        )

    def _option(self, problem: Problem, answered: Call) -> Call | None:
        """The letter that is likeliest after an answer; None where the model cannot score, or its window is full."""
        model = self.means.model
        if not can_score(model):
            return None
        prompt = after(answered.prompt, answered.reply, problem.letters)
        if prompt.text in self.means.known:
            return self.means.known[prompt.text]
        self.watch.step("option")
        try:
            with metered(model) as meter:
                choice = by_likelihood(model, prompt, problem.letters, self.watch)
        except PromptTooLong:
            return None
        return Call(
            purpose="option",
            prompt=prompt,
            reply=str(choice.option),
            read=len(model.encode(prompt).ids),
            written=0,
            seconds=meter.cost.seconds,
            probabilities=choice.probabilities,
        )
