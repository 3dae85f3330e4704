"""Adding documents: a good file is searched, bad ones say what is wrong, hostile text stays text."""

from __future__ import annotations

import io
import zipfile

import pytest
from playwright.sync_api import expect

from engine.workbench import Workbench

LOW_ROW = 35  # pixels of a table's row
HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script> The kiln is green."


@pytest.mark.journey
def test_upload_shows_counts_reasons_and_chunks(app, page, look):
    page.goto(f"{app.url}/corpora")
    page.get_by_text("Add documents").click()
    page.get_by_label("Corpus", exact=True).fill("field notes")
    page.locator("input[type=file]").set_input_files(
        [
            {"name": "kiln.txt", "mimeType": "text/plain", "buffer": HOSTILE.encode()},
            {"name": "empty.txt", "mimeType": "text/plain", "buffer": b""},
            {"name": "broken.pdf", "mimeType": "application/pdf", "buffer": b"%PDF-1.7 nothing more"},
        ]
    )
    expect(page.get_by_text("kiln.txt")).to_be_visible()
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_text("1 document added")).to_be_visible()
    expect(page.get_by_text("empty.txt is empty")).to_be_visible()
    expect(page.get_by_text("broken.pdf is damaged")).to_be_visible()
    # The corpus that was made is open, here and on Ask.
    expect(page.get_by_role("combobox", name="Show")).to_have_value("field notes")
    expect(page.locator(".gw-doc")).to_contain_text("The kiln is green.")
    assert page.get_by_test_id("stDataFrame").nth(1).bounding_box()["height"] < 3 * LOW_ROW  # its head and one row
    look(page, "corpora_upload")
    page.get_by_role("link", name="Ask these documents").click()
    expect(page.get_by_role("combobox", name="Corpus")).to_have_value("field notes")
    expect(page.get_by_text("Questions to try")).to_have_count(0)


def test_many_files_left_out_of_an_archive_are_named_in_a_fold(app, page, look):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as zipped:
        zipped.writestr("guide/kiln.txt", "The kiln was built in 1890.")
        for number in range(5):
            zipped.writestr(f"guide/figures/{number}.png", b"a picture")
    page.goto(f"{app.url}/corpora")
    page.get_by_text("Add documents").click()
    page.get_by_label("Corpus", exact=True).fill("a guide")
    page.locator("input[type=file]").set_input_files(
        {"name": "guide.zip", "mimeType": "application/zip", "buffer": archive.getvalue()}
    )
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_text("5 files or records were left out.")).to_be_visible()
    page.get_by_text("Which ones, and why").click()
    fold = page.get_by_test_id("stExpander").filter(has_text="Which ones, and why")
    expect(fold.get_by_test_id("stDataFrame")).to_be_visible()
    look(page, "corpora_left_out")


def test_passage_text_is_never_markup(app, page, at_home, tmp_path):
    (tmp_path / "kiln.txt").write_text(HOSTILE)
    with at_home(app.home):
        Workbench().ingest([tmp_path / "kiln.txt"], "kilns")
    page.goto(f"{app.url}/corpora?corpus=kilns")
    expect(page.locator(".gw-doc")).to_contain_text("<script>")
    assert page.title() != "owned"


def test_the_sample_corpora_are_listed_and_a_document_shows_its_chunks(app, page, look):
    page.goto(f"{app.url}/corpora?corpus=bench-chemistry")
    expect(page.locator(".gw-chunk").first).to_be_visible()
    look(page, "corpora_light")
