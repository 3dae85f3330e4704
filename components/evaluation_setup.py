"""Choosing what is evaluated: a preset or fields, the config that comes of them, its cost, and the start."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import streamlit as st
from msgspec.structs import replace

from components import state
from components.cache import analyses
from components.evaluation_run import begin
from components.html import plain, visible
from components.polling import result_of, wait_for
from engine.core.errors import GroundworkError
from engine.core.progress import Watch
from engine.core.text import counted
from engine.models.registry import writers
from engine.studies.catalogue import names, study_of
from engine.studies.config import CONFIGS, Config, as_toml, parse_config, presets, read_config
from engine.studies.datasets import LAYOUTS, WORLDS
from engine.studies.evaluate import cost_of
from engine.studies.library import ahead, new_name
from engine.studies.plan import Plan
from engine.studies.values import Estimate

COST = "evaluation_cost"
OTHER = "your own file or folder"
FIRST = "seconds"  # the preset that needs no language model


def setup() -> str | None:
    """The form; the name of a run that was just begun."""
    config = _fields(*_preset())
    with st.expander("The config, as saved with the results"):
        text = st.text_area("TOML", as_toml(config), height=260, key=f"toml_{hash(as_toml(config))}")
    try:
        config = parse_config(text)
        study_of(config.study)
    except GroundworkError as error:
        st.error(plain(str(error)))
        return None
    return _cost_and_start(config, text)


def _preset() -> tuple[str, Config]:
    """The name of the preset that the fields begin with, and the preset."""
    known = {name: read_config(CONFIGS / f"{name}.toml") for name in presets()}
    ordered = sorted(known, key=lambda name: (name != FIRST, *_level(name)))
    chosen = st.selectbox(
        "Start from the preset",
        ordered,
        key="evaluation_preset",
        format_func=lambda name: known[name].title or name.replace("_", " "),
        help="Small presets run on the sample corpora with the embedded model; capable presets use an installed "
        "model. Paper presets use the papers' models and sizes; you supply the data sets.",
    )
    name = chosen or ordered[0]
    return name, known[name]


def _level(name: str) -> tuple[int, str]:
    """Looks of minutes first, then the small presets, the capable ones, and the papers'."""
    levels = ("_small", "_capable", "_paper")
    return next((place for place, level in enumerate(levels, start=1) if name.endswith(level)), 0), name


def _fields(key: str, preset: Config) -> Config:
    """The fields over the preset; what they do not show is the preset's. Under another `key` they begin anew."""
    left, middle, right = st.columns([4, 3, 2])
    studies = list(names())
    study = left.selectbox(
        "Study", studies, studies.index(preset.study), format_func=lambda n: study_of(n).title, key=f"study_{key}"
    )
    known = list(dict.fromkeys([*([preset.data] if preset.data in WORLDS else []), *WORLDS, OTHER]))
    where = middle.selectbox("Data set", known, 0 if preset.data in WORLDS else len(known) - 1, key=f"data_{key}")
    count = right.number_input("Examples (0: all)", 0, None, preset.n, key=f"n_{key}")
    data, load = (where or WORLDS[0], preset.load) if where != OTHER else _file(preset, key)
    methods = list(study_of(study or preset.study).methods)
    picked = [name for name in preset.methods if name in methods]
    left, middle, right = st.columns([4, 2, 2])
    chosen = left.multiselect("Methods (none: all)", methods, picked, key=f"methods_{key}_{study}")
    seeds = middle.text_input("Seeds", ", ".join(map(str, preset.seeds)), key=f"seeds_{key}")
    model = right.selectbox(
        "Model",
        list(dict.fromkeys([preset.model, "reader", *writers()])),
        key=f"model_{key}",
        accept_new_options=True,
        format_func=visible,
        help="reader, embedded, a Hugging Face id or folder, a .gguf file, openai:MODEL@BASE_URL.",
    )
    st.caption(plain(f"After {', '.join(study_of(study or preset.study).shows)}."))
    return replace(
        preset,
        study=study or preset.study,
        data=data,
        load=load,
        n=int(count),
        methods=tuple(chosen),
        seeds=_seeds(seeds, preset.seeds),
        model=model or preset.model,
    )


def _file(preset: Config, key: str) -> tuple[str, dict[str, Any]]:
    """The path of a data set with its layout and corpus."""
    left, middle, right = st.columns([4, 2, 2])
    path = left.text_input("File or folder", "" if preset.data in WORLDS else preset.data, key=f"path_{key}")
    layouts = ["detect from its fields", *LAYOUTS]
    layout = middle.selectbox(
        "Layout", layouts, key=f"layout_{key}", help="docs/evaluate.md describes the JSONL format."
    )
    corpus = right.text_input("Corpus to search", str(preset.load.get("corpus", "")), key=f"corpus_{key}")
    load = {name: value for name, value in preset.load.items() if name not in ("layout", "corpus")}
    if layout != layouts[0]:
        load["layout"] = layout
    return path.strip() or "no file chosen yet", load | ({"corpus": corpus.strip()} if corpus.strip() else {})


def _seeds(text: str, default: tuple[int, ...]) -> tuple[int, ...]:
    try:
        found = tuple(int(part) for part in text.replace(",", " ").split())
    except ValueError:
        st.error("Enter seeds as integers separated by commas.")
        return default
    return found or default


def _cost_and_start(config: Config, text: str) -> str | None:
    """The cost first, for exactly this config; then the start."""
    name = f"{COST}:{hash(text)}"
    left, right, _ = st.columns([2, 2, 4])
    if left.button("See the cost", key="see_cost", width="stretch"):
        state.keep_run(name, analyses().start(lambda run: _cost(config, run.watch), "cost"))
    wait_for(name, "Reading the data set and preparing its corpus")
    found = result_of(name)
    if isinstance(found, tuple):
        _say_cost(*found)
    if right.button("Start", type="primary", key="start_evaluation", disabled=found is None, width="stretch"):
        run = new_name(config, datetime.now())
        begin(run, text)
        return run
    if found is None:
        st.caption('Press "See the cost" first; then you can start the run.')
    return None


def _cost(config: Config, watch: Watch) -> tuple[Plan, Estimate, str]:
    """The plan, its largest cost, and how long it will take: read once, as all earlier runs are looked at."""
    planned, cost = cost_of(config, watch)
    return planned, cost, ahead(planned, cost)


def _say_cost(planned: Plan, cost: Estimate, time: str) -> None:
    """The planned run, its largest cost and its time; parts left out and switched off."""
    shown = {
        "units": len(planned.units),
        "examples": len(planned.examples),
        "answers written": cost.calls,
        "texts scored": cost.forwards,
        "gradient passes": cost.backwards,
        "judged": cost.judged,
        "tokens": cost.tokens,
    }
    parts = {label: value for label, value in shown.items() if value}
    for column, (label, value) in zip(st.columns(len(parts)), parts.items(), strict=True):
        column.metric(label, f"{value:,}", border=True)
    st.caption("Upper bounds, estimated from a few examples per method.")
    if time:
        st.markdown(plain(time))
    else:
        st.caption("How long it takes is known after the first unit: no earlier run used these models.")
    for what, count in planned.left_out.items():
        st.warning(plain(f"Left out: {counted(count, 'example')} without {what}."))
    for line in planned.off:
        st.info(plain(line))
