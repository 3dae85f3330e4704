"""The Cases page end to end; and the report opened from disk with the network cut."""

from __future__ import annotations

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from msgspec.structs import replace
from playwright.sync_api import expect

from components.library import ROW_HEIGHT
from engine.cases.case_file import read_case_file
from engine.cases.review import MarkDraft, append
from engine.cases.store import CaseStore
from engine.core.values import Answer
from engine.corpus.samples import FIRST_QUESTION
from engine.report.build import html_report
from tests.browser.drawn import still
from tests.engine.cases.records import full_record
from tests.engine.cases.samples import full_case
from tests.engine.cases.test_report_records import with_edit

DARK = {"color_scheme": "dark", "viewport": {"width": 1920, "height": 1080}}
LOOKS = [pytest.param({}, id="light"), pytest.param(DARK, id="dark", marks=pytest.mark.long)]

SLOW = 240_000
BOX, CELL = 16, 150  # pixels from the left edge of the case table


def open_cases(app, page):
    page.goto(f"{app.url}/cases")
    expect(page.get_by_role("heading", name="Cases", exact=True)).to_be_visible()
    expect(page.get_by_role("heading", name=FIRST_QUESTION)).to_be_visible()
    expect(page.get_by_role("tab", name="Replay")).to_be_visible()


def select_rows(page, *rows, at=BOX):
    """Tick rows of the case table by place, since it is drawn on a canvas. A click on a cell opens the case."""
    page.get_by_role("textbox", name="Search").scroll_into_view_if_needed()
    box = page.locator("[data-testid=stDataFrame]").first.bounding_box()
    for row in rows:
        page.mouse.click(box["x"] + at, box["y"] + 35 + ROW_HEIGHT * row + 17)


@pytest.mark.journey
def test_a_review_from_note_to_signed_off_is_kept_over_a_reload(app, page, look):
    open_cases(app, page)
    page.get_by_text("Add a note, a relevance label").click()
    page.get_by_test_id("stButtonGroup").get_by_text("Note", exact=True).click()  # chosen already: it stays so
    note = page.get_by_role("textbox", name="Note", exact=True)
    note.fill("Checked against the handbook.")
    expect(page.get_by_role("button", name="Add to the history")).to_be_disabled()  # without a name
    note.blur()  # which sends the text
    page.get_by_role("link", name="Attribution", exact=True).click()
    expect(page.get_by_role("heading", name="Attribution", exact=True)).to_be_visible()
    page.get_by_role("link", name="Cases", exact=True).click()
    page.get_by_text("Add a note, a relevance label").click()
    expect(note).to_have_value("Checked against the handbook.")
    page.get_by_label("Reviewer").fill("Ada Quill")
    page.get_by_label("Reviewer").press("Enter")
    expect(page.get_by_role("button", name="Start review")).to_be_enabled()
    page.get_by_role("button", name="Add to the history").click()
    expect(page.get_by_text("The whole history (1 entry)")).to_be_visible()
    expect(note).to_have_value("")
    page.get_by_role("button", name="Start review").click()
    expect(page.get_by_text("The whole history (2 entries)")).to_be_visible()
    look(page, "cases_light")
    page.get_by_role("button", name="Sign off").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("heading", name="Text that you sign")).to_be_visible()
    dialog.get_by_text("The answer stands").click()
    dialog.get_by_label("Reason").fill("Read against the handbook.")
    look(page, "sign_off_light")
    dialog.get_by_role("button", name="Sign off and freeze").click()
    expect(page.get_by_text("This case is frozen.")).to_be_visible()
    page.reload()
    expect(page.get_by_text("This case is frozen.")).to_be_visible()


@pytest.mark.journey
def test_the_report_the_facts_and_the_case_file_come_down_and_hold(app, page, tmp_path):
    open_cases(app, page)
    page.get_by_role("tab", name="Report and export").click()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Report (HTML)").click()
    path = tmp_path / "report.html"
    waiting.value.save_as(path)
    assert FIRST_QUESTION in path.read_text(encoding="utf-8")
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Facts (CSV)").click()
    waiting.value.save_as(tmp_path / "facts.csv")
    assert FIRST_QUESTION in (tmp_path / "facts.csv").read_text(encoding="utf-8-sig")
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Case file (JSON)").click()
    waiting.value.save_as(tmp_path / "case.json")
    assert read_case_file((tmp_path / "case.json").read_bytes()).case.question == FIRST_QUESTION


