"""An answer from elsewhere, pasted or as files, taken into the library as cases."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

import streamlit as st

from components import state
from components.cache import workbench
from components.checking import checks_view, start_checks
from components.html import plain
from components.upload import too_large
from engine.analyses.facts import record_of
from engine.cases.bundled import audit_example
from engine.cases.importers import LAYOUTS, read_cases
from engine.core.errors import GroundworkError
from engine.core.text import counted
from engine.core.values import AuditRecord
from engine.corpus.collection import list_corpora

LAYOUT_NAMES = {
    "case": "case file",
    "records": "question, sources and answer, under any system's field names",
    "alce": "ALCE",
    "garage": "GaRAGe",
    "ragtruth": "RAGTruth",
}
DIVIDER = "\n---\n"  # between two pasted sources
_DIVIDER = re.compile(r"^[ \t]*-{3,}[ \t]*$", re.MULTILINE)  # as it is typed
_NAMED = 5  # records named in one warning
_SAID = "import_said"


def import_cases() -> list[str]:
    """Paste an answer from elsewhere, or upload files of it; returns the ids of the cases that were just made."""
    paste, files = st.tabs(["Paste", "File"])
    with paste:
        made = _paste()
    with files:
        return made or _upload()


def fill_example() -> None:
    """Put the example into the form (a callback's job)."""
    record = audit_example()
    texts = (f"{p.title}\n\n{p.text}" if not isinstance(p, str) else p for p in record.passages)
    state.set_value("paste_question", record.question)
    state.set_value("paste_passages", DIVIDER.join(texts))
    state.set_value("paste_answer", record.answer)
    state.set_value("paste_model", record.model)


def _paste() -> list[str]:
    st.button("Fill in an example", key="fill_example", type="tertiary", on_click=fill_example)
    # Not a form: it keeps what is typed in the browser until it is sent, and another page would lose it.
    question = st.text_input("Question", key="paste_question", placeholder="What was asked", persist_state="session")
    left, right = st.columns(2)
    passages = left.text_area(
        "Sources (put a line of --- between them)",
        key="paste_passages",
        height=210,
        placeholder="Texts that should support the answer",
        persist_state="session",
    )
    answer = right.text_area(
        "Answer",
        key="paste_answer",
        height=210,
        placeholder="The answer to check. Citations such as [1] or [cite_1] are optional.",
        persist_state="session",
    )
    corpora = [corpus.name for corpus in list_corpora()]
    middle, last, button = st.columns([3, 3, 2], vertical_alignment="bottom")
    corpus = middle.selectbox(
        "Corpus",
        corpora,
        index=None,
        key="paste_corpus",
        placeholder="none: pasted sources only",
        persist_state="session",
    )
    model = last.text_input("Written by", key="paste_model", placeholder="optional", persist_state="session")
    if not button.button("Audit", type="primary", width="stretch"):
        return []
    if not answer.strip():
        st.error("The answer is empty. Paste the text to check.")
        return []
    texts = [part.strip() for part in _DIVIDER.split(passages) if part.strip()]
    if not texts and corpus is None:
        st.error("The sources are empty. Paste the sources, or choose a corpus.")
        return []
    try:
        case = workbench().audit(
            AuditRecord(question=question, passages=tuple(texts), answer=answer, model=model, corpus=corpus)
        )
    except GroundworkError as error:
        st.error(plain(str(error)))
        return []
    return [case.id]


def _upload() -> list[str]:
    with st.form("upload", border=False):
        upload = st.file_uploader("File (.json, .jsonl, .csv or .tsv)", key="import_file")
        st.caption(
            "Exports of RAGAS, DeepEval, LangSmith, LangChain, LlamaIndex, OpenAI and Anthropic are recognised by "
            "their field names. So is a table with columns for question, answer and sources."
        )
        with st.expander("Layout, and RAGTruth's second file"):
            layout = st.selectbox(
                "Layout", LAYOUTS, index=None, placeholder="detect from its fields", format_func=LAYOUT_NAMES.get
            )
            sources = st.file_uploader("RAGTruth's source_info.jsonl, for its response.jsonl", key="import_sources")
        if not st.form_submit_button("Audit the file", type="primary"):
            return []
    if upload is None:
        st.warning("Choose a file first.")
        return []
    for file in filter(None, (upload, sources)):
        if why := too_large(file.size):
            st.error(plain(f"{file.name}: {why}"))
            return []
    made = []
    refused = defaultdict[str, list[str]](list)
    for identity, found in read_cases(upload.getvalue(), layout, sources.getvalue() if sources else None, upload.name):
        try:
            if isinstance(found, GroundworkError):
                raise found
            workbench().cases.put(*found)
            made.append(found[0])
        except GroundworkError as error:
            refused[str(error)].append(identity)
    said = [f"{_which(records)}: {why}" for why, records in refused.items()]
    if not made:
        _warn(said)
        return []
    # A case file may bring its check along.
    state.set_value(_SAID, (made[0].id, len(made), [case.id for case in made[1:] if record_of(case) is None], said))
    return [case.id for case in made]


def import_notes(case_id: str) -> None:
    """With the case that an import opened: how many others it brought, and which records it could not take."""
    first, made, unchecked, said = state.value_of(_SAID) or ("", 0, (), ())
    if case_id != first:
        return
    if made > 1:
        st.success(f"{counted(made, 'case')} imported. The first is open. The others are on the Cases page.")
        checks_view()

    def check_others() -> None:
        start_checks(unchecked)
        state.set_value(_SAID, (first, made, (), said))

    if unchecked:
        label = f"Check the other {len(unchecked):,}" if len(unchecked) > 1 else "Check the other"
        st.button(label, key="check_others", on_click=check_others)
    _warn(said)


def _warn(said: Iterable[str]) -> None:
    for why in said:
        st.warning(plain(why))


def _which(records: list[str]) -> str:
    """The records that a warning is about.

    >>> _which(["7"]), _which(list("abcdefg"))
    ('Record 7', 'Records a, b, c, d, e and 2 others')
    """
    named = ", ".join(records[:_NAMED])
    left = len(records) - _NAMED
    return f"Record{'s' if len(records) > 1 else ''} {named}" + (f" and {counted(left, 'other')}" if left > 0 else "")
