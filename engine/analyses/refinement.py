"""Refinement of a case. In a replay the writer's replies are inputs; prompts are built and tokens scored again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

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
    Facts,
    Fold,
    Notice,
    Table,
    Text,
    answer_runs,
    changed_runs,
    exchanged,
    part,
    plain,
    table,
)
from engine.cases.review import Review
from engine.cases.store import CaseStore
from engine.core.files import EMBEDDED
from engine.core.settings import SecondPass as Rules, Settings, setting_labels
from engine.core.values import Analysis, Case, Passage, Stamp, Value, inputs_hash
from engine.methods import registry
from engine.methods.refinement.conditions import VARIANTS, Request
from engine.methods.refinement.gates import EVERY_TIME, Labels, flags_trigger, gated, overlap_trigger
from engine.methods.refinement.request import other_texts, own_tokens, read_by, same_rows, scored_prompt, stamp_ahead
from engine.methods.refinement.run import (
    RefinementReport,
    assessed,
    nothing_to_name,
    refine,
    refine_case,
    report_facts,
    report_scores,
    stands,
)
from engine.methods.refinement.values import Cost, Gate, OverlapThreshold, Refinement, Trigger, Variant
from engine.methods.signals import MEASURES, FactKept, Scores, deployed_cost, overlap_history, overlap_threshold
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


def history_of(cases: CaseStore, model: str) -> tuple[float, ...]:
    """S3 of the library's answers by a model."""
    rows = (row.id for row in cases.rows(limit=LIBRARY) if row.model == model)
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
        history=history_of(cases, writer.name) if cases else context.overlaps,
        read=read_by(writer.name, case, settings.retrieval, use_answer=options.use_answer),
        server_stops=context.server_stops,
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
    return [
        Facts(_made(value)),
        *map(Notice, dict.fromkeys(filter(None, [*notes, *unfinished]))),
        _signals(value),
        _conditions(value, names),
        part("Scores", score_blocks(report, labelled(case.passages, report.labels))),
        part("The answers", [block for name in names for block in _answer(case, value, name)]),
        *kept_facts(report),
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
    rows, reasons = [], trigger_reasons(value, names)
    for name in names:
        variant = value.variants[name]
        fired = {None: "no rule", True: "started", False: "not started"}[variant.triggered]
        sentence = reasons.get(name) or (VARIANTS[name].about if name in VARIANTS else "")
        rows.append((title_of(name), Cell(fired, note=sentence), Cell(variant.outcome, note=variant.own_problem)))
    return table("Conditions and their outcomes", ("Condition", "Second pass", "Outcome"), rows)


def trigger_reasons(value: Refinement, names: Sequence[str]) -> dict[str, str]:
    """Why the second pass of each named condition with a rule ran or not; a reason that one before it has, by name."""
    first: dict[str, str] = {}
    found = {}
    for name in names:
        trigger = value.variants[name].trigger if name in value.variants else None
        if trigger is not None and trigger != EVERY_TIME:
            same = first.setdefault(trigger.sentence, name)
            found[name] = trigger.sentence if same == name else f"Same trigger as {same}."
    return found


def title_of(name: str) -> str:
    """A condition as people read it."""
    return f"{name}, {VARIANTS[name].title}" if name in VARIANTS else name


SAME = 0.005  # a difference that two decimals do not show
AS_A = Cell("= A", faint=True)
AS_A_MEANS = " = A: the answer is A's, word for word."


def score_blocks(report: RefinementReport, passages: Sequence[Passage]) -> list[Block]:
    """One row per score and cost, one column per condition with its difference to A; then why a score is missing.

    The labels are those that the passages carry.
    """
    scores, value = report_scores(report, passages), report.refinement
    names, first = [name for name in VARIANTS if name in scores], scores.get("A")
    rows: list[tuple[Cell | str, ...]] = [
        (title, *(AS_A if name in value.repeats else _score(scores[name], first, field, better) for name in names))
        for field, title, better in MEASURES
    ]
    if "A" in value.variants:
        rows += _costs([deployed_cost(value, name) for name in names])
    by = f"Citation scores by {report.verifier}: pairs with an entailment probability above one half."
    caption = (
        f"{by if report.verifier else 'No verifier ran.'} Cost includes A and the trigger where a condition needs them."
        " A dash: not defined here. Better and worse: than A."
        f"{AS_A_MEANS * bool(value.repeats)}"
    )
    figures = table(caption, ("Score", *names), rows, numeric=range(1, len(names) + 1))
    missing: dict[str, list[str]] = {}
    for name in names:
        for reason in dict.fromkeys(scores[name].missing.get(field, "") for field, _, _ in MEASURES):
            missing.setdefault(reason, []).append(name)
    said = (f"{', '.join(own)}: {reason}" if own != names else reason for reason, own in missing.items() if reason)
    return [figures, *(plain(line, "note") for line in said)]


def _score(scores: Scores, first: Scores | None, field: str, more_is_better: bool | None) -> Cell:
    """A score with its difference to the `first`, marked as better or worse where one of the two is."""
    figure = getattr(scores, field)
    if figure is None:
        return Cell("–", faint=True)
    text = f"{figure:.2f}" if isinstance(figure, float) else str(figure)
    before = getattr(first, field) if first else None
    change = 0 if before is None else figure - before
    if abs(change) < SAME:
        return Cell(text)
    kind = "" if more_is_better is None else "better" if (change > 0) == more_is_better else "worse"
    return Cell(f"{text} ({change:+{'z.2f' if isinstance(change, float) else 'd'}})", note=kind, kind=kind)


def _costs(costs: Sequence[Cost]) -> list[tuple[str, ...]]:
    def passed(value: int | None, written: int) -> str:
        """A count of what went through the model; former versions stored 0 for a writer that they could not count."""
        return "unknown" if value is None or (written and not value) else f"{value:,}"

    return [
        ("Forward passes", *(passed(cost.forwards, cost.written) for cost in costs)),
        ("Backward passes", *(f"{cost.backwards:,}" for cost in costs)),
        ("Token positions through the model", *(passed(cost.tokens, cost.written) for cost in costs)),
        ("Tokens written", *(f"{cost.written:,}" for cost in costs)),
        ("Seconds", *(f"{cost.seconds:.1f}" for cost in costs)),
    ]


def _answer(case: Case, value: Refinement, name: str) -> list[Block]:
    """A as it stands; every other answer as changes to A."""
    variant = value.variants[name]
    if variant.answer is None or variant.outcome == "copied":
        return [plain(f"{title_of(name)}: no answer. {variant.problem}")]
    if name == "A" or value.baseline is None:
        return [plain(title_of(name), "note"), Text(answer_runs(variant.answer, case.passages), "answer")]
    if name in value.repeats:
        return [plain(f"{title_of(name)}: word for word the answer of A.", "note")]
    runs = changed_runs(value.baseline.text, variant.answer.text)
    return [
        plain(f"{title_of(name)}; struck through: only in A; underlined or bold: only here", "note"),
        Text(runs, "answer"),
    ]


def kept_facts(report: RefinementReport) -> list[Block]:
    """The facts of A and the probability that each answer still states them; nothing where A was not taken apart."""
    kept = {name: facts for name, facts in report_facts(report).items() if facts}
    if not kept:
        return []
    names = [name for name in VARIANTS if name in kept]
    repeats = report.refinement.repeats
    rows = [
        (fact, *(AS_A if name in repeats else cell for name, cell in zip(names, cells, strict=True)))
        for fact, *cells in map(_fact_row, zip(*(kept[name] for name in names), strict=True))
    ]
    caption = (
        "Facts of A with the machine's verdict, and the probability that each answer still states them."
        f" Unclear: the verifier does not find the fact in A itself.{AS_A_MEANS * bool(repeats)}"
    )
    return [table(caption, ("Fact of A", *names), rows, numeric=range(1, len(names) + 1))]


def _fact_row(kept: Sequence[FactKept]) -> tuple[Cell | str, ...]:
    said = (f"{one.state(kept[0])} {one.kept:.2f}" for one in kept)
    return Cell(kept[0].fact, note=in_words(kept[0].verdict)), *said


def trigger_table(value: Refinement, labels: Labels, gate: Gate, settings: Settings) -> Table:
    """The rules that start a second pass, with the labels as they are now, and which have changed since."""
    rules = _rules(value, labels, gate, settings)
    titles = {"D": "D · Passage-overlap heuristic", "v2c": "v2a, v2b, v2c"}
    rows = (
        _trigger_row(title, rules[name], value.variants.get(name)) for name, title in titles.items() if name in rules
    )
    return table("", ("Condition", "Rule", "Now", "Why", "Figures"), rows)


def _rules(value: Refinement, labels: Labels, gate: Gate, settings: Settings) -> dict[str, Trigger]:
    """For each condition with a rule of its own, what the rule decides now."""
    shown = value.shown or tuple(labels)
    labels = {number: label for number, label in labels.items() if number in shown}
    missing = value.gradient_missing or "The gradient rows have not been computed: run v2a, v2b or v2c."
    flags = flags_trigger(value.gradient, missing, labels, settings)
    threshold = _threshold(value.threshold, settings.refinement)
    overlap = overlap_trigger(value.signals.s3, threshold) if threshold is not None else None
    own = {name: {"S3": overlap, "flags": flags}.get(method.rule) for name, method in VARIANTS.items()}
    return {name: gated(rule, gate, value.gradient, labels) for name, rule in own.items() if rule is not None}


def _threshold(stored: OverlapThreshold | None, rules: Rules) -> OverlapThreshold | None:
    """D's threshold with these settings; the stored one where it is a percentile, which takes the library's S3."""
    if stored is None or stored.n >= rules.overlap_cases:
        return stored
    return replace(overlap_threshold((), rules), n=stored.n)


def _trigger_row(title: str, trigger: Trigger, stored: Variant | None) -> tuple[str, ...]:
    now = "fires" if trigger.fired else "not available" if trigger.rule == "unavailable" else "does not fire"
    if stored is not None and stored.trigger is not None and stored.trigger.fired != trigger.fired:
        now += " (changed since the last run)"
    figures = ", ".join(f"{label} {figure:.3g}" for label, figure in trigger.figures.items())
    return title, trigger.rule if trigger.rule != "unavailable" else "–", now, trigger.sentence, figures


def _prompts(value: Refinement, names: Sequence[str]) -> list[Block]:
    blocks: list[Block] = []
    spent = 0
    for name in names:
        for turn in value.variants[name].turns:
            text = turn.prompt.text
            spent += len(text)
            shown = text if spent <= LONGEST else f"{text[-2000:]}\n(Only the end; the case file has the full prompt.)"
            said = f"{title_of(name)}, {turn.purpose}: the prompt, then the raw reply"
            blocks += exchanged(said, shown, turn.reply.text, f" of {name}")
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


class Ahead(NamedTuple):
    """The conditions that a run writes, and those that it sets back to A, as their rule does not fire.

    `stored` is the run that it continues; None where there is none, or where it replaces the one there is, which has
    `other` inputs, versions or settings.
    """

    writes: list[str]
    set_back: list[str]
    stored: Refinement | None
    other: tuple[str, ...] = ()


def run_ahead(case: Case, options: RefinementOptions, settings: Settings) -> Ahead:
    """Say ahead what a run would do, as far as it is known before its writer is loaded."""
    report = reports_of(case).get(analysis_id(options.model, options.use_answer))
    wanted = [name for name in VARIANTS if name in {*options.variants, "B"}]
    value = report.refinement if report else None
    ahead = stamp_ahead(value.stamp, case, settings, use_answer=options.use_answer) if value else None
    other = other_texts(value.stamp, ahead) if value and ahead else ()
    if value is None or other:
        return Ahead([n for n in wanted if n != "A" or not options.use_answer], [], None, other)
    held = {name: v for name, v in value.variants.items() if v.answer is not None}
    rules = _rules(value, case.labels, options.gate, settings)
    changed = [n for n in VARIANTS if n in held and n in rules and not stands(held[n], rules[n])]
    # Tried before, and the rule still cannot be asked, or points at nothing to name.
    idle = {
        n
        for n, rule in rules.items()
        if n in value.variants and value.gradient and (rule.rule == "unavailable" or nothing_to_name(n, rule))
    }
    writes = [n for n in VARIANTS if (n in wanted and n not in {*held, *idle}) or (n in changed and rules[n].fired)]
    return Ahead(writes, [name for name in changed if not rules[name].fired], value)


OF_A_STAMP = {
    "inputs": "question, passages or answer",
    "revision": "weights",
    "dtype": "number format",
    "template": "prompts",
    "versions": "versions of packages",
    "given": "the baseline",
    "sentences": "what the writer reads",
    "read": "what the writer reads",
}


def _in_words(names: Sequence[str]) -> str:
    """The differences of two stamps: settings by their labels, the rest by `OF_A_STAMP`."""
    known = OF_A_STAMP | setting_labels()
    return ", ".join(dict.fromkeys(known.get(name, name) for name in names))


def _cost(case: Case, options: RefinementOptions, settings: Settings) -> str:
    ahead = run_ahead(case, options, settings)
    missing, stored = ahead.writes, ahead.stored
    parts = [] if missing else ["every chosen condition is written"]
    if missing:
        answers = len(missing) + ("E" in missing)
        parts.append(f"up to {answers} {'text' if answers == 1 else 'texts'} to write")
    gated = [n for n in missing if VARIANTS[n].rule in ("S3", "flags")] if options.gate == "own" else []
    if gated:
        parts.append(f"{len(gated)} of them only if the trigger fires")
    if stored is None:
        parts.append("2 scored rows for S2")
    rows = f"1 forward and {settings.gradient.first_tokens + 1} backward passes for the flags"
    if stored is not None and stored.gradient is not None:
        if not same_rows(stored.stamp, stamp_ahead(stored.stamp, case, settings, use_answer=options.use_answer)):
            parts.append(f"{rows}, which may start or set back v2a, v2b and v2c")
    elif any(VARIANTS[n].rule == "flags" for n in missing):
        parts.append(rows)
    if ahead.set_back:
        parts.append(f"{', '.join(ahead.set_back)} set back to A, because the trigger does not fire")
    said = ", ".join(parts) + "."
    return f"{said} Replaces the stored run, which differs in {_in_words(ahead.other)}." if ahead.other else said


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
