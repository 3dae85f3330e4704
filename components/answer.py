"""An answer as it is read: every citation marker drawn as the number of the passage that it names."""

from __future__ import annotations

import re

from components import state
from components.html import escape, show, tag
from engine.core.text import ANY_CITATION, Span
from engine.core.values import Answer


def answer_view(answer: Answer) -> None:
    """Draw the text; a citation of a passage that is not there is dashed."""
    show(answer_markup(answer))


def answer_markup(answer: Answer) -> str:
    """The answer as HTML, in a paragraph of its own."""
    return tag("div", cited_text(answer, 0, len(answer.text)), class_="gw-answer")


def cited_text(answer: Answer, start: int, end: int) -> str:
    """Characters [start, end) of the answer; the original marker is the title of its number."""
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


def current_sentence(answer: Answer, span: Span) -> str:
    """The value of aria-current for markup that shows a span of the answer: "true" if it is the selected sentence."""
    numbers = (number for number, sentence in enumerate(answer.sentences, start=1) if sentence == span)
    return state.current("sentence", *numbers)


def with_pills(text: str) -> str:
    """Any text of an answer as HTML, each citation marker in it as the numbers that it names.

    >>> with_pills("Ice < 0 [cite_4].")
    'Ice &lt; 0 <span class="gw-cite" title="[cite_4]">4</span>.'
    """
    parts, position = [], 0
    for marker in ANY_CITATION.finditer(text):
        parts.append(escape(text[position : marker.start()]))
        numbers = re.findall(r"\d+", marker.group())
        parts += [tag("span", escape(number), class_="gw-cite", title=marker.group()) for number in numbers]
        position = marker.end()
    return "".join(parts) + escape(text[position:])
