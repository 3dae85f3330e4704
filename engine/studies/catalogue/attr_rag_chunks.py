"""Attr-RAG's case study of vanilla RAG (section III, Fig. 1a to 1c): what more retrieved passages do.

(a) ROUGE-L F1 against the number of passages needed; (b) gold passages retrieved and their density
against k; (c) ROUGE-L F1 against k. (a) is drawn at one depth, `options.depth`; (b) and (c) over questions that take
at least `options.long` passages. With `options.answers` = false nothing is written and (b) alone is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from engine.answer.citations import all_said
from engine.core.errors import InputError
from engine.core.metrics import rouge_l
from engine.core.progress import Watch
from engine.core.values import Hit, Json
from engine.methods.refinement.costs import metered
from engine.methods.refinement.values import Cost
from engine.retrieve.search import search
from engine.studies.config import Config
from engine.studies.example import Example, case_of, gold_in, tokens_of
from engine.studies.summary import figure, line, measure_defined, of_method, points_of, questions_in, table
from engine.studies.tools import Study, StudyTools
from engine.studies.values import Estimate, Figure, Found, Results, Row, StudyTable, Unit

DEPTHS = (5, 10, 15, 20, 25, 30)  # Fig. 1b
DEPTH, LONG = 10, 3
NAMES = {depth: f"top-{depth}" for depth in DEPTHS}


def run(tools: StudyTools, unit: Unit, example: Example, watch: Watch) -> Found:
    """Retrieve k passages, count the gold among them, answer from them."""
    hits = _retrieved(tools, unit, example)
    gold = gold_in(example, tools.collection(example.corpus).snapshot())
    found = sum(hit.passage.id in gold for hit in hits)
    values: Json = {
        "needed": example.passages_needed,
        "gold": len(gold),
        "found": found,
        "recall": found / len(gold) if gold else None,
        "density": found / len(hits) if hits else None,
        "rouge_l": None,
    }
    if not answers(tools.config):
        return Found(values=values, missing={"rouge_l": "The config does not ask for answers."})
    passages = [hit.passage for hit in hits]
    with metered(None if tools.config.reads else tools.writer) as meter:
        written = tools.write(unit.seed)(example.question, passages, watch)
    missing = {} if example.references else {"rouge_l": "The example has no reference answer."}
    if example.references:
        text = all_said(written.answer.text)
        values["rouge_l"] = max(rouge_l(reference, text) for reference in example.references)
    cost: Cost = replace(meter.cost, written=len(written.answer.tokens))
    return Found(values=values, missing=missing, case=case_of(example, passages, written, hits=hits), cost=cost)


def _retrieved(tools: StudyTools, unit: Unit, example: Example) -> list[Hit]:
    k = int(unit.method.removeprefix("top-"))
    return search(
        tools.collection(example.corpus), example.question, replace(tools.config.stages(unit.seed).retrieval, k=k)
    )


def shown_depth(config: Config) -> int:
    """The depth at which (a) is drawn; raise `InputError` for one that is not run."""
    depth = config.option("depth", int, DEPTH)
    if depth not in NAMES:
        raise InputError(f"options.depth is {depth!r}. Choose from: {', '.join(map(str, DEPTHS))}.")
    return depth


def answers(config: Config) -> bool:
    """Whether answers are written; raise `InputError` for neither true nor false."""
    return config.option("answers", bool, True)


def least_passages(config: Config) -> int:
    """How many passages a question of (b) and (c) takes at least; raise `InputError` for no number."""
    return config.option("long", int, LONG)


def cost(tools: StudyTools, unit: Unit, example: Example) -> Estimate:
    """One answer from k passages."""
    if not answers(tools.config):
        return Estimate()
    read = tokens_of(example.question, *(hit.passage.text for hit in _retrieved(tools, unit, example)))
    return Estimate(calls=1, tokens=read + tools.config.stages(unit.seed).decoding.max_new_tokens)


def results(config: Config, rows: Sequence[Row]) -> Results:
    """The three parts of the figure, each with its table."""
    depth, least = shown_depth(config), least_passages(config)
    # A failed row does not say how many passages its question needs: the question's other rows do.
    needed = {row.unit.example: row.values["needed"] for row in rows if row.state == "done"}
    told = any(needed.values())
    long = [row for row in rows if not told or (needed.get(row.unit.example) or 0) >= least]
    by_depth = {k: own for k, name in NAMES.items() if (own := of_method(long, name))}
    found, recall, density, rouge = (
        {k: measure_defined(own, name, long) for k, own in by_depth.items()}
        for name in ("found", "recall", "density", "rouge_l")
    )
    gold_table = table(
        "by_depth",
        "Gold among the passages that vanilla RAG retrieves, and the answers from them",
        "k (passages) | gold retrieved (passages) ↑ | gold retrieved, of all gold (share) ↑ | "
        "density (share of k) ↑ | ROUGE-L (F1) ↑",
        ((k, found[k], recall[k], density[k], rouge[k]) for k in by_depth),
        rows,
        f"Questions that need {least} passages or more."
        if told
        else "All questions: the data does not tell how many passages each needs.",
        n=max(map(questions_in, by_depth.values()), default=0),
        shows="Attr-RAG, Fig. 1b and 1c",
    )
    lines = line("gold retrieved", found), line("density", density, "right")
    title, axes = "Gold passages retrieved and their density", ("k (passages)", "gold retrieved (passages)")
    gold = figure("lines", "fig_1b", title, *axes, lines, "Attr-RAG, Fig. 1b", right="density (share of k)")
    if all(row.values.get("rouge_l") is None for row in rows):
        said = "Fig. 1a and 1c: off, because no answers were compared with a reference."
        return Results(tables=(gold_table,), figures=(gold,), notes=(said,))
    needed_table, by_needed = _by_needed(rows, needed, depth)
    title, axes = "Answers by the number of passages retrieved", ("k (passages)", "ROUGE-L (F1)")
    answers = figure("lines", "fig_1c", title, *axes, [line("long questions", rouge)], "Attr-RAG, Fig. 1c")
    return Results(tables=(gold_table, needed_table), figures=(gold, by_needed, answers))


def _by_needed(rows: Sequence[Row], needed: Mapping[str, int | None], depth: int) -> tuple[StudyTable, Figure]:
    counts = sorted({count for count in needed.values() if count is not None})
    alike = {count: [row for row in rows if needed.get(row.unit.example) == count] for count in counts}
    every = {count: of_method(group, NAMES[depth]) for count, group in alike.items()}
    groups = {count: own for count, own in every.items() if own}
    means = {count: measure_defined(own, "rouge_l", alike[count]) for count, own in groups.items()}
    measures = table(
        "by_passages_needed",
        f"Answers from the top {depth}, by number of passages needed",
        "passages needed | ROUGE-L (F1) ↑ | n",
        ((count, means[count], questions_in(own)) for count, own in groups.items()),
        of_method(rows, NAMES[depth]),
        n=sum(map(questions_in, groups.values())),
        shows="Attr-RAG, Fig. 1a",
    )
    shown = [row for own in groups.values() for row in own if row.values.get("rouge_l") is not None]
    points = points_of("questions", ((row, row.values["needed"], row.values["rouge_l"]) for row in shown))
    title, axes = f"Answers from the top {depth} by passages needed", ("passages needed", "ROUGE-L (F1)")
    return measures, figure("points", "fig_1a", title, *axes, [line("mean", means), points], "Attr-RAG, Fig. 1a")


STUDY = Study(
    name="attr-rag-chunks",
    title="Effect of more retrieved passages on vanilla RAG",
    shows=("Attr-RAG, Fig. 1a to 1c",),
    methods=tuple(NAMES.values()),
    options=("answers", "depth", "long"),
    check=lambda config: (answers(config), shown_depth(config), least_passages(config)),
    run=run,
    results=results,
    cost=cost,
    searches=lambda config, method: True,
    needs=("a corpus", "gold passages"),
    uses={
        "a reference answer": "ROUGE-L (Fig. 1a and 1c)",
        "the number of passages needed": "ROUGE-L by passages needed (Fig. 1a)",
    },
    writes=lambda config, unit, example: answers(config),
)
