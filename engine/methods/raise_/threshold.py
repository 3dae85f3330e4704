"""T, the similarity under which RAISE drops a retrieved passage (RAISE, appendix B.3).

T is an inner product of normalised vectors of a logical query and a passage, and belongs to an embedder. DPR: 0.84,
0.80 for easier sets, as published. Any other, ours: the largest T that keeps at least 95% of the gold passages which
the logical queries of labelled sub-questions find among their top k. Gold that the search does not find is no T's to
keep: counted in, it takes T so low that nothing is dropped. thresholds.json holds the T of each sample corpus; a
calibration on a user's labelled corpus is kept with all its similarities.
"""

from __future__ import annotations

from collections.abc import Callable, Collection as Ids, Iterable, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from engine.core.errors import RecordError
from engine.core.files import home, read_json, save_json
from engine.core.progress import Watch
from engine.core.settings import Decoding
from engine.core.values import Document, Hit, Passage, Value, decoded
from engine.corpus.collection import Collection
from engine.corpus.store import Snapshot
from engine.corpus.worlds import World, WorldQuestion, load_world
from engine.methods.raise_.steps import search_prompt
from engine.methods.raise_.values import Solution, SubQuestion, similarity
from engine.models.protocols import Writer

FEWEST = 20  # gold passages found; one in so many may lie under T, so that 95% are kept
DPR = 0.84
MINILM = 0.24  # the lowest of the sample corpora's
SHIPPED = Path(__file__).with_name("thresholds.json")
OF_SAMPLES = "calibrated here, the lowest T of the sample corpora (0.24 to 0.38, logical queries by the embedded model)"


class Threshold(Value, frozen=True):
    """T of an embedder, on a corpus if one is named, and where it comes from.

    `similarities` are the cosines of the gold passages that were found; `gold_kept` is the share of them that T keeps,
    `dropped` the share of all retrieved passages that it drops.
    """

    embedder: str
    value: float
    source: str
    corpus: str = ""
    similarities: tuple[float, ...] = ()
    gold_kept: float | None = None
    dropped: float | None = None


class LabelledQuote(Value, frozen=True, forbid_unknown_fields=False):
    """Words of a gold passage; the document's id if several contain them."""

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


def published(embedder: str) -> Threshold | None:
    """The T that is known for an embedder without any labelled pair; None for one that has to be calibrated."""
    if "facebook/dpr-" in embedder.casefold():
        return Threshold(embedder=embedder, value=DPR, source="RAISE, appendix B.3")
    if embedder.casefold().endswith("all-minilm-l6-v2"):
        return Threshold(embedder=embedder, value=MINILM, source=OF_SAMPLES)
    return None


def threshold_for(embedder: str, corpus: str = "") -> Threshold:
    """The T of an embedder on a corpus; raise `RecordError` with the way out.

    As calibrated by the user on that corpus, as shipped for it, as calibrated on another one, as published.
    """
    found = _calibrated(embedder, corpus) or published(embedder)
    if found is None:
        raise RecordError(
            f"T is unknown for the embedder {embedder}. Set Threshold T in the settings of Steps "
            "(--set reasoning.threshold=VALUE), or run calibrate-threshold on labelled questions."
        )
    return found


def gold_similarities(embedder: str, corpus: str) -> tuple[float, ...]:
    """The cosines that the T of a corpus was taken from; none where it was not calibrated."""
    found = _calibrated(embedder, corpus)
    return found.similarities if found else ()


def _calibrated(embedder: str, corpus: str) -> Threshold | None:
    """The T of that very corpus, by the user or as shipped; else the user's last one of the embedder."""
    own, of_corpus = calibrations(), (t for t in shipped() if (t.embedder, t.corpus) == (embedder, corpus))
    return own.get(_key(embedder, corpus)) or next(of_corpus, None) or own.get(embedder)


@cache
def shipped() -> tuple[Threshold, ...]:
    """The thresholds of the sample corpora."""
    return decoded(SHIPPED.read_bytes(), tuple[Threshold, ...])


