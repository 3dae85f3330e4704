"""The questions in one's own words are whole, and a reply counts as said."""

from __future__ import annotations

import json
from collections import Counter

from bench.asked import KINDS, SET, UNANSWERED, Reply, tables


def test_every_gold_sentence_is_in_its_document_and_only_some_kinds_have_one() -> None:
    counts: Counter[str] = Counter()
    for row in map(json.loads, SET.open(encoding="utf-8")):
        for question in row["questions"]:
            counts[question["kind"]] += 1
            assert all(gold in row["document"] for gold in question["gold"])
            assert bool(question["gold"]) == (question["kind"] not in UNANSWERED)
    assert counts == {"plain": 40, "paraphrase": 50, "reason": 10, "yesno": 10, "near_miss": 40, "off_topic": 10}
    assert counts.keys() == KINDS.keys()


def test_the_table_by_kind_and_how_well_the_probability_tells_them_apart() -> None:
    kinds = [kind for kind in KINDS for _ in range(2)]
    found = [
        Reply(kind=kind, found=n % 2 == 0, best=True, quoted=n % 2, probability=0.1 if kind in UNANSWERED else 0.6)
        for n, kind in enumerate(kinds)
    ]
    table = tables(found)
    assert "| in other words | 2 | 0.50 | 1.00 | 0.5 | 0.50 | 0.00 | 0.00 |" in table
    assert "| near miss | 2 | - | - | 0.5 | 0.50 | 1.00 | 1.00 |" in table
    assert "against near miss: AUROC of the probability 1.00" in table
