"""A run step by step: sub-question, search query, search text, passages kept and dropped at T, sub-answer."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from components import state
from components.answer import with_pills
from components.blocks import draw, markup
from components.html import escape, note, show, tag, visible
from engine.analyses.steps import call_blocks, unchecked
from engine.cases.blocks import table
from engine.core.statistics import binned
from engine.core.text import counted
from engine.core.values import Case, Hit
from engine.methods.raise_.steps import LABEL
from engine.methods.raise_.values import ReasonStep, Solution, letter, method_of, similarity

BINS = 50  # of the similarity plot, over 0 to 1
SEARCHED = {
    "logical query": f"Logical query ({LABEL})",
    "principle": "Principle that was searched",
    "hypothetical answer": f"Hypothetical answer ({LABEL})",
    "sub-question": "Searched: the sub-question itself",
    "problem": "Searched: the problem itself",
}


def step_card(
    step: ReasonStep, gold: Collection[str] = (), numbers: Mapping[str, int] | None = None, changed: bool = False
) -> None:
    """Draw one step.

    `gold` are ids of passages known to hold the answer, `numbers` by id those that the case has too, `changed` says
    that T was moved since.
    """
    title = tag("h3", escape(f"Step {step.number}. {step.question}"))
    parts = [title, _queries(step), _notes(step, changed), _passages(step, gold, numbers or {})]
    if step.principle is not None:
        parts.append(tag("h4", "Principle given to the model") + _said(step.principle.reply))
    if step.asked is not None:
        parts.append(tag("h4", "Sub-answer") + _said(step.answer or "(the model wrote nothing)"))
    parts.append(markup(*call_blocks(step.calls)))
    show(tag("section", "".join(parts), class_="gw-rstep" if step.asked else "gw-rstep gw-open"))


def _queries(step: ReasonStep) -> str:
    """The model's search query, and the text searched instead."""
    if step.search is None:
        return tag("p", "This method does not search.", class_="gw-note")
    guess = "gw-said gw-guess" if step.search.asked else "gw-said"
    left = tag("div", tag("h4", "Search query") + tag("p", escape(step.query), class_="gw-said"))
    searched = tag("h4", escape(SEARCHED[step.search.kind])) + tag("p", escape(step.search.text), class_=guess)
    return tag("div", left + tag("div", searched), class_="gw-pair")


def _notes(step: ReasonStep, changed: bool) -> str:
    stale = ("At this T the step would read other passages; its answer is unchanged.",) if changed else ()
    return _banners((*step.notes, *stale))


def _banners(lines: Sequence[str]) -> str:
    return "".join(tag("p", escape(line), class_="gw-banner") for line in lines)


def _passages(step: ReasonStep, gold: Collection[str], numbers: Mapping[str, int]) -> str:
    """The passages that T kept and dropped, each with its similarity."""
    if step.search is None:
        return ""
    count, limit = len(step.search.hits), step.threshold
    under = f"similarity of at least {limit:.2f}" if limit is not None else "no T: every passage is given"
    kept = tag("summary", f"Kept {len(step.kept)} of {counted(count, 'passage')}, {under}")
    drawn = _folded(kept, step.kept, gold, numbers)
    if limit is None or not step.dropped:
        return drawn
    dropped = tag("summary", f"Dropped {len(step.dropped)} under T")
    return drawn + _folded(dropped, step.dropped, gold, numbers, dropped=True)


def _folded(
    title: str, hits: Sequence[Hit], gold: Collection[str], numbers: Mapping[str, int], *, dropped: bool = False
) -> str:
    """The hits under their title; unfolded where one of them is the selected passage."""
    kind = "gw-dropped" if dropped else ""
    items = "".join(_hit(hit, hit.passage.id in gold, numbers.get(hit.passage.id, 0), kind) for hit in hits)
    inside = tag("ol", items) if hits else tag("p", "None.", class_="gw-note")
    selected = state.current("passage", *(numbers.get(hit.passage.id, 0) for hit in hits))
    return tag("details", title + inside, open=bool(selected), class_="gw-drops" if dropped else "")


def _hit(hit: Hit, is_gold: bool, number: int, kind: str) -> str:
    """A passage found; `number` is its place in the case, 0 where the case does not have it."""
    mark = tag("b", " holds gold") if is_gold else ""
    title = escape(hit.passage.label + (f", passage {number} of the case" if number else ""))
    words = tag("b", f"{similarity(hit):.2f}") + f" {title}{mark}<br>{escape(hit.passage.text)}"
    return tag("li", words, class_=kind, aria_current=state.current("passage", number))


def _said(text: str) -> str:
    return tag("p", with_pills(text.strip()), class_="gw-said")


