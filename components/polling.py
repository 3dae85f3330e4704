"""Work in the background: drawn again and again while it runs, its cancel, what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, Concatenate, ParamSpec

import streamlit as st

from components import state
from components.html import plain
from components.runs import Run

P = ParamSpec("P")
View = Callable[Concatenate[Run[Any], P], None]

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


def redraw_while_running(every: float = 0.8) -> Callable[[View[P]], View[P]]:
    """Decorate a view of a run: draw it every so many seconds, and the page anew once the run has ended."""

    def decorate(view: View[P]) -> View[P]:
        @st.fragment(run_every=every)
        @wraps(view)  # fragments in one container are told apart by their names
        def draw(run: Run[Any], /, *args: P.args, **kwargs: P.kwargs) -> None:
            if run.running:
                view(run, *args, **kwargs)
            else:
                redraw()

        return draw

    return decorate


def wait_for(name: str, saying: str) -> None:
    """A running piece of work with its cancel, or what went wrong with it."""
    run = state.run_of(name)
    if run is not None and not run.ended:
        progress(run, name, saying)
    elif run is not None:
        say_problem(run)


def say_problem(run: Run[Any], stopped: str = "") -> None:
    """Of a run that ended without a result: that it was stopped, and what is left, or what went wrong."""
    if run.problem:
        (st.info if run.was_cancelled else st.error)(plain((run.was_cancelled and stopped) or run.problem))


@redraw_while_running()
def progress(run: Run[Any], name: str, saying: str, before: str = "") -> None:
    """The progress of a run that shows nothing before it is done; `before` is said until it begins."""
    st.progress(run.share, text=plain(": ".join(filter(None, (saying, run.place(before))))))
    cancel_button(run, key=f"cancel_{name}")


def cancel_button(run: Run[Any], *, key: str) -> None:
    """Ask a run to stop, and say that it does: its current step ends first.

    The call goes before the page is drawn again, so that no second press is offered.
    """
    st.button("Cancel", key=key, on_click=run.stop, disabled=run.cancelling)
    if run.cancelling:
        st.caption("Stopping after the current step.", width="content")


def result_of(name: str) -> object:
    """The result of finished work, or None."""
    run = state.run_of(name)
    return run.future.result() if run is not None and run.ended and run.problem is None else None
