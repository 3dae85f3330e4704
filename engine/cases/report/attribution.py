"""Attributions: sources by spans with their floors, the answer's tokens and the passages as heatmaps."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from engine.analyses.kinds import TOKEN_MAP
from engine.cases.report.blocks import (
    Block,
    Cell,
    Facts,
    Fold,
    Heat,
    Notice,
    Section,
    Table,
    plain,
)
from engine.cases.report.text import name_of, signed
from engine.core.errors import RecordError
from engine.core.values import Analysis, Attribution, Case
from engine.methods.subject import banner

COLUMNS = 5  # spans in one table
LARGEST_HEAT = 20_000  # pieces drawn in one analysis; above, only the strongest sources
UNDER_NUMERICAL = "under the numerical floor"
UNDER_PLACEBO = "no larger than an unrelated passage"


def attributions_of(analysis: Analysis) -> list[Attribution]:
    """The attributions that an analysis holds: the result itself, or what stands under a name of it."""
    places = [analysis.result, analysis.result.get("attribution"), *_listed(analysis.result.get("attributions"))]
    found = []
    for place in places:
        if not isinstance(place, dict) or not {"sources", "scores", "spans"} <= place.keys():
            continue
        # What only looks like an attribution is shown as it was stored.
        with contextlib.suppress(RecordError):
            found.append(Attribution.from_dict(place))
    return found


def has_scores(analysis: Analysis) -> bool:
    """Whether a model's scores of the answer are in it, so that writer and scorer must be told apart."""
    return analysis.kind == TOKEN_MAP or bool(attributions_of(analysis))


