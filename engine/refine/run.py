"""All conditions on one frozen case: A once, B once, the gradient rows once; each condition handed out as it ends.

What fails (time-out, empty reply, prompt over the window, server gone) is a condition without an answer that says
what happened; the others stand. A run that was stopped, or asked for more conditions later, goes on from what is
there: nothing that has an answer is written twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from msgspec.structs import replace as changed

from engine.answer.prompt import build_prompt
from engine.errors import Cancelled, GroundworkError, InputError, PromptTooLong
from engine.models.protocols import require
from engine.progress import Watch
from engine.refine import gates, signals
from engine.refine.conditions import Conditions
from engine.refine.costs import Deadline, metered, watch_until
from engine.refine.gradient_rows import gradient_rows
from engine.refine.measure import own_tokens, signals_of
from engine.refine.outcomes import given, outcome_of, stands, untriggered
from engine.refine.request import Request, conditions_of, same_run, stamp_for
from engine.refine.values import WITH_ANSWER, Outcome, Refinement, Signals, Trigger, Turn, Variant
from engine.refine.variants import VARIANTS, Method
from engine.types import Answer, Attribution, Prompt

OnChange = Callable[[Refinement], None]


def refine(
    request: Request,
    earlier: Refinement | None = None,
    on_change: OnChange | None = None,
    on_text: Callable[[str, str], None] | None = None,
    watch: Watch | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Refinement:
    """Run the conditions. `on_change` gets the value after each; `on_text` (condition, text so far).

    `earlier` is gone on from where it is of the same inputs, writer and settings. `clock` (seconds) is what a
    condition's time limit is measured with. Raises `InputError` without passages, `CannotDo` for a writer that cannot
    write, `Cancelled` with the value so far in `partial`.
    """
    if not request.passages:
        raise InputError("This case has no passages, so there is nothing to ground its answer in.")
    require(request.writer, "generate")
    run = _Run(request, earlier, on_change, on_text, watch or Watch(), clock)
    try:
        return run.go()
    except Cancelled as error:
        raise Cancelled(str(error), partial=run.value) from error


class _Run:
    """The value as it grows, and what it grows from."""

    def __init__(
        self,
        request: Request,
        earlier: Refinement | None,
        on_change: OnChange | None,
        on_text: Callable[[str, str], None] | None,
        watch: Watch,
        clock: Callable[[], float],
    ) -> None:
        self.request = request
        self.watch = watch
        self._clock = clock
        self._on_change = on_change
        self._on_text = on_text
        self.conditions, notes = conditions_of(request)
        stamp = stamp_for(request, self.conditions.decoding)
        fresh = Refinement(
            stamp=stamp, gate=request.gate, order=request.variants, decoding=self.conditions.decoding, notes=notes
        )
        kept = earlier if earlier is not None and same_run(earlier.stamp, stamp) else fresh
        if kept.scorer != request.scores_with.name:
            kept = changed(kept, signals=Signals(), gradient=None, shared={})
        order = tuple(n for n in VARIANTS if n in {*request.variants, *kept.variants, "A", "B"})
        self.value = changed(kept, gate=request.gate, order=order, gradient_missing="")

    def go(self) -> Refinement:
        """A and B, the signals that need both, then the others in order."""
        self._condition("A")
        self._condition("B")
        self._signals()
        for name in (name for name in self.value.order if name not in ("A", "B")):
            if VARIANTS[name].rule == "flags":
                self._gradient()
            self._condition(name)
        return self.value

    def _grow(self, **values: object) -> None:
        self.value = changed(self.value, **values)
        if self._on_change is not None:
            self._on_change(self.value)

    def _condition(self, name: str) -> None:
        """Write one condition, copy A where its rule does not fire, or keep what is there."""
        trigger = self._trigger(VARIANTS[name])
        known = self.value.variants.get(name)
        if known is not None and known.outcome in WITH_ANSWER and stands(known, trigger):
            variant = changed(known, trigger=trigger)
        elif name == "A" and self.request.given is not None:
            variant = given(self.request.given, self.conditions)
        elif trigger is not None and not trigger.fired:
            variant = untriggered(name, trigger, self.value.baseline)
        else:
            self.watch.step(f"condition {name}", self._done, len(self.value.order))
            variant = self._written(VARIANTS[name], trigger)
        if variant != known:
            self._grow(variants={**self.value.variants, name: variant})

    @property
    def _done(self) -> int:
        return sum(name in self.value.variants for name in self.value.order)

    def _written(self, method: Method, trigger: Trigger | None) -> Variant:
        """Call the writer and say what came of it."""
        watch, deadline = watch_until(self.watch, self.request.settings.refinement.seconds, self._clock)
        tell, turns = self._on_text, list[Turn]()
        conditions = replace(
            self.conditions,
            prompt=self._prompt(),
            draft=self.value.baseline,
            flagged=trigger.passages if trigger else (),
            watch=watch,
            on_turn=turns.append,
            on_text=None if tell is None else lambda text: tell(method.name, text),
        )
        with metered(self.request.writer) as meter:
            problem = _attempt(method, conditions, deadline, self.request.settings.refinement.seconds)
        outcome, said = problem or outcome_of(turns, conditions.decoding.max_new_tokens)
        return Variant(
            name=method.name,
            outcome=outcome,
            answer=turns[-1].reply if outcome in WITH_ANSWER else None,
            trigger=trigger,
            turns=tuple(turns),
            cost=changed(meter.cost, written=sum(len(turn.reply.tokens) for turn in turns)),
            problem=said,
        )

    def _prompt(self) -> Prompt | None:
        """A's prompt where A was written here."""
        turns = self.value.variants["A"].turns if "A" in self.value.variants else ()
        return turns[0].prompt if turns else None

    def _trigger(self, method: Method) -> Trigger | None:
        if method.rule == "control":
            return None
        if method.rule == "every time":
            return gates.EVERY_TIME
        labels, gradient = self.request.labels, self.value.gradient
        if method.rule == "S3":
            threshold = self.value.threshold or signals.overlap_threshold((), self.request.settings.refinement)
            own = gates.overlap_trigger(self.value.signals.s3, threshold)
        else:
            own = gates.flags_trigger(gradient, self.value.gradient_missing, labels, self.request.settings)
        return gates.gated(own, self.request.gate, gradient, labels)

    # What several conditions stand on

    def _signals(self) -> None:
        """S1 to S3 of A, and D's threshold; S2 is scored once."""
        found, shared = signals_of(self.request, self.value, self._scored_prompt(), self.watch)
        threshold = signals.overlap_threshold(self.request.history, self.request.settings.refinement)
        if found != self.value.signals or threshold != self.value.threshold:
            self._grow(
                signals=found,
                threshold=threshold,
                shared={**self.value.shared, **shared},
                scorer=self.request.scores_with.name,
            )

    def _gradient(self) -> None:
        """The gradient rows of A's first content tokens, once; or why there are none."""
        answer = self.value.baseline
        if self.value.gradient is not None or self.value.gradient_missing:
            return
        if answer is None:
            self._grow(gradient_missing="There is no baseline answer to take gradients of.")
            return
        rows, missing = None, ""
        with metered(self.request.scores_with) as meter:
            try:
                rows = self._rows(answer)
            except Cancelled:
                raise
            except GroundworkError as error:
                missing = str(error)
        cost = changed(meter.cost, backwards=rows.backwards if rows else 0)
        self._grow(gradient=rows, gradient_missing=missing, shared={**self.value.shared, "gradient": cost})

    def _rows(self, answer: Answer) -> Attribution:
        model = self.request.scores_with
        require(model, "gradients")
        own = own_tokens(self.request, answer)
        return gradient_rows(model, self._scored_prompt(), own, self.request.settings.gradient, self.watch)

    def _scored_prompt(self) -> Prompt:
        """The prompt that A answers, as the scorer sees it."""
        sent = self._prompt() or self.request.given_prompt
        return sent or build_prompt(self.request.question, self.request.passages, self.request.settings.prompting)


def _attempt(method: Method, conditions: Conditions, deadline: Deadline, seconds: float) -> tuple[Outcome, str] | None:
    """Make the calls of a condition; what stopped them, if anything did. A user's cancel goes through."""
    try:
        method.write(conditions)
    except Cancelled:
        if not deadline.expired:
            raise
        return ("timed out", f"Not done after {seconds:g} s, the limit of a condition (refinement.seconds).")
    except PromptTooLong as error:
        return ("too long", str(error))
    except GroundworkError as error:
        return ("failed", str(error))
    return None
