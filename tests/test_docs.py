"""The docs hold: examples in docstrings run, command lines in docs and README are ones that there are, and run."""

from __future__ import annotations

import ast
import doctest
import importlib
import json
import pkgutil
import re
import shlex
from itertools import pairwise
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import components
import engine
import training
from bench import method_table
from components.heading import METHODS, method_text, method_title
from engine.analyses.kind import options_of
from engine.analyses.registry import kind_named
from engine.commands import main
from tests.planted import save_planted

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
CHEAP = ("search", "check", "edit", "decompose", "models", "corpora", "cases")  # no language model is loaded
_BLOCK = re.compile(r"```sh\n(.*?)```|((?:^    python -m engine .*\n)+)", re.DOTALL | re.MULTILINE)


def modules():
    for package in (engine, components, training):
        for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            if "__main__" not in found.name and ">>> " in Path(found.module_finder.path, _file(found)).read_text():
                yield found.name


def _file(found) -> str:
    last = found.name.rpartition(".")[2]
    return f"{last}/__init__.py" if found.ispkg else f"{last}.py"


def commands():
    """(page, arguments) of every `python -m engine ...` line of the docs, each once."""
    seen = set()
    for page in PAGES:
        for block in _BLOCK.finditer(page.read_text(encoding="utf-8")):
            for line in "".join(part or "" for part in block.groups()).replace("\\\n", " ").splitlines():
                called = line.strip().startswith("python -m engine ")
                words = shlex.split(line, comments=True) if called else []
                if called and tuple(words) not in seen:
                    seen.add(tuple(words))
                    yield pytest.param(words[3:], id=f"{page.stem}: {' '.join(words[3:6])}"[:60])


@pytest.mark.parametrize("name", modules())
def test_the_examples_of_docstrings_hold(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("arguments", commands())
def test_a_command_of_the_docs_is_one_that_there_is(arguments, monkeypatch):
    monkeypatch.setattr(click.Path, "convert", lambda self, value, param, ctx: value)
    monkeypatch.setattr(click.File, "convert", lambda self, value, param, ctx: value)
    command = main.commands[arguments[0]]
    read = command.make_context(arguments[0], list(arguments[1:]))
    assert read.command is command
    assert {parameter.name for parameter in command.params if parameter.required} <= {
        name for name, value in read.params.items() if value not in (None, ())
    }


def examples(cheap: bool):
    for given in commands():
        (arguments,) = given.values
        of_a_method = (METHODS / f"{given.id.partition(':')[0]}.md").exists()
        if of_a_method and (arguments[0] in CHEAP) == cheap:
            yield given


def result_of(arguments, monkeypatch, folder):
    """Run it as it stands, but for the folder that it writes and for the language model, which is the planted one."""
    monkeypatch.chdir(ROOT)
    instead = {("--model", "embedded"): "planted", ("--judge", "embedded"): "planted"}
    pairs = pairwise(("", *arguments))
    given = [str(folder / "out") if pair[0] == "--out" else instead.get(pair, pair[1]) for pair in pairs]
    return CliRunner().invoke(main, given)


@pytest.mark.slow
@pytest.mark.parametrize("arguments", examples(cheap=True))
def test_a_cheap_command_of_the_docs_runs(arguments, sample_home, monkeypatch, tmp_path):
    result = result_of(arguments, monkeypatch, tmp_path)
    assert result.exit_code == 0, result.output
    assert result.stdout.strip()


@pytest.mark.long
@pytest.mark.parametrize("arguments", examples(cheap=False))
def test_a_command_of_the_docs_runs(arguments, sample_home, monkeypatch, tmp_path):
    save_planted(sample_home / "models" / "planted")
    result = result_of(arguments, monkeypatch, tmp_path)
    assert result.exit_code == 0, result.output
    assert result.stdout.strip()


@pytest.mark.slow
def test_the_python_of_the_docs_runs(sample_home, embedded_model):
    text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    made: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(block, "docs/python.md", "exec"), made)
    tables = {name: made[name] for name in ("hits", "facts", "sentences", "measures", "scores", "library")}
    assert all(len(table) for table in tables.values())
    assert list(tables["facts"]["verdict"]) == list(tables["sentences"]["verdict"]) == ["contradicted", "borne out"]
    texts = {case.title: case.passages for case in made["cases"]}
    for row in made["evidence"].to_dict("records"):
        assert texts[row["case"]][row["passage"] - 1].text[row["start"] : row["end"]] == row["words"]
    assert list(tables["scores"].index) == ["rusts"]
    assert tables["scores"].shape == (1, 2) and tables["scores"].iloc[0].idxmax() == 1
    assert "When did the gate open?" in made["report"]
    assert tables["measures"].loc["b", "attr_r"] > 0.5 and len(tables["library"]) >= 3


def test_the_options_that_the_docs_name_are_options():
    text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([^`]+)` \| `([^`]+)` \|", text, re.MULTILINE)
    assert len(rows) >= 4
    for name, options in rows:
        assert options_of(kind_named(name), json.loads(options))


PARTS = ("Definition", "Source", "Departures", "Limits", "Cost", "On the screen", "Command line")


@pytest.mark.parametrize("path", sorted(METHODS.glob("*.md")), ids=lambda path: path.stem)
def test_a_method_page_has_every_part(path):
    text = path.read_text(encoding="utf-8")
    assert tuple(re.findall(r"^## (.+)$", text, re.MULTILINE)) == PARTS
    assert text.count("```sh\n") == 1


def test_each_page_explains_methods_that_have_a_page_and_none_is_forgotten():
    named = set()
    for page in (ROOT / "pages").rglob("*.py"):
        call = re.search(r"^heading\((.*?)^\)", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
        named |= set(re.findall(r'"([a-z-]+)"', call.group(1))) if call else set()
    assert named == {path.stem for path in METHODS.glob("*.md")}
    for name in named:
        assert method_title(name)
        assert "](" not in re.sub(r"\]\(https?:", "", method_text(name))


def test_links_of_the_docs_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_table_of_methods_is_made_from_their_pages():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert method_table.table() in readme, "run: python -m bench.method_table"
    assert set(method_table.order()) == {path.stem for path in METHODS.glob("*.md")} - {"common-ground"}


FILES = sorted(
    {
        name
        for page in METHODS.glob("*.md")
        for line in re.findall(r"^Code: (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        for name in re.findall(r"`(engine/methods/(?!are/)\S+\.py)`", line)
    }
)


@pytest.mark.parametrize("name", FILES)
def test_a_method_file_opens_with_its_source_and_what_is_left_out(name):
    opening = ast.get_docstring(ast.parse((ROOT / name).read_text(encoding="utf-8"))) or ""
    paper = r"(?:Attr-RAG|RAISE|[Gg]rounded refinement)\b.*?(?:section|appendi)"
    assert re.search(paper + r"|et al\.|No paper's|docs/methods/", opening, re.DOTALL)
    assert name.endswith(("spans.py", "subject.py")) or "Left out: " in opening
