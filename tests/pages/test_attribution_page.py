"""The Attribution page's data as plain values: pieces, rows and floors that belong together."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace
from streamlit.testing.v1 import AppTest

import components.cache
from components.analysis_run import is_banner, seconds_said
from components.occlusion import source_map_data
from components.token_map import badge, explained_pieces, occluded, token_map_data
from engine.analyses.attribution import ALONE
from engine.analyses.contrast import KIND, in_words
from engine.analyses.faithfulness import agreement_table, report_by
from engine.analyses.kind import FAITHFULNESS, OCCLUSION, SENTENCES, TOKEN_MAP
from engine.analyses.removal import removal
from engine.analyses.token_map import MapRows, TokenMap, check_of, map_of, methods_run
from engine.answer.citations import annotate
from engine.answer.write import Written
from engine.cases.review import sign_off
from engine.core.settings import Settings
from engine.core.text import about
from engine.core.values import Analysis, Answer, Attribution, AuditRecord, Case, Stamp
from engine.methods.attr_rag import scored_by, with_drops
from engine.methods.both_ways import METHOD as BOTH_WAYS
from engine.methods.faithfulness import agreement
from engine.methods.subject import banner
from engine.methods.word_overlap import METHOD as WORD_OVERLAP
from engine.models.choices import READER
from engine.models.scripted import ScriptedScorer
from engine.report.build import markdown_report
from tests.analysing import analysed, keep
from tests.engine.methods.test_attr_rag import quote_wanted, run
from tests.tiny import save_tiny, tiny_model

CONTRASTED = ("Words of the answer", "Compared with")

ROOT = Path(__file__).resolve().parent.parent.parent
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
        analysed(bare, OCCLUSION, model, unrelated=placebos),
        analysed(bare, TOKEN_MAP, model, sentences=(0,), tokens=tuple(range(14))),
        analysed(bare, "value-weighted attention", model),
        analysed(bare, SENTENCES, model, passages=(1, 3)),
    )
    return Case.from_dict({**bare.to_dict(), "analyses": [a.to_dict() for a in analyses]})


def stored(case, kind):
    return next(a.stored() for a in case.analyses if a.kind == kind)


def test_every_piece_of_a_source_map_has_its_score_in_every_row(case):
    attribution = Attribution.from_dict(stored(case, "occlusion"))
    data = source_map_data(attribution, case)
    rows = np.array([[passage[0] for passage in row] for row in data["rows"]])
    content = list(stored(case, "occlusion")["details"]["content"])
    assert rows[:3] == pytest.approx(np.array(attribution.scores), abs=1e-5)
    assert rows[3:] == pytest.approx(np.array(attribution.per_token)[content], abs=1e-5)
    assert [passage["tokens"] for passage in data["passages"]] == [[text] for text in PASSAGES]
    assert len(data["floors"]) == len(data["rows"])
    assert all(placebo > 0 for _, placebo in data["floors"][:3])


def test_the_hint_names_the_hatch_only_where_one_is_drawn(case):
    found = Attribution.from_dict(stored(case, "occlusion"))
    bare = replace(
        found, placebo_floor=None, details=replace(found.details, placebo_floor_by_span=(), placebo_floor_by_token=())
    )
    by_sentence = Attribution.from_dict(stored(case, "occlusion of sentences"))
    told = ["Hatched" in source_map_data(one, case)["hint"] for one in (found, bare, by_sentence)]
    assert told == [True, False, False]


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
    drawn = explained_pieces("One. Two.", spans, [(0, 4), (5, 9)], {}, [True] * 4, sentence_rows=(1, 2))
    assert [piece["sentence"] for piece in drawn] == [0, 0, 1, 1]
    assert [piece["row"] for piece in drawn] == [1, 1, 2, 2]


def test_the_token_map_has_a_value_for_every_word(case):
    found = TokenMap.from_dict(stored(case, "token map"))
    data = token_map_data(found, case)
    for rows, per_token in ((data["rows"], found.rows), (data["sizes"], np.abs(np.concatenate(found.rows[0])))):
        for row in rows:
            assert [len(p["tokens"]) for p in data["passages"]] == [len(values) for values in row]
        assert len(rows) == len(found.rows) and len(per_token)
    sums = [sum(words) for words in data["rows"][0]]
    assert sums == pytest.approx(found.passage_rows()[0], rel=1e-3)
    assert [sum(words) for words in data["sizes"][0]] == pytest.approx(found.absolute_rows()[0], rel=1e-3)


def test_a_passage_is_drawn_in_words(case):
    drawn = token_map_data(TokenMap.from_dict(stored(case, "token map")), case)["passages"]
    for passage, text in zip(drawn, PASSAGES, strict=True):
        assert "".join(passage["tokens"]).strip() == text
        assert [word.strip() for word in passage["tokens"] if word.strip()] == text.split()


def test_a_row_that_is_not_there_is_asked_for_and_then_opened(case):
    found = TokenMap.from_dict(stored(case, "token map"))
    data = token_map_data(found, case, {"sentence": 0})
    assert (data["sentences"], data["chosen"]) == ([1, None], 1)
    assert token_map_data(found, case, {"sentence": 1})["chosen"] == 0
    assert token_map_data(found, case, {"token": 3})["chosen"] == 2 + 3
    asked = [piece["asks"]["token"] for piece in data["answer"] if piece["asks"]]
    assert asked == sorted(asked) and min(asked) >= 14
    markers = [piece["text"] for piece in data["answer"] if piece["row"] is None and not piece["asks"]]
    assert "cite_1" in "".join(markers)


def test_the_hint_of_a_map_names_only_what_is_drawn(case):
    found = TokenMap.from_dict(stored(case, "token map"))
    hint = token_map_data(found, case)["hint"]
    assert "A dotted sentence is not computed." in hint and "Wavy: the model would" in hint
    assert "Wavy" not in token_map_data(replace(found, argmax_differs=()), case)["hint"]


def test_methods_that_ran_are_compared_and_only_those_by_the_scorer(case):
    model = tiny_model("llama").name
    run = methods_run(case, model)
    assert set(run) == {"occlusion", ALONE, BOTH_WAYS, "input x gradient", "value-weighted attention"}
    assert methods_run(case, "another") == {}
    again = next(a for a in case.analyses if a.kind == "occlusion")
    other = Analysis.from_dict({**again.to_dict(), "id": "x", "result": {**again.stored(), "model": "another"}})
    assert methods_run(replace(case, analyses=(*case.analyses, other)), model) == run, "a later run by another model"
    drawn = agreement_table(run, (0, len(ANSWER)))
    assert sum(cell.text.startswith("ρ") for row in drawn.rows for cell in row) == 10
    for name, field in ((ALONE, "alone"), (BOTH_WAYS, "gained")):
        assert np.array(run[name].scores) == pytest.approx(np.array(stored(case, "occlusion")["details"][field]))


def test_a_partial_run_is_not_compared(case):
    whole = next(a for a in case.analyses if a.kind == "occlusion")
    cut = {name: [row[:2] for row in whole.stored()[name]] for name in ("scores", "per_token")}
    short = {**whole.stored(), "sources": [[1], [2]], **cut}
    partial = Case.from_dict({**case.to_dict(), "analyses": [{**whole.to_dict(), "result": short}]})
    assert methods_run(partial, tiny_model("llama").name) == {}


def test_banners_and_times():
    assert is_banner(banner("a", "b"))
    assert is_banner("Not scored, because the run has not reached them: passage 4.")
    assert not is_banner("Approximate: a sparse linear fit.")


def test_seconds_are_those_of_the_last_run_by_the_same_model(case):
    model = tiny_model("llama").name
    last = [a for a in case.analyses if a.stamp.model == model][-1].stored()
    expected = 30 * last["seconds"] / (last["forwards"] + 2 * last["backwards"])
    assert f"about {about(expected)}, based" in seconds_said(case, model, 30)
    assert seconds_said(case, "another", 30) == ""
    first = next(a for a in case.analyses if a.kind == OCCLUSION and a.stamp.model == model).stored()
    pace = first["seconds"] / (first["forwards"] + 2 * first["backwards"])
    assert f"about {about(3000 * pace)}, based" in seconds_said(case, model, 3000, OCCLUSION)


def draw_attr_rag(result, case):
    from components.attribution_tabs import attr_rag_view
    from engine.core.values import Case
    from engine.methods.attr_rag import AttrRag

    attr_rag_view(AttrRag.from_dict(result), Case.from_dict(case))


def test_a_selection_shows_drops_filled_gaps_and_both_answers_as_one_text(case):
    scorer = ScriptedScorer(lambda passages, words, t: -3.0 + sum("gamma" in text for text in passages.values()))
    found = run(quote_wanted("beta"), score=scored_by(scorer, writer="quoting reader"))
    app = AppTest.from_function(
        draw_attr_rag, kwargs={"result": found.to_dict(), "case": case.to_dict()}, default_timeout=60
    ).run()
    assert not app.exception
    drawn = "".join(str(html.proto.body) for html in app.get("html"))
    assert "+3.00" in drawn and "not scored" not in drawn
    assert "Written by quoting reader" in drawn
    other = with_drops(found, scored_by(ScriptedScorer(lambda p, w, t: -1.0), writer="quoting reader"))
    unscored = replace(other, drops=None)
    again = AppTest.from_function(
        draw_attr_rag, kwargs={"result": unscored.to_dict(), "case": case.to_dict()}, default_timeout=60
    ).run()
    assert "Drop, nats" in drawn
    assert "Drop, nats" not in "".join(str(html.proto.body) for html in again.get("html"))


def draw_used_supports(case):
    from components.used_supports import used_supports_view
    from engine.core.values import Case
    from engine.methods.used_supports import UseAndSupport, UsedSupports

    tiny = UseAndSupport(used=-0.001, supports=0.04, quadrant="neither")
    opened = Case.from_dict(case)
    spans = opened.answer.sentences[:1]
    used_supports_view(
        UsedSupports(spans, ((1,),), ((tiny,),), (0.1,), "placebo", "scorer", "verifier"), opened, key="used"
    )


def test_a_drop_that_rounds_to_nothing_is_not_minus_nothing(case):
    app = AppTest.from_function(draw_used_supports, kwargs={"case": case.to_dict()}).run()
    assert not app.exception
    drawn = "".join(str(html.proto.body) for html in app.get("html"))
    assert "+0.0<br>0.04" in drawn


def draw_flags(result, case):
    from components.token_map import flags_view
    from engine.analyses.token_map import TokenMap
    from engine.core.settings import Settings
    from engine.core.values import Case

    flags_view(TokenMap.from_dict(result), Case.from_dict(case), Settings(), "scorer")


def draw_check(case):
    from components.token_map import map_check
    from engine.analyses.token_map import map_of
    from engine.core.values import Case

    opened = Case.from_dict(case)
    model = next(a.stamp.model for a in opened.analyses if a.kind == "token map")
    map_check(opened, map_of(opened, "input x gradient", model), model)


def with_report(case, abpc, rankings=10, other="occlusion"):
    """The case with a check of its map, as if its ABPC had come out so; another ranking's is 0.5."""
    few = Settings().apply(["faithfulness.steps=2", "faithfulness.rankings=2"])
    report = analysed(case, FAITHFULNESS, tiny_model("llama"), few)
    mine, second = report.stored()["curves"]
    random = {"mean": 0.0, "deviation": 0.1, "low": -0.15, "high": 0.1, "n": rankings}
    curves = [{**mine, "abpc": abpc}, {**second, "abpc": 0.5, "ranking": other}]
    result = {**report.stored(), "curves": curves, "random": random}
    return replace(case, analyses=(*case.analyses, replace(report, result=result)))


