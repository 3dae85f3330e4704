"""Streamlit's own login in front of a local OpenID Connect provider: who has not logged in sees and is sent nothing."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from engine.cases.store import CaseStore
from engine.corpus.samples import FIRST_CASE, FIRST_QUESTION
from tests.browser.conftest import serve
from tests.browser.drawn import still
from tests.browser.test_every_page import PAGES
from tests.trust.provider import Provider
from tests.trust.streamlit_client import Session

ADA = "Ada Quill <ada@example.org>"
SAID = ["Log in to see cases and documents", "You return to this page after logging in."]


@pytest.fixture(scope="module")
def provider():
    found = Provider({"sub": "u-17", "name": "Ada Quill", "email": "ada@example.org"})
    yield found
    found.stop()
    assert found.refused == []


@pytest.fixture(scope="module")
def app(prepared_home, tmp_path_factory, provider):
    """An app whose user has the login in the secrets of their home folder."""
    folder = tmp_path_factory.mktemp("served")
    (folder / ".streamlit").mkdir()
    (folder / ".streamlit" / "secrets.toml").write_text(provider.secrets())
    with serve(prepared_home, folder, HOME=str(folder)) as served:
        provider.redirect = f"{served.url}/oauth2callback"
        yield served


def sent(page):
    """Everything that the server sends over the page's WebSockets, as it comes."""
    frames = []
    page.on("websocket", lambda stream: stream.on("framereceived", lambda frame: frames.append(frame)))
    return frames


def open_login(page, address):
    """Go somewhere and find the login, alone."""
    page.goto(address)
    expect(page.get_by_role("button", name="Log in")).to_be_visible()
    still(page)
    assert page.get_by_role("main").inner_text().split("\n\n") == [*SAID, "Log in"]
    assert page.get_by_role("link").all_inner_texts() == ["Skip to main content"]


def log_in(page):
    """From the login to the provider, and back."""
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("button", name="Continue as Ada Quill").click()


def test_a_login_leads_to_the_link_a_mark_carries_the_name_and_a_logout_ends_it(app, provider, page, look):
    link, frames, secret = f"{app.url}/cases?case={FIRST_CASE}", sent(page), FIRST_QUESTION.encode()
    open_login(page, link)
    assert secret not in b"".join(frames)
    log_in(page)
    expect(page.get_by_role("heading", name=FIRST_QUESTION)).to_be_visible()
    expect(page).to_have_url(link)
    assert secret in b"".join(frames)
    expect(page.get_by_text(f"Reviewer: {ADA}, as logged in")).to_be_visible()
    expect(page.get_by_role("link", name="ada@example.org")).to_have_count(0)
    expect(page.get_by_role("textbox", name="Reviewer")).to_have_count(0)
    page.get_by_text("Add a note, a relevance label").click()
    page.get_by_role("textbox", name="Note", exact=True).fill("Checked against the handbook.")
    page.get_by_role("button", name="Add to the history").click()
    expect(page.get_by_text("The whole history (1 entry)")).to_be_visible()
    assert [m.author for m in CaseStore(app.home / "cases.sqlite").history(FIRST_CASE)] == [ADA]
    look(page, "logged_in")
    page.get_by_role("button", name="Log out").click()
    expect(page).to_have_url(f"{app.url}/")  # by way of the provider
    assert provider.logouts == 1
    frames.clear()
    open_login(page, link)
    assert secret not in b"".join(frames)


def test_an_identity_token_that_has_expired_asks_again(app, provider, page):
    provider.lifetime = -30  # within what clocks may differ by, so that it is taken for a login
    try:
        open_login(page, app.url)
        log_in(page)
        page.wait_for_url(f"{app.url}/")
        assert "_streamlit_user" in {cookie["name"] for cookie in page.context.cookies(app.url)}
        open_login(page, f"{app.url}/cases")
    finally:
        provider.lifetime = 3600


def test_no_page_sends_anything_before_the_login(app):
    session = Session(app.port)
    for name in PAGES:
        drawn = session.open(name)
        assert list(drawn.widgets) == ["Log in"]
        said = [text for text in drawn.texts if not text.startswith(("<style", "<script"))]
        assert said == SAID, name
        assert drawn.components == []
    session.close()


def test_axe_finds_nothing_on_the_login_light_or_dark(app, page, look):
    open_login(page, app.url)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        expect(page.locator(".stApp")).to_have_css("color-scheme", scheme)
        still(page)
        look(page, f"login_{scheme}")
        assert [(v["id"], v["nodes"][0]["html"][:120]) for v in Axe().run(page).response["violations"]] == []
