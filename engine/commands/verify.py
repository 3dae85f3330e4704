"""check, decompose, edit: does a claim stand, what is it made of, and the smallest change that mends it.

facts: an answer checked fact by fact and mended (ARE), or by one of the methods that ARE is compared with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TextIO

import click

from engine.analyses import claims
from engine.analyses.facts import KIND as FACTS, LANGUAGE_MODEL, FactsOptions
from engine.cases.importers import imported_case
from engine.commands import shared
from engine.core.errors import RecordError
from engine.core.files import EMBEDDED
from engine.core.metrics import d_correct, n_c
from engine.core.text import composed
from engine.core.values import AuditRecord, Case, GivenPassage, Value
from engine.english.parser import absence
from engine.methods.are.baselines import NAMES, NEEDS_MODEL, offered
from engine.methods.are.decompose import RULES
from engine.methods.are.values import Ruling
from engine.models.calibration import LabelledPair, calibratable, calibrated, keep
from engine.models.protocols import Entailment
from engine.models.verifier import CALIBRATED, entails_by, remembering
from engine.workbench import Workbench

decomposer_option = click.option(
    "--model", "decomposer", default=RULES, show_default=True, help="rules, or the language model that splits."
)


class ClaimRecord(Value, frozen=True, forbid_unknown_fields=False):
    """A claim and its evidence."""

    claim: str
    evidence: str
    id: str = ""

    def as_case(self) -> Case:
        """The record as a case of no library; raise `RecordError` without a claim."""
        if not self.claim.strip():
            raise RecordError("The record has no claim. Give the sentence to check as `claim`.")
        return claims.claim_case(self.claim, self.evidence)


class TextRecord(Value, frozen=True, forbid_unknown_fields=False):
    """A text to be taken apart, with the facts that it should give, if they are known."""

    text: str
    id: str = ""
    gold: tuple[str, ...] = ()


@shared.main.command()
@shared.file_argument
@shared.verifier_option
@shared.with_workbench
def check(file: TextIO, verifier: str, bench: Workbench) -> None:
    """Check a claim against its evidence: supportive, editing_required, irrelevant or unparsed.

    `relevance`, from 0 to 1, says how far the evidence concerns the claim, for or against it. The verdict is the
    verifier's own: the guards on names, numbers and order that `facts` has do not change it. It need not be the class
    with the highest score, because the verifier has a threshold for each class: `note` says where it is not.

    Example: python -m engine check claims.jsonl
    """
    options, context = claims.ByVerifier(verifier=verifier), bench.context(shared.progress())
    loaded = FactsOptions(verifier=verifier).load(bench.tools).verifier  # one that is none is told now
    judge = loaded
    context = replace(context, tools=replace(bench.tools, verifier=lambda name: judge))

    def ahead(records: Sequence[ClaimRecord]) -> None:
        """Many pairs are judged in the time of a few; the verdicts are those of each alone."""
        nonlocal judge
        if not verifier.startswith(LANGUAGE_MODEL):
            judge = remembering(loaded)  # the memory of one group: a file may be long
            judge.judge([(composed(one.claim), composed(one.evidence)) for one in records], context.watch)

    def work(record: ClaimRecord) -> list[shared.Record]:
        (found,) = claims.CHECK.of(bench.examine(record.as_case(), claims.CHECK.name, options, context))
        ruling = found.ruling
        line = {"id": record.id, "verdict": ruling.verdict, "scores": ruling.scores, "relevance": found.relevance}
        extra = {} if found.raw is None else {"reasoning": ruling.reasoning, "raw": found.raw}
        by = verifier if verifier.startswith(LANGUAGE_MODEL) else ruling.by  # `embedded` is a verifier, too
        return [{**line, "verifier": by, "note": _note(ruling), **extra}]

    shared.run_records(file, ClaimRecord, work, ahead=ahead)


def _note(ruling: Ruling) -> str:
    """The ruling's note, and the class with the highest probability where the verdict is another one."""
    best = max(ruling.scores, key=ruling.scores.__getitem__, default=ruling.verdict)
    if best == ruling.verdict:
        return ruling.note
    return f"{ruling.note}; {ruling.verdict} by its own threshold; {best} scores higher"


