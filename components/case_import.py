"""An answer from elsewhere, pasted or as files, taken into the library."""

from __future__ import annotations

import streamlit as st

from components import state
from components.cache import workbench
from components.html import plain
from components.upload import too_large
from engine.cases.importers import LAYOUTS, read_cases
from engine.core.errors import GroundworkError
from engine.core.text import counted
from engine.core.values import AuditRecord

LAYOUT_NAMES = {
    "case": "case file",
    "records": "question, passages, answer",
    "alce": "ALCE",
    "garage": "GaRAGe",
    "ragtruth": "RAGTruth",
}


def import_cases() -> None:
    """Paste an answer from elsewhere, or upload files of it."""
    with st.expander("Import an answer from elsewhere"):
        paste, files = st.tabs(["Paste", "Files"])
        with paste:
            _paste()
        with files:
            _upload()


def _paste() -> None:
    with st.form("paste", border=False):
        question = st.text_input("Question", key="paste_question")
        passages = st.text_area("Passages, with a line of --- between two", key="paste_passages", height=160)
        answer = st.text_area("Answer, citations as [1] or [cite_1]", key="paste_answer", height=110)
        model = st.text_input("Written by", key="paste_model", placeholder="optional")
        if not st.form_submit_button("Import", type="primary"):
            return
    texts = [part.strip() for part in f"\n{passages}\n".split("\n---\n") if part.strip()]
    record = AuditRecord(question=question, passages=tuple(texts), answer=answer, model=model)
    try:
        state.open_case(workbench().audit(record).id)
    except GroundworkError as error:
        st.error(plain(str(error)))
    else:
        st.rerun()


def _upload() -> None:
    with st.form("upload", border=False):
        upload = st.file_uploader("File (.json or .jsonl)", key="import_file")
        sources = st.file_uploader("RAGTruth's source_info.jsonl, beside its response.jsonl", key="import_sources")
        layout = st.selectbox(
            "Layout", LAYOUTS, index=None, placeholder="by its field names", format_func=LAYOUT_NAMES.get
        )
        if not st.form_submit_button("Import", type="primary"):
            return
    if upload is None:
        st.warning("Choose a file first.")
        return
    for file in filter(None, (upload, sources)):
        if why := too_large(file.size):
            st.error(plain(f"{file.name}: {why}"))
            return
    done = 0
    for identity, found in read_cases(upload.getvalue(), layout, sources.getvalue() if sources else None):
        try:
            if isinstance(found, GroundworkError):
                raise found
            workbench().cases.put(*found)
            done += 1
        except GroundworkError as error:
            st.warning(plain(f"Record {identity}: {error}"))
    if done:
        st.success(f"{counted(done, 'case')} imported.")
