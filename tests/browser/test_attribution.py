"""Attribution in the browser with a model of the data folder: run, read the table, recolour by a click."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.tiny import save_tiny


@pytest.fixture(scope="module")
def scored(app, at_home):
    """The app with a random scorer and a short case imported for it."""
    from engine.core.values import AuditRecord
    from engine.workbench import Workbench

    save_tiny(app.home / "models" / "scorer")
    record = AuditRecord(
        question="What colour is the kiln?",
        passages=("The kiln of Ostrel is painted green.", "Maren holds forty litres."),
        answer="The kiln is green. [cite_1] Maren is large. [cite_2]",
    )
    with at_home(app.home):
        return Workbench().audit(record).id


def open_tab(page, app, case, name):
    page.goto(f"{app.url}/attribution?case={case}")
    box = page.get_by_role("textbox", name="Scored by")
    box.fill("scorer")
    box.press("Enter")
    page.get_by_role("tab", name=name).click()


def test_occlusion_draws_a_number_a_passage_under_the_banner(app, scored, page, look):
    open_tab(page, app, scored, "Occlusion")
    page.get_by_role("button", name="Leave each passage out").click()
    expect(page.locator(".card")).to_have_count(2)
    expect(page.get_by_text("Written by imported. Scored by scorer.")).to_be_visible()
    page.get_by_text("Every number:").click()
    table = page.locator(".gw-table").first
    expect(table.locator("tbody tr")).to_have_count(3)
    look(page, "attribution_occlusion")


def test_sources_are_recoloured_for_a_sentence_and_told_apart_by_sentence(app, scored, page, look):
    open_tab(page, app, scored, "Occlusion")
    page.get_by_role("button", name="Leave each passage out").click()
    sums = page.locator(".card .sum")
    expect(sums).to_have_count(2)
    whole = sums.all_inner_texts()
    page.get_by_role("button", name="Sentence 1", exact=True).click()
    assert sums.all_inner_texts() != whole
    piece = page.locator(".card .text span").first
    piece.hover()
    expect(piece).to_have_attribute("title", re.compile(r"^[+-][\d.e-]+ nats"))
    page.get_by_text("Sentences", exact=True).click()
    page.get_by_role("button", name="Leave each sentence out").click()
    expect(page.locator(".card .text span")).to_have_count(2)
    look(page, "attribution_sentences")


def test_a_row_is_computed_when_it_is_clicked_and_then_recolours_without_a_rerun(app, scored, page, look):
    open_tab(page, app, scored, "Tokens")
    page.get_by_role("button", name="Map the tokens").click()
    words = page.locator(".answer .tok:visible")
    expect(words.first).to_be_visible()
    row = page.locator(".gw[data-row]:visible")
    expect(row).to_have_attribute("data-row", "0")
    sums = page.locator(".card .sum:visible")
    expect(sums.first).to_have_text(re.compile(r"% of \|relevance\|$"))
    whole = sums.all_inner_texts()
    words.nth(1).click()
    expect(row).to_have_attribute("data-row", "1")
    assert sums.all_inner_texts() != whole
    page.get_by_role("button", name="Sentence 2", exact=True).click()
    expect(page.get_by_role("button", name="Sentence 2", exact=True)).to_have_attribute("aria-pressed", "true")
    frames = []
    page.on("websocket", lambda socket: frames.append(socket))
    words.nth(1).press("Enter")
    expect(row).to_have_attribute("data-row", "2")
    page.get_by_role("button", name="Show signs").click()
    expect(sums.first).to_have_text(re.compile(r"^sum [+-]"))
    assert frames == []
    page.get_by_role("button", name="Check this map").click()
    expect(page.get_by_text(re.compile("^ABPC [+-]")).locator("visible=true")).to_be_visible()
    page.get_by_role("button", name="Compute the flags").click()
    expect(page.get_by_text("By chance a passage is high")).to_be_visible()
    expect(page.get_by_text("negative result")).to_be_visible()
    look(page, "attribution_tokens")


def test_a_model_that_is_absent_says_what_to_do(app, scored, page):
    page.goto(f"{app.url}/attribution?case={scored}")
    box = page.get_by_role("textbox", name="Scored by")
    box.fill("reader-of-minds")
    box.press("Enter")
    page.get_by_role("tab", name="Faithfulness").click()
    page.get_by_role("button", name="Delete and measure").click()
    expect(page.get_by_text("reader-of-minds").last).to_be_visible()
    expect(page.get_by_role("alert").first).to_be_visible()
