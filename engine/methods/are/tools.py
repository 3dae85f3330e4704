"""Who decides: the entailment model and the rules, or a language model in each of four roles.

In ARE (sections 4.1.2 and 4.3) language models do all of it; the entailment model and the rules are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from engine.answer.citations import without_markers
from engine.core.progress import Watch
from engine.core.settings import Verification
from engine.methods.are.evidence import Sources
from engine.models.protocols import Entailment, Floats, Judged, Writer
from engine.models.verifier import remembering


class OfSentences:
    """An entailment model that gets each claim as a sentence: with a full stop where it ends without a mark.

    Facts and clauses are cut out of sentences and have none. The embedded verifier was trained on sentences and takes a
    bare fact for contradicted: see the facts of passages' own sentences in `python -m bench.guards`.
    """

    def __init__(self, verifier: Entailment) -> None:
        self._verifier, self.name = verifier, verifier.name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._verifier, name)

    def judge(self, pairs: Sequence[tuple[str, str]], watch: Watch = Watch()) -> list[Judged]:
        """As the model's own."""
        return self._verifier.judge([(_sentence(claim), evidence) for claim, evidence in pairs], watch)

    def entailment(self, pairs: Sequence[tuple[str, str]], watch: Watch = Watch()) -> Floats:
        """As the model's own."""
        return self._verifier.entailment([(_sentence(claim), evidence) for claim, evidence in pairs], watch)


def of_sentences(verifier: Entailment, answer: str) -> Entailment:
    """The model for facts and clauses of an answer: they are read as sentences where the answer is written in them."""
    return OfSentences(verifier) if _ended(without_markers(answer)) else verifier


def _sentence(claim: str) -> str:
    return claim if _ended(claim) else f"{claim}."


def _ended(text: str) -> bool:
    """Whether a text ends with the mark of a sentence, before closing quotes or brackets too."""
    return text.rstrip("\"'”’)] \n").endswith((".", "!", "?"))


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

    @property
    def reader(self) -> Entailment:
        """The entailment model as it reads facts and clauses of the answer."""
        return of_sentences(self.tools.verifier, self.answer)

    def remembering(self) -> Task:
        """The same task with a verifier that reads no window twice: rounds, edits and measures ask the same."""
        return replace(self, tools=replace(self.tools, verifier=remembering(self.tools.verifier)))
