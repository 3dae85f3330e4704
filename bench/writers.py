"""Measure each writer on real questions: python -m bench.writers --data DIR [--models NAMES] [--n 200] [--write].

Held-out questions, greedy decoding. XQuAD over its whole corpus with the default retrieval: whether the answer
contains the gold string and cites the gold paragraph. The same with one to three paragraphs given. Refusals: the same
questions with and without the gold paragraph, and held-out NQ; a threshold is chosen on half of each. Each job on
held-out text: whether the reply is parsed and correct; a closed question also after a reason, jobs of ARE also after
worked examples. Replies are written in batches of 16, in which a near tie between two tokens can fall otherwise than
alone.
"""

from __future__ import annotations

import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binomtest
from sklearn.metrics import roc_auc_score

from bench.by_model import replies
from bench.results import DATA, arguments, conditions, publish, read_lines, table
from engine.answer.citations import annotate
from engine.answer.context import find_context
from engine.answer.prompt import build_prompt
from engine.answer.quoting_reader import best_sentences
from engine.answer.write import OPTIONS, answered, quoting
from engine.core.settings import REFUSE, Prompting, Reader, Retrieval, Verification
from engine.core.values import Answer, Passage, Prompt
from engine.corpus.collection import Collection
from engine.methods.are.decompose import parse_clauses, parse_facts
from engine.methods.are.edit import parse_edit
from engine.methods.raise_.steps import parse
from engine.methods.raise_.values import parse_choice
from engine.models.closed import after, by_likelihood, closed
from engine.models.embedder import load_embedder
from engine.models.registry import load_writer
from engine.models.replies import lines as lines_of
from engine.models.reranker import load_reranker
from engine.prompts import with_examples
from training.adapter_data import load_sources
from training.adapter_jobs import JOBS, LEVELS, VERDICTS, Example, answer

MOST, REASON = 160, 60  # tokens of a reply, of a reason
WHOLE = 6  # sentences that the check before an answer gets where the writer gets whole passages


@dataclass(frozen=True)
class Asked:
    """A question with its gold strings and paragraph, and the passages that a writer is given."""

    question: str
    gold: tuple[str, ...]
    document: str
    passages: tuple[Passage, ...]


@dataclass(frozen=True)
class Row:
    """A count out of n for a writer."""

    writer: str
    what: str
    good: int
    n: int
    seconds: float

    @property
    def text(self) -> str:
        low, high = binomtest(self.good, self.n).proportion_ci(method="wilson")
        share = f"{self.good / self.n:.2f} ({low:.2f} to {high:.2f})"
        return f"{self.writer} | {self.what} | {share} | {self.n} | {self.seconds / self.n:.1f}"


def contains(answer: Answer, asked: Asked) -> bool:
    """Whether the answer contains a gold string, in any case."""
    return any(gold.casefold() in answer.text.casefold() for gold in asked.gold)


def cites(answer: Answer, asked: Asked) -> bool:
    """Whether the gold paragraph is cited."""
    return any(c.valid and asked.passages[c.number - 1].document == asked.document for c in answer.citations)


def over_corpus(data: Path, n: int) -> Iterator[Asked]:
    """XQuAD questions with what the default retrieval finds."""
    folder = data / "xquad_en"
    collection = Collection.create("xquad", load_embedder())
    collection.ingest([folder / "corpus.jsonl"])
    for row in drawn(folder, n):
        found = find_context(row["question"], collection, load_reranker(), Retrieval())
        yield Asked(row["question"], tuple(row["answers"]), row["doc_id"], found.passages)


def given(data: Path, n: int) -> Iterator[Asked]:
    """XQuAD questions with their paragraph among up to two others, in random order."""
    rows, rng = drawn(data / "xquad_en", n), random.Random(7)
    for row in rows:
        others = rng.sample([r for r in rows if r["doc_id"] != row["doc_id"]], rng.randint(0, 2))
        paragraphs = rng.sample([row, *others], 1 + len(others))
        passages = tuple(paragraph(r) for r in paragraphs)
        yield Asked(row["question"], tuple(row["answers"]), row["doc_id"], passages)


def paragraph(row: dict) -> Passage:
    text = row["passage"]
    return Passage(id=row["doc_id"], document=row["doc_id"], title="", ordinal=0, start=0, end=len(text), text=text)


def drawn(folder: Path, n: int) -> list[dict]:
    """`n` questions, drawn with a fixed seed."""
    return random.Random(1337).sample(read_lines(folder / "qa.jsonl"), n)


def shortened(asked: Asked, sentences: int) -> Asked:
    """The sentences that a small writer gets instead of whole passages."""
    if not sentences:
        return asked
    return replace(asked, passages=best_sentences(asked.question, asked.passages, load_embedder(), sentences))


