"""Who decides, by name: an entailment model, or `lm:MODEL` for a language model that judges, edits and expands."""

from __future__ import annotations

from engine.core.files import EMBEDDED
from engine.methods.are.task import Tools
from engine.models.protocols import Writer
from engine.models.registry import load_writer
from engine.models.verifier import load_entailment

LANGUAGE_MODEL = "lm:"
RULES = "rules"


def language_model(name: str) -> Writer | None:
    """The writer that `lm:MODEL` names; None for an entailment model."""
    return load_writer(name.removeprefix(LANGUAGE_MODEL)) if name.startswith(LANGUAGE_MODEL) else None


def load_tools(verifier: str, decomposer: str = RULES, judge: str = "", demonstrations: int = 0) -> Tools:
    """The tools of those names; with `lm:MODEL` the measures stay with the embedded verifier.

    `judge` names a language model whose verdicts stand beside the entailment model's, which go on deciding; it is
    of no use beside `lm:MODEL`. Raise `ModelNotFound` for a name that is none.
    """
    writer = language_model(verifier)
    beside = load_writer(judge) if judge and writer is None else None
    return Tools(
        verifier=load_entailment(EMBEDDED if writer else verifier),
        decomposer=None if decomposer == RULES else load_writer(decomposer),
        judge=writer or beside,
        editor=writer,
        expander=writer,
        both=beside is not None,
        demonstrations=demonstrations,
    )
