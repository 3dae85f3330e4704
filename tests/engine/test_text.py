"""Sentences, words and content words: the cases that the splitter must get right, and its invariants."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from engine.answer.citations import find_citations
from engine.core.text import content_words, headings, normal_number, sentences, stems, words

# Each text stands as its sentences, joined by one space.
ONE_SPACE = [
    ["Dr. Hunt weighed 2.1 g of 4-aminophenol."],
    ["Heat to 90-100 °C.", "Stir for 5 min (see Fig. 2).", "Filter it."],
    ["Use a drying agent, e.g. magnesium sulfate, i.e. a salt.", "Then filter."],
    ['"Is it pure?" he asked.', "It was."],
    ["He took vitamin C.", "Then he left."],
    ["J. R. Smith and Mrs. Jones et al. wrote it in 1999.", "The book sold 3.5 million copies."],
    ["The U.S. Army came.", "It left at 5 p.m.", "They stayed in the U.S.", "It was cold."],
    ["Then: 1. Weigh it.", "2. Heat it at 298 K.", "3. Cool it."],
    ["Wash at 0 °C.", "pH must be 7.", "4-Aminophenol is a solid.", "p-Xylene is not."],
    ["No. 5 is alive.", "He said no.", "The end."],
    ["Seasonality recurs every year .", "Any pattern is seasonal ."],
    ["It ended (really.)", "Then it began.", "Done...", "Next."],
    ["Stop!", "Why?", "Because of sec. 4 and pp. 5-7."],
    ["It cost $3.50 vs. $4.", "Mr. A. B. Cole paid."],
    ["He sold 48 shares to Kestrin Ltd.", "Ms Brandvik sold 16."],
    ["Ask S. Whitehall, P. Brandt or M.P. Cole.", "It took 30 s.", "See p. 5."],
    ["It was published in Vol. IV on Jan. 5.", "Nobody read it."],
    ["Pets need consent.[1][^2]", "Cats do not.¹", "Birds sing.*", "He lied.[citation needed]", "It ended."],
    ["Rent is EUR 900 incl. VAT.", "Keep it at max. 40 °C or min. 5 °F.", "It took 5 min.", "20 men left."],
    ["It costs max. $40 excl. Sundays.", "We met up to 5 max.", "The rest left."],
    ["Smith v. Jones turned on v. 2.0 of the licence, cl. 4.", "The supply gave 230 V.", "It burned."],
]


@pytest.mark.parametrize("parts", ONE_SPACE, ids=lambda parts: parts[0][:20])
def test_sentences_by_hand(parts: list[str]) -> None:
    text = " ".join(parts)
    assert [text[s:e] for s, e in sentences(text)] == parts


def test_each_row_of_a_table_is_a_sentence_however_long() -> None:
    rows = [f"{country} | breakfast is paid in full | dinner is paid up to {n} EUR" for n, country in enumerate("AB")]
    assert [("\n".join(rows))[a:b] for a, b in sentences("\n".join(rows))] == rows


def test_a_row_between_bars_is_a_sentence_whatever_its_cells_say() -> None:
    rows = ["| City | Pop. | Area |", "| --- | --- | --- |", "| Cork | It has 200 men. Few left. | 100 ha |"]
    assert [("\n".join(rows))[a:b] for a, b in sentences("\n".join(rows))] == rows
    value = "|x| is 5. It rose."
    assert [value[a:b] for a, b in sentences(value)] == ["|x| is 5.", "It rose."]


@pytest.mark.parametrize(
    "entries",
    [
        ["[09:04] raj: the key is with Mireille, who is away", "[09:07] lena: then we wait until she is back"],
        ["2024-10-03 02:22 ERROR volume 63 failed: wrong checksum", "2024-10-03 02:23 WARN volume 63 is copied again"],
        [
            "12/03/24, 9:15 - Anna: I shall bring the cake on Sunday",
            "12/03/24, 9:20 - Ben: Good, and I bring the plates",
        ],
        ["Oct  3 02:00:11 host kernel: the disk is full again today", "Oct  3 02:00:12 host kernel: Out of memory"],
        ["Present: Ann Reed (chair), Ben Fox, and the treasurer", "Apologies: Cora Lund"],
    ],
)
def test_each_entry_of_a_log_a_chat_or_a_form_is_a_sentence_and_not_a_heading(entries: list[str]) -> None:
    text = "\n".join(entries)
    assert [text[a:b] for a, b in sentences(text)] == entries
    assert headings(text, sentences(text)) == [False, False]


@pytest.mark.parametrize(
    ("text", "heads"),
    [
        ("Yield\n\nIt was 40%.", [True, False]),
        ("Oven\n250 g flour\n60 g butter\n", [True, False, False]),
        ("pip install portal\n\nThen start it.", [False, False]),
        ("1. Purpose\nIt says why.\n\n2. Scope\nIt says where.", [True, False, True, False]),
        ("1. Weigh it\n2. Heat it\n\nLet it cool.", [False, False, False]),
        ("Who has it?\nMireille\n", [True, False]),
        ("Dear Ann,\n\nIt came.", [False, False]),
    ],
)
def test_a_heading_is_a_line_of_its_own_on_what_follows(text: str, heads: list[bool]) -> None:
    assert headings(text, sentences(text)) == heads


def test_a_note_behind_a_sentence_does_not_make_it_a_heading() -> None:
    text = "The tenant may keep two cats.[^1] Dogs need consent.[2]\n\n[^1]: Since 2020.\n"
    spans = sentences(text)
    assert headings(text, spans) == [False, False, False]


def test_headings_steps_and_wrapped_lines() -> None:
    text = (
        "Synthesis of acetaminophen\n\n1. Dissolve the solid. Keep it hot.\n2. Filter\n- Wash it\n"
        "This line is wrapped by hand because it is long and\nit goes on here, and in\nlower case too.\nYield\n"
    )
    assert [text[s:e] for s, e in sentences(text)] == [
        "Synthesis of acetaminophen",
        "1. Dissolve the solid.",
        "Keep it hot.",
        "2. Filter",
        "- Wash it",
        "This line is wrapped by hand because it is long and\nit goes on here, and in\nlower case too.",
        "Yield",
    ]


@given(st.text(alphabet=st.sampled_from(list("aB1.?! \n\t\"'()°é中。\r\x0c\u2028-"))))
def test_sentences_cover_every_visible_character_once(text: str) -> None:
    spans = sentences(text)
    covered = [i for s, e in spans for i in range(s, e)]
    assert covered == sorted(set(covered))
    assert {i for i, c in enumerate(text) if not c.isspace()} <= set(covered)
    assert all(text[s:e] == text[s:e].strip() != "" for s, e in spans)


def test_one_long_line() -> None:
    assert len(sentences("Add 5 mL. " * 40_000)) == 40_000


@pytest.mark.parametrize("marks", ["." * 400_000, "?!" * 200_000, "…" * 400_000])
def test_a_run_of_end_marks_is_read_once(marks: str) -> None:
    """It took a time that grew with the square of the run; hours for this one."""
    assert sentences(marks) == ((0, len(marks)),)
    text = f"Ice melts{marks} Tin bends."
    assert [text[start:end] for start, end in sentences(text)] == [f"Ice melts{marks}", "Tin bends."]
    assert sentences(f"Ice melts{marks}x Tin") == ((0, len(marks) + 14),)


def test_a_run_of_note_marks_is_read_once() -> None:
    """It took a time that doubled with each mark."""
    text = f"Ice melts.{'¹' * 1000}x Tin bends."
    assert sentences(text) == ((0, len(text)),)
    assert sentences("Ice melts.¹² Tin bends.") == ((0, 12), (13, 23))


def test_words() -> None:
    text = "It's 3,400.5 g of 4-aminophenol, at the U.S. end.Next"
    assert [text[s:e] for s, e in words(text)] == [
        "It's", "3,400.5", "g", "of", "4-aminophenol", "at", "the", "U.S", "end", "Next",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("word", "normal"),
    [("1,200", "1200"), ("1200.0", "1200"), ("1200", "1200"), ("two", "2"), ("twelve", "12"), ("thirteen", "thirteen"),
     ("0.50", "0.5"), ("007", "7"), ("1,20", "1,20"), ("iron", "iron")],
)  # fmt: skip
def test_normal_number(word: str, normal: str) -> None:
    assert normal_number(word) == normal


def test_a_column_name_is_its_words() -> None:
    assert stems("co2_ppm: 1650 [cite_2]") == ("co2", "ppm", "1650")


def test_content_words() -> None:
    assert content_words("The (Iron) ore [cite_12], it's 1,200 tons [3] — Two.") == ("iron", "ore", "1200", "tons", "2")
    assert content_words("the of and [1]") == ()
    for spelled in ("Lovelace\u2019s Mu\u0308ller isn\u2019t", "Lovelace's M\u00fcller isn't"):
        assert content_words(spelled) == ("lovelace's", "m\u00fcller")


def test_content_words_leave_out_what_is_a_citation_and_keep_what_is_none() -> None:
    marked = "Ice [cite_1 cite_2] melts [Cite_3, 4] at [ 5 ] zero [1984]."
    assert content_words(marked) == ("ice", "melts", "0", "1984")
    assert [c.number for c in find_citations(marked, 9)] == [1, 2, 3, 4]
    assert [c.number for c in find_citations(marked, 9, "alce")] == [5]
