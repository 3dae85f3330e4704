"""The head of a case: facts, citations, their use and the review, each a link to the page that shows it."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from msgspec.structs import replace
from streamlit.testing.v1 import AppTest

import components.cache
from engine.cases.bundled import AUDITED, EXAMPLE, take_in
from engine.cases.review import MarkDraft, sign_off
from tests.engine.cases.test_case_verdict import checked

PAGES = Path(__file__).resolve().parent.parent.parent / "pages"


def store():
    return components.cache.workbench().cases


def page(name: str, case: str, **query: str) -> AppTest:
    """A page with a case open, in a library of the bundled cases."""
    components.cache.workbench.clear()
    take_in(store())
    store().save(checked())
    app = AppTest.from_file(str(PAGES / f"{name}.py"), default_timeout=120)
    for key, value in {"case": case, **query}.items():
        app.query_params[key] = value
    app.run()
    assert not app.exception
    return app


def links(app: AppTest) -> dict[str, tuple[str, dict[str, list[str]]]]:
    """The links of the head by their labels: the page and the parameters."""
    found = (link.proto for link in app.get("page_link"))
    return {link.label: (link.page, parse_qs(link.query_string)) for link in found}


def test_every_part_of_the_verdict_is_a_link_that_keeps_the_case():
    found = links(page("review/cases", EXAMPLE))
    assert [name for name, _ in found.values()] == ["facts", "", "attribution", "cases"]  # Ask is the first page
    assert all(query["case"] == [EXAMPLE] for _, query in found.values())
    facts, citations, used, review = found
    assert facts.startswith("**") and " facts: " in facts and " borne out" in facts
    assert re.match(r"\d of \d citations supported", citations)
    assert used.endswith(" used and supporting")
    assert review == "Not reviewed: review and export"
    assert found[used][1]["attribution_tab"] == ["Used x supports"]
    assert found[review][1]["review"] == ["first"]


@pytest.mark.parametrize(("query", "first"), [({}, "Compare two"), ({"review": "first"}, "Add to the history")])
def test_the_link_to_the_review_brings_it_before_the_library(query, first):
    drawn = [button.label for button in page("review/cases", EXAMPLE, **query).main.get("button")]
    assert next(label for label in drawn if label in ("Compare two", "Add to the history")) == first


def test_every_page_of_a_case_says_where_the_documents_may_not_answer():
    components.cache.workbench.clear()
    take_in(store())
    case = store().load(EXAMPLE)
    store().save(replace(case, id="even", answerable=0.3))
    store().save(replace(case, id="weak", answerable=0.1))
    app = page("inspect/facts", "even")
    assert not app.warning
    assert next(iter(links(app))).startswith(
        "**The documents may not answer the question (probability that they do: 0.30). "
    )
    weak = page("inspect/facts", "weak")
    assert "do not seem to answer" in weak.warning[0].value
    assert next(iter(links(weak))).startswith("**12 facts: ")  # the probability is said once


def test_a_corpus_and_words_of_a_case_file_are_text_in_the_warning():
    components.cache.workbench.clear()
    image, link = "![x](http://a.b/c.png)", "[y](http://a.b)"
    hostile = replace(checked(), id="hostile", corpus=image, answerable=0.1, unknown_words=((link, ""),))
    store().save(hostile)
    said = page("inspect/steps", "hostile").warning[0].value
    assert "!\\[x\\](" in said and "“\\[y\\](" in said


def test_a_doubt_about_the_sources_is_settled_once_someone_signed():
    components.cache.workbench.clear()
    store().save(replace(checked(), id="signed", answerable=0.1))
    assert page("inspect/facts", "signed").warning
    store().add_marks("signed", sign_off("Ada", "does not stand", "the year is wrong"))
    app = page("inspect/facts", "signed")
    assert not app.warning
    signed, line, *_ = links(app)
    assert signed == "**Does not stand, signed off by Ada**"
    assert line.startswith("**3 facts: ") and "answer the question" not in line


def test_the_head_names_words_of_the_question_that_no_document_has():
    components.cache.workbench.clear()
    case = replace(checked(), id="typo", answerable=0.3, unknown_words=(("orgin", "origin"), ("Musk", "")))
    store().save(replace(case, analyses=()))
    app = page("review/cases", "typo")
    told = "No document has “orgin”; the nearest word is “origin”. No document has “Musk”."
    html = [element.proto.body for element in app.get("html")]
    assert any(told in body for body in html)
    assert any(
        "Not checked yet. The documents may not answer the question (probability that they do: 0.30)." in b
        for b in html
    )
    store().save(replace(case, answerable=0.9))
    html = [element.proto.body for element in page("review/cases", "typo").get("html")]
    assert any("the nearest word is “origin”." in body for body in html) and not any("Musk" in body for body in html)


def test_the_link_of_use_and_support_opens_its_tab():
    app = page("inspect/attribution", EXAMPLE, attribution_tab="Used x supports")
    assert any("Second number: the probability" in element.proto.body for element in app.get("html"))


def test_an_imported_answer_that_was_signed_off_leads_to_its_audit_and_its_review():
    found = links(page("review/cases", AUDITED))
    assert [name for name, _ in found.values()] == ["cases", "facts", "facts", "audit", "attribution"]
    review, facts, own, _, mattered = found
    assert " edited" in facts and own == "1 verdict by a reviewer" and mattered == "What mattered"
    assert review.startswith("**Stands as edited, signed off by ")


@pytest.mark.parametrize(("name", "label"), [("facts", "Check again"), ("refinement", "Run"), ("steps", "Work it out")])
def test_a_signed_off_case_takes_no_other_analysis(name, label):
    app = page(f"inspect/{name}", AUDITED)
    assert next(button for button in app.button if button.label == label).disabled


def test_what_is_open_is_said_and_a_reviewers_name_is_text():
    page("review/cases", "case")
    marks = [
        MarkDraft(kind="override", author="Ada *B*", target="fact:1.1", value="borne out", reason="the other bridge"),
        MarkDraft(kind="status", author="Ada *B*", value="in review"),
    ]
    store().add_marks("case", marks)
    app = AppTest.from_file(str(PAGES / "inspect/steps.py"), default_timeout=120)
    app.query_params["case"] = "case"
    found = list(links(app.run()))
    assert found[0] == "**3 facts: 2 borne out, 1 not found**"
    assert {"2 edits undecided", "1 verdict by a reviewer"} <= set(found)
    assert links(app)["2 edits undecided"][1]["fact"] == ["1.1"]
    assert found[-1] == r"In review by Ada \*B\*"


def test_a_case_that_was_not_checked_says_so_and_shows_what_mattered():
    page("review/cases", "case")
    store().save(replace(checked(), id="unchecked", analyses=()))
    app = AppTest.from_file(str(PAGES / "review/cases.py"), default_timeout=120)
    app.query_params["case"] = "unchecked"
    app.run()
    assert list(links(app)) == ["What mattered", "Not reviewed: review and export"]
    assert any("Not checked yet." in element.proto.body for element in app.get("html"))
    assert any(button.label == "Check the answer" for button in app.button)


@pytest.mark.parametrize("name", ["inspect/facts", "inspect/steps", "inspect/attribution", "review/cases"])
def test_a_signed_off_case_has_a_new_version_made_from_where_it_is_needed(name):
    app = page(name, AUDITED)
    version = next(button for button in app.button if button.label == "Make a new version")
    assert version.help == "The new version starts open, with the same content."
    version.click().run()
    assert "who_reviews_name" in [field.key for field in app.text_input]  # asked for where it is needed
    app.session_state["reviewer"] = "Ada"
    next(button for button in app.button if button.label == "Make a new version").click().run()
    assert not app.exception
    (new,) = [row for row in store().rows() if row.parent == AUDITED]
    assert app.query_params["case"] == new.id and new.status == "open"
    assert all(mark.author == "Ada" for mark in store().history(new.id) if mark.kind == "version")
