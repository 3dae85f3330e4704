from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from engine.methods.are.edit import Replacement, apply, asked_edit, changes, parse_edit, replacements
from engine.methods.are.names import names
from engine.methods.are.quantities import holds, quantities
from engine.models.scripted import ScriptedWriter


@given(st.text(max_size=30), st.text(max_size=30))
def test_changes_turn_the_old_text_into_the_new_one(old, new):
    text = old
    for change in reversed(changes(old, new)):
        assert old[change.start : change.end] == change.old
        text = text[: change.start] + change.new + text[change.end :]
    assert text == new


def test_a_comparison_that_the_number_contradicts_is_turned_round():
    claim = "Less than 8,000 tests were made."
    best = replacements(claim, "In all 8,157 tests were made.")[0]
    assert apply(claim, best) == "More than 8,000 tests were made."


def test_of_two_limits_on_one_side_the_number_is_wrong():
    best = replacements("More than six months passed.", "More than two months passed.")[0]
    assert apply("More than six months passed.", best) == "More than two months passed."


def test_no_denial_is_taken_out_by_a_sentence_that_denies_in_another_way():
    claim = "Small firms need not keep records."
    assert [apply(claim, c) for c in replacements(claim, "Small firms need keep records.")] != []
    assert replacements(claim, "Small firms are exempt from keeping records.") == []


@pytest.mark.parametrize(
    ("claim", "evidence", "right"),
    [("over 5", "6", True), ("over 5", "5", False), ("at least 5", "5", True), ("5 million", "5,000,000", True),
     ("under 5", "4.9", True), ("before 1990", "1991", False), ("five", "5", True), ("no higher than 5", "4", True),
     ("not fewer than 5", "4", False), ("nearly 8,000", "7,900", True), ("nearly 8,000", "200", False),
     ("more than 5", "fewer than 10", False), ("more than 5", "more than 10", True),
     ("40817239", "40817293", False), ("$15,301", "$15,300", False), ("1.1 million", "1,100,000", True),
     ("408172391234567", "408172391234568", False),
     ("around 11,000", "11,002", True), ("around 11,000", "12,345", False), ("About 50%", "49.7%", True),
     ("some 830", "828", True), ("about 830", "838", False), ("about 1.2 million", "1,249,000", True),
     ("about 100", "149", False), ("about fifty", "52", True), ("more than about 50", "52", True),
     ("circa 1850", "1849", False),
     ("version 2.1", "version 2.10", False), ("version 2.10", "2.10", True), ("2.10 euros", "2.1 euros", True)],
)  # fmt: skip
def test_whether_a_number_bears_a_comparison_out(claim, evidence, right):
    assert holds(quantities(claim)[0], quantities(evidence)[0]) is right


@pytest.mark.parametrize(
    ("claim", "evidence", "edited"),
    [
        ("The bank won't refund the fee.", "The bank will refund the fee.", "The bank will refund the fee."),
        ("Staff can’t claim it.", "Staff can claim it.", "Staff can claim it."),
        ("Staff cannot claim it.", "Staff can claim it.", "Staff can claim it."),
        ("It didn't rain.", "It did rain.", "It did rain."),
        ("The fee is no higher than 50 euros.", "The fee is 60 euros.", "The fee is higher than 50 euros."),
    ],
)
def test_a_denial_is_taken_out_whole(claim, evidence, edited):
    assert edited in [apply(claim, change) for change in replacements(claim, evidence)]


def test_a_true_limit_gets_no_replacement():
    claim = "The annual fee of the card is no higher than 50 euros."
    assert not [c for c in replacements(claim, "The annual fee of the card is 40 euros.") if c.kind != "negation"]


def test_a_number_of_something_becomes_one_of_the_same():
    claim, evidence = "It has 870 oaks and 60 elms.", "It has 57 elms, 60 ashes and 858 old oaks."
    assert [change.new for change in replacements(claim, evidence) if change.kind == "number"] == ["858"]


