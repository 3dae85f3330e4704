"""check, decompose, edit, facts: does a claim stand, what is it made of, and the smallest change that mends it."""

from __future__ import annotations

from typing import Any, TextIO

import click

from engine.answer.context import check_question
from engine.commands.shared import file_argument, progress, run_records, set_option
from engine.commands.shared import workbench as open_workbench
from engine.errors import RecordError
from engine.models.protocols import Writer
from engine.models.registry import load_writer
from engine.models.verifier import EMBEDDED, load_entailment
from engine.records import AuditRecord, GivenPassage
from engine.types import Value
from engine.verify.are import check_answer
from engine.verify.decompose import decompose
from engine.verify.edit import asked_edit, smallest_edit
from engine.verify.evidence import Sources
from engine.verify.task import Tools
from engine.verify.values import AreRecord
from engine.verify.verdict import ask_verdict, judge

verifier_option = click.option(
    "--verifier", default=EMBEDDED, show_default=True, help="embedded, an NLI model's id or folder, or lm:MODEL."
)
decomposer_option = click.option(
    "--model", "decomposer", default="rules", show_default=True, help="rules, or the language model that splits."
)
LANGUAGE_MODEL = "lm:"


class ClaimRecord(Value, frozen=True, forbid_unknown_fields=False):
    """A claim and the evidence that it is held against."""

    claim: str
    evidence: str
    id: str = ""

    def checked(self) -> ClaimRecord:
        """The record; raise `RecordError` without a claim."""
        if not self.claim.strip():
            raise RecordError("The record has no claim. Give the sentence to check as `claim`.")
        return self


class TextRecord(Value, frozen=True, forbid_unknown_fields=False):
    """A text to be taken apart."""

    text: str
    id: str = ""


class AnswerRecord(Value, frozen=True, forbid_unknown_fields=False):
    """A question and an answer to check, with the passages that it was given, if any."""

    question: str
    answer: str
    id: str = ""
    passages: tuple[str | GivenPassage, ...] = ()


def language_model(name: str) -> Writer | None:
    """The writer that `lm:MODEL` names; None for an entailment model."""
    return load_writer(name.removeprefix(LANGUAGE_MODEL)) if name.startswith(LANGUAGE_MODEL) else None


@click.command()
@file_argument
@verifier_option
def check(file: TextIO, verifier: str) -> None:
    """Does the evidence bear out the claim: supportive, editing_required, irrelevant, or unparsed.

    Example: python -m engine check claims.jsonl
    """
    writer, watch = language_model(verifier), progress()
    entailment = None if writer else load_entailment(verifier)

    def work(record: ClaimRecord) -> list[dict[str, Any]]:
        pair = (record.checked().claim, record.evidence)
        if writer is not None:
            ruling, exchange = ask_verdict(*pair, pair[0], writer, watch)
            extra = {"reasoning": ruling.reasoning, "raw": exchange.reply}
        else:
            assert entailment is not None
            ruling, extra = judge([pair], entailment, watch)[0], {}
        line = {"id": record.id, "verdict": ruling.verdict, "scores": ruling.scores, "verifier": ruling.by}
        return [{**line, "note": ruling.note, **extra}]

    run_records(file, ClaimRecord, work)


@click.command("decompose")
@file_argument
@decomposer_option
def decompose_command(file: TextIO, decomposer: str) -> None:
    """A text as clauses (verbatim spans) and atomic facts.

    Example: python -m engine decompose answers.jsonl
    """
    writer = None if decomposer == "rules" else load_writer(decomposer)
    watch = progress()

    def work(record: TextRecord) -> list[dict[str, Any]]:
        found = decompose(record.text, writer, watch)
        clauses = [
            {"start": c.start, "end": c.end, "text": c.text, "facts": [fact.text for fact in c.facts]}
            for c in found.clauses
        ]
        return [{"id": record.id, "clauses": clauses, "made_by": found.made_by, "fallbacks": found.fallbacks}]

    run_records(file, TextRecord, work)


@click.command()
@file_argument
@verifier_option
def edit(file: TextIO, verifier: str) -> None:
    """The smallest change that makes the claim agree with the evidence; unchanged where there is none.

    Example: python -m engine edit claims.jsonl
    """
    writer, watch = language_model(verifier), progress()
    entailment = None if writer else load_entailment(verifier)

    def work(record: ClaimRecord) -> list[dict[str, Any]]:
        pair = (record.checked().claim, record.evidence)
        if writer is not None:
            ruling = ask_verdict(*pair, pair[0], writer, watch)[0]
            found = asked_edit(*pair, writer, watch)[0] if ruling.verdict == "editing_required" else None
        else:
            assert entailment is not None
            found = smallest_edit(*pair, entailment, watch=watch)
        changed = [[c.start, c.end, c.old, c.new] for c in found.changes] if found else []
        line = {"id": record.id, "edited": found.after if found else record.claim, "changed": changed}
        return [{**line, "why": found.why if found else "", "made_by": found.made_by if found else ""}]

    run_records(file, ClaimRecord, work)


@click.command()
@file_argument
@click.option("--corpus", default=None, metavar="NAME", help="The collection to look for evidence in.")
@click.option("--evidence-from", type=click.Choice(["case", "corpus", "both"]), default=None, help="Default: both.")
@verifier_option
@decomposer_option
@set_option
def facts(
    file: TextIO,
    corpus: str | None,
    evidence_from: str | None,
    verifier: str,
    decomposer: str,
    assignments: tuple[str, ...],
) -> None:
    """Check an answer fact by fact, edit what the evidence contradicts, and report what each clause rests on.

    Example: python -m engine facts answers.jsonl --corpus bank-investigation
    """
    wanted = [f"verification.evidence_from={evidence_from}"] if evidence_from else []
    bench = open_workbench((*wanted, *assignments))
    collection = bench.collection(corpus) if corpus else None
    tools = tools_for(verifier, decomposer)
    watch = progress()

    def work(record: AnswerRecord) -> list[dict[str, Any]]:
        question = check_question(record.question)
        if not record.answer.strip():
            raise RecordError("The record has no answer. Give the text to check as `answer`.")
        given = AuditRecord(question=question, passages=record.passages).as_passages()
        sources = Sources(embedder=bench.embedder, case=given, collection=collection)
        found = check_answer(question, record.answer, sources, tools, bench.settings.verification, watch)
        return [{"id": record.id, **summary(found), **found.to_dict()}]

    run_records(file, AnswerRecord, work)


def tools_for(verifier: str, decomposer: str = "rules") -> Tools:
    """Who decides: `lm:MODEL` judges, edits and expands by prompt; the measures stay with the embedded verifier."""
    writer = language_model(verifier)
    splitter = None if decomposer == "rules" else load_writer(decomposer)
    entailment = load_entailment(EMBEDDED if writer else verifier)
    return Tools(verifier=entailment, decomposer=splitter, judge=writer, editor=writer, expander=writer)


def summary(record: AreRecord) -> dict[str, Any]:
    """The measures after editing at the top of a line, and how many facts came to what."""
    outcomes: dict[str, int] = {}
    for fact in record.facts:
        outcomes[fact.outcome] = outcomes.get(fact.outcome, 0) + 1
    after = record.report.after if record.report else None
    return {
        "attr_r": after.attr_r if after else None,
        "attr_p": after.attr_p if after else None,
        "pres": after.pres if after else None,
        "outcomes": outcomes,
    }


COMMANDS = (check, decompose_command, edit, facts)
