"""What the embedded language model reaches, on worlds generated for this table alone: `make bench-models`.

    python -m bench.language_model [--model FOLDER] [--n 500] [--data DIR]

Every figure comes from replies decoded from the weights, or from their log-probabilities; nothing repairs a reply.
Each row says its n. XQuAD (English, CC BY-SA 4.0) is read from DATA where it is there, else the row is left out.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from bench.language_model_jobs import distractors, drafts, jobs, reasoning
from bench.language_model_row import HEAD, Row, share
from bench.language_model_samples import SHORT, long_answers, passage, samples
from engine.answer.citations import find_citations
from engine.answer.prompt import REFUSAL, build_prompt
from engine.attribute.aggregate import passage_attribution
from engine.attribute.input_x_gradient import input_x_gradient
from engine.attribute.occlusion import occlusion
from engine.home import ASSETS
from engine.models.huggingface import HuggingFaceModel
from engine.text import sentences
from engine.train.jobs import answering_prompt
from engine.train.worlds import Asked, Difficulty, Example, answering_example, make_world
from engine.types import Answer, Prompt

DEFAULT = ASSETS / "models" / "language_model"
COUNTS = (1, 5, 10, 15, 20, 30)


@dataclass(frozen=True)
class Reply:
    """A held-out question with what the model wrote."""

    prompt: Prompt
    example: Example
    asked: Asked
    answer: Answer

    @property
    def value_right(self) -> bool:
        """The right value stands in the answer."""
        return self.asked.value.lower() in self.answer.text.lower() and bool(self.asked.value)

    @property
    def citation_right(self) -> bool:
        """The first citation is the passage that holds the value."""
        found = find_citations(self.answer.text, max(self.example.numbers, default=0))
        return bool(found) and found[0].number == self.asked.passage

    @property
    def refused(self) -> bool:
        """The answer is the refusal."""
        return self.answer.text.startswith(REFUSAL)


def held_out(count: int, passages: Callable[[random.Random], int], unanswerable: float, seed: str) -> list[Example]:
    """Examples of worlds that no training seed gives: the seed is a text, training counts from 1."""
    rng = random.Random(f"held out {seed}")
    difficulty = Difficulty(syllables=2, sentences=2, alike=0.5, gaps=0.3, highest=12, unanswerable=unanswerable)
    made: list[Example] = []
    while len(made) < count:
        n = passages(rng)
        example = answering_example(make_world(rng, n, 3, difficulty), n, rng, difficulty, questions=1)
        if not unanswerable or example.asked[0].passage is None:
            made.append(example)
    return made


def replies(model: HuggingFaceModel, examples: Iterable[Example]) -> list[Reply]:
    """Greedy answers."""
    asked = [(example, example.asked[0]) for example in examples]
    prompts = [answering_prompt(one.question, example.passages, example.numbers) for example, one in asked]
    answers = model.generate_many(prompts, SHORT)
    return [Reply(prompt, *one, answer) for prompt, one, answer in zip(prompts, asked, answers, strict=True)]


def answering(model: HuggingFaceModel, n: int) -> tuple[list[Row], list[Reply]]:
    """Value, citation, refusals."""
    given = replies(model, held_out(n, lambda rng: rng.randint(1, 8), 0.0, "answer"))
    without = replies(model, held_out(n, lambda rng: rng.randint(1, 8), 1.0, "refuse"))
    rows = [
        Row("value right (1 to 8 passages)", share([r.value_right for r in given]), len(given), "0.90"),
        Row("citation right (1 to 8 passages)", share([r.citation_right for r in given]), len(given), "0.90"),
        Row("refuses the unanswerable", share([r.refused for r in without]), len(without), "0.85"),
        Row("refuses the answerable", share([r.refused for r in given]), len(given)),
    ]
    return rows, given


def only_holder(reply: Reply) -> int | None:
    """The only passage whose value the answer gives (not only the right value's); None where there is no such one."""
    values = re.findall(r"[\w.,-]*\d[\w.,-]*|[A-Z]\w+", reply.answer.text.split(" [")[0])
    holders = [
        number
        for number, text in zip(reply.example.numbers, reply.example.passages, strict=True)
        if values and all(v.strip(".,") in text for v in values)
    ]
    return holders[0] if len(holders) == 1 and len(reply.example.numbers) > 1 else None


def ranked_first(model: HuggingFaceModel, given: Sequence[Reply], n: int) -> list[Row]:
    """The passage that this answer's value comes from, first by occlusion and by input x gradient."""
    cases = [(r, only_holder(r)) for r in given]
    cases = [(r, holder) for r, holder in cases if holder is not None][:n]
    by_occlusion, by_gradient = [], []
    for reply, holder in cases:
        found = occlusion(model, reply.prompt, reply.answer, floors=False)
        by_occlusion.append(found.sources[int(np.argmax(found.scores[0]))] == (holder,))
        relevance = input_x_gradient(model, reply.prompt, reply.answer)
        sums = passage_attribution(relevance, model.encode(reply.prompt))
        by_gradient.append(sums.sources[int(np.argmax(np.abs(sums.scores[0])))] == (holder,))
    return [
        Row("the value's passage first by occlusion", share(by_occlusion), len(cases), "0.95"),
        Row("the value's passage first by input x gradient", share(by_gradient), len(cases), "0.75"),
    ]


def by_passages(model: HuggingFaceModel, n: int) -> list[Row]:
    """Value and citation by number of passages."""
    rows = []
    for count in COUNTS:
        given = replies(model, held_out(n, lambda _, count=count: count, 0.0, f"{count} passages"))
        both = share([r.value_right and r.citation_right for r in given])
        value = share([r.value_right for r in given])
        rows += [Row(f"value right, {count} passages", value, n), Row(f"value and citation, {count} passages", both, n)]
    return rows


def xquad(model: HuggingFaceModel, data: Path, n: int) -> list[Row]:
    """The sentence with the answer ranked first by occlusion, the gold answer's text teacher-forced."""
    path = data / "xquad_en" / "qa.jsonl"
    if not path.exists():
        print(f"XQuAD is not at {path}: that row is left out.")
        return []
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    random.Random(0).shuffle(rows)
    hits: list[bool] = []
    chance: list[float] = []
    for row in rows:
        texts = [row["passage"][a:b] for a, b in sentences(row["passage"])]
        gold = row["answers"][0]
        holders = [i for i, text in enumerate(texts) if gold in text]
        if len(holders) != 1 or len(texts) < 2:
            continue
        prompt = build_prompt(row["question"], [passage(t) for t in texts])
        found = occlusion(model, prompt, model.encode_answer(gold), floors=False)
        hits.append(int(np.argmax(found.scores[0])) == holders[0])
        chance.append(1 / len(texts))
        if len(hits) == n:
            break
    name = f"XQuAD: the answer's sentence first by occlusion (chance {np.mean(chance):.2f})"
    return [Row(name, share(hits), len(hits), "0.70")]


def speed(model: HuggingFaceModel, folder: Path, given: Sequence[Reply]) -> list[Row]:
    """Load time, tokens written a second, and the occlusion of 8 passages, on one thread."""
    start = time.perf_counter()
    HuggingFaceModel.load(folder)
    load = time.perf_counter() - start
    start = time.perf_counter()
    written = sum(len(model.generate(r.prompt, SHORT).tokens) for r in given[:10])
    rate = written / (time.perf_counter() - start)
    example = held_out(1, lambda _: 8, 0.0, "speed")[0]
    prompt = answering_prompt(example.asked[0].question, example.passages, example.numbers)
    start = time.perf_counter()
    occlusion(model, prompt, model.encode_answer(example.asked[0].sentence), floors=False)
    seconds = time.perf_counter() - start
    return [
        Row("writes, one thread", rate, 10, ">= 50", "tokens/s"),
        Row("occlusion of 8 passages", seconds, 1, "< 2", "s"),
        Row("load", load, 1, "< 3", "s"),
    ]


def table(folder: Path, n: int, data: Path) -> Iterator[Row]:
    """All rows, in the order of the model card."""
    model = HuggingFaceModel.load(folder, dtype="float32")
    rows, given = answering(model, n)
    yield from rows
    yield from ranked_first(model, given, n)
    yield from by_passages(model, max(20, n // 5))
    yield from distractors(model, n)
    yield from jobs(model, n)
    yield from reasoning(model, n)
    yield from drafts(model, n)
    yield from samples(model, n)
    yield from long_answers(model)
    yield from xquad(model, data, n)
    yield from speed(model, folder, given)


def main() -> None:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=DEFAULT)
    parser.add_argument("--n", type=int, default=500)
    parser.add_argument("--data", type=Path, default=Path("data"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    if not (options.model / "model.safetensors").exists():
        print(f"No weights at {options.model}: the language model's table is left out.")
        return
    print(HEAD)
    for row in table(options.model, options.n, options.data):
        print(row.text(), flush=True)


if __name__ == "__main__":
    main()
