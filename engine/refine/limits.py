"""One token limit for every condition of a case (METHODS section 2: the paper's truncation confound)."""

from __future__ import annotations

from dataclasses import replace

from engine.models.protocols import LanguageModel
from engine.refine.conditions import Conditions
from engine.refine.flagged_omit import omit_critique
from engine.refine.revision import revision_prompt
from engine.settings import Settings
from engine.types import Answer

BY_STYLE = {"alce": 512, "garage": 1024}  # grounded refinement, section 3.6


def asked_limit(settings: Settings) -> int:
    """Tokens that a condition may write: as set, else the citation style's."""
    return settings.refinement.max_new_tokens or BY_STYLE[settings.prompting.citations]


def shared_limit(conditions: Conditions) -> int:
    """The limit that leaves room in a window that is known, at least 1.

    E needs room for draft, critique and answer, each up to the limit; the others for draft and answer beside the
    longest of the fixed critiques, v2b's with every passage named.
    """
    wanted, window = conditions.decoding.max_new_tokens, getattr(conditions.writer, "window", None)
    if window is None or not isinstance(conditions.writer, LanguageModel):
        return wanted
    everything = tuple(range(1, len(conditions.passages) + 1))
    longest = omit_critique(replace(conditions, flagged=everything))
    rooms = (int(window) - _tokens(conditions, ".")) // 3, (int(window) - _tokens(conditions, longest)) // 2
    return max(1, min(wanted, *rooms))


def _tokens(conditions: Conditions, critique: str) -> int:
    """Tokens of a revision's prompt with next to no draft."""
    prompt = revision_prompt(replace(conditions, draft=Answer(text=".")), critique)
    return len(conditions.writer.encode(prompt).ids)  # type: ignore[attr-defined]
