"""Compare: two cases, or two answers of one case; settings that differ on top, then words, passages, verdicts."""

from collections.abc import Sequence

import streamlit as st

from components import state
from components.cache import analyses, workbench
from components.diff import aligned_passages, differences, word_diff
from components.frame import told_apart
from components.heading import heading
from components.html import plain, visible
from components.polling import result_of, wait_for
from components.runs import Run
from components.settings_panel import chosen_workbench
from components.state import open_case_id
from engine.analyses.refinement import title_of
from engine.cases.query import CaseRow
from engine.cases.review import review_of
from engine.core.errors import GroundworkError
from engine.core.settings import all_settings
from engine.core.values import Case
from engine.models.defaults import default_for
from engine.report.compare import compare_cases, conditions, side

LISTED = 1_000  # cases offered by the two pickers
LONGEST = 32  # characters of a question in a picker
OWN = "the case's answer"
SETTINGS = {f"settings.{setting.path}": f"{setting.label} ({setting.path})" for setting in all_settings()}


def pick() -> tuple[str, str] | None:
    """The two sides as `side` reads them, which is also how a link names them; None where there is no case."""
    rows = workbench().cases.rows(limit=LISTED)
    if not rows:
        st.info("There are no cases yet. Ask a question or import an answer.")
        return None
    names = labels(rows)
    current = open_case_id()
    first = current if current in names else rows[0].id
    second = partner_of(first, rows)
    columns = st.columns(2)
    with columns[0]:
        left = _side("left", names, first)
    with columns[1]:
        right = _side("right", names, second)
    if not right:
        st.info(
            "No other answer to this question is in the library. Choose a case on the right, ask the question again"
            " with another writer or method, or run conditions on the Refinement page."
        )
        return None
    if left == right:
        st.info("Both sides show the same answer. Choose another case or another condition.")
        return None
    return left, right


def labels(rows: Sequence[CaseRow]) -> dict[str, str]:
    """Question, writer and time of each case. The question is cut, so that what differs is seen."""
    return told_apart({r.id: f"{_cut(r.question)} ({r.model}, {r.updated[:16].replace('T', ' ')})" for r in rows})


def _cut(question: str) -> str:
    return question if len(question) <= LONGEST else question[: LONGEST - 1] + "…"


def partner_of(first: str, rows: Sequence[CaseRow]) -> str:
    """The side to open next to `first`: the latest case that asks the same, else an answer of its own refinement.

    Empty where there is neither: nothing else in the library is comparable.
    """
    question = next(row.question for row in rows if row.id == first)
    same = [row.id for row in rows if row.id != first and row.question == question]
    own = () if same else (f"{first}:{condition}" for condition in _written(first)[-1:])
    return next(iter([*same, *own]), "")


def _side(name: str, names: dict[str, str], default: str) -> str:
    """A case, and of a refined one the answer of a condition; empty where none is chosen. The address names it."""
    case_id, _, condition = st.query_params.get(name, default).partition(":")
    case_id = case_id if case_id in names else default.partition(":")[0]
    ids, label = list(names), name.capitalize()
    chosen = st.selectbox(
        label,
        ids,
        ids.index(case_id) if case_id in ids else None,
        format_func=lambda i: visible(names[i]),
        placeholder="choose a case",
        key=name,
    )
    if chosen is None:
        return ""
    options = [OWN, *_written(chosen)]
    found = chosen
    if len(options) > 1:
        index = options.index(condition) if condition in options and chosen == case_id else 0
        picked = st.selectbox(f"{label} answer", options, index, format_func=title_of, key=f"{name}_answer_{chosen}")
        found = chosen if picked in (None, OWN) else f"{chosen}:{picked}"
    if st.query_params.get(name) != found:
        st.query_params[name] = found
    return found


def _written(case_id: str) -> tuple[str, ...]:
    try:
        return conditions(workbench().cases.load(case_id))
    except GroundworkError:
        return ()  # said where the two are loaded


def on_one_scale(left: Case, right: Case) -> tuple[Case, Case]:
    """Both sides with occlusion by one model, where it was asked for."""
    run_id, bench = f"compare:{left.id}:{right.id}", chosen_workbench()
    with st.form("compare_scorer", border=False):
        field, button = st.columns([4, 1], vertical_alignment="bottom")
        name = field.text_input("Score both answers with", default_for("scores").model, key="compare_model")
        asked = button.form_submit_button("Score", width="stretch")
    if asked and name.strip():

        def work(run: Run[tuple[Case, Case]]) -> tuple[Case, Case]:
            run.stage = "loading the model"
            return bench.scored(left, name.strip(), run.watch), bench.scored(right, name.strip(), run.watch)

        state.keep_run(run_id, analyses().start(work))
        st.rerun()
    wait_for(run_id, "Leaving out each passage, for both answers")
    found = result_of(run_id)
    return found if isinstance(found, tuple) else (left, right)


heading("Compare", "Compare two cases, or two answers of one case: settings, words, passages, scores and verdicts.")
chosen = pick()
if chosen is not None:
    store = workbench().cases
    try:
        (left, left_marks), (right, right_marks) = side(store, chosen[0]), side(store, chosen[1])
    except GroundworkError as error:
        st.error(plain(str(error)))
        st.stop()
    left, right = on_one_scale(left, right)
    found = compare_cases(left, right, review_of(left_marks), review_of(right_marks))
    if found.questions_differ:
        st.warning("The two questions differ, so the answers are not comparable.")
    same = "Both were made with the same model, settings and versions."
    differences("Settings that differ", found.settings, same, SETTINGS)
    st.header("Answer, word by word")
    word_diff(found.words, left="the left answer", right="the right answer")
    aligned_passages(found)
    if found.scores:
        differences("Scores that differ", found.scores, "No score differs.")
    differences("Verdicts that differ", found.verdicts, "No verdict differs.")
