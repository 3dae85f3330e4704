"""Where state lives: one folder, `GROUNDWORK_HOME`, by default the platform's own place for user data."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

from engine.errors import StorageError

ASSETS = Path(__file__).resolve().parent.parent / "assets"
EMBEDDED = "embedded"  # the name of what ships there: a language model, and a verifier


def home() -> Path:
    """The data folder, made if absent; raise `StorageError` where it cannot be made."""
    folder = Path(os.environ.get("GROUNDWORK_HOME") or platformdirs.user_data_dir("groundwork", appauthor=False))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"The data folder {folder} cannot be made ({error.strerror}). Set GROUNDWORK_HOME to a writable folder."
        ) from error
    return folder
