"""The quoting reader: its answer, and every sentence that it considered, from the same passages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.analyses.floors import embedding_floor
from engine.analyses.kind import Again, Kind, Loaders, Outcome, less
from engine.answer.quoting_reader import Reading, read
from engine.answer.sentence_scores import WEIGHTS, Candidate
from engine.cases.blocks import Block, Cell, Table, of_passages, plain, table
from engine.cases.review import Review
from engine.core.canonical import plain as as_json
from engine.core.settings import Reader
from engine.core.values import Analysis, Answer, Case, Stamp
from engine.models.protocols import Embedder


def stored_answer(answer: Answer) -> Any:
    """An answer of the quoting reader as a replay compares it: its text, what it quoted and what is read off it."""
    return as_json({"text": answer.text, "quotes": answer.quotes, **read_off(answer)})


def read_off(answer: Answer) -> Any:
    """Sentences and citations of an answer and whether it is a refusal: all that is read off its text."""
    return as_json({"sentences": answer.sentences, "citations": answer.citations, "refused": answer.refused})


def answer_again(case: Case, tools: Loaders) -> Outcome:
    """The quoting reader again, on the same passages."""
    return Outcome(values=stored_answer(_read(case, case.stamp, tools)[0].answer))


def _reading_again(case: Case, analysis: Analysis, tools: Loaders) -> Outcome:
    reading, embedder = _read(case, analysis.stamp, tools)
    texts = [case.passages[c.number - 1].text[c.start : c.end] for c in reading.candidates]
    floor = embedding_floor(embedder, case.question, texts)
    # A passage is as close as it is less the closest one, so it has the rounding of two cosines.
    floors = {"cosine": WEIGHTS["cosine"] * floor, "passage": WEIGHTS["passage"] * 2 * floor}
    floors["score"] = sum(floors.values())
    return Outcome(values=less(reading.to_dict()), floor=floor, floors=floors)


def _read(case: Case, stamp: Stamp, tools: Loaders) -> tuple[Reading, Embedder]:
    embedder, settings = tools.embedder(stamp.revision), Reader.from_dict(stamp.settings.get("reader", {}))
    return read(case.question, case.passages, embedder, settings), embedder


def _blocks(case: Case, found: Reading, review: Review) -> list[Block]:
    rule: list[Block] = [plain(found.rule, "note")] if found.rule else []
    return [*rule, _candidates(case, found.candidates) if found.candidates else plain("No sentence was considered.")]


def _candidates(case: Case, candidates: Sequence[Candidate]) -> Table:
    parts = tuple(dict.fromkeys(name for c in candidates for name in c.parts))

    def row(c: Candidate) -> list[Cell | str]:
        text = "".join(p.text[c.start : c.end] for p in case.passages[c.number - 1 : c.number])
        figures = (c.closeness, c.score, *(c.parts.get(name) for name in parts))
        numbers = ("–" if figure is None else f"{figure:z.3f}" for figure in figures)
        return [text, "yes" if c.chosen else "", Cell(str(c.number), places=of_passages(c.number)), *numbers]

    columns = ("Sentence", "Quoted", "Passage", "Closeness", "Score", *(name.capitalize() for name in parts))
    caption = "Quoted sentences first, then by score: the sum of the columns to its right."
    ranked = sorted(candidates, key=lambda c: (not c.chosen, -c.score))
    return table(caption, columns, map(row, ranked), numeric=range(2, len(columns)))


KIND = Kind(
    name="reading",
    title="How the quoting reader chose",
    result=Reading,
    blocks=_blocks,
    terms=("reading",),
    again=Again(_reading_again),
    scores_answer=False,
)
