"""Definitions and limits of the methods that a case really holds; nothing is defined that was not used."""

from __future__ import annotations

from engine.analyses.attribution import attributions_of
from engine.analyses.registry import find
from engine.cases.blocks import Block, Facts, Section, Table, cells, plain
from engine.core.values import Case
from engine.models.self_test import remembered

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
        "The largest difference between the same row scored in its batch and alone, there with its sums in another"
        " order. An effect at or under it is rounding.",
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
    "votes": (
        "Context selection (Attr-RAG)",
        "Each metric votes for the set whose absence changes the answer most; sets that follow it in small steps join"
        " where enough metrics take them, up to a share of all sets. What is left out was not found wrong: the answer"
        " changed little without it. Gaps between chosen chunks of a document are filled.",
    ),
    "faithfulness": (
        "Faithfulness (MoRF, LeRF, ABPC)",
        "The answer's mean probability while sources are removed, most relevant first (MoRF) and least relevant first"
        " (LeRF); ABPC is the area between the two curves. It says whether a ranking follows what the model does, and"
        " only beside the ABPC of random rankings.",
    ),
    "used": (
        "Used x supports",
        "Used: the occlusion score of a passage for a sentence exceeds the floor. Supports: the verifier's probability"
        " that the passage entails the sentence exceeds one half. A model can use what does not support, and leave"
        " unused what does.",
    ),
    "signals": (
        "Signals S1, S2, S3",
        "S1: ROUGE-L of the answers with and without passages; low is grounded. S2: mean gain in log-probability that"
        " the passages give to the answer's tokens, nats; high is grounded. S3: share of the answer's content words"
        " that a passage has; string matching, which cannot see a detail made up inside a well-cited sentence.",
    ),
    "conditions": (
        "Refinement conditions",
        "A is the baseline, B the answer without passages, C1 another seed, C2 a generic revision, D a revision where"
        " S3 is low, E Self-Refine, v2a to v2c revisions that name flagged passages or start on them. A condition that"
        " was not started is A, word for word. One answer a condition: its difference to A is no average.",
    ),
    "citation scores": (
        "Citation scores",
        "Share of citations whose passage entails the sentence that cites it, by the verifier that is named; RFCP asks"
        " that the passage be labelled relevant, too. The verifier errs, as its own measured precision says.",
    ),
    "facts": (
        "Atomic facts",
        "The answer is cut into clauses, each clause into facts; each fact is held against evidence: supportive,"
        " editing required, irrelevant, or unparsed. Irrelevant says that nothing found settles the fact, not that it"
        " is wrong. p is the verifier's probability of the verdict that it gave.",
    ),
    "edits": (
        "Edits",
        "The smallest change that makes a fact agree with the passage it was edited from, put back where the fact"
        " stands in the answer. That the passage is right is not known to the machine: a reviewer decides.",
    ),
    "report": (
        "Attr_r, Attr_p, Pres",
        "Attr_r: mean over clauses of the highest probability of entailment by any evidence. Attr_p: share of clauses"
        " that their own evidence entails. Pres: share of characters kept by editing. By the verifier, on the evidence"
        " that was found.",
    ),
    "raise": (
        "Step by step (RAISE and baselines)",
        "A question is taken apart into sub-questions; for each a text is searched, for RAISE a logical query, and the"
        " final answer is composed of the sub-answers. The steps are what the model was made to write.",
    ),
    "threshold": (
        "T",
        "A passage whose cosine with the text searched is under T is dropped. T belongs to an embedder; a dropped"
        " passage can hold the answer.",
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
        plain("What the terms of this report mean, and what they do not say.", "note"),
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
        return (plain(f"No self-test of this model is kept here. Run: python -m engine self-test {name}"),)
    rows = tuple(
        cells(c.name, "passed" if c.passed else "failed", c.detail, "" if c.figure is None else f"{c.figure:.3g}")
        for c in checks
    )
    return (Table(f"Self-test of {name}", ("Check", "Result", "Detail", "Figure"), rows, numeric=frozenset({3})),)
