"""Refinement of a case. In a replay the writer's replies are inputs; prompts are built and tokens scored again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from engine.analyses.again import Repeating, Reply
from engine.analyses.attribution import check_stamped, settings_of
from engine.analyses.case_verdict import in_words
from engine.analyses.facts import KIND as CHECK
from engine.analyses.floors import Listening, relevance_floors, token_floor
from engine.analyses.kind import AS_IT_CAME, COSTS, REFINEMENT, Again, Floor, Kind, Loaders, Outcome, RunContext, less
from engine.answer.quoting_reader import piece
from engine.cases.blocks import (
    Block,
    Cell,
    Code,
    Facts,
    Fold,
    Notice,
    Table,
    Text,
    TextRun,
    answer_runs,
    part,
    plain,
    short,
    table,
)
from engine.cases.review import Review
from engine.cases.store import CaseStore
from engine.cases.words import word_diff
from engine.core.files import EMBEDDED
from engine.core.metrics import ENTAILED
from engine.core.settings import SecondPass as Rules, Settings
from engine.core.values import Analysis, Case, Passage, Stamp, Value, inputs_hash
from engine.methods import registry
from engine.methods.refinement.assess import RefinementReport, assessed, refine_case, report_facts, report_scores
from engine.methods.refinement.conditions import VARIANTS
from engine.methods.refinement.request import Request, own_tokens, read_by, scored_prompt
from engine.methods.refinement.run import refine
from engine.methods.refinement.values import Gate, Refinement
from engine.methods.signals import MEASURES, Scores, deployed_cost, overlap_history
from engine.models.defaults import AUTO
from engine.models.protocols import LanguageModel


class RefinementOptions(Value, frozen=True):
    """Which conditions, by whom, when the second pass starts, and who judges citations ("": nobody).

    `scorer` "": the writer. `use_answer`: A is the case's answer, else the writer writes it.
    """

    model: str = AUTO
    variants: tuple[str, ...] = tuple(VARIANTS)
    gate: Gate = "own"
    scorer: str = ""
    use_answer: bool = False
    verifier: str = EMBEDDED


def analysis_id(model: str, use_answer: bool) -> str:
    """One analysis per writer and kind of baseline; a new run continues the last one."""
    return f"{REFINEMENT}:{model}:{'given' if use_answer else 'written'}"


def analysis_of(case: Case, report: RefinementReport, use_answer: bool) -> Analysis:
    """The report as an analysis of the case."""
    stamp = report.refinement.stamp
    return Analysis(
        id=analysis_id(stamp.model, use_answer),
        kind=REFINEMENT,
        stamp=replace(stamp, inputs=inputs_hash(case.question, case.passages, case.answer.text)),
        result=report,
    )


def reports_of(case: Case) -> dict[str, RefinementReport]:
    """The case's reports by analysis id, last added last."""
    return {a.id: KIND.read(a) for a in case.analyses if a.kind == REFINEMENT}


LIBRARY = 500  # cases read at most, last changed first


def history_of(cases: CaseStore, model: str, settings: Settings) -> tuple[float, ...]:
    """S3 of the library's answers by a model; empty under the number of cases that a threshold needs."""
    rows = [row.id for row in cases.rows(limit=LIBRARY) if row.model == model]
    if len(rows) < settings.refinement.overlap_cases:
        return ()
    return overlap_history((cases.load(case_id) for case_id in rows), model)


def _run(case: Case, options: RefinementOptions, context: RunContext) -> Iterator[Analysis]:
    settings, tools, cases = context.settings, context.tools, context.cases
    writer = tools.generator(options.model)
    request = Request(
        case,
        writer,
        settings,
        variants=options.variants,
        gate=options.gate,
        use_answer=options.use_answer,
        scorer=tools.scorer(options.scorer) if options.scorer not in ("", writer.name, options.model) else None,
        history=history_of(cases, writer.name, settings) if cases else context.overlaps,
        read=read_by(writer.name, case, settings.retrieval, use_answer=options.use_answer),
    )
    grown = refine_case(
        request,
        earlier=reports_of(case).get(analysis_id(writer.name, options.use_answer)),
        verifier=tools.verifier(options.verifier) if options.verifier else None,
        facts=facts_of(case) if options.use_answer else (),
        watch=context.watch,
    )
    for report in grown:
        yield analysis_of(case, report, options.use_answer)


