"""Facts: a reviewer's own verdict stays in the tree with its reason; citations are numbers wherever text is drawn."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec.structs import replace
from streamlit.testing.v1 import AppTest

import components.cache
from components.facts import _seen, tree_data
from engine.analyses.case_verdict import case_verdict, fact_verdict, fact_verdicts
from engine.analyses.facts import found_in, record_of
from engine.cases.bundled import AUDITED, EXAMPLE, take_in
from engine.cases.places import numbered
from engine.cases.review import MarkDraft, review_of, sign_off
from engine.core.settings import Verification
from engine.core.text import ANY_CITATION
from engine.methods.are.tools import Tools
from engine.methods.are.values import Evidence
from engine.models.scripted import ScriptedWriter
from tests.engine.are.scripted import WordVerifier
from tests.engine.are.test_are import AlwaysContradicting, run as are
from tests.engine.cases.test_case_verdict import checked, marked

PAGES = Path(__file__).resolve().parent.parent.parent / "pages"
OF_A_CASE = ("ask/ask", "ask/audit", "inspect/attribution", "inspect/facts", "inspect/refinement", "review/cases")
TITLE = re.compile(r'title=\\?"[^"]*"')


def test_the_reviewers_verdict_stands_next_to_the_verifiers_also_after_sign_off():
    case = checked()
    own = MarkDraft(kind="override", author="Ada", target="fact:1.2", value="contradicted", reason="it cost 6 million")
    signed = sign_off("Ada", "partly stands", "Read it.")
    for marks in ((own,), (own, *signed)):
        record = record_of(case)
        drawn = tree_data(record, fact_verdicts(case, record, marked(case, *marks)))["facts"]
        told = {fact["name"]: fact for fact in drawn}
        assert (told["1.2"]["own"], told["1.2"]["own_kind"]) == ("Ada: contradicted", "bad")
        assert told["1.2"]["lines"][0] == "Ada says contradicted: it cost 6 million"
        assert told["1.2"]["word"] == "borne out" and told["1.1"]["own"] == ""


def drawn_facts(case, review):
    record = record_of(case)
    return tree_data(record, fact_verdicts(case, record, review))


def test_the_tree_says_verdicts_in_the_words_of_the_sentences():
    verdict = case_verdict(checked(), review_of(()))
    facts = {fact.number: fact.stand for one in verdict.sentences for fact in one.facts}
    drawn = drawn_facts(checked(), review_of(()))["facts"]
    assert {fact["name"]: fact["word"].removesuffix(", edit proposed") for fact in drawn} == facts
    assert len(set(facts.values())) > 1
    assert {fact["own"] for fact in drawn} == {""}


def test_a_pasted_source_is_named_once_and_a_probability_is_called_one():
    case = checked()
    drawn = drawn_facts(case, review_of(()))["facts"]
    assert {fact["sure"].split()[0] for fact in drawn if fact["sure"]} <= {"probability", "word", "in"}
    one = Evidence(text="Ice melts.", source="case", title="passage 2", number=2, score=0.5)
    assert _seen(one, "Ice melts.", None, [], "")["head"] == "passage 2 · similarity 0.50"
    named = _seen(replace(one, title="Ice"), "Ice melts.", None, [], "")
    assert named["head"] == "passage 2 · Ice · similarity 0.50"


def test_a_sentence_that_a_source_has_word_for_word_is_borne_out_in_the_tree():
    answer = "The bridge opened in 1934."
    drawn = drawn_facts(checked(answer, are(answer, tools=Tools(AlwaysContradicting()))), review_of(()))
    (fact,) = drawn["facts"]
    assert (fact["word"], fact["kind"], fact["sure"]) == ("borne out", "good", "word for word in the source")
    assert drawn["attention_title"] == "Needs attention (0 of 1)"


def all_drawn(fact):
    """The passages of a fact's first round that are drawn at once, and those of each fold."""
    first = fact["rounds"][0]
    return first["checked"], {rest["title"]: rest["passages"] for rest in first["rest"]}


