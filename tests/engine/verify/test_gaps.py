from __future__ import annotations

import pytest

from engine.verify.gaps import missing, with_gaps
from engine.verify.shared_words import shared_words
from engine.verify.values import Ruling

SUPPORTIVE = Ruling(verdict="supportive", by="v", note="supportive by v")


@pytest.mark.parametrize(
    ("fact", "evidence", "lacking"),
    [
        ("Ada moved to Estonia in 1990", "Ada left for Riga in 1990.", ("Estonia",)),
        ("It cost EUR 5,000", "They paid EUR 5000.", ()),
        ("It cost EUR 5,000", "They paid EUR 6,000.", ("5,000",)),
        ("Over 5,000 came", "In all 6,000 came.", ()),
        ("Five ships sank", "5 ships sank.", ()),
        ("It was signed on 3 May", "It was signed on 3 June.", ("May",)),
        ("Ada Berg's house burned", "The house of Berg burned.", ("Ada",)),
        ("The gate is old", "A gate, old.", ()),
    ],
)
def test_what_the_evidence_lacks(fact, evidence, lacking):
    assert missing(fact, evidence) == lacking


def test_only_a_supportive_ruling_is_turned_and_it_says_why():
    turned = with_gaps(SUPPORTIVE, "It cost EUR 5,000", "They paid EUR 6,000.")
    assert (turned.verdict, turned.lacking) == ("editing_required", ("5,000",))
    assert "does not hold 5,000" in turned.note
    assert with_gaps(SUPPORTIVE, "He is in Estonia", "He left.").verdict == "irrelevant"
    assert with_gaps(SUPPORTIVE, "He left", "He left.") == SUPPORTIVE
    irrelevant = Ruling(verdict="irrelevant", by="v", note="n")
    assert with_gaps(irrelevant, "He is in Estonia", "He left.") == irrelevant


def test_shared_words_do_not_overlap_and_stand_in_the_passage():
    passage = "On 8 March the teller keyed EUR 9,800 twice."
    spans = shared_words("The teller keyed 9800 on 8 March", passage)
    assert [passage[a:b] for a, b in spans] == ["8", "March", "teller", "keyed", "9,800"]
