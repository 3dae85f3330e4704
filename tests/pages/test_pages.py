"""Every page runs without an exception on the data folder of a first start."""

from __future__ import annotations

import re
from concurrent.futures import Future
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from streamlit.testing.v1 import AppTest

import components.cache
import components.runs
from engine.analyses.kind import REFINEMENT
from engine.analyses.refinement import KIND, _fact_row
from engine.cases.blocks import table
from engine.cases.bundled import AUDITED, EXAMPLE, SELF_REFINED, take_in
from engine.cases.review import sign_off
from engine.core.errors import Cancelled, CaseNotFound, QuestionError, ServerError
from engine.core.files import home, now
from engine.core.values import Answer, Document
from engine.corpus import large
from engine.corpus.collection import Collection, IngestReport, list_corpora
from engine.corpus.samples import FIRST_CASE
from engine.methods.raise_.threshold import PRIMER
from engine.methods.signals import FactKept
from engine.models.defaults import default_generator
from engine.models.embedder import ScriptedEmbedder
from engine.report.html import fragment

ROOT = Path(__file__).resolve().parent.parent.parent

PAGES = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "pages").rglob("*.py"))


@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_something_real_and_no_exception(app, page):
    app.run()
    app.switch_page(page).run()
    assert not app.exception
    assert app.title


@pytest.mark.parametrize("page", [page for page in PAGES if "corpora" not in page and "evaluate" not in page])
def test_a_page_draws_the_case_that_has_every_analysis(page):
    components.cache.workbench.clear()
    take_in(components.cache.workbench().cases)
    app = AppTest.from_file(str(ROOT / page), default_timeout=60)
    app.query_params["case"] = EXAMPLE
    app.run()
    assert not app.exception
    assert not app.error


def test_the_question_is_folded_above_a_case_that_was_opened_and_not_on_the_first_start(app):
    app.run()
    assert "Ask another question" not in [fold.label for fold in app.expander]
    take_in(components.cache.workbench().cases)
    app.query_params["case"] = EXAMPLE
    app.run()
    assert "Ask another question" in [fold.label for fold in app.expander]


def test_a_new_session_begins_with_the_corpus_that_was_asked_last(app):
    app.run()
    cases = components.cache.workbench().cases
    first = cases.load(FIRST_CASE)
    other = next(c.name for c in list_corpora() if c.name != first.corpus)
    corpus = lambda app: next(box.value for box in app.selectbox if box.label == "Corpus")  # noqa: E731
    assert corpus(app) == first.corpus
    cases.save(replace(first, id="later", corpus=other, created=now()))
    cases.save(replace(first, id="audit", created=now(), origin="imported"))
    take_in(cases)  # an example is nobody's question, whenever it is taken in
    again = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120).run()
    assert corpus(again) == other


def test_a_new_problem_is_of_the_open_cases_corpus_first(app):
    app.run()
    case = components.cache.workbench().cases.load(FIRST_CASE)
    steps = AppTest.from_file(str(ROOT / "pages/inspect/steps.py"), default_timeout=60)
    steps.query_params["case"] = case.id
    corpora = next(box for box in steps.run().selectbox if box.label == "Corpus")
    assert corpora.value == case.corpus and corpora.options[1] == PRIMER != case.corpus


def test_an_answer_that_is_the_question_is_told():
    components.cache.workbench.clear()
    cases = components.cache.workbench().cases
    take_in(cases)
    case = cases.load(EXAMPLE)
    cases.save(replace(case, id="echo", answer=Answer(text=f"{case.question} [cite_1]"), analyses=()))
    app = AppTest.from_file(str(ROOT / "pages/ask/ask.py"), default_timeout=60)
    app.query_params["case"] = "echo"
    app.run()
    assert any("only repeats the question" in warning.value for warning in app.warning)


