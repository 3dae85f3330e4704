"""Audit: a question, its sources and an answer from anywhere; every sentence tinted by its verdict, evidence quoted."""

import streamlit as st

from components import state
from components.answer import answer_view
from components.cache import check_preparation, workbench
from components.case_head import case_head
from components.case_import import import_cases, import_notes
from components.checked_answer import checked_answer
from components.checking import check_name, start_check
from components.doors import doors
from components.frame import open_case
from components.heading import heading
from components.provenance import provenance
from engine.analyses.facts import record_of
from engine.core.values import Case


def result(case: Case) -> None:
    """The audit of the open case: does it stand, the tinted answer, the evidence."""
    verdict = case_head(case)
    if verdict is not None:
        checked_answer(case, verdict)
        provenance(case)
    else:
        answer_view(case.answer)


check_preparation()
doors("audit")
heading(
    "Audit an answer",
    "Do the sources bear out every sentence? Paste an answer from any system. Nothing leaves this machine unless you "
    "name a server.",
    "verifier",
    "support",
    "facts",
)
case = open_case(say=False)
audited = case is not None and (case.origin == "imported" or state.run_of(check_name(case.id)) is not None)
label = "Audit another answer" if audited else "Question, sources and answer"
with st.expander(label, expanded=not audited, key=f"form_{case.id}" if case else "form"):  # folds above a new case
    made = import_cases()
if made:
    state.open_case(made[0])
    new = workbench().cases.load(made[0])
    if record_of(new) is None:  # a case file may bring its check along
        start_check(new)
    st.rerun()
if audited and case is not None:
    import_notes(case.id)
    result(case)