def test_how_often_a_verifier_is_right_is_said_once_for_a_fact_and_folded_at_its_passages():
    texts = ("Iron rusts in rain.", "Iron is a metal.", "Iron is mined abroad.")
    record = are("Iron rusts quickly in rain.", texts, Verification(keep=3, passages=3), Tools(WordVerifier()))
    verdicts = {name: fact_verdict(name, fact) for name, fact in numbered(record).items()}
    (fact,) = tree_data(record, verdicts)["facts"]
    shown, _ = all_drawn(fact)
    assert len(shown) == 3
    assert sum("not measured" in line for line in fact["details"]) == 1
    for passage in shown:
        assert re.match(r"^[A-Z][a-z ]+ by .*, probability 0\.\d\d\.", passage["notes"][0])
        assert "not measured" not in passage["notes"][0]
        assert "not measured" in passage["details"][0] and "Probabilities: " in passage["details"][0]


@pytest.mark.parametrize(
    ("verifier", "other", "folded"),
    [(WordVerifier(), "The choir sang.", True), (AlwaysContradicting(), "The bridge opened in 1950.", False)],
)
def test_next_to_a_copy_other_verdicts_are_folded_unless_they_surely_contradict(verifier, other, folded):
    answer = "The bridge opened in 1934."
    record = are(answer, (answer, other), Verification(keep=2, passages=2), Tools(verifier))
    verdicts = {name: fact_verdict(name, fact) for name, fact in numbered(record).items()}
    (fact,) = tree_data(record, verdicts)["facts"]
    shown, rest = all_drawn(fact)
    assert [passage["number"] for passage in shown] == ([1] if folded else [1, 2])
    assert [passage["number"] for passage in rest.get("Also checked: 1", [])] == ([2] if folded else [])
    assert shown[0]["notes"] == ["Borne out, because the passage says it word for word.", "This passage decided."]
    assert not any("not measured" in line for line in (*fact["lines"], *fact["details"]))


def test_a_fact_that_is_put_right_needs_no_attention():
    case = checked()
    edit = next(e for e in record_of(case).edits if e.new)
    machine = f"{edit.start}-{edit.end}: {edit.old} -> {edit.new}"
    accept = MarkDraft(
        kind="override", author="Ada", target=f"edit:{edit.id}", value="accepted", reason="read", machine=machine
    )
    before, after = (drawn_facts(case, marked(case, *marks)) for marks in ((), (accept,)))
    assert before["facts"][0]["word"] == "contradicted, edit proposed"
    assert (after["facts"][0]["word"], after["facts"][0]["kind"]) == ("edited", "mended")
    assert (before["attention_title"], after["attention_title"]) == (
        "Needs attention (2 of 3)",
        "Needs attention (1 of 3)",
    )


def test_a_search_names_passages_and_titles_apart_and_each_once():
    own = [Evidence(text="A.", source="case", title="T", number=n, score=0.5) for n in (4, 2)]
    corpus = [Evidence(text="B.", source="corpus", title=title, score=0.5) for title in ("Ice; water", "Salt", "Salt")]
    assert found_in(own[:1]) == "passage 4" and found_in([]) == "nothing"
    assert found_in([*own, *corpus]) == "passages 4, 2; in the corpus “Ice; water”, “Salt”"


def test_both_phrases_of_an_expansion_are_drawn_with_what_each_found():
    texts = ("Iron rusts in rain.", "The choir sang songs of praise.", "Loud noise harms the ear.")
    tools = Tools(WordVerifier(), expander=ScriptedWriter(["choir songs\nloud noise"] * 2))
    settings = Verification(keep=1, passages=1, anchored=False)
    record = are("Iron rusts quickly abroad.", texts, settings, tools)
    verdicts = {name: fact_verdict(name, fact) for name, fact in numbered(record).items()}
    first, again, *_ = tree_data(record, verdicts)["facts"][0]["rounds"]
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


@pytest.fixture
def reviewing():
    """The page on a checked case, with a reviewer's name given."""
    components.cache.workbench.clear()
    store().save(checked())
    app = AppTest.from_file(str(PAGES / "inspect/facts.py"), default_timeout=120)
    app.query_params["case"] = "case"
    app.run()
    return field(app, "Reviewer").set_value("Ada").run()


def store():
    return components.cache.workbench().cases


