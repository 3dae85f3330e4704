"""Facts: does the answer stand, fact by fact; edits as tracked changes; what each clause rests on."""

import streamlit as st

from components import state
from components.analysis_run import begin, frozen, is_open
from components.answer import answer_view
from components.blocks import draw
from components.cache import workbench
from components.case_head import case_head
from components.checking import check_name
from components.export_figure import export_button
from components.fact_controls import Asked, fact_controls
from components.facts import compare_panel, edits_view, evidence_at, facts_tree, override_fields
from components.frame import open_case
from components.heading import heading
from components.html import banner, plain
from components.pages import page_link
from components.polling import say_problem, wait_for
from components.reviewer import reviewer
from components.sentences import first_in_doubt
from components.source_view import open_evidence
from components.used_supports import used_supports_view
from engine.analyses.case_verdict import case_verdict, fact_verdicts
from engine.analyses.facts import FactsOptions, attribution_report, made, record_of
from engine.analyses.kind import FACTS
from engine.analyses.used_supports import KIND as USED_SUPPORTS
from engine.cases.blocks import Notice
from engine.core.text import counted
from engine.core.values import Case
from engine.methods.are.values import AreRecord
from engine.models.registry import source_of
from engine.models.server import SERVED
from engine.report.drawings import drawn_facts


def controls(case: Case, record: AreRecord | None) -> Asked | None:
    """The controls of a check with its cost, or progress while it runs. None while it runs."""
    name = check_name(case.id)
    running = state.run_of(name)
    if running is not None and not running.ended:
        wait_for(name, "Checking the answer")
        return None
    with st.container() if record is None else st.expander("Check again, with other settings"):
        asked = fact_controls()
        settings = asked.settings
        options = FactsOptions(verifier=asked.verifier, decomposer=asked.decomposer, judge=asked.judge)
        label, open_ = "Check the answer" if record is None else "Check again", is_open(case)
        if st.button(label, key="start_facts", type="primary", disabled=not open_):
            begin(case, FACTS, options, name, settings=settings)
            st.rerun()
        served = source_of(asked.decomposer).startswith(SERVED)
        may_send = options.spelled_out.judge or served
        if open_:
            cost = workbench().using(settings).cost(case, FACTS, options)
            took, sent = "" if record is None else last_took(record), "" if may_send else " Nothing is sent anywhere."
            st.caption(f"{cost}{took}.{sent}")
        else:
            frozen(case, "facts")
    if running is not None:
        say_problem(running)
    return asked


def last_took(record: AreRecord) -> str:
    """The cost of the check shown, as an estimate of the next one."""
    given = sum(len(done.checks) for fact in record.facts for done in fact.iterations)
    came_to = f"{counted(given, 'verdict')} in {record.seconds:.0f} s"
    return plain(f"; the last check, by {record.verifier}, gave {came_to}")


def result(case: Case, record: AreRecord) -> None:
    """Everything that the check found."""
    if not record.finished:
        banner("The check was stopped. These are the finished facts.")
    open_ = is_open(case)
    author = reviewer() if record.facts and open_ else ""
    if record.facts and open_ and not author:
        st.caption("Enter your name to decide on edits and to record verdicts. The case's history records it.")
    if record.facts:
        tree(case, record, author)
    else:
        st.info("The answer contains no claim to check.")
    edits_view(case, record, author)
    st.header("How this was checked")
    draw(made(record), *map(Notice, record.notes))
    if record.report is not None:
        st.header("Attribution report")
        draw(*attribution_report(case, record, record.report))


def used_supports(case: Case) -> None:
    """The matrix of use and support, folded; where it was not run, where to run it."""
    with st.expander("Used x supports: does the answer depend on each passage, and does the passage support it?"):
        matrix = USED_SUPPORTS.last(case)
        if matrix is None:
            st.caption("Not run on this case. Compare use and support on the Attribution page.")
            page_link("inspect/attribution", "Attribution")
        else:
            used_supports_view(matrix, case, key="used")


@st.fragment
def tree(case: Case, record: AreRecord, author: str) -> None:
    """The facts, the reviewer's own verdict on the selected one, and what each sentence uses.

    A click on a fact draws nothing else anew.
    """
    review = workbench().cases.review(case.id)
    verdict = case_verdict(case, review)
    key = f"facts_{case.id}_{record.verifier}_{record.seconds:.3f}"
    sentence = state.selected_sentence(len(case.answer.sentences)) or (first_in_doubt(verdict) if verdict else None)
    of_sentence = verdict.sentences[sentence - 1].facts if verdict and sentence else ()
    selected = state.selected_fact() or next((fact.number for fact in of_sentence), "")
    asked = facts_tree(record, fact_verdicts(case, record, review), selected, key=key)
    chosen = asked.get("fact", "")
    if chosen:
        number = verdict.sentence_of(chosen) if verdict else None
        state.select(fact=chosen, **({"sentence": number} if number else {}))
    if "source" in asked:
        open_evidence(case, *evidence_at(record, asked["source"]))
    export_button(lambda: drawn_facts(case, record, review), key=f"facts_{case.id}")
    if verdict is not None:
        override_fields(case, record, verdict, review, author, chosen or selected)
    used_supports(case)


heading(
    "Facts",
    "Does the answer stand, fact by fact? Each fact has a verdict with evidence; edits are tracked changes.",
    "facts",
    "verifier",
    "are-baselines",
    "used-x-supports",
)
case = open_case()
if case is not None:
    case_head(case, offer=False)
    record = record_of(case)
    if record is None:
        answer_view(case.answer)
    asked = controls(case, record)
    if record is not None:
        result(case, record)
    if asked is not None:
        compare_panel(case, asked)
