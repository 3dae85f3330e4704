"""Every error that the engine raises on purpose.

    GroundworkError
    ├── InputError             what was given cannot be used as it is
    │   ├── QuestionError          empty or too long
    │   ├── FileError              a file cannot be read or holds no text
    │   └── RecordError            a JSONL record lacks or garbles a field
    ├── CorpusError            a collection cannot be used as asked
    │   ├── CorpusNotFound
    │   ├── CorpusMismatch         another embedder or chunking made it
    │   └── CorpusLocked           another process is writing it
    ├── CaseError              a case cannot be opened, imported or changed
    │   ├── CaseNotFound
    │   ├── CaseFrozen             signed off; a change makes a new version
    │   └── CaseFileError          a case file does not validate or its hashes differ
    ├── ModelError             a model cannot be loaded or did not answer
    │   ├── ModelNotFound
    │   ├── CannotDo               the model lacks a capability (score, gradients, ...)
    │   ├── PromptTooLong          over the model's limit; never cut silently
    │   ├── ServerError            a served model failed, timed out or went away
    │   └── BudgetSpent            a served model may not be asked any more
    ├── AttributionError       no attribution can be computed for these inputs
    ├── StorageError           the disk is full or the data folder not writable
    └── Cancelled              the user asked to stop

A message is one or two sentences: what happened, and what to do next.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePath


class GroundworkError(Exception):
    """Root of the tree; `str(error)` is fit to be shown to the user."""


class InputError(GroundworkError):
    """The input cannot be used as it is."""


class QuestionError(InputError):
    """The question is empty or longer than the limit."""


class FileError(InputError):
    """A file cannot be read or has no text."""


class RecordError(InputError):
    """A record lacks a field or has one of the wrong shape."""


class CorpusError(GroundworkError):
    """A collection cannot be used as asked."""


class CorpusNotFound(CorpusError):
    """No collection of that name."""


class CorpusMismatch(CorpusError):
    """The collection was made with another embedder or chunking."""


class CorpusLocked(CorpusError):
    """Another process is writing the collection."""


class CaseError(GroundworkError):
    """A case cannot be opened, imported or changed."""


class CaseNotFound(CaseError):
    """No case of that id."""


class CaseFrozen(CaseError):
    """The case is signed off; a change makes a new version."""


class CaseFileError(CaseError):
    """A case file does not validate, or a hash in it differs from what it is the hash of; the path says where."""


class ModelError(GroundworkError):
    """A model cannot be loaded or did not answer."""


class ModelNotFound(ModelError):
    """No model of that name, or its files are incomplete."""


class CannotDo(ModelError):
    """The model lacks what the method needs."""


class PromptTooLong(ModelError):
    """The prompt does not fit the model's window; the message names the passages that would have to go."""


class ServerError(ModelError):
    """A served model failed, timed out or went away; `partial` is the text that had come."""

    def __init__(self, message: str, partial: str = "") -> None:
        super().__init__(message)
        self.partial = partial


class BudgetSpent(ModelError):
    """The calls or tokens that a run may take of a served model are spent."""


class AttributionError(GroundworkError):
    """No attribution can be computed for these inputs."""


class StorageError(GroundworkError):
    """The disk is full or the data folder cannot be written."""


class Cancelled(GroundworkError):
    """The user asked to stop; whoever drives the run has what it yielded before."""


def first_line(error: BaseException) -> str:
    """The first line of what another library's error says, for a message of ours; its type where it says nothing.

    >>> first_line(OSError("Not there.\\nSee the log.")), first_line(MemoryError())
    ('Not there.', 'MemoryError')
    """
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


@contextmanager
def raised_as(kind: type[GroundworkError], what: str, way_out: str, *failures: type[Exception]) -> Iterator[None]:
    """Raise `failures` of the block as an error of ours: `what` happened, the reason in brackets, the `way_out`.

    A file that failed is part of the reason where `what` does not name it.

    >>> with raised_as(FileError, "notes.txt cannot be read", "Check the path.", OSError):
    ...     raise FileNotFoundError(2, "No such file or directory", "/home/me/notes.txt")
    Traceback (most recent call last):
    engine.core.errors.FileError: notes.txt cannot be read (No such file or directory). Check the path.
    """
    try:
        yield
    except failures as error:
        reason = getattr(error, "strerror", None) or first_line(error)[:200].removesuffix(".")
        file = PurePath(str(error.filename or "")).name if isinstance(error, OSError) else ""
        raise kind(f"{what} ({reason}{'' if file in what else f': {file}'}). {way_out}") from error
