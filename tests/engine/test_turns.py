"""Turns of transcripts: their speakers, who asks, and what is not a transcript."""

from __future__ import annotations

import pytest

from engine.core.turns import turns

TYPED = (
    "Interview 8\n\nI: You left in May. Why?\n\nP5: Childcare. It\nwas hard.\n\nI: So I heard.\n\nP5: Yes, and it hurt."
)
TIMED = "Ann Roe  0:04\nWhy did you leave?\n\nBo  0:11\nChildcare.\n\nAnn Roe  0:20\nSo I heard.\n"
STAMPED = "[00:01:02] Ann: Why did you leave?\n[00:01:09] Bo (nurse): Childcare.\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (TYPED, [("I", True), ("P5", False), ("I", True), ("P5", False)]),
        (TIMED, [("Ann Roe", True), ("Bo", False), ("Ann Roe", True)]),
        (STAMPED, [("Ann", True), ("Bo", False)]),
        ("Date: 3 May\nWho came: Ann\nWhy: She asked.", []),  # a form
        ("Why is it cold?\nThe fire is out.", []),
        ("", []),
    ],
)
def test_a_turn_has_its_speaker_and_who_asks_is_known(text: str, told: list[tuple[str, bool]]) -> None:
    (found,) = turns(text)
    assert [(turn.speaker, turn.asks) for turn in found] == told
    assert "".join(text[turn.start : turn.end] for turn in found) == text[found[0].start if found else len(text) :]


def test_a_label_that_is_seen_once_ends_the_turn_and_names_nobody() -> None:
    (found,) = turns("Q: Why?\nAnn: Two things.\nFirst: the money. It was little.\nQ: And?\nAnn: The bus.")
    assert [turn.speaker for turn in found] == ["Q", "Ann", "", "Q", "Ann"]


def test_parts_of_one_document_are_read_together() -> None:
    (first, second) = turns("RK: Why?\nJ: Money.", "RK: Others say the nights are hard.\nJ: They are.")
    assert [(turn.speaker, turn.asks) for turn in second] == [("RK", True), ("J", False)]
    assert [turns("J: They are.")[0], first[0].asks] == [[], True]
