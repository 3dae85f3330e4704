"""The contrast tab: words of the answer, others in their place, and which passages speak for which."""

from __future__ import annotations

from functools import partial

import plotly.graph_objects as go
import streamlit as st

from components import state
from components.analysis_run import as_reported, ask_for, banners, is_open
from components.export_figure import export_button
from components.figures import BUTTONS, GREY
from components.html import chart_text, plain, text_after
from components.style import NEGATIVE, POSITIVE
from engine.analyses.attribution import floors, under_floor
from engine.analyses.contrast import KIND, ContrastOptions, in_words, proposed
from engine.cases.blocks import name_of
from engine.core.errors import InputError, RecordError
from engine.core.values import Analysis, Case
from engine.methods.contrast import Contrast, checked_texts
from engine.report.drawings import drawn_contrast

LEAD = "Why these words and not others? Each passage is left out, to see which of the two it makes likelier."
OTHERS = "Other words"
LONGEST = 48  # characters of a passage's title next to its bar
BAR = 34  # pixels of a bar with its gap


def contrast_tab(case: Case, model: str) -> None:
    """The two texts, by default those of an edit that the check proposes, and the result of each pair."""
    if not is_open(case):
        st.caption("This case is signed off. Make a new version of it to compare other words.")
        _results(case)
        return
    pairs = {f"{written} → {instead}": (written, instead) for written, instead in proposed(case)}
    chosen = OTHERS
    if pairs:
        names = [*pairs, OTHERS]
        picked = st.pills("Edits of the check", names, default=names[0], format_func=plain, key=f"contrast_{case.id}")
        chosen = picked or OTHERS
    places = zip(st.columns(2), ("Words of the answer", "Compared with"), pairs.get(chosen, ("", "")), strict=True)
    written, instead = (
        place.text_input(label, value, key=f"{label}_{case.id}_{chosen}", persist_state="session").strip()
        for place, label, value in places
    )
    run = state.run_of(f"{KIND.name}:{case.id}")
    view = partial(_results, written=written, instead=instead)
    if (run is not None and not run.ended) or _can_be_asked(case, written, instead):
        asked = ContrastOptions(model=model, written=written, instead=instead)
        own = {"written": written, "instead": instead}
        done = any(one.stamp.model == model and one.stamp.settings.get("options") == own for one in _found(case))
        ask_for(case, KIND.name, "Compare", model, options=asked, lead=LEAD, done=done, view=view)
    else:
        view(case)


def _found(case: Case, written: str = "", instead: str = "") -> list[Analysis]:
    """The contrasts of a case, those of the two texts first, then the newest."""
    own = {"written": written, "instead": instead}
    newest = [one for one in reversed(case.analyses) if one.kind == KIND.name]
    return sorted(newest, key=lambda one: one.stamp.settings.get("options") != own)


def _can_be_asked(case: Case, written: str, instead: str) -> bool:
    """Whether both texts are there and differ; says what is missing."""
    if not written or not instead:
        st.caption(LEAD)
        return False
    try:
        checked_texts(case.answer.text, written, instead)
    except InputError as error:
        st.error(plain(str(error)))
        return False
    return True


def _results(case: Case, written: str = "", instead: str = "") -> None:
    """Each contrast of the case, the first one open."""
    for place, analysis in enumerate(_found(case, written, instead)):
        try:
            found = KIND.read(analysis)
        except RecordError:
            as_reported(case, analysis)
            continue
        with st.expander(plain(f"{found.written} → {found.instead}"), expanded=not place):
            banners(found.effect.notes)
            st.markdown(plain(in_words(found)))
            st.plotly_chart(_bars(case, found), key=f"bars_{analysis.id}", config=BUTTONS)
            export_button(partial(drawn_contrast, case, found), key=analysis.id)
            with st.expander("All figures"):
                as_reported(case, analysis)


def _bars(case: Case, found: Contrast) -> go.Figure:
    """A bar per passage, to the right for what was written; grey where an unrelated passage does as much."""
    effect, under = found.effect, floors(found.effect, 0)
    scores = effect.scores[0]
    order = sorted(range(len(scores)), key=lambda j: scores[j])
    colours = [GREY if under_floor(scores[j], *under) else POSITIVE if scores[j] > 0 else NEGATIVE for j in order]
    names = ["; ".join(name_of(case, number) for number in effect.sources[j]) for j in order]
    bars = go.Bar(
        x=[scores[j] for j in order],
        y=[chart_text(text_after(name, LONGEST)) for name in names],
        orientation="h",
        marker={"color": colours, "opacity": 0.7},
        hovertemplate="%{y}: %{x:+.2f} nats<extra></extra>",
    )
    axis = f"← for “{found.instead}”     nats     for “{found.written}” →"
    return go.Figure(bars).update_layout(
        height=90 + BAR * len(order),
        margin={"l": 10, "r": 10, "t": 10, "b": 10},
        xaxis={"title": chart_text(axis), "zeroline": True},
        yaxis={"automargin": True},
    )
