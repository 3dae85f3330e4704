"""Work that shows nothing before it is done: its progress, its cancel, what came of it."""

from __future__ import annotations

from typing import Any

import streamlit as st

from components import state
from components.html import plain
from components.runs import Run


def wait_for(name: str, saying: str) -> None:
    """A running piece of work with its cancel, or what went wrong with it."""
    run = state.run_of(name)
    if run is not None and not run.ended:
        poll(name, saying)
    elif run is not None:
        say_problem(run)


def say_problem(run: Run[Any]) -> None:
    """Of a run that ended without a result: that it was stopped, or what went wrong."""
    if run.problem:
        (st.info if run.was_cancelled else st.error)(plain(run.problem))


@st.fragment(run_every=0.8)
def poll(name: str, saying: str) -> None:
    """Poll a piece of work that shows nothing before it is done."""
    run = state.run_of(name)
    if run is None or not run.running:
        st.rerun()
    st.progress(run.share, text=plain(": ".join(filter(None, (saying, run.place(""))))))
    cancel_button(run, key=f"cancel_{name}")


def cancel_button(run: Run[Any], *, key: str) -> None:
    """Ask a run to stop. The call goes before the page is drawn again, so that no second press is offered."""
    st.button("Cancel", key=key, on_click=run.stop, disabled=run.cancelling)


def result_of(name: str) -> object:
    """The result of finished work, or None."""
    run = state.run_of(name)
    return run.future.result() if run is not None and run.ended and run.problem is None else None
