"""One prepared data folder for the whole run; every test that writes gets a folder of its own."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from pathlib import Path

import pytest
from filelock import FileLock
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault(
    "GROUNDWORK_MODELS", str(ROOT / "build" / "models")
)  # the model inside is converted once, not a test

settings.register_profile("untimed", deadline=None)  # a busy machine is not a failure
settings.load_profile("untimed")


def pytest_collection_modifyitems(items):
    """Files with slow tests come first: one at the end would leave the other processes idle."""
    slow = {item.path for item in items if any(map(item.get_closest_marker, ("slow", "long", "journey")))}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture(autouse=True)
def _own_home(tmp_path, monkeypatch):
    """No test sees the user's data or another test's."""
    monkeypatch.setenv("GROUNDWORK_HOME", str(tmp_path / "home"))


@pytest.fixture(autouse=True)
def _own_main(monkeypatch):
    """A page leaves its script as `__main__` when it was drawn in a test, and a worker process would run it again."""
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])


@contextlib.contextmanager
def _home(folder):
    before = os.environ.get("GROUNDWORK_HOME")
    os.environ["GROUNDWORK_HOME"] = str(folder)
    try:
        yield
    finally:
        os.environ.pop("GROUNDWORK_HOME")
        if before is not None:
            os.environ["GROUNDWORK_HOME"] = before


@pytest.fixture(scope="session")
def at_home():
    """`with at_home(folder)`: the engine works in that data folder; for fixtures that outlive one test."""
    return _home


@pytest.fixture(scope="session")
def prepared_home(tmp_path_factory):
    """A data folder as the first start leaves it: sample corpora ingested, first case written. Read only: copy it.

    `GROUNDWORK_PREPARED` names one made before, which saves a minute a run; CI makes its own.
    """
    if made := os.environ.get("GROUNDWORK_PREPARED"):
        return Path(made)
    run = tmp_path_factory.getbasetemp()
    folder = (run.parent if "PYTEST_XDIST_WORKER" in os.environ else run) / "prepared"
    with FileLock(f"{folder}.lock"):  # the workers of one run share it
        if not folder.exists():
            _prepare(folder)
    return folder


def _prepare(folder):
    import torch

    from engine.workbench import Workbench

    making, threads = folder.with_name("preparing"), torch.get_num_threads()
    torch.set_num_threads(os.cpu_count() or 1)  # the other processes wait for it
    with _home(making):
        Workbench().prepare_samples()
    torch.set_num_threads(threads)
    making.rename(folder)


@pytest.fixture
def sample_home(prepared_home, tmp_path, monkeypatch):
    """A copy of the prepared data folder that a test may change."""
    folder = tmp_path / "sample-home"
    shutil.copytree(prepared_home, folder)
    monkeypatch.setenv("GROUNDWORK_HOME", str(folder))
    return folder


@pytest.fixture
def embedded_model():
    """The real embedded language model, for the few end-to-end checks; skips the test where it is not installed."""
    from engine.core.errors import ModelNotFound
    from engine.core.files import EMBEDDED
    from engine.models.registry import load_writer

    try:
        return load_writer(EMBEDDED)
    except ModelNotFound as error:
        pytest.skip(f"the embedded language model is not installed: {error}")


@pytest.fixture
def app(sample_home):
    """The whole app by AppTest, not yet run, on `sample_home`, with nothing cached by an earlier test."""
    from streamlit.testing.v1 import AppTest

    from components import cache

    lanes = (cache.questions, cache.analyses, cache.evaluators)
    for kept in (cache.workbench, *lanes, cache.preparation, cache.further_preparation, cache.evaluation):
        kept.clear()
    for run in (cache.preparation(), cache.further_preparation()):
        run.future.result()
    return AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
