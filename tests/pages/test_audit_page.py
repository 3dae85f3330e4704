"""The Audit page without a browser: an answer goes in, every sentence gets a verdict, the case says if it stands."""

from __future__ import annotations

import re
import time

import pytest
from msgspec.structs import replace
from streamlit.testing.v1 import AppTest

import components.cache
from components.checked_answer import drafts
from components.checking import CHECKS
from components.evidence import evidence_data
from components.sentences import AROUND, _quote, _used, sentences_data
from engine.analyses.case_verdict import QuotedEvidence, case_verdict, verdict_line
from engine.analyses.facts import record_of
from engine.answer.quoting_reader import read
from engine.cases.review import MarkDraft, review_of
from engine.core.settings import Reader
from engine.core.values import AuditRecord
from engine.corpus.samples import FIRST_CASE
from engine.workbench import Workbench
from tests.engine.cases.test_case_verdict import checked as checked_case, marked

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
    field(app, "Sources (put a line of --- between them)").set_value(sources)
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
    assert [s.state for s in verdict.sentences][:2] == ["borne out", "contradicted"]
    assert f"**{verdict.headline}**" in [link.proto.label for link in app.get("page_link")]
    assert any(verdict_line(case, verdict).endswith(caption.value) for caption in app.caption)
    drawn = sentences_data(case, verdict)["sentences"]
    assert drawn[1]["facts"][0]["quote"]["words"] == "The pump was replaced in March 2021."
    assert [piece.get("number") for piece in drawn[0]["pieces"]] == [None, 1, None]


def test_a_source_that_hardly_changes_a_sentence_is_not_said_to_matter():
    assert _used(2, 0.04, "m") == (
        "No source mattered for this sentence. Source 2 comes closest (+0.04 nats per token by m, occlusion)"
    )
    assert _used(2, 0.7, "m").startswith("Source 2 mattered most: on average each token is 2.0x less likely without it")


def test_a_line_of_more_dashes_or_blanks_parts_sources_too(app):
    sources = "The tank holds 40 litres of brine.\n--- \nThe pump was replaced in March 2021.\n-----\n"
    _, case = checked(paste(opened(app), sources=sources))
    assert [p.text for p in case.passages] == SOURCES.split("\n---\n")


def test_a_table_of_another_system_is_audited_and_its_bad_rows_are_said_once(app):
    rows = ["Question;Answer;Source 1", f"What of the tank?;{ANSWER.split('. ')[0]};{SOURCES.split(chr(10))[0]}"]
    data = "\n".join([*rows, *["What of the pump?;;Nothing."] * 7]).encode()
    opened(app).file_uploader(key="import_file").upload("answers.csv", data, "text/csv")
    app, case = checked(press(app, "Audit the file"))
    assert not app.exception
    assert [p.text for p in case.passages] == ["The tank holds 40 litres of brine."]
    (warning,) = app.warning
    assert warning.value.startswith("Records 2, 3, 4, 5, 6 and 2 others: The record has no answer")


def test_all_answers_of_a_file_are_checked_by_one_press(app):
    asked = [(question, ANSWER.split(". ")[0], SOURCES) for question in ("What of the tank?", "Of the pump?", "And?")]
    lines = [";".join(cell.replace("\n", " ") for cell in row) for row in asked]
    data = "\n".join(["Question;Answer;Source 1", *lines]).encode()
    opened(app).file_uploader(key="import_file").upload("answers.csv", data, "text/csv")
    app, _ = checked(press(app, "Audit the file"))
    press(app, "Check the other 2")
    app.session_state.groundwork_runs[CHECKS].future.result()
    assert not app.run().exception and not app.warning and "Check the other 2" not in [b.label for b in app.button]
    found = [store().load(row.id) for row in store().rows()]
    assert [record_of(case).verifier for case in found if case.origin == "imported"] == ["embedded"] * 3


def draw_checks():
    import streamlit as st

    from components.checking import checks_view, start_checks
    from components.state import see_runs

    see_runs()  # as app.py does: a run that ended before it was drawn would else be waited for again and again
    if "begun" not in st.session_state:
        st.session_state.begun = True
        start_checks(["binned"])
    checks_view()


