"""The library at a glance: of each case how much of its answer its sources bear out, and the same by who wrote it.

Counts come from the case's last check and the reviewers' marks. They are kept in the library's file until the case
changes, because reading a long check takes tens of milliseconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Literal

import msgspec

from engine.analyses.case_verdict import case_verdict
from engine.cases.query import CaseRow
from engine.cases.review import Review, review_of
from engine.cases.store import CaseStore
from engine.core.errors import CaseError
from engine.core.statistics import mean_or_none
from engine.core.values import Case, Value, decoded

Group = Literal["writer", "method"]
FORM = "6"  # of what is kept; raised where the same case would come out differently


class Quality(Value, frozen=True):
    """Counts over the facts, as they now are, and over the pairs of a sentence and a passage that it cites.

    `headline` has the facts by their states, in words. `unsettled` are not found, unsure or not checked; `edits` are
    those accepted; `checked` counts cases with a check.
    """

    checked: int = 0
    facts: int = 0
    borne_out: int = 0
    unsettled: int = 0
    citations: int = 0
    citations_supported: int = 0
    edits: int = 0
    conclusion: str = ""
    method: str = ""
    headline: str = "not checked"

    @property
    def citation_precision(self) -> float | None:
        """Share of the citations whose passage bears out a fact of the sentence; None without one."""
        return self.citations_supported / self.citations if self.citations else None


class Standing(Value, frozen=True):
    """Several checked cases: means over the cases of shares in [0, 1] and of accepted edits, and their conclusions."""

    cases: int
    borne_out: float | None
    unsettled: float | None
    edits: float
    citation_precision: float | None
    conclusions: dict[str, int]


def quality_of(case: Case, review: Review) -> Quality:
    """The counts of one case."""
    conclusion = review.conclusion.value if review.conclusion else ""
    verdict = case_verdict(case, review)
    if verdict is None:
        return Quality(conclusion=conclusion, method=method_used(case))
    states = Counter(verdict.facts)
    return Quality(
        method=method_used(case),
        checked=1,
        facts=states.total(),
        borne_out=states["borne out"],
        unsettled=states["not found"] + states["unsure"] + states["not checked"],
        citations=verdict.citations,
        citations_supported=verdict.citations_supported,
        edits=verdict.accepted,
        conclusion=conclusion,
        headline=verdict.headline,
    )


def qualities(store: CaseStore, rows: Sequence[CaseRow]) -> dict[str, Quality]:
    """The counts of each case of `rows`, by its id; changed ones are read anew and kept. A damaged one says so."""
    kept = store.summaries()
    found: dict[str, Quality] = {}
    fresh: dict[str, tuple[str, bytes]] = {}
    for row in rows:
        of = f"{FORM} {row.updated}"  # whole seconds: the store forgets what it kept as well
        made, counts = kept.get(row.id, ("", b""))
        with suppress(msgspec.DecodeError):
            if made == of:
                found[row.id] = decoded(counts, Quality)
                continue
        try:
            case, history = store.load_whole(row.id)
        except CaseError:
            found[row.id] = Quality(headline="cannot be read")
            continue
        found[row.id] = quality_of(case, review_of(history))
        fresh[row.id] = (of, msgspec.json.encode(found[row.id]))
    if fresh:
        store.keep_summaries(fresh)
    return found


def leaderboard(rows: Sequence[CaseRow], found: Mapping[str, Quality], group: Group) -> dict[str, Standing]:
    """The checked cases by writer or by method, the highest mean share of borne-out facts first."""
    grouped: dict[str, list[Quality]] = {}
    for row in rows:
        quality = found[row.id]
        if quality.checked:
            grouped.setdefault(row.model if group == "writer" else quality.method, []).append(quality)
    standings = {name: _standing(cases) for name, cases in grouped.items()}
    return dict(sorted(standings.items(), key=lambda named: -(named[1].borne_out or 0.0)))


def _standing(cases: Sequence[Quality]) -> Standing:
    stated, citing = [case for case in cases if case.facts], [case for case in cases if case.citations]
    return Standing(
        cases=len(cases),
        borne_out=mean_or_none([case.borne_out / case.facts for case in stated]),
        unsettled=mean_or_none([case.unsettled / case.facts for case in stated]),
        edits=sum(case.edits for case in cases) / len(cases),
        citation_precision=mean_or_none([case.citations_supported / case.citations for case in citing]),
        conclusions=dict(Counter(case.conclusion for case in cases if case.conclusion)),
    )


def method_used(case: Case) -> str:
    """How the answer came about, told by its steps: "imported", "attr-rag", "reranked" or "vanilla"."""
    if case.origin == "imported":
        return "imported"
    steps = {step.name for step in case.steps}
    return "attr-rag" if "selection" in steps else "reranked" if "re-rank" in steps else "vanilla"
