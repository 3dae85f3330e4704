"""Attribution of a whole case: prompt, banner, sources, and sums that agree between the map and the table."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from engine.analyses.attribution import placebos_for, settings_of, subject
from engine.analyses.faithfulness import FaithfulnessReport, rows_needed
from engine.analyses.kind import FAITHFULNESS, OCCLUSION, SENTENCES, TOKEN_MAP, Loaders
from engine.analyses.occlusion import sources_of, top_passages
from engine.analyses.registry import kind_named
from engine.analyses.token_map import (
    KIND,
    MapRows,
    TokenMap,
    concentration_of,
    flags_of,
    methods_run,
    passes_of,
    rows_for_flags,
)
from engine.answer.citations import annotate
from engine.answer.prompt import build_prompt
from engine.cases.review import Review
from engine.cases.store import added
from engine.core.errors import AttributionError, CannotDo
from engine.core.progress import Watch
from engine.core.settings import Settings
from engine.core.values import Answer, Attribution, AuditRecord, Case, ChunkSet, Details, Stamp
from engine.corpus.collection import Collection
from engine.methods import hierarchy, registry
from engine.methods.aggregate import passage_attribution
from engine.methods.faithfulness import Curves, RandomABPC, agreement
from engine.methods.input_x_gradient import input_x_gradient
from engine.methods.refinement.gates import gradient_rows
from engine.methods.regeneration import METHOD as REGENERATION, WRITTEN
from engine.models.embedder import ScriptedEmbedder
from tests.analysing import analysed, growing, replay_here
from tests.stopping import before_the_stop, stop_at
from tests.tiny import save_tiny, tiny_model

PASSAGES = ("The kiln of Ostrel is painted green.", "The kiln of Maren holds forty litres.", "Ostrel lies north.")
ANSWER = "The kiln is green. [cite_1] It lies north. [cite_3]"


def make_case(passages=PASSAGES, answer=ANSWER):
    record = AuditRecord(question="What colour is the kiln?", passages=passages, answer=answer)
    given = record.as_passages()
    return Case(
        id="c",
        question=record.question,
        passages=given,
        answer=annotate(Answer(text=answer), len(given)),
        stamp=Stamp(model="someone"),
        origin="imported",
    )


@pytest.fixture(scope="module")
def model():
    return tiny_model("llama")


def test_a_foreign_answer_is_tokenised_once_and_the_banner_names_both(model):
    prompt, answer, notes = subject(make_case(), model, Settings())
    assert prompt == build_prompt("What colour is the kiln?", make_case().passages)
    assert [t.id for t in answer.tokens] == [t.id for t in model.encode_answer(ANSWER).tokens]
    assert notes[0].startswith(f"Written by someone. Scored by {model.name}.")


def test_a_map_of_an_answer_of_markers_counts_them_where_the_setting_does(model):
    case = make_case(answer="[cite_1] [cite_3]")
    with pytest.raises(AttributionError, match="count the markers"):
        analysed(case, TOKEN_MAP, model, Settings())
    counted = Settings().with_values({"occlusion.count_citation_markers": True})
    found = TokenMap.from_dict(analysed(case, TOKEN_MAP, model, counted).result)
    assert found.argmax_differs == tuple(range(len(found.answer.tokens)))  # a tiny model would write none of them


def test_a_case_without_passages_says_so(model):
    with pytest.raises(AttributionError, match="no passages"):
        subject(make_case(passages=()), model, Settings())


def test_occlusion_of_a_case_scores_every_passage_and_stamps_its_inputs(model):
    analysis = analysed(make_case(), OCCLUSION, model)
    found = Attribution.from_dict(analysis.result)
    assert found.sources == ((1,), (2,), (3,))
    assert len(found.scores) == 1 + 2
    assert analysis.stamp.model == model.name
    assert analysis.stamp.inputs


@pytest.mark.parametrize(
    ("kind", "options"),
    [(OCCLUSION, {"alone": False}), (OCCLUSION, {"floors": False}), ("input x gradient", {"tokens": True})],
)
def test_a_replay_computes_with_the_options_of_the_run(model, kind, options):
    case = added(make_case(), analysed(make_case(), kind, model, **options))
    replayed = replay_here(case, Loaders(writer=lambda name: model, collection=Collection.open))
    found = {number.place: number.status for number in replayed.numbers if number.place.startswith(f"analyses[{kind}")}
    assert found and set(found.values()) == {"reproduced"}


def test_a_report_of_many_passages_leaves_each_one_out_also_where_a_ranking_is_added_later(model):
    settings = Settings().apply(["faithfulness.steps=3", "faithfulness.rankings=1", "occlusion.max_sources=2"])
    found = FaithfulnessReport.from_dict(analysed(make_case(), FAITHFULNESS, model, settings).result)
    assert [curve.ranking for curve in found.curves] == ["input x gradient", "occlusion"]
    one = analysed(make_case(), FAITHFULNESS, model, settings, methods=("input x gradient",))
    later = analysed(added(make_case(), one), FAITHFULNESS, model, settings, methods=("occlusion",))
    assert FaithfulnessReport.from_dict(later.result).curve_of("occlusion") == found.curve_of("occlusion")


def test_regeneration_without_passages_says_so(model):
    with pytest.raises(AttributionError, match="no source to leave out"):
        analysed(make_case(passages=()), REGENERATION, model, embedder=ScriptedEmbedder())


class Recording:
    """The tiny model, keeping the prompts that it is asked to continue."""

    def __init__(self, model):
        self.model, self.prompts = model, []

    def __getattr__(self, name):
        return getattr(self.model, name)

    def generate(self, prompt, *given):
        self.prompts.append(prompt)
        return self.model.generate(prompt, *given)


def test_regeneration_is_told_with_the_answer_written_here_and_a_passage_of_the_cases_length(model):
    writer, long = Recording(model), replace(make_case().passages[0], text=" ".join(f"w{n}" for n in range(100)))
    given = {"unrelated": [long], "embedder": ScriptedEmbedder()}
    found = analysed(make_case(), REGENERATION, writer, Settings().apply(["decoding.max_new_tokens=4"]), **given)
    notes = found.result.notes
    assert notes[0].startswith(WRITTEN) and f"{len(PASSAGES) + 3} answers written." in notes
    assert " w5 w6" in writer.prompts[-1].text and "w7" not in writer.prompts[-1].text
    blocks = str(kind_named(REGENERATION).blocks(make_case(), found.result, Review()))
    assert "Whole answer" in blocks and "forwards" not in blocks


def test_the_rows_of_the_token_map_sum_to_the_table_of_passages(model):
    case, settings = make_case(), Settings()
    found = mapped(model, EVERY, settings, case)
    prompt, answer, _ = subject(case, model, settings)
    spans = ((0, len(ANSWER)), *answer.sentences)
    table = passage_attribution(input_x_gradient(model, prompt, answer, spans=spans), model.encode(prompt))
    sums = np.array([[sum(passage) for passage in row] for row in found.rows[: len(spans)]])
    assert sums == pytest.approx(np.array(table.scores), rel=1e-4, abs=1e-5)


def test_a_registered_method_has_the_target_and_the_steps_that_its_stamp_names(model):
    settings = Settings().apply(["gradient.target=log_probability", "gradient.integrated_steps=3"])
    for name in ("input x gradient", "integrated gradients"):
        analysis = analysed(make_case(), name, model, settings)
        assert analysis.stored()["unit"] == analysis.stamp.settings["gradient"]["target"] == "log_probability"
    spans = len(analysis.stored()["spans"])
    assert analysis.stored()["backwards"] == 3 * spans


EVERY = MapRows(sentences=(0, 1), tokens=tuple(range(4)))


def fields(asked):
    """The rows that are asked for, without the model's name."""
    return {name: value for name, value in asked.to_dict().items() if name != "model"}


