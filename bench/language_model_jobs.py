"""The rows of the embedded model's table for the jobs beside answering: facts, edits, verdicts, RAISE, distractors."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bench.gold_facts import bank_facts, decomposition
from bench.language_model_row import Row, share
from engine.models.huggingface import HuggingFaceModel
from engine.prompts import fill
from engine.settings import Decoding
from engine.text import sentences
from engine.train.jobs import LEVELS, Job, answering_prompt, difficulty_of
from engine.train.jobs_distractor import distractor_example
from engine.train.jobs_facts import AGREES, DISAGREES, IRRELEVANT, edit_job, facts_job, verdict_job
from engine.train.jobs_reason import final_answer_job, sub_answer_job, sub_questions_job
from engine.types import Prompt, Segment
from engine.verify.decompose import facts_by_rules, lines, parse_facts
from engine.verify.facts import Clause
from engine.worlds import World, load_world

REASONING: dict[str, tuple[Job, str]] = {  # what is compared follows the mark on each line: a wording is free
    "RAISE: both queries right": (sub_questions_job, " | "),
    "RAISE: sub-answer right": (sub_answer_job, "\n"),
    "RAISE: final answer right": (final_answer_job, "The final answer is "),
}


class Worked(NamedTuple):
    """A sample of a job with the model's reply and the right one."""

    prompt: str
    reply: str
    right: str


def job_replies(model: HuggingFaceModel, job: Job, n: int) -> list[Worked]:
    """A job on held-out worlds."""
    rng = random.Random(f"held out {job.__name__}")
    samples = [job(LEVELS[4], rng) for _ in range(n)]
    prompts = [[p.text for p in pieces if p.part == "prompt"] for pieces in samples]
    right = ["".join(p.text for p in pieces if p.part in ("real", "decide")) for pieces in samples]
    return [Worked("".join(p), *both) for p, *both in zip(prompts, written(model, prompts), right, strict=True)]


def written(model: HuggingFaceModel, prompts: Sequence[Sequence[str]], longest: int = 90) -> list[str]:
    """Greedy replies of up to `longest` tokens to prompts of several pieces."""
    asked = [Prompt(segments=tuple(Segment(kind="instruction", text=text) for text in texts)) for texts in prompts]
    return [answer.text.strip() for answer in model.generate_many(asked, Decoding(max_new_tokens=longest))]


def macro_f1(pairs: Sequence[tuple[str, str]]) -> float:
    """Mean F1 of the three verdicts over (given, right); any other word given is wrong for every class."""
    scores = []
    for name in (AGREES, DISAGREES, IRRELEVANT):
        both = sum(given == name == right for given, right in pairs)
        scores.append(2 * both / max(1, sum((given == name) + (right == name) for given, right in pairs)))
    return float(np.mean(scores))


def last(text: str) -> str:
    """The last line."""
    return text.split("\n")[-1]


def jobs(model: HuggingFaceModel, n: int) -> list[Row]:
    """Facts, edits, verdicts on held-out worlds."""
    edits = [(last(w.reply), last(w.right)) for w in job_replies(model, edit_job, n)]
    verdicts = [(last(w.reply), last(w.right)) for w in job_replies(model, verdict_job, n)]
    return [
        *facts(job_replies(model, facts_job, n)),
        Row("edits right, nothing else changed", share([a == b for a, b in edits]), n, "0.85"),
        *verdict_rows(verdicts, ""),
    ]


def facts(worked: Sequence[Worked]) -> list[Row]:
    """Facts right and unparsed; with the fallback, the rules' facts stand where the engine cannot read the reply."""
    clauses = [w.prompt.rpartition("Clause: ")[2].split("\n")[0] for w in worked]
    unread = [parse_facts(w.reply, clause) is None for w, clause in zip(worked, clauses, strict=True)]
    ruled = [by_rules(clause) if bad else w.reply for w, clause, bad in zip(worked, clauses, unread, strict=True)]
    right = [w.right for w in worked]
    return [
        Row(
            "facts right",
            share([w.reply == w.right for w in worked]),
            len(worked),
            "0.85",
            ruled=share([a == b for a, b in zip(ruled, right, strict=True)]),
        ),
        Row("facts unparsed", share(unread), len(worked), "< 0.02", ruled=0.0),
    ]


def by_rules(clause: str) -> str:
    """The facts that the rules make of a clause, one a line, with full stops."""
    (done,) = facts_by_rules([Clause(start=0, end=len(clause), text=clause)])
    return "\n".join(fact.text.rstrip(".") + "." for fact in done.facts)


def verdict_rows(pairs: Sequence[tuple[str, str]], where: str) -> list[Row]:
    """Macro-F1, and replies that are no verdict, over (given, right)."""
    unparsed = [given not in (AGREES, DISAGREES, IRRELEVANT) for given, _ in pairs]
    return [
        Row(f"{where}verdict macro-F1", macro_f1(pairs), len(pairs), "0.70" if where else "0.85"),
        Row(f"{where}verdicts unparsed", share(unparsed), len(pairs), "< 0.02"),
    ]


