"""refine, judge, advise."""

from __future__ import annotations

from typing import Any, TextIO

import click
from msgspec.structs import replace

from engine.commands.shared import (
    emit,
    file_argument,
    good_records,
    model_option,
    progress,
    run_records,
    seed_option,
    set_option,
    settings_of,
)
from engine.core.errors import GroundworkError, RecordError
from engine.core.settings import Settings
from engine.core.values import Answer, AuditRecord, GivenPassage, Hit, Value
from engine.methods.judge import Winner, judge_pair, tally
from engine.methods.refinement.advisor import Advice
from engine.methods.refinement.advisor import advise as advise_case
from engine.methods.refinement.conditions import VARIANTS, chosen
from engine.methods.refinement.request import Request, read_by
from engine.methods.refinement.run import refine as run_refinement
from engine.methods.refinement.values import Gate, Refinement
from engine.methods.signals import overlap_words, s3
from engine.models.defaults import AUTO, default_generator
from engine.models.embedder import load_embedder
from engine.models.protocols import Embedder, LanguageModel, Writer
from engine.models.registry import load_writer

ALL = ",".join(VARIANTS)
scorer_option = click.option("--scorer", metavar="MODEL", help="A local model for S2 and gradients, if not the writer.")


def writer_of(model: str) -> Writer:
    """The model that writes: `auto` is the default writer, the embedded model in place of the quoting reader."""
    return load_writer(default_generator() if model == AUTO else model)


def local_scorer(name: str | None) -> LanguageModel | None:
    """The model named with --scorer."""
    return None if name is None else load_writer(name)  # type: ignore[return-value]


@click.command()
@file_argument
@click.option("--variants", default=ALL, show_default=True, metavar="A,B,...", help="The conditions to run.")
@click.option("--gate", type=click.Choice(["own", "always"]), default="own", show_default=True)
@model_option
@scorer_option
@seed_option
@set_option
def refine(
    file: TextIO,
    variants: str,
    gate: Gate,
    model: str,
    scorer: str | None,
    seed: int | None,
    assignments: tuple[str, ...],
) -> None:
    """Run the refinement conditions on every record; a record's answer, where it has one, is A.

    Under --gate own D fires under the 40th percentile of S3 over the file (0.75 for fewer than 20 records).

    Example: python -m engine refine cases.jsonl --variants A,D,E --gate own
    """
    names, settings = chosen(variants), settings_of(assignments, seed)
    writer, scored_by = writer_of(model), local_scorer(scorer)
    lines = list(file)
    history, drafts = baselines(lines, writer, settings, scored_by, gate)

    def work(record: AuditRecord) -> list[dict[str, Any]]:
        request = request_of(record, writer, settings, names, gate, scored_by, history)
        value = run_refinement(request, drafts.get(record.id), watch=progress())
        return [row_of(record.id, value, names)]

    run_records(lines, AuditRecord, work)


def request_of(
    record: AuditRecord,
    writer: Writer,
    settings: Settings,
    names: tuple[str, ...],
    gate: Gate,
    scorer: LanguageModel | None,
    history: tuple[float, ...] = (),
) -> Request:
    """A record as a request; an answer that came with it is A."""
    passages = record.as_passages()
    return Request(
        question=record.question,
        passages=passages,
        writer=writer,
        settings=settings,
        variants=names,
        gate=gate,
        given=Answer(text=record.answer) if record.answer.strip() else None,
        given_by=record.model,
        scorer=scorer,
        history=history,
        read=read_by(writer.name, record.question, passages, settings.retrieval),
    )


