"""refine, judge, advise."""

from __future__ import annotations

import contextlib
from dataclasses import replace as replace_context
from typing import TextIO

import click
from msgspec.structs import replace

from engine.analyses.kind import RunContext
from engine.analyses.refinement import KIND as REFINEMENT, RefinementOptions
from engine.analyses.said import PAIR, JudgeOptions
from engine.answer.context import check_question
from engine.cases.importers import imported_case
from engine.commands import shared
from engine.core.errors import GroundworkError, RecordError
from engine.core.values import AuditRecord, Case, GivenPassage, Value
from engine.methods.judge import PairJudgement, tally
from engine.methods.refinement.advisor import Advice
from engine.methods.refinement.conditions import VARIANTS, chosen
from engine.methods.refinement.values import Gate, Refinement
from engine.methods.signals import overlap_words, s3
from engine.models.embedder import load_embedder
from engine.models.protocols import Embedder
from engine.studies.on_case import advice_on
from engine.workbench import Workbench

ALL = ",".join(VARIANTS)
scorer_option = click.option("--scorer", metavar="MODEL", help="A local model for S2 and gradients, if not the writer.")


@shared.main.command()
@shared.file_argument
@click.option("--variants", default=ALL, show_default=True, metavar="A,B,...", help="The conditions to run.")
@click.option("--gate", type=click.Choice(["own", "always"]), default="own", show_default=True)
@shared.model_option
@scorer_option
@shared.with_workbench
def refine(file: TextIO, variants: str, gate: Gate, model: str, scorer: str | None, bench: Workbench) -> None:
    """Run the refinement conditions on every record; a record's answer, if any, is A.

    With --gate own, D fires below the 40th percentile of S3 over the file (0.75 for fewer than 20 records).

    Example: python -m engine refine cases.jsonl --variants A,D,E --gate own
    """
    names, lines = chosen(variants), list(file)
    bench.tools.generator(model)  # a model that is none is told now
    if scorer:
        bench.tools.scorer(scorer)
    options = RefinementOptions(model=model, variants=names, gate=gate, scorer=scorer or "", verifier="")
    context = replace_context(bench.context(shared.progress()), cases=None)

    def refined(case: Case, options: RefinementOptions, context: RunContext) -> Case:
        own = replace(options, use_answer=bool(case.answer.text.strip()))
        return bench.examine(case, REFINEMENT.name, own, context)

    # By the record itself: an id may come twice in a file. Equal records have equal drafts.
    drafts: dict[AuditRecord, Case] = {}
    records = list(shared.good_records(lines))
    for record in records if len(records) >= bench.settings.refinement.overlap_cases else ():
        with contextlib.suppress(GroundworkError):  # said in this record's place when its turn comes
            drafts[record] = refined(imported_case(record), replace(options, variants=("A", "B")), context)
    written = (drafts[record] for record in records if record in drafts)
    overlaps = (REFINEMENT.of(case)[-1].refinement.signals.s3 for case in written)
    beside = replace_context(context, overlaps=tuple(value for value in overlaps if value is not None))

    def work(record: AuditRecord) -> list[shared.Record]:
        case = refined(drafts.get(record) or imported_case(record), options, beside)
        return [row_of(record.id, REFINEMENT.of(case)[-1].refinement, names)]

    shared.run_records(lines, AuditRecord, work)


def row_of(identity: str, value: Refinement, names: tuple[str, ...]) -> shared.Record:
    """The line of a record: the requested conditions, the threshold, and their common parts."""
    rows = value.summary()
    return {
        "id": identity,
        "variants": {name: rows[name] for name in names},
        "model": value.stamp.model,
        "scorer": value.scorer,
        "gate": value.gate,
        "threshold": value.threshold,
        "missing": value.missing,
        "shared": value.shared,
        "max_new_tokens": value.decoding.max_new_tokens,
        "notes": [*filter(None, (value.signals.banner, *value.notes))],
    }


class PairRecord(Value, frozen=True, forbid_unknown_fields=False):
    """Two answers to one question with the passages that both were given."""

    question: str
    passages: tuple[str | GivenPassage, ...]
    x: str
    y: str
    id: str = ""

    def checked(self) -> PairRecord:
        """The record itself; raise `RecordError` without passages to judge by, or where an answer is empty."""
        if not self.passages:
            raise RecordError("The record has no passages to judge the answers by.")
        for name, answer in (("x", self.x), ("y", self.y)):
            if not answer.strip():
                raise RecordError(f"The answer {name} is empty. Give two answers to compare as `x` and `y`.")
        return self


@shared.main.command()
@shared.file_argument
@click.option("--judge", "name", required=True, metavar="MODEL", help="Model that judges.")
def judge(file: TextIO, name: str) -> None:
    """Compare pairs of answers by grounding: blinded, in both orders, counted if the orders agree.

    Example: python -m engine judge pairs.jsonl --judge openai:gpt-4o-mini@http://127.0.0.1:8000/v1
    """
    bench, judged = shared.workbench(), list[PairJudgement]()
    context, model = bench.context(shared.progress()), bench.tools.writer(name).name  # a model that is none is told now
    names = JudgeOptions(judge=name, x="x", y="y")

    def work(record: PairRecord) -> list[shared.Record]:
        record = record.checked()
        case = imported_case(AuditRecord(question=record.question, passages=record.passages, answer=record.x))
        options = replace(names, answers=(record.x, record.y))
        found = PAIR.of(bench.examine(case, PAIR.name, options, context))[-1].judgement
        judged.append(found)
        said = {"winner": found.winner, "orders": found.orders, "preferred": found.preferred, "raw": found.raw}
        return [{"id": record.id, **said, "judge": model}]

    shared.run_records(file, PairRecord, work, lambda: shared.emit({"summary": tally(judged)}) if judged else None)


@shared.main.command()
@shared.file_argument
def advise(file: TextIO) -> None:
    """Advise whether an answer is worth a second pass: signs of noise, a difficulty, the decision tree's branch.

    Example: python -m engine advise cases.jsonl
    """
    embedder = load_embedder()

    def work(record: AuditRecord) -> list[shared.Record]:
        found = advice_for(record, embedder)
        return [{"id": record.id, **found.to_dict(), "proxies": {proxy.name: proxy for proxy in found.proxies}}]

    shared.run_records(file, AuditRecord, work)


def advice_for(record: AuditRecord, embedder: Embedder) -> Advice:
    """Advice on a record; the embedder scores its passages against the question, because it has no ranking."""
    question = check_question(record.question)
    # Passages of a record have no document of their own: those of one title count as one source.
    passages = tuple(replace(passage, document=passage.label) for passage in record.as_passages())
    if not passages:
        raise RecordError("The record has no passages. Give the passages that the answer was written from.")
    grounded = s3(overlap_words(record.answer, passages)) if record.answer.strip() else None
    return advice_on(question, passages, s3=grounded, embedder=embedder)
