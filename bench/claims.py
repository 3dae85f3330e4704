"""Check claims against the passages found for them: python -m bench.claims --data DIR [--claims N] [--write].

Public claims whose label is known, each with the passages of its set that are most like it, checked as a fact is
(embedded verifier, guards on, edits on, three rounds). CLAP NQ: answer sentences, as they are and changed by code.
FoolMeTwice: held-out pages. COVID-Fact; CLIMATE-FEVER: claims with sentences for or against them, not both. Macro-F1 of
three rules for the passage that decides in the first round, and of the outcome after all. Drawn with a fixed seed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from random import Random

import numpy as np

from bench.results import DATA, arguments, conditions, publish, table
from bench.verifier import interval
from engine.core.settings import Verification
from engine.core.text import titled
from engine.core.values import Document, Passage
from engine.corpus.chunking import passages
from engine.methods.are.are import check_answer, deciding
from engine.methods.are.evidence import Sources
from engine.methods.are.tools import Task, Tools
from engine.methods.are.values import Check, Evidence, FactRecord, Outcome
from engine.models.alignment import clean
from engine.models.calibration import Ints, macro_f1
from engine.models.embedder import embed_passages, load_embedder
from engine.models.protocols import Embedder, Entailment
from engine.models.verdicts import CLASSES
from engine.models.verifier import load_entailment
from training.verifier_data import EDITING, IRRELEVANT, SUPPORTIVE, held_out_page, label_of, read
from training.verifier_held_out import domain_shift

FOUND = 30  # passages among which ten are considered in each round
WHOLE = Verification(evidence_from="case", atomic=False, molecular=False)  # a claim is one fact
OUTCOMES: dict[Outcome, int] = {"supported": SUPPORTIVE, "edited": EDITING, "contradicted": EDITING}
Claims = list[tuple[str, int]]
HEADS = (
    "set | claims | surest | supportive first | first | outcome | called supportive: right | called contradicted: right"
    " | seconds"
)
TOLD = (
    "Claims of public sets, each checked against the passages of its set that are most like it, three in each round. "
    "*Surest*: the verdict decides whose probability times the relevance of its passage is the largest, one that a "
    "guard lowered last, as in the app. *Supportive first*: any supportive passage decides. *First*: the most relevant "
    "passage alone. These three after one round; *outcome* is that of the app, after up to three. Share right: of the "
    "claims whose outcome is supported, and contradicted (edited or not). Where no passage speaks, the claim counts as "
    "missed. Seconds: of one processor for a claim. Brackets: 95%, claims drawn anew 1,000 times."
)


def pages(texts: Iterable[tuple[str, str]]) -> list[Passage]:
    """The passages of (title, text) pages, as the app cuts them."""
    given = dict.fromkeys((clean(title), clean(text)) for title, text in texts)
    cut = [passages(Document(str(n), title, text, "", "text/plain")) for n, (title, text) in enumerate(given)]
    return [passage for one in cut for passage in one]


def clap_nq(folder: Path) -> tuple[list[Passage], Claims]:
    """Answer sentences that people wrote, as they are and with one change."""
    rows = read(folder, "clapnq/qa.jsonl")
    claims = [(claim, label) for claim, _, label in domain_shift(folder) if label != IRRELEVANT]
    return pages((r["title"], r["passage"]) for r in rows), claims


def fool_me_twice(folder: Path) -> tuple[list[Passage], Claims]:
    """Claims about held-out pages; a page is what a search brought and the evidence."""
    rows = [r for r in read(folder, "fool_me_twice/verify.jsonl") if held_out_page(r["page"])]
    texts = [(r["page"], " ".join(dict.fromkeys([*r["retrieved"], *r["evidence"]]))) for r in rows]
    return pages(texts), [(clean(r["claim"]), label_of(r)) for r in rows]


def covid_fact(folder: Path) -> tuple[list[Passage], Claims]:
    """Claims about COVID-19 and their changed forms."""
    rows = read(folder, "covidfact/verify.jsonl")
    return pages(("", r["evidence"]) for r in rows), [(clean(r["claim"]), label_of(r)) for r in rows]


def climate_fever(folder: Path) -> tuple[list[Passage], Claims]:
    """Claims that some of their five sentences support, or contradict, but not both."""
    rows = read(folder, "climate_fever/verify.jsonl")
    labels: dict[str, set[int]] = {}
    for row in rows:
        labels.setdefault(clean(row["claim"]), set()).add(label_of(row))
    spoken = [(claim, found - {IRRELEVANT}) for claim, found in labels.items()]
    return pages((r["title"], r["evidence"]) for r in rows), [(c, *found) for c, found in spoken if len(found) == 1]


SETS: dict[str, Callable[[Path], tuple[list[Passage], Claims]]] = {
    "CLAP NQ, made": clap_nq,
    "FoolMeTwice held-out pages": fool_me_twice,
    "COVID-Fact": covid_fact,
    "CLIMATE-FEVER": climate_fever,
}


def checked(
    claims: Claims, given: Sequence[Passage], embedder: Embedder, verifier: Entailment
) -> list[FactRecord | None]:
    """The record of each claim against the passages most like it; None of a claim that reads as a refusal."""
    vectors = embed_passages(embedder, [titled(one.title, one.text) for one in given])
    found: list[FactRecord | None] = []
    for claim, query in zip(claims, embedder.embed([claim for claim, _ in claims]), strict=True):
        near = tuple(given[i] for i in np.argsort(-(vectors @ query))[:FOUND])
        record = check_answer(Task("", claim[0], Sources(embedder, near), Tools(verifier), WHOLE))
        found.append(next(iter(record.facts), None))
    return found


def surest(checks: Sequence[Check], considered: Sequence[Evidence]) -> int:
    """The class by the app's rule."""
    place = deciding(checks, considered)
    return IRRELEVANT if place is None else _class(checks[place])


