"""Two conditions of a refinement before a judge that the user names."""

from __future__ import annotations

import streamlit as st

from components.advice import judgement_view
from components.analysis_run import FROZEN, begin, is_open
from components.html import banner, visible
from components.polling import wait_for
from engine.analyses.said import JUDGEMENT, PAIR, JudgeOptions
from engine.core.values import Case
from engine.methods.judge import first_share, judge_warning
from engine.methods.refinement.run import RefinementReport
from engine.models.closed import listed
from engine.models.defaults import default_for


def judge_tab(case: Case, report: RefinementReport) -> None:
    """Two conditions before a judge that the user names, in both orders."""
    st.caption(
        "The judge does not know which condition wrote which answer. It judges grounding, not length, in both "
        "orders; a result counts only if the orders agree. A model that scores decides by likelihood (not "
        "calibrated); otherwise its reply is parsed."
    )
    written = [n for n, v in report.refinement.variants.items() if v.answer is not None]
    one, two, three = st.columns([1, 1, 2])
    first = one.selectbox("Compare", written, index=0, key="judge_first")
    others = [n for n in written if n != first]
    second = two.selectbox("with", others, key="judge_second") if others else None
    name = three.text_input(
        "Judge",
        default_for("judges").model,
        key="judge_model",
        placeholder="openai:MODEL@BASE_URL, an id, a folder, a .gguf file",
    )
    warning = judge_warning(name.strip(), (report.refinement.stamp.model,)) if name.strip() else ""
    if warning:
        banner(warning)
    run_id = f"judge:{case.id}"
    open_ = is_open(case)
    if not open_:
        st.caption(FROZEN)
    if st.button("Ask in both orders", disabled=not (name.strip() and second and open_)):
        begin(case, JUDGEMENT, JudgeOptions(judge=name.strip(), x=first, y=second or ""), run_id)
        st.rerun()
    wait_for(run_id, "The judge reads the pair in both orders")
    pairs = PAIR.of(case)
    bias = first_share(judged.judgement.orders for judged in pairs)
    if len(pairs) > 1 and bias is not None:
        st.caption(f"Position bias over {len(pairs)} pairs: {bias:.0%} of the votes chose the answer shown first.")
    for judged in reversed(pairs):
        found = judged.judgement
        judgement_view(found, judged.x, judged.y)
        with st.expander("Replies, or vote probabilities"):
            for raw, shares in zip(found.raw, found.probabilities, strict=True):
                st.code(visible(raw) or listed(shares) or "(empty)", language=None, wrap_lines=True)
