"""A check of a case's answer: begun from any page of the case, followed on all of them."""

from __future__ import annotations

import streamlit as st

from components import state
from components.analysis_run import begin
from components.polling import say_problem, wait_for
from engine.analyses.facts import FactsOptions
from engine.analyses.kind import FACTS
from engine.core.values import Case


def check_name(case_id: str) -> str:
    """The name of a case's check among the session's runs."""
    return f"facts:{case_id}"


def start_check(case: Case) -> None:
    """Begin the check that needs no choice: the embedded verifier, and the settings as they are."""
    begin(case, FACTS, FactsOptions(), check_name(case.id))


def is_being_checked(case: Case) -> bool:
    """Whether a check of the case runs, or waits for its turn."""
    run = state.run_of(check_name(case.id))
    return run is not None and not run.ended


def check_button(case: Case, *, key: str) -> None:
    """The button that begins the check; its progress while it runs, and what went wrong with it."""
    if is_being_checked(case):
        wait_for(check_name(case.id), "Checking the answer")
        return
    if st.button("Check the answer", key=key, type="primary"):
        start_check(case)
        st.rerun()
    if (run := state.run_of(check_name(case.id))) is not None:
        say_problem(run)
