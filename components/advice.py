"""The advisor's view: every proxy with its part of the difficulty, the branch and its evidence; judges; quartiles."""

from __future__ import annotations

from collections.abc import Sequence

from components.html import escape, note, show, table, tag
from engine.methods.judge import PairJudgement
from engine.methods.refinement.advisor import TITLES, Advice, AmlTask, Proxy, QuartileStudy


def advice_view(advice: Advice) -> None:
    """Draw the branch first, then its reasons."""
    show(
        tag(
            "p", tag("b", escape(advice.title)) + "<br>" + escape(f"{advice.why} {advice.evidence}"), class_="gw-banner"
        )
    )
    for also in advice.also:
        note(also)
    said = f"Difficulty {_level(advice)}: the mean of the parts below, from 0 (clean) to 1 (noisy). Not calibrated."
    show(table(("Sign", "Value here", "Part"), map(_proxy, advice.proxies), said, words=("Value here",)))


def _level(advice: Advice) -> str:
    return "unknown" if advice.difficulty is None else f"{advice.difficulty:.2f}"


def _proxy(proxy: Proxy) -> str:
    if proxy.part is None:
        part = tag("td", "left out", class_="gw-nothing")
    else:
        bar = tag("span", tag("span", style=f"width:{100 * proxy.part:.0f}%"), class_="gw-meter", aria_hidden="true")
        part = tag("td", f"{bar} {proxy.part:.2f}")
    name = tag("th", escape(proxy.name[:1].upper() + proxy.name[1:]), scope="row")
    return tag("tr", name + tag("td", escape(proxy.sentence), class_="gw-text") + part)


def task_table(rows: Sequence[tuple[AmlTask, Advice | None]]) -> None:
    """The table of tasks: what the paper recommends, and what the advisor says of the sample's own passages."""
    heads = ("Task", "Assumed retrieval", "The paper's strategy", "Example", "The advisor on its passages")
    show(table(heads, (_task(*row) for row in rows), words=heads))


def _task(task: AmlTask, advice: Advice | None) -> str:
    said = "not run yet"
    if advice is not None:
        agrees = "the same" if advice.branch == task.branch else "different: the table assumes other retrieval"
        said = f"{TITLES[advice.branch]}; difficulty {_level(advice)} ({agrees})"
    cells = (task.shape, task.strategy, f"{task.question} (k\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{task.k})", said)
    row = "".join(tag("td", escape(cell), class_="gw-text") for cell in cells)
    return tag("tr", tag("th", escape(task.name), scope="row") + row)


def judgement_view(found: PairJudgement, first: str, second: str) -> None:
    """A judge's votes in both orders; a disagreement is not a vote."""
    names = {"x": f"{first} is better grounded", "y": f"{second} is better grounded", "tie": "a tie"}
    verdict = {
        **names,
        "disagreed": "no result: the two orders disagree, so position decided",
        "unparsed": "no result: a reply was unreadable",
    }[found.winner]
    show(tag("p", tag("b", escape(verdict)) + escape(f", by {found.judge}."), class_="gw-banner"))
    shown = (f"{first} shown first", f"{second} shown first")
    lines = (
        f"{place}: {names.get(vote or '', 'not readable')}" for place, vote in zip(shown, found.orders, strict=True)
    )
    both = f". By the mean share of both orders: {names[found.preferred]}" if found.preferred else ""
    note(". ".join(lines) + both + ".")


def quartile_view(study: QuartileStudy) -> None:
    """Gain of D over A by quartile of S3, with intervals where there are enough questions, and both readings."""
    heads = ("Quartile", "Questions", "S3", "Gain D - A", "95% interval")
    rows = []
    for part in study.quartiles:
        interval = "under ten questions: none" if part.low is None else f"{part.low:+z.3f} to {part.high:+z.3f}"
        cells = (str(part.questions), f"{part.s3_low:.2f} to {part.s3_high:.2f}", f"{part.gain:+z.3f}", interval)
        rows.append(tag("tr", tag("th", part.name, scope="row") + "".join(tag("td", escape(c)) for c in cells)))
    show(table(heads, rows))
    rho = "not defined" if study.rho is None else f"{study.rho:+z.2f}"
    note(f"Rank correlation of S3 and gain: {rho}. {' '.join(study.readings)}")
