"""The studies by name: one module a study, its name with underscores, each with one `STUDY`."""

from __future__ import annotations

import pkgutil
from importlib import import_module

from engine.core.errors import InputError
from engine.studies.tools import Study


def names() -> tuple[str, ...]:
    """The names of all studies, as a config writes them."""
    found = (module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))
    return tuple(sorted(name.replace("_", "-") for name in found))


def study_of(name: str) -> Study:
    """The study of that name; raise `InputError` with the names there are."""
    if name not in names():
        raise InputError(f"There is no study {name!r}. Choose one of: {', '.join(names())}.")
    study: Study = import_module(f"{__name__}.{name.replace('-', '_')}").STUDY
    return study
