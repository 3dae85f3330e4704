"""Step by step: sub-questions, what was searched, what T kept and dropped, sub-answers and the final answer."""

from __future__ import annotations

from collections.abc import Sequence

from engine.cases.report.blocks import (
    Block,
    Cell,
    Code,
    Facts,
    Fold,
    Notice,
    Section,
    Table,
    cells,
    plain,
)
from engine.cases.report.text import place, short
from engine.core.values import Analysis, Case, Hit
from engine.methods.raise_.values import (
    METHODS,
    Asked,
    ReasonStep,
    Solution,
    letter,
    similarity,
)

LABELS = {method.name: method for method in METHODS}
STATES = {
    "running": "not finished",
    "done": "finished",
    "unparsed": "the reply could not be read",
    "stopped": "stopped before its end",
}


def steps_section(case: Case, analysis: Analysis) -> list[Block]:
    """One run of a method: the plan, a part a step, the final answer."""
    run = Solution.from_dict(analysis.result)
    planned = run.decomposition.notes if run.decomposition else ()
    blocks: list[Block] = [Facts(_made(run)), *(Notice(note) for note in dict.fromkeys((*planned, *run.notes)))]
    if run.decomposition is not None and run.decomposition.subquestions:
        rows = tuple(
            cells(str(number), sub.question, sub.query)
            for number, sub in enumerate(run.decomposition.subquestions, start=1)
        )
        blocks.append(Table("The plan", ("Step", "Sub-question", "Search query"), rows))
    blocks += [_step(step) for step in run.steps]
    if run.final is not None:
        blocks.append(Section(_final_title(run), (plain(run.final.reply.strip() or "(nothing)", "answer"),), level=4))
    return [*blocks, *_prompts(run.calls)]


def _made(run: Solution) -> tuple[tuple[str, str], ...]:
    method = LABELS.get(run.method)
    cost = run.cost
    written = "not counted" if cost.written is None else f"{cost.written:,}"
    pairs = (
        ("Method", f"{method.label}: {method.said}" if method else run.method),
        ("Model", run.model),
        ("State", STATES[run.state]),
        ("Corpus", run.corpus),
        ("Embedder", run.embedder),
        ("T, the similarity that a passage has to reach", "none" if run.threshold is None else f"{run.threshold:.2f}"),
        ("Cost", f"calls {cost.calls}, searches {cost.searches}, tokens written {written}, {cost.seconds:.1f} s"),
    )
    return tuple((name, value) for name, value in pairs if value)


def _step(step: ReasonStep) -> Section:
    blocks: list[Block] = [Facts(_asked_for(step)), *(Notice(note) for note in step.notes)]
    if step.search is not None:
        blocks.append(_hits(step))
        blocks.append(Fold("The passages in full", (_texts(step),)))
    if step.principle is not None:
        blocks += [plain("The principle that was given to the model", "note"), plain(step.principle.reply, "answer")]
    if step.asked is not None:
        blocks += [plain("Sub-answer", "note"), plain(step.answer or "(the model wrote nothing)", "answer")]
    return Section(f"Step {step.number}. {step.question}", tuple(blocks), level=4)


def _asked_for(step: ReasonStep) -> tuple[tuple[str, str], ...]:
    if step.search is None:
        return (("Search query", step.query), ("Searched", "nothing: this method searches no corpus"))
    count = len(step.search.hits)
    return (
        ("Search query", step.query),
        (f"Searched: the {step.search.kind}", step.search.text),
        ("Kept", f"{len(step.kept)} of {count} passages"),
        ("Dropped under T", "T is not used" if step.threshold is None else f"{len(step.dropped)} of {count}"),
    )


def _hits(step: ReasonStep) -> Table:
    kept = {hit.passage.id for hit in step.kept}
    rows = tuple(
        (
            Cell(str(rank)),
            Cell(hit.passage.label, note=place(hit.passage)),
            Cell(f"{similarity(hit):.3f}"),
            Cell("kept" if hit.passage.id in kept else "dropped", faint=hit.passage.id not in kept),
        )
        for rank, hit in enumerate(_found(step), start=1)
    )
    limit = "every passage is given" if step.threshold is None else f"T = {step.threshold:.2f}"
    caption = f"Passages found in step {step.number}, most similar first; {limit}"
    return Table(caption, ("Rank", "Passage", "Similarity", "By T"), rows, numeric=frozenset({2}))


def _found(step: ReasonStep) -> tuple[Hit, ...]:
    return step.search.hits if step.search else ()


def _texts(step: ReasonStep) -> Table:
    rows = tuple(cells(str(rank), hit.passage.text) for rank, hit in enumerate(_found(step), start=1))
    return Table(f"Texts of the passages found in step {step.number}", ("Rank", "Text"), rows)


def _final_title(run: Solution) -> str:
    source = "from the passages" if run.decomposition is None else "from the steps, without documents"
    if not run.problem.options:
        return f"Final answer, {source}"
    named = "it names no option" if run.choice is None else f"({letter(run.choice)}) {run.problem.options[run.choice]}"
    return f"Final answer, {source}: {named}"


def _prompts(calls: Sequence[Asked]) -> list[Block]:
    blocks: list[Block] = []
    for number, asked in enumerate(calls, start=1):
        cut = "" if asked.finished else ", cut at the length limit"
        said = (
            f"Call {number}, {asked.purpose}: the prompt, then the reply{cut}. Tokens written: {short(asked.written)}"
        )
        prompt, reply = Code(asked.prompt.text, f"Prompt {number}"), Code(asked.reply or "(empty)", f"Reply {number}")
        blocks += [plain(said, "note"), prompt, reply]
    return [Fold(f"Exact prompts and raw replies ({len(calls)})", tuple(blocks))] if blocks else []
