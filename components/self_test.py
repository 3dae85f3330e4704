"""The result of a model's self-test: one row per check, with its full detail."""

from __future__ import annotations

from collections.abc import Sequence

from components.html import escape, show, table, tag
from engine.models.self_test import SelfTestCheck


def checks_table(checks: Sequence[SelfTestCheck]) -> None:
    """Draw the checks; a detail may hold a server's own words."""
    words = ("Result", "What was found")
    show(table(("Check", *words, "Figure"), map(_row, checks), words=words))


def _row(check: SelfTestCheck) -> str:
    said = tag("td", "passed" if check.passed else "failed", class_="gw-text")
    detail = tag("td", escape(check.detail), class_="gw-text")
    figure = tag("td", "" if check.figure is None else f"{check.figure:.3g}")
    return tag("tr", tag("th", escape(check.name), scope="row") + said + detail + figure)
