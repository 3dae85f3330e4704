"""The sample corpora and the case that is open on the first start."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.core.files import ASSETS


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


def documents_in(folder: Path) -> list[Path]:
    """The documents of a sample corpus, in order: the files of its documents folder, or one JSONL file."""
    return sorted([*folder.glob("documents/*.md"), *folder.glob("documents.jsonl")])


FIRST_CASE = "sample-acetaminophen"
FIRST_QUESTION = "How is the crude product of the acetaminophen experiment recrystallized?"
SAMPLES = (
    Sample(
        name="bench-chemistry",
        title="Bench chemistry",
        folder=ASSETS / "corpora" / "bench_chemistry",
        questions=(
            FIRST_QUESTION,
            "Explain all the steps of isolating caffeine from tea.",
            "What is done with the waste of the luminol synthesis?",
        ),
    ),
    Sample(
        name="bank-investigation",
        title="A bank investigation",
        folder=ASSETS / "corpora" / "bank_investigation",
        questions=(
            "Who owns the company that the payments went to?",
            "Why was the first alert closed, and why was it opened again?",
        ),
    ),
    Sample(
        name="science-primer",
        title="Science primer",
        folder=ASSETS / "corpora" / "science_primer",
        questions=("What does Ohm's law say about current and voltage?", "Why does ice float on water?"),
    ),
)
