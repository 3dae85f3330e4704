"""S1, S2, S3 and the scores of a condition's answer (grounded refinement, sections 3.2 and 3.5).

S1 = ROUGE-L F1 of the answers with and without passages (grounded: low). S2 = mean over A's tokens of
log p(token | prompt) - log p(token | the same prompt, passage segments dropped) in nats (grounded: high). S3 = share of
A's content words found in any passage (grounded: high): string matching, not attribution; it cannot see a detail made
up inside a well-cited sentence. The paper gave S2 up for token counts that did not match; here both rows have the
answer's own ids. Left out: nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from engine.answer.citations import content_token_mask, without_markers
from engine.core import metrics
from engine.core.metrics import ENTAILED, UNSPACED, Entails
from engine.core.progress import Watch
from engine.core.settings import SecondPass as Thresholds
from engine.core.statistics import mean_or_none
from engine.core.text import ANY_CITATION, content_words, sentences, words
from engine.core.values import Answer, Case, Passage, Prompt, Value, sha256
from engine.methods.refinement.values import Cost, OverlapThreshold, Refinement, Word
from engine.models.protocols import LanguageModel

_WORD = re.compile(rf"{UNSPACED.pattern}|(?:(?!{UNSPACED.pattern})\S)+")
_LISTED = re.compile(r"^[ \t]*\(?\d{1,3}[.)](?=\s)", re.MULTILINE)


def s1(with_passages: str, without: str) -> float:
    """ROUGE-L F1 of the two answers' texts, in [0, 1]."""
    return metrics.rouge_l(without, with_passages)


def s2(model: LanguageModel, prompt: Prompt, answer: Answer, watch: Watch = Watch()) -> tuple[float, float | None]:
    """Mean gain from the passages (nats per token): over all tokens, and over those outside citation markers.

    `answer` carries the model's token ids, at least one. Scores two rows. The second is None if all are a marker's.
    """
    coded = model.encode(prompt)
    rows = model.score([coded, coded.without(set(prompt.numbers))], [t.id for t in answer.tokens], watch)
    gains = rows[0] - rows[1]
    content = gains[np.asarray(content_token_mask(answer), dtype=bool)]
    return float(gains.mean()), float(content.mean()) if content.size else None


def overlap_words(answer: str, passages: Sequence[Passage]) -> tuple[Word, ...]:
    """The content words of the answer with their characters, and whether a passage has them.

    In scripts that are written without spaces each character is a word, as for S1. Numbers of a list do not count.

    >>> cup = Passage(id="p", document="d", title="", ordinal=0, start=0, end=22, text="2 spoons, added; a cup")
    >>> [(w.start, w.end, w.found) for w in overlap_words("Add two cups.", [cup])]
    [(0, 3, False), (4, 7, True), (8, 12, False)]
    """
    known = {word for passage in passages for word in content_words(UNSPACED.sub(r" \g<0> ", passage.text))}
    found, plain = [], answer
    for marks in (ANY_CITATION, _LISTED):
        plain = marks.sub(lambda mark: " " * len(mark.group()), plain)
    for match in _WORD.finditer(plain):
        bare = re.search(r"[^\W_](?:.*[^\W_])?", match.group(), re.DOTALL)
        words = content_words(match.group())
        if bare is not None and words:
            start = match.start() + bare.start()
            found.append(Word(start=start, end=match.start() + bare.end(), found=words[0] in known))
    return tuple(found)


def s3(words: Sequence[Word]) -> float | None:
    """Share of the words that were found, in [0, 1]; None for an answer without content words."""
    return mean_or_none([word.found for word in words])


def overlap_history(cases: Iterable[Case], model: str) -> tuple[float, ...]:
    """S3 of the answers that this model wrote: the distribution behind D's threshold."""
    own = (case for case in cases if case.stamp.model == model and not case.answer.refused)
    found = (s3(overlap_words(one.answer.text, one.passages)) for one in own if one.answer.finished and one.answer.text)
    return tuple(value for value in found if value is not None)


def overlap_threshold(history: Sequence[float], settings: Thresholds = Thresholds()) -> OverlapThreshold:
    """S3 under which D fires: the 40th percentile over `history`, or 0.75 until there are 20 cases.

    `history` is S3 over the loaded question set, or over the library's cases by the same model.
    """
    if len(history) < settings.overlap_cases:
        rule = f"fixed until there are {settings.overlap_cases} cases by the same model"
        return OverlapThreshold(value=settings.overlap_threshold, rule=rule, n=len(history))
    value = float(np.percentile(np.asarray(history, dtype=np.float64), settings.overlap_percentile))
    rule = f"{settings.overlap_percentile:.0f}th percentile of S3"
    return OverlapThreshold(value=value, rule=rule, n=len(history))


class Scores(Value, frozen=True):
    """All in [0, 1] except the counts: `words`, `citations`, `unsupported` (content words in no passage).

    None: not defined here, never a zero; `missing` says why.
    """

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
"""Scores of page and report: field, name, and whether more is better (None: neither). STR-EM is missing: it needs
gold answers, which data sets have and cases do not."""


