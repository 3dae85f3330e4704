"""check, decompose, edit: does a claim stand, what is it made of, and the smallest change that mends it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TextIO

import click

from engine.commands.shared import Record, emit, file_argument, progress, run_records
from engine.core.errors import RecordError
from engine.core.files import EMBEDDED
from engine.core.progress import Watch
from engine.core.values import Value
from engine.methods.are.decompose import decompose
from engine.methods.are.decomposer_scores import d_correct, n_c
from engine.methods.are.edit import asked_edit, smallest_edit
from engine.methods.are.tools import RULES, language_model
from engine.methods.are.values import Edit, Ruling
from engine.methods.are.verdict import ask_verdict, judge
from engine.models.embedder import load_embedder
from engine.models.registry import load_writer
from engine.models.verifier import entails_by, load_entailment
from engine.retrieve.relevance import evidence_relevance

verifier_option = click.option(
    "--verifier",
    default=EMBEDDED,
    show_default=True,
    help="embedded, medium, large, an NLI model's id or folder, or lm:MODEL.",
)
decomposer_option = click.option(
    "--model", "decomposer", default=RULES, show_default=True, help="rules, or the language model that splits."
)


class ClaimRecord(Value, frozen=True, forbid_unknown_fields=False):
    """A claim and its evidence."""

    claim: str
    evidence: str
    id: str = ""

    def checked(self) -> ClaimRecord:
        """The record; raise `RecordError` without a claim."""
        if not self.claim.strip():
            raise RecordError("The record has no claim. Give the sentence to check as `claim`.")
        return self


class TextRecord(Value, frozen=True, forbid_unknown_fields=False):
    """A text to be taken apart, with the facts that it should give, if they are known."""

    text: str
    id: str = ""
    gold: tuple[str, ...] = ()


def rules_by(verifier: str, watch: Watch) -> Callable[[str, str], tuple[Ruling, Record]]:
    """(claim, evidence) to the verifier's ruling; for a language model with its reasoning and raw reply."""
    writer = language_model(verifier)
    if writer is None:
        entailment = load_entailment(verifier)
        return lambda claim, evidence: (judge([(claim, evidence)], entailment, watch)[0], {})

    def asked(claim: str, evidence: str) -> tuple[Ruling, Record]:
        ruling, exchange = ask_verdict(claim, evidence, claim, writer, watch)
        return ruling, {"reasoning": ruling.reasoning, "raw": exchange.reply}

    return asked


def edits_by(verifier: str, watch: Watch) -> Callable[[str, str], Edit | None]:
    """(claim, evidence) to the edit that this verifier judges or, as a language model, writes; None where none is."""
    writer = language_model(verifier)
    if writer is None:
        entailment = load_entailment(verifier)
        return lambda claim, evidence: smallest_edit(claim, evidence, entailment, watch=watch)

    def asked(claim: str, evidence: str) -> Edit | None:
        ruling, _ = ask_verdict(claim, evidence, claim, writer, watch)
        return asked_edit(claim, evidence, writer, watch)[0] if ruling.verdict == "editing_required" else None

    return asked


@click.command()
@file_argument
@verifier_option
def check(file: TextIO, verifier: str) -> None:
    """Does the evidence bear out the claim: supportive, editing_required, irrelevant, or unparsed.

    `relevance` is the probability that the evidence bears on the claim, for or against it, regardless of the verdict.

    Example: python -m engine check claims.jsonl
    """
    ruled = rules_by(verifier, progress())

    def work(record: ClaimRecord) -> list[Record]:
        ruling, extra = ruled(record.checked().claim, record.evidence)
        bears = evidence_relevance(record.claim, record.evidence, load_embedder(), ruling.scores)
        line = {"id": record.id, "verdict": ruling.verdict, "scores": ruling.scores, "relevance": bears}
        return [{**line, "verifier": ruling.by, "note": ruling.note, **extra}]

    run_records(file, ClaimRecord, work)


@click.command("decompose")
@file_argument
@decomposer_option
def decompose_command(file: TextIO, decomposer: str) -> None:
    """Split texts into clauses (verbatim spans) and atomic facts; a summary scores records with `gold` facts.

    The summary: n_c, the share of texts with as many facts as in the gold, and d_correct, the mean share of facts
    paired with a gold one; the pairs entail each other by the embedded verifier (ARE, appendix D.5).

    Example: python -m engine decompose answers.jsonl
    """
    writer = None if decomposer == RULES else load_writer(decomposer)
    watch = progress()
    scored: list[tuple[list[str], tuple[str, ...]]] = []

    def work(record: TextRecord) -> list[Record]:
        found = decompose(record.text, writer, watch)
        clauses = [
            {"start": c.start, "end": c.end, "text": c.text, "facts": [fact.text for fact in c.facts]}
            for c in found.clauses
        ]
        if record.gold:
            scored.append(([fact.text for clause in found.clauses for fact in clause.facts], record.gold))
        return [{"id": record.id, "clauses": clauses, "made_by": found.made_by, "fallbacks": found.fallbacks}]

    run_records(file, TextRecord, work, lambda: emit(_scores(scored)) if scored else None)


def _scores(scored: Sequence[tuple[list[str], tuple[str, ...]]]) -> Record:
    """n_c and the mean d_correct of (facts, gold facts) pairs, as a summary."""
    verifier = load_entailment(EMBEDDED)
    correct = [d_correct(mine, gold, entails_by(verifier)) for mine, gold in scored]
    counted = n_c([mine for mine, _ in scored], [gold for _, gold in scored])
    return {
        "summary": {"n_c": counted, "d_correct": sum(correct) / len(correct), "n": len(scored), "by": verifier.name}
    }


@click.command()
@file_argument
@verifier_option
def edit(file: TextIO, verifier: str) -> None:
    """Make the smallest change that lets the claim agree with the evidence; without one the claim is unchanged.

    Example: python -m engine edit claims.jsonl
    """
    edited = edits_by(verifier, progress())

    def work(record: ClaimRecord) -> list[Record]:
        found = edited(record.checked().claim, record.evidence)
        changed = [[c.start, c.end, c.old, c.new] for c in found.changes] if found else []
        line = {"id": record.id, "edited": found.after if found else record.claim, "changed": changed}
        return [{**line, "why": found.why if found else "", "made_by": found.made_by if found else ""}]

    run_records(file, ClaimRecord, work)


COMMANDS = (check, decompose_command, edit)
