from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from msgspec.structs import replace

from engine.core.settings import Verification
from engine.english.parties import exchanged, mispaired
from engine.english.statements import split
from engine.methods.are.guards import guarded
from engine.methods.are.values import Ruling
from tests.engine.are.test_anchored_edit import Doubtful, edited
from tests.engine.are.test_guards import read

SUPPORTIVE = Ruling(verdict="supportive", by="v", note="supportive by v")
TURNED = [
    ("Patel paid 5,000 euros to Reyes.", "On 3 May Reyes paid Patel 5,000 euros.", "Reyes paid 5,000 euros to Patel."),
    ("On 3 May Patel paid Reyes.", "On 3 May Reyes paid Patel.", "On 3 May Reyes paid Patel."),
    ("Acme was acquired by Beta.", "Acme acquired Beta in 2019.", "Beta was acquired by Acme."),
    ("The board replaced the council.", "In 1950 the council replaced the board.", "The council replaced the board."),
    ("They moved from Riga to Cork.", "They moved from Cork to Riga in May.", "They moved from Cork to Riga."),
    ("Copper is cheaper than zinc.", "The zinc is cheaper than the copper.", "Zinc is cheaper than copper."),
    ("Ann is the aunt of Bo.", "Bo is the aunt of Ann.", "Bo is the aunt of Ann."),
    ("Add the acid to the water.", "Slowly add the water to the acid.", "Add the water to the acid."),
    ("Ann refused Bo's offer.", "Bo refused Ann's offer.", "Bo refused Ann's offer."),
    ("Ann says Bo left.", "Bo says that Ann left.", "Bo says Ann left."),
    ("Ann agreed to hire Bo.", "Bo agreed to hire his rival Ann, the two said.", "Bo agreed to hire Ann."),
    ("Ann lent Bo her poles.", "A hiker named Bo lent Ann his poles.", "Bo lent Ann her poles."),
    ("Ann Berg sued Bo.", "Bo, who sued Berg, lost.", "Bo sued Ann Berg."),
    ("Chelsea beat Arsenal 3-1.", "Arsenal beat Chelsea 3–1 in May.", "Arsenal beat Chelsea 3-1."),
    ("Germany defeated Brazil 2-0.", "Brazil defeated Germany 2-0.", "Brazil defeated Germany 2-0."),
    (
        "Steve Jobs succeeded Tim Cook as CEO of Apple.",
        "Tim Cook succeeded Steve Jobs as CEO of Apple in 2011.",
        "Tim Cook succeeded Steve Jobs as CEO of Apple.",
    ),
    ("Ann sued Bo.", "The firm hired Cleo, and Bo sued Ann and Cleo.", "Bo sued Ann."),
]


@pytest.mark.parametrize(("fact", "text", "instead"), TURNED)
def test_two_parties_in_each_others_place_are_seen(fact, text, instead):
    found = exchanged(fact, text)
    assert found.instead == instead
    assert exchanged(instead, text) is None
    both = sorted((fact[slice(*found.first)].lower(), fact[slice(*found.second)].lower()))
    assert both == sorted((instead[a:b].lower() for a, b in _spans(exchanged(instead, fact))))


def _spans(found):
    return found.first, found.second


@pytest.mark.parametrize(
    ("fact", "text"),
    [
        ("Bo was paid by Ann.", "Ann paid Bo."),
        ("Ann met Bo.", "Bo met Ann."),
        ("Ann agreed with Bo.", "Bo agreed with Ann."),
        ("Ann sued Bo.", "Ann sued Bo. Later Bo sued Ann."),
        ("Ann sued Bo.", "Bo did not sue Ann."),
        ("Ann did not sue Bo.", "Bo sued Ann."),
        ("Ann sued Bo.", "He sued Ann."),
        ("Ann sued Bo.", "Bo admired Ann."),
        ("Ann Berg sued Bo Berg.", "Berg sued Berg."),
        ("Ann praised the painter of the portrait.", "The painter praised Ann's house."),
        ("Congress overruled Obama.", "Obama, who was overruled by Congress, left."),
    ],
)
def test_the_same_places_both_ways_and_other_events_are_no_exchange(fact, text):
    assert exchanged(fact, text) is None


def test_an_exchange_that_would_change_other_words_is_seen_without_an_edit():
    found = exchanged("Two firms sue Ann.", "Ann sues two firms.")
    assert ("Two firms sue Ann."[slice(*found.first)], found.instead) == ("Two firms", "")
    assert exchanged("Steve Jobs succeeded Tim Cook as CEO of Apple.", "Tim Cook succeeded Steve Jobs.").instead == ""


