"""Is a collection whole: its files' hashes, its offsets, its vectors, its index; and what can be mended is mended.

The documents are the truth: passages and vectors are made again from them, the index from the vectors.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from engine.core.errors import CorpusError, CorpusLocked, GroundworkError, ServerError
from engine.core.progress import Watch
from engine.core.values import Value
from engine.corpus import index, large, store
from engine.corpus.collection import Collection
from engine.corpus.store import Snapshot


class Health(Value, frozen=True):
    """The result of a check. `notes` say in sentences what was wrong and what was done about it."""

    state: Literal["good", "mended", "damaged"]
    notes: tuple[str, ...] = ()


def health(name: str, watch: Watch | None = None) -> Health:
    """Check a collection and mend what can be mended; raise `CorpusNotFound` if there is none of that name.

    The index is checked where one exists.
    """
    collection = Collection.open(name)
    manifest = collection.manifest
    wrong = store.verify_hashes(collection.folder, manifest) if manifest.generation else []
    if {"documents.jsonl", large.TEXT} & set(wrong):
        return Health(
            state="damaged",
            notes=("The stored documents are damaged. Remove the collection and ingest its files again.",),
        )
    mended: list[str] = []
    try:
        if wrong:
            collection.rebuild_from(store.read_documents(collection.folder, manifest), watch or Watch())
            mended.append(f"{' and '.join(wrong)} did not match the stored documents and were rebuilt from them.")
        snapshot = collection.snapshot()
    except CorpusError as error:
        return Health(state="damaged", notes=(*mended, str(error)))
    found = _inconsistencies(snapshot)
    return _with_index(collection, snapshot, [*mended, *found], bool(found), watch)


def _inconsistencies(snapshot: Snapshot) -> list[str]:
    """Sentences about what does not fit; nothing where all is well."""
    notes = []
    for passage in snapshot.passages:
        document = snapshot.documents.get(passage.document)
        if document is None or document.text[passage.start : passage.end] != passage.text:
            notes.append(f"Passage {passage.id} differs from the text at its position in the document.")
    if not np.isfinite(snapshot.vectors).all():
        notes.append("Some vectors contain values that are not numbers.")
    return notes


def _with_index(
    collection: Collection, snapshot: Snapshot, notes: list[str], damaged: bool, watch: Watch | None
) -> Health:
    """The verdict on what was noted, with what the index check says; `damaged`: some of it could not be mended."""
    if snapshot.passages and index.exists(collection.folder):
        was_open = index.is_open(collection.folder)
        try:
            notes.extend(filter(None, [index.open_index(collection.folder, snapshot, watch).repaired]))
        except (CorpusLocked, ServerError) as error:
            return Health(state="damaged" if damaged else "good", notes=(*notes, str(error)))
        except GroundworkError as error:
            return Health(state="damaged", notes=(*notes, str(error)))
        finally:
            if not was_open:  # a check must not keep other processes from the index
                index.close_index(collection.folder)
    return Health(state="damaged" if damaged else "mended" if notes else "good", notes=tuple(notes))
