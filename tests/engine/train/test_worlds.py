"""Generated worlds: what is asked is in the passages, and nothing comes from the sample corpora."""

import random
import re

import pytest

from engine.home import ASSETS
from engine.train.world_values import relations, table
from engine.train.worlds import (
    Asked,
    Difficulty,
    World,
    answering_example,
    citation_numbers,
    fact,
    make_world,
    missing,
    wordings,
)

HARD = Difficulty(syllables=3, sentences=3, alike=0.6, gaps=0.7, filler=0.3)


def examples(count: int, difficulty: Difficulty, seed: int = 0):
    rng = random.Random(seed)
    for _ in range(count):
        world = make_world(rng, 4, 3, difficulty)
        yield answering_example(world, 4, rng, difficulty, questions=3)


def test_the_cited_passage_holds_the_value_and_no_other_passage_states_the_sentence():
    for example in examples(60, HARD):
        for asked in example.asked:
            cited = example.passages[example.numbers.index(asked.passage)]
            assert asked.value.lower() in cited.lower()
            assert asked.value.lower() in asked.sentence.lower()
            others = [p for p, n in zip(example.passages, example.numbers, strict=True) if n != asked.passage]
            assert not any(asked.sentence in p for p in others)


def test_citation_numbers_ascend_without_repeats_and_have_gaps_when_asked_for():
    rng = random.Random(1)
    drawn = [citation_numbers(5, rng, Difficulty(gaps=1.0)) for _ in range(50)]
    assert all(list(n) == sorted(set(n)) and max(n) <= 12 for n in drawn)
    assert any(n != (1, 2, 3, 4, 5) for n in drawn)
    assert citation_numbers(5, rng, Difficulty(gaps=0.0)) == (1, 2, 3, 4, 5)


def test_an_unanswerable_question_asks_for_a_pair_that_no_passage_states():
    rng = random.Random(0)
    refused = 0
    for _ in range(100):
        world = make_world(rng, 3, 3, HARD)
        groups = [[fact(t, rng) for t in world.about(subject)[:2]] for subject in world.subjects()]
        stated = [f.triple for group in groups for f in group]
        known = Asked("?", "a sentence", "a value", 1)
        asked = missing(groups, known, rng)
        askable = {q.format(s=t.subject) for t in stated for q in wordings(t)[1]}
        refused += asked.passage is None
        assert asked is known or asked.question not in askable
    assert refused > 60


def test_the_same_seed_gives_the_same_examples():
    assert list(examples(3, HARD, seed=5)) == list(examples(3, HARD, seed=5))
    assert list(examples(3, HARD, seed=5)) != list(examples(3, HARD, seed=6))


def test_a_users_own_triples_are_put_into_words():
    world = World.of([("Velcor", "boiling point", "43 °C"), ("Velcor", "supplier", "Orvel Ltd")])
    example = answering_example(world, 1, random.Random(0), Difficulty(sentences=2), questions=2)
    text = " ".join(example.passages)
    assert "Velcor" in text
    assert all(a.value in text and a.value in a.sentence for a in example.asked)
    assert any("boiling point" in a.question or "supplier" in a.question for a in example.asked)


@pytest.mark.parametrize("kind", sorted(relations()))
def test_every_wording_of_a_relation_names_subject_and_object_once(kind):
    for relation in relations()[kind]:
        entry = table()[kind][relation]
        assert all(s.count("{s}") == 1 and s.count("{o}") == 1 for s in entry["say"])
        assert all(q.count("{s}") == 1 and "{o}" not in q for q in entry["ask"])
        assert len(entry["say"]) >= 3 and len(entry["ask"]) >= 2


def test_no_generated_sentence_or_name_stands_in_the_sample_corpora():
    paths = [p for p in (ASSETS / "corpora").rglob("*") if p.suffix in (".md", ".txt", ".jsonl")]
    samples = " ".join(p.read_text(encoding="utf-8") for p in paths)
    assert samples
    rng = random.Random(3)
    for _ in range(150):
        world = make_world(rng, 2, 2, Difficulty(syllables=2))
        for triple in world.triples:
            assert fact(triple, rng).statement not in samples
            name = triple.subject
            assert name not in samples or not re.search(rf"\b{re.escape(name)}\b", samples)


def test_general_wordings_serve_a_relation_that_the_table_does_not_know():
    triple = World.of([("Velcor", "half-life", "3 days")]).triples[0]
    say, ask = wordings(triple)
    assert all("half-life" in text for text in (*say, *ask))
