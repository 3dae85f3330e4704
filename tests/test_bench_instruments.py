"""The table of all instruments: every figure is read from where it was measured, and the table is up to date."""

from __future__ import annotations

import pytest

from bench import instruments
from bench.instruments import Row
from bench.results import RESULTS

EVIDENCE = """
<!-- evidence -->
| ranking | Pages, n = 1,220: first, in five |
|---|---|
| BM25 | 0.1 (0.02), 0.6 |
| word overlap | 0.2 (0.02), 0.5 |
| similarity | 0.3 (0.02), 0.7 |
| relevance | 0.4 (0.03), 0.8 |
<!-- /evidence -->
"""
SUPPORT = """
<!-- support -->
| score | CNN, n = 332, supported 0.73 |
|---|---|
| verdict | 0.688 (0.626 to 0.747) |
| similarity | 0.834 (0.788 to 0.875) |
| words | 0.582 (0.507 to 0.653) |
| support | 0.804 (0.752 to 0.850) |
<!-- /support -->
"""
SOURCES = """
<!-- real-answers -->
6 passages; answers: 40 of NQ, 38 of CLAP NQ, 9 of HotpotQA.

| row | NQ | CLAP NQ | HotpotQA | all (95% interval) |
| --- | --- | --- | --- | --- |
| alone | 0.90 | 0.80 | 0.70 | 0.83 (0.75 to 0.90) |
| word overlap | 0.50 | 0.40 | 0.30 | 0.43 (0.30 to 0.50) |
| verbatim, then word overlap | 0.85 | 0.60 | 0.65 | 0.70 (0.60 to 0.80) |
<!-- /real-answers -->
"""
RETRIEVAL = """
<!-- ranking -->
| embedder | ranking | XQuAD, n = 200: first, in 5 | seconds |
| --- | --- | --- | --- |
| small | bm25 | 0.90 (0.02), 0.97 | 0.01 |
| small | dense | 0.88 (0.02), 0.98 | 0.02 |
| small | hybrid | 0.94 (0.02), 0.99 | 0.03 |
<!-- /ranking -->
"""
JUDGES = """
<!-- judges -->
| judge | measured | share (95% interval) | n |
| --- | --- | --- | --- |
| q | pair: parsed | 0.97 (0.83 to 0.99) | 30 |
<!-- /judges -->
"""
FACTS = """
<!-- decomposition -->
| splitter | set | sentences | of the facts | seconds |
|---|---|---|---|---|
| rules | test | 50 | 0.80 (0.70 to 0.90) | 0.1 |
| whole sentence | test | 50 | 0.60 (0.50 to 0.70) | 0.0 |
<!-- /decomposition -->
<!-- facts -->
Smallest edits, VitaminC, n = 70: SARI 60.1 (50.2 to 70.3; copying 27.0; goal 45), exact 0.36.
<!-- /facts -->
"""


@pytest.mark.parametrize(
    ("read", "text", "row"),
    [
        (
            instruments.evidence,
            EVIDENCE,
            ("Pages", "1,220", "0.4 (0.03)", "BM25 0.1 (0.02), word overlap 0.2 (0.02), similarity 0.3 (0.02)"),
        ),
        (
            instruments.support,
            SUPPORT,
            ("CNN", "332", "0.804 (0.752 to 0.850)", "words 0.582, similarity 0.834, verdict 0.688"),
        ),
        (
            instruments.sources,
            SOURCES,
            ("NQ", "40", "0.90 (0.77 to 0.96)", "word overlap 0.50, verbatim, then word overlap 0.85"),
        ),
        (instruments.retrieval, RETRIEVAL, ("XQuAD", "200", "0.94 (0.02)", "BM25 0.90 (0.02), dense 0.88 (0.02)")),
        (instruments.decomposition, FACTS, ("PropSegmEnt test", "50", "0.80 (0.70 to 0.90)", "whole sentence 0.60")),
        (instruments.edits, FACTS, ("VitaminC", "70", "60.1 (50.2 to 70.3)", "copying 27.0")),
        (instruments.judges, JUDGES, ("CLAP NQ", "30", "0.97 (0.83 to 0.99)", "-")),
    ],
)
def test_a_row_is_read_from_its_section(read, text, row):
    found: Row = next(read(text))
    assert (found.set, found.n, found.figure, found.floors) == row
    assert list(read("")) == []


def test_the_verifiers_are_read_from_results_and_cards():
    rows = list(instruments.verifiers(RESULTS.read_text(encoding="utf-8")))
    assert {row.instrument for row in rows} == {"verifier, small", "verifier, medium", "verifier, large"}
    for row in rows:
        name = {"verifier, medium": "verifier_medium", "verifier, large": "verifier_large"}.get(row.instrument)
        source = instruments.card(name) if name else RESULTS.read_text(encoding="utf-8")
        (line,) = {x for x in source.splitlines() if x.startswith(f"| {row.set} | {row.n} | {row.figure}")}
        assert line


@pytest.mark.parametrize(("name", "kind"), [("XQuAD, corpus", "Wikipedia paragraphs"), ("PropSegmEnt dev", "sentences"),
                                            ("elsewhere", "-")])  # fmt: skip
def test_a_set_has_its_kind_of_text(name, kind):
    assert instruments.kind(name).startswith(kind)


def test_the_table_is_up_to_date():
    results = RESULTS.read_text(encoding="utf-8")
    written = instruments.section(instruments.SECTION, results).strip()
    assert written == instruments.table(results), "run: python -m bench.instruments --write"
