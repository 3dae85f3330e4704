"""Replay: the same inputs again in a fresh process, and every number held against the stored one."""

from engine.replay.compare import Number, Replay
from engine.replay.run import replay, replay_here

__all__ = ["Number", "Replay", "replay", "replay_here"]
