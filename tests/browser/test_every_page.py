"""Every page with content, light and dark: axe finds nothing serious, nothing sticks out, no heading is skipped."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from engine.cases.bundled import EXAMPLE, take_in
from engine.cases.store import CaseStore
from tests.browser.drawn import serious, still

PAGES = (
    "",
    "audit",
    "corpora",
    "attribution",
    "refinement",
    "facts",
    "steps",
    "cases",
    "compare",
    "evaluate",
    "settings",
)
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True}
LOOKS = [pytest.param({}, id="light"), pytest.param({"color_scheme": "dark"}, id="dark", marks=pytest.mark.long)]


@pytest.fixture(scope="module")
def example(app):
    """The worked example in the app's library."""
    take_in(CaseStore(Path(app.home) / "cases.sqlite"))
    return EXAMPLE


def open_page(app, page, name):
    page.goto(f"{app.url}/{name}?case={EXAMPLE}")
    # Until the samples are read every page is the one that says so, with a title of its own.
    expect(page.get_by_role("heading", level=1).and_(page.locator(":not(:has-text('Groundwork'))"))).to_be_visible()
    still(page)


def sideways(page):
    """Elements that stick out of the main column; what scrolls within itself is meant to."""
    return page.evaluate(
        """() => {
          const main = document.querySelector('[data-testid=stMain]');
          return main.scrollWidth > main.clientWidth + 1 ? [`${main.scrollWidth} > ${main.clientWidth}`] : [];
        }"""
    )


def skipped(page):
    """Headings that are more than one level below the one before, in components too."""
    return page.evaluate(
        """() => {
          const found = [];
          const collect = (root) => {
            for (const element of root.querySelectorAll("*")) {
              if (/^H[1-6]$/.test(element.tagName) && element.checkVisibility()) found.push(element);
              if (element.shadowRoot) collect(element.shadowRoot);
            }
          };
          collect(document.querySelector('[data-testid=stMain]'));
          const level = (heading) => Number(heading.tagName[1]);
          return found.filter((h, i) => level(h) > (i ? level(found[i - 1]) : 0) + 1).map((h) => h.textContent);
        }"""
    )


@pytest.mark.parametrize("page", LOOKS, indirect=True)
def test_axe_finds_nothing_serious_on_any_page(app, example, page):
    problems = {}
    for name in PAGES:
        open_page(app, page, name)
        tabs = page.locator("[role=tab]:visible")
        for index in range(max(1, tabs.count())):
            if index:
                tabs.nth(index).click()
                still(page)
            found = serious(page) + sideways(page) + skipped(page)
            if found:
                problems[f"{name or 'ask'} {index}"] = found
    assert problems == {}


@pytest.mark.parametrize("page", [{}, PHONE], indirect=True)
def test_the_sign_off_is_in_sight_while_the_evidence_is_read(app, example, page):
    page.goto(f"{app.url}/cases?case={EXAMPLE}&review=first")
    page.locator(".card").first.scroll_into_view_if_needed()
    expect(page.get_by_role("button", name="Sign off")).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize("page", [PHONE], indirect=True)
def test_nothing_sticks_out_sideways_on_a_phone(app, example, page):
    problems = {}
    for name in PAGES:
        open_page(app, page, name)
        if found := sideways(page):
            problems[name or "ask"] = found
    assert problems == {}


@pytest.mark.parametrize("page", [{"viewport": {"width": 820, "height": 900}}], indirect=True)
def test_buttons_and_figures_are_read_whole_on_a_narrow_page(app, example, page):
    open_page(app, page, "attribution")
    expect(page.get_by_role("button", name="Score the drop of each set")).to_be_visible()
    whole = "texts => texts.filter(text => text.scrollWidth > text.clientWidth).map(text => text.textContent)"
    assert page.locator("button .stMarkdownEllipsis:visible").evaluate_all(whole) == []
    page.get_by_role("tab", name="Faithfulness").click()
    figures = page.locator("[data-testid=stMetricDelta] .stMarkdownEllipsis:visible")
    expect(figures).to_have_count(3)
    assert figures.evaluate_all(whole) == []


def test_the_curves_of_faithfulness_tell_their_values_and_load_no_chart_library(app, example, page):
    open_page(app, page, "attribution")
    page.get_by_role("tab", name="Faithfulness").click()
    figures = page.locator("figure svg[role=img]")
    expect(figures).to_have_count(3)
    expect(page.locator("figure polyline")).to_have_count(6)
    first = page.locator("figure circle title").first
    expect(first).to_have_text(re.compile(r"^most relevant first \(MoRF\): 0\.\d{3} at 0\.00$"))
    assert not [url for url in page.requests if "plotly" in url.lower()]


@pytest.mark.parametrize("name", ["", "attribution"])
def test_the_answer_of_the_example_is_read_whole_without_scrolling_in_it(app, example, page, name):
    open_page(app, page, name)
    answer = page.locator(".answer:visible").first
    expect(answer).to_contain_text("until the next period.")
    assert answer.evaluate("box => box.scrollHeight - box.clientHeight") <= 1
