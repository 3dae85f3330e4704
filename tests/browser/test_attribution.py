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


def score_by(page, name):
    """Name the scorer; its field is folded once something ran."""
    fold = page.locator("summary", has_text="Scored by")
    box = page.get_by_role("textbox", name="Scored by")
    expect(page.get_by_role("tab", name="Used x supports")).to_be_visible()
    expect(page.locator('.stApp[data-test-script-state="notRunning"]')).to_be_visible()
    if page.locator("details[open]", has=fold).count() == 0:
        fold.click()
    box.fill(name)
    box.press("Enter")
    expect(page.locator("summary", has_text=f"Scored by {name}")).to_be_visible()


def open_tab(page, app, case, name):
    page.goto(f"{app.url}/attribution?case={case}")
    score_by(page, "scorer")
    page.get_by_role("tab", name=name).click()


@pytest.mark.journey
def test_occlusion_draws_a_number_a_passage_under_the_banner(app, scored, page, look):
    open_tab(page, app, scored, "Occlusion")
    page.get_by_role("button", name="Leave each passage out").click()
    expect(page.locator(".card")).to_have_count(2)
    expect(page.locator(".cite")).to_have_text(["1", "2"])
    expect(page.get_by_text("Written by a system that the record does not name. Scored by scorer.")).to_be_visible()
    page.get_by_text("All scores:").click()
    table = page.locator(".gw-table").first
    expect(table.locator("tbody tr")).to_have_count(3)
    look(page, "attribution_occlusion")
    # The figure is drawn when it is asked for, and saved in four formats; the PNG is made by the browser.
    page.get_by_role("button", name="Export figure").locator("visible=true").click()
    dialog = page.get_by_role("dialog")
    starts = {"SVG": b"<svg", "PNG": b"\x89PNG", "LaTeX": b"\\begin{figure}", "CSV": b"part,column"}
    for name, start in starts.items():
        with page.expect_download() as waiting:
            dialog.get_by_role("button", name=name, exact=True).click()
        assert waiting.value.path().read_bytes().startswith(start)
    look(page, "export_figure")


def test_sources_are_recoloured_for_a_sentence_and_told_apart_by_sentence(app, scored, page, look):
    open_tab(page, app, scored, "Occlusion")
    page.get_by_role("button", name=re.compile("Leave each passage out|Run again")).click()
    sums = page.locator(".card .sum")
    expect(sums).to_have_count(2)
    whole = sums.all_inner_texts()
    page.locator(".sent").first.click()
    assert sums.all_inner_texts() != whole
    expect(page).to_have_url(re.compile("sentence=1"))
    # The arrow keys go on from there; the other maps of the page and the link follow.
    page.keyboard.press("ArrowDown")
    expect(page.locator(".sent").nth(1)).to_have_class("sent chosen")
    expect(page.locator(".sent").nth(1)).to_have_attribute("aria-current", "true")
    expect(page).to_have_url(re.compile("sentence=2"))
    expect(page.locator(".card .said").first).to_have_text(re.compile("per token"))
    piece = page.locator(".card .text span").first
    piece.hover()
    expect(piece).to_have_attribute("title", re.compile(r"^[+-][\d.e-]+ nats"))
    page.get_by_text("Sentences", exact=True).click()
    page.get_by_role("button", name="Leave each sentence out").click()
    expect(page.locator(".card .text span")).to_have_count(2)
    look(page, "attribution_sentences")


def test_a_row_is_computed_when_it_is_clicked_and_then_recolours_without_a_rerun(app, scored, page, look):
    open_tab(page, app, scored, "Tokens")
    page.get_by_role("button", name=re.compile("Map the tokens|Run again")).locator("visible=true").click()
    words = page.locator(".answer .tok:visible")
    expect(words.first).to_be_visible()
    page.get_by_role("button", name="Pick single words").locator("visible=true").click()
    row = page.locator(".gw[data-row]:visible")
    expect(row).to_have_attribute("data-row", "0")
    sums = page.locator(".card .sum:visible")
    expect(sums.first).to_have_text(re.compile(r"% of \|relevance\|$"))
    whole = sums.all_inner_texts()
    words.nth(1).click()
    expect(row).to_have_attribute("data-row", "1")
    assert sums.all_inner_texts() != whole
    sentence = page.locator(".sent:visible").nth(1)
    sentence.click()  # the map is drawn anew with the word's row, and picks sentences again
    expect(sentence).to_have_class("sent chosen")
    page.get_by_role("button", name="Pick single words").locator("visible=true").click()
    words.nth(1).press("Enter")
    expect(row).to_have_attribute("data-row", "2")
    expect(page.get_by_role("button", name="Show signs")).to_have_count(0)  # a norm has no sign
    # The check followed the map by itself, and did not disturb it.
    expect(page.locator(".badge:visible")).to_have_text(re.compile("^ABPC [+-].* all 10 random rankings"))
    expect(page.get_by_role("button", name="Check this map").locator("visible=true")).to_have_count(0)
    expect(row).to_have_attribute("data-row", "2")
    page.get_by_role("button", name="Compute the flags").click()
    expect(page.get_by_text("By chance a passage ranks high")).to_be_visible()
    expect(page.get_by_text("negative result")).to_be_visible()
    look(page, "attribution_tokens")


def test_a_map_shows_its_signs_and_what_is_drawn_how(app, scored, page, at_home):
    from engine.analyses.kind import TOKEN_MAP
    from engine.analyses.token_map import MapRows
    from engine.core.values import AuditRecord
    from engine.workbench import Workbench

    record = AuditRecord(
        question="What is old?", passages=("The mill is old.",), answer="The mill. It is old. [cite_1]"
    )
    with at_home(app.home):
        case = Workbench().audit(record).id
        Workbench().analyse(case, TOKEN_MAP, MapRows(model="scorer", method="input x gradient"))
    open_tab(page, app, case, "Tokens")
    sum_ = page.locator(".card .sum:visible").first
    expect(sum_).to_have_text(re.compile(r"% of \|relevance\|$"))
    page.get_by_role("button", name="Show signs").click()
    expect(sum_).to_have_text(re.compile(r"^sum [+-]"))
    expect(page.locator(".sent.unasked:visible").first).to_have_css("text-decoration-style", "dotted")
    expect(page.locator(".differs:visible").first).to_have_css("text-decoration-style", "wavy")


def test_a_model_that_is_absent_says_what_to_do(app, scored, page):
    page.goto(f"{app.url}/attribution?case={scored}")
    score_by(page, "reader-of-minds")
    page.get_by_role("tab", name="Faithfulness").click()
    page.get_by_role("button", name="Delete and measure").click()
    expect(page.get_by_text("reader-of-minds").last).to_be_visible()
    expect(page.get_by_role("alert").first).to_be_visible()
