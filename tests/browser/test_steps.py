"""Steps in the browser: RAISE as its steps arrive, what T dropped, T moved without a call, and HyDE to compare."""

from __future__ import annotations

import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import TimeoutError, expect

from engine.analyses.steps import KIND, new_case
from engine.cases.store import CaseStore
from engine.core.files import now
from engine.methods.raise_.threshold import PRIMER, primer
from engine.methods.raise_.values import Problem
from tests.browser.drawn import settled
from tests.trust.replies import events

QUESTION = primer().questions[0]
PLAN = "\n".join(f"{i}. {s.question} | {s.question}" for i, s in enumerate(QUESTION.steps, start=1))
MANY = 1000
GUESS = "A moving body that sticks to another shares its momentum <b>with it</b>."


def reply(asked: str) -> str:
    """The served model's reply to each kind of prompt."""
    if asked.startswith("You plan"):
        return PLAN
    if asked.startswith("You prepare a search"):
        return GUESS
    if asked.startswith("You write the paragraph"):
        return "The pair slides on the rough floor until friction has taken its energy."
    if asked.startswith("You answer one step"):
        return next(s.answer for s in QUESTION.steps if f"Question: {s.question}" in asked)
    return "From the steps, the final answer is (C)"


class Served:
    """A chat server that writes as `reply` does; a sub-answer takes one of the permits, or waits for one."""

    def __init__(self):
        self.asked: list[str] = []
        self.permits = threading.Semaphore(0)
        served = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *args):
                """Say nothing."""

            def do_GET(self):
                self._send("application/json", json.dumps({"data": [{"id": "script"}]}).encode())

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                asked = "\n\n".join(message["content"] for message in body["messages"])
                served.asked.append(asked)
                if asked.startswith("You answer one step"):
                    served.permits.acquire(timeout=300)  # as long as the first card may take
                said = "".join(f"data: {event}\n\n" for event in events(reply(asked)))
                self._send("text/event-stream", said.encode())

            def _send(self, kind, data):
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.model = f"openai:script@http://127.0.0.1:{self.server.server_port}/v1"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def allow(self, count):
        """Let that many sub-answers through from now on, and no more."""
        while self.permits.acquire(blocking=False):
            pass
        if count:
            self.permits.release(count)


@pytest.fixture(scope="module")
def served():
    running = Served()
    yield running
    running.allow(MANY)
    running.server.shutdown()
    running.server.server_close()


@pytest.fixture
def case(app):
    """A fresh case in the served app's library: the primer's first problem, so that its key says what is right."""
    cases = CaseStore(app.home / "cases.sqlite")
    known = len(cases.rows(QUESTION.question[:40], limit=1000))
    made = new_case(Problem(question=QUESTION.question, options=QUESTION.options), PRIMER, f"steps{known}", now())
    cases.save(made)
    return made


def open_page(app, page, case, model):
    page.goto(f"{app.url}/steps?case={case.id}")
    expect(page.get_by_role("heading", name=case.question, exact=True)).to_be_visible()
    field = page.get_by_role("combobox", name="Written by")
    field.click()
    field.fill(model)
    field.press("Enter")
    settled(page)


def choose(page, box, name, *, exact=False):
    """Choose from a list; the run's last rerun may close it under the hand, then it is opened again."""
    option = page.get_by_role("option", name=name, exact=exact)
    for _ in range(5):
        page.get_by_role("combobox", name=box).click()
        with contextlib.suppress(TimeoutError):
            option.click(timeout=5_000)
            return
    option.click()


def work_out(page, method="RAISE"):
    if method != "RAISE":
        settled(page)
        page.get_by_text("Work it out again").click()
        choose(page, "Method", method, exact=True)
        expect(page.get_by_text(f"{method}: ")).to_be_visible()
        settled(page)
    page.get_by_role("button", name="Work it out", exact=True).click()


def saved(app, case):
    return KIND.of(CaseStore(app.home / "cases.sqlite").load(case.id))


def cards(page):
    return page.locator("section.gw-rstep")