def facts_of(case: Case) -> tuple[tuple[str, str], ...]:
    """The atomic facts of the case's answer with their verdicts, where facts were run on this very answer."""
    checks = (CHECK.read(analysis) for analysis in reversed(case.analyses) if analysis.kind == CHECK.name)
    facts = next((check.facts for check in checks if check.answer == case.answer.text), ())
    return tuple((fact.fact.text, fact.ruling.verdict if fact.ruling else "not checked") for fact in facts)


LONGEST = 120_000  # characters of prompts that are printed; the case file has the rest


def _blocks(case: Case, report: RefinementReport, review: Review) -> list[Block]:
    value = report.refinement
    names = [name for name in value.order if name in value.variants]
    notes = [value.signals.banner, *value.notes, value.gradient_missing]
    unfinished = [] if value.finished else ["The run was stopped. These are the finished conditions."]
    scores = report_scores(report, labelled(case.passages, report.labels))
    return [
        Facts(_made(value)),
        *map(Notice, dict.fromkeys(filter(None, [*notes, *unfinished]))),
        _signals(value),
        _conditions(value, names),
        part("Scores", _scores(report, scores)),
        part("The answers", [block for name in names for block in _answer(case, value, name)]),
        *_kept(report),
        *_prompts(value, names),
    ]


def labelled(passages: Sequence[Passage], labels: Mapping[str, bool]) -> tuple[Passage, ...]:
    """The passages with the labels that the triggers saw."""
    return tuple(replace(p, relevant=labels.get(str(n), p.relevant)) for n, p in enumerate(passages, start=1))


def _made(value: Refinement) -> tuple[tuple[str, str], ...]:
    start = "own rules" if value.gate == "own" else "always, regardless of the rules"
    sampling = "greedy" if value.decoding.temperature == 0 else f"temperature {value.decoding.temperature:g}"
    return (
        ("Written by", value.stamp.model),
        ("Scored by", value.scorer or "nobody"),
        ("Second pass trigger", start),
        ("Sampling", f"{sampling}, seed {value.decoding.seed}"),
        ("Tokens a condition may write", str(value.decoding.max_new_tokens)),
    )


def _signals(value: Refinement) -> Table:
    found = value.signals
    figures = (
        ("S1", found.s1, "overlap with the answer without passages, 0 to 1; low is grounded"),
        ("S2", found.s2, "gain in the answer's log-probability from the passages, nats per token; high is grounded"),
        ("S2, content tokens", found.s2_content, "the same outside citation markers"),
        ("S3", found.s3, "share of content words that a passage contains, 0 to 1; high is grounded"),
    )
    rows = ((n, "none" if v is None else f"{v:.3f}", said, found.missing.get(n, "")) for n, v, said in figures)
    caption = "Signals of A"
    if value.threshold is not None:
        t = value.threshold
        caption += f". D's threshold of S3 is {t.value:.2f}: {t.rule}, {t.n} cases so far"
    return table(caption, ("Signal", "Value", "What it is", "Why undefined"), rows, numeric={1})


def _conditions(value: Refinement, names: Sequence[str]) -> Table:
    rows = []
    for name in names:
        variant = value.variants[name]
        fired = {None: "no rule", True: "started", False: "not started"}[variant.triggered]
        sentence = variant.trigger.sentence if variant.trigger else VARIANTS[name].about if name in VARIANTS else ""
        rows.append((title_of(name), Cell(fired, note=sentence), Cell(variant.outcome, note=variant.problem)))
    return table("Conditions and their outcomes", ("Condition", "Second pass", "Outcome"), rows)


def title_of(name: str) -> str:
    """A condition as people read it."""
    return f"{name}, {VARIANTS[name].title}" if name in VARIANTS else name


def _scores(report: RefinementReport, scores: Mapping[str, Scores]) -> list[Block]:
    names = list(scores)
    rows = [(title, *(_figure(getattr(scores[n], field)) for n in names)) for field, title, _ in MEASURES]
    value = report.refinement
    costs = {name: deployed_cost(value, name) for name in names if "A" in value.variants}
    for title, field in (("Forward passes", "forwards"), ("Tokens written", "written"), ("Seconds", "seconds")):
        rows.append((title, *(_figure(getattr(costs[n], field)) if n in costs else "" for n in names)))
    by = f"Citation scores by {report.verifier}, above one half" if report.verifier else "No verifier ran"
    caption = f"{by}. Cost is that of each condition alone, including A and triggers. Empty: not defined here."
    figures = table(caption, ("Score", *names), rows, numeric=range(1, len(names) + 1))
    missing = dict.fromkeys(s.missing[field] for s in scores.values() for field, _, _ in MEASURES if field in s.missing)
    return [figures, *([plain(" ".join(missing), "note")] if missing else [])]


