"""The page of findings: what is shipped of a run, and what fills its braces."""

import re

import pytest

from bench.findings_page import (
    PAGE,
    TEMPLATE,
    bare,
    cell,
    joined,
    page,
    ship,
    short,
    short_of_memory,
    stable,
    table_of,
    whole,
)
from engine.methods.refinement.values import Cost
from engine.studies.evaluate import evaluate, opened
from engine.studies.library import SHIPPED
from engine.studies.run import Control, Journal, remaining
from engine.studies.values import Failure, Row, Unit

CONFIG = """
study = "attr-rag-chunks"
data = "bench-chemistry"
n = 3
methods = ["top-5", "top-10"]
model = "reader"

[settings.retrieval]
mode = "dense"

[options]
answers = false
long = 1
"""


def test_questions_without_a_row_of_every_method_are_left_out():
    units = tuple(Unit(example=name, method=method, seed=1) for name in "ab" for method in ("m", "n"))
    assert whole(units, set(units[:3])) == units[:2]
    assert whole(units, {units[0], units[2]}) == (units[0], units[2]), "a method that ended nothing was not run"


def test_a_unit_that_ran_out_of_memory_says_nothing_of_its_method():
    unit = Unit(example="a", method="m", seed=1)
    failed = [
        Row(unit=unit, state="failed", failure=Failure(type="E", message=m)) for m in ("CUDA out of memory.", "No.")
    ]
    assert [short_of_memory(row) for row in failed] == [True, False]


def test_words_of_a_data_set_stay_behind():
    row = Row(
        unit=Unit(example="a", method="m", seed=1), state="done", values={"attr_r": 1.0, "revised": "x"}, case="c"
    )
    assert bare(row, True, set()).values == {"attr_r": 1.0} and not bare(row, True, set()).case
    assert bare(row, False, {"c"}) == row


def test_a_run_is_shipped_and_its_page_filled(sample_home, tmp_path):
    found = evaluate(CONFIG, tmp_path / "runs" / "gold")
    last = (tmp_path / "runs" / "gold" / "units.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "runs" / "gold" / "units.jsonl").write_bytes(b"".join(last[:-1]))
    said = ship(tmp_path / "runs" / "gold", tmp_path / "shipped" / "gold", True)
    assert said == "2 questions, 4 of 6 units"
    shipped = opened(tmp_path / "shipped" / "gold")
    assert len(shipped.rows) == len(shipped.manifest.units) == 4
    rows = {row.unit: row for row in found.rows}
    assert all(row.values == short(rows[row.unit].values) for row in shipped.rows)
    text = page(
        '{{about gold}} It is {{cell gold by_depth "10" "density"}}.\n{{table gold by_depth}}', tmp_path / "shipped"
    )
    assert "2 questions, 4 rows, 0 failed" in text and "| 10 |" in text and "{{" not in text
    with pytest.raises(KeyError, match="none of by_depth"):
        table_of(shipped, "else")
    with pytest.raises(KeyError, match="0 lines"):
        cell(shipped, "gold", "by_depth", "7", "density")


def test_the_page_of_findings_says_what_the_shipped_rows_say():
    template = re.sub(r"^\{\{figure .*$", "", TEMPLATE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    picture = r"^\*\*.+\*\*\n\n!\[.*\]\(images/findings/.*$"
    written = re.sub(picture, "", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert page(template, SHIPPED) == written


def test_methods_that_were_run_apart_stand_in_one_table(sample_home, tmp_path):
    apart = [
        evaluate(CONFIG.replace('["top-5", "top-10"]', f'["{name}"]'), tmp_path / name) for name in ("top-10", "top-5")
    ]
    whole_run = evaluate(CONFIG, tmp_path / "whole")
    assert joined(apart).results.tables == whole_run.results.tables


def test_a_picture_has_no_name_drawn_by_lot():
    once, again = (f'<clipPath id="clip{name}xy"/><defs id="defs-{name}"/>' for name in ("1a2b3c", "9d8e7f"))
    assert stable(once) == stable(again) == '<clipPath id="clip0xy"/><defs id="defs-0"/>'


def test_time_left_weighs_units_by_their_method():
    def unit(name, method):
        return Unit(example=name, method=method, seed=1)

    units = [unit(name, method) for name in "abc" for method in ("fast", "slow")]
    seconds = {"fast": 1.0, "slow": 9.0}
    rows = {u: Row(unit=u, state="done", cost=Cost(seconds=seconds[u.method])) for u in units[:3]}
    assert remaining(11.0, units[:3], rows, units) == pytest.approx(9 + 1 + 9)
    assert remaining(0.0, [], {}, units) is None


def test_a_run_broken_off_has_all_methods_of_its_questions(sample_home, tmp_path):
    control = Control(tell=lambda progress: progress.done == 4 and control.watch.cancel.set())
    from engine.core.errors import Cancelled

    with pytest.raises(Cancelled):
        evaluate(CONFIG.replace("n = 3", "n = 30"), tmp_path / "run", control=control)
    units = [row.unit for row in Journal(tmp_path / "run").rows()]
    examples = [row.unit.example for row in evaluate(CONFIG.replace("n = 3", "n = 30"), tmp_path / "whole").rows]
    order = list(dict.fromkeys(examples))
    assert [u.method for u in units[:4]] == ["top-5", "top-10"] * 2
    first, second = (order.index(u.example) for u in (units[0], units[2]))
    assert abs(first - second) > 5, "the second question is from another part of the data"


def test_what_is_shipped_can_be_read():
    for folder in SHIPPED.glob("*/run.json"):
        found = opened(folder.parent)
        assert len(found.rows) == len(found.manifest.units) and found.results.tables
