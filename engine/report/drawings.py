"""Figures of a case for a paper: every view of its analyses as SVG, LaTeX and CSV.

A drawing is a value: paragraphs of tinted text, grids of tinted numbers and plots of lines, under a caption that says
what is drawn, by what, over which floor, and the case's hash. Widths of letters are estimated and then held by
`textLength`, so that an SVG looks the same with any font. LaTeX needs the packages xcolor (option table), soul, ulem
and, for plots, pgfplots.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal

from msgspec.structs import replace

from engine.analyses.case_verdict import FactState, fact_verdicts
from engine.analyses.contrast import in_words
from engine.analyses.facts import tracked_runs
from engine.analyses.faithfulness import FaithfulnessReport
from engine.analyses.token_map import TokenMap
from engine.answer.citations import without_markers
from engine.cases.blocks import cut
from engine.cases.markup import escape, quoted, tag, visible
from engine.cases.places import numbered, revision
from engine.cases.review import Review
from engine.core.canonical import content_hash
from engine.core.values import Attribution, Case, Value
from engine.methods.are.values import AreRecord
from engine.methods.contrast import Contrast
from engine.methods.faithfulness import Curves
from engine.methods.raise_.values import ReasonStep, Solution, method_of, similarity
from engine.methods.refinement.values import Refinement, Signals, Word
from engine.methods.used_supports import Quadrant, UseAndSupport, UsedSupports

POSITIVE, NEGATIVE, SIZE = "#d27b24", "#2f6db3", "#178a80"
STATE: dict[FactState, str] = {
    "borne out": SIZE,
    "edited": SIZE,
    "contradicted": "#b3452f",
    "not found": NEGATIVE,
    "unsure": POSITIVE,
    "not checked": "#7a7a7a",
    "no claim": "#7a7a7a",
}
QUADRANT: dict[Quadrant, str] = {
    "used and supporting": SIZE,
    "used but not supporting": POSITIVE,
    "supported but not used": NEGATIVE,
    "neither": "#ffffff",
}
STRONGEST = 0.62  # share of the colour at the end of a scale, as on the pages
WIDTH, MARGIN, SIZE_PX, LINE, PLOT = 720, 16, 12, 19, 190  # pixels

Mark = Literal["", "struck", "underlined"]


class Span(Value, frozen=True):
    """A stretch of text with its colour ("" for none), how deep it is in [0, 1], and the number behind it."""

    text: str
    colour: str = ""
    depth: float = 0.0
    value: float | None = None
    mark: Mark = ""


class Paragraph(Value, frozen=True):
    """Running text under a title."""

    title: str
    spans: tuple[Span, ...]


class Grid(Value, frozen=True):
    """Rows of tinted numbers under column heads; the first cell of a row is its name."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Span, ...]], ...]


class Line(Value, frozen=True):
    """Points in [0, 1] x [0, 1], joined."""

    name: str
    colour: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    dashed: bool = False


class Plot(Value, frozen=True):
    """Lines over one pair of axes, both from 0 to 1, under a title."""

    title: str
    x: str
    y: str
    lines: tuple[Line, ...]


class Drawing(Value, frozen=True):
    """A figure: `name` is a file name without its ending."""

    name: str
    caption: str
    parts: tuple[Paragraph | Grid | Plot, ...]


# What is drawn


