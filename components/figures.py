"""An evaluation's figure as Plotly draws it: intervals as bars, series told apart by colour and by mark or dash."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import plotly.graph_objects as go
import streamlit as st

from components.html import chart_text, plain
from components.style import NEGATIVE, POSITIVE, SEQUENTIAL
from engine.studies.values import Axis, Figure, Series

GREY = "#7a7a7a"  # seen on a light and on a dark page, and on a bar
COLOURS = (NEGATIVE, POSITIVE, SEQUENTIAL, "#8a63b8", "#b0455f", GREY, "#5b8c3a", "#3f7fa6", "#a66a2c", "#5f5fa8")
MARKS = ("circle", "square", "diamond", "triangle-up", "x", "star", "cross", "hexagon", "triangle-down", "pentagon")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
MANY = 6  # series: more are listed right of a figure, where they take no height from it
BUTTONS = {"displaylogo": False, "modeBarButtonsToRemove": ["lasso2d", "select2d"]}
BUTTON_ROW = 34  # pixels above the data, for Plotly's buttons
LONGEST_TICK, SHOWN = 12, 8  # characters of a name on an axis: longer ones are cut where many of them share it


def figure_view(figure: Figure, *, key: str) -> str:
    """Draw a figure with what it shows and its notes; return the case of the point that was clicked, if any."""
    if not any(series.x for series in figure.series):
        st.caption(plain(f"{figure.title}: nothing to draw. No example of this run has the values."))
        return ""
    has_cases = any(any(series.cases) for series in figure.series)
    # Text and not part of the chart: on a narrow screen it wraps, and Plotly's buttons do not cover it.
    st.markdown(f"**{plain(figure.title)}**")
    chart, buttons = drawn(figure), {**BUTTONS, "toImageButtonOptions": {"format": "svg", "filename": figure.name}}
    if has_cases:
        event = st.plotly_chart(chart, key=key, on_select="rerun", selection_mode="points", config=buttons)
        points = event.selection.points
    else:
        st.plotly_chart(chart, key=key, config=buttons)
        points = []
    said = [f"After {figure.shows}." if figure.shows else "", *figure.notes]
    said.append("Click a point to open its case." if has_cases else "")
    st.caption(plain(" ".join(part for part in said if part)))
    return next((str(data) for point in points if (data := _case(point))), "")


def _case(point: dict[str, object]) -> object:
    data = point.get("customdata")
    return data[0] if isinstance(data, (list, tuple)) and data else data


def drawn(figure: Figure) -> go.Figure:
    """The figure; an unknown kind cannot be, the values' type says which there are."""
    chart = go.Figure()
    draw: Callable[[go.Figure, Series, int], None] = _DRAW[figure.kind]
    for number, series in enumerate(figure.series):
        draw(chart, series, number)
    chart.update_layout(
        height=380,
        margin={"l": 10, "r": 10, "t": BUTTON_ROW, "b": 10},
        xaxis={"title": _named(figure.x), **_ticks(figure)},
        yaxis={"title": _named(figure.y)},
        legend={} if len(figure.series) > MANY else {"orientation": "h", "y": -0.28},
        barmode="group",
        clickmode="event+select",
    )
    values = [y for series in figure.series for y in series.y if y is not None]
    if values and _apart(figure):
        room = 0.05 * (max(values) - min(values)) or 0.05  # else Plotly begins at 0
        chart.update_layout(scattermode="group", yaxis_range=(min(values) - room, max(values) + room))
    if figure.right is not None:
        # Ticks of its own: those of the left axis fall on 0.0864 and 0.1339 here.
        own = {"tickmode": "auto", "showgrid": False}
        chart.update_layout(yaxis2={"title": _named(figure.right), "overlaying": "y", "side": "right", **own})
    return chart


def _apart(figure: Figure) -> bool:
    """Whether equal points of several series are drawn next to each other: values by names that they share."""
    places = Counter(x for series in figure.series for x in set(series.x))
    shared = any(isinstance(x, str) and count > 1 for x, count in places.items())
    return figure.kind == "points" and shared and not any(series.n for series in figure.series)


def _named(axis: Axis) -> str:
    return chart_text(f"{axis.name} ({axis.unit})" if axis.unit else axis.name)


