"""What a replay needs and what one recomputed part comes to."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from engine.core.canonical import canonical
from engine.core.values import Analysis, Case, Value
from engine.corpus.collection import Collection
from engine.models.embedder import load_embedder
from engine.models.protocols import (
    Embedder,
    Entailment,
    Reranker,
    Writer,
)
from engine.models.registry import load_writer
from engine.models.reranker import load_reranker
from engine.models.verifier import load_entailment

Json = dict[str, Any]
Floor = float | tuple[float, ...]
# What a run costs, what it says in words, and how large its rounding was are no results.
COSTS = frozenset({"seconds", "forwards", "backwards", "notes", "numerical_floor", "numerical_floor_by_span"})

AS_IT_CAME = frozenset({"id", "start", "end"})  # of a token that a language model wrote


class Outcome(Value, frozen=True):
    """A part computed again: `values` in the shape of the stored ones, or `why` it could not be.

    `floor` is how far a number may move by rounding alone, in the part's own unit; `floors` are those of the numbers
    under a name, where they have another unit or size than the rest: one, or one for each entry of the list.
    """

    values: Any = None
    floor: float = 0.0
    why: str = ""
    floors: Mapping[str, Floor] = {}


@dataclass(frozen=True)
class Tools:
    """Where models and collections come from, by the names in the stamps."""

    embedder: Callable[[str], Embedder] = load_embedder
    reranker: Callable[[str], Reranker] = load_reranker
    writer: Callable[[str], Writer] = load_writer
    collection: Callable[[str], Collection] = Collection.open
    verifier: Callable[[str], Entailment] = load_entailment


def plain(value: Any) -> Any:
    """A value as the library stores it: plain JSON, what is not finite as null."""
    return msgspec.json.decode(canonical(value))


def less(result: Any, but: Container[str] = COSTS) -> Any:
    """A stored result less what is no result, at any depth: by default what it cost, and words about it."""
    if isinstance(result, dict):
        return {key: less(value, but) for key, value in plain(result).items() if key not in but}
    return [less(value, but) for value in result] if isinstance(result, list) else result


def nothing(result: Json) -> Json:
    """Of most results nothing is an input of their replay."""
    return {}


@dataclass(frozen=True)
class Kind:
    """How analyses of one kind are computed again.

    `given` is what of a stored result is an input: texts that a language model wrote. The copy that is replayed holds
    that and nothing else. `compared` is what of it is held against the outcome of `again`, in the same shape.
    """

    again: Callable[[Case, Analysis, Tools], Outcome]
    given: Callable[[Json], Json] = nothing
    compared: Callable[[Json], Any] = less
