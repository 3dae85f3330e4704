"""All conditions on one frozen case, then their scores: A once, B once, the gradient rows once, each as it ends.

What fails (time-out, empty reply, prompt over the window, server gone) is a condition without an answer that says
what happened; the others stand. A run that was stopped, or asked for more conditions later, goes on from what is
there: nothing that has an answer is written twice. Grounded refinement, sections 3.4 and 4.4; the outcomes and the time
limit are ours. Left out: nothing.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from msgspec.structs import replace as changed

from engine.answer.citations import annotate, without_markers
from engine.core.errors import (
    AttributionError,
    BudgetSpent,
    Cancelled,
    GroundworkError,
    InputError,
    ModelError,
    PromptTooLong,
    ServerError,
)
from engine.core.progress import Watch, whole
from engine.core.text import sentences
from engine.core.values import Answer, Passage, Value
from engine.methods import registry, signals
from engine.methods.refinement import gates
from engine.methods.refinement.conditions import NAMING, VARIANTS, Condition, Conditions, Request
from engine.methods.refinement.costs import Deadline, metered
from engine.methods.refinement.gates import gradient_rows
from engine.methods.refinement.request import (
    conditions_of,
    decoding_for,
    other_texts,
    own_tokens,
    same_rows,
    scored_prompt,
    sent_for_a,
    signals_of,
    stamp_for,
)
from engine.methods.refinement.values import WITH_ANSWER, Outcome, Refinement, Signals, Trigger, Turn, Variant
from engine.models.protocols import Entailment, require

_PROPOSED = re.compile(r'(?<=:)\s+\S.*|["“][^"“”]+["”]')


def outcome_of(turns: Sequence[Turn], limit: int) -> tuple[Outcome, str]:
    """The outcome of the calls, with a note."""
    end = turns[-1]
    if end.purpose == "critique":
        return "empty", "The model's critique was empty, so there was nothing to revise."
    if not end.reply.text.strip():
        return "empty", "The model wrote nothing."
    if end.reply.refused:
        return "refused", "The model says that the passages do not answer the question."
    if copied(end, turns[:-1]):
        return (
            "copied",
            "The model repeated its instructions or an example instead of answering. A larger model may do better.",
        )
    if not end.reply.finished:
        return "cut", f"Cut at its limit of {limit} tokens: treat it as incomplete, not as worse."
    return "answered", ""


def copied(turn: Turn, own: Sequence[Turn] = ()) -> bool:
    """Whether each sentence of the reply is in the prompt, but neither in a passage nor in the draft.

    Words are compared, without citation markers; sentences of one or two words are not counted. `own`: earlier turns,
    whose replies may propose a text behind a colon or in quotation marks; to write that is not to copy.
    """
    proposed = (part for one in own for part in _PROPOSED.findall(one.reply.text))
    told, shown = "", "".join(map(_words, proposed))
    for segment in turn.prompt.segments:
        if segment.kind in ("passage", "draft"):
            shown += _words(segment.text)
        elif segment.kind != "template":
            told += _words(segment.text)
    text = turn.reply.text
    said = [words for words in (_words(text[start:end]) for start, end in sentences(text)) if words.count(" ") > 3]
    return bool(said) and all(words in told and words not in shown for words in said)


def _words(text: str) -> str:
    """The words in lower case, each between blanks."""
    return " ".join(["", *re.findall(r"\w+", without_markers(text).lower()), ""])


def stands(known: Variant, trigger: Trigger | None) -> bool:
    """Whether a stored condition is what would be written now: same decision, same passages named."""
    if known.trigger is None or trigger is None:
        return known.trigger is trigger
    named = known.name not in NAMING or not trigger.fired or known.trigger.passages == trigger.passages
    return known.trigger.fired == trigger.fired and named


def nothing_to_name(name: str, trigger: Trigger) -> bool:
    """Whether the critique of a condition names passages and the trigger points at none."""
    return name in NAMING and not trigger.passages


def given(answer: Answer, conditions: Conditions) -> Variant:
    """A where the answer comes from elsewhere: nothing is written and nothing is spent."""
    asked = conditions.request
    own = annotate(answer, len(asked.case.passages), asked.settings.prompting.citations)
    empty = not own.text.strip()
    return Variant(
        name="A",
        outcome="empty" if empty else "refused" if own.refused else "answered",
        answer=None if empty else own,
        problem="The answer is empty." if empty else "",
    )


def untriggered(name: str, trigger: Trigger, baseline: Answer | None) -> Variant:
    """A itself, or nothing where the rule cannot be asked."""
    if trigger.rule == "unavailable" or baseline is None:
        problem = trigger.sentence if trigger.rule == "unavailable" else "The baseline has no answer."
        return Variant(name=name, outcome="failed", trigger=trigger, problem=problem)
    return Variant(name=name, outcome="not triggered", answer=baseline, trigger=trigger)


def refining(
    request: Request,
    earlier: Refinement | None = None,
    watch: Watch = Watch(),
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Refinement]:
    """Run the conditions; yield the value after each one and after common parts. `watch` gets the text so far.

    `earlier` is continued if its texts have the same inputs, writer and settings; with other settings of the rules
    these decide anew. `clock` (seconds) is what a condition's time limit is measured with. Raises `InputError` without
    passages, `CannotDo` for a writer that cannot write, `Cancelled`.
    """
    if not request.case.passages:
        raise InputError("This case has no passages to ground the answer in.")
    require(request.writer, "generate")
    yield from _Refining(request, earlier, watch, clock).values()


refine = whole(refining)


class _Refining:
    """The value as it grows, and what it grows from."""

    def __init__(self, request: Request, earlier: Refinement | None, watch: Watch, clock: Callable[[], float]) -> None:
        self.request = request
        self.watch = watch
        self._clock = clock
        self.conditions, notes = conditions_of(request)
        stamp = stamp_for(request, self.conditions.decoding)
        fresh = Refinement(
            stamp=stamp, gate=request.gate, order=request.variants, decoding=self.conditions.decoding, notes=notes
        )
        kept = earlier if earlier is not None and not other_texts(earlier.stamp, stamp) else fresh
        shown = scored_prompt(request, kept).numbers
        other = kept.gradient is not None and {n for (n,) in kept.gradient.sources} != {*shown}  # as in older runs
        if kept.scorer != request.scores_with.name or other:
            kept = changed(kept, signals=Signals(), gradient=None, shared={})
        elif not same_rows(kept.stamp, stamp):
            shared = {name: cost for name, cost in kept.shared.items() if name != "gradient"}
            kept = changed(kept, gradient=None, shared=shared)
        stamp = changed(stamp, created=kept.stamp.created)
        order = tuple(n for n in VARIANTS if n in {*request.variants, *kept.variants, "A", "B"})
        self.value = changed(kept, stamp=stamp, gate=request.gate, order=order, gradient_missing="")

    def values(self) -> Iterator[Refinement]:
        """The value after each stage that changed it: A and B, the signals that need both, the others in order."""
        stages: list[Callable[[], Refinement]] = [*(partial(self._condition, name) for name in "AB"), self._signals]
        for name in (name for name in self.value.order if name not in ("A", "B")):
            stages += [self._gradient] if VARIANTS[name].rule == "flags" else []
            stages.append(partial(self._condition, name))
        before = self.value
        for stage in stages:
            if (after := stage()) is not self.value:
                self.value = after
                yield after
        if self.value is before:
            yield before

    def _condition(self, name: str) -> Refinement:
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
            done = sum(name in self.value.variants for name in self.value.order)
            self.watch.step(f"condition {name}", done, len(self.value.order))
            variant = self._written(VARIANTS[name], trigger)
        if variant == known:
            return self.value
        return changed(self.value, variants={**self.value.variants, name: variant})

    def _written(self, method: Condition, trigger: Trigger | None) -> Variant:
        seconds = self.request.settings.refinement.seconds
        deadline = Deadline(self.watch.cancel, seconds, self._clock)
        turns, heard = list[Turn](), self.watch.text
        named = (lambda text: heard(f"{method.name}: {text}")) if heard else None
        own, settings, name = self.conditions.decoding, self.request.settings, self.request.writer.name
        conditions = replace(
            self.conditions,
            decoding=decoding_for(method.name, own, self.value.baseline, settings, name),
            prompt=sent_for_a(self.value) or self.conditions.prompt,
            draft=self.value.baseline,
            flagged=trigger.passages if trigger else (),
            watch=replace(self.watch, cancel=deadline, text=named),
        )
        problem: tuple[Outcome, str] | None = None
        with metered(self.request.writer) as meter:
            try:
                for turn in method.write(conditions):
                    turns.append(turn)  # also those before one that fails
            except Cancelled:
                if not deadline.expired:  # the user's cancel goes through
                    raise
                limit = f"Not finished after {seconds:g} s, the limit of a condition (refinement.seconds)."
                problem = "timed out", limit
            except PromptTooLong as error:
                problem = "too long", str(error)
            except GroundworkError as error:
                if isinstance(error, BudgetSpent) or (isinstance(error, ServerError) and self.request.server_stops):
                    raise  # not the condition's fault: it is written when the run goes on
                silent = (
                    trigger is not None and nothing_to_name(method.name, trigger) and self.value.baseline is not None
                )
                problem = "not applicable" if silent else "failed", str(error)
        outcome, said = problem or outcome_of(turns, conditions.decoding.max_new_tokens)
        return Variant(
            name=method.name,
            outcome=outcome,
            answer=turns[-1].reply if outcome in WITH_ANSWER else None,
            trigger=trigger,
            seed=conditions.decoding.seed if conditions.decoding.temperature else None,
            turns=tuple(turns),
            cost=changed(meter.cost, written=sum(len(turn.reply.tokens) for turn in turns)),
            problem=said,
        )

    def _trigger(self, method: Condition) -> Trigger | None:
        if method.rule == "control":
            return None
        if method.rule == "every time":
            return gates.EVERY_TIME
        shown = (sent_for_a(self.value) or self.conditions.baseline_prompt()).numbers
        labels = {number: label for number, label in self.request.case.labels.items() if number in shown}
        gradient = self.value.gradient
        if method.rule == "S3":
            threshold = self.value.threshold or signals.overlap_threshold((), self.request.settings.refinement)
            own = gates.overlap_trigger(self.value.signals.s3, threshold)
        else:
            own = gates.flags_trigger(gradient, self.value.gradient_missing, labels, self.request.settings)
        return gates.gated(own, self.request.gate, gradient, labels)

    # What several conditions stand on

    def _signals(self) -> Refinement:
        """S1 to S3 of A, and D's threshold; S2 is scored once."""
        found, shared = signals_of(self.request, self.value, scored_prompt(self.request, self.value), self.watch)
        threshold = signals.overlap_threshold(self.request.history, self.request.settings.refinement)
        if (found, threshold) == (self.value.signals, self.value.threshold):
            return self.value
        shared, scorer = {**self.value.shared, **shared}, self.request.scores_with.name
        return changed(self.value, signals=found, threshold=threshold, shared=shared, scorer=scorer)

    def _gradient(self) -> Refinement:
        """The gradient rows of A's first content tokens, once; or why there are none."""
        answer = self.value.baseline
        if self.value.gradient is not None or self.value.gradient_missing:
            return self.value
        if answer is None:
            return changed(self.value, gradient_missing="Gradients need a baseline answer, and A wrote none.")
        rows, missing, model, prompt = None, "", self.request.scores_with, scored_prompt(self.request, self.value)
        settings = self.request.settings
        with metered(model) as meter:
            try:
                require(model, registry.method(settings.refinement.ranked_by, settings).needs)
                rows = gradient_rows(model, prompt, own_tokens(self.request, answer), settings, self.watch)
            except (InputError, ModelError, AttributionError) as error:
                missing = str(error)
        cost = changed(meter.cost, backwards=rows.backwards if rows else 0)
        shared = {**self.value.shared, "gradient": cost}
        return changed(self.value, gradient=rows, gradient_missing=missing, shared=shared)


