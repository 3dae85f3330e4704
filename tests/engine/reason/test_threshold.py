"""T: the percentile by hand, gold found in the stored text, what is kept, and who is asked to calibrate."""

from __future__ import annotations

import json

import numpy as np
import pytest

from engine.core.errors import RecordError
from engine.core.settings import Chunking
from engine.core.values import Passage
from engine.corpus.collection import Collection
from engine.methods.raise_.threshold import (
    LabelledQuestion,
    calibrate,
    calibrations,
    gold_passages,
    keep,
    labelled_pairs,
    published,
    threshold_for,
)
from engine.models.embedder import ScriptedEmbedder

TEXT = "Ice floats because it expands on freezing. Water is densest at four degrees. Salt lowers the freezing point."


class Angles:
    """An embedder of two dimensions: a text that is a number is at that cosine from the text "axis"."""

    name = "angles"
    dimensions = 2

    def embed(self, texts, watch=None):
        cosines = np.array([1.0 if t == "axis" else float(t) for t in texts])
        return np.stack([cosines, np.sqrt(1 - cosines**2)], axis=1).astype(np.float32)


def passage(text: str) -> Passage:
    return Passage(id=text, document="d", title="", ordinal=0, start=0, end=len(text), text=text)


def test_t_is_the_second_percentile_of_the_cosines():
    # 51 cosines 0.00, 0.01, ..., 0.50: two hundredths of the way through 50 gaps is the second smallest.
    pairs = [("axis", passage(f"{i / 100:.2f}")) for i in range(51)]
    found = calibrate(Angles(), pairs, "notes")
    assert found.value == pytest.approx(0.01, abs=1e-6)
    assert found.similarities == pytest.approx([i / 100 for i in range(51)], abs=1e-6)
    assert "51 labelled pairs of notes" in found.source
    assert found.source.startswith("ours")


def test_too_few_pairs_are_refused():
    with pytest.raises(RecordError, match="19 labelled pairs"):
        calibrate(Angles(), [("axis", passage("0.5"))] * 19, "notes")


def test_each_embedder_has_its_own_t():
    name = "facebook/dpr-question_encoder-single-nq-base"
    assert (published(name).value, published(name, easier=True).value) == (0.84, 0.80)
    assert published("all-MiniLM-L6-v2").value == published("sentence-transformers/all-MiniLM-L6-v2").value == 0.40
    assert published("all-MiniLM-L6-v2").source.startswith("ours")
    with pytest.raises(RecordError, match="calibrate-threshold"):
        threshold_for("somebody/else")


def test_a_calibration_is_kept_for_its_embedder_alone():
    assert calibrations() == {}
    found = calibrate(Angles(), [("axis", passage("0.5"))] * 20, "notes")
    keep(found)
    assert threshold_for("angles") == found
    assert threshold_for("all-MiniLM-L6-v2").value == 0.40
    keep(calibrate(Angles(), [("axis", passage("0.25"))] * 20, "notes"))
    assert threshold_for("angles").value == pytest.approx(0.25)


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
