"""The prompts of RAISE and its baselines, and the reader of sub-questions (RAISE, section 3, appendices B.2 and E).

Sub-questions are asked for as `question | query`, one per line. The parser also reads what models write instead:
numbered and bulleted lists, the paper's own labels, table rows, bold. A missing query is the sub-question itself, and
said. A reply without a sub-question is not repaired: the run stops in the state `unparsed`. Left out: the mean over
several hypothetical answers of the original HyDE.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from engine.answer.prompt import passage_segments
from engine.core.values import Passage, Prompt, Segment
from engine.methods.raise_.values import Problem, ReasonStep, SubQuestion, Written
from engine.models.replies import content
from engine.prompts import ask, fill, system

TEMPLATES = (
    "sub_questions",
    "logical_query",
    "principle",
    "principles",
    "hypothetical_answer",
    "sub_answer",
    "think",
    "think_problem",
    "final_answer",
    "ending",
    "passage",
    "question",
    "choose_one",
)

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


def decompose_prompt(problem: Problem, shots: int = 0) -> Prompt:
    """p_1 of Algorithm 1: the problem with its options, after so many examples; all methods ask the same."""
    return ask("sub_questions", shots, problem=problem.text)


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
        if labelled := query or question:
            kind, (number, text) = "query" if query else "question", labelled
            waiting = None if text else (kind, number)
        elif waiting:
            (kind, number), text, waiting = waiting, line, None
        else:
            kind, number, text = "question", None, _listed(line)
        _take(kind, number, text, drafts)
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
    """The parts between bars, or before and after "Query:"; a bar inside, as in |x|, has no spaces on both sides."""
    inner = text.strip().strip("|").strip()
    cells = re.split(r"\s\|\s|\s(?:search )?query:\s", inner, flags=re.IGNORECASE)
    return cells if len(cells) > 1 or inner.count("|") != 1 else inner.split("|")


def _bare(text: str) -> str:
    """Without list marks, label and quotation marks."""
    text = _LIST_MARK.sub("", text.strip())
    match = _QUESTION.match(text)
    return (match["text"] if match else text).strip().strip('"“”').strip()


def _notes(drafts: Sequence[_Draft], kept: Sequence[_Draft], most: int) -> tuple[str, ...]:
    missing = sum(not draft.query for draft in kept[:most])
    said = (
        (missing, f"{missing} of the sub-questions had no search query; the search used the sub-question."),
        (len(drafts) - len(kept), f"{len(drafts) - len(kept)} repeated sub-questions were left out."),
        (len(kept) - most, f"The reply has {len(kept)} sub-questions; only the first {most} are used."),
    )
    return tuple(text for count, text in said if count > 0)


LABEL = "guess used only to search"


def search_prompt(kind: Written, sub: SubQuestion | ReasonStep, shots: int = 0) -> Prompt:
    """Ask for the text that is searched for a sub-question.

    The logical query (p_2 of Algorithm 1, figure 13) is the principle that the search should find: it may be wrong, so
    the model that answers never sees it. Step-Back (figure 9) gives the principles, asked for after `shots` examples,
    to the model that answers; Step-Back+RAG searches with them. HyDE (Gao et al. 2023) searches a possible answer.
    """
    if kind == "logical query":
        return ask("logical_query", question=sub.question, query=sub.query)
    if kind == "principle":
        return ask("principle", shots, question=sub.question)
    return ask("hypothetical_answer", question=sub.question)


def chain_of_thought_prompt(problem: Problem, passages: Sequence[Passage] = ()) -> Prompt:
    """Instruction, passages if any, and the problem with its options.

    CoT (Wei et al. 2022; RAISE, figure 8), CoT+RAG and RAISE-Direct share one wording: they differ in passages only.
    """
    ask = Segment(kind="question", text=fill("think_problem", problem=problem.text))
    return Prompt(segments=(system("think", ending=ending(problem)), *passage_segments(passages), ask))


def told(steps: Sequence[ReasonStep]) -> str:
    """The (r_j, a_j) as prompts show them."""
    lines = (f"{step.number}. {step.question}\n{step.answer or '(no answer)'}" for step in steps)
    return "\n" + "\n".join(lines) if steps else "none"


def sub_answer_prompt(problem: Problem, earlier: Sequence[ReasonStep], step: ReasonStep) -> Prompt:
    """p_3: problem and earlier steps, the passages that the step kept, Step-Back's principle, the sub-question."""
    asked = ask("sub_answer", problem=problem.text, steps=told(earlier))
    principle = (
        (Segment(kind="instruction", text=fill("principles", principles=step.principle.reply.strip())),)
        if step.principle
        else ()
    )
    question = Segment(kind="question", text=fill("question", question=step.question))
    return Prompt(segments=(*asked.segments, *passage_segments(step.passages), *principle, question))


def final_answer_prompt(problem: Problem, steps: Sequence[ReasonStep]) -> Prompt:
    """p_4 (RAISE, Algorithm 1, figures 14 and 15): the problem and all steps, no documents."""
    return ask("final_answer", problem=problem.text, steps=told(steps), ending=ending(problem))


def ending(problem: Problem) -> str:
    """How a conclusion ends: with an option's letter where there are options (an open answer would be one, too)."""
    return fill("ending") if problem.options else ""