def test_conditions_are_offered_to_a_model_and_not_to_whom_an_imported_answer_names():
    components.cache.workbench.clear()
    take_in(components.cache.workbench().cases)
    app = AppTest.from_file(str(ROOT / "pages/inspect/refinement.py"), default_timeout=60)
    app.query_params["case"] = AUDITED
    app.run()
    assert next(box.value for box in app.text_input if box.label == "Written by") == default_generator()
    assert next(one.value for one in app.button_group if one.label == "Baseline")  # the imported answer is refined


def test_facts_of_an_earlier_check_are_told():
    components.cache.workbench.clear()
    cases = components.cache.workbench().cases
    take_in(cases)
    case = cases.load(EXAMPLE)
    old = next(analysis for analysis in case.analyses if analysis.kind == REFINEMENT)
    earlier = replace(KIND.read(old), facts=KIND.read(old).facts[:2])
    cases.save(replace(case, id="later", analyses=(*case.analyses, replace(old, result=earlier))))
    told = "The answer was checked again after this run."
    for name, wanted in ((EXAMPLE, False), ("later", True)):
        app = AppTest.from_file(str(ROOT / "pages/inspect/refinement.py"), default_timeout=60)
        app.query_params["case"] = name
        app.session_state["refine_tab"] = "Scores"
        app.run()
        assert any("A dash" in str(one.proto) for one in app.get("html"))
        assert any(told in one.value for one in app.caption) == wanted


def test_a_second_pass_is_triggered_as_in_the_cases_last_run():
    components.cache.workbench.clear()
    take_in(components.cache.workbench().cases)
    app = AppTest.from_file(str(ROOT / "pages/inspect/refinement.py"), default_timeout=60)
    app.query_params["case"] = EXAMPLE
    app.run()
    assert next(one.value for one in app.button_group if one.label == "Second pass trigger") == "always"


def test_a_card_says_how_well_the_passages_support_the_second_pass():
    components.cache.workbench.clear()
    take_in(components.cache.workbench().cases)
    app = AppTest.from_file(str(ROOT / "pages/inspect/refinement.py"), default_timeout=60)
    app.query_params["case"] = SELF_REFINED
    drawn = "".join(element.proto.body for element in app.run().get("html"))
    of_a, of_e = re.findall(r"Citation recall ([\d.]+)(?: \(A: [\d.]+\))?, \d+ content words in no passage", drawn)[::2]
    assert float(of_e) < float(of_a) and f"(A: {of_a})" in drawn
    said = "No second pass is better than A. By citation recall and content words in no passage, E is worse than A."
    assert said in drawn
    run = next(button for button in app.button if button.label.startswith("Run"))
    assert run.disabled and "qwen2.5-coder-1.5b is not installed." in drawn
    assert "`None`" not in [one.value for one in app.markdown]  # Streamlit writes the value of an expression


def test_a_label_that_came_with_the_data_cannot_be_taken_back_and_a_reviewers_can():
    components.cache.workbench.clear()
    cases = components.cache.workbench().cases
    take_in(cases)
    case = cases.load(EXAMPLE)
    cases.save(replace(case, id="labelled", passages=(replace(case.passages[0], relevant=True), *case.passages[1:])))
    app = AppTest.from_file(str(ROOT / "pages/inspect/refinement.py"), default_timeout=60)
    app.query_params["case"] = "labelled"
    app.session_state["refine_tab"] = "Passages"
    choice = lambda: next(one for one in app.button_group if one.label == "Passage 1")  # noqa: E731
    next(one for one in app.run().text_input if one.label == "Reviewer").set_value("Ada").run()
    assert choice().options == ["relevant", "not relevant"] and not choice().disabled
    drawn = [one.value if one.type == "text" else getattr(one, "label", "") for one in app.main]
    title = next(place for place, words in enumerate(drawn) if str(words).startswith("1 · "))
    assert title < drawn.index("Passage 1") < next(i for i, words in enumerate(drawn) if str(words).startswith("2 · "))
    choice().set_value("not relevant").run()
    assert choice().options == ["relevant", "not relevant", "not marked"]
    choice().set_value("not marked").run()
    assert choice().value == "relevant" and len(cases.history("labelled")) == 2
    cases.add_marks("labelled", sign_off("Ada", "stands", "Read it."))
    app.run()
    assert choice().value == "relevant" and choice().disabled


