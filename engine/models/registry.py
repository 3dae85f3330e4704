"""Models by name: `embedded`, a Hugging Face id or folder, `openai:MODEL@BASE_URL`.

The two models used last stay loaded. A model is loaded once however many ask for it at the same time.
`reader`, the quoting reader, is no model: whoever answers with it builds it.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any

from engine.errors import ModelNotFound
from engine.home import ASSETS, EMBEDDED, home
from engine.models.protocols import Writer
from engine.types import Value

LANGUAGE_MODEL = ASSETS / "models" / "language_model"
KEPT = 2  # loaded models at a time; the one unused longest goes first
SERVED = "openai:"

_loaded: OrderedDict[tuple[Any, ...], Writer] = OrderedDict()
_lock = threading.Lock()
_loading: dict[tuple[Any, ...], threading.Lock] = {}


class ModelCard(Value, frozen=True):
    """A model at hand and what it can do; `where` is a folder, an address or "here"."""

    name: str
    kind: str
    can_generate: bool = True
    can_score: bool = False
    can_gradients: bool = False
    where: str = ""
    note: str = ""


def load_writer(name: str, dtype: str = "auto", device: str = "auto") -> Writer:
    """The model of that name, loaded or taken from those that are.

    Raises `ModelNotFound` with the names that would work, `ModelError` where the files cannot be used.
    """
    key = (name.strip(), dtype, device)
    with _lock:
        if key in _loaded:
            _loaded.move_to_end(key)
            return _loaded[key]
        turn = _loading.setdefault(key, threading.Lock())
    with turn:
        with _lock:
            if key in _loaded:
                return _loaded[key]
        model = _load(*key)
        _keep(key, model)
    return model


def forget_models() -> None:
    """Let every loaded model go."""
    with _lock:
        _loaded.clear()


def _keep(key: tuple[Any, ...], model: Writer) -> None:
    with _lock:
        _loaded[key] = model
        _loading.pop(key, None)
        while len(_loaded) > KEPT:
            _loaded.popitem(last=False)


def _load(name: str, dtype: str, device: str) -> Writer:
    if name.startswith(SERVED):
        from engine.models.server import ServerModel

        return ServerModel.named(name)
    if not name or name in ("reader", "auto"):
        raise ModelNotFound(
            f"{name or 'An empty name'} is no language model. "
            "Give embedded, a Hugging Face id or folder, or openai:MODEL@BASE_URL."
        )
    if name == EMBEDDED and not holds_weights(LANGUAGE_MODEL):
        raise ModelNotFound(
            f"The embedded language model is not in this copy ({LANGUAGE_MODEL} holds no weights). "
            "Give a Hugging Face id or folder, or openai:MODEL@BASE_URL."
        )
    from engine.models.huggingface import HuggingFaceModel

    source = LANGUAGE_MODEL if name == EMBEDDED else local_folder(name) or name
    return HuggingFaceModel.load(source, dtype, device, called=name)


def holds_weights(folder: Path) -> bool:
    """Whether a folder has a config and safetensors."""
    return (folder / "config.json").is_file() and any(folder.glob("*.safetensors"))


def local_folder(name: str) -> Path | None:
    """The folder that `name` means: a path, or a folder of the data folder's `models`."""
    try:
        candidates = (Path(name).expanduser(), home() / "models" / name)
        return next((folder for folder in candidates if (folder / "config.json").is_file()), None)
    except (OSError, RuntimeError):  # too long for the disk, or the home of nobody
        return None


def available_models() -> tuple[ModelCard, ...]:
    """What can be used with no download: reader, embedded model, folders, the hub's cache, a configured server."""
    reader = ModelCard(
        name="reader", kind="quoting reader", where="here", note="Quotes the best sentences; has no probabilities."
    )
    return (reader, _embedded_card(), *_folder_cards(), *_cached_cards(), *_server_cards())


def writers() -> list[str]:
    """Names of the models at hand that write words of their own: all of them but the quoting reader."""
    return [card.name for card in available_models() if card.can_generate and card.name != "reader"]


def _embedded_card() -> ModelCard:
    here = holds_weights(LANGUAGE_MODEL)
    note = "Small; trained on sample worlds, out of its domain elsewhere." if here else "Not in this copy."
    return ModelCard(
        name=EMBEDDED,
        kind="language model",
        can_generate=here,
        can_score=here,
        can_gradients=here,
        where=str(LANGUAGE_MODEL) if here else "",
        note=note,
    )


def _white_box(name: str, where: str) -> ModelCard:
    return ModelCard(name=name, kind="language model", can_score=True, can_gradients=True, where=where)


def _folder_cards() -> tuple[ModelCard, ...]:
    folders = sorted(path.parent for path in (home() / "models").glob("*/config.json"))
    return tuple(_white_box(folder.name, str(folder)) for folder in folders if holds_weights(folder))


def _cached_cards() -> tuple[ModelCard, ...]:
    """Causal models in the hub's local cache, read from their configs; nothing is contacted."""
    from huggingface_hub.constants import HF_HUB_CACHE

    cards = []
    for folder in sorted(Path(HF_HUB_CACHE).glob("models--*")):
        if any(holds_weights(path) and is_causal(path) for path in folder.glob("snapshots/*")):
            cards.append(_white_box(folder.name.removeprefix("models--").replace("--", "/"), str(folder)))
    return tuple(cards)


def is_causal(folder: Path) -> bool:
    """Whether the config in `folder` names a causal language model."""
    text = (folder / "config.json").read_text(encoding="utf-8")
    return "ForCausalLM" in text or "LMHeadModel" in text


def _server_cards() -> tuple[ModelCard, ...]:
    address = os.environ.get("OPENAI_BASE_URL", "")
    if not address:
        return ()
    from engine.models.server import WHY_NOT

    return (ModelCard(name=f"{SERVED}MODEL@{address}", kind="served model", where=address, note=WHY_NOT),)
