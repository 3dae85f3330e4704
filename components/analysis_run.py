"""An analysis on request: what it costs, a button, its progress and cancel, and what the last one came to."""

from __future__ import annotations

import streamlit as st

from components import state
from components.cache import workbench, workers
from components.html import banner, plain
from components.polling import cancel_button, say_problem
from components.runs import Run, start
from engine.analyses.faithfulness import Rankings
from engine.analyses.token_map import Rows
from engine.core.values import Analysis, Case


def ask_for(
    case: Case,
    method: str,
    label: str,
    cost: str,
    model: str,
    options: Rows | Rankings | None = None,
    *,
    key: str = "",
) -> None:
    """A button with its cost that starts the analysis; while it runs, progress and cancel.

    `key` tells apart several buttons for one method.
    """
    name = f"{method}:{case.id}"
    run = state.run_of(name)
    if run is not None and not run.ended:
        _watch(name, key)
        return
    left, right = st.columns([1, 3], vertical_alignment="center")
    if left.button(label, key=f"start_{name}_{key}", type="primary", width="stretch"):
        begin(case, method, label, model, options)
    right.caption(plain(cost))
    if run is not None:
        say_problem(run)


def begin(case: Case, method: str, label: str, model: str, options: Rows | Rankings | None = None) -> None:
    """Start the analysis and draw the page anew, where `ask_for` shows its progress."""

    def work(run: Run[Case]) -> Case:
        return workbench().attribute(case.id, method, model, run.watch, options)

    state.keep_run(f"{method}:{case.id}", start(workers(), work, label=label))
    st.rerun()


@st.fragment(run_every=0.8)
def _watch(name: str, key: str = "") -> None:
    """Poll one running analysis."""
    run = state.run_of(name)
    if run is None or not run.running:
        st.rerun()
    st.progress(run.share, text=plain(f"{run.label}: {run.place('loading the model')}"))
    left, right = st.columns([1, 3], vertical_alignment="center")
    with left:
        cancel_button(run, key=f"cancel_{name}_{key}")
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
