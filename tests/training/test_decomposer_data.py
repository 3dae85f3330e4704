from __future__ import annotations

import json
import random

import pytest

from engine.core.errors import InputError
from training.decomposer_data import kept, main, read_triples, samples

TRIPLES = [
    ["Ada Berg", "place of birth", "Cork"],
    ["Ada Berg", "occupation", "pilot"],
    ["Ada Berg", "ISNI", "0001"],
    ["Bea Holt", "employer", "Harbour Trust"],
    ["Bea Holt", "image", "bea.jpg"],
    {"subject": "Cleo Finn", "relation": "award", "object": "Silver Medal"},
]


def test_what_the_papers_rules_filter():
    assert kept([("A", "Idaho office", "B"), ("A", "postal code", "1"), ("A", "x", "http://b"), ("A", "x", " ")]) == [
        ("A", "Idaho office", "B")
    ]


def test_one_command_writes_texts_whose_clauses_are_verbatim_and_whose_subjects_are_apart(tmp_path):
    source = tmp_path / "triples.jsonl"
    source.write_text("\n".join(json.dumps(t) for t in TRIPLES), encoding="utf-8")
    main([str(source), "--out", str(tmp_path / "set"), "--samples", "30", "--held-out", "10"])
    rows = {
        name: [json.loads(line) for line in (tmp_path / "set" / f"{name}.jsonl").read_text().splitlines()]
        for name in ("train", "held_out")
    }
    assert (len(rows["train"]), len(rows["held_out"])) == (20, 10)
    people = ("Ada Berg", "Bea Holt", "Cleo Finn")
    said = {name: {p for p in people for row in found if p in row["text"]} for name, found in rows.items()}
    assert said["train"] and said["held_out"] and not said["train"] & said["held_out"]
    for row in (*rows["train"], *rows["held_out"]):
        assert " ".join(clause["text"] for clause in row["clauses"]) == row["text"]
        assert all(any(p in fact for p in people) for clause in row["clauses"] for fact in clause["facts"])
        assert "ISNI" not in row["text"] and ".jpg" not in row["text"]
    lora = json.loads((tmp_path / "set" / "lora.json").read_text())
    assert (lora["epochs"], lora["batch_size"], lora["gradient_accumulation"]) == (3, 1, 2)
    chats = [json.loads(line) for line in (tmp_path / "set" / "train_messages.jsonl").read_text().splitlines()]
    assert len(chats) == sum(1 + len(row["clauses"]) for row in rows["train"])
    assert chats[0]["messages"][-1]["content"].splitlines() == [c["text"] for c in rows["train"][0]["clauses"]]
    assert rows["train"][0]["text"] in chats[0]["messages"][-2]["content"]


def test_a_later_clause_may_have_a_pronoun_and_its_facts_have_the_name():
    person = [["Ada Berg", "sex or gender", "female"], *TRIPLES[:2], ["Ada Berg", "date of birth", "1 May 1911"]]
    found = list(samples([tuple(triple) for triple in person], 40, random.Random(0)))
    later = [clause for row in found for clause in row["clauses"][1::2]]
    assert later and all(clause["text"].startswith("She ") for clause in later)
    assert all(row["clauses"][0]["text"].startswith("Ada Berg ") for row in found)
    assert all(fact.startswith("Ada Berg ") for row in found for clause in row["clauses"] for fact in clause["facts"])
    assert any("Ada Berg was born on 1 May 1911" in clause["facts"] for row in found for clause in row["clauses"])
    unknown = list(samples([tuple(triple) for triple in TRIPLES[:2]], 40, random.Random(0)))
    assert all(clause["text"].startswith("Ada Berg ") for row in unknown for clause in row["clauses"])


def test_relations_without_a_wording_are_left_out_and_can_be_given_one(tmp_path):
    source, wordings = tmp_path / "triples.jsonl", tmp_path / "wordings.json"
    source.write_text('["Bo Berg", "time zone", "UTC"]\n["Bo Berg", "died_in", "Riga"]', encoding="utf-8")
    wordings.write_text('{"time zone": "keeps {o}"}', encoding="utf-8")
    said = {}
    for name, more in (("own", []), ("more", ["--predicates", str(wordings)])):
        main([str(source), "--out", str(tmp_path / name), "--samples", "20", "--held-out", "1", *more])
        said[name] = (tmp_path / name / "train.jsonl").read_text()
    assert "Bo Berg died in Riga." in said["own"] and "UTC" not in said["own"]
    assert "Bo Berg keeps UTC." in said["more"]
    with pytest.raises(InputError, match="--predicates"):
        list(samples([("Bo Berg", "time zone", "UTC")], 1, random.Random(0)))


def test_a_line_that_is_no_triple_is_named(tmp_path):
    source = tmp_path / "triples.jsonl"
    for bad in ('["a", "b"]', '["a", "b", 1]', "a, b, c"):
        source.write_text(f'["a", "b", "c"]\n\n{bad}\n', encoding="utf-8")
        with pytest.raises(InputError, match="Line 3"):
            read_triples(source)
