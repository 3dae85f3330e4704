"""Used x supports: for each sentence and passage, the score drop and the verifier's probability."""

from __future__ import annotations

from components.answer import cited_text, current_sentence
from components.export_figure import export_button
from components.html import show, table, tag
from components.occlusion import source_head
from components.style import NEGATIVE, POSITIVE, SEQUENTIAL
from engine.core.values import Case
from engine.methods.used_supports import UseAndSupport, UsedSupports
from engine.report.drawings import drawn_use

MARKS = {
    "used and supporting": ("both", SEQUENTIAL),
    "used but not supporting": ("used only", POSITIVE),
    "supported but not used": ("supports only", NEGATIVE),
    "neither": ("", ""),
}


def used_supports_view(found: UsedSupports, case: Case, *, key: str) -> None:
    """Draw the matrix; what stands out is what one number alone would not show."""
    heads = [tag("th", "Sentence", scope="col"), *(source_head(numbers, case) for numbers in found.sources)]
    rows = (_row(found, index, case) for index in range(len(found.spans)))
    said = (
        f"Columns are passages. First number: nats that the sentence loses without the passage, by {found.scorer}; "
        f"above the {found.floor_kind} floor the passage counts as used. Second number: the probability that the "
        f"passage entails the sentence, by {found.verifier}; above 0.5 it counts as support."
    )
    show(table(heads, rows, said))
    export_button(lambda: drawn_use(case, found), key=f"{key}_{case.id}")


def _row(found: UsedSupports, index: int, case: Case) -> str:
    start, end = found.spans[index]
    selected = current_sentence(case.answer, (start, end))
    sentence = tag("th", cited_text(case.answer, start, end), scope="row", aria_current=selected)
    return tag("tr", sentence + "".join(map(_cell, found.cells[index])))


def _cell(cell: UseAndSupport) -> str:
    word, colour = MARKS[cell.quadrant]
    numbers = f"{cell.used:+z,.1f}<br>{cell.supports:.2f}"
    if not word:
        return tag("td", numbers, class_="gw-nothing", title=cell.quadrant)
    style = f"background:color-mix(in srgb, {colour} 30%, transparent)"
    return tag("td", tag("b", word) + "<br>" + numbers, style=style, title=cell.quadrant)
