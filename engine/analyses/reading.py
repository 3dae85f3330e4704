"""The quoting reader: its answer, and every sentence that it considered, from the same passages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.analyses.floors import embedding_floor
from engine.analyses.kind import Again, Kind, Loaders, Outcome, less
from engine.answer.quoting_reader import Reading, read
from engine.answer.sentence_scores import Candidate
from engine.cases.blocks import Block, Cell, Fold, Table, name_of, plain, table
from engine.cases.review import Review
from engine.core.canonical import plain as as_json
from engine.core.settings import Reader
from engine.core.values import Analysis, Answer, Case, Stamp
from engine.models.protocols import Embedder


def stored_answer(answer: Answer) -> Any:
    """An answer of the quoting reader as a replay compares it: its text and what it quoted."""
    return as_json({"text": answer.text, "quotes": answer.quotes})


def answer_again(case: Case, tools: Loaders) -> Outcome:
    """The quoting reader again, on the same passages."""
    return Outcome(values=stored_answer(_read(case, case.stamp, tools)[0].answer))


def _reading_again(case: Case, analysis: Analysis, tools: Loaders) -> Outcome:
    reading, embedder = _read(case, analysis.stamp, tools)
    texts = [case.passages[c.number - 1].text[c.start : c.end] for c in reading.candidates]
    return Outcome(values=less(reading.to_dict()), floor=embedding_floor(embedder, case.question, texts))


def _read(case: Case, stamp: Stamp, tools: Loaders) -> tuple[Reading, Embedder]:
    embedder, settings = tools.embedder(stamp.revision), Reader.from_dict(stamp.settings.get("reader", {}))
    return read(case.question, case.passages, embedder, settings), embedder


def _blocks(case: Case, found: Reading, review: Review) -> list[Block]:
    """The quoting reader: every sentence that it considered, those that it took first."""
    if not found.candidates:
        return [plain("No sentence was considered.")]
    chosen = [c for c in found.candidates if c.chosen]
    rest = sorted((c for c in found.candidates if not c.chosen), key=lambda c: -c.score)
    blocks: list[Block] = [plain(found.rule)] if found.rule else []
    taken = f"Sentences that were quoted ({len(chosen)} of {len(found.candidates)})"
    blocks.append(_candidates(case, chosen, taken))
    blocks.append(Fold(f"The other sentences ({len(rest)})", (_candidates(case, rest, "Not quoted, best first"),)))
    return blocks


def _candidates(case: Case, candidates: Sequence[Candidate], caption: str) -> Table:
    parts = sorted({name for c in candidates for name in c.parts})
    rows: list[list[Cell | str]] = []
    for c in candidates:
        text = case.passages[c.number - 1].text[c.start : c.end] if 1 <= c.number <= len(case.passages) else ""
        values = (f"{c.parts[name]:.3f}" if name in c.parts else "" for name in parts)
        rows.append([Cell(name_of(case, c.number), link=f"passage-{c.number}"), text, f"{c.score:.3f}", *values])
    columns = ("Passage", "Sentence", "Score", *parts)
    return table(caption, columns, rows, numeric=range(2, len(columns)))


KIND = Kind(
    name="reading",
    title="How the quoting reader chose",
    result=Reading,
    blocks=_blocks,
    terms=("reading",),
    again=Again(_reading_again),
    scores_answer=False,
)
