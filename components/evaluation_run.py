"""A running evaluation in its own thread: any session can watch, pause, cancel and resume it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from components.cache import evaluators
from components.html import plain
from components.polling import redraw, say_problem
from components.runs import Run
from engine.core.text import about, counted
from engine.studies.evaluate import Evaluation, evaluate
from engine.studies.library import Listed, folder_of
from engine.studies.run import Control, Progress


@dataclass
class Live:
    """A run of this process. The worker replaces `progress`, the page sets `pause`."""

    run: Run[Any] = field(default_factory=Run)
    pause: threading.Event = field(default_factory=threading.Event)
    progress: Progress | None = None


def live(name: str) -> Live | None:
    """The run of that name if this process has begun or resumed it."""
    return evaluators().runs.get(name)


def see_runs() -> None:
    """Note which runs of this process have ended, before the page lists what they wrote."""
    for own in list(evaluators().runs.values()):
        own.run.see()


def begin(name: str, text: str, resume: bool = False) -> None:
    """Start a run in the background, or resume it."""
    own = Live()

    def tell(progress: Progress) -> None:
        own.progress = progress

    def work(run: Run[Evaluation]) -> Evaluation:
        control = Control(watch=run.watch, pause=own.pause, tell=tell)
        return evaluate(text, folder_of(name), resume=resume, control=control)

    own.run = evaluators().lane.start(work, label=name)
    evaluators().runs[name] = own


@st.fragment(run_every=1.0)
def watch_evaluation(name: str, until_written: bool = False) -> None:
    """Progress, an estimate of what is left, pause and cancel; the whole page is drawn again when it ends.

    `until_written`: also when its first file is there, so that it stands among the runs.
    """
    own = live(name)
    if own is None or not own.run.running or (until_written and written(name)):
        redraw()
        return
    progress = own.progress
    if progress is None:
        st.progress(0.0, text=plain(own.run.place("starting")))
    else:
        st.progress(progress.done / max(1, progress.total), text=plain(said(progress)))
    left, right, _ = st.columns([2, 2, 6])
    if own.pause.is_set():
        left.button("Resume", key=f"go_on_{name}", on_click=own.pause.clear, width="stretch")
    else:
        left.button("Pause", key=f"pause_{name}", on_click=own.pause.set, width="stretch")
    cancelling = own.run.cancelling
    right.button("Cancel", key=f"stop_{name}", on_click=own.run.stop, disabled=cancelling, width="stretch")
    if own.pause.is_set():
        st.caption("Paused. Started units finish; new ones wait.")
    elif cancelling:
        st.caption("Stopping. Completed units are saved; you can resume later.")


def written(name: str) -> bool:
    """Whether the run has its folder: before that its data and corpora are read."""
    return (folder_of(name) / "run.json").exists()


def begun_but_not_written(known: Sequence[Listed]) -> list[str]:
    """Runs of this process that read their data still; of one that failed at that, what went wrong is said."""
    listed, reading = {one.name for one in known}, []
    for name, own in list(evaluators().runs.items()):
        if name in listed:
            continue
        if not own.run.ended:
            reading.append(name)
        elif own.run.problem:
            st.error(plain(f"{name}: {own.run.problem}"))
    return reading


def said(progress: Progress) -> str:
    """Progress in a sentence.

    >>> said(Progress(done=3, failed=1, total=12, remaining=125.0))
    '3 of 12 units, 1 failed, about 2 min left'
    """
    parts = [f"{progress.done:,} of {counted(progress.total, 'unit')}", f"{progress.failed:,} failed"]
    if progress.served.calls:
        parts.append(f"{counted(progress.served.calls, 'call')} of the server")
    if progress.paused:
        parts.append("paused")
    elif progress.remaining is not None and progress.done < progress.total:
        parts.append(f"about {about(progress.remaining)} left")
    return ", ".join(parts)


def standing(listed: Listed) -> str:
    """Whether a run is running, ended, or waiting to be resumed."""
    own = live(listed.name)
    if own is not None and not own.run.ended:
        return "paused" if own.pause.is_set() else "running"
    if listed.shipped:
        return "included with Groundwork"
    return "finished" if listed.finished else "stopped"


def run_controls(listed: Listed) -> None:
    """The actions available for a run, and its problem if it has one."""
    own = live(listed.name)
    if own is not None and not own.run.ended:
        watch_evaluation(listed.name)
        return
    if own is not None:
        say_problem(own.run, f"Stopped with {listed.done:,} of {counted(listed.total, 'unit')} done and saved.")
    if not listed.finished and not listed.shipped:
        text = (folder_of(listed.name) / "config.toml").read_text(encoding="utf-8")
        if st.button(
            f"Resume the remaining {counted(listed.total - listed.done, 'unit')}", key=f"resume_{listed.name}"
        ):
            begin(listed.name, text, resume=True)
            st.rerun()
