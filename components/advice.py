"""The advisor's view: every proxy with its part of the difficulty, the branch and its evidence; judges; quartiles."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import starmap

from components.blocks import draw
from components.html import escape, note, show, tag
from engine.cases.blocks import Cell, table
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
    said = (
        f"Difficulty {advice.difficulty:.2f}: the mean of the parts below, from 0 (clean) to 1 (noisy). Not calibrated."
    )
    draw(table(said, ("Sign", "Value here", "Part"), map(_proxy, advice.proxies), numeric={2}))


def _proxy(proxy: Proxy) -> tuple[str, str, Cell]:
    part = Cell("left out", faint=True) if proxy.part is None else Cell(f"{proxy.part:.2f}", tint=proxy.part)
    return proxy.name[:1].upper() + proxy.name[1:], proxy.sentence, part


def task_table(rows: Sequence[tuple[AmlTask, Advice | None]]) -> None:
    """The table of tasks: what the paper recommends, and what the advisor says of the sample's own passages."""
    heads = ("Task", "Assumed retrieval", "The paper's strategy", "Example", "The advisor on its passages")
    draw(table("", heads, starmap(_task, rows)))


def _task(task: AmlTask, advice: Advice | None) -> tuple[str, ...]:
    said = "not run yet"
    if advice is not None:
        agrees = "the same" if advice.branch == task.branch else "different: the table assumes other retrieval"
        said = f"{TITLES[advice.branch]}; difficulty {advice.difficulty:.2f} ({agrees})"
    example = f"{task.question} (k\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{task.k})"
    return task.name, task.shape, task.strategy, example, said


def judgement_view(found: PairJudgement, first: str, second: str) -> None:
    """A judge's votes in both orders; a disagreement is not a vote."""
    names = {"x": f"{first} is better grounded", "y": f"{second} is better grounded", "tie": "a tie"}
    verdict = {
        **names,
        "disagreed": "no result: the two orders disagree, so position decided",
        "unparsed": "no result: a reply was unreadable",
    }[found.winner]
    show(tag("p", tag("b", escape(verdict)) + escape(f", by {found.judge}."), class_="gw-banner"))
    if not any(found.prompts):
        note(f"{first} and {second} are the same text, so the judge was not asked.")
        return
    shown = (f"{first} shown first", f"{second} shown first")
    lines = (
        f"{place}: {names.get(vote or '', 'not readable')}" for place, vote in zip(shown, found.orders, strict=True)
    )
    both = f". By the mean share of both orders: {names[found.preferred]}" if found.preferred else ""
    note(". ".join(lines) + both + ".")


def quartile_view(study: QuartileStudy) -> None:
    """Gain of D over A by quartile of S3, with intervals where there are enough questions, and the readings."""
    rows = []
    for part in study.quartiles:
        interval = "under ten questions: none" if part.low is None else f"{part.low:+z.3f} to {part.high:+z.3f}"
        s3 = f"{part.s3_low:.2f} to {part.s3_high:.2f}"
        rows.append((part.name, str(part.questions), s3, f"{part.gain:+z.3f}", interval))
    draw(table("", ("Quartile", "Questions", "S3", "Gain D - A", "95% interval"), rows, numeric=range(1, 5)))
    rho = "not defined" if study.rho is None else f"{study.rho:+z.2f}"
    note(f"Rank correlation of S3 and gain: {rho}. {' '.join(study.readings)}")
