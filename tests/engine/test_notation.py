"""Dates, amounts, measures and times of day that claim and evidence write differently."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from engine.english.notation import amounts, dates_in_words, either_day, fitting_order, in_one_notation, signs_in_words
from engine.methods.are.edit import replacements
from engine.methods.are.event_order import against
from engine.methods.are.shared_words import missing
from engine.models.verifier import load_entailment

SIGNED = "The contract was signed on {}."


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("2024-03-05", "5 March 2024"),
        ("2024/3/5", "5 March 2024"),
        ("05.03.2024", "5 March 2024"),
        ("5. 3. 2024", "5 March 2024"),
        ("31/03/2024", "31 March 2024"),
        ("03/31/2024", "31 March 2024"),
        ("05/05/2024", "5 May 2024"),
        ("03/2024", "March 2024"),
        ("Mar. 5, 2024", "5 March 2024"),
        ("5th of Sept 2024", "5 September 2024"),
        ("Dec 5", "5 December"),
        ("Feb. 29", "29 February"),
        ("2024-03-05T14:30", "5 March 2024 14:30"),
    ],
)
def test_a_date_in_digits_or_with_a_short_month_is_put_in_words(written, words):
    assert dates_in_words(SIGNED.format(written)) == SIGNED.format(words)


@pytest.mark.parametrize(
    "kept",
    [
        *("March 5, 2024", "03/05/2024", "31.02.2024", "1.2.2024.1", "Mar Vista", "5/6", "x-2024-03-05", "No 7/2011"),
        *("Sept 3\u20135, 2024", "Sept 3 to 5, 2024", "Jan 1,200", "Feb 6%", "Jan | 5\nFeb | 7"),
    ],
)
def test_what_is_in_words_or_cannot_be_read_stays(kept):
    assert dates_in_words(SIGNED.format(kept)) == SIGNED.format(kept)


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        ("45 euros", "€45"),
        ("45 euros", "EUR 45.00"),
        ("$1.5 million", "1,500,000 dollars"),
        ("US$1.5m", "USD 1 500 000"),
        ("12 percent", "12 %"),
        ("2,000 staff", "2'000 staff"),
        ("56,000 staff", "56, 000 staff"),
        ("minus 5 km", "\u22125000 m"),
        ("20 degrees Celsius", "20 °C"),
        ("200 mg", "0.2 g"),
        ("3:30 pm", "15:30"),
        ("noon or 9 a.m.", "noon or 09:00"),
        ("May 3, 2020", "3 May 2020"),
        ("45 people", "forty-five people"),
        ("12 percent", "twelve percent"),
        ("one hundred and twenty staff", "120 staff"),
        ("two thousand five hundred", "2,500"),
        ("the 19th century", "the nineteenth century"),
        ("the twenty-first", "the 21st"),
        ("half", "50%"),
        ("three quarters", "75 percent"),
        ("World War Two", "World War II"),
        ("Chapter 14", "Chapter XIV"),
        ("120,005", "one hundred and twenty thousand and five"),
        ("2:05:00", "2:05"),
        ("from 3 km to 5 km", "from 3 km to 5,000 m"),
        ("5 km (5,000 m)", "5 km (5,000 m)"),
    ],
)
def test_an_equal_value_is_written_as_the_claim_has_it(mine, theirs):
    assert in_one_notation(f"It was {mine} then", f"It was {theirs} then")[1] == f"It was {mine} then"


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        ("45 euros", "EUR 46"),
        ("45 euros", "45 dollars"),
        ("2 kg", "2 km"),
        ("5 km", "500 m"),
        ("-5 degrees", "5 degrees"),
        ("3:30 pm", "3:30 am"),
        ("3 May 2020", "May 3, 2021"),
        ("1.5m tall", "1,500,000 tall"),
        ("5 in total", "12.7 cm"),
        ("chapter 5", "05/06"),
        ("the second", "two"),
        ("Chapter IIX", "Chapter 8"),
        ("two and three", "five"),
        ("2:05:30", "2:05:31"),
        ("1,428,627,663", "1,428,627,664"),
        ("a fourth", "one third"),
        ("thirty-two", "twenty twelve"),
        ("8 wives", "Henry VIII"),
        ("version 3.10", "version 3.1"),
        ("2 people", "2.000 people"),
        ("room 7", "room 007"),
        ("5,000 m", "3-5 km"),
        ("5,000 m", "three to five km"),
        ("17:00", "3-5 pm"),
        ("5 million", "3 to 5,000,000 euros"),
        ("50%", "the half-life"),
        ("25%", "a quarter of 2024"),
        ("one", "1,5 million"),
        ("one", "12/5"),
        ("ten", "10^3"),
        ("two", "SARS-CoV-2"),
    ],
)
def test_another_value_keeps_its_notation(mine, theirs):
    assert in_one_notation(f"It was {mine}.", f"It was {theirs}.") == (f"It was {mine}.", f"It was {theirs}.")


@pytest.mark.parametrize(
    ("text", "other", "told"),
    [
        ("It took < 5 days", "Fewer days, fewer than 5.", "It took fewer than 5 days"),
        ("It took ≤5 days", "It took <5 days", "It took at most 5 days"),
        ("n>=30 and p<$2", "It was above 30.", "n at least 30 and p less than $2"),
        ("A -> 5, a => 5, <b>, x > y, << 5", "", "A -> 5, a => 5, <b>, x > y, << 5"),
    ],
)
def test_signs_before_numbers_are_read_as_the_words_of_the_other_text(text, other, told):
    assert signs_in_words(text, other) == told


def test_one_text_tells_the_order_of_dates_for_both():
    claim, evidence = "Signed on 03/05/2024.", "Signed on 03/05/2024, due on 13/05/2024."
    told = ("Signed on 3 May 2024.", "Signed on 3 May 2024, due on 13 May 2024.")
    assert in_one_notation(claim, evidence) == told
    assert in_one_notation(evidence, claim) == told[::-1]


@pytest.mark.parametrize(("day", "order"), [("5 March 2024", "MDY"), ("3 May 2024", "DMY"), ("4 May 2024", "")])
def test_where_no_text_tells_the_order_of_a_date_it_is_either_day(day, order):
    claim, evidence = f"Signed on {day}.", "Signed on 03/05/2024."
    assert fitting_order(claim, evidence) == order
    assert in_one_notation(claim, evidence)[1] == (claim if order else evidence)
    assert either_day(claim, evidence) == either_day(evidence, claim) == ("03/05/2024" if order else "")
    assert either_day(claim, f"{evidence} Due on 13/05/2024.") == ""


def test_a_date_and_a_time_that_overlap_are_not_written_twice():
    assert in_one_notation("On 12 May at 12:00", "On May 12 pm")[1] == "On 12 May pm"


@given(
    st.text(alphabet="0123456789 .,:/-'€$%°<>≤=TMarchapmkgIVXtwohundredfifthy\u00a0\u2212", max_size=60),
    st.text(max_size=40),
)
def test_no_text_fails_and_a_text_is_in_its_own_notation(text, other):
    in_one_notation(text, other)
    words = dates_in_words(text)
    claim, evidence = in_one_notation(words, words)
    assert claim == evidence == dates_in_words(signs_in_words(words, words))
    assert all(0 <= one.start < one.end <= len(text) for one in amounts(text))


@pytest.mark.parametrize("written", ["2024-03-05", "Mar. 5, 2024", "05.03.2024", "March 5, 2024"])
def test_the_verifier_reads_a_date_in_any_notation(written):
    claim, other = SIGNED.format("5 March 2024"), SIGNED.format("6 March 2024")
    right, wrong = load_entailment().judge([(one, SIGNED.format(written)) for one in (claim, other)])
    assert (right.verdict, wrong.verdict) == ("supportive", "editing_required")


def test_guards_and_edits_read_the_evidence_in_the_notation_of_the_fact():
    fact = SIGNED.format("5 March 2024")
    assert missing(fact, SIGNED.format("2024-03-05")) == ()
    assert missing("It weighs 2,000 g", "It weighs 2 kg") == ()
    assert missing(fact, SIGNED.format("2024-03-06")) == ("5",)
    assert [r.new for r in replacements("It weighs 2,000 g", "It weighs 2 kg") if r.kind == "number"] == []
    assert "6 March" in [change.new for change in replacements(fact, SIGNED.format("2024-03-06"))]


def test_an_order_of_events_is_told_by_dates_in_digits():
    passage = "The audit ended on 2024-03-05. The fee was paid on 2024-02-01."
    assert against("The audit ended before the fee was paid.", passage) is not None
    assert against("The fee was paid before the audit ended.", passage) is None
