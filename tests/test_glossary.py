"""One word per thing: glossary terms are used, the words that they replace are not, the UI's fixed words are listed."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import get_args

import pytest

from engine.cases.review import STATUSES
from engine.methods.are.values import VerdictName
from engine.methods.judge import Level
from engine.methods.refinement.conditions import VARIANTS
from engine.methods.used_supports import Quadrant

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split(" |")] for line in TEXT.splitlines() if line.startswith("| ")]
ROWS = [row for row in ROWS if row[0] not in ("term", "page", "---") and "---" not in row[0]]
TERMS = [term.strip() for row in ROWS for term in row[0].split(",")]
AVOIDED = [word.strip() for row in ROWS if len(row) > 2 for word in row[2].split(",") if word.strip()]


def shown() -> dict[str, str]:
    """The text for users: strings of pages and components by file, without docstrings, and the docs."""
    texts = {}
    for path in [ROOT / "app.py", *(ROOT / "pages").rglob("*.py"), *(ROOT / "components").rglob("*.py")]:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        scopes = (ast.Module, ast.FunctionDef, ast.ClassDef)
        own = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, scopes) and node.body and isinstance(node.body[0], ast.Expr)
        }
        strings = [
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in own
        ]
        texts[path.name] = "\n".join(strings)
    for path in (ROOT / "docs").rglob("*.md"):
        if path.name not in ("glossary.md", "bibliography.md", "licences.md"):
            texts[path.name] = path.read_text(encoding="utf-8")
    return texts


SHOWN = shown()


def holds(text: str, words: str) -> bool:
    """Are these words in the text, whole, in any case, the last one also as a plural.

    >>> holds("Two Passages.", "passage"), holds("a passageway", "passage")
    (True, False)
    """
    return bool(re.search(rf"(?<!\w){re.escape(words)}(?:s|es)?(?!\w|\.\w)", " ".join(text.split()), re.IGNORECASE))


def test_whole_words_are_found_in_any_case_and_as_plurals():
    assert holds("Two\nPassages.", "passage")
    assert not holds("a passageway", "passage")


@pytest.mark.parametrize("term", TERMS)
def test_a_term_is_used(term):
    assert any(holds(text, term) for text in SHOWN.values())


@pytest.mark.parametrize("word", AVOIDED)
def test_a_word_that_a_term_replaces_is_not_used(word):
    assert not [name for name, text in SHOWN.items() if holds(text, word)]


def test_no_term_is_defined_twice_or_avoided():
    assert len(TERMS) == len(set(TERMS))
    assert not set(TERMS) & set(AVOIDED)


def test_the_fixed_words_of_the_pages_are_listed():
    pages = set(re.findall(r'\.py", title="(\w+)"', (ROOT / "app.py").read_text(encoding="utf-8")))
    levels, quadrants = get_args(Level), get_args(Quadrant)
    verdicts = {verdict.replace("_", " ") for verdict in get_args(VerdictName)}
    assert pages <= set(TERMS)
    assert verdicts | set(levels) | set(quadrants) <= set(TERMS)
    conditions = next(row for row in ROWS if row[0] == "condition")[1]
    assert conditions.endswith(", ".join(VARIANTS))
    assert next(row for row in ROWS if row[0] == "status")[1].endswith(", ".join(STATUSES))
