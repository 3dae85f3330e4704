"""A data folder under bad conditions: read-only, used by two processes at once, and with the clock set back."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from engine.cases.review import check_chain
from engine.cases.store import CaseStore
from engine.core.files import home
from engine.corpus import store
from engine.corpus.collection import Collection, health

BEGIN = """
import sys
from pathlib import Path
from engine.cases.review import MarkDraft
from engine.cases.store import CaseStore
from engine.core.errors import GroundworkError, StorageError
from engine.core.files import home
from engine.corpus.collection import Collection
from engine.models.embedder import ScriptedEmbedder
from engine.workbench import Workbench
from tests.engine.cases.samples import full_case
FIRST = "0123456789ab"

def note(number):
    return MarkDraft(kind="note", author="Ada", value=f"Note {number}.")

def texts(path, count, word):
    lines = (f'{{"_id": "{word}{i}", "text": "{word}{i} melts in damp air."}}' for i in range(count))
    Path(path).write_text("\\n".join(lines))
    return path
"""


# A superuser writes whatever the permissions say, unless the right to do so is given up.
SUPERUSER = os.name == "posix" and os.geteuid() == 0
WITHOUT_RIGHTS = ["setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner"] if SUPERUSER else []


def started(script: str, *words: str, **more: str) -> subprocess.Popen[str]:
    """A process of the script, without the right to write everywhere where `rights` is "none"."""
    given_up = WITHOUT_RIGHTS if more.pop("rights", "") == "none" else []
    return subprocess.Popen(
        [*given_up, sys.executable, "-c", BEGIN + script, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **more},
    )


def run(script: str, *words: str, **more: str) -> list[str]:
    """The lines that a process of the script printed."""
    return lines_of(started(script, *words, **more))


def lines_of(process: subprocess.Popen[str]) -> list[str]:
    """The output of a process that ended well."""
    out, err = process.communicate()
    assert process.returncode == 0, out + err
    return out.splitlines()


READ_ONLY = """
work = {
    "a case": lambda: CaseStore(home() / "cases.sqlite").save(full_case(case_id="ffffffffffff")),
    "a note": lambda: CaseStore(home() / "cases.sqlite").add_mark(FIRST, note(1)),
    "a collection": lambda: Collection.create("other", ScriptedEmbedder()),
    "an ingest": lambda: Collection.open("f").ingest([sys.argv[1]]),
    "an answer": lambda: Workbench().ask("What melts?", "f", method="vanilla"),
}
from engine.core.settings import Retrieval
from engine.retrieve.search import search
from engine.studies.evaluate import evaluate
from tests.engine.studies.conftest import RETRIEVAL
work |= {
    "an evaluation": lambda: evaluate(RETRIEVAL.format(n=1), home() / "evaluations" / "r"),
    "a read case": lambda: CaseStore(home() / "cases.sqlite").load(FIRST) == full_case(),
    "a search": lambda: len(search(Collection.open("f"), "ice7", Retrieval(k=3, mode="hybrid"))) == 3,
}
for name, done in work.items():
    try:
        print("read" if done() is True else "written", name)
    except GroundworkError as error:
        print("told", name, str(error))
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_folder_that_cannot_be_written_is_told_and_stays_as_it_is(tmp_path, record_property):
    if SUPERUSER and not shutil.which("setpriv"):
        pytest.skip("setpriv, by which a superuser gives up the right to write everywhere, is not here")
    run(
        'CaseStore(home() / "cases.sqlite").save(full_case())\n'
        'Collection.create("f", ScriptedEmbedder()).ingest([texts(sys.argv[1], 20, "ice")])',
        str(tmp_path / "a.jsonl"),
    )
    run("texts(sys.argv[1], 5, 'tin')", str(tmp_path / "b.jsonl"))
    folder = home()
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for path in (folder, *folder.rglob("*")):
        path.chmod(path.stat().st_mode & ~0o222)
    try:
        lines = run(READ_ONLY, str(tmp_path / "b.jsonl"), rights="none")
    finally:
        for path in (folder, *folder.rglob("*")):
            path.chmod(path.stat().st_mode | 0o200)
    assert [line.split()[0] for line in lines] == ["told"] * 6 + ["read"] * 2, lines
    assert [line for line in lines[:6] if "writ" not in line.lower()] == []
    after = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert after == before
    record_property("fault", "read-only data folder")
    record_property("trials", len(lines))
    record_property("held", len(lines))


SHARED = """
import json
word, path = sys.argv[1:]
store, corpus = CaseStore(home() / "cases.sqlite"), Collection.open("f")
for turn in range(20):
    mark = store.add_mark(FIRST, note(f"{word} {turn}")).hash
    name = f"{turn:06x}{'a' if word == 'gold' else 'b'}" + "0" * 5
    store.save(full_case(case_id=name))
    print(json.dumps({"mark": mark, "case": name}), flush=True)
while True:
    try:
        print(json.dumps({"added": corpus.ingest([texts(path, 40, word)]).added}), flush=True)
        break
    except GroundworkError as error:
        print(json.dumps({"told": type(error).__name__}), flush=True)
        corpus = Collection.open("f")
"""


