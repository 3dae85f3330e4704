"""The facts of cases as a table: a line per fact, with its verdict, who gave it, its evidence and its edit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from engine.analyses.case_verdict import CaseVerdict, FactVerdict, QuotedEvidence, case_verdict, fact_verdicts
from engine.analyses.facts import record_of
from engine.cases.markup import quoted
from engine.cases.review import Mark, Review, review_of
from engine.core.values import Case, own_title

if TYPE_CHECKING:
    import pandas as pd


def facts_table(cases: Iterable[tuple[Case, Sequence[Mark]]]) -> pd.DataFrame:
    """The facts of cases with their histories, in the order of the answers.

    A case that was not checked, or that makes no claim, has one line that says so.

    `verdict` is the state of the fact in the text as it now is, `probability` the verifier's for its own verdict, 0 to
    1. `reviewer` and `reason` are of a person's verdict in its place. `evidence` is a sentence of `source`, and
    `against` one of another passage that may contradict the fact.
    """
    import pandas as pd  # half a second, which a command that needs none does not wait for

    lines: list[dict[str, object]] = []
    for case, history in cases:
        about: dict[str, object] = {"case": case.id, "question": case.question, "written by": case.stamp.model}
        lines += [about | line for line in _lines(case, review_of(history))]
    return pd.DataFrame(lines, columns=_COLUMNS).astype({"sentence": "Int64"})


_COLUMNS = (
    *("case", "question", "written by", "sentence", "fact", "text", "verdict", "probability", "judged by", "reviewer"),
    *("reason", "source", "evidence", "against", "edit", "decision"),
)


def facts_csv(cases: Iterable[tuple[Case, Sequence[Mark]]]) -> bytes:
    """`facts_table` as CSV, in UTF-8; nothing in it runs as a formula."""
    cells = facts_table(cases).map(lambda value: quoted(value) if isinstance(value, str) else value)
    text: str = cells.to_csv(index=False, lineterminator="\n")
    return text.encode()


def _lines(case: Case, review: Review) -> list[dict[str, object]]:
    verdict = case_verdict(case, review)
    record = record_of(case) if verdict else None
    if verdict is None or record is None:
        return [{"verdict": "not checked"}]
    found = [_line(fact, verdict) for fact in fact_verdicts(case, record, review).values()]
    return found or [{"verdict": "no claim"}]


def _line(fact: FactVerdict, verdict: CaseVerdict) -> dict[str, object]:
    return {
        "sentence": verdict.sentence_of(fact.number),
        "fact": fact.number,
        "text": fact.text,
        "verdict": fact.state,
        "probability": fact.probability,
        "judged by": fact.by,
        "reviewer": fact.mark.author if fact.mark else "",
        "reason": fact.mark.reason if fact.mark else "",
        "source": _source(fact.quote),
        "evidence": _words(fact.quote),
        "against": _words(fact.against),
        "edit": "; ".join(f"{edit.old} -> {edit.new or '(deleted)'}" for edit in fact.edits),
        "decision": "; ".join(edit.decision or "undecided" for edit in fact.edits),
    }


def _source(quote: QuotedEvidence | None) -> str:
    if quote is None:
        return ""
    place = f"passage {quote.number}" if quote.number else "corpus"
    return ": ".join(filter(None, (place, own_title(quote.number, quote.title))))


def _words(quote: QuotedEvidence | None) -> str:
    return " ".join(quote.words.split()) if quote else ""