def _figure(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.2f}" if isinstance(value, float) else short(value)


def _answer(case: Case, value: Refinement, name: str) -> list[Block]:
    """A as it stands; every other answer as changes to A."""
    variant = value.variants[name]
    if variant.answer is None or variant.outcome == "copied":
        return [plain(f"{title_of(name)}: no answer. {variant.problem}")]
    if name == "A" or value.baseline is None:
        return [plain(title_of(name), "note"), Text(answer_runs(variant.answer, case.passages), "answer")]
    if variant.answer.text == value.baseline.text:
        return [plain(f"{title_of(name)}: word for word the answer of A.", "note")]
    kinds = {"same": "text", "removed": "old", "added": "new"}
    words = word_diff(value.baseline.text, variant.answer.text)
    runs = tuple(TextRun(word.text, kinds[word.change]) for word in words)  # type: ignore[arg-type]
    return [plain(f"{title_of(name)}; struck through: only in A; underlined: only here", "note"), Text(runs, "answer")]


def _kept(report: RefinementReport) -> list[Block]:
    kept = {name: facts for name, facts in report_facts(report).items() if facts}
    if not kept:
        return []
    names = list(kept)
    rows = []
    for index, (fact, verdict) in enumerate(report.facts):
        said = [kept[name][index].kept for name in names]
        told = said[0] > ENTAILED
        shares = (Cell(f"{v:.2f}", note=("said" if v > ENTAILED else "gone") if told else "unclear") for v in said)
        rows.append((Cell(fact, note=in_words(verdict)), *shares))
    caption = "Facts of A with the machine's verdict, and the probability that each answer still states them"
    return [table(caption, ("Fact of A", *names), rows, numeric=range(1, len(names) + 1))]


def _prompts(value: Refinement, names: Sequence[str]) -> list[Block]:
    blocks: list[Block] = []
    spent = 0
    for name in names:
        for turn in value.variants[name].turns:
            text = turn.prompt.text
            spent += len(text)
            shown = text if spent <= LONGEST else f"{text[-2000:]}\n(Only the end; the case file has the full prompt.)"
            blocks.append(plain(f"{title_of(name)}, {turn.purpose}: the prompt, then the raw reply", "note"))
            blocks += [Code(shown, f"Prompt of {name}"), Code(turn.reply.text or "(empty)", f"Reply of {name}")]
    return [Fold("Exact prompts and raw replies", tuple(blocks))] if blocks else []


# Beside costs: the stamp (it is the analysis' own), and what was handed in.
LEFT_OUT = COSTS | {"stamp", "cost", "shared", "facts", "labels", "n"}
THRESHOLD = "D's threshold is a percentile of S3 over the library at that time; the replay takes it as input"


class RefinementGiven(Value, frozen=True):
    """The replies with the hashes of their prompts, what was asked for, and D's threshold where the library gave it."""

    replies: tuple[Reply, ...]
    order: tuple[str, ...]
    gate: Gate
    scorer: str
    verifier: str
    cases: int
    threshold: float | None
    facts: tuple[tuple[str, str], ...]
    labels: dict[str, bool]
    finished: bool


def _given(report: RefinementReport) -> RefinementGiven:
    value = report.refinement
    names = ("A", "B", *(name for name in value.order if name not in ("A", "B")))
    written = [turn for name in names if name in value.variants for turn in value.variants[name].turns]
    threshold = value.threshold
    return RefinementGiven(
        replies=tuple(Reply.of(turn.reply, turn.prompt) for turn in written),
        order=value.order,
        gate=value.gate,
        scorer=value.scorer,
        verifier=report.verifier,
        cases=threshold.n if threshold else 0,
        threshold=threshold.value if threshold and not threshold.rule.startswith("fixed") else None,
        facts=report.facts,
        labels=report.labels,
        finished=value.finished,
    )


def _compared(result: Any) -> Any:
    """All but costs and inputs; an answer that was given to the run keeps no probabilities."""
    values = less(result, LEFT_OUT)
    value = values.get("refinement", {})
    for variant in value.get("variants", {}).values():
        if not variant.get("turns") and variant.get("answer"):
            variant["answer"] = less(variant["answer"], {"logprob"})
        for turn in variant.get("turns", ()):
            turn["reply"]["tokens"] = less(turn["reply"].get("tokens", []), AS_IT_CAME)
            turn["reply"].pop("text", None)
    return values


