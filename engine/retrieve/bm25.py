"""BM25 over title and text with English stemming, by the library bm25s; one index a generation of a collection.

The index of a large collection is kept beside its generation's files, and made again whenever it cannot be read.
"""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from engine.core.text import stemmer
from engine.corpus.collection import embedding_text
from engine.corpus.store import Snapshot, generation_folder
from engine.models.protocols import Floats

log = logging.getLogger(__name__)
_KEPT_FROM = 5_000  # passages from which an index is worth keeping on the disk


class Bm25:
    """An index in memory: `scores` gives every passage's score for a question."""

    def __init__(self, index: Any, size: int) -> None:
        """Wrap a bm25s index of `size` texts; None for texts without a word."""
        self._index = index
        self._size = size

    @classmethod
    def of(cls, texts: list[str]) -> Bm25:
        """Index `texts` (k1 = 1.5, b = 0.75, Lucene's form: the library's defaults)."""
        import bm25s

        tokens = bm25s.tokenize(texts, stopwords="en", stemmer=stemmer(), show_progress=False)
        if not tokens.vocab:
            return cls(None, len(texts))
        index = bm25s.BM25()
        index.index(tokens, show_progress=False)
        return cls(index, len(texts))

    def scores(self, question: str) -> Floats:
        """One score a text, 0 and up, shape (n,)."""
        import bm25s

        tokens = bm25s.tokenize(question, stopwords="en", stemmer=stemmer(), return_ids=False, show_progress=False)[0]
        if self._index is None or not any(token in self._index.vocab_dict for token in tokens):
            return np.zeros(self._size, dtype=np.float32)
        return np.asarray(self._index.get_scores(tokens), dtype=np.float32)

    def save(self, place: Path) -> None:
        """Keep the index; a full disk is no error here, since it can be made again."""
        new = place.with_name(f"{place.name}.new")
        try:
            shutil.rmtree(new, ignore_errors=True)
            self._index.save(str(new), show_progress=False)
            new.replace(place)
        except OSError as error:
            log.warning("The word index was not kept (%s); it will be made again.", error)
            shutil.rmtree(new, ignore_errors=True)

    @classmethod
    def read(cls, place: Path, size: int) -> Bm25 | None:
        """A kept index; None where there is none that can be read and holds `size` texts."""
        import bm25s

        if not place.is_dir():
            return None
        try:
            index = bm25s.BM25.load(str(place))
            held = int(index.scores["num_docs"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            log.warning("The kept word index cannot be read (%s) and is made again.", error)
            return None
        return cls(index, size) if held == size else None


_INDEXES: dict[Path, tuple[Snapshot, Bm25]] = {}


def index_of(folder: Path, snapshot: Snapshot) -> Bm25:
    """The index of a snapshot, the latest one of each collection kept in memory."""
    known = _INDEXES.get(folder)
    if known is not None and known[0] is snapshot:
        return known[1]
    place = generation_folder(folder, snapshot.manifest.generation) / "bm25"
    size = len(snapshot.passages)
    index = Bm25.read(place, size) if size >= _KEPT_FROM else None
    if index is None:
        index = Bm25.of([embedding_text(p) for p in snapshot.passages])
        if size >= _KEPT_FROM:
            index.save(place)
    _INDEXES[folder] = (snapshot, index)
    return index
