"""The one direction of imports, read from the syntax trees."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LEAVES = {"core", "prompts", "english"}
STAGES = ["models", "corpus", "retrieve", "answer", "methods", "cases", "analyses", "report", "replay", "studies"]
RANK = {stage: rank for rank, stage in enumerate(STAGES, start=1)} | dict.fromkeys(LEAVES, 0)
# Facades over every stage.
TOP = {"workbench", "commands", "__main__", "__init__"}
FACES = {"streamlit", "plotly", "components", "pages", "app"}
OUTSIDE = {"training", "bench", "tests"}  # these import the rest, and the app runs without them


def modules(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def imported(path: Path) -> set[str]:
    """Absolute module names that a file imports anywhere, also inside functions."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} imports relatively"
            found.add(node.module or "")
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def stage_of(path: Path) -> str:
    return path.relative_to(ROOT / "engine").parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", modules("engine"), ids=lambda p: str(p.relative_to(ROOT)))
def test_the_engine_imports_no_face_and_no_later_stage(path):
    own = stage_of(path)
    for name in imported(path):
        parts = name.split(".")
        assert parts[0] not in FACES | OUTSIDE, f"{path} imports {name}"
        if parts[0] != "engine" or len(parts) == 1 or own in TOP:
            continue
        assert parts[1] not in TOP, f"{path} imports the facade {name}"
        assert RANK[parts[1]] <= RANK[own], f"{path} ({own}) imports the later stage {name}"


@pytest.mark.parametrize("path", modules("components"), ids=lambda p: str(p.relative_to(ROOT)))
def test_components_import_no_page(path):
    assert not {name for name in imported(path) if name.split(".")[0] in {"pages", "app"} | OUTSIDE}


@pytest.mark.parametrize("path", [*modules("training"), *modules("pages")], ids=lambda p: str(p.relative_to(ROOT)))
def test_pages_and_training_do_not_import_each_other(path):
    other = FACES if path.parts[len(ROOT.parts)] == "training" else OUTSIDE
    assert not {name for name in imported(path) if name.split(".")[0] in other}


@pytest.mark.parametrize("path", modules("pages") + modules("components"), ids=lambda p: str(p.relative_to(ROOT)))
def test_only_state_reads_the_session_and_only_cache_caches(path):
    text = path.read_text(encoding="utf-8")
    assert ("session_state" in text) == (path.name == "state.py")
    assert ("st.cache_" in text) == (path.name == "cache.py")
