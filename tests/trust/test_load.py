"""Many sessions at once: 18 over the websocket and 2 in Chromium, on one served app."""

from __future__ import annotations

import pytest

from tests.trust import load

ROUNDS = 12  # of 18 sessions: 216 runs


@pytest.mark.long
def test_twenty_sessions_get_their_own_answers_in_order_without_an_error(prepared_home):
    found = load.load(prepared_home, 18, ROUNDS, in_browser=2)
    assert found["errors"] == []
    assert found["mixed"] == []
    assert found["displaced"] <= 4  # two workers, and the time between writing down and sending
    assert found["memory_late_mb"] < 1.15 * found["memory_early_mb"]


def test_a_mixed_result_and_an_unfair_order_are_seen():
    book = load.Book()
    own, other = (load.Page(texts=[f'<h2 class="gw-question">How? (run {run})</h2>']) for run in ("a-1", "b-1"))
    load.check(book, own, "a-1")
    assert not book.mixed
    load.check(book, other, "a-1")
    assert len(book.mixed) == 1
    book.asked, book.answered = list("abcd"), list("bcda")
    assert load.displaced(book) == 3


def test_a_problem_on_a_page_is_an_error():
    book = load.Book()
    page = load.Page(texts=['<h2 class="gw-question">How? (run a)</h2>'], problems=["It broke."])
    load.check(book, page, "a")
    assert book.errors == ["a: It broke."]