def told(case):
    """The line at the map's legend: its words and its colour."""
    return badge(check_of(case, TokenMap.from_dict(stored(case, TOKEN_MAP))))


def checked(case):
    """The page's part on the check."""
    app = AppTest.from_function(draw_check, kwargs={"case": case.to_dict()}, default_timeout=60).run()
    assert not app.exception
    return app


def test_the_legend_of_a_map_tells_its_abpc(case):
    held = with_report(case, 0.2)
    assert told(held) == {"text": "ABPC +0.200, above all 10 random rankings (within ±0.150).", "stand": "good"}
    app = checked(held)
    assert not app.button and not app.caption
    assert told(case) is None


def test_a_map_below_a_reversed_random_ranking_is_not_above_random(case):
    held = with_report(case, 0.12)
    assert told(held)["stand"] == "bad"
    assert told(held)["text"].startswith("ABPC +0.120, not above all 10 random rankings (within ±0.150). Do not rely")
    assert told(held)["text"].endswith("Better: occlusion (+0.500).")
    assert not checked(held).button


def test_a_better_map_is_one_click_away(case):
    app = checked(with_report(case, 0.05, other="gradient norm"))
    (button,) = app.button
    assert button.label == "Map by gradient norm"
    button.click().run()
    assert app.session_state[f"map_method_{case.id}"] == "gradient norm"


