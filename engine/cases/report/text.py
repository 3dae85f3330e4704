"""Numbers and texts as the report writes them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from engine.cases.report.blocks import Run
from engine.core.values import Answer, Case, Passage

Labelled = tuple[int, int, str]  # start, end, what the label says


def signed(value: float) -> str:
    """A score with its sign: three decimals, four digits for small ones."""
    return f"{value:+z.3f}" if abs(value) >= 0.001 or value == 0 else f"{value:+.1e}"


def short(value: Any) -> str:
    """Any value on one line."""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)


def place(passage: Passage) -> str:
    """Where a passage stands in its document."""
    page = f", page {passage.page}" if passage.page is not None else ""
    return f"{passage.document}{page}, characters {passage.start:,} to {passage.end:,}"


def name_of(case: Case, number: int) -> str:
    """A passage as a table names it: number and title."""
    if not 1 <= number <= len(case.passages):
        return str(number)
    passage = case.passages[number - 1]
    title = passage.label
    return f"{number} {title if len(title) <= 60 else title[:57] + '...'}"


def answer_runs(answer: Answer, passages: tuple[Passage, ...], labels: Iterable[Labelled] = ()) -> tuple[Run, ...]:
    """The answer cut at its citations and at labelled spans; text positions are offsets into `answer.text`."""
    spans = sorted(labels)
    cuts = {0, len(answer.text)}
    cuts.update(c.start for c in answer.citations)
    cuts.update(c.end for c in answer.citations)
    cuts.update(point for start, end, _ in spans for point in (start, end))
    runs = []
    for start, end in pairwise(sorted(point for point in cuts if 0 <= point <= len(answer.text))):
        citation = next((c for c in answer.citations if c.start <= start < c.end), None)
        said = [text for s, e, text in spans if s <= start < e]
        if citation is not None:
            runs.extend([] if start > citation.start else [_citation(citation.number, citation.valid, passages)])
        elif said:
            closes = any(e == end for s, e, _ in spans if s <= start < e)
            runs.append(Run(answer.text[start:end], "label", note="; ".join(said) if closes else ""))
        else:
            runs.append(Run(answer.text[start:end]))
    return tuple(runs)


def _citation(number: int, valid: bool, passages: tuple[Passage, ...]) -> Run:
    if not valid or not 1 <= number <= len(passages):
        return Run(f"[{number}]", "invalid", note="no such passage was given")
    passage = passages[number - 1]
    return Run(f"[{number}]", "cite", link=f"passage-{number}", note=passage.label)


def marked_runs(text: str, spans: Iterable[tuple[int, int]]) -> tuple[Run, ...]:
    """Text with the quoted stretches marked; stretches that overlap are drawn as one."""
    runs, position = [], 0
    for start, end in sorted(spans):
        start, end = max(start, position), min(end, len(text))
        if end <= start:
            continue
        runs += [Run(text[position:start]), Run(text[start:end], "mark")]
        position = end
    return tuple(run for run in (*runs, Run(text[position:])) if run.text)
