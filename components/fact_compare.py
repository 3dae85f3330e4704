"""The other methods on the same answer, and the entropy of what each of them searches with."""

from __future__ import annotations

from typing import Any

import streamlit as st

from components.analysis_run import ask_for
from components.blocks import draw
from components.fact_controls import Asked
from components.html import note
from engine.analyses.claims import ENTROPY, LABELS, PEERS, EntropyOptions, PeerOptions
from engine.analyses.kind import Kind
from engine.cases.review import Review
from engine.core.values import Case
from engine.methods.are.baselines import offered
from engine.models.defaults import default_for


def compare_panel(case: Case, asked: Asked) -> None:
    """Two folded studies: the methods that ARE is compared with, and the entropy of facts and sub-questions."""
    with st.expander("Other methods on this answer: DRQA, RARR, CCVER, an EFEC-style editor"):
        names = offered(asked.judge)
        st.caption(
            'Same passages and verifier. All except DRQA ask and edit with the "Language model as a second opinion".'
        )
        if len(names) == 1:
            note('Without a language model only DRQA can run. Choose one above, under "Models of the check".')
        label = LABELS.__getitem__
        chosen = st.pills("Methods", names, selection_mode="multi", default=names, format_func=label, key="others")
        peers = PeerOptions(methods=tuple(chosen), verifier=asked.verifier, judge=asked.judge)
        ask_for(case, PEERS.name, "Run them", options=peers, settings=asked.settings)
        _last(case, PEERS)
    with st.expander("Entropy of the facts and of the sub-questions"):
        model = st.text_input(
            "Scored by",
            default_for("scores").model,
            key="entropy_model",
            help="A model that gives probabilities: embedded, a Hugging Face id or folder, a .gguf file.",
        )
        entropy = EntropyOptions(model=model, judge=asked.judge)
        ask_for(case, ENTROPY.name, "Compute the entropy", options=entropy, settings=asked.settings)
        _last(case, ENTROPY)


def _last(case: Case, kind: Kind[Any]) -> None:
    """The last result of that kind, where the case has one."""
    found = kind.last(case)
    if found is not None:
        draw(*kind.blocks(case, found, Review()))
