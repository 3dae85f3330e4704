"""A bad day: servers that go away, a locked library, a full disk, a process killed: what was confirmed stays."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from engine.cases.review import MarkDraft, check_chain
from engine.cases.store import CaseStore
from engine.core.errors import ServerError, StorageError
from engine.core.progress import Watch
from engine.core.settings import Retrieval
from engine.core.values import sha256
from engine.corpus import index, store
from engine.corpus.collection import Collection, health, list_corpora
from engine.corpus.samples import FIRST_CASE
from engine.models.embedder import ScriptedEmbedder
from engine.retrieve.search import search
from engine.workbench import Workbench
from tests.engine.cases.samples import full_case
from tests.engine.corpus.test_index import wait_for
from tests.trust.killing import Say, kill_often, killed
from tests.trust.replies import Replies

TEXT = "Dissolve it in hot water and let it cool slowly. " * 6


def test_a_model_server_killed_in_mid_stream_leaves_a_case_that_says_so(sample_home):
    served = Replies(TEXT, breaks=3)
    bench, seen = Workbench(), []
    with pytest.raises(ServerError, match="middle of its answer"):
        watch = Watch(case=seen.append)
        bench.ask("How is it made?", "bench-chemistry", method="vanilla", model=served.model, watch=watch)
    kept = Workbench().cases.load(seen[-1].id)
    assert kept.answer.text == TEXT[:120]
    assert not kept.answer.finished
    assert [step.name for step in kept.steps] == ["retrieve"]
    served.stop()
    with pytest.raises(ServerError, match="cannot be reached"):
        bench.ask("How is it made?", "bench-chemistry", method="vanilla", model=served.model)


def chroma_server(folder: Path) -> tuple[subprocess.Popen[bytes], str]:
    """A Chroma server that answers, and its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    command = [str(Path(sys.executable).with_name("chroma")), "run", "--path", str(folder)]
    process = subprocess.Popen(
        [*command, "--host", "127.0.0.1", "--port", port], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    wait_for(f"http://127.0.0.1:{port}/api/v2/heartbeat", process)
    return process, f"http://127.0.0.1:{port}"


@pytest.mark.slow
def test_a_chroma_server_killed_costs_no_document_and_no_hit(tmp_path, monkeypatch):
    process, address = chroma_server(tmp_path / "served")
    monkeypatch.setenv(index.SERVER, address)
    collection = filled(tmp_path, 40)
    before = hits_of(collection)
    opened = index.open_index(collection.folder, collection.snapshot())
    process.kill()
    process.wait()
    with pytest.raises(ServerError, match="did not answer"):
        opened.nearest(collection.embedder.embed(["word1"])[0], 5)
    index.close_index(collection.folder)
    assert hits_of(collection) == before
    assert collection.ingest([records(tmp_path / "more.jsonl", 40, 10)]).added == 10
    monkeypatch.delenv(index.SERVER)
    assert health("f").state == "good"
    assert len(Collection.open("f").snapshot().documents) == 50


def filled(tmp_path: Path, count: int) -> Collection:
    collection = Collection.create("f", ScriptedEmbedder())
    collection.ingest([records(tmp_path / "first.jsonl", 0, count)])
    return collection


def records(path: Path, first: int, count: int) -> Path:
    lines = [{"_id": f"d{i}", "text": f"word{i} word{i + 1} stands here."} for i in range(first, first + count)]
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def hits_of(collection: Collection) -> list[str]:
    return [hit.passage.id for hit in search(collection, "word7 word8", Retrieval(k=3, mode="hybrid"))]


def test_two_servers_that_start_at_once_prepare_the_samples_once(tmp_path, monkeypatch):
    monkeypatch.setenv("GROUNDWORK_HOME", str(tmp_path))
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(Workbench().prepare_first) for _ in range(2)]
    assert [one.exception() for one in both] == [None, None]
    [corpus] = list_corpora()
    assert (corpus.name, corpus.documents > 0) == ("bench-chemistry", True)
    assert Workbench().cases.has(FIRST_CASE)


