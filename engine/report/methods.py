"""Definitions and limits of the methods used in a case, and of no others."""

from __future__ import annotations

from engine.analyses.attribution import attributions_of
from engine.analyses.registry import find
from engine.cases.blocks import Block, Facts, Section, Table, cells, plain
from engine.core.values import Case
from engine.models.self_test import remembered

DEFINITIONS: dict[str, tuple[str, str]] = {
    "passage": (
        "Passage",
        "A frozen span of a document: document, first and last character, text. The answer cites passage N as N, "
        "and every analysis uses the same number.",
    ),
    "citation": (
        "Citation",
        "A marker in the answer, located by its position. A citation of a passage that does not exist is kept and "
        "marked invalid. A citation does not show that the writer used the passage.",
    ),
    "retrieval": (
        "Retrieval score",
        "dense: cosine of the embeddings of question and passage, -1 to 1. bm25: lexical score, from 0 up. hybrid: "
        "the dense score plus a share of bm25. A score ranks passages; it is not a probability.",
    ),
    "rerank": (
        "Re-ranking score",
        "The re-ranker's score of the question with the full text of a chunk set (neighbouring retrieved passages "
        "of one document, joined). Each re-ranker has its own scale.",
    ),
    "reading": (
        "Quoting reader",
        "No language model. The reader scores every sentence of the passages against the question and quotes the "
        "best ones word for word. It has no probabilities, so another model must score the attribution.",
    ),
    "occlusion": (
        "Occlusion",
        "log p(answer | all sources) - log p(answer | all but one), in nats, by the named model. Positive: the "
        "source makes this answer more likely. Two copies of the same evidence hide each other: both score near 0. "
        "The score says how likely this answer is without a source, not what the model would write instead.",
    ),
    "gradient": (
        "Input x gradient",
        "For each input token: embedding times gradient of the target, summed over the embedding; then summed over "
        "a passage. A first-order estimate at one point: it can be large where removing the passage changes little.",
    ),
    "attribution": (
        "Attribution",
        "A signed score of each source for a span of the answer, by the named method and model. Positive: the "
        "source makes the answer more likely to that model.",
    ),
    "markers": (
        "Citation markers left out",
        "Every score leaves out the tokens of citation markers. Removing passage 3 makes the 3 of a marker unlikely "
        "whatever the passage says.",
    ),
    "numerical": (
        "Numerical floor",
        "The largest difference between a row scored in its batch and the same row scored alone, summed in another "
        "order. An effect at or below the floor is rounding.",
    ),
    "placebo": (
        "Placebo floor",
        "The largest change when a passage of another document is inserted at a seeded random position. An effect "
        "at or below the floor is no larger than that of an unrelated passage.",
    ),
    "regeneration": (
        "Occlusion by regeneration",
        "alpha = 1 - similarity of the answer to an answer written without one source, for six metrics. The metrics "
        "are correlated: three in agreement are not three witnesses. An alpha at or below its floor shows nothing.",
    ),
    "votes": (
        "Context selection (Attr-RAG)",
        "Each metric votes for the set whose absence changes the answer most. Sets that follow in small steps join "
        "if enough metrics choose them, up to a share of all sets. A set that was left out is not wrong: the answer "
        "changed little without it. Gaps between chosen chunks of a document are filled.",
    ),
    "faithfulness": (
        "Faithfulness (MoRF, LeRF, ABPC)",
        "Mean probability of the answer while sources are removed, most relevant first (MoRF) and least relevant "
        "first (LeRF). ABPC is the area between the two curves. It says whether a ranking follows the model's "
        "behaviour; compare it with the ABPC of random rankings.",
    ),
    "used": (
        "Used x supports",
        "Used: the occlusion score of a passage for a sentence exceeds the floor. Supports: the verifier's "
        "probability that the passage entails the sentence exceeds one half. A model can use passages that do not "
        "support the answer, and ignore passages that do.",
    ),
    "signals": (
        "Signals S1, S2, S3",
        "S1: ROUGE-L of the answers with and without passages; low is grounded. S2: mean gain in the log- "
        "probability of the answer's tokens from the passages, in nats; high is grounded. S3: share of the answer's "
        "content words that occur in a passage; string matching misses an invented detail inside a well-cited "
        "sentence.",
    ),
    "conditions": (
        "Refinement conditions",
        "A: baseline. B: answer without passages. C1: another seed. C2: generic revision. D: revision if S3 is low. "
        "E: Self-Refine. v2a to v2c: revisions that name flagged passages or that flags trigger. A condition that "
        "was not triggered equals A, word for word. There is one answer per condition, so its difference from A is "
        "not an average.",
    ),
    "citation scores": (
        "Citation scores",
        "Share of citations whose passage entails the citing sentence, by the named verifier. RFCP also requires "
        "that the passage is labelled relevant. The verifier makes errors; its measured precision is given.",
    ),
    "facts": (
        "Atomic facts",
        "The answer is split into clauses, each clause into facts. Each fact is compared with evidence: supportive, "
        "editing required, irrelevant, or unparsed. Irrelevant means that no evidence settles the fact, not that "
        "the fact is wrong. p is the verifier's probability of its verdict.",
    ),
    "edits": (
        "Edits",
        "The smallest change that makes a fact agree with its passage, applied at the fact's place in the answer. "
        "The machine cannot know that the passage is right: a reviewer decides.",
    ),
    "report": (
        "Attr_r, Attr_p, Pres",
        "Attr_r: mean over clauses of the highest probability that a piece of evidence entails the clause. Attr_p: "
        "share of clauses entailed by their own evidence. Pres: share of characters kept by editing. Judged by the "
        "verifier, on the retrieved evidence.",
    ),
    "raise": (
        "Step by step (RAISE and baselines)",
        "The question is split into sub-questions. Each one has a search (in RAISE, a logical query), and the sub- "
        "answers form the final answer. The steps are text that the model was asked to write.",
    ),
    "threshold": (
        "T",
        "A passage whose cosine with the search text is below T is dropped. T belongs to an embedder. A dropped "
        "passage can contain the answer.",
    ),
    "labels": ("Imported labels", "Labels of spans, relevance and citations from the imported file, shown unchanged."),
    "review": (
        "Review marks",
        "A person's notes, labels, overrides and status, each with name and time. An override is shown next to the "
        "machine's verdict and does not replace it.",
    ),
    "hashes": (
        "Hashes",
        "SHA-256 of each part in canonical JSON (sorted keys, no empty parts). The head hash is the hash of the "
        "last review entry. Each entry contains the hash of the previous one.",
    ),
}


