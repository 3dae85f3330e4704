"""What a check of an answer is asked with: evidence, verifier, and in a folded panel everything else."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import streamlit as st

from components.html import chips, show
from engine.core.settings import Verification
from engine.methods.are.tools import RULES
from engine.models.defaults import default_for

SOURCES = {"both": "case and corpus", "case": "the case's passages", "corpus": "the corpus"}
STEPS = {  # ARE's ablations (Table 2): a switch that is off leaves the step out
    "edit": "Edit what the evidence contradicts",
    "atomic": "Take clauses apart into atomic facts",
    "molecular": "Take the answer apart into clauses",
    "re_retrieval": "Search again for facts that nothing settles",
}
GUARDS = {
    "names_and_numbers": "A passage without a fact's number or name does not support it",
    "event_order": '"A before B" is not supported by "A after B"',
    "anchored": "A passage must speak of the fact; the passages that a clause cites are checked",
}


@dataclass(frozen=True)
class Asked:
    """Who decides, by name, and the settings of the check."""

    verifier: str
    decomposer: str
    judge: str
    settings: Verification


def fact_controls(own: Verification) -> Asked:
    """Draw the controls, `own` as they stand; return what was chosen."""
    left, right = st.columns(2, vertical_alignment="bottom")
    source = (
        left.selectbox("Evidence from", list(SOURCES), format_func=SOURCES.__getitem__, key="facts_source") or "both"
    )
    verifier = right.text_input(
        "Verifier",
        "embedded",
        key="facts_verifier",
        help="embedded (a verifier of its own), an NLI model's id or folder, or lm:MODEL for a language model that"
        " judges and edits.",
    )
    with st.expander("Settings of the check"):
        judge = st.text_input(
            "Language model as a second opinion",
            default_for("judges").model,
            key="facts_judge",
            placeholder="none",
            help="embedded, a Hugging Face id or folder, a .gguf file, or openai:MODEL@BASE_URL. Its verdicts are shown"
            " next to the verifier's, which still decides. By likelihood if the model scores; not calibrated.",
        )
        decomposer = st.text_input(
            "Decomposed by",
            RULES,
            key="facts_decomposer",
            help="rules, or the name of a language model that is asked to split.",
        )
        first, second = st.columns(2)
        keep = first.number_input("Passages checked for a fact, a source", 1, 10, own.keep, key="facts_keep")
        rounds = second.number_input("Rounds at most", 1, 5, own.max_iterations, key="facts_rounds")
        st.caption("The paper checks one passage in at most three rounds. A step that is off is one of its ablations.")
        steps = {name: st.toggle(label, getattr(own, name), key=f"facts_{name}") for name, label in STEPS.items()}
        st.caption("Guards beside the verifier: what a small model overlooks is counted on words, and said.")
        guards = {name: st.toggle(label, getattr(own, name), key=f"facts_{name}") for name, label in GUARDS.items()}
    chosen = msgspec.structs.replace(
        own, evidence_from=source, keep=int(keep), max_iterations=int(rounds), **steps, **guards
    )
    off = [("left out", label) for name, label in {**STEPS, **GUARDS}.items() if not getattr(chosen, name)]
    if off:
        show(chips(off))
    return Asked(verifier.strip(), decomposer.strip() or RULES, judge.strip(), chosen)
