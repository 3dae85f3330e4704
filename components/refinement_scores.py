"""Scores and cost of the conditions in one table, compared with A's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from components.html import escape, show, table, tag
from engine.analyses.case_verdict import in_words
from engine.core.metrics import ENTAILED
from engine.methods.refinement.conditions import VARIANTS
from engine.methods.refinement.values import Refinement
from engine.methods.signals import MEASURES, FactKept, Scores, deployed_cost

SAME = 0.005  # a difference that two decimals do not show


def score_table(scores: Mapping[str, Scores], value: Refinement) -> None:
    """One row per score, one column per condition; a mark and the difference if it differs from A's."""
    names = [name for name in VARIANTS if name in scores]
    rows = [_score_row(field, title, better, scores, names) for field, title, better in MEASURES]
    rows += [_cost_row(title, [of(deployed_cost(value, n)) for n in names]) for title, of in _COSTS]
    show(table(("Score", *names), rows))


def _score_row(field: str, title: str, better: bool | None, scores: Mapping[str, Scores], names: Sequence[str]) -> str:
    first = getattr(scores["A"], field) if "A" in scores else None
    cells = "".join(_score_cell(scores[name], field, first, better) for name in names)
    return tag("tr", tag("th", escape(title), scope="row") + cells)


def _score_cell(scores: Scores, field: str, first: float | None, better: bool | None) -> str:
    figure = getattr(scores, field)
    if figure is None:
        return tag("td", "–", class_="gw-nothing", title=scores.missing.get(field, "not defined for this answer"))
    text = f"{figure:.2f}" if isinstance(figure, float) else str(figure)
    change = figure - first if first is not None else 0
    if abs(change) < SAME:
        return tag("td", text)
    shown = f"{text} ({change:+z.2f})" if isinstance(change, float) else f"{text} ({change:+d})"
    kind = "" if better is None else "gw-better" if (change > 0) == better else "gw-worse"
    return tag("td", shown, **({"class_": kind, "title": kind.removeprefix("gw-") + " than A"} if kind else {}))


_COSTS = (
    ("Forward passes, A and triggers included", lambda cost: _known(cost.forwards)),
    ("Backward passes", lambda cost: f"{cost.backwards:,}"),
    ("Token positions through the model", lambda cost: _known(cost.tokens)),
    ("Tokens written", lambda cost: f"{cost.written:,}"),
    ("Seconds", lambda cost: f"{cost.seconds:.1f}"),
)


def _known(count: int | None) -> str:
    return "unknown" if count is None else f"{count:,}"


def _cost_row(title: str, cells: Sequence[str]) -> str:
    return tag("tr", tag("th", escape(title), scope="row") + "".join(tag("td", escape(cell)) for cell in cells))


def fact_table(facts: Mapping[str, Sequence[FactKept]]) -> None:
    """One row per fact of A with its verdict, one column per condition: does the answer still state it?"""
    names = [name for name in VARIANTS if facts.get(name)]
    if not names:
        return
    rows = (_fact_row([facts[name][index] for name in names]) for index in range(len(facts[names[0]])))
    show(table(("Fact of A", "Verdict", *names), rows, words=("Verdict",)))


def _fact_row(kept: Sequence[FactKept]) -> str:
    """A fact that the verifier does not find in A itself tells nothing about the other answers."""
    first = tag("th", escape(kept[0].fact), scope="row") + tag(
        "td", escape(in_words(kept[0].verdict)), class_="gw-text"
    )
    told = kept[0].kept > ENTAILED
    cells = (f"{('said' if k.kept > ENTAILED else 'gone') if told else 'unclear'} {k.kept:.2f}" for k in kept)
    return tag("tr", first + "".join(tag("td", cell) for cell in cells))