def supportive_first(checks: Sequence[Check], _: Sequence[Evidence]) -> int:
    """Supportive where any passage is, else editing required where any is."""
    return min(map(_class, checks), default=IRRELEVANT)


def first(checks: Sequence[Check], _: Sequence[Evidence]) -> int:
    """The class of the most relevant passage."""
    return _class(checks[0]) if checks else IRRELEVANT


def _class(check: Check) -> int:
    return CLASSES.index(check.ruling.verdict)  # type: ignore[arg-type]


def row(name: str, labels: Ints, found: Sequence[FactRecord | None], seconds: float) -> list[str]:
    """The cells of a set; `seconds` of one processor for all claims."""
    once = [(one.iterations[0].checks, one.iterations[0].considered) if one else ((), ()) for one in found]
    called = [np.array([rule(*one) for one in once]) for rule in (surest, supportive_first, first)]
    called.append(np.array([OUTCOMES.get(one.outcome, IRRELEVANT) if one else IRRELEVANT for one in found]))
    right = [labels[called[-1] == kind] == kind for kind in (SUPPORTIVE, EDITING)]
    shares = [f"{some.mean():.2f} of {len(some)}" if len(some) else "-" for some in right]
    scores = [f"{macro_f1(labels, some):.3f}" for some in called]
    low, high = interval(labels, called[-1])
    scores[-1] += f" ({low:.3f} to {high:.3f})"
    return [name, str(len(labels)), *scores, *shares, f"{seconds / len(labels):.2f}"]


def rows(folder: Path, most: int) -> Iterator[list[str]]:
    """The rows of the table, with `most` claims of each set."""
    embedder, verifier = load_embedder(), load_entailment()
    for name, make in SETS.items():
        given, claims = make(folder)
        drawn = Random(11).sample(claims, min(most, len(claims)))
        start = time.process_time()
        found = checked(drawn, given, embedder, verifier)
        yield row(name, np.array([label for _, label in drawn]), found, time.process_time() - start)


def main() -> None:
    """Print each row; with --write, store the section."""
    asked = arguments(__doc__, data=DATA, claims=(250, "of each set, at most"))
    lines = table(HEADS, rows(asked.data, asked.claims))
    publish(asked, "claims", "Claims against several passages", f"{TOLD}\n\n{conditions()}", lines)


if __name__ == "__main__":
    main()
