"""Ray, with requirements-ray.txt: studies (`studies/pools.py`) and the embedding of passages on several machines.

RAY_ADDRESS names a cluster, else one is started here. Every node needs the engine, the models and the data folder
(GROUNDWORK_HOME on a disk that all share, or corpora on a Chroma server).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.core.errors import InputError
from engine.core.files import ROOT, home
from engine.core.progress import Watch
from engine.models.embedder import embed_passages, load_embedder
from engine.models.protocols import Embedder, Floats

PIECES = 4  # of a batch for each actor, so that the slowest one holds the others up for a quarter of its share at most
_AGAIN = 3  # times that an actor that died is started again, and its piece embedded again


def join() -> tuple[Any, bool]:
    """Ray, connected to its cluster, and whether this call did it; raise `InputError` where it is not installed."""
    try:
        import ray
    except ImportError:
        raise InputError("Ray is not installed. Install requirements-ray.txt, or leave out --on ray.") from None
    began = not ray.is_initialized()
    if began:
        variables = {"PYTHONPATH": str(ROOT), "GROUNDWORK_HOME": str(home())}
        own = {} if os.environ.get("RAY_ADDRESS") else {"include_dashboard": False}
        ray.init(log_to_driver=False, runtime_env={"env_vars": variables}, **own)
    return ray, began


def gpus_each(ray: Any, actors: int) -> float:
    """The share of a GPU that each of so many actors gets: 0 where the cluster has none, else at most 1."""
    # Ray counts in ten-thousandths.
    return min(1.0, int(1e4 * ray.cluster_resources().get("GPU", 0) / actors) / 1e4)


class Embedding:
    """An embedder on a node."""

    def __init__(self, name: str) -> None:
        self._embedder = load_embedder(name)

    def embed(self, texts: Sequence[str]) -> Floats:
        """Unit vectors of passages."""
        return embed_passages(self._embedder, texts)

    def pid(self) -> int:
        """The process that embeds."""
        return os.getpid()


class RayEmbedder:
    """An embedder whose passages are embedded by `size` actors; questions stay with the one that is here.

    The vectors are those of the embedder itself, up to rounding in batches of another size. The process that ingests
    still reads, chunks, stores and indexes, so only texts and vectors travel.
    """

    def __init__(self, here: Embedder, size: int) -> None:
        self.name, self.dimensions = here.name, here.dimensions
        self._here = here
        self._ray, self._began = join()
        options = {"num_cpus": 1, "num_gpus": gpus_each(self._ray, size)}
        actor = self._ray.remote(Embedding).options(**options, max_restarts=_AGAIN, max_task_retries=_AGAIN)
        self._actors = [actor.remote(here.name) for _ in range(size)]

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes of the actors."""
        return tuple(self._ray.get([actor.pid.remote() for actor in self._actors]))

    def embed(self, texts: Sequence[str], watch: Watch = Watch()) -> Floats:
        """Unit vectors of questions, shape (len(texts), dimensions)."""
        return self._here.embed(texts, watch)

    def embed_passages(self, texts: Sequence[str], watch: Watch = Watch()) -> Floats:
        """Unit vectors of passages, shape (len(texts), dimensions)."""
        size = -(-len(texts) // (PIECES * len(self._actors))) or 1
        pieces = [texts[start : start + size] for start in range(0, len(texts), size)]
        done = [np.zeros((0, self.dimensions), dtype=np.float32)]
        pool = self._ray.util.ActorPool(self._actors)
        for vectors in pool.map(lambda actor, piece: actor.embed.remote(piece), pieces):
            done.append(vectors)
            watch.step("embedding", sum(map(len, done)), len(texts))
        return np.concatenate(done)

    def close(self) -> None:
        """Let the actors go, and the cluster too where it was started here."""
        for actor in self._actors:
            self._ray.kill(actor)
        if self._began:
            self._ray.shutdown()