@pytest.mark.journey
def test_steps_arrive_t_moves_without_a_call_and_hyde_stands_beside(app, page, served, case, look):
    served.allow(0)
    open_page(app, page, case, served.model)
    work_out(page)
    expect(cards(page)).to_have_count(1, timeout=300_000)  # a fresh server's first search loads the embedder
    expect(cards(page).first).to_contain_text("guess used only to search")
    assert saved(app, case)[0].steps[0].asked is None
    served.allow(MANY)
    expect(page.get_by_text("Final answer: (C)")).to_be_visible()
    expect(cards(page)).to_have_count(len(QUESTION.steps) + 1)
    expect(page.get_by_role("cell", name="(C), right")).to_be_visible()
    expect(cards(page).first).to_contain_text("Final answer: (C)")
    first = cards(page).nth(1)
    expect(first).to_contain_text(GUESS)
    settled(page)
    look(page, "steps_raise")

    dropped = first.locator("details.gw-drops")
    calls = len(served.asked)
    expect(dropped).to_have_count(0)  # nothing is dropped yet
    slider = page.get_by_role("slider").first
    slider.focus()
    slider.press("End")  # nothing is as relevant as that
    expect(page.get_by_role("button", name="Answer again with T")).to_be_visible()
    expect(dropped.locator("summary")).to_be_visible()
    dropped.locator("summary").click()
    expect(dropped.locator("li").first).to_be_visible()
    assert len(served.asked) == calls

    work_out(page, "HyDE")
    expect(page.get_by_role("row", name="HyDE")).to_be_visible()
    choose(page, "Compare with", "HyDE")
    expect(page.get_by_text("Hypothetical answer (guess used only to search)").first).to_be_visible()
    assert not any(asked.startswith("You plan") for asked in served.asked[calls:])
    settled(page)
    look(page, "steps_hyde")

    page.get_by_role("button", name="Inspect step 1 as a case").first.click()
    expect(page.get_by_role("heading", name="Attribution")).to_be_visible()
    expect(page.get_by_role("heading", name=QUESTION.steps[0].question)).to_be_visible()


def test_cancel_keeps_the_finished_steps(app, page, served, case):
    served.allow(1)
    open_page(app, page, case, served.model)
    calls = len(served.asked)
    work_out(page)
    expect(cards(page).nth(1)).to_be_visible()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("Finished steps are below.")).to_be_visible()
    assert saved(app, case)[0].state == "stopped"
    assert saved(app, case)[0].steps[0].answer == QUESTION.steps[0].answer
    assert len(served.asked) == calls + 5  # the plan, two guesses, one answer, and the one that was given up
    served.allow(MANY)


@pytest.mark.parametrize("page", [{"color_scheme": "dark", "viewport": {"width": 1920, "height": 1080}}], indirect=True)
def test_a_plan_that_cannot_be_read_shows_the_raw_reply(app, page, served, case, look, monkeypatch):
    monkeypatch.setitem(globals(), "PLAN", "I would rather <i>not</i>.")
    open_page(app, page, case, served.model)
    work_out(page)
    expect(page.get_by_role("heading", name="Not parsed")).to_be_visible()
    expect(cards(page)).to_contain_text("I would rather <i>not</i>.")
    look(page, "steps_unparsed_dark")


def test_a_problem_of_the_primer_opens_as_a_case(app, page, served):
    page.goto(f"{app.url}/steps")
    page.get_by_text("Another problem").click()
    page.get_by_role("button", name="Problems of the science primer").click()
    page.get_by_role("button", name=primer().questions[1].question).click()
    expect(page.get_by_role("textbox", name="Problem", exact=True)).to_have_value(primer().questions[1].question)
    settled(page)
    page.get_by_role("link", name="Cases").click(delay=100)
    expect(page.get_by_role("heading", name="Cases", exact=True)).to_be_visible()
    page.get_by_role("link", name="Steps", exact=True).click()
    page.get_by_text("Another problem").click()
    expect(page.get_by_role("textbox", name="Problem", exact=True)).to_have_value(primer().questions[1].question)
    page.get_by_role("button", name="Open as a case").click()
    expect(page.get_by_role("heading", name=primer().questions[1].question)).to_be_visible()
    expect(page.get_by_text("No run yet.")).to_be_visible()
