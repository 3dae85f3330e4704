"""Settings: calibrate a verifier on a person's own labelled pairs, and what that changed."""

from __future__ import annotations

import streamlit as st

from components import state
from components.blocks import draw
from components.cache import analyses
from components.html import plain
from components.polling import result_of, wait_for
from components.runs import Run
from components.upload import too_large
from engine.cases.blocks import table
from engine.core.errors import GroundworkError
from engine.models.calibration import (
    FEWEST,
    LabelledPair,
    OwnCalibration,
    calibratable,
    calibrated,
    drop,
    keep,
    own_calibrations,
)
from engine.models.verifier import CALIBRATED, VERIFIERS

_RUN = "calibration"


def calibration_section() -> None:
    """The form, the run, and the calibrations that there are."""
    st.subheader("Calibrate a verifier on your texts")
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
        state.forget_run(_RUN)
    if pressed and file is None:
        st.warning("Choose a file first.")
    elif pressed and (why := too_large(file.size)):
        st.error(plain(why))
    elif pressed:
        _begin(file.getvalue().decode("utf-8", "replace"), name.strip(), base)
    if (run := state.run_of(_RUN)) is not None:
        wait_for(_RUN, f"Calibrating {run.label}")
    if isinstance(fitted := result_of(_RUN), OwnCalibration):
        st.success(plain(f"Choose {CALIBRATED}{fitted.name} as the verifier of a check on Facts."))
    _kept()


def _begin(text: str, name: str, base: str) -> None:
    """Read the pairs now, so that a bad line is told at once; judge and fit them in the background."""
    try:
        pairs = LabelledPair.all_from(text.splitlines())
    except GroundworkError as error:
        st.error(plain(str(error)))
        return

    def work(run: Run[OwnCalibration]) -> OwnCalibration:
        fitted = calibrated(pairs, calibratable(base), name, run.watch)
        keep(fitted)
        return fitted

    state.keep_run(_RUN, analyses().start(work, label=name))


def _kept() -> None:
    """The calibrations of the data folder, each with its figures and a button that deletes it."""
    found = own_calibrations()
    if found:
        draw(table("", ("Verifier", "On", "Pairs", "Calibration error", "Macro-F1"), map(_row, found), numeric={2}))
        st.caption("The figures are on pairs left out of the fit. With an error near 0, 0.8 is right 8 times in 10.")
    for each in found:
        if st.button(f"Delete {plain(each.name)}", key=f"drop calibration {each.name}"):
            drop(each.name)
            st.rerun()


def _row(fitted: OwnCalibration) -> tuple[str, ...]:
    """One calibration: error of the probabilities and macro-F1, before and after."""
    before, after = fitted.before, fitted.after
    return (
        CALIBRATED + fitted.name,
        fitted.base,
        str(fitted.pairs),
        f"{before.calibration_error:.3f}, now {after.calibration_error:.3f}",
        f"{before.macro_f1:.3f}, now {after.macro_f1:.3f}",
    )