def test_a_few_random_rankings_cannot_tell_and_a_button_runs_more(case):
    held = with_report(case, 0.5, rankings=8)
    assert told(held)["stand"] == "unsure" and "It takes 9" in told(held)["text"]
    components.cache.workbench().cases.put(held, ())
    assert [button.label for button in checked(held).button] == ["Check this map"]


def test_the_report_tells_the_abpc_of_a_map(case):
    said = "Faithfulness: not checked"
    assert said in markdown_report(case)
    drawn = markdown_report(with_report(case, 0.2))
    assert said not in drawn and "above all 10 random rankings" in drawn


FAST = {"faithfulness.steps": 2, "faithfulness.rankings": 9}


@pytest.fixture
def mapped(app, sample_home):
    """A saved case with a token map by a tiny model."""
    bench = components.cache.workbench()
    save_tiny(sample_home / "models" / "scorer")
    record = AuditRecord(question="What colour is the kiln?", passages=PASSAGES, answer=ANSWER)
    return bench.analyse(bench.audit(record).id, TOKEN_MAP, MapRows(model="scorer", method="gradient norm"))


def opened(case, **settings):
    """The tab of the map in a session of its own."""
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
    app.query_params["case"], app.session_state["attribution_tab"] = case.id, "Tokens"
    app.session_state["scorer"], app.session_state["groundwork_settings"] = "scorer", {**FAST, **settings}
    return app.run().switch_page("pages/inspect/attribution.py").run()


