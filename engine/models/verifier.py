"""The embedded verifier: all-MiniLM-L6-v2 with a trained low-rank adapter, a three-way verdict on claim and evidence.

Verdicts as in ARE (3.3): supportive, editing required, irrelevant (also where the evidence bears out only part). The
weights in assets/models/verifier are trained by `training.verifier` on public data (README.md there says on what
and how well). The calibration (scale and bias of each class) and the thresholds by number of windows were fitted on dev
halves and stand in thresholds.json. A guard beside the network (a logistic layer on counts of differing numbers, names
and negations) was measured and left out: the network reads the same counts as token types.
"""

from __future__ import annotations

import threading
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from engine.errors import ModelNotFound
from engine.home import ASSETS
from engine.home import EMBEDDED as EMBEDDED
from engine.metrics import Entails
from engine.models.alignment import clean
from engine.models.embedder import fast_bfloat16
from engine.models.protocols import Entailment, Floats, Judged
from engine.models.verdicts import EVEN, Precision, Threshold, softmax, verdict_note
from engine.models.windowed import Pairs, WindowedVerifier, in_batches
from engine.types import Value
from engine.value import decoded

FOLDER = ASSETS / "models" / "verifier"
_BATCH = 32


class Calibration(Value, frozen=True):
    """What turns logits into verdicts, as fitted on dev halves: p = softmax(scale * logits + bias), 3 values each."""

    scale: tuple[float, ...] = (1.0, 1.0, 1.0)
    bias: tuple[float, ...] = (0.0, 0.0, 0.0)
    thresholds: tuple[Threshold, ...] = EVEN
    precisions: tuple[Precision, ...] = ()

    def probabilities(self, logits: Floats) -> Floats:
        """Calibrated class probabilities, shape (pairs, 3)."""
        return softmax(logits * np.asarray(self.scale, np.float32) + np.asarray(self.bias, np.float32))


class EmbeddedVerifier(WindowedVerifier):
    """The trained network behind the `Entailment` protocol."""

    def __init__(self, network: Any, tokenizer: Any, calibration: Calibration) -> None:
        """Wrap an `EvidenceNetwork` in eval mode."""
        super().__init__(self._read, EMBEDDED, calibration.thresholds, _BATCH)
        self._network, self._tokenizer, self._lock = network, tokenizer, threading.Lock()
        self._bfloat16 = fast_bfloat16()
        self.calibration = calibration

    def in_other_format(self) -> EmbeddedVerifier:
        """The same network in float32 where this one multiplies bfloat16, and the other way round."""
        other = EmbeddedVerifier(self._network, self._tokenizer, self.calibration)
        other._lock, other._bfloat16 = self._lock, not self._bfloat16
        return other

    def note(self, judged: Judged) -> str:
        """The words that stand beside one of its verdicts (METHODS section 0)."""
        return verdict_note(judged, self.name, self.calibration.precisions)

    def logits(self, pairs: Pairs) -> Floats:
        """The network's logits for pairs whose evidence is one window, shape (pairs, 3)."""
        return in_batches(self._forward, pairs, _BATCH)

    def _read(self, pairs: Pairs) -> Floats:
        return self.calibration.probabilities(self._forward(pairs))

    def _forward(self, pairs: Pairs) -> Floats:
        """Logits of one batch; bfloat16 where the processor has it."""
        import torch

        from engine.models.verifier_network import collate, encode

        batch = collate(encode(self._tokenizer, [(clean(claim), clean(evidence)) for claim, evidence in pairs]))
        with self._lock, torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=self._bfloat16):
            logits: Floats = self._network(**batch).float().numpy()
        return logits


def load_embedded(folder: Path = FOLDER) -> EmbeddedVerifier:
    """The verifier from its shipped folder on the pip-installed base; raise `ModelNotFound` with the way out."""
    from engine.models.verifier_network import load_network

    try:
        calibration = decoded((folder / "thresholds.json").read_bytes(), Calibration)
        network, tokenizer = load_network(folder)
    except (OSError, msgspec.DecodeError, KeyError, RuntimeError) as error:
        raise ModelNotFound(
            f"The embedded verifier in {folder} cannot be read ({error}). Restore assets/models/verifier, "
            "or train it again: python -m training.verifier --data DIR --minutes 90."
        ) from error
    return EmbeddedVerifier(network, tokenizer, calibration)


def entails_by(verifier: Entailment) -> Entails:
    """The verifier as the formulas ask it: (claim, evidence) pairs to probabilities in [0, 1]."""
    return lambda pairs: [float(score) for score in verifier.entailment(pairs)]


@cache
def load_entailment(name: str = EMBEDDED) -> Entailment:
    """Load a verifier once a process: `embedded`, or a hub id or folder of an NLI model."""
    if name == EMBEDDED:
        return load_embedded()
    from engine.models.nli import load_nli

    return load_nli(name)
