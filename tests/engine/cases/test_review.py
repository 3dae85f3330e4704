"""Marks: nothing is lost, nothing is replaced, and a change of the past shows."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import msgspec
import pytest

from engine.cases.review import ABSENT, MarkDraft, append, check_chain, entry_hash, review_of, signing_key, with_labels
from engine.cases.store import CaseStore
from engine.core.errors import CaseError, CaseFrozen, CaseNotFound, FileError, InputError
from tests.analysing import keep
from tests.engine.cases.samples import full_case

ROOT = Path(__file__).parents[3]
KEY = b"0123456789abcdef0123456789abcdef"
NOTE = MarkDraft(kind="note", author="Ada", value="Seen.")


@pytest.fixture
def store(tmp_path):
    made = CaseStore(tmp_path / "cases.sqlite")
    made.save(full_case("one"))
    return made


def history(count=3, key=None):
    marks = []
    for number in range(count):
        draft = MarkDraft(kind="note", author="Ada", value=f"Note {number}.")
        marks.append(append(full_case(), marks, draft, f"2026-11-20T10:0{number}:00+00:00", key))
    return marks


def test_every_entry_holds_the_hash_of_the_one_before():
    first, second, third = history()
    assert (first.previous, second.previous, third.previous) == ("", first.hash, second.hash)
    assert check_chain(history(), full_case().id).head == third.hash


@pytest.mark.parametrize(
    ("change", "entry"),
    [
        (lambda m: [msgspec.structs.replace(m[0], value="Never."), *m[1:]], 0),
        (lambda m: [m[0], m[2]], 1),
        (lambda m: m[1:], 0),
        (lambda m: [m[1], m[0], m[2]], 0),
        (lambda m: [*m[:2], msgspec.structs.replace(m[2], author="Bo")], 2),
        (lambda m: [m[0], m[0], *m[1:]], 1),
    ],
)
def test_a_change_of_the_past_is_detected_at_its_entry(change, entry):
    chain = check_chain(change(history()), full_case().id)
    assert chain.path == f"$.history[{entry}]"
    assert "was altered" in chain.protection


def test_without_a_key_a_whole_new_history_passes_and_the_words_say_so():
    forged = history(2)
    chain = check_chain(forged, full_case().id)
    assert not chain.problem
    assert "could replace the whole history" in chain.protection
    assert "head hash" in chain.protection


def test_with_a_key_a_forged_entry_does_not_pass():
    signed = history(key=KEY)
    assert "Every entry is signed and verified" in check_chain(signed, full_case().id, KEY).protection
    altered = msgspec.structs.replace(signed[2], value="Never.")
    forged = [*signed[:2], msgspec.structs.replace(altered, hash=entry_hash(altered))]
    chain = check_chain(forged, full_case().id, KEY)
    assert chain.path == "$.history[2]"
    assert "signature" in chain.problem
    assert "not verified" in check_chain(signed, full_case().id).protection
    assert "not verified" in check_chain(signed, full_case().id, b"another key of sixteen bytes").protection


def test_a_key_file_signs_and_a_bad_one_is_refused(store, tmp_path, monkeypatch):
    path = tmp_path / "key"
    monkeypatch.setenv("GROUNDWORK_SIGNING_KEY", str(path))
    with pytest.raises(FileError, match="cannot be read"):
        store.add_mark("one", NOTE)
    path.write_bytes(b"short")
    with pytest.raises(FileError, match="at least 16"):
        store.add_mark("one", NOTE)
    path.write_bytes(KEY + b"\n")
    store.add_mark("one", NOTE)
    assert check_chain(store.history("one"), "one", signing_key()).verified == 1


@pytest.mark.parametrize(
    "draft",
    [
        MarkDraft(kind="note", author=" ", value="x"),
        MarkDraft(kind="note", author="Ada"),
        MarkDraft(kind="note", author="Ada", value="x" * 20_001),
        MarkDraft(kind="status", author="Ada", value="done"),
        MarkDraft(kind="override", author="Ada", value="supportive", target="fact:1"),
        MarkDraft(kind="relevance", author="Ada", value="relevant", target="passage:3"),
        MarkDraft(kind="relevance", author="Ada", value="perhaps", target="passage:1"),
        MarkDraft(kind="withdrawal", author="Ada", target="entry:1"),
        MarkDraft(kind="note", author="Ada", value=b"caf\xe9".decode("utf-8", "surrogateescape")),
    ],
)
def test_a_mark_that_says_nothing_is_refused_and_leaves_no_entry(store, draft):
    with pytest.raises(InputError):
        store.add_mark("one", draft)
    assert store.history("one") == ()


@pytest.mark.parametrize("kind", ["status", "withdrawal"])
def test_what_a_withdrawal_would_not_change_is_not_withdrawn(store, kind):
    store.add_mark("one", NOTE)
    value, target = ("in review", "case") if kind == "status" else ("", "entry:1")
    store.add_mark("one", MarkDraft(kind=kind, author="Ada", value=value, target=target))
    with pytest.raises(InputError, match=f"Entry 2 is a {kind}, which stays"):
        store.add_mark("one", MarkDraft(kind="withdrawal", author="Ada", target="entry:2"))
    assert len(store.history("one")) == 2


def test_a_decision_on_an_edit_needs_no_reason_and_none_is_written_for_it(store):
    store.add_mark("one", MarkDraft(kind="override", author="Ada", value="accepted", target="edit:1"))
    (mark,) = store.history("one")
    assert mark.reason == "" and check_chain([mark], "one").problem == ""


def test_a_history_is_read_without_its_case_and_of_a_known_case_only(store, monkeypatch):
    store.add_mark("one", NOTE)
    with monkeypatch.context() as patched:
        patched.setattr("engine.cases.store.read", lambda *_: pytest.fail("the case was decoded"))
        assert [mark.value for mark in store.history("one")] == [NOTE.value]
    with pytest.raises(CaseNotFound):
        store.history("none")
    store.delete("one")
    with pytest.raises(CaseNotFound):
        store.history("one")


def test_a_review_is_what_stands():
    marks = []
    for draft in (
        NOTE,
        MarkDraft(kind="relevance", author="Ada", value="relevant", target="passage:1"),
        MarkDraft(kind="relevance", author="Bo", value="not relevant", target="passage:1"),
        MarkDraft(
            kind="override", author="Bo", value="supportive", target="fact:1", reason="Read it.", machine="irrelevant"
        ),
        MarkDraft(kind="withdrawal", author="Ada", target="entry:1"),
        MarkDraft(kind="status", author="Bo", value="in review"),
    ):
        marks.append(append(full_case(), marks, draft, "2026-11-20T10:00:00+00:00"))
    review = review_of(marks)
    assert review.notes == ()
    assert review.labels[1].author == "Bo"
    assert (review.overrides["fact:1"].machine, review.overrides["fact:1"].value) == ("irrelevant", "supportive")
    assert (review.status, review.reviewer) == ("in review", "Bo")
    assert [p.relevant for p in with_labels(full_case(), review).passages] == [False, None]


def test_a_signed_off_case_is_frozen_and_a_change_makes_a_new_version(store):
    store.add_mark("one", MarkDraft(kind="relevance", author="Bo", value="relevant", target="passage:2"))
    store.add_mark("one", NOTE)
    store.add_mark("one", MarkDraft(kind="override", author="Ada", value="stands", target="answer", reason="Read."))
    store.add_mark("one", MarkDraft(kind="status", author="Ada", value="signed off"))
    for change in (
        lambda: store.save(full_case("one", title="Another")),
        lambda: keep(store, "one", full_case().analyses[0]),
        lambda: store.add_mark("one", NOTE),
    ):
        with pytest.raises(CaseFrozen, match="signed off by Ada"):
            change()
    version = store.new_version("one", "Bo")
    assert version.parent == "one"
    store.save(msgspec.structs.replace(version, title="Another"))
    assert store.load("one").title == "A title"
    marks = store.history(version.id)
    assert [(m.kind, m.author, m.target) for m in marks] == [
        ("version", "Bo", "case:one"),
        ("relevance", "Bo", "passage:2"),
        ("note", "Ada", "case"),
    ]
    assert marks[0].value == store.history("one")[-1].hash
    assert not check_chain(marks, version.id).problem
    assert [(row.id, row.status) for row in store.rows()] == [(version.id, "open"), ("one", "signed off")]


def test_a_sign_off_without_a_conclusion_is_refused(store):
    other = MarkDraft(kind="override", author="Ada", value=ABSENT, target="answer", reason="Read.")
    for before in ((), (other,)):
        with pytest.raises(InputError, match="needs your conclusion"):
            store.add_marks("one", (*before, MarkDraft(kind="status", author="Ada", value="signed off")))
    assert store.history("one") == ()


def test_a_sign_off_of_something_else_than_was_seen_is_refused(store):
    seen = store.add_mark("one", NOTE).hash
    store.add_mark("one", MarkDraft(kind="note", author="Bo", value="Wait."))
    with pytest.raises(CaseError, match="Bo changed this case"):
        store.add_mark("one", MarkDraft(kind="status", author="Ada", value="signed off"), seen)
    assert store.rows()[0].status == "open"


def test_two_reviewers_in_threads_lose_nothing(store):
    def work(author):
        for number in range(20):
            store.add_mark("one", MarkDraft(kind="note", author=author, value=f"{author} {number}"))

    threads = [threading.Thread(target=work, args=(author,)) for author in ("Ada", "Bo")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    marks = store.history("one")
    assert {m.value for m in marks} == {f"{author} {n}" for author in ("Ada", "Bo") for n in range(20)}
    assert not check_chain(marks, "one").problem


def test_two_reviewers_in_processes_lose_nothing(store):
    program = (
        "import sys\nfrom pathlib import Path\nfrom engine.cases.review import MarkDraft\n"
        "from engine.cases.store import CaseStore\nstore = CaseStore(Path(sys.argv[1]))\n"
        "author = sys.argv[2]\n"
        "for n in range(15): store.add_mark('one', MarkDraft(kind='note', author=author, value=f'{author} {n}'))"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", program, str(store.path), author], cwd=ROOT) for author in ("Ada", "Bo")
    ]
    assert [process.wait(120) for process in running] == [0, 0]
    marks = store.history("one")
    assert {m.value for m in marks} == {f"{author} {n}" for author in ("Ada", "Bo") for n in range(15)}
    assert not check_chain(marks, "one").problem


def test_a_mark_changed_in_the_file_itself_is_detected(store):
    store.add_mark("one", NOTE)
    store.add_mark("one", MarkDraft(kind="note", author="Bo", value="Wait."))
    connection = sqlite3.connect(store.path)
    connection.execute("UPDATE marks SET body = replace(body, 'Seen.', 'Fine.') WHERE number = 1")
    connection.commit()
    connection.close()
    assert check_chain(store.history("one"), "one").path == "$.history[0]"
