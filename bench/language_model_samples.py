"""The rows of the embedded model's table for answers on the shipped samples, which are never trained on."""

from __future__ import annotations

import json
import random
import re
from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from bench.language_model_row import Row, share
from engine.answer.citations import find_citations
from engine.answer.prompt import build_prompt
from engine.home import ASSETS
from engine.metrics import rouge_l
from engine.models.huggingface import HuggingFaceModel
from engine.settings import Decoding
from engine.types import Passage

SHORT = Decoding(max_new_tokens=60)


def sample_replies(model: HuggingFaceModel, n: int) -> Iterator[tuple[bool, bool]]:
    """(value right, citation right) on the shipped samples, which are never trained on.

    The gold quotation stands among four of other questions. The value is the numbers of the gold answer that the
    quotation holds; questions without one are left out.
    """
    asked = list(sample_questions(n))
    prompts = [build_prompt(question, [passage(text) for text in texts]) for question, texts, _, _ in asked]
    for (_, _, place, values), reply in zip(asked, model.generate_many(prompts, SHORT), strict=True):
        cited = find_citations(reply.text, 5)
        yield all(v in reply.text for v in values), bool(cited) and cited[0].number == place


def sample_questions(n: int) -> Iterator[tuple[str, list[str], int, set[str]]]:
    """(question, quotations, number of the gold one, values) of each sample."""
    rng = random.Random("samples")
    for corpus in ("bench_chemistry", "bank_investigation"):
        path = ASSETS / "corpora" / corpus / "questions.jsonl"
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        quotes = [row["gold"][0]["quote"] for row in rows]
        for row in rows[: n // 2]:
            gold = row["gold"][0]["quote"]
            values = set(re.findall(r"\d[\d.,]*\d|\d", row["answer"])) & set(re.findall(r"\d[\d.,]*\d|\d", gold))
            if not values:
                continue
            texts = [gold, *rng.sample([q for q in quotes if q != gold], 4)]
            rng.shuffle(texts)
            yield row["question"], texts, texts.index(gold) + 1, values


def samples(model: HuggingFaceModel, n: int) -> list[Row]:
    """The shipped samples."""
    found = list(sample_replies(model, n))
    return [
        Row("shipped samples, 5 quotations: value right", share([v for v, _ in found]), len(found), "0.70"),
        Row("shipped samples, 5 quotations: citation right", share([c for _, c in found]), len(found), "0.70"),
    ]


def long_answers(model: HuggingFaceModel) -> list[Row]:
    """ROUGE-L (F) of "explain all the steps" on the chemistry sample by passages needed: the gold quotations alone."""
    path = ASSETS / "corpora" / "bench_chemistry" / "questions.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    scores: dict[int, list[float]] = defaultdict(list)
    for row in rows:
        if row["kind"] == "long":
            quotes = [passage(gold["quote"]) for gold in row["gold"]]
            reply = model.generate(build_prompt(row["question"], quotes), Decoding(max_new_tokens=200))
            scores[row["passages_needed"]].append(rouge_l(row["answer"], reply.text))
    return [
        Row(f"shipped samples, all the steps, {needed} passages needed: ROUGE-L", float(np.mean(found)), len(found))
        for needed, found in sorted(scores.items())
    ]


def passage(text: str) -> Passage:
    """A passage of a bare text."""
    return Passage(id="", document="", title="", ordinal=0, start=0, end=len(text), text=text)