def test_the_guard_names_both_and_can_be_switched_off():
    pair = read("Patel paid Reyes in May.", "Reyes paid Patel in May.")
    ruling = guarded(SUPPORTIVE, pair, Verification())
    assert (ruling.verdict, ruling.lacking) == ("editing_required", ("Patel", "Reyes"))
    assert "the passage has Patel and Reyes in each other's place" in ruling.note
    assert guarded(SUPPORTIVE, pair, replace(Verification(), parties=False)) == SUPPORTIVE


def test_the_smallest_edit_exchanges_the_two_in_one_change():
    edit = edited("Patel paid Reyes in May.", "Reyes paid Patel in May.", verifier=Doubtful())
    assert edit.after == "Reyes paid Patel in May."
    assert [(change.old, change.new) for change in edit.changes] == [("Patel paid Reyes", "Reyes paid Patel")]


PAIRED = [
    ("The light switched to paraffin in 1889 and to electricity in 1953.", "in 1889", "in 1953"),
    ("The bridge was sold to Ann in 1919, and to Bo in 1926.", "in 1919", "in 1926"),
    ("The bank lowered its fee to 3 euros in 2016 and to 2 euros in 2020.", "in 2016", "in 2020"),
    ("The salt is heated to 60 degrees for 2 hours and to 90 degrees for 5 hours.", "for 2 hours", "for 5 hours"),
]


@pytest.mark.parametrize(("text", "one", "other"), PAIRED)
def test_a_date_or_number_that_a_sentence_pairs_with_another_party_is_seen_and_its_own_put_in(text, one, other):
    turned = text.replace(one, "#").replace(other, one).replace("#", other)
    told = split(text)
    assert len(told) == 2
    for fact, right in zip(split(turned), told, strict=True):
        assert mispaired(fact, text).instead == right
        assert mispaired(fact, turned) is mispaired(right, text) is None


@pytest.mark.parametrize(
    ("fact", "text"),
    [
        ("It was sold to Ann in June.", "It was sold to Ann in May and in June to Bo."),
        (
            "It was sold to Ann in June.",
            "It was sold to Ann in May and to Bo in June. It was sold to Ann in June again.",
        ),
        ("It was lent to Ann in June.", "It was sold to Ann in May and to Bo in June."),
        ("It was sold to Cy in June.", "It was sold to Ann in May and to Bo in June."),
        ("It was sold to Ann in July.", "It was sold to Ann in May and to Bo in June."),
        ("Ann moved to Cork with Bo.", "Ann moved to Riga with Bo and to Cork with Cy."),
    ],
)
def test_other_verbs_parties_and_dates_and_two_names_are_not_called_mispaired(fact, text):
    assert mispaired(fact, text) is None


def test_the_guard_contradicts_a_pair_that_is_told_apart_and_the_edit_changes_the_number_alone():
    fact, text = "The light switched to paraffin in 1953", PAIRED[0][0]
    ruling = guarded(SUPPORTIVE, read(fact, text), Verification())
    assert (ruling.verdict, ruling.lacking) == ("editing_required", ("paraffin", "1953"))
    assert "the passage has paraffin and 1953 apart, each with another" in ruling.note
    assert guarded(SUPPORTIVE, read(fact, text), replace(Verification(), parties=False)) == SUPPORTIVE
    edit = edited(fact, text, verifier=Doubtful())
    assert [(change.old, change.new) for change in edit.changes] == [("1953", "1889")]


@pytest.mark.parametrize(
    "text",
    [
        "to Ann in 1990 and to Bo in 1995, " * 27,
        "to Ann in 1990 and to Bo in 1995, " * 300,
        "Ann in 1990 and " * 700,
        "," * 9000,
    ],
)
def test_a_sentence_without_an_end_is_not_taken_apart(text):
    assert mispaired("It was sold to Ann in 1995.", f"It was sold {text}") is None


def test_a_long_list_of_names_is_left_alone():
    names = [", ".join(f"{first}{n}" for n in range(150)) for first in ("Ann", "Bo")]
    assert exchanged(f"{names[0]} and Cy paid {names[1]}.", f"{names[1]} paid {names[0]} and Cy.") is None


WORDS = st.lists(
    st.sampled_from(["Ann", "Bo", "the", "firm", "sued", "paid", "was", "by", "to", "and", ".", ","]), max_size=12
)


@given(WORDS, WORDS)
def test_no_text_contradicts_itself_and_none_is_an_error(one, other):
    fact, text = " ".join(one), " ".join(other)
    assert exchanged(fact, fact) is None
    found = exchanged(fact, text)
    assert found is None or sorted(found.instead.lower()) in (sorted(fact.lower()), [])
    assert mispaired(fact, fact) is None
