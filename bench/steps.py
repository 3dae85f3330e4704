"""RAISE's threshold T: python -m bench.steps [--calibrate] [--write].

Gold recall of the top 10 of each labelled sub-question before and after T: as published, as included for the primer,
and as calibrated on the sub-questions as written. RAISE and its baselines with a model are the study `step-by-step`.
`--calibrate` first takes the T of each sample corpus anew, from logical queries by the embedded model, and stores it
for the engine. Runs in its own data folder; `--write` puts the section into bench/RESULTS.md.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator

import msgspec

from bench.results import arguments, conditions, publish, table
from engine.analyses.steps import finder
from engine.core.settings import Settings
from engine.core.statistics import interval_or_none
from engine.core.values import Passage
from engine.corpus.collection import Collection
from engine.corpus.samples import SAMPLES, Sample
from engine.corpus.worlds import load_world
from engine.methods.raise_.threshold import (
    PRIMER,
    SHIPPED,
    LabelledQuestion,
    Threshold,
    calibrate,
    labelled_pairs,
    logical_query,
    recall,
    shipped,
    threshold_for,
)
from engine.methods.raise_.values import similarity
from engine.models.embedder import load_embedder
from engine.models.registry import load_writer


def collection(sample: Sample) -> Collection:
    """The corpus, ingested as on a first start."""
    made = Collection.create(sample.name, load_embedder())
    made.ingest(sample.documents)
    return made


def labelled(corpus: Collection) -> list[tuple[str, Passage]]:
    """The labelled sub-questions of a sample corpus with their gold passages."""
    questions = load_world(corpus.name).questions
    return labelled_pairs([LabelledQuestion.from_dict(question.to_dict()) for question in questions], corpus)


def calibrated(corpus: Collection) -> Threshold:
    """T from logical queries by the embedded model."""
    writer, settings = load_writer("embedded"), Settings()
    write, find = logical_query(writer, settings.decoding), finder(corpus, settings.reasoning.k)
    own = {"embedder": corpus.embedder.name, "corpus": corpus.name, "writer": "the embedded model"}
    return calibrate(labelled(corpus), write, find, **own)


def mean(values: Iterable[float | None]) -> str:
    """Mean with its 95% interval, or with the count of fewer than ten values; a dash without values."""
    found = [value for value in values if value is not None]
    if not found:
        return "-"
    interval = interval_or_none(found)
    told = f"({len(found)} only)" if interval is None else f"[{interval.low:.2f}, {interval.high:.2f}]"
    return f"{sum(found) / len(found):.2f} {told}"


def thresholds(corpus: Collection) -> Iterator[str]:
    """Gold recall of labelled sub-questions before and after T, for T as published and as recalibrated."""
    pairs = labelled(corpus)
    find, passages = finder(corpus, Settings().reasoning.k), corpus.snapshot().passages
    own = calibrate(pairs, str, find, embedder=corpus.embedder.name, corpus=PRIMER, writer="nobody")
    built_in = threshold_for(corpus.embedder.name, PRIMER).value
    gold: dict[str, set[str]] = {}
    for question, passage in pairs:
        gold.setdefault(question, set()).add(passage.id)
    hits = {question: find(question) for question in gold}
    yield (
        f"{len(passages)} passages, {len(gold)} labelled sub-questions, top {Settings().reasoning.k} of each,"
        f" searched as written with {corpus.embedder.name}.\n"
    )
    rows = []
    for name, limit in (
        (f"{built_in:.2f}, shipped for the primer", built_in),
        (f"{own.value:.2f}, calibrated with the sub-questions as written", own.value),
        ("0.84, DPR's", 0.84),
    ):
        kept = {q: [h.passage.id for h in found if similarity(h) >= limit] for q, found in hits.items()}
        before = mean(recall([h.passage.id for h in hits[q]], gold[q]) for q in gold)
        after = mean(recall(kept[q], gold[q]) for q in gold)
        rows.append((name, before, after, mean(float(len(kept[q])) for q in gold)))
    yield from table("T | gold recall before T | after T | passages kept of 10", rows, " --- ")


def main() -> None:
    """Measure, print, and save with --write."""
    given = arguments(__doc__, calibrate=(False, "take the T of each sample corpus anew"))
    with tempfile.TemporaryDirectory() as folder:
        os.environ["GROUNDWORK_HOME"] = folder
        corpora = {sample.name: collection(sample) for sample in SAMPLES}
        if given.calibrate:
            SHIPPED.write_bytes(
                msgspec.json.format(msgspec.json.encode([calibrated(c) for c in corpora.values()]), indent=1)
            )
            shipped.cache_clear()
        publish(given, "steps", "T on the science primer", conditions(), thresholds(corpora[PRIMER]))


if __name__ == "__main__":
    main()