def loaded(name: str, dtype: str) -> Any:
    """A local model that writes with torch; None for the quoting reader."""
    return None if name == "reader" else load_writer(name, dtype, "cpu")


def answers(model: Any, asked: Sequence[Asked]) -> list[Answer]:
    """The model's answers with their citations, or the quoting reader's."""
    if model is None:
        quote = quoting(load_embedder(), Reader())
        return [quote(one.question, one.passages).answer for one in asked]
    prompts = [build_prompt(one.question, one.passages, Prompting()) for one in asked]
    written = [model.encode_answer(text) for text in replies(model, prompts, MOST)]
    return [annotate(answer, len(one.passages)) for answer, one in zip(written, asked, strict=True)]


def asked_rows(
    model: Any, name: str, what: str, asked: Sequence[Asked], tests: dict[str, Callable[[Answer, Asked], bool]]
) -> list[Row]:
    """The rows of one writer on some questions."""
    start = time.perf_counter()
    found = list(zip(answers(model, asked), asked, strict=True))
    seconds = time.perf_counter() - start
    return [
        Row(name, f"{what}: {test}", sum(holds(answer, one) for answer, one in found), len(asked), seconds)
        for test, holds in tests.items()
    ]


def rows(data: Path, names: Sequence[str], n: int, sentences: int | None, of_job: int, dtype: str) -> Iterator[Row]:
    """Every figure of every writer."""
    corpus, paragraphs = list(over_corpus(data, n)), list(given(data, n))
    for name in names:
        model, most = loaded(name, dtype), Retrieval(sentences=sentences).sentences_for(name)
        tests = {"contains the gold string": contains, "cites the gold paragraph": cites}
        yield from asked_rows(model, name, "XQuAD, corpus", [shortened(a, most) for a in corpus], tests)
        yield from asked_rows(model, name, "XQuAD, 1 to 3 paragraphs", [shortened(a, most) for a in paragraphs], tests)
        if of_job and name != "reader":
            yield from doubts(data, model, name, n, corpus, most or WHOLE)
            yield from jobs(data, model, name, of_job)


Doubted = tuple[str, Sequence[Passage], bool]  # a question, its passages, whether they answer it


def natural_doubts(data: Path, n: int, most: int) -> Iterator[Doubted]:
    """`n` held-out questions with the best sentences, half of them without the passage that answers."""
    sources, rng = load_sources(data, held_out=True), random.Random(3)
    asked = [q for q in sources.questions if q.short]
    for number in range(n):
        question, answered = rng.choice(asked), number % 2 == 0
        yield question.text, sources.context(question, rng, most, answered=answered), answered


def corpus_doubts(asked: Sequence[Asked], most: int) -> Iterator[Doubted]:
    """Each question with the best sentences of what the corpus gave, and again without the gold paragraph."""
    for one in asked:
        without = replace(one, passages=tuple(p for p in one.passages if p.document != one.document))
        if 0 < len(without.passages) < len(one.passages):
            yield one.question, shortened(one, most).passages, True
            yield one.question, shortened(without, most).passages, False


def doubts(data: Path, model: Any, name: str, n: int, corpus: Sequence[Asked], most: int) -> Iterator[Row]:
    """How often the check before an answer (`prompting.refuse_under`) refuses, by whether the passages answer.

    At the embedded model's threshold over all, and in the second half under the probability that a twentieth of the
    first half's answerable questions lie under.
    """
    for what, asked in (("held-out NQ", natural_doubts(data, n, most)), ("XQuAD, corpus", corpus_doubts(corpus, most))):
        start, likely = time.perf_counter(), {True: [], False: []}
        for question, context, answers in asked:
            likely[answers].append(answered(model, load_embedder(), question, context))
        seconds = (time.perf_counter() - start) / 2
        gold = [1] * len(likely[True]) + [0] * len(likely[False])
        auroc = roc_auc_score(gold, likely[True] + likely[False])
        under = float(np.quantile(likely[True][::2], 0.05))
        for (threshold, begin, step), answers in product(((REFUSE, 0, 1), (under, 1, 2)), likely):
            told = "answer" if answers else f"do not answer (AUROC {auroc:.3f})"
            held = likely[answers][begin::step]
            refused = sum(value < threshold for value in held)
            yield Row(name, f"{what}, passages {told}: refused under {threshold:.2f}", refused, len(held), seconds)


