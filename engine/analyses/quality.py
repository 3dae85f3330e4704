"""The library at a glance: of each case how much of its answer its sources bear out, and the same by who wrote it.

Counts come from the case's last check and the reviewers' marks. They are kept in the library's file until the case
changes, because reading a long check takes tens of milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

import msgspec

from engine.analyses.case_verdict import case_verdict
from engine.cases.query import CaseRow
from engine.cases.review import Review, review_of
from engine.cases.store import CaseStore
from engine.core.values import Case, Value, decoded

FORM = "1"  # of what is kept; raised where the same case would come out differently


class Quality(Value, frozen=True):
    """Counts over the sentences with a claim, and over the pairs of a sentence and a passage that it cites.

    `unsupported` are contradicted or not found; `edits` those accepted. `checked` counts cases with a check.
    """

    checked: int = 0
    sentences: int = 0
    borne_out: int = 0
    unsupported: int = 0
    citations: int = 0
    citations_supported: int = 0
    edits: int = 0
    conclusion: str = ""

    @property
    def borne_out_share(self) -> float | None:
        """Share of the sentences, in [0, 1]; None without a checked sentence."""
        return self.borne_out / self.sentences if self.sentences else None

    @property
    def unsupported_share(self) -> float | None:
        """Share of the sentences, in [0, 1]; None without a checked sentence."""
        return self.unsupported / self.sentences if self.sentences else None

    @property
    def citation_precision(self) -> float | None:
        """Share of the citations whose passage bears out a fact of the sentence; None without one."""
        return self.citations_supported / self.citations if self.citations else None

    def plus(self, other: Self) -> Quality:
        """The counts of both; there is no conclusion on several cases."""
        counts = (name for name in self.__struct_fields__ if name != "conclusion")
        return Quality(**{name: getattr(self, name) + getattr(other, name) for name in counts})


def quality_of(case: Case, review: Review) -> Quality:
    """The counts of one case."""
    conclusion = review.conclusion.value if review.conclusion else ""
    verdict = case_verdict(case, review)
    if verdict is None:
        return Quality(conclusion=conclusion)
    counts = verdict.counts
    return Quality(
        checked=1,
        sentences=sum(counts.values()),
        borne_out=counts.get("borne out", 0),
        unsupported=counts.get("contradicted", 0) + counts.get("not found", 0),
        citations=verdict.citations,
        citations_supported=verdict.citations_supported,
        edits=verdict.accepted,
        conclusion=conclusion,
    )


def qualities(store: CaseStore, rows: Sequence[CaseRow]) -> dict[str, Quality]:
    """Of each case of `rows` its counts, by its id; those that changed are read anew and kept."""
    kept = store.summaries()
    found: dict[str, Quality] = {}
    fresh: dict[str, tuple[str, bytes]] = {}
    for row in rows:
        of = f"{FORM} {row.updated}"  # whole seconds: the store forgets what it kept as well
        known = kept.get(row.id)
        if known is not None and known[0] == of:
            found[row.id] = decoded(known[1], Quality)
            continue
        case, history = store.load_whole(row.id)
        found[row.id] = quality_of(case, review_of(history))
        fresh[row.id] = (of, msgspec.json.encode(found[row.id]))
    if fresh:
        store.keep_summaries(fresh)
    return found


def by_writer(rows: Sequence[CaseRow], found: Mapping[str, Quality]) -> dict[str, Quality]:
    """The counts summed over each writer's checked cases, the largest share of borne-out sentences first."""
    total: dict[str, Quality] = {}
    for row in rows:
        if found[row.id].checked:
            total[row.model] = total.get(row.model, Quality()).plus(found[row.id])
    return dict(sorted(total.items(), key=lambda named: -(named[1].borne_out_share or 0.0)))
