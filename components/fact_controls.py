"""The controls of a check: evidence, verifier, and everything else in a folded panel."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from components.html import chips, show, visible
from components.settings_panel import one_setting, settings_panel
from engine.core.files import EMBEDDED
from engine.core.settings import Settings, all_settings
from engine.methods.are.decompose import RULES
from engine.models.calibration import own_calibrations
from engine.models.catalogue import offered
from engine.models.defaults import default_for
from engine.models.verifier import CALIBRATED, LARGE, MEDIUM, VERIFIERS

TOLD = {EMBEDDED: "fastest", MEDIUM: "better", LARGE: "best, about 1.6 s per claim and passage on two cores"}
_SWITCHES = [s for s in all_settings() if s.stage == "verification" and s.kind == "switch"]


@dataclass(frozen=True)
class Asked:
    """Who decides, by name, and the settings of the check."""

    verifier: str
    decomposer: str
    judge: str
    settings: Settings


def fact_controls() -> Asked:
    """Draw the controls; return what was chosen."""
    left, right = st.columns(2)
    with left:
        one_setting("verification.evidence_from", paper="are")
    with right:
        verifier = _verifier()
    with st.expander("Models of the check"):
        judge = st.text_input(
            "Language model as a second opinion",
            default_for("judges").model,
            key="facts_judge",
            placeholder="none",
            help="embedded, a Hugging Face id or folder, a .gguf file, or openai:MODEL@BASE_URL. Its verdicts appear "
            "next to the verifier's, which still decides. If the model gives probabilities, its verdict is the "
            "likeliest one (not calibrated).",
        )
        decomposer = _decomposer()
    settings = settings_panel("verification", paper="are", elsewhere=("verification.evidence_from",))
    off = [("left out", step.label) for step in _SWITCHES if not settings.value(step.path)]
    if off:
        show(chips(off))
    return Asked(verifier.strip(), decomposer, judge.strip(), settings)


def _decomposer() -> str:
    """Choose who splits the answer into facts; an installed model that does it better than the rules comes first."""
    better = [entry.name for entry in offered() if entry.installed and entry.splits]
    return st.selectbox(
        "Decomposed by",
        [*better, RULES],
        key="facts_decomposer",
        accept_new_options=True,
        format_func=visible,
        help="The rules take no time. A larger model's facts are better, and take about 20 seconds per sentence on two"
        " cores. Or type a language model's name.",
    )


def _verifier() -> str:
    """Choose who decides; says what the larger ones bring, and how to install them."""
    chosen = st.selectbox(
        "Verifier",
        [*VERIFIERS, *(CALIBRATED + fitted.name for fitted in own_calibrations())],
        key="facts_verifier",
        accept_new_options=True,
        format_func=lambda name: visible(f"{name} ({TOLD[name]})" if name in TOLD else name),
        help="Or type an NLI model's id or folder, or lm:MODEL for a language model that judges and edits.",
    )
    base, installed = VERIFIERS.get(chosen, ""), {entry.name for entry in offered() if entry.installed}
    if base and base not in installed:
        st.caption(f"This verifier runs on {base}. Install that model in Settings first.")
    elif chosen == EMBEDDED:
        better = [name for name, base in VERIFIERS.items() if base in installed]
        if better:
            st.caption(f"{better[-1].capitalize()} is installed. It is more accurate, and slower.")
    return chosen
