"""`python -m tests.trust.load --sessions 18 --rounds 11`: many users at once on one served app, and what it came to.

Every session asks questions that carry its own run id, attributes its answer, and opens cases. By default the reader
answers and a tiny model scores; `--model embedded --minutes 20` writes and scores with the embedded language model. A
mixed result is a page that shows another session's run id. One JSON line says errors, mixed results, order, the seconds
of actions that only view (from the request to the end of the script, queueing included), of questions until their
answer, of analyses until their result, and the memory.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shutil
import statistics
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from tests.trust.prepared import prepared_folder
from tests.trust.streamlit_client import Page, Session

CORPUS = "bank-investigation"
QUESTION = "Why was the first alert closed, and why was it opened again? (run {run})"
SCORER = "tiny-load"
PATIENCE = 3_600.0  # seconds: with a real scorer every session waits for the analyses of all the others
RUN = re.compile(r"\(run ([\w-]+)\)")


class Work(NamedTuple):
    """The work of every session: the most rounds, until when one may begin, and who writes and scores."""

    rounds: int
    until: float
    model: str


class Book:
    """The notes of all sessions, under one lock."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.errors: list[str] = []
        self.mixed: list[str] = []
        self.asked: list[str] = []
        self.answered: list[str] = []
        self.views: list[float] = []
        self.questions: list[float] = []
        self.analyses: list[float] = []
        self.memory: list[int] = []

    def note(self, name: str, value: Any) -> None:
        """Add to one of the lists."""
        with self.lock:
            getattr(self, name).append(value)


def check(book: Book, page: Page, run: str) -> None:
    """The answer that is drawn is this run's own."""
    headings = [m for text in page.texts if "gw-question" in text for m in RUN.findall(text)]
    if set(headings) != {run}:
        book.note("mixed", f"{run} saw {headings}")
    for problem in page.problems:
        book.note("errors", f"{run}: {problem}")


def one_session(port: int, name: str, work: Work, book: Book, server: psutil.Process) -> None:
    """Ask, attribute, look at cases, again and again; an error is written down and ends the session."""
    try:
        session = Session(port, timeout=PATIENCE)
        session.wait(lambda page: "Question" in page.widgets)
        for number in range(work.rounds):
            if time.monotonic() > work.until:
                break
            one_round(session, f"{name}-{number}", work.model, book)
            book.note("memory", server.memory_info().rss)
            print(f"{name}: {number + 1} rounds", file=sys.stderr, flush=True)
        session.close()
        book.views.extend(seconds for what, seconds in session.timings if what == "view")
    except Exception as error:
        book.note("errors", f"{name}: {type(error).__name__}: {error}"[:300])


def one_round(session: Session, run: str, model: str, book: Book) -> None:
    """One question to its attribution, and back over the pages that only show."""
    session.open("")
    session.fill("Question", QUESTION.format(run=run))
    session.fill("Corpus", CORPUS)
    if model:
        session.fill("Written by", model)
    book.note("asked", run)
    asked = time.monotonic()
    session.press("Ask")
    mine = re.compile(rf"gw-question[^<]*>[^<]*\(run {re.escape(run)}\)")
    page = session.wait(lambda p: "Cancel" not in p.widgets and bool(mine.search(p.said)))
    book.note("answered", run)
    book.note("questions", time.monotonic() - asked)
    check(book, page, run)
    session.open("attribution")
    session.fill("Scored by", model or SCORER)
    session.rerun("view")
    asked = time.monotonic()
    session.press("Leave each passage out")
    page = session.wait(lambda p: "Cancel" not in p.widgets and "gw-table" in p.said)
    book.note("analyses", time.monotonic() - asked)
    check(book, page, run)
    for path in ("cases", "facts", ""):
        page = session.open(path)
        check(book, page, run)


def scorer(folder: Path) -> None:
    """A model of two layers that reads words, not bytes: an attribution takes it a second of one core."""
    from engine.corpus.samples import SAMPLES
    from tests.trust.hostile import tiny_long

    texts = [path.read_text(encoding="utf-8") for sample in SAMPLES for path in sample.documents]
    tiny_long(folder, texts=texts, vocabulary=8_000)


def displaced(book: Book) -> int:
    """How many places at most a question was answered later than it was asked."""
    order = {run: place for place, run in enumerate(book.asked)}
    return max((place - order[run] for place, run in enumerate(book.answered)), default=0)


def share(seconds: list[float], part: float) -> float | None:
    """The value under which `part` of the seconds lie."""
    return round(sorted(seconds)[int(part * (len(seconds) - 1))], 2) if seconds else None


