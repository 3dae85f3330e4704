"""Rank passages by forms of a gradient row: python -m bench.token_maps --out FOLDER [--data FOLDER] [--write].

Each case has four passages of about 50 words, one of which answers. The figure is how often each form of a row ranks
that one first. Planted: towns with the same sentence about each, and a question about one. XQuAD (`--data`, not in the
repository): the gold paragraph cut down, with the nearest others by BM25 and its short answer. Each case is one line in
the folder, so a restarted run resumes. `--abpc N` measures ABPC on the first N planted cases.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import binomtest

from bench.results import arguments, conditions, publish, read_lines, table
from engine.answer.citations import annotate
from engine.answer.prompt import build_prompt
from engine.core.progress import last
from engine.core.settings import Faithfulness
from engine.core.text import counted, sentences
from engine.core.values import Answer, AuditRecord, Prompt
from engine.methods import registry
from engine.methods.faithfulness import Deletion, removable, token_ranking
from engine.methods.input_x_gradient import Target, answer_logits, embed, inputs_of, target_values
from engine.methods.integrated_gradients import integrated_gradients
from engine.methods.occlusion import occlusion
from engine.methods.spans import content_mask
from engine.models.huggingface import HuggingFaceModel
from engine.models.registry import load_writer
from engine.retrieve.bm25 import Postings

PASSAGES = 4


class Asked(NamedTuple):
    """A question, its passages, an answer, and the number of the passage that it comes from."""

    id: str
    question: str
    passages: tuple[str, ...]
    answer: str
    gold: int


TOWNS = re.findall(
    r"\w+",
    "Arvel Bexhill Corwen Dunsby Elmore Fenwick Garlow Hexley Ilston Jarrow Kelby Lunden Marwick Norby Orston Pelham",
)
NAMES = re.findall(
    r"\w+ \w+",
    "Ada Brandt, Boris Keane, Clara Oduya, Dmitri Vance, Elsa Marquez, Farid Holt, Greta Lind, Hugo Tanaka, "
    "Jonas Petrov",
)
YEARS = [str(year) for year in range(1841, 1979)]
FACTS = (
    ("Who is the harbour master of {0}?", "The harbour master of {0} is {1}.", NAMES),
    ("In which year was the {0} bridge opened?", "The {0} bridge was opened in {1}.", YEARS),
    (
        "What does the {0} mill produce?",
        "The {0} mill produces {1}.",
        ["linen", "paper", "glass", "wire", "soap", "rope"],
    ),
    ("How many boats does the {0} ferry own?", "The {0} ferry owns {1} boats.", [str(n) for n in range(3, 60)]),
    ("Who designed the town hall of {0}?", "The town hall of {0} was designed by {1}.", NAMES),
    ("What is taught at the {0} school?", "The {0} school teaches {1}.", ["weaving", "botany", "masonry", "music"]),
)
AROUND = (
    "The road from the station follows the river for two miles before it reaches the square.",
    "A market is held on Thursdays, and most of the traders come from the valley.",
    "Heavy rain closed the lower street twice last winter, and sand bags are kept in the chapel.",
    "Visitors usually stay at the inn behind the church, which has eleven rooms.",
    "The council meets on the first Monday of each month and publishes its minutes.",
    "Two bus lines stop near the library, and a third runs in summer only.",
)


def planted(count: int, seed: int = 1) -> Iterator[Asked]:
    """Passages of about 50 words that differ in the town, the value and the text around it."""
    rng = random.Random(seed)
    for index in range(count):
        question, sentence, values = FACTS[index % len(FACTS)]
        towns, drawn = rng.sample(TOWNS, PASSAGES), rng.sample(values, PASSAGES)
        texts = []
        for town, value in zip(towns, drawn, strict=True):
            parts = rng.sample(AROUND, 3)
            parts.insert(rng.randrange(3), sentence.format(town, value))
            texts.append(" ".join(parts))
        gold = rng.randrange(PASSAGES)
        answer = sentence.format(towns[gold], drawn[gold])
        yield Asked(f"planted {index}", question.format(towns[gold]), tuple(texts), answer, gold + 1)


def xquad(folder: Path, count: int, seed: int = 1) -> Iterator[Asked]:
    """One question per paragraph; the other passages do not hold the answer."""
    rows = read_lines(folder / "qa.jsonl")
    rng = random.Random(seed)
    rng.shuffle(rows)
    texts = {row["doc_id"]: row["passage"] for row in rows}
    index, ids, seen = Postings.of(list(texts.values())), list(texts), set()
    for row in rows:
        answer, own = row["answers"][0], row["doc_id"]
        if own in seen or len(seen) == count:
            continue
        seen.add(own)
        order = np.argsort(-np.asarray(index.scores(row["question"])), kind="stable")
        nearest = [texts[ids[i]] for i in order if ids[i] != own]
        others = [cut(text, 0) for text in [t for t in nearest if answer.lower() not in t.lower()][: PASSAGES - 1]]
        gold = rng.randrange(PASSAGES)
        others.insert(gold, cut(row["passage"], row["answer_start"][0]))
        yield Asked(f"xquad {len(seen)}", row["question"], tuple(others), answer, gold + 1)


def cut(text: str, place: int, words: int = 40) -> str:
    """Whole sentences around the one at `place`, until there are `words` words."""
    spans = list(sentences(text))
    first = last = max((i for i, (start, _) in enumerate(spans) if start <= place), default=0)
    while len(text[spans[first][0] : spans[last][1]].split()) < words and (first or last + 1 < len(spans)):
        first, last = (first, last + 1) if last + 1 < len(spans) else (first - 1, last)
    return text[spans[first][0] : spans[last][1]]


def subject(model: HuggingFaceModel, case: Asked) -> tuple[Prompt, Answer]:
    record = AuditRecord(question=case.question, passages=case.passages, answer=case.answer)
    prompt = build_prompt(case.question, record.as_passages())
    return prompt, annotate(model.encode_answer(case.answer), len(case.passages))


# A form of a row: a value per input from embedding e and gradient g, (inputs, width); then one per passage.
VALUES = {
    "input x gradient": lambda e, g: (e * g).sum(1),
    "L1 norm of input x gradient": lambda e, g: np.abs(e * g).sum(1),
    "L2 norm of input x gradient": lambda e, g: np.linalg.norm(e * g, axis=1),
    "gradient norm": lambda e, g: np.linalg.norm(g, axis=1),
}
SUMS = {
    "signed sum": lambda r: r.sum(),
    "sum of sizes": lambda r: np.abs(r).sum(),
    "mean of sizes": lambda r: np.abs(r).mean(),
    "largest size": lambda r: np.abs(r).max(),
    "root of the sum of squares": lambda r: np.linalg.norm(r),
}
TARGETS: tuple[Target, ...] = ("logit", "log_probability")


def measure(model: HuggingFaceModel, case: Asked) -> dict[str, Any]:
    """The passage that each form, and occlusion, ranks first."""
    import torch

    prompt, answer = subject(model, case)
    coded, inputs = model.encode(prompt), inputs_of(model, prompt, answer)
    places = [coded.passage_span(number) for number in range(1, len(case.passages) + 1)]
    words = [_word_positions(model, coded.ids, span) for span in places]
    explained = torch.as_tensor(np.flatnonzero(content_mask(answer)))
    first: dict[str, int] = {}
    with model.hold() as module:
        embeddings = embed(module, inputs.row).requires_grad_(True)
        with torch.enable_grad():
            logits = answer_logits(module, embeddings, inputs)[0]
            totals = [target_values(logits, inputs.answer, target)[explained].sum() for target in TARGETS]
        for target, total in zip(TARGETS, totals, strict=True):
            (gradient,) = torch.autograd.grad(total, embeddings, retain_graph=target != TARGETS[-1])
            e, g = (t.detach().double().numpy()[0] for t in (embeddings, gradient))
            for value, form in VALUES.items():
                row = form(e, g)
                for name, total_of in SUMS.items():
                    if value != "input x gradient" and name == "signed sum":
                        continue
                    first[f"{target} | {value} | {name}"] = _best([total_of(row[a:b]) for a, b in places])
                    if target == "logit" and value in ("input x gradient", "gradient norm"):
                        kept = [total_of(row[positions]) for positions in words]
                        first[f"{target}, words only | {value} | {name}"] = _best(kept)
    integrated = np.asarray(integrated_gradients(model, prompt, answer).by_span[0])
    for name, total_of in SUMS.items():
        first[f"logit | integrated gradients | {name}"] = _best([total_of(integrated[a:b]) for a, b in places])
    first["occlusion"] = _best(occlusion(model, prompt, answer, floors=False).scores[0])
    return {"id": case.id, "gold": case.gold, "first": first}


def _best(scores: Sequence[float]) -> int:
    return int(np.argmax(scores)) + 1


def _word_positions(model: HuggingFaceModel, ids: Sequence[int], span: tuple[int, int]) -> list[int]:
    """Positions of tokens with a letter or digit, in words of four letters or more or with a digit."""
    texts = {i: model.decode([ids[i]]).strip() for i in range(*span)}
    return [i for i, text in texts.items() if len(text) > 3 or any(c.isdigit() for c in text)] or list(range(*span))


RANKINGS = ("input x gradient", "gradient norm", "value-weighted attention")
STEPS, RANDOM = 5, 3  # of a curve; random rankings of a case


def abpc(model: HuggingFaceModel, case: Asked) -> dict[str, Any]:
    """ABPC of the methods' rankings of tokens, and the mean of random ones."""
    prompt, answer = subject(model, case)
    coded, ids, explained = model.encode(prompt), [token.id for token in answer.tokens], content_mask(answer)
    orders = {}
    for name in RANKINGS:
        explain = registry.method(name).explain
        assert explain is not None
        orders[name] = token_ranking(explain(model, prompt, answer).by_span[0], removable(coded))
    deletion = Deletion(model, coded, ids, explained)
    found = deletion.curves(orders, STEPS)
    chance = last(deletion.random_abpcs(Faithfulness(steps=STEPS, rankings=RANDOM)))
    return {"id": case.id, **{name: curve.abpc for name, curve in found.items()}, "random": chance.mean}


