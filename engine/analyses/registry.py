"""The kinds of analyses by name. The workbench, commands, pages, report, replay and studies find them here alone.

    from engine.analyses.registry import register
    register(Kind(name="my analysis", ...))

An attribution method that is registered in `engine.methods.registry` is a kind, too.
"""

from __future__ import annotations

from typing import Any

from engine.analyses import (
    attr_rag,
    claims,
    contrast,
    facts,
    faithfulness,
    imported,
    occlusion,
    reading,
    refinement,
    said,
    steps,
    token_map,
    used_supports,
    word_overlap,
)
from engine.analyses.attribution import method_kind
from engine.analyses.kind import Kind
from engine.core.errors import InputError
from engine.methods import registry as methods

AnyKind = Kind[Any]
BUILT_IN: tuple[AnyKind, ...] = (
    reading.KIND,
    imported.KIND,
    occlusion.PASSAGES,
    occlusion.CHUNK_SETS,
    occlusion.SINGLE_SENTENCES,
    occlusion.REGENERATED,
    token_map.KIND,
    faithfulness.KIND,
    used_supports.KIND,
    word_overlap.KIND,
    contrast.KIND,
    attr_rag.KIND,
    refinement.KIND,
    said.PAIR,
    facts.KIND,
    claims.CHECK,
    claims.EDIT,
    claims.DECOMPOSITION,
    claims.PEERS,
    claims.ENTROPY,
    steps.KIND,
    said.PASSAGES,
)

_registered: dict[str, AnyKind] = {}


def kinds() -> dict[str, AnyKind]:
    """Every kind by its name: the project's own, the attribution methods, those of this process."""
    of_methods = {method.name: method_kind(method) for method in methods.methods()}
    return of_methods | {kind.name: kind for kind in BUILT_IN} | _registered


def runnable() -> dict[str, AnyKind]:
    """The kinds that can be run on a case."""
    return {name: kind for name, kind in kinds().items() if kind.run is not None}


def find(name: str) -> AnyKind | None:
    """The kind of that name, None where this installation has none."""
    return kinds().get(name)


def kind_named(name: str, *, run: bool = True) -> AnyKind:
    """A kind that can be run, or any kind without `run`; `InputError` listing those that may be named.

    "input-x-gradient", as on the command line, is "input x gradient".
    """
    known = runnable() if run else kinds()
    spelled = {kind.replace("-", " "): kind for kind in known} | {kind: kind for kind in known}
    if (own := spelled.get(name) or spelled.get(name.replace("-", " "))) is None:
        raise InputError(f"No analysis has the name {name!r}. Choose one of: {', '.join(known)}.")
    return known[own]


def register(kind: AnyKind) -> None:
    """Add a kind for this process; `InputError` if the name is taken."""
    if kind.name in kinds():
        raise InputError(f"There is already an analysis named {kind.name!r}. Choose another name.")
    _registered[kind.name] = kind


def unregister(name: str) -> None:
    """Take a registered kind out again."""
    _registered.pop(name, None)
