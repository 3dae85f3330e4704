"""An answer as it is read: every citation marker drawn as the number of the passage that it names."""

from __future__ import annotations

from components import state
from components.html import escape, markdown_runs, show, tag
from engine.cases.blocks import cut, cut_at_citations
from engine.core.text import Span
from engine.core.values import Answer


def answer_view(answer: Answer) -> None:
    """Draw the text; a citation of a passage that is not there is dashed."""
    show(answer_markup(answer))


def answer_markup(answer: Answer) -> str:
    """The answer as HTML, in a paragraph of its own."""
    return tag("div", cited_text(answer, 0, len(answer.text)), class_="gw-answer")


def cited_text(answer: Answer, start: int, end: int) -> str:
    """Characters [start, end) of the answer; the original marker is the title of its number."""
    inside = sorted((c.start - start, c.end - start, c) for c in answer.citations if start <= c.start and c.end <= end)
    pieces = cut(answer.text[start:end], inside)
    return "".join(_pill(c.number, piece, valid=c.valid) if c else _written(piece) for piece, c in pieces)


def _written(text: str) -> str:
    """Text of an answer with its Markdown drawn: marks hidden or faint, bold and headings strong."""
    runs = ((escape(run["text"]), run["style"]) for run in markdown_runs(text))
    return "".join(tag("span", words, class_=f"gw-{style}") if style else words for words, style in runs)


def _pill(number: int, marker: str, *, valid: bool = True) -> str:
    return tag("span", str(number), class_="gw-cite" if valid else "gw-cite gw-invalid", title=marker)


def current_sentence(answer: Answer, span: Span) -> str:
    """The value of aria-current for markup that shows a span of the answer: "true" if it is the selected sentence."""
    numbers = (number for number, sentence in enumerate(answer.sentences, start=1) if sentence == span)
    return state.current("sentence", *numbers)


def with_pills(text: str) -> str:
    """Any text of an answer as HTML, each citation marker in it as the numbers that it names.

    >>> with_pills("Ice < 0 [cite_4].")
    'Ice &lt; 0 <span class="gw-cite" title="[cite_4]">4</span>.'
    """
    pieces = cut_at_citations(text)
    return "".join(
        "".join(_pill(n, piece) for n in numbers) if numbers else _written(piece) for piece, numbers in pieces
    )
