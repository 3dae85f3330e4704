"""Make claims from questions with known answers: "who wrote it" and "A. Author" give "A. Author wrote it".

The right answer gives a supportive pair. A similar span of the passage (a number for a number, a name for a name) gives
one that needs editing, and an unrelated passage an irrelevant one. The claims are terse and worded unlike the passage
on purpose.
"""

from __future__ import annotations

import re
from random import Random
from typing import Any

from engine.core.text import sentences
from engine.models.alignment import clean
from training import verifier_edits as edits

_DETERMINER = r"(?:who|what|which|whose)"
_AUXILIARIES = "did|do|does|is|was|were|are|has|have"
_NUMBERS = re.compile(r"\d[\d,.]*\d|\d")


def claim_of(question: str, answer: str) -> str | None:
    """The statement that `answer` answers `question`; None for an unsupported form."""
    text = question.strip().rstrip("?").strip()
    low = text.lower()
    if match := re.match(
        rf"^(?:in |on |at )?(when|where|(?:what|which) (?:year|city|country)) ({_AUXILIARIES}) (.+)$", low
    ):
        rest = text[match.start(3) :]
        joint = "in" if match.group(1) != "when" or answer[:1].isdigit() else "on"
        verb = "" if match.group(2) in ("did", "do", "does") else f" {match.group(2)}"
        return f"{rest}{verb} {joint} {answer}"
    if match := re.match(r"^how (many|much) (\w+(?: \w+)?) (are|is|were|was|have|has|can|will) (.+)$", low):
        return f"{answer} {text[match.start(2) : match.end(2)]} {text[match.start(3) :]}"
    if match := re.match(rf"^{_DETERMINER}(?: \w+)? (is|was|are|were) (.+)$", low):
        rest = text[match.start(2) :]
        return (
            f"{answer} {match.group(1)} {rest}"
            if Random(len(text)).random() < 0.6
            else f"{rest} {match.group(1)} {answer}"
        )
    if match := re.match(rf"^{_DETERMINER} (?!did|do|does|has|have|can|will|would|should)(\w+ .+)$", low):
        return f"{answer} {text[match.start(1) :]}"
    return None


def _rival(answer: str, passage: str, others: list[str], rng: Random) -> str | None:
    """Another span of the passage that could be taken for the answer, or another question's answer."""
    if any(c.isdigit() for c in answer):
        changed = edits.change_number(answer, rng, [])
        known = [n.group() for n in _NUMBERS.finditer(passage) if n.group() not in answer and len(n.group()) >= 2]
        return rng.choice([*known[:3], changed or ""]) or None
    names = [n for n in edits.names_in(passage) if not set(n.lower().split()) & set(answer.lower().split())]
    if names and answer[:1].isupper():
        return rng.choice(names)
    same = [o for o in others if o[:1].isupper() == answer[:1].isupper() and o.lower() not in passage.lower()]
    return rng.choice(same) if same else None


def _around(passage: str, answer: str, rng: Random) -> str:
    """The answering sentence with a neighbour; the passage's start if there is none."""
    parts = [passage[a:b] for a, b in sentences(passage)]
    places = [i for i, part in enumerate(parts) if answer.lower() in part.lower()]
    place = places[0] if places else 0
    return " ".join(parts[max(0, place - rng.choice((0, 1))) : place + rng.choice((1, 2))])


def claims_from_questions(rows: list[dict[str, Any]]) -> list[tuple[str, str, int]]:
    """Pairs (claim, evidence, label 0 to 2) for every question of a covered form."""
    rng = Random(11)
    rows = [row for row in rows if row.get("answers") and row.get("answer_in_passage", True)]
    pairs: list[tuple[str, str, int]] = []
    for row in rows:
        passage = clean(row["passage"])
        answer = next((a for a in row["answers"] if a.lower() in passage.lower()), "")
        claim = claim_of(row["question"], answer) if 0 < len(answer.split()) <= 8 else None
        if not claim:
            continue
        evidence = _around(passage, answer, rng)
        pairs.append((clean(claim), evidence, 0))
        others = [rng.choice(rows)["answers"][0] for _ in range(4)]
        rival = _rival(answer, evidence, others, rng)
        wrong = claim_of(row["question"], rival) if rival else None
        if wrong:
            pairs.append((clean(wrong), evidence, 1))
        away = [passage[a:b] for a, b in sentences(passage) if answer.lower() not in passage[a:b].lower()]
        away = [s for s in away if len(s.split()) > 5] or [clean(rng.choice(rows)["passage"])[:300]]
        pairs.append((clean(claim), rng.choice(away), 2))
    return pairs