def drawn_map(case: Case, found: TokenMap, sentence: int | None = None) -> Drawing:
    """Shares of |relevance| of the passages' words, passages in order of their share.

    For sentence number `sentence` (from 1) where the map has its row, else for the whole answer.
    """
    span = found.answer.sentences[sentence - 1] if sentence else None
    row = 1 + found.sentences.index(span) if span in found.sentences else 0
    words = [_words(found, case, p) for p in range(len(found.passages))]
    sizes = [[sum(abs(found.rows[row][p][i]) for i in word) for word, _ in own] for p, own in enumerate(words)]
    whole = sum(found.absolute_rows()[row]) or 1.0
    end = _robust([size / whole for passage in sizes for size in passage])
    parts = []
    for p in sorted(range(len(words)), key=lambda p: -sum(sizes[p])):
        shares = [size / whole for size in sizes[p]]
        spans = tuple(
            Span(text=text, colour=SIZE, depth=math.sqrt(min(1.0, share / end)) if end else 0.0, value=share)
            for (_, text), share in zip(words[p], shares, strict=True)
        )
        number = found.numbers[p]
        parts.append(Paragraph(title=f"{number}. {case.passages[number - 1].label}: {sum(shares):.0%}", spans=spans))
    what = f"“{without_markers(found.answer.text[slice(*span)])}”" if row and span else "the answer"
    said = (
        f"{found.method.capitalize()} of the {found.target.replace('_', '-')} of {what}, by {found.model}: share of the"
        f" sum of |relevance| per word. The colour scales with the root of the share and is full from {end:.2%} on."
    )
    return _drawing(case, "token_map", said, parts)


def drawn_occlusion(case: Case, found: Attribution) -> Drawing:
    """The scores of an attribution: a row per span of the answer, a column per source."""
    top = max((abs(v) for row in found.scores for v in row), default=0.0)
    rows = []
    for (start, stop), scores in zip(found.spans, found.scores, strict=True):
        whole = (start, stop) == (0, len(case.answer.text))
        name = "The whole answer" if whole else without_markers(case.answer.text[start:stop])
        rows.append((name, _score_cells(scores, top)))
    said = (
        f"{found.method.capitalize()} by {found.model}, in {found.unit}; columns are passages. Positive: the source"
        f" makes the answer more likely. {_floors_said(found)}"
    )
    return _drawing(case, "occlusion", said, [Grid(heads=("Answer", *_sources(found)), rows=tuple(rows))])


def drawn_contrast(case: Case, found: Contrast) -> Drawing:
    """The effect of each passage on the choice between two texts: left out, and alone where that was measured."""
    effect = found.effect
    measured = {"left out": effect.scores[0], "alone": next(iter(effect.details.alone), ())}
    top = max(abs(v) for scores in measured.values() for v in scores)
    rows = tuple((name, _score_cells(scores, top)) for name, scores in measured.items() if scores)
    heads = (f"{found.written} → {found.instead}", *_sources(effect))
    said = (
        f"{in_words(found)} In {effect.unit}; columns are passages. Positive: the passage speaks for"
        f" “{found.written}”. {_floors_said(effect)}"
    )
    return _drawing(case, "contrast", said, [Grid(heads=heads, rows=rows)])


def _score_cells(scores: Sequence[float], top: float) -> tuple[Span, ...]:
    return tuple(
        Span(text=f"{v:+.2f}", colour=POSITIVE if v >= 0 else NEGATIVE, depth=abs(v) / top if top else 0.0, value=v)
        for v in scores
    )


def _sources(found: Attribution | UsedSupports) -> list[str]:
    return [", ".join(map(str, numbers)) for numbers in found.sources]


def _floors_said(found: Attribution) -> str:
    measured = {"numerical": found.numerical_floor, "an unrelated passage": found.placebo_floor}
    floors = ", ".join(f"{f:.3g} {found.unit} ({n})" for n, f in measured.items() if f is not None)
    return f"Floors: {floors}." if floors else ""


def drawn_use(case: Case, found: UsedSupports) -> Drawing:
    """Use and support of each sentence and passage: two grids of one tint, which tells the quadrant."""
    names = [without_markers(case.answer.text[start:end]) for start, end in found.spans]
    sources = _sources(found)

    def grid(head: str, form: str, value: Callable[[UseAndSupport], float]) -> Grid:
        rows = (
            tuple(
                Span(text=f"{value(c):{form}}", colour=QUADRANT[c.quadrant], depth=0.5, value=value(c)) for c in cells
            )
            for cells in found.cells
        )
        return Grid(heads=(head, *sources), rows=tuple(zip(names, rows, strict=True)))

    said = (
        f"Use: nats that the sentence loses without the passage, by {found.scorer}; it counts above the"
        f" {found.floor_kind} floor. Support: the probability that the passage entails the sentence, by"
        f" {found.verifier}; it counts above one half. Teal: both; orange: used only; blue: supports only."
    )
    grids = grid("Use (nats)", "+z,.1f", lambda c: c.used), grid("Support", ".2f", lambda c: c.supports)
    return _drawing(case, "used_supports", said, grids)


