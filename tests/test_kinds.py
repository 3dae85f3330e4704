"""A new kind of analysis is one value: once registered, command line, page, report and replay have it."""

from __future__ import annotations

import json
from concurrent.futures import Future

import pytest
from click.testing import CliRunner
from streamlit.testing.v1 import AppTest

import components.cache
from components.runs import Run
from engine.analyses.kind import Again, Kind, Outcome
from engine.analyses.registry import register, unregister
from engine.cases.blocks import plain
from engine.cases.review import sign_off
from engine.cases.store import added
from engine.commands import main
from engine.core.errors import CaseFrozen
from engine.core.progress import Watch
from engine.core.values import Analysis, AuditRecord, Stamp, Value
from engine.report.build import html_report
from engine.workbench import Workbench
from tests.analysing import replay_here


class Length(Value, frozen=True):
    words: int


def counted(case, options, context):
    for words in range(len(case.answer.text.split()) + 1):
        context.watch.step("counting", words)
        yield Analysis(id="length", kind="length", stamp=Stamp(model="none"), result={"words": words})


@pytest.fixture
def case():
    again = Again(lambda case, analysis, tools: Outcome(values={"words": len(case.answer.text.split())}))
    drawn = lambda case, found, review: [plain(f"It has {found.words} words.")]  # noqa: E731
    register(Kind(name="length", title="How long it is", result=Length, blocks=drawn, run=counted, again=again))
    yield Workbench().audit(AuditRecord(question="Is it?", passages=("It is so.",), answer="It is so."))
    unregister("length")


def test_a_kind_is_found_everywhere(case):
    ran = CliRunner().invoke(main, ["analyse", case.id, "length"])
    assert json.loads(ran.stdout)["result"] == {"words": 3}
    held = Workbench().cases.load(case.id)
    assert "How long it is" in html_report(held) and "It has 3 words." in html_report(held)
    assert [n.status for n in replay_here(held).numbers if n.place.startswith("analyses[length]")] == ["reproduced"]
    wrong = added(held, Analysis(id="length", kind="length", stamp=Stamp(model="none"), result={"words": 4}))
    assert [n.status for n in replay_here(wrong).numbers if n.place.startswith("analyses[length]")] == ["drifted"]


def test_a_signed_off_case_is_refused_before_anything_is_computed(case):
    bench, told = Workbench(), []
    bench.cases.add_marks(case.id, sign_off("Ada", "stands", "Read it."))
    with pytest.raises(CaseFrozen):
        bench.analyse(case.id, "length", watch=Watch(case=told.append))
    assert not told


def test_a_result_is_told_as_it_grows_until_the_case_holds_one(case):
    told = []
    watch = Watch(case=lambda grown: told.append(grown.analysis("length").stored()["words"]))
    Workbench().analyse(case.id, "length", watch=watch)
    assert told == [0, 1, 2, 3, 3]  # the last one was stored
    Workbench().analyse(case.id, "length", watch=watch)
    assert told[5:] == [3]


def opened(case):
    """The page with the kind chosen, and what it says."""
    components.cache.workbench.clear()
    app = AppTest.from_file("../pages/inspect/attribution.py", default_timeout=60)
    app.query_params["case"] = case.id
    app.session_state["attribution_tab"] = "Faithfulness"
    next(box for box in app.run().selectbox if box.label == "Another method").select("length").run()
    return app, " ".join(str(element.proto) for element in app.get("html"))


def test_a_page_draws_it_while_it_grows(case):
    half = added(case, Analysis(id="length", kind="length", stamp=Stamp(model="none"), result={"words": 2}))
    components.cache.begun_runs()[f"length:{case.id}"] = Run(case=half, future=Future())
    app, said = opened(case)
    assert "Cancel" in [button.label for button in app.button]
    assert "It has 2 words." in said


def test_a_page_offers_it_and_draws_it_as_the_report_does(case):
    Workbench().analyse(case.id, "length")
    assert "It has 3 words." in opened(case)[1]
