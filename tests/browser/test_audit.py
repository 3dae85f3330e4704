"""The two doors in the browser: audit an answer and read its evidence; ask, and check what was answered."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
from msgspec.structs import replace
from playwright.sync_api import expect
from pypdf import PdfReader

from engine.cases.bundled import AUDITED, EXAMPLE, file_of
from engine.cases.case_file import read_case_file
from engine.cases.store import CaseStore
from engine.corpus.samples import FIRST_CASE
from engine.report.build import html_report
from tests.browser.drawn import serious, settled

SLOW = 300_000
PAGES = 10  # of A4 that a report may take


def stands(page):
    """The first part of the verdict: the facts by their states."""
    return page.locator(".st-key-case_head").get_by_role("link", name=re.compile(r"\d facts?:"))


@pytest.mark.journey
def test_audit_an_answer_by_the_second_door(app, page, look):
    page.goto(app.url)
    settled(page)
    page.get_by_role("link", name="Audit an answer").click()
    page.get_by_role("button", name="Fill in an example").click()
    expect(page.get_by_label("Answer", exact=True)).to_have_value(re.compile("^The reopening note"))
    page.get_by_role("button", name="Audit", exact=True).click()
    sentences = page.locator(".answer .s[role=button]")
    expect(sentences).to_have_count(8, timeout=SLOW)
    wrong = sentences.filter(has_text="9 November 2022")
    expect(wrong).to_have_class("s bad")
    wrong.click()
    card = page.locator(".card[aria-current=true]")
    expect(card.locator("mark")).to_contain_text("9 November 2023")
    expect(page).to_have_url(re.compile("sentence=6"))

    # The arrow keys go on from there, and a reload keeps the sentence.
    page.keyboard.press("ArrowDown")
    expect(card).to_contain_text("Sentence 7")
    expect(page).to_have_url(re.compile("sentence=7"))
    settled(page)
    page.reload()
    expect(card).to_contain_text("Sentence 7")
    settled(page)
    assert serious(page) == []
    look(page, "audit_light")

    # One click fixes a sentence, once a name is given; the words are struck and put in where they stand.
    wrong.click()
    card.get_by_role("button", name="Fix: 2022 → 2023").click()
    page.get_by_role("dialog").get_by_label("Reviewer").fill("Ada Quill")
    page.get_by_role("button", name="Continue").click()
    expect(wrong.locator("del")).to_have_text("2022")
    expect(wrong.locator("ins")).to_have_text("2023")
    # Own words for a sentence that no source settles, and no second question for the name.
    last = sentences.last
    last.click()
    card.get_by_text("Your verdict").click()
    card.get_by_label("not found").check()
    card.get_by_label("Rewrite the sentence").fill("The sources do not say when the account was closed.")
    card.get_by_role("button", name="Save").click()
    expect(card.get_by_role("status")).to_have_text("Give a reason.")
    card.get_by_label("Reason").fill("no source speaks of it")
    card.get_by_role("button", name="Save").click()
    expect(last.locator("ins")).to_have_text("The sources do not say when the account was closed.")
    expect(stands(page)).to_contain_text("2 edited")
    settled(page)
    assert serious(page) == []
    look(page, "audit_fixed_light")

    # The same line is on the other pages of the case.
    line = stands(page).inner_text()
    stands(page).click()
    expect(page.get_by_role("heading", name="Tracked changes")).to_be_visible()
    expect(stands(page)).to_have_text(line)
    expect(page).to_have_url(re.compile(r"/facts\?case="))
    # What was selected is selected here, and the arrow keys go on from it.
    chosen = page.locator("button.fact[aria-current=true]")
    expect(chosen).to_contain_text("closed the account")
    chosen.focus()
    page.keyboard.press("ArrowUp")
    expect(chosen).to_contain_text("general trading")
    expect(page).to_have_url(re.compile(r"sentence=7&fact=7\.1|fact=7\.1&sentence=7"))


@pytest.mark.parametrize("page", [{"color_scheme": "dark", "viewport": {"width": 1920, "height": 1000}}], indirect=True)
def test_check_what_was_answered_by_the_first_door(app, page, look):
    cases = CaseStore(Path(app.home) / "cases.sqlite")
    if cases.has(FIRST_CASE):  # a second try begins like the first
        cases.save(replace(cases.load(FIRST_CASE), analyses=()))
    page.goto(app.url)
    settled(page)
    expect(page.get_by_text("Not checked yet.")).to_be_visible()
    page.get_by_role("button", name="Check the answer").click()
    expect(stands(page)).to_contain_text("borne out", timeout=SLOW)
    expect(page.get_by_role("tab", name="Sentences and evidence")).to_have_attribute("aria-selected", "true")
    settled(page)
    assert serious(page) == []
    look(page, "ask_checked_dark")


def test_the_form_folds_above_every_new_audit(app, page):
    page.goto(app.url)
    settled(page)
    page.get_by_role("link", name="Audit an answer").click()
    answer = page.get_by_label("Answer", exact=True)
    for question in ("What does the tank hold?", "How much is in the tank?"):
        settled(page)
        another = page.get_by_text("Audit another answer")
        expect(answer.or_(another).first).to_be_visible()
        if another.is_visible():
            another.click()
        page.get_by_label("Question", exact=True).fill(question)
        page.get_by_label("Sources").fill("The tank holds 40 litres.")
        answer.fill("The tank holds 40 litres.")
        page.get_by_role("button", name="Audit", exact=True).click()
        expect(page.get_by_role("heading", name=question)).to_be_visible()
        expect(answer).to_be_hidden()


@pytest.mark.parametrize("name", [EXAMPLE, AUDITED])
def test_a_report_prints_on_few_pages_with_the_summary_on_the_first(chromium, tmp_path, name):
    found = read_case_file(gzip.decompress(file_of(name).read_bytes()))
    (tmp_path / "report.html").write_text(html_report(found.case, found.history), encoding="utf-8")
    page = chromium.new_page()
    page.goto((tmp_path / "report.html").as_uri())
    page.pdf(path=tmp_path / "report.pdf", format="A4")
    page.close()
    pages = PdfReader(tmp_path / "report.pdf").pages
    assert len(pages) <= PAGES
    first = pages[0].extract_text()
    assert "borne out" in first and "Conclusion of the review" in first and "Facts judged by" in first
    assert all(f"Case {name}. Content hash" in " ".join(page.extract_text().split()) for page in pages)
