"""Stems, weights and covered share, by hand."""

from __future__ import annotations

import math
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from engine.core.text import covered, stemmer, stems, word_weights


def test_weights_are_idf_shares_and_cover_what_is_there() -> None:
    texts = [set(stems(t)) for t in ("iron rusts", "iron melts", "gold shines")]
    weights = word_weights("Is iron rusting?", texts)
    iron, rust = math.log(1 + 1.5 / 2.5), math.log(1 + 2.5 / 1.5)
    assert weights == pytest.approx({"iron": iron / (iron + rust), "rust": rust / (iron + rust)})
    assert covered(weights, texts[0]) == pytest.approx(1.0)
    assert covered(weights, texts[1]) == pytest.approx(weights["iron"])
    assert covered(weights, texts[2]) == 0.0


def test_a_question_of_stop_words_has_no_weights() -> None:
    assert word_weights("What is it?", [{"iron"}]) == {}
    assert covered({}, {"iron"}) == 0.0


def test_threads_do_not_share_a_stemmer() -> None:
    with ThreadPoolExecutor(2) as threads:
        barrier = threading.Barrier(2)
        first, second = threads.map(lambda _: (barrier.wait(), id(stemmer()))[1], range(2))
    assert first != second and stemmer() is stemmer()
