"""A local Ray cluster of two workers, one of them killed in the middle."""

import os
import signal

import pytest

ray = pytest.importorskip("ray", reason="Ray is not installed; requirements-ray.txt brings it.")

from engine.studies.config import parse_config  # noqa: E402
from engine.studies.evaluate import evaluate, opened  # noqa: E402
from engine.studies.plan import plan  # noqa: E402
from engine.studies.ray_pool import RayPool  # noqa: E402
from engine.studies.run import Control, Run  # noqa: E402
from tests.engine.studies.test_run import timeless  # noqa: E402


@pytest.mark.slow
def test_a_cluster_that_loses_a_worker_comes_to_the_same_rows(sample_home, retrieval, tmp_path):
    folder = tmp_path / "ray"
    folder.mkdir()
    planned = plan(parse_config(retrieval(12)))
    pool = RayPool(planned.config, 2)
    victim = pool.pids[0]
    killed = []

    def tell(progress):
        if progress.done >= 5 and not killed:
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)

    try:
        rows = Run(planned, folder, Control(tell=tell)).go(pool)
    finally:
        pool.close()
    assert killed and len({row.unit for row in rows}) == len(planned.units) == 36
    evaluate(retrieval(12), tmp_path / "here")
    assert timeless(rows) == timeless(opened(tmp_path / "here").rows)
