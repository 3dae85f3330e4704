"""facts: an answer checked fact by fact and mended (ARE), or by one of the methods that ARE is compared with."""

from __future__ import annotations

from collections import Counter
from typing import TextIO

import click
from msgspec.structs import replace

from engine.analyses.facts import KIND as FACTS, FactsOptions
from engine.answer.context import check_question
from engine.cases.importers import imported_case
from engine.commands.shared import Record, file_argument, progress, run_records, set_option, workbench as open_workbench
from engine.commands.verify import decomposer_option, verifier_option
from engine.core.errors import RecordError
from engine.core.values import AuditRecord, GivenPassage, Value
from engine.methods.are.baselines import NAMES, NEEDS_MODEL, offered, run_baseline
from engine.methods.are.entropy import entropies
from engine.methods.are.evidence import Sources
from engine.methods.are.questions import ask_questions
from engine.methods.are.tools import load_tools
from engine.methods.are.values import AreRecord
from engine.models.registry import load_writer

ARE = "are"


class AnswerRecord(Value, frozen=True, forbid_unknown_fields=False):
    """A question and an answer to check, with the passages that it was given, if any."""

    question: str
    answer: str
    id: str = ""
    passages: tuple[str | GivenPassage, ...] = ()

    def checked(self) -> AnswerRecord:
        """The record; raise `QuestionError` or `RecordError` without a question or an answer."""
        check_question(self.question)
        if not self.answer.strip():
            raise RecordError("The record has no answer. Give the text to check as `answer`.")
        return self


@click.command()
@file_argument
@click.option("--corpus", default=None, metavar="NAME", help="The collection to look for evidence in.")
@click.option("--evidence-from", type=click.Choice(["case", "corpus", "both"]), default=None, help="Default: both.")
@click.option("--method", type=click.Choice([ARE, *NAMES]), default=ARE, show_default=True, help="ARE or a baseline.")
@verifier_option
@click.option(
    "--judge", default=None, metavar="MODEL", help="Language model for a second verdict; baselines ask with it."
)
@click.option("--entropy", "scorer", default=None, metavar="MODEL", help="ARE: entropy of facts and questions by it.")
@decomposer_option
@set_option
def facts(
    file: TextIO,
    corpus: str | None,
    evidence_from: str | None,
    method: str,
    verifier: str,
    judge: str | None,
    scorer: str | None,
    decomposer: str,
    assignments: tuple[str, ...],
) -> None:
    """Check an answer fact by fact, edit what the evidence contradicts, and report what each clause rests on.

    ARE's ablations: --set verification.edit=false, .atomic=false, .molecular=false, .re_retrieval=false.

    Example: python -m engine facts answers.jsonl --corpus bank-investigation
    """
    if scorer and method != ARE:
        raise click.UsageError(
            f"--entropy measures the facts of {ARE}; {method} does not have any. Leave out one of the two options."
        )
    wanted = [f"verification.evidence_from={evidence_from}"] if evidence_from else []
    bench = open_workbench((*wanted, *assignments))
    collection = bench.collection(corpus) if corpus else None
    tools = load_tools(verifier, decomposer, judge or "", bench.settings.prompting.demonstrations)
    if method not in (ARE, *offered(tools.judge)):
        raise click.UsageError(NEEDS_MODEL.format(method))
    settings, watch = bench.settings.verification, progress()
    options = FactsOptions(verifier=verifier, decomposer=decomposer, judge=judge or "")
    model = load_writer(scorer) if scorer else None

    def work(record: AnswerRecord) -> list[Record]:
        question, answer = record.checked().question, record.answer
        case = imported_case(AuditRecord(question=question, passages=record.passages, answer=answer))
        if method != ARE:
            sources = Sources(embedder=bench.embedder, case=case.passages, collection=collection)
            given = (question, answer, sources, tools.verifier, settings, tools.judge, watch, tools.demonstrations)
            other = run_baseline(method, *given)
            reached = {name: getattr(other.measures, name) for name in ("attr_r", "attr_p", "pres")}
            return [{"id": record.id, "method": method, **reached, **other.to_dict()}]
        (found,) = FACTS.of(bench.examine(replace(case, corpus=corpus), FACTS.name, options, bench.context(watch)))
        extra = {}
        if model is not None:
            questions, _ = ask_questions("yes_no_questions", answer, tools.judge or model, watch, tools.demonstrations)
            measured = entropies([fact.fact.text for fact in found.facts], questions, model, watch)
            extra = {"entropy": {kind: value.to_dict() for kind, value in measured.items()}}
        return [{"id": record.id, "method": method, **summary(found), **extra, **found.to_dict()}]

    run_records(file, AnswerRecord, work)


def summary(record: AreRecord) -> Record:
    """The measures after editing at the top of a line, and how many facts came to what."""
    after = record.report.after if record.report else None
    reached = {name: getattr(after, name) if after else None for name in ("attr_r", "attr_p", "pres")}
    return {**reached, "outcomes": dict(Counter(fact.outcome for fact in record.facts))}


COMMANDS = (facts,)