def drawn_faithfulness(case: Case, found: FaithfulnessReport) -> Drawing:
    """MoRF and LeRF of each ranking of tokens, and of whole passages."""
    plots = [_curves(curve, f"Tokens, by {curve.ranking}") for curve in found.curves]
    if found.whole_passages is not None:
        plots.append(_curves(found.whole_passages, "Whole passages, by occlusion"))
    random = found.random
    said = (
        f"Mean probability of the answer's tokens as parts of the passages are removed, by {found.model}. ABPC: area"
        f" under LeRF minus area under MoRF, in [-1, 1]; of {random.n} random rankings of tokens {random.mean:+z.3f}"
        f" ({random.low:+z.3f} to {random.high:+z.3f})."
    )
    return _drawing(case, "faithfulness", said, plots)


def _curves(curve: Curves, what: str) -> Plot:
    most = Line(name="most relevant first (MoRF)", colour=POSITIVE, x=curve.shares, y=curve.morf)
    least = Line(name="least relevant first (LeRF)", colour=NEGATIVE, x=curve.shares, y=curve.lerf, dashed=True)
    title = f"{what}: ABPC {curve.abpc:+z.3f}"
    return Plot(title=title, x="share removed", y="mean token probability", lines=(most, least))


def drawn_facts(case: Case, record: AreRecord, review: Review) -> Drawing:
    """The facts under their clauses, each with where it leaves the answer and what it rests on."""
    verdicts = fact_verdicts(case, record, review)
    by_clause = defaultdict[int, list[Span]](list)
    for name, fact in numbered(record).items():
        found = verdicts[name]
        quote = f" Evidence: “{' '.join(found.quote.words.split())}” ({found.quote.title})" if found.quote else ""
        by = f" by {found.by}" if found.by else ""
        sure = "" if found.probability is None or found.mark else f", probability {found.probability:.2f}"
        state = Span(text=f"{name} {found.state}", colour=STATE[found.state], depth=0.6, value=found.probability)
        by_clause[fact.clause] += [state, Span(text=f"{found.text}.{quote}{by}{sure}\n")]
    clauses = record.decomposition.clauses
    parts = (Paragraph(title=" ".join(clauses[n].text.split()), spans=tuple(own)) for n, own in by_clause.items())
    said = f"Atomic facts of the answer, split by {record.decomposer}, verdicts by {record.verifier}."
    return _drawing(case, "facts", said, parts)


def drawn_changes(case: Case, record: AreRecord, review: Review) -> Drawing:
    """The answer with its edits: struck is taken out, underlined is put in; rejected edits are left out."""
    edits, decided = revision(record, case.answer, review)
    drawn = {
        "text": Span(text=""),
        "old": Span(text="", colour=STATE["contradicted"], depth=0.35, mark="struck"),
        "new": Span(text="", colour=STATE["borne out"], depth=0.35, mark="underlined"),
    }
    runs = tracked_runs(record.checked, [e for e in edits if decided.get(e.id) != "rejected"], decided)
    spans = tuple(replace(drawn[run.kind], text=run.text) for run in runs if run.kind in drawn)
    said = "The answer with its edits. Struck: taken out. Underlined: put in."
    return _drawing(case, "changes", said, [Paragraph(title="", spans=spans)])


def drawn_steps(case: Case, run: Solution) -> Drawing:
    """The steps of a run in order: what each searched, what T kept and dropped, its sub-answer; then the answer."""
    parts = [_step(step) for step in run.steps]
    if run.final is not None:
        parts.append(Paragraph(title="Final answer", spans=(Span(text=run.final.reply),)))
    said = f"Steps of {method_of(run.method).label} by {run.model}."
    if any(step.search for step in run.steps):
        limit = "no T" if run.threshold is None else f"under T = {run.threshold:.2f}"
        said += f" Numbers: cosine of search text and passage, by {run.embedder}. Teal: kept. Grey: dropped ({limit})."
    return _drawing(case, f"steps_{run.method}", said, parts)


