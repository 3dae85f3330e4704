"""One panel for settings on every page: label, unit, default, and the value that the paper gives.

What is chosen holds for the session, on all pages; a run takes it along when it starts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from components import state
from components.cache import workbench
from components.html import plain, visible
from engine.core.errors import InputError
from engine.core.settings import BEST_SENTENCE, PAPERS, Setting, Settings, all_settings
from engine.core.text import counted
from engine.models.catalogue import EMBEDDER, offered
from engine.models.embedder import DEFAULT
from engine.workbench import Workbench

TITLES = {
    "chunking": "Passages",
    "retrieval": "Retrieval",
    "reader": "Quoting reader",
    "decoding": "Writing",
    "prompting": "Prompt",
    "occlusion": "Occlusion",
    "selection": "Selection of Attr-RAG",
    "gradient": "Gradients and flags",
    "faithfulness": "Faithfulness",
    "refinement": "Refinement",
    "reasoning": "Steps",
    "verification": "Facts",
}
OF_A_CORPUS = ("retrieval.embedder",)  # chosen when a corpus is made, on the Corpora page
OF_A_QUESTION = ("retrieval.documents",)  # chosen with the corpus, on the Ask page
COLUMNS = 3


def chosen_settings() -> Settings:
    """The settings as this session has them."""
    return Settings().with_values(state.changed_settings())


def chosen_workbench() -> Workbench:
    """The workbench with this session's settings; take it before a run starts, a worker has no session."""
    return workbench().using(chosen_settings())


def settings_panel(*stages: str, paper: str = "", elsewhere: Sequence[str] = ()) -> Settings:
    """Draw the settings of those stages, folded, a tab per stage; return the session's settings.

    `paper` names one of `PAPERS`; `elsewhere` are those that the page draws by `one_setting`.
    """
    _panel(stages, paper, elsewhere, chosen_settings())
    return chosen_settings()


@st.fragment
def _panel(stages: Sequence[str], paper: str, elsewhere: Sequence[str], drawn: Settings) -> None:
    """The panel, which opens without drawing the page anew; a setting other than in `drawn` draws it, for its costs."""
    shown = [s for s in all_settings() if s.stage in stages and s.path not in OF_A_CORPUS + OF_A_QUESTION]
    key = f"panel_{'_'.join(stages)}"
    panel = st.expander("Settings", key=key, on_change="rerun")
    if panel.open:  # dozens of fields that nobody sees would be drawn again at every click on the page
        with panel:
            _buttons(shown, paper)
            titles = [TITLES[stage] for stage in stages]
            for stage, tab in zip(stages, st.tabs(titles, key=f"{key}_stage", on_change="rerun"), strict=True):
                if tab.open:
                    with tab:
                        _fields([s for s in shown if s.stage == stage and s.path not in elsewhere], paper)
    own = chosen_settings()
    changed = [f"{s.label.lower()} {said(own.value(s.path))}" for s in shown if own.value(s.path) != s.default]
    if changed:
        st.caption(plain(f"Changed settings: {'; '.join(changed)}."))
    if own != drawn:
        st.rerun()


def _fields(drawn: Sequence[Setting], paper: str) -> None:
    """A field for each setting; keep what they contain."""
    own, values = chosen_settings(), dict[str, Any]()
    for first in range(0, len(drawn), COLUMNS):
        row = drawn[first : first + COLUMNS]
        for column, setting in zip(st.columns(COLUMNS, vertical_alignment="bottom"), row, strict=False):
            with column:
                values[setting.path] = draw_setting(setting, own.value(setting.path), paper=paper)
    _keep(values)


def one_setting(path: str, *, paper: str = "") -> None:
    """Draw one setting outside the panel."""
    setting = next(s for s in all_settings() if s.path == path)
    _keep({path: draw_setting(setting, chosen_settings().value(path), paper=paper)})


def draw_setting(setting: Setting, value: Any, *, paper: str = "", key: str = "") -> Any:
    """One field, beginning with `value`; returns its content (text for a list or an optional number)."""
    key = key or _key(setting.path)
    current = state.begin_with(key, said(value) if _is_typed(setting) and not _options(setting) else value)
    named = not setting.unit or setting.unit in setting.label.lower()
    label = setting.label if named else f"{setting.label} ({setting.unit})"
    given = {name: f"{said(g.value) or 'auto'} ({g.section})" for name, g in setting.papers.items()}
    papers = () if paper else (f"{PAPERS[name].title}: {text}" for name, text in given.items())
    about = "  \n".join(map(plain, (*papers, f"On the command line: --set {setting.path}=VALUE")))
    found = _input(setting, label, current, {"key": key, "help": about})
    st.caption(plain(_note(setting, given.get(paper, ""))))
    return found


