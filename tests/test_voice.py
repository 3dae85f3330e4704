"""One voice: what users and readers see has none of the habits that make a text hard to read.

The test reads the strings of pages, components, engine and scripts, the help of commands, the titles in TOML files, the
report's templates, every Markdown page of the project, and the first line of every docstring, those of benches,
training and tests too. It leaves out data: word lists, patterns for text, SQL and the prompts of models.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LONGEST = {"strings": 30, "docs": 40}  # words in a sentence; a docstring's first line has one line anyway
PARTS = ("pages", "components", "engine")
SCRIPTS = ("bench", "training", "tests")  # their docstrings are read; their strings are data and figures
SAID_BY_OTHERS = ("docs/licences.md", "docs/bibliography.md")  # titles of packages and papers

_THING = (
    "answer|card|case|call|column|dot|file|forward|line|model|number|object|page|passage|process|query|question|record"
    "|reply|request|row|score|seed|text|token|nat|unit|value|verdict|vector|word"
)
_OF_EACH = (
    "answer|case|claim|clause|click|column|condition|document|example|fact|file|kind|line|method|node|page|paper|passage"
    "|query|question|record|row|sentence|set|source|span|step|study|sub-question|text|token|unit|worker"
)
HABITS = {
    'is no X: write "is not" or "cannot"': (
        r"(?<!\bthere )\b(?:is|are|was|were) (?:of )?no (?!more\b|less\b|\w+er\b)\w+"
    ),
    'distributive a: write "per" or "each"': (
        rf"(?:\b(?:an?|one|two|three|\d[\d.,]*)|\}}) (?:[\w-]+ )?(?:{_THING}|replie)s? an? (?:{_OF_EACH})\b"
        r"|\bnats an? \w+"
    ),
    'stands: write "is", "says" or "is stored"': (
        r"\b(?:stands?|stood|standing) (?:in|at|on|there|here|next|twice|once|under|behind|over|above|within|for|by)\b"
    ),
    'beside: write "next to", "with" or "compared with"': r"\bbeside\b",
    "at hand: name the thing": r"\bat hand\b",
    "go on: write continue or resume": r"\b(?:go|goes|going|gone|went) on\b",
    'that which: write "the one that"': r"\bthat which\b|\bthose which\b",
    'such: write "this", "so" or name it': r"\bsuch\b(?! as)",
    "stiff adverb": r"\b(?:thus|(?:here|there|where)(?:of|in|upon|with|by)|hence|whilst)\b",
    "what-clause as the subject: name it": r"(?:^|[.!?;] )(?-i:What) (?!if\b)[^.?]*\.(?: |$)",
    "be had: write find, get or compute": r"\b(?:be|been|is|are) had\b",
    "held against: write compared with": r"\bheld against\b",
    "for want of: write without": r"\bfor want of\b|\bin want of\b",
    "apart by: write separated by": r"(?<!\btaken )(?<!\b[Tt]old )\bapart by\b",
    "no X is found: write that nothing was found": r"\b(?-i:No) [\w ]{1,30} (?:is|was|are|were) (?:found|named)\b",
    "names no, holds no: write does not, has no": r"\b(?:names|holds|bears) no\b",
}


def _docstrings(tree: ast.AST) -> dict[int, str]:
    """The docstrings of a module, those below a constant too, by the id of their nodes."""
    scopes = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    bodies = [node.body for node in ast.walk(tree) if isinstance(node, scopes) and node.body]
    alone = [node.value for body in bodies for node in body if isinstance(node, ast.Expr)]
    return {id(node): node.value for node in alone if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def _data(tree: ast.AST) -> set[int]:
    """Ids of the strings that are not prose: split into words, compiled as a pattern, or sent to a database."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    split = [call.func.value for call in calls if call.func.attr in ("split", "splitlines")]
    given = [argument for call in calls if call.func.attr in ("compile", "execute") for argument in call.args]
    return {id(node) for root in [*split, *given] for node in ast.walk(root)}


def strings_of(source: str) -> Iterator[str]:
    """The prose of a Python file: its strings, an f-string whole with {} for each value.

    >>> list(strings_of('name = f"{n} passages per source"'))
    ['{} passages per source']
    """
    tree = ast.parse(source)
    left_out = set(_docstrings(tree)) | _data(tree)
    nodes = [node for node in ast.walk(tree) if id(node) not in left_out]
    inside = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield node.value


def _is_prose(text: str) -> bool:
    """Two words or more; neither a pattern, markup or SQL, nor a list of words (long, without a full stop)."""
    code = re.search(r"\(\?|\\[bwsd]|</?\w+[ >]|^\s*(?:SELECT|INSERT|CREATE) ", text)
    words = len(text.split())
    return words > 1 and not code and (words <= LONGEST["strings"] or bool(re.search(r"\.(?:\s|$)", text)))


