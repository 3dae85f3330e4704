from __future__ import annotations

import json

import pytest

from engine.errors import InputError
from engine.train.decomposer_data import kept, main, read_triples

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
    assert json.loads((tmp_path / "set" / "lora.json").read_text())["epochs"] == 3


def test_a_line_that_is_no_triple_is_named(tmp_path):
    source = tmp_path / "triples.jsonl"
    for bad in ('["a", "b"]', '["a", "b", 1]', "a, b, c"):
        source.write_text(f'["a", "b", "c"]\n\n{bad}\n', encoding="utf-8")
        with pytest.raises(InputError, match="Line 3"):
            read_triples(source)
