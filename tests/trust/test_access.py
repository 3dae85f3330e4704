"""Who can reach it, who marks, what is kept secret, who is contacted."""

from __future__ import annotations

import logging
import socket
import subprocess
import sys
import tomllib
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner
from streamlit.testing.v1 import AppTest
from websockets.exceptions import InvalidStatus

import components.cache
from components.reviewer import HEADER, forwarded, identity
from engine.cases.store import CaseStore
from engine.commands import main
from engine.core.hosts import hosts
from engine.corpus.samples import FIRST_CASE
from engine.models.registry import load_writer
from engine.report.build import html_report, markdown_report
from tests.browser.conftest import serve
from tests.trust.replies import Replies
from tests.trust.streamlit_client import Page, Session

ROOT = Path(__file__).resolve().parent.parent.parent
KEY = "sk-planted-4f1c9a7be2d84c0f"
SIGNING = "planted-signing-0123456789abcdef"


def test_it_listens_on_this_machine_alone():
    config = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    assert config["server"]["address"] == "127.0.0.1"
    assert config["browser"]["gatherUsageStats"] is False
    assert config["client"]["showErrorDetails"] == "none"


@pytest.fixture(scope="module")
def served(prepared_home, tmp_path_factory):
    """An app that no login was set up for."""
    with serve(prepared_home, tmp_path_factory.mktemp("open")) as app:
        yield app


@pytest.fixture(scope="module")
def behind_proxy(prepared_home, tmp_path_factory):
    """An app that believes a header, and a socket that hears whatever it would ask the internet."""
    with socket.create_server(("127.0.0.1", 0)) as internet:
        internet.setblocking(False)
        way_out = f"http://127.0.0.1:{internet.getsockname()[1]}"
        folder = tmp_path_factory.mktemp("proxied")
        more = {HEADER: "X-Forwarded-Email", "http_proxy": way_out, "https_proxy": way_out}
        with serve(prepared_home, folder, **more) as app:
            yield app, internet