def _step(step: ReasonStep) -> Paragraph:
    spans = []
    if step.search is not None:
        searched = f"{step.search.kind.capitalize()}: {step.search.text}"
        spans = [Span(text=f"Search query: {step.query}\n"), Span(text=f"{searched}\n")]
    for word, hits in (("kept", step.kept), ("dropped", step.dropped)):
        colour = STATE["borne out"] if word == "kept" else STATE["not checked"]
        for hit in hits:
            value = similarity(hit)
            spans.append(Span(text=f"{word} {value:.2f}", colour=colour, depth=0.6, value=value))
            spans.append(Span(text=f"{hit.passage.label}\n"))
    if step.asked is not None:
        spans.append(Span(text=f"Sub-answer: {step.answer}"))
    return Paragraph(title=f"Step {step.number}. {step.question}", spans=tuple(spans))


def drawn_signals(case: Case, found: Refinement) -> Drawing:
    """S1, S2 and S3 of A's answer with the ends of their scales, and its content words, found in a passage or not."""
    signals, cut = found.signals, found.threshold.value if found.threshold else None
    rows = (
        _signal("S1: similarity of the answers with and without passages (grounded: low)", signals.s1, 1.0, 0.0),
        _signal("S2: gain from the passages, nats per token (grounded: high)", signals.s2, *s2_ends(signals)),
        _signal("S3: content words found in a passage (grounded: high)", signals.s3, 0.0, 1.0, cut),
    )
    parts: list[Paragraph | Grid] = [Grid(heads=("Signal", "Value", "Lowest", "Highest", "Threshold"), rows=rows)]
    if found.baseline is not None and signals.words:
        parts.append(Paragraph(title="Content words of A", spans=_content_words(found.baseline.text, signals.words)))
    said = (
        f"Signals of the answer A by {found.stamp.model}, scored by {found.scorer or found.stamp.model}. The tint of a"
        " value is deeper the nearer it is to the grounded end of its scale. Words of A in teal are in a passage, words"
        " in orange in none. D starts a second pass below the threshold."
    )
    return _drawing(case, "signals", said, parts)


def _signal(
    name: str, value: float | None, far: float, grounded: float, cut: float | None = None
) -> tuple[str, tuple[Span, ...]]:
    """A row: the value and the ends of its scale, from the `far` end to the `grounded` one; D's threshold `cut`."""
    depth = 0.0 if value is None else min(1.0, max(0.0, (value - far) / (grounded - far)))
    cells = ((value, depth), (min(far, grounded), 0.0), (max(far, grounded), 0.0), (cut, 0.0))
    return name, tuple(
        Span(text="–" if figure is None else f"{figure:.2f}", colour=SIZE, depth=tint, value=figure)
        for figure, tint in cells
    )


def s2_ends(signals: Signals) -> tuple[float, float]:
    """The ends of S2's scale in nats per token: -1 and 5, or S2 itself where it lies beyond."""
    return min(-1.0, signals.s2 or 0.0), max(5.0, signals.s2 or 0.0)


def _content_words(text: str, words: Sequence[Word]) -> tuple[Span, ...]:
    """The text cut at its content words, which are tinted by whether a passage has them."""
    pieces = cut(text, ((word.start, word.end, word.found) for word in words))
    spans = (
        Span(text=without_markers(piece))
        if found is None
        else Span(text=piece, colour=SIZE if found else POSITIVE, depth=0.5)
        for piece, found in pieces
    )
    return tuple(span for span in spans if span.text.strip())


def _drawing(case: Case, name: str, said: str, parts: Iterable[Paragraph | Grid | Plot]) -> Drawing:
    """The figure with `said`, the question and the case's hash as its caption."""
    hashed = f"Case {case.id}, content hash {content_hash(case)[:16]}."
    caption = f"{' '.join(said.split())} Question: “{case.question}” {hashed}"
    return Drawing(name=f"{case.id}_{name}", caption=caption, parts=tuple(parts))


