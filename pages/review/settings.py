"""Settings: models and what each can do, models to install, a self-test, where data lies, which hosts are contacted."""

import os
import sys

import pandas as pd
import streamlit as st

from components import state
from components.cache import workers
from components.heading import heading
from components.html import plain
from components.install import install_section
from components.model_choice import defaults_section, draw_models_line, model_title
from components.polling import result_of, wait_for
from components.runs import start
from components.self_test import checks_table
from engine.core.errors import GroundworkError
from engine.core.files import EMBEDDED, home, models_folder, package_versions
from engine.core.hosts import hosts
from engine.models.defaults import default_hosts
from engine.models.registry import available_models, embedded_source, load_writer, local_model
from engine.models.self_test import checks_of


def models() -> None:
    """The models at hand."""
    st.subheader("Models")
    cards = available_models()
    st.dataframe(
        pd.DataFrame(
            [
                {
                    "model": model_title(card.name),
                    "kind": card.kind,
                    "writes": card.can_generate,
                    "scores": card.can_score,
                    "gradients": card.can_gradients,
                    "note": card.note,
                }
                for card in cards
            ]
        ),
        hide_index=True,
    )
    st.caption(
        "auto: the default writer answers; the default scorer gives probabilities and gradients. The quoting reader "
        "only quotes; a method that needs new text uses the embedded model."
    )
    draw_models_line()


def estimate_of(name: str) -> None:
    """What a model would take, from its config alone, before anything is loaded."""
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


def test_a_model() -> None:
    """Run the self-test of a model by name."""
    st.subheader("Self-test")
    with st.form("self_test", border=False):
        left, middle, right = st.columns([5, 1, 2], vertical_alignment="bottom")
        name = left.text_input(
            "Model",
            placeholder="embedded, a Hugging Face id or folder, a .gguf file, openai:MODEL@BASE_URL",
            key="self_test_model",
        )
        asked = middle.form_submit_button("Test", width="stretch")
        said = right.form_submit_button("Estimate memory", width="stretch")
    if (asked or said) and not name.strip():
        st.warning("Name a model first.")
    if said and name.strip():
        estimate_of(name.strip())
    if asked and name.strip():
        asked_for = name.strip()
        state.keep_run(
            "self_test",
            start(
                workers(), lambda run: checks_of(load_writer(asked_for, watch=run.watch), run.watch), label=asked_for
            ),
        )
    run = state.run_of("self_test")
    if run is None:
        return
    if run.was_cancelled:
        st.info("The self-test was cancelled; nothing was saved.")
    else:
        wait_for("self_test", f"Loading and testing {run.label}")
    checks = result_of("self_test")
    if checks is not None:
        checks_table(checks)


def device() -> str:
    """What models run on, said without importing torch where nothing has loaded it yet."""
    torch = sys.modules.get("torch")
    if torch is None:
        return "chosen when the first model loads: CUDA or MPS if available, otherwise the CPU"
    return "CUDA" if torch.cuda.is_available() else "MPS" if torch.backends.mps.is_available() else "processor"


def machine() -> None:
    """Data folder, devices, threads, hosts, versions."""
    st.subheader("This machine")
    st.write("Data folder (set GROUNDWORK_HOME to move it)")
    st.code(str(home()), language=None)
    st.write("Model weights (set GROUNDWORK_MODELS to share them between data folders)")
    st.code(str(models_folder()), language=None)
    rows = {
        "CPU cores": os.cpu_count(),
        "device for models": device(),
        "threads for models (OMP_NUM_THREADS)": os.environ.get("OMP_NUM_THREADS", "not set"),
        "hosts contacted": "; ".join(f"{h.address} when {h.when}" for h in (*hosts(), *default_hosts()))
        or "none by default",
    }
    st.table(pd.DataFrame({"value": {key: plain(str(value)) for key, value in rows.items()}}))
    with st.expander("Versions"):
        st.json(package_versions())


heading(
    "Settings",
    "See the available models and what each can do, where your data is stored, and which hosts are contacted.",
)
models()
defaults_section()
install_section()
test_a_model()
machine()