def drawn_until(app, done):
    """Draw the page until something is there."""
    deadline = time.monotonic() + 120
    while not done() and time.monotonic() < deadline:
        app.run()
    assert not app.exception
    assert done()


def report_of(case):
    return report_by(components.cache.workbench().cases.load(case.id), "scorer", Settings())


def checks(app, case):
    """The session's run of the check, None where it began none."""
    if "groundwork_runs" not in app.session_state:
        return None
    return app.session_state["groundwork_runs"].get(f"{FAITHFULNESS}:{case.id}")


def labels(app):
    return [button.label for button in app.button]


def test_the_check_follows_the_map_and_is_not_computed_again(mapped):
    app = opened(mapped)
    drawn_until(app, lambda: report_of(mapped) is not None)
    app.run()
    first = report_of(mapped)
    assert first.check_of("gradient norm").above_random is not None
    assert "Check this map" not in labels(app) and "Cancel" not in labels(app)
    again = opened(mapped)
    assert not again.exception and checks(again, mapped) is None
    # The map of another method needs its own rows, and nothing of what the two share.
    bench = components.cache.workbench()
    bench.analyse(mapped.id, TOKEN_MAP, MapRows(model="scorer", method="integrated gradients"))
    again.selectbox(key=f"map_method_{mapped.id}").set_value("integrated gradients").run()
    drawn_until(again, lambda: report_of(mapped).curve_of("integrated gradients") is not None)
    assert report_of(mapped).curve_of("gradient norm") == first.curve_of("gradient norm")
    assert report_of(mapped).random == first.random


