"""Re-rankers: scores of whole texts for a question (Attr-RAG, section IV-B-b).

The default, best-sentence similarity, needs nothing downloaded: the cosine of the question with the best sentence of
the text, plus a quarter of the share of the question's words that the text has. It is not a cross-encoder. Any
sentence-transformers CrossEncoder, by id or folder, takes its place (`retrieval.reranker`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from engine.core.settings import BEST_SENTENCE
from engine.core.text import covered, sentences, stems, titled, word_weights
from engine.models.embedder import load_embedder
from engine.models.memory import SAFE, loaded_once, loading
from engine.models.protocols import Embedder, Floats, Reranker

WORDS = 0.25  # weight of the share of words


class BestSentence:
    """The best sentence's cosine plus `WORDS` times the share of the question's words found, about -1 to 1.25.

    A text may open with its document's title and an empty line; the title then stands before each sentence.
    With titles and words the right document came first for 0.97 of XQuAD's questions and 0.90 of NQ's; the bare
    best sentence gave 0.91 and 0.76.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.name = f"{BEST_SENTENCE} ({embedder.name})"

    def rank_scores(self, question: str, texts: Sequence[str]) -> Floats:
        """Return one score per text, shape (len(texts),); -1 for a text without a sentence."""
        parts = [_titled_sentences(text) for text in texts]
        flat = [sentence for part in parts for sentence in part]
        vectors = self._embedder.embed([question, *flat])
        similarity = vectors[1:] @ vectors[0]
        words = [set(stems(text.replace("_", " "))) for text in texts]
        weights = word_weights(question, words)
        bounds = pairwise(accumulate((len(part) for part in parts), initial=0))
        best = [similarity[s:e].max() if e > s else -1.0 for s, e in bounds]
        return np.array([b + WORDS * covered(weights, w) for b, w in zip(best, words, strict=True)], dtype=np.float32)


def _titled_sentences(text: str) -> list[str]:
    """The sentences of a text, each with the title that the text opens with."""
    title, gap, body = text.partition("\n\n")
    if not gap or not body.strip() or "\n" in title or title.rstrip()[-1:] in ".!?":
        title, body = "", text
    return [titled(title, body[s:e]) for s, e in sentences(body)]


class CrossEncoderReranker:
    """A sentence-transformers cross-encoder; the scale of its scores is the model's own."""

    def __init__(self, model: Any, name: str) -> None:
        self._model, self.name = model, name

    def rank_scores(self, question: str, texts: Sequence[str]) -> Floats:
        """Return one score per text, shape (len(texts),)."""
        if not texts:
            return np.zeros(0, dtype=np.float32)
        scores = self._model.predict([(question, text) for text in texts], show_progress_bar=False)
        return np.asarray(scores, dtype=np.float32).reshape(len(texts))


def title_of(name: str) -> str:
    """A re-ranker's name in tables and on pages.

    >>> title_of("best-sentence"), title_of("cross-encoder/ms-marco-MiniLM-L12-v2")
    ('best-sentence similarity', 'cross-encoder ms-marco-MiniLM-L12-v2')
    """
    return "best-sentence similarity" if name == BEST_SENTENCE else f"cross-encoder {Path(name).name}"


@loaded_once
def load_reranker(name: str = BEST_SENTENCE) -> Reranker:
    """Load a re-ranker once a process; raise `ModelNotFound` with the way out."""
    if name == BEST_SENTENCE:
        return BestSentence(load_embedder())
    way_out = f"Give a sentence-transformers cross-encoder id or folder, or set retrieval.reranker={BEST_SENTENCE}."
    with loading(f"The re-ranker {name}", way_out):
        from sentence_transformers import CrossEncoder

        model = CrossEncoder(name, trust_remote_code=False, model_kwargs=SAFE)
    return CrossEncoderReranker(model, name)
