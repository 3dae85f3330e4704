"""The Audit page without a browser: an answer goes in, every sentence gets a verdict, the case says if it stands."""

from __future__ import annotations

import time

from streamlit.testing.v1 import AppTest

import components.cache
from components.sentences import sentences_data
from engine.analyses.case_verdict import case_verdict
from engine.cases.review import review_of

SOURCES = "The tank holds 40 litres of brine.\n---\nThe pump was replaced in March 2021."
ANSWER = "The tank holds 40 litres of brine [1]. The pump was replaced in March 2012 [2]. Nobody was hurt."


def store():
    return components.cache.workbench().cases


def opened(app: AppTest) -> AppTest:
    app.run()
    return app.switch_page("pages/ask/audit.py").run()


def field(app, label):
    return next(f for f in (*app.text_input, *app.text_area) if f.label == label)


def press(app, label):
    return next(b for b in app.button if b.label == label).click().run()


def paste(app, sources=SOURCES, answer=ANSWER):
    field(app, "Question").set_value("What of the tank?")
    field(app, "Sources, with a line of --- between two").set_value(sources)
    field(app, "Answer").set_value(answer)
    return press(app, "Audit")


def checked(app):
    """The page once the check that it began has ended."""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        row = next(row for row in store().rows() if row.question == "What of the tank?")
        case = store().load(row.id)
        if any(analysis.kind == "facts" for analysis in case.analyses):
            return app.run(), case
        app.run()
    raise AssertionError("the check did not end")


def html(app) -> str:
    return " ".join(str(element.proto) for element in app.get("html"))


def test_both_doors_are_the_first_thing_on_the_start_page(app):
    app.run()
    labels = [link.proto.label for link in app.get("page_link")]
    assert labels[:2] == ["**Ask your documents**", "**Audit an answer**"]


def test_a_pasted_answer_is_audited_sentence_by_sentence(app):
    app, case = checked(paste(opened(app)))
    assert not app.exception
    assert case.origin == "imported"
    assert [p.text for p in case.passages] == SOURCES.split("\n---\n")
    verdict = case_verdict(case, review_of(()))
    assert [s.stand for s in verdict.sentences][:2] == ["borne out", "contradicted"]
    assert verdict.headline in html(app)
    drawn = sentences_data(case, verdict)["sentences"]
    assert drawn[1]["facts"][0]["quote"]["words"] == "The pump was replaced in March 2021."
    assert [piece.get("number") for piece in drawn[0]["pieces"]] == [None, 1, None]


def test_what_cannot_be_audited_is_said(app):
    app = opened(app)
    assert "Paste the text to check" in paste(app, answer=" ").error[0].value
    assert "nothing to check against" in paste(app, sources="").error[0].value


def test_the_example_fills_the_form(app):
    app = press(opened(app), "Fill in an example")
    assert not app.exception
    assert "EUR 89,000" in field(app, "Answer").value
    assert field(app, "Sources, with a line of --- between two").value.count("\n---\n") == 2


def test_a_case_that_nobody_checked_says_so_and_offers_the_check_on_every_page(app):
    app.run()
    for page in ("ask/ask", "inspect/attribution", "inspect/refinement", "inspect/steps", "review/cases"):
        app.switch_page(f"pages/{page}.py").run()
        assert not app.exception
        assert "Not checked yet." in html(app)
        assert "Check the answer" in [b.label for b in app.button]


def test_questions_to_try_follow_the_corpus(app):
    app.run()
    corpus = next(box for box in app.selectbox if box.label == "Corpus")
    before = [b.label for b in app.button if (b.key or "").startswith("try_")]
    corpus.set_value("bank-investigation").run()
    after = [b.label for b in app.button if (b.key or "").startswith("try_")]
    assert before and after and before != after


def test_an_audit_without_a_file_says_so(app):
    app = press(opened(app), "Audit the file")
    assert app.warning[0].value == "Choose a file first."
