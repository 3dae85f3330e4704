"""Ray, with requirements-ray.txt: studies (`studies/pools.py`) and the embedding of passages on several machines.

RAY_ADDRESS names a cluster, else one is started here. Every node needs the engine, the models and the data folder
(GROUNDWORK_HOME on a disk that all share, or corpora on a Chroma server).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from engine.core.errors import InputError
from engine.core.files import ROOT, home
from engine.core.progress import Watch
from engine.models.embedder import embed_passages, load_embedder
from engine.models.protocols import Embedder, Floats

PIECES = 4  # of a batch for each actor, so that the slowest one holds the others up for a quarter of its share at most
_AGAIN = 3  # times that an actor that died is started again, and its piece embedded again


class Cluster:
    """Ray with room for `size` actors: joined, or started here and then ended with `close`."""

    def __init__(self, size: int) -> None:
        """Connect; raise `InputError` where Ray is not installed."""
        try:
            import ray
        except ImportError:
            raise InputError("Ray is not installed. Install requirements-ray.txt, or leave out --on ray.") from None
        self.ray, self._began = ray, not ray.is_initialized()
        if self._began:
            variables = {"PYTHONPATH": str(ROOT), "GROUNDWORK_HOME": str(home())}
            own = {} if os.environ.get("RAY_ADDRESS") else {"include_dashboard": False}
            ray.init(log_to_driver=False, runtime_env={"env_vars": variables}, **own)
        # A share of a GPU each, at most a whole one; Ray counts in ten-thousandths.
        gpus = min(1.0, int(1e4 * ray.cluster_resources().get("GPU", 0) / size) / 1e4)
        self._options = {"num_cpus": 1, "num_gpus": gpus}

    def start(self, kind: type, *given: Any, **options: Any) -> Any:
        """An actor of a class made with what is `given`, on whatever node has room."""
        return self.ray.remote(kind).options(**self._options, **options).remote(*given)

    def close(self, actors: Iterable[Any]) -> None:
        """Let the actors go, and the cluster too where it was started here."""
        for actor in actors:
            self.ray.kill(actor)
        if self._began:
            self.ray.shutdown()


class Embedding:
    """An embedder on a node."""

    def __init__(self, name: str) -> None:
        self._embedder = load_embedder(name)

    def embed(self, texts: Sequence[str]) -> Floats:
        """Unit vectors of passages."""
        return embed_passages(self._embedder, texts)


class RayEmbedder:
    """An embedder whose passages are embedded by `size` actors; questions stay with the one that is here.

    The vectors are those of the embedder itself, up to rounding in batches of another size. The process that ingests
    still reads, chunks, stores and indexes, so only texts and vectors travel.
    """

    def __init__(self, here: Embedder, size: int) -> None:
        self.name, self.dimensions = here.name, here.dimensions
        self._here, self._cluster = here, Cluster(size)
        again = {"max_restarts": _AGAIN, "max_task_retries": _AGAIN}
        self.actors = [self._cluster.start(Embedding, here.name, **again) for _ in range(size)]

    def embed(self, texts: Sequence[str], watch: Watch = Watch()) -> Floats:
        """Unit vectors of questions, shape (len(texts), dimensions)."""
        return self._here.embed(texts, watch)

    def embed_passages(self, texts: Sequence[str], watch: Watch = Watch()) -> Floats:
        """Unit vectors of passages, shape (len(texts), dimensions)."""
        size = -(-len(texts) // (PIECES * len(self.actors))) or 1
        pieces = [texts[start : start + size] for start in range(0, len(texts), size)]
        done = [np.zeros((0, self.dimensions), dtype=np.float32)]
        pool = self._cluster.ray.util.ActorPool(self.actors)
        for vectors in pool.map(lambda actor, piece: actor.embed.remote(piece), pieces):
            done.append(vectors)
            watch.step("embedding", sum(map(len, done)), len(texts))
        return np.concatenate(done)

    def close(self) -> None:
        """Let the actors go, and the cluster too where it was started here."""
        self._cluster.close(self.actors)
