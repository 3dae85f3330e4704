"""Corpora: what there is to ask of, documents with their chunks, adding and removing."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import streamlit as st

from components import state
from components.cache import analyses, further_preparation
from components.document import document_view
from components.heading import heading
from components.html import cell, plain
from components.library import ROW_HEIGHT
from components.pages import page_link
from components.polling import progress, redraw_while_running, say_problem, wait_for
from components.runs import Run
from components.settings_panel import draw_setting
from components.steps import duration
from components.upload import too_large
from engine.core.errors import GroundworkError
from engine.core.settings import Settings, all_settings
from engine.core.text import counted
from engine.corpus.collection import Collection, IngestReport, list_corpora, remove, unreadable_corpora
from engine.corpus.sources import MEDIA_TYPES
from engine.corpus.store import originals_size
from engine.models.embedder import DEFAULT, full_name, load_embedder
from engine.workbench import Workbench

EMBEDDER = "retrieval.embedder"
CHUNKING = ("chunking.method", "chunking.words", "chunking.overlap")
FRESH = Settings().with_values({EMBEDDER: DEFAULT})  # what a new corpus is made with unless something else is chosen
ADDING = "corpus_being_added_to"
ADD_FOLD = "add_documents"
FEW_SKIPPED = 3  # files left out that are named one by one
WIDTHS = {"title": 278, "passages": 80}  # pixels; both are seen whole in a window of 1280
MOST_ROWS = 1_000  # documents that are listed at once
LOW_ROW, HIGHEST = 35, 440  # pixels of a row with one line, and of the table, which scrolls then
LONGEST = 40  # characters of a title that fit in its column; with a longer one the rows are high enough to wrap it


def corpus_settings(own: Settings, key: str, paths: tuple[str, ...]) -> Settings:
    """Fields for what a corpus is made with, beginning with `own`."""
    chosen = [setting for setting in all_settings() if setting.path in paths]
    drawn = {}
    for column, setting in zip(st.columns(len(chosen)), chosen, strict=True):
        with column:
            drawn[setting.path] = draw_setting(setting, own.value(setting.path), key=f"{key}_{setting.field}")
    return own.with_values(drawn)


def ingest_uploads(name: str, uploads: list, settings: Settings, run: Run[IngestReport]) -> IngestReport:
    """Write the uploads to a folder of their own and ingest them; the folder goes when it is done."""
    with tempfile.TemporaryDirectory() as folder:
        paths, refused = [], []
        for number, upload in enumerate(uploads):
            file_name = Path(upload.name.replace("\\", "/")).name or "upload"
            if why := too_large(upload.size):
                refused.append((file_name, why))
                continue
            path = Path(folder) / str(number) / file_name  # two uploads may have one name
            path.parent.mkdir()
            path.write_bytes(upload.getvalue())
            paths.append(path)
        report = Workbench(settings).ingest(paths, name, run.watch)
        return IngestReport.from_dict({**report.to_dict(), "skipped": [*report.skipped, *refused]})


def draw_report(run: Run[IngestReport]) -> None:
    """The result of an ingest, and each file that it left out with the reason."""
    say_problem(run, "Stopped. Nothing was added; the next try reuses the finished embeddings.")
    if not run.problem:
        report = run.future.result()
        if not report.documents:
            st.error("None of these files could be read, so no corpus was made.")
            draw_skipped(report.skipped)
            return
        holds = f"{counted(report.documents, 'document')} and {counted(report.passages, 'passage')}"
        plainly = report.added == report.files and report.told.endswith(" added.")
        told = f"{counted(report.added, 'document')} added." if plainly else report.told
        st.success(plain(f"{told} “{run.label}” has {holds}. It took {duration(report.seconds)}."))
        with st.container(key="next_step"):  # a link: a switch of the page would clear the parameter of `overview`
            page_link("ask/ask", "Ask these documents")  # Ask opens with them: `open_added`
        draw_skipped(report.skipped)


def draw_skipped(skipped: Sequence[tuple[str, str]]) -> None:
    """Files and records that were left out, with the reason: a few as they are, many in a fold."""
    if len(skipped) <= FEW_SKIPPED:
        for name, reason in skipped:
            st.warning(plain(reason if reason.startswith(name) else f"{name}: {reason}"))
        return
    st.warning(f"{len(skipped)} files or records were left out.")
    rows = [(cell(name), cell(reason)) for name, reason in skipped]
    with st.expander("Which ones, and why"):
        st.dataframe(pd.DataFrame(rows, columns=["File", "Reason"]), hide_index=True)


def add_documents() -> None:
    """The upload form."""
    run = state.run_of("ingest")
    if run is not None and run.ended:
        open_added(run)
    fold = st.expander("Add documents", not list_corpora(), key=ADD_FOLD, on_change="rerun")
    with fold, st.form("add", border=False):
        name = st.text_input("Corpus", placeholder="A new or existing name", key="add_name")
        uploads = st.file_uploader(
            f"Files ({', '.join(sorted(MEDIA_TYPES))}), also in .zip and .tar archives",
            accept_multiple_files=True,
            key="add_files",
        )
        st.caption('These settings are for a new corpus. To change an existing one, use "Split and embed again" below.')
        settings = corpus_settings(FRESH, "add", (*CHUNKING, EMBEDDER))
        if st.form_submit_button("Add", type="primary"):
            if not name.strip() or not uploads:
                st.warning("Name a corpus and choose at least one file.")
            else:
                known = name.strip() in {corpus.name for corpus in list_corpora()}
                asked = Settings() if known else settings
                work = lambda run: ingest_uploads(name.strip(), uploads, asked, run)  # noqa: E731
                state.keep_run("ingest", analyses().start(work, label=name.strip()))
                state.set_value(ADDING, name.strip())
                st.rerun()
    if run is not None and not run.ended:
        progress(run, "ingest", "", "starting")
    elif run is not None:
        draw_report(run)


def open_added(run: Run[IngestReport]) -> None:
    """Open the corpus that was just added to, here and on Ask; once, so that another can be chosen then."""
    name = state.take_value(ADDING)
    if name and run.problem is None:
        state.set_value(ADD_FOLD, False)
        state.set_value("corpus", name)
        state.set_value("ask_corpus", name)
        state.set_value(state.ASKING, True)


def unreadable() -> None:
    """Each corpus whose manifest cannot be read, with what is wrong and the button that removes it."""
    for name, problem in unreadable_corpora().items():
        st.error(plain(problem))
        if st.button(f"Remove {plain(name)}", key=f"remove_{name}"):
            confirm_removal(name)


def overview() -> str | None:
    """The table of corpora; returns the chosen name."""
    corpora = list_corpora()
    if not corpora:
        st.info("There are no documents yet. Add files above.")
        return None
    table = pd.DataFrame(
        [
            {
                "corpus": c.name,
                "documents": c.documents,
                "passages": c.passages,
                "embedder": c.embedder,
                "chunking": f"{c.chunking.method}, {c.chunking.words} words, overlap {c.chunking.overlap}",
                "changed": c.changed.replace("T", " ")[:16],
            }
            for c in corpora
        ]
    )
    st.dataframe(table, hide_index=True)
    first = next((place for place, corpus in enumerate(corpora) if corpus.documents), 0)
    return st.selectbox(
        "Show", list(table["corpus"]), first, key="corpus", bind="query-params", persist_state="session"
    )


@st.dialog("Remove a corpus")
def confirm_removal(name: str) -> None:
    """Ask before removing; cases are not touched."""
    st.write(f"Remove {plain(name)} with its documents and index? Cases keep their passages.")
    if st.button("Remove", type="primary"):
        try:
            remove(name)
        except GroundworkError as error:
            st.error(plain(str(error)))
        else:
            st.rerun()


def rebuild(name: str, asked: Settings, run: Run[Collection]) -> Collection:
    """The collection cut and embedded as asked."""
    collection, model = Collection.open(name), full_name(asked.retrieval.embedder)
    run.stage = "loading the embedder"
    embedder = None if model == collection.manifest.embedder else load_embedder(model)
    return collection.rebuild(embedder, asked.chunking, run.watch)


def cut_again(name: str) -> None:
    """Split and embed the stored documents again, with progress and cancel; a stopped run resumes."""
    task = f"cut:{name}"
    run = state.run_of(task)
    if run is not None and not run.ended:
        wait_for(task, "Splitting and embedding the documents again")
        return
    with st.popover("Split and embed again"), st.form(f"cut_{name}", border=False):
        manifest = Collection.open(name).manifest
        chunking = {f"chunking.{field}": value for field, value in manifest.chunking.to_dict().items()}
        own = Settings().with_values({**chunking, EMBEDDER: manifest.embedder})
        asked = corpus_settings(own, f"cut_{name}", (*CHUNKING, EMBEDDER))
        st.caption("Cases keep their passages. With an overlap, occlusion underestimates effects.")
        if st.form_submit_button("Split and embed again", type="primary"):
            state.keep_run(task, analyses().start(lambda run: rebuild(name, asked, run), label="cut"), shared=True)
            st.rerun()
    if run is not None:
        wait_for(task, "")


def look_into(name: str) -> None:
    """One corpus: its documents, one of them with its chunk boundaries drawn on the text."""
    try:
        snapshot = Collection.open(name).snapshot()
    except GroundworkError as error:
        st.error(plain(str(error)))
        return
    if not snapshot.documents:
        reading = further_preparation().running
        st.info("This corpus is being read." if reading else "This corpus is empty. Add files above.")
        return
    left, right = st.columns(2, gap="large")
    with left:
        st.header(counted(len(snapshot.documents), "document"))
        named = snapshot.listing
        wanted = st.text_input("Find a document", key=f"find_{name}").casefold() if len(named) > MOST_ROWS else ""
        shown = [one for one in named if wanted in f"{one[1]}\n{one[0]}".casefold()] if wanted else named
        if len(shown) > MOST_ROWS:
            st.caption(f"The first {MOST_ROWS:,} are listed.")
        shown = shown[:MOST_ROWS]
        if not shown:
            st.info("No document has this title. Change the search.")
        rows = [{"title": cell(title), "passages": count} for _, title, count in shown]
        row_height = ROW_HEIGHT if any(len(row["title"]) > LONGEST for row in rows) else LOW_ROW
        picked = st.dataframe(
            pd.DataFrame(rows, columns=list(WIDTHS)),
            hide_index=True,
            height="content" if len(rows) * row_height < HIGHEST else HIGHEST,
            row_height=row_height,
            on_select="rerun",
            selection_mode="single-row-required",
            column_config={name: st.column_config.Column(width=width) for name, width in WIDTHS.items()},
        )
        if size := originals_size(Collection.open(name).folder):
            st.caption(
                f"The PDF files are stored too ({max(size / 2**20, 0.1):,.1f} MB), so that their pages can be shown."
            )
        cut_again(name)
        if st.button("Remove this corpus"):
            confirm_removal(name)
    with right:
        row = picked.selection.rows[0] if picked.selection.rows else 0
        if row < len(shown):
            document = shown[row][0]
            document_view(snapshot.documents[document], tuple(p for _, p in snapshot.rows_of(document)))


@redraw_while_running(every=1.5)
def watch_samples(run: Run[None]) -> None:
    """The samples that are still being read; the page is drawn again when they are there."""
    st.caption(f"Reading the sample corpora: {run.place('loading the embedder')}.")


heading(
    "Corpora",
    "A corpus is a set of documents split into passages. Groundwork retrieves, cites and scores passages.",
    "retrieval",
)
if further_preparation().running:
    watch_samples(further_preparation())
add_documents()
unreadable()
chosen = overview()
if chosen is not None:
    look_into(chosen)