def kept(file: Path) -> dict[str, dict[str, Any]]:
    """The stored lines by id."""
    return {row["id"]: row for row in read_lines(file)} if file.exists() else {}


def add(file: Path, row: dict[str, Any]) -> None:
    with file.open("a", encoding="utf-8") as out:
        out.write(json.dumps(row) + "\n")


def tabulated(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """One line per form: share of cases with the answering passage first, per set with interval and n."""
    sets = {kind: [row for row in rows if row["id"].startswith(kind)] for kind in ("planted", "xquad")}
    sets = {kind: own for kind, own in sets.items() if own}
    heads, lines = "".join(f" | {kind}, n = {len(own)}" for kind, own in sets.items()), []
    for form in rows[0]["first"]:
        cells = " | ".join(form.split(" | ") if " | " in form else ("log-probability", form, "drop without it"))
        for own in sets.values():
            hits = sum(row["first"][form] == row["gold"] for row in own)
            low, high = binomtest(hits, len(own)).proportion_ci(method="wilson")
            cells += f" | {hits / len(own):.2f} ({low:.2f} to {high:.2f})"
        lines.append(cells)
    return table(f"target | value of a token | passage{heads}", lines, " --- ")


TOLD = (
    "Share of cases where the answering passage is first (95% interval), out of four passages of about 50 words. "
    "Words only: tokens of more than three letters or with a digit. The registered method gradient norm sums the "
    "squares; the root of the sum gives the same ranking. Integrated gradients: 32 steps from a zero baseline."
)


def figures(first: Iterable[dict[str, Any]], curves_of: Iterable[dict[str, Any]]) -> Iterator[str]:
    """The lines of the section of bench/RESULTS.md."""
    yield from tabulated(list(first))
    if measured := list(curves_of):
        names = (*RANKINGS, "random")
        means = ", ".join(f"{name} {np.mean([row[name] for row in measured]):+.3f}" for name in names)
        beats = sum(row["gradient norm"] > row["input x gradient"] for row in measured)
        yield (
            f"\nABPC of the tokens' rankings, mean over {counted(len(measured), 'planted case')}, {STEPS} steps,"
            f" {RANDOM} random rankings each: {means}. Gradient norm is above input x gradient in {beats} of"
            f" {len(measured)}."
        )


def main() -> None:
    asked = arguments(
        __doc__,
        out=(Path, "FOLDER: a line per case"),
        data={"type": Path, "help": "the folder of XQuAD in the layout of qa.jsonl"},
        cases=(50, "of each kind, at most"),
        abpc=(0, "planted cases on which ABPC is measured"),
        dtype=("auto", "the model's number format"),
    )
    asked.out.mkdir(parents=True, exist_ok=True)
    model: Any = load_writer("embedded", asked.dtype)
    first, curves_of = asked.out / "first.jsonl", asked.out / "abpc.jsonl"
    for case in chain(planted(asked.cases), xquad(asked.data, asked.cases) if asked.data else ()):
        if case.id not in kept(first):
            add(first, measure(model, case))
    for case in planted(asked.abpc):
        if case.id not in kept(curves_of):
            add(curves_of, abpc(model, case))
    told = f"{conditions(model=f'embedded, {model.dtype}')}\n\n{TOLD}"
    lines = figures(kept(first).values(), kept(curves_of).values())
    publish(asked, "token maps", "Ranking passages by a gradient row", told, lines)


if __name__ == "__main__":
    main()