def map_analysis(model, asked=None, settings=None, case=None):
    return analysed(case or make_case(), TOKEN_MAP, model, settings, **fields(asked or MapRows()))


def mapped(model, asked=None, settings=None, case=None):
    return TokenMap.from_dict(map_analysis(model, asked, settings, case).result)


def test_a_map_begins_with_the_whole_answer_and_gains_the_rows_that_are_asked_for(model):
    case, first = make_case(), map_analysis(model)
    assert [len(first.stored()[name]) for name in ("rows", "sentences", "tokens")] == [1, 0, 0]
    assert (first.stored()["forwards"], first.stored()["backwards"]) == (1, 1)
    stored = replace(case, analyses=(first,))
    second = map_analysis(model, MapRows(sentences=(1,), tokens=(2,)), case=stored)
    third = map_analysis(model, EVERY, case=replace(case, analyses=(second,)))
    grown, at_once = TokenMap.from_dict(third.result), mapped(model, EVERY)
    assert (grown.sentences, grown.tokens) == (at_once.sentences, at_once.tokens)
    assert grown.sentences == make_case().answer.sentences
    for row, same in zip(grown.rows, at_once.rows, strict=True):
        assert np.concatenate(row) == pytest.approx(np.concatenate(same), rel=1e-4, abs=1e-6)
    assert (grown.forwards, grown.backwards) == (3, 7)