def test_a_locked_library_is_told_and_loses_nothing(tmp_path):
    path = tmp_path / "cases.sqlite"
    CaseStore(path).save(full_case())
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    impatient = CaseStore(path, patience=0.05)
    with pytest.raises(StorageError, match="locked"):
        impatient.save(full_case(case_id="ffffffffffff"))
    assert impatient.load("0123456789ab") == full_case()
    other.execute("ROLLBACK")
    impatient.save(full_case(case_id="ffffffffffff"))
    assert impatient.has("ffffffffffff")


FULL = """
import resource, sys
from pathlib import Path
from engine.cases.review import MarkDraft
from engine.cases.store import CaseStore
from engine.corpus.collection import Collection
from engine.core.errors import StorageError
from engine.core.files import home
from engine.models.embedder import ScriptedEmbedder
from tests.engine.cases.samples import full_case

store = CaseStore(home() / "cases.sqlite")
store.save(full_case())
collection = Collection.create("f", ScriptedEmbedder())
collection.ingest([sys.argv[1]])
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
long = full_case(case_id="ffffffffffff", title="x" * 100_000)
for work in (
    lambda: store.save(long),
    lambda: store.add_mark("0123456789ab", MarkDraft(kind="note", author="Ada", value="y" * 15_000)),
    lambda: collection.ingest([sys.argv[2]]),
):
    try:
        work()
        print("written")
    except StorageError as error:
        print("told", error)
"""


def test_a_full_disk_is_told_and_loses_nothing(tmp_path, record_property):
    """A limit on file size simulates a full disk: both cut a write in the middle."""
    first, second = records(tmp_path / "a.jsonl", 0, 10), records(tmp_path / "b.jsonl", 10, 400)
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(first), str(second)], capture_output=True, text=True, check=True
    )
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["told"] * 3, done.stdout
    assert all("space" in line for line in lines)
    cases = CaseStore(Path(os.environ["GROUNDWORK_HOME"]) / "cases.sqlite")
    assert cases.load("0123456789ab") == full_case()
    assert not cases.has("ffffffffffff")
    assert cases.history("0123456789ab") == ()
    collection = Collection.open("f")
    assert store.verify_hashes(collection.folder, collection.manifest) == []
    assert len(collection.snapshot().documents) == 10
    assert collection.ingest([second]).added == 400
    record_property("fault", "full disk")
    record_property("trials", len(lines))
    record_property("held", len(lines))


def ask_and_review(say: Say) -> None:
    bench = Workbench()
    say({"ready": True})
    for _ in range(10_000):
        watch = Watch(case=lambda case: say({"saved": case.id}))
        case = bench.ask("How is the crude product recrystallized?", "bench-chemistry", method="vanilla", watch=watch)
        say({"asked": case.id, "answer": case.answer.text})
        for number in range(3):
            mark = bench.cases.add_mark(case.id, MarkDraft(kind="note", author="Ada", value=f"Note {number}."))
            say({"marked": case.id, "hash": mark.hash})


def check_confirmed(said: list[dict]) -> None:
    """Each confirmed answer and mark is there; a case that was not finished says so."""
    cases = CaseStore(Path(os.environ["GROUNDWORK_HOME"]) / "cases.sqlite")
    answers = {line["asked"]: line["answer"] for line in said if "asked" in line}
    for case_id in {line["saved"] for line in said if "saved" in line}:
        case, history = cases.load_whole(case_id)
        chain = check_chain(history, case_id)
        assert not chain.problem
        assert {line["hash"] for line in said if line.get("marked") == case_id} <= {mark.hash for mark in history}
        assert case.answer.finished or not history
        if case_id in answers:
            assert case.answer.finished
            assert sha256(case.answer.text) == sha256(answers[case_id])
    for row in cases.rows(limit=1000):
        case = cases.load(row.id)
        assert case.answer.finished == bool(case.stamp.inputs)


@pytest.mark.parametrize(
    "trials", [pytest.param(3, marks=pytest.mark.slow), pytest.param(20, marks=[pytest.mark.slow, pytest.mark.long])]
)
def test_killed_while_asking_and_reviewing(trials, record_property, sample_home):
    def trial(rng):
        said, in_time = killed(ask_and_review, rng.randrange(1, 20), rng.uniform(0.0, 0.4))
        check_confirmed(said)
        return in_time

    kill_often("ask and review", trials, record_property, trial)