def test_a_pasted_answer_is_opened_compared_deleted_and_restored(app, page, look):
    open_cases(app, page)
    page.goto(f"{app.url}/audit")
    page.get_by_label("Question", exact=True).fill("What melts in the sun?")
    page.get_by_label("Sources (put a line of --- between them)").fill("Ice melts in the sun.\n---\nIron rusts.")
    page.get_by_label("Answer", exact=True).fill("Ice melts in the sun [1].")
    page.get_by_role("button", name="Audit", exact=True).click()
    expect(page.get_by_role("link", name="1 fact: 1 borne out")).to_be_visible(timeout=SLOW)
    page.goto(f"{app.url}/cases")
    expect(page.get_by_text("2 cases", exact=True)).to_be_visible()
    select_rows(page, 1, at=CELL)
    expect(page.get_by_role("heading", name=FIRST_QUESTION)).to_be_visible()
    search = page.get_by_role("textbox", name="Search")
    search.fill("melts")
    search.press("Enter")
    expect(page.get_by_text("1 case", exact=True)).to_be_visible()
    select_rows(page, 0, at=CELL)  # another case is in the first row now
    expect(page.get_by_role("heading", name="What melts in the sun?")).to_be_visible()
    search.fill("")
    search.press("Enter")
    expect(page.get_by_text("2 cases", exact=True)).to_be_visible()
    select_rows(page, 0, 1)
    page.get_by_role("button", name="Compare two").click()
    expect(page.get_by_text("Different writers: ")).to_be_visible()
    expect(page.get_by_text("The two questions differ")).to_be_visible()
    look(page, "compare_light")
    page.goto(f"{app.url}/cases")
    expect(page.get_by_text("2 cases", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name=re.compile("facts: "))).to_have_count(0)
    select_rows(page, 0, 1)
    page.get_by_role("button", name="Check 2", exact=True).click()
    expect(page.get_by_text(re.compile("^Checked: "))).to_be_visible()
    look(page, "cases_checked_light")
    expect(page.get_by_role("link", name=re.compile("facts: "))).to_be_visible(timeout=SLOW)
    select_rows(page, 0)
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("1 case", exact=True)).to_be_visible()
    page.get_by_text("Bin (1)").click()
    page.get_by_role("button", name="Restore").click()
    expect(page.get_by_text("2 cases", exact=True)).to_be_visible()


@pytest.mark.parametrize("page", [{"viewport": {"width": 800, "height": 900}}], indirect=True)
def test_the_filters_can_be_read_on_a_narrow_page(app, page):
    page.goto(f"{app.url}/cases")
    for label in ("Status", "Written by", "Corpus", "Tag"):
        field = page.get_by_test_id("stSelectbox").filter(has_text=label)
        expect(field).to_be_visible()
        assert field.bounding_box()["width"] >= 96


@pytest.mark.journey
@pytest.mark.slow
def test_compare_scores_two_imported_answers_on_one_scale(app, page, look):
    store = CaseStore(app.home / "cases.sqlite")
    for name, text in (("left-answer", "Iron rusts in damp air."), ("right-answer", "Gold does not rust.")):
        answer = Answer(text=text, sentences=((0, len(text)),))
        store.save(replace(full_case(name, question="What rusts?"), answer=answer, analyses=()))
    page.goto(f"{app.url}/compare?left=left-answer&right=right-answer")
    expect(page.get_by_text("The answers have no attribution method in common")).to_be_visible()
    page.get_by_role("button", name="Score", exact=True).click()
    expect(page.get_by_text("Attribution: score for the whole answer")).to_be_visible(timeout=300_000)
    assert "left=left-answer" in page.url
    assert [store.load(name).analyses for name in ("left-answer", "right-answer")] == [(), ()]
    look(page, "compare_scored")
    for name in ("left-answer", "right-answer"):
        store.delete(name)
    store.empty_bin()


