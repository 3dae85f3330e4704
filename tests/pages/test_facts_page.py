"""Facts: a reviewer's own verdict stays in the tree with its reason; citations are numbers wherever text is drawn."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import components.cache
from components.facts import own_marks, tree_data
from engine.analyses.case_verdict import sentence_verdicts
from engine.analyses.facts import record_of
from engine.cases.bundled import AUDITED, EXAMPLE, take_in
from engine.cases.review import MarkDraft, review_of
from engine.core.settings import Verification
from engine.core.text import ANY_CITATION
from engine.methods.are.tools import Tools
from engine.models.scripted import ScriptedWriter
from tests.engine.are.scripted import WordVerifier
from tests.engine.are.test_are import run as are
from tests.engine.cases.test_case_verdict import checked, marked

PAGES = Path(__file__).resolve().parent.parent.parent / "pages"
OF_A_CASE = ("ask/ask", "ask/audit", "inspect/attribution", "inspect/facts", "inspect/refinement", "review/cases")
TITLE = re.compile(r'title=\\?"[^"]*"')


def test_the_reviewers_verdict_stands_next_to_the_verifiers_also_after_sign_off():
    case = checked()
    own = MarkDraft(kind="override", author="Ada", target="fact:1.2", value="contradicted", reason="it cost 6 million")
    signed = MarkDraft(kind="status", author="Ada", value="signed off")
    for marks in ((own,), (own, signed)):
        record = record_of(case)
        drawn = tree_data(record, own_marks(record, marked(case, *marks)))["facts"]
        told = {fact["name"]: fact for fact in drawn}
        assert (told["1.2"]["own"], told["1.2"]["own_kind"]) == ("Ada: contradicted", "bad")
        assert told["1.2"]["lines"][0] == "Ada says contradicted: it cost 6 million"
        assert told["1.2"]["word"] == "borne out" and told["1.1"]["own"] == ""


def test_the_tree_says_verdicts_in_the_words_of_the_sentences():
    record = record_of(checked())
    facts = {
        fact.number: fact.stand for one in sentence_verdicts(checked(), record, review_of(())) for fact in one.facts
    }
    told = {fact["name"]: fact["word"].removesuffix(", edit proposed") for fact in tree_data(record)["facts"]}
    assert told == facts
    assert len(set(told.values())) > 1


def test_no_verdict_of_a_reviewer_is_shown_where_none_was_given():
    record = record_of(checked())
    assert own_marks(record, review_of(())) == {}


def test_both_phrases_of_an_expansion_are_drawn_with_what_each_found():
    texts = ("Iron rusts in rain.", "The choir sang songs of praise.", "Loud noise harms the ear.")
    tools = Tools(WordVerifier(), expander=ScriptedWriter(["choir songs\nloud noise"] * 2))
    settings = Verification(keep=1, passages=1, anchored=False)
    record = are("Iron rusts quickly abroad.", texts, settings, tools)
    first, again, *_ = tree_data(record)["facts"][0]["rounds"]
    assert first["searched"] == ["Searched with “Iron rusts quickly abroad”: passage 1"]
    said = dict(line.split(": ") for line in again["searched"])
    assert list(said) == ["Search phrase “choir songs”", "Search phrase “loud noise”"]
    assert sorted(said.values()) in (["nothing", "passage 2"], ["nothing", "passage 3"])


@pytest.mark.parametrize("case", [EXAMPLE, AUDITED])
@pytest.mark.parametrize("page", OF_A_CASE)
def test_citations_are_drawn_as_numbers(page, case):
    """Prompts and replies are in code blocks, unchanged."""
    components.cache.workbench.clear()
    take_in(components.cache.workbench().cases)
    app = AppTest.from_file(str(PAGES / f"{page}.py"), default_timeout=120)
    app.query_params["case"] = case
    app.run()
    assert not app.exception
    drawn = [TITLE.sub("", element.proto.body) for element in app.get("html")]
    drawn += [element.value for element in (*app.markdown, *app.caption, *app.warning, *app.info)]
    for table in (*app.dataframe, *app.table):
        drawn += [str(cell) for cell in table.value.to_numpy().ravel()]
    raw = [text for text in drawn if "[cite_" in text and ANY_CITATION.search(text)]
    assert raw == []


def test_who_has_given_no_name_is_told_what_it_is_for():
    components.cache.workbench.clear()
    take_in(components.cache.workbench().cases)
    app = AppTest.from_file(str(PAGES / "inspect/facts.py"), default_timeout=120)
    app.query_params["case"] = EXAMPLE
    told = "Enter your name to decide on edits"
    app.run()
    assert not app.exception and any(told in caption.value for caption in app.caption)
    next(f for f in app.text_input if f.label == "Reviewer").set_value("Ada").run()
    assert not any(told in caption.value for caption in app.caption)