def test_the_check_measures_the_ranking_that_is_drawn(mapped):
    """A map of the logit is checked as one of the logit, whatever is set by now; its check is not that of a new map."""
    drawn_until(opened(mapped, **{"gradient.target": "log_probability"}), lambda: report_of(mapped) is not None)
    cases, bench = components.cache.workbench().cases, components.cache.workbench()
    held = cases.load(mapped.id)
    assert check_of(held, map_of(held, "gradient norm", "scorer")) is not None
    other = bench.using(Settings().apply(["gradient.target=log_probability"]))
    again = other.analyse(mapped.id, TOKEN_MAP, MapRows(model="scorer", method="gradient norm"))
    assert check_of(again, map_of(again, "gradient norm", "scorer")) is None


def test_a_cancelled_check_waits_for_its_button(mapped):
    held = threading.Event()
    for _ in range(2):  # both threads of the lane are taken, so the check waits for its turn
        components.cache.analyses().start(lambda run: held.wait(120))
    try:
        app = opened(mapped)
        next(button for button in app.button if button.label == "Cancel").click().run()
        drawn_until(app, lambda: "Check this map" in labels(app))
        cancelled = checks(app, mapped)
        app.run()
        assert checks(app, mapped) is cancelled
    finally:
        held.set()
    assert cancelled.was_cancelled and report_of(mapped) is None
    next(button for button in app.button if button.label == "Check this map").click().run()
    drawn_until(app, lambda: report_of(mapped) is not None)


def test_a_check_that_is_not_wanted_or_takes_long_waits_for_a_click(mapped):
    off = opened(mapped, **{"faithfulness.check_maps": False})
    slow = replace(TokenMap.from_dict(stored(mapped, TOKEN_MAP)), seconds=9000.0)
    analysis = replace(mapped.analyses[-1], result=slow.to_dict())
    assert "Check this map" in labels(off) and any("forward passes" in c.value for c in off.caption)
    keep(components.cache.workbench().cases, mapped.id, analysis)
    long = opened(mapped)
    assert "Check this map" in labels(long) and any("h, based on the last run" in c.value for c in long.caption)
    assert checks(off, mapped) is checks(long, mapped) is None


def test_a_signed_off_case_is_not_checked(mapped):
    components.cache.workbench().cases.add_marks(mapped.id, sign_off("R. Viewer", "stands", "Read it."))
    app = opened(mapped)
    assert not app.exception and "Check this map" in labels(app) and checks(app, mapped) is None
    assert all(button.disabled for button in app.button if button.label in ("Check this map", "Run again"))
    assert any("Make a new version of it to run this." in caption.value for caption in app.caption)


def draw_agreement(case):
    from components.token_map import map_agreement
    from engine.analyses.token_map import map_of, methods_run
    from engine.core.values import Case

    opened = Case.from_dict(case)
    model = next(a.stamp.model for a in opened.analyses if a.kind == "token map")
    map_agreement(opened, map_of(opened, "input x gradient", model), methods_run(opened, model)["occlusion"])


def test_a_map_that_differs_from_occlusion_says_which_to_go_by(case):
    app = AppTest.from_function(draw_agreement, kwargs={"case": case.to_dict()}, default_timeout=60).run()
    assert not app.exception
    (said,) = [caption.value for caption in app.caption]
    found, beside = TokenMap.from_dict(stored(case, "token map")), Attribution.from_dict(stored(case, "occlusion"))
    rho = agreement({"map": replace(found.by_passage(), method="map"), "occlusion": beside})[0].rho
    assert f"Rank correlation over 3 passages: {rho:+.2f}" in said
    assert said.startswith("Agrees" if rho >= 0.5 and "Both put" in said else "Differs")
    assert ("Check this map" in said) == said.startswith("Differs")