def test_the_cost_said_before_a_token_map_is_what_it_takes(model):
    case, asked = make_case(), MapRows(model=model.name, sentences=(1,), tokens=(2, 3))
    said = KIND.cost(case, asked, Settings())
    took = map_analysis(model, asked).stored()["backwards"]
    assert said.startswith(f"1 forward and {took} backward passes") and took == 4
    held = replace(case, analyses=(map_analysis(model, MapRows(model=model.name, sentences=(1,))),))
    assert KIND.cost(held, asked, Settings()).startswith("1 forward and 2 backward passes")
    again = KIND.cost(held, MapRows(model=model.name), Settings())
    assert again.startswith("1 forward and 1 backward pass over"), "run anew, it takes what it took"


@pytest.mark.parametrize("method", ["gradient norm", "integrated gradients", "value-weighted attention"])
def test_the_passes_of_a_map_are_those_that_it_takes(model, method):
    settings = Settings().apply(["gradient.integrated_steps=4"])
    asked = MapRows(model=model.name, method=method, sentences=(0, 1))
    took = mapped(model, asked, settings)
    assert passes_of(make_case(), asked, settings) == (took.forwards, took.backwards)


def test_rows_that_are_there_cost_nothing(model):
    held = map_analysis(model, EVERY)
    again = map_analysis(model, MapRows(tokens=(1,)), case=replace(make_case(), analyses=(held,)))
    assert again.result == held.result


def test_rows_under_other_settings_are_not_mixed(model):
    held = map_analysis(model, EVERY)
    other = Settings().apply(["gradient.target=log_probability"])
    found = mapped(model, MapRows(tokens=(1,)), other, replace(make_case(), analyses=(held,)))
    assert (found.target, found.tokens, found.sentences) == ("log_probability", (1,), ())


def test_rows_of_other_weights_are_not_mixed(model):
    held = map_analysis(model, EVERY)
    held = replace(held, stamp=replace(held.stamp, revision="other"))
    found = mapped(model, MapRows(tokens=(1,)), case=replace(make_case(), analyses=(held,)))
    assert (found.tokens, found.sentences) == ((1,), ())


def test_a_row_that_the_answer_does_not_have_is_refused(model):
    with pytest.raises(AttributionError, match="no sentence 3"):
        mapped(model, MapRows(sentences=(2,)))
    with pytest.raises(AttributionError, match="no token 1000"):
        mapped(model, MapRows(tokens=(999,)))
    with pytest.raises(CannotDo, match="whole passages"):
        mapped(model, MapRows(method="occlusion"))


def test_maps_by_other_methods_stand_beside_it_in_a_case(model):
    one = map_analysis(model)
    other = map_analysis(model, MapRows(method="value-weighted attention"))
    assert one.id != other.id
    held = replace(make_case(), analyses=(one, other))
    assert set(methods_run(held, model.name)) == {"input x gradient", "value-weighted attention"}


def test_the_proxy_of_a_hierarchy_is_in_its_stamp_and_used_again(model, tmp_path):
    save_tiny(tmp_path / "proxy")
    settings = Settings().apply([f"occlusion.proxy={tmp_path / 'proxy'}"])
    stamp = analysed(make_case(), hierarchy.METHOD, model, settings).stamp
    assert settings_of(stamp).occlusion.proxy == str(tmp_path / "proxy")


def test_flags_need_the_rows_of_the_first_content_tokens(model):
    settings = Settings()
    whole = mapped(model)
    assert flags_of(whole, {1: False}, settings) is None and concentration_of(whole, settings) is None
    wanted = rows_for_flags(whole, settings)
    assert len(wanted.tokens) == 10
    found = mapped(model, MapRows(tokens=(*wanted.tokens, 12)))
    flags = flags_of(found, {1: False, 2: True, 3: None}, settings)
    rows = np.abs([[sum(passage) for passage in row] for row in found.rows[1:11]])
    top = [int((np.argsort(-row)[:3] == 0).any()) for row in rows]
    assert (flags.tokens, flags.passages[0].times) == (10, sum(top))
    assert flags.passages[0].flagged == (sum(top) >= 3)
    assert "3 passages" in flags.sentence
    trigger = concentration_of(found, settings)
    assert (trigger.tokens, trigger.ratio) == (10, 1.5)


