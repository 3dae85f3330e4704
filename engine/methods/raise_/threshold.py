"""T, the similarity under which RAISE drops a retrieved passage (RAISE, appendix B.3).

T is an inner product of normalised vectors and belongs to an embedder. DPR: 0.84, 0.80 for easier sets, as published.
Any other, ours: the 2nd percentile of cos(question, gold passage) over labelled pairs, so that 98 of 100 gold passages
would stay if the question were searched; about 0.40 for all-MiniLM-L6-v2 on public pairs. Under DPR's T that embedder
would lose 94% of its gold passages. A calibration on labelled pairs of a corpus is kept with all its similarities.
"""

from __future__ import annotations

from collections.abc import Collection as Ids
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import msgspec
import numpy as np

from engine.core.errors import RecordError
from engine.core.files import home, replace_file
from engine.core.progress import Watch
from engine.core.values import Document, Passage, Value, decoded
from engine.corpus.collection import Collection, embedding_text
from engine.corpus.store import Snapshot, storage
from engine.corpus.worlds import World, WorldQuestion, load_world
from engine.methods.raise_.values import Solution
from engine.models.embedder import embed_passages
from engine.models.protocols import Embedder

PERCENTILE = 2.0
FEWEST = 20  # pairs; of fewer the 2nd percentile is hardly more than the smallest value
DPR, DPR_EASIER = 0.84, 0.80
PUBLIC_PAIRS = "ours, about the 2nd percentile of cos(question, gold passage) on public labelled pairs"


class Threshold(Value, frozen=True):
    """T of an embedder and where it comes from; `similarities` are the cosines of the labelled pairs, if it has any."""

    embedder: str
    value: float
    source: str
    similarities: tuple[float, ...] = ()


class LabelledQuote(Value, frozen=True, forbid_unknown_fields=False):
    """Words of a gold passage; the document's id where they stand in several."""

    quote: str
    document: str = ""


class LabelledStep(Value, frozen=True, forbid_unknown_fields=False):
    """A sub-question with its gold."""

    question: str
    gold: tuple[str | LabelledQuote, ...]


class LabelledQuestion(Value, frozen=True, forbid_unknown_fields=False):
    """A question with its gold; where it has labelled steps their pairs are used instead of its own."""

    question: str
    gold: tuple[str | LabelledQuote, ...] = ()
    steps: tuple[LabelledStep, ...] = ()
    id: str = ""


Pair = tuple[str, Passage]


def published(embedder: str, easier: bool = False) -> Threshold | None:
    """The T that is known for an embedder without any labelled pair; None for one that has to be calibrated."""
    if "dpr-" in embedder.casefold():
        return Threshold(embedder=embedder, value=DPR_EASIER if easier else DPR, source="RAISE, appendix B.3")
    if embedder.casefold().endswith("all-minilm-l6-v2"):
        return Threshold(embedder=embedder, value=0.40, source=PUBLIC_PAIRS)
    return None


def threshold_for(embedder: str) -> Threshold:
    """The T of an embedder: as calibrated by the user, else as published; raise `RecordError` with the way out."""
    found = calibrations().get(embedder) or published(embedder)
    if found is None:
        raise RecordError(
            f"No T is known for the embedder {embedder}. Run calibrate-threshold on labelled questions of a corpus, or"
            " give one with --set reasoning.threshold=VALUE."
        )
    return found


def calibrate(embedder: Embedder, pairs: Sequence[Pair], source: str, watch: Watch | None = None) -> Threshold:
    """T from labelled pairs (question, gold passage); raise `RecordError` for fewer than `FEWEST`."""
    if len(pairs) < FEWEST:
        raise RecordError(
            f"There are {len(pairs)} labelled pairs of question and gold passage; a 2nd percentile needs {FEWEST}."
            " Label more, or set T by hand."
        )
    questions = embedder.embed([question for question, _ in pairs], watch)
    gold = embed_passages(embedder, [embedding_text(passage) for _, passage in pairs], watch)
    cosines = np.einsum("ij,ij->i", questions, gold)
    return Threshold(
        embedder=embedder.name,
        value=float(np.percentile(cosines, PERCENTILE)),
        source=f"ours: 2nd percentile of cos(question, gold passage) on {len(pairs)} labelled pairs of {source}",
        similarities=tuple(float(c) for c in cosines),
    )


def labelled_pairs(records: Iterable[LabelledQuestion], collection: Collection) -> list[Pair]:
    """Every (question, passage) in which a passage of the collection shares a character with the question's gold."""
    snapshot = collection.snapshot()
    pairs: list[Pair] = []
    for record in records:
        labelled = record.steps or (LabelledStep(question=record.question, gold=record.gold),)
        for step in labelled:
            found = {p.id: p for gold in step.gold for p in gold_passages(gold, snapshot)}
            pairs.extend((step.question, passage) for passage in found.values())
    return pairs


def gold_passages(gold: str | LabelledQuote, snapshot: Snapshot) -> list[Passage]:
    """The passages that hold a quote, whole or in part; raise `RecordError` where no document holds it."""
    label = LabelledQuote(quote=gold) if isinstance(gold, str) else gold
    named = snapshot.documents.get(label.document)
    documents: Iterable[Document] = [named] if named else snapshot.documents.values()
    for document in documents:
        start = document.text.find(label.quote) if label.quote.strip() else -1
        if start >= 0:
            end = start + len(label.quote)
            return [p for p in snapshot.passages if p.document == document.id and p.start < end and start < p.end]
    raise RecordError(f"No document of the collection holds the gold {label.quote[:80]!r}. Mend the label.")


# Kept in the data folder


def calibrations() -> dict[str, Threshold]:
    """The calibrated thresholds by embedder."""
    try:
        return decoded(_file().read_bytes(), dict[str, Threshold])
    except FileNotFoundError:
        return {}
    except msgspec.MsgspecError as error:
        raise RecordError(f"{_file()} is damaged ({error}). Delete it and calibrate again.") from error


def keep(threshold: Threshold) -> None:
    """Make it the embedder's T from now on; the file is replaced whole."""
    known = {**calibrations(), threshold.embedder: threshold}
    with storage("the thresholds"):
        replace_file(_file(), msgspec.json.encode(known))


def _file() -> Path:
    return home() / "thresholds.json"


# What a run found of the gold: before T (every hit) and after it (what the model was given), over all its steps.

PRIMER = "science-primer"


def retrieved(solution: Solution) -> frozenset[str]:
    """Ids of all passages that the searches brought."""
    return frozenset(hit.passage.id for step in solution.steps if step.search for hit in step.search.hits)


def read(solution: Solution) -> frozenset[str]:
    """Ids of the passages that reached a prompt."""
    return frozenset(hit.passage.id for step in solution.steps for hit in step.kept)


def recall(found: Ids[str], gold: Ids[str]) -> float:
    """Share of the gold passages that were found, 0 to 1; 1 without any gold.

    >>> recall({"a", "b"}, {"b", "c"})
    0.5
    """
    return len(set(found) & set(gold)) / len(set(gold)) if gold else 1.0


@cache
def primer() -> World:
    """The sample world whose questions need several steps."""
    return load_world(PRIMER)


def primer_question(text: str) -> WorldQuestion | None:
    """The sample question with that wording."""
    return next((question for question in primer().questions if question.question == text), None)


def primer_gold(text: str, passages: Sequence[Passage]) -> frozenset[str]:
    """Ids of those of `passages` that hold the gold of a sample question; empty for any other question."""
    question = primer_question(text)
    return frozenset(p.id for p in primer().gold_passages(question, passages)) if question else frozenset()