@pytest.mark.parametrize(
    ("claim", "evidence", "new"),
    [
        ("The hospital has 450 beds.", "The hospital has 520, of which 40 beds are new.", "520"),
        ("He paid 300 dollars for it.", "He paid $350 for it, and 40 dollars for the meal.", "350"),
        ("The lake is 45 km long.", "The lake has a length of 54 km; the river is 30 km long.", "54"),
        ("It is told in section 4.", "It is told in sections 5 and 6.", "5"),
        ("It is told in section 4.", "It is told in § 5.", "5"),
        ("Python version 3.12 is used.", "Python 3.13 is used.", "3.13"),
    ],
)
def test_a_number_that_does_not_say_of_what_it_is_may_be_the_right_one(claim, evidence, new):
    assert new in [change.new for change in replacements(claim, evidence) if change.kind == "number"]


def test_the_numbers_of_a_long_text_are_read_in_one_walk():
    assert len(quantities(" ".join(f"{i} oaks, (and more); the" for i in range(20_000)))) == 20_000


def test_the_number_of_a_chapter_becomes_no_amount():
    assert not [c for c in replacements("Chapter 3 is long.", "The book has 40 pages.") if c.kind == "number"]
    claim, evidence = "Chapter 3 has 41 pages.", "Chapter 4 has 40 pages."
    changed = [(change.start, change.new) for change in replacements(claim, evidence) if change.kind == "number"]
    assert sorted(changed) == [(8, "4"), (14, "40")]


def test_a_rounded_number_gets_no_replacement_where_one_of_the_evidence_rounds_to_it():
    claim = "The town had around 11,000 inhabitants in 2001."
    evidence = "The town had 12,345 inhabitants at the 2011 census, up from 11,002 in 2001."
    assert not [c for c in replacements(claim, evidence) if c.kind == "number"]
    best = replacements(claim, "The town had 12,345 inhabitants in 2001.")[0]
    assert apply(claim, best) == "The town had around 12,345 inhabitants in 2001."


def test_a_replacement_is_put_in_and_a_deletion_takes_a_blank_along():
    assert apply("a b a", Replacement(0, 1, "xx")) == "xx b a"
    assert [apply("a b a", Replacement(start, start + 1, "")) for start in (0, 2, 4)] == ["b a", "a a", "a b"]


def test_a_language_models_edit_says_what_is_wrong_and_is_read_only_in_the_asked_form():
    edit, exchange = asked_edit(
        "It was built in 1978.", "Built in 1983.", ScriptedWriter(["The year.\nIt was built in 1983."])
    )
    assert (edit.why, edit.after, edit.changes[0].new) == ("The year.", "It was built in 1983.", "1983")
    assert exchange.reply == "The year.\nIt was built in 1983."
    assert parse_edit("no idea", "It was built in 1978.") is None
    assert parse_edit("It was built in 1983.", "It was built in 1978.") is None
    assert parse_edit("Wrong.\nWhales sing in the deep sea.", "It was built in 1978.") is None


@pytest.mark.parametrize(
    ("fact", "fix", "after"),
    [
        ("which opened in 1978", "Which opened in 1983.", "which opened in 1983"),
        ("its owner opened it in 1978", "Marek its owner opened it in 1983.", "Marek its owner opened it in 1983"),
        ("It opened in 1978", "It opened in 1983.", "It opened in 1983"),
    ],
)
def test_a_language_models_edit_of_a_part_of_a_sentence_brings_no_full_stop_and_no_capital(fact, fix, after):
    edit, _ = asked_edit(fact, "Marek opened it in 1983, which all know.", ScriptedWriter([f"So.\n{fix}"]))
    assert edit.after == after
    assert not any("." in change.new for change in edit.changes)


def test_a_full_stop_alone_is_no_edit():
    assert asked_edit("the shop closed", "The shop closed.", ScriptedWriter(["Nothing.\nThe shop closed."]))[0] is None


def test_an_edit_of_a_long_answer_is_read_whole_or_not_at_all():
    answer = " ".join(f"word{n}" for n in range(150))
    fix = answer.replace("word9 ", "nine ")
    edit, _ = asked_edit(answer, "Nine.", ScriptedWriter([f"{'The ninth word. ' * 20}\n{fix}"]))
    assert edit.after == fix
    assert asked_edit(answer, "Nine.", ScriptedWriter([f"{'The ninth word. ' * 90}\n{fix}"]))[0] is None
    edit, exchange = asked_edit(
        "It was built in 1978.", "1983.", ScriptedWriter(["The year.\nIt was built in 1983.\n" + "So it is. " * 99])
    )
    assert (edit.after, len(exchange.reply.split())) == ("It was built in 1983.", 200)


