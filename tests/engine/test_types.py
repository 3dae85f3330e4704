"""Every value keeps these properties, whichever thread builds it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.core.values import Answer, Case, Passage, Stamp

ENGINE = Path(__file__).resolve().parents[2] / "engine"
FIRST_USE = """
import threading
{prepare}
barrier = threading.Barrier(8)
right = []
def convert():
    barrier.wait()
    right.append({use})
threads = [threading.Thread(target=convert) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert right == [True] * 8, right
"""
CASE = """
from engine.core.values import Answer, Case, Stamp
data = Case(id="c", question="q", passages=(), answer=Answer(text="a"), stamp=Stamp(model="m")).to_dict()
"""
USES = {
    "a value from plain data": (CASE, 'Case.from_dict(data).id == "c"'),
    "a case of an old schema": (
        CASE + "from engine.cases.case_file import migrated",
        'migrated(data)["case"]["id"] == "c"',
    ),
    "settings": ("from engine.core.settings import Settings", 'Settings().apply(["retrieval.k=7"]).retrieval.k == 7'),
    "a sample world": (
        "from engine.corpus.worlds import load_world",
        'len(load_world("science-primer").questions) > 0',
    ),
}


@pytest.mark.parametrize("use", USES)
def test_many_threads_may_be_the_first_to_build_a_value(use):
    # A process of its own: what this guards against is a crash, and only the first use of a type can show it.
    prepare, expression = USES[use]
    code = FIRST_USE.format(prepare=prepare, use=expression)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_typed_data_comes_in_through_one_door():
    typed = re.compile(r"msgspec\.convert\(|msgspec\.\w+\.decode\([^\n]*\btype=")
    found = {
        path.relative_to(ENGINE).as_posix() for path in ENGINE.rglob("*.py") if typed.search(path.read_text("utf-8"))
    }
    assert found == {"core/values.py"}


def test_a_passages_label_is_read_from_it_and_not_stored():
    titled = Passage(id="a", document="iron.txt", title="Iron", ordinal=0, start=0, end=4, text="Iron")
    assert (titled.label, replace(titled, title="").label) == ("Iron", "iron.txt")
    assert "label" not in titled.to_dict()


@pytest.mark.parametrize(
    ("retrieval", "names"),
    [({"documents": ["a", "b*"]}, ("a", "b*")), ({"documents": "abc"}, ()), ({"documents": [3]}, ("3",)), ("x", ())],
)
def test_the_documents_that_were_searched_are_names_whatever_a_case_file_has(retrieval, names):
    stamp = Stamp(model="m", settings={"retrieval": retrieval})
    assert Case(id="c", question="q", passages=(), answer=Answer(text=""), stamp=stamp).searched == names
