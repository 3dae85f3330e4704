"""The first journey: a newcomer opens the app, reads the sample case, asks a question of their own."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

QUESTION = "How is the crude product of the acetaminophen experiment recrystallized?"


def answer_of(page):
    return page.locator(".answer")


@pytest.mark.journey
def test_the_first_start_shows_the_sample_case_with_its_answer(app, page, look):
    page.goto(app.url)
    expect(answer_of(page)).to_contain_text("water")
    expect(page.get_by_role("heading", name=QUESTION)).to_be_visible()
    look(page, "ask_light")
    outside = [url for url in page.requests if not url.startswith((app.url, "data:", "blob:", "ws:"))]
    assert outside == []


@pytest.mark.parametrize("page", [{"color_scheme": "dark", "viewport": {"width": 1920, "height": 1080}}], indirect=True)
def test_dark_mode(app, page, look):
    page.goto(app.url)
    expect(answer_of(page)).to_contain_text("water")
    background = page.evaluate("getComputedStyle(document.querySelector('.stApp')).backgroundColor")
    assert max(int(part) for part in re.findall(r"\d+", background)[:3]) < 60
    look(page, "ask_dark")


def test_a_citation_opens_the_passage_that_holds_the_sentence(app, page):
    page.goto(app.url)
    answer_of(page).locator("button.cite").first.click()
    opened = page.locator(".card.open")
    expect(opened).to_have_count(1)
    quoted = answer_of(page).locator("span").first.inner_text().strip()
    assert quoted in opened.locator(".text").inner_text()


@pytest.mark.journey
def test_asking_streams_a_cited_answer_into_a_new_case(app, page):
    page.goto(app.url)
    before = page.url
    page.get_by_label("Question", exact=True).fill("Which solvent extracts caffeine from the tea?")
    page.get_by_role("button", name="Ask Shortcut").click()
    expect(page.get_by_role("heading", name="Which solvent extracts caffeine from the tea?")).to_be_visible()
    expect(answer_of(page).locator("button.cite").first).to_be_visible()
    assert "case=" in page.url
    assert page.url != before
    picker = page.get_by_test_id("stSidebar").get_by_role("combobox")
    expect(picker).to_have_value(re.compile("Which solvent extracts caffeine"))


def test_a_question_of_chosen_documents_cites_those_alone(app, page, look):
    page.goto(app.url)
    expect(answer_of(page)).to_be_visible()
    page.get_by_role("button", name="Choose documents").click()
    box = page.get_by_role("combobox", name="Documents to search")
    box.fill("acetaminophen_h")
    page.get_by_role("option", name="acetaminophen_history.md").click()
    expect(page.get_by_text("Only these documents are searched: acetaminophen_history.md")).to_be_visible()
    box.fill("caffeine_*")
    page.get_by_role("option", name="Add: caffeine_*").click()
    look(page, "ask_documents")
    page.keyboard.press("Escape")
    page.get_by_label("Question", exact=True).fill("Who made paracetamol?")
    page.get_by_role("button", name="Ask Shortcut").click()
    expect(page.get_by_role("heading", name="Who made paracetamol?")).to_be_visible()
    said = page.get_by_text("documents acetaminophen_history.md, caffeine_*")
    expect(said.first).to_be_visible()
    expect(said).to_have_count(1)  # the page as it was before the redraw is gone
    page.get_by_text("Ask another question").click()
    expect(page.get_by_text("Only these documents are searched: acetaminophen_history.md, caffeine_*")).to_be_visible()


def test_an_empty_question_says_what_to_do(app, page):
    page.goto(app.url)
    expect(answer_of(page)).to_be_visible()
    page.get_by_role("button", name="Ask Shortcut").click()
    expect(page.get_by_text("The question is empty.")).to_be_visible()


def test_a_typed_question_is_there_again_after_another_page_and_ctrl_enter_asks_it(app, page):
    page.goto(app.url)
    expect(answer_of(page)).to_be_visible()
    field = page.get_by_label("Question", exact=True)
    field.fill("Which solvent extracts caffeine from the tea?")
    page.get_by_role("link", name="Cases").click(delay=100)  # as a hand does: the field sends its text first
    expect(page.get_by_role("heading", name="Cases", exact=True)).to_be_visible()
    page.get_by_role("link", name="Ask", exact=True).click()
    expect(field).to_have_value("Which solvent extracts caffeine from the tea?")
    field.fill("How is caffeine purified?")
    field.press("Control+Enter")
    expect(page.get_by_role("heading", name="How is caffeine purified?")).to_be_visible()
