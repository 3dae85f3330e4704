"""Replay: compute a case again in a fresh process and compare every number with the stored one."""

from engine.replay.compare import Number, Replay
from engine.replay.run import replay, replay_here

__all__ = ["Number", "Replay", "replay", "replay_here"]
