"""The engine's figures: counted right on a package made here, and what must hold of the engine."""

from __future__ import annotations

from bench.house import classes_used_twice, figures, importers, modules, public_names, untyped


def package(tmp_path):
    """Two rooms: `a` is imported by `b` alone (inside a function), `b` by nobody; both define `Same`."""
    room = tmp_path / "engine" / "room"
    room.mkdir(parents=True)
    (tmp_path / "engine" / "__init__.py").write_text("")
    (room / "__init__.py").write_text("")
    (room / "a.py").write_text('"""dict[str, Any]"""\nLIMIT: int = 3\n_OWN = 1\n\nclass Same:\n    pass\n')
    (room / "b.py").write_text(
        "from typing import Any\n\ndef use(x: dict[str, Any]) -> dict[str, Any]:\n"
        "    from engine.room import a\n    class Same:\n        pass\n    return x\n"
    )
    return modules(tmp_path)


def test_the_figures_of_a_small_package(tmp_path):
    known = package(tmp_path)
    assert importers(known)["engine.room.a"] == {"engine.room.b"}
    assert importers(known)["engine.room.b"] == set()
    assert public_names(known["engine.room.a"]) == ["LIMIT", "Same"]
    assert classes_used_twice(known) == {"Same": ["engine.room.a", "engine.room.b"]}
    assert [untyped(known[f"engine.room.{name}"]) for name in "ab"] == [0, 2]
    counted = figures(known)
    assert counted["lines"] == 13
    assert counted["files with one importer"] == counted["of these under 25 lines"] == ["engine.room.a"]
    assert counted["dict[str, Any]"] == 2


def test_a_class_name_has_one_meaning():
    assert classes_used_twice(modules()) == {}


def test_the_house_is_not_cut_finer_again():
    counted = figures(modules())
    assert len(counted["files"]) <= 225
    assert counted["of these under 25 lines"] == []
    assert counted["dict[str, Any]"] <= 40
