"""Should this case be refined: noise proxies, one difficulty, the decision tree's branch (grounded refinement, B).

The proxies are those of appendix B.2; each is put on a scale of our own from 0 (clean) to 1 (noisy), and the
difficulty is their plain mean, with every part shown. None of them is calibrated, and the page says so. The branches
and their evidence are those of figure 1; the cuts between clean, noisy and "cannot tell" are ours.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from engine.metrics import jaccard
from engine.text import counted, words
from engine.types import Hit, Passage, Value

Branch = Literal["nothing", "overlap heuristic", "overlap heuristic, always on"]
FEW, MANY = 5, 10  # passages: clean up to 5, noisy from 10 (figure 1)
CLEAN, NOISY = 0.35, 0.5  # difficulty under which a case counts as clean, from which as noisy; ours
TOP = 10  # the score distribution is read over the first ten
_OPEN = re.compile(
    r"\b(explain|describe|summari[sz]e|summary|overview|compare|discuss|outline|list|draft|narrative|develop\w*|"
    r"what happened|in what order|all (?:the )?steps|how did|what evidence|what do(?:es)? \w+ know)\b",
    re.IGNORECASE,
)


class Proxy(Value, frozen=True):
    """One sign of noisy retrieval: the figure as it is, in words what it is, and its part of the difficulty in [0, 1].

    `part` is None where the figure cannot be had; `sentence` then says why.
    """

    name: str
    figure: float | None
    part: float | None
    sentence: str


class Advice(Value, frozen=True):
    """The proxies, their mean, and the branch; `also` are pieces of advice that hold beside the branch."""

    proxies: tuple[Proxy, ...]
    difficulty: float | None
    branch: Branch
    title: str
    why: str
    evidence: str
    also: tuple[str, ...] = ()


EVIDENCE: dict[Branch, str] = {
    "nothing": "In the paper refinement of clean retrieval gained +2.08 points of citation precision with an interval"
    " that includes 0 (ALCE, 300 questions, 3 seeds); the attribution-triggered rewrite +0.19, borderline (16 cases).",
    "overlap heuristic": "In the paper D gained +7.09 points of citation precision over A on noisy retrieval, p < 0.01,"
    " in all three strata of relevance (GaRAGe, 300 questions, 3 seeds).",
    "overlap heuristic, always on": "In the paper D did no harm on clean retrieval and gained +7.09 points on noisy"
    " retrieval, for about 2 to 2.5 times the cost of A.",
}
TITLES: dict[Branch, str] = {
    "nothing": "Clean retrieval: leave the answer as it is",
    "overlap heuristic": "Noisy retrieval: add the passage-overlap heuristic (D)",
    "overlap heuristic, always on": "Not clear: run the passage-overlap heuristic (D) on every answer",
}
AGAINST_E = (
    "Take Self-Refine (E) out where it is in use: in the paper it lost 9.37 points of citation precision on clean"
    " retrieval and lost to v2c on both benchmarks."
)
FOR_LABELS = (
    "There are relevance labels: try v2c as well. In the paper it beat D by +0.42 (24 cases, one model); the gain over"
    " A did not repeat on a second model."
)


def advise(
    question: str,
    passages: Sequence[Passage],
    hits: Sequence[Hit] = (),
    vectors: ArrayLike | None = None,
    s3: float | None = None,
) -> Advice:
    """Advice for one case. `vectors`: unit vectors of the passages, (n, width); `s3` of its baseline answer.

    Without hits, vectors or S3 the difficulty is the mean of the parts that are left.
    """
    proxies = (
        score_spread(hits),
        passage_count(len(passages)),
        source_mix(passages),
        similarity(passages, vectors),
        specificity(question),
        overlap(s3),
    )
    parts = [proxy.part for proxy in proxies if proxy.part is not None]
    difficulty = float(np.mean(parts)) if parts else None
    labelled = any(passage.relevant is not None for passage in passages)
    branch, why = branch_of(len(passages), difficulty, [p.relevant for p in passages])
    return Advice(
        proxies=proxies,
        difficulty=difficulty,
        branch=branch,
        title=TITLES[branch],
        why=why,
        evidence=EVIDENCE[branch],
        also=(AGAINST_E, *((FOR_LABELS,) if labelled and branch != "nothing" else ())),
    )


def branch_of(passages: int, difficulty: float | None, labels: Sequence[bool | None]) -> tuple[Branch, str]:
    """The branch of figure 1 and why it is this one."""
    level = 1.0 if difficulty is None else difficulty
    said = f"{passages} passages, difficulty {level:.2f}"
    if passages <= FEW and level < CLEAN:
        return "nothing", f"{said}: at most {FEW} passages and under {CLEAN:.2f}."
    mixed = True in labels and False in labels
    if passages >= MANY and (level >= NOISY or mixed):
        marked = " and labels of both kinds" if mixed else f" and at least {NOISY:.2f}"
        return "overlap heuristic", f"{said}: at least {MANY} passages{marked}."
    return "overlap heuristic, always on", f"{said}: between the cuts for clean and for noisy."


def score_spread(hits: Sequence[Hit]) -> Proxy:
    """Top score against the tenth: far apart is confident, flat is noisy. Part = share of the top that is left."""
    name = "top score against tenth"
    scores = sorted((hit.parts.get("dense", hit.score) for hit in hits), reverse=True)[:TOP]
    if len(scores) < 2 or scores[0] <= 0:
        return Proxy(name=name, figure=None, part=None, sentence="There are no retrieval scores to compare.")
    gap = (scores[0] - scores[-1]) / scores[0]
    sentence = f"Top score {scores[0]:.2f}, number {len(scores)} has {scores[-1]:.2f}: a fall of {gap:.0%}."
    return Proxy(name=name, figure=gap, part=_clip(1 - gap), sentence=sentence)


def passage_count(count: int) -> Proxy:
    """More passages, more distractors: 0 up to 5, 1 from 15 (the paper's two benchmarks)."""
    sentence = f"{count} passages; the paper's clean set has 5, its noisy set 15."
    return Proxy(name="number of passages", figure=float(count), part=_clip((count - 5) / 10), sentence=sentence)


def source_mix(passages: Sequence[Passage]) -> Proxy:
    """Different documents among the passages: one source is cleaner than many."""
    sources = len({passage.document for passage in passages})
    part = (sources - 1) / (len(passages) - 1) if len(passages) > 1 else 0.0
    sentence = f"{counted(len(passages), 'passage')} from {counted(sources, 'document')}."
    return Proxy(name="mix of sources", figure=float(sources), part=_clip(part), sentence=sentence)


def similarity(passages: Sequence[Passage], vectors: ArrayLike | None) -> Proxy:
    """Mean similarity of two passages: alike is converging evidence. Cosine of vectors, else shared words."""
    name, pairs = "similarity of passages", list(combinations(range(len(passages)), 2))
    if not pairs:
        return Proxy(name=name, figure=None, part=None, sentence="One passage has nothing to be compared with.")
    if vectors is not None:
        matrix = np.asarray(vectors, dtype=np.float64)
        mean = float(np.mean([matrix[i] @ matrix[j] for i, j in pairs]))
        return Proxy(name=name, figure=mean, part=_clip(1 - mean), sentence=f"Mean cosine of two passages {mean:.2f}.")
    mean = float(np.mean([jaccard(passages[i].text, passages[j].text) for i, j in pairs]))
    return Proxy(
        name=name,
        figure=mean,
        part=_clip(1 - mean),
        sentence=f"Two passages share {mean:.0%} of their words on average.",
    )


def specificity(question: str) -> Proxy:
    """Names, codes and numbers make a question specific; "explain", "in what order" and the like open it.

    Part = 0.5 + 0.5 if open - 0.25 for each specific word, two at most.
    """
    specific, open_ended = specific_words(question), bool(_OPEN.search(question))
    part = 0.5 + 0.5 * open_ended - 0.25 * min(2, len(specific))
    named = f"names {', '.join(specific)}" if specific else "names nothing in particular"
    sentence = f"The question {named}{' and asks openly' if open_ended else ''}."
    return Proxy(name="query specificity", figure=float(len(specific)), part=_clip(part), sentence=sentence)


def specific_words(question: str) -> tuple[str, ...]:
    """Words of a question with a digit or, after the first, a capital; each once.

    >>> specific_words("Why was alert A-24-0317 closed by Tom?")
    ('A-24-0317', 'Tom')
    """
    found = [question[start:end] for start, end in words(question)]
    kept = [w for i, w in enumerate(found) if any(c.isdigit() for c in w) or (i > 0 and any(c.isupper() for c in w))]
    return tuple(dict.fromkeys(word for word in kept if word != "I"))


def overlap(s3: float | None) -> Proxy:
    """S3 of the baseline answer: low is itself a sign of noisy retrieval."""
    if s3 is None:
        return Proxy(name="S3 of the answer", figure=None, part=None, sentence="There is no baseline answer yet.")
    sentence = f"{s3:.0%} of the answer's content words are in the passages."
    return Proxy(name="S3 of the answer", figure=s3, part=_clip(1 - s3), sentence=sentence)


def _clip(value: float) -> float:
    return float(min(1.0, max(0.0, value)))
