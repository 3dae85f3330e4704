"""The user's choices of models and number format, kept as JSON in the data folder.

A damaged file never stops anything: the built-in choice applies and a note says why.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from engine.core.files import EMBEDDED, home, read_json
from engine.core.values import Value

READER = "reader"
FILE = "models.json"
Role = Literal["writes", "scores", "judges"]
DType = Literal["auto", "float32", "bfloat16"]  # auto: float32 on a processor whose memory holds it


class Defaults(Value, frozen=True, forbid_unknown_fields=False):
    """A model's name per role, and the number format of local models; the built-in choices if nothing is given."""

    writes: str = READER
    scores: str = EMBEDDED
    judges: str = ""  # no model judges unless one is named
    dtype: DType = "auto"


def read_defaults() -> tuple[Defaults, str]:
    """The stored defaults, usable or not, and the file's problem; built-in defaults if nothing is stored."""
    so = ", so the built-in ones apply. Choose them again in Settings."
    return read_json(home() / FILE, Defaults, Defaults(), "The default models", so)


def fast_bfloat16() -> bool:
    """Does this processor multiply bfloat16 in hardware: elsewhere it is slower than float32."""
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
    except OSError:
        return False
    return "amx_bf16" in flags or "avx512_bf16" in flags or "bf16" in flags
