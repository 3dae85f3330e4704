"""Refinement in the browser: read the diff, mark a passage and see the trigger change, run on real weights."""

from __future__ import annotations

import re
import sys
from itertools import combinations
from pathlib import Path

import pytest
from playwright.sync_api import expect

from components.refinement_controls import signal_scale
from components.style import stylesheet
from engine.corpus.samples import FIRST_CASE

sys.path.insert(0, str(Path(__file__).parent.parent / "engine" / "refinement"))
SHORT = "refine-short"
WINDOW = 1400  # of the tiny model: leaves each condition of the short case some fifty tokens
WRITER = "scripted-demo"
TEXTS = {
    "A": "The crude product is dissolved in boiling water [cite_6]. Many students prefer ethanol [cite_1].",
    "B": "It is dissolved in hot ethanol.",
    "C2": "The crude product is dissolved in boiling water [cite_6].",
    "critique": "Say more about yields.",
    "E": "The crude product is dissolved in boiling water [cite_6]. Yields above 85% are usual [cite_99].",
    "grounding": "Dissolve the crude product in boiling water, 20 mL for each gram [cite_6].",
    "v2a": "",
    "v2b": "The passages do not say.",
}


@pytest.fixture(scope="module")
def refined(app):
    """The first case with all nine conditions by a script, a short case, and a tiny model; what the flags rank high."""
    from refine_cases import purpose

    from engine.cases.store import CaseStore
    from engine.core.settings import Settings
    from engine.methods.refinement.gates import flags_of
    from engine.models.scripted import ScriptedWriter
    from tests.analysing import refined

    cases = CaseStore(app.home / "cases.sqlite")
    scorer = save_tiny_model(app.home / "models" / "tiny-short", WINDOW)
    save_tiny_model(app.home / "models" / "tiny-long", 16384, scorer)
    save_short_case(cases)
    texts = [passage.text for passage in cases.load(FIRST_CASE).passages]
    report = refined(
        cases,
        FIRST_CASE,
        ScriptedWriter(lambda asked: TEXTS[purpose(asked, texts)], name=WRITER),
        Settings(),
        variants=("A", "B", "C1", "C2", "D", "E", "v2a", "v2b", "v2c"),
        scorer=scorer_of(app.home / "models" / "tiny-long"),
    )
    flags = flags_of(report.refinement.gradient, {}, Settings())
    return next(flag.number for flag in flags.passages if flag.high)


def save_tiny_model(folder, window, like=None):
    import torch
    from transformers import AutoModelForCausalLM

    from tests.tiny import TURNS, tiny_config, tiny_tokenizer

    tokenizer = tiny_tokenizer(template=TURNS)
    config = tiny_config("llama", len(tokenizer))
    config.max_position_embeddings = window
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def scorer_of(folder):
    from engine.models.huggingface import HuggingFaceModel

    return HuggingFaceModel.load(folder, called="tiny-long")


def save_short_case(cases):
    from refine_cases import QUESTION, passages

    from engine.answer.citations import annotate
    from engine.core.values import Answer, Case, Stamp

    answer = annotate(Answer(text="Hanna Lind built it in 1874 [cite_1]."), 3)
    cases.save(
        Case(
            id=SHORT,
            question=QUESTION,
            passages=passages(),
            answer=answer,
            stamp=Stamp(model="imported"),
            created="2026",
        )
    )


def open_page(page, app, case=FIRST_CASE, writer=WRITER):
    page.goto(f"{app.url}/refinement?case={case}")
    expect(page.get_by_role("heading", name="Refinement", exact=True)).to_be_visible()
    box = page.get_by_role("textbox", name="Written by")
    box.fill(writer)
    box.press("Enter")


def card(page, name):
    return page.get_by_test_id("stTabs").get_by_role("region", name=f"Condition {name}", exact=True)


@pytest.mark.journey
def test_the_conditions_stand_side_by_side_with_what_changed(app, page, look, refined):
    open_page(page, app)
    expect(card(page, "E")).to_contain_text("Yields above 85%")
    expect(card(page, "E").locator("ins")).to_contain_text("Yields")
    expect(card(page, "E").locator("del")).to_contain_text("ethanol")
    expect(card(page, "C2").locator("del")).to_contain_text("Many students prefer ethanol")
    expect(card(page, "D")).to_contain_text("under 0.75")
    expect(card(page, "v2a")).to_contain_text("The model wrote nothing.")
    expect(card(page, "v2b")).to_contain_text("refused")
    look(page, "refinement_light")
    page.get_by_text("Mark the words that differ from A").click()
    expect(card(page, "E").locator("ins")).to_have_count(0)
    expect(card(page, "E")).to_contain_text("Yields above 85%")


