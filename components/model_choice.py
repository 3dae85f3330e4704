"""How passages are chosen, who writes, scores and judges: what pages show of it, and the defaults in Settings."""

from __future__ import annotations

from functools import partial
from typing import cast

import streamlit as st

from components import state
from components.html import plain, visible
from engine.core.errors import GroundworkError
from engine.core.files import EMBEDDED
from engine.models.catalogue import offered
from engine.models.choices import READER, DType, Role, fast_bfloat16, read_defaults
from engine.models.defaults import candidates, choose_default, choose_dtype, default_for, default_notes
from engine.models.registry import TITLE, has_embedded, title_of, writers

LABELS: dict[Role, str] = {"writes": "Writes answers", "scores": "Scores", "judges": "Judges"}
HELP: dict[Role, str] = {
    "writes": "Used on Ask and wherever the model is auto. Add other models below.",
    "scores": "Gives probabilities and gradients for Attribution. The model must run on this machine.",
    "judges": "Compares answers and rates passages. Add other models below.",
}
METHOD_NAMES = {
    "reranked": "Align and re-rank",
    "vanilla": "Top passages as retrieved",
    "attr-rag": "Attr-RAG: keep what changed the answer",
}
_REMEMBERED: dict[Role, tuple[str, ...]] = {  # fields that keep their value from page to page
    "writes": ("ask_model", "steps_model"),
    "scores": ("scorer",),
    "judges": (),
}
_FORMATS: dict[DType, str] = {"auto": "float32 where it fits", "float32": "float32", "bfloat16": "bfloat16"}
_PROBLEM = "default_model_problem"


def model_title(name: str) -> str:
    """A model's name as pages offer it: the embedded model with its published name, others by the user's name for them.

    Not for stored results: an older one may be by another model that went by the name `embedded`.

    >>> model_title("embedded"), model_title("")
    ('embedded (SmolLM2 135M)', 'none')
    """
    if name == EMBEDDED:
        return f"{EMBEDDED} ({TITLE})"
    return visible(title_of(name) or name) if name else "none"


def models_line(scorer: str = "") -> str:
    """Which model writes and which scores (`scorer`, else the default), and what a better writer would bring."""
    writer, scorer = default_for("writes").model, scorer or default_for("scores").model
    quotes = " (quotes the documents)" if writer == READER else _missing(writer)
    said = f"Writes: {model_title(writer)}{quotes}. Scores: {model_title(scorer)}{_missing(scorer)}."
    return f"{said} {_offer()}".strip()


def draw_models_line(scorer: str = "") -> None:
    """Draw `models_line`, and why a default is not the one that the user chose."""
    st.caption(plain(models_line(scorer)))
    for note in default_notes():
        st.warning(plain(note))


def writer_options(*first: str) -> list[str]:
    """`first` and the available models that write, with the default writer on top if the user chose a model."""
    chosen = default_for("writes").model
    return list(dict.fromkeys([*([] if chosen == READER else [chosen]), *first, *writers()]))


def defaults_section() -> None:
    """A select box per role; a choice is saved at once."""
    st.header("Default models")
    if problem := state.take_value(_PROBLEM):
        st.error(plain(problem))
    *columns, last = st.columns(len(LABELS) + 1)
    for column, role in zip(columns, LABELS, strict=True):
        with column:
            _default_box(role)
    with last:
        _format_box()


def _default_box(role: Role) -> None:
    chosen = default_for(role).model
    options = list(dict.fromkeys([*candidates(role), chosen]))
    key = f"default_{role}_{chosen}"  # the box starts from what is saved, also where another tab changed it
    st.selectbox(
        LABELS[role],
        options,
        options.index(chosen),
        key=key,
        format_func=model_title,
        accept_new_options=role != "scores",
        help=HELP[role],
        on_change=partial(_choose, role, key),
    )


def _format_box() -> None:
    """The number format of local models; a choice is saved at once and holds for every model that loads."""
    chosen, formats = read_defaults()[0].dtype, list(_FORMATS)
    key = f"default_dtype_{chosen}"
    speed = "about twice as fast on this processor" if fast_bfloat16() else "slower on this processor"
    st.selectbox(
        "Number format",
        formats,
        formats.index(chosen),
        key=key,
        format_func=lambda one: _FORMATS[one],
        help=f"bfloat16 needs half the memory and is {speed}. It rounds an answer's log-probability by up to 0.4 nats: "
        "look at the floors. Every result names its number format.",
        on_change=partial(_choose_format, key),
    )


def _choose_format(key: str) -> None:
    try:
        choose_dtype(cast(DType, state.take_value(key)))
    except GroundworkError as error:
        state.set_value(_PROBLEM, str(error))


def _choose(role: Role, key: str) -> None:
    """Save the default and let the pages begin from it; what is wrong is shown when the page is drawn."""
    try:
        choose_default(role, str(state.take_value(key)).strip())
    except GroundworkError as error:
        state.set_value(_PROBLEM, str(error))
        return
    for remembered in _REMEMBERED[role]:
        state.take_value(remembered)


def _missing(name: str) -> str:
    return ", which is not installed" if name == EMBEDDED and not has_embedded() else ""


def absent(name: str) -> str:
    """Says that a model of the catalogue is not installed, and the way out; empty for any other."""
    missing = any(entry.name == name and not entry.installed for entry in offered())
    return f"{name} is not installed. Install it in Settings, or choose another model." if missing else ""


def _offer() -> str:
    """A better writer of the catalogue and its speed; empty if it is installed."""
    better = next((entry for entry in offered() if entry.answer_seconds and not entry.installed), None)
    if better is None:
        return ""
    return f"{better.name} writes better answers in about {better.answer_seconds} s each; install it in Settings."
