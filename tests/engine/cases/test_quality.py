from __future__ import annotations

import sqlite3

import pytest
from msgspec.structs import replace

from engine.analyses.quality import Quality, Standing, leaderboard, qualities, quality_of
from engine.cases.places import rewrite
from engine.cases.review import review_of, sign_off
from engine.cases.store import CaseStore
from engine.core.errors import CaseError
from engine.core.values import Stamp, Step
from tests.engine.cases.samples import full_case
from tests.engine.cases.test_case_verdict import checked, marked


@pytest.fixture
def store(tmp_path):
    made = CaseStore(tmp_path / "cases.sqlite")
    made.save(checked())
    made.save(full_case("open"))
    return made


def test_a_line_counts_what_the_check_found():
    found = quality_of(checked("The bridge opened in 1934 [1]. In all the bridge cost 5 million [3]."), review_of(()))
    assert (found.borne_out, found.facts, found.headline) == (2, 2, "2 facts: 2 borne out")
    assert found.citation_precision == 0.5
    bare = quality_of(replace(checked(), analyses=()), review_of(()))
    assert (bare.checked, bare.facts, bare.citation_precision) == (0, 0, None)
    assert bare.headline == "not checked"


def test_what_is_kept_is_read_again_once_the_case_has_changed(store):
    first = qualities(store, store.rows())
    assert first["case"].headline == "3 facts: 1 borne out, 1 contradicted, 1 not found" and first["open"] == Quality(
        method="vanilla"
    )
    assert qualities(store, store.rows()) == first
    store.add_marks("case", sign_off("Ada", "does not stand", "the year is wrong"))
    assert qualities(store, store.rows())["case"].conclusion == "does not stand"


def test_what_is_kept_is_not_computed_twice_and_goes_with_its_case(store):
    qualities(store, store.rows())
    (of, _body) = store.summaries()["case"]
    store.keep_summaries({"case": (of, b'{"checked": 1, "facts": 4, "borne_out": 3}')})
    changed = qualities(store, store.rows())["case"]
    assert (changed.borne_out, changed.facts) == (3, 4)
    store.delete("case")
    store.empty_bin()
    assert set(store.summaries()) == {"open"}


def written_over(store, case_id, body, table="bodies", of=""):
    with sqlite3.connect(store.path) as connection:
        connection.execute("DELETE FROM summaries WHERE id = ?", (case_id,))
        if table == "summaries":
            connection.execute("INSERT INTO summaries (id, of, body) VALUES (?, ?, ?)", (case_id, of, body))
        else:
            connection.execute("UPDATE bodies SET body = ? WHERE id = ?", (body, case_id))
    connection.close()


DAMAGED = [b'{"id": "case"}', b'{"id": "ca', b'{"id": "\xff"}', b"[" * 100_000]


@pytest.mark.parametrize("body", DAMAGED)
def test_a_damaged_case_is_a_line_that_says_so_and_can_be_deleted_or_replaced(store, body):
    whole = store.load_whole("case")
    before = qualities(store, store.rows())
    written_over(store, "case", body)
    assert qualities(store, store.rows()) == {**before, "case": Quality(headline="cannot be read")}
    with pytest.raises(CaseError, match="The stored case 'case' is damaged"):
        store.load("case")
    with pytest.raises(CaseError, match="different case"):
        store.put(*whole)
    store.put(*whole, replace=True)
    assert store.load_whole("case") == whole
    written_over(store, "case", body)
    store.delete("case")
    assert [row.id for row in store.rows()] == ["open"]


def test_a_damaged_entry_of_a_history_is_told(store):
    store.add_marks("case", sign_off("Ada", "does not stand", "the year is wrong"))
    with sqlite3.connect(store.path) as connection:
        connection.execute("UPDATE marks SET body = ? WHERE number = 1", (b'{"number"',))
    connection.close()
    with pytest.raises(CaseError, match="'case' is damaged"):
        store.history("case")
    assert qualities(store, store.rows())["case"].headline == "cannot be read"


@pytest.mark.parametrize("body", [b'{"facts": "many"}', b'{"facts"', b'{"headline": "\xff"}'])
def test_a_line_that_was_kept_and_cannot_be_read_is_made_again(store, body):
    before = qualities(store, store.rows())
    written_over(store, "case", body, "summaries", store.summaries()["case"][0])
    assert qualities(store, store.rows()) == before


def test_writers_and_methods_are_compared_case_by_case(store):
    good = "The bridge opened in 1934. In all the bridge cost 5 million."
    steps = (Step(name="retrieve", seconds=0.1), Step(name="re-rank", seconds=0.1))
    store.save(replace(checked(good), id="good", stamp=Stamp(model="careful"), steps=steps))
    store.add_marks("good", sign_off("Ada", "stands", "read"))
    store.save(replace(checked(), id="again"))
    rows = store.rows()
    found = qualities(store, rows)
    assert (found["good"].facts, found["good"].borne_out, found["good"].unsettled) == (2, 2, 0)
    board = leaderboard(rows, found, "writer")
    assert list(board) == ["careful", "someone"]
    assert (board["careful"].borne_out, board["careful"].conclusions) == (1.0, {"stands": 1})
    wrong = board["someone"]
    assert (wrong.cases, wrong.borne_out, wrong.unsettled, wrong.conclusions) == (2, 1 / 3, 1 / 3, {})
    assert list(leaderboard(rows, found, "method")) == ["reranked", "vanilla"]


def test_every_case_counts_alike_and_what_is_not_there_is_left_out(store):
    (row, other) = store.rows()
    many = Quality(checked=1, facts=10, borne_out=10, edits=3, citations=4, citations_supported=1)
    few = Quality(checked=1, facts=2, borne_out=1, unsettled=1)
    rows = [row, replace(other, model=row.model)]
    board = leaderboard(rows, {row.id: many, other.id: few}, "writer")
    assert board == {
        row.model: Standing(cases=2, borne_out=0.75, unsettled=0.25, edits=1.5, citation_precision=0.25, conclusions={})
    }


def test_what_a_reviewer_put_right_is_edited_and_not_unsettled():
    case = checked("The bridge opened in 1934 [1]. Whales sing loudly.")
    anew = rewrite(case.answer, 2, "In all the bridge cost 5 million [2].", "Ada", "the sources do not speak of whales")
    before, after = quality_of(case, review_of(())), quality_of(case, marked(case, anew))
    assert (before.headline, before.unsettled) == ("2 facts: 1 borne out, 1 not found", 1)
    assert (after.headline, after.unsettled) == ("2 facts: 1 borne out, 1 edited", 0)