def drafts(model: HuggingFaceModel, n: int) -> list[Row]:
    """Verdicts and edits on the drafts of the bank investigation, never trained on: sentences with a planted error.

    A sentence with its error disagrees with the quotation that shows the error, mended it agrees, and beside a
    quotation on another draft it is irrelevant. Errors that are only to be deleted are left out.
    """
    claims = list(planted(load_world("bank-investigation")))[:n]
    other = [evidence for _, _, evidence in claims[1:] + claims[:1]]
    asked = [
        pair
        for (wrong, fixed, evidence), elsewhere in zip(claims, other, strict=True)
        for pair in (((wrong, evidence), DISAGREES), ((fixed, evidence), AGREES), ((fixed, elsewhere), IRRELEVANT))
    ]
    prompts = [[fill("verdict", context=claim, fact=claim, evidence=evidence)] for (claim, evidence), _ in asked]
    given = [last(reply) for reply in written(model, prompts)]
    edits = written(model, [[fill("edit", fact=wrong, evidence=evidence)] for wrong, _, evidence in claims])
    mended = [last(reply) == fixed for reply, (_, fixed, _) in zip(edits, claims, strict=True)]
    return [
        Row("shipped drafts: edits right, nothing else changed", share(mended), len(mended), "0.70"),
        *verdict_rows([(g, right) for g, (_, right) in zip(given, asked, strict=True)], "shipped drafts: "),
        *draft_facts(model, n),
    ]


def draft_facts(model: HuggingFaceModel, n: int) -> list[Row]:
    """Facts of sentences of the same drafts against those written by hand: all of them exact, and by best-token F1.

    Asked as `engine.verify.decompose` asks, a sentence as the clause of its draft; the lines of a reply that cannot be
    read are scored as they stand, and with the fallback the rules' facts are in their place.
    """
    rows = bank_facts()[:n]
    asked = [[fill("facts", text=row["draft"], clause=row["sentence"])] for row in rows]
    replies = {row["sentence"]: reply for row, reply in zip(rows, written(model, asked, 400), strict=True)}
    unread = {sentence: parse_facts(reply, sentence) is None for sentence, reply in replies.items()}
    given = {sentence: lines(reply) for sentence, reply in replies.items()}
    ruled = {row["sentence"]: row["rules"] for row in rows if unread[row["sentence"]]}
    scores, with_rules = fact_scores(rows, given), fact_scores(rows, given | ruled)
    return [
        *(Row(f"shipped drafts: {name}", scores[name], len(rows), ruled=with_rules[name]) for name in scores),
        Row("shipped drafts: facts unparsed", share(list(unread.values())), len(rows), "< 0.02", ruled=0.0),
    ]


def fact_scores(rows: Sequence[dict[str, Any]], given: Mapping[str, list[str]]) -> dict[str, float]:
    """The share of sentences whose facts are the gold ones word for word, and both best-token F1."""
    found = decomposition(rows, given.__getitem__)
    return {
        "facts right": share([given[row["sentence"]] == row["reference"] for row in rows]),
        "best-token F1 of the facts": found["precision"],
        "best-token F1 of the gold facts": found["recall"],
    }


def planted(world: World) -> Iterator[tuple[str, str, str]]:
    """(sentence with its error, the sentence mended, the quotation) of every error that has a right wording."""
    for draft in world.drafts:
        text = re.sub(r"\s*\[cite_\d+\]", "", draft.draft)
        for error in draft.errors:
            found = [text[a:b] for a, b in sentences(text) if error.wrong in text[a:b]]
            if found and error.right and error.evidence:
                yield found[0], found[0].replace(error.wrong, error.right), error.evidence[0].quote


def distractors(model: HuggingFaceModel, n: int) -> list[Row]:
    """How often the answer gives the value of a planted distractor among five passages."""
    rng = random.Random("held out distractors")
    made = [distractor_example(rng, 5, difficulty_of(LEVELS[4], rng)) for _ in range(n)]
    prompts = [answering_prompt(example.asked[0].question, example.passages, example.numbers) for example, _ in made]
    answers = [answer.text.lower() for answer in model.generate_many(prompts, Decoding(max_new_tokens=60))]
    taken = [p.value.lower() in text for text, (_, p) in zip(answers, made, strict=True)]
    right = [e.asked[0].value.lower() in text for text, (e, _) in zip(answers, made, strict=True)]
    return [
        Row("takes the planted distractor (5 passages)", share(taken), n, "0.15 to 0.30"),
        Row("value right beside a distractor (5 passages)", share(right), n),
    ]


def reasoning(model: HuggingFaceModel, n: int) -> list[Row]:
    """RAISE's jobs: the queries of both sub-questions, the sub-answer, the final answer."""
    rows = []
    for name, (job, mark) in REASONING.items():
        found = [(after(mark, w.reply), after(mark, w.right)) for w in job_replies(model, job, n)]
        rows.append(Row(name, share([given == right for given, right in found]), n))
    return rows


def after(mark: str, text: str) -> list[str]:
    """Of each line what follows the last mark."""
    return [line.rpartition(mark)[2] for line in text.splitlines()]
