"""The other methods on the same answer, and the entropy study; kept for the session, not in the case."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from components import state
from components.baselines import LABELS, baseline_text, baselines_table, entropy_table
from components.cache import workbench, workers
from components.fact_controls import Asked
from components.html import note
from components.polling import poll, result_of, say_problem
from components.runs import Run, start
from engine.core.values import Case
from engine.methods.are.baselines import Baseline, offered, run_baseline
from engine.methods.are.decompose import decompose
from engine.methods.are.entropy import Entropy, entropies
from engine.methods.are.evidence import Sources
from engine.methods.are.questions import ask_questions
from engine.methods.are.tools import load_tools
from engine.methods.are.values import AreRecord
from engine.models.defaults import default_for
from engine.models.registry import load_writer


def compare_panel(case: Case, record: AreRecord | None, asked: Asked) -> None:
    """Two folded studies: the methods that ARE is compared with, and the entropy of facts and sub-questions."""
    with st.expander("Other methods on this answer: DRQA, RARR, CCVER, an EFEC-style editor"):
        names = offered(asked.judge)
        st.caption("Same passages and verifier. All except DRQA use the language model above to ask and edit.")
        if len(names) == 1:
            note("Without a language model only DRQA can run. Choose a model under Settings of the check.")
        label = LABELS.__getitem__
        chosen = st.pills("Methods", names, selection_mode="multi", default=names, format_func=label, key="others")
        _button(f"others:{case.id}", "Run them", lambda run: _baselines(case, chosen, asked, run))
        found = result_of(f"others:{case.id}")
        if isinstance(found, tuple) and found:
            baselines_table(found, record)
            for one in found:
                st.subheader(LABELS[one.name])
                baseline_text(one, case.answer.text)
    with st.expander("Entropy of the facts and of the sub-questions"):
        model = st.text_input(
            "Scored by",
            default_for("scores").model,
            key="entropy_model",
            help="A model that gives probabilities: embedded, a Hugging Face id or folder, a .gguf file.",
        )
        judge = asked.judge
        _button(f"entropy:{case.id}", "Compute the entropy", lambda run: _entropy(case, record, model, judge, run))
        measured = result_of(f"entropy:{case.id}")
        if isinstance(measured, dict):
            entropy_table(measured)
            if "sub_questions" not in measured:
                note("The model did not ask any yes/no questions about this answer.")


def _button(name: str, label: str, work: Callable[[Run[Any]], object]) -> None:
    """A button that starts the work, its progress while it runs, and what went wrong with it."""
    run = state.run_of(name)
    if run is not None and not run.ended:
        poll(name, label)
        return
    if st.button(label, key=f"start_{name}"):
        state.keep_run(name, start(workers(), work, label=name))
        st.rerun()
    if run is not None:
        say_problem(run)


def _baselines(case: Case, names: list[str], asked: Asked, run: Run[tuple[Baseline, ...]]) -> tuple[Baseline, ...]:
    tools = load_tools(asked.verifier, judge=asked.judge)
    sources = Sources(workbench().embedder, case.passages, workbench().tools.collection_of(case))
    text = case.answer.text
    shown = workbench().settings.prompting.demonstrations
    given = (sources, tools.verifier, asked.settings.verification, tools.judge, run.watch, shown)
    return tuple(run_baseline(name, case.question, text, *given) for name in names)


def _entropy(
    case: Case, record: AreRecord | None, model: str, judge: str, run: Run[Mapping[str, Entropy]]
) -> Mapping[str, Entropy]:
    """The facts beside the yes/no questions of the second opinion, or of the scoring model without one."""
    found = record.decomposition if record is not None else decompose(case.answer.text)
    facts = [fact.text for clause in found.clauses for fact in clause.facts]
    scorer, shown = load_writer(model), workbench().settings.prompting.demonstrations
    questions, _ = ask_questions(
        "yes_no_questions", case.answer.text, load_writer(judge) if judge else scorer, run.watch, shown
    )
    return entropies(facts, questions, scorer, run.watch)
