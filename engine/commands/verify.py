"""check, decompose, edit: does a claim stand, what is it made of, and the smallest change that mends it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

import click

from engine.analyses.claims import CHECK, DECOMPOSITION, EDIT, ByDecomposer, ByVerifier, claim_case
from engine.commands.shared import Record, emit, file_argument, progress, run_records, workbench
from engine.core.errors import RecordError
from engine.core.files import EMBEDDED
from engine.core.metrics import d_correct, n_c
from engine.core.values import Case, Value
from engine.english.parser import absence
from engine.methods.are.tools import RULES, load_tools
from engine.models.verifier import entails_by, load_entailment

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

    def as_case(self) -> Case:
        """The record as a case of no library; raise `RecordError` without a claim."""
        if not self.claim.strip():
            raise RecordError("The record has no claim. Give the sentence to check as `claim`.")
        return claim_case(self.claim, self.evidence)


class TextRecord(Value, frozen=True, forbid_unknown_fields=False):
    """A text to be taken apart, with the facts that it should give, if they are known."""

    text: str
    id: str = ""
    gold: tuple[str, ...] = ()


@click.command()
@file_argument
@verifier_option
def check(file: TextIO, verifier: str) -> None:
    """Does the evidence bear out the claim: supportive, editing_required, irrelevant, or unparsed.

    `relevance` is the probability that the evidence bears on the claim, for or against it, regardless of the verdict.

    Example: python -m engine check claims.jsonl
    """
    bench, options = workbench(), ByVerifier(verifier=verifier)
    context = bench.context(progress())
    load_tools(verifier)  # a model that is none is told now

    def work(record: ClaimRecord) -> list[Record]:
        (found,) = CHECK.of(bench.examine(record.as_case(), CHECK.name, options, context))
        ruling = found.ruling
        line = {"id": record.id, "verdict": ruling.verdict, "scores": ruling.scores, "relevance": found.relevance}
        extra = {} if found.raw is None else {"reasoning": ruling.reasoning, "raw": found.raw}
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
    bench, options = workbench(), ByDecomposer(decomposer=decomposer)
    context = bench.context(progress())
    if decomposer != RULES:
        bench.tools.writer(decomposer)  # a model that is none is told now
    elif absence():
        click.echo(absence(), err=True)
    scored: list[tuple[list[str], tuple[str, ...]]] = []

    def work(record: TextRecord) -> list[Record]:
        (found,) = DECOMPOSITION.of(bench.examine(claim_case(record.text), DECOMPOSITION.name, options, context))
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
    bench, options = workbench(), ByVerifier(verifier=verifier)
    context = bench.context(progress())
    load_tools(verifier)  # a model that is none is told now

    def work(record: ClaimRecord) -> list[Record]:
        found = EDIT.of(bench.examine(record.as_case(), EDIT.name, options, context))[-1].edit
        changed = [[c.start, c.end, c.old, c.new] for c in found.changes] if found else []
        line = {"id": record.id, "edited": found.after if found else record.claim, "changed": changed}
        return [{**line, "why": found.why if found else "", "made_by": found.made_by if found else ""}]

    run_records(file, ClaimRecord, work)


COMMANDS = (check, decompose_command, edit)
