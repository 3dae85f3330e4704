"""Real sentences for training: cutting, holding out, and questions that fit their sentence."""

import json
import random

import pytest

from engine.train.real_text import cloze, cut, held_out, load_real_text, located, real_example, tidy


@pytest.fixture
def folder(tmp_path):
    kept = next(t for t in ("Alder", "Birch", "Cedar") if not held_out(t))
    out = next(f"Title {i}" for i in range(1000) if held_out(f"Title {i}"))
    text = "The mill was built in 1820 by two brothers. It burned down forty years later in June. Nobody rebuilt it."
    (tmp_path / "nq_gold_passage").mkdir()
    (tmp_path / "vitaminc").mkdir()
    docs = [{"_id": "1", "title": kept, "text": text}, {"_id": "2", "title": out, "text": text}]
    lines = "\n".join(json.dumps(d) for d in docs)
    (tmp_path / "nq_gold_passage" / "corpus.jsonl").write_text(lines)
    asked = {"question": "when was the mill built", "passage": text, "answers": ["1820"], "title": kept}
    (tmp_path / "nq_gold_passage" / "qa.jsonl").write_text(json.dumps(asked))
    claim = {"claim": "The lake froze .", "evidence": "In that winter the whole lake froze .", "label": "supportive"}
    (tmp_path / "vitaminc" / "train.jsonl").write_text(json.dumps({**claim, "page": kept}))
    return tmp_path


def test_treebank_marks_are_undone():
    assert tidy("The mill -LRB- 1820 -RRB- burned , they say .") == "The mill (1820) burned, they say."


def test_a_text_is_cut_at_sentence_ends_and_short_pieces_are_left_out():
    assert cut("The mill was built in 1820. No. It burned down in June.") == (
        "The mill was built in 1820.",
        "It burned down in June.",
    )


def test_held_out_documents_are_not_read(folder):
    text = load_real_text(folder)
    assert len(text.documents) == 1
    assert {q.sentence for q in text.questions} == {
        "The mill was built in 1820 by two brothers.",
        "In that winter the whole lake froze.",
    }


def test_the_answer_is_a_sentence_of_the_cited_passage(folder):
    text = load_real_text(folder)
    for seed in range(30):
        example = real_example(text, 3, random.Random(seed))
        (asked,) = example.asked
        assert asked.sentence in example.passages[example.numbers.index(asked.passage)]


def test_a_cloze_question_uses_words_of_the_sentence_in_order():
    sentence = "The mill was built in 1820 by two brothers."
    for seed in range(10):
        question = cloze(sentence, random.Random(seed))
        words = [w for w in ("mill", "built", "1820", "two", "brothers") if w in question]
        assert words and [question.index(w) for w in words] == sorted(question.index(w) for w in words)


def test_a_question_goes_with_the_first_sentence_that_holds_an_answer():
    found = list(located("when", "The mill is old here. It was built in 1820. It fell in 1820.", ["1820"]))
    assert [q.sentence for q in found] == ["It was built in 1820."]
