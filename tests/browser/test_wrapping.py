"""A citation and the full stop after it stay on one line at any width; a wide table keeps its caption in sight."""

from __future__ import annotations

import json

import pytest

from components.answer import with_pills
from components.evidence import laid_out
from components.html import table, tag
from components.sentences import sentences_data
from components.style import drawing, stylesheet
from engine.analyses.case_verdict import CaseVerdict, SentenceVerdict
from engine.answer.citations import annotate
from engine.core.values import Answer, Case, Passage, Stamp

SAID = "The tank holds 40 litres of brine [1][2]. The pump was replaced in March 2021 [3]. Nobody was hurt [4]."
# The widths of the page at which a full stop is drawn below the citation before it.
APART = """() => {
  const found = [];
  for (let width = 60; width < 260; width += 4) {
    document.body.style.width = width + 'px';
    for (const pill of document.querySelectorAll('.gw-cite, .cite')) {
      const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
      walk.currentNode = pill.lastChild;
      const next = walk.nextNode();
      if (!next || !next.textContent.startsWith('.')) continue;
      const stop = document.createRange();
      stop.setStart(next, 0);
      stop.setEnd(next, 1);
      if (stop.getBoundingClientRect().top >= pill.getBoundingClientRect().bottom) found.push(width);
    }
  }
  return found;
}"""


def test_in_text_of_the_pages(page):
    page.set_content(f"<style>{stylesheet('page.css')}</style><div class='gw-answer'>{with_pills(SAID)}</div>")
    assert page.locator(".gw-cite").count() == 4
    assert page.evaluate(APART) == []


PIECES = [{"text": "The tank holds 40 litres of brine "}, {"number": 1}, {"text": ". Nobody was hurt "}, {"number": 2}]
PIECES = [{**piece, "valid": True, "title": "Open it"} for piece in (*PIECES, {"text": "."})]
FACT = {"number": 0, "name": "1.1", "clause": 0, "text": "It holds", "word": "unsure", "sure": "", "kind": "unsure"}
FACT |= {"attention": False, "own": "", "own_kind": "", "lines": [], "details": [], "rounds": []}
SENTENCE = {"number": 1, "gap": [], "pieces": PIECES, "text": "", "rewritten": "", "claim": True, "kind": "bad"}
SENTENCE |= {"table": "", "word": "contradicted", "by": "", "facts": [], "used": ""}
DATA = {
    "evidence": {"answer": PIECES, "answer_title": "Answer", "passages": [], "passages_title": "Passages"},
    "facts": {"key": "k", "attention_title": "", "clauses": [{"number": 0, "pieces": PIECES}], "facts": [FACT]},
    "sentences": {"title": "Answer", "sentences": [SENTENCE], "tail": [], "verdicts": [], "frozen": True},
}


def draw(page, name, data):
    """Draw a component by its script and style."""
    look = f"{drawing(name, 'css')} .gw, .both {{ display: block !important; }}"
    page.set_content(f"<style>{look}</style><div class='gw'></div>")
    page.add_script_tag(content=drawing(name, "js").replace("export default function", "window.draw = function"))
    page.evaluate(f"draw({{ data: {json.dumps(data)}, parentElement: document.body, setTriggerValue() {{}} }})")


@pytest.mark.parametrize("name", list(DATA))
def test_in_the_components(page, name):
    draw(page, name, DATA[name])
    assert page.locator(".cite").count() == 2
    assert page.evaluate(APART) == []


def test_the_fact_that_is_open_shows_that_it_has_the_focus(page):
    draw(page, "facts", DATA["facts"])
    page.add_style_tag(content=":root { --st-primary-color: #0f6e6e; }")
    fact, outline = page.locator("button.fact"), "fact => getComputedStyle(fact).outlineStyle"
    fact.click()
    assert (fact.get_attribute("aria-current"), fact.evaluate(outline)) == ("true", "none")  # a pointer needs none
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    assert fact.evaluate(outline) == "solid"


