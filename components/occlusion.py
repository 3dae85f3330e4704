"""The occlusion tab: sources at three levels, each left out; the table, the text in its colours, floors, cost."""

from __future__ import annotations

import streamlit as st

from components.analysis_run import ask_for, banners, is_by, latest, seconds_said
from components.answer import answer_view
from components.attribution import attribution_table, floors_line
from components.export_figure import export_button
from components.html import plain
from components.source_map import source_map
from engine.analyses.kind import OCCLUSION, SENTENCES, SETS
from engine.analyses.occlusion import TOP_PASSAGES, rows_of
from engine.core.settings import Settings
from engine.core.values import Attribution, Case
from engine.report.drawings import drawn_occlusion

LEVELS = {"Passages": OCCLUSION, "Chunk sets": SETS, "Sentences": SENTENCES}
LABELS = {OCCLUSION: "Leave each passage out", SETS: "Leave each chunk set out", SENTENCES: "Leave each sentence out"}
WHAT = {
    OCCLUSION: "How much less likely is this answer without each passage?",
    SETS: "Leave out neighbouring passages of a document together.",
    SENTENCES: f"Leave out each sentence of the {TOP_PASSAGES} most important passages.",
}


def occlusion_view(case: Case, model: str, settings: Settings) -> None:
    """The level switch, the button with its cost, and the result of that level."""
    level = st.segmented_control("Sources", list(LEVELS), default="Passages", required=True, key=f"level_{case.id}")
    kind = LEVELS[level]
    found = latest(case, kind, model)
    seconds = seconds_said(case, model, rows_of(case, kind, settings))
    ask_for(case, kind, LABELS[kind], model, seconds, lead=WHAT[kind], done=is_by(found, model))
    if found is None:
        answer_view(case.answer)
        return
    attribution = Attribution.from_dict(found.result)
    banners(attribution.notes)
    if attribution.unit == "nats" and len(attribution.sources) > 0:
        source_map(attribution, case, key=f"map_{kind}_{case.id}")
    _tables(attribution, case, kind)
    st.caption(plain(floors_line(attribution)))
    export_button(lambda: drawn_occlusion(case, attribution), key=f"{kind}_{case.id}")


def _tables(attribution: Attribution, case: Case, kind: str) -> None:
    """Every number at once; for passages and sets also what each does as the only one."""
    if kind == SENTENCES:
        return
    with st.expander("All scores: one row per answer sentence, one column per source"):
        attribution_table(attribution, case)
    alone = attribution.details.alone
    if alone:
        with st.expander("Each source alone: reveals copies of one fact, which hide each other when one is left out"):
            data = {**attribution.to_dict(), "scores": alone, "notes": [], "details": {}}
            attribution_table(Attribution.from_dict(data), case)
