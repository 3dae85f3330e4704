"""The sample corpora and the case that is open on the first start."""

from __future__ import annotations

import tomllib
import zlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

from engine.core.files import ASSETS
from engine.core.values import Passage, decoded
from engine.models.protocols import Floats

VECTORS = "vectors.safetensors"


@dataclass(frozen=True)
class Sample:
    """A sample corpus: its name in the library, where its documents lie, and questions worth asking first."""

    name: str
    title: str
    folder: Path
    questions: tuple[str, ...]

    @property
    def documents(self) -> list[Path]:
        """The files to ingest."""
        return documents_in(self.folder)

    @property
    def embedded(self) -> tuple[list[str], Floats]:
        """Texts of the first start with the default embedder's vectors, so that nobody waits for them.

        Only the first sample has some (bench/first_vectors.py).
        """
        if not (file := self.folder / VECTORS).is_file():
            return [], np.zeros((0, 0), dtype=np.float32)
        kept = load_file(file)
        return decoded(zlib.decompress(kept["texts"].tobytes()), list[str]), kept["vectors"]


def documents_in(folder: Path) -> list[Path]:
    """The documents of a sample corpus, in order: the files of its documents folder, or one JSONL file."""
    return sorted([*folder.glob("documents/*.md"), *folder.glob("documents.jsonl")])


@cache
def unrelated() -> tuple[Passage, ...]:
    """The texts of the science primer, each a document: unrelated passages for an answer that has no corpus."""
    lines = (ASSETS / "corpora" / "science_primer" / "documents.jsonl").read_text(encoding="utf-8").splitlines()
    found = (decoded(line, dict[str, str]) for line in lines)
    return tuple(Passage(one["_id"], one["_id"], one["title"], 0, 0, len(one["text"]), one["text"]) for one in found)


FIRST_CASE = "sample-acetaminophen"
_READ = tomllib.loads((ASSETS / "corpora" / "samples.toml").read_text(encoding="utf-8"))
SAMPLES = tuple(
    Sample(name, said["title"], ASSETS / "corpora" / name.replace("-", "_"), tuple(said["questions"]))
    for name, said in _READ.items()
)
FIRST_QUESTION = SAMPLES[0].questions[0]
