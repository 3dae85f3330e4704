"""Facts in the browser: paste a draft, see verdicts, accept one edit, reject another, export the report."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from engine.cases.bundled import AUDITED, take_in
from engine.workbench import Workbench
from tests.browser.drawn import settled
from tests.planted import save_planted

QUESTION = "What is known of Ardelle and of the court order?"
DRAFT = (
    "The free-zone licence of Ardelle Commodities FZE was issued on 9 November 2022. On 27 June the District Court"
    " made an order to the same effect. Kestrin Holdings received EUR 640,000 on 9 April."
)
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
SLOW = 240_000
LONG = 580_000


def paste(page, app, draft=DRAFT, question=QUESTION):
    """Audit a draft against the bank corpus, then go to its facts."""
    page.goto(f"{app.url}/audit")
    settled(page)
    page.get_by_label("Question", exact=True).fill(question)
    page.get_by_label("Answer", exact=True).fill(draft)
    corpus = page.get_by_role("combobox", name="Corpus")
    corpus.fill("bank-investigation")
    corpus.press("Enter")
    expect(corpus).to_have_value("bank-investigation")
    settled(page)
    page.get_by_role("button", name="Audit", exact=True).click()
    expect(page.get_by_role("heading", name=question)).to_be_visible()
    expect(page.locator(".card").first).to_be_visible(timeout=SLOW)
    page.locator(".st-key-case_head").get_by_role("link", name=re.compile(r"\d facts?:")).click()
    expect(page.get_by_role("heading", name="Tracked changes")).to_be_visible(timeout=SLOW)


def saved(page, name):
    with page.expect_download() as waiting:
        page.get_by_role("button", name=name, exact=True).click()
    return waiting.value.path().read_text(encoding="utf-8")


@pytest.mark.journey
def test_paste_a_draft_decide_on_its_edits_and_export(app, page, look):
    paste(page, app)
    facts = page.locator("button.fact")
    expect(facts).to_have_count(3)
    expect(page.locator(".chip", has_text="edit proposed")).to_have_count(2)
    expect(page.locator(".chip.good")).to_have_text(re.compile(r"^borne out · probability 0\.\d\d$"))
    page.locator(".detail summary", has_text="Who decided").click()
    expect(page.locator(".detail")).to_contain_text("verdicts are right")

    # The keyboard steps through the facts; the filter leaves those that need attention.
    facts.first.focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".detail h3")).to_contain_text("27 June")
    expect(page.locator(".detail mark:visible").first).to_be_visible()
    page.get_by_role("button", name="Needs attention").click()
    expect(facts).to_have_count(2)
    look(page, "facts_checked")

    expect(page.get_by_role("button", name="Accept 1")).to_be_disabled()
    page.get_by_role("textbox", name="Reviewer").fill("Ada")
    page.get_by_role("textbox", name="Reviewer").press("Enter")
    page.get_by_role("button", name="Accept 1").click()
    expect(page.get_by_role("button", name="Accept 1")).to_be_disabled()
    page.get_by_role("button", name="Reject 2").click()
    expect(page.get_by_role("button", name="Reject 2")).to_be_disabled()
    look(page, "facts_decided")

    assert saved(page, "Accepted text") == DRAFT.replace("9 November 2022", "9 November 2023")
    report = saved(page, "Report")
    assert "(edit 1, accepted)" in report
    assert "(edit 2, rejected)" in report
    assert "verdicts are right" in report


@pytest.mark.long
def test_other_methods_stand_beside_the_check(app, page, look):
    paste(page, app, "Kestrin Holdings received EUR 640,000 on 9 April.", "What did Kestrin Holdings receive?")
    page.get_by_text("Other methods on this answer").click()
    page.get_by_role("button", name="Run them").click()
    expect(page.get_by_role("heading", name="DRQA")).to_be_visible(timeout=LONG)
    expect(page.get_by_role("button", name="RARR")).to_have_count(0)  # it asks by a language model, and none was named
    look(page, "facts_others")


@pytest.mark.long
def test_the_entropy_of_facts_is_computed_by_the_model_that_is_named(app, page, look):
    # What a model of planted weights asks differs from processor to processor; tests/engine/are has the sub-questions.
    save_planted(app.home / "models" / "planted")
    paste(page, app, "Kestrin Holdings received EUR 640,000 on 9 April.", "What did Kestrin Holdings receive then?")
    page.get_by_text("Entropy of the facts and of the sub-questions").click()
    page.get_by_role("textbox", name="Scored by").fill("planted")
    page.get_by_role("textbox", name="Scored by").press("Enter")
    page.get_by_role("button", name="Compute the entropy").click()
    table = page.locator("table:visible", has_text="Surprisal per token, nats")
    expect(table.get_by_role("row").filter(has_text="facts")).to_have_count(1, timeout=SLOW)
    expect(table).to_contain_text("Scored by planted without passages.")
    look(page, "facts_entropy")


@pytest.mark.parametrize("page", [PHONE], indirect=True)
def test_on_a_phone_a_fact_that_is_tapped_is_scrolled_to(app, page, at_home):
    with at_home(app.home):
        take_in(Workbench().cases)
    page.goto(f"{app.url}/facts?case={AUDITED}")
    facts = page.locator("button.fact")
    facts.nth(1).scroll_into_view_if_needed()
    expect(page.locator(".detail")).not_to_be_in_viewport()
    expect(page.locator(".bar .hint")).to_be_hidden()
    facts.nth(1).tap()
    expect(page.locator(".detail h3")).to_be_in_viewport()
    expect(page.locator(".detail h3")).to_have_text(facts.nth(1).locator(".said").inner_text())


def test_nothing_on_the_page_calls_a_fact_true_or_verified(app, page):
    page.goto(f"{app.url}/facts")
    expect(page.get_by_role("button", name="Check the answer")).to_be_visible()
    words = page.locator("body").inner_text().lower().split()
    assert not {"true", "false", "verified"} & set(words)
