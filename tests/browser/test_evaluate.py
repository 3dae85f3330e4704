"""A run from its cost to its start, and a point of a figure that opens its case."""

from __future__ import annotations

import csv
import re

import msgspec
import pytest
from playwright.sync_api import expect

from engine.cases.case_file import write_case_file
from engine.cases.store import CaseStore
from engine.studies.config import Config, as_toml
from engine.studies.evaluate import RunManifest
from engine.studies.values import Estimate, Failure, Row, Unit

LONG = 400_000  # milliseconds: a busy machine


def test_the_cost_comes_before_the_start(app, page, look):
    page.goto(f"{app.url}/evaluate")
    expect(page.get_by_role("heading", name="Evaluate")).to_be_visible(timeout=LONG)
    page.get_by_text("A new run").click(timeout=LONG)
    expect(page.get_by_role("button", name="Start", exact=True)).to_be_disabled(timeout=LONG)
    page.get_by_label("Examples (0: all)").fill("2")
    page.get_by_label("Examples (0: all)").press("Enter")
    expect(page.get_by_role("button", name="Start", exact=True)).to_be_disabled()
    page.get_by_role("button", name="See the cost").click()
    expect(page.get_by_text("Upper bounds, estimated")).to_be_visible(timeout=LONG)
    look(page, "evaluate-cost")
    page.get_by_role("button", name="Start", exact=True).click()
    # The tables at its end are the page test's: units take minutes on a busy machine.
    expect(page.get_by_text(re.compile("of 6 units, (running|finished)"))).to_be_visible(timeout=LONG)
    expect(page.get_by_text("bench-chemistry; model reader")).to_be_visible(timeout=LONG)


@pytest.mark.journey
def test_a_point_opens_its_case_by_link(app, page, look):
    finished_run(app.home, "fabricated")
    page.goto(f"{app.url}/evaluate?run=fabricated")
    expect(page.get_by_text("needed by example")).to_be_visible(timeout=LONG)
    points = page.locator(".js-plotly-plot").last.locator(".scatterlayer .points path")
    expect(points.first).to_be_visible(timeout=LONG)
    points.first.scroll_into_view_if_needed()
    look(page, "evaluate-points")
    points.first.click(force=True)
    page.wait_for_url("**/attribution?case=attr-rag-chunks-0*", timeout=LONG)
    expect(page.get_by_role("heading", name="Attribution")).to_be_visible(timeout=LONG)


PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


@pytest.mark.parametrize("page", [PHONE], indirect=True)
def test_on_a_phone_no_button_covers_a_title_and_a_shade_says_that_a_table_scrolls(app, page, look):
    page.goto(f"{app.url}/evaluate?run=refinement-small")
    table = page.get_by_test_id("stDataFrame").first
    expect(table.locator(".dvn-scroller")).to_be_visible(timeout=LONG)
    expect(page.locator(".modebar").first).to_be_visible(timeout=LONG)
    for buttons, title in (
        (table.get_by_test_id("stElementToolbar"), page.get_by_text("Scores of the answers by condition")),
        (page.locator(".modebar").first, page.get_by_text("Gain of D over A against S3 of A")),
    ):
        words = title.bounding_box()
        assert words["y"] + words["height"] <= buttons.bounding_box()["y"]
    look(page, "evaluate-phone")
    shade = "box => getComputedStyle(box.querySelector('[data-testid=stDataFrameResizable]'), '::after').opacity"
    assert float(table.evaluate(shade)) == 1
    table.evaluate("box => box.querySelector('.dvn-scroller').scrollTo(1e4, 0)")
    page.wait_for_function(f"box => ({shade})(box) == 0", arg=table.element_handle())


@pytest.mark.long
def test_a_run_is_paused_cancelled_and_gone_on_with(app, page, look):
    page.goto(f"{app.url}/evaluate")
    expect(page.get_by_role("heading", name="Evaluate")).to_be_visible(timeout=LONG)
    page.get_by_text("A new run").click(timeout=LONG)
    page.get_by_label("Examples (0: all)").fill("8")
    page.get_by_label("Examples (0: all)").press("Enter")
    page.get_by_role("button", name="See the cost").click()
    expect(page.get_by_role("button", name="Start", exact=True)).to_be_enabled(timeout=LONG)
    page.get_by_role("button", name="Start", exact=True).click()
    page.get_by_role("button", name="Pause").click(timeout=LONG)
    expect(page.get_by_text("Paused. Started units finish")).to_be_visible(timeout=LONG)
    look(page, "evaluate-paused")
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible(timeout=LONG)
    page.get_by_role("button", name="Cancel").click()
    stopped = page.get_by_text(re.compile(r"Stopped with \d+ of 24 units done and saved"))
    expect(stopped).to_be_visible(timeout=LONG)
    left = 24 - int(re.search(r"with (\d+) of", stopped.inner_text()).group(1))
    page.get_by_role("button", name=re.compile(f"Resume the remaining {left} units?")).click()
    expect(page.get_by_text("of 24 units, finished")).to_be_visible(timeout=LONG)
    units = (_newest(app.home) / "units.jsonl").read_text().splitlines()
    assert len(units) == len(set(units)) == 24


