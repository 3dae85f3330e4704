"""The settings panel: the paper's values in one click, kept from page to page, and a corpus with another embedder."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect


def open_panel(page):
    page.get_by_test_id("stMain").get_by_text("Settings", exact=True).first.click()


def test_the_values_of_the_paper_are_one_click_away_and_stay(app, page, look):
    page.goto(app.url)
    open_panel(page)
    retrieved = page.get_by_role("spinbutton", name="Passages retrieved")
    expect(retrieved).to_have_value("30")
    expect(page.get_by_text("default: 30 · paper: 30 (Table I: its largest)")).to_be_visible()
    retrieved.fill("12")
    retrieved.press("Enter")
    expect(page.get_by_text("Changed settings: passages retrieved 12.")).to_be_visible()
    look(page, "settings_ask_light")
    page.get_by_role("link", name="Corpora").click()
    expect(page.get_by_text("Add documents")).to_be_visible()
    page.get_by_role("link", name="Ask", exact=True).click()
    expect(page.get_by_text("Changed settings: passages retrieved 12.")).to_be_visible()
    open_panel(page)
    expect(retrieved).to_have_value("12")
    page.get_by_role("button", name="Use the paper's values").click()
    expect(page.get_by_text("search mode dense")).to_be_visible()
    expect(retrieved).to_have_value("30")
    page.get_by_role("button", name="Reset to the defaults").click()
    expect(page.get_by_text("Changed settings")).to_have_count(0)


@pytest.mark.parametrize("page", [{"color_scheme": "dark"}, {}], indirect=True)
def test_a_corpus_is_made_with_an_embedder(app, page, look, request):
    page.goto(f"{app.url}/corpora")
    page.get_by_text("Add documents").click()
    expect(page.get_by_text("For a new corpus")).to_be_visible()
    look(page, f"corpora_add_{request.node.callspec.id}")
    page.get_by_role("button", name="Split and embed again").first.click()
    expect(page.get_by_label("Passage length (words)").last).to_have_value("100")
    look(page, f"corpora_again_{request.node.callspec.id}")


@pytest.mark.parametrize("page", [{"color_scheme": "dark"}, {}], indirect=True)
@pytest.mark.parametrize("name", ["attribution", "refinement", "facts", "steps"])
def test_the_panel_is_on_every_page_that_runs_something(app, page, look, request, name):
    page.goto(f"{app.url}/{name}")
    open_panel(page)
    expect(page.get_by_role("button", name="Reset to the defaults")).to_be_visible()
    look(page, f"settings_{name}_{request.node.callspec.id}")
