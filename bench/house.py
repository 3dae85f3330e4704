"""Count the engine's lines, files, importers and names. Needs no model and takes a second.

    python -m bench.house            prints the figures
    python -m bench.house --names    with the files and names behind them

Counted from syntax trees. An importer is another engine module that imports from the file, anywhere in it. A public
name is a function, class or constant of a module without a leading underscore. A class is any class of a module, even
inside a function.
"""

from __future__ import annotations

import argparse
import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHORT = 25  # lines under which a module with one importer belongs to it


@dataclass(frozen=True)
class Module:
    """One file of the engine: dotted name, lines, syntax tree and text."""

    name: str
    path: Path
    tree: ast.Module
    text: str

    @property
    def lines(self) -> int:
        """Lines of the file."""
        return self.text.count("\n")


def modules(root: Path = ROOT, package: str = "engine") -> dict[str, Module]:
    """The modules of a package by dotted name; an `__init__.py` has its folder's name."""
    found = {}
    for path in sorted((root / package).rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        text = path.read_text(encoding="utf-8")
        found[name] = Module(name, path, ast.parse(text), text)
    return found


def imported(module: Module, known: Mapping[str, Module]) -> Iterator[str]:
    """The modules that a module imports; `from package import module` counts as the module."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                if inner in known:
                    yield inner
                elif node.module in known:
                    yield node.module


def importers(known: Mapping[str, Module]) -> dict[str, set[str]]:
    """The modules that import each module."""
    by: dict[str, set[str]] = {name: set() for name in known}
    for module in known.values():
        for name in imported(module, known):
            if name != module.name:
                by[name].add(module.name)
    return by


def public_names(module: Module) -> list[str]:
    """Functions, classes and constants of the module that do not start with an underscore."""
    names: list[str] = []
    for node in module.tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.append(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names += [target.id for target in targets if isinstance(target, ast.Name)]
    return [name for name in dict.fromkeys(names) if not name.startswith("_")]


def classes_used_twice(known: Mapping[str, Module]) -> dict[str, list[str]]:
    """Class names used more than once, with the modules that define them."""
    places: dict[str, list[str]] = defaultdict(list)
    for module in known.values():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(module.name)
    return {name: where for name, where in sorted(places.items()) if len(where) > 1}


def untyped(module: Module) -> int:
    """How often `dict[str, Any]` occurs outside comments and docstrings."""
    return sum(
        isinstance(node, ast.Subscript) and ast.unparse(node) == "dict[str, Any]" for node in ast.walk(module.tree)
    )


def figures(known: Mapping[str, Module]) -> dict[str, Sequence[str] | int]:
    """Every figure by what it counts: a number, or the names that are counted."""
    by = importers(known)
    files = {name: module for name, module in known.items() if module.path.name != "__init__.py"}
    single = [name for name in files if len(by[name]) == 1]
    return {
        "lines": sum(module.lines for module in known.values()),
        "files": [name for name in known if known[name].lines],
        "files with one importer": single,
        f"of these under {SHORT} lines": [name for name in single if files[name].lines < SHORT],
        "public names": [f"{name}.{public}" for name, module in known.items() for public in public_names(module)],
        "class names used twice": [f"{name}: {', '.join(where)}" for name, where in classes_used_twice(known).items()],
        "dict[str, Any]": sum(map(untyped, known.values())),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--names", action="store_true", help="list what is counted (public names left out)")
    asked = parser.parse_args(arguments)
    for what, counted in figures(modules()).items():
        print(f"{counted if isinstance(counted, int) else len(counted):>7,}  {what}")
        if asked.names and not isinstance(counted, int) and what not in ("files", "public names"):
            print("".join(f"         {name}\n" for name in counted), end="")


if __name__ == "__main__":
    main()
