"""The parts of Windows and macOS that can be tested here: encodings, modules, file names, locks."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from engine.core.errors import CorpusLocked, InputError
from engine.corpus import collection, large
from engine.corpus.collection import Collection
from engine.corpus.index import open_index
from engine.models.embedder import ScriptedEmbedder
from engine.retrieve import bm25

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [*(ROOT / "engine").rglob("*.py"), *(ROOT / "components").rglob("*.py"), *(ROOT / "pages").rglob("*.py")]
POSIX_ONLY = {"fcntl", "grp", "pwd", "resource", "termios", "tty", "pty", "posix", "syslog"}
WINDOWS_ONLY = {"msvcrt", "winreg", "_winapi"}


def without_encoding(tree: ast.AST) -> list[int]:
    """Lines that read or write text in whatever encoding the system has."""
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or any(k.arg in ("encoding", None) for k in node.keywords):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        texts = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        modes = texts + [k.value.value for k in node.keywords if k.arg == "mode" and isinstance(k.value, ast.Constant)]
        binary = any(re.fullmatch(r"[rwax+]*b[rwax+]*", mode) for mode in modes)
        whole = (name == "read_text" and not node.args) or (name == "write_text" and len(node.args) == 1)
        if whole or (name == "open" and isinstance(node.func, ast.Name) and not binary):
            found.append(node.lineno)
    return found


def top_imports(tree: ast.Module) -> set[str]:
    names = {alias.name.split(".")[0] for n in tree.body if isinstance(n, ast.Import) for alias in n.names}
    return names | {n.module.split(".")[0] for n in tree.body if isinstance(n, ast.ImportFrom) and n.module}


def test_text_is_read_and_written_in_a_named_encoding():
    found = {p.relative_to(ROOT).as_posix(): without_encoding(ast.parse(p.read_text("utf-8"))) for p in SOURCES}
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_the_search_for_encodings_finds_them():
    code = "p.read_text()\np.write_text('a')\nopen(p)\nopen(p, 'rb')\np.read_text('utf-8')\nopen(p, encoding='utf-8')\n"
    assert without_encoding(ast.parse(code)) == [1, 2, 3]


def test_no_module_needs_one_system():
    for path in SOURCES:
        assert not top_imports(ast.parse(path.read_text("utf-8"))) & (POSIX_ONLY | WINDOWS_ONLY), path


@pytest.mark.parametrize("name", ["CON", "nul", "com1", "Aux.txt", "a/b", "a\\b", "a:b", "a.", "a ", "x?", "..", "a|b"])
def test_names_that_some_system_cannot_keep_are_refused(name):
    with pytest.raises(InputError):
        collection.check_name(name)


@pytest.mark.parametrize(("first", "second"), [("Notes", "notes"), ("caf\u00e9", "cafe\u0301")])
def test_names_that_some_system_takes_for_one_are_refused(first, second):
    Collection.create(first, ScriptedEmbedder())
    with pytest.raises(InputError, match="choose another name"):
        Collection.create(second, ScriptedEmbedder())
    assert Collection.create(first, ScriptedEmbedder()).name == first


def test_every_file_that_is_kept_has_a_name_for_every_system(tmp_path, monkeypatch):
    home = tmp_path / "a höme with spaces"
    monkeypatch.setenv("GROUNDWORK_HOME", str(home))
    monkeypatch.setattr(large, "FROM", 3)
    monkeypatch.setattr(bm25, "_KEPT_FROM", 1)
    (tmp_path / "n.csv").write_text("id,text\n" + "".join(f"d:{i}?,Ice {i} melts.\n" for i in range(6)), "utf-8")
    corpus = Collection.create("notes é", ScriptedEmbedder())
    assert corpus.ingest([tmp_path / "n.csv"]).added == 6
    open_index(corpus.folder, corpus.snapshot())
    bm25.index_of(corpus.folder, corpus.snapshot())
    names = [part for path in home.rglob("*") for part in path.relative_to(home).parts]
    assert len(names) > 20
    assert [name for name in names if re.search(r'[<>:"|?*\\\x00-\x1f]|[. ]$', name)] == []
    with corpus.writing(), pytest.raises(CorpusLocked):
        Collection.open("notes é").ingest([tmp_path / "n.csv"])
