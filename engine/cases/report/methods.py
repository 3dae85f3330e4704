"""Definitions and limits of the methods that a case really holds; nothing is defined that was not used."""

from __future__ import annotations

from engine.cases.report.attribution import attributions_of
from engine.cases.report.blocks import Block, Facts, plain
from engine.types import Case

DEFINITIONS: dict[str, tuple[str, str]] = {
    "passage": (
        "Passage",
        "A frozen span of a document: document, character start and end, text. Passage N is the one that the answer"
        " cites as N; it keeps its number in every analysis.",
    ),
    "citation": (
        "Citation",
        "A marker in the answer, found by its position. A citation of a passage that was not given is kept and"
        " marked invalid. That a passage is cited does not say that the writer used it.",
    ),
    "retrieval": (
        "Retrieval score",
        "dense: cosine of the embeddings of question and passage, -1 to 1. bm25: the lexical score, 0 and up. The"
        " hybrid score adds a share of the second to the first. A score ranks passages; it is no probability.",
    ),
    "rerank": (
        "Re-ranking score",
        "The re-ranker's score of the question with the full text of a chunk set (retrieved neighbours of one"
        " document joined). The scale is the re-ranker's own.",
    ),
    "reading": (
        "Quoting reader",
        "No language model: every sentence of the passages is scored against the question and the best are quoted"
        " word for word. It has no probabilities, so no likelihood-based attribution of its own is possible.",
    ),
    "occlusion": (
        "Occlusion",
        "log p(answer | all sources) - log p(answer | all but one), in nats, of the named model. Positive: the source"
        " makes this answer more likely. Two copies of the same evidence hide each other: both score near 0."
        " It says how likely this answer is without a source, not what the model would write instead.",
    ),
    "gradient": (
        "Input x gradient",
        "For each input token the sum over the embedding of value times gradient of the target; summed over a"
        " passage. A first-order estimate at one point: it can be large where removing the passage changes little.",
    ),
    "attribution": (
        "Attribution",
        "A signed score of each source for a span of the answer, by the method and model that are named; positive:"
        " the source makes the answer more likely to that model.",
    ),
    "markers": (
        "Citation markers left out",
        "The tokens of citation markers are left out of every score: removing passage 3 makes the 3 of a marker"
        " unlikely whatever its content did.",
    ),
    "numerical": (
        "Numerical floor",
        "The largest difference between the same row scored alone and in a batch. An effect at or under it is"
        " rounding.",
    ),
    "placebo": (
        "Placebo floor",
        "The largest change when a passage of another document is inserted at a seeded random place. An effect at or"
        " under it is no larger than that of an unrelated passage.",
    ),
    "regeneration": (
        "Occlusion by regeneration",
        "alpha = 1 - similarity of the answer and the answer written again without a source, for six metrics. The"
        " metrics are correlated: three that agree are not three witnesses. An alpha at or under its floor shows"
        " nothing.",
    ),
    "labels": (
        "Imported labels",
        "Labels of spans, relevance and citations that came with the file. They are shown as they were given.",
    ),
    "review": (
        "Review marks",
        "A person's notes, labels, overrides and status, each with name and time. An override stands beside the"
        " machine's verdict and replaces nothing.",
    ),
    "hashes": (
        "Hashes",
        "SHA-256 of each part in canonical JSON (keys sorted, empty parts left out). The head hash is the hash of the"
        " last review entry, which contains the hash of the one before it, and so on.",
    ),
}


def used(case: Case, reviewed: bool) -> list[str]:
    """The definitions that this case needs, in reading order."""
    methods = {a.method.lower() for analysis in case.analyses for a in attributions_of(analysis)}
    kinds = {analysis.kind for analysis in case.analyses}
    found = [a for analysis in case.analyses for a in attributions_of(analysis)]
    needs = {
        "passage": True,
        "citation": bool(case.answer.citations),
        "retrieval": bool(case.hits),
        "rerank": bool(case.chunk_sets),
        "reading": "reading" in kinds,
        "occlusion": any("occlusion" in method for method in methods),
        "gradient": "token map" in kinds or any("gradient" in method for method in methods),
        "attribution": any(not any(n in m for n in ("occlusion", "gradient")) for m in methods),
        "markers": bool(methods),
        "numerical": any(a.numerical_floor is not None for a in found),
        "placebo": any(a.placebo_floor is not None for a in found),
        "regeneration": bool(kinds & {"attr-rag"}),
        "labels": "labels" in kinds,
        "review": reviewed,
        "hashes": True,
    }
    return [name for name, holds in needs.items() if holds]


def methods_blocks(case: Case, reviewed: bool) -> tuple[Block, ...]:
    """The definitions as a list of terms."""
    return (
        plain("What the terms of this report mean, and what they do not say.", "note"),
        Facts(tuple(DEFINITIONS[name] for name in used(case, reviewed))),
    )