@pytest.mark.parametrize("page", [{"color_scheme": "dark", "viewport": {"width": 1920, "height": 1080}}], indirect=True)
def test_signals_and_scores_in_dark(app, page, look, refined):
    open_page(page, app)
    page.get_by_role("tab", name="Signals and triggers").click()
    expect(page.get_by_role("img", name=re.compile("^S3 0"))).to_be_visible()
    expect(page.get_by_text(re.compile(r"; the library has \d+\. "))).to_be_visible()
    expect(page.locator(".gw-absent", has_text="students")).to_be_visible()
    look(page, "refinement_signals_dark")
    page.get_by_role("tab", name="Scores").click()
    expect(page.get_by_role("row", name=re.compile("^Citations 2 "))).to_be_visible()
    look(page, "refinement_scores_dark")


def test_marking_a_passage_changes_the_trigger_of_v2c(app, page, look, refined):
    open_page(page, app)
    page.get_by_role("tab", name="Signals and triggers").click()
    rule = page.get_by_role("row", name=re.compile("^v2a, v2b, v2c"))
    expect(rule).to_contain_text("concentration")
    page.get_by_role("tab", name="Passages").click()
    name = page.get_by_role("textbox", name="Reviewer")
    name.fill("Ada")
    name.press("Enter")
    choice = page.get_by_test_id("stButtonGroup").filter(has_text="not relevant").nth(refined - 1)
    choice.get_by_text("not relevant", exact=True).click()
    expect(page.get_by_text("marked by Ada")).to_be_visible()
    look(page, "refinement_passages")
    page.get_by_role("tab", name="Signals and triggers").click()
    expect(rule).to_contain_text("labels")
    expect(rule).to_contain_text(f"passage {refined} on")
    expect(rule).to_contain_text("chance that one passage is high 0.3")
    look(page, "refinement_triggers_after_a_mark")


def test_all_nine_run_on_real_weights_and_are_kept(app, page, look, refined):
    open_page(page, app, SHORT, "tiny-short")
    expect(page.get_by_text("This model has not run any condition on this case yet").first).to_be_visible()
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_role("button", name="Run again")).to_be_visible(timeout=400_000)
    for name in ("A", "B", "C1"):
        expect(card(page, name)).to_contain_text("tokens in")
    expect(page.get_by_text("not run yet")).to_have_count(0)
    expect(page.get_by_text(re.compile("Every condition may write")).first).to_be_visible()
    look(page, "refinement_real_weights")
    page.reload()
    box = page.get_by_role("textbox", name="Written by")
    box.fill("tiny-short")
    box.press("Enter")
    expect(card(page, "A")).to_contain_text("tokens in")


def test_a_prompt_over_the_window_is_said_and_not_an_empty_page(app, page, refined):
    open_page(page, app, FIRST_CASE, "tiny-short")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_role("button", name="Run the missing conditions")).to_be_visible(timeout=400_000)
    expect(card(page, "A")).to_contain_text("prompt too long")
    expect(card(page, "D")).to_contain_text("The baseline has no answer")


def test_a_model_that_is_not_there_is_said(app, page, refined):
    open_page(page, app, SHORT, "no-such-model")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_text(re.compile("The model no-such-model cannot be loaded"))).to_be_visible(timeout=400_000)


def test_the_advisor_shows_its_parts_and_the_task_table(app, page, look, refined):
    open_page(page, app)
    page.get_by_role("tab", name="Advisor").click()
    expect(page.get_by_role("row", name=re.compile("^Number of passages"))).to_contain_text("15 passages")
    page.get_by_text("Tasks of a money-laundering investigation").click()
    page.get_by_role("button", name=re.compile("^Run these tasks")).click()
    expect(page.get_by_role("row", name=re.compile("^Alert rationale"))).to_contain_text("difficulty", timeout=400_000)
    look(page, "refinement_advisor")


@pytest.mark.parametrize("tick", [0.0, 0.06, 0.5, 0.97, 1.0])
def test_the_label_of_a_threshold_is_printed_over_no_other_and_stays_inside(page, tick):
    drawn = signal_scale("S3", "content words", 0.4, (0, 1), "", "grounded", {}, tick)
    page.set_content(f"<style>{stylesheet('variants.css')}</style><div style='width: 20rem'>{drawn}</div>")
    scale = page.locator(".gw-scale").bounding_box()
    labels = [label.bounding_box() for label in page.locator(".gw-ends span").all()]
    assert len(labels) == 3
    for one, other in combinations(labels, 2):
        beside = one["x"] + one["width"] <= other["x"] or other["x"] + other["width"] <= one["x"]
        assert beside or one["y"] + one["height"] <= other["y"] or other["y"] + other["height"] <= one["y"]
    for label in labels:
        assert scale["x"] <= label["x"] and label["x"] + label["width"] <= scale["x"] + scale["width"]
