"""Where state lives: one folder, `GROUNDWORK_HOME`, by default the platform's own place for user data.

Model weights are in its folder `models`, or in the folder that `GROUNDWORK_MODELS` names: several homes can share one.
"""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

from engine.errors import StorageError

ASSETS = Path(__file__).resolve().parent.parent / "assets"
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
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"The {what} {folder} cannot be made ({error.strerror}). Set {variable} to a writable folder."
        ) from error
    return folder
