"""Tables in a passage: which lines are one, and which of its rows a verifier reads for a claim."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from engine.core.values import Passage
from engine.methods.are.are import check_answer
from engine.methods.are.evidence import Sources
from engine.methods.are.tools import Task, Tools
from engine.models.embedder import load_embedder
from engine.models.tables import named_rows, readings, tables, without_other_rows
from engine.models.verdicts import windows
from engine.models.verifier import load_entailment

FEES = (
    "The fees were changed on 2024-03-05.\n\nFees of the library\n\n"
    "Group | Fee | Loans\nStudents | 45 euros | 10\nAdults | 90 euros | 5\nSeniors | 60 euros | 8\n\nAsk at the desk.\n"
)


def rows_of(claim: str, text: str) -> list[str]:
    return [text[a:b] for table in tables(text) for a, b in named_rows(claim, text, table)]


def test_a_table_has_its_rows_names_and_caption():
    (table,) = tables(FEES)
    assert [FEES[a:b] for a, b in table.rows][::2] == ["Students | 45 euros | 10", "Seniors | 60 euros | 8"]
    assert (table.head, table.caption) == ("Group | Fee | Loans", "Fees of the library")


@pytest.mark.parametrize(
    ("text", "head"),
    [
        ("Metal | Melts at\nIron | 1538\nTin | 232", "Metal | Melts at"),
        ("Owner | Ann Berg\nChair | Bo Lind", ""),
        ("Fee | 45 euros\nDeposit | 20 euros", ""),
        ("Land | 2019 | 2020\nPeru | 3 | 4", "Land | 2019 | 2020"),
        ("Tin | 232 | white\nIron | 1538 | grey", ""),
        ("Room | 12 | 14\nSeats | 30 | 45", ""),
        ("Name | Town | Rank\nAnn | Cork | clerk", "Name | Town | Rank"),
        ("Who: Ann | Age: 5 | Town: Cork\nWho: Bo | Age: 7 | Town: Riga", ""),
        ("Region | Q1 | Week 2\nNorth | 5 | 7\nSouth | 8 | 9", "Region | Q1 | Week 2"),
        ("Region | 2019/20 | 2020*\nNorth | 5 | 7", "Region | 2019/20 | 2020*"),
        ("Tin | 232 | white\nIron | n/a | grey\nLead | 327 | grey", ""),
        ("Tin | EUR 5 | white\nIron | EUR 7 | grey", ""),
        ("Metal | Melts at\nIron | 1538\nCoal | \nTin | 232", "Metal | Melts at"),
        (" | 2019 | 2020\nPeru | 3 | 4", "| 2019 | 2020"),
        ("| Metal | Melts at |\n|---|---|\n| Iron | 1538 |", "| Metal | Melts at |"),
    ],
)
def test_the_first_line_names_the_columns_of_three_or_where_it_alone_has_no_number(text, head):
    assert tables(text)[0].head == head


@pytest.mark.parametrize(
    "text",
    ["", "One | line", "a | b\n\nno table\n\nc | d", "a | b\nc | d | e", f"a | b\nc | {'long text ' * 50}\nd | e"],
)
def test_a_single_line_or_lines_of_different_length_or_of_running_text_are_not_a_table(text):
    assert tables(text) == ()


@pytest.mark.parametrize(
    ("claim", "keys"),
    [
        ("Adults pay 60 euros.", ["Adults"]),
        ("Adults pay more than students.", ["Students", "Adults"]),
        ("The highest fee is 90 euros.", ["Students", "Adults", "Seniors"]),
        ("Nobody pays.", ["Students", "Adults", "Seniors"]),
    ],
)
def test_a_claim_is_about_the_rows_whose_first_cell_it_names_else_about_all_that_share_its_words(claim, keys):
    assert [row.split(" | ")[0] for row in rows_of(claim, FEES)] == keys


ROW = "Light: Sker Rock | height_m: 48 | Range (nm): 22 | Fee in EUR: 5 | loss_pct: 1.5 | temp_C: -6 | Vitamin C: 9"


@pytest.mark.parametrize(
    ("claim", "told"),
    [
        ("It is 4,800 cm high.", "height: 48 m"),
        ("It has a range of 9 nautical miles.", "Range: 22 nautical miles"),
        ("The fee is 7 euros.", "Fee: 5 EUR"),
        ("It loses 2 percent.", "loss: 1.5 pct"),
        ("It is 3 degrees Celsius cold.", "temp: -6 \u00b0C"),
        ("It has 48 stairs, 22 rooms and 5 doors.", "height m: 48, Range (nm): 22, Fee in EUR: 5, loss pct: 1.5"),
    ],
)
def test_a_number_has_the_unit_of_its_columns_name_where_the_claim_has_a_measure_of_this_kind(claim, told):
    ((_, read),) = readings(claim, ROW)
    assert told in read


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        ("Sker Rock has a range of 22 nautical miles.", "supportive"),
        ("Sker Rock has a range of 18 nautical miles.", "editing_required"),
        ("The fee at Sker Rock is 5 euros.", "supportive"),
        ("The fee at Sker Rock is 8 euros.", "editing_required"),
    ],
)
def test_the_verifier_binds_a_number_to_the_unit_of_its_columns_name(claim, verdict):
    assert load_entailment().judge([(claim, ROW)])[0].verdict == verdict


@given(st.text("ab _()[]/%mC1", max_size=30), st.text("0123456789.,- m", max_size=20))
def test_no_name_of_a_column_is_an_error_and_no_cell_is_lost(name, cell):
    row = f"Who: Ann | {name or 'x'}: {cell or '1'} | Age: 5"
    told = "".join(text for _, text in readings("It is 5 metres and 3 \u00b0C.", row))
    assert "".join(cell.split()) in "".join(told.split())


def test_a_long_row_is_read_fast():
    row = " | ".join(f"{'a_' * 3000}{n}: {n}" for n in range(3))
    assert readings("It is 5 metres.", row)


def test_a_year_names_its_row_and_any_other_number_none():
    text = "Year | Sales | Staff\n2019 | 5 | 7\n2020 | 7 | 5"
    assert rows_of("In 2020 sales were 5.", text) == ["2020 | 7 | 5"]
    assert len(rows_of("Sales were 7.", "No. | Item | Price\n7 | Salt | 3\n8 | Sugar | 7")) == 2


def test_a_date_in_another_notation_names_its_row():
    text = "Day | Guests | Staff\n2024-03-05 | 12 | 3\n2024-03-06 | 14 | 3"
    assert rows_of("On 6 March 2024 there were 12 guests.", text) == ["2024-03-06 | 14 | 3"]


@pytest.mark.parametrize(
    ("claim", "labels", "keys"),
    [
        ("In Q2 sales were 5.", "Q1 Q2 Q3", ["Q2"]),
        ("Sales rose from April to May.", "April May June", ["April", "May"]),
        ("Sample A is heavier than B.", "A B C", ["A", "B"]),
        ("Total_costs were 5.", "Costs Travel_costs Total_costs", ["Total_costs"]),
        ("Costs were below total_costs.", "Costs Travel_costs Total_costs", ["Costs", "Total_costs"]),
        ("Adults pay 5.", "Students\u00b9 Adults\u00b2", ["Adults\u00b2"]),
    ],
)
def test_a_row_is_named_by_the_longest_label_that_the_claim_has(claim, labels, keys):
    rows = [f"{label} | {place} | {place + 5}" for place, label in enumerate(labels.split())]
    text = "\n".join(["Figures", "", "What | Sales | Staff", *rows]).replace("_", " ")
    named = [row.split(" | ")[0].replace(" ", "_") for row in rows_of(claim.replace("_", " "), text)]
    assert named == keys


def test_an_empty_first_cell_is_that_of_the_row_above():
    text = "Group | Age | Fee\nMembers | Young | 45\n | Old | 90\nGuests | Young | 50\n | Old | 99\n"
    assert rows_of("Old members pay 90.", text) == ["Members | Young | 45", "| Old | 90"]


def test_a_day_in_digits_in_the_claim_names_its_row():
    text = "Day | Guests | Staff\n2024-03-05 | 12 | 3\n2024-03-06 | 14 | 3"
    assert rows_of("On 2024-03-06 there were 12 guests.", text) == ["2024-03-06 | 14 | 3"]


def test_a_first_row_of_a_passage_that_may_be_no_head_is_read_where_it_is_named():
    text = "Ann Berg | Cork | clerk\nBo Lind | Riga | cook\n"
    assert readings("Ann Berg is a clerk.", text)[0][1].startswith("Ann Berg | Cork | clerk. ")


def test_the_reading_of_a_table_is_the_named_row_with_the_names_of_the_columns():
    before, (span, row), after = readings("Adults pay 60 euros.", FEES)
    assert FEES[slice(*span)] == "Adults | 90 euros | 5"
    assert row == "Fees of the library. Group: Adults, Fee: 90 euros, Loans: 5"
    assert before[1].startswith("The fees were changed")
    assert after[1].strip() == "Ask at the desk."


@pytest.mark.parametrize(
    ("claim", "row"),
    [
        ("Adults pay 5 as a fee.", "Group: Adults, Fee: 90 euros"),
        ("The fee of adults is 90 euros.", "Group: Adults, Fee: 90 euros, Loans: 5"),
        ("The fee of adults is 70 euros.", "Group: Adults, Fee: 90 euros, Loans: 5"),
        ("Adults pay a fee of 90 euros for 5 loans.", "Group: Adults, Fee: 90 euros, Loans: 5"),
    ],
)
def test_of_a_row_the_named_columns_are_read_where_the_claim_has_the_number_of_another(claim, row):
    ((_, told),) = readings(claim, "Group | Fee | Loans\nStudents | 45 euros | 10\nAdults | 90 euros | 5")
    assert told == row


@pytest.mark.parametrize(
    ("claim", "row"),
    [
        ("Sweden had 316 staff in 2023", "Office: Sweden, Staff 2023: 181"),
        ("Sweden had 181 staff in 2023", "Office: Sweden, Staff 2022: 316, Staff 2023: 181"),
    ],
)
def test_a_row_whose_cells_name_their_columns_is_read_as_one_below_a_head(claim, row):
    own = "Office: Sweden | Staff 2022: 316 | Staff 2023: 181"
    assert [told for _, told in readings(claim, own)] == [row]
    assert [told for _, told in readings(claim, f"{own}\nOffice: Norway | Staff 2022: 343 | Staff 2023: 88")] == [row]


def test_a_table_of_many_rows_is_read_in_parts():
    text = "A | B | C\n" + "\n".join(f"row {i} | some words | more words" for i in range(40))
    parts = readings("Nothing of this.", text, words=50)
    assert len(parts) > 5
    assert "".join(told for _, told in parts).count("some words") == 40


@given(st.text(alphabet="ab |\n9.", max_size=120), st.text(alphabet="ab 9", max_size=20))
def test_every_reading_is_a_part_of_the_text_and_a_text_without_a_table_is_read_as_before(text, claim):
    found = readings(claim, text)
    assert found
    assert all(0 <= a <= b <= len(text) for (a, b), _ in found)
    if not tables(text) and text.strip():
        assert found == [(span, text[slice(*span)]) for span in windows(text)]
        assert without_other_rows(claim, text) == text


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        ("Students pay 45 euros.", "supportive"),
        ("Students pay 90 euros.", "editing_required"),
        ("Adults have 5 loans.", "supportive"),
        ("Adults have 10 loans.", "editing_required"),
        ("The fees were changed on 5 March 2024.", "supportive"),
    ],
)
def test_the_verifier_binds_a_value_to_its_row(claim, verdict):
    (judged,) = load_entailment().judge([(claim, FEES)])
    assert judged.verdict == verdict


def test_a_value_of_another_row_is_mended_by_its_own():
    passage = Passage(id="1", document="1", title="Library", ordinal=0, start=0, end=len(FEES), text=FEES)
    sources = Sources(embedder=load_embedder(), case=(passage,))
    record = check_answer(Task("What are the fees?", "Adults pay 60 euros [1].", sources, Tools(load_entailment())))
    assert [(edit.old, edit.new) for edit in record.edits] == [("60", "90")]
