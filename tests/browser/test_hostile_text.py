"""Attack documents, cases and model replies in a real Chromium: nothing runs, nothing is fetched, nothing covers."""

from __future__ import annotations

import csv
import io
import re

import pytest
from markdown_it import MarkdownIt
from playwright.sync_api import expect

from tests.browser.drawn import still
from tests.browser.test_evaluate import finished_run
from tests.trust.attacks import ALL, HTML, LINE
from tests.trust.hostile import CORPUS, SETTINGS, hostile_case, ingest_attacks, long_case
from tests.trust.replies import Replies
from tests.trust.watch import Watcher

pytestmark = pytest.mark.long
QUICK = ("attribution", "refinement", "facts", "steps", "cases", "corpora")
WITHOUT_CASE = ("settings", "evaluate")
ALL_PAGES = ("", *QUICK, "compare", *WITHOUT_CASE)
ATTACKED = re.compile(r"<img src=x onerror=|W{500}")  # the text that a page has to show, or nothing was tried on it
MOST_FOLDS = 60
LOOKS = [{}, {"color_scheme": "dark", "viewport": {"width": 1920, "height": 1080}}]
# What every reader of Markdown brings: what is too wide is broken, or scrolls in its place.
READER = "<style>body { overflow-wrap: anywhere } table, pre { display: block; overflow-x: auto }</style>"
# The browser's own picker for a file's place is not part of the page: without it a download is a download.
NO_PICKER = "delete window.showSaveFilePicker"


@pytest.fixture(scope="module")
def hostile(app, at_home):
    """The app's data folder under attack; the ids of the case with every analysis and of the one with long lines."""
    from engine.workbench import Workbench

    with at_home(app.home):
        ingest_attacks(app.home / "attacks")
        every = hostile_case(Workbench(SETTINGS), app.home / "models")
        return every.id, long_case(Workbench()).id


@pytest.fixture
def watched(page):
    """A page with a watcher."""
    page.add_init_script(NO_PICKER)
    page.watcher = Watcher(page)
    return page


def settled(page):
    """Wait until the page is drawn: the samples are read, nothing runs, nothing is stale, no placeholder."""
    expect(page.get_by_role("heading", level=1).and_(page.locator(":not(:has-text('Groundwork'))"))).to_be_visible()
    expect(page.locator("[data-testid=stSkeleton]:visible")).to_have_count(0)
    still(page)


def unfold(page):
    """Open every fold in sight, a fold in a fold after it."""
    closed = page.locator("[data-testid=stExpander] details:not([open]) > summary:visible")
    for _ in range(MOST_FOLDS):
        if closed.count() == 0:
            return
        closed.first.click()
        still(page)
    expect(closed).to_have_count(0)


def open_all(page):
    """Unfold what is folded and show each tab; what an attack left behind meanwhile."""
    found = list(page.watcher.left_behind())
    unfold(page)  # tabs in a fold are there once it is open
    tabs = page.get_by_role("tab")
    for number in range(tabs.count()):
        if tabs.nth(number).is_visible():
            tabs.nth(number).click()
            settled(page)
            expect(tabs.nth(number)).to_have_attribute("aria-selected", "true")
            unfold(page)
            found += page.watcher.left_behind()
    return [*found, *page.watcher.left_behind()]


def visit(page, app, name, case):
    address = f"{app.url}/{name}?case={case}&corpus={CORPUS}"
    page.goto(address + (f"&left={case}&right={case}" if name == "compare" else ""))
    settled(page)
    if name not in WITHOUT_CASE:
        expect(page.get_by_test_id("stMain")).to_contain_text(ATTACKED)
    return open_all(page)


def test_a_hostile_case_and_corpus_do_nothing_on_the_pages(app, hostile, watched, look):
    for name in QUICK:
        assert visit(watched, app, name, hostile[0]) == [], name
        look(watched, f"hostile_{name}")


@pytest.mark.parametrize("page", LOOKS, indirect=True, ids=["light", "dark"])
def test_nor_on_any_page_in_any_look_nor_with_lines_of_a_megabyte(app, hostile, watched, look):
    for case, kind in zip(hostile, ("every", "long"), strict=True):
        for name in ALL_PAGES:
            assert visit(watched, app, name, case) == [], (kind, name)
            look(watched, f"hostile_{kind}_{name or 'ask'}_{watched.viewport_size['width']}")


