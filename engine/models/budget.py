"""The budget of a served model and its use: calls and tokens, counted where they are spent."""

from __future__ import annotations

import threading

from engine.core.errors import BudgetSpent
from engine.core.values import Value


class Spent(Value, frozen=True):
    """Requests that a server took, and the tokens that it read and wrote in them."""

    calls: int = 0
    tokens: int = 0

    def __add__(self, other: Spent) -> Spent:
        return Spent(calls=self.calls + other.calls, tokens=self.tokens + other.tokens)

    def __sub__(self, other: Spent) -> Spent:
        return Spent(calls=self.calls - other.calls, tokens=self.tokens - other.tokens)


class Budget:
    """Limits on calls and tokens (None: no limit); safe to share between threads.

    A call in flight counts at once, its tokens when it ends: tokens can be overrun by the calls that are in flight.
    """

    def __init__(self, calls: int | None = None, tokens: int | None = None) -> None:
        self.calls, self.tokens = calls, tokens
        self.spent = Spent()
        self._lock = threading.Lock()
        self._mine = threading.local()

    def call(self) -> None:
        """Count a request that is about to be sent; raise `BudgetSpent` where there is nothing left for it."""
        with self._lock:
            if self.calls is not None and self.spent.calls >= self.calls:
                raise BudgetSpent(f"The budget of {self.calls:,} calls is used up. Raise it and resume the run.")
            if self.tokens is not None and self.spent.tokens >= self.tokens:
                raise BudgetSpent(f"The budget of {self.tokens:,} tokens is used up. Raise it and resume the run.")
            self._add(Spent(calls=1))

    def read(self, tokens: int) -> None:
        """Count the tokens of a request that has ended."""
        with self._lock:
            self._add(Spent(tokens=tokens))

    @property
    def mine(self) -> Spent:
        """The spending of the current thread so far."""
        spent: Spent = getattr(self._mine, "spent", Spent())
        return spent

    def _add(self, spent: Spent) -> None:
        self.spent += spent
        self._mine.spent = self.mine + spent
