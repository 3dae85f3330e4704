"""Logical query: (r_i, q_i) -> q*_i, what the search should find, written before the search (RAISE, figure 13).

Two or three sentences on the principle, without the sub-question in other words. It may be wrong; it is used only to
search, never shown to the model that answers.
"""

from __future__ import annotations

from engine.prompts import ask
from engine.reason.values import SubQuestion
from engine.types import Prompt

LABEL = "guess used only to search"


def logical_query_prompt(sub: SubQuestion) -> Prompt:
    """p_2 of Algorithm 1: the sub-question and its search query, not the problem."""
    return ask("logical_query", question=sub.question, query=sub.query)