def parsed(example: Example, reply: str) -> tuple[bool, bool]:
    """(parsed, correct) for the reply of an open job; free text counts as parsed if it is not empty."""
    if example.job == "final_answer":
        letters = example.prompt.text.count("\n(")
        found, gold = (parse_choice(text, [""] * letters) for text in (reply, example.reply))
        return (found is not None or not letters), found == gold
    if example.job == "edit":
        fact = example.prompt.text.partition("Fact: ")[2].partition("\nEvidence:")[0]
        edit = parse_edit(reply, fact)
        return edit is not None, edit is not None and edit[1] == example.reply.splitlines()[-1]
    if example.job == "sub_questions":
        found, gold = parse(reply)[0], parse(example.reply)[0]
        return bool(found), [q.question for q in found] == [q.question for q in gold]
    if example.job == "clauses":
        text = example.prompt.text.partition("Text: ")[2].removesuffix("\nClauses:")
        return parse_clauses(reply, text) is not None, reply.strip() == example.reply
    if example.job == "facts":
        clause = example.prompt.text.partition("Clause: ")[2].removesuffix("\nFacts:")
        return parse_facts(reply, clause) is not None, reply.strip() == example.reply
    if example.job == "expand":
        return len(lines_of(reply)) >= 2, reply.strip() == example.reply
    return bool(reply.strip()), reply.strip() == example.reply


SHOWN = ("clauses", "facts", "edit")  # jobs of ARE with worked examples
CLOSED = {
    "answerable": OPTIONS,
    "verdict": tuple(VERDICTS.values()),
    "judge_pair": ("X", "Y", "tie"),
    "judge_relevance": LEVELS,
}


def jobs(data: Path, model: Any, name: str, n: int) -> Iterator[Row]:
    """Run every job on held-out text: the shares parsed and correct."""
    sources = load_sources(data, held_out=True)
    for job in (job for job in JOBS if job is not answer):
        rng, start = random.Random(11), time.perf_counter()
        examples = [job(sources, rng) for _ in range(n)]
        what = examples[0].job
        if what in CLOSED:
            options = [by_likelihood(model, example.prompt, CLOSED[what]).option for example in examples]
            found = [(True, option == example.reply) for option, example in zip(options, examples, strict=True)]
        else:
            said = replies(model, [example.prompt for example in examples], MOST)
            found = [parsed(example, reply) for example, reply in zip(examples, said, strict=True)]
        seconds = time.perf_counter() - start
        yield Row(name, f"{what}: parsed", sum(read for read, _ in found), n, seconds)
        yield Row(name, f"{what}: as wanted", sum(same for _, same in found), n, seconds)
        if what in CLOSED:
            yield after_reasons(model, name, examples, CLOSED[what])
        if what in SHOWN:
            yield from with_worked(model, name, examples)


def with_worked(model: Any, name: str, examples: Sequence[Example]) -> Iterator[Row]:
    """An open job of ARE after the worked examples that the engine shows by default."""
    start, what, shown = time.perf_counter(), examples[0].job, Verification().demonstrations
    said = replies(model, [with_examples(what, example.prompt, shown) for example in examples], MOST)
    found = [parsed(example, reply) for example, reply in zip(examples, said, strict=True)]
    seconds = time.perf_counter() - start
    told = f"{what}, {shown} worked examples"
    yield Row(name, f"{told}: parsed", sum(read for read, _ in found), len(found), seconds)
    yield Row(name, f"{told}: as wanted", sum(same for _, same in found), len(found), seconds)


def after_reasons(model: Any, name: str, examples: Sequence[Example], options: Sequence[str]) -> Row:
    """The closed question asked as the next turn after a reason that the model has written."""
    start = time.perf_counter()
    stems = [Prompt(segments=example.prompt.segments[:-1]) for example in examples]  # without the options
    asked = [closed(stem, options, "reason_first") for stem in stems]
    reasons = [reply.strip().partition("\n")[0] for reply in replies(model, asked, REASON)]
    chosen = [
        by_likelihood(model, after(prompt, reason, options), options).option
        for prompt, reason in zip(asked, reasons, strict=True)
    ]
    right = sum(option == example.reply for option, example in zip(chosen, examples, strict=True))
    what = f"{examples[0].job}, after a reason: as wanted"
    return Row(name, what, right, len(examples), time.perf_counter() - start)


def main() -> None:
    asked = arguments(
        __doc__,
        data=DATA,
        models=("reader,embedded", "model names, separated by commas"),
        n=(200, "questions"),
        jobs=(50, "held-out examples of each job; 0: none"),
        sentences={"type": int, "help": "that a writer gets instead of whole passages"},
        dtype=("float32", "bfloat16 for a model of billions of parameters"),
    )
    with tempfile.TemporaryDirectory() as folder:
        os.environ["GROUNDWORK_HOME"] = folder
        found = rows(asked.data, asked.models.split(","), asked.n, asked.sentences, asked.jobs, asked.dtype)
        heads = "writer | measured | share (95% interval) | n | seconds each"
        lines = table(heads, (row.text for row in found), " --- ")
        publish(asked, "writers", "Writers on real questions", conditions(models=asked.models), lines)


if __name__ == "__main__":
    main()
