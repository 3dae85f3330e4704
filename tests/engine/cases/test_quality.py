from __future__ import annotations

import pytest
from msgspec.structs import replace

from engine.analyses.quality import Quality, by_writer, qualities, quality_of
from engine.cases.review import MarkDraft, review_of, sign_off
from engine.cases.store import CaseStore
from engine.core.values import Stamp
from tests.engine.cases.samples import full_case
from tests.engine.cases.test_case_verdict import checked


@pytest.fixture
def store(tmp_path):
    made = CaseStore(tmp_path / "cases.sqlite")
    made.save(checked())
    made.save(full_case("open"))
    return made


def test_a_line_counts_what_the_check_found():
    found = quality_of(checked("The bridge opened in 1934 [1]. In all the bridge cost 5 million [3]."), review_of(()))
    assert (found.borne_out_share, found.unsupported_share, found.citation_precision) == (1.0, 0.0, 0.5)
    bare = quality_of(replace(checked(), analyses=()), review_of(()))
    assert (bare.checked, bare.borne_out_share, bare.unsupported_share, bare.citation_precision) == (
        0,
        None,
        None,
        None,
    )


def test_what_is_kept_is_read_again_once_the_case_has_changed(store):
    first = qualities(store, store.rows())
    assert first["case"].unsupported_share == 1.0 and first["open"] == Quality()
    assert qualities(store, store.rows()) == first
    store.add_marks("case", sign_off("Ada", "does not stand", "the year is wrong"))
    assert qualities(store, store.rows())["case"].conclusion == "does not stand"


def test_what_is_kept_is_not_computed_twice_and_goes_with_its_case(store):
    qualities(store, store.rows())
    (of, _body) = store.summaries()["case"]
    store.keep_summaries({"case": (of, b'{"checked": 1, "sentences": 4, "borne_out": 3}')})
    assert qualities(store, store.rows())["case"].borne_out_share == 0.75
    store.delete("case")
    store.empty_bin()
    assert set(store.summaries()) == {"open"}


def test_writers_are_compared_over_all_their_sentences(store):
    good = "The bridge opened in 1934. In all the bridge cost 5 million."
    store.save(replace(checked(good), id="good", stamp=Stamp(model="careful")))
    store.save(replace(checked(), id="again"))
    store.add_mark("again", MarkDraft(kind="note", author="Ada", value="the same answer"))
    rows = store.rows()
    found = by_writer(rows, qualities(store, rows))
    assert [(name, q.checked, q.sentences, q.borne_out) for name, q in found.items()] == [
        ("careful", 1, 2, 2),
        ("someone", 2, 4, 0),
    ]
