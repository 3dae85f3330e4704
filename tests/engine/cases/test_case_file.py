from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from bench.case_file_schema import schema
from engine.cases.case_file import read_case_file, write_case_file
from engine.cases.places import places
from engine.cases.review import MarkDraft, append, sign_off
from engine.cases.store import CaseStore
from engine.core.canonical import content_hash
from engine.core.errors import CaseError, CaseFileError, CaseFrozen
from tests.engine.cases.records import full_record
from tests.engine.cases.samples import TEXT, cases, full_case

FILES = Path(__file__).parent / "files"
ROOT = Path(__file__).parents[3]


def history_of(case):
    first = append(case, (), MarkDraft(kind="note", author="Ada", value="Seen."), "2026-11-20T10:00:00+00:00")
    label = MarkDraft(kind="relevance", author="Bo", value="relevant", target="passage:1")
    return (first, append(case, (first,), label, "2026-11-20T10:01:00+00:00"))


def altered(change) -> bytes:
    data = json.loads(write_case_file(full_case(), history_of(full_case())))
    change(data)
    return json.dumps(data).encode()


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=cases())
def test_export_import_export_gives_the_same_bytes(case, tmp_path):
    first = write_case_file(case, history_of(case) if case.passages else ())
    read = read_case_file(first)
    store = CaseStore(tmp_path / "cases.sqlite")
    store.put(read.case, read.history, replace=True)
    assert write_case_file(*store.load_whole(case.id)) == first


@pytest.fixture(scope="module")
def record_case(tmp_path_factory, at_home):
    with at_home(tmp_path_factory.mktemp("home")):
        return full_record()


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_export_import_export_gives_the_same_bytes_with_records_of_every_kind(record_case, tmp_path, data):
    """Any choice and order of the kinds, each with one free text of it changed to any other."""
    chosen = data.draw(st.permutations(record_case.analyses))[: data.draw(st.integers(1, len(record_case.analyses)))]
    noted = []
    for analysis in chosen:
        result = msgspec.json.decode(msgspec.json.encode(analysis.result))
        result["notes"] = data.draw(st.lists(TEXT, max_size=2))
        noted.append(msgspec.structs.replace(analysis, result=result))
    case = msgspec.structs.replace(
        record_case, analyses=tuple(noted), tags=tuple(data.draw(st.lists(TEXT, max_size=2)))
    )
    found = data.draw(st.sampled_from(places(case)))
    mark = MarkDraft(kind="override", author="Ada", value="mine", reason=data.draw(TEXT) or "why", target=found.target,
                 machine=found.machine)  # fmt: skip
    history = (append(case, (), mark, "2026-11-20T10:00:00+00:00"),) if mark.reason.strip() else ()
    first = write_case_file(case, history)
    read = read_case_file(first)
    store = CaseStore(tmp_path / "cases.sqlite")
    store.put(read.case, read.history, replace=True)
    assert write_case_file(*store.load_whole(case.id)) == first
    assert {analysis.kind for analysis in read.case.analyses} == {analysis.kind for analysis in chosen}


def test_a_file_is_one_line_and_two_writings_are_equal():
    data = write_case_file(full_case(), history_of(full_case()))
    assert data == write_case_file(full_case(), history_of(full_case()))
    assert data.count(b"\n") == 1
    assert data.endswith(b"\n")


@pytest.mark.parametrize(
    ("path", "change"),
    [
        ("$.case.passages[1].text", lambda d: d["case"]["passages"][1].update(text="The sea reflects the sun.")),
        ("$.case.question", lambda d: d["case"].update(question="Why?")),
        ("$.case.answer.text", lambda d: d["case"]["answer"].update(text=d["case"]["answer"]["text"].upper())),
        ("$.case.analyses[0]", lambda d: d["case"]["analyses"][0]["result"]["scores"][0].__setitem__(0, 2.001)),
        ("$.case", lambda d: d["case"]["stamp"].update(model="another")),
        ("$.history[0]", lambda d: d["history"][0].update(value="Never seen.")),
        ("$.history", lambda d: d["history"].pop()),
        ("$.hashes.passages", lambda d: d["hashes"]["passages"].pop()),
    ],
)
def test_a_change_is_refused_with_its_place(path, change):
    with pytest.raises(CaseFileError) as refused:
        read_case_file(altered(change))
    assert f"at {path}:" in str(refused.value)


@pytest.mark.parametrize(
    ("path", "change"),
    [
        ("$.case.answer.text", lambda d: d["case"]["answer"].update(text=3)),
        ("$.case.passages[0]", lambda d: d["case"]["passages"][0].pop("text")),
        ("$.case", lambda d: d["case"].update(surprise=1)),
        ("$.hashes", lambda d: d.pop("hashes")),
        ("$.schema", lambda d: d.update(schema=99)),
        ("$.format", lambda d: d.update(format="another")),
    ],
)
def test_a_wrong_shape_is_refused_with_its_place(path, change):
    with pytest.raises(CaseFileError) as refused:
        read_case_file(altered(change))
    assert path.rpartition(".")[2].split("[")[0] in str(refused.value)