@pytest.mark.slow
def test_a_served_app_is_not_reached_by_another_address(served):
    others: set[str] = set()
    with suppress(socket.gaierror):  # a host may not know its own name
        others = {found[4][0] for found in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    with socket.create_connection(("127.0.0.1", served.port), timeout=10):
        pass
    for other in {*others, "127.0.0.2"} - {"127.0.0.1"}:
        with pytest.raises(OSError):
            socket.create_connection((other, served.port), timeout=10).close()


def review(port: int, **proxy) -> Page:
    """The Cases page of somebody who comes through a proxy."""
    session = Session(port, f"case={FIRST_CASE}", **proxy)
    try:
        session.wait(lambda page: "Question" in page.widgets)  # a fresh server looks at its samples first
        return session.open("cases")
    finally:
        session.close()


@pytest.mark.slow
def test_a_header_that_nobody_agreed_on_names_no_reviewer(served):
    page = review(served.port, headers={"X-Forwarded-Email": "mallory@example.org"})
    assert "Reviewer" in page.widgets
    assert "mallory" not in page.said


@pytest.mark.slow
def test_the_proxys_header_names_the_reviewer_and_the_host_that_it_passes_on_is_enough(behind_proxy):
    app, _ = behind_proxy
    headers = {"X-Forwarded-Email": "ada@example.org", "Origin": "https://groundwork.example.org"}
    page = review(app.port, host="groundwork.example.org", headers=headers)
    assert "Reviewer: ada@example.org, as logged in" in page.said
    assert "Reviewer" not in page.widgets
    assert "Reviewer" in review(app.port).widgets


@pytest.mark.slow
def test_a_page_of_another_origin_is_turned_away_and_nobody_is_asked_about_it(behind_proxy):
    app, internet = behind_proxy
    with pytest.raises(InvalidStatus, match="403"):
        Session(app.port, headers={"Origin": "https://elsewhere.example.org"})
    with pytest.raises(BlockingIOError):
        internet.accept()


def test_a_login_names_the_reviewer_until_it_expires():
    claims = {"is_logged_in": True, "name": "Ada\nQuill", "email": "ada@example.org", "exp": 100}
    assert identity(claims, now=99) == "Ada Quill <ada@example.org>"
    assert identity(claims, now=100) == ""
    assert identity({**claims, "is_logged_in": False}, now=1) == ""
    assert identity({"is_logged_in": True, "sub": "u-17"}, now=1) == "u-17"
    assert identity({}, now=1) == ""


def test_a_header_is_believed_only_where_it_was_agreed_on():
    headers = {"X-Forwarded-Email": "ada@example.org"}
    assert forwarded("", headers) == ""
    assert forwarded("X-Forwarded-Email", headers) == "ada@example.org"
    assert forwarded("X-Forwarded-Email", {}) == ""


def marks_as(claims):
    """A page with the reviewer's place alone, under a login of those claims."""
    from unittest.mock import PropertyMock, patch

    import streamlit as st

    with patch.object(type(st.user), "to_dict", PropertyMock(return_value=lambda: claims)):
        return AppTest.from_string(
            "from components.login import require_login\nfrom components.reviewer import reviewer\n"
            "import streamlit as st\n"
            "require_login()\nst.text('marks: ' + reviewer())"
        ).run(timeout=60)


def test_nobody_passes_a_configured_login_and_a_name_is_not_typed():
    out = marks_as({"is_logged_in": False})
    assert [button.label for button in out.button] == ["Log in"]
    assert not out.text
    ada = marks_as({"is_logged_in": True, "name": "Ada"})
    assert ada.text[0].value == "marks: Ada"
    assert not ada.text_input
    assert marks_as({}).text_input[0].label == "Reviewer"


def test_a_login_that_is_not_set_up_says_so():
    pressed = marks_as({"is_logged_in": False}).button[0].click().run()
    assert "The login of this server is not set up." in pressed.error[0].value
    assert not pressed.exception


def test_by_default_no_host_is_named(monkeypatch):
    for name in ("GROUNDWORK_CHROMA", "OPENAI_BASE_URL", "HF_ENDPOINT", "RAY_ADDRESS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert hosts() == ()
    monkeypatch.delenv("HF_HUB_OFFLINE")
    assert [host.partition(" ")[0] for host in hosts()] == ["https://huggingface.co"]
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("GROUNDWORK_CHROMA", f"http://user:{KEY}@chroma.example:8000")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://models.example/v1")
    monkeypatch.setenv("RAY_ADDRESS", "head.example:6379")
    addresses = [host.partition(" ")[0] for host in hosts()]
    assert addresses == ["http://chroma.example:8000", "https://models.example", "ray://head.example:6379"]
    assert KEY not in str(hosts())


@pytest.fixture
def planted(sample_home, monkeypatch, tmp_path):
    """A key of a served model and a signing key in the environment."""
    signing = tmp_path / "signing.key"
    signing.write_text(SIGNING)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("GROUNDWORK_SIGNING_KEY", str(signing))
    return sample_home


def run(*arguments: str) -> str:
    """A command's output, with the traceback if it fails."""
    done = CliRunner().invoke(main, list(arguments))
    return f"{done.output}{done.exception!r}{done.exc_info}"


def test_a_planted_key_is_sent_to_its_server_and_is_found_nowhere_else(planted, caplog, tmp_path):
    caplog.set_level(logging.DEBUG)
    good, bad = Replies("It is dissolved in hot water [cite_1]."), Replies(f"Bearer {KEY} may not do this", status=400)
    asked = ("ask", "How is it recrystallized?", "--corpus", "bench-chemistry", "--method", "vanilla", "--json")
    said = [run(*asked, "--model", served.model) for served in (good, bad)]
    store = CaseStore(planted / "cases.sqlite")
    case = store.load(store.rows(limit=1)[0].id)
    said += [run("models"), run("self-test", bad.model), run("export", case.id)]
    said += [run("review", case.id, "--reviewer", "Ada", "--note", "Seen.")]
    for row in store.rows():
        whole = store.load_whole(row.id)
        said += [html_report(*whole), markdown_report(*whole), whole[0].to_dict().__repr__()]
    assert good.headers[0]["authorization"] == f"Bearer {KEY}"
    assert "[key]" in said[1]
    written = {str(p): p.read_bytes() for p in planted.rglob("*") if p.is_file()}
    for secret in (KEY, SIGNING):
        assert [text[:200] for text in said if secret in text] == []
        assert [name for name, data in written.items() if secret.encode() in data] == []
        assert secret not in caplog.text


def test_a_planted_key_is_on_no_page_and_in_no_traceback(planted, app, caplog):
    app.run()
    shown = ""
    for page in ("pages/ask/ask.py", "pages/review/cases.py", "pages/review/settings.py"):
        shown += str(app.switch_page(page).run().main)
        assert not app.exception
    bad = Replies(f"Bearer {KEY} may not do this", status=500)
    writer = load_writer(bad.model)
    writer.attempts = 1
    failed = components.cache.analyses().start(lambda run: unexpected(writer), label="a run")
    assert failed.future.exception(timeout=60) is not None
    assert KEY not in shown + caplog.text + str(failed.problem)


def unexpected(writer):
    """A programming error while a model is loaded: its traceback goes to the log."""
    assert writer.name
    raise KeyError("an error that nobody expected")


def test_the_command_line_tells_no_traceback(planted):
    bad = Replies(f"Bearer {KEY} may not do this", status=400)
    command = [sys.executable, "-m", "engine", "self-test", bad.model]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert "Traceback" not in done.stderr
    assert KEY not in done.stdout + done.stderr
