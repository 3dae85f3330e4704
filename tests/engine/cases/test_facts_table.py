"""The table of facts: a line per fact in the order of the answer, with what the machine and a person said of it."""

from __future__ import annotations

import io

import pandas as pd
from msgspec.structs import replace

from engine.cases.review import MarkDraft, append
from engine.report.facts_table import facts_csv, facts_table
from tests.engine.cases.test_case_verdict import checked


def test_each_fact_has_a_line_with_its_verdict_its_evidence_and_its_edit():
    table = facts_table([(checked(), ())])
    assert table["fact"].tolist() == ["1.1", "1.2", "2.1"] and table["sentence"].tolist() == [1, 1, 2]
    first = table.iloc[0]
    assert (first["case"], first["question"], first["written by"]) == ("case", "What of the bridge?", "someone")
    assert (first["verdict"], first["source"], first["decision"]) == ("contradicted", "passage 1: d0", "undecided")
    assert first["evidence"] == "The bridge opened in 1934." and first["edit"] == "1932 -> 1934"
    assert 0 < first["probability"] < 1
    assert table["verdict"].tolist() == ["contradicted", "borne out", "not found"]


def test_a_persons_verdict_comes_with_name_and_reason_and_an_unchecked_case_has_one_line():
    case = checked()
    draft = MarkDraft(
        kind="override", author="Ada Quill", target="fact:1.1", value="borne out", reason="the other bridge"
    )
    history = [append(case, (), draft, "2026-01-01T00:00:00+00:00")]
    unchecked = replace(checked(), id="new", analyses=())
    table = facts_table([(case, history), (unchecked, ())])
    assert table.iloc[0][["verdict", "reviewer", "reason"]].tolist() == ["borne out", "Ada Quill", "the other bridge"]
    assert table.iloc[-1][["case", "verdict"]].tolist() == ["new", "not checked"] and len(table) == 4
    assert facts_table([(checked("Hello!"), ())])["verdict"].tolist() == ["no claim"]


def test_nothing_in_the_file_runs_as_a_formula():
    case = replace(checked(), question='=HYPERLINK("http://x")')
    read = pd.read_csv(io.BytesIO(facts_csv([(case, ())])))
    assert read["question"].tolist() == ['\'=HYPERLINK("http://x")'] * 3
    assert read["probability"].between(0, 1).all()