def test_passages_are_ranked_by_the_sum_of_absolute_relevance(model):
    """A passage whose tokens cancel out is not put last for it."""
    places = ((1, ((0, 3), (3, 6))), (2, ((0, 3),)), (3, ((0, 3),)))
    found = replace(mapped(model), passages=places, rows=((((3.0, -3.0), (1.0,), (0.5,))),))
    assert found.passage_rows() == ((0.0, 1.0, 0.5),)
    assert found.absolute_rows() == ((6.0, 1.0, 0.5),)
    other = replace(found.by_passage(), scores=((2.0, 1.0, 0.5),), details=Details())
    (pair,) = agreement({"map": found.by_passage(), "other": other})
    assert (pair.rho, pair.same_top) == (pytest.approx(1.0), True)


def length_of(model, prompt, answer, spans, watch):
    """A method of passages alone: the characters of a stretch, for every passage."""
    numbers = tuple((number,) for number in prompt.numbers)
    rows = tuple((float(end - start),) * len(numbers) for start, end in spans)
    return Attribution(
        method="length", model=model.name, unit="characters", spans=spans, sources=numbers, scores=rows, per_token=()
    )


def test_v2_is_triggered_by_any_registered_method(model):
    prompt, answer, _ = subject(make_case(), model, Settings())
    settings = Settings().apply(["gradient.first_tokens=3"])

    def ranked_by(name):
        return gradient_rows(model, prompt, answer, settings.apply([f"refinement.ranked_by={name}"]))

    occluded = registry.method("occlusion").attribute(model, prompt, answer, ((0, len(answer.text)),), Watch())
    rows = ranked_by("occlusion")
    tokens = list(rows.details.tokens)
    assert len(tokens) == 3
    assert np.array(rows.per_token) == pytest.approx(np.array(occluded.per_token)[tokens], rel=1e-3, abs=1e-4)
    assert ranked_by("value-weighted attention").method == "value-weighted attention"
    registry.register(registry.Method("length", length_of, "characters", needs="score"))
    try:
        rows = ranked_by("length")
    finally:
        registry.unregister("length")
    assert rows.scores == ((float(len(ANSWER)),) * 3,)
    assert all(0 < row[0] < 9 for row in rows.per_token)


def test_the_map_by_passage_is_the_registered_method(model):
    found = mapped(model, EVERY).by_passage()
    other = Attribution.from_dict(analysed(make_case(), "input x gradient", model).result)
    assert (found.spans, found.sources, found.unit) == (other.spans, other.sources, other.unit)
    assert np.array(found.scores) == pytest.approx(np.array(other.scores), rel=1e-4, abs=1e-5)


def test_a_stopped_report_keeps_its_curves_and_says_how_many_rankings(model):
    settings = Settings().apply(["faithfulness.steps=3", "faithfulness.rankings=6"])
    told = before_the_stop(growing(make_case(), FAITHFULNESS, model, settings, stop_at(3, "random")))
    result = told[-1].stored()
    assert result["random"]["n"] == 3
    assert any("3 of 6" in note for note in result["notes"])
    assert len(result["curves"]) == 2


def test_a_stop_before_anything_says_something_keeps_nothing(model):
    told = before_the_stop(growing(make_case(), FAITHFULNESS, model, None, stop_at(0, "scoring")))
    assert told == []


def test_sentences_are_those_of_the_passages_that_mattered(model):
    case = make_case()
    whole = analysed(case, OCCLUSION, model)
    numbers = top_passages(Attribution.from_dict(whole.result))
    stored = Case.from_dict({**case.to_dict(), "analyses": [whole.to_dict()]})
    found = analysed(stored, SENTENCES, model)
    assert found.stamp.settings["of"] == list(numbers)
    assert {where[0] for where in found.stored()["details"]["source_spans"]} == set(numbers)
    one = analysed(case, SENTENCES, model, passages=(2,))
    assert [where[0] for where in one.stored()["details"]["source_spans"]] == [2]


def test_rows_of_a_report_are_at_most_what_is_said_before(model):
    settings = Settings().apply(["faithfulness.steps=4", "faithfulness.rankings=3"])
    result = analysed(make_case(), FAITHFULNESS, model, settings).stored()
    said = rows_needed(3, settings.faithfulness)
    assert 0.7 * said <= result["forwards"] <= said


def test_token_spans_of_a_passage_cover_its_words(model):
    found = TokenMap.from_dict(map_analysis(model).result)
    for (_, spans), text in zip(found.passages, PASSAGES, strict=True):
        covered = {i for start, end in spans for i in range(max(0, start), min(len(text), end))}
        assert covered >= {i for i, character in enumerate(text) if character != " "}


