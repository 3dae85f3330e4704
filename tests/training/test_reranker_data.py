from __future__ import annotations

import json
from itertools import islice
from random import Random

import pytest

from engine.models.embedder import ScriptedEmbedder
from training.reranker_data import first_stage, groups, hard_negatives, load_set

WORDS = ("harbour", "bridge", "tower", "canal", "market", "garden", "station", "library")


@pytest.fixture
def ranking(tmp_path):
    folder = tmp_path / "toy"
    folder.mkdir()
    rows = [
        {"_id": f"p{i}", "title": f"Page_{i}", "text": f"The {w} opened in {1900 + i}."} for i, w in enumerate(WORDS)
    ]
    asked = [
        {"id": f"q{i}", "question": f"when did the {w} open", "answers": [str(1900 + i)]} for i, w in enumerate(WORDS)
    ]
    write = lambda name, found: (folder / name).write_text("\n".join(map(json.dumps, found)), encoding="utf-8")  # noqa: E731
    write("corpus.jsonl", rows)
    write("qa.jsonl", asked)
    write("queries.jsonl", [{"_id": row["id"], "text": row["question"]} for row in asked])
    labels = "\n".join(f"q{i}\tp{i}\t1" for i in range(len(WORDS)))
    (folder / "qrels.tsv").write_text(f"query-id\tcorpus-id\tscore\n{labels}", encoding="utf-8")
    return load_set(tmp_path, "toy")


def test_held_out_passages_are_neither_gold_nor_negative_in_training(ranking):
    training = [ask for ask in ranking.questions if not ranking.held_out(ask.gold)]
    apart = [place for place in range(len(WORDS)) if ranking.held_out(place)]
    assert training and apart
    hard = hard_negatives(ranking, training, first_stage(ranking, training, ScriptedEmbedder(64)))
    for ask, places in zip(training, hard, strict=True):
        assert ask.gold not in places
        assert not set(places) & set(apart)
    told = [text for _, texts in islice(groups([(ranking, training, hard)], Random(1), 2), 50) for text in texts]
    assert not any(ranking.passages[place][2] in text for text in told for place in apart)


def test_a_group_opens_with_the_gold_text_and_no_negative_holds_an_answer(ranking):
    training = [ask for ask in ranking.questions if not ranking.held_out(ask.gold)]
    hard = hard_negatives(ranking, training, first_stage(ranking, training, ScriptedEmbedder(64)))
    gold = {ask.text: ask for ask in training}
    for question, (first, *others) in islice(groups([(ranking, training, hard)], Random(2), 2), 30):
        answer = gold[question].answers[0]
        assert answer in first
        assert first.startswith("Page ")
        assert len(others) == 2 and not any(answer in other for other in others)
