"""An analysis on request: what it costs, a button, its progress and cancel, and what the last one came to."""

from __future__ import annotations

import streamlit as st

from components import state
from components.cache import workers
from components.html import banner, plain
from components.polling import cancel_button, say_problem
from components.runs import start
from components.settings_panel import chosen_workbench
from engine.core.values import Analysis, Case


def ask_for(case: Case, method: str, label: str, cost: str, model: str) -> None:
    """A button with its cost that starts the analysis; while it runs, progress and cancel."""
    name = f"{method}:{case.id}"
    run = state.run_of(name)
    if run is not None and not run.ended:
        _watch(name)
        return
    left, right = st.columns([1, 3], vertical_alignment="center")
    if left.button(label, key=f"start_{name}", type="primary", width="stretch"):
        bench = chosen_workbench()
        state.keep_run(name, start(workers(), lambda r: bench.attribute(case.id, method, model, r.watch), label=label))
        st.rerun()
    right.caption(plain(cost))
    if run is not None:
        say_problem(run)


@st.fragment(run_every=0.8)
def _watch(name: str) -> None:
    """Poll one running analysis."""
    run = state.run_of(name)
    if run is None or not run.running:
        st.rerun()
    st.progress(run.share, text=plain(f"{run.label}: {run.place('loading the model')}"))
    left, right = st.columns([1, 3], vertical_alignment="center")
    with left:
        cancel_button(run, key=f"cancel_{name}")
    right.caption("What is finished by then is kept and shown.")


def latest(case: Case, kind: str, model: str = "") -> Analysis | None:
    """The analysis of that kind that was added last; by `model` where one of that model is there."""
    found = [analysis for analysis in reversed(case.analyses) if analysis.kind == kind]
    own = [analysis for analysis in found if analysis.stamp.model == model]
    return next(iter([*own, *found]), None)


def banners(notes: tuple[str, ...]) -> None:
    """The notes that belong above a score: who wrote the answer and who scored it."""
    for line in filter(is_banner, notes):
        banner(line)


def is_banner(note: str) -> bool:
    """Whether a note belongs above the scores instead of under them."""
    return note.startswith("Written by ")


def words_of(case: Case) -> int:
    """Words of the passages and the answer, which is what a row of the model reads."""
    return sum(len(passage.text.split()) for passage in case.passages) + len(case.answer.text.split())


def seconds_said(case: Case, model: str, passes: float) -> str:
    """How long `passes` may take, going by this case's earlier analyses by the same model; empty before the first."""
    for analysis in reversed(case.analyses):
        done = analysis.result.get("forwards", 0) + 2 * analysis.result.get("backwards", 0)
        if analysis.stamp.model == model and done and analysis.result.get("seconds"):
            return f"; about {passes * analysis.result['seconds'] / done:.0f} s, going by the last run"
    return ""
