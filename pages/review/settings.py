"""Settings: models and what each can do, defaults, models to add, test, install and calibrate, data folder, hosts."""

import os
import sys

import pandas as pd
import streamlit as st

from components import state
from components.blocks import draw
from components.cache import analyses
from components.heading import heading
from components.html import plain
from components.model_choice import defaults_section, draw_models_line, model_title
from components.model_settings import calibration_section, install_section
from components.polling import result_of, wait_for
from components.runs import Run
from engine.cases.blocks import table
from engine.core.errors import GroundworkError
from engine.core.files import EMBEDDED, home, models_folder, package_versions
from engine.core.hosts import hosts
from engine.core.text import counted
from engine.models.defaults import default_hosts
from engine.models.registry import (
    ModelCard,
    add_model,
    added_models,
    available_models,
    drop_added,
    embedded_source,
    load_writer,
    local_model,
    source_of,
)
from engine.models.self_test import SelfTestCheck, checks_of
from engine.report.build import checks_table


def models() -> None:
    """The available models."""
    st.header("Models")
    rows = (
        (
            model_title(card.name),
            card.kind,
            *map(_said, (card.can_generate, card.can_score, card.can_gradients)),
            _note(card),
        )
        for card in available_models()
    )
    draw(table("", ("Model", "Kind", "Writes", "Scores", "Gradients", "Note"), rows))
    st.caption(
        "auto: the default writer answers; the default scorer gives probabilities and gradients. The quoting reader "
        "only quotes; a method that needs new text uses the embedded model."
    )
    draw_models_line()


def _note(card: ModelCard) -> str:
    return ". ".join(filter(None, (card.name if card.title else "", card.note)))


def _said(able: bool) -> str:
    return "yes" if able else "no"


def estimate_of(name: str) -> None:
    """The memory of a model, estimated from its config before loading."""
    if name.startswith("openai:"):
        st.info("A served model uses no memory on this machine.")
        return
    # Torch takes seconds to import: only who asks for an estimate pays for it.
    from engine.models.loading import estimate

    try:
        found = estimate(embedded_source() if name == EMBEDDED else local_model(name) or name)
    except GroundworkError as error:
        st.error(plain(str(error)))
        return
    sizes = {"weights": found.weights, "cache": found.cache, "activations, at most": found.activations}
    parts = ", ".join(f"{size / 2**30:.2f} GB {part}" for part, size in sizes.items())
    st.info(f"{found.parameters / 1e6:,.0f} million parameters; in float32, at 4,096 prompt tokens: {parts}.")


def add_a_model() -> None:
    """Name a model, add it to the list, test it, or estimate its memory."""
    st.header("Add or test a model")
    with st.form("self_test", border=False):
        left, right = st.columns([5, 2])
        source = left.text_input(
            "Model",
            placeholder="a folder, a .gguf file, a Hugging Face id, openai:MODEL@BASE_URL, or a model of the list",
            key="self_test_model",
        )
        name = right.text_input("Your name for it", placeholder="optional", key="added_name")
        with st.container(horizontal=True):
            add = st.form_submit_button("Add and test", type="primary")
            test = st.form_submit_button("Test")
            memory = st.form_submit_button("Estimate memory")
    source = source.strip()
    if (add or test or memory) and not source:
        st.warning("Name a model first.")
    elif add:
        try:
            added = add_model(source, name)
        except GroundworkError as error:
            st.error(plain(str(error)))
        else:
            begin_test(added.source)
            st.rerun()  # the list and the default models above have it now
    elif test:
        begin_test(source_of(source))
    elif memory:
        estimate_of(source_of(source))
    test_result()
    added_list()


def begin_test(name: str) -> None:
    """Load the model and test it in the background."""

    def work(run: Run[tuple[SelfTestCheck, ...]]) -> tuple[SelfTestCheck, ...]:
        return checks_of(load_writer(name, watch=run.watch), run.watch)

    state.keep_run("self_test", analyses().start(work, label=model_title(name)))


def test_result() -> None:
    """The self-test that runs, or what the last one came to."""
    run = state.run_of("self_test")
    if run is None:
        return
    if run.was_cancelled:
        st.info("The self-test was cancelled; nothing was saved.")
    else:
        wait_for("self_test", f"Loading and testing {run.label}")
    checks = result_of("self_test")
    if isinstance(checks, tuple):
        passed = sum(check.passed for check in checks)
        st.markdown(plain(f"{run.label}: {passed} of {counted(len(checks), 'check')} passed."))
        draw(checks_table(run.label, checks))


def added_list() -> None:
    """The models that the user added, each with a button that takes it off the list."""
    added, problem = added_models()
    if problem:
        st.warning(plain(problem))
    for model in added:
        left, right = st.columns([6, 1], vertical_alignment="center")
        left.markdown(f"**{plain(model.name)}**: {plain(model.source)}")
        if right.button("Remove from list", key=f"drop {model.name}", width="stretch"):
            try:
                drop_added(model.name)
            except GroundworkError as error:
                st.error(plain(str(error)))
            else:
                st.rerun()


def device() -> str:
    """The device for models, without importing torch if nothing has loaded it yet, or is about to in another thread."""
    torch = sys.modules.get("torch")
    if torch is None or getattr(torch.__spec__, "_initializing", False):
        return "chosen when the first model loads: CUDA or MPS if available, otherwise the CPU"
    return "CUDA" if torch.cuda.is_available() else "MPS" if torch.backends.mps.is_available() else "CPU"


def machine() -> None:
    """Data folder, devices, threads, hosts, versions."""
    st.header("This machine")
    st.write("Data folder (set GROUNDWORK_HOME to move it)")
    st.code(str(home()), language=None)
    st.write("Model weights (set GROUNDWORK_MODELS to share them between data folders)")
    st.code(str(models_folder()), language=None)
    rows = {
        "CPU cores": os.cpu_count(),
        "device for models": device(),
        "threads for models (OMP_NUM_THREADS)": os.environ.get("OMP_NUM_THREADS", "not set"),
        "hosts contacted": "; ".join((*hosts(), *default_hosts())) or "none by default",
    }
    st.table(pd.DataFrame({"value": {key: plain(str(value)) for key, value in rows.items()}}), hide_header=True)
    with st.expander("Versions"):
        st.json(package_versions())


heading(
    "Settings",
    "See the available models and what each can do, where your data is stored, and which hosts are contacted.",
)
models()
defaults_section()
add_a_model()
install_section()
calibration_section()
machine()