def refreshed(case) -> bytes:
    return write_case_file(case)


def test_hashes_that_were_made_to_fit_do_not_hide_offsets_that_do_not():
    case = full_case()
    answer = msgspec.structs.replace(case.answer, sentences=((0, 10_000),))
    with pytest.raises(CaseFileError, match=r"\$\.case\.answer\.sentences\[0\]"):
        read_case_file(refreshed(msgspec.structs.replace(case, answer=answer)))


def test_an_analysis_of_another_answer_is_refused():
    case = full_case()
    stamp = msgspec.structs.replace(case.analyses[0].stamp, inputs="0" * 64)
    analysis = msgspec.structs.replace(case.analyses[0], stamp=stamp)
    with pytest.raises(CaseFileError, match=r"\$\.case\.analyses\[0\]\.stamp\.inputs"):
        read_case_file(refreshed(msgspec.structs.replace(case, analyses=(analysis,))))


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"\xff\xfe", b'"\\ud800"', b"[" * 5000 + b"]" * 5000, b"null"])
def test_what_is_no_case_file_is_refused_in_words(data):
    with pytest.raises(CaseFileError):
        read_case_file(data)


@pytest.mark.parametrize("path", sorted(FILES.glob("*.json")), ids=lambda p: p.name)
def test_a_kept_file_of_every_schema_is_read(path):
    file = read_case_file(path.read_bytes())
    assert file.schema == 2
    assert file.case.question == "Why is the sky blue?"
    assert file.hashes.content == content_hash(file.case)
    assert read_case_file(write_case_file(file.case, file.history)) == file


def test_there_is_a_kept_file_of_every_schema():
    kept = [json.loads(path.read_bytes()) for path in FILES.glob("*.json")]
    assert {data["schema"] for data in kept} == {1, 2}


def test_the_published_schema_is_the_one_that_is_read():
    published = json.loads((ROOT / "docs" / "case-file.schema.json").read_text())
    assert published == json.loads(json.dumps(schema()))
    validator = jsonschema.Draft202012Validator(published)
    data = json.loads(write_case_file(full_case(), history_of(full_case())))
    assert not list(validator.iter_errors(data))
    data["case"]["passages"][0]["start"] = "zero"
    assert [list(e.absolute_path) for e in validator.iter_errors(data)] == [["case", "passages", 0, "start"]]
    data["case"]["passages"][0]["start"] = 0
    data["case"]["analyses"][0]["result"]["scores"] = "high"
    place = ["case", "analyses", 0, "result", "scores"]
    assert [list(e.absolute_path) for e in validator.iter_errors(data)] == [place]


def test_a_case_of_the_same_id_is_kept_unless_told_otherwise(tmp_path):
    store = CaseStore(tmp_path / "cases.sqlite")
    store.put(full_case(), history_of(full_case()))
    store.put(full_case(), history_of(full_case()))
    with pytest.raises(CaseError, match="copy"):
        store.put(full_case(title="Another"), ())
    store.put(full_case(title="Another"), (), replace=True)
    assert store.load_whole("0123456789ab") == (full_case(title="Another"), ())


def test_a_signed_off_case_is_not_replaced_by_an_import(tmp_path):
    store = CaseStore(tmp_path / "cases.sqlite")
    store.put(full_case(), ())
    store.add_marks("0123456789ab", sign_off("Ada", "stands", "Read it."))
    signed = store.load_whole("0123456789ab")
    store.put(*signed, replace=True)
    with pytest.raises(
        CaseFrozen,
        match=r"signed off by Ada and is frozen\. Import this one as a copy: python -m engine import FILE --copy",
    ):
        store.put(full_case(title="Another"), (), replace=True)
    assert store.load_whole("0123456789ab") == signed


def test_the_command_line_exports_imports_and_refuses(tmp_path):
    def run(home, *arguments, data=b""):
        environment = {**os.environ, "GROUNDWORK_HOME": str(tmp_path / home)}
        command = [sys.executable, "-m", "engine", *arguments]
        return subprocess.run(command, cwd=ROOT, env=environment, input=data, capture_output=True, check=False)

    file = write_case_file(full_case(), history_of(full_case()))
    assert run("a", "import", "-", data=file).returncode == 0
    exported = run("a", "export", "0123456789ab").stdout
    assert exported == file
    assert run("b", "import", "-", data=exported).returncode == 0
    assert run("b", "export", "--all").stdout == file
    refused = run("b", "import", "-", data=file.replace(b"scatters", b"gathered", 1))
    assert refused.returncode == 1
    assert b"$.case" in refused.stdout
