"""ask, audit."""

from __future__ import annotations

from typing import BinaryIO

import click

from engine.answer.in_documents import doubted, nothing_said, probably_answered, unknown
from engine.cases.importers import read_records
from engine.commands import shared
from engine.core.files import EMBEDDED
from engine.core.values import AuditRecord, Case
from engine.workbench import METHODS, Workbench


@shared.main.command()
@click.argument("question")
@shared.corpus_option
@shared.document_option
@click.option("--method", type=click.Choice(METHODS), default=METHODS[0], show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print the whole case as JSON.")
@shared.model_option
@shared.with_workbench
def ask(
    question: str, corpus: str, documents: tuple[str, ...], method: str, as_json: bool, model: str, bench: Workbench
) -> None:
    """Answer a question from a corpus; the library stores the case, unless the model fails before its first word.

    Example: python -m engine ask "How is the crude product recrystallized?" --corpus bench-chemistry
    """
    case = bench.ask(question, corpus, method=method, model=model, documents=documents, watch=shared.progress())
    if as_json:
        shared.emit(case)
    else:
        low = doubted(case, bench.settings.retrieval)
        first = nothing_said(case) or low or unknown(case)
        click.echo(_readable(case, first, "" if low and first == low else probably_answered(case)))


def _readable(case: Case, doubt: str, answered: str) -> str:
    """The answer with its sources, for a terminal; control characters of documents are left out."""
    cited = {citation.number for citation in case.answer.citations if citation.valid}
    sources = [
        f"[{number}] {passage.label} ({passage.document}, characters {passage.start}-{passage.end})"
        for number, passage in enumerate(case.passages, start=1)
        if number in cited
    ]
    lines = [
        *([doubt, ""] if doubt else []),
        case.answer.text,
        "",
        *sources,
        "",
        *([answered] if answered else []),
        f"Written by {case.stamp.model}. Case {case.id}.",
    ]
    return "".join(c for c in "\n".join(lines) if c.isprintable() or c == "\n")


@shared.main.command()
@click.argument("file", type=click.File("rb"))
@click.option("--json", "as_json", is_flag=True, help="Add the support of each sentence of the answer.")
@shared.model_option
@shared.verifier_option
def audit(file: BinaryIO, as_json: bool, model: str, verifier: str) -> None:
    """Add answers from other systems to the library: question, passages, answer.

    FILE is JSON, JSONL or CSV. Exports of other systems are read by their names (docs/review.md). A record may name a
    `corpus`: `analyse CASE facts` then searches it too, and `passages` may be empty.

    With --json each line has `answerable`, the probability that the passages answer the question, and `support`: how
    far they bear out each sentence of the answer, 0 to 1, by `--verifier` and the model that scores, `--model`.

    Example: python -m engine audit answers.jsonl --json
    """
    bench, watch = shared.workbench(), shared.progress()
    if as_json or verifier != EMBEDDED:
        bench.tools.verifier(verifier)  # a model that is none is told now

    def work(identity: str, record: AuditRecord) -> list[shared.Record]:
        case = bench.audit(record, getattr(file, "name", ""))
        line: shared.Record = {"id": identity, "case": case.id}
        if as_json:
            line["answerable"] = case.answerable
            line["support"] = bench.support(case, watch, model=model, verifier=verifier)
        return [line]

    shared.each(read_records(file.read()), work)
