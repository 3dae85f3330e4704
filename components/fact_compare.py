"""The other methods on the same answer, and the entropy of what each of them searches with."""

from __future__ import annotations

import streamlit as st

from components.analysis_run import ask_for
from components.baselines import LABELS, baseline_text, baselines_table, entropy_table
from components.fact_controls import Asked
from components.html import note
from engine.analyses.claims import ENTROPY, PEERS, EntropyOptions, PeerOptions
from engine.core.values import Case
from engine.methods.are.baselines import offered
from engine.methods.are.values import AreRecord
from engine.models.defaults import default_for


def compare_panel(case: Case, record: AreRecord | None, asked: Asked) -> None:
    """Two folded studies: the methods that ARE is compared with, and the entropy of facts and sub-questions."""
    with st.expander("Other methods on this answer: DRQA, RARR, CCVER, an EFEC-style editor"):
        names = offered(asked.judge)
        st.caption("Same passages and verifier. All except DRQA use the language model above to ask and edit.")
        if len(names) == 1:
            note("Without a language model only DRQA can run. Choose one in the settings of the check.")
        label = LABELS.__getitem__
        chosen = st.pills("Methods", names, selection_mode="multi", default=names, format_func=label, key="others")
        peers = PeerOptions(methods=tuple(chosen), verifier=asked.verifier, judge=asked.judge)
        ask_for(case, PEERS.name, "Run them", options=peers, settings=asked.settings)
        for found in PEERS.of(case)[-1:]:
            baselines_table(found.runs, record)
            for one in found.runs:
                st.subheader(LABELS[one.name])
                baseline_text(one, case.answer.text)
    with st.expander("Entropy of the facts and of the sub-questions"):
        model = st.text_input(
            "Scored by",
            default_for("scores").model,
            key="entropy_model",
            help="A model that gives probabilities: embedded, a Hugging Face id or folder, a .gguf file.",
        )
        entropy = EntropyOptions(model=model, judge=asked.judge)
        ask_for(case, ENTROPY.name, "Compute the entropy", options=entropy, settings=asked.settings)
        for measured in ENTROPY.of(case)[-1:]:
            entropy_table(measured.found)
            if "sub_questions" not in measured.found:
                note("The model did not ask any yes/no questions about this answer.")
