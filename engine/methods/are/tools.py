"""Who decides, by name: an entailment model, or `lm:MODEL` for a language model that judges, edits and expands."""

from __future__ import annotations

from dataclasses import dataclass

from engine.core.files import EMBEDDED
from engine.core.settings import Verification
from engine.methods.are.decompose import RULES
from engine.methods.are.evidence import Sources
from engine.models.protocols import Entailment, Writer
from engine.models.registry import load_writer
from engine.models.verifier import load_entailment


@dataclass(frozen=True)
class Tools:
    """Who decides: the entailment model, and language models where they take a part over (None: rules or the verifier).

    `judge` gives the verdicts beside (`both`) or instead of the verifier; the measures are always the verifier's.
    """

    verifier: Entailment
    decomposer: Writer | None = None
    judge: Writer | None = None
    editor: Writer | None = None
    expander: Writer | None = None
    both: bool = False

    @property
    def measured(self) -> bool:
        """Whether the entailment model's verdicts count; guards apply only to it, never to a language model."""
        return self.judge is None or self.both


@dataclass(frozen=True)
class Task:
    """One answer, where evidence may come from, and what it is checked with."""

    question: str
    answer: str
    sources: Sources
    tools: Tools
    settings: Verification = Verification()


LANGUAGE_MODEL = "lm:"


def load_tools(verifier: str, decomposer: str = RULES, judge: str = "") -> Tools:
    """The tools of those names; with `lm:MODEL` the measures stay with the embedded verifier.

    `judge` names a language model whose verdicts stand beside the entailment model's, which go on deciding; it is
    of no use beside `lm:MODEL`. Raise `ModelNotFound` for a name that is none.
    """
    writer = load_writer(verifier.removeprefix(LANGUAGE_MODEL)) if verifier.startswith(LANGUAGE_MODEL) else None
    beside = load_writer(judge) if judge and writer is None else None
    return Tools(
        verifier=load_entailment(EMBEDDED if writer else verifier),
        decomposer=None if decomposer == RULES else load_writer(decomposer),
        judge=writer or beside,
        editor=writer,
        expander=writer,
        both=beside is not None,
    )