def logical_query(model: Writer, decoding: Decoding, watch: Watch = Watch()) -> Callable[[str], str]:
    """Writes the logical query of a sub-question, which is also its search query."""

    def write(question: str) -> str:
        prompt = search_prompt("logical query", SubQuestion(question=question, query=question))
        return model.generate(prompt, decoding, None, watch).text.strip() or question

    return write


def calibrate(
    pairs: Sequence[Pair],
    write: Callable[[str], str],
    find: Callable[[str], Sequence[Hit]],
    *,
    embedder: str,
    corpus: str,
    writer: str,
    watch: Watch = Watch(),
) -> Threshold:
    """T from labelled pairs (sub-question, gold passage): what is written for the one is searched, the other kept.

    `find` gives the top k of a text. Raises `RecordError` where fewer than `FEWEST` gold passages are found.
    """
    hits: dict[str, Sequence[Hit]] = {}
    questions = list(dict.fromkeys(question for question, _ in pairs))
    for done, question in enumerate(questions):
        watch.step("logical queries", done, len(questions))
        hits[question] = find(write(question))
    found = [similarity(hit) for question, gold in pairs for hit in hits[question] if hit.passage.id == gold.id]
    if len(found) < FEWEST:
        raise RecordError(
            f"The search finds {len(found)} of the {len(pairs)} labelled gold passages; T needs {FEWEST}. Label more or"
            " set T by hand."
        )
    value = sorted(found)[len(found) // FEWEST]
    everything = [similarity(hit) for retrieved in hits.values() for hit in retrieved]
    kept, dropped = (float(np.mean(part)) for part in (np.array(found) >= value, np.array(everything) < value))
    return Threshold(
        embedder=embedder,
        corpus=corpus,
        value=value,
        source=f"calibrated here. Logical queries by {writer} find {len(found)} of {len(pairs)} labelled gold passages"
        f" in {corpus}; T keeps {kept:.0%} of them and drops {dropped:.0%} of all retrieved passages",
        similarities=tuple(found),
        gold_kept=kept,
        dropped=dropped,
    )


def labelled_pairs(records: Iterable[LabelledQuestion], collection: Collection) -> list[Pair]:
    """Every (question, passage) in which a passage of the collection shares a character with the question's gold."""
    snapshot = collection.snapshot()
    pairs: list[Pair] = []
    for record in records:
        for step in record.steps or (record,):
            found = {p.id: p for gold in step.gold for p in gold_passages(gold, snapshot)}
            pairs.extend((step.question, passage) for passage in found.values())
    return pairs


def gold_passages(gold: str | LabelledQuote, snapshot: Snapshot) -> list[Passage]:
    """The passages that hold a quote, whole or in part; raise `RecordError` where no document holds it."""
    label = LabelledQuote(quote=gold) if isinstance(gold, str) else gold
    named = [snapshot.documents[label.document]] if label.document in snapshot.documents else []
    documents: Iterable[Document] = named if label.document else snapshot.documents.values()
    for document in documents:
        start = document.text.find(label.quote) if label.quote.strip() else -1
        if start >= 0:
            end = start + len(label.quote)
            return [p for _, p in snapshot.rows_of(document.id) if p.start < end and start < p.end]
    raise RecordError(f"No document of the corpus holds the gold {label.quote[:80]!r}. Correct the label.")


def calibrations() -> dict[str, Threshold]:
    """The user's calibrations, by embedder (the last one) and by embedder and corpus."""
    so = ". Delete it and calibrate again."
    found, problem = read_json(_file(), dict[str, Threshold], {}, "The thresholds", so)
    if problem:
        raise RecordError(problem)
    return found


def keep(threshold: Threshold) -> None:
    """Make it the T of its corpus, and of its embedder where a corpus has none; the file is replaced whole."""
    own = {threshold.embedder: threshold, _key(threshold.embedder, threshold.corpus): threshold}
    save_json(_file(), {**calibrations(), **own}, "The thresholds")


def _key(embedder: str, corpus: str) -> str:
    return f"{embedder} on {corpus}"


def _file() -> Path:
    return home() / "thresholds.json"


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