def _words(found: TokenMap, case: Case, place: int) -> list[tuple[list[int], str]]:
    """The words of a passage with the tokens that make each; the template around it is left out."""
    number, spans = found.passages[place]
    text = case.passages[number - 1].text
    return [
        ([i for i, (start, end) in enumerate(spans) if start < word.end() and word.start() < end], word.group())
        for word in re.finditer(r"\S+", text)
    ]


def _robust(shares: Sequence[float]) -> float:
    """The 99th percentile of the shares above zero: one extreme word would drain the others of colour."""
    above = sorted(share for share in shares if share > 0)
    return above[int(0.99 * (len(above) - 1))] if above else 0.0


# SVG


def to_svg(drawing: Drawing) -> str:
    """The drawing on white, `WIDTH` pixels wide."""
    body: list[str] = []
    y = MARGIN
    for part in drawing.parts:
        y = _DRAW[type(part)](part, y, body) + LINE // 2
    y = _flow((Span(text=drawing.caption),), y, body, size=10.5)
    height = y + MARGIN
    white = tag("rect", width=str(WIDTH), height=str(height), fill="#ffffff")
    return tag(
        "svg",
        white + "".join(body),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {height}",
        width=str(WIDTH),
        height=str(height),
        font_family="Helvetica, Arial, sans-serif",
        role="img",
        aria_label=drawing.caption,
    )


def _paragraph(part: Paragraph, y: int, body: list[str]) -> int:
    if part.title:
        y = _flow((Span(text=part.title),), y, body, bold=True)
    return _flow(part.spans, y, body)


def _flow(spans: Sequence[Span], y: int, body: list[str], *, size: float = SIZE_PX, bold: bool = False) -> int:
    """Write words from left to right, a new line where one does not fit or the text breaks; return the next y."""
    x, right = float(MARGIN), WIDTH - MARGIN
    for span in spans:
        for word in re.findall(r"\n|[^\s]+", visible(span.text)):
            if word == "\n":
                x, y = float(MARGIN), y + LINE
                continue
            width = _width(word, size) * (1.06 if bold else 1)
            if x + width > right and x > MARGIN:
                x, y = float(MARGIN), y + LINE
            body += _word(word, span, x, y, min(width, right - MARGIN), size, bold)
            x += width + 0.28 * size
    return y + LINE if x > MARGIN else y


def _word(word: str, span: Span, x: float, y: int, width: float, size: float, bold: bool) -> Iterator[str]:
    if span.colour and span.depth > 0.005:
        box = {"x": f"{x - 1.5:.1f}", "y": f"{y + 2}", "width": f"{width + 3:.1f}", "height": f"{LINE - 3}"}
        yield tag("rect", **box, rx="2", fill=span.colour, fill_opacity=f"{STRONGEST * min(1.0, span.depth):.3f}")
    line = {"struck": "line-through", "underlined": "underline"}.get(span.mark, "")
    yield tag(
        "text",
        escape(word),
        x=f"{x:.1f}",
        y=f"{y + 14}",
        font_size=f"{size}",
        font_weight="600" if bold else "",
        text_decoration=line,
        textLength=f"{width:.1f}",
        lengthAdjust="spacingAndGlyphs",
    )