def summary(book: Book, sessions: int, seconds: float, model: str = "") -> dict[str, Any]:
    """The figures of a load."""
    memory = book.memory
    fifth = max(1, len(memory) // 5)
    return {
        "sessions": sessions,
        "model": model or "reader",
        "runs": len(book.memory),
        "errors": book.errors,
        "mixed": book.mixed,
        "displaced": displaced(book),
        "view_p50_s": share(book.views, 0.5),
        "view_p95_s": share(book.views, 0.95),
        "views": len(book.views),
        "question_p50_s": share(book.questions, 0.5),
        "question_p95_s": share(book.questions, 0.95),
        "analysis_p50_s": share(book.analyses, 0.5),
        "analysis_p95_s": share(book.analyses, 0.95),
        "memory_early_mb": round(statistics.median(memory[fifth : 2 * fifth]) / 2**20) if memory else None,
        "memory_late_mb": round(statistics.median(memory[-fifth:]) / 2**20) if memory else None,
        "seconds": round(seconds),
        "load_average_before": round(os.getloadavg()[2], 1),
    }


def in_chromium(port: int, count: int, book: Book, until: threading.Event) -> None:
    """`count` tabs of a real browser that ask and look at cases until the others are through."""
    from playwright.sync_api import expect, sync_playwright

    from tests.browser.conftest import ARGUMENTS, CHROMIUM

    expect.set_options(timeout=1_000 * PATIENCE)
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
            tabs = [browser.new_page() for _ in range(count)]
            for number, tab in enumerate(tabs):
                tab.goto(f"http://127.0.0.1:{port}/")
                expect(tab.get_by_role("textbox", name="Question")).to_be_visible()
                ask_in(tab, f"tab{number}-0")
            turn = 0
            while not until.is_set():
                turn += 1
                for number, tab in enumerate(tabs):
                    expect(tab.get_by_role("heading", name=f"(run tab{number}-{turn - 1})")).to_be_visible()
                    ask_in(tab, f"tab{number}-{turn}")
            browser.close()
    except Exception as error:
        book.note("errors", f"Chromium: {type(error).__name__}: {error}"[:300])


def ask_in(tab: Any, run: str) -> None:
    """Ask in a tab of the browser."""
    corpus = tab.get_by_role("combobox", name="Corpus")
    corpus.fill(CORPUS)
    corpus.press("Enter")
    tab.get_by_role("textbox", name="Question").fill(QUESTION.format(run=run))
    tab.get_by_role("button", name="Ask Shortcut").click()


def load(
    prepared: Path, sessions: int, rounds: int, in_browser: int = 0, model: str = "", minutes: float = math.inf
) -> dict[str, Any]:
    """Serve an app on a copy of a prepared data folder; let `sessions` users and `in_browser` tabs work on it.

    No round begins after `minutes`. `model` writes and scores; without one the reader answers and a tiny model scores.
    """
    from tests.browser.conftest import App

    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        shutil.copytree(prepared, home)
        scorer(home / "models" / SCORER)
        served, book, started = App(home, Path(folder) / "log.txt"), Book(), time.monotonic()
        server, through = psutil.Process(served.process.pid), threading.Event()
        work = Work(rounds, started + 60 * minutes, model)
        tabs = threading.Thread(target=in_chromium, args=(served.port, in_browser, book, through))
        try:
            if in_browser:
                tabs.start()
            with ThreadPoolExecutor(sessions) as pool:
                for number in range(sessions):
                    pool.submit(one_session, served.port, f"s{number}", work, book, server)
            through.set()
            if in_browser:
                tabs.join()
        finally:
            served.stop()
        return summary(book, sessions + in_browser, time.monotonic() - started, model)


def main() -> None:
    """Print the summary as one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=18)
    parser.add_argument("--rounds", type=int, default=12, help="of a session, at most")
    parser.add_argument("--minutes", type=float, default=math.inf, help="after which no round begins")
    parser.add_argument("--model", default="", help="writes and scores (default: the reader, a tiny scorer)")
    parser.add_argument("--tabs", type=int, default=2, help="of a real Chromium beside them")
    parser.add_argument("--prepared", type=Path, help="a data folder with the sample corpora (default: made)")
    asked = parser.parse_args()
    with prepared_folder(asked.prepared) as prepared:
        found = load(prepared, asked.sessions, asked.rounds, asked.tabs, asked.model, asked.minutes)
        print(json.dumps(found))


if __name__ == "__main__":
    main()