def used(case: Case, reviewed: bool) -> list[str]:
    """The definitions that this case needs, in reading order."""
    found = [a for analysis in case.analyses for a in attributions_of(analysis)]
    methods = {attribution.method.lower() for attribution in found}
    terms = {term for analysis in case.analyses if (kind := find(analysis.kind)) for term in kind.terms}
    needs = {
        "passage": True,
        "citation": bool(case.answer.citations),
        "retrieval": bool(case.hits),
        "rerank": bool(case.chunk_sets),
        "occlusion": any("occlusion" in method for method in methods),
        "gradient": any("gradient" in method for method in methods),
        "attribution": any(not any(n in m for n in ("occlusion", "gradient")) for m in methods),
        "markers": bool(methods),
        "numerical": any(a.numerical_floor is not None for a in found),
        "placebo": any(a.placebo_floor is not None for a in found),
        "review": reviewed,
        "hashes": True,
    }
    return [name for name in DEFINITIONS if needs.get(name) or name in terms]


def methods_blocks(case: Case, reviewed: bool) -> tuple[Block, ...]:
    """The definitions as a list of terms."""
    return (
        plain("Meaning and limits of the terms in this report.", "note"),
        Facts(tuple(DEFINITIONS[name] for name in used(case, reviewed))),
    )


# The self-test of every language model that a case used: can its scores and gradients be trusted.

# What quotes or was written elsewhere has no weights to test.
UNTESTED = ("", "reader", "imported", "auto")


def self_test_blocks(case: Case) -> tuple[Block, ...]:
    """A table a model, from the record kept on this machine; a sentence where no test of that model is kept."""
    stamps = (case.stamp, *(analysis.stamp for analysis in case.analyses))
    models = dict.fromkeys((s.model, s.revision, s.dtype) for s in stamps if s.revision and s.model not in UNTESTED)
    return tuple(Section(name, _blocks(name, revision, dtype), level=3) for name, revision, dtype in models)


def _blocks(name: str, revision: str, dtype: str) -> tuple[Block, ...]:
    checks = remembered(name, revision, dtype)
    if checks is None:
        return (plain(f"No self-test of this model is stored here. Run: python -m engine self-test {name}"),)
    rows = tuple(
        cells(c.name, "passed" if c.passed else "failed", c.detail, "" if c.figure is None else f"{c.figure:.3g}")
        for c in checks
    )
    return (Table(f"Self-test of {name}", ("Check", "Result", "Detail", "Figure"), rows, numeric=frozenset({3})),)
