"""Refinement: signals, what started each second pass, the answers beside A's, their scores and their cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from engine.analyses.refinement import Report, report_facts, report_scores
from engine.cases.report.blocks import (
    Block,
    Cell,
    Code,
    Facts,
    Fold,
    Notice,
    Run,
    Section,
    Table,
    Text,
    cells,
    plain,
)
from engine.cases.report.text import answer_runs, short
from engine.cases.words import word_diff
from engine.core.metrics import ENTAILED
from engine.core.values import Analysis, Case, Passage
from engine.methods.refinement.conditions import VARIANTS
from engine.methods.refinement.values import Refinement
from engine.methods.signals import MEASURES, Scores, deployed_cost

LONGEST = 120_000  # characters of prompts that are printed; the case file has the rest


def refinement_section(case: Case, analysis: Analysis) -> list[Block]:
    """One run of the conditions on the case."""
    report = Report.from_dict(analysis.result)
    value = report.refinement
    names = [name for name in value.order if name in value.variants]
    notes = [value.signals.banner, *value.notes, value.gradient_missing]
    unfinished = [] if value.finished else ["The run was stopped; these are the conditions that were finished."]
    blocks: list[Block] = [
        Facts(_made(value)),
        *(Notice(n) for n in dict.fromkeys(filter(None, [*notes, *unfinished]))),
    ]
    blocks += [_signals(value), _conditions(value, names)]
    scores = report_scores(report, labelled(case.passages, report.labels))
    blocks.append(_section("Scores", _scores(report, scores)))
    blocks.append(_section("The answers", [b for name in names for b in _answer(case, value, name)]))
    return [*blocks, *_kept(report), *_prompts(value, names)]


def labelled(passages: Sequence[Passage], labels: Mapping[str, bool]) -> tuple[Passage, ...]:
    """The passages with the labels that the triggers saw."""
    return tuple(replace(p, relevant=labels.get(str(n), p.relevant)) for n, p in enumerate(passages, start=1))


def _section(title: str, blocks: Sequence[Block]) -> Section:
    return Section(title, tuple(blocks), level=4)


def _made(value: Refinement) -> tuple[tuple[str, str], ...]:
    start = "own rules" if value.gate == "own" else "always, whatever the rules say"
    sampling = "greedy" if value.decoding.temperature == 0 else f"temperature {value.decoding.temperature:g}"
    return (
        ("Written by", value.stamp.model),
        ("Scored by", value.scorer or "nobody"),
        ("Second pass starts by", start),
        ("Sampling", f"{sampling}, seed {value.decoding.seed}"),
        ("Tokens a condition may write", str(value.decoding.max_new_tokens)),
    )


def _signals(value: Refinement) -> Table:
    found = value.signals
    figures = (
        ("S1", found.s1, "overlap with the answer without passages, 0 to 1; low is grounded"),
        ("S2", found.s2, "what the passages add to the answer's log-probability, nats a token; high is grounded"),
        ("S2, content tokens", found.s2_content, "the same outside citation markers"),
        ("S3", found.s3, "share of content words that a passage has, 0 to 1; high is grounded"),
    )
    rows = [cells(n, "none" if v is None else f"{v:.3f}", said, found.missing.get(n, "")) for n, v, said in figures]
    caption = "Signals of A"
    if value.threshold is not None:
        t = value.threshold
        caption += f". D's threshold of S3 is {t.value:.2f}: {t.rule}, {t.n} cases behind it"
    return Table(caption, ("Signal", "Value", "What it is", "Why there is none"), tuple(rows), numeric=frozenset({1}))


def _conditions(value: Refinement, names: Sequence[str]) -> Table:
    rows = []
    for name in names:
        variant = value.variants[name]
        fired = {None: "no rule", True: "started", False: "not started"}[variant.triggered]
        sentence = variant.trigger.sentence if variant.trigger else VARIANTS[name].about if name in VARIANTS else ""
        rows.append((Cell(title_of(name)), Cell(fired, note=sentence), Cell(variant.outcome, note=variant.problem)))
    return Table("Conditions, and what came of them", ("Condition", "Second pass", "Outcome"), tuple(rows))


def title_of(name: str) -> str:
    """A condition as people read it."""
    return f"{name}, {VARIANTS[name].title}" if name in VARIANTS else name


def _scores(report: Report, scores: Mapping[str, Scores]) -> list[Block]:
    names = list(scores)
    rows = [cells(title, *(_figure(getattr(scores[n], field)) for n in names)) for field, title, _ in MEASURES]
    value = report.refinement
    costs = {name: deployed_cost(value, name) for name in names if "A" in value.variants}
    for title, field in (("Forward passes", "forwards"), ("Tokens written", "written"), ("Seconds", "seconds")):
        rows.append(cells(title, *(_figure(getattr(costs[n], field)) if n in costs else "" for n in names)))
    by = f"Citation scores by {report.verifier}, above one half" if report.verifier else "No verifier was asked"
    caption = f"{by}. Cost is what a condition takes on its own, A and triggers included. Empty: not defined here."
    table = Table(caption, ("Score", *names), tuple(rows), numeric=frozenset(range(1, len(names) + 1)))
    missing = dict.fromkeys(s.missing[field] for s in scores.values() for field, _, _ in MEASURES if field in s.missing)
    return [table, *([plain(" ".join(missing), "note")] if missing else [])]


def _figure(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.2f}" if isinstance(value, float) else short(value)


def _answer(case: Case, value: Refinement, name: str) -> list[Block]:
    """A as it stands; every other answer as changes to A."""
    variant = value.variants[name]
    if variant.answer is None:
        return [plain(f"{title_of(name)}: no answer. {variant.problem}")]
    if name == "A" or value.baseline is None:
        return [plain(title_of(name), "note"), Text(answer_runs(variant.answer, case.passages), "answer")]
    if variant.answer.text == value.baseline.text:
        return [plain(f"{title_of(name)}: word for word the answer of A.", "note")]
    kinds = {"same": "text", "removed": "old", "added": "new"}
    words = word_diff(value.baseline.text, variant.answer.text)
    runs = tuple(Run(word.text, kinds[word.change]) for word in words)  # type: ignore[arg-type]
    return [
        plain(f"{title_of(name)}; struck through: in A alone, underlined: here alone", "note"),
        Text(runs, "answer"),
    ]


def _kept(report: Report) -> list[Block]:
    """Which facts of A each condition still says."""
    kept = {name: facts for name, facts in report_facts(report).items() if facts}
    if not kept:
        return []
    names = list(kept)
    rows = []
    for index, (fact, verdict) in enumerate(report.facts):
        said = [kept[name][index].kept for name in names]
        rows.append(
            (Cell(fact, note=verdict), *(Cell(f"{v:.2f}", note="said" if v > ENTAILED else "gone") for v in said))
        )
    columns = ("Fact of A", *names)
    caption = "Facts of A with the machine's verdict: the probability that each answer still says them"
    return [Table(caption, columns, tuple(rows), numeric=frozenset(range(1, len(columns))))]


def _prompts(value: Refinement, names: Sequence[str]) -> list[Block]:
    blocks: list[Block] = []
    spent = 0
    for name in names:
        for turn in value.variants[name].turns:
            text = turn.prompt.text
            spent += len(text)
            shown = text if spent <= LONGEST else f"{text[-2000:]}\n(The end of it; the case file has the whole.)"
            blocks.append(plain(f"{title_of(name)}, {turn.purpose}: the prompt, then the reply as it came", "note"))
            blocks += [Code(shown, f"Prompt of {name}"), Code(turn.reply.text or "(empty)", f"Reply of {name}")]
    return [Fold("Exact prompts and raw replies", tuple(blocks))] if blocks else []
