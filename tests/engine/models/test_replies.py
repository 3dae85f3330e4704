"""Models write text around the requested lines."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from engine.models.replies import lines, parse_option

TWO = ["Ice melts at 0 °C.", "Steam rises."]
LAYOUTS = {
    "as asked": "Ice melts at 0 °C.\nSteam rises.",
    "numbered": "1. Ice melts at 0 °C.\n2) Steam rises.",
    "bulleted": "- Ice melts at 0 °C.\n* Steam rises.",
    "bold": "**Ice melts at 0 °C.**\n**Steam rises.**",
    "labels": "Fact 1: Ice melts at 0 °C.\n**Fact 2:** Steam rises.",
    "quoted": '"Ice melts at 0 °C."\n“Steam rises.”',
    "opening": "Sure, here are the facts:\n\n1. Ice melts at 0 °C.\n2. Steam rises.",
    "two openings": "Sure!\n\nHere are the facts:\n\nIce melts at 0 °C.\nSteam rises.",
    "its label": "Answer:\nIce melts at 0 °C.\nSteam rises.",
    "fenced": "Here they are:\n```text\nIce melts at 0 °C.\nSteam rises.\n```\nThat is all.",
    "talk": "Ice melts at 0 °C.\nSteam rises.\n\nLet me know if you need more.\nBye.",
    "apart": "Ice melts at 0 °C.\n\nSteam rises.\n\nThese facts can each be checked alone.",
    "windows": "Ice melts at 0 °C.\r\nSteam rises.\r\n",
}


@pytest.mark.parametrize("reply", LAYOUTS.values(), ids=LAYOUTS)
def test_every_layout_gives_the_same_lines(reply):
    assert lines(reply) == TWO


@pytest.mark.parametrize(
    "line",
    [
        'He said "go" and "stop"',
        "Here the river bends",
        "It cost 5. Then it cost 7.",
        "2007 was dry",
        "If you heat it, it melts.",
        "The answer to it is 5.",
        "Ice - and steam - rise",
    ],
)
def test_what_a_line_says_stays(line):
    assert lines(f"Ice melts.\n\n{line}")[-1] == line


OPTIONS = ("none", "partial", "full")


@pytest.mark.parametrize(
    ("reply", "option"),
    [
        ("It has both dates.\nfull", "full"),
        ("FULL.", "full"),
        ("- **Answer: partial**", "partial"),
        ("The answer is: none.", "none"),
        ("`none`\n\nLet me know!", "none"),
        ("full\nfull", "full"),
        ("full\nnone", None),
        ("full or partial", None),
        ("It is full of holes.", None),
        ("full:\nIt has both dates.", None),
        ("", None),
    ],
)
def test_an_option_stands_alone_or_behind_its_label(reply, option):
    assert parse_option(reply, OPTIONS) == option


@given(st.text(max_size=300))
def test_any_text_gives_lines_of_its_own_words(reply):
    assert all(line.strip() and line.strip() in reply.replace("**", "") for line in lines(reply))
    assert parse_option(reply, ("zebra", "gnu")) is None or "zebra" in reply.casefold() or "gnu" in reply.casefold()


HOSTILE = ("\n", " ", "*", "- ", '"', "1. ", "Fact ", "Sure:", "```\n", "a\n\n", "answer is ", "the final ", ":\t")


@pytest.mark.parametrize("piece", HOSTILE)
def test_long_replies_are_read_in_one_go(piece):
    """Reading that took the square of the length would not end here."""
    reply = piece * 200_000
    assert len(lines(reply)) <= 200_000
    assert parse_option(reply, OPTIONS) is None