def plan_card(solution: Solution) -> None:
    """The result of the decomposition: notes, or the raw unreadable reply."""
    found = solution.decomposition
    if found is None:
        return
    for line in found.notes:
        note(line)
    if not found.subquestions:
        said = tag("h3", "Not parsed") + _banners(solution.notes)
        raw = tag("h4", "Raw reply") + tag("pre", escape(found.asked.reply) or "(empty)")
        show(tag("section", said + raw + markup(*call_blocks([found.asked])), class_="gw-rstep gw-open"))


def final_card(solution: Solution, case: Case) -> None:
    """The final answer with the option that it names; where it is not the case's answer, that it was not checked."""
    if solution.final is None:
        return
    title = "Final answer"
    if solution.problem.options:
        title += ": no option" if solution.choice is None else f": ({letter(solution.choice)})"
    said = "from the passages" if solution.decomposition is None else "from the steps, without documents"
    notes = _banners(solution.notes)
    calls = [*([solution.decomposition.asked] if solution.decomposition else []), solution.final]
    reply = _said(visible(solution.final.reply) or "(the model wrote nothing)")
    body = tag("h3", escape(f"{title}, {said}")) + notes + reply + _banners(unchecked(case, solution))
    show(tag("section", body + markup(*call_blocks(calls)), class_="gw-rstep"))


def similarity_plot(solution: Solution, labelled: Sequence[float] = ()) -> None:
    """How similar the retrieved passages are, split at T; under it the labelled gold pairs that T was taken from."""
    kept = [similarity(h) for s in solution.steps for h in s.kept]
    dropped = [similarity(h) for s in solution.steps for h in s.dropped]
    if not kept and not dropped:
        return
    limit = solution.threshold
    words = f"{len(kept)} of {len(kept) + len(dropped)} retrieved passages reach T"
    t = "" if limit is None else _line(limit)
    show(_bars(((dropped, "gw-out"), (kept, "gw-in")), t) + _axis())
    note(f"{words}. Filled: kept. Hatched: dropped. Cosine of the passage and the search text.")
    if labelled:
        show(_bars(((labelled, "gw-gold"),), t) + _axis())
        note(f"Cosine of logical query and gold passage, for the {len(labelled)} gold passages that were found.")


def _bars(series: Sequence[tuple[Sequence[float], str]], line: str) -> str:
    counts = [binned(values, BINS) for values, _ in series]
    top = max(1, *map(sum, zip(*counts, strict=True)))
    bins = []
    for place in range(BINS):
        parts = "".join(
            tag("div", class_=kind, style=f"height:{100 * count[place] / top:.1f}%")
            for count, (_, kind) in zip(counts, series, strict=True)
        )
        said = f"{place / BINS:.2f} to {(place + 1) / BINS:.2f}: {sum(count[place] for count in counts)}"
        bins.append(tag("div", parts, class_="gw-bin", title=said))
    return tag("div", "".join(bins) + line, class_="gw-hist", role="img", aria_label="similarities")


def _line(limit: float) -> str:
    return tag("div", tag("span", f"T {limit:.2f}"), class_="gw-t", style=f"left:{100 * min(max(limit, 0), 1):.1f}%")


def _axis() -> str:
    return tag("div", "".join(tag("span", f"{x:.1f}") for x in (0, 0.2, 0.4, 0.6, 0.8, 1)), class_="gw-axis")


def runs_table(
    runs: Sequence[Solution], gold: Collection[str], right: int | None, read: Sequence[frozenset[str]]
) -> None:
    """Every run of the same problem: answer, what it cost, and of a sample problem what it found."""
    found = ("Gold found",) if gold else ()
    heads = ("Method", "Model", "Answer", "T", "Steps", "Passages read", *found, "Calls", "Tokens written", "Seconds")
    rows = (_run_row(run, gold, right, ids) for run, ids in zip(runs, read, strict=True))
    draw(table("", heads, rows, numeric=range(3, len(heads))))


def _run_row(run: Solution, gold: Collection[str], right: int | None, ids: frozenset[str]) -> tuple[str, ...]:
    cost = run.cost
    found = f"{len(ids & set(gold))} of {len(gold)}" if cost.searches else "no search"
    return (
        method_of(run.method).label,
        run.model,
        _answer(run, right),
        "none" if run.threshold is None else f"{run.threshold:.2f}",
        str(len(run.steps)) if run.decomposition else "none",
        str(len(ids)) if cost.searches else "no search",
        *((found,) if gold else ()),
        str(cost.calls),
        "not counted" if cost.written is None else f"{cost.written:,}",
        f"{cost.seconds:.1f}",
    )


def _answer(run: Solution, right: int | None) -> str:
    if run.state != "done":
        return {"running": "not finished", "stopped": "stopped", "unparsed": "not parsed"}[run.state]
    if not run.problem.options:
        return run.answer if len(run.answer) <= 60 else run.answer[:58] + "…"
    if run.choice is None:
        return "no option"
    verdict = "" if right is None else (", right" if run.choice == right else ", wrong")
    return f"({letter(run.choice)}){verdict}"