def _listed(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []


def attribution_section(case: Case, analysis: Analysis) -> list[Block]:
    """Every attribution of an analysis."""
    found = attributions_of(analysis)
    blocks: list[Block] = []
    for attribution in found:
        drawn = attribution_blocks(case, attribution)
        if len(found) > 1:
            blocks.append(Section(attribution.method, tuple(drawn), level=4))
        else:
            blocks.extend(drawn)
    return blocks


def attribution_blocks(case: Case, attribution: Attribution) -> list[Block]:
    """Cost and floors, tables of sources by spans, the answer's tokens by source."""
    # Who wrote and who scored is said once, at the head of the report.
    said = banner(case.stamp.model, attribution.model)
    blocks: list[Block] = [Facts(_facts(attribution)), *(Notice(note) for note in attribution.notes if note != said)]
    tables = [
        _table(case, attribution, tuple(range(first, min(first + COLUMNS, len(attribution.spans)))))
        for first in range(0, len(attribution.spans), COLUMNS)
    ]
    blocks.extend(tables[:1])
    blocks.append(_spans(case, attribution))
    if tables[1:]:
        blocks.append(Fold("The other sentences of the answer", tuple(tables[1:])))
    heats = _token_heats(case, attribution)
    if heats:
        blocks.append(Fold("The answer's tokens, source by source", tuple(heats)))
    return blocks


def _facts(attribution: Attribution) -> tuple[tuple[str, str], ...]:
    unit = attribution.unit
    return (
        ("Method", attribution.method),
        ("Scored by", attribution.model),
        ("Unit", f"{unit}; positive = the source makes the answer more likely"),
        ("Numerical floor", _floor(attribution.numerical_floor, unit)),
        ("Placebo floor", _floor(attribution.placebo_floor, unit)),
        (
            "Cost",
            f"{attribution.forwards:,} forwards, {attribution.backwards:,} backwards, {attribution.seconds:.1f} s",
        ),
    )


def _floor(value: float | None, unit: str) -> str:
    return "not measured" if value is None else f"{value:.4g} {unit}"


def floors(attribution: Attribution, span: int) -> tuple[float | None, float | None]:
    """(numerical, placebo) floor of a span, the span's own where it was measured."""
    pair = []
    for name, whole in (
        ("numerical_floor_by_span", attribution.numerical_floor),
        ("placebo_floor_by_span", attribution.placebo_floor),
    ):
        own = attribution.details.get(name)
        pair.append(own[span] if isinstance(own, list) and span < len(own) else whole)
    return pair[0], pair[1]


def verdict(value: float, numerical: float | None, placebo: float | None) -> str:
    """What the floors say of an effect; empty where it is above both, or none was measured."""
    if numerical is not None and abs(value) <= numerical:
        return UNDER_NUMERICAL
    return UNDER_PLACEBO if placebo is not None and abs(value) <= placebo else ""


def _table(case: Case, attribution: Attribution, spans: tuple[int, ...]) -> Table:
    order = sorted(
        range(len(attribution.sources)), key=lambda j: -attribution.scores[0][j] if attribution.scores else 0
    )
    rows = []
    for j in order:
        row = [_source(case, attribution, j)]
        for span in spans:
            value = attribution.scores[span][j]
            said = verdict(value, *floors(attribution, span))
            row.append(Cell(signed(value), note=said, faint=bool(said)))
        rows.append(tuple(row))
    names = tuple(_span_name(case, attribution, span) for span in spans)
    return Table(
        f"{attribution.method}: score of each source, {attribution.unit}, strongest for the first column first",
        ("Passage", *names),
        tuple(rows),
        numeric=frozenset(range(1, len(spans) + 1)),
    )


def _source(case: Case, attribution: Attribution, j: int) -> Cell:
    numbers = attribution.sources[j]
    where = attribution.details.get("source_spans")
    note = f"characters {where[j][1]} to {where[j][2]} of its segment" if isinstance(where, list) else ""
    return Cell("; ".join(name_of(case, n) for n in numbers), note=note, link=f"passage-{numbers[0]}")


def _span_name(case: Case, attribution: Attribution, span: int) -> str:
    start, end = attribution.spans[span]
    if (start, end) == (0, len(case.answer.text)):
        return "Whole answer"
    return f"Span {span}" if (start, end) not in case.answer.sentences else _sentence(case, (start, end))


def _sentence(case: Case, span: tuple[int, int]) -> str:
    return f"Sentence {case.answer.sentences.index(span) + 1}"


def _spans(case: Case, attribution: Attribution) -> Block:
    rows = []
    for span, (start, end) in enumerate(attribution.spans):
        text = case.answer.text[start:end]
        shown = text if len(text) <= 240 else text[:200] + " ..."
        rows.append((Cell(_span_name(case, attribution, span)), Cell(f"{start} to {end}"), Cell(shown)))
    return Fold("What the columns are", (Table("Spans of the answer", ("Column", "Characters", "Text"), tuple(rows)),))


def token_spans(case: Case, attribution: Attribution) -> list[tuple[int, int]]:
    """The characters of each row of `per_token`, where they are known."""
    stored = attribution.details.get("token_spans")
    if isinstance(stored, list) and len(stored) == len(attribution.per_token):
        return [(int(start), int(end)) for start, end in stored]
    tokens = [(token.start, token.end) for token in case.answer.tokens]
    chosen = attribution.details.get("tokens")
    if isinstance(chosen, list) and chosen and len(chosen) == len(attribution.per_token):
        if all(isinstance(span, list) for span in chosen):
            return [(int(start), int(end)) for start, end in chosen]
        if max(chosen) < len(tokens):
            return [tokens[t] for t in chosen]
    # The tokens of another model's answer are not those of the scorer.
    same = attribution.model == case.stamp.model and len(tokens) == len(attribution.per_token)
    return tokens if same else []


def _token_heats(case: Case, attribution: Attribution) -> list[Block]:
    spans = token_spans(case, attribution)
    if not spans or not attribution.per_token:
        return []
    largest = max((abs(v) for row in attribution.per_token for v in row), default=0.0)
    order = sorted(range(len(attribution.sources)), key=lambda j: -abs(attribution.scores[0][j]))
    kept = order[: max(1, LARGEST_HEAT // len(spans))]
    blocks: list[Block] = [plain(legend(largest, attribution.unit), "note")]
    for j in kept:
        values = [row[j] for row in attribution.per_token]
        title = "; ".join(name_of(case, n) for n in attribution.sources[j])
        blocks.append(
            Heat(f"By passage {title}", pieces_of(case.answer.text, spans, values), largest, attribution.unit)
        )
    if len(kept) < len(order):
        blocks.append(plain(f"The {len(kept)} strongest of {len(order)} sources are drawn.", "note"))
    return blocks


def legend(largest: float, unit: str) -> str:
    """What the colours of a heatmap mean, in words."""
    return (
        f"Orange, underlined: more likely with it. Blue, dotted underline: less likely. Five steps; the full colour is"
        f" {largest:.3g} {unit}. Pointing at a piece shows its number."
    )


def pieces_of(text: str, spans: Sequence[tuple[int, int]], values: Sequence[float]) -> tuple[tuple[str, float], ...]:
    """The text cut at the spans, each with its value; what lies in no span has 0."""
    pieces: list[tuple[str, float]] = []
    position = 0
    for (start, end), value in sorted(zip(spans, values, strict=True)):
        start = max(start, position)
        if start > position:
            pieces.append((text[position:start], 0.0))
        if end > start:
            pieces.append((text[start:end], value))
            position = end
    pieces.append((text[position:], 0.0))
    return tuple(piece for piece in pieces if piece[0])
