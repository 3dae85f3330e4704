"""RAISE and its nine baselines as a table: what is decomposed, what is searched, whether T applies.

Every method runs through the same loop with the same model, corpus, k and length limit. Per sub-question those that
search differ in the text searched and in T, in nothing else. T is part of RAISE and applies to none of the baselines
(appendix B.3); RAISE-Direct is RAISE less the decomposition (section 5, figure 2) and keeps it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from engine.errors import InputError
from engine.reason.values import Searched


@dataclass(frozen=True)
class Method:
    """A row of the table. `searches` None: no retrieval. `principled`: Step-Back's principle goes to the answer."""

    name: str
    label: str
    decomposed: bool
    searches: Searched | None
    thresholded: bool
    principled: bool
    said: str

    def calls(self, subquestions: int) -> int:
        """Model calls of a run with that many sub-questions."""
        extra = int(self.searches in WRITTEN or self.principled)
        return 2 + subquestions * (1 + extra) if self.decomposed else 1 + extra


WRITTEN: tuple[Searched, ...] = ("logical query", "principle", "hypothetical answer")
METHODS = (
    Method("raise", "RAISE", True, "logical query", True, False, "searches a logical query per step, under T"),
    Method("raise-without-t", "RAISE without T", True, "logical query", False, False, "RAISE that drops nothing"),
    Method("raise-direct", "RAISE-Direct", False, "logical query", True, False, "one logical query, no steps"),
    Method("cot", "CoT", False, None, False, False, "step by step in one call"),
    Method("cot-rag", "CoT+RAG", False, "problem", False, False, "CoT with what the problem itself finds"),
    Method("least-to-most", "Least-to-Most", True, None, False, False, "sub-questions in order, no search"),
    Method("step-back", "Step-Back", True, None, False, True, "the principle of each sub-question first, no search"),
    Method("least-to-most-rag", "Least-to-Most+RAG", True, "sub-question", False, False, "searches the sub-question"),
    Method("step-back-rag", "Step-Back+RAG", True, "principle", False, False, "searches the principle"),
    Method("hyde", "HyDE", True, "hypothetical answer", False, False, "searches a hypothetical answer"),
)
BASELINES = tuple(method for method in METHODS if method.name != "raise")


def method_of(name: str) -> Method:
    """The method of a name or label; raise `InputError` with the names.

    >>> method_of("CoT+RAG").name
    'cot-rag'
    """
    wanted = re.sub(r"[\s+_]+", "-", name.strip().casefold())
    for method in METHODS:
        if method.name == wanted:
            return method
    raise InputError(f"There is no method {name!r}. Choose of: {', '.join(method.name for method in METHODS)}.")
