"""An analysis on request: what it costs, a button, its progress and cancel, and what the last one came to."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from components import state
from components.blocks import draw
from components.cache import analyses, workbench
from components.html import banner, plain
from components.polling import cancel_button, redraw_while_running, say_problem
from components.reviewer import new_version_button
from components.runs import Run
from components.settings_panel import chosen_settings
from engine.analyses.registry import kind_named
from engine.core.settings import Settings
from engine.core.text import about
from engine.core.values import Analysis, Case, Value
from engine.report.build import analysis_blocks

FROZEN = "This case is signed off. Make a new version of it to run this."


def ask_for(
    case: Case,
    kind: str,
    label: str,
    model: str = "",
    more: str = "",
    *,
    options: Value | None = None,
    settings: Settings | None = None,
    key: str = "",
    lead: str = "",
    done: bool = False,
    view: Callable[[Case], None] = lambda case: None,
) -> None:
    """A button that starts the analysis, with its cost and `more` to say of it; while it runs, progress and cancel.

    `lead` says what it does; where it is `done`, all folds to a line. `key` tells apart several buttons for one kind.
    `settings` are the session's where none are given. `view` draws the result under it, also while it grows.
    """
    name, options = f"{kind}:{case.id}", options or kind_named(kind).options(model=model)
    run = state.run_of(name)
    if run is not None and not run.ended:
        _watch(run, name, key, case, view)
        return
    cost, open_ = workbench().using(settings or chosen_settings()).cost(case, kind, options) + more, is_open(case)
    if lead and not done:
        st.caption(plain(lead))
    left, right = st.columns([1, 7 if done else 3], vertical_alignment="center")
    again = f"{label}. {lead}".strip()
    look = {"label": "Run again", "type": "tertiary", "help": again} if done else {"label": label, "type": "primary"}
    # A callback, since a run that ends may draw the page anew before it comes to this button.
    look |= {"on_click": begin, "args": (case, kind, options, name, label, settings), "disabled": not open_}
    left.button(**look, key=f"start_{name}_{key}", width="content" if done else "stretch")
    with right:
        st.caption(plain(cost[:1].upper() + cost[1:])) if open_ else frozen(case, f"{name}_{key}")
    if run is not None:
        say_problem(run)
    view(case)


def begin(case: Case, kind: str, options: Value, name: str, label: str = "", settings: Settings | None = None) -> None:
    """Start an analysis of the case in the background, under the session's `name`."""
    bench = workbench().using(settings or chosen_settings())

    def work(run: Run[Case]) -> Case:
        run.stage = "loading the model"
        return bench.analyse(case.id, kind, options, run.watch)

    state.keep_run(name, analyses().start(work, label or kind), shared=True)


@redraw_while_running()
def _watch(run: Run[Case], name: str, key: str, case: Case, view: Callable[[Case], None]) -> None:
    """Progress and cancel of a running analysis; `view` draws the case as it grows."""
    st.progress(run.share, text=plain(f"{run.label}: {run.place('loading the model')}"))
    left, right = st.columns([1, 3], vertical_alignment="center")
    with left:
        cancel_button(run, key=f"cancel_{name}_{key}")
    right.caption("A run that you cancel keeps its finished part.")
    view(run.case or case)


def as_reported(case: Case, analysis: Analysis) -> None:
    """An analysis as the report shows it."""
    draw(*analysis_blocks(case, analysis, workbench().cases.review(case.id)))


def latest(case: Case, kind: str, model: str = "") -> Analysis | None:
    """The analysis of that kind that was added last; by `model` where one of that model is there."""
    found = [analysis for analysis in reversed(case.analyses) if analysis.kind == kind]
    own = [analysis for analysis in found if analysis.stamp.model == model]
    return next(iter([*own, *found]), None)


def is_by(found: Analysis | None, model: str) -> bool:
    """Whether there is an analysis, and by that model."""
    return found is not None and found.stamp.model == model


def is_open(case: Case) -> bool:
    """Whether the case takes another analysis: a signed-off one is frozen."""
    return workbench().cases.review(case.id).status != "signed off"


def frozen(case: Case, key: str, why: str = FROZEN) -> None:
    """Say that a signed-off case takes no other analysis, with the way on."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(why, width="content")
        new_version_button(case.id, key=f"version_{key}")


def banners(notes: tuple[str, ...]) -> None:
    """The notes that belong above a score: who wrote the answer and who scored it."""
    for line in filter(is_banner, notes):
        banner(line)


def is_banner(note: str) -> bool:
    """Whether a note belongs above the scores instead of under them."""
    return note.startswith(("Written by ", "Not scored, ", "Do not rely "))


def seconds_said(case: Case, model: str, passes: float, kind: str = "") -> str:
    """How long `passes` may take, going by the case's last analysis by the same model, of that kind where there is one.

    Empty before the first.
    """
    newest = list(reversed(case.analyses))
    for analysis in sorted(newest, key=lambda analysis: analysis.kind != kind):
        stored = analysis.stored()
        done = stored.get("forwards", 0) + 2 * stored.get("backwards", 0)
        if analysis.stamp.model == model and done and stored.get("seconds"):
            return f"; about {about(passes * stored['seconds'] / done)}, based on the last run"
    return ""
