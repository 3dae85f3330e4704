"""Citation markers of both styles, the sentences they belong to, and the tokens they take."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from engine.answer.citations import (
    annotate,
    blanked,
    cited_sentences,
    content_token_mask,
    find_citations,
    without_markers,
)
from engine.answer.prompt import NOTHING_CLOSE, REFUSAL
from engine.core.values import Answer
from engine.prompts import fill
from tests.tiny import tiny_model


@pytest.mark.parametrize(
    ("text", "style", "expected"),
    [
        ("Ice [cite_2].", "garage", [(2, True, "[cite_2]")]),
        ("Ice [cite_1][cite_2].", "garage", [(1, True, "[cite_1]"), (2, True, "[cite_2]")]),
        ("Ice [cite_1, cite_2].", "garage", [(1, True, "[cite_1"), (2, True, ", cite_2]")]),
        ("Ice [Cite_1; cite_9 ]", "garage", [(1, True, "[Cite_1"), (9, False, "; cite_9 ]")]),
        ("Ice [cite_1, 3]", "garage", [(1, True, "[cite_1"), (3, True, ", 3]")]),
        ("Ice [cite_0] [cite_4]", "garage", [(0, False, "[cite_0]"), (4, False, "[cite_4]")]),
        ("Ice [1] and [cite_]", "garage", []),
        ("Ice [1].", "alce", [(1, True, "[1]")]),
        ("Ice [1][3].", "alce", [(1, True, "[1]"), (3, True, "[3]")]),
        ("Ice [1, 12].", "alce", [(1, True, "[1"), (12, False, ", 12]")]),
        ("In [1931] it was [sic] rebuilt; [0, 127] and [128, 255] are ranges and a[0] a cell.", "alce", []),
        ("", "garage", []),
        ("Ice【2†source】, fog【1:0†a.pdf】.", "alce", [(2, True, "【2†source】"), (1, True, "【1:0†a.pdf】")]),
        ("Ice [^2] (Source 3).", "alce", [(2, True, "[^2]"), (3, True, "(Source 3)")]),
        ("Ice [Doc 3, p. 14] [1, Section 5].", "alce", [(3, True, "[Doc 3, p. 14]"), (1, True, "[1, Section 5]")]),
        ("Ice (Docs 1 and 2).", "alce", [(1, True, "(Docs 1"), (2, True, " and 2)")]),
        ("Ice (see [2]), fog ([Doc 1](#doc1)).", "alce", [(2, True, "(see [2])"), (1, True, "([Doc 1](#doc1))")]),
        ("Ice [1](https://a.org/9).", "alce", [(1, True, "[1](https://a.org/9)")]),
        ("Ice [1-3].", "alce", [(1, True, "[1-3"), (2, True, ""), (3, True, "]")]),
        (
            "Ice [1, 2–3] (Passages 2 to 3).",
            "alce",
            [(1, True, "[1"), (2, True, ", 2–3"), (3, True, "]"), (2, True, "(Passages 2 to 3"), (3, True, ")")],
        ),
        ("Ice [3-1] [1-99].", "alce", [(3, True, "[3"), (1, True, "-1]"), (1, True, "[1"), (99, False, "-99]")]),
        ("Ice [cite_1-2, cite_3].", "garage", [(1, True, "[cite_1-2"), (2, True, ""), (3, True, ", cite_3]")]),
        ("Ice [cite_1-2-3].", "garage", []),
        ("Ice [cite_1-cite_2].", "garage", [(1, True, "[cite_1-cite_2"), (2, True, "]")]),
        ("Ice.¹ It has 5 m² (2 rooms, Section 3).", "alce", [(1, True, "¹")]),
    ],
)
def test_markers_by_hand(text, style, expected):
    found = find_citations(text, 3, style)
    assert [(c.number, c.valid, text[c.start : c.end]) for c in found] == expected


@given(st.lists(st.tuples(st.sampled_from(["Ice melts", "é 👩‍👧", ""]), st.integers(0, 30)), max_size=6))
def test_what_is_written_is_found(parts):
    text = " ".join(f"{words} [cite_{number}]" for words, number in parts)
    found = find_citations(text, 10)
    assert [c.number for c in found] == [number for _, number in parts]
    assert all(text[c.start : c.end] == f"[cite_{c.number}]" and c.valid == (1 <= c.number <= 10) for c in found)


def test_text_without_markers():
    assert without_markers("Ice melts [cite_1, cite_2]. It boils. [cite_3]") == "Ice melts. It boils."
    assert without_markers("[1] says that ice melts [2][3].") == "says that ice melts."
    assert without_markers("No markers [sic].") == "No markers [sic]."
    assert without_markers("**Ice** `melts` (Source 2).") == "Ice melts."


def test_markdown_is_blanked_and_what_only_looks_like_it_stays():
    plain = "2*3*4, 2**3, a * b, snake_case, __init__, List<int>, $5 or $6, f[1](x), [sic], ~5, #1"
    assert blanked(plain) == plain.replace("[1](x)", "      ")
    text = "- [x] **a** _b_ <b>c</b> ![d](e) [f](g) `h*` $i$\n> j"
    assert (blanked(text).split(), len(blanked(text))) == (["-", "a", "b", "c", "f", "h*", "i", "j"], len(text))


@pytest.mark.parametrize("piece", ["*", "`", "_a ", "```\n", "<b ", "[", "> ", "$a", "【1", "(see [1]"])
def test_markdown_that_never_closes_takes_linear_time(piece):
    assert len(blanked(piece * 20_000)) == len(piece) * 20_000


@pytest.mark.parametrize(
    ("text", "style", "expected"),
    [
        ("Ice melts [cite_1]. Water boils [cite_2].", "garage", ["Ice melts [cite_1].", "Water boils [cite_2]."]),
        ("Ice melts. [cite_1] Water boils. [cite_2]", "garage", ["Ice melts. [cite_1]", "Water boils. [cite_2]"]),
        ("Ice melts.[cite_1][cite_2] Water boils.", "garage", ["Ice melts.[cite_1][cite_2]", "Water boils."]),
        ("[1] Ice melts. Water boils.[2, 3]", "alce", ["[1] Ice melts.", "Water boils.[2, 3]"]),
        ("[1] Ice melts. [2][3] Water boils.", "alce", ["[1] Ice melts.", "[2][3] Water boils."]),
        ("[1] Ice melts.[2] Tin bends.", "alce", ["[1] Ice melts.[2]", "Tin bends."]),
        ("[1] Ice melts. [2] Tin bends [3].", "alce", ["[1] Ice melts.", "[2] Tin bends [3]."]),
        ("Ice melts. [1] Tin bends. [2] It is.", "alce", ["Ice melts. [1]", "Tin bends. [2]", "It is."]),
        ("Ice melts [citation:2]. Tin bends.", "alce", ["Ice melts [citation:2].", "Tin bends."]),
        ("- [1] Ice melts.\n- [2] Water boils.", "alce", ["- [1] Ice melts.", "- [2] Water boils."]),
        ("Ice melts.\n[1]\nWater boils. [2]", "alce", ["Ice melts.\n[1]", "Water boils. [2]"]),
        ("冰在零度融化。[1]\n水沸腾。[2]", "alce", ["冰在零度融化。[1]", "水沸腾。[2]"]),
        (
            "Metal | Melts [cite_1][cite_2]\niron | 1538 [cite_1]",
            "garage",
            ["Metal | Melts [cite_1][cite_2]", "iron | 1538 [cite_1]"],
        ),
        ('It "melts". [1]\nIt boils. [2]', "alce", ['It "melts". [1]', "It boils. [2]"]),
        ("[cite_1]", "garage", []),
        (
            "Use an environment: [cite_8] If you trained models, do it again. [cite_9]",
            "garage",
            ["Use an environment: [cite_8]", "If you trained models, do it again. [cite_9]"],
        ),
        ("**Ice** melts.[1] *It* floats.", "alce", ["**Ice** melts.[1]", "*It* floats."]),
        (
            "**Rent (s. 4):** 900 euros in all [1]\n**Term**: two",
            "alce",
            ["**Rent (s. 4):** 900 euros in all [1]", "**Term**: two"],
        ),
        ("It runs.\n```\nrun. Now.\n```\nIt ends.", "alce", ["It runs.", "It ends."]),
        ("It gives: [1] speed. At 10:30 [2] it ends.", "alce", ["It gives: [1] speed.", "At 10:30 [2] it ends."]),
    ],
)
def test_a_marker_belongs_to_the_sentence_before_it(text, style, expected):
    assert [text[start:end] for start, end in cited_sentences(text, style)] == expected


def test_sentences_do_not_overlap():
    rng = random.Random(7)
    parts = ["[1]", "[2][3]", " ", "\n", "Ice melts.", "Tin bends", " - ", "**", ": ", "Water boils. ", "| a | b |"]
    for _ in range(3000):
        text = "".join(rng.choices(parts, k=rng.randrange(3, 12)))
        spans = cited_sentences(text, "alce")
        assert all(one[1] <= other[0] for one, other in pairwise(spans)), text
        assert all(start < end for start, end in spans), text


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        (REFUSAL, True),
        (NOTHING_CLOSE, True),
        (f" {REFUSAL.lower().rstrip('.')} [cite_1]\n", True),
        (f"{REFUSAL} But ice melts [cite_1].", False),
        ("", False),
    ],
)
def test_a_refusal_is_the_refusal_sentence_alone(text, refused):
    assert annotate(Answer(text=text), 2).refused is refused


def test_annotate_leaves_text_and_tokens():
    answer = tiny_model("llama").encode_answer("Ice melts [cite_1].")
    noted = annotate(answer, 1)
    assert (noted.text, noted.tokens) == (answer.text, answer.tokens)
    assert noted.sentences == ((0, 19),)


def test_content_tokens_by_hand():
    """Every token that touches a character of a marker is left out, also " [" and "]."."""
    answer = annotate(tiny_model("llama").encode_answer("Hanna Lind [cite_1, cite_2]. 👩‍👧 built"), 2)
    inside = range(11, 27)
    expected = tuple(not any(i in inside for i in range(t.start, t.end)) for t in answer.tokens)
    assert content_token_mask(answer) == expected
    assert 0 < sum(expected) < len(expected)
    kept = {i for t, keep in zip(answer.tokens, expected, strict=True) if keep for i in range(t.start, t.end)}
    assert set(range(10)) <= kept and not kept & set(inside)
    assert all(content_token_mask(tiny_model("llama").encode_answer("Hanna Lind")))


def test_a_long_run_of_spaces_takes_linear_time():
    """A hundred thousand spaces would take hours if the markers were looked for from each of them."""
    text = "[cite_1" + " " * 100_000 + "x"
    assert without_markers(text) == text
    assert find_citations(text, 3) == ()


def test_an_answer_of_many_citations_takes_linear_time():
    """With a look at every sentence for every marker this would take a minute."""
    assert len(cited_sentences("Ice melts. [1] " * 30_000, "alce")) == 30_000
    assert len(cited_sentences("- [1]" * 30_000, "alce")) == 1


def test_the_prompt_does_not_invite_to_refuse():
    """Small writers take the invitation for questions that they could answer; answerable.py asks that apart."""
    assert REFUSAL == "The passages do not say."
    assert REFUSAL not in fill("answer", marker="[1]") and "not answer" not in fill("answer", marker="[1]")