@pytest.mark.parametrize(
    "reply",
    [
        "Difference: The year.\nCorrected fact: It was built in 1983.",
        "Sure, here is the corrected fact:\n\n1. The year.\n2. **It was built in 1983.**",
        'The year.\n\n"It was built in 1983."\n\nLet me know if you need more.',
        "The year.\nFact: It was built in 1978.\nCorrected fact: It was built in 1983.\nThis agrees.",
        "```\nThe year.\nMy fix: It was built in 1983.\n```",
    ],
)
def test_what_models_write_around_a_fix(reply):
    assert parse_edit(reply, "It was built in 1978.") == ("The year.", "It was built in 1983.")


def test_a_long_reply_is_read_in_one_go():
    assert parse_edit("The year.\n" + "It was built in 1983. " * 50_000, "It was built in 1978.") is None
    assert parse_edit("It was built.\n" * 50_000, "It was built in 1978.") is not None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Ada Berg in May", ["Ada Berg"]),
        ("No Viktor came", ["Viktor"]),
        ("May Berg met Theresa May in March 2020", ["May Berg", "Theresa May"]),
        ("On 5 May Bea Lund of Cork paid", ["Bea Lund of Cork"]),
        ("In June the bank of Ann and Bea closed", ["Ann and Bea"]),
        ("May 5 was dry", []),
        ("Dry months are May and June", ["Dry"]),
    ],
)
def test_names_hold_no_month_of_a_date_and_no_opening_word(text, found):
    assert [name for _, _, name in names(text)] == found
    assert all(text[start:end] == name for start, end, name in names(text))


def replaced(claim, evidence):
    return {(claim[c.start : c.end], c.new) for c in replacements(claim, evidence) if c.kind == "name"}


def test_a_word_that_only_opens_the_sentence_replaces_no_name():
    assert replaced("Zorn Ltd owns it.", "Filed in May as a report on Brand Ltd.") == {("Zorn Ltd", "Brand Ltd")}
    assert replaced("Zorn Ltd owns it.", "Cork has owned it since May.") == {("Zorn Ltd", "Cork")}


def test_a_possessive_name_is_replaced_without_its_ending():
    assert replaced("She sits on Zorn's board.", "She sits on Brand's board.") == {("Zorn", "Brand")}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("$94.8bn, EUR 2.4k, £5M", [("94.8bn", 94.8e9), ("2.4k", 2400), ("5M", 5e6)]),
        ("4.7s, 2.25s, 10km, 250mL and 3.5kWh", [("4.7", 4.7), ("2.25", 2.25), ("10", 10), ("250", 250), ("3.5", 3.5)]),
        ("the 1990s, 747s, 3.5pm, 4x4", []),
        ("5,000, 18.450,00 and 5th", [("5,000", 5000), ("18.450,00", 18450), ("5th", 5)]),
    ],
)
def test_a_number_before_letters_is_read_whole_with_its_scale_or_not_at_all(text, found):
    assert [(q.text, q.value) for q in quantities(text)] == found


def test_no_part_of_a_number_is_replaced():
    claim = "It was worth $94.8bn."
    assert replacements(claim, "It was worth $98.4bn.")[0] == Replacement(14, 20, "98.4bn", "number", 0.9)


@pytest.mark.parametrize(
    ("claim", "evidence", "edited"),
    [
        ("It lasts for 14 days.", "It lasts 7–10 days.", ["It lasts for 7–10 days."]),
        ("Give 7 mg.", "Give 5 to 10 mg.", ["Give 5 to 10 mg."]),
        ("It cost $6m.", "It cost $5-7m.", ["It cost $5-7m."]),
        ("The court ruled 5-4.", "Its 9 judges ruled 6-3.", ["The court ruled 6-3."]),
        ("Leeds won 3-1.", "Leeds won 4-2, Hull lost 0-3.", ["Leeds won 4-2.", "Leeds won 0-3."]),
        ("It fell to 12.", "It fell from 15 to 10.", ["It fell to 10.", "It fell to 15."]),
    ],
)
def test_one_end_of_a_range_or_score_is_neither_put_in_nor_replaced_alone(claim, evidence, edited):
    assert [apply(claim, c) for c in replacements(claim, evidence) if c.kind == "number"] == edited