def _ticks(figure: Figure) -> dict[str, object]:
    """Many long names, as the ids of questions are, cut to their beginnings; the pointer shows them whole."""
    names = list(dict.fromkeys(x for series in figure.series for x in _places(series) if isinstance(x, str)))
    if len(names) <= SHOWN or max(map(len, names)) <= LONGEST_TICK:
        return {}
    # Aliases, since Plotly draws every tick of a list of texts, however narrow the chart is.
    return {"labelalias": {name: f"{name[:SHOWN]}…" for name in names if len(name) > LONGEST_TICK}}


def _common(series: Series, **more: object) -> dict[str, object]:
    """The common parts of a trace: name, data, the cases behind its points, and its value axis."""
    return {
        "name": chart_text(series.name),
        "x": _places(series),
        "y": list(series.y),
        "customdata": [[case] for case in series.cases] or None,
        "yaxis": "y2" if series.side == "right" else "y",
        **more,
    }


def _places(series: Series) -> list[float | str]:
    return [chart_text(x) if isinstance(x, str) else x for x in series.x]


def _interval(series: Series) -> dict[str, object] | None:
    """Error bars from the intervals; None where no point has one."""
    if not any(low is not None for low in series.low):
        return None
    triples = list(zip(series.y, series.low, series.high, strict=True))
    above = [None if y is None or high is None else high - y for y, _, high in triples]
    below = [None if y is None or low is None else y - low for y, low, _ in triples]
    return {"type": "data", "symmetric": False, "array": above, "arrayminus": below, "thickness": 1.2, "width": 4}


def _line(chart: go.Figure, series: Series, number: int) -> None:
    style = {"color": COLOURS[number % len(COLOURS)], "width": 2, "dash": DASHES[number % len(DASHES)]}
    marker = {"symbol": MARKS[number % len(MARKS)], "size": 8}
    chart.add_scatter(**_common(series, mode="lines+markers", line=style, marker=marker, error_y=_interval(series)))


def _bars(chart: go.Figure, series: Series, number: int) -> None:
    patterns = ("", "/", ".", "x", "\\", "-", "|", "+")
    colour = COLOURS[number % len(COLOURS)]
    marker = {
        "color": f"rgba{(*bytes.fromhex(colour[1:]), 0.6)}",
        "pattern": {"shape": patterns[number % len(patterns)], "fgopacity": 0.35},
        "line": {"color": colour, "width": 1.5},  # a hatched bar is too faint without its edge
    }
    interval = _interval(series)
    chart.add_bar(**_common(series, marker=marker, error_y=interval and {**interval, "color": GREY}))


def _points(chart: go.Figure, series: Series, number: int) -> None:
    """Single values as open marks; a series of means (each over n values) as a line."""
    if series.n:
        _line(chart, series, number)
        return
    marker = {
        "symbol": f"{MARKS[number % len(MARKS)]}-open",
        "size": 9,
        "color": COLOURS[number % len(COLOURS)],
        "line": {"width": 1.6},
    }
    chart.add_scatter(**_common(series, mode="markers", marker=marker))


def _contour(chart: go.Figure, series: Series, number: int) -> None:
    """Level curves if there is a grid; a dashed line for two points; a point with its name."""
    if series.z:
        chart.add_contour(
            x=list(series.x),
            y=list(series.y),
            z=[list(row) for row in series.z],
            name=chart_text(series.name),
            colorscale=[[0.0, SEQUENTIAL], [1.0, SEQUENTIAL]],
            contours={"coloring": "lines", "showlabels": True, "start": 0.1, "end": 0.9, "size": 0.1},
            line={"width": 1},
            showscale=False,
            hovertemplate="%{x:.2f}, %{y:.2f}: %{z:.3f}<extra></extra>",
        )
    elif len(series.x) == 2 and len(set(series.x)) == 1:
        chart.add_scatter(**_common(series, mode="lines", line={"dash": "dash", "color": GREY}))
    else:
        marker = {"symbol": MARKS[number % len(MARKS)], "size": 13, "color": POSITIVE}
        text = [chart_text(series.name)] * len(series.x)
        chart.add_scatter(
            **_common(series, mode="markers+text", text=text, textposition="bottom center", marker=marker),
            error_y=_interval(series),
            cliponaxis=False,
        )


_DRAW: dict[str, Callable[[go.Figure, Series, int], None]] = {
    "lines": _line,
    "bars": _bars,
    "points": _points,
    "contour": _contour,
}
