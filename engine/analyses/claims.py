"""An answer as one claim: its verdict, its smallest edit, its facts, and what ARE is compared with.

`facts.py` goes fact by fact; here the whole answer is held against all of its passages at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from engine.analyses.facts import MEASURES, FactsOptions, exchange_blocks, record_of, task_of
from engine.analyses.kind import ByModel, Kind, RunContext, analysis_by
from engine.cases.blocks import Block, Facts, Fold, Notice, Text, changed_runs, cited, part, plain, table
from engine.cases.review import Review
from engine.core.errors import InputError
from engine.core.files import EMBEDDED
from engine.core.text import composed
from engine.core.values import Analysis, Answer, Case, Passage, Stamp, Value
from engine.methods.are.anchored_edit import smallest_edit
from engine.methods.are.baselines import ASKS_NOTHING, Baseline, Entropy, ask_questions, entropies, run_baseline
from engine.methods.are.decompose import RULES, decompose
from engine.methods.are.edit import asked_edit
from engine.methods.are.tools import Tools
from engine.methods.are.values import Decomposition, Edit, Measures, Ruling
from engine.methods.are.verdict import ask_verdict, judge
from engine.models.embedder import DEFAULT
from engine.retrieve.relevance import evidence_relevance

SAID = "a language model may have been asked; run it again instead"


class ByVerifier(Value, frozen=True):
    """Who decides: an entailment model, or `lm:MODEL`."""

    verifier: str = EMBEDDED


class ByDecomposer(Value, frozen=True):
    """Who takes the answer apart: the rules, or a language model."""

    decomposer: str = RULES


class PeerOptions(ByVerifier, frozen=True):
    """Which of the methods of `baselines.NAMES`, and the language model that they ask by."""

    methods: tuple[str, ...] = ASKS_NOTHING
    judge: str = ""


class EntropyOptions(ByModel, frozen=True):
    """Which model scores, and which asks the yes/no questions ("": the same)."""

    judge: str = ""


class ClaimRuling(Value, frozen=True):
    """The verdict on the claim, how far the evidence bears on it in [0, 1], and a language model's own words."""

    ruling: Ruling
    relevance: float
    raw: str | None = None


class ClaimEdit(Value, frozen=True):
    """The smallest edit after which the evidence bears the claim out; a language model's is not checked."""

    edit: Edit | None


class Peers(Value, frozen=True):
    """The runs of the methods that ARE is compared with."""

    runs: tuple[Baseline, ...]


class QueryEntropies(Value, frozen=True):
    """Entropy of the facts ("facts"), and of questions about the answer where any were asked ("sub_questions")."""

    found: dict[str, Entropy]


def claim_case(claim: str, evidence: str = "") -> Case:
    """A claim and its evidence as a case of no library."""
    claim, evidence = composed(claim), composed(evidence)
    passage = Passage(id="1", document="1", title="", ordinal=0, start=0, end=len(evidence), text=evidence)
    return Case(id="", question="", passages=(passage,), answer=Answer(text=claim), stamp=Stamp(model="imported"))


def _evidence(case: Case) -> str:
    return "\n".join(passage.text for passage in case.passages)


def _judges(options: ByVerifier, context: RunContext) -> Tools:
    return FactsOptions(verifier=options.verifier).load(context.tools)


def _check(case: Case, options: ByVerifier, context: RunContext) -> Iterator[Analysis]:
    claim, evidence, tools, raw = case.answer.text, _evidence(case), _judges(options, context), None
    if tools.judge is None:
        (ruling,) = judge([(claim, evidence)], tools.verifier, context.watch)
    else:
        shown = context.settings.verification.demonstrations
        ruling, exchange = ask_verdict(claim, evidence, claim, tools.judge, context.watch, demonstrations=shown)
        raw = exchange.reply
    bears = evidence_relevance(claim, evidence, context.tools.embedder(DEFAULT), ruling.scores)
    yield analysis_by(case, CHECK.name, ruling.by, ClaimRuling(ruling=ruling, relevance=bears, raw=raw))


def _edit(case: Case, options: ByVerifier, context: RunContext) -> Iterator[Analysis]:
    claim, evidence, tools, watch = case.answer.text, _evidence(case), _judges(options, context), context.watch
    if tools.editor is None:
        found, by = smallest_edit(claim, evidence, tools.verifier, watch=watch), tools.verifier.name
    else:
        shown = context.settings.verification.demonstrations
        ruling, _ = ask_verdict(claim, evidence, claim, tools.editor, watch, demonstrations=shown)
        wrong, by = ruling.verdict == "editing_required", tools.editor.name
        found = asked_edit(claim, evidence, tools.editor, watch, demonstrations=shown)[0] if wrong else None
    yield analysis_by(case, EDIT.name, by, ClaimEdit(edit=found))


def _take_apart(case: Case, options: ByDecomposer, context: RunContext) -> Iterator[Analysis]:
    writer = None if options.decomposer == RULES else context.tools.writer(options.decomposer)
    shown = context.settings.verification.demonstrations
    found = decompose(case.answer.text, writer, context.watch, demonstrations=shown)
    yield analysis_by(case, DECOMPOSITION.name, found.made_by, found)


def _compare(case: Case, options: PeerOptions, context: RunContext) -> Iterator[Analysis]:
    if not options.methods:
        raise InputError("No method was chosen. Choose at least one.")
    settings, runs = context.settings, list[Baseline]()
    task = task_of(case, FactsOptions(verifier=options.verifier, judge=options.judge), context)
    tools = task.tools
    used = {
        "verification": settings.verification.to_dict(),
        "mode": settings.retrieval.mode,
        "judge": tools.judge.name if tools.judge else "",
    }
    for name in options.methods:
        runs.append(run_baseline(name, task, context.watch))
        yield analysis_by(case, PEERS.name, tools.verifier.name, Peers(runs=tuple(runs)), used)


