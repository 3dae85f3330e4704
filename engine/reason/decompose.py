"""Problem decomposition: x -> ((r_1, q_1), ..., (r_n, q_n)) (RAISE, section 3, figure 12).

The reply is asked for as `question | query`, a line each. The parser also reads what models write instead: numbered
and bulleted lists, the paper's own "Subquestion 1: ... / Search Query for Subquestion 1: ...", table rows, bold. A
missing query is the sub-question itself, and said. A reply with no sub-question in it is not repaired: the run stops
there in the state `unparsed` with the reply shown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from engine.models.replies import content
from engine.prompts import ask
from engine.reason.options import Problem
from engine.reason.values import SubQuestion
from engine.types import Prompt

_MARKS = re.compile(r"\*\*|__|`|^#+\s*")
_LIST_MARK = re.compile(r"^(?:\(?\d{1,3}[.):]|\(?[a-z][.)]|\(?[ivx]{1,4}[.)]|[-–•+*])\s+")
_QUESTION = re.compile(
    r"^(?:sub-?\s?question|question|step|q)\s*+(?:(?P<number>\d{1,3})\s*+)?(?:[:.)=]|(?<=\s)[-–]\s)\s*+(?P<text>.*)$",
    re.IGNORECASE,
)
_QUERY = re.compile(
    r"^(?:search\s+)?query\s*+(?:for\s++)?(?:(?:sub-?\s?question|question|step)\s*+)?(?:(?P<number>\d{1,3})\s*+)?"
    r"[:=]\s*+(?P<text>.*)$",
    re.IGNORECASE,
)
_RULE = re.compile(r"^[\s|:+-]*$")
_HEADS = {"question", "questions", "sub-question", "subquestion", "sub-questions", "subquestions"}

_MOST_LINES = 1000  # of a reply that are read
_NUMBER_HEADS = {"#", "no", "no.", "number", "step"}


@dataclass
class _Draft:
    """A sub-question while its lines are read; `number` is the one that the reply gave it."""

    number: int
    question: str
    query: str = ""


def decompose_prompt(problem: Problem) -> Prompt:
    """p_1 of Algorithm 1: the problem with its options."""
    return ask("sub_questions", problem=problem.text)


def parse(reply: str, most: int = 30) -> tuple[tuple[SubQuestion, ...], tuple[str, ...]]:
    """(sub-questions in the order of the reply, notes on what was missing, repeated or over `most`).

    >>> parse("1. What is ice? | density of ice\\n2) Why does it float?")[0][1]
    SubQuestion(question='Why does it float?', query='Why does it float?')
    """
    drafts = _drafts(reply)
    first: dict[str, _Draft] = {}
    for draft in drafts:
        first.setdefault(draft.question.casefold(), draft)
    kept = list(first.values())
    values = tuple(SubQuestion(question=d.question, query=d.query or d.question) for d in kept[:most])
    return values, _notes(drafts, kept, most)


def _drafts(reply: str) -> list[_Draft]:
    """Read the lines in order; a label with nothing after it takes the line that follows."""
    drafts: list[_Draft] = []
    waiting: tuple[str, int | None] | None = None
    for raw in content(reply)[:_MOST_LINES]:
        line = _MARKS.sub("", raw.strip()).strip()
        if _RULE.match(line):
            continue
        query, question = _labelled(_QUERY, line), _labelled(_QUESTION, line)
        if waiting and not query and not question:
            _take(waiting[0], waiting[1], line, drafts)
            waiting = None
        elif query or question:
            kind, (number, text) = ("query", query) if query else ("question", question or (None, ""))
            waiting = None if text else (kind, number)
            _take(kind, number, text, drafts)
        else:
            _take("question", None, _listed(line), drafts)
    return drafts


def _labelled(pattern: re.Pattern[str], line: str) -> tuple[int | None, str] | None:
    """(its number if it has one, the text after the label) of a labelled line."""
    match = pattern.match(_LIST_MARK.sub("", line))
    return (int(match["number"]) if match["number"] else None, match["text"].strip()) if match else None


def _listed(line: str) -> str:
    """The sub-question of a line without a label: it is listed, has a query behind a bar, or ends as a question."""
    text = _LIST_MARK.sub("", line)
    cells = _cells(line)
    if text != line or len(cells) > 1 or text.rstrip('"').endswith("?"):
        return text
    return ""


def _take(kind: str, number: int | None, text: str, drafts: list[_Draft]) -> None:
    """Add a sub-question, or give a query to the sub-question that it belongs to."""
    if not text:
        return
    if kind == "query":
        known = [d for d in drafts if d.number == number] if number is not None else drafts[-1:]
        for draft in known[:1]:
            draft.query = draft.query or _bare(text)
        return
    cells = _cells(text)
    if len(cells) > 2 and (cells[0].rstrip(".)").isdigit() or cells[0].casefold() in _NUMBER_HEADS):
        cells = cells[1:]
    question = _bare(cells[0])
    if question and question.casefold() not in _HEADS:
        drafts.append(_Draft(number or len(drafts) + 1, question, _bare(cells[1]) if len(cells) > 1 else ""))


def _cells(text: str) -> list[str]:
    """What stands between bars; a bar inside a question, as in |x|, has no spaces on both sides."""
    inner = text.strip().strip("|").strip()
    cells = re.split(r"\s\|\s", inner)
    return cells if len(cells) > 1 or inner.count("|") != 1 else inner.split("|")


def _bare(text: str) -> str:
    """Without list marks, label and quotation marks."""
    text = _LIST_MARK.sub("", text.strip())
    match = _QUESTION.match(text)
    return (match["text"] if match else text).strip().strip('"“”').strip()


def _notes(drafts: Sequence[_Draft], kept: Sequence[_Draft], most: int) -> tuple[str, ...]:
    """What the reader of the steps has to know about the reply."""
    missing = sum(not draft.query for draft in kept[:most])
    said = (
        (missing, f"{missing} of the sub-questions came without a search query; the sub-question stands in its place."),
        (len(drafts) - len(kept), f"{len(drafts) - len(kept)} repeated sub-questions are left out."),
        (len(kept) - most, f"The reply has {len(kept)} sub-questions; the first {most} are worked on."),
    )
    return tuple(text for count, text in said if count > 0)