@shared.main.command("decompose")
@shared.file_argument
@decomposer_option
@shared.with_workbench
def decompose_command(file: TextIO, decomposer: str, bench: Workbench) -> None:
    """Split texts into clauses (verbatim spans) and atomic facts; a summary scores records with `gold` facts.

    The summary: n_c, the share of texts with as many facts as in the gold, and d_correct, the mean share of facts
    paired with a gold one; the pairs entail each other by the embedded verifier (ARE, appendix D.5).

    Example: python -m engine decompose texts.jsonl
    """
    options, context = claims.ByDecomposer(decomposer=decomposer), bench.context(shared.progress())
    if decomposer != RULES:
        bench.tools.writer(decomposer)  # a model that is none is told now
    elif absence():
        click.echo(absence(), err=True)
    scored: list[tuple[list[str], tuple[str, ...]]] = []

    def work(record: TextRecord) -> list[shared.Record]:
        (found,) = claims.DECOMPOSITION.of(
            bench.examine(claims.claim_case(record.text), claims.DECOMPOSITION.name, options, context)
        )
        clauses = [
            {"start": c.start, "end": c.end, "text": c.text, "facts": [fact.text for fact in c.facts]}
            for c in found.clauses
        ]
        if record.gold:
            scored.append(([fact.text for clause in found.clauses for fact in clause.facts], record.gold))
        return [{"id": record.id, "clauses": clauses, "made_by": found.made_by, "fallbacks": found.fallbacks}]

    shared.run_records(
        file, TextRecord, work, lambda: shared.emit(_scores(scored, bench.tools.verifier(EMBEDDED))) if scored else None
    )


def _scores(scored: Sequence[tuple[list[str], tuple[str, ...]]], verifier: Entailment) -> shared.Record:
    """n_c and the mean d_correct of (facts, gold facts) pairs, as a summary."""
    correct = [d_correct(mine, gold, entails_by(verifier)) for mine, gold in scored]
    counted = n_c([mine for mine, _ in scored], [gold for _, gold in scored])
    return {
        "summary": {"n_c": counted, "d_correct": sum(correct) / len(correct), "n": len(scored), "by": verifier.name}
    }


@shared.main.command()
@shared.file_argument
@shared.verifier_option
@shared.with_workbench
def edit(file: TextIO, verifier: str, bench: Workbench) -> None:
    """Make the smallest change that lets the claim agree with the evidence; without one the claim is unchanged.

    Example: python -m engine edit claims.jsonl
    """
    options, context = claims.ByVerifier(verifier=verifier), bench.context(shared.progress())
    FactsOptions(verifier=verifier).load(bench.tools)  # a model that is none is told now

    def work(record: ClaimRecord) -> list[shared.Record]:
        found = claims.EDIT.of(bench.examine(record.as_case(), claims.EDIT.name, options, context))[-1].edit
        changed = [[c.start, c.end, c.old, c.new] for c in found.changes] if found else []
        line = {"id": record.id, "edited": found.after if found else record.claim, "changed": changed}
        return [{**line, "why": found.why if found else "", "made_by": found.made_by if found else ""}]

    shared.run_records(file, ClaimRecord, work)


ARE = "are"


class AnswerRecord(Value, frozen=True, forbid_unknown_fields=False):
    """A question and an answer to check, with the passages that it was given and the corpus to search, if any."""

    question: str
    answer: str
    id: str = ""
    passages: tuple[str | GivenPassage, ...] = ()
    corpus: str | None = None


