"""Compare facts with gold facts by best-token F1; list the bank draft sentences with known facts.

Part of `python -m bench.facts`.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Sequence

from bench.drafts import Row, parts
from engine.answer.citations import blanked
from engine.core.statistics import Interval, bootstrap_of_means
from engine.core.text import sentences
from engine.corpus.worlds import load_world
from engine.methods.are.decompose import decompose, plain

SETS = ("bank drafts", "bank drafts, later", "bank drafts, held out")  # in the order of `parts`


def token_f1(first: Sequence[str], second: Sequence[str]) -> float:
    """F1 of the shared words, each counted as often as it occurs."""
    shared = sum((Counter(first) & Counter(second)).values())
    return 2 * shared / (len(first) + len(second)) if first and second else 0.0


def scores(rows: Sequence[Row], splitter: Callable[[str], list[str]]) -> list[tuple[float, float, int]]:
    """Of each sentence: mean best-token-F1 of the predicted facts, of the gold ones, and the count's error."""
    words = lambda text: re.findall(r"\w+", text.lower())  # noqa: E731
    found = []
    for row in rows:
        mine = [said for text in splitter(row["sentence"]) if (said := words(text))] or [[]]
        gold = [words(text) for text in row["reference"]]
        precision = sum(max(token_f1(a, b) for b in gold) for a in mine) / len(mine)
        recall = sum(max(token_f1(a, b) for a in mine) for b in gold) / len(gold)
        found.append((precision, recall, abs(len(mine) - len(gold))))
    return found


def decomposition(rows: Sequence[Row], splitter: Callable[[str], list[str]]) -> Row:
    """Mean best-token-F1 of the predicted facts (precision, with its 95% interval) and of the gold ones (recall).

    Also the count's error, and seconds a sentence.
    """
    start = time.perf_counter()
    precision, recall, error = zip(*scores(rows, splitter), strict=True)
    mean = lambda values: round(sum(values) / len(values), 4)  # noqa: E731
    found = bootstrap_of_means([precision], lambda means: means)
    means = {"precision": mean(precision), "recall": mean(recall), "count_error": mean(error), "n": len(rows)}
    return means | {"low": found.low, "high": found.high, "seconds": (time.perf_counter() - start) / len(rows)}


def lead(
    rows: Sequence[Row], first: Callable[[str], list[str]], second: Callable[[str], list[str]], part: int
) -> Interval:
    """Mean of the first splitter's scores minus the second's on the same sentences: part 0 precision, 1 recall."""
    pairs = zip(scores(rows, first), scores(rows, second), strict=True)
    return bootstrap_of_means([[one[part] - other[part] for one, other in pairs]], lambda means: means)


def bank_facts() -> dict[str, list[Row]]:
    """The sentences with gold facts by set, uncited: `sentence`, `reference`, the `draft`, `rules`.

    `rules` are the facts that the rules make of the sentence in its draft, with pronouns resolved by the text before.
    """
    world = load_world("bank-investigation")
    labelled = {label.draft_id for label in world.facts}
    found = {}
    for name, drafts in zip(SETS, parts(world).values(), strict=True):
        by_rules = {draft.id: in_draft(draft.draft) for draft in drafts if draft.id in labelled}
        texts = {draft.id: blanked(draft.draft) for draft in drafts}
        found[name] = [
            {
                "sentence": plain(label.sentence),
                "reference": list(label.facts),
                "draft": texts[label.draft_id],
                "rules": by_rules[label.draft_id][label.sentence],
            }
            for label in world.facts
            if label.draft_id in texts
        ]
    return found


def in_draft(draft: str) -> dict[str, list[str]]:
    """The facts that the rules make of every sentence of a draft, clause by clause, with full stops."""
    clauses = decompose(draft).clauses
    return {
        draft[start:end]: [f.text.rstrip(".") + "." for c in clauses if start <= c.start < end for f in c.facts]
        for start, end in sentences(draft)
    }
