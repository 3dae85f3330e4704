"""A served app on a prepared data folder and a real Chromium in front of it."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
CHROMIUM = os.environ.get("GROUNDWORK_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
SCREENSHOTS = ROOT / "screenshots"
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]


def pytest_collection_modifyitems(items):
    for item in items:
        if "browser" in str(item.path.parent.name):
            item.add_marker(pytest.mark.browser)
            # A second try on a slow machine; the summary names it, and it is a bug until someone has looked.
            item.add_marker(pytest.mark.flaky(reruns=1))
            if CHROMIUM is None:
                item.add_marker(pytest.mark.skip(reason="no Chromium: install Debian's chromium"))


class App:
    """A running app: its address, its process and its data folder; `more` is added to its environment."""

    def __init__(self, home: Path, log: Path, **more: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.home = home
        self.log = log
        own = {"GROUNDWORK_HOME": str(home), "PORT": str(self.port), "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "components.serve"],
            cwd=ROOT,
            env={**os.environ, **own, **more},
            stdout=log.open("w"),
            stderr=subprocess.STDOUT,
        )
        self._await()

    def _await(self) -> None:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            try:
                urllib.request.urlopen(f"{self.url}/_stcore/health", timeout=2).close()
                return
            except OSError:
                with contextlib.suppress(subprocess.TimeoutExpired):  # leaves the processor to the app that starts
                    self.process.wait(0.2)
                assert self.process.returncode is None, self.log.read_text()
        raise AssertionError(f"the app did not come up: {self.log.read_text()}")

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@contextlib.contextmanager
def serve(prepared_home, folder, **more):
    """An app on a copy of its own of the prepared folder."""
    shutil.copytree(prepared_home, folder / "home")
    served = App(folder / "home", folder / "log.txt", **more)
    try:
        yield served
        # A closed tab leaves traces of the server's own, and so does stopping; ours go through pages and components.
        log = served.log.read_text()
    finally:
        served.stop()
    assert not [line for line in log.splitlines() if f"{ROOT}/pages/" in line or f"{ROOT}/components/" in line]


@pytest.fixture(scope="module")
def app(prepared_home, tmp_path_factory):
    """An app on its own copy of the prepared folder, one a test module."""
    with serve(prepared_home, tmp_path_factory.mktemp("served")) as served:
        yield served


@pytest.fixture(scope="session")
def chromium():
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=120_000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def page(chromium, request):
    """A fresh page; `@pytest.mark.parametrize("page", [{"color_scheme": "dark"}], indirect=True)` for another look."""
    options = {"viewport": {"width": 1280, "height": 900}, **getattr(request, "param", {})}
    context = chromium.new_context(**options)
    fresh = context.new_page()
    fresh.set_default_timeout(120_000)
    fresh.requests = []
    fresh.on("request", lambda r: fresh.requests.append(r.url))
    yield fresh
    context.close()


@pytest.fixture
def look():
    """Save a screenshot to be looked at."""

    def save(page, name: str) -> None:
        SCREENSHOTS.mkdir(exist_ok=True)
        page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)

    return save
