"""Refinement conditions side by side: a card a condition, with the word diff to A."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Literal

from components.html import chips, escape, show, tag
from components.steps import duration
from components.style import stylesheet
from engine.refine.values import Refinement, Variant
from engine.refine.variants import VARIANTS
from engine.text import counted

Edit = Literal["same", "removed", "added"]
OUTCOMES = {
    "answered": "revised",
    "not triggered": "not triggered: A as it is",
    "refused": "refused",
    "cut": "cut at the limit",
    "empty": "empty",
    "too long": "prompt too long",
    "timed out": "timed out",
    "failed": "failed",
}


def variant_style() -> None:
    """The style sheet of what follows; once a page."""
    show(tag("style", stylesheet("variants.css")))


def word_diff(first: str, second: str) -> list[tuple[Edit, str]]:
    """How `second` comes from `first`, in words with the white space after them.

    >>> word_diff("It is red.", "It was red.")
    [('same', 'It '), ('removed', 'is '), ('added', 'was '), ('same', 'red.')]
    """
    old, new = re.findall(r"\S+\s*|^\s+", first), re.findall(r"\S+\s*|^\s+", second)
    matcher = SequenceMatcher(a=[w.strip() for w in old], b=[w.strip() for w in new], autojunk=False)
    found: list[tuple[Edit, str]] = []
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind == "equal":
            found.append(("same", "".join(new[c:d])))
            continue
        found += [(edit, "".join(part)) for edit, part in (("removed", old[a:b]), ("added", new[c:d])) if part]
    return found


def variant_cards(value: Refinement, names: Sequence[str], *, diff: bool) -> None:
    """A card a condition, in running order; with `diff` the words that differ from A are marked."""
    cards = (_card(value.variants.get(name), name, value, diff) for name in names)
    show(tag("div", "".join(cards), class_="gw-cards"))


def _card(variant: Variant | None, name: str, value: Refinement, diff: bool) -> str:
    method = VARIANTS[name]
    head = tag("h3", escape(f"{name} · {method.title}")) + tag("p", escape(method.about), class_="gw-note")
    if variant is None:
        return tag("section", head + chips([("", "not run yet")]), class_="gw-card", aria_label=f"Condition {name}")
    trouble = variant.answer is None
    kind = "gw-card gw-trouble" if trouble else "gw-card gw-ran" if variant.outcome != "not triggered" else "gw-card"
    why = "" if variant.trigger is None or method.rule == "every time" else variant.trigger.sentence
    reason = tag("p", escape(why), class_="gw-note gw-why") if why else ""
    problem = tag("p", escape(variant.problem), class_="gw-problem") if variant.problem else ""
    body = head + chips(_facts(variant)) + reason + problem + _text(variant, value, diff)
    return tag("section", body, class_=kind, aria_label=f"Condition {name}")


def _facts(variant: Variant) -> list[tuple[str, str]]:
    state = OUTCOMES[variant.outcome] if variant.trigger is not None or variant.answer is None else "written"
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
    baseline = value.baseline
    if not diff or baseline is None or variant.name == "A":
        return tag("div", escape(variant.answer.text), class_="gw-text", tabindex="0")
    return tag("div", diff_markup(baseline.text, variant.answer.text), class_="gw-text", tabindex="0")


def diff_markup(first: str, second: str) -> str:
    """The diff as HTML: removed words struck out, added words underlined, both also readable without colour."""
    names = {"removed": ("del", "gw-del"), "added": ("ins", "gw-ins")}
    pieces = []
    for edit, text in word_diff(first, second):
        name, kind = names.get(edit, ("span", ""))
        pieces.append(tag(name, escape(text), class_=kind) if kind else escape(text))
    return "".join(pieces)