def _newest(home):
    """The folder of the run that was changed last."""
    return max((home / "evaluations").iterdir(), key=lambda folder: (folder / "units.jsonl").stat().st_mtime)


def saved(page, button):
    with page.expect_download() as waiting:
        button.click()
    return waiting.value.suggested_filename, waiting.value.path().read_text(encoding="utf-8-sig")


def test_tables_come_down_in_three_forms_and_a_line_opens_its_case(app, page):
    finished_run(app.home, "taken-away", cases="line")
    page.goto(f"{app.url}/evaluate?run=taken-away")
    expect(page.get_by_text("Select a row to open its case.")).to_be_visible(timeout=LONG)
    forms = [page.locator(f".st-key-table_taken-away_by_depth_{form} button") for form in ("csv", "tex", "md")]
    table, latex, markdown = (saved(page, form) for form in forms)
    assert [name for name, _ in (table, latex, markdown)] == ["by_depth.csv", "by_depth.tex", "by_depth.md"]
    head, line, *_notes = csv.reader(table[1].splitlines())
    assert (head[0], line[0]) == ("k (passages)", "10")
    assert "\\begin{tabular}" in latex[1]
    assert "| 10 | " in markdown[1]
    assert saved(page, page.get_by_role("button", name="Everything as Markdown"))[0] == "taken-away.md"
    # The lines are drawn on a canvas: by place, the box of the second at its left edge.
    lines = page.get_by_test_id("stDataFrame").last
    lines.scroll_into_view_if_needed()
    box = lines.bounding_box()
    page.mouse.click(box["x"] + 16, box["y"] + 35 + 35 + 17)
    page.wait_for_url("**/attribution?case=line-1*", timeout=LONG)


def finished_run(home, name, cases="attr-rag-chunks", said=""):
    """A run of three units as it lies on the disk, with the library's first case as the case of each.

    `said` is put wherever a run keeps words of others: ids, the data's name, why a value is missing or a unit failed.
    """
    folder = home / "evaluations" / name
    (folder / "cases").mkdir(parents=True, exist_ok=True)  # a second try finds it
    store = CaseStore(home / "cases.sqlite")
    case = store.load(store.rows(limit=1)[0].id)
    config = Config(
        study="attr-rag-chunks", data=said or "bench-chemistry", methods=("top-10",), model=said or "reader"
    )
    units = tuple(Unit(example=f"{said}q{i}", method="top-10", seed=1337) for i in range(3))
    rows = []
    for number, unit in enumerate(units):
        case_name = f"{cases}-{number}"
        (folder / "cases" / f"{case_name}.json").write_bytes(
            write_case_file(msgspec.structs.replace(case, id=case_name))
        )
        values = {"needed": number + 1, "gold": 2, "found": 1, "recall": 0.5, "density": 0.2, "rouge_l": 0.3 * number}
        rows.append(Row(unit=unit, state="done", values=values, case=case_name))
    if said:
        failed = Unit(example=f"{said}q3", method="top-10", seed=1337)
        units = (*units, failed)
        rows.append(Row(unit=failed, state="failed", failure=Failure(type=said, message=said)))
        rows[0] = msgspec.structs.replace(
            rows[0], values={**rows[0].values, "rouge_l": None}, missing={"rouge_l": said}
        )
    manifest = RunManifest(
        study=config.study,
        shows=(),
        config="",
        data=said,
        units=units,
        left_out={said: 3} if said else {},
        off=(said,) if said else (),
        departures=(said,) if said else (),
        cost=Estimate(),
        versions={},
    )
    (folder / "config.toml").write_text(as_toml(config))
    (folder / "run.json").write_bytes(msgspec.json.encode(manifest))
    (folder / "units.jsonl").write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
