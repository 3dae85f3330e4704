from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from msgspec.structs import replace

from engine.core.settings import Verification
from engine.english.stated import left_open
from engine.methods.are.guards import guarded
from engine.methods.are.values import Ruling
from tests.engine.are.test_guards import read

SUPPORTIVE = Ruling(verdict="supportive", by="v", note="supportive by v")


@pytest.mark.parametrize(
    ("text", "fact", "word"),
    [
        ("The board plans to approve the merger in June.", "The board approved the merger.", "plans"),
        ("The council rejected a proposal to raise rents.", "The council raised rents.", "proposal"),
        ("The committee recommended raising the fee.", "The fee was raised.", "recommended"),
        ("A square was to be named after her.", "A square was named after her.", "to be named"),
        ("The gate has still to be repaired.", "The gate has been repaired.", "to be repaired"),
        ("It proposed a fee, to be approved in May.", "The fee was approved in May.", "to be approved"),
        ("We meant to go to Juta.", "We went to Juta.", "meant"),
        ("The lease was due to end in March.", "The lease ended in March.", "due"),
        ("The company may close two plants.", "The company closes two plants.", "may"),
        ("The company may close two plants.", "The company will close two plants.", "may"),
        ("If it is hot, the reactor shuts down.", "The reactor shut down.", "If"),
        ("Critics claim that the dam is unsafe.", "The dam is unsafe.", "claim"),
        ("He is believed to have died in 1990.", "He died in 1990.", "believed"),
        ("Sales almost doubled in 2019.", "Sales doubled in 2019.", "almost"),
        ("Nearly all members voted for it.", "All members voted for it.", "Nearly"),
        ("The old pier will be torn down in May.", "The pier was torn down.", "will"),
        ("Support for it will be dropped.", "Support for it has been dropped.", "will"),
        ("The clerk denied selling the list.", "The clerk sold the list.", "denied"),
    ],
)
def test_plans_possibilities_conditions_and_claims_leave_open_what_they_are_about(text: str, fact: str, word: str):
    assert left_open(text, fact) == word


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("The team managed to reach the summit.", "The team reached the summit."),
        ("He came to see the king.", "He saw the king."),
        ("Ann was the first clerk to be hired there.", "Ann was hired there."),
        ("She had to leave Germany.", "She left Germany."),
        ("The mayor announced that the pool is open.", "The pool is open."),
        ("The plant is expected to open in 2018.", "The plant will open in 2018."),
        ("The bridge may close.", "The bridge may close."),
        ("Guests may park here.", "Guests can park here."),
        ("The clerk refused to sign.", "The clerk did not sign."),
        ("She never failed to win.", "She won."),
        ("Guests will learn that it was built in 1200.", "It was built in 1200."),
        ("The act requires firms to report.", "Firms must report."),
        ("The pool will open in May.", "The pool opens in May."),
        ("The board plans to approve the merger.", "The board plans to approve the merger."),
        ("The board planned to approve the merger. In July it approved it.", "The board approved the merger."),
        ("The set should be sold.", "The set is old."),
        ("The team reached it, and May said that it may snow.", "The team reached it in May."),
        ("After use you should rinse the tank.", "Rinse the tank after use."),
    ],
)
def test_what_is_said_plainly_anywhere_or_left_open_by_the_fact_itself_is_not_open(text: str, fact: str):
    assert left_open(text, fact) == ""


def test_a_supportive_verdict_on_what_a_passage_leaves_open_is_unsure_and_says_by_which_word():
    pair = read("The board approved the merger.", "The board plans to approve the merger in June.")
    ruling = guarded(SUPPORTIVE, pair, Verification())
    assert ruling.verdict == "supportive" and ruling.unsure and ruling.lowered
    assert ruling.note == f"supportive by v; unsure, {ruling.doubt}"
    assert ruling.doubt == 'the passage leaves it open ("plans")' and not SUPPORTIVE.doubt
    assert guarded(SUPPORTIVE, pair, replace(Verification(), left_open=False)) == SUPPORTIVE
    contradicted = replace(SUPPORTIVE, verdict="editing_required")
    assert guarded(contradicted, pair, Verification()) == contradicted


def test_a_date_that_can_be_another_day_is_unsure():
    pair = read("It was signed on 5 March 2024.", "It was signed on 03/05/2024.")
    ruling = guarded(SUPPORTIVE, pair, Verification())
    assert ruling.verdict == "supportive" and ruling.note.endswith("; unsure, 03/05/2024 can be another day, too")


@given(st.text(max_size=60), st.text(max_size=40))
def test_any_text_is_read(text: str, fact: str):
    assert isinstance(left_open(text, fact), str)
