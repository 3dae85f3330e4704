"""Relevance: by hand, its order of parts, and where it has nothing to go by."""

from __future__ import annotations

import numpy as np
import pytest

from engine.retrieve.relevance import WEIGHTS, combined, evidence_relevance, relevance, relevance_of, word_shares


class OneAxisPerWord:
    """Texts to unit vectors of word counts: cosines that can be worked out by hand."""

    name, dimensions = "counts", 64
    axes: dict[str, int] = {}

    def embed(self, texts, watch=None):
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.lower().strip(".").split():
                row[self.axes.setdefault(word, len(self.axes))] += 1
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


def test_the_parts_by_hand():
    texts = ["iron rusts", "gold shines"]
    assert word_shares("iron rusts", texts) == [pytest.approx(1.0), 0.0]
    assert relevance("iron rusts", texts, OneAxisPerWord()) == [pytest.approx(1.0), 0.0]
    assert relevance_of([1.0, -0.5], [0.0, 0.0]) == [0.5, 0.0]


def test_a_text_that_contradicts_bears_on_the_claim():
    texts = ["iron never rusts", "iron is heavy"]
    first, second = relevance("iron rusts", texts, OneAxisPerWord(), [0.9, 0.1])
    assert first > second
    without = relevance("iron rusts", texts, OneAxisPerWord())
    assert first == pytest.approx((2 * without[0] + 0.75 * 0.9) / 2.75)


def test_every_part_speaks_for_relevance():
    base = {"cosine": 0.3, "words": 0.3, "verdict": 0.3}
    for name in base:
        assert combined({**base, name: 0.6}) > combined(base)
    assert combined(base) == pytest.approx(0.3)
    assert set(WEIGHTS) == set(base)


def test_evidence_is_as_relevant_as_its_best_sentence():
    one = evidence_relevance("iron rusts", "Iron rusts.", OneAxisPerWord(), {})
    more = evidence_relevance("iron rusts", "Gold shines. Iron rusts.", OneAxisPerWord(), {})
    assert more >= one - 0.01
    assert evidence_relevance("iron rusts", "  ", OneAxisPerWord(), {}) == 0.0
    assert relevance("iron rusts", [], OneAxisPerWord()) == []
