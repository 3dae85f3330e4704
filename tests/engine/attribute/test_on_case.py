"""Attribution of a whole case: prompt, banner, sources, and sums that agree between the map and the table."""

from __future__ import annotations

import numpy as np
import pytest

from engine.answer.citations import annotate
from engine.answer.prompt import build_prompt
from engine.attribute.aggregate import passage_attribution
from engine.attribute.input_x_gradient import input_x_gradient
from engine.attribute.on_case import (
    TokenMap,
    faithfulness_of,
    occlusion_of,
    placebos_for,
    sources_of,
    subject,
    token_map_of,
)
from engine.errors import AttributionError
from engine.records import AuditRecord
from engine.settings import Settings
from engine.types import Answer, Attribution, Case, ChunkSet, Stamp
from tests.tiny import tiny_model

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


def test_a_case_without_passages_says_so(model):
    with pytest.raises(AttributionError, match="no passages"):
        subject(make_case(passages=()), model, Settings())


def test_occlusion_of_a_case_scores_every_passage_and_stamps_its_inputs(model):
    analysis = occlusion_of(make_case(), model, Settings())
    found = Attribution.from_dict(analysis.result)
    assert found.sources == ((1,), (2,), (3,))
    assert len(found.scores) == 1 + 2
    assert analysis.stamp.model == model.name
    assert analysis.stamp.inputs


def test_the_rows_of_the_token_map_sum_to_the_table_of_passages(model):
    case, settings = make_case(), Settings()
    found = TokenMap.from_dict(token_map_of(case, model, settings).result)
    prompt, answer, _ = subject(case, model, settings)
    spans = ((0, len(ANSWER)), *answer.sentences)
    table = passage_attribution(input_x_gradient(model, prompt, answer, spans=spans), model.encode(prompt))
    sums = np.array([[sum(passage) for passage in row] for row in found.rows[: len(spans)]])
    assert sums == pytest.approx(np.array(table.scores), rel=1e-4, abs=1e-5)


def test_token_rows_stop_at_the_budget_and_say_so(model):
    settings = Settings().apply(["gradient.token_budget=400"])
    found = TokenMap.from_dict(token_map_of(make_case(), model, settings).result)
    length = len(model.encode(build_prompt("What colour is the kiln?", make_case().passages)).ids)
    assert len(found.tokens) == 400 // length
    assert any("have rows of their own" in note for note in found.notes)


def test_token_spans_of_a_passage_cover_its_words(model):
    found = TokenMap.from_dict(token_map_of(make_case(), model, Settings()).result)
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
    drawn = placebos_for(case, (*case.passages, *others), 2, seed=1)
    held = {p.document for p in case.passages}
    assert all(p.document not in held for p in drawn)
    assert drawn == placebos_for(case, (*case.passages, *others), 2, seed=1)


def test_the_faithfulness_report_holds_both_rankings_and_the_random_ones(model):
    settings = Settings().apply(["faithfulness.steps=3", "faithfulness.rankings=4"])
    result = faithfulness_of(make_case(), model, settings).result
    assert [curve["ranking"] for curve in result["curves"]] == ["input x gradient", "occlusion"]
    assert result["random"]["n"] == 4
    assert all(-1 <= curve["abpc"] <= 1 for curve in result["curves"])
    assert result["forwards"] > 0