def _toml_strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _toml_strings(one)


def strings() -> Iterator[tuple[str, str]]:
    """(file, text) of what the program shows."""
    for path in [ROOT / "app.py", *(path for part in PARTS for path in sorted((ROOT / part).rglob("*.py")))]:
        for text in filter(_is_prose, strings_of(path.read_text(encoding="utf-8"))):
            yield str(path.relative_to(ROOT)), " ".join(text.split())
    for path in sorted((ROOT / "engine" / "commands").glob("*.py")):  # a command's docstring is its help
        for text in _docstrings(ast.parse(path.read_text(encoding="utf-8"))).values():
            for paragraph in text.split("\n\n"):
                yield str(path.relative_to(ROOT)), " ".join(paragraph.split())
    for path in sorted((ROOT / "engine").rglob("*.toml")):
        for text in filter(_is_prose, _toml_strings(tomllib.loads(path.read_text(encoding="utf-8")))):
            yield str(path.relative_to(ROOT)), text
    for path in sorted((ROOT / "assets" / "components").glob("*.js")):
        for text in re.findall(r"[\"'`]([A-Z][^\"'`]* [^\"'`]*)[\"'`]", path.read_text(encoding="utf-8")):
            yield str(path.relative_to(ROOT)), text
    for path in sorted((ROOT / "assets" / "report").glob("*.html")):
        for text in re.split(r"<[^>]*>|\{[{%].*?[}%]\}", path.read_text(encoding="utf-8")):
            yield str(path.relative_to(ROOT)), " ".join(text.split())


def paragraphs(text: str) -> Iterator[str]:
    """The prose of a Markdown page by paragraph, list item, heading and cell; code and formulas left out."""
    text = re.sub(r"```.*?```|<!--.*?-->|\$\$.*?\$\$|(?m:^    .*$)", "", text, flags=re.DOTALL)
    text = re.sub(r"`[^`]*`|\$[^$]*\$", "X", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )|\n(?=[|#])", text):
        for piece in block.split("|") if block.startswith("|") else [block]:
            if piece.strip():
                yield " ".join(re.sub(r"^\s*(?:[-*#>]+|\d+\.) |\*", "", piece).split())


def docs() -> Iterator[tuple[str, str]]:
    """(file, paragraph) of the project's Markdown pages; documents of sample corpora are data."""
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "assets").rglob("README.md")]:
        name = str(path.relative_to(ROOT))
        if name not in SAID_BY_OTHERS:
            for paragraph in paragraphs(path.read_text(encoding="utf-8")):
                yield name, paragraph


def first_lines() -> Iterator[tuple[str, str]]:
    """(file, first paragraph) of every docstring of pages, components, engine, benches, training and tests."""
    files = [path for part in (*PARTS, *SCRIPTS) for path in sorted((ROOT / part).rglob("*.py"))]
    for path in files:
        for text in _docstrings(ast.parse(path.read_text(encoding="utf-8"))).values():
            yield str(path.relative_to(ROOT)), " ".join(text.strip().split("\n\n")[0].split())


def sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.!?:;])\s+", text)


READ = {"strings": list(strings()), "docs": list(docs()), "docstrings": list(first_lines())}


@pytest.mark.parametrize("kind", READ)
@pytest.mark.parametrize("habit", HABITS)
def test_a_habit_that_is_hard_to_read_is_not_used(habit, kind):
    pattern = re.compile(HABITS[habit], re.MULTILINE | re.IGNORECASE)
    assert not [f"{name}: {text}" for name, text in READ[kind] if pattern.search(text)]


@pytest.mark.parametrize("kind", LONGEST)
def test_a_sentence_is_short(kind):
    found = [(name, one) for name, text in READ[kind] for one in sentences(text)]
    assert not [f"{name}: {one}" for name, one in found if len(one.split()) > LONGEST[kind]]


@pytest.mark.parametrize(
    ("habit", "seen", "written"),
    [
        ("is no X", "Line 3 is no JSON object.", "There is no case 3. It is no longer here."),
        (
            "distributive a",
            "Write one object a line. {} passages a source",
            "Write one object per line. It calls a line.",
        ),
        ("stands", "It stands in the passage.", "The answer stands as edited."),
        ("what-clause", "What has a row is kept.", "What is it? What it means"),
        ("such", "Such tables need it.", "A passage such as this"),
    ],
)
def test_the_patterns_find_what_they_are_for(habit, seen, written):
    (pattern,) = (pattern for name, pattern in HABITS.items() if name.startswith(habit))
    assert re.search(pattern, seen, re.IGNORECASE)
    assert not re.search(pattern, written, re.IGNORECASE)
