"""Fact expansion (ARE, section 4.3, appendices A.3 and B): two search phrases for a fact that nothing settled.

They are queries only: the fact itself is verified against what they find, and no expansion enters the answer. What
each phrase found is kept on the evidence. By a language model, or by rules: the fact's names and numbers, and its
content words beside the question's.
"""

from __future__ import annotations

import re

from engine.core.progress import Watch
from engine.core.settings import Decoding
from engine.core.text import content_words
from engine.methods.are.facts import Exchange
from engine.models.protocols import Writer
from engine.models.replies import lines
from engine.prompts import ask

_NAME = re.compile(r"\b[A-Z][\w'’-]*(?: [A-Z][\w'’-]*)*|\d[\d,.]*\d|\d")


def expanded_by_rules(fact: str, question: str, context: str = "") -> tuple[str, str]:
    """(names and numbers of the fact with its clause's, content words of fact and question).

    >>> expanded_by_rules("Ada Berg won in 1990", "Who won the cup?")
    ('Ada Berg 1990', 'ada berg won 1990 cup')
    """
    names = dict.fromkeys(match.group() for match in _NAME.finditer(f"{fact} {context}"))
    words = dict.fromkeys([*content_words(fact), *content_words(question)])
    return " ".join(names) or fact, " ".join(words) or fact


def expand(
    fact: str, question: str, writer: Writer | None = None, context: str = "", watch: Watch | None = None
) -> tuple[tuple[str, ...], Exchange | None]:
    """Two queries for a fact, and the exchange with the language model if one was asked."""
    if writer is None:
        return expanded_by_rules(fact, question, context), None
    prompt = ask("expand", fact=fact)
    reply = writer.generate(prompt, Decoding(max_new_tokens=80), None, watch).text
    phrases = tuple(lines(reply)[:2])
    exchange = Exchange(step="expand", prompt=prompt.text, reply=reply, parsed=len(phrases) == 2)
    return (phrases if len(phrases) == 2 else expanded_by_rules(fact, question, context)), exchange
