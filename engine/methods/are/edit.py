"""The smallest edit that the evidence bears out (ARE, section 4.3 and appendix A.4).

With an entailment model: replacements of the same kind (`differences.py`), each checked by the verifier; kept is that
with the highest p(supportive), less `PRICE` a changed word, then a second and a third one where they help. Where none
reaches `ENOUGH` there is no edit. With a language model: it says what is wrong, then writes the fix (`asked_edit`).
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from engine.core.progress import Watch
from engine.core.settings import Decoding
from engine.core.text import sentences
from engine.methods.are.differences import Replacement, apply, replacements
from engine.methods.are.gaps import missing
from engine.methods.are.quantities import holds, quantities, rival
from engine.methods.are.shared_words import stems
from engine.methods.are.values import Change, Edit, Exchange, Ruling
from engine.models.protocols import Entailment, Judged, Writer
from engine.models.replies import lines
from engine.prompts import ask

FOCUS = 60  # words of evidence that an edit may draw on
CLOSE = 30  # words of evidence that it is checked against, whole sentences
CANDIDATES = 16  # replacements that are checked at a time
ROUNDS = 2  # spans that one edit may change
PRICE = 0.04  # of p(supportive) a changed word
KIND = 0.35  # what the plausibility of a replacement's kind counts beside p(supportive)
DOUBT = 0.1  # p(editing required) less p(supportive), from which a claim is edited
ENOUGH = 0.4  # p(supportive) that the edited text must reach
SETTLED = 0.75  # p(supportive) from which no further span is changed
_MOST_LINES = 20  # of a reply
_WORDS = re.compile(r"\s+|\w+(?:[-'’.,]\w+)*|[^\w\s]")


def changes(old: str, new: str) -> tuple[Change, ...]:
    """The changes from `old` to `new`, word by word: [start, end) of `old`, the text there, the text instead.

    >>> [(c.start, c.end, c.old, c.new) for c in changes("on 5 March", "on 8 March")]
    [(3, 4, '5', '8')]
    """
    a, b = _WORDS.findall(old), _WORDS.findall(new)
    places = [0]
    for word in a:
        places.append(places[-1] + len(word))
    spans: list[tuple[int, int, int, int]] = []
    for kind, i, j, k, m in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if kind != "equal" and spans and not "".join(a[spans[-1][1] : i]).strip():
            spans[-1] = (spans[-1][0], j, spans[-1][2], m)  # nothing but a blank between two changes: one change
        elif kind != "equal":
            spans.append((i, j, k, m))
    return tuple(
        Change(start=places[i], end=places[j], old="".join(a[i:j]), new="".join(b[k:m])) for i, j, k, m in spans
    )


def smallest_edit(claim: str, evidence: str, verifier: Entailment, watch: Watch | None = None) -> Edit | None:
    """The edited claim with what was changed and the verifier's ruling on it; None where no candidate is good enough.

    A claim that the verifier calls supported, or against which it says hardly more than for it, is not edited. What is
    put in comes from the sentences nearest to the claim. A fact against a found passage, which may speak of something
    else, is edited by `anchored_edit.py`.
    """
    before = verifier.judge([(claim, evidence)], watch)[0]
    if before.verdict == "supportive" or before.scores["editing_required"] - before.scores["supportive"] < DOUBT:
        return None
    whole, wide, evidence = evidence, focus(claim, evidence), focus(claim, evidence, CLOSE)
    text, done, score = claim, [], _worth(before, claim, evidence)
    best: Judged | None = None
    for _ in range(ROUNDS):
        found = _best(text, wide, evidence, verifier, watch)
        if found is None or found[2] < score + (0.05 if best is None else 0.1):
            break
        change, best, score = found
        done.append(change)
        text = apply(text, change)
        if best.scores["supportive"] >= SETTLED and _numbers_agree(text, evidence) == 1:
            break
    if best is None or text == claim or best.verdict != "supportive" or best.scores["supportive"] < ENOUGH:
        return None
    if set(missing(text, whole)) - set(missing(claim, whole)):
        return None
    kinds = ", ".join(dict.fromkeys(change.kind for change in done))
    return Edit(
        before=claim,
        after=text,
        changes=changes(claim, text),
        why=f"{kinds} as the evidence has it",
        made_by=f"substitution checked by {verifier.name}",
        ruling=Ruling.of(best, verifier),
    )


def focus(claim: str, evidence: str, words: int = FOCUS) -> str:
    """The sentence of the evidence that shares most of the claim's words, with its neighbours up to `words` words."""
    spans = sentences(evidence)
    if len(evidence.split()) <= words or len(spans) < 2:
        return evidence
    said = stems(claim)
    shared = [len(said & stems(evidence[a:b])) for a, b in spans]
    first = last = max(range(len(spans)), key=shared.__getitem__)
    while True:
        sides = [i for i in (first - 1, last + 1) if 0 <= i < len(spans)]
        sides = [i for i in sides if len(evidence[spans[min(first, i)][0] : spans[max(last, i)][1]].split()) <= words]
        if not sides:
            return evidence[spans[first][0] : spans[last][1]]
        best = max(sides, key=lambda i: shared[i])
        first, last = min(first, best), max(last, best)