# The scores of the answers by a verifier (section 3.5): citations and, which is ours, A's facts in the other answers.
# Probabilities are kept by pair, so that marking a passage recomputes every score without a model. Left out: the
# paper's second scorer; another verifier is another run.


class RefinementReport(Value, frozen=True):
    """`entailments`: probability by the hash of (claim, evidence), as `verifier` gave it.

    `facts`: the atomic facts of A with their verdicts, where A was taken apart. `labels`: relevance by the passage's
    number as the triggers saw it, for those that had one.
    """

    refinement: Refinement
    verifier: str = ""
    entailments: dict[str, float] = {}
    facts: tuple[tuple[str, str], ...] = ()
    labels: dict[str, bool] = {}


def refine_case(
    request: Request,
    *,
    earlier: RefinementReport | None = None,
    verifier: Entailment | None = None,
    facts: tuple[tuple[str, str], ...] = (),
    watch: Watch = Watch(),
) -> Iterator[RefinementReport]:
    """Run the conditions and the verifier: the report after every step.

    The case carries the current labels, `facts` are those of A with their verdicts. Raises what `refining` raises.
    """
    labels = {str(number): label for number, label in request.case.labels.items() if label is not None}
    by, kept = (earlier.verifier, earlier.entailments) if earlier else ("", {})
    for value in refining(request, earlier.refinement if earlier else None, watch):
        report = RefinementReport(refinement=value, verifier=by, entailments=kept, facts=facts, labels=labels)
        yield report
    if verifier is not None:
        yield assessed(report, request.case.passages, verifier, watch)


