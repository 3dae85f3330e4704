"""Folders of model weights: their names, whether one is complete, and one process at a time to make one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.progress import Watch

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
            watch.step("waiting for another process that prepares this model")
    try:
        yield
    finally:
        lock.release()
