"""Live removal: untick a passage; the answer is written again next to the old one, whose likelihood is scored."""

from __future__ import annotations

import streamlit as st

from components import state
from components.answer import answer_markup
from components.cache import questions
from components.diff import word_diff
from components.html import note, plain, show, text_after, visible
from components.polling import poll, result_of, say_problem
from components.settings_panel import chosen_settings, chosen_workbench
from engine.analyses.removal import Removal
from engine.cases.words import word_diff as words_of
from engine.core.values import Attribution, Case
from engine.models.choices import READER

LONGEST = 70  # characters of a passage next to its box


def removal_view(case: Case, model: str) -> None:
    """The passages to untick, next to the answer without the unticked ones."""
    left, right = st.columns([2, 3], gap="large")
    with left:
        note("Untick the passages to leave out.")
        gone = tuple(n for n in range(1, len(case.passages) + 1) if not _ticked(case, n))
    name = f"without:{case.id}"
    with right:
        _run(case, gone, model, name)
        found = result_of(name)
        run = state.run_of(name)
        if isinstance(found, Removal) and found.left_out == gone:
            draw_removal(case, found)
        elif run is None or run.ended:
            show(answer_markup(case.answer))


def _ticked(case: Case, number: int) -> bool:
    passage = case.passages[number - 1]
    words = " ".join(visible(passage.text).split())
    return st.checkbox(
        plain(f"{number} · {text_after(words, LONGEST)}"),
        value=True,
        key=f"keep_{case.id}_{number}",
        help=plain(passage.label),
    )


def _run(case: Case, gone: tuple[int, ...], model: str, name: str) -> None:
    """Start a run where one is asked for; a quoted answer costs milliseconds and is written again at once."""
    run = state.run_of(name)
    if run is not None and not run.ended:
        poll(name, "Without the passages")
        return
    asked = str((gone, model.strip(), chosen_settings()))
    fresh = run is None or run.label != asked
    possible = 0 < len(gone) < len(case.passages)
    at_once = case.stamp.model == READER and possible and fresh
    if not at_once:
        label = "Write without them" if len(gone) != 1 else f"Write without passage {gone[0]}"
        ready = possible and (fresh or run.problem is not None)
        if not st.button(label, key=f"start_{name}", type="primary", disabled=not ready):
            if run is not None and not fresh:
                say_problem(run)
            return
    bench = chosen_workbench()
    work = lambda run: bench.without(case, gone, model.strip(), run.watch)  # noqa: E731
    state.keep_run(name, questions().start(work, label=asked))
    st.rerun()


def draw_removal(case: Case, found: Removal) -> None:
    """Both answers as one text, and what the passages add to the old one."""
    named = ", ".join(map(str, found.left_out))
    if found.answer.refused:
        st.info(f"Without {named}, {plain(found.writer)} says that the passages do not answer the question.")
    elif found.answer.text == case.answer.text:
        st.success(f"The answer without {named} is identical.")
        show(answer_markup(found.answer))
    else:
        word_diff(words_of(case.answer.text, found.answer.text), left="the answer", right=f"the answer without {named}")
    st.caption(plain(f"{_likely(found.drop) if found.drop else found.why} Written by {found.writer}; not saved."))


def _likely(drop: Attribution) -> str:
    """The drop of the whole answer in words."""
    nats, tokens = drop.scores[0][0], drop.details.content_tokens[0]
    each = nats / tokens if tokens else 0.0
    return f"Without them the original answer changes by {-nats:+z,.1f} nats ({-each:+z.2f} per token; {drop.model})."
