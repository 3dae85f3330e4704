"""What a check of an answer is given: the answer, where evidence may come from, and who decides."""

from __future__ import annotations

from dataclasses import dataclass

from engine.core.settings import Verification
from engine.methods.are.evidence import Sources
from engine.models.protocols import Entailment, Writer


@dataclass(frozen=True)
class Tools:
    """Who decides: the entailment model, and language models where they take a part over (None: rules or the verifier).

    `judge` gives the verdicts beside (`both`) or instead of the verifier; the measures are always the verifier's.
    `demonstrations` is the number of worked examples that the language models are shown.
    """

    verifier: Entailment
    decomposer: Writer | None = None
    judge: Writer | None = None
    editor: Writer | None = None
    expander: Writer | None = None
    both: bool = False
    demonstrations: int = 0

    @property
    def measured(self) -> bool:
        """Whether the entailment model's verdicts count; guards stand beside it alone, never over a language model."""
        return self.judge is None or self.both


@dataclass(frozen=True)
class Task:
    """One answer and what it is checked with."""

    question: str
    answer: str
    sources: Sources
    tools: Tools
    settings: Verification
