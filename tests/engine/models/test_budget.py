import threading
from types import SimpleNamespace

import pytest

from engine.core.errors import BudgetSpent
from engine.models.server import Budget, Received, Spent


def test_calls_are_counted_before_they_are_made():
    budget = Budget(calls=2)
    budget.call()
    budget.call()
    with pytest.raises(BudgetSpent, match="2 calls"):
        budget.call()
    assert budget.spent == Spent(calls=2)


def test_tokens_stop_the_next_call_and_not_the_one_in_flight():
    budget = Budget(tokens=10)
    budget.call()
    budget.read(25)
    with pytest.raises(BudgetSpent, match="10 tokens"):
        budget.call()
    assert budget.spent == Spent(calls=1, tokens=25)


def test_no_limit_is_no_limit_and_many_threads_lose_nothing():
    budget = Budget()
    found: list[Spent] = []

    def work():
        before = budget.mine
        for _ in range(200):
            budget.call()
            budget.read(3)
        found.append(budget.mine - before)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert budget.spent == Spent(calls=800, tokens=2400)
    assert found == [Spent(calls=200, tokens=600)] * 4


def test_tokens_are_the_servers_count_else_a_quarter_of_the_characters():
    messages = [{"role": "user", "content": "x" * 40}]
    received = Received()
    assert received.tokens(messages) == 0  # nothing came: nothing is known to have been read
    received.text = "y" * 8
    assert received.tokens(messages) == 12
    received._used = 7
    assert received.tokens(messages) == 7


def test_what_a_model_thinks_before_it_answers_is_no_part_of_the_answer():
    seen: list[str] = []
    received = Received(seen.append)
    for piece in ("<think>\nIt may", " be 1991.\n</think>\n\n", "It opened ", "in 1990 [1]."):
        choice = SimpleNamespace(finish_reason="stop", logprobs=None, delta=SimpleNamespace(content=piece))
        received.add(SimpleNamespace(usage=None, choices=[choice]))
    assert received.answer("a model").text == seen[-1] == "It opened in 1990 [1]."
    assert seen[0] == ""
