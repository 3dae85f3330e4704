from __future__ import annotations

import sqlite3
import threading

import pytest

from engine.cases.store import CaseStore, new_case_id
from engine.core.errors import CaseNotFound, StorageError
from engine.core.values import Analysis, Answer, Case, Passage, Stamp
from tests.analysing import keep


def make_case(case_id: str = "one", question: str = "Why is the sky blue?") -> Case:
    passage = Passage(id="d@0:0-4", document="d", title="D", ordinal=0, start=0, end=4, text="Blue")
    return Case(
        id=case_id, question=question, passages=(passage,), answer=Answer(text="Blue."), stamp=Stamp(model="reader")
    )


@pytest.fixture
def store(tmp_path):
    return CaseStore(tmp_path / "cases.sqlite")


def test_a_saved_case_is_read_back_equal_by_another_process_view(store):
    store.save(make_case())
    assert CaseStore(store.path).load("one") == make_case()


def test_saving_again_replaces_and_keeps_one_row(store):
    store.save(make_case())
    store.save(make_case(question="Why is it red?"))
    assert [row.question for row in store.rows()] == ["Why is it red?"]


def test_an_unknown_case_says_where_to_look(store):
    with pytest.raises(CaseNotFound, match="command `cases`"):
        store.load("absent")


def test_search_takes_wildcards_literally(store):
    store.save(make_case("a", "What is 100% pure?"))
    store.save(make_case("b", "What is 100 pure?"))
    assert [row.id for row in store.rows("100%")] == ["a"]


def test_delete_can_be_undone(store):
    store.save(make_case())
    store.delete("one")
    assert store.rows() == []
    with pytest.raises(CaseNotFound):
        store.delete("one")
    store.save(make_case())
    assert store.load("one") == make_case()


def test_analyses_added_at_once_by_many_threads_are_all_kept(store):
    store.save(make_case())

    def add(number: int) -> None:
        keep(store, "one", Analysis(id=f"a{number}", kind="test", stamp=Stamp(model="m"), result={"n": number}))

    threads = [threading.Thread(target=add, args=(n,)) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {a.id for a in store.load("one").analyses} == {f"a{n}" for n in range(12)}


def test_a_failed_change_leaves_the_case_as_it_was(store):
    store.save(make_case())
    with pytest.raises(RuntimeError):
        store.update("one", lambda case: (_ for _ in ()).throw(RuntimeError))
    assert store.load("one") == make_case()


def test_a_library_from_a_newer_version_is_refused(store):
    connection = sqlite3.connect(store.path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StorageError, match="newer"):
        CaseStore(store.path)


def test_a_damaged_library_says_what_to_do(tmp_path):
    path = tmp_path / "cases.sqlite"
    path.write_bytes(b"not a database" * 100)
    with pytest.raises(StorageError, match="damaged"):
        CaseStore(path)


def test_ids_do_not_repeat():
    assert len({new_case_id() for _ in range(1000)}) == 1000
