"""Vectors already paid for: an ingest that is cancelled or killed does not embed the same texts again.

While an ingest embeds, each finished piece is written to `pending/` as one .npz file (hashes of the texts, vectors),
renamed into place when whole. The next ingest into the collection takes what it finds there, whatever it is for:
a vector belongs to a text and an embedder, not to a passage. A finished ingest empties the folder.
"""

from __future__ import annotations

import hashlib
import io
import logging
import shutil
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from engine.corpus.store import storage
from engine.files import replace_file
from engine.models.protocols import Embedder, Floats
from engine.progress import Watch

log = logging.getLogger(__name__)
PIECE = 1_024  # texts embedded between two files; about 15 seconds of work


def embed_resumably(
    folder: Path, embedder: Embedder, texts: Sequence[str], watch: Watch, known: Mapping[str, Floats]
) -> Floats:
    """Vectors of `texts`, float32, shape (len(texts), dimensions).

    Taken from `known` (by text), from the collection's pending pieces, and for the rest from the embedder.
    """
    vectors = np.zeros((len(texts), embedder.dimensions), dtype=np.float32)
    keys = [_key(embedder, text) for text in texts]
    pending = _read_pending(folder, embedder.dimensions)
    missing = []
    for row, (text, key) in enumerate(zip(texts, keys, strict=True)):
        vector = known.get(text, pending.get(key))
        if vector is None:
            missing.append(row)
        else:
            vectors[row] = vector
    missing.sort(key=lambda row: -len(texts[row]))  # pieces of similar length carry little padding
    for first in range(0, len(missing), PIECE):
        rows = missing[first : first + PIECE]
        told = _shifted(watch, len(texts) - len(missing) + first, len(texts))
        vectors[rows] = embedder.embed([texts[row] for row in rows], told)
        if first + PIECE < len(missing):
            _write_piece(folder, [keys[row] for row in rows], vectors[rows])
    watch.step("embed", len(texts), len(texts))
    return vectors


def drop_pending(folder: Path) -> None:
    """Forget the pieces: the collection has them now."""
    shutil.rmtree(folder / "pending", ignore_errors=True)


def _shifted(watch: Watch, offset: int, total: int) -> Watch:
    """A watch that reports a piece's progress as part of the whole."""
    return Watch(lambda stage, done, _: watch.report(stage, offset + done, total), watch.cancel)


def _key(embedder: Embedder, text: str) -> str:
    """The name under which a vector is kept: embedder and text."""
    return hashlib.sha256(f"{embedder.name}\0{text}".encode("utf-8", "surrogatepass")).hexdigest()


def _write_piece(folder: Path, keys: Sequence[str], vectors: Floats) -> None:
    """Keep one piece, whole or not at all."""
    place = folder / "pending"
    name = hashlib.sha256("".join(keys).encode()).hexdigest()[:24]
    piece = io.BytesIO()
    np.savez(piece, keys=np.array(keys), vectors=vectors)
    with storage("vectors already embedded"):
        place.mkdir(exist_ok=True)
        replace_file(place / f"{name}.npz", piece.getvalue())


def _read_pending(folder: Path, dimensions: int) -> dict[str, Floats]:
    """Vectors by key from every whole piece; a piece that cannot be read is left out and said in the log."""
    known: dict[str, Floats] = {}
    for path in sorted((folder / "pending").glob("*.npz")):
        try:
            with np.load(path, allow_pickle=False) as piece:
                keys, vectors = piece["keys"], piece["vectors"]
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            log.warning("Vectors kept in %s cannot be read (%s) and are made again.", path.name, error)
            continue
        if vectors.ndim == 2 and vectors.shape == (len(keys), dimensions):
            known.update(zip(map(str, keys), vectors, strict=True))
    return known
