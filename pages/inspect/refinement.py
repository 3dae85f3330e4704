"""Refinement: does a second pass help this answer, what started it, and what did it cost."""

from collections.abc import Callable, Iterable

import streamlit as st

from components import state
from components.advice import advice_view, quartile_view, task_table
from components.analysis_run import frozen, is_open
from components.blocks import draw
from components.cache import analyses, questions, workbench
from components.case_head import case_head
from components.export_figure import export_button
from components.frame import open_case
from components.heading import heading
from components.html import banner, note, plain, visible
from components.model_choice import absent
from components.polling import redraw, result_of, say_problem, wait_for
from components.refinement_controls import (
    begin,
    controls,
    judge_tab,
    marked_words,
    options_for,
    passage_labels,
    signal_scales,
    watch_run,
)
from components.reviewer import reviewer, write_marks
from components.settings_panel import chosen_workbench
from components.variants import variant_cards
from engine.analyses.attribution import flags_table
from engine.analyses.kind import REFINEMENT
from engine.analyses.refinement import (
    analysis_id,
    facts_of,
    history_of,
    kept_facts,
    reports_of,
    run_ahead,
    score_blocks,
    trigger_table,
)
from engine.cases.review import MARKED, MarkDraft, Review, with_labels, withdrawals
from engine.core.settings import Settings
from engine.core.values import Case
from engine.methods.refinement.advisor import CAVEATS, TASKS, QuartileStudy
from engine.methods.refinement.gates import flags_of
from engine.methods.refinement.run import RefinementReport
from engine.methods.refinement.values import Gate
from engine.report.drawings import drawn_signals
from engine.studies.on_case import advice_on, library_quartiles, task_advice


def side_by_side(case: Case, report: RefinementReport, names: Iterable[str]) -> None:
    """The cards, with the word diff to A on request, and the exact prompts."""
    value = report.refinement
    names = [name for name in names if name in value.order]
    diff = st.toggle("Mark the words that differ from A", value=True, key="refine_diff")
    for line in value.notes:
        banner(line)
    variant_cards(report, case.passages, names, diff=diff)
    with st.expander("Exact prompts and raw replies"):
        written = [n for n in value.order if n in value.variants and value.variants[n].turns]
        name = st.selectbox("Condition", written, key="refine_prompt_of")
        for turn in value.variants[name].turns if name else ():
            st.caption(f"{plain(turn.purpose)}: what was asked, then the reply")
            st.code(visible(turn.prompt.text).strip("\n"), language=None, wrap_lines=True)
            st.code(visible(turn.reply.text) or "(empty)", language=None, wrap_lines=True)


def signals_and_triggers(case: Case, report: RefinementReport, gate: Gate, settings: Settings) -> None:
    """Signals on their scales, A's words, and each rule with the labels as they are now."""
    value = report.refinement
    if value.signals.banner:
        banner(value.signals.banner)
    history = history_of(workbench().cases, value.stamp.model)
    signal_scales(value.signals, value.threshold, history)
    if value.threshold is not None:
        st.caption(
            f"D's threshold {value.threshold.value:.2f}: {plain(value.threshold.rule)}; the library has "
            f"{len(history)}. {'A line marks each. ' if history else ''}"
            "S3 is string matching: it misses an invented detail inside a well-cited sentence."
        )
    if value.baseline is not None and value.signals.words:
        st.subheader("Words of A: green underline if a passage contains them, wavy if none does")
        marked_words(value.baseline.text, value.signals.words)
    export_button(lambda: drawn_signals(case, value), key=f"signals_{case.id}")
    st.subheader("What starts a second pass")
    draw(trigger_table(value, case.labels, gate, settings))
    if value.gradient is not None:
        draw(flags_table(flags_of(value.gradient, case.labels, settings), case, settings.gradient.used_top))
    st.caption(
        "v2a, v2b and v2c share one rule. The paper reports the concentration rule as a negative result; use it for "
        "cases without labels."
    )


def passages_tab(case: Case, review: Review) -> None:
    """Mark passages; the rules and scores of the other tabs follow at once."""
    author, open_ = reviewer(), is_open(case)
    if not open_:
        st.caption("This case is signed off. Make a new version of it to mark passages.")
    elif not author:
        st.caption("Enter your name to mark passages. The case's history records it.")

    def mark(number: int, chosen: str) -> None:
        write_marks(case.id, drafts(case, number, chosen, author))

    passage_labels(case, review, mark, key=f"label_{case.id}", disabled=not (author and open_))


def drafts(case: Case, number: int, chosen: str, author: str) -> tuple[MarkDraft, ...]:
    """The marks that a choice makes: a label, or the withdrawal of every label that stands."""
    target = f"passage:{number}"
    if chosen == MARKED[None]:
        return withdrawals(workbench().cases.history(case.id), "relevance", target, author)
    return (MarkDraft(kind="relevance", author=author, target=target, value=chosen),)


