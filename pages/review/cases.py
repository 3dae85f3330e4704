"""Cases: the library; and of the open case its review, report, export and replay."""

import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from components import state
from components.answer import answer_view
from components.cache import analyses, workbench
from components.case_head import case_head
from components.checked_answer import checked_answer
from components.checking import checks_run, checks_view, start_checks
from components.frame import open_case
from components.heading import heading
from components.html import cell, note, plain
from components.library import CURRENT, bin_list, case_table, leaderboard_table, query_controls
from components.polling import result_of, wait_for
from components.review import add_mark, history_view, review_status, sign_off_dialog, standing_marks
from components.reviewer import new_version_button, reviewer, write_marks
from engine.analyses.case_verdict import CaseVerdict
from engine.analyses.quality import qualities
from engine.cases.case_file import write_case_file
from engine.cases.query import Query
from engine.cases.review import MarkDraft, check_chain, review_of, signing_key
from engine.core.errors import GroundworkError
from engine.core.text import counted
from engine.core.values import Case
from engine.replay import Replay, part_names, replay
from engine.report.build import html_report, markdown_report
from engine.report.facts_table import facts_csv


def delete(ids: list[str]) -> None:
    """Put cases into the bin."""
    for case_id in ids:
        workbench().cases.delete(case_id)


def library() -> None:
    """Search, table, and what can be done with the selected cases."""
    store = workbench().cases
    query = query_controls(store.facets(), key="cases")
    rows, found = store.rows(query), store.count(query)
    note(
        counted(found, "case")
        if found == len(rows)
        else f"The {len(rows):,} cases changed last, of {found:,}. Refine the search to see others."
    )
    if not rows:
        st.info("No cases match. Change the search, ask a question, or audit an answer.")
    quality = qualities(store, rows)
    chosen = case_table(rows, quality, state.open_case_id(), state.open_case, key="case_table") if rows else []
    checks_view()
    with st.container(horizontal=True, vertical_alignment="center"):
        label = f"Check {len(chosen)}" if chosen else "Check"
        idle = bool(chosen) and not checks_run()
        st.button(label, key="check_cases", disabled=not idle, on_click=start_checks, args=(chosen,))
        if st.button("Compare two", disabled=len(chosen) != 2):
            st.switch_page("pages/review/compare.py", query_params={"left": chosen[0], "right": chosen[1]})
        st.download_button(
            f"Export {len(chosen)}" if chosen else "Export",
            lambda: b"".join(write_case_file(*store.load_whole(case_id)) for case_id in chosen),
            file_name="cases.jsonl",
            mime="application/jsonl",
            disabled=not chosen,
            on_click="ignore",
        )
        st.download_button(
            "Facts as CSV",
            lambda: _facts(chosen),
            file_name="facts.csv",
            mime="text/csv",
            disabled=not chosen,
            on_click="ignore",
        )
        st.button("Delete", disabled=not chosen, on_click=delete, args=(chosen,))
        if rows and not chosen:
            note(f"Click a case to open it; {CURRENT} marks the open one. Tick cases to check, compare or export them.")
    leaderboard_table(rows, quality, key="cases_group")
    binned = store.rows(Query(deleted=True))
    bin_list(binned, lambda case_id: store.restore(case_id), lambda: store.empty_bin(), key="bin")


def review(case: Case, verdict: CaseVerdict | None) -> None:
    """The answer, its status and sign-off, then marks and history."""
    store = workbench().cases
    history = store.history(case.id)
    found, chain = review_of(history), check_chain(history, case.id, _key())
    if verdict is None:
        answer_view(case.answer)
    else:
        checked_answer(case, verdict)

    def add(draft: MarkDraft, fields: str) -> None:
        write_marks(case.id, (draft,), found.head or None, fields=fields)

    key = None if found.status == "signed off" else "decide"  # by which it stays in sight
    with st.container(horizontal=True, vertical_alignment="bottom", key=key):
        author = reviewer()
        review_status(found, author, add, lambda: sign_off_dialog(case, found, author), key="review")
    # A line either way: where it came or went, the fold below would shut.
    note(f"{'' if author else 'Enter your name to review. '}The case's history records your name.")
    if found.status == "signed off":
        st.info("This case is frozen. To change it, make a new version: it starts open, with the same content.")
        new_version_button(case.id, key="new_version")
    else:
        with st.expander("Add a note, a relevance label or your own verdict"):
            add_mark(case, author, add, key="mark")
    standing_marks(found)
    history_view(history, chain)


def _key() -> bytes | None:
    try:
        return signing_key()
    except GroundworkError as error:
        st.warning(plain(str(error)))
        return None