def test_occlusion_is_told_under_each_passage_of_a_map_where_it_has_the_row(case):
    found, beside = TokenMap.from_dict(stored(case, "token map")), Attribution.from_dict(stored(case, "occlusion"))
    rows = occluded(found, beside)
    assert len(rows) == len(found.rows)
    best = max(range(3), key=lambda j: beside.scores[0][j])
    assert rows[0][best] == f"occlusion {beside.scores[0][best]:+.2f} nats, rank 1"
    assert rows[1] is not None and set(rows[2:]) == {None}


def test_flags_stand_beside_chance_and_the_trigger_beside_the_papers_verdict(case):
    app = AppTest.from_function(
        draw_flags, kwargs={"result": stored(case, "token map"), "case": case.to_dict()}, default_timeout=60
    ).run()
    assert not app.exception
    drawn = "".join(str(html.proto.body) for html in app.get("html"))
    assert "By chance a passage ranks high at a rate of" in drawn
    assert "With 3 passages this rule flags almost everything" in drawn
    assert "negative result" in drawn
    assert any("No passages are marked" in caption.value for caption in app.caption)


def test_an_unticked_passage_is_left_out_and_the_answer_written_again(app, case, sample_home):
    bench = components.cache.workbench()
    save_tiny(sample_home / "models" / "scorer")
    bench.cases.save(replace(case, origin="generated", stamp=Stamp(model=READER), analyses=()))
    app.query_params["case"] = case.id
    app.session_state["scorer"] = "scorer"
    app.session_state["attribution_tab"] = "Without passages"
    app.run().switch_page("pages/inspect/attribution.py").run()
    next(b for b in app.checkbox if b.label.startswith("1 ")).uncheck().run()
    deadline = time.monotonic() + 120
    while not any("Without them the original" in c.value for c in app.caption) and time.monotonic() < deadline:
        app.run()
    assert not app.exception
    (said,) = [c.value for c in app.caption if "Without them the original" in c.value]
    assert "; scorer). Written by reader; not saved" in said
    assert bench.cases.load(case.id).analyses == ()


def test_an_answer_without_a_passage_can_be_asked_for_again_after_it_was_cancelled(app, case):
    held = threading.Event()
    components.cache.questions().start(lambda run: held.wait(120))  # the next one waits for its turn
    write = lambda: next(button for button in app.button if button.label == "Write without passage 1")  # noqa: E731
    try:
        on_tab(app, case, "Without passages", "scorer")
        next(box for box in app.checkbox if box.label.startswith("1 ")).uncheck().run()
        write().click().run()
        next(button for button in app.button if button.label == "Cancel").click().run()
        drawn_until(app, lambda: "Cancel" not in labels(app))
        assert not write().disabled and app.info
        write().click().run()
        assert "Cancel" in labels(app)
        next(button for button in app.button if button.label == "Cancel").click().run()
    finally:
        held.set()


def test_a_prompt_that_is_too_long_to_score_still_gives_the_new_answer(case):
    long = tuple(replace(p, text=p.text * 40) for p in case.passages)
    write = lambda question, passages, watch: Written(answer=Answer(text="Green."), stamp=Stamp(model="w"))  # noqa: E731
    found = removal(replace(case, passages=long, prompt=None), [1], write, tiny_model("llama"), Settings())
    assert found.answer.text == "Green." and found.drop is None and "tokens" in found.why


def on_tab(app, case, name, scorer):
    """The page's tab of that name, and what it draws."""
    components.cache.workbench().cases.save(case)
    app.query_params["case"] = case.id
    app.session_state["attribution_tab"], app.session_state["scorer"] = name, scorer
    app.run().switch_page("pages/inspect/attribution.py").run()
    assert not app.exception
    return "".join(str(html.proto.body) for html in app.get("html"))