@pytest.mark.slow
def test_a_replay_of_the_sample_case_reproduces_every_number(app, page, look):
    open_cases(app, page)
    page.get_by_role("tab", name="Replay").click()
    page.get_by_role("button", name="Replay").click()
    said = page.get_by_role("heading", name=re.compile("values reproduced"))
    expect(said).to_be_visible(timeout=180_000)
    numbers = [int(n.replace(",", "")) for n in re.findall(r"[\d,]+", said.inner_text())[:2]]
    assert numbers[0] == numbers[1] > 100
    look(page, "replay_light")


@pytest.mark.parametrize("page", LOOKS, indirect=True)
def test_axe_finds_nothing_on_the_pages(app, page, look):
    for name in ("Cases", "Compare"):
        page.goto(f"{app.url}/{name.lower()}")
        expect(page.get_by_role("heading", name=name, exact=True)).to_be_visible()
        still(page)
        look(page, f"{name.lower()}_{page.viewport_size['width']}")
        found = Axe().run(page, "[data-testid=stMainBlockContainer]").response["violations"]
        assert [(v["id"], [n["html"][:120] for n in v["nodes"][:3]]) for v in found] == []


@pytest.fixture
def report_file(tmp_path):
    """A case with a record of every kind, an edit among its facts, and one of a kind that has no section."""
    case = with_edit(full_record())
    case = replace(case, analyses=(*case.analyses, full_case().analyses[1]))
    marks = [append(case, (), MarkDraft(kind="note", author="Ada", value="Seen."), "2026-11-20T10:00:00+00:00")]
    path = tmp_path / "report.html"
    path.write_text(html_report(case, marks), encoding="utf-8")
    return path


@pytest.mark.parametrize("page", LOOKS, indirect=True)
def test_axe_finds_nothing_on_the_report(page, report_file, look):
    page.goto(report_file.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    look(page, f"report_{page.viewport_size['width']}")
    assert Axe().run(page).response["violations"] == []


@pytest.mark.parametrize("page", [{"viewport": {"width": 390, "height": 844}, "is_mobile": True}], indirect=True)
def test_the_evidence_in_a_report_is_read_on_a_phone(page, report_file):
    page.goto(report_file.as_uri())
    widths = page.locator("td.long:visible").evaluate_all("cells => cells.map(cell => cell.clientWidth)")
    assert widths and min(widths) >= 170
    assert page.evaluate("document.documentElement.scrollWidth") == 390


@pytest.mark.parametrize("page", [{"java_script_enabled": False, "offline": True}], indirect=True)
def test_the_report_needs_no_script_and_asks_the_network_for_nothing(page, report_file):
    said = []
    page.on("console", lambda message: said.append(message.text))
    page.goto(report_file.as_uri())
    expect(page.get_by_role("heading", level=1)).to_have_text("Who built the bridge?")
    expect(page.get_by_role("table").first).to_be_visible()
    assert page.requests == [report_file.as_uri()]
    assert said == []


def test_on_paper_the_report_is_a4_and_its_folds_stay_shut(page, report_file, tmp_path):
    from pypdf import PdfReader

    page.goto(report_file.as_uri())
    page.pdf(path=tmp_path / "report.pdf", prefer_css_page_size=True)
    pdf = PdfReader(tmp_path / "report.pdf")
    width, height = (float(value) for value in pdf.pages[0].mediabox[2:])
    assert (round(width), round(height)) == (595, 842)
    text = " ".join(sheet.extract_text() for sheet in pdf.pages)
    assert "Summary" in text and "Stored values" not in text and "Every round" not in text  # folds
    assert "Head hash" in text
    assert "(edit 1, not decided)" in " ".join(text.split())


def test_a_hostile_report_runs_nothing(page, tmp_path):
    from tests.engine.cases.test_report import hostile_case, hostile_marks

    case = hostile_case()
    path = tmp_path / "hostile.html"
    path.write_text(html_report(case, hostile_marks(case)), encoding="utf-8")
    opened = []
    page.on("dialog", lambda dialog: opened.append(dialog.message) or dialog.dismiss())
    page.goto(path.as_uri())
    assert opened == []
    assert page.requests == [path.as_uri()]
