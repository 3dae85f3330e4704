"""Settings: install and remove the catalogue's models; calibrate a verifier on a person's own labelled pairs."""

from __future__ import annotations

from functools import partial

import streamlit as st

from components import state
from components.blocks import draw
from components.cache import analyses
from components.html import plain
from components.polling import result_of, wait_for
from components.runs import Run
from components.upload import too_large
from engine.cases.blocks import table
from engine.core.errors import FileError, GroundworkError
from engine.models.calibration import (
    FEWEST,
    LabelledPair,
    OwnCalibration,
    calibratable,
    calibrated,
    drop as drop_calibration,
    keep as keep_calibration,
    own_calibrations,
)
from engine.models.catalogue import Entry, catalogue
from engine.models.install import downloads_of, held_bytes, install, remove
from engine.models.registry import ENTRY, forget_models, packaged_file
from engine.models.verifier import CALIBRATED, VERIFIERS

CALIBRATION = "calibration"  # the name of its run


def install_section() -> None:
    """Every model of the catalogue with its buttons."""
    st.header("Install")
    st.caption(
        "Downloads come from pip's package index and are verified by checksum. No package code runs. A stopped "
        "installation resumes where it left off."
    )
    try:
        entries = catalogue()
    except FileError as error:
        st.error(plain(str(error)))
        return
    for entry in entries:
        with st.container(border=True):
            _draw_entry(entry)


def _draw_entry(entry: Entry) -> None:
    left, right = st.columns([6, 1], vertical_alignment="center")
    left.markdown(f"**{plain(entry.name)}**: {plain(entry.good_for)}")
    left.caption(plain(costs(entry)))
    name = f"install:{entry.name}"
    run = state.run_of(name)
    right.button(
        next_step(entry),
        key=name,
        on_click=partial(_begin_change, entry, name),
        disabled=comes_along(entry) or (run is not None and not run.ended),
        width="stretch",
    )
    if run is not None:
        wait_for(name, run.label)


def costs(entry: Entry) -> str:
    """Kind, publisher and licence of a model; what it takes of network, disk and memory."""
    return (
        f"{entry.kind.capitalize()} by {entry.publisher}, {entry.licence}. {_gb(entry.download)} to download, "
        f"{_gb(entry.disk)} on disk, {_gb(entry.memory)} of free memory."
    )


def comes_along(entry: Entry) -> bool:
    """Whether it is the embedded model from the package that comes with Groundwork."""
    return entry.name == ENTRY.name and packaged_file() is not None


def next_step(entry: Entry) -> str:
    """The label and action of a model's button."""
    if comes_along(entry):
        return "In use"
    if entry.installed:
        return "Remove"
    return "Resume" if held_bytes(downloads_of(entry)) else "Install"


def _begin_change(entry: Entry, name: str) -> None:
    work, saying = (_remove, "Removing") if entry.installed else (_install, "Installing")
    state.keep_run(name, analyses().start(partial(work, entry), label=f"{saying} {entry.name}"), shared=True)


def _install(entry: Entry, run: Run[None]) -> None:
    install(entry, run.watch)


def _remove(entry: Entry, run: Run[None]) -> None:
    remove(entry, run.watch)
    forget_models()


def _gb(size: int) -> str:
    """A size in GB, small ones with two digits.

    >>> _gb(3_566_000_000), _gb(93_000_000)
    ('3.6 GB', '0.09 GB')
    """
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e9:.2f} GB"


def calibration_section() -> None:
    """The form, the run, and the calibrations that there are."""
    st.header("Calibrate a verifier on your texts")
    st.caption(
        f"Label {FEWEST} or more claims by hand, each against its evidence. The verifier's probabilities are then "
        "fitted to your kind of text. A verdict is supportive (borne out), editing_required "
        "(contradicted) or irrelevant (not found). A line of the file:"
    )
    st.code(
        '{"claim": "The fee is 40 euros.", "evidence": "It costs 45 euros.", "verdict": "editing_required"}', "json"
    )
    with st.form("calibrate", border=False):
        file = st.file_uploader("Labelled pairs (.jsonl)", key="calibrate_file")
        left, right = st.columns(2)
        name = left.text_input("Name", placeholder="contracts", key="calibrate_name")
        base = right.selectbox("Verifier", VERIFIERS, key="calibrate_base", accept_new_options=True)
        pressed = st.form_submit_button("Calibrate")
    if pressed:
        state.forget_run(CALIBRATION)
    if pressed and file is None:
        st.warning("Choose a file first.")
    elif pressed and (why := too_large(file.size)):
        st.error(plain(why))
    elif pressed:
        _begin_calibration(file.getvalue().decode("utf-8", "replace"), name.strip(), base)
    if (run := state.run_of(CALIBRATION)) is not None:
        wait_for(CALIBRATION, f"Calibrating {run.label}")
    if isinstance(fitted := result_of(CALIBRATION), OwnCalibration):
        st.success(plain(f"Choose {CALIBRATED}{fitted.name} as the verifier of a check on Facts."))
    _draw_calibrations()


def _begin_calibration(text: str, name: str, base: str) -> None:
    """Read the pairs now, so that a bad line is told at once; judge and fit them in the background."""
    try:
        pairs = LabelledPair.all_from(text.splitlines())
    except GroundworkError as error:
        st.error(plain(str(error)))
        return

    def work(run: Run[OwnCalibration]) -> OwnCalibration:
        fitted = calibrated(pairs, calibratable(base), name, run.watch)
        keep_calibration(fitted)
        return fitted

    state.keep_run(CALIBRATION, analyses().start(work, label=name))


def _draw_calibrations() -> None:
    """The calibrations of the data folder, each with its figures and a button that deletes it."""
    found = own_calibrations()
    if found:
        columns = ("Verifier", "On", "Pairs", "Calibration error", "Macro-F1")
        draw(table("", columns, map(_figures_row, found), numeric={2}))
        st.caption("The figures are on pairs left out of the fit. With an error near 0, 0.8 is right 8 times in 10.")
    for each in found:
        if st.button(f"Delete {plain(each.name)}", key=f"drop calibration {each.name}"):
            drop_calibration(each.name)
            st.rerun()


def _figures_row(fitted: OwnCalibration) -> tuple[str, ...]:
    """One calibration: error of the probabilities and macro-F1, before and after."""
    before, after = fitted.before, fitted.after
    return (
        CALIBRATED + fitted.name,
        fitted.base,
        str(fitted.pairs),
        f"{before.calibration_error:.3f}, now {after.calibration_error:.3f}",
        f"{before.macro_f1:.3f}, now {after.macro_f1:.3f}",
    )
