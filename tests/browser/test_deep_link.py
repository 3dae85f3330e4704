"""A cold deep link: the very first visit of a fresh server goes straight to a page."""

from __future__ import annotations

from playwright.sync_api import expect

from engine.cases.bundled import EXAMPLE


def test_the_first_visit_by_deep_link_shows_the_page_and_no_dialog(app, page, look):
    page.goto(f"{app.url}/settings")
    expect(page.get_by_role("heading", name="Settings")).to_be_visible()
    assert page.get_by_role("dialog").count() == 0
    look(page, "settings_light")


def test_an_unknown_case_in_the_link_says_so(app, page):
    page.goto(f"{app.url}/?case=absent")
    expect(page.get_by_text("The library has no case 'absent'")).to_be_visible()


def test_a_link_to_an_example_takes_it_into_a_library_that_lacks_it(app, page):
    page.goto(f"{app.url}/attribution?case={EXAMPLE}")
    expect(page.get_by_role("heading", name="Attribution", exact=True)).to_be_visible()
    expect(page.get_by_role("tab", name="Used x supports")).to_be_visible()
    expect(page.get_by_text("The library has no case")).to_have_count(0)
