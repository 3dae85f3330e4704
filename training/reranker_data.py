"""Questions with their gold passage and hard negatives, for a re-ranker: nq_gold_passage and clapnq.

A quarter of the passages (by hash of their id) and the questions on them are held out: they are never a positive nor a
negative of training. Hard negatives are what the embedder and BM25 together rank highest; a passage that holds a gold
short answer is none.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np

from engine.core.text import titled
from engine.models.alignment import clean
from engine.models.protocols import Embedder, Floats
from engine.models.verdicts import windows
from engine.retrieve.bm25 import Bm25
from engine.retrieve.search import best_rows, fuse
from training.verifier_data import read

SETS = ("nq_gold_passage", "clapnq")
WINDOW = 110  # words of a passage that are read at a time
HARD = 24  # passages from which negatives are drawn


@dataclass(frozen=True)
class Ask:
    """A question, the place of its gold passage, and the strings that a passage answering it holds (may be none)."""

    text: str
    gold: int
    answers: tuple[str, ...]


@dataclass(frozen=True)
class Ranking:
    """A search set: passages as (id, title, text) and the questions that have a gold one."""

    name: str
    passages: tuple[tuple[str, str, str], ...]
    questions: tuple[Ask, ...]

    def held_out(self, place: int) -> bool:
        """Is the passage one of the held-out quarter."""
        return zlib.crc32(self.passages[place][0].encode()) % 4 == 0

    def texts(self) -> list[str]:
        """The passages as they are embedded and indexed, title first."""
        return [titled(title, text) for _, title, text in self.passages]


def load_set(folder: Path, name: str) -> Ranking:
    """A search set of the folder; raise `FileError` where it is absent."""
    rows = read(folder, f"{name}/corpus.jsonl")
    places = {row["_id"]: place for place, row in enumerate(rows)}
    answers = {row["id"]: _short(row) for row in read(folder, f"{name}/qa.jsonl")}
    texts = {row["_id"]: row["text"] for row in read(folder, f"{name}/queries.jsonl")}
    labelled = (folder / name / "qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]
    pairs = [line.split("\t")[:2] for line in labelled]
    asked = [Ask(clean(texts[q]), places[d], answers.get(q, ())) for q, d in pairs if q in texts and d in places]
    passages = [(row["_id"], row["title"].replace("_", " "), clean(row["text"])) for row in rows]
    return Ranking(name, tuple(passages), tuple(asked))


def _short(row: dict[str, object]) -> tuple[str, ...]:
    """Short answers in lower case; a long written answer says nothing about other passages."""
    found = row.get("answers")
    return tuple(a.lower() for a in found if len(a.split()) <= 6) if isinstance(found, list) else ()


def first_stage(data: Ranking, questions: list[Ask], embedder: Embedder) -> Floats:
    """Hybrid scores of every passage for every question, shape (questions, passages)."""
    texts = data.texts()
    lexical = Bm25.of(texts)
    dense = embedder.embed([ask.text for ask in questions]) @ embedder.embed(texts).T
    return np.stack([fuse(row, lexical.scores(ask.text)) for row, ask in zip(dense, questions, strict=True)])


def hard_negatives(data: Ranking, questions: list[Ask], scores: Floats) -> list[list[int]]:
    """For each question the `HARD` best-ranked training passages that are not its own and hold no answer of it."""
    found = []
    for ask, row in zip(questions, scores, strict=True):
        ranked = best_rows(row, 3 * HARD)
        fit = [int(p) for p in ranked if p != ask.gold and not data.held_out(int(p))]
        found.append([p for p in fit if not _answers(data, p, ask)][:HARD])
    return found


def _answers(data: Ranking, place: int, ask: Ask) -> bool:
    text = data.passages[place][2].lower()
    return any(answer in text for answer in ask.answers)


Group = tuple[str, tuple[str, ...]]


def groups(sets: list[tuple[Ranking, list[Ask], list[list[int]]]], rng: Random, negatives: int = 3) -> Iterator[Group]:
    """Endless (question, texts) groups, the gold text first; sets in proportion to the square root of their size."""
    weights = [len(questions) ** 0.5 for _, questions, _ in sets]
    while True:
        data, questions, hard = rng.choices(sets, weights)[0]
        i = rng.randrange(len(questions))
        if len(hard[i]) < negatives:
            continue
        others = [_window(data, p, (), rng) for p in rng.sample(hard[i], negatives)]
        yield questions[i].text, (_window(data, questions[i].gold, questions[i].answers, rng), *others)


def _window(data: Ranking, place: int, answers: tuple[str, ...], rng: Random) -> str:
    """A window of the passage under its title, one with an answer where there is one."""
    _, title, text = data.passages[place]
    parts = [text[a:b] for a, b in windows(text, WINDOW)]
    holding = [part for part in parts if any(answer in part.lower() for answer in answers)]
    return titled(title, rng.choice(holding or parts))
