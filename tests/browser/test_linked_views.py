"""A selection on one page of a case is kept on the others and in the link."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from engine.cases.bundled import EXAMPLE, take_in
from engine.cases.store import CaseStore
from tests.browser.drawn import settled


@pytest.fixture(scope="module")
def example(app):
    """The worked example in the app's library."""
    take_in(CaseStore(Path(app.home) / "cases.sqlite"))
    return EXAMPLE


def go_to(page, name):
    page.get_by_test_id("stSidebarNav").get_by_role("link", name=name).click()
    expect(page.get_by_role("heading", level=1, name=name)).to_be_visible()
    settled(page)


def test_a_passage_that_is_clicked_is_selected_on_every_page_of_the_case(app, example, page, look):
    page.goto(f"{app.url}/?case={EXAMPLE}")
    settled(page)
    page.get_by_role("tab", name="Passages given to the writer").click()
    cited = page.locator("button.cite").first
    number = cited.inner_text()
    cited.click()
    opened = page.locator(".card.open")
    expect(opened.locator(".number")).to_have_text(number)
    expect(page).to_have_url(re.compile(f"passage={number}"))
    # The arrow keys step through the passages.
    opened.locator("button.head").focus()
    page.keyboard.press("ArrowDown")
    second = opened.locator(".number").inner_text()
    assert second != number
    expect(page).to_have_url(re.compile(f"passage={second}"))

    go_to(page, "Attribution")
    expect(page).to_have_url(re.compile(f"passage={second}"))
    card = page.locator(".card[aria-current=true]:visible")
    expect(card.locator("b").first).to_have_text(second)
    card.scroll_into_view_if_needed()
    look(page, "linked_passage_attribution")
    # Here the keys go through the cards in the order drawn; both maps of the page follow.
    card.locator("button.head").focus()
    order = "cards => cards.map(c => [Number(c.style.order), c.querySelector('b').textContent])"
    drawn = dict(page.locator(".card:visible").evaluate_all(order))
    place = next(place for place, name in drawn.items() if name == second)
    key, third = ("ArrowUp", drawn[place - 1]) if place else ("ArrowDown", drawn[1])
    page.keyboard.press(key)
    expect(card.locator("b").first).to_have_text(third)
    expect(page).to_have_url(re.compile(f"passage={third}"))
    settled(page)
    page.get_by_role("tab", name="Tokens").click()
    expect(card.locator("b").first).to_have_text(third)

    go_to(page, "Facts")
    expect(page.locator(f".passage.selected [data-number='{third}']")).to_have_count(1)
    page.get_by_text("Considered and not checked").first.click()
    source = page.locator(f".passage button.source[aria-pressed=false]:not([data-number='{second}']):visible").first
    name = source.get_attribute("data-number")
    source.click()
    expect(page).to_have_url(re.compile(f"passage={name}"))
    settled(page)
    look(page, "linked_passage_facts")
    # The evidence of a fact opens in its document, as a source on Ask does.
    page.locator(".passage.decided").get_by_role("button", name="Open in its document").first.click()
    evidence = page.get_by_role("dialog").locator(".gw-context")
    expect(evidence.locator("mark")).to_be_visible()
    expect(evidence.locator(".gw-around").first).not_to_be_empty()
    settled(page)
    look(page, "evidence_in_context")
    page.keyboard.press("Escape")
    expect(evidence).to_have_count(0)
    page.reload()
    expect(page.locator(f".passage.selected button.source[data-number='{name}']:visible").first).to_be_visible()

    # Tables mark what is selected, and follow a click on a fact.
    page.get_by_text("Used x supports: does the answer").click()
    expect(page.get_by_role("columnheader", name=name, exact=True)).to_have_attribute("aria-current", "true")
    page.locator("button.fact").last.click()
    expect(page.locator(".gw-table tbody th[aria-current]:visible")).to_have_text(re.compile("^Spread the crystals"))
    look(page, "linked_passage_table")

    # A source of the evidence is selected with its sentence, which opens in its document.
    go_to(page, "Ask")
    page.get_by_role("tab", name="Sentences and evidence").click()
    page.locator(".card .source button:visible").last.click()
    document = page.get_by_role("dialog").locator(".gw-context")
    expect(document.locator("mark")).to_be_visible()
    expect(document.locator(".gw-around").first).not_to_be_empty()
    settled(page)
    look(page, "source_in_context_light")
    page.keyboard.press("Escape")
    expect(document).to_have_count(0)
    expect(page).to_have_url(re.compile("sentence="))
    expect(page.locator(".source button.selected:visible").first).to_be_visible()


HTML = """<html><body style="font: 12pt serif; width: 30em; text-align: justify; hyphens: auto" lang="en">
<h1>The plant at Ostrel</h1><p>The tank holds forty litres of brine and is painted green.</p>
<p style="break-before: page">Notes of the second year.</p>
<p>The scientific advisers of the affiliated workshop confirmed that the circulation pump was replaced in March 2021,
after its bearing had failed twice. Nobody was hurt.</p></body></html>"""


@pytest.fixture
def asked(app, chromium, tmp_path, monkeypatch):
    """A case on a corpus of one PDF of two pages."""
    from engine.workbench import Workbench

    paper = chromium.new_page()
    paper.set_content(HTML)
    paper.pdf(path=tmp_path / "plant.pdf", format="A4")
    paper.close()
    monkeypatch.setenv("GROUNDWORK_HOME", str(app.home))
    bench = Workbench()
    bench.ingest([tmp_path / "plant.pdf"], "plant")
    return bench.ask("When was the circulation pump replaced?", "plant", model="reader")


LOOKS = [{}, {"color_scheme": "dark", "viewport": {"width": 1440, "height": 900}}]


@pytest.mark.parametrize("page", LOOKS, ids=["light", "dark"], indirect=True)
def test_a_sentence_of_a_pdf_opens_on_the_picture_of_its_page(app, asked, page, request, look):
    page.goto(f"{app.url}/?case={asked.id}")
    settled(page)
    page.locator("button.cite").first.click()
    page.locator(".card.open").get_by_role("button", name="Open in its document").click()
    picture = page.get_by_role("dialog").locator(".gw-page")
    expect(picture.get_by_role("img", name="Page 2 of")).to_be_visible()
    # Two lines of the second page, one under the other, within the picture.
    marks = [mark.bounding_box() for mark in picture.locator("i").all()]
    whole = picture.bounding_box()
    assert len(marks) >= 2
    assert all(whole["x"] < m["x"] and m["x"] + m["width"] < whole["x"] + whole["width"] for m in marks)
    assert marks == sorted(marks, key=lambda mark: mark["y"])
    expect(page.get_by_role("dialog").locator(".gw-context mark")).to_contain_text("replaced in March 2021")
    settled(page)
    look(page, f"source_pdf_{request.node.callspec.id}")