def _best(
    text: str, wide: str, evidence: str, verifier: Entailment, watch: Watch | None
) -> tuple[Replacement, Judged, float] | None:
    """The replacement that the verifier and its kind speak for most, with the ruling on it and its worth."""
    candidates = replacements(text, wide)[:CANDIDATES]
    if not candidates:
        return None
    edited = [apply(text, change) for change in candidates]
    judged = verifier.judge([(new, evidence) for new in edited], watch)
    worths = [
        _worth(j, new, evidence) + KIND * c.weight - PRICE * _size(text, c)
        for j, new, c in zip(judged, edited, candidates, strict=True)
    ]
    at = max(range(len(worths)), key=worths.__getitem__)
    return candidates[at], judged[at], worths[at]


def _worth(judged: Judged, text: str, evidence: str) -> float:
    """p(supportive) - p(editing required) / 2, and what the numbers say, which a small network reads badly."""
    return judged.scores["supportive"] - judged.scores["editing_required"] / 2 + 0.4 * _numbers_agree(text, evidence)


def _numbers_agree(text: str, evidence: str) -> float:
    """Share of the text's numbers that the number most like them in the evidence bears out; 1 without numbers."""
    theirs = quantities(evidence)
    found = [(q, rival(q, theirs)) for q in quantities(text)]
    marks = [holds(q, others[0]) for q, others in found if others]
    return sum(marks) / len(marks) if marks else 1.0


def _size(text: str, change: Replacement) -> int:
    return max(len(text[change.start : change.end].split()), len(change.new.split()))


def parse_edit(reply: str, fact: str) -> tuple[str, str] | None:
    """(what differs, the corrected fact) of a reply; None without both, or where it is another sentence.

    The fix is the last line that shares half of its words with the fact; what comes behind it is left out.
    """
    said = lines(reply)[:_MOST_LINES]
    fixes = [place for place, line in enumerate(said) if place and _alike(fact, line)]
    return (said[0], said[fixes[-1]]) if fixes else None


def _alike(fact: str, line: str) -> bool:
    mine, theirs = fact.lower().split(), line.lower().split()
    if len(theirs) > 3 * len(mine):  # then less than half can be shared
        return False
    return SequenceMatcher(None, mine, theirs, autojunk=False).ratio() >= 0.5


def asked_edit(
    fact: str, evidence: str, writer: Writer, watch: Watch | None = None, *, demonstrations: int = 0
) -> tuple[Edit | None, Exchange]:
    """A language model's edit, not yet checked, and the exchange; no edit where the reply cannot be parsed.

    `fact` may be a whole answer, so the limit grows with it; a line cut at the limit is not read as a fix.
    """
    prompt = ask("edit", demonstrations, fact=fact, evidence=evidence)
    limit = Decoding(max_new_tokens=max(200, 100 + 2 * len(fact.split())))
    written = writer.generate(prompt, limit, None, watch)
    parsed = parse_edit(written.text if written.finished else written.text.rpartition("\n")[0], fact)
    edit = None
    if parsed is not None and parsed[1] != fact:
        wrong, fix = parsed
        edit = Edit(before=fact, after=fix, changes=changes(fact, fix), why=wrong, made_by=writer.name)
    return edit, Exchange(step="edit", prompt=prompt.text, reply=written.text, parsed=edit is not None)
