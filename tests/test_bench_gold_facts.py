"""Facts against gold facts: the scores by hand, and the sentences of the bank drafts that they are taken on."""

from __future__ import annotations

import pytest

from bench.gold_facts import bank_facts, decomposition, in_draft, token_f1
from engine.corpus.worlds import load_world


def test_token_f1_by_hand():
    assert token_f1(list("abb"), list("bbbc")) == pytest.approx(2 * 2 / 7)
    assert token_f1(["a"], []) == token_f1(["a"], ["b"]) == 0.0


def test_decomposition_by_hand():
    row = {"sentence": "Ann ran and sang.", "reference": ["Ann ran.", "Ann sang."]}
    # One fact of four words, each gold one of two: F1 is 2 * 2 / 6 from either side, and a fact is missing.
    found = decomposition([row], lambda text: [text])
    assert found.pop("seconds") >= 0
    assert (found.pop("low"), found.pop("high")) == (pytest.approx(2 / 3), pytest.approx(2 / 3))
    assert found == {"precision": 0.6667, "recall": 0.6667, "count_error": 1.0, "n": 1}
    perfect = decomposition([row], lambda _: ["Ann sang.", "ann ran"])
    assert (perfect["precision"], perfect["recall"], perfect["count_error"]) == (1.0, 1.0, 0.0)
    half = decomposition([row] * 40 + [row | {"reference": ["Bea swam."]}] * 40, lambda text: [text])
    assert 0 < half["low"] < half["precision"] < half["high"] < 2 / 3
    # What cannot be read as words counts as one empty fact.
    assert decomposition([row], lambda _: [" "])["precision"] == 0.0


def test_the_rules_facts_are_of_the_sentence_in_its_draft():
    found = in_draft("Ada Berg lived in Cork [cite_1]. She won a medal [cite_2].")
    assert found == {
        "Ada Berg lived in Cork [cite_1].": ["Ada Berg lived in Cork."],
        "She won a medal [cite_2].": ["Ada Berg won a medal."],
    }


def test_bank_facts_are_all_gold_sentences_uncited_with_rule_facts():
    sets = bank_facts()
    assert {name: len(rows) for name, rows in sets.items()} == {
        "bank drafts": 80,
        "bank drafts, later": 20,
        "bank drafts, held out": 52,
    }
    rows = [row for some in sets.values() for row in some]
    labels = load_world("bank-investigation").facts
    assert sorted(tuple(row["reference"]) for row in rows) == sorted(label.facts for label in labels)
    assert len({row["sentence"] for row in rows}) == len(rows)  # scores are kept by sentence
    for row in rows:
        assert "cite_" not in row["sentence"] + row["draft"] + "".join(row["rules"])
        assert row["rules"] and row["sentence"][:10] in row["draft"]
