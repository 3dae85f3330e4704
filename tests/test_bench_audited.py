"""The set of answers with subtle errors is whole, and its pairs are compared as said."""

from __future__ import annotations

from bench.audited import audited, by_error, compared, word_shares


def test_every_document_has_seven_pairs_that_differ_and_an_added_sentence() -> None:
    documents = audited()
    assert len(documents) == 24
    for one in documents:
        assert len(one["right"]) == len(one["wrong"]) == len(one["errors"]) == 7 and len(one["added"]) == 1
        for right, wrong in zip(one["right"], one["wrong"], strict=True):
            assert right != wrong and set(right.split()) & set(wrong.split())


def test_a_pair_counts_where_the_right_sentence_has_the_higher_score_and_half_where_both_are_level() -> None:
    scores = {"right": [0.9, 0.4, 0.5], "wrong": [0.1, 0.6, 0.5], "added": [0.0]}
    pairs, against_wrong, against_added = compared(scores)
    assert (pairs.split()[0], against_wrong, against_added) == ("0.50", "0.61", "1.00")


def test_errors_of_few_pairs_are_not_listed() -> None:
    errors = ["wrong date"] * 5 + ["wrong unit"]
    states = ["borne out", "unsure", "borne out", "unsure", "contradicted", "borne out"]
    assert by_error({"wrong": states}, errors) == ["wrong date 2 of 5"]


def test_the_share_of_words_that_the_document_has() -> None:
    assert word_shares(["Ann paid 40 euros.", "Cleo left."], "Ann paid 45 euros.") == [0.75, 0.0]