def _facts(ids: Iterable[str]) -> bytes:
    """The facts of cases as a table; by its first bytes Excel knows UTF-8."""
    return BOM_UTF8 + facts_csv(map(workbench().cases.load_whole, ids))


def take_away(case: Case) -> None:
    """The report, the facts and the case file, made when they are asked for."""
    store = workbench().cases
    st.write("Each file is complete. The report opens offline and prints on A4.")
    # A reader of several reports tells the files apart by their questions.
    asked = "-".join(re.findall(r"\w+", case.question.lower())[:6])[:40].strip("-")
    name = "-".join(filter(None, (asked, case.id)))
    kinds = (
        ("Report (HTML)", f"{name}.html", "text/html", lambda: html_report(*store.load_whole(case.id), _key())),
        (
            "Report (Markdown)",
            f"{name}.md",
            "text/markdown",
            lambda: markdown_report(*store.load_whole(case.id), _key()),
        ),
        ("Facts (CSV)", f"{name}.csv", "text/csv", lambda: _facts([case.id])),
        ("Case file (JSON)", f"{name}.json", "application/json", lambda: write_case_file(*store.load_whole(case.id))),
    )
    with st.container(horizontal=True):
        for label, file_name, mime, write in kinds:
            st.download_button(label, write, file_name=file_name, mime=mime, on_click="ignore")


def replaying(case: Case) -> None:
    """Run a replay and show what does not reproduce first."""
    st.write("A fresh process scores the inputs again without the stored results, then compares every number.")
    name = f"replay:{case.id}"
    run = state.run_of(name)
    if st.button("Replay", disabled=run is not None and not run.ended):
        state.keep_run(name, analyses().start(lambda run: replay(case, run.watch)), shared=True)
        st.rerun()
    wait_for(name, "Replaying")
    result = result_of(name)
    if not isinstance(result, Replay):
        return
    st.header(plain(result.summary))
    for package, stamped, here in result.versions:
        note(f"{package}: version {stamped} in the case, {here} here.")
    for part, rows in by_part(result.rows, part_names(case)).items():
        same = sum(row["result"] == "reproduced" for row in rows)
        label = f"{part[:1].upper()}{part[1:]}: {same:,} of {counted(len(rows), 'value')} reproduced"
        with st.expander(plain(label), expanded=same < len(rows)):
            st.dataframe(pd.DataFrame(rows), hide_index=True)


def by_part(rows: Sequence[dict[str, Any]], names: Mapping[str, str]) -> dict[str, list[dict[str, Any]]]:
    """The rows of a replay under the names of their parts, each place without its part."""
    parts: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        part = next((part for part in names if row["place"].startswith(part)), "")
        place = row["place"].removeprefix(part).removeprefix(".") or part
        words = {key: cell(value) if isinstance(value, str) else value for key, value in row.items()}
        parts.setdefault(names.get(part, "inputs"), []).append(words | {"place": cell(place)})
    return parts


def tags_of(case: Case) -> None:
    """Tags, which a signed-off case keeps as they are, and where the case comes from."""
    if workbench().cases.review(case.id).status == "signed off":
        note(f"Tags: {', '.join(case.tags)}." if case.tags else "No tags.")
    else:
        known = sorted({*workbench().cases.facets()["tag"], *case.tags})
        key = f"tags_{case.id}_{case.tags}"  # tags of another session are in it at once
        st.multiselect(
            "Tags",
            known,
            default=list(case.tags),
            accept_new_options=True,
            key=key,
            placeholder="choose or add a tag",
            width=520,
            on_change=set_tags,
            args=(case, key),
        )
    if case.parent:
        note(f"A new version of case {case.parent}.")


def set_tags(case: Case, key: str) -> None:
    """Add and take away the tags that differ from the case as it was drawn; another session's stay."""
    store, chosen = workbench().cases, state.value_of(key)
    try:
        others = [tag for tag in store.load(case.id).tags if tag in chosen or tag not in case.tags]
        store.set_tags(case.id, [*others, *chosen])
    except GroundworkError as error:
        st.error(plain(str(error)))


heading("Cases", "All answers you asked for or imported. Open a case, review it, export its report, or replay it.")
# The link of a case's head asks for its review, which then comes before the library.
review_first = "review" in st.query_params
if not review_first:
    library()
case = open_case()
if case is not None:
    if not review_first:
        st.divider()
    verdict = case_head(case)
    tags_of(case)
    for_review, for_report, for_replay = st.tabs(["Review", "Report and export", "Replay"])
    with for_review:
        review(case, verdict)
    with for_report:
        take_away(case)
    with for_replay:
        replaying(case)
if review_first:
    st.header("All cases")
    library()
