"""A local Ray cluster of two workers, one of them killed in the middle: a study, and passages embedded."""

import os
import signal

import numpy as np
import pytest

ray = pytest.importorskip("ray", reason="Ray is not installed; requirements-ray.txt brings it.")

from engine.core.progress import Watch  # noqa: E402
from engine.core.values import Document  # noqa: E402
from engine.corpus.collection import Collection  # noqa: E402
from engine.models.cluster import RayEmbedder  # noqa: E402
from engine.models.embedder import load_embedder  # noqa: E402
from engine.studies.config import parse_config  # noqa: E402
from engine.studies.evaluate import evaluate, opened  # noqa: E402
from engine.studies.plan import plan  # noqa: E402
from engine.studies.pools import RayPool  # noqa: E402
from engine.studies.run import Control, Run  # noqa: E402
from tests.engine.studies.test_run import timeless  # noqa: E402


def process_of(actor):
    """The process of an actor."""
    return ray.get(actor.__ray_call__.remote(lambda _: os.getpid()))


@pytest.mark.slow
def test_a_cluster_that_loses_a_worker_comes_to_the_same_rows(sample_home, retrieval, tmp_path):
    folder = tmp_path / "ray"
    folder.mkdir()
    planned = plan(parse_config(retrieval(12)))
    pool = RayPool(planned.config, 2)
    victim = process_of(pool.free[0])
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


@pytest.mark.slow
def test_passages_embedded_by_a_cluster_that_loses_a_worker_are_those_embedded_here():
    documents = [
        Document(
            id=f"d{number}",
            title=f"Stone {number}",
            source="",
            media_type="",
            text=f"It weighs {number * 7} grams. " * 9,
        )
        for number in range(60)
    ]
    here = load_embedder()
    spread = RayEmbedder(here, 2)
    victim, killed = process_of(spread.actors[0]), []

    def report(stage, done, total):
        if stage == "embedding" and done and not killed:
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)

    try:
        far = Collection.create("far", spread)
        far.add(documents, Watch(report))
    finally:
        spread.close()
    near = Collection.create("near", here)
    near.add(documents)
    assert killed and len(near.snapshot().passages) >= 60
    assert [p.id for p in far.snapshot().passages] == [p.id for p in near.snapshot().passages]
    np.testing.assert_allclose(far.snapshot().vectors, near.snapshot().vectors, atol=1e-5)
    assert Collection.open("far").manifest.embedder == here.name