def test_sources_follow_the_chunk_sets_and_loose_passages_stand_alone():
    case = make_case()
    chunk_set = ChunkSet(passages=(case.passages[0], case.passages[2]), text="", score=1.0)
    grouped = Case.from_dict({**case.to_dict(), "chunk_sets": [chunk_set.to_dict()]})
    assert sources_of(grouped) == ((1, 3), (2,))


def test_placebos_come_from_documents_that_the_case_does_not_hold():
    case = make_case()
    others = AuditRecord(question="q", passages=("a", "b", "c", "d"), answer="x").as_passages()
    drawn = placebos_for(case.passages, (*case.passages, *others), 2, seed=1)
    held = {p.document for p in case.passages}
    assert all(p.document not in held for p in drawn)
    assert drawn == placebos_for(case.passages, (*case.passages, *others), 2, seed=1)


def test_the_faithfulness_report_holds_both_rankings_and_the_random_ones(model):
    settings = Settings().apply(["faithfulness.steps=3", "faithfulness.rankings=4"])
    result = analysed(make_case(), FAITHFULNESS, model, settings).stored()
    assert [curve["ranking"] for curve in result["curves"]] == ["input x gradient", "occlusion"]
    assert result["random"]["n"] == 4
    assert all(-1 <= curve["abpc"] <= 1 for curve in result["curves"])
    assert result["forwards"] > 0


def test_citation_markers_count_in_every_attribution_where_they_are_asked_for(model):
    """One rule for markers in maps, method rows, curves and the rows behind flags; the stamp says so."""
    asked, case = Settings().apply(["occlusion.count_citation_markers=true", "faithfulness.rankings=2"]), make_case()
    prompt, answer, _ = subject(case, model, asked)
    counted = input_x_gradient(model, prompt, answer, count_citation_markers=True)
    table = passage_attribution(counted, model.encode(prompt)).scores[0]
    drawn = map_analysis(model, None, asked, case)
    assert TokenMap.from_dict(drawn.result).passage_rows()[0] == pytest.approx(table)
    assert drawn.stamp.settings["occlusion"] == {"count_citation_markers": True}
    assert "occlusion" not in map_analysis(model, None, Settings(), case).stamp.settings
    for name in ("input x gradient", "integrated gradients", "value-weighted attention", "occlusion"):
        scores = analysed(case, name, model, asked).stored()["scores"][0]
        assert scores != analysed(case, name, model).stored()["scores"][0]
        assert name != "input x gradient" or scores == pytest.approx(table)
    few = Settings().apply(["faithfulness.rankings=2"])
    curves, plain = (analysed(case, FAITHFULNESS, model, settings).stored()["curves"] for settings in (asked, few))
    assert all(one["morf"][0] != other["morf"][0] for one, other in zip(curves, plain, strict=True))
    rows = gradient_rows(model, prompt, answer, asked.apply(["gradient.first_tokens=99"]))
    assert list(rows.details.tokens) == list(range(len(answer.tokens)))
    assert rows.scores[0] == pytest.approx(table)
    many = asked.apply(["gradient.first_tokens=99"])
    assert rows_for_flags(TokenMap.from_dict(drawn.result), many).tokens == rows.details.tokens


def curves_of(ranking, shares, abpc):
    flat = (0.5,) * len(shares)
    return Curves(ranking, shares, flat, flat, flat, flat, abpc, 0.0)


@pytest.mark.parametrize(("shares", "better"), [((0.0, 1.0), ()), ((0.0, 0.5, 1.0), (("occlusion", 0.6),))])
def test_one_passage_is_no_ranking_that_does_better(shares, better):
    curves = curves_of("input x gradient", (0.0, 0.5, 1.0), 0.0), curves_of("occlusion", (0.0, 0.5, 1.0), 0.6)
    random = RandomABPC(mean=0.0, deviation=0.1, low=-0.2, high=0.2, n=20)
    report = FaithfulnessReport("m", curves, curves_of("passages", shares, 0.0), random, {}, ())
    assert report.check_of("input x gradient").better == better
    assert (report.whole_passages is None) is (not better)


def test_a_report_on_one_passage_says_that_it_cannot_be_ranked(model):
    case, settings = make_case(PASSAGES[:1]), Settings().apply(["faithfulness.steps=3", "faithfulness.rankings=2"])
    report = analysed(case, FAITHFULNESS, model, settings).result
    assert report.whole_passages is None
    assert "One passage cannot be ranked" in str(kind_named(FAITHFULNESS).blocks(case, report, Review()))
