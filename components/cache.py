"""The only place that caches: the workbench, its worker threads, and the preparation of the samples."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import streamlit as st

from components.runs import Run, start
from engine.core.errors import GroundworkError
from engine.corpus.collection import Collection
from engine.corpus.page_picture import PagePicture, draw_page
from engine.studies.evaluate import Evaluation, opened
from engine.studies.library import folder_of
from engine.workbench import Workbench


@st.cache_resource(show_spinner=False)
def workbench() -> Workbench:
    """One workbench a process."""
    return Workbench()


@st.cache_resource(show_spinner=False)
def workers() -> ThreadPoolExecutor:
    """Threads for long work. Two: one run computes while another waits for a server or a disk."""
    return ThreadPoolExecutor(max_workers=2, thread_name_prefix="groundwork")


class Evaluators:
    """The thread that evaluations run in, one after the other, and what was begun in it, by the run's name."""

    def __init__(self) -> None:
        self.threads = ThreadPoolExecutor(max_workers=1, thread_name_prefix="evaluation")
        self.runs: dict[str, Any] = {}


@st.cache_resource(show_spinner=False)
def evaluators() -> Evaluators:
    """One per process: a long evaluation continues after the session that started it ends."""
    return Evaluators()


@st.cache_data(show_spinner=False, max_entries=8)
def evaluation(name: str, written: tuple[int, int]) -> Evaluation:
    """A run with its results; `written` is `library.state_of` its folder, so that it is drawn anew as it grows."""
    return opened(folder_of(name))


@st.cache_resource(show_spinner=False)
def preparation() -> Run[None]:
    """The first start's work, begun once a process: the first sample corpus ingested, the first case written."""
    return start(workers(), lambda run: workbench().prepare_first(run.watch))


@st.cache_resource(show_spinner=False)
def further_preparation() -> Run[None]:
    """Background work while the user reads: load the embedder, ingest the other sample corpora."""

    def work(run: Run[None]) -> None:
        workbench().prepare_rest(run.watch)
        # What is loaded by now stays; walking through it, a full collection holds every thread for 0.4 s.
        gc.collect()
        gc.freeze()

    return start(workers(), work)


@st.cache_data(show_spinner=False, max_entries=24)
def page_picture(file: str, page: int, words: str) -> PagePicture:
    """A page of a stored PDF with the words marked; the file's name is the hash of its text. Raises `FileError`."""
    return draw_page(Path(file), page, words)


def document_lengths(corpus: str | None) -> dict[str, int]:
    """Lengths in characters of a corpus's documents; empty where the corpus is gone. The engine keeps the snapshot."""
    if corpus is None:
        return {}
    try:
        return {name: len(document.text) for name, document in Collection.open(corpus).snapshot().documents.items()}
    except GroundworkError:
        # A case outlives its corpus: the place of a passage is then measured within the case alone.
        return {}
