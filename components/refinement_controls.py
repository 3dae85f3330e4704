"""Choose conditions, models and triggers for a case; show the cost before a run and the progress during it."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import streamlit as st

from components import state
from components.analysis_run import begin as start_analysis
from components.html import plain, visible
from components.polling import cancel_button, redraw
from components.settings_panel import settings_panel
from components.variants import variant_cards
from engine.analyses.kind import REFINEMENT
from engine.analyses.refinement import RefinementOptions, analysis_id, reports_of
from engine.core.settings import Settings
from engine.core.text import counted
from engine.core.values import Case
from engine.methods.refinement.conditions import VARIANTS
from engine.methods.refinement.values import Gate
from engine.models.choices import READER, Defaults
from engine.models.defaults import can_fill, default_for, default_generator
from engine.models.registry import writers

GATES = {"own": "Own rules", "always": "Always"}
BASELINES = {False: "Write A now", True: "The case's answer is A"}


@dataclass(frozen=True)
class Chosen:
    """Who writes, who scores (empty: the writer), whether A is the case's answer, and the settings."""

    model: str
    scorer: str
    use_answer: bool
    settings: Settings


def begin(case: Case, names: tuple[str, ...], gate: Gate, chosen: Chosen) -> None:
    """Start the conditions in the background; each is saved with the case as it ends."""

    stored = reports_of(case).get(analysis_id(chosen.model, chosen.use_answer))
    scorer = chosen.scorer or (stored.refinement.scorer if stored else "")

    options = msgspec.structs.replace(options_for(names, gate, chosen), scorer=scorer)
    start_analysis(case, REFINEMENT, options, f"refine:{case.id}", settings=chosen.settings)


def options_for(names: tuple[str, ...], gate: Gate, chosen: Chosen) -> RefinementOptions:
    """The choices as options of the analysis."""
    return RefinementOptions(
        model=chosen.model, variants=names, gate=gate, scorer=chosen.scorer, use_answer=chosen.use_answer
    )


@st.fragment(run_every=0.8)
def watch_run(name: str, report_id: str, names: tuple[str, ...]) -> None:
    """Poll the running conditions: what is finished, what is being written, cancel."""
    run = state.run_of(name)
    if run is None or not run.running:
        redraw()
        return
    found = reports_of(run.case).get(report_id) if run.case else None
    done = [n for n in names if found and n in found.refinement.variants]
    st.progress(
        len(done) / len(names),
        text=f"{plain(run.stage or 'starting')}: {len(done)} of {counted(len(names), 'condition')}",
    )
    cancel_button(run, key="cancel_refinement")
    if run.text:
        st.caption("Being written")
        st.text(visible(run.text[-800:]))
    if found is not None and done:
        variant_cards(found, run.case.passages, done, diff=False)


def controls(case: Case) -> tuple[tuple[str, ...], Gate, Chosen]:
    """Choose conditions, models and triggers."""
    left, middle, right = st.columns([2, 2, 3])
    help_text = (
        f"Available: {', '.join(writers()) or 'none'}. Also a Hugging Face id or folder, a .gguf file, "
        "openai:MODEL@BASE_URL."
    )
    model = left.text_input("Written by", _first_writer(case), key=f"refine_model_{case.id}", help=help_text)
    scorer = middle.text_input(
        "Scored by",
        _first_scorer(case),
        key=f"refine_scorer_{case.id}",
        placeholder="the writer",
        help="Local model for S2 and the gradient triggers, if the writer cannot score.",
    )
    gate = right.segmented_control(
        "Second pass trigger",
        list(GATES),
        format_func=GATES.get,
        default=_last_gate(case),
        key=f"refine_gate_{case.id}",
        required=True,
        help="Own rules: a condition writes a second pass only where its own rule fires. Always: each writes one.",
    )
    left, right = st.container(key="folds").columns(2)
    more = left.expander("Conditions and baseline", expanded=not reports_of(case))
    names = more.pills(
        "Conditions",
        list(VARIANTS),
        selection_mode="multi",
        default=list(VARIANTS),
        format_func=lambda name: f"{name} · {VARIANTS[name].title}",
        key="refine_names",
    )
    given = bool(case.answer.text.strip())
    use_answer = more.segmented_control(
        "Baseline",
        [False, True] if given else [False],
        format_func=BASELINES.get,
        default=_has_run_on_the_answer(case, model.strip()),
        required=True,
        key=f"refine_baseline_{case.id}",
        help="The other conditions are compared with A.",
    )
    with right:
        settings = settings_panel("refinement", "gradient", "decoding", "prompting", "occlusion", paper="refinement")
    chosen = Chosen(model.strip(), scorer.strip(), use_answer, settings)
    ordered = tuple(name for name in VARIANTS if name in {"A", *names})
    return ordered, gate, chosen


def _first_writer(case: Case) -> str:
    """The case's writer where it is a model that is here; else the default writer, unless only others have run."""
    default, ran = default_generator(), [report.refinement.stamp.model for report in reports_of(case).values()]
    own = case.stamp.model
    if case.origin == "generated" and own != READER and (own in ran or can_fill(own, "writes")):
        return own
    return default if default in ran or not ran else ran[-1]


def _first_scorer(case: Case) -> str:
    """The default scorer if the user chose one and nothing was scored by another; empty: the writer."""
    name = default_for("scores").model
    held = {report.refinement.scorer for report in reports_of(case).values()}
    return "" if name == Defaults().scores or held - {name} else name


def _last_gate(case: Case) -> Gate:
    """The gate of the case's last run: another one would set back what is written."""
    return next((report.refinement.gate for report in reversed(reports_of(case).values())), "own")


def _has_run_on_the_answer(case: Case, model: str) -> bool:
    """Whether the case holds a run with its own answer as A and none with a fresh one: what is there comes first."""
    held = reports_of(case)
    return analysis_id(model, True) in held and analysis_id(model, False) not in held
