"""Refinement conditions side by side: one card per condition, with the word diff to A."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from components.answer import with_pills
from components.diff import changes
from components.html import chips, escape, show, tag
from components.steps import duration
from engine.analyses.refinement import trigger_reasons
from engine.cases.words import word_diff
from engine.core.text import counted
from engine.core.values import Passage
from engine.methods.refinement.conditions import VARIANTS
from engine.methods.refinement.run import RefinementReport, report_scores
from engine.methods.refinement.values import Refinement, Variant
from engine.methods.signals import Scores, beside

OUTCOMES = {
    "answered": "revised",
    "not triggered": "not triggered: equals A",
    "not applicable": "not applicable",
    "refused": "refused",
    "copied": "copied",
    "cut": "cut at the limit",
    "empty": "empty",
    "too long": "prompt too long",
    "timed out": "timed out",
    "failed": "failed",
}


def variant_cards(report: RefinementReport, passages: Sequence[Passage], names: Sequence[str], *, diff: bool) -> None:
    """One card per condition, in running order; `diff` marks the words that differ from A."""
    value, scores = report.refinement, report_scores(report, passages)
    reasons = trigger_reasons(value, names)
    cards = (
        _card(value.variants.get(name), name, value, diff, (reasons.get(name, ""), _support(name, value, scores)))
        for name in names
    )
    if said := second_passes(value, scores):
        show(tag("p", escape(said), class_="gw-finding"))
    show(tag("div", "".join(cards), class_="gw-cards"))


def second_passes(value: Refinement, scores: Mapping[str, Scores]) -> str:
    """Which second passes are better and which worse than A, in a sentence; empty where none changed it."""
    found = {
        name: beside(scores[name], scores["A"])
        for name, variant in value.variants.items()
        if variant.trigger is not None and variant.outcome == "answered" and name not in value.repeats
        if name in scores and "A" in scores
    }
    told = {
        "better": "better than A",
        "worse": "worse than A",
        "mixed": "better in one and worse in the other",
        "level": "level with A",
    }
    said = []
    for kind, words in told.items():
        names = [name for name, how in found.items() if how == kind]
        said += [f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} {words}"] if names else []
    first = "" if "better" in found.values() else "No second pass is better than A. "
    return f"{first}By citation recall and content words in no passage, {'; '.join(said)}." if found else ""


def _card(variant: Variant | None, name: str, value: Refinement, diff: bool, told: Iterable[str]) -> str:
    method = VARIANTS[name]
    head = tag("h3", escape(f"{name} · {method.title}")) + tag("p", escape(method.about), class_="gw-note")
    if variant is None:
        return tag("section", head + chips([("", "not run yet")]), class_="gw-card", aria_label=f"Condition {name}")
    trouble = variant.answer is None or variant.outcome == "copied"
    kind = "gw-card gw-trouble" if trouble else "gw-card gw-ran" if variant.outcome != "not triggered" else "gw-card"
    reason = "".join(tag("p", escape(line), class_="gw-note gw-why") for line in told if line)
    problem = tag("p", escape(variant.own_problem), class_="gw-problem") if variant.own_problem else ""
    body = head + chips(_facts(variant, value)) + reason + problem + _text(variant, value, diff)
    return tag("section", body, class_=kind, aria_label=f"Condition {name}")


def _support(name: str, value: Refinement, scores: Mapping[str, Scores]) -> str:
    """How well the passages support the condition's answer, next to A's; empty where it has none of its own."""
    own, base = scores.get(name), scores.get("A")
    if own is None or base is None or value.variants[name].outcome == "not triggered" or name in value.repeats:
        return ""

    def next_to(said: str, of_a: str) -> str:
        return said if name == "A" else f"{said} (A: {of_a})"

    said = [next_to(f"{counted(own.unsupported, 'content word')} in no passage", str(base.unsupported))]
    if own.citation_recall is not None and base.citation_recall is not None:
        said.insert(0, next_to(f"Citation recall {own.citation_recall:.2f}", f"{base.citation_recall:.2f}"))
    return f"{', '.join(said)}."


def _facts(variant: Variant, value: Refinement) -> list[tuple[str, str]]:
    written = variant.trigger is None and variant.answer is not None and variant.outcome != "copied"
    state = "written" if written else OUTCOMES[variant.outcome]
    if variant.outcome == "answered" and variant.name in value.repeats:
        state += ": equals A"
    facts = [("", state)]
    if variant.trigger is not None and variant.trigger.rule not in ("always", "unavailable"):
        facts.append(("rule", variant.trigger.rule))
    if variant.cost.written:
        facts.append(("", f"{counted(variant.cost.written, 'token')} in {duration(variant.cost.seconds)}"))
    if variant.answer is not None:
        facts.append(("", counted(len(variant.answer.citations), "citation")))
    return facts


def _text(variant: Variant, value: Refinement, diff: bool) -> str:
    if variant.answer is None:
        return ""
    if variant.outcome == "copied":
        reply = tag("div", with_pills(variant.answer.text), class_="gw-text")
        return tag("details", tag("summary", "What it wrote") + reply)
    baseline = value.baseline
    if not diff or baseline is None or variant.name == "A":
        return tag("div", with_pills(variant.answer.text), class_="gw-text")
    return tag("div", changes(word_diff(baseline.text, variant.answer.text)), class_="gw-text")
