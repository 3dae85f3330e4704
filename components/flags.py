"""Distractor flags and the concentration trigger of a token map, each with what chance alone would do."""

from __future__ import annotations

import streamlit as st

from components import state
from components.analysis_run import ask_for, seconds_said
from components.html import escape, show, table, tag
from components.triggers import flag_table
from engine.analyses.kind import TOKEN_MAP
from engine.analyses.token_map import TokenMap, concentration_of, flags_of, rows_for_flags
from engine.core.settings import Settings
from engine.core.text import counted
from engine.core.values import Case
from engine.methods.flags import Concentration


def flags_view(found: TokenMap, case: Case, settings: Settings, model: str) -> None:
    """Flags if passages are labelled, and the label-free trigger; both read the map's token rows."""
    labels = {number: passage.relevant for number, passage in enumerate(case.passages, start=1)}
    flags, trigger = flags_of(found, labels, settings), concentration_of(found, settings)
    if flags is None or trigger is None:
        wanted = rows_for_flags(found, settings)
        more = seconds_said(case, model, 1 + 2 * len(wanted.tokens))
        ask_for(case, TOKEN_MAP, "Compute the flags", model, more, options=wanted, key="flags")
        return
    if all(relevant is None for relevant in labels.values()):
        st.caption("No passages are marked yet, so nothing is flagged. Mark passages on the Refinement page.")
    flag_table(flags, case, settings.gradient.used_top)
    st.subheader("Concentration trigger, without labels")
    _trigger(trigger, found, settings)


def _trigger(trigger: Concentration, found: TokenMap, settings: Settings) -> None:
    fired = ", ".join(map(str, trigger.numbers))
    said = f"Fires for passage {fired}." if trigger.fires else "Does not fire."
    show(tag("p", tag("b", escape(said)) + " " + escape(_rule(trigger, settings)), class_="gw-note"))
    total = sum(len(spans) for _, spans in found.passages)
    rows = (
        tag(
            "tr",
            tag("th", escape(str(number)), scope="row", aria_current=state.current("passage", number))
            + tag("td", escape(f"{len(spans) / max(1, total):.0%}"))
            + tag(
                "td",
                escape(f"{times} of {counted(trigger.tokens, 'token')}"),
                class_="" if number in trigger.numbers else "gw-weak",
            ),
        )
        for (number, spans), times in zip(found.passages, trigger.times, strict=True)
    )
    show(table(("Passage", "Share of the text", "Over the ratio"), rows))


def _rule(trigger: Concentration, settings: Settings) -> str:
    words = "tokens" if settings.occlusion.count_citation_markers else "content tokens"
    return (
        f"A passage counts if its share of the relevance is at least {trigger.ratio:g} times its share of the text for"
        f" {settings.gradient.share:.0%} or more of the first {trigger.tokens} {words}. {trigger.sentence}"
    )
