"""Which collections there are, what one may be called, and whether a reader and a collection fit together."""

from __future__ import annotations

import re
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
    """The manifests of all collections, by name; a damaged one is left out here and said by `health`."""
    if not corpora_folder().is_dir():
        return []
    found: list[Manifest] = []
    for folder in sorted(corpora_folder().iterdir()):
        try:
            manifest = store.read_manifest(folder)
        except CorpusError:
            continue
        found.extend([manifest] if manifest else [])
    return found


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
