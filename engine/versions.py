"""Versions of what a result depends on, for stamps."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version

STAMPED = ("torch", "transformers", "sentence-transformers", "chromadb", "bm25s", "numpy")
VERSION = "0.1.0"


@cache
def package_versions() -> dict[str, str]:
    """Groundwork, Python and the packages that numbers depend on."""
    found = {"groundwork": VERSION, "python": platform.python_version()}
    for name in STAMPED:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "absent"
    return found
