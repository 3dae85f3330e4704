"""Similarity of two texts, and of two vectors: one formula a function.

ROUGE and BLEU come from rouge-score and sacrebleu. rouge-score's own tokeniser drops every character outside a-z and
0-9 and its summary splitting wants a download, so both are ours. All similarities lie in [0, 1], the cosine of vectors
in [-1, 1]; texts are compared without stemming and, but for BLEU, case-folded.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from engine.text import sentences

# Scripts written without spaces (Thai, Lao, Burmese, Khmer, kana, Han): there a term is one character.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")


def terms(text: str) -> list[str]:
    """Case-folded runs of letters, marks and digits in order: `terms("Crème, 3.5 %")` is `["crème", "3", "5"]`."""
    folded = unicodedata.normalize("NFC", text).casefold()
    return "".join(_spaced(character) for character in folded).split()


@cache
def _spaced(character: str) -> str:
    """The character where it belongs to a word, set apart where it is a word, a space otherwise."""
    if unicodedata.category(character)[0] not in "LMN":
        return " "
    return f" {character} " if _UNSPACED.match(character) else character


class _Tokenizer:
    """The shape in which rouge-score takes a tokeniser."""

    def tokenize(self, text: str) -> list[str]:
        return terms(text)


@cache
def _rouge_scorer(kind: str) -> Any:
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer([kind], tokenizer=_Tokenizer())


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
    return _rouge("rougeLsum", _one_sentence_a_line(reference), _one_sentence_a_line(text))


def _one_sentence_a_line(text: str) -> str:
    return "\n".join(" ".join(text[start:end].split()) for start, end in sentences(text))


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
    "jaccard": jaccard,
    "rouge_1": rouge_1,
    "rouge_2": rouge_2,
    "rouge_l": rouge_l,
    "rouge_lsum": rouge_lsum,
}
"""Five of Attr-RAG's six metrics (IV-B-c); the sixth, `cosine`, needs an embedder."""
