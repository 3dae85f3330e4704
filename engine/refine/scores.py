"""Scores of a condition's answer (METHODS section 2, "Scores"): grounding, length, what it took.

Citation scores come from a verifier's entailment probability, the others from text and labels alone. None always
means "not defined here" and `missing` says why; it is never a zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.metrics import (
    Entails,
    alce_citation_precision,
    alce_citation_recall,
    contains_answer,
    distractor_share,
    nli_citation_precision,
    rfcp,
    statements,
)
from engine.refine.signals import overlap_words, s3
from engine.refine.values import Cost, Refinement
from engine.text import words
from engine.types import Answer, Passage, Value


class Scores(Value, frozen=True):
    """All in [0, 1] except the counts: `words`, `citations`, `unsupported` (content words in no passage)."""

    citation_precision: float | None = None
    citation_recall: float | None = None
    alce_precision: float | None = None
    distractor_share: float | None = None
    rfcp: float | None = None
    str_em: bool | None = None
    s3: float | None = None
    words: int = 0
    citations: int = 0
    unsupported: int = 0
    missing: dict[str, str] = {}


MEASURES: tuple[tuple[str, str, bool | None], ...] = (
    ("citation_precision", "Citation precision", True),
    ("citation_recall", "Citation recall (ALCE)", True),
    ("alce_precision", "Citation precision (ALCE)", True),
    ("distractor_share", "Citations of passages marked not relevant", False),
    ("rfcp", "RFCP: entailed and relevant", True),
    ("s3", "S3 of this answer", True),
    ("unsupported", "Content words in no passage", False),
    ("words", "Words", None),
    ("citations", "Citations", None),
)
"""What page and report show of a case: field, name, and whether more is better (None: neither). STR-EM is not among
them: it takes gold answers, which data sets have and cases do not."""


def remembered(entails: Entails) -> Entails:
    """`entails` that judges no pair twice: the citation scores ask for the same pairs."""
    known: dict[tuple[str, str], float] = {}

    def ask(pairs: Sequence[tuple[str, str]]) -> list[float]:
        new = [pair for pair in dict.fromkeys(pairs) if pair not in known]
        if new:
            known.update(zip(new, map(float, entails(new)), strict=True))
        return [known[pair] for pair in pairs]

    return ask


def scores_of(
    answer: Answer, passages: Sequence[Passage], entails: Entails | None = None, golds: Sequence[str] = ()
) -> Scores:
    """Score an annotated answer. Labels are the passages' own `relevant`; `golds` are accepted short answers."""
    texts = {number: passage.text for number, passage in enumerate(passages, start=1)}
    labels = {number: passage.relevant for number, passage in enumerate(passages, start=1)}
    labelled = any(label is not None for label in labels.values())
    marked = overlap_words(answer.text, passages)
    nli = _entailed(answer, texts, labels if labelled else {}, entails)
    return Scores(
        **nli,
        distractor_share=distractor_share(answer, labels) if labelled else None,
        str_em=contains_answer(answer.text, golds) if golds else None,
        s3=s3(marked),
        words=len(words(answer.text)),
        citations=len(answer.citations),
        unsupported=sum(not word.found for word in marked),
        missing=_missing(answer, entails is not None, labelled, bool(golds)),
    )


def _entailed(
    answer: Answer, texts: Mapping[int, str], labels: Mapping[int, bool | None], entails: Entails | None
) -> dict[str, float | None]:
    """The scores that ask a verifier; `labels` is empty where no passage has one."""
    if entails is None:
        return {}
    cited, ask = statements(answer), remembered(entails)
    return {
        "citation_precision": nli_citation_precision(cited, texts, ask),
        "citation_recall": alce_citation_recall(cited, texts, ask),
        "alce_precision": alce_citation_precision(cited, texts, ask),
        "rfcp": rfcp(cited, texts, labels, ask) if labels else None,
    }


def _missing(answer: Answer, verifier: bool, labelled: bool, gold: bool) -> dict[str, str]:
    missing = {}
    if not verifier:
        missing["citation_precision"] = "No verifier was asked."
    elif not answer.citations:
        missing["citation_precision"] = "The answer cites nothing."
    if not labelled:
        missing["rfcp"] = missing["distractor_share"] = "No passage is labelled. Mark passages relevant or not."
    if not gold:
        missing["str_em"] = "The question has no gold answer."
    return missing


def deployed_cost(value: Refinement, name: str) -> Cost:
    """What a condition costs on its own: its calls, A where it stands on A, the gradient rows where it needs them."""
    own = value.variants[name].cost
    if name not in ("A", "B", "C1"):
        own = value.variants["A"].cost + own
    return own + value.shared["gradient"] if name.startswith("v2") and "gradient" in value.shared else own


class FactKept(Value, frozen=True):
    """An atomic fact of A with its verdict, and the probability that the condition's answer still says it."""

    fact: str
    verdict: str
    kept: float


def facts_kept(facts: Sequence[tuple[str, str]], answer: str, entails: Entails) -> tuple[FactKept, ...]:
    """Which (fact, verdict) pairs of A a condition's answer still bears out, by the verifier."""
    probabilities = entails([(fact, answer) for fact, _ in facts]) if facts else ()
    joined = zip(facts, probabilities, strict=True)
    return tuple(FactKept(fact=fact, verdict=verdict, kept=float(p)) for (fact, verdict), p in joined)
