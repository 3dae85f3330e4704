from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from msgspec.structs import replace

from engine.core.progress import Watch
from engine.methods.are.backtrack import hold_clauses, place, proposals, put_in, revised, without_overlaps
from engine.methods.are.decompose import decompose
from engine.methods.are.edit import changes
from engine.methods.are.values import Check, Edit, Evidence, FactRecord, Iteration, Placed, Ruling
from tests.engine.are.scripted import WordVerifier

EVIDENCE = Evidence(text="what the passage says", source="case", number=1)
RULING = Ruling(verdict="editing_required", by="t", note="n")


def edited(answer, *facts_after):
    """The decomposition, and records in which fact i was edited to facts_after[i] (None: not)."""
    found = decompose(answer)
    facts = [(n, fact) for n, clause in enumerate(found.clauses) for fact in clause.facts]
    records = []
    for (clause, fact), after in zip(facts, facts_after, strict=True):
        edit = None
        if after is not None:
            edit = Edit(before=fact.text, after=after, changes=changes(fact.text, after), why="w", made_by="t")
        done = Iteration(
            queries=(), considered=(EVIDENCE,), checks=(Check(evidence=0, ruling=RULING),), decided=0, edit=edit
        )
        records.append(FactRecord(clause=clause, fact=fact, iterations=(done,)))
    return found, records


@pytest.mark.parametrize(
    ("answer", "after", "expected"),
    [
        # The same word twice in a clause: only the fact's own one.
        ("Ann won in 1990 and lost in 1990.", (None, "Ann lost in 1991"), "Ann won in 1990 and lost in 1991."),
        ("Ann won in 1990 and lost in 1990.", ("Ann won in 1991", None), "Ann won in 1991 and lost in 1990."),
        # Punctuation and markers beside the changed word.
        ("In May, it cost $5,000 [cite_1].", ("In May, it cost $6,500",), "In May, it cost $6,500 [cite_1]."),
        # Unicode before and inside the change.
        ("Žofia 😀 lebt in Köln.", ("Žofia 😀 lebt in Zürich",), "Žofia 😀 lebt in Zürich."),
        # Deletion and insertion.
        ("The gate is not open.", ("The gate is open",), "The gate is open."),
        ("The gate is open.", ("The gate is not open",), "The gate is not open."),
    ],
)
def test_an_edit_goes_back_to_its_own_place(answer, after, expected):
    found, records = edited(answer, *after)
    edits = proposals(answer, found, records)
    assert [e.status for e in edits] == ["placed"] * len(edits)
    assert revised(answer, edits) == expected


def test_a_word_that_a_pronoun_was_resolved_to_is_no_place_in_the_clause():
    answer = "Ann Lee won. She lost in 1990."
    found, records = edited(answer, None, "Bob Ray lost in 1990")
    edits = proposals(answer, found, records)
    assert {e.status for e in edits} == {"suggestion"}
    assert "uncertain" in edits[0].why
    assert revised(answer, edits) == answer


def test_equal_edits_of_two_facts_are_one_and_different_ones_do_not_both_go_in():
    answer = "Ann won in 1990 and lost in 1991."
    found, records = edited(answer, "Bea won in 1990", "Bea lost in 1991")
    assert [(e.old, e.new, e.status) for e in proposals(answer, found, records)] == [("Ann", "Bea", "placed")]
    found, records = edited(answer, "Bea won in 1990", "Cleo lost in 1991")
    edits = proposals(answer, found, records)
    assert sorted(e.status for e in edits) == ["placed", "suggestion"]
    assert revised(answer, edits) == "Bea won in 1990 and lost in 1991."


def test_an_edit_goes_in_where_another_fact_with_the_same_change_has_one_that_meets_a_third():
    first = Placed(
        id="", clause=0, fact=0, start=8, end=9, old="3", new="4", status="placed", why="w", evidence=EVIDENCE
    )
    both = [replace(first, fact=1, new="5"), replace(first, fact=1, start=18, end=22, old="1990", new="1991")]
    same = replace(both[1], fact=2)
    resolved = without_overlaps([first, *both, same])
    assert [(e.fact, e.status) for e in resolved] == [
        (0, "placed"),
        (1, "suggestion"),
        (1, "suggestion"),
        (2, "placed"),
    ]


