"""Waiting until a page is drawn, and the findings of axe on it."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

# Streamlit draws its navigation as a list within a list, and its tables on a canvas; neither is ours to mend.
OURS = {"exclude": [["[data-testid=stSidebarNav]"], ["[data-testid=stDataFrame]"]]}


def settled(page):
    """Wait for the rerun that a widget started: a click in the middle of it would be lost."""
    expect(page.locator('.stApp[data-test-script-state="notRunning"]')).to_be_visible()
    expect(page.locator("[data-stale=true]")).to_have_count(0)


def still(page):
    """Wait until nothing fades in either: text that does has not the contrast that it will have."""
    settled(page)
    expect(page.locator("[data-testid=stStatusWidget]")).to_have_count(0)
    page.wait_for_function(  # what scrolling drives never ends
        "document.getAnimations().every(a => a.timeline !== document.timeline || a.playState !== 'running')"
    )


def serious(page):
    """The serious findings of axe on the page: (rule, element)."""
    found = Axe().run(page, context=OURS).response["violations"]
    return [(v["id"], n["html"][:120]) for v in found if v["impact"] in ("serious", "critical") for n in v["nodes"][:3]]
