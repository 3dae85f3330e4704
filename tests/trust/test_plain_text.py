"""Text that a Markdown reader shows unchanged, and how invisible characters are drawn."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st
from markdown_it import MarkdownIt

from components.figures import drawn
from components.html import cell, markdown_runs, plain
from engine.cases.markup import visible
from engine.studies.values import Axis, Figure, Series
from tests.trust.attacks import ADDRESSES, CHARACTERS, FORMULAS, HTML, INJECTION, LATEX, MARKDOWN

ATTACKS = (*HTML.values(), *MARKDOWN.values(), *INJECTION.values(), *LATEX.values())
READER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
# What GitHub's Markdown, which Streamlit reads, makes a link of in text whose escapes are undone.
GFM_LINK = re.compile(r"https?://|www(?=\.)|[-.\w+]+@[-\w]+(?:\.[-\w]+)+", re.IGNORECASE)


@pytest.mark.parametrize("attack", ATTACKS)
def test_markdown_of_plain_text_is_one_paragraph_of_text(attack):
    tokens = READER.parse(plain(attack))
    assert [token.type for token in tokens] == ["paragraph_open", "inline", "paragraph_close"]
    assert {child.type for child in tokens[1].children} <= {"text", "text_special"}


@given(st.text(max_size=60))
def test_every_text_comes_back_as_it_was_but_for_its_white_space(text):
    shown = MarkdownIt("commonmark", {"html": True}).enable("table").renderInline(plain(text))
    words = " ".join(visible(text).split())
    escaped = words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
    assert shown.replace("\u2060", "").strip() == escaped.strip()


def test_the_marks_of_an_answer_in_markdown_are_out_of_the_way():
    runs = [(run["text"], run["style"]) for run in markdown_runs("## Dose\n| a |\n|---|\n- [docs](x)")]
    assert runs[:2] == [("## ", "hidden"), ("Dose", "strong")]
    assert runs[3:] == [("|---|", "faint"), ("\n- ", ""), ("[", "faint"), ("docs", ""), ("](x)", "faint")]


@given(st.text(alphabet="ab1*_`# |-[]()<>\n\t.$", max_size=60) | st.sampled_from(ATTACKS))
def test_no_word_of_an_answer_is_hidden(text):
    runs = markdown_runs(text)
    assert "".join(run["text"] for run in runs) == visible(text)
    assert all(set(run["text"]) <= set("*_`# \t") for run in runs if run["style"] == "hidden")


def test_mathematics_directives_and_icons_are_signs():
    assert plain("$x$ :red[y] :material/home: a:b:c") == "\\$x\\$ \\:red\\[y\\] \\:\u2060material/home: a\\:\u2060b\\:c"


@pytest.mark.parametrize("address", ADDRESSES.split())
def test_an_address_reads_as_it_was_written_and_leads_nowhere(address):
    drawn = READER.renderInline(plain(address))
    assert GFM_LINK.search(address)
    assert not GFM_LINK.search(drawn)
    assert drawn.replace("\u2060", "") == address


def test_a_chart_reads_no_tags():
    tick = '<a href="http://attack.invalid">tick</a>'
    series = Series(name=tick, x=(tick, "b"), y=(1.0, 2.0))
    axis = Axis(name=tick, unit=tick)
    for kind in ("lines", "bars", "points", "contour"):
        figure = Figure(name="f", title=tick, kind=kind, x=axis, y=axis, series=(series,))
        texts = re.findall("<?a href", str(drawn(figure).to_dict()))
        assert texts
        assert set(texts) == {"a href"}


def test_characters_that_nobody_would_see_are_drawn():
    assert visible("pay\u200bpal\u2060\ufeff\u00ad") == "pay[U+200B]pal[U+2060][U+FEFF][U+00AD]"
    assert visible("\U000e0041") == "[U+E0041]"
    assert visible("a\u2028b") == "a[U+2028]b"
    assert not re.search(
        "[\u200b\u2060\ufeff\u00ad\x1b\u202e\u2066\x85\u2028\x9b]", visible("".join(CHARACTERS.values()))
    )


def test_a_family_a_flag_and_joined_scripts_stay_whole():
    for text in ("👩‍👩‍👧", "می‌خواهم", "क्‍ष", "Ä", "é", "🏴", "❤️"):
        assert visible(text) == text


def test_a_stack_of_marks_is_cut_to_a_readable_one():
    drawn = visible("Z" + "\u0300\u0335" * 100 + "algo")
    assert drawn.startswith("Z\u0300\u0335")
    assert drawn.endswith("[196 more marks]algo")


@pytest.mark.parametrize("formula", FORMULAS)
def test_a_formula_is_quoted_in_a_table(formula):
    assert cell(formula).startswith("'")


def test_numbers_and_words_in_a_table_stay():
    for text in ("-0.5", "+12,000", "-1e-05", "a=b", "well-known", "", "-12%"):
        assert cell(text) == text
