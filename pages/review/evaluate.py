"""Evaluate: a study over a data set, from what it costs to its tables, figures and cases."""

import streamlit as st

from components import state
from components.evaluation_results import comparison_view, results_view
from components.evaluation_run import begun_but_not_written, run_controls, see_runs, standing, watch_evaluation
from components.evaluation_setup import setup
from components.heading import heading
from components.html import visible
from engine.core.text import counted
from engine.studies.library import Listed, runs

BEGUN = "groundwork_begun_evaluation"  # to be shown as soon as it is written


def name_of(listed: Listed) -> str:
    """A run as the pickers show it."""
    return visible(f"{listed.name}: {listed.done:,} of {counted(listed.total, 'unit')}, {standing(listed)}")


def chosen_run(known: list[Listed]) -> Listed | None:
    """The run that is shown; the link follows it, so that its label is its name and nothing that changes."""
    by_name = {one.name: one for one in known}
    if state.value_of(BEGUN) in by_name:
        state.set_value("run", state.take_value(BEGUN))
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    name = left.selectbox("Run", list(by_name), format_func=visible, key="run", bind="query-params")
    found = by_name.get(name or "")
    if found is not None:
        right.markdown(f"{found.done:,} of {counted(found.total, 'unit')}, {standing(found)}")
    return found


@st.fragment
def new_run() -> None:
    """The form of a new run; what is chosen in it draws no results anew."""
    with st.expander("A new run"):
        begun = setup()
    if begun is not None:
        state.set_value(BEGUN, begun)
        st.rerun()


@st.fragment
def comparison(shown: Listed, others: dict[str, Listed]) -> None:
    """Another run of the same study, and both side by side."""
    st.header("Compare with another run")
    other = st.selectbox("Compare with", list(others), None, format_func=lambda n: name_of(others[n]), key="beside")
    if other:
        comparison_view(shown, others[other])


heading(
    "Evaluate",
    "Run a study over a data set. See its cost first, follow its progress, and read tables and figures with intervals.",
    "evaluation",
    "decomposer",
)
see_runs()
new_run()
known = runs()
for starting in begun_but_not_written(known):
    watch_evaluation(starting, until_written=True)
shown = chosen_run(known)
if shown is not None:
    run_controls(shown)
    results_view(shown)
    others = {one.name: one for one in known if one.name != shown.name and one.config.study == shown.config.study}
    if others:
        comparison(shown, others)
