"""The verdict on a fact and its evidence (ARE, 4.3 and A.3): supportive, editing required, irrelevant, or unparsed.

By an entailment model (scores kept) or a language model (reasoning kept). A reply that cannot be parsed is a verdict of
its own: shown, counted, never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from engine.models.protocols import Entailment, Writer
from engine.progress import Watch
from engine.prompts import fill
from engine.settings import Decoding
from engine.types import Prompt, Segment
from engine.verify.facts import Exchange
from engine.verify.values import Ruling, VerdictName

_WORDS: dict[str, VerdictName] = {
    "agrees": "supportive",
    "disagrees": "editing_required",
    "irrelevant": "irrelevant",
}
_SAID = re.compile(r"\b(agrees|disagrees|irrelevant)\b", re.IGNORECASE)


def judge(pairs: Sequence[tuple[str, str]], verifier: Entailment, watch: Watch | None = None) -> list[Ruling]:
    """The entailment model's rulings on (fact, evidence) pairs, in order."""
    return [Ruling.of(judged, verifier) for judged in verifier.judge(pairs, watch)]


def ask_verdict(
    fact: str, evidence: str, context: str, writer: Writer, watch: Watch | None = None
) -> tuple[Ruling, Exchange]:
    """A language model's ruling with its reasoning, and the exchange that it comes from."""
    prompt = fill("verdict", context=context, fact=fact, evidence=evidence)
    asked = Prompt(segments=(Segment(kind="instruction", text=prompt),))
    reply = writer.generate(asked, Decoding(max_new_tokens=200), None, watch).text
    verdict, reasoning = parse_verdict(reply)
    name = verdict.replace("_", " ")
    said = f"{name} by {writer.name}, not measured" if verdict != "unparsed" else f"unparsed reply of {writer.name}"
    ruling = Ruling(verdict=verdict, by=writer.name, note=said, reasoning=reasoning)
    return ruling, Exchange(step="verdict", prompt=prompt, reply=reply, parsed=verdict != "unparsed")


def parse_verdict(reply: str) -> tuple[VerdictName, str]:
    """(verdict, reasoning) of a reply: the word on the last line that is one of the three; else unparsed.

    >>> parse_verdict("The article says 1983, not 1978.\\ndisagrees")
    ('editing_required', 'The article says 1983, not 1978.')
    """
    found = [line.strip() for line in reply.strip().splitlines() if line.strip()]
    last = found[-1] if found else ""
    words = {word.lower() for word in _SAID.findall(last)}
    if len(words) != 1 or re.search(r"\b(?:not|nor|neither)\b", last, re.IGNORECASE):
        return "unparsed", reply.strip()
    reasoning = " ".join(found[:-1]) if len(found) > 1 else last
    return _WORDS[words.pop()], reasoning
