"""An environment for inseq and ContextCite, made once under build/, which git ignores."""

from __future__ import annotations

import json
import subprocess
import venv
from pathlib import Path

import torch

from bench.attribution_rows import Row

PEERS = ("inseq", "context-cite")
FOLDER = Path(__file__).parent.parent / "build" / "peers"
MADE = ".made"  # written once the installation is complete


def peer_python(folder: Path = FOLDER) -> tuple[Path | None, str]:
    """The environment's interpreter, made if absent, or None and the reason."""
    python = folder / "bin" / "python"
    if (folder / MADE).exists():
        return python, ""
    venv.create(folder, with_pip=True)
    wanted = [f"torch=={torch.__version__.split('+')[0]}", *PEERS]
    done = subprocess.run([python, "-m", "pip", "install", "-q", *wanted], capture_output=True, text=True, check=False)
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["no reason given"]
        return None, f"inseq and context-cite could not be installed here and were left out: {last[0][:200]}."
    (folder / MADE).touch()
    return python, ""


def peer_rows(python: Path, folder: Path, exact: list[int], few: int) -> tuple[list[Row], list[str]]:
    script = Path(__file__).with_name("attribution_peers.py")
    done = subprocess.run([python, str(script), str(folder), str(few)], capture_output=True, text=True, check=False)
    if done.returncode:
        return [], [f"The peers' process failed: {done.stderr.strip()[-300:]}."]
    found = json.loads(done.stdout.strip().splitlines()[-1])
    rows, notes = [], []
    for name in PEERS:
        result = found[name]
        if "error" in result:
            notes.append(f"{name} failed: {result['error']}.")
            continue
        rows.append(Row(name, result["seconds"], result["seconds"] / found["plain"], result["rows"]))
        if "top" in result:
            same = sum(a == b for a, b in zip(result["top"], exact, strict=True))
            notes.append(
                f"ContextCite and exact removal rank the same passage first in {same} of {len(exact)} prompts. "
                "Leave-one-out is exact removal."
            )
    return rows, notes
