"""facts: an answer checked fact by fact and mended (ARE), or by one of the methods that ARE is compared with."""

from __future__ import annotations

from collections import Counter
from typing import TextIO

import click
from msgspec.structs import replace

from engine.analyses.claims import ENTROPY, PEERS, EntropyOptions, PeerOptions
from engine.analyses.facts import KIND as FACTS, FactsOptions
from engine.answer.context import check_question
from engine.cases.importers import imported_case
from engine.commands.shared import Record, file_argument, progress, run_records, set_option, workbench
from engine.commands.verify import decomposer_option, verifier_option
from engine.core.errors import RecordError
from engine.core.values import AuditRecord, GivenPassage, Value
from engine.methods.are.baselines import NAMES, NEEDS_MODEL, offered
from engine.methods.are.tools import LANGUAGE_MODEL, load_tools
from engine.methods.are.values import AreRecord

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
@click.option("--corpus", default=None, metavar="NAME", help="The collection to search for evidence.")
@click.option("--evidence-from", type=click.Choice(["case", "corpus", "both"]), default=None, help="Default: both.")
@click.option("--method", type=click.Choice([ARE, *NAMES]), default=ARE, show_default=True, help="ARE or a baseline.")
@verifier_option
@click.option("--judge", default=None, metavar="MODEL", help="Model for a second verdict; baselines ask with it.")
@click.option("--entropy", "scorer", default=None, metavar="MODEL", help="ARE: entropy of facts and questions.")
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
    """Check an answer fact by fact, edit what the evidence contradicts, and report the evidence of each clause.

    ARE's ablations: --set verification.edit=false, .atomic=false, .molecular=false, .re_retrieval=false.

    Example: python -m engine facts answers.jsonl --corpus bank-investigation
    """
    if scorer and method != ARE:
        raise click.UsageError(
            f"--entropy measures the facts of {ARE}; {method} does not have any. Leave out one of the two options."
        )
    wanted = [f"verification.evidence_from={evidence_from}"] if evidence_from else []
    bench = workbench((*wanted, *assignments))
    if corpus:
        bench.collection(corpus)  # one that is none is told now
    context = bench.context(progress())
    options = FactsOptions(verifier=verifier, decomposer=decomposer, judge=judge or "")
    asks = judge or (verifier.removeprefix(LANGUAGE_MODEL) if verifier.startswith(LANGUAGE_MODEL) else "")
    if method not in (ARE, *offered(asks)):
        raise click.UsageError(NEEDS_MODEL.format(method))
    load_tools(verifier, decomposer, judge or "")  # a model that is none is told now
    peers = PeerOptions(methods=(method,), verifier=verifier, judge=judge or "")

    def work(record: AnswerRecord) -> list[Record]:
        question, answer = record.checked().question, record.answer
        case = imported_case(AuditRecord(question=question, passages=record.passages, answer=answer))
        case = replace(case, corpus=corpus)
        if method != ARE:
            (other,) = PEERS.of(bench.examine(case, PEERS.name, peers, context))[-1].runs
            reached = {name: getattr(other.measures, name) for name in ("attr_r", "attr_p", "pres")}
            return [{"id": record.id, "method": method, **reached, **other.to_dict()}]
        case = bench.examine(case, FACTS.name, options, context)
        (found,), extra = FACTS.of(case), {}
        if scorer:
            case = bench.examine(case, ENTROPY.name, EntropyOptions(model=scorer, judge=asks), context)
            extra = {"entropy": ENTROPY.of(case)[-1].to_dict()["found"]}
        return [{"id": record.id, "method": method, **summary(found), **extra, **found.to_dict()}]

    run_records(file, AnswerRecord, work)


def summary(record: AreRecord) -> Record:
    """The measures after editing at the top of a line, and how many facts came to what."""
    after = record.report.after if record.report else None
    reached = {name: getattr(after, name) if after else None for name in ("attr_r", "attr_p", "pres")}
    return {**reached, "outcomes": dict(Counter(fact.outcome for fact in record.facts))}


COMMANDS = (facts,)
