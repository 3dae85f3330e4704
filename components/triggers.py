"""The triggers of a second pass: signals on their scales, the answer's words, rules and flags with chance rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from components import state
from components.answer import with_pills
from components.html import escape, show, table, tag
from components.passage_labels import MARKED
from engine.core.text import counted
from engine.core.values import Case
from engine.methods.flags import Flags, PassageFlag
from engine.methods.refinement.values import OverlapThreshold, Signals, Trigger, Variant, Word
from engine.report.drawings import s2_ends


def marked_words(text: str, words: Sequence[Word]) -> None:
    """A's text with its content words marked: found in a passage, or in none."""
    pieces, position = [], 0
    for word in words:
        pieces.append(with_pills(text[position : word.start]))
        kind, title = ("gw-present", "in a passage") if word.found else ("gw-absent", "in no passage")
        pieces.append(tag("span", escape(text[word.start : word.end]), class_=kind, title=title))
        position = word.end
    show(tag("div", "".join(pieces) + with_pills(text[position:]), class_="gw-answer"))


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


def trigger_table(rows: Sequence[tuple[str, Trigger, Variant | None]]) -> None:
    """The rules that fire, with their figures: (conditions in words, rule with current labels, stored condition)."""
    heads = ("Condition", "Rule", "Now", "Why", "Figures")
    show(table(heads, (_trigger_row(*row) for row in rows), words=heads))


def _trigger_row(name: str, trigger: Trigger, stored: Variant | None) -> str:
    now = "fires" if trigger.fired else "not available" if trigger.rule == "unavailable" else "does not fire"
    if stored is not None and stored.trigger is not None and stored.trigger.fired != trigger.fired:
        now += " (changed since it was written: run the missing conditions)"
    figures = ", ".join(f"{label} {figure:.3g}" for label, figure in trigger.figures.items())
    cells = (trigger.rule, now, trigger.sentence, figures)
    row = "".join(tag("td", escape(cell), class_="gw-text") for cell in cells)
    return tag("tr", tag("th", escape(name), scope="row") + row)


def flag_table(flags: Flags, case: Case, top: int) -> None:
    """One row per passage: on how many tokens it is in the `top`, its label, its flag, the chance rates."""
    chance = (
        f"The first {flags.tokens} tokens count. By chance a passage ranks high at a rate of"
        f" {flags.chance:.2f}. In 200 random rankings of this case, {flags.random_rate:.0%} of the passages ranked high"
        f" and {flags.random_flag_rate:.0%} of the rankings flagged a passage. {flags.sentence}"
    )
    heads = ("Passage", f"In the top {top}", "High in the ranking", "Marked", "Flag")
    show(table(heads, (_flag_row(flag, flags.tokens, case) for flag in flags.passages), chance.strip(), words=heads))


def _flag_row(flag: PassageFlag, tokens: int, case: Case) -> str:
    passage = case.passages[flag.number - 1]
    cells = (
        f"{flag.times} of {counted(tokens, 'token')}",
        "high" if flag.high else "no",
        MARKED[flag.relevant],
        "flagged" if flag.flagged else "no",
    )
    selected = state.current("passage", flag.number)
    name = tag("th", escape(f"{flag.number} · {passage.label}"), scope="row", aria_current=selected)
    return tag("tr", name + "".join(tag("td", escape(cell), class_="gw-text") for cell in cells))
