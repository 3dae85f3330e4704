"""Work that shows nothing before it is done: its progress, its cancel, what came of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import streamlit as st

from components import state
from components.html import plain
from components.runs import Run

_asked: ContextVar[list[bool] | None] = ContextVar("asked", default=None)  # None: no page is being drawn


@contextmanager
def page_being_drawn() -> Iterator[None]:
    """Around a page: what asks for `redraw` meanwhile gets it once the page is drawn."""
    asked: list[bool] = []
    token = _asked.set(asked)
    try:
        yield
    finally:
        _asked.reset(token)
    if asked:
        st.rerun()


def redraw() -> None:
    """Draw the page anew, since work has ended: at once from a poll, at its end while the page is being drawn.

    The page may be drawn for a click on a control that comes further down, which must not be lost.
    """
    asked = _asked.get()
    if asked is None:
        st.rerun()
    asked.append(True)


def wait_for(name: str, saying: str) -> None:
    """A running piece of work with its cancel, or what went wrong with it."""
    run = state.run_of(name)
    if run is not None and not run.ended:
        poll(name, saying)
    elif run is not None:
        say_problem(run)


def say_problem(run: Run[Any], stopped: str = "") -> None:
    """Of a run that ended without a result: that it was stopped, and what is left, or what went wrong."""
    if run.problem:
        (st.info if run.was_cancelled else st.error)(plain((run.was_cancelled and stopped) or run.problem))


@st.fragment(run_every=0.8)
def poll(name: str, saying: str, before: str = "") -> None:
    """Poll a piece of work that shows nothing before it is done; `before` is said until it begins."""
    run = state.run_of(name)
    if run is None or not run.running:
        redraw()
        return
    st.progress(run.share, text=plain(": ".join(filter(None, (saying, run.place(before))))))
    cancel_button(run, key=f"cancel_{name}")


def cancel_button(run: Run[Any], *, key: str) -> None:
    """Ask a run to stop. The call goes before the page is drawn again, so that no second press is offered."""
    st.button("Cancel", key=key, on_click=run.stop, disabled=run.cancelling)


def result_of(name: str) -> object:
    """The result of finished work, or None."""
    run = state.run_of(name)
    return run.future.result() if run is not None and run.ended and run.problem is None else None
