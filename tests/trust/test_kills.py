"""kill -9 at random moments of what takes long: nothing confirmed is lost, no half is taken for a whole, and the same
call ends afterwards as if nothing had happened. Ingest is in tests/engine/corpus/test_kill.py, ask and review are in
test_faults.py."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from engine.analyses.registry import kind_named
from engine.core.files import home
from engine.core.progress import Watch
from engine.core.values import AuditRecord
from engine.models.catalogue import entry_of
from engine.models.gguf import convert
from engine.models.install import install, remove
from engine.studies.evaluate import evaluate
from engine.studies.run import Journal
from engine.workbench import Workbench
from tests.engine.methods.test_analyse import PASSAGES
from tests.engine.studies.conftest import RETRIEVAL
from tests.engine.studies.test_run import timeless, told_by
from tests.tiny import save_tiny
from tests.tiny_gguf import write_gguf
from tests.tiny_index import tiny_entry, use_index, write_catalogue
from tests.trust.killing import Say, kill_often, killed

KINDS = ("occlusion", "token map", "faithfulness")
TRIALS = pytest.mark.parametrize(
    "trials", [pytest.param(2, marks=pytest.mark.slow), pytest.param(20, marks=[pytest.mark.slow, pytest.mark.long])]
)


def contents(folder: Path) -> dict[str, str]:
    """SHA-256 of every file below a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def analyse(say: Say, case_id: str) -> None:
    bench = Workbench()
    for kind in KINDS:
        say("")
        bench.analyse(case_id, kind, kind_named(kind).options(model="scorer"))
        say(kind)


def figures(stored: object) -> object:
    """An analysis without its times, which differ from run to run."""
    if isinstance(stored, dict):
        return {key: figures(value) for key, value in stored.items() if "seconds" not in key}
    return [figures(value) for value in stored] if isinstance(stored, list) else stored


@TRIALS
def test_killed_in_an_analysis(trials, record_property):
    save_tiny(home() / "models" / "scorer")
    bench = Workbench()
    record = AuditRecord(question="What colour is the kiln?", passages=PASSAGES, answer="Green. [cite_1] It is old.")
    undisturbed = bench.audit(record)
    analyse(lambda said: None, undisturbed.id)
    whole = {analysis.kind: figures(analysis.stored()) for analysis in bench.cases.load(undisturbed.id).analyses}

    def trial(rng):
        case_id = bench.audit(record).id
        said, in_time = killed(analyse, rng.randrange(1, 6), rng.uniform(0.0, 0.3), case_id)
        found = {analysis.kind: figures(analysis.stored()) for analysis in bench.cases.load(case_id).analyses}
        assert set(said) - {""} <= set(found)
        assert found == {kind: whole[kind] for kind in found}
        return in_time

    kill_often("analyse", trials, record_property, trial)


def run(say: Say, config: str, folder: str) -> None:
    watch = Watch(report=lambda *_: say(""))
    watch.step("begun")
    evaluate(Path(config).read_text(), Path(folder), resume=(Path(folder) / "run.json").exists())


@TRIALS
def test_killed_in_an_evaluation(trials, record_property, sample_home, tmp_path):
    config, whole = tmp_path / "config.toml", tmp_path / "whole"
    config.write_text(RETRIEVAL.format(n=0))
    expected = timeless(evaluate(config.read_text(), whole).rows)
    runs = 0

    def trial(rng):
        nonlocal runs
        folder = tmp_path / f"run-{runs}"
        before = Journal(folder).rows() if folder.exists() else []
        _, in_time = killed(run, 1, rng.uniform(0.0, 4.0), str(config), str(folder))
        rows = Journal(folder).rows() if folder.exists() else []
        assert rows[: len(before)] == before
        if not in_time or rng.random() < 0.3:
            finished = evaluate(config.read_text(), folder, resume=(folder / "run.json").exists())
            assert timeless(finished.rows) == expected
            assert told_by(folder) == told_by(whole)
            runs += 1
        return in_time

    kill_often("evaluate", trials, record_property, trial)


def install_tiny(say: Say) -> None:
    install(entry_of("tiny"), Watch(report=lambda *said: say(said)))


@TRIALS
def test_killed_in_the_installation_of_a_model(trials, record_property, tmp_path, monkeypatch):
    monkeypatch.setenv("GROUNDWORK_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("GROUNDWORK_CATALOGUE", str(tmp_path / "catalogue.toml"))
    (tmp_path / "index").mkdir()
    use_index(monkeypatch, tmp_path / "index")
    write_catalogue(tmp_path / "catalogue.toml", {"tiny": tiny_entry(tmp_path / "index")})
    entry, reports = entry_of("tiny"), []
    whole = contents(install(entry, Watch(report=lambda *said: reports.append(said))))

    def trial(rng):
        remove(entry)
        _, in_time = killed(install_tiny, rng.randrange(1, len(reports)), rng.uniform(0.0, 0.2))
        assert not entry.folder.exists() or contents(entry.folder) == whole
        assert contents(install(entry)) == whole
        return in_time

    kill_often("the installation of a model", trials, record_property, trial)


def convert_file(say: Say, path: str, folder: str) -> None:
    convert(Path(path), Path(folder), Watch(report=lambda *said: say(said)))


@TRIALS
def test_killed_in_the_conversion_of_a_model(trials, record_property, tmp_path):
    path = write_gguf(tmp_path / "t.gguf")
    whole, turns = contents(convert(path, tmp_path / "models" / "whole")), 0

    def trial(rng):
        nonlocal turns
        turns += 1
        folder = tmp_path / "models" / f"t{turns}"
        _, in_time = killed(convert_file, rng.randrange(1, 4), rng.uniform(0.0, 0.1), str(path), str(folder))
        assert not folder.exists() or contents(folder) == whole
        assert contents(convert(path, folder)) == whole
        return in_time

    kill_often("the conversion of a model", trials, record_property, trial)