def test_a_case_deleted_before_its_turn_is_named_and_the_page_stays(app):
    app.run()
    store().save(replace(checked_case(), id="binned"))
    store().delete("binned")
    page = AppTest.from_function(draw_checks, default_timeout=60).run()
    page.session_state.groundwork_runs[CHECKS].future.result()
    assert not page.run().exception
    assert page.warning[0].value.startswith("Not checked: binned")


@pytest.mark.parametrize(
    ("doubt", "said"), [("it is open", "Unsure: it is open."), ("", "The verifier is unsure: read the source.")]
)
def test_an_unsure_verdict_says_why_where_a_guard_made_it_so(doubt, said):
    case = checked_case()
    verdict = case_verdict(case, review_of(()))
    first, *rest = verdict.sentences
    fact = replace(first.facts[0], stand="unsure", doubt=doubt, edits=())
    verdict = replace(verdict, sentences=(replace(first, facts=(fact,)), *rest))
    assert said in sentences_data(case, verdict)["sentences"][0]["facts"][0]["notes"]


def test_what_a_check_needs_is_loaded_and_nothing_is_kept():
    bench = Workbench()
    bench.prepare_check()
    assert bench.cases.rows() == []


def stored_check(app):
    """A case whose answer was checked, open on the Audit page, and its last verdict."""
    store().save(replace(checked_case(), origin="imported"))
    app.query_params["case"] = "case"
    return opened(app)


def verdict_now():
    case, history = store().load_whole("case")
    return case_verdict(case, review_of(history))


def test_a_decision_goes_into_the_history_with_what_the_machine_says(app):
    stored_check(app)
    case = store().load("case")
    (fix,) = [f["edits"] for f in sentences_data(case, verdict_now())["sentences"][0]["facts"] if f["edits"]]
    assert [(edit["say"], edit["fix"]) for edit in fix] == [("Fix: 1932 → 1934", True)]
    store().add_marks("case", drafts(case, {"edit": fix[0]["id"], "value": "accepted"}, "Ada"))
    drawn = sentences_data(case, verdict_now())["sentences"][0]
    assert [(p["text"], p["change"]) for p in drawn["pieces"] if "change" in p] == [("1932", "del"), ("1934", "ins")]
    assert (drawn["kind"], drawn["word"]) == ("mended", "edited")

    own = {"sentence": 2, "fact": "2.1", "verdict": "not found", "reason": "no source has it", "text": "Whales sing."}
    store().add_marks("case", drafts(case, own, "Ada"))
    second = sentences_data(case, verdict_now())["sentences"][1]
    assert "".join(p["text"] for p in second["pieces"] if p.get("change") == "ins") == "Whales sing."
    assert second["rewritten"] == "Ada rewrote this sentence: no source has it"
    assert verdict_now().text.endswith("Whales sing.")
    accepted = next(m for m in store().history("case") if m.target.startswith("edit:"))
    assert (accepted.author, accepted.reason) == ("Ada", "")
    machines = {m.target: m.machine for m in store().history("case")}
    assert machines["fact:2.1"] == "irrelevant" and machines["sentence:2"] == second["text"]

    store().add_marks("case", drafts(case, {"undo": 2}, "Ada"))
    assert "Whales sing." not in verdict_now().text
    assert not app.run().exception


def test_words_that_no_source_settles_can_be_taken_out_and_are_not_called_wrong():
    case = checked_case()
    deletion = next(edit for edit in record_of(case).edits if not edit.new)
    offered = {"id": deletion.id, "fix": False, "say": "Take out “Whales sing loudly.”: no source settles it"}
    (fact,) = sentences_data(case, case_verdict(case, review_of(())))["sentences"][1]["facts"]
    assert (fact["word"], fact["edits"]) == ("not found", [offered])
    denied = MarkDraft(kind="override", author="Ada", target="fact:2.1", value="contradicted", reason="they hum")
    (fact,) = sentences_data(case, case_verdict(case, marked(case, denied)))["sentences"][1]["facts"]
    assert fact["edits"] == [{**offered, "fix": True, "say": "Fix: take out “Whales sing loudly.”"}]


