"""Which collections there are, what one may be called, and whether a reader and a collection fit together."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from engine.corpus import store
from engine.corpus.store import Manifest
from engine.errors import CorpusError, CorpusMismatch, InputError
from engine.home import home
from engine.models.protocols import Embedder
from engine.settings import Chunking

_NAME = re.compile(r"[^\W_][\w .\-]{0,63}")


def corpora_folder() -> Path:
    """Where collections live."""
    return home() / "corpora"


def check_name(name: str) -> str:
    """`name` unchanged; raise `InputError` unless it is a plain name of letters, digits, space, `.`, `-`, `_`."""
    if not _NAME.fullmatch(name) or name.endswith((".", " ")) or ".." in name:
        raise InputError(
            f"{name!r} cannot name a collection. Use 1 to 64 letters, digits, spaces, dots, hyphens or underscores."
        )
    return name


def list_corpora() -> list[Manifest]:
    """The manifests of all collections, by name; one whose manifest cannot be read stands in `unreadable_corpora`."""
    return [manifest for _, manifest in _found() if isinstance(manifest, Manifest)]


def unreadable_corpora() -> dict[str, str]:
    """What is wrong with each collection whose manifest cannot be read, and the way out, by name; `remove` takes it."""
    return {name: str(error) for name, error in _found() if isinstance(error, CorpusError)}


def _found() -> Iterator[tuple[str, Manifest | CorpusError]]:
    """Every collection's name with its manifest, or with why there is none to be had."""
    folder = corpora_folder()
    for place in sorted(place for place in folder.iterdir() if place.is_dir()) if folder.is_dir() else ():
        try:
            manifest = store.read_manifest(place)
        except CorpusError as error:
            yield place.name, error
        else:
            if manifest is not None:
                yield manifest.name, manifest


def agree(manifest: Manifest, embedder: Embedder | None, chunking: Chunking | None) -> None:
    """Raise `CorpusMismatch` unless embedder and chunking, where given, are those that made the collection."""
    if embedder is not None and (embedder.name, embedder.dimensions) != (manifest.embedder, manifest.dimensions):
        raise CorpusMismatch(
            f"The collection {manifest.name!r} was embedded with {manifest.embedder}, not {embedder.name}. "
            f"Search it with {manifest.embedder}, or embed it again."
        )
    if chunking is not None and chunking != manifest.chunking:
        raise CorpusMismatch(
            f"The collection {manifest.name!r} was cut by {_told(manifest.chunking)}, not by {_told(chunking)}. "
            "Use the same chunking, chunk the collection again, or ingest under another name."
        )


def _told(how: Chunking) -> str:
    """A chunking in words."""
    return f"{how.method} to {how.words} words with overlap {how.overlap}"
