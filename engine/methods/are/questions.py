"""Questions that check an answer, by a language model over the whole text (appendix C.2): RARR's open, CCVER's yes/no.

They do not come from ARE's facts: what the two methods search with is what they are compared in.
"""

from __future__ import annotations

import re
from typing import Literal

from engine.core.progress import Watch
from engine.core.settings import Decoding
from engine.methods.are.examples import with_examples
from engine.methods.are.values import Exchange
from engine.models.protocols import Writer
from engine.models.replies import lines
from engine.prompts import ask

Kind = Literal["check_questions", "yes_no_questions"]
_OPEN = re.compile(r"(?:who|whom|whose|what|when|where|which|why|how)\b", re.IGNORECASE)
_MOST = 24  # questions that are read from a reply


def ask_questions(
    kind: Kind, text: str, writer: Writer, watch: Watch | None = None, demonstrations: int = 0
) -> tuple[tuple[str, ...], Exchange]:
    """The questions about `text` in the model's order, each once, and the exchange; none where the reply holds none."""
    prompt = with_examples(kind, ask(kind, text=text), demonstrations)
    reply = writer.generate(prompt, Decoding(max_new_tokens=300), None, watch).text
    found = parse_questions(reply, yes_no=kind == "yes_no_questions")
    return found, Exchange(step="questions", prompt=prompt.text, reply=reply, parsed=bool(found))


def parse_questions(reply: str, *, yes_no: bool = False) -> tuple[str, ...]:
    """The lines of a reply that ask something; with `yes_no` those that no question word opens.

    >>> parse_questions("1. Did it open in 1990?\\n2. Who built it?\\nIt did.", yes_no=True)
    ('Did it open in 1990?',)
    """
    asked = [line for line in lines(reply) if line.endswith("?")]
    return tuple(dict.fromkeys(line for line in asked if not (yes_no and _OPEN.match(line))))[:_MOST]
