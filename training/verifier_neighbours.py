"""Words that stand in like places: what a content word can be replaced by so that the sentence says something else.

The neighbours of a word among the input embeddings of all-MiniLM-L6-v2: "increases" has "decreases", "lung" has
"liver". A synonym is among them now and then, so a label made with one is right only mostly.
"""

from __future__ import annotations

from functools import cache
from random import Random

import numpy as np
from numpy.typing import NDArray

from engine.english.word_pairs import SYNONYMS
from engine.models.alignment import stem

NEIGHBOURS = range(1, 16)  # the nearest is a synonym or an inflection too often
_ENDINGS = ("ing", "ed", "ly", "s")
_LEAST = 4  # letters of a word that is replaced
_FUNCTION_WORDS = 2300  # ids below are the most frequent words, the vocabulary being sorted by frequency


@cache
def similar_words() -> dict[str, tuple[str, ...]]:
    """For each plain word of the vocabulary, its neighbours with another stem and the same ending, nearest first."""
    from engine.models.verifier_network import base_network

    network, tokenizer = base_network()
    vectors = network.encoder.embeddings.word_embeddings.weight.detach().numpy()
    vocabulary = {w: i for w, i in tokenizer.get_vocab().items() if i > _FUNCTION_WORDS}
    words = {w: i for w, i in vocabulary.items() if w.isascii() and w.isalpha() and len(w) >= _LEAST}
    names, places = list(words), list(words.values())
    unit = vectors[places] / np.linalg.norm(vectors[places], axis=1, keepdims=True)
    result = {}
    for first in range(0, len(names), 2048):
        near = _nearest(unit[first : first + 2048] @ unit.T)
        for row, word in zip(near, names[first : first + 2048], strict=True):
            others = [names[i] for i in row if _fits(word, names[i])]
            result[word] = tuple(others[NEIGHBOURS.start : NEIGHBOURS.stop])
    return result


def _nearest(similarity: NDArray[np.float32], count: int = 40) -> NDArray[np.int64]:
    """Columns of the `count` largest entries of each row, largest first, without the word itself."""
    some = np.argpartition(-similarity, count, axis=1)[:, :count]
    order = np.argsort(-np.take_along_axis(similarity, some, 1), axis=1)
    nearest: NDArray[np.int64] = np.take_along_axis(some, order, 1)[:, 1:]
    return nearest


def _fits(word: str, other: str) -> bool:
    same = next((e for e in _ENDINGS if word.endswith(e)), "") == next((e for e in _ENDINGS if other.endswith(e)), "")
    return same and stem(word) != stem(other) and other not in SYNONYMS.get(word, ())


def change_neighbour(text: str, rng: Random, names: list[str]) -> str | None:
    """One content word inside the sentence replaced by a neighbour; None where no word has one."""
    parts = text.split(" ")
    places = [i for i, part in enumerate(parts) if i and part.islower() and similar_words().get(part.rstrip(".,;"))]
    if not places:
        return None
    place = rng.choice(places)
    word = parts[place].rstrip(".,;")
    parts[place] = rng.choice(similar_words()[word]) + parts[place][len(word) :]
    return " ".join(parts)
