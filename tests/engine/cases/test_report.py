"""The report: one safe file that says everything a case holds."""

from __future__ import annotations

import base64
import hashlib
import itertools
import re
from typing import get_args

import html5lib
import msgspec
import pytest
from html5lib import HTMLParser
from html5lib.html5parser import ParseError
from jinja2 import UndefinedError
from markdown_it import MarkdownIt

from engine.analyses.attribution import UNDER_NUMERICAL, UNDER_PLACEBO, under_floor
from engine.answer.citations import annotate
from engine.cases import blocks
from engine.cases.blocks import answer_runs
from engine.cases.markup import escape, tag, visible
from engine.cases.review import MarkDraft, append, sign_off
from engine.core.canonical import content_hash
from engine.core.values import Analysis, Answer, Stamp
from engine.report.build import html_report, markdown_report
from engine.report.html import fragment
from engine.report.markdown import _paragraph
from tests.engine.cases.samples import attribution, full_case

HOSTILE = (
    "<script>alert(1)</script><img src=http://evil.example/x onerror=alert(1)> \" ' & </style> "
    "\x1b[31mred\x1b[0m \u202edesrever\u202c [x](javascript:alert(1)) ![y](http://evil.example/y) <!-- ]]>"
)


def reviewed(case, *drafts):
    marks = []
    for draft in drafts:
        marks.append(append(case, marks, draft, "2026-11-20T10:00:00+00:00"))
    return marks


def hostile_case():
    case = full_case()
    passages = tuple(
        msgspec.structs.replace(p, text=HOSTILE, end=len(HOSTILE), title=HOSTILE, document=HOSTILE)
        for p in case.passages
    )
    labels = {"source": HOSTILE, "spans": [{"start": 0, "end": 10, "text": HOSTILE, "label": HOSTILE, "note": HOSTILE}]}
    analyses = (
        *case.analyses,
        Analysis(id=HOSTILE, kind=HOSTILE, stamp=Stamp(model=HOSTILE), result={HOSTILE: [HOSTILE]}),
        Analysis(id="labels", kind="labels", stamp=Stamp(model="x"), result={**labels, "facts": {HOSTILE: HOSTILE}}),
        Analysis(id="reading", kind="reading", stamp=Stamp(model="x"), result={"candidates": [], "rule": HOSTILE}),
    )
    answer = msgspec.structs.replace(case.answer, text=HOSTILE, citations=(), sentences=(), tokens=(), quotes=())
    return msgspec.structs.replace(
        case,
        question=HOSTILE,
        title=HOSTILE,
        passages=passages,
        answer=answer,
        analyses=analyses,
        tags=(HOSTILE,),
        corpus=HOSTILE,
        stamp=Stamp(model=HOSTILE, settings={HOSTILE: HOSTILE}),
    )


def hostile_marks(case):
    return reviewed(
        case,
        MarkDraft(kind="note", author=HOSTILE, value=HOSTILE, target=HOSTILE),
        MarkDraft(kind="override", author=HOSTILE, value=HOSTILE, target=HOSTILE, reason=HOSTILE, machine=HOSTILE),
    )


def parsed(html: str):
    parser = HTMLParser(tree=html5lib.getTreeBuilder("etree"), strict=True, namespaceHTMLElements=False)
    return parser.parse(html)


CASES = {"full": full_case(), "hostile": hostile_case(), "bare": full_case(
    passages=(), analyses=(), hits=(), chunk_sets=(), prompt=None, steps=(),
    answer=msgspec.structs.replace(full_case().answer, text="", tokens=(), sentences=(), citations=(), quotes=()),
)}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_html_parses_without_one_error(name):
    tree = parsed(html_report(CASES[name]))
    assert tree.find("body/main/section") is not None


@pytest.mark.parametrize(("old", "new"), [("</section>", ""), ("</table>", ""), ("<!DOCTYPE html>", "")])
def test_the_parser_of_these_tests_lets_no_error_pass(old, new):
    html = html_report(full_case())
    assert old in html
    with pytest.raises(ParseError):
        parsed(html.replace(old, new, 1))


def test_nothing_in_a_case_becomes_markup_a_script_or_an_address():
    case = hostile_case()
    tree = parsed(html_report(case, hostile_marks(case)))
    names = {element.tag for element in tree.iter() if isinstance(element.tag, str)}
    assert not names & {"script", "img", "iframe", "object", "form", "link", "base"}
    for element in tree.iter():
        for name, value in element.attrib.items():
            assert not name.startswith("on")
            assert name != "style"
            if name in ("href", "src"):
                assert value.startswith("#")
    text = html_report(case, hostile_marks(case))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "[Right-To-Left Override]desrever" in text