@pytest.mark.parametrize("page", [{"reduced_motion": "reduce"}], indirect=True)
def test_who_wants_no_motion_is_at_the_evidence_at_once(page):
    sentence = {**SENTENCE, "claim": True, "facts": [{"notes": ["x " * 2000], "edits": []}]}
    sentences = [{**sentence, "number": number} for number in (1, 2, 3)]
    draw(page, "sentences", {**DATA["sentences"], "sentences": sentences})
    moved = "() => { document.querySelectorAll('.s')[1].click(); return window.scrollY; }"
    assert page.evaluate(moved) > 0


TABLE = "Fees:\n\n| Who | Fee |\n|---|---|\n| Adults, new | 90 [1] |\n| Pupils | 60 |\n\nNobody else pays."
PLACES = (
    "() => [...document.querySelectorAll('.row')].map(row => [...row.children].map(c => c.getBoundingClientRect().x))"
)


@pytest.mark.parametrize("name", ["evidence", "sentences"])
def test_a_table_in_an_answer_stands_in_columns_and_keeps_its_text(page, name):
    answer = annotate(Answer(text=TABLE), 1, "alce")
    passage = Passage(id="p", document="d", title="", ordinal=0, start=0, end=1, text="x")
    case = Case(id="c", question="?", passages=(passage,), answer=answer, stamp=Stamp(model="m"))
    own = tuple(SentenceVerdict(start=start, end=end) for start, end in answer.sentences)
    verdict = CaseVerdict(sentences=own, finished=True, verifier="v", text=answer.text)
    data = {
        "evidence": {**DATA["evidence"], "answer": laid_out(answer, case.passages)},
        "sentences": {**sentences_data(case, verdict), "verdicts": [], "frozen": True},
    }
    draw(page, name, data[name])
    columns = page.evaluate(PLACES)
    assert len(columns) == 3 and len({tuple(row) for row in columns}) == 1 and len(columns[0]) == 2
    assert page.locator(".answer").evaluate("e => e.textContent") == TABLE.replace("[1]", "1")
    assert page.locator(".row.strong .cell").all_inner_texts() == ["| Who |", "Fee |"]


@pytest.mark.parametrize(("passages", "scrolls"), [(10, False), (20, True)])
def test_the_caption_of_a_table_is_no_wider_than_what_is_seen_and_ten_passages_fit_at_1280(page, passages, scrolls):
    heads = [tag("th", "Sentence"), *(tag("th", str(n)) for n in range(1, passages + 1))]
    cell = tag("td", tag("b", "supports only") + "<br>+0.6")
    row = tag("tr", tag("th", "The council agreed a ceiling of 4,800 for the swings.") + cell + "<td>+0.6</td>" * 9)
    drawn = table(heads, [row], "Columns are passages. " * 12)
    look = "body { margin: 0; width: 849px; font: 15px sans-serif } * { box-sizing: border-box }"
    page.set_content(f"<style>{look}{stylesheet('page.css')}</style>{drawn}")
    seen, whole, caption = page.evaluate(
        "() => { const box = document.querySelector('.gw-scroll');"
        " return [box.clientWidth, box.scrollWidth, box.querySelector('caption').offsetWidth]; }"
    )
    assert (whole > seen) == scrolls
    assert caption <= seen


def test_a_long_verdict_wraps_on_a_telephone(page):
    said = "13 facts: 13 borne out. The documents probably answer the question"
    said = f"<a class='s'><span class='s'><p>{said}</p></span></a>"
    head = f"<div class='st-key-case_head' style='width: 200px'><div data-testid='stPageLink'>{said}</div></div>"
    own = ".s { display: flex; white-space: nowrap; overflow: hidden }"  # what Streamlit gives its links
    page.set_content(f"<style>{own} {stylesheet('page.css')}</style>{head}")
    assert page.evaluate("(e => e.scrollWidth <= e.clientWidth)(document.querySelector('a span'))")