def _again(case: Case, analysis: Analysis, tools: Loaders) -> Outcome:
    asked = RefinementGiven.from_dict(analysis.result)
    if not asked.finished:
        return Outcome(why="the run was stopped early; run the missing conditions, then replay it")
    model = tools.writer(analysis.stamp.model)
    check_stamped(analysis.stamp, model)
    case = replace(case, passages=labelled(case.passages, asked.labels))
    repeating = Repeating(asked.replies, model)
    scorer = None if asked.scorer in ("", model.name) else tools.writer(asked.scorer)
    request = _request(case, asked, analysis.stamp, repeating, scorer)  # type: ignore[arg-type]
    value = refine(request)
    report = RefinementReport(refinement=value, facts=asked.facts)
    verifier = Listening(tools.verifier(asked.verifier)) if asked.verifier else None
    values = _compared((assessed(report, case.passages, verifier) if verifier else report).to_dict())
    why = ""
    if len(request.history) >= request.settings.refinement.overlap_cases:
        why, values["refinement"] = THRESHOLD, less(values["refinement"], {"threshold"})
    if not repeating.can.score:
        values = less(values, {"logprob"})
    nats, gradient = _floors(request, value, scorer or model)  # type: ignore[arg-type]
    floors: dict[str, Floor] = {"logprob": token_floor(repeating, repeating.rows), **gradient}
    floors["entailments"] = verifier.floor if verifier else 0.0
    return Outcome(values=values, floor=nats, floors=floors, why=why)


def _request(
    case: Case, asked: RefinementGiven, stamp: Stamp, writer: Repeating, scorer: LanguageModel | None
) -> Request:
    rules = Rules.from_dict(stamp.settings.get("refinement", {}))
    settings = replace(settings_of(stamp), refinement=rules)
    return Request(
        case,
        writer,
        settings,
        variants=asked.order,
        gate=asked.gate,
        use_answer=bool(stamp.settings.get("given")),
        scorer=scorer,
        # A library whose S3 are all that value has it as every percentile.
        history=(asked.threshold or 0.0,) * asked.cases,
        read=tuple((n, piece(case.passages[n - 1], start, end)) for n, start, end in stamp.settings.get("read", ())),
    )


def _floors(request: Request, value: Refinement, model: LanguageModel) -> tuple[float, dict[str, Floor]]:
    """The rounding of one token's log-probability under the model that scores, and of the gradient rows."""
    if value.baseline is None or not model.can.score:
        return 0.0, {}
    prompt, answer = scored_prompt(request, value), own_tokens(request, value.baseline)
    nats = token_floor(model, [(model.encode(prompt), [token.id for token in answer.tokens])]) if answer.tokens else 0.0
    rows = value.gradient
    if rows is None:
        return nats, {}
    settings = request.settings
    own = registry.method(settings.refinement.ranked_by, settings)
    if own.explain is None:  # differences of log-probabilities
        return nats, {}
    whole, each = relevance_floors(
        own.explain, model, prompt, answer, rows.spans, [t for t in rows.details.tokens if isinstance(t, int)]
    )
    return nats, {"scores": whole, "elsewhere": whole, "per_token": each}


def _cost(case: Case, options: RefinementOptions, settings: Settings) -> str:
    names = options.variants
    report = reports_of(case).get(analysis_id(options.model, options.use_answer))
    there = {n for n, v in report.refinement.variants.items() if v.answer is not None} if report else set()
    missing = [n for n in {*names, "B"} if n not in there]
    answers = len(missing) + ("E" in missing)
    gated = [n for n in missing if VARIANTS[n].rule in ("S3", "flags")] if options.gate == "own" else []
    parts = [f"up to {answers} {'text' if answers == 1 else 'texts'} to write"]
    if gated:
        parts.append(f"{len(gated)} of them only if the trigger fires")
    if report is None:
        parts.append("2 scored rows for S2")
    if any(VARIANTS[n].rule == "flags" for n in missing) and not (report and report.refinement.gradient):
        parts.append(f"1 forward and {settings.gradient.first_tokens + 1} backward passes for the flags")
    return ", ".join(parts) + "."


KIND = Kind(
    name=REFINEMENT,
    title="Refinement",
    result=RefinementReport,
    blocks=_blocks,
    options=RefinementOptions,
    run=_run,
    cost=_cost,
    terms=("signals", "conditions", "citation scores"),
    again=Again(_again, _given, _compared),
    keeps_each=True,
)
