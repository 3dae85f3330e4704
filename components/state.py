"""The only reader of the session: the case that is open, and the runs that belong to this session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from components.cache import begun_runs
from components.runs import Run, Shared

_CASE = "groundwork_case"
_RUNS = "groundwork_runs"
_SETTINGS = "groundwork_settings"
_SELECTED = "groundwork_selected"
_ONCE = "groundwork_once"
_ASKED = "groundwork_asked"
ASKING = "groundwork_asking"  # another question is to be asked: its form is unfolded
SELECTABLE = ("sentence", "fact", "passage")


def open_case_id(default: str | None = None) -> str | None:
    """The id of the open case: the link's, else the session's, else `default`. The address bar follows it."""
    linked = st.query_params.get("case")
    chosen = linked or st.session_state.get(_CASE) or default
    if chosen is not None:
        open_case(chosen)
        _carry_selection(chosen)
    return chosen


def open_case(case_id: str) -> None:
    """Make a case the open one, in the session and in the address bar."""
    st.session_state[_CASE] = case_id
    if st.query_params.get("case") != case_id:
        st.query_params["case"] = case_id
        _link({})


def _carry_selection(case_id: str) -> None:
    """The selection in the case: from the link, else from another page."""
    linked = {name: st.query_params[name] for name in SELECTABLE if name in st.query_params}
    kept = st.session_state.get(_SELECTED, {})
    if linked or kept.get("case") != case_id:
        st.session_state[_SELECTED] = {**linked, "case": case_id}
    else:
        _link(kept)


def select(**chosen: int | str) -> None:
    """Select a sentence (by its number from 1), its fact ("2.1") or a passage (by its number) of the open case.

    0 and "" select none. A sentence or a fact replaces both of the last one and leaves the passage, and the other way
    round.
    """
    case_id = st.session_state.get(_CASE, "")
    earlier = st.session_state.get(_SELECTED, {})
    replaced = {"passage"} if set(chosen) == {"passage"} else {"sentence", "fact", *chosen}
    kept = {name: earlier[name] for name in SELECTABLE if name in earlier and name not in replaced}
    kept = {**(kept if earlier.get("case") == case_id else {}), **{n: str(v) for n, v in chosen.items() if v}}
    st.session_state[_SELECTED] = {**kept, "case": case_id}
    _link(kept)


def _link(selected: Mapping[str, str]) -> None:
    for name in SELECTABLE:
        _put(name, selected.get(name, ""))


def _put(name: str, value: str) -> None:
    """Set a value of the address bar; "" takes it out."""
    if not value:
        st.query_params.pop(name, None)
    elif st.query_params.get(name) != value:
        st.query_params[name] = value


def selected_sentence(most: int) -> int | None:
    """The selected sentence, if the answer has so many."""
    return _selected_number("sentence", most)


def selected_passage(most: int) -> int | None:
    """The selected passage, if the case has so many."""
    return _selected_number("passage", most)


def _selected_number(name: str, most: int) -> int | None:
    said = st.session_state.get(_SELECTED, {}).get(name, "")  # a link says what it likes
    number = int(said) if said.isascii() and said.isdigit() and len(said) < 10 else 0
    return number if 1 <= number <= most else None


def selected_fact() -> str:
    """The number of the selected fact, "" where none is."""
    return str(st.session_state.get(_SELECTED, {}).get("fact", ""))


def current(name: str, *shown: int | str) -> str:
    """The value of aria-current for markup that shows a sentence, fact or passage: "true" if it is the selected one.

    `name` is one of SELECTABLE, `shown` the numbers of what the markup shows. "" leaves the attribute out.
    """
    return "true" if st.session_state.get(_SELECTED, {}).get(name) in set(map(str, shown)) else ""


def selected_places() -> tuple[str, ...]:
    """The selection as places that the cells of a report name: "passage-3", "sentence-2", "fact-1.1"."""
    selected = st.session_state.get(_SELECTED, {})
    return tuple(f"{name}-{selected[name]}" for name in SELECTABLE if name in selected)


def run_of(name: str, *, over: bool = False) -> Run[Any] | Shared | None:
    """The run of that name: this session's, running or finished, or one that runs for another session.

    `over`: the other session's may also have ended, as far as the app remembers it.
    """
    runs: dict[str, Run[Any] | Shared] = st.session_state.setdefault(_RUNS, {})
    own, begun = runs.get(name), begun_runs().get(name)
    if begun is not None and ((own is None and over) or (begun.running and (own is None or own.ended))):
        runs[name] = Shared(begun)
    return runs.get(name)


def keep_run(name: str, run: Run[Any], *, shared: bool = False) -> None:
    """Remember a run under a name; an earlier one of this session by that name is asked to stop.

    `shared`: the name says all of the work ("facts:CASE"), so that other sessions find it, and this one loaded anew.
    """
    runs = st.session_state.setdefault(_RUNS, {})
    earlier = runs.get(name)
    if isinstance(earlier, Run) and earlier.running:
        earlier.stop()
    runs[name] = run
    if shared:
        begun = begun_runs()
        for ended in [one for one, other in list(begun.items()) if not other.running]:
            begun.pop(ended, None)
        begun[name] = run


def see_runs() -> None:
    """Note which of this session's runs have ended; the rest counts as running until the page is drawn again."""
    for run in st.session_state.get(_RUNS, {}).values():
        run.see()


def forget_run(name: str) -> None:
    """Drop a finished run."""
    st.session_state.get(_RUNS, {}).pop(name, None)


def asked() -> str:
    """The id of the case that the session's question makes, "" without one; of a page loaded anew the address bar's."""
    return str(st.session_state.setdefault(_ASKED, st.query_params.get("asked", "")))


def keep_asked(case_id: str, *, running: bool) -> None:
    """Remember the case of a question, in the address bar while it is `running`: a page loaded anew finds its run."""
    st.session_state[_ASKED] = case_id
    _put("asked", case_id if running else "")


def first_time(name: str) -> bool:
    """Whether this session asks for the name for the first time; from then on it does not."""
    seen: set[str] = st.session_state.setdefault(_ONCE, set())
    new = name not in seen
    seen.add(name)
    return new


def set_value(key: str, value: object) -> None:
    """Set a value of the session; of a widget before it is drawn (a callback's job)."""
    st.session_state[key] = value


def value_of(key: str) -> Any:
    """A value of the session, of a widget also where that is on another page; None where there is none."""
    return st.session_state.get(key)


def changed_settings() -> dict[str, Any]:
    """The session's settings by `stage.field`, those that were drawn at least once."""
    return dict(st.session_state.get(_SETTINGS, {}))


def change_settings(values: Mapping[str, Any]) -> None:
    """Keep settings for the session."""
    st.session_state[_SETTINGS] = {**changed_settings(), **values}


def begin_with(key: str, value: Any) -> Any:
    """Set a widget's value unless it has one; return what it has."""
    return st.session_state.setdefault(key, value)


def fields(name: str) -> str:
    """The beginning of the keys of the named fields; another one once what was typed into them is used (`empty`)."""
    return f"{name}_{st.session_state.get(f'{name}_emptied', 0)}"


def empty(name: str) -> None:
    """Let the named fields begin anew: from now on they have other keys. "" names none."""
    if name:
        st.session_state[f"{name}_emptied"] = st.session_state.get(f"{name}_emptied", 0) + 1


def take_value(key: str) -> Any:
    """Drop a value and return it, None where there is none; a widget of that key begins from its default again."""
    return st.session_state.pop(key, None)