def test_no_marks_leave_the_page_as_it_is():
    def page():
        import streamlit as st

        from components.reviewer import write_marks

        write_marks("gone", ())
        st.text("drawn")

    app = AppTest.from_function(page).run()
    assert [text.value for text in app.text] == ["drawn"] and not app.error


def test_a_fact_that_a_does_not_clearly_state_is_not_called_gone_from_another_answer():
    kept = [FactKept(fact="It rained.", verdict="supportive", kept=share) for share in (0.49, 0.2)]
    drawn = fragment((table("", "FAD", [_fact_row(kept)]),))
    assert "borne out" in drawn and "unclear 0.49" in drawn and "gone" not in drawn
    assert "gone 0.20" in _fact_row([replace(kept[0], kept=0.9), kept[1]])


def test_a_rerun_that_changes_only_the_view_embeds_nothing(app, monkeypatch):
    app.run()
    embedder = components.cache.workbench().embedder
    calls = []
    original = type(embedder).embed
    monkeypatch.setattr(type(embedder), "embed", lambda self, *a, **k: calls.append(1) or original(self, *a, **k))
    app.run()
    app.switch_page("pages/ask/corpora.py").run()
    app.switch_page("pages/ask/ask.py").run()
    assert calls == []


def test_two_uploads_of_one_name_are_told(app):
    app.run()
    app.switch_page("pages/ask/corpora.py").run()
    app.text_input(key="add_name").input("two")
    files = [("notes.txt", text, "text/plain") for text in (b"The kiln is green.", b"The pond froze in May.")]
    app.file_uploader(key="add_files").set_value(files)
    next(button for button in app.button if button.label == "Add").click().run()
    app.session_state["groundwork_runs"]["ingest"].future.result()
    app.run()
    assert any("Another file in this batch" in said.value for said in app.warning)
    # The form is folded, and the next step leads to Ask with these documents.
    assert app.session_state["add_documents"] is False
    assert app.success[0].value.startswith("1 document added. “two” has 1 document and 1 passage.")
    assert "Ask these documents" in [link.proto.label for link in app.get("page_link")]
    assert app.session_state["ask_corpus"] == "two"


def test_names_of_documents_that_were_replaced_are_text(app):
    app.run()
    counts = {"added": 0, "unchanged": 0, "replaced": 1, "skipped": (), "documents": 1, "passages": 1, "seconds": 1.0}
    run = components.runs.Run(future=Future())
    run.future.set_result(IngestReport(**counts, displaced=(("![x](http://a.b)", "notes.jsonl"),)))
    app.session_state["groundwork_runs"] = {"ingest": run}
    app.switch_page("pages/ask/corpora.py").run()
    assert not app.exception and "!\\[x\\](" in app.success[0].value


def test_the_document_that_is_shown_is_ticked(app):
    app.run()
    app.switch_page("pages/ask/corpora.py").run()
    assert not app.exception
    documents = app.dataframe[1].proto
    assert list(documents.selection_mode) == [documents.SINGLE_ROW_REQUIRED]


def test_the_documents_of_a_corpus_are_read_once_and_a_thousand_are_listed(app, monkeypatch):
    monkeypatch.setattr(large, "FROM", 100)  # the corpus is not held in memory
    kind = {"source": "t.jsonl", "media_type": "application/jsonl"}
    texts = (Document(id=f"d{n}", title=f"Tide {n}", text=f"Tide {n} rose.", **kind) for n in range(1_200))
    Collection.create("tides", ScriptedEmbedder()).add(texts)
    app.run()
    app.switch_page("pages/ask/corpora.py").run()
    next(box for box in app.selectbox if box.label == "Show").select("tides").run()
    assert not app.exception
    assert list(app.dataframe[1].value["title"])[::999] == ["Tide 0", "Tide 999"]
    asked = []
    ask = large.StoredDocuments.ask
    monkeypatch.setattr(large.StoredDocuments, "ask", lambda self, *query: asked.append(query) or ask(self, *query))
    field = next(field for field in app.text_input if field.label == "Find a document")
    field.input("tide 117").run()
    assert list(app.dataframe[1].value["title"]) == ["Tide 117", *(f"Tide 117{n}" for n in range(10))]
    assert "Tide 117" in [one.value for one in app.header]
    assert len(asked) <= 4, "the chosen document alone is read again"
    field.input("nowhere").run()
    assert not app.exception and any("Change the search" in info.value for info in app.info)


