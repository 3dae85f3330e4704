"""The judged facts of laboratory procedures: what is drawn, and the shares by hand."""

from __future__ import annotations

from bench.procedure_facts import EACH, drawn, judged, shares


def test_shares_by_hand():
    rows = [
        {"text": "steps", "grammatical": True, "true": True},
        {"text": "steps", "grammatical": False, "true": True},
        {"text": "answers", "grammatical": False, "true": True},
        {"text": "answers", "grammatical": True, "true": False},
    ]
    # Wilson's interval of 2 in 4 is (2 + z²/2 ± z·sqrt(1 + z²/4)) / (4 + z²) with z = 1.96.
    assert list(shares(rows))[1:] == [
        "| steps | 2 | 0.50 (0.09 to 0.91) | 1.00 (0.34 to 1.00) | 0.50 (0.09 to 0.91) |",
        "| answers | 2 | 0.50 (0.09 to 0.91) | 0.50 (0.09 to 0.91) | 0.00 (0.00 to 0.66) |",
        "| together | 4 | 0.50 (0.15 to 0.85) | 0.75 (0.30 to 0.95) | 0.25 (0.05 to 0.70) |",
    ]


def test_nearly_all_facts_drawn_are_judged():
    """A rule that makes other facts of many sentences asks for new judgements."""
    facts = drawn()
    assert len({(row["sentence"], row["fact"]) for row in facts}) == len(facts) == 2 * EACH
    assert len(judged()) >= 0.9 * len(facts)
