"""The signals of a second pass on their scales, and the answer's words: found in a passage or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import starmap

from components.answer import with_pills
from components.html import escape, show, tag
from engine.cases.blocks import cut
from engine.methods.refinement.values import OverlapThreshold, Signals, Word
from engine.report.drawings import s2_ends


def marked_words(text: str, words: Sequence[Word]) -> None:
    """A's text with its content words marked: found in a passage, or in none."""
    spans = ((word.start, word.end, word.found) for word in words)
    show(tag("div", "".join(starmap(_marked, cut(text, spans))), class_="gw-answer"))


def _marked(piece: str, found: bool | None) -> str:
    if found is None:
        return with_pills(piece)
    kind, title = ("gw-present", "in a passage") if found else ("gw-absent", "in no passage")
    return tag("span", escape(piece), class_=kind, title=title)


def signal_scales(signals: Signals, threshold: OverlapThreshold | None, history: Sequence[float] = ()) -> None:
    """S1, S2 and S3, each on its scale with the grounded end named; S3 with D's threshold and its distribution."""
    why = signals.missing
    cut = threshold.value if threshold else None
    scales = (
        signal_scale(
            "S1", "similarity of the answers with and without passages", signals.s1, (0, 1), "grounded", "", why
        ),
        signal_scale("S2", "gain from the passages, nats per token", signals.s2, s2_ends(signals), "", "grounded", why),
        signal_scale("S3", "content words found in a passage", signals.s3, (0, 1), "", "grounded", why, cut, history),
    )
    show(tag("div", "".join(scales), class_="gw-scales"))


def signal_scale(
    name: str,
    about: str,
    figure: float | None,
    ends: tuple[float, float],
    left: str,
    right: str,
    missing: Mapping[str, str],
    tick: float | None = None,
    dots: Sequence[float] = (),
) -> str:
    """One signal on its scale as HTML: a bar from 0 to its figure, a dot per earlier figure, a tick with its label."""
    title = tag("b", escape(f"{name} {figure:.2f}" if figure is not None else name)) + f" {escape(about)}"
    if figure is None:
        return tag(
            "div", title + tag("p", escape(missing.get(name, "Not computed yet.")), class_="gw-note"), class_="gw-scale"
        )
    start, end = sorted((_place(0.0, ends), _place(figure, ends)))
    bar = tag("span", class_="gw-fill", style=f"left:{start:.1f}%;width:{max(0.5, end - start):.1f}%")
    bar += "".join(tag("span", class_="gw-dot", style=f"left:{_place(dot, ends):.1f}%") for dot in dots)
    if tick is not None:
        bar += tag("span", class_="gw-tick", style=f"left:{_place(tick, ends):.1f}%", title=f"threshold {tick:.2f}")
    labels = tag("span", escape(f"{ends[0]:.3g} {left}".strip())) + tag(
        "span", escape(f"{ends[1]:.3g} {right}".strip())
    )
    if tick is not None:
        labels += tag(
            "span",
            escape(f"threshold {tick:.2f}"),
            class_="gw-under",
            style=f"left:clamp(3rem,{_place(tick, ends):.1f}%,calc(100% - 3rem))",
        )
    label = f"{name} {figure:.2f} on a scale from {ends[0]:.3g} to {ends[1]:.3g}"
    drawn = tag("div", bar, class_="gw-bar", role="img", aria_label=label)
    return tag("div", title + drawn + tag("div", labels, class_="gw-ends"), class_="gw-scale")


def _place(figure: float, ends: tuple[float, float]) -> float:
    return min(100.0, max(0.0, 100 * (figure - ends[0]) / (ends[1] - ends[0])))
