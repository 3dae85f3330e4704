"""A data folder to measure on: the sample corpora read and the first case written."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def prepared_folder(made: Path | None) -> Iterator[Path]:
    """One made before, or a fresh one for as long as it is needed; to be copied, never written to."""
    if made is not None:
        yield made
        return
    with tempfile.TemporaryDirectory() as folder:
        os.environ["GROUNDWORK_HOME"] = folder
        from engine.workbench import Workbench

        Workbench().prepare_samples()
        yield Path(folder)
