"""The only place that caches: the workbench, its lanes of work, and the preparation of the samples."""

from __future__ import annotations

import gc
from contextlib import suppress
from pathlib import Path
from typing import Any

import streamlit as st

from components.runs import Lane, Run
from engine.core.errors import GroundworkError
from engine.core.values import Case
from engine.corpus.collection import Collection
from engine.corpus.page_picture import PagePicture, draw_page
from engine.corpus.store import Snapshot
from engine.studies.evaluate import Evaluation, opened
from engine.studies.library import folder_of
from engine.workbench import Workbench


@st.cache_resource(show_spinner=False)
def workbench() -> Workbench:
    """One workbench a process."""
    return Workbench()


@st.cache_resource(show_spinner=False)
def questions() -> Lane:
    """Where answers are written: a question waits for other questions, never for an analysis."""
    return Lane("questions")


@st.cache_resource(show_spinner=False)
def analyses() -> Lane:
    """Where all other work is done. Two threads: one run computes while another waits for a server or a disk."""
    return Lane("analyses", threads=2)


@st.cache_resource(show_spinner=False)
def batches() -> Lane:
    """Where an analysis of many cases is done, so that one of a single case does not wait for all of them."""
    return Lane("batches")


class Evaluators:
    """The lane that evaluations run in, one after the other, and what was begun in it, by the run's name."""

    def __init__(self) -> None:
        self.lane = Lane("evaluations")
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
def begun_runs() -> dict[str, Run[Any]]:
    """Runs on what all sessions share, by name ("facts:CASE"): every session shows them and may cancel them."""
    return {}


@st.cache_resource(show_spinner=False)
def preparation() -> Run[None]:
    """The first start's work, begun once a process: the first sample corpus ingested, the first case written."""
    return questions().start(lambda run: workbench().prepare_first(run.watch), "preparation")


@st.cache_resource(show_spinner=False)
def further_preparation() -> Run[None]:
    """Background work while the user reads: load the embedder, ingest the other sample corpora."""

    def work(run: Run[None]) -> None:
        workbench().prepare_rest(run.watch)
        # What is loaded by now stays; walking through it, a full collection holds every thread for 0.4 s.
        gc.collect()
        gc.freeze()

    return analyses().start(work, "preparation")


@st.cache_resource(show_spinner=False)
def check_preparation() -> Run[None]:
    """Load what a check needs while the user fills in what is to be checked: seconds of the first one."""
    return analyses().start(lambda run: workbench().prepare_check(), "preparation")


@st.cache_data(show_spinner=False, max_entries=24)
def page_picture(file: str, page: int, words: str) -> PagePicture:
    """A page of a stored PDF with the words marked; the file's name is the hash of its text. Raises `FileError`."""
    return draw_page(Path(file), page, words)


def snapshot_of(corpus: str | None) -> Snapshot | None:
    """The corpus as it is now; None where it is gone, since a case outlives it. The engine keeps the snapshot."""
    with suppress(GroundworkError):
        return Collection.open(corpus).snapshot() if corpus is not None else None
    return None


def document_lengths(case: Case) -> dict[str, int]:
    """Lengths in characters of the documents that the case's passages come from; empty where the corpus is gone."""
    snapshot = snapshot_of(case.corpus)
    documents = snapshot.documents if snapshot is not None else {}
    found = {passage.document: documents.get(passage.document) for passage in case.passages}
    return {name: len(document.text) for name, document in found.items() if document is not None}
