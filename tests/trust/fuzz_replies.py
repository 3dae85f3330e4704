"""`python -m tests.trust.fuzz_replies --inputs N`: made-up model replies and files into every parser of them.

Inputs are drawn from a seed: openings, list marks, labels, fences, brackets, numbers and hostile characters in any
order, some of them thousands of times. A parser gives a value or a typed error, within an alarm; one JSON line says
what came of it, and each failure is kept with the seed and number that make it again.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from engine.answer.citations import find_citations
from engine.cases.case_file import read_case_file
from engine.cases.importers import LAYOUTS, read_cases
from engine.core.errors import GroundworkError
from engine.core.settings import Settings
from engine.core.text import sentences
from engine.corpus.sources import load_bytes
from engine.methods.are.decompose import decompose, parse_clauses, parse_facts
from engine.methods.are.edit import parse_edit
from engine.methods.are.verdict import parse_verdict
from engine.methods.judge import parse_criteria, parse_pair, parse_relevance
from engine.methods.raise_.steps import parse as parse_plan
from engine.methods.raise_.values import parse_choice
from engine.models import replies
from engine.models.server import checked_address
from engine.studies.config import parse_config

SECONDS = 10  # of processor time: one input in one parser
SHOWN = 5  # failures that are told
PARTS = [
    *("Sure, here are the facts:", "1. ", "- ", "* ", "**", "```", "```json\n", "~~~", "Fact 2: ", "Answer: ", "yes"),
    *("no", "supportive", "editing required", "irrelevant", "A", "B", "tie", "Score: ", "3/5", "10", "0.5", "-1"),
    *("NaN", "1e999", "{", "}", "[", "]", "(", ")", '"', "'", "`", ":", ",", ";", "|", "<", ">", "&#0;", "\\", "/"),
    *("=", "$", "#", "%", "\n", "\n\n", "\r", "\t", " ", "\0", "\ufeff", "\u202e", "\u200b", "\ud800", "é", "漢"),
    *("\U0001f600", "[cite_1]", "[cite_", "[1]", "[1][2]", "Ice melts.", "Iron rusts in damp air, and ice melts."),
    *("Q1", "#1", "Step 1: ", "Let me know if you need more!", "question", "answer", "sources", "\n---\n", ".", "!"),
    '{"question": "a", "answer": "b"}',
]  # fmt: skip


def made(rng: random.Random) -> str:
    """One input: mostly short, now and then one part many times."""
    text = "".join(rng.choices(PARTS, k=rng.choice((1, 3, 8, 25, 80))))
    if rng.random() < 0.01:
        text += rng.choice(PARTS) * rng.randrange(1_000, 5_000) + rng.choice(PARTS)
    return text


def _rows(text: str) -> None:
    for layout in (None, *LAYOUTS):
        list(read_cases(text.encode("utf-8", "surrogatepass"), layout))


PARSERS: dict[str, Callable[[str], Any]] = {
    "plan": parse_plan,
    "choice": lambda text: parse_choice(text, ("one", "two")),
    "pair": parse_pair,
    "relevance": parse_relevance,
    "criteria": parse_criteria,
    "edit": lambda text: parse_edit(text, "Ice melts."),
    "verdict": parse_verdict,
    "clauses": lambda text: parse_clauses(text, "Ice melts. Iron rusts."),
    "facts": lambda text: parse_facts(text, "Ice melts."),
    "lines": replies.lines,
    "option": lambda text: replies.parse_option(text, ("yes", "no")),
    "citations": lambda text: [find_citations(text, 3, style) for style in ("garage", "alce")],
    "sentences": sentences,
    "decomposer": lambda text: decompose(text[:400]),
    "config": parse_config,
    "settings": lambda text: Settings().apply([text]),
    "address": checked_address,
    "case file": lambda text: read_case_file(text.encode("utf-8", "surrogatepass")),
    "importers": _rows,
    "csv": lambda text: load_bytes(text.encode("utf-8", "surrogatepass"), "a.csv"),
    "jsonl": lambda text: load_bytes(text.encode("utf-8", "surrogatepass"), "a.jsonl"),
    "markdown": lambda text: load_bytes(text.encode("utf-8", "surrogatepass"), "a.md"),
}


def _too_long(*_: object) -> None:
    raise TimeoutError(f"more than {SECONDS} s")


def run(inputs: int, seed: int, names: tuple[str, ...] = ()) -> dict[str, Any]:
    """Every input into one parser in turn; the summary."""
    chosen = names or tuple(PARSERS)
    came: Counter[str] = Counter()
    failures: list[dict[str, Any]] = []
    slowest = 0.0
    before = signal.signal(signal.SIGVTALRM, _too_long)
    try:
        for number in range(inputs):
            text, name = made(random.Random(f"{seed}:{number}")), chosen[number % len(chosen)]
            signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
            started = time.process_time()
            try:
                PARSERS[name](text)
                came["read"] += 1
            except GroundworkError as error:
                assert str(error)
                came["refused"] += 1
            except Exception as error:
                failures.append(
                    {"seed": seed, "number": number, "parser": name, "error": f"{type(error).__name__}: {error}"}
                )
            finally:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            slowest = max(slowest, time.process_time() - started)
    finally:
        signal.signal(signal.SIGVTALRM, before)
    told = {"failed": len(failures), "failures": failures[:SHOWN], "slowest_s": round(slowest, 3)}
    return {"inputs": inputs, "seed": seed, **came, **told}


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1337)
    given = parser.parse_args()
    print(json.dumps(run(given.inputs, given.seed)), flush=True)


if __name__ == "__main__":
    main()
