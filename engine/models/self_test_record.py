"""Self-tests kept in the data folder, so that Settings and every report can show the table of the model it used.

A record belongs to name, revision and dtype, the three that a stamp carries: other weights, other record.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from engine.errors import StorageError
from engine.files import replace_file
from engine.home import home
from engine.models.protocols import Writer
from engine.models.self_test import Check, self_test
from engine.progress import Watch
from engine.types import sha256
from engine.value import decoded


def checks_of(model: Writer, watch: Watch | None = None) -> tuple[Check, ...]:
    """The model's record, or a new test of it, kept. A served model has no revision and is tested each time.

    Raises `Cancelled` where `watch` asks to stop; nothing of half a test is kept.
    """
    name, revision, dtype = identity(model)
    known = remembered(name, revision, dtype) if revision else None
    if known is not None:
        return known
    checks = self_test(model, watch)
    remember(model, checks)
    return checks


def remember(model: Writer, checks: tuple[Check, ...]) -> None:
    """Keep a test, in place of an older one of the same model; `StorageError` where it cannot be written."""
    path = _path(*identity(model))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, json.dumps([check.to_dict() for check in checks], indent=1).encode())
    except OSError as error:
        raise StorageError(f"The self-test cannot be kept in {path.parent} ({error.strerror}). Free space.") from error


def remembered(name: str, revision: str, dtype: str) -> tuple[Check, ...] | None:
    """The record of that model, e.g. of a stamp; None where there is none or it cannot be read."""
    path = _path(name, revision, dtype)
    if not path.is_file():
        return None
    try:
        return decoded(path.read_bytes(), tuple[Check, ...])
    except msgspec.MsgspecError:
        return None  # damaged, or of an older version: it is tested again


def identity(model: Any) -> tuple[str, str, str]:
    """(name, revision, dtype), as stamps carry them."""
    return model.name, getattr(model, "revision", ""), getattr(model, "dtype", "")


def _path(*parts: str) -> Path:
    return home() / "self_tests" / f"{sha256(chr(0).join(parts))[:24]}.json"
