"""The vectors of what the first start embeds: python -m bench.first_vectors.

Run it again when the first sample corpus, its chunking or the embedder changes; a test compares them.
"""

from __future__ import annotations

import json
import os
import tempfile
import zlib

import numpy as np
from safetensors.numpy import save_file

from engine.corpus.samples import SAMPLES, VECTORS
from engine.models.embedder import DEFAULT, SentenceEmbedder, load_embedder
from engine.workbench import Workbench


def main() -> None:
    """Make the first start in an empty data folder, and keep what the embedder was asked."""
    file = SAMPLES[0].folder / VECTORS
    file.unlink(missing_ok=True)
    embedder = load_embedder(DEFAULT)
    assert isinstance(embedder, SentenceEmbedder)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["GROUNDWORK_HOME"] = folder
        Workbench().prepare_first()
    texts = embedder.remembered
    packed = np.frombuffer(zlib.compress(json.dumps([*texts]).encode(), 9), np.uint8)
    save_file({"texts": packed, "vectors": np.stack([*texts.values()])}, file)
    print(f"{len(texts)} texts, {file.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