def test_what_is_selected_goes_along_to_the_other_pages_of_a_case(app):
    stored_check(app)
    app.query_params["sentence"] = "2"
    app.query_params["passage"] = "1"
    app.run()
    app.query_params.clear()  # as a link of the navigation does
    app.switch_page("pages/inspect/facts.py").run()
    assert not app.exception
    assert dict(app.query_params) == {"case": "case", "sentence": "2", "passage": "1"}
    fact = next(box for box in app.selectbox if box.label == "Fact")
    assert fact.value == "2.1"
    # Another case begins with nothing selected.
    next(box for box in app.selectbox if box.label == "Open case").set_value(FIRST_CASE).run()
    assert "sentence" not in app.query_params and "passage" not in app.query_params


def test_the_picker_tells_cases_of_one_question_apart_by_what_comes_first(app):
    app.run()
    case = store().load(FIRST_CASE)
    for name, writer in (("again", "embedded"), ("twin", "embedded")):
        store().save(replace(case, id=name, stamp=replace(case.stamp, model=writer)))
    app.run()
    picker = next(box for box in app.selectbox if box.label == "Open case")
    beginnings = [option[:20] for option in picker.options if case.question in option]
    assert len(beginnings) == 3
    assert sum(re.fullmatch(r"\d\d-\d\d \d\d:\d\d embedded", b) is not None for b in beginnings) == 2
    assert len(set(picker.options)) == len(picker.options)


def test_facts_opens_at_the_first_sentence_in_doubt(app):
    stored_check(app)
    settled = MarkDraft(kind="override", author="Ada", target="fact:1.1", value="borne out", reason="read")
    store().add_mark("case", settled)
    app.switch_page("pages/inspect/facts.py").run()
    assert next(box for box in app.selectbox if box.label == "Fact").value == "2.1"


def test_a_sentence_replaces_a_sentence_and_its_fact_a_passage_a_passage():
    def select_in_turn():
        import streamlit as st

        from components import state

        state.open_case("case")
        said = []
        for chosen in (
            {"sentence": 2, "fact": "2.1"},
            {"passage": 3},
            {"sentence": 1},
            {"fact": "1.2", "sentence": 1, "passage": 4},
            {"passage": 0},
            {"sentence": 0},
        ):
            state.select(**chosen)
            link = {name: value for name, value in st.query_params.items() if name != "case"}
            said.append((link, state.selected_sentence(2), state.selected_fact(), state.selected_passage(3)))
        st.session_state["said"] = said

    app = AppTest.from_function(select_in_turn, default_timeout=60).run()
    assert app.session_state["said"] == [
        ({"sentence": "2", "fact": "2.1"}, 2, "2.1", None),
        ({"sentence": "2", "fact": "2.1", "passage": "3"}, 2, "2.1", 3),
        ({"sentence": "1", "passage": "3"}, 1, "", 3),
        ({"sentence": "1", "fact": "1.2", "passage": "4"}, 1, "1.2", None),
        ({"sentence": "1", "fact": "1.2"}, 1, "1.2", None),
        ({}, None, "", None),
    ]


def test_the_answer_is_read_before_its_check_has_ended(app):
    app.run()
    record = AuditRecord(question="What of the pump?", passages=("The pump was replaced.",), answer="The pump is new.")
    app.query_params["case"] = components.cache.workbench().audit(record).id
    assert "The pump is new." in html(app.switch_page("pages/ask/audit.py").run())


def test_what_cannot_be_audited_is_said(app):
    app = opened(app)
    assert "Paste the text to check" in paste(app, answer=" ").error[0].value
    assert "sources are empty" in paste(app, sources="").error[0].value


def test_what_is_typed_and_not_yet_sent_is_there_again_after_another_page(app):
    app = opened(app)
    field(app, "Answer").set_value(ANSWER).run()
    field(app, "Sources (put a line of --- between them)").set_value(SOURCES).run()
    app.switch_page("pages/ask/ask.py").run()
    field(app, "Question").set_value("What of the tank?").run()
    app.switch_page("pages/ask/audit.py").run()
    assert field(app, "Answer").value == ANSWER
    assert field(app, "Sources (put a line of --- between them)").value == SOURCES
    app.switch_page("pages/ask/ask.py").run()
    assert field(app, "Question").value == "What of the tank?"


def test_the_example_fills_the_form(app):
    app = press(opened(app), "Fill in an example")
    assert not app.exception
    assert "EUR 89,000" in field(app, "Answer").value
    assert field(app, "Sources (put a line of --- between them)").value.count("\n---\n") == 2


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


