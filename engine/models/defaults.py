"""The default model of each role: who writes, scores and judges where no model is named.

The choice is the user's. A model that is gone never stops anything: the built-in default applies and a note says why.
"""

from __future__ import annotations

from engine.core.errors import InputError
from engine.core.files import EMBEDDED, home, save_json
from engine.core.hosts import bare_address
from engine.core.values import Value
from engine.models.choices import FILE, READER, Defaults, DType, Role, read_defaults
from engine.models.registry import available_models, check_address, source_of
from engine.models.server import SERVED, served_parts

AUTO = "auto"
NOUNS: dict[Role, str] = {"writes": "writer", "scores": "scorer", "judges": "judge"}


class Default(Value, frozen=True):
    """The model that a role takes; `note` says why it is not the one that the user chose, empty where it is."""

    model: str
    note: str = ""


def default_for(role: Role) -> Default:
    """The user's choice for a role while it can be used, else the built-in default."""
    stored, problem = read_defaults()
    name, built_in = getattr(stored, role), getattr(Defaults(), role)
    if name == built_in or can_fill(name, role):
        return Default(model=name, note=problem)
    return Default(
        model=built_in,
        note=f"The default {NOUNS[role]} {name} is no longer available; {built_in or 'none'} is used instead. "
        f"Install it again, or choose another in Settings.",
    )


def resolve_writer(name: str) -> str:
    """The name of who answers: `auto` is the default writer, every other name itself."""
    return default_for("writes").model if name == AUTO else name


def default_generator() -> str:
    """The default writer where the quoting reader cannot write: the embedded model in the reader's place."""
    name = default_for("writes").model
    return EMBEDDED if name == READER else name


def default_notes() -> tuple[str, ...]:
    """Why defaults are not those that the user chose, each reason once."""
    notes = (default_for(role).note for role in NOUNS)
    return tuple(dict.fromkeys(note for note in notes if note))


def default_hosts() -> tuple[str, ...]:
    """The hosts of the defaults that are served models and name their address, as `hosts` tells them."""
    return tuple(
        f"{bare_address(address)} when the default {noun} is asked: questions and passages"
        for role, noun in NOUNS.items()
        if (name := default_for(role).model).startswith(SERVED) and (address := served_parts(name)[1])
    )


def candidates(role: Role) -> list[str]:
    """Names of the available models that can take a role, the built-in default first."""
    cards = (
        card for card in available_models() if card.name != READER and (card.title or not card.name.startswith(SERVED))
    )
    able = (card.name for card in cards if (card.can_score if role == "scores" else card.can_generate))
    return list(dict.fromkeys([getattr(Defaults(), role), *able]))


def can_fill(name: str, role: Role) -> bool:
    """Whether a model is available for a role; a served model is taken to be there, and gives no scores."""
    return name in candidates(role) or (role != "scores" and name.startswith(SERVED))


def choose_default(role: Role, name: str) -> None:
    """Keep a model as the default of a role; raise `InputError` for one that cannot be it, `StorageError`."""
    name = source_of(name)
    if not can_fill(name, role):
        raise InputError(
            f"{name or 'No model'} cannot be the default {NOUNS[role]}. Choose one of: {', '.join(candidates(role))}."
        )
    check_address(name)
    _keep(role, name)


def choose_dtype(dtype: DType) -> None:
    """Keep the number format in which local models load from now on; raise `StorageError`."""
    _keep("dtype", dtype)


def _keep(field: str, value: str) -> None:
    stored, _ = read_defaults()
    save_json(home() / FILE, Defaults.from_dict({**stored.to_dict(), field: value}), "The default models")