def _entropies(case: Case, options: EntropyOptions, context: RunContext) -> Iterator[Analysis]:
    """Of the facts of the case's check, or of the answer taken apart by rules, and of questions about the answer."""
    record, scorer, watch = record_of(case), context.tools.scorer(options.model), context.watch
    found = record.decomposition if record else decompose(case.answer.text)
    facts = [fact.text for clause in found.clauses for fact in clause.facts]
    asks = context.tools.writer(options.judge) if options.judge else scorer
    shown = context.settings.verification.demonstrations
    questions, _ = ask_questions("yes_no_questions", case.answer.text, asks, watch, shown)
    measured = dict(entropies(facts, questions, scorer, watch))
    used = {"demonstrations": shown, "judge": asks.name}
    yield analysis_by(case, ENTROPY.name, scorer.name, QueryEntropies(found=measured), used)


def _ruled(case: Case, found: ClaimRuling, review: Review) -> list[Block]:
    ruling = found.ruling
    said = (("Verdict", ruling.verdict.replace("_", " ")), ("Relevance of the evidence", f"{found.relevance:.2f}"))
    return [Facts(said), plain(f"{ruling.note}.", "note")]


def _edited(case: Case, found: ClaimEdit, review: Review) -> list[Block]:
    if found.edit is None:
        return [plain("No edits found.")]
    return [plain(found.edit.after, "answer"), plain(f"{found.edit.why}; by {found.edit.made_by}.", "note")]


def _clauses(case: Case, found: Decomposition, review: Review) -> list[Block]:
    rows = ((" ".join(c.text.split()), "; ".join(fact.text for fact in c.facts)) for c in found.clauses)
    return [table(f"Clauses and facts by {found.made_by}", ("Clause", "Facts"), rows)]


LABELS = {"drqa": "DRQA", "rarr": "RARR", "ccver": "CCVER", "efec-style": "EFEC-style editor"}


def _beside(case: Case, found: Peers, review: Review) -> list[Block]:
    """The measures of every method next to ARE's; then what each made of the answer, and what it searched with."""
    are = record_of(case)
    own = [_measures("ARE", are.report.after, are.report.after)] if are and are.report else []
    rows = [*own, *(_measures(LABELS[one.name], one.measures, one.aggregated) for one in found.runs)]
    columns = ("Method", *(name for name, _, _ in MEASURES), "Attr_r, by clause", "Attr_p, by clause")
    by = "".join(f" Entailment by {one.measures.by}." for one in found.runs[:1])
    caption = f"After editing.{by} Baselines count each piece of evidence; ARE assigns evidence to clauses."
    measures = table(caption, columns, rows, numeric=range(1, len(columns)))
    return [measures, *(part(LABELS[one.name], _revised(case, one)) for one in found.runs)]


def _measures(name: str, measures: Measures, by_clause: Measures | None) -> tuple[str, ...]:
    clauses = (f"{by_clause.attr_r:.3f}", f"{by_clause.attr_p:.3f}") if by_clause else ("–", "–")
    return name, *(f"{getattr(measures, field):.3f}" for _, field, _ in MEASURES), *clauses


def _revised(case: Case, one: Baseline) -> Iterator[Block]:
    yield Text(cited(changed_runs(case.answer.text, one.revised), case), "answer")
    yield from map(Notice, one.notes)
    numbered = ((str(n), query) for n, query in enumerate(one.queries, start=1))
    yield Fold(f"Searched with {len(one.queries)}", (table("Queries, in order", ("No.", "Query"), numbered),))
    yield from exchange_blocks("Prompts and replies", one.exchanges)


def _measured(case: Case, found: QueryEntropies, review: Review) -> list[Block]:
    if not found.found:
        return [Notice("The answer has no facts, and the model asked no question about it. Nothing was measured.")]
    columns = ("Texts", "n", "Tokens", "Entropy", "Surprisal per text, nats", "Surprisal per token, nats")
    rows = (
        (
            name.replace("_", "-"),
            str(one.texts),
            str(one.tokens),
            f"{one.entropy:.3g}",
            f"{one.surprisal:.2f}",
            f"{one.per_token:.3f}",
        )
        for name, one in found.found.items()
    )
    model = next(iter(found.found.values())).model
    caption = f"Scored by {model} without passages. The first two also change with length alone."
    entropies = table(caption, columns, rows, numeric=range(1, 6))
    asked = "sub_questions" in found.found
    return [entropies, *([] if asked else [plain("The model asked no yes/no questions about this answer.", "note")])]


def _kind(name: str, title: str, result: Any, blocks: Any, options: type[Value], run: Any) -> Kind[Any]:
    return Kind(name=name, title=title, result=result, blocks=blocks, options=options, run=run, not_again=SAID)


CHECK = _kind("check", "The answer as one claim", ClaimRuling, _ruled, ByVerifier, _check)
EDIT = _kind("edit", "Smallest edit of the answer", ClaimEdit, _edited, ByVerifier, _edit)
DECOMPOSITION = _kind("decomposition", "Clauses and facts", Decomposition, _clauses, ByDecomposer, _take_apart)
PEERS = _kind("baselines of ARE", "What ARE is compared with", Peers, _beside, PeerOptions, _compare)
ENTROPY = _kind("entropy", "Entropy of facts and questions", QueryEntropies, _measured, EntropyOptions, _entropies)
