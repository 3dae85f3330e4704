"""Searching, sorting, the bin, and libraries of an older schema."""

from __future__ import annotations

import sqlite3

import msgspec
import pytest

from engine.cases.query import Query
from engine.cases.review import MarkDraft
from engine.cases.store import MIGRATIONS, CaseStore
from engine.core.errors import CaseNotFound
from engine.core.values import Stamp
from tests.engine.cases.samples import full_case


@pytest.fixture
def store(tmp_path):
    made = CaseStore(tmp_path / "cases.sqlite")
    made.save(full_case("a", question="Why is the sky blue?", tags=("optics",), created="2026-01-01"))
    made.save(full_case("b", question="Warum ist die STRASSE naß?", tags=("optics two",), corpus="road"))
    made.save(full_case("c", question="How deep is the sea?", stamp=Stamp(model="other"), tags=()))
    return made


def found(store, **query) -> list[str]:
    return [row.id for row in store.rows(Query(**query))]


def test_every_word_must_be_found_somewhere_whatever_its_case(store):
    assert found(store, text="WHY is blue") == ["a"]
    assert found(store, text="strasse nass") == ["b"]
    assert found(store, text="sea magic") == ["c"]
    assert found(store, text="sea road") == []
    assert found(store, text="other") == ["c"]


def test_filters_are_exact_and_join(store):
    assert found(store, tag="optics") == ["a"]
    assert found(store, corpus="road") == ["b"]
    assert found(store, model="other") == ["c"]
    assert found(store, corpus="sky", model="reader") == ["a"]
    store.add_mark("c", MarkDraft(kind="status", author="Ada", value="in review"))
    assert found(store, status="in review") == ["c"]
    assert set(found(store, status="open")) == {"a", "b"}


def test_days_count_whole(store):
    day = store.rows()[0].updated[:10]
    assert len(found(store, since=day, until=day)) == 3
    assert found(store, until="2020-01-01") == []
    assert found(store, since="2999-01-01") == []


def test_sorting_and_a_limit(store):
    assert found(store, sort="question", ascending=True) == ["c", "b", "a"]
    assert found(store, sort="created", ascending=True)[0] == "a"
    assert found(store, sort="question", ascending=True, limit=1) == ["c"]
    assert store.count(Query(limit=1)) == 3


def test_what_there_is_to_choose_from(store):
    assert store.facets() == {"model": ["other", "reader"], "corpus": ["road", "sky"], "tag": ["optics", "optics two"]}


def test_the_bin_keeps_a_case_with_its_history_until_it_is_emptied(store):
    store.add_mark("a", MarkDraft(kind="note", author="Ada", value="Seen."))
    before = store.load_whole("a")
    store.delete("a")
    assert "a" not in found(store)
    assert found(store, deleted=True) == ["a"]
    with pytest.raises(CaseNotFound):
        store.load("a")
    store.restore("a")
    assert store.load_whole("a") == before
    store.delete("a")
    assert store.empty_bin() == 1
    with pytest.raises(CaseNotFound):
        store.restore("a")


def test_a_library_of_the_first_schema_is_brought_up_with_its_cases(tmp_path):
    path = tmp_path / "old.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(MIGRATIONS[0])
    case = full_case("old")
    connection.execute(
        "INSERT INTO cases VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        ("old", case.question, case.answer.text, "sky", "reader", "2026-01-01", "2026-01-02", "optics\ntwo words",
         msgspec.json.encode(case)),
    )  # fmt: skip
    connection.execute("PRAGMA user_version = 1")
    connection.commit()
    connection.close()
    store = CaseStore(path)
    assert store.load("old") == case
    (row,) = store.rows("BLUE")
    assert (row.tags, row.status, row.updated) == (("optics", "two words"), "open", "2026-01-02")
    store.add_mark("old", MarkDraft(kind="note", author="Ada", value="Seen."))
    assert len(CaseStore(path).history("old")) == 1
