"""Compare: two cases, settings that differ on top, then words, passages, verdicts."""

import streamlit as st

from components.cache import workbench
from components.diff import aligned_passages, differences, word_diff
from components.heading import heading
from components.html import plain, visible
from components.state import open_case_id
from engine.cases.compare import compare_cases
from engine.cases.review import review_of
from engine.errors import GroundworkError

LISTED = 1_000  # cases offered by the two pickers


def pick() -> tuple[str, str] | None:
    """The two cases; None where there are not two."""
    rows = workbench().cases.rows(limit=LISTED)
    if len(rows) < 2:
        st.info("There are not two cases yet. Ask a second question, or import an answer.")
        return None
    names = {row.id: f"{row.question} ({row.model}, {row.updated[:16].replace('T', ' ')})" for row in rows}
    ids = list(names)
    current = open_case_id()
    first = ids.index(current) if current in names else 0
    columns = st.columns(2)
    left, right = (
        column.selectbox(label, ids, index=index, format_func=lambda i: visible(names[i]), key=key, bind="query-params")
        for column, label, index, key in (
            (columns[0], "Left", first, "left"),
            (columns[1], "Right", 1 if first == 0 else 0, "right"),
        )
    )
    return left, right


heading("Compare", "Two cases side by side: settings that differ, words, passages, verdicts.")
chosen = pick()
if chosen is not None:
    store = workbench().cases
    try:
        (left, left_marks), (right, right_marks) = store.load_whole(chosen[0]), store.load_whole(chosen[1])
    except GroundworkError as error:
        st.error(plain(str(error)))
        st.stop()
    found = compare_cases(left, right, review_of(left_marks), review_of(right_marks))
    if found.questions_differ:
        st.warning("The two questions are not the same; the answers cannot be held against each other.")
    differences("Settings that differ", found.settings, "Both were made with the same model, settings and versions.")
    st.header("Answer, word by word")
    word_diff(found.words, left="the left answer", right="the right answer")
    aligned_passages(found)
    differences("Verdicts that differ", found.verdicts, "No verdict differs.")
