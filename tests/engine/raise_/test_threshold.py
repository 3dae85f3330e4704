"""T: the percentile by hand, gold found in the stored text, what is kept, and who is asked to calibrate."""

from __future__ import annotations

import json

import numpy as np
import pytest
from msgspec.structs import replace

from engine.core.errors import RecordError
from engine.core.settings import Chunking, Decoding
from engine.core.values import Hit, Passage
from engine.corpus.collection import Collection
from engine.corpus.samples import SAMPLES
from engine.methods.raise_.steps import search_prompt
from engine.methods.raise_.threshold import (
    FEWEST,
    LabelledQuestion,
    LabelledQuote,
    calibrate,
    calibrations,
    gold_passages,
    keep,
    labelled_pairs,
    logical_query,
    published,
    shipped,
    threshold_for,
)
from engine.methods.raise_.values import SubQuestion
from engine.models.embedder import ScriptedEmbedder
from engine.models.scripted import ScriptedWriter

TEXT = "Ice floats because it expands on freezing. Water is densest at four degrees. Salt lowers the freezing point."


def passage(text: str) -> Passage:
    return Passage(id=text, document="d", title="", ordinal=0, start=0, end=len(text), text=text)


def searched(cosines, others=(0.9, 0.0)):
    """A labelled pair for each cosine; the search of its logical query brings the gold at that cosine, and others."""
    pairs = [(f"q{i}", passage(f"gold {i}")) for i in range(len(cosines))]

    def find(text):
        number = int(text.removeprefix("logic of q"))
        hits = [(f"gold {number}", cosines[number]), *((f"other {o}", o) for o in others)]
        return tuple(Hit(passage=passage(t), score=c) for t, c in hits if c is not None)

    return pairs, find


def calibrated(cosines, embedder="angles", corpus="notes", **more):
    pairs, find = searched(cosines, **more)
    return calibrate(pairs, "logic of {}".format, find, embedder=embedder, corpus=corpus, writer="w")


def test_t_keeps_95_percent_of_the_gold_that_logical_queries_find_and_drops_something():
    """By hand: 40 cosines 0.00 to 0.39; two may go, so T is the third smallest; each search brings 0.9 and 0.0 too."""
    found = calibrated([i / 100 for i in range(40)])
    assert found.value == pytest.approx(0.02)
    assert found.gold_kept == pytest.approx(38 / 40)
    assert found.dropped == pytest.approx((2 + 40) / 120)
    assert "Logical queries by w find 40 of 40 labelled gold passages in notes" in found.source


def test_gold_that_the_search_does_not_find_moves_no_t():
    found = calibrated([0.5] * 30 + [None] * 30)
    assert (found.value, len(found.similarities)) == (0.5, 30)


def test_what_is_searched_is_what_the_model_writes_of_the_sub_question():
    model = ScriptedWriter({"Why?": "Ice expands.", "Empty?": " "})
    write = logical_query(model, Decoding())
    assert (write("Why?"), write("Empty?")) == ("Ice expands.", "Empty?")
    assert model.prompts[0] == search_prompt("logical query", SubQuestion(question="Why?", query="Why?")).text


def test_too_little_gold_is_refused():
    with pytest.raises(RecordError, match="finds 19 of the 30 labelled gold passages"):
        calibrated([0.5] * 19 + [None] * 11)


def test_every_sample_corpus_has_a_t_that_keeps_its_gold_and_drops_something():
    assert {t.corpus for t in shipped()} == {sample.name for sample in SAMPLES}
    for found in shipped():
        assert len(found.similarities) >= FEWEST
        assert np.mean(np.array(found.similarities) >= found.value) >= 0.95
        assert found.gold_kept >= 0.95 and found.dropped > 0
        assert threshold_for(found.embedder, found.corpus) == found


def test_each_embedder_has_its_own_t():
    name = "facebook/dpr-question_encoder-single-nq-base"
    assert published(name).value == published(f"towers:{name},{name}").value == 0.84
    assert published("/home/me/models/dpr-notes-minilm") is None
    assert published("all-MiniLM-L6-v2").value == published("sentence-transformers/all-MiniLM-L6-v2").value
    assert published("all-MiniLM-L6-v2").source.startswith("calibrated here")
    with pytest.raises(RecordError, match="calibrate-threshold"):
        threshold_for("somebody/else")


def test_a_calibration_is_kept_for_its_corpus_and_stands_in_for_others_of_its_embedder():
    assert calibrations() == {}
    found = calibrated([0.5] * 20)
    keep(found)
    assert threshold_for("angles", "notes") == threshold_for("angles", "letters") == found
    keep(calibrated([0.25] * 20, corpus="letters"))
    assert threshold_for("angles", "notes") == found
    assert threshold_for("angles", "letters").value == threshold_for("angles").value == 0.25
    assert threshold_for("all-MiniLM-L6-v2") == published("all-MiniLM-L6-v2")


def test_a_sample_corpus_keeps_its_own_t_until_it_is_calibrated_again():
    ours = shipped()[0]
    keep(calibrated([0.9] * 20, embedder=ours.embedder, corpus="notes"))
    assert threshold_for(ours.embedder, ours.corpus) == ours
    keep(calibrated([0.9] * 20, embedder=ours.embedder, corpus=ours.corpus))
    assert threshold_for(ours.embedder, ours.corpus).value == 0.9


@pytest.fixture
def collection(tmp_path):
    path = tmp_path / "c.jsonl"
    path.write_text(json.dumps({"_id": "ice", "title": "", "text": TEXT}) + "\n")
    made = Collection.create("c", ScriptedEmbedder(), Chunking(words=7))
    made.ingest([path])
    return made


def test_gold_is_found_where_the_words_stand(collection):
    snapshot = collection.snapshot()
    assert [p.text for p in gold_passages("densest at four", snapshot)] == ["Water is densest at four degrees."]
    both = gold_passages("expands on freezing. Water is densest", snapshot)
    assert [p.ordinal for p in both] == [0, 1]
    with pytest.raises(RecordError, match="holds the gold"):
        gold_passages("never written", snapshot)
    named = LabelledQuote(quote="densest at four", document="ice")
    assert gold_passages(named, snapshot) == gold_passages("densest at four", snapshot)
    with pytest.raises(RecordError, match="holds the gold"):
        gold_passages(replace(named, document="typo"), snapshot)


def test_labelled_steps_stand_in_for_the_question(collection):
    record = LabelledQuestion.from_dict(
        {
            "question": "Whole?",
            "gold": ["densest at four"],
            "steps": [
                {"question": "First?", "gold": ["Ice floats"]},
                {"question": "Second?", "gold": [{"document": "ice", "quote": "Salt lowers"}, "freezing point"]},
            ],
        }
    )
    pairs = labelled_pairs([record], collection)
    assert [(question, passage.ordinal) for question, passage in pairs] == [("First?", 0), ("Second?", 2)]
    plain = LabelledQuestion.from_dict({"question": "Whole?", "gold": ["densest at four"]})
    assert [(q, p.ordinal) for q, p in labelled_pairs([plain], collection)] == [("Whole?", 1)]