def test_a_weak_match_says_its_best_score_and_can_be_marked_as_not_in_the_documents(app):
    app.run()
    case = store().load(FIRST_CASE)
    store().save(replace(case, id="weak", answerable=0.1))
    app.query_params["case"] = "weak"
    app.run()
    assert evidence_data(replace(case, answerable=0.1), {})["answer_title"].endswith(", probably not an answer")
    assert evidence_data(replace(case, answerable=0.9), {})["answer_title"] == "Answer"
    assert evidence_data(replace(case, answerable=0.1, origin="imported"), {})["answer_title"] == "Answer"
    best = max(hit.score for hit in case.hits)
    assert f"probability that they do: 0.10, best passage score {best:.2f}" in app.warning[0].value
    app.session_state["reviewer"] = "Ada"
    press(app, "Mark as “not in these documents”")
    assert not app.exception
    (mark,) = store().history("weak")
    assert (mark.target, mark.value, mark.machine) == ("answer", "not in these documents", "answered")
    assert "best passage score" in mark.reason
    assert "Not in these documents, by Ada: review and export" in [link.label for link in app.get("page_link")]
    assert not app.warning
    assert "Mark as" not in " ".join(b.label for b in app.button)


def test_a_case_says_of_which_corpus_it_was_asked(app):
    app.run()
    next(box for box in app.selectbox if box.label == "Corpus").set_value("bank-investigation").run()
    case = store().load(FIRST_CASE)
    assert f"Asked of the corpus “{case.corpus}”" in html(app)
    store().save(replace(case, id="audited", origin="imported"))
    app.query_params["case"] = "audited"
    app.run()
    assert f"Audited with the corpus “{case.corpus}”" in html(app)


def test_what_the_reader_held_back_is_there_to_read(app):
    app.run()
    case = store().load(FIRST_CASE)
    (stored,) = (a for a in case.analyses if a.kind == "reading")
    refused = read(case.question, case.passages, components.cache.workbench().embedder, Reader(close_enough=2.0))
    assert refused.answer.refused
    analyses = tuple(replace(a, result=refused) if a is stored else a for a in case.analyses)
    store().save(replace(case, id="held", answerable=0.1, answer=refused.answer, analyses=analyses))
    app.query_params["case"] = "held"
    app.run()
    assert not app.exception
    (fold,) = (fold for fold in app.expander if fold.label == "What it would have said")
    (held,) = (element.proto.body for element in fold.get("html"))
    assert case.answer.text.split()[0] in held and "gw-answer" in held


def test_cited_passages_come_first_and_a_bar_is_as_long_as_its_score(app):
    app.run()
    case = store().load(FIRST_CASE)
    drawn = evidence_data(case, {})["passages"]
    cited = {c.number for c in case.answer.citations}
    assert {p["number"] for p in drawn[: len(cited)]} == cited
    assert sorted(p["number"] for p in drawn) == list(range(1, len(case.passages) + 1))
    scores = {hit.passage.id: hit.score for hit in case.hits}
    longest = max(1.0, *scores.values())
    shares = [score["share"] for p in drawn for score in p["scores"] if score["name"] == "retrieved"]
    texts = [float(score["text"]) for p in drawn for score in p["scores"] if score["name"] == "retrieved"]
    assert shares == pytest.approx([text / longest for text in texts], abs=1e-3)


def test_words_around_a_quotation_begin_with_a_sentence_and_turns_have_lines():
    asked = "RK: Other people told me of the breaks. And was it looked into in the end?\n"
    reply = "J: Not that I know of. I make the breaks happen, I write them on\nthe board in the morning. "
    text = f"It is May, and we sat down to talk in the room for the staff.\n{asked}{reply}Nine of ten get both."
    shown = _quote(QuotedEvidence(text=text, start=text.index("Nine"), end=len(text), title="P04", number=1))
    assert shown["before"].split("\n") == ["… And was it looked into in the end?", reply.replace("\n", " ")]
    apart = f"{'word ' * 90}ends here. It is so."
    far = _quote(QuotedEvidence(text=apart, start=apart.index("It is"), end=len(apart), title="P04", number=1))
    assert len(far["before"]) <= AROUND + 2
