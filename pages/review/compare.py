"""Compare: two cases, or two answers of one case; the answers on top, then passages, verdicts, settings."""

import re
from collections import Counter
from collections.abc import Sequence

import streamlit as st

from components import state
from components.cache import analyses, workbench
from components.checking import check_button
from components.diff import OTHERS, aligned_passages, differences, one_side
from components.frame import told_apart
from components.heading import heading
from components.html import escape, note, plain, show, tag, visible
from components.polling import result_of, wait_for
from components.runs import Run
from components.settings_panel import chosen_workbench
from components.state import open_case_id
from engine.analyses.case_verdict import case_verdict
from engine.analyses.refinement import title_of
from engine.answer.citations import without_markers
from engine.cases.places import verdicts
from engine.cases.query import CaseRow
from engine.cases.review import Review, review_of
from engine.core.errors import GroundworkError
from engine.core.settings import setting_labels
from engine.core.text import counted
from engine.core.values import Case
from engine.models.defaults import default_for
from engine.report.compare import NO_VERDICT, NOT_SET, Comparison, compare_cases, conditions, side

LISTED = 1_000  # cases offered by the two pickers
LONGEST = 32  # characters of a question in a picker
OWN = "the case's answer"


def pick() -> tuple[str, str] | None:
    """The two sides as `side` reads them, which is also how a link names them; None where there is no case."""
    rows = workbench().cases.rows(limit=LISTED)
    if not rows:
        st.info("No cases yet. Ask a question or audit an answer.")
        return None
    names = labels(rows)
    current = open_case_id()
    first = current if current in names else rows[0].id
    second = partner_of(first, rows)
    with st.container(horizontal=True):
        left, right = _side("left", names, first), _side("right", names, second)
    if not right:
        st.info(
            "No other answer to this question is in the library. Choose a case on the right, ask the question again"
            " with another writer or method, or run conditions on the Refinement page."
        )
        if left:
            what_can_be_done(workbench().cases.load(left.partition(":")[0]))
        return None
    if left == right:
        st.info("Both sides show the same answer. Choose another case or another condition.")
        return None
    return left, right


def what_can_be_done(case: Case) -> None:
    """The ways to another answer to a case's question."""
    with st.container(horizontal=True, vertical_alignment="center"):
        if case.corpus and st.button("Ask the left question again", key="ask_again"):
            state.set_value("question", case.question)
            state.set_value("ask_corpus", case.corpus)
            state.set_value(state.ASKING, True)
            st.switch_page("pages/ask/ask.py", query_params={"case": case.id})
        if st.button("Run conditions on the left case", key="run_conditions"):
            st.switch_page("pages/inspect/refinement.py", query_params={"case": case.id})


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


def answer_head(case: Case, review: Review, condition: str) -> None:
    """Who wrote an answer, its facts by state, and its citations."""
    title = ": ".join(filter(None, (case.stamp.model, title_of(condition))))
    verdict = case_verdict(case, review)
    kept = "The facts of A are compared" if condition and not is_unchecked(case) else "Not checked"
    checked = verdict.headline.removesuffix(".") if verdict else kept
    cited = verdict.cited if verdict and verdict.citations else counted(len(case.answer.citations), "citation")
    facts = f"{checked}. {cited}."
    show(tag("h3", escape(title)) + tag("p", escape(facts), class_="gw-note"))
    if is_unchecked(case) and not condition and case.answer.text.strip() and not case.answer.refused:
        check_button(case, key=f"check_{case.id}")


def is_unchecked(case: Case) -> bool:
    """Whether the answer has no verdict at all; a condition of a refinement may have those of A's facts."""
    return not any(next(verdicts(analysis), None) for analysis in case.analyses)


def summary(found: Comparison, unchecked: Sequence[str]) -> str:
    """How many words only one side has, how many passages differ and in what, and how many verdicts.

    `unchecked` are the sides that have no verdicts.
    """
    texts = ("".join(word.text for word in found.words if word.change == change) for change in ("removed", "added"))
    left, right = (len(re.findall(r"\w+", without_markers(text))) for text in texts)
    counts = Counter(what for passage in found.passages for what in passage.differences)
    passages = ", ".join(f"{count:,} {what}" for what, count in counts.items()) or "all used alike"
    differ = "" if found.questions_differ else f" {counted(len(found.verdicts), 'verdict')} differ."
    neither = len(unchecked) == len(OTHERS)
    lacking = "Neither answer is checked." if neither else f"The answer on the {''.join(unchecked)} is not checked."
    attribution = "" if found.methods else " The answers have no attribution method in common."
    return (
        f"{counted(left, 'word')} only on the left, {right:,} only on the right (underlined)."
        f" Passages: {passages}.{f' {lacking}' if unchecked else differ}{attribution}"
    )


def settings_table(found: Comparison, left: str, right: str) -> None:
    """The settings that differ, folded below the two writers; those that only one side has come last."""
    if not found.settings:
        note("Both were made with the same model, settings and versions.")
        return
    writers = f"Same writer: {left}" if left == right else f"Different writers: {left} / {right}"
    others = sum(setting.name != "model" for setting in found.settings)
    rows = sorted(found.settings, key=lambda setting: NOT_SET in (setting.left, setting.right))
    with st.expander(plain(f"{writers}. Other settings that differ: {others}.")):
        differences((_setting_name(setting.name), setting.left, setting.right) for setting in rows)


def _setting_name(name: str) -> str:
    path, bracket, index = name.removeprefix("settings.").partition("[")
    return setting_labels().get(path, path) + bracket + index


heading("Compare", "Compare two cases, or two answers of one case: words, passages, scores, verdicts and settings.")
chosen = pick()
if chosen is not None:
    store = workbench().cases
    try:
        (left, left_marks), (right, right_marks) = side(store, chosen[0]), side(store, chosen[1])
    except GroundworkError as error:
        st.error(plain(str(error)))
        st.stop()
    page = st.container()
    left, right = on_one_scale(left, right)
    reviews = review_of(left_marks), review_of(right_marks)
    found = compare_cases(left, right, *reviews)
    unchecked = [name for name, case in (("left", left), ("right", right)) if is_unchecked(case)]
    with page:
        if found.questions_differ:
            st.warning(
                "The two questions differ, so the answers are not comparable. Choose two answers to one question."
            )
            what_can_be_done(store.load(chosen[0].partition(":")[0]))
        else:
            show(tag("h2", escape(left.question), class_="gw-question"))
        show(tag("p", escape(summary(found, unchecked)), class_="gw-lead"))
        sides = zip(st.columns(2, gap="large"), (left, right), reviews, chosen, OTHERS, strict=True)
        for column, case, review, name, other in sides:
            with column:
                if found.questions_differ:
                    show(tag("h2", escape(case.question), class_="gw-question"))
                answer_head(case, review, name.partition(":")[2])
                one_side(found.words, other)
        aligned_passages(found)
        differing = [row for row in found.verdicts if not unchecked or NO_VERDICT not in (row.left, row.right)]
        for what, rows in (("Scores", found.scores), ("Verdicts", differing), ("Reviews", found.reviews)):
            if rows:
                st.header(f"{what} that differ")
                differences((row.name, row.left, row.right) for row in rows)
        settings_table(found, left.stamp.model, right.stamp.model)