def _grid(part: Grid, y: int, body: list[str]) -> int:
    """Names at the left, numbers in equal columns at the right."""
    columns = len(part.heads) - 1
    each = max(34.0, min(62.0, (WIDTH - 2 * MARGIN) * 0.68 / max(1, columns)))
    first = WIDTH - MARGIN - each * columns
    body += _label(part.heads[0], MARGIN, y, SIZE_PX, bold=True)
    for j, head in enumerate(part.heads[1:]):
        body += _label(head, first + j * each + 4, y, SIZE_PX, bold=True)
    y += LINE
    for name, cells in part.rows:
        lines = _cut(name, first - MARGIN - 10)
        for k, line in enumerate(lines):
            body += _label(line, MARGIN, y + k * LINE)
        for j, cell in enumerate(cells):
            x = first + j * each
            box = {"x": f"{x:.1f}", "y": f"{y + 1}", "width": f"{each - 2:.1f}", "height": f"{LINE * len(lines) - 2}"}
            body.append(tag("rect", **box, fill=cell.colour, fill_opacity=f"{STRONGEST * min(1.0, cell.depth):.3f}"))
            size = min(11.0, 11.0 * (each - 8) / max(1.0, _width(cell.text, 11)))
            body += _label(cell.text, x + 4, y, size)
        y += LINE * len(lines)
    return y


def _plot(part: Plot, y: int, body: list[str]) -> int:
    """The title, a field with a line per fifth, the lines with their legend below."""
    y = _flow((Span(text=part.title),), y, body, bold=True)
    left, right, top, bottom = MARGIN + 40.0, WIDTH / 2 + 140.0, y + 8.0, y + 8.0 + PLOT

    def place(x: float, value: float) -> tuple[float, float]:
        return left + x * (right - left), bottom - value * (bottom - top)

    for fifth in range(6):
        (across, low), (_, up) = place(fifth / 5, 0), place(0, fifth / 5)
        ends = {"x1": f"{left}", "x2": f"{right}", "y1": f"{up:.1f}", "y2": f"{up:.1f}"}
        body.append(tag("line", **ends, stroke="#d5d5d5", stroke_width="1"))
        body += _label(f"{fifth / 5:g}", left - 24, up - 10)
        body += _label(f"{fifth / 5:g}", across - 7, low + 1)
    body += _label(f"{part.y} against {part.x}", left, bottom + LINE)
    at = bottom + 2 * LINE
    for line in part.lines:
        points = " ".join(f"{x:.1f},{v:.1f}" for x, v in map(place, line.x, line.y))
        style = {"fill": "none", "stroke": line.colour, "stroke_width": "2"}
        dashes = {"stroke_dasharray": "6 4"} if line.dashed else {}
        body.append(tag("polyline", points=points, **style, **dashes))
        body.append(tag("polyline", points=f"{left},{at + 9} {left + 30},{at + 9}", **style, **dashes))
        body += _label(line.name, left + 38, at)
        at += LINE
    return round(at)


def _label(text: str, x: float, y: float, size: float = 11, *, bold: bool = False) -> Iterator[str]:
    return _word(text, Span(text=text), x, round(y), _width(text, size), size, bold)


_DRAW: dict[type, Callable[[Any, int, list[str]], int]] = {Paragraph: _paragraph, Grid: _grid, Plot: _plot}


def _cut(text: str, width: float, most: int = 2) -> list[str]:
    """The text in at most `most` lines of that width, the last with an ellipsis where more follows."""
    lines, words = [""], visible(text).split()
    for word in words:
        longer = f"{lines[-1]} {word}".strip()
        if _width(longer, 11) <= width or not lines[-1]:
            lines[-1] = longer
        elif len(lines) < most:
            lines.append(word)
        else:
            lines[-1] += "…"
            break
    return lines


def _width(text: str, size: float) -> float:
    """About how wide a sans-serif font draws the text, in pixels."""
    return size * sum(_ADVANCE.get(letter, 0.7 if letter.isupper() else 0.55) for letter in text)


_ADVANCE = {
    **dict.fromkeys("iljI.,:;'|!()[]", 0.28),
    **dict.fromkeys('ftr-/\\" ', 0.34),
    **dict.fromkeys("mwMW%@", 0.87),
}


# LaTeX and CSV


def to_latex(drawing: Drawing) -> str:
    """A figure environment with the caption; packages: xcolor (option table), soul, ulem, pgfplots."""
    body = "\n\n".join(_LATEX_PART[type(part)](part) for part in drawing.parts)
    return f"\\begin{{figure}}\n\\small\n{body}\n\\caption{{{latex(drawing.caption)}}}\n\\end{{figure}}\n"


