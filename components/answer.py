"""An answer as it is read: every citation marker drawn as the number of the passage that it names."""

from __future__ import annotations

from components.html import escape, show, tag
from engine.core.values import Answer


def answer_view(answer: Answer) -> None:
    """Draw the text; a citation of a passage that is not there is dashed."""
    show(answer_markup(answer))


def answer_markup(answer: Answer) -> str:
    """The answer as HTML, in a paragraph of its own."""
    return tag("div", cited_text(answer, 0, len(answer.text)), class_="gw-answer")


def cited_text(answer: Answer, start: int, end: int) -> str:
    """Characters [start, end) of the answer; a marker as it stands in the text is the title of its number."""
    parts, position = [], start
    inside = (c for c in answer.citations if start <= c.start and c.end <= end)
    for citation in sorted(inside, key=lambda c: c.start):
        kind = "gw-cite" if citation.valid else "gw-cite gw-invalid"
        marker = answer.text[citation.start : citation.end]
        parts += [
            escape(answer.text[position : citation.start]),
            tag("span", escape(str(citation.number)), class_=kind, title=marker),
        ]
        position = max(position, citation.end)
    return "".join(parts) + escape(answer.text[position:end])
