from __future__ import annotations

import pytest

from engine.methods.are.shared_words import missing, shared_words


@pytest.mark.parametrize(
    ("fact", "evidence", "lacking"),
    [
        ("Ada moved to Estonia in 1990", "Ada left for Riga in 1990.", ("Estonia",)),
        ("It cost EUR 5,000", "They paid EUR 5000.", ()),
        ("It cost EUR 5,000", "They paid EUR 6,000.", ("5,000",)),
        ("Weight: Value: 58 kg", "It weighs 59 kg.", ("58",)),
        ("Over 5,000 came", "In all 6,000 came.", ()),
        ("Five ships sank", "5 ships sank.", ()),
        ("It was signed on 3 May", "It was signed on 3 June.", ("May",)),
        ("Ada Berg's house burned", "The house of Berg burned.", ("Ada",)),
        ("The gate is old", "A gate, old.", ()),
        ("She came on 5 March", "Five of us came on 8 March.", ("5",)),
        ("She came on 18 March", "From 18 January to 3 March.", ("18",)),
        ("She came on 16 June", "From 14 until 16 June.", ()),
        ("She came on 14 June", "From 14 until 16 June.", ()),
        ("It began at 18:05", "It ran from 18:30 to 21:05.", ("18:05",)),
        ("It settled at 03:20:44", "2024-05-02 03:20:44,900 INFO order 88123 settled", ()),
        ("It cost EUR 18,450", "Total: EUR 18.450,00", ()),
        ("It ran from 2019 to 2021", "The study (2019-2021) ended.", ()),
        ("It took 10 days", "It took 5-8 days.", ("10",)),
        ("Ada Gri\ufb03n signed", "It was signed by Ada Griffin.", ()),
        ("It seats 90 guests, not 120", "It seats 90 guests.", ()),
        ("Unlike Riga, Cork opens in May rather than in June", "Cork opens in May.", ()),
        ("Ada did not reach Riga", "Ada turned back.", ("Riga",)),
        ("Ada chose Cork rather than Riga or Oslo", "Ada chose Cork.", ()),
        ("Whether or not Bo signed is open", "It is open.", ("Bo",)),
    ],
)
def test_what_the_evidence_lacks(fact, evidence, lacking):
    assert missing(fact, evidence) == lacking


def test_shared_words_do_not_overlap_and_stand_in_the_passage():
    passage = "On 8 March the teller keyed EUR 9,800 twice."
    spans = shared_words("The teller keyed 9800 on 8 March", passage)
    assert [passage[a:b] for a, b in spans] == ["8", "March", "teller", "keyed", "9,800"]


@pytest.mark.parametrize(
    ("fact", "evidence", "lacking"),
    [
        ("Cash was not above EUR 50,000", "Cash: not above EUR 15,000. Founded on 14 March.", ("50,000",)),
        ("Cash was not above EUR 50,000", "Cash of EUR 15,000 came.", ()),
        ("It took 60 per cent", "It took EUR 60.", ("60",)),
        ("It took 60 per cent", "Ann took 40 per cent, Bo 60.", ()),
    ],
)
def test_a_number_is_borne_out_by_one_of_its_kind(fact, evidence, lacking):
    assert missing(fact, evidence) == lacking


@pytest.mark.parametrize(
    ("fact", "evidence", "lacking"),
    [
        ("After 43 reviews it had 72 per cent", "It has 72 per cent from 43 reviews.", ()),
        ("It grew by 5 towns", "It grew: 5 towns joined.", ()),
        ("It opened after 1990", "It opened in 1992.", ()),
        ("It opened after 28 December 2002", "It opened on December 29, 2002.", ()),
        ("It opened before 1 November, 2019", "It opens on October 25, 2019.", ()),
        ("It opened on 28 December 2002", "It opened on December 29, 2002.", ("28",)),
        ("It is open until 31 May", "It is open from 1 April until 15 May.", ("31",)),
    ],
)
def test_words_of_time_compare_dates_and_a_day_after_or_before_is_left_to_the_verifier(fact, evidence, lacking):
    assert missing(fact, evidence) == lacking


def test_a_number_torn_by_blanks_is_in_the_evidence():
    evidence = "Around 56, 000 dogs ate 1. 3 million bones in 19, 90. 5 kg were left in chapter 7. 4 dogs slept."
    fact = "Around 56,000 dogs ate 1.3 million bones in 1990 and left 7.4 kg"
    assert missing(fact, evidence) == ("1990", "7.4")