@pytest.mark.parametrize("page", LOOKS, indirect=True, ids=["light", "dark"])
def test_an_evaluation_of_hostile_examples_is_told_as_text(app, hostile, watched, look):
    name = f"attacked-{watched.viewport_size['width']}"
    finished_run(app.home, name, cases=name, said=ALL)
    watched.goto(f"{app.url}/evaluate?run={name}")
    settled(watched)
    expect(watched.get_by_test_id("stMain")).to_contain_text(ATTACKED)
    assert open_all(watched) == []
    look(watched, f"hostile_{name}")
    with watched.expect_download() as waiting:
        watched.get_by_role("button", name="Everything as Markdown").click()
    text = waiting.value.path().read_text(encoding="utf-8")
    shown = app.home / f"{name}.html"
    shown.write_text(READER + MarkdownIt("commonmark", {"html": True}).enable("table").render(text), encoding="utf-8")
    watched.goto(shown.as_uri())
    assert watched.watcher.left_behind() == []


def test_a_hostile_reply_is_streamed_and_kept_as_text(app, hostile, watched, look):
    served = Replies(f"{LINE} [cite_1] {ALL}")
    watched.goto(f"{app.url}/?case={hostile[1]}")
    settled(watched)
    watched.get_by_text("Ask another question").click()
    watched.get_by_role("textbox", name="Question").fill("What do the notes say of the freezing point?")
    box = watched.get_by_role("combobox", name="Written by")
    box.fill(served.model)
    box.press("Enter")
    watched.get_by_role("button", name="Ask Shortcut").click()
    expect(watched.get_by_role("heading", name="What do the notes say of the freezing point?")).to_be_visible()
    expect(watched.locator(".answer")).to_contain_text("<img src=x onerror=")
    settled(watched)
    assert watched.watcher.left_behind() == []
    look(watched, "hostile_reply")
    served.stop()


def test_a_hostile_file_name_and_a_hostile_error_are_told_as_text(app, hostile, watched):
    watched.goto(f"{app.url}/corpora")
    settled(watched)
    watched.get_by_text("Add documents").click()
    watched.get_by_role("textbox", name="Corpus").fill("notes")
    name = "![cat](http:attack.invalid) www.attack.invalid login@attack.invalid **bold** :red[x].exe"
    watched.locator("input[type=file]").first.set_input_files(
        {"name": name, "mimeType": "text/plain", "buffer": HTML["overlay"].encode()}
    )
    watched.get_by_role("button", name="Add", exact=True).click()
    expect(
        watched.get_by_text(re.compile(r"login\W?@attack.invalid \*\*bold\*\* :red\[x\].exe has an unknown format"))
    ).to_be_visible(timeout=300_000)  # a fresh server reads its samples first
    served = Replies(f"![cat](http://attack.invalid/error.png) {LINE}", status=400)
    watched.goto(f"{app.url}/settings")
    settled(watched)
    watched.get_by_label("Model", exact=True).fill(served.model)
    watched.get_by_role("button", name="Test", exact=True).click()
    expect(watched.get_by_test_id("stMain").get_by_text("failed with status 400")).to_be_visible()
    assert watched.watcher.left_behind() == []
    served.stop()


def test_what_is_taken_away_does_nothing_elsewhere(app, hostile, watched, tmp_path):
    watched.goto(f"{app.url}/cases?case={hostile[0]}")
    settled(watched)
    watched.get_by_role("tab", name="Report and export").click()
    report = saved(watched, "Report (HTML)", tmp_path / "report.html")
    notes = saved(watched, "Report (Markdown)", tmp_path / "report.md")
    watched.goto(f"{app.url}/facts?case={hostile[0]}")
    settled(watched)
    facts = saved(watched, "Report", tmp_path / "facts.md")
    watched.goto(report.as_uri())
    watched.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert watched.watcher.left_behind() == []
    for written in (notes, facts):
        shown = written.with_suffix(".html")
        render = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
        shown.write_text(READER + render.render(written.read_text(encoding="utf-8")), encoding="utf-8")
        watched.goto(shown.as_uri())
        assert watched.watcher.left_behind() == []


def saved(page, name, path):
    with page.expect_download() as waiting:
        page.get_by_role("button", name=name, exact=True).click()
    waiting.value.save_as(path)
    return path


def test_a_table_saved_as_csv_holds_no_formula(app, hostile, watched, tmp_path):
    watched.goto(f"{app.url}/corpora?corpus={CORPUS}")
    settled(watched)
    table = watched.get_by_test_id("stDataFrame").nth(1)
    table.hover()
    path = tmp_path / "table.csv"
    with watched.expect_download() as waiting:
        table.locator("xpath=..").get_by_role("button", name="Download as CSV").click()
    waiting.value.save_as(path)
    cells = [c for row in csv.reader(io.StringIO(path.read_text(encoding="utf-8-sig"))) for c in row]
    assert any("HYPERLINK" in c for c in cells)
    assert [c for c in cells if re.match(r"[=@\t\r]|[+-](?![\d.]+$)", c)] == []