def field(app, label):
    return next(f for f in (*app.text_input, *app.text_area, *app.selectbox) if f.label == label)


def save(app, fact, *, verdict=None, text=None, reason=""):
    field(app, "Fact").set_value(fact).run()
    if verdict:
        next(c for c in app.segmented_control if c.label == "Verdict").set_value(verdict)
    if text is not None:
        field(app, "Rewrite the sentence (empty: delete it)").set_value(text)
    field(app, "Reason").set_value(reason)
    next(b for b in app.button if b.label == "Save").click().run()
    assert not app.exception
    return app


def verdict_now():
    case, history = store().load_whole("case")
    return case_verdict(case, review_of(history))


def test_an_edit_says_in_words_how_it_was_checked_and_is_accepted_without_a_reason(reviewing):
    said = "After the edit the fact agrees with the passage. The verifier gives this a probability of 0.90."
    assert said in [caption.value for caption in reviewing.caption]
    next(b for b in reviewing.button if b.label == "Accept 1").click().run()
    assert not reviewing.exception
    (mark,) = store().history("case")
    assert (mark.target, mark.value, mark.reason) == ("edit:1", "accepted", "")


def test_a_note_on_an_edit_is_not_there_for_another_edit_of_the_same_number(reviewing):
    field(reviewing, "Note").set_value("as the source has it").run()
    case = checked()
    record = record_of(case)
    edits = (replace(record.edits[0], new="1935"), *record.edits[1:])
    analyses = (replace(case.analyses[0], result=replace(record, edits=edits).to_dict()),)
    store().save(replace(case, analyses=analyses))
    assert field(reviewing.run(), "Note").value == ""


def test_another_case_begins_with_its_own_fact(reviewing):
    store().save(replace(checked(), id="other"))
    first = field(reviewing, "Fact").value
    field(reviewing, "Fact").set_value("2.1").run()
    reviewing.query_params["case"] = "other"
    assert field(reviewing.run(), "Fact").value == first != "2.1"


def test_a_reviewers_words_for_the_sentence_of_a_fact_are_in_the_text_at_once(reviewing):
    case = checked()
    start, end = case.answer.sentences[1]
    box = field(reviewing, "Rewrite the sentence (empty: delete it)")
    assert box.value == case.answer.text[slice(*case.answer.sentences[0])]
    app = save(reviewing, "2.1", verdict="not found", text="Whales are not in the sources.", reason="none has it")
    marks = {mark.target: mark for mark in store().history("case")}
    assert (marks["fact:2.1"].value, marks["fact:2.1"].machine) == ("not found", "irrelevant")
    assert (marks["sentence:2"].value, marks["sentence:2"].machine) == (
        "Whales are not in the sources.",
        case.answer.text[start:end],
    )
    assert verdict_now().text.endswith("Whales are not in the sources.")
    drawn = " ".join(element.proto.body for element in app.get("html"))
    assert "<ins>Whales are not in the sources.</ins>" in drawn
    assert "**3 facts: 1 borne out, 1 edited, 1 contradicted**" in [link.proto.label for link in app.get("page_link")]
    # The words are there to be changed further, and Undo takes them back.
    assert field(app, "Rewrite the sentence (empty: delete it)").value == "Whales are not in the sources."
    next(b for b in app.button if b.label == "Undo").click().run()
    assert verdict_now().sentences[1].rewritten is None
    assert field(app, "Rewrite the sentence (empty: delete it)").value == case.answer.text[start:end]


def test_a_verdict_alone_leaves_the_sentence_and_nothing_or_no_reason_is_refused(reviewing):
    assert "Choose a verdict, or change the sentence." in save(reviewing, "1.1", reason="read").error[0].value
    assert "reason" in save(reviewing, "1.1", text="The bridge opened in 1934.").error[0].value
    assert store().history("case") == ()
    # A refused decision loses nothing: the words are still there, and are put back.
    assert field(reviewing, "Rewrite the sentence (empty: delete it)").value == "The bridge opened in 1934."
    said = checked().answer.text[slice(*checked().answer.sentences[0])]
    save(reviewing, "1.1", verdict="borne out", text=said, reason="the other bridge")
    assert [mark.target for mark in store().history("case")] == ["fact:1.1"]