def beside(own: Scores, base: Scores) -> str:
    """A second pass next to the answer before it: "better", "worse", "level", or "mixed" where two measures disagree.

    By the citation recall, where both have one, and by the content words that no passage has.

    >>> beside(Scores(citation_recall=0.5, unsupported=9), Scores(citation_recall=1.0, unsupported=2))
    'worse'
    """
    gains = [float(base.unsupported - own.unsupported)]
    if own.citation_recall is not None and base.citation_recall is not None:
        gains.append(own.citation_recall - base.citation_recall)
    up, down = any(gain > 0 for gain in gains), any(gain < 0 for gain in gains)
    return "mixed" if up and down else "better" if up else "worse" if down else "level"


def pair_key(claim: str, evidence: str) -> str:
    """The hash that a pair is kept under."""
    return sha256(f"{claim}\0{evidence}")[:16]


def remembered(entails: Entails, known: dict[str, float]) -> Entails:
    """`entails` that judges no pair twice: the citation scores ask for the same ones. `known` gets its numbers."""

    def ask(pairs: Sequence[tuple[str, str]]) -> list[float]:
        new = [pair for pair in dict.fromkeys(pairs) if pair_key(*pair) not in known]
        if new:
            known.update({pair_key(*pair): float(p) for pair, p in zip(new, entails(new), strict=True)})
        return [known[pair_key(*pair)] for pair in pairs]

    return ask


def scores_of(
    answer: Answer, passages: Sequence[Passage], entails: Entails | None = None, golds: Sequence[str] = ()
) -> Scores:
    """Score an annotated answer. Labels are the passages' own `relevant`; `golds` are accepted short answers."""
    texts = {number: passage.text for number, passage in enumerate(passages, start=1)}
    labels = {number: passage.relevant for number, passage in enumerate(passages, start=1)}
    labelled = any(label is not None for label in labels.values())
    marked = overlap_words(answer.text, passages)
    nli: dict[str, float | None] = {}
    if entails is not None:
        cited, ask = metrics.statements(answer), remembered(entails, {})
        nli = {
            "citation_precision": metrics.nli_citation_precision(cited, texts, ask),
            "citation_recall": metrics.alce_citation_recall(cited, texts, ask),
            "alce_precision": metrics.alce_citation_precision(cited, texts, ask),
            "rfcp": metrics.rfcp(cited, texts, labels, ask) if labelled else None,
        }
    return Scores(
        **nli,
        distractor_share=metrics.distractor_share(answer, labels) if labelled else None,
        str_em=metrics.contains_answer(without_markers(answer.text), golds) if golds else None,
        s3=s3(marked),
        words=len(words(without_markers(answer.text))),
        citations=len(answer.citations),
        unsupported=sum(not word.found for word in marked),
        missing=_missing(answer, entails is not None, labels, bool(golds)),
    )


def _missing(answer: Answer, verifier: bool, labels: Mapping[int, bool | None], gold: bool) -> dict[str, str]:
    """Why a score is not defined, by its field."""
    missing = {}
    told = {number for number, label in labels.items() if label is not None}
    uncited = "" if answer.citations else "The answer does not cite any passages."
    if why := uncited if verifier else "No verifier ran.":
        missing["citation_precision"] = missing["alce_precision"] = missing["rfcp"] = why
    if not told:
        missing["rfcp"] = missing["distractor_share"] = "No passages are labelled. Mark passages as relevant or not."
    elif uncited:
        missing["distractor_share"] = uncited
    elif all(c.valid and c.number not in told for c in answer.citations):
        missing["rfcp"] = missing["distractor_share"] = "The answer cites passages without a label only."
    if not gold:
        missing["str_em"] = "The question has no gold answer."
    return missing


def deployed_cost(value: Refinement, name: str) -> Cost:
    """The cost of a condition alone: its calls, A if it depends on A, the gradient rows if it needs them."""
    own = value.variants[name].cost
    if name not in ("A", "B", "C1"):
        own = value.variants["A"].cost + own
    return own + value.shared["gradient"] if name.startswith("v2") and "gradient" in value.shared else own


class FactKept(Value, frozen=True):
    """An atomic fact of A with its verdict, and the probability that the condition's answer still says it."""

    fact: str
    verdict: str
    kept: float

    def state(self, in_a: FactKept) -> str:
        """ "said" or "gone"; "unclear" where the verifier does not find the fact in A itself, which states it."""
        if in_a.kept <= ENTAILED:
            return "unclear"
        return "said" if self.kept > ENTAILED else "gone"


def facts_kept(facts: Sequence[tuple[str, str]], answer: str, entails: Entails) -> tuple[FactKept, ...]:
    """How probably an answer still says each (fact, verdict) pair of A: 1 if word for word, else by the verifier."""
    bare = without_markers(answer)
    said = {_worded(bare[start:end]) for start, end in sentences(bare)}
    probabilities = entails([(fact, answer) for fact, _ in facts]) if facts else ()
    return tuple(
        FactKept(fact=fact, verdict=verdict, kept=1.0 if _worded(fact) in said else float(p))
        for (fact, verdict), p in zip(facts, probabilities, strict=True)
    )


def _worded(text: str) -> tuple[str, ...]:
    return tuple(text[start:end] for start, end in words(text))