@pytest.mark.slow
def test_two_processes_on_one_folder_lose_nothing(tmp_path, record_property):
    run('CaseStore(home() / "cases.sqlite").save(full_case())\nCollection.create("f", ScriptedEmbedder())')
    words = ("gold", "lead")
    children = [started(SHARED, word, str(tmp_path / f"{word}.jsonl")) for word in words]
    said = [json.loads(line) for child in children for line in lines_of(child)]
    cases = CaseStore(home() / "cases.sqlite")
    _, history = cases.load_whole("0123456789ab")
    assert not check_chain(history, "0123456789ab").problem
    assert len(history) == 40 and {mark.hash for mark in history} == {x["mark"] for x in said if "mark" in x}
    assert {row.id for row in cases.rows(limit=100)} == {"0123456789ab", *(x["case"] for x in said if "case" in x)}
    assert [line["added"] for line in said if "added" in line] == [40, 40]
    assert {line["told"] for line in said if "told" in line} <= {"CorpusLocked"}
    documents = {document.id for document in Collection.open("f").snapshot().documents.values()}
    assert documents == {f"{word}{i}" for word in words for i in range(40)}
    assert health("f").state in ("good", "mended")
    record_property("fault", "two processes on one data folder, writes")
    record_property("trials", 82)
    record_property("held", len(history) + sum("case" in line for line in said) + 2)


BACK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include <stdlib.h>
static long back(void) { return access(getenv("CLOCK_BACK"), F_OK) ? 0 : 40L * 24 * 3600; }
int clock_gettime(clockid_t id, struct timespec *t) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int found = real(id, t);
    if (!found && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) t->tv_sec -= back();
    return found;
}
int gettimeofday(struct timeval *t, void *zone) {
    struct timespec now;
    int found = clock_gettime(CLOCK_REALTIME, &now);
    t->tv_sec = now.tv_sec;
    t->tv_usec = now.tv_nsec / 1000;
    return found;
}
time_t time(time_t *t) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (t) *t = now.tv_sec;
    return now.tv_sec;
}
"""

BEFORE_AND_AFTER = """
import json, os
from datetime import UTC, datetime
from engine.core.settings import Retrieval
from engine.retrieve.search import search
store = CaseStore(home() / "cases.sqlite")
corpus = Collection.create("f", ScriptedEmbedder())
for turn, word in enumerate(("ice", "tin")):
    if turn:
        Path(os.environ["CLOCK_BACK"]).touch()
    store.save(full_case(case_id=f"{turn}123456789ab"))
    mark = store.add_mark(FIRST, note(turn))
    added = corpus.ingest([texts(sys.argv[1], 20 * (turn + 1), word)]).added
    hits = [hit.passage.document for hit in search(corpus, f"{word}7", Retrieval(k=3, mode="hybrid"))]
    row = store.rows()[0]
    found = {"now": datetime.now(UTC).isoformat(), "mark": mark.time, "added": added, "hits": hits, "row": row.id}
    print(json.dumps(found), flush=True)
"""


@pytest.mark.slow
def test_a_clock_that_is_set_back_costs_nothing(tmp_path, record_property):
    """The system's clock, as a process sees it, goes back by forty days in the middle of its work."""
    compiler = shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("needs a C compiler and Linux's way to put a function before the system's")
    (tmp_path / "back.c").write_text(BACK)
    library = tmp_path / "back.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, tmp_path / "back.c", "-ldl"], check=True)
    back = {"LD_PRELOAD": str(library), "CLOCK_BACK": str(tmp_path / "back")}
    first, second = map(json.loads, run(BEFORE_AND_AFTER, str(tmp_path / "a.jsonl"), **back))
    assert second["now"] < first["now"] and second["mark"] < first["mark"]
    assert (first["added"], second["added"]) == (20, 40)
    assert "ice7" in first["hits"] and "tin7" in second["hits"]
    cases = CaseStore(home() / "cases.sqlite")
    _, history = cases.load_whole("0123456789ab")
    assert [mark.value for mark in history] == ["Note 0.", "Note 1."]
    assert not check_chain(history, "0123456789ab").problem
    assert {row.id for row in cases.rows()} == {"0123456789ab", "1123456789ab"}
    corpus = Collection.open("f")
    assert len(corpus.snapshot().documents) == 60
    assert store.verify_hashes(corpus.folder, corpus.manifest) == []
    record_property("fault", "clock set back by forty days")
    record_property("trials", 1)
    record_property("held", 1)
