"""A check of a case's answer in its worker: begun from any page of the case, followed on all of them."""

from __future__ import annotations

import msgspec
import streamlit as st

from components import state
from components.cache import workbench, workers
from components.fact_controls import Asked
from components.polling import say_problem, wait_for
from components.runs import Run, start
from engine.analyses.facts import facts_of
from engine.core.errors import Cancelled
from engine.core.files import EMBEDDED
from engine.core.values import Analysis, Case
from engine.corpus.collection import Collection, list_corpora
from engine.methods.are.tools import RULES, load_tools


def run_name(case_id: str) -> str:
    """The name of a case's check among the session's runs."""
    return f"facts:{case_id}"


def usual_check() -> Asked:
    """The check that needs no choice: the embedded verifier, rules, and the settings as they are."""
    return Asked(EMBEDDED, RULES, "", workbench().settings.verification)


def start_check(case_id: str, asked: Asked | None = None) -> None:
    """Begin a check; an earlier one of the same case is asked to stop."""
    chosen = asked or usual_check()
    state.keep_run(run_name(case_id), start(workers(), lambda run: _check(case_id, chosen, run), label="facts"))


def _check(case_id: str, asked: Asked, run: Run[Case]) -> Case:
    """The check in its worker: what is finished is kept when it is stopped."""
    run.stage = "loading the models"
    bench = workbench()
    case = bench.cases.load(case_id)
    settings = msgspec.structs.replace(bench.settings, verification=asked.settings)
    tools = load_tools(asked.verifier, asked.decomposer, asked.judge, settings.prompting.demonstrations)
    try:
        found = facts_of(case, tools, settings, bench.embedder, collection_of(case), run.watch)
    except Cancelled as stopped:
        if isinstance(stopped.partial, Analysis):
            bench.cases.add_analysis(case.id, stopped.partial)
        raise
    return bench.cases.add_analysis(case.id, found)


def collection_of(case: Case) -> Collection | None:
    """The case's corpus, if it is still there."""
    known = {corpus.name for corpus in list_corpora()}
    return workbench().collection(case.corpus) if case.corpus in known and case.corpus is not None else None


def check_button(case: Case, *, key: str) -> None:
    """The button that begins the usual check; its progress while it runs, and what went wrong with it."""
    run = state.run_of(run_name(case.id))
    if run is not None and not run.ended:
        wait_for(run_name(case.id), "Checking the answer")
        return
    if st.button("Check the answer", key=key, type="primary"):
        start_check(case.id)
        st.rerun()
    if run is not None:
        say_problem(run)