def scores_tab(case: Case, report: RefinementReport) -> None:
    """Scores and cost of every condition, compared with A."""
    if not report.entailments:
        st.caption("The verifier has not checked these answers yet. The next run adds the citation scores.")
    draw(*score_blocks(report, case.passages))
    kept = kept_facts(report)
    if kept:
        st.subheader("Facts of A, and whether each answer still states them")
        draw(*kept)
        if facts_of(case) not in ((), report.facts):
            st.caption("The answer was checked again after this run. Run again to follow its present facts.")
    else:
        st.caption(
            "To follow each fact, check this case on the Facts page. Then run these conditions with the case's "
            "answer as A."
        )


def quartiles_tab() -> None:
    """Gain by quartile of S3 over the library."""
    st.caption(
        "Gain of D over A in citation precision, by quartile of S3 of A. Only runs with the trigger Always "
        "count; in others D equals A wherever S3 is high."
    )
    bench = workbench()
    if st.button("Gather from the library"):
        state.keep_run("quartiles", analyses().start(lambda run: library_quartiles(bench.cases, run.watch)))
        st.rerun()
    wait_for("quartiles", "Reading the library")
    found = result_of("quartiles")
    if isinstance(found, QuartileStudy):
        quartile_view(found)


def advisor_tab(case: Case, report: RefinementReport | None) -> None:
    """Advice on this case; folded, the task table of an investigation."""
    s3 = report.refinement.signals.s3 if report else None
    advice_view(advice_on(case.question, case.passages, case.hits, case.corpus, s3))
    with st.expander("Tasks of a money-laundering investigation"):
        investigation_tasks()


def investigation_tasks() -> None:
    """Draw the paper's advice for each task next to the advisor's on the passages of the sample."""
    if st.button("Run these tasks on the sample bank investigation"):
        state.keep_run("tasks", analyses().start(lambda run: task_advice(run.watch)))
        st.rerun()
    wait_for("tasks", "Retrieving for each example")
    found = result_of("tasks")
    advices = found if isinstance(found, tuple) else (None,) * len(TASKS)
    task_table(list(zip(TASKS, advices, strict=True)))
    task = st.selectbox("Task", TASKS, format_func=lambda task: task.name, key="aml_task", width=420)
    if st.button("Answer this task's question as a case") and task is not None:
        bench = chosen_workbench()
        state.keep_run("task case", questions().start(lambda run: bench.ask_task(task, run.watch)))
        st.rerun()
    wait_for("task case", "Answering the question")
    made = result_of("task case")
    if isinstance(made, Case):
        state.open_case(made.id)
        state.forget_run("task case")
        redraw()
    for caveat in CAVEATS:
        st.caption(caveat)


@st.fragment
def tabs(
    case: Case, review: Review, report: RefinementReport | None, names: tuple[str, ...], gate: Gate, settings: Settings
) -> None:
    """The open one of the tabs; a click in it draws nothing else anew."""

    def of_a_run(view: Callable[[RefinementReport], None]) -> None:
        if report is None:
            choose = " Choose conditions above and press Run." if is_open(case) else ""
            st.info(f"This model has not run any condition on this case yet.{choose}")
        else:
            view(report)

    views: dict[str, Callable[[], None]] = {
        "Side by side": lambda: of_a_run(lambda r: side_by_side(case, r, names)),
        "Signals and triggers": lambda: of_a_run(lambda r: signals_and_triggers(case, r, gate, settings)),
        "Scores": lambda: of_a_run(lambda r: scores_tab(case, r)),
        "Passages": lambda: passages_tab(case, review),
        "Judge": lambda: of_a_run(lambda r: judge_tab(case, r)),
        "Gain by S3": quartiles_tab,
        "Advisor": lambda: advisor_tab(case, report),
    }
    for tab, view in zip(st.tabs(list(views), key="refine_tab", on_change="rerun"), views.values(), strict=True):
        if tab.open:
            with tab:
                view()


heading(
    "Refinement",
    "Does a second pass help this answer? Compare conditions on the same passages and see what triggered each.",
    "refinement",
    "flags",
    "citation-metrics",
    "judge",
    "advisor",
)
stored = open_case()
if stored is not None and not stored.passages:
    st.info("This case has no passages to ground the answer in. Open another case.")
elif stored is not None:
    review = workbench().cases.review(stored.id)
    case = with_labels(stored, review)
    case_head(case)
    names, gate, chosen = controls(case)
    report_id = analysis_id(chosen.model, chosen.use_answer)
    report = reports_of(case).get(report_id)
    run = state.run_of(f"refine:{case.id}")
    if run is not None and not run.ended:
        watch_run(run, report_id, names)
    else:
        options = options_for(names, gate, chosen)
        ahead = run_ahead(case, options, chosen.settings)
        label = (
            "Run" if report is None else "Run the missing conditions" if ahead.stored and ahead.writes else "Run again"
        )
        with st.container(horizontal=True, vertical_alignment="center"):
            look = "primary" if report is None else "secondary"
            lacking = absent(chosen.model)
            asked = st.button(label, type=look, disabled=not chosen.model or bool(lacking) or not is_open(case))
            cost = workbench().using(chosen.settings).cost(case, REFINEMENT, options)
            note(lacking or cost[:1].upper() + cost[1:]) if is_open(case) else frozen(case, "refinement")
        if asked:
            begin(case, names, gate, chosen)
            st.rerun()
        if run is not None:
            say_problem(run)
        tabs(case, review, report, names, gate, chosen.settings)
