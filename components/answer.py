"""An answer as it is read: every citation marker drawn as the number of the passage that it names."""

from __future__ import annotations

from components.html import escape, show, tag
from engine.types import Answer


def answer_view(answer: Answer) -> None:
    """Draw the text; a citation of a passage that is not there is dashed."""
    show(answer_markup(answer))


def answer_markup(answer: Answer) -> str:
    """The answer as HTML; the marker as it stands in the text is the number's title."""
    parts, position = [], 0
    for citation in sorted(answer.citations, key=lambda c: c.start):
        kind = "gw-cite" if citation.valid else "gw-cite gw-invalid"
        marker = answer.text[citation.start : citation.end]
        parts += [
            escape(answer.text[position : citation.start]),
            tag("span", escape(str(citation.number)), class_=kind, title=marker),
        ]
        position = max(position, citation.end)
    return tag("div", "".join(parts) + escape(answer.text[position:]), class_="gw-answer")