def assessed(
    report: RefinementReport, passages: Sequence[Passage], verifier: Entailment, watch: Watch = Watch()
) -> RefinementReport:
    """Ask the verifier for every pair that the scores need and that it has not judged yet."""
    kept = dict(report.entailments) if report.verifier == verifier.name else {}
    entails = signals.remembered(lambda pairs: verifier.entailment(pairs, watch).tolist(), kept)
    for answer in answers_of(report.refinement).values():
        signals.scores_of(answer, passages, entails)
        signals.facts_kept(report.facts, answer.text, entails)
    return changed(report, verifier=verifier.name, entailments=kept)


def answers_of(refinement: Refinement) -> dict[str, Answer]:
    """The answer of each condition that has one."""
    return {name: v.answer for name, v in refinement.variants.items() if v.answer is not None}


def report_facts(report: RefinementReport) -> dict[str, tuple[signals.FactKept, ...]]:
    """For each condition, which facts of A its answer still says; empty where the verifier was not asked."""
    ask = _remembering(report.entailments)
    try:
        return {
            name: signals.facts_kept(report.facts, a.text, ask) for name, a in answers_of(report.refinement).items()
        }
    except KeyError:  # facts were found after the verifier was asked: the next run asks it again
        return {}


def report_scores(
    report: RefinementReport, passages: Sequence[Passage], golds: Sequence[str] = ()
) -> dict[str, signals.Scores]:
    """Scores of every condition with an answer, with the labels that the passages carry now; no model is asked."""
    ask, found = _remembering(report.entailments) if report.verifier else None, {}
    for name, answer in answers_of(report.refinement).items():
        try:
            found[name] = signals.scores_of(answer, passages, ask, golds)
        except KeyError:  # the verifier has not been asked about this answer yet
            found[name] = signals.scores_of(answer, passages, None, golds)
    return found


def _remembering(entailments: dict[str, float]) -> Callable[[Sequence[tuple[str, str]]], list[float]]:
    return lambda pairs: [entailments[signals.pair_key(*pair)] for pair in pairs]