@shared.main.command()
@shared.file_argument
@click.option("--corpus", default=None, metavar="NAME", help="The corpus to search, in place of the records' own.")
@click.option("--evidence-from", type=click.Choice(["case", "corpus", "both"]), default=None, help="Default: both.")
@click.option("--method", type=click.Choice([ARE, *NAMES]), default=ARE, show_default=True, help="ARE or a baseline.")
@shared.verifier_option
@click.option("--judge", default=None, metavar="MODEL", help="Model for a second verdict; baselines ask with it.")
@click.option("--entropy", "scorer", default=None, metavar="MODEL", help="ARE: entropy of facts and questions.")
@decomposer_option
@shared.seed_option
@shared.set_option
def facts(
    file: TextIO,
    corpus: str | None,
    evidence_from: str | None,
    method: str,
    verifier: str,
    judge: str | None,
    scorer: str | None,
    decomposer: str,
    seed: int | None,
    assignments: tuple[str, ...],
) -> None:
    """Check an answer fact by fact, edit what the evidence contradicts, and report the evidence of each clause.

    ARE's ablations: --set verification.edit=false, .atomic=false, .molecular=false, .re_retrieval=false.

    Example: python -m engine facts answers.jsonl --corpus bank-investigation
    """
    if scorer and method != ARE:
        raise click.UsageError(
            f"--entropy measures the facts of {ARE}; {method} does not have any. Leave out one of the two options."
        )
    wanted = [f"verification.evidence_from={evidence_from}"] if evidence_from else []
    bench = shared.workbench((*assignments, *wanted), seed)
    source = bench.settings.verification.evidence_from
    if corpus:
        bench.collection(corpus)  # one that is none is told now
    context = bench.context(shared.progress())
    options = FactsOptions(verifier=verifier, decomposer=decomposer, judge=judge or "")
    asks = options.spelled_out.judge
    if method not in (ARE, *offered(asks)):
        raise click.UsageError(f"{NEEDS_MODEL.format(method)} Give it as --judge MODEL.")
    options.load(bench.tools)  # a model that is none is told now
    peers = claims.PeerOptions(methods=(method,), verifier=verifier, judge=judge or "")

    def work(record: AnswerRecord) -> list[shared.Record]:
        searched = None if source == "case" else corpus or record.corpus
        if searched:
            bench.collection(searched)  # raises where it is none
        elif source == "corpus":
            raise RecordError("The evidence is to come from a corpus. Give --corpus NAME, or name it as corpus.")
        given = AuditRecord(question=record.question, passages=record.passages, answer=record.answer, corpus=searched)
        case = imported_case(given.checked())
        if method != ARE:
            (other,) = claims.PEERS.of(bench.examine(case, claims.PEERS.name, peers, context))[-1].runs
            reached = {name: getattr(other.measures, name) for name in ("attr_r", "attr_p", "pres")}
            return [{"id": record.id, "method": method, **reached, **other.to_dict()}]
        case = bench.examine(case, FACTS.name, options, context)
        (found,), extra = FACTS.of(case), {}
        if scorer:
            case = bench.examine(case, claims.ENTROPY.name, claims.EntropyOptions(model=scorer, judge=asks), context)
            extra = {"entropy": claims.ENTROPY.of(case)[-1].found}
        return [{"id": record.id, "method": method, **FACTS.figures(found), **extra, **found.to_dict()}]

    shared.run_records(file, AnswerRecord, work)


@shared.main.command("calibrate-verifier")
@shared.file_argument
@click.option("--name", required=True, help="The calibrated verifier is then `calibrated:NAME`.")
@click.option("--dry-run", is_flag=True, help="Print the figures without saving the calibration.")
@shared.verifier_option
def calibrate_verifier(file: TextIO, name: str, dry_run: bool, verifier: str) -> None:
    """Calibrate a verifier on at least 50 labelled pairs of your own kind of text, and save it by a name.

    A record is {"claim", "evidence", "verdict"}. The figures before and after are on pairs left out of the fit.

    Example: python -m engine calibrate-verifier labelled.jsonl --name contracts
    """
    fitted = calibrated(LabelledPair.all_from(file), calibratable(verifier), name, shared.progress())
    if not dry_run:
        keep(fitted)
    shared.emit({"verifier": CALIBRATED + name, **fitted.to_dict(), "kept": not dry_run})