def test_a_corpus_with_a_damaged_manifest_is_shown_with_the_button_that_removes_it(app):
    broken = home() / "corpora" / "broken"
    broken.mkdir(parents=True)
    (broken / "manifest.json").write_text("{")
    app.run()
    app.switch_page("pages/ask/corpora.py").run()
    assert not app.exception
    assert any("damaged manifest" in error.value for error in app.error)
    assert any(button.label == "Remove broken" for button in app.button)


def test_a_link_opens_its_case_also_when_another_case_asked_the_same(app):
    store = components.cache.workbench().cases
    first = store.load(store.rows(limit=1)[0].id)
    for twin in ("twin-a", "twin-b"):
        store.save(msgspec.structs.replace(first, id=twin))
    for twin in ("twin-a", "twin-b"):
        app.query_params["case"] = twin
        app.run()
        assert not app.exception
        assert app.sidebar.selectbox[0].value == twin
        assert twin in app.query_params["case"]


def test_a_self_test_is_told_in_full_and_a_servers_words_are_text(app):
    from engine.models.self_test import SelfTestCheck

    said = "ServerError: <b>no</b> " + "x" * 300
    check = SelfTestCheck(name="answers", passed=False, detail=said, figure=0.25)
    app.run()
    found = components.cache.analyses().start(lambda run: (check,))
    found.future.result()
    app.session_state["groundwork_runs"] = {"self_test": found}
    app.switch_page("pages/review/settings.py").run()
    assert not app.exception
    drawn = next(e.proto.body for e in app.get("html") if "answers" in e.proto.body)
    assert "ServerError: &lt;b&gt;no&lt;/b&gt; " + "x" * 300 in drawn
    assert "failed" in drawn and "0.25" in drawn


def draw_cancel():
    from concurrent.futures import Future

    from components import state
    from components.polling import cancel_button
    from components.runs import Run

    if state.run_of("work") is None:
        state.keep_run("work", Run(future=Future()))
    cancel_button(state.run_of("work"), key="cancel")


def test_cancel_is_offered_once():
    app = AppTest.from_function(draw_cancel).run()
    assert not app.button[0].disabled
    assert not app.caption
    app.button[0].click().run()
    assert app.button[0].disabled
    assert app.caption[0].value == "Stopping after the current step."


def draw_ended(error):
    from concurrent.futures import wait

    from components import state
    from components.polling import wait_for
    from components.runs import Lane

    def work(run):
        raise error

    run = Lane("test").start(work)
    wait([run.future])
    state.keep_run("work", run)
    state.see_runs()
    wait_for("work", "Working")


@pytest.mark.parametrize(("error", "kind"), [(Cancelled("Stopped."), "info"), (CaseNotFound("It is gone."), "error")])
def test_work_that_was_stopped_is_no_error(error, kind):
    app = AppTest.from_function(draw_ended, kwargs={"error": error}, default_timeout=60).run()
    assert not app.exception
    assert [(e.type, e.value) for e in (*app.info, *app.error)] == [(kind, str(error))]


class EndsBetweenTwoLooks(Future):
    """Running at the first look, failed at the next: what a worker may do at any moment while a page is drawn."""

    looks = 0

    def done(self):
        self.looks += 1
        if self.looks == 2:
            self.set_exception(CaseNotFound("It is gone."))
        return super().done()


