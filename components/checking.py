"""A check of a case's answer: begun from any page of the case, followed on all of them; and of many, one by one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import streamlit as st

from components import state
from components.analysis_run import FROZEN, begin, is_open
from components.cache import batches, workbench
from components.html import plain
from components.polling import result_of, say_problem, wait_for
from components.runs import Run
from components.settings_panel import chosen_workbench
from engine.analyses.facts import FactsOptions
from engine.analyses.kind import FACTS
from engine.core.errors import GroundworkError
from engine.core.values import Case

CHECKS = "checks"  # the name of a run over several cases


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
    open_ = is_open(case)
    if st.button("Check the answer", key=key, type="primary", disabled=not open_, help=None if open_ else FROZEN):
        start_check(case)
        st.rerun()
    if (run := state.run_of(check_name(case.id))) is not None:
        say_problem(run)


def start_checks(case_ids: Sequence[str]) -> None:
    """Begin the same check of several cases, one after the other."""
    bench, ids = chosen_workbench(), tuple(case_ids)

    def work(run: Run[dict[str, str]]) -> dict[str, str]:
        return bench.analyse_all(ids, FACTS, FactsOptions(), run.watch)

    state.keep_run(CHECKS, batches().start(work, CHECKS))


def checks_run() -> bool:
    """Whether several cases are being checked."""
    run = state.run_of(CHECKS)
    return run is not None and not run.ended


def checks_view() -> None:
    """How far the check of several cases is, and at its end which cases it could not check."""
    wait_for(CHECKS, "Checked")
    failed = result_of(CHECKS)
    for case_id, why in failed.items() if isinstance(failed, dict) else ():
        named = case_id
        with suppress(GroundworkError):  # it may be deleted
            named = workbench().cases.load(case_id).question
        st.warning(plain(f"Not checked: {named} {why}"))