def _latex_paragraph(part: Paragraph) -> str:
    title = f"\\textbf{{{latex(part.title)}}}\\\\\n" if part.title else ""
    return title + " ".join(_latex_span(span) for span in part.spans)


def _latex_span(span: Span) -> str:
    words = latex(" ".join(visible(span.text).split()))
    words = {"struck": f"\\sout{{{words}}}", "underlined": f"\\uline{{{words}}}"}.get(span.mark, words)
    tinted = span.colour and span.depth > 0.005
    boxed = f"\\colorbox[HTML]{{{_mixed(span)}}}{{{words}}}" if tinted else words
    return f"{boxed}\\\\" if span.text.endswith("\n") else boxed


def _latex_grid(part: Grid) -> str:
    heads = " & ".join(map(latex, part.heads))
    rows = "\n".join(
        " & ".join([latex(name), *(f"\\cellcolor[HTML]{{{_mixed(c)}}}{latex(c.text)}" for c in cells)]) + r" \\"
        for name, cells in part.rows
    )
    columns = "p{0.4\\linewidth}" + "r" * (len(part.heads) - 1)
    return f"\\begin{{tabular}}{{{columns}}}\n{heads} \\\\\n\\hline\n{rows}\n\\end{{tabular}}"


def _latex_plot(part: Plot) -> str:
    axes = f"title={{{latex(part.title)}}}, xlabel={{{latex(part.x)}}}, ylabel={{{latex(part.y)}}}"
    lines = "\n".join(
        f"\\definecolor{{line{n}}}{{HTML}}{{{line.colour[1:].upper()}}}\n"
        f"\\addplot[line{n}, thick{', dashed' if line.dashed else ''}] coordinates"
        f" {{{' '.join(f'({x:.6g},{y:.6g})' for x, y in zip(line.x, line.y, strict=True))}}};\n"
        f"\\addlegendentry{{{latex(line.name)}}}"
        for n, line in enumerate(part.lines)
    )
    limits = "xmin=0, xmax=1, ymin=0, ymax=1"
    return f"\\begin{{tikzpicture}}\n\\begin{{axis}}[{axes}, {limits}]\n{lines}\n\\end{{axis}}\n\\end{{tikzpicture}}"


_LATEX_PART: dict[type, Callable[[Any], str]] = {Paragraph: _latex_paragraph, Grid: _latex_grid, Plot: _latex_plot}


def _mixed(span: Span) -> str:
    """The span's colour on white, as six hex digits."""
    share = STRONGEST * min(1.0, span.depth)
    channels = (int(span.colour[i : i + 2], 16) for i in (1, 3, 5))
    return "".join(f"{round(255 + share * (channel - 255)):02X}" for channel in channels)


_LATEX = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}


def latex(text: str) -> str:
    """Text with LaTeX's own characters escaped.

    >>> latex("50% of v2a_b")
    '50\\\\% of v2a\\\\_b'
    """
    return "".join(_LATEX.get(character, character) for character in " ".join(text.split()))


def to_csv(drawing: Drawing) -> str:
    """A line per piece of text, number or point, at full precision; text that a spreadsheet would run is quoted.

    Of a point the text is its x and the value its y.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("part", "column", "text", "value"))
    for part in drawing.parts:
        for title, column, span in _pieces(part):
            value = "" if span.value is None else repr(span.value)
            writer.writerow((quoted(title), column, quoted(" ".join(span.text.split())), value))
    return out.getvalue()


def _pieces(part: Paragraph | Grid | Plot) -> Iterator[tuple[str, str, Span]]:
    match part:
        case Grid():
            for name, cells in part.rows:
                yield from ((name, head, cell) for head, cell in zip(part.heads[1:], cells, strict=True))
        case Plot():
            for line in part.lines:
                points = zip(line.x, line.y, strict=True)
                yield from ((part.title, line.name, Span(text=repr(x), value=y)) for x, y in points)
        case Paragraph():
            yield from ((part.title, str(place), span) for place, span in enumerate(part.spans, start=1))
