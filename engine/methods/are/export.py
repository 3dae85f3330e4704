"""A check of an answer as text to be kept: the accepted text, and a report in Markdown.

What is accepted is what is exported: an edit that nobody accepted is listed and not put in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from engine.methods.are.backtrack import revised
from engine.methods.are.values import MEANING, AreRecord, FactRecord, Measures, Placed

Decision = Literal["accepted", "rejected"]
_PROPOSAL = re.compile(r"\d+-\d+: (?P<old>.*?) -> (?P<new>.*)", re.DOTALL)
_MARKUP = re.compile(r"([\\`*_\[\]<>#|!~$])")


def accepted_text(record: AreRecord, decisions: Mapping[str, Decision]) -> str:
    """The answer with the accepted edits alone; `decisions` by the id of an edit."""
    return revised(record.checked, record.edits, accepted_ids(decisions))


def accepted_ids(decisions: Mapping[str, Decision]) -> set[str]:
    """The ids of the edits that were accepted."""
    return {key for key, value in decisions.items() if value == "accepted"}


def proposed(edit: Placed) -> str:
    """An edit as a mark's machine side says it, so that a decision on another check's edit can be told apart."""
    return f"{edit.start}-{edit.end}: {edit.old} -> {edit.new}"


def change_said(proposal: str) -> str:
    """The text of an edit as `proposed` wrote it, without its offsets.

    >>> change_said("142-148: 89,000 -> 98,000"), change_said("9-12: So. -> ")
    ('89,000 → 98,000', 'So. → taken out')
    """
    found = _PROPOSAL.fullmatch(proposal)
    return f"{found['old'] or 'nothing'} → {found['new'] or 'taken out'}" if found else proposal


def as_markdown(record: AreRecord, decisions: Mapping[str, Decision]) -> str:
    """The attribution report: measures, clauses with facts, verdicts and evidence, edits with what was decided."""
    lines = ["# Check of an answer", "", f"Question: {_plain(record.question)}", "", "## Text", ""]
    lines += [_plain(accepted_text(record, decisions)), ""]
    if record.report:
        lines += ["## Measures", "", *_measures(record.report.before, record.report.after), ""]
        lines += [f"By {_plain(record.measured)}.", ""]
    lines += ["## Clauses and facts", ""]
    for number, clause in enumerate(record.decomposition.clauses):
        lines += [f"### {number + 1}. {_plain(' '.join(clause.text.split()))}", ""]
        for fact in record.facts:
            if fact.clause == number:
                lines += _fact(fact)
        lines.append("")
    lines += ["## Edits", "", *(_edit(edit, decisions) for edit in record.edits)]
    lines += [] if record.edits else ["None."]
    lines += ["", *(f"Note: {_plain(note)}" for note in record.notes)]
    return "\n".join(lines).rstrip() + "\n"


def _plain(text: str) -> str:
    """Text of documents and models without effect as markup."""
    return _MARKUP.sub(r"\\\1", text)


def _measures(before: Measures, after: Measures) -> list[str]:
    rows = [("Attr_r", "attr_r"), ("Attr_p", "attr_p"), ("Pres", "pres"), ("F1_RP", "f1_rp"), ("F1_PP", "f1_pp")]
    body = [f"| {name} | {getattr(before, key):.3f} | {getattr(after, key):.3f} |" for name, key in rows]
    return ["| measure | before | after |", "| --- | --- | --- |", *body]


def _fact(record: FactRecord) -> list[str]:
    said = [f"- {_plain(record.fact.text)}", f"  - {MEANING[record.outcome]}"]
    if record.ruling:
        said.append(f"  - {_plain(record.ruling.note)}")
    if record.evidence:
        place = f"passage {record.evidence.number}" if record.evidence.number else "corpus"
        source = _plain(record.evidence.title or record.evidence.document)
        said.append(f"  - {place}, {source}: {_plain(' '.join(record.evidence.text.split()))}")
    return said


def _edit(edit: Placed, decisions: Mapping[str, Decision]) -> str:
    state = (
        "suggestion, not put in" if edit.status == "suggestion" else decisions.get(edit.id, "not decided, not put in")
    )
    change = f'"{_plain(edit.old)}" becomes "{_plain(edit.new)}"'
    return f"- {edit.id}: {change} ({state}); {_plain(edit.why)}"
