"""Starting a run of RAISE or a baseline, its progress as steps arrive, and the problem to work on."""

from __future__ import annotations

import streamlit as st

from components import state
from components.analysis_run import begin as start_analysis
from components.cache import workbench
from components.html import plain
from components.model_choice import model_title, writer_options
from components.polling import cancel_button, redraw
from components.step_tree import final_card, plan_card, step_card
from engine.analyses.kind import STEPS
from engine.analyses.steps import KIND, StepsOptions, new_case
from engine.cases.store import new_case_id
from engine.core.errors import GroundworkError
from engine.core.files import EMBEDDED, now
from engine.core.settings import Settings
from engine.core.values import Case
from engine.corpus.collection import list_corpora
from engine.methods.raise_.threshold import PRIMER, primer
from engine.methods.raise_.values import Problem, method_of

PROBLEM = "problem"  # the fields of a new one
SAMPLES = 24  # problems of the science primer that are offered; it has more


def run_name(case: Case) -> str:
    """The session's name for the run on a case: one at a time."""
    return f"steps:{case.id}"


def begin(case: Case, method: str, model: str, settings: Settings | None = None) -> None:
    """Run a method on the case in the background, with the session's settings where none are given.

    The case is saved after every call.
    """
    options = StepsOptions(method=method, model=model)
    start_analysis(case, STEPS, options, run_name(case), label=method, settings=settings)


@st.fragment(run_every=0.3)
def watch_run(case: Case) -> None:
    """Poll the run: steps as they arrive, cancel."""
    run = state.run_of(run_name(case))
    if run is None or not run.running:
        redraw()
        return
    label = method_of(run.label).label
    st.progress(run.share, text=f"{label}: {plain(run.stage or 'waiting for its turn')}")
    cancel_button(run, key="cancel_steps")
    found = [s for s in KIND.of(run.case) if s.method == run.label] if run.case else []
    if run.case and found:
        plan_card(found[-1])
        for step in found[-1].steps:
            step_card(step)
        final_card(found[-1], run.case)


def model_choice() -> str:
    """Who works the problem out."""
    chosen = st.selectbox(
        "Written by",
        writer_options() or [EMBEDDED],
        key="steps_model",
        format_func=model_title,
        accept_new_options=True,
        persist_state="session",
        help="A model that writes: embedded, a Hugging Face id or folder, a .gguf file, openai:MODEL@BASE_URL.",
    )
    return chosen or EMBEDDED


def problem_fields(corpus: str | None) -> None:
    """A new problem, typed or taken from the science primer, as a case of its own; `corpus` is offered first.

    Not a form, which would lose on another page what was typed.
    """
    # First in the list instead of by `index`: a default next to a value that a button set is warned about.
    names = (found.name for found in list_corpora())
    corpora = sorted(names, key=lambda name: (name != corpus, name != PRIMER))
    if not corpora:
        st.info("There are no documents yet. Add some on the Corpora page.")
        return
    with st.popover("Problems of the science primer"):
        for number, question in enumerate(primer().questions[:SAMPLES] if PRIMER in corpora else ()):
            values = (question.question, "\n".join(question.options))
            st.button(plain(question.question), key=f"problem_{number}", type="tertiary", on_click=_fill, args=values)
    fields = state.fields(PROBLEM)
    text = st.text_area("Problem", key=f"{fields}_text", height=90, persist_state="session")
    left, middle, right = st.columns([5, 3, 2], vertical_alignment="bottom")
    options = left.text_area(
        "Options, one per line (none: an open problem)", key=f"{fields}_options", height=110, persist_state="session"
    )
    chosen = middle.selectbox("Corpus", corpora, key=f"{fields}_corpus", persist_state="session")
    if right.button("Open as a case", type="primary", width="stretch"):
        _open(text, options, chosen)


def _fill(text: str, options: str) -> None:
    for name, value in {"text": text, "options": options, "corpus": PRIMER}.items():
        state.set_value(f"{state.fields(PROBLEM)}_{name}", value)


def _open(text: str, options: str, corpus: str) -> None:
    """Save the problem as a case and open it."""
    try:
        problem = Problem(question=text, options=tuple(line.strip() for line in options.splitlines() if line.strip()))
        case = new_case(problem, corpus, new_case_id(), now())
        workbench().cases.save(case)
    except GroundworkError as error:
        st.error(plain(str(error)))
        return
    state.empty(PROBLEM)
    state.open_case(case.id)
    st.rerun()
