"""Measures, one formula per function: similarity of texts and vectors, preservation, attribution, citations.

ROUGE comes from rouge-score, BLEU from sacrebleu, Levenshtein from rapidfuzz. rouge-score's own tokeniser drops every
character outside a-z and 0-9, and its summary splitting needs a download, so both are ours. All values are in [0, 1],
the cosine of vectors in [-1, 1]. Texts are compared without stemming and, except for BLEU, case-folded.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from engine.core.statistics import mean_or_none
from engine.core.text import sentences
from engine.core.values import Answer, Citation

# Scripts written without spaces (Thai, Lao, Burmese, Khmer, kana, Han): there a term is one character.
UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")


def terms(text: str) -> list[str]:
    """Case-folded runs of letters, marks and digits in order: `terms("Crème, 3.5 %")` is `["crème", "3", "5"]`."""
    folded = unicodedata.normalize("NFC", text).casefold()
    return "".join(_spaced(character) for character in folded).split()


@cache
def _spaced(character: str) -> str:
    """The character where it belongs to a word, set apart where it is a word, a space otherwise."""
    if unicodedata.category(character)[0] not in "LMN":
        return " "
    return f" {character} " if UNSPACED.match(character) else character


@cache
def _rouge_scorer(kind: str) -> Any:
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer([kind], tokenizer=SimpleNamespace(tokenize=terms))


def _rouge(kind: str, reference: str, text: str) -> float:
    return float(_rouge_scorer(kind).score(reference, text)[kind].fmeasure)


def rouge_1(reference: str, text: str) -> float:
    """F1 of shared words, each counted as often as it occurs."""
    return _rouge("rouge1", reference, text)


def rouge_2(reference: str, text: str) -> float:
    """F1 of shared pairs of neighbouring words; 0 where a text has fewer than two."""
    return _rouge("rouge2", reference, text)


def rouge_l(reference: str, text: str) -> float:
    """F1 of the longest common subsequence of words."""
    return _rouge("rougeL", reference, text)


def rouge_lsum(reference: str, text: str) -> float:
    """F1 of the union of longest common subsequences, sentence against sentence."""
    one_a_line = ["\n".join(" ".join(each[a:b].split()) for a, b in sentences(each)) for each in (reference, text)]
    return _rouge("rougeLsum", *one_a_line)


def jaccard(reference: str, text: str) -> float:
    """Shared over all distinct words; 1 for two texts without words."""
    first, second = set(terms(reference)), set(terms(text))
    return len(first & second) / len(first | second) if first or second else 1.0


def bleu(reference: str, text: str) -> float:
    """Sentence BLEU of sacrebleu (13a tokeniser, exponential smoothing, effective order), over 100."""
    import sacrebleu

    return float(sacrebleu.sentence_bleu(text, [reference]).score) / 100


def cosine(first: ArrayLike, second: ArrayLike) -> float:
    """Cosine of two vectors in [-1, 1]; 0 if one of them is zero."""
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    norms = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(np.clip(a @ b / norms, -1, 1)) if norms else 0.0


LEXICAL: Mapping[str, Callable[[str, str], float]] = {
    measure.__name__: measure for measure in (jaccard, rouge_1, rouge_2, rouge_l, rouge_lsum)
}
"""Five of the six metrics of Attr-RAG, section IV-B-c; the sixth, `cosine`, needs an embedder."""


Entails = Callable[[Sequence[tuple[str, str]]], Sequence[float]]
"""(claim, evidence) pairs to probabilities that the evidence entails the claim, as `Entailment.entailment`."""

ENTAILED = 0.5  # probability above which a pair counts as entailed; grounded refinement, section 3.5


def harmonic_mean(first: float, second: float) -> float:
    """F1 of two shares; 0 if both are 0."""
    return 2 * first * second / (first + second) if first + second else 0.0


def preservation(original: str, revised: str) -> float:
    """Pres = max(1 - Lev(X, X') / len(X), 0) in characters (ARE, section 5.1)."""
    from rapidfuzz.distance import Levenshtein

    if not original:
        return float(not revised)
    return max(1 - Levenshtein.distance(original, revised) / len(original), 0.0)


def attribution_recall(entailment: ArrayLike) -> float:
    """Attr_r = mean over clauses of the best evidence's entailment. `entailment`: (evidences, clauses)."""
    matrix = np.asarray(entailment, dtype=np.float64)
    return float(matrix.max(axis=0).mean()) if matrix.size else 0.0


def attribution_precision(entailed: Sequence[bool]) -> float:
    """Attr_p = share of clauses that their own evidence E_i entails whole."""
    return mean_or_none(entailed) or 0.0


def attribution_precision_unpaired(entailed: ArrayLike) -> float:
    """Attr_p without pairing (ARE, appendix E): share of evidences (rows) that entail one whole clause (columns)."""
    matrix = np.asarray(entailed, dtype=bool)
    return float(matrix.any(axis=1).mean()) if matrix.size else 0.0


@dataclass(frozen=True)
class CitedSentence:
    """A sentence without citation markers, at [start, end) with them; the numbers it cites, None for an invalid one."""

    text: str
    numbers: tuple[int | None, ...]
    start: int = field(default=0, compare=False)
    end: int = field(default=0, compare=False)


Cited = Sequence[CitedSentence]
Texts = Mapping[int, str]  # of passages, by their numbers


def statements(answer: Answer) -> list[CitedSentence]:
    """The answer's sentences that say something; a citation belongs to the sentence in which it starts."""
    found: list[CitedSentence] = []
    for start, end in answer.sentences:
        inside = [c for c in answer.citations if start <= c.start < end]
        text, at = "", start
        for citation in inside:
            text, at = text + answer.text[at : citation.start], citation.end
        text = re.sub(r"\s+([.,;:?!])", r"\1", " ".join((text + answer.text[at:end]).split()))
        if terms(text):
            numbers = tuple(c.number if c.valid else None for c in {c.number: c for c in inside}.values())
            found.append(CitedSentence(text, numbers, start, end))
    return found


def _entailed(pairs: Sequence[tuple[str, str]], entails: Entails) -> list[bool]:
    """Whether the evidence of each (claim, evidence) entails the claim; none is not asked about and entails nothing."""
    asked = [(claim, evidence) for claim, evidence in pairs if evidence]
    answers = iter(entails(asked) if asked else ())
    return [bool(evidence) and next(answers) > ENTAILED for _, evidence in pairs]


def _join(numbers: Sequence[int | None], passages: Texts) -> str:
    return "\n".join(passages[number] for number in numbers if number is not None and number in passages)


def _citations(cited: Cited, passages: Texts, entails: Entails) -> list[tuple[int | None, bool]]:
    """The number of each citation, and whether that passage entails the sentence."""
    pairs = [(sentence.text, number) for sentence in cited for number in sentence.numbers]
    marks = _entailed([(text, _join([number], passages)) for text, number in pairs], entails)
    return [(number, mark) for (_, number), mark in zip(pairs, marks, strict=True)]


def nli_citation_precision(cited: Cited, passages: Texts, entails: Entails) -> float | None:
    """Share of (sentence, cited passage) pairs that are entailed; an invalid citation is not. None without pairs."""
    return mean_or_none([mark for _, mark in _citations(cited, passages, entails)])


def rfcp(cited: Cited, passages: Texts, relevant: Mapping[int, bool | None], entails: Entails) -> float | None:
    """RFCP as we read it: pairs entailed and labelled relevant, over all pairs; the paper gives no formula.

    Pairs of a passage without a label are left out. None without pairs.
    """
    found = [(relevant.get(number or 0), number, mark) for number, mark in _citations(cited, passages, entails)]
    return mean_or_none(
        [mark and label is True for label, number, mark in found if number is None or label is not None]
    )


def alce_citation_recall(cited: Cited, passages: Texts, entails: Entails) -> float | None:
    """ALCE: share of sentences entailed by the passages they cite, joined; a sentence without citations is not."""
    return mean_or_none(supported(cited, passages, entails))


def supported(cited: Cited, passages: Texts, entails: Entails) -> list[bool]:
    """Which sentences the passages they cite, joined, entail; one without a citation of a passage is not."""
    return _entailed([(sentence.text, _join(sentence.numbers, passages)) for sentence in cited], entails)


def alce_citation_precision(cited: Cited, passages: Texts, entails: Entails) -> float | None:
    """ALCE: share of citations that are precise, which means that the sentence is supported and needs the citation.

    It needs it where the cited passage entails the sentence alone, or the others that it cites do not entail it.
    """
    marks = (
        holds and number in passages and _needed(sentence, number, passages, entails)
        for sentence, holds in zip(cited, supported(cited, passages, entails), strict=True)
        for number in sentence.numbers
    )
    return mean_or_none(list(marks))


def _needed(sentence: CitedSentence, number: int | None, passages: Texts, entails: Entails) -> bool:
    others = [other for other in sentence.numbers if other != number]
    alone, rest = _entailed([(sentence.text, _join(them, passages)) for them in ([number], others)], entails)
    return alone or not rest


def distractor_share(answer: Answer, relevant: Mapping[int, bool | None]) -> float | None:
    """Citations of passages labelled not relevant, over all but those of passages without a label; None without any."""
    labels = [relevant.get(c.number) is False if c.valid else False for c in answer.citations if _is_told(c, relevant)]
    return mean_or_none(labels)


def _is_told(citation: Citation, relevant: Mapping[int, bool | None]) -> bool:
    return not citation.valid or relevant.get(citation.number) is not None


def contains_answer(text: str, golds: Sequence[str]) -> bool:
    """STR-EM of one question: any gold short answer is a substring, case-insensitive."""
    folded = text.casefold()
    return any(gold.casefold() in folded for gold in golds if gold)


# A decomposer against gold clauses or facts (ARE, appendix D.5): n_c and d_correct.


def n_c(predicted: Sequence[Sequence[str]], gold: Sequence[Sequence[str]]) -> float:
    """Share of records whose predicted count is the gold count.

    >>> n_c([["a"], ["b", "c"]], [["x"], ["y"]])
    0.5
    """
    return mean_or_none([len(mine) == len(theirs) for mine, theirs in zip(predicted, gold, strict=True)]) or 0.0


def d_correct(predicted: Sequence[str], gold: Sequence[str], entails: Entails) -> float:
    """Paired facts over predicted facts of one record, in [0, 1]; `entails` as in `engine.core.metrics`."""
    if not predicted or not gold:
        return 0.0
    forth = np.reshape(entails([(g, p) for p in predicted for g in gold]), (len(predicted), len(gold)))
    back = np.reshape(entails([(p, g) for p in predicted for g in gold]), (len(predicted), len(gold)))
    return paired((forth > ENTAILED) & (back > ENTAILED)) / len(predicted)


def paired(both: ArrayLike) -> int:
    """Size of the largest one-to-one pairing; `both`: (predicted, gold), true where each entails the other."""
    from scipy.optimize import linear_sum_assignment

    matrix = np.asarray(both, dtype=float)
    rows, columns = linear_sum_assignment(-matrix)
    return int(matrix[rows, columns].sum())