def _input(setting: Setting, label: str, current: Any, about: dict[str, Any]) -> Any:
    """The field itself, by its kind.

    Its default is the current value, not only the session's: a browser that missed the first drawing, because the page
    ran again at once, is not told the session's value a second time and shows the default.
    """
    options = _options(setting)
    if options:
        known = list(dict.fromkeys([*options, current]))
        about |= {"index": known.index(current), "accept_new_options": setting.kind == "text"}
        return st.selectbox(label, known, format_func=_titled(setting), **about)
    about["value"] = current
    if _is_typed(setting):
        return st.text_input(label, placeholder="auto" if setting.optional else "", **about)
    if setting.kind == "switch":
        return st.toggle(label, **about)
    if setting.kind == "whole":
        most = None if setting.most is None else int(setting.most)
        return st.number_input(label, min_value=int(setting.least or 0), max_value=most, step=1, **about)
    return st.number_input(
        label, min_value=float(setting.least or 0), max_value=setting.most, step=0.05, format="%g", **about
    )


def said(value: Any) -> str:
    """A value in words.

    >>> said((1, 2)), said(None), said(True), said(0.5), said("")
    ('1, 2', '', 'on', '0.5', '')
    """
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, (tuple, list)):
        return ", ".join(map(str, value))
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _note(setting: Setting, given: str) -> str:
    """The default, and what the page's paper gives ("paper: 30")."""
    default = f"default: {said(setting.default) or (DEFAULT if setting.path in OF_A_CORPUS else 'auto')}"
    return f"{default} · paper: {given}" if given else default


def _is_typed(setting: Setting) -> bool:
    """Whether the field is a line of text."""
    return setting.kind in ("list", "text") or setting.optional


def _options(setting: Setting) -> tuple[str, ...]:
    """The choices of a select box; empty for other fields."""
    papers = tuple(given.value for given in setting.papers.values())
    if setting.path == "retrieval.reranker":
        return (BEST_SENTENCE, *papers)
    if setting.path == "retrieval.embedder":
        return tuple(dict.fromkeys([DEFAULT, *(entry.name for entry in offered() if entry.kind == EMBEDDER), *papers]))
    return setting.choices


def _titled(setting: Setting) -> Callable[[str], str]:
    """How an option is written."""
    if setting.kind == "choice":
        return lambda option: option.replace("_", " ")
    return lambda option: visible("best-sentence similarity" if option == BEST_SENTENCE else option)


def _buttons(shown: Sequence[Setting], paper: str) -> None:
    """The switch to the paper's values, and back to the defaults."""
    left, right, _ = st.columns([2, 2, 3])
    defaults = {s.path: s.default for s in shown}
    if paper:
        given = PAPERS[paper]
        own = (*OF_A_CORPUS, "chunking.", "reasoning.threshold")  # T is the embedder's: empty, it is the known one
        values = {path: one.value for path, one in given.gives.items() if not path.startswith(own)}
        defaults |= {s.path: s.default for s in all_settings() if s.path in values}
        about = f"{given.title}: {counted(len(values), 'setting')}. A corpus keeps its own embedder, chunking and T."
        left.button("Use the paper's values", key=f"paper_{paper}", help=about, on_click=_use, args=(values,))
    stages = "_".join(dict.fromkeys(s.stage for s in shown))
    right.button("Reset to the defaults", on_click=_use, args=(defaults,), key=f"defaults_{stages}")


def _use(values: Mapping[str, Any]) -> None:
    """Keep values and let their fields begin anew (a callback's job)."""
    state.change_settings(values)
    for path in values:
        state.take_value(_key(path))


def _keep(drawn: Mapping[str, Any]) -> None:
    """Save the fields; report a value of the wrong type instead of saving it."""
    kept = {path: value for path, value in drawn.items() if not isinstance(value, str)}
    for path, text in drawn.items():
        if not isinstance(text, str):
            continue
        try:
            kept[path] = Settings().apply([f"{path}={text.strip() or _empty(path)}"]).value(path)
        except InputError:
            label = next(setting.label for setting in all_settings() if setting.path == path)
            st.error(plain(f"{label} cannot be {text!r}. The previous value is used."))
    try:
        Settings().with_values(kept)
    except InputError as error:
        st.error(plain(str(error)))
    else:
        state.change_settings(kept)


def _empty(path: str) -> str:
    """The value that an empty field means."""
    setting = next(s for s in all_settings() if s.path == path)
    return "null" if setting.optional else said(setting.default)


def _key(path: str) -> str:
    return f"set_{path}"
