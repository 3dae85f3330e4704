"""Self-tests are kept by name, revision and dtype, and made again where the record is gone or damaged."""

from __future__ import annotations

import pytest

from engine.answer.prompt import stamp_of
from engine.core.errors import StorageError
from engine.core.settings import Decoding, Prompting
from engine.models.hooks import count_forwards
from engine.models.scripted import ScriptedWriter
from engine.models.self_test import checks_of, remember, remembered, self_test
from tests.tiny import tiny_model


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("GROUNDWORK_HOME", str(tmp_path))
    return tmp_path / "self_tests"


def test_a_model_is_tested_once_and_its_stamp_finds_the_table():
    model = tiny_model("llama")
    checks = checks_of(model)
    with count_forwards(model) as count:
        assert checks_of(model) == checks
    assert count.forwards == 0
    stamp = stamp_of(model, Prompting(), Decoding())
    assert remembered(stamp.model, stamp.revision, stamp.dtype) == checks


def test_other_weights_have_no_record():
    checks_of(tiny_model("llama"))
    other = tiny_model("llama", seed=1)
    assert remembered(other.name, other.revision, other.dtype) is None


def test_a_damaged_record_is_made_again(folder):
    model = tiny_model("llama")
    checks = checks_of(model)
    record = next(folder.glob("*.json"))
    record.write_text('[{"name": 3}]')
    assert remembered(model.name, model.revision, model.dtype) is None
    assert [c.name for c in checks_of(model)] == [c.name for c in checks]
    assert [path.suffix for path in folder.iterdir()] == [".json"]


def test_a_model_without_a_revision_is_tested_each_time():
    writer = ScriptedWriter(lambda asked: "Hanna Lind.")
    checks_of(writer)
    checks_of(writer)
    assert len(writer.prompts) == 2


def test_a_folder_that_cannot_be_written_is_said(folder):
    folder.write_text("in the way")
    writer = ScriptedWriter(lambda asked: "Hanna Lind.")
    with pytest.raises(StorageError, match="self-test cannot be saved"):
        remember(writer, self_test(writer))
