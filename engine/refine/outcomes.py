"""What came of a condition: from the calls of the writer to a variant, also where nothing usable came."""

from __future__ import annotations

from collections.abc import Sequence

from engine.answer.citations import annotate
from engine.refine.conditions import Conditions
from engine.refine.values import Outcome, Trigger, Turn, Variant
from engine.types import Answer


def outcome_of(turns: Sequence[Turn], limit: int) -> tuple[Outcome, str]:
    """What came of the calls, and what to know of it."""
    last = turns[-1]
    if last.purpose == "critique":
        return "empty", "The model's critique came back empty, so there was nothing to revise after."
    if not last.reply.text.strip():
        return "empty", "The model wrote nothing."
    if last.reply.refused:
        return "refused", "The model says that the passages do not answer the question."
    if not last.reply.finished:
        return "cut", f"Cut at {limit} tokens, the limit of every condition: judge it as cut, not as worse."
    return "answered", ""


def stands(known: Variant, trigger: Trigger | None) -> bool:
    """Whether a stored condition is what would be written now: same decision, same passages named."""
    if known.trigger is None or trigger is None:
        return known.trigger is trigger
    named = known.name not in ("v2a", "v2b") or not trigger.fired or known.trigger.passages == trigger.passages
    return known.trigger.fired == trigger.fired and named


def given(answer: Answer, conditions: Conditions) -> Variant:
    """A where the answer comes from elsewhere: nothing is written and nothing is spent."""
    own = annotate(answer, len(conditions.passages), conditions.prompting.citations)
    empty = not own.text.strip()
    return Variant(
        name="A",
        outcome="empty" if empty else "refused" if own.refused else "answered",
        answer=None if empty else own,
        problem="The given answer is empty." if empty else "",
    )


def untriggered(name: str, trigger: Trigger, baseline: Answer | None) -> Variant:
    """A itself, or nothing where the rule cannot be asked."""
    if trigger.rule == "unavailable":
        return Variant(name=name, outcome="failed", trigger=trigger, problem=trigger.sentence)
    if baseline is None:
        return Variant(name=name, outcome="failed", trigger=trigger, problem="There is no baseline answer.")
    return Variant(name=name, outcome="not triggered", answer=baseline, trigger=trigger)
