"""Facts that hold one by one and not together: a sum came on 8 April, and a sum came from Ann, but on another day.

An atomic fact no longer says what its clause says beside it, so a passage about something else can bear it out. Where
one sentence holds every other number and name of the clause, and behind the same word another name than the fact, the
fact is held against that sentence. No paper's method: ARE checks each fact by itself (4.2).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from msgspec.structs import replace

from engine.methods.are.anchor import Anchor, anchors
from engine.methods.are.gaps import missing
from engine.methods.are.names import names
from engine.methods.are.quantities import months, quantities
from engine.methods.are.values import Check, Evidence

PLACED = 2  # numbers, months and names of the clause: from so many a sentence that holds them speaks of it
_BEFORE = re.compile(r"([\w'’-]+)\s+(?:the\s+)?$")


def in_its_place(fact: str, clause: str, sentence: str) -> str:
    """The name that the sentence has where the fact has another, all else of the clause being there; else empty.

    >>> in_its_place("It came from Ann Berg", "It came on 8 April, PM-4, from Ann Berg", "On 8 April PM-4 from Bo Lund")
    'Bo Lund'
    >>> in_its_place("It came from Ann Berg", "It came on 9 April, PM-4, from Ann Berg", "On 8 April PM-4 from Bo Lund")
    ''
    """
    lacking, mine = set(missing(clause, sentence)), set(missing(fact, sentence))
    said = {q.text for q in quantities(clause)} | {name for _, _, name in (*names(clause), *months(clause))}
    kept = [one for one in said if not set(re.findall(r"[\w,.-]+", one)) & lacking]
    if not mine or lacking - mine or len(kept) < PLACED:
        return ""
    behind = {
        word.group(1).lower(): name
        for start, _, name in names(sentence)
        if name not in clause and (word := _BEFORE.search(sentence, 0, start))
    }
    gone = [start for start, _, name in names(fact) if name not in sentence and set(re.findall(r"\w+", name)) & mine]
    words = [word.group(1).lower() for start in gone if (word := _BEFORE.search(fact, 0, start))]
    return next((behind[word] for word in words if word in behind), "")


def held_together(
    fact: str,
    clause: str,
    considered: Sequence[Evidence],
    cited: Collection[int],
    checks: tuple[Check, ...],
    near: Sequence[Anchor],
) -> tuple[tuple[Check, ...], Sequence[Anchor]]:
    """The checks and anchors of a fact, turned where the sentence that speaks of its clause has another name.

    `clause` is all that the clause's facts say. That sentence's passage alone then asks for an edit: whatever bears the
    fact out speaks of something else.
    """
    borne_out = any(check.ruling.verdict == "supportive" for check in checks)
    if not borne_out or not any(_BEFORE.search(fact, 0, start) for start, _, _ in names(fact)):
        return checks, near
    best = (near if clause == fact else anchors(clause, considered, cited))[0]
    if best.evidence not in {check.evidence for check in checks}:
        return checks, near
    passage = considered[best.evidence]
    found = in_its_place(fact, clause, f"{passage.title}\n{passage.text[best.start : best.end]}")
    if not found:
        return checks, near
    turned = tuple(_turned(check, check.evidence == best.evidence, found) for check in checks)
    return turned, [best]


def _turned(check: Check, speaks: bool, found: str) -> Check:
    """The check of the passage that speaks of the clause, or of one that bears out the fact alone."""
    if not speaks and check.ruling.verdict != "supportive":
        return check
    verdict = "editing required" if speaks else "irrelevant"
    why = f"the sentence with all else of the clause has {found} here" if speaks else f"it is {found} in the clause's"
    note = f"{verdict}, because {why}; else {check.ruling.note}"
    ruling = replace(check.ruling, verdict=verdict.replace(" ", "_"), note=note)
    return replace(check, ruling=ruling)
