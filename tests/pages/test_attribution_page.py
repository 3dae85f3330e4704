"""What the Attribution page draws, as plain values: pieces, rows and floors that belong together."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace
from streamlit.testing.v1 import AppTest

from components.agreement import _table
from components.analysis_run import is_banner, seconds_said
from components.source_map import source_map_data
from components.token_map import explained_pieces, token_map_data
from engine.analyses.attribution import (
    method_of,
    occlusion_of,
    sentence_occlusion_of,
    token_map_of,
)
from engine.analyses.token_map import ALONE, TokenMap, methods_run
from engine.answer.citations import annotate
from engine.core.settings import Settings
from engine.core.values import (
    Answer,
    Attribution,
    AuditRecord,
    Case,
    Stamp,
)
from engine.methods.attr_rag import attr_rag, scored_by, with_drops
from engine.methods.faithfulness import agreement
from engine.methods.subject import banner
from engine.models.scripted import ScriptedScorer
from tests.engine.attribute.test_attr_rag import SETS, quote_wanted
from tests.tiny import tiny_model

PASSAGES = ("The kiln of Ostrel is painted green. It is old.", "Maren holds <b>forty</b> litres.", "Ostrel lies north.")
ANSWER = "The kiln is green. [cite_1] It lies north. [cite_3]"


@pytest.fixture(scope="module")
def case():
    record = AuditRecord(question="What colour is the kiln?", passages=PASSAGES, answer=ANSWER)
    given, model = record.as_passages(), tiny_model("llama")
    bare = Case(
        id="c",
        question=record.question,
        passages=given,
        answer=annotate(Answer(text=ANSWER), len(given)),
        stamp=Stamp(model="someone"),
        origin="imported",
    )
    placebos = AuditRecord(question="q", passages=("Ships sail on the sea.",) * 5, answer="x").as_passages()
    analyses = (
        occlusion_of(bare, model, Settings(), placebos=placebos),
        token_map_of(bare, model, Settings()),
        method_of(bare, "value-weighted attention", model, Settings()),
        sentence_occlusion_of(bare, model, Settings(), numbers=(1, 3)),
    )
    return Case.from_dict({**bare.to_dict(), "analyses": [a.to_dict() for a in analyses]})


def stored(case, kind):
    return next(a.result for a in case.analyses if a.kind == kind)


def test_every_piece_of_a_source_map_has_its_score_in_every_row(case):
    attribution = Attribution.from_dict(stored(case, "occlusion"))
    data = source_map_data(attribution, case)
    rows = np.array([[passage[0] for passage in row] for row in data["rows"]])
    content = stored(case, "occlusion")["details"]["content"]
    assert rows[:3] == pytest.approx(np.array(attribution.scores), abs=1e-5)
    assert rows[3:] == pytest.approx(np.array(attribution.per_token)[content], abs=1e-5)
    assert [passage["tokens"] for passage in data["passages"]] == [[text] for text in PASSAGES]
    assert len(data["floors"]) == len(data["rows"])
    assert all(placebo > 0 for _, placebo in data["floors"][:3])


def test_a_click_on_a_word_finds_the_row_of_its_token(case):
    data = source_map_data(Attribution.from_dict(stored(case, "occlusion")), case)
    assert "".join(token["text"] for token in data["answer"]) == ANSWER
    explained = [token["row"] for token in data["answer"] if token["row"] is not None]
    assert explained == list(range(3, len(data["rows"])))
    markers = "".join(token["text"] for token in data["answer"] if token["row"] is None)
    assert "cite_1" in markers and "kiln" not in markers


def test_sentences_spell_their_passage(case):
    data = source_map_data(Attribution.from_dict(stored(case, "occlusion of sentences")), case)
    assert [(p["number"], "".join(p["tokens"])) for p in data["passages"]] == [(1, PASSAGES[0]), (3, PASSAGES[2])]
    assert [len(p["tokens"]) for p in data["passages"]] == [2, 1]
    assert all([len(p) for p in row] == [2, 1] for row in data["rows"])


def test_the_first_token_of_a_later_sentence_belongs_to_it():
    """Its leading space stands before the sentence starts; the engine counts it by its first visible character."""
    spans = [(0, 3), (3, 4), (4, 8), (8, 9)]
    drawn = explained_pieces("One. Two.", spans, [(0, 4), (5, 9)], {}, [True] * 4)
    assert [piece["sentence"] for piece in drawn] == [0, 0, 1, 1]
    assert [piece["row"] for piece in drawn] == [1, 1, 2, 2]


def test_the_token_map_has_a_value_for_every_piece(case):
    data = token_map_data(TokenMap.from_dict(stored(case, "token map")), case)
    for row in data["rows"]:
        assert [len(p["tokens"]) for p in data["passages"]] == [len(values) for values in row]


def test_methods_that_ran_are_compared_and_only_those_by_the_scorer(case):
    model = tiny_model("llama").name
    run = methods_run(case, model)
    assert set(run) == {"occlusion", ALONE, "input x gradient", "value-weighted attention"}
    assert methods_run(case, "another") == {}
    drawn = _table(run, agreement(run))
    assert drawn.count("<b>ρ") == 6
    assert np.array(run[ALONE].scores) == pytest.approx(np.array(stored(case, "occlusion")["details"]["alone"]))


def test_a_partial_run_is_not_compared(case):
    whole = next(a for a in case.analyses if a.kind == "occlusion")
    short = {**whole.result, "sources": [[1], [2]], "scores": [row[:2] for row in whole.result["scores"]]}
    partial = Case.from_dict({**case.to_dict(), "analyses": [{**whole.to_dict(), "result": short}]})
    assert methods_run(partial, tiny_model("llama").name) == {}


def test_banners_and_times():
    assert is_banner(banner("a", "b"))
    assert not is_banner("Approximate: a sparse linear fit.")


def test_seconds_are_those_of_the_last_run_by_the_same_model(case):
    model = tiny_model("llama").name
    last = [a for a in case.analyses if a.stamp.model == model][-1].result
    expected = 30 * last["seconds"] / (last["forwards"] + 2 * last["backwards"])
    assert f"about {expected:.0f} s" in seconds_said(case, model, 30)
    assert seconds_said(case, "another", 30) == ""


def draw_attr_rag(result):
    from components.attr_rag import attr_rag_view
    from engine.methods.attr_rag import AttrRag

    attr_rag_view(AttrRag.from_dict(result))


def test_a_selection_shows_drops_filled_gaps_and_both_answers_as_one_text():
    scorer = ScriptedScorer(lambda passages, words, t: -3.0 + sum("gamma" in text for text in passages.values()))
    found = attr_rag("q", SETS, quote_wanted("beta"), score=scored_by(scorer, writer="quoting reader"))
    app = AppTest.from_function(draw_attr_rag, kwargs={"result": found.to_dict()}, default_timeout=60).run()
    assert not app.exception
    drawn = "".join(str(html.proto.body) for html in app.get("html"))
    assert "+3.00" in drawn and "not scored" not in drawn
    assert "Written by quoting reader" in drawn
    other = with_drops(found, scored_by(ScriptedScorer(lambda p, w, t: -1.0), writer="quoting reader"))
    unscored = replace(other, drops=None)
    again = AppTest.from_function(draw_attr_rag, kwargs={"result": unscored.to_dict()}, default_timeout=60).run()
    assert "Drop, nats" in drawn
    assert "Drop, nats" not in "".join(str(html.proto.body) for html in again.get("html"))


def draw_used_supports(case):
    from components.used_supports import used_supports_view
    from engine.core.values import Case
    from engine.methods.used_supports import Cell, UsedSupports

    tiny = Cell(used=-0.001, supports=0.04, quadrant="neither")
    opened = Case.from_dict(case)
    spans = opened.answer.sentences[:1]
    used_supports_view(UsedSupports(spans, ((1,),), ((tiny,),), (0.1,), "placebo", "scorer", "verifier"), opened)


def test_a_drop_that_rounds_to_nothing_is_not_minus_nothing(case):
    app = AppTest.from_function(draw_used_supports, kwargs={"case": case.to_dict()}).run()
    assert not app.exception
    drawn = "".join(str(html.proto.body) for html in app.get("html"))
    assert "+0.0<br>0.04" in drawn


def draw_flags(result, case):
    from components.flags import flags_view
    from engine.analyses.token_map import TokenMap
    from engine.core.settings import Gradient
    from engine.core.values import Case

    flags_view(TokenMap.from_dict(result), Case.from_dict(case), Gradient())


def test_flags_stand_beside_chance_and_the_trigger_beside_the_papers_verdict(case):
    app = AppTest.from_function(
        draw_flags, kwargs={"result": stored(case, "token map"), "case": case.to_dict()}, default_timeout=60
    ).run()
    assert not app.exception
    drawn = "".join(str(html.proto.body) for html in app.get("html"))
    assert "By chance a passage is high at a rate of" in drawn
    assert "With 3 passages this rule flags almost everything" in drawn
    assert "negative result" in drawn
    assert any("No passage is marked" in caption.value for caption in app.caption)