def test_another_method_that_has_run_stays_in_the_list_with_its_result(app, case):
    drawn = on_tab(app, case, "Faithfulness", tiny_model("llama").name)
    box = next(box for box in app.selectbox if box.label == "Another method")
    assert box.value == "value-weighted attention"
    assert [label for label in box.options if label.endswith("(run)")] == ["Value-weighted attention (run)"]
    assert "value-weighted attention: score of each source" in drawn
    assert "Run again" in labels(app)


@pytest.mark.parametrize("tab", ["Occlusion", "Faithfulness"])
def test_results_of_another_scorer_are_said_to_be_its_own(app, case, tab):
    own = tiny_model("llama").name
    said = f"These results are by {own}. another has not scored this answer yet."
    assert said in on_tab(app, case, tab, "another")
    assert said not in on_tab(app, case, tab, own)


def test_a_row_that_was_asked_for_gives_way_to_the_sentence_selected_since(app, case, monkeypatch):
    own = tiny_model("llama").name
    on_tab(app, case, "Tokens", own)
    method = app.selectbox(key=f"map_method_{case.id}").value
    chosen = []
    monkeypatch.setattr("components.token_map.heat_map", lambda data, **given: chosen.append(data["chosen"]))
    app.session_state[f"row of {case.id}, {method}"] = (None, {"token": 3})
    app.run()
    app.query_params["sentence"] = "1"
    app.run()
    assert chosen == [5, 1]  # the token's row, after the answer's and one sentence's; then the sentence's


def test_a_problem_without_an_answer_is_not_said_to_have_come_without_passages(app, case):
    on_tab(app, replace(case, passages=(), answer=Answer(text="", finished=False), analyses=()), "Occlusion", "scorer")
    assert [info.value for info in app.info] == ["This problem has no answer yet. Work it out on Steps."]


def test_words_are_counted_without_a_model_and_a_click_adds_them_to_the_report(app, case):
    bench = components.cache.workbench()
    bench.cases.save(replace(case, analyses=()))
    app.query_params["case"] = case.id
    app.session_state["attribution_tab"] = "Occlusion"
    app.session_state["word_overlap"] = True
    app.run().switch_page("pages/inspect/attribution.py").run()
    drawn = "".join(str(html.proto.body) for html in app.get("html"))
    assert "Counted, not scored." in drawn and "The kiln is green." in drawn
    assert bench.cases.load(case.id).analyses == (), "the count is not stored before it is asked for"
    next(button for button in app.button if button.label == "Add to the report").click().run()
    drawn_until(app, lambda: bench.cases.load(case.id).analyses != ())
    assert [analysis.kind for analysis in bench.cases.load(case.id).analyses] == [WORD_OVERLAP]
    assert "Word overlap" in markdown_report(bench.cases.load(case.id))
    drawn_until(app, lambda: any("has these counts" in caption.value for caption in app.caption))
    assert "Add to the report" not in labels(app)


def test_words_of_the_answer_are_contrasted_with_others(app, case, sample_home):
    save_tiny(sample_home / "models" / "scorer")
    on_tab(app, case, "Contrast", "scorer")
    compare = next(button for button in app.button if button.label == "Compare")
    assert compare.disabled and compare.help == "Enter words of the answer, and other words."
    written, instead = (next(box for box in app.text_input if box.label == name) for name in CONTRASTED)
    assert written.placeholder and instead.placeholder
    written.input("nowhere to be found").run()
    instead.input("grey").run()
    assert any("does not have the words" in error.value for error in app.error)
    word = case.answer.text.split()[0]
    next(box for box in app.text_input if box.label == CONTRASTED[0]).input(word).run()
    next(button for button in app.button if button.label == "Compare").click().run()
    deadline = time.monotonic() + 120
    while not any("speaks" in text.value or "unrelated" in text.value for text in app.markdown):
        assert time.monotonic() < deadline
        app.run()
    assert not app.exception
    (kept,) = KIND.of(components.cache.workbench().cases.load(case.id))
    assert (kept.written, kept.instead) == (word, "grey")
    assert any(in_words(kept) in text.value for text in app.markdown)
