"""Token maps: every passage with a value a token, for the whole answer and for each sentence."""

from __future__ import annotations

from engine.analyses.attribution import TokenMap
from engine.cases.report.attribution import LARGEST_HEAT, legend, pieces_of
from engine.cases.report.blocks import (
    Block,
    Facts,
    Fold,
    Heat,
    Notice,
    Table,
    cells,
    plain,
)
from engine.cases.report.text import name_of, signed
from engine.core.values import Analysis, Case

Row = tuple[tuple[float, ...], ...]


def token_map_section(case: Case, analysis: Analysis) -> list[Block]:
    """Sums per passage as a table, then the passages as heatmaps, the strongest by |relevance| first."""
    found = TokenMap.from_dict(analysis.result)
    places = [found.answer.sentences.index(span) + 1 for span in found.sentences]
    names = ["Whole answer", *(f"Sentence {place}" for place in places)]
    targets = list(zip(names, found.rows[: len(names)], strict=True))
    blocks: list[Block] = [
        Facts(
            (
                ("Method", found.method),
                ("Scored by", found.model),
                ("Target", found.target),
                ("Cost", f"{found.forwards:,} forwards, {found.backwards:,} backwards, {found.seconds:.1f} s"),
                ("Answer tokens where the model would have chosen another", str(len(found.argmax_differs))),
            )
        ),
        *(Notice(note) for note in found.notes if not note.startswith("Written by ")),
        _sums(case, found, targets),
    ]
    blocks.append(Fold("The passages for the whole answer", _heats(case, found, found.rows[0])))
    return blocks


def _sums(case: Case, found: TokenMap, targets: list[tuple[str, Row]]) -> Table:
    numbers = [number for number, _ in found.passages]
    sizes = found.absolute_rows()[0]
    whole = sum(sizes) or 1.0
    rows = tuple(
        cells(name_of(case, number), f"{sizes[p] / whole:.0%}", *(signed(sum(row[p])) for _, row in targets))
        for p, number in enumerate(numbers)
    )
    columns = ("Passage", "Share of |relevance|", *(name for name, _ in targets))
    caption = f"Sum over each passage's tokens, {found.target}; positive pushes the target up"
    return Table(caption, columns, rows, numeric=frozenset(range(1, len(columns))))


def _heats(case: Case, found: TokenMap, row: Row) -> tuple[Block, ...]:
    values = sorted(abs(value) for passage in row for value in passage)
    # The largest single token would drain all others of colour.
    largest = (values[int(0.99 * (len(values) - 1))] or values[-1]) if values else 0.0
    blocks: list[Block] = [plain(legend(largest, found.target), "note")]
    drawn = 0
    for p in sorted(range(len(found.passages)), key=lambda p: -sum(map(abs, row[p]))):
        number, spans = found.passages[p]
        drawn += len(spans)
        if drawn > LARGEST_HEAT and len(blocks) > 1:
            blocks.append(plain("Weaker passages are left out to keep the report small.", "note"))
            break
        text = case.passages[number - 1].text if 1 <= number <= len(case.passages) else ""
        kept = [(span, value) for span, value in zip(spans, row[p], strict=True) if span[0] >= 0]
        pieces = pieces_of(text, [span for span, _ in kept], [value for _, value in kept])
        blocks.append(Heat(f"Passage {name_of(case, number)}", pieces, largest, found.target))
    return tuple(blocks)
