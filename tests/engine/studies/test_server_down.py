"""A served model that goes away in the middle of a run, and comes back."""

import subprocess
import sys
from pathlib import Path

import pytest

from engine.core.errors import BudgetSpent, ServerError
from engine.studies.evaluate import evaluate
from engine.studies.run import Journal

SERVED = Path(__file__).parents[1] / "models" / "served.py"
CONFIG = """
study = "attr-rag-chunks"
data = "bench-chemistry"
n = 4
methods = ["top-5"]
model = "openai:{mode}@{address}"
concurrency = 3

[settings.retrieval]
mode = "bm25"

[budget]
calls = {calls}
"""


@pytest.fixture
def address(monkeypatch):
    """A server of its own process."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    process = subprocess.Popen([sys.executable, str(SERVED)], stdout=subprocess.PIPE, text=True)
    yield f"http://127.0.0.1:{process.stdout.readline().strip()}/v1"
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_server_that_comes_back_finishes_the_run(sample_home, address, tmp_path):
    # Three units of four attempts each, and what two others have tried by then: 18 requests that fail stop the run.
    config = CONFIG.format(mode="flaky:18", address=address, calls=100)
    with pytest.raises(ServerError, match="units are saved"):
        evaluate(config, tmp_path / "run")
    kept = Journal(tmp_path / "run").rows()
    assert len(kept) < 4 and all(row.state == "done" for row in kept)  # no unit failed for want of a server
    found = evaluate(config, tmp_path / "run", resume=True)
    assert len(found.rows) == 4 and not found.failures
    assert all(row.served.calls >= 1 and row.served.tokens > 0 for row in found.rows)
    assert all(row.cost.forwards is None for row in found.rows)  # a server does not say


def test_a_server_that_dies_in_the_middle_of_an_answer_stops_the_run(sample_home, address, tmp_path):
    with pytest.raises(ServerError):
        evaluate(CONFIG.format(mode="die", address=address, calls=100), tmp_path / "run")
    assert not Journal(tmp_path / "run").rows()


def test_the_budget_holds_over_threads_and_over_sessions(sample_home, address, tmp_path):
    config = CONFIG.format(mode="words", address=address, calls=2)
    with pytest.raises(BudgetSpent, match="2 of 4 units are saved"):
        evaluate(config, tmp_path / "run")
    with pytest.raises(BudgetSpent):
        evaluate(config, tmp_path / "run", resume=True)
    assert len(Journal(tmp_path / "run").rows()) == 2
    found = evaluate(config.replace("calls = 2", "calls = 4"), tmp_path / "run", resume=True)
    assert sum(row.served.calls for row in found.rows) == 4
