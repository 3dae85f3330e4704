"""Occlusion as a table: one row per span of the answer, one column per source, colour for sign and size, and both
floors."""

from __future__ import annotations

from components import state
from components.analysis_run import is_banner
from components.answer import current_sentence, with_pills
from components.html import escape, note, show, tag
from components.style import diverging
from engine.answer.citations import without_markers
from engine.core.text import ANY_CITATION
from engine.core.values import Attribution, Case

LONGEST = 90  # characters of a span's words in the first column
UNDER_NUMERICAL = "below the numerical floor: may be rounding"
UNDER_PLACEBO = "no larger than the effect of an unrelated passage"


def attribution_table(attribution: Attribution, case: Case) -> None:
    """Draw an attribution; positive (orange) makes the answer more likely, negative (blue) less."""
    head = "".join(_column(numbers, case) for numbers in attribution.sources)
    top = max((abs(v) for row in attribution.scores for v in row), default=0.0)
    rows = [_row(attribution, index, top, case) for index in range(len(attribution.spans))]
    unit = escape(f"{attribution.unit}, by {attribution.model}")
    caption = tag("caption", f"Scores in {unit}. Positive: the source makes the answer more likely.")
    corner = tag("th", "Answer", scope="col")
    body = tag("thead", tag("tr", corner + head)) + tag("tbody", "".join(rows))
    show(tag("div", tag("table", caption + body, class_="gw-table"), class_="gw-scroll", tabindex="0"))
    for line in attribution.notes:
        if not is_banner(line):  # a banner stands above the table
            note(line)


def _column(numbers: tuple[int, ...], case: Case) -> str:
    titles = dict.fromkeys(case.passages[n - 1].title or case.passages[n - 1].document for n in numbers)
    label = ", ".join(str(n) for n in numbers) if len(numbers) < 4 else f"{numbers[0]} to {numbers[-1]}"
    return tag(
        "th", escape(label), scope="col", title="; ".join(titles), aria_current=state.current("passage", *numbers)
    )


def _row(attribution: Attribution, index: int, top: float, case: Case) -> str:
    start, end = attribution.spans[index]
    whole = index == 0 and (start, end) == (0, len(case.answer.text))
    text = "the whole answer" if whole else case.answer.text[start:end]
    label = escape(text) if whole else _named(case.answer.text, start, end)
    floors = tuple(_floor(attribution, name, index) for name in ("numerical_floor", "placebo_floor"))
    cells = "".join(_cell(value, top, *floors) for value in attribution.scores[index])
    selected = "" if whole else current_sentence(case.answer, (start, end))
    return tag("tr", tag("th", label, scope="row", title=without_markers(text), aria_current=selected) + cells)


def _named(answer: str, start: int, end: int) -> str:
    """The words of a span, cut where they are long; its citation markers stay whole, as numbers."""
    markers = "".join(marker.group() for marker in ANY_CITATION.finditer(answer, start, end))
    words = without_markers(answer[start:end])
    return with_pills((words if len(words) <= LONGEST else words[: LONGEST - 2] + "… ") + markers)


def _floor(attribution: Attribution, name: str, index: int) -> float | None:
    by_span = getattr(attribution.details, f"{name}_by_span")
    return by_span[index] if by_span else getattr(attribution, name)


def _cell(value: float, top: float, numerical: float | None, placebo: float | None) -> str:
    colour = diverging(value / top if top else 0.0)
    if numerical is not None and abs(value) <= numerical:
        return tag("td", f"{value:+z,.2f}", class_="gw-nothing", title=UNDER_NUMERICAL)
    if placebo is not None and abs(value) <= placebo:
        return tag("td", f"{value:+z,.2f} ·", class_="gw-weak", title=UNDER_PLACEBO, style=f"background:{colour}")
    return tag("td", f"{value:+z,.2f}", style=f"background:{colour}")


def floors_line(attribution: Attribution) -> str:
    """The floors and the cost in words."""
    said, unit = [], attribution.unit
    if attribution.numerical_floor is not None:
        said.append(f"Numerical floor {attribution.numerical_floor:.2g} {unit}: a smaller value may be rounding.")
    if attribution.placebo_floor is not None:
        said.append(f"Placebo floor {attribution.placebo_floor:.3g} {unit}: a value marked · is {UNDER_PLACEBO}.")
    backwards = f" and {attribution.backwards:,} backward" if attribution.backwards else ""
    said.append(f"Cost: {attribution.forwards:,} forward{backwards} passes, {attribution.seconds:.1f} s.")
    return " ".join(said)
