"""Openly licensed sentences for copying and matching: a question, some passages, the sentence that it is about.

Reads the public sets named in assets/models/language_model/README.md from a folder; nothing of them is kept in
the project. A tenth of the documents is held out by the hash of the title. XQuAD is never read here: it measures.
"""

from __future__ import annotations

import json
import random
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.text import STOP_WORDS
from engine.train.worlds import Asked, Difficulty, Example, citation_numbers

END = re.compile(r"(?<=[a-z0-9)\"'%][.!?]) +(?=[A-Z\"'])")
BRACKETS = {" -LRB- ": " (", " -RRB-": ")", "-LRB-": "(", "-RRB-": ")", "``": '"', "''": '"'}
SPACES = re.compile(r"\s+([,.;:!?%)]|'s\b)")
CONTENT = re.compile(r"[A-Za-z0-9][\w'-]*")
ASKS = ("What is said about {}?", "{}", "What is known about {}?", "{}?", "What do the passages say on {}?")


@dataclass(frozen=True)
class RealQuestion:
    """A question with the sentence that answers it and, where known, the short answer and the sentences around it."""

    question: str
    sentence: str
    short: str = ""
    around: tuple[str, ...] = ()


@dataclass(frozen=True)
class RealText:
    """Sentences by document, and questions on some of them."""

    documents: tuple[tuple[str, ...], ...]
    questions: tuple[RealQuestion, ...]


def tidy(text: str) -> str:
    """Undo treebank brackets, quotes and spaces before punctuation."""
    for old, new in BRACKETS.items():
        text = text.replace(old, new)
    return " ".join(SPACES.sub(r"\1", text).replace("( ", "(").split())


def cut(text: str) -> tuple[str, ...]:
    """Sentences of 5 to 40 words; a rough cut is enough for training."""
    return tuple(s for s in END.split(tidy(text)) if 5 <= len(s.split()) <= 40)


def held_out(title: str) -> bool:
    """True for the tenth of the documents that only measures."""
    return zlib.crc32(title.encode()) % 10 == 0


def rows(path: Path) -> Iterator[dict[str, str]]:
    """The records of a JSONL file; none where it is absent."""
    if path.exists():
        with path.open(encoding="utf-8") as lines:
            yield from (json.loads(line) for line in lines)


def load_real_text(folder: Path) -> RealText:
    """Read nq_gold_passage, clapnq and vitaminc below `folder`, held-out documents left out."""
    documents: list[tuple[str, ...]] = []
    questions: list[RealQuestion] = []
    for name in ("nq_gold_passage", "clapnq"):
        for row in rows(folder / name / "corpus.jsonl"):
            if not held_out(row["title"]):
                documents.append(cut(row["text"]))
    for row in rows(folder / "nq_gold_passage" / "qa.jsonl"):
        if not held_out(row["title"]):
            questions += list(located(row["question"], row["passage"], row["answers"]))
    for row in rows(folder / "vitaminc" / "train.jsonl"):
        evidence = tidy(row["evidence"])
        if row["label"] == "supportive" and not held_out(row["page"]) and 5 <= len(evidence.split()) <= 40:
            questions.append(RealQuestion(tidy(row["claim"]), evidence))
    return RealText(tuple(d for d in documents if d), tuple(questions))


def located(question: str, passage: str, answers: str | list[str]) -> Iterator[RealQuestion]:
    """The question with the first sentence that holds an answer."""
    for answer in answers:
        for sentence in cut(passage):
            if tidy(answer) in sentence:
                yield RealQuestion(question, sentence, tidy(answer), cut(passage))
                return


def cloze(sentence: str, rng: random.Random) -> str:
    """A question made of some content words of the sentence, in their order."""
    words = [w for w in CONTENT.findall(sentence) if w.lower() not in STOP_WORDS]
    if not words:
        return sentence
    count = max(1, min(len(words), rng.randint(2, 6)))
    kept = sorted(rng.sample(range(len(words)), count))
    return rng.choice(ASKS).format(" ".join(words[i] for i in kept))


def neighbours(text: RealText, rng: random.Random, sentences: int) -> str:
    """A passage of 1 to `sentences` consecutive sentences of any document."""
    document = rng.choice(text.documents)
    start = rng.randrange(len(document))
    return " ".join(document[start : start + rng.randint(1, sentences)])


def passage_with(known: RealQuestion, rng: random.Random, sentences: int) -> str:
    """The question's sentence among its neighbours, `sentences` in all at most; alone where none are known."""
    if known.sentence not in known.around:
        return known.sentence
    place = known.around.index(known.sentence)
    start = max(0, place - rng.randrange(sentences))
    return " ".join(known.around[start : max(place + 1, start + rng.randint(1, sentences))])


def real_example(text: RealText, passages: int, rng: random.Random, sentences: int = 2, short: float = 0.0) -> Example:
    """A question and its sentence among other passages, most often of the same document."""
    if text.questions and rng.random() < 0.4:
        chosen = rng.choice(text.questions)
        target = passage_with(chosen, rng, sentences)
        others = [neighbours(text, rng, sentences) for _ in range(passages - 1)]
    else:
        document = rng.choice(text.documents)
        sentence = rng.choice(document)
        chosen = RealQuestion(cloze(sentence, rng), sentence, around=document)
        target = passage_with(chosen, rng, sentences)
        rest = [s for s in document if s not in target]
        rng.shuffle(rest)
        others = rest[: passages - 1]
        others += [neighbours(text, rng, sentences) for _ in range(passages - 1 - len(others))]
    texts = [target, *others]
    rng.shuffle(texts)
    numbers = citation_numbers(len(texts), rng, Difficulty())
    answer = chosen.short if chosen.short and rng.random() < short else chosen.sentence
    asked = Asked(chosen.question, answer, chosen.short or chosen.sentence, numbers[texts.index(target)])
    return Example(tuple(texts), numbers, (asked,))
