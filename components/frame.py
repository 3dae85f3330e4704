"""The frame around every page: which case is open, which model wrote it, and the samples being prepared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import streamlit as st

from components import state
from components.cache import further_preparation, preparation, workbench
from components.html import escape, plain, show, tag
from components.login import account
from components.pages import page
from components.polling import redraw_while_running
from components.runs import Run
from components.style import apply_style
from engine.cases.bundled import AUDITED, EXAMPLE, SELF_REFINED, SOLVED, file_of, take_in
from engine.cases.query import CaseRow
from engine.core.errors import CaseError
from engine.core.values import IMPORTED, Case
from engine.corpus.samples import FIRST_CASE


class Example(NamedTuple):
    """The button of a case that comes with the project, and the page that shows what it is an example of."""

    label: str
    about: str
    page: str


EXAMPLES = {
    AUDITED: Example(
        "Open the audited example", "An answer with planted errors: checked, edited and signed off.", "ask/audit"
    ),
    EXAMPLE: Example("Open the worked example", "One question: checked, attributed and refined.", "ask/ask"),
    SOLVED: Example(
        "Open the solved example",
        "A physics problem that a larger model solved step by step, with what each step read.",
        "inspect/steps",
    ),
    SELF_REFINED: Example(
        "Open a second pass that fails",
        "A larger model criticizes its own supported answer and adds claims that no passage bears out.",
        "inspect/refinement",
    ),
}
RECENT = 30  # cases offered by the picker; the Cases page has them all


def draw_frame() -> None:
    """Draw what every page shares; wait in place while the samples are being prepared."""
    apply_style()
    state.see_runs()
    if preparation().running:
        st.title("Groundwork")
        _wait_for_samples(preparation())
        st.stop()
    further_preparation()
    with st.sidebar:
        _case_picker()
        account()
    for run in (preparation(), further_preparation()):
        if run.problem:
            st.warning(f"The samples could not be prepared. {plain(run.problem)}")


@redraw_while_running(every=1.0)
def _wait_for_samples(run: Run[None]) -> None:
    st.write(
        "Groundwork answers questions from your documents and shows what each answer rests on. Ask a question, or paste"
        " an answer from any system to audit it. Everything runs on this machine."
    )
    st.write("First start: the sample documents are read and indexed. This happens once.")
    st.progress(run.share, text=f"Sample corpora: {run.place('loading the embedder')}")


def _case_picker() -> None:
    linked = state.open_case_id()
    # Once: the session may delete it.
    if linked in EXAMPLES and state.first_time(f"example {linked}"):
        _have_example(linked)
    rows = workbench().cases.rows(limit=RECENT)
    current = linked or state.open_case_id(next((row.id for row in [*_row_of(FIRST_CASE), *rows]), None))
    if current is not None and current not in {row.id for row in rows}:
        rows = [*_row_of(current), *rows]
    labels = _labels(rows)
    ids = list(labels)
    if current is not None and current not in labels:
        ids.insert(0, current)
    if not ids:
        return
    chosen = st.selectbox(
        "Open case",
        ids,
        index=ids.index(current) if current in ids else None,
        format_func=lambda case_id: labels.get(case_id, case_id),
        key=f"case_picker_{current}",
    )
    if chosen is not None and chosen != current:
        state.open_case(chosen)
        st.rerun()
    model = next((row.model for row in rows if row.id == current), None)
    if model == IMPORTED:
        show(tag("p", "Imported; its writer is not named", class_="gw-note"))
    elif model is not None:
        show(tag("p", "Written by " + tag("b", escape(model)), class_="gw-note"))
    _examples()


def _row_of(case_id: str) -> list[CaseRow]:
    """The row of a case, also of one that was changed long ago; none of a deleted one."""
    return [row for row in workbench().cases.rows(case_id) if row.id == case_id]


def _have_example(name: str) -> None:
    """Put an example into the library if it is missing, also out of the bin."""
    take_in(workbench().cases, name)
    if not _row_of(name) and workbench().cases.has(name):
        workbench().cases.restore(name)


def _examples() -> None:
    """Offer the cases that ship with the project; folded once the library holds them all."""
    held = all(workbench().cases.has(name) for name in EXAMPLES)
    with st.expander("Examples", expanded=not held):
        for name, example in EXAMPLES.items():
            if file_of(name).exists() and st.button(example.label, help=example.about, type="tertiary"):
                _have_example(name)
                state.open_case(name)
                st.switch_page(page(example.page), query_params={"case": name})


def _labels(rows: Sequence[CaseRow]) -> dict[str, str]:
    """A case's question by its id; with time and writer before it where cases share a question.

    The picker shows the beginning of a label, so what differs comes first.
    """
    asked = Counter(row.question for row in rows)
    return told_apart(
        {
            row.id: row.question
            if asked[row.question] == 1
            else f"{row.updated[5:16].replace('T', ' ')} {row.model}: {row.question}"
            for row in rows
        }
    )


def told_apart(labels: Mapping[str, str]) -> dict[str, str]:
    """Labels of cases by their ids, with the id behind those that are equal.

    A select box finds the chosen option by its label, so two equal labels would open one and the same case.
    """
    count = Counter(labels.values())
    return {name: label if count[label] == 1 else f"{label} {name}" for name, label in labels.items()}


def open_case(*, say: bool = True) -> Case | None:
    """The open case, or None with a sentence that says what to do (`say`)."""
    case_id = state.open_case_id()
    if case_id is None:
        if say:
            st.info("No case is open. Ask a question on the Ask page, or pick a case in the sidebar.")
        return None
    try:
        return workbench().cases.load(case_id)
    except CaseError as error:  # it is gone, or damaged: the library can delete it
        st.warning(plain(str(error)))
        return None