def test_what_ends_while_the_page_is_drawn_is_told(app):
    app.run()
    keep_question(app, "gone", EndsBetweenTwoLooks())
    app.run()
    assert not app.exception
    assert [error.value for error in app.error] == ["It is gone."]


def keep_question(app, case_id, future, case=None):
    run = components.runs.Run(label="vanilla", case=case, future=future)
    app.session_state["groundwork_asked"] = case_id
    app.session_state["groundwork_runs"] = {f"ask:{case_id}": run}
    return run


def end_question(app, case_id, error, case=None):
    keep_question(app, case_id, Future(), case).future.set_exception(error)


def test_a_question_that_failed_before_its_first_word_opens_no_case(app):
    app.run()
    gone = replace(components.cache.workbench().cases.load(FIRST_CASE), id="gone")
    end_question(app, "gone", ServerError("It went away."), gone)
    app.run()
    assert not app.exception
    assert [error.value for error in app.error] == ["It went away."]
    assert app.query_params["case"] == FIRST_CASE


def test_a_question_to_try_closes_the_list_and_clears_the_error_under_the_field(app):
    take_in(components.cache.workbench().cases)
    app.query_params["case"] = EXAMPLE
    app.run()
    end_question(app, "gone", QuestionError("It is empty."))
    app.run()
    blocks = [node.type for node in app.main if node.type in ("text_area", "error")]
    assert blocks == ["text_area", "error"] and app.error[0].value == "It is empty."
    app.session_state["questions_to_try"] = True
    tried = next(button for button in app.button if button.key == "try_1")
    tried.click().run()
    assert not app.exception and not app.error
    assert app.text_area(key="question").value == tried.label
    assert app.session_state["questions_to_try"] is False
    assert next(fold for fold in app.expander if fold.label == "Ask another question").proto.expanded


def test_a_question_that_was_stopped_opens_its_case_once(app):
    app.run()
    cases = components.cache.workbench().cases
    half = replace(cases.load(FIRST_CASE), id="half", answer=Answer(text="", finished=False))
    cases.save(half)
    end_question(app, "half", Cancelled("Stopped."), half)
    app.run()
    assert app.query_params["case"] == app.sidebar.selectbox[0].value == "half"
    app.query_params["case"] = FIRST_CASE
    app.run()
    assert not app.exception
    assert app.query_params["case"] == FIRST_CASE


def loaded_anew(asked):
    again = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
    again.query_params["case"], again.query_params["asked"] = FIRST_CASE, asked
    return again.run()


def test_a_page_loaded_anew_shows_its_question_and_opens_the_case_when_it_ends(app):
    app.run()
    cases = components.cache.workbench().cases
    run = components.runs.Run(label="vanilla", stage="answer", text="Water melts [2]. It [cite_1", future=Future())
    run.case = cases.load(FIRST_CASE)
    run.future.set_running_or_notify_cancel()  # work in a thread goes on until its next batch
    components.cache.begun_runs()["ask:later"] = run
    again = loaded_anew("later")
    assert not again.exception and again.query_params["asked"] == "later"
    drawn = [drawn.proto.body for drawn in again.get("html")]
    assert any(body.endswith(". It</div>") for body in drawn) and not any("cite_1" in body for body in drawn)
    assert any(f'<h2 class="gw-question">{run.case.question}</h2>' == body for body in drawn)
    assert any(f"Written by {run.case.stamp.model}" in body for body in drawn)
    next(button for button in again.button if button.label == "Cancel").click().run()
    assert run.cancelling
    cases.save(later := replace(cases.load(FIRST_CASE), id="later"))
    run.future.set_result(later)
    for session in (again.run(), loaded_anew("later")):  # also where it ended in between
        assert not session.exception
        assert session.query_params["case"] == "later" and "asked" not in session.query_params
    assert loaded_anew("never").query_params["case"] == FIRST_CASE


def test_progress_is_a_share_also_where_more_was_done_than_expected():
    assert [components.runs.Run(done=d, total=t).share for d, t in ((0, 0), (1, 4), (5, 4))] == [0.0, 0.25, 1.0]