def row_of(identity: str, value: Refinement, names: tuple[str, ...]) -> dict[str, Any]:
    """The line of a record: the conditions asked for, the threshold, and what several of them stand on."""
    rows = value.summary()
    return {
        "id": identity,
        "variants": {name: rows[name] for name in names},
        "model": value.stamp.model,
        "scorer": value.scorer,
        "gate": value.gate,
        "threshold": value.threshold.to_dict() if value.threshold else None,
        "missing": {
            **value.signals.missing,
            **({"gradient": value.gradient_missing} if value.gradient_missing else {}),
        },
        "shared": {name: cost.to_dict() for name, cost in value.shared.items()},
        "max_new_tokens": value.decoding.max_new_tokens,
        "notes": [*filter(None, (value.signals.banner, *value.notes))],
    }


def baselines(
    lines: list[str], writer: Writer, settings: Settings, scorer: LanguageModel | None, gate: Gate
) -> tuple[tuple[float, ...], dict[str, Refinement]]:
    """A, B and S3 of every record of a file that is long enough for a percentile; nothing for a shorter one."""
    records = list(good_records(lines))
    if gate == "always" or len(records) < settings.refinement.overlap_cases:
        return (), {}
    drafts: dict[str, Refinement] = {}
    for record in records:
        try:
            request = request_of(record, writer, settings, ("A", "B"), gate, scorer)
            drafts[record.id] = run_refinement(request, watch=progress())
        except GroundworkError:
            continue  # said in this record's place when its turn comes
    found = (value.signals.s3 for value in drafts.values())
    return tuple(value for value in found if value is not None), drafts


class PairRecord(Value, frozen=True, forbid_unknown_fields=False):
    """Two answers to one question with the passages that both were given."""

    question: str
    passages: tuple[str | GivenPassage, ...]
    x: str
    y: str
    id: str = ""


@click.command()
@file_argument
@click.option("--judge", "name", required=True, metavar="MODEL", help="The model that judges.")
def judge(file: TextIO, name: str) -> None:
    """Compare pairs of answers by grounding: blinded, in both orders, counted where the orders agree.

    Example: python -m engine judge pairs.jsonl --judge openai:gpt-4o-mini@http://127.0.0.1:8000/v1
    """
    model = load_writer(name)
    winners: list[Winner] = []

    def work(record: PairRecord) -> list[dict[str, Any]]:
        texts = [given if isinstance(given, str) else given.text for given in record.passages]
        found = judge_pair(model, record.question, texts, record.x, record.y, progress())
        winners.append(found.winner)
        row = {"id": record.id, "winner": found.winner, "orders": found.orders, "raw": found.raw, "judge": model.name}
        return [row]

    run_records(file, PairRecord, work, lambda: emit({"summary": tally(winners).to_dict()}) if winners else None)


@click.command()
@file_argument
def advise(file: TextIO) -> None:
    """Say whether an answer is worth a second pass: noise proxies, one difficulty, the decision tree's branch.

    Example: python -m engine advise cases.jsonl
    """
    embedder = load_embedder()

    def work(record: AuditRecord) -> list[dict[str, Any]]:
        found = advice_for(record, embedder)
        proxies = {proxy.name: proxy.to_dict() for proxy in found.proxies}
        return [{"id": record.id, **found.to_dict(), "proxies": proxies}]

    run_records(file, AuditRecord, work)


def advice_for(record: AuditRecord, embedder: Embedder) -> Advice:
    """Advice on a record; its passages are scored against the question by the embedder, for want of a ranking."""
    passages = record.as_passages()
    if not passages:
        raise RecordError("The record has no passages. Give those that the answer was written from.")
    vectors = embedder.embed([record.question, *(passage.text for passage in passages)])
    scores = vectors[1:] @ vectors[0]
    hits = [Hit(passage=p, score=float(s)) for p, s in zip(passages, scores, strict=True)]
    # Passages of a record have no document of their own: those of one title count as one source.
    passages = tuple(replace(p, document=p.label) for p in passages)
    grounded = s3(overlap_words(record.answer, passages)) if record.answer.strip() else None
    return advise_case(record.question, passages, hits, vectors[1:], grounded)


COMMANDS = (refine, judge, advise)
