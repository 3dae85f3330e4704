"""Nearest vectors among millions, in files that are mapped and not loaded.

The vectors are parted into cells around k-means centres (an inverted file) and kept there twice: as the signs of their
numbers, a bit a dimension, and a byte a dimension. A search reads the signs in the cells whose centres are nearest, the
bytes of those rows that share most signs with the question, and names the best of them; whoever asked scores those
again from the vectors themselves. The shares were chosen on 49,126 real texts and 1,500 questions (bench/scale.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

from engine.core.files import let_go
from engine.core.progress import Watch
from engine.models.protocols import Floats

Places = NDArray[np.intp]
FILES = ("centres.npy", "starts.npy", "rows.npy", "bytes.npy", "signs.npy")
SHARE = 0.08  # of the rows have their signs read
_LEAST = 20_000  # rows whose signs are read
KEPT = 0.01  # of the rows have their bytes read
_KEPT_LEAST, _KEPT_MOST = 2_000, 30_000
_CENTRES, _ROWS_A_CENTRE = 4_096, 12  # at most so many cells, each of at least so many rows
_ROUNDS = 8  # of k-means
_AT_ONCE = 4_096  # rows read and written at a time
_LET_GO = 8 * _AT_ONCE  # rows written between two times of letting go of what is mapped
_BLOCK = 1_024  # rows of bytes turned into numbers at a time, so that they stay in the processor's cache
_WORD = 64  # signs in a number


class Cells:
    """An index on the disk."""

    def __init__(self, place: Path) -> None:
        """Map the files that `build` wrote."""
        self._centres: Floats = np.load(place / "centres.npy", allow_pickle=False)
        self._starts = np.load(place / "starts.npy", allow_pickle=False)
        # As plain arrays: a slice of a mapped one costs as much as the work on it.
        self._order, self._bytes, self._signs = (
            np.asarray(np.load(place / name, mmap_mode="r", allow_pickle=False))
            for name in ("rows.npy", "bytes.npy", "signs.npy")
        )
        self.size = len(self._order)

    def nearest(self, vector: Floats, count: int) -> Places:
        """About the `count` rows whose vectors have the largest product with `vector`, ascending."""
        parts = self._parts(vector, max(count, int(SHARE * self.size), _LEAST))
        kept = max(count, min(max(int(KEPT * self.size), _KEPT_LEAST), _KEPT_MOST))
        held = np.arange(sum(end - start for start, end in parts))
        if len(held) > kept:
            held = _fewest(self._unlike(parts, vector), kept)
        held = _within(parts, held)
        if len(held) > count:
            held = held[np.argpartition(-self._products(held, vector), count - 1)[:count]]
        return np.sort(self._order[held]).astype(np.intp)

    def _parts(self, vector: Floats, wanted: int) -> list[tuple[int, int]]:
        """Where the cells lie whose centres are nearest, nearest first, as many as hold `wanted` rows."""
        near = np.argsort(-(self._centres @ vector), kind="stable")
        held = np.cumsum(np.diff(self._starts)[near])
        chosen = near[: int(np.searchsorted(held, wanted)) + 1]
        return [(int(self._starts[cell]), int(self._starts[cell + 1])) for cell in chosen]

    def _unlike(self, parts: list[tuple[int, int]], vector: Floats) -> NDArray[np.uint16]:
        """In how many signs the rows of some cells differ from a vector."""
        found = np.zeros(sum(end - start for start, end in parts), dtype=np.uint16)
        signs = np.concatenate([self._signs[:, start:end] for start, end in parts], axis=1)
        for word, asked in zip(signs, _signs_of(vector[None])[:, 0], strict=True):
            found += np.bitwise_count(word ^ asked)
        return found

    def _products(self, held: Places, vector: Floats) -> Floats:
        """The products of the bytes at some places with a vector."""
        parts = np.array_split(held, -(-len(held) // _BLOCK))
        return np.concatenate([self._bytes[places].astype(np.float32) @ vector for places in parts])


def _within(parts: list[tuple[int, int]], places: Places) -> Places:
    """Places in parts that are strung together, as places in the whole.

    >>> _within([(10, 12), (30, 33)], np.array([1, 2, 4]))
    array([11, 30, 32])
    """
    starts, ends = np.array(parts, dtype=np.intp).T
    done = np.cumsum(ends - starts)
    part = np.searchsorted(done, places, side="right")
    found: Places = places + ends[part] - done[part]
    return found


def _fewest(counts: NDArray[np.uint16], wanted: int) -> Places:
    """Places of about the `wanted` smallest counts, and of all that equal the largest of them."""
    seen = counts[:: max(1, len(counts) // 65_536)]  # of millions a share is enough to tell the threshold
    least = np.searchsorted(np.cumsum(np.bincount(seen)), wanted * len(seen) / len(counts))
    return np.flatnonzero(counts <= least)


def _signs_of(vectors: Floats) -> NDArray[np.uint64]:
    """The signs of vectors as bits, shape (dimensions / 64, n)."""
    width = -(-vectors.shape[1] // _WORD) * _WORD
    packed = np.packbits(np.pad(vectors > 0, ((0, 0), (0, width - vectors.shape[1]))), axis=1)
    return np.ascontiguousarray(packed.view(np.uint64).T)


def build(place: Path, vectors: Floats, watch: Watch) -> None:
    """Write the files; `vectors` (n, dimensions) is read a few rows at a time."""
    size, width = vectors.shape
    watch.step("index", 0, size)
    centres, scale = _centres_of(vectors)
    cell = np.empty(size, dtype=np.int32)
    for first, part in _pieces(vectors):
        watch.step("index", first // 2, size)
        cell[first : first + len(part)] = (part @ centres.T).argmax(axis=1)
    order = np.argsort(cell, kind="stable").astype(np.int32)
    place_of = np.empty(size, dtype=np.int32)
    place_of[order] = np.arange(size, dtype=np.int32)
    into_bytes = open_memmap(place / "bytes.npy", mode="w+", dtype=np.int8, shape=(size, width))
    into_signs = open_memmap(place / "signs.npy", mode="w+", dtype=np.uint64, shape=(-(-width // _WORD), size))
    for first, part in _pieces(vectors):
        watch.step("index", (size + first) // 2, size)
        places = place_of[first : first + len(part)]
        into_bytes[places] = np.clip(np.rint(part / scale), -127, 127)
        into_signs[:, places] = _signs_of(part)
        if first % _LET_GO == 0:
            let_go(into_bytes, into_signs)
    into_bytes.flush()
    into_signs.flush()
    np.save(place / "centres.npy", centres)
    np.save(place / "starts.npy", np.concatenate([[0], np.cumsum(np.bincount(cell, minlength=len(centres)))]))
    np.save(place / "rows.npy", order)


def _centres_of(vectors: Floats) -> tuple[Floats, float]:
    """The centres of cells, as unit vectors, and the value of one step of a byte."""
    from sklearn.cluster import KMeans

    size = len(vectors)
    count = max(1, min(_CENTRES, size // _ROWS_A_CENTRE))
    chosen = np.zeros(size, dtype=bool)
    chosen[np.random.default_rng(0).choice(size, min(size, count * _ROWS_A_CENTRE), replace=False)] = True
    sample = np.concatenate([part[chosen[first : first + len(part)]] for first, part in _pieces(vectors)])
    means = KMeans(count, init="random", n_init=1, max_iter=_ROUNDS, random_state=0).fit(sample).cluster_centers_
    centres = (means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-9)).astype(np.float32)
    return centres, float(np.abs(sample).max()) / 127 or 1.0


def _pieces(vectors: Floats) -> Iterator[tuple[int, Floats]]:
    """(first row, rows) of the whole; mapped ones are let go of, since what is mapped counts as memory in use."""
    for first in range(0, len(vectors), _AT_ONCE):
        yield first, vectors[first : first + _AT_ONCE]
        let_go(vectors)
