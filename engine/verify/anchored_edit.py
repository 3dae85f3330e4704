"""The smallest edit of a fact by the sentence that speaks of it (`anchor.py`): what the passage has in its place.

Only numbers, dates, names, opposites, negation and the order of two events are replaced, and only so that fewer numbers
and names of the fact are missing from the passage than before. The edit is checked again against that sentence: it
stands where the verifier calls it supportive. A number or date stands also where the passage lacks nothing of the
edited fact, the sentence holds most of its words (`NEARLY`) and the verifier speaks for it more than for the fact; what
is pinned by its neighbours (`pinned.py`) where the sentence speaks of the fact (`LEAST`); an order of events where the
passage gives it (`event_order.py`). A small verifier cannot tell the last two. What stood for an edit is said on the
ruling.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from engine.models.alignment import stem
from engine.models.protocols import Entailment, Judged
from engine.progress import Watch
from engine.text import content_words
from engine.verify.anchor import Anchor
from engine.verify.differences import Replacement, apply, replacements
from engine.verify.edit import CANDIDATES, ENOUGH, KIND, changes
from engine.verify.event_order import against, restated
from engine.verify.gaps import missing
from engine.verify.pinned import held, pinned
from engine.verify.values import Change, Edit, Evidence, Ruling

LEAST = 0.5  # share of the fact's words that the sentence must hold for a name to be replaced
ORDER = "order of events"
COUNTED = ("number", "date", "comparison")  # kinds of which words alone can tell whether the sentence has them
PINNED = 0.3  # what counts for a replacement beside which the sentence has what the fact has
NEARLY = 0.65  # worth of the anchor from which its sentence bears the edited fact out beside a doubtful verifier
DELETED = 0.8  # share of the fact's words that the sentence must hold from which a negation is taken out or put in


def anchored_edit(
    fact: str,
    evidence: Evidence,
    anchor: Anchor,
    lacking: frozenset[str],
    verifier: Entailment,
    watch: Watch | None = None,
    dated: Sequence[str] = (),
) -> Edit | None:
    """The edited fact, what was changed and the ruling on it; None where nothing is good enough.

    `lacking` are the numbers and names that may go: no other passage that speaks of the fact holds them; `dated` the
    parts of all passages that name a day (`event_order.py`).
    """
    sentence = evidence.text[anchor.start : anchor.end]
    candidates = options(fact, sentence, evidence, anchor, lacking, dated)
    if not candidates:
        return None
    texts = [apply(fact, [change]) for change in candidates]
    before, *judged = verifier.judge([(text, sentence) for text in (fact, *texts)], watch)
    worths = [
        _worth(one) + KIND * change.weight + PINNED * pinned(fact, change, sentence)
        for one, change in zip(judged, candidates, strict=True)
    ]
    best = max(range(len(worths)), key=worths.__getitem__)
    chosen = candidates[best]
    ruling: Ruling | None = None
    if chosen.kind == ORDER:
        ruling = _ordered(judged[best], chosen.new, verifier)
    else:
        beside = pinned(fact, chosen, sentence)
        ruling = _checked(texts[best], judged[best], before, evidence, anchor, beside, verifier)
        if ruling is not None and ruling.verdict != judged[best].verdict and not (beside or chosen.kind in COUNTED):
            return None
    if ruling is None:
        return None
    whole = Change(start=chosen.start, end=chosen.end, old=fact[chosen.start : chosen.end], new=chosen.new)
    return Edit(
        before=fact,
        after=texts[best],
        changes=(whole,) if chosen.kind == "name" else changes(fact, texts[best]),
        why=f"{chosen.kind} as the passage has it",
        made_by=f"substitution checked by {verifier.name}",
        ruling=ruling,
    )


def options(
    fact: str,
    sentence: str,
    evidence: Evidence,
    anchor: Anchor,
    lacking: frozenset[str],
    dated: Sequence[str] = (),
) -> list[Replacement]:
    """Replacements after which the passage lacks less of the fact, the most plausible first, at most `CANDIDATES`."""
    whole = f"{evidence.title}\n{evidence.text}"
    found = [*_order(fact, evidence.text, dated), *replacements(fact, sentence, anchored=True)]
    return [change for change in found if _fits(fact, change, whole, lacking, anchor)][:CANDIDATES]


def _order(fact: str, passage: str, dated: Sequence[str]) -> list[Replacement]:
    """The word that states the opposite order of two events."""
    order = against(fact, passage, dated)
    start, end, new = restated(fact, order) if order else (0, 0, "")
    return [Replacement(start, end, new, ORDER, 1.0)] if new else []


def _fits(fact: str, change: Replacement, whole: str, lacking: frozenset[str], anchor: Anchor) -> bool:
    left = set(missing(apply(fact, [change]), whole))
    if change.kind == "negation":
        return anchor.share >= DELETED and not left
    if change.kind == ORDER:
        return not left - set(change.new.split())  # the days are those of several passages
    if change.kind == "opposite":
        return not left
    if change.kind == "name" and (anchor.worth < LEAST or only_opens(change.new, whole)):
        return False
    if change.kind == "name" and not _lost(fact[change.start : change.end], whole) <= _words(change.new):
        return False
    gone = set(anchor.lacking) - left
    return left < set(anchor.lacking) and gone <= lacking


def only_opens(word: str, whole: str) -> bool:
    """Is it a single word whose capital says nothing: it opens a sentence wherever it stands, or is written small.

    >>> only_opens("Sum", "Statement of March\\nSum of the cash: EUR 40."), only_opens("Lind", "It was Lind.")
    (True, False)
    """
    if " " in word or any(c.isdigit() or c.isupper() for c in word[1:]):
        return False
    inside = re.search(rf"[\w,;][^\S\n]+{re.escape(word)}\b", whole)  # a title ends its line
    return not inside or bool(re.search(rf"\b{re.escape(word.lower())}\b", whole))


def _lost(name: str, whole: str) -> set[str]:
    """The words of a name that the passage does hold: another name must hold them, too."""
    held = _words(whole)
    return {word for word in _words(name) if word in held}


def _words(text: str) -> set[str]:
    return {stem(word) for word in content_words(text)}


def _worth(judged: Judged) -> float:
    return judged.scores["supportive"] - judged.scores["editing_required"] / 2


def _ordered(judged: Judged, word: str, verifier: Entailment) -> Ruling:
    """The ruling on a fact whose order of events is now the passage's, which words and dates tell."""
    ruling = Ruling.of(judged, verifier)
    note = f'supportive, because the passage gives the two events in the order of "{word}"'
    return replace(ruling, verdict="supportive", note=f"{note}; else {ruling.note}")


def _checked(
    text: str,
    judged: Judged,
    before: Judged,
    evidence: Evidence,
    anchor: Anchor,
    beside: bool,
    verifier: Entailment,
) -> Ruling | None:
    """The ruling on the edited fact: the verifier's own, or that of words and verifier together; None for neither."""
    ruling = Ruling.of(judged, verifier)
    placed = (ruling.window[0] + anchor.start, ruling.window[1] + anchor.start)
    if judged.verdict == "supportive" and judged.scores["supportive"] >= ENOUGH:
        return replace(ruling, window=placed)
    left = set(missing(text, f"{evidence.title}\n{evidence.text}"))
    better = judged.scores["supportive"] > before.scores["supportive"]
    told = beside and anchor.worth >= LEAST and held(left, text)
    if told or (not left and anchor.worth >= NEARLY and better):
        note = f"supportive, because one sentence holds {anchor.share:.0%} of its words and all numbers and names"
        if told:
            note = "supportive, because the sentence has what was put in beside what stands beside it in the fact"
        return replace(ruling, verdict="supportive", window=placed, note=f"{note}; else {ruling.note}")
    return None
