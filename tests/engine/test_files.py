"""A file is put in place whole or not at all, whatever happens in between."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from engine.core.errors import FileError, RecordError, raised_as
from engine.core.files import replace_file

KILLED_BEFORE = """
import os, sys
from pathlib import Path
from engine.core.files import replace_file
at, path = sys.argv[1:]
kill = lambda *_: os.kill(os.getpid(), 9)
if at == "fsync":
    os.fsync = kill
else:
    Path.replace = kill
replace_file(Path(path), b"new")
"""


def test_the_new_file_takes_the_place_of_the_old(tmp_path):
    path = tmp_path / "a.json"
    for data in (b"old", b"new"):
        replace_file(path, data)
        assert path.read_bytes() == data
    assert os.listdir(tmp_path) == ["a.json"]


@pytest.mark.parametrize("at", ["fsync", "replace"])
def test_a_process_killed_in_between_leaves_the_old_file(at, tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(b"old")
    ended = subprocess.run([sys.executable, "-c", KILLED_BEFORE, at, str(path)], check=False)
    assert ended.returncode == -9
    assert path.read_bytes() == b"old"


def test_a_full_disk_leaves_the_old_file_and_nothing_beside_it(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    path.write_bytes(b"old")

    def full(_handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        replace_file(path, b"new")
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["a.json"]


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (FileNotFoundError(2, "No such file", "/home/me/notes.txt"), "No such file"),
        (FileNotFoundError(2, "No such file", "/home/me/vectors.npy"), "No such file: vectors.npy"),
        (ValueError("line 3 is odd\nread on"), "line 3 is odd"),
        (ValueError(), "ValueError"),
    ],
)
def test_a_failure_of_a_library_says_what_failed_why_and_what_to_do(failure, reason):
    with (
        pytest.raises(FileError) as raised,
        raised_as(FileError, "notes.txt cannot be read", "Check the path.", OSError, ValueError),
    ):
        raise failure
    assert str(raised.value) == f"notes.txt cannot be read ({reason}). Check the path."
    assert raised.value.__cause__ is failure


def test_other_errors_pass_as_they_are():
    with pytest.raises(RecordError, match=r"^odd$"), raised_as(FileError, "x", "y", OSError):
        raise RecordError("odd")