def test_only_accepted_edits_are_put_in_and_a_suggestion_never_is():
    answer = "Ann won in 1990 and lost in 1991."
    found, records = edited(answer, "Ann won in 1980", "Ann lost in 1981")
    edits = proposals(answer, found, records)
    assert revised(answer, edits, {edits[1].id}) == "Ann won in 1990 and lost in 1981."
    assert revised(answer, edits, ()) == answer


PARTS = ["Ann won in 1990.", "Bea lost, and Cleo sat in 1990.", "😀 He rose."]


@given(st.lists(st.sampled_from(PARTS), min_size=1, max_size=4),
       st.sampled_from(["1990", "won", "Ann"]), st.sampled_from(["1991", "x y", "Ä"]))  # fmt: skip
def test_other_clauses_keep_their_bytes(parts, old, new):
    answer = " ".join(parts)
    found = decompose(answer)
    facts = [f for clause in found.clauses for f in clause.facts]
    target = next((i for i, f in enumerate(facts) if old in f.text.split()), None)
    if target is None:
        return
    after = [f.text.replace(old, new, 1) if i == target else None for i, f in enumerate(facts)]
    _, records = edited(answer, *after)
    edits = proposals(answer, found, records)
    text = revised(answer, edits)
    clause = found.clauses[records[target].clause]
    assert text.startswith(answer[: clause.start])
    assert text.endswith(answer[clause.end :])


def test_equal_suggestions_for_different_words_are_both_kept():
    answer = "Ann Lee won. She lost in 1990. She won in 1991."
    found, records = edited(answer, None, "Bob Ray lost in 1990", "Bob Ray won in 1991")
    assert len(proposals(answer, found, records)) == 2


def test_a_deleted_first_sentence_takes_the_blank_behind_it_along():
    answer = "So it rained. It snowed."
    gone = Placed(
        id="1", clause=0, fact=0, start=0, end=13, old=answer[:13], new="", status="placed", why="", evidence=EVIDENCE
    )
    assert revised(answer, [gone]) == "It snowed."


def test_an_accepted_deletion_takes_an_accepted_edit_inside_it_along():
    answer = "It snowed. It rained in 1990."
    gone = Placed(
        id="1", clause=0, fact=0, start=11, end=29, old=answer[11:], new="", status="placed", why="", evidence=EVIDENCE
    )
    inside = replace(gone, id="2", start=24, end=28, old="1990", new="1991")
    assert put_in(answer, [inside, gone], {"1", "2"}) == [gone]
    assert revised(answer, [inside, gone], {"1", "2"}) == "It snowed."


def test_a_place_is_refused_where_the_answer_says_something_else():
    found = decompose("Ann won in 1990.")
    clause = found.clauses[0]
    change = changes("Ann won in 1990", "Ann won in 1991")[0]
    assert place(change, clause.facts[0], clause, "Ann won in 1990.") == (11, 15)
    assert place(change, clause.facts[0], clause, "Ann won in 2000.") is None


def test_an_edit_that_makes_its_clause_fail_is_only_a_suggestion():
    answer = "Ann won in 1990."
    found, records = edited(answer, "Ann won in 1991")
    records = [
        FactRecord(clause=0, fact=records[0].fact, iterations=(
            Iteration(queries=(), considered=(Evidence(text="Ann won in 1990 by far", source="case"),),
                      checks=(Check(evidence=0, ruling=RULING),), decided=0, edit=records[0].edit),))
    ]  # fmt: skip
    edits = hold_clauses(found, records, proposals(answer, found, records), WordVerifier(), Watch())
    assert [e.status for e in edits] == ["suggestion"]
    assert "disagrees with its evidence" in edits[0].why


def test_a_row_of_a_table_is_not_judged_as_a_sentence():
    answer = "| Year | Won |\n|---|---|\n| 1990 | Ann |"
    found, records = edited(answer, "Won: 1991: Ann")
    assert [e.status for e in proposals(answer, found, records)] == ["placed"]
    edits = hold_clauses(found, records, proposals(answer, found, records), WordVerifier(), Watch())
    assert [e.status for e in edits] == ["placed"]
