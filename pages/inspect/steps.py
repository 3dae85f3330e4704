"""Steps: a problem worked out step by step with retrieval (RAISE), and the same problem under the baselines."""

import streamlit as st

from components import state
from components.analysis_run import frozen, is_open
from components.cache import snapshot_of, workbench
from components.case_head import case_head
from components.export_figure import export_button
from components.frame import open_case
from components.heading import heading
from components.html import plain
from components.polling import say_problem
from components.settings_panel import settings_panel
from components.step_controls import begin, model_choice, problem_fields, relevance_view, run_name, watch_run
from components.step_tree import final_card, plan_card, runs_table, similarity_plot, step_card
from engine.analyses.kind import STEPS
from engine.analyses.steps import KIND, StepsOptions, at_threshold, changed_steps, run_settings, step_case
from engine.answer.quoting_reader import whole_id
from engine.cases.store import new_case_id
from engine.core.errors import GroundworkError
from engine.core.values import Analysis, Case
from engine.methods.raise_.threshold import gold_similarities, primer_gold, primer_question, read, threshold_for
from engine.methods.raise_.values import METHODS, Solution, method_of
from engine.report.drawings import drawn_steps

LABELS = {method.name: method.label for method in METHODS}


def controls(case: Case) -> None:
    """Who works it out by which method, with what it will cost; folded once the case is solved."""
    if any(run.state == "done" for run in KIND.of(case)):
        with st.expander("Work it out again"):
            method_fields(case)
    else:
        method_fields(case)


def method_fields(case: Case) -> None:
    """The writer, the method, its settings and the button."""
    model = model_choice()
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    name = left.selectbox("Method", list(LABELS), format_func=LABELS.get, key="steps_method") or "raise"
    method = method_of(name)
    settings_panel("reasoning", "decoding", paper="raise")
    open_ = is_open(case)
    if right.button("Work it out", key="start_steps", type="primary", width="stretch", disabled=not open_):
        begin(case, name, model)
        st.rerun()
    cost = workbench().cost(case, STEPS, StepsOptions(method=name, model=model))
    ahead = f" {cost}. Calls already stored in this case are not repeated." if open_ else ""
    st.caption(f"{method.label}: {method.said}.{ahead}")
    if not open_:
        frozen(case, "steps")


def gold_of(case: Case) -> frozenset[str]:
    """Passages that hold the gold of a sample problem; none for a problem of the user's own."""
    snapshot = snapshot_of(case.corpus) if primer_question(case.question) is not None else None
    return primer_gold(case.question, snapshot.passages) if snapshot is not None else frozenset()


def stored_run(case: Case, run: Solution) -> Analysis:
    """The analysis that holds the run."""
    return next(a for a in case.analyses if a.id == f"steps:{run.method}:{run.model}")


def threshold_slider(case: Case, run: Solution) -> Solution:
    """T as a slider over the passages that are there: nothing is searched or written until it is asked for."""
    if run.threshold is None:
        st.caption("T applies only to RAISE. This method gives the model every retrieved passage.")
        return run
    chosen = st.slider(
        "T: the lowest similarity at which a passage is kept",
        0.0,
        1.0,
        round(run.threshold, 2),
        0.01,
        key=f"t_{case.id}_{run.method}_{run.model}",
    )
    chosen = run.threshold if abs(chosen - run.threshold) < 0.005 else chosen
    moved, changed = at_threshold(run, chosen), changed_steps(run, chosen)
    try:
        source = threshold_for(run.embedder, run.corpus).source
    except GroundworkError as error:
        source = str(error)
    st.caption(f"Written with T = {run.threshold:.2f}. T for {plain(run.embedder)}: {plain(source)}.")
    if changed:
        steps = f"step{'s' * (len(changed) > 1)} {', '.join(map(str, changed))}"
        label = f"Answer again with T = {chosen:.2f}: {steps} would read other passages"
        if st.button(label, key="again", disabled=not is_open(case)):
            settings = run_settings(stored_run(case, run).stamp).with_values({"reasoning.threshold": chosen})
            begin(case, run.method, run.model, settings)
            st.rerun()
    return moved


def open_step(case: Case, run: Solution, number: int) -> None:
    """Save a step as a case of its own and go to its attribution."""
    try:
        opened = step_case(case, stored_run(case, run), number, new_case_id())
        workbench().cases.save(opened)
    except GroundworkError as error:
        st.error(plain(str(error)))
        return
    state.open_case(opened.id)
    st.switch_page("pages/inspect/attribution.py")


def tree(case: Case, run: Solution, shown: Solution, gold: frozenset[str]) -> None:
    """All steps of a run, which follow its answer; `shown` is the run split at the T of the slider."""
    plan_card(run)
    numbers = {whole_id(passage): number for number, passage in enumerate(case.passages, start=1)}
    changed = changed_steps(run, shown.threshold) if shown is not run else ()
    for step in shown.steps:
        step_card(step, gold, numbers, changed=step.number in changed)
        done = step.asked is not None or (run.decomposition is None and run.final is not None)
        key = f"open_{run.method}_{run.model}_{step.number}"
        if done and st.button(f"Inspect step {step.number} as a case", key=key, type="tertiary"):
            open_step(case, run, step.number)
    export_button(lambda: drawn_steps(case, shown), key=f"steps_{case.id}_{run.method}_{run.model}")


def results(case: Case) -> None:
    """The case's runs: a table, one run in full, its answer first, and another one to compare with."""
    runs, gold = KIND.of(case), gold_of(case)
    if not runs:
        st.info("No run yet. Choose a method above; RAISE shows each of its steps.")
        return
    question = primer_question(case.question)
    runs_table(runs, gold, question.correct if question else None, [read(run) for run in runs])
    names = [f"{LABELS[run.method]} by {run.model}" for run in runs]
    first = next((i for i, run in enumerate(runs) if run.method == "raise"), len(runs) - 1)
    chosen, beside = first, None
    if len(runs) > 1:
        left, right = st.columns(2)
        label, key = names.__getitem__, f"shown_{case.id}"
        chosen = left.selectbox("Shown", range(len(runs)), first, format_func=label, key=key, required=True)
        others = [i for i in range(len(runs)) if i != chosen]
        beside = right.selectbox("Compare with", others, None, format_func=label, key=f"beside_{case.id}")
    run = runs[chosen]
    drawn = [run] if beside is None else [run, runs[beside]]
    for column, one in zip(st.columns(len(drawn)), drawn, strict=True):
        with column:
            final_card(one, case)
    shown = threshold_slider(case, run)
    with st.expander("How similar the passages are, and where T cuts"):
        similarity_plot(shown, gold_similarities(run.embedder, run.corpus))
    for column, one in zip(st.columns(len(drawn)), drawn, strict=True):
        with column:
            tree(case, one, shown if one is run else one, gold)
    with st.expander("Relevance of the retrieved passages on four levels"):
        relevance_view(case, run, key=f"relevance_{case.id}_{run.method}")


heading(
    "Steps", "Solve a problem step by step: each sub-question, its search, and the passages kept or dropped.", "raise"
)
another = st.expander("Another problem")
case = open_case()
with another:
    problem_fields(case.corpus if case else None)
if case is not None:
    case_head(case)
    running = state.run_of(run_name(case))
    if running is not None and not running.ended:
        watch_run(running)
    else:
        controls(case)
        if running is not None:
            say_problem(running, "Stopped. Finished steps are below.")
        results(case)