def test_the_policy_allows_the_one_style_sheet_and_nothing_else():
    html = html_report(full_case())
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', html)[1].replace("&#x27;", "'")
    (style,) = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    allowed = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{allowed}'; base-uri 'none'; form-action 'none'"
    assert "url(" not in style
    assert "@import" not in style


def test_headings_go_down_one_level_at_a_time_and_every_table_has_headers():
    tree = parsed(html_report(full_case(), reviewed(full_case(), MarkDraft(kind="note", author="Ada", value="x"))))
    levels = [int(e.tag[1]) for e in tree.iter() if isinstance(e.tag, str) and re.fullmatch("h[1-6]", e.tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    for table in tree.iter("table"):
        assert table.find("caption") is not None
        scopes = {th.get("scope") for th in table.iter("th")}
        assert scopes <= {"col", "row"}
        assert "col" in scopes
    ids = [e.get("id") for e in tree.iter() if e.get("id")]
    assert len(ids) == len(set(ids))
    assert {a.get("href")[1:] for a in tree.iter("a")} <= set(ids)


def test_chunk_sets_are_a_table_without_empty_columns():
    assert "| Rank | Document | Chunks | Score |" in re.sub(" +", " ", markdown_report(full_case()))


def test_the_report_says_what_the_case_holds():
    case = full_case()
    marks = reviewed(
        case,
        MarkDraft(kind="note", author="Ada", value="Checked twice.", target="passage:1"),
        MarkDraft(kind="relevance", author="Bo", value="not relevant", target="passage:2"),
        MarkDraft(
            kind="override", author="Bo", value="supportive", target="fact:1", reason="Read it.", machine="irrelevant"
        ),
        *sign_off("Ada", "stands", "Read it."),
    )
    for text in (html_report(case, marks), markdown_report(case, marks).replace("\\", "")):
        for said in (
            case.question,
            "Written by reader. Scored by embedded.",
            "cites passages that do not exist: 7",
            "Checked twice.",
            "labelled not relevant by Bo",
            ">not found<" if text.startswith("<") else "not found",
            "signed off by Ada",
            marks[-1].hash,
            content_hash(case),
            UNDER_NUMERICAL,
            UNDER_PLACEBO,
            "+2.000",
            "Numerical floor",
            "not signed",
            "0.001 nats",
            "never seen",
            "numpy 2",
        ):
            assert said in text, said


def test_only_methods_that_were_used_are_defined():
    bare = html_report(CASES["bare"])
    assert "Placebo floor" not in bare
    assert "Input x gradient" not in bare
    assert "Placebo floor" in html_report(full_case())


def test_floors_are_words_beside_the_number():
    assert under_floor(0.5, 0.1, 0.4) == ""
    assert under_floor(-0.3, 0.1, 0.4) == UNDER_PLACEBO
    assert under_floor(-0.1, 0.1, 0.4) == UNDER_NUMERICAL
    assert under_floor(0.0, None, None) == ""


def test_a_span_has_its_own_floor_where_it_was_measured():
    result = attribution(details={"placebo_floor_by_span": [5.0, 0.1, 0.1]})
    analysis = msgspec.structs.replace(full_case().analyses[0], result=result)
    html = html_report(full_case(analyses=(analysis,)))
    row = re.search(r'<tr><th scope="row"><a href="#passage-1">.*?</tr>', html, re.DOTALL)[0]
    assert re.search(rf"\+2\.000<small>{UNDER_PLACEBO}", row)
    assert re.search(r"\+1\.500</td>", row)


def test_tokens_are_coloured_by_sign_and_strength_with_the_number():
    html = html_report(full_case())
    assert '<span class="p5" title="+1.500 nats"> scatters most.</span>'[:40] in html
    assert 'class="p2" title="+0.500 nats"' in html
    assert "dotted underline: less likely" in html


def test_a_labelled_span_is_marked_in_the_answer_with_its_word():
    labels = {"source": "RAGTruth", "spans": [{"start": 35, "end": 47, "label": "Baseless", "text": "It is magic."}]}
    analysis = Analysis(id="labels", kind="labels", stamp=Stamp(model="RAGTruth"), result=labels)
    html = html_report(full_case(analyses=(analysis,)))
    assert '<span class="label">It is magic.<small class="says"> Baseless </small></span>' in html


def test_the_answer_is_cut_without_losing_a_character():
    case = full_case()
    runs = answer_runs(case.answer, case.passages, [(10, 30, "a"), (12, 50, "b")])
    text = "".join(run.text for run in runs if run.kind not in ("cite", "invalid"))
    bare = case.answer.text.replace("[cite_1]", "").replace("[cite_7]", "")
    assert text == bare
    assert [run.text for run in runs if run.kind in ("cite", "invalid")] == ["[1]", "[7]"]
    ranged = answer_runs(annotate(Answer(text="Ice melts [1-3, 5]."), 9, "alce"), case.passages)
    assert [run.text for run in ranged if run.kind != "text"] == ["[1]", "[2]", "[3]", "[5]"]


def test_a_large_case_stays_under_two_megabytes():
    spans = [[i, i + 1] for i in range(0, 56)]
    result = attribution(
        sources=[[n] for n in range(1, 31)],
        scores=[[0.1] * 30],
        spans=[[0, 56]],
        per_token=[[0.01 * n for n in range(30)] for _ in spans],
        details={"token_spans": spans},
    )
    passages = tuple(
        msgspec.structs.replace(full_case().passages[0], text="word " * 400, end=2000, id=str(n)) for n in range(30)
    )
    analyses = tuple(
        Analysis(id=str(n), kind="occlusion", stamp=Stamp(model="embedded"), result=result) for n in range(4)
    )
    assert len(html_report(full_case(passages=passages, analyses=analyses)).encode()) < 2 * 2**20


def test_what_a_second_pass_changed_over_several_lines_is_marked_in_each_line():
    runs = blocks.changed_runs("| a | b |\n|---|---|\n| c | 3 |", "| a | b |\n")
    written = _paragraph(blocks.Text(runs, "answer"))
    assert re.findall(r"~~(.+?)~~", written) == ["\\|---\\|---\\|", "\\| c \\| 3 \\|"]


def test_rendered_markdown_holds_no_markup_of_the_case():
    case = hostile_case()
    text = markdown_report(case, hostile_marks(case))
    assert "\x1b" not in text
    render = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    tree = html5lib.parse(render.render(text), namespaceHTMLElements=False)
    names = {element.tag for element in tree.iter() if isinstance(element.tag, str)}
    assert not names & {"script", "img", "a", "style", "b", "i"}
    assert "table" in names


def test_markdown_tables_have_one_width():
    text = markdown_report(hostile_case(), hostile_marks(hostile_case()))
    for block in re.findall(r"(?:^\|.*\|$\n?)+", text, re.MULTILINE):
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in block.strip().split("\n")}
        assert len(widths) == 1


def test_visible_and_tags():
    assert visible("a\x1bb\u202ec\x7f\x85\ud800\ufffe") == "a␛b[Right-To-Left Override]c␡[U+0085]\ufffd\ufffd"
    assert escape("<&\"'>") == "&lt;&amp;&quot;&#x27;&gt;"
    assert tag("td", "x", class_="", scope="row", hidden=True, open=False) == '<td scope="row" hidden>x</td>'


def test_every_kind_of_block_has_a_template():
    drawn = {
        blocks.Text: (blocks.plain("it"), "<p>it</p>"),
        blocks.Table: (blocks.Table("c", ("n",), ((blocks.Cell("it"),),)), '<th scope="row">it</th>'),
        blocks.Facts: (blocks.Facts((("n", "it"),)), "<div><dt>n</dt><dd>it</dd></div>"),
        blocks.Heat: (blocks.Heat("c", (("it", -1.0),), 1.0, "nats"), '<span class="n5" title="-1.000 nats">it</span>'),
        blocks.Code: (blocks.Code("it", "l"), 'aria-label="l">it</pre>'),
        blocks.Notice: (blocks.Notice("it"), "</strong>it</p>"),
        blocks.Fold: (blocks.Fold("f", (blocks.plain("it"),)), "<summary>f</summary><p>it</p></details>"),
        blocks.Section: (blocks.Section("s", (blocks.plain("it"),), "i", 3), '<section id="i"><h3>s</h3><p>it</p>'),
    }
    assert set(drawn) == set(get_args(blocks.Block))
    for block, html in drawn.values():
        assert html in fragment((block,))
    with pytest.raises(UndefinedError):
        fragment(("no block",))


def test_on_a_page_a_citation_is_its_number_and_a_cell_of_much_text_is_wide():
    cited = blocks.Text(answer_runs(full_case().answer, full_case().passages))
    numbers = re.findall(r'<span class="cite"[^>]*>(.*?)</span>', fragment((cited,)))
    assert numbers and all(number.isdecimal() for number in numbers)
    drawn = fragment((blocks.table("", ("a", "b", "c"), (("x" * 50, "x" * 41, "x" * 40),)),))
    assert re.findall(r"<t[hd][^>]*class=\"long\"[^>]*>(x+)<", drawn) == ["x" * 50, "x" * 41]


@pytest.mark.parametrize(("answerable", "doubts"), [(None, 0), (0.3, 1), (0.9, 0)])
def test_the_first_page_doubts_an_answer_that_the_passages_may_not_give(answerable, doubts):
    text = markdown_report(msgspec.structs.replace(full_case(), answerable=answerable))
    summary, _, rest = text.partition("## Appendix")
    assert summary.count("may not answer the question (probability that they do: 0.30)") == doubts
    assert ("Probability that the passages answer" in rest) == (answerable is not None)
