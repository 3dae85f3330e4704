"""Should this case be refined (grounded refinement, appendix B)? Also the AML tasks, and the gain by quartile of S3.

The signs of noisy retrieval are those of appendix B.2; each is put on a scale of our own from 0 (clean) to 1 (noisy),
and the difficulty is their plain mean, with every part shown. None is calibrated, and the page says so. The branches
and their evidence are those of figure 1; the cuts are ours. Left out: nothing.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Sequence
from itertools import combinations, pairwise
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from engine.core.errors import InputError
from engine.core.metrics import jaccard
from engine.core.statistics import FEWEST, paired_bootstrap, rank_correlation
from engine.core.text import counted, words
from engine.core.values import Hit, Passage, Value

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
    """The proxies, their mean, and the branch; `also` has advice in addition to the branch."""

    proxies: tuple[Proxy, ...]
    difficulty: float
    branch: Branch
    title: str
    why: str
    evidence: str
    also: tuple[str, ...] = ()


_SAID = tomllib.loads(Path(__file__).with_name("advice.toml").read_text(encoding="utf-8"))
TITLES: dict[Branch, str] = {branch: said["title"] for branch, said in _SAID["branches"].items()}


def _line(text: str) -> str:
    return " ".join(text.split())


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
    difficulty = float(np.mean(parts))
    labelled = any(passage.relevant is not None for passage in passages)
    branch, why = branch_of(len(passages), difficulty, [p.relevant for p in passages])
    names = ("against_e", *(("for_labels",) if labelled and branch != "nothing" else ()))
    return Advice(
        proxies=proxies,
        difficulty=difficulty,
        branch=branch,
        title=TITLES[branch],
        why=why,
        evidence=_line(_SAID["branches"][branch]["evidence"]),
        also=tuple(_line(_SAID[name]) for name in names),
    )


def branch_of(passages: int, difficulty: float, labels: Sequence[bool | None]) -> tuple[Branch, str]:
    """The branch of figure 1 and why it is this one."""
    said = f"{counted(passages, 'passage')}, difficulty {difficulty:.2f}"
    if passages <= FEW and difficulty < CLEAN:
        return "nothing", f"{said}: at most {FEW} passages and under {CLEAN:.2f}."
    mixed = True in labels and False in labels
    if passages >= MANY and (difficulty >= NOISY or mixed):
        marked = " and labels of both kinds" if mixed else f" and at least {NOISY:.2f}"
        return "overlap heuristic", f"{said}: at least {MANY} passages{marked}."
    why = f"more than {FEW} passages and fewer than {MANY}"
    if passages <= FEW:
        why = f"at most {FEW} passages, but not under {CLEAN:.2f}"
    elif passages >= MANY:
        why = f"at least {MANY} passages, but under {NOISY:.2f} and without labels of both kinds"
    return "overlap heuristic, always on", f"{said}: {why}."


def score_spread(hits: Sequence[Hit]) -> Proxy:
    """Top score against the tenth: far apart is confident, flat is noisy. Part = share of the top that is left."""
    name = "top score against tenth"
    scores = sorted((hit.parts.get("dense", hit.score) for hit in hits), reverse=True)[:TOP]
    if len(scores) < 2 or scores[0] <= 0:
        return Proxy(name=name, figure=None, part=None, sentence="The case has no retrieval scores to compare.")
    gap = (scores[0] - scores[-1]) / scores[0]
    sentence = f"Top score {scores[0]:.2f}, number {len(scores)} has {scores[-1]:.2f}: a drop of {gap:.0%}."
    return Proxy(name=name, figure=gap, part=_clip(1 - gap), sentence=sentence)


def passage_count(count: int) -> Proxy:
    """More passages, more distractors: 0 up to 5, 1 from 15 (the paper's two benchmarks)."""
    sentence = f"{counted(count, 'passage')}; the paper's clean set has 5, its noisy set 15."
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
        return Proxy(name=name, figure=None, part=None, sentence="A single passage cannot be compared.")
    if vectors is not None:
        matrix = np.asarray(vectors, dtype=np.float64)
        mean = float(np.mean([matrix[i] @ matrix[j] for i, j in pairs]))
        sentence = f"Mean cosine of two passages {mean:.2f}."
    else:
        mean = float(np.mean([jaccard(passages[i].text, passages[j].text) for i, j in pairs]))
        sentence = f"Two passages share {mean:.0%} of their words on average."
    return Proxy(name=name, figure=mean, part=_clip(1 - mean), sentence=sentence)


def specificity(question: str) -> Proxy:
    """Names, codes and numbers make a question specific; "explain", "in what order" and the like open it.

    Part = 0.5 + 0.5 if open - 0.25 for each specific word, two at most.
    """
    specific, open_ended = specific_words(question), bool(_OPEN.search(question))
    part = 0.5 + 0.5 * open_ended - 0.25 * min(2, len(specific))
    named = f"names {', '.join(specific)}" if specific else "names nothing in particular"
    sentence = f"The question {named}{' and is open-ended' if open_ended else ''}."
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
        return Proxy(name="S3 of the answer", figure=None, part=None, sentence="The baseline has no answer yet.")
    sentence = f"{s3:.0%} of the answer's content words are in the passages."
    return Proxy(name="S3 of the answer", figure=s3, part=_clip(1 - s3), sentence=sentence)


def _clip(value: float) -> float:
    return float(min(1.0, max(0.0, value)))


# The AML tasks (table 17), each with a question of the sample bank investigation. Where the table's strategy differs
# from the advice for what is really retrieved, the retrieval has another shape than the table supposes: the page says
# so.

CORPUS = "bank-investigation"


class AmlTask(Value, frozen=True):
    """A task, the retrieval the table supposes for it, its strategy, and an example with a fitting `k`."""

    name: str
    shape: str
    noisy: bool
    strategy: str
    question: str
    k: int

    @property
    def branch(self) -> Branch:
        """The table's strategy as a branch."""
        return "overlap heuristic" if self.noisy else "nothing"


TASKS = tuple(AmlTask.from_dict(task) for task in _SAID["tasks"])
CAVEATS = tuple(map(_line, _SAID["caveats"]))


# Gain D - A by quartile of S3 (grounded refinement, section 3.8, table 4), with a question-level bootstrap. Ungated
# runs only: a gated D is A wherever S3 is high, so its gain there is 0 by construction.

NAMES = ("lowest S3", "second", "third", "highest S3")


class Point(Value, frozen=True):
    """One run of one question: S3 of A, and the gain of the ungated D over A."""

    question: str
    s3: float
    gain: float


class Quartile(Value, frozen=True):
    """Questions from `s3_low` to `s3_high`; `gain` is the mean, its interval None under ten."""

    name: str
    questions: int
    s3_low: float
    s3_high: float
    gain: float
    low: float | None
    high: float | None


class QuartileStudy(Value, frozen=True):
    """Gains by quartile from the lowest S3 up, and Spearman's rho of S3 and gain (None where undefined).

    The readings are the paper's and ours where D gains most at the lowest S3, else they say where it does. A cut
    between equal values of S3 gives no quartiles, and the reading says so.
    """

    quartiles: tuple[Quartile, ...]
    rho: float | None
    readings: tuple[str, ...]


def gain_by_quartile(points: Sequence[Point]) -> QuartileStudy:
    """Cut by mean S3 a question, unless a cut parts equal ones. `InputError` for fewer than four questions."""
    groups: dict[str, list[Point]] = {}
    for point in points:
        groups.setdefault(point.question, []).append(point)
    if len(groups) < len(NAMES):
        raise InputError(f"Quartiles need at least {len(NAMES)} questions, but there are {len(groups)}. Run more.")
    ordered = sorted(groups.values(), key=_mean_s3)
    places = np.array_split(np.arange(len(ordered)), len(NAMES))
    parts = [[ordered[i] for i in part] for part in places]
    gains = [float(np.mean([point.gain for point in group])) for group in ordered]
    rho = rank_correlation([_mean_s3(group) for group in ordered], gains)
    tied = next((s3 for one, after in pairwise(parts) if (s3 := _mean_s3(one[-1])) == _mean_s3(after[0])), None)
    if tied is not None:
        said = f"No quartiles: a cut falls between questions of equal S3 ({tied:.3f}), so their order would decide."
        return QuartileStudy(quartiles=(), rho=rho, readings=(said,))
    quartiles = tuple(_quartile(name, part) for name, part in zip(NAMES, parts, strict=True))
    return QuartileStudy(quartiles=quartiles, rho=rho, readings=_readings(quartiles))


def _readings(quartiles: Sequence[Quartile]) -> tuple[str, ...]:
    lowest, *others = quartiles
    if lowest.gain > max(0.0, *(other.gain for other in others)):
        return tuple(map(_line, _SAID["readings"]))
    most = max(quartile.gain for quartile in quartiles)
    where = ", ".join(quartile.name for quartile in quartiles if quartile.gain == most)
    return (f"D gains most in: {where} ({most:+.3f}). The paper's pattern, most where S3 is lowest, does not appear.",)


def _mean_s3(group: Sequence[Point]) -> float:
    return math.fsum(point.s3 for point in group) / len(group)  # exact, so that the order of seeds parts no tie


def _quartile(name: str, part: Sequence[Sequence[Point]]) -> Quartile:
    """One part with the bootstrap of its gain; a question's seeds are drawn together."""
    points = [point for group in part for point in group]
    found = paired_bootstrap([p.gain for p in points], [0.0] * len(points), [p.question for p in points])
    enough = len(part) >= FEWEST
    return Quartile(
        name=name,
        questions=len(part),
        s3_low=min(_mean_s3(group) for group in part),
        s3_high=max(_mean_s3(group) for group in part),
        gain=found.mean,
        low=found.low if enough else None,
        high=found.high if enough else None,
    )
