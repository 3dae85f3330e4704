"""Units on a Ray cluster: `evaluate --on ray` (`engine/models/cluster.py` says what each node needs).

Rows and case files come back to the process that started the run, which alone writes.
"""

from __future__ import annotations

import os
import time
from typing import Any

from engine.models.cluster import gpus_each, join
from engine.studies.config import Config, Limit
from engine.studies.example import Example
from engine.studies.pools import Done, Lost, Outcome, Performer, Stopped, task_of
from engine.studies.values import Unit


class Serving(Performer):
    """The models of one config on a node."""

    def pid(self) -> int:
        """The process that serves."""
        return os.getpid()


class RayPool:
    """A pool of Ray actors; one that dies is replaced, on whatever node has room."""

    def __init__(self, config: Config, size: int) -> None:
        self._ray, self._began = join()
        self.size = size
        self._config = config
        self._options = {"num_cpus": 1, "num_gpus": gpus_each(self._ray, size)}
        self._free = [self._start() for _ in range(size)]
        self._running: dict[Any, tuple[Any, Unit]] = {}

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes of the actors that have nothing to do."""
        return tuple(self._ray.get([actor.pid.remote() for actor in self._free]))

    def _start(self) -> Any:
        return self._ray.remote(Serving).options(**self._options).remote(self._config)

    def give(self, unit: Unit, example: Example, left: Limit) -> None:
        """Hand a unit to a free actor."""
        actor = self._free.pop()
        self._running[actor.within_allowance.remote(task_of(unit, example, left, self.size))] = (actor, unit)

    def take(self, seconds: float) -> Outcome | None:
        """The next that ended; a dead actor is replaced at once."""
        if not self._running:  # Ray waits for something, never for nothing: the run is paused
            time.sleep(seconds)
            return None
        ended, _ = self._ray.wait(list(self._running), timeout=seconds)
        if not ended:
            return None
        actor, unit = self._running.pop(ended[0])
        try:
            said: Done | Stopped = self._ray.get(ended[0])
        except self._ray.exceptions.RayActorError:
            self._free.append(self._start())
            return Lost(unit=unit)
        self._free.append(actor)
        return said

    def close(self) -> None:
        """Let the actors go, and the cluster too where it was started here."""
        for actor in [*self._free, *(actor for actor, _ in self._running.values())]:
            self._ray.kill(actor)
        if self._began:
            self._ray.shutdown()
