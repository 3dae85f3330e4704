"""Language models as judges: pairwise grounding, six criteria, four levels of relevance.

Pairwise (grounded refinement, 3.5 and 4.4.2): blinded, told to judge grounding and not length, asked in both orders,
counted only where the two orders agree. Six criteria from 0 to 5, total 30 (Attr-RAG, section V). Relevance of a
passage to a sub-question on four levels (RAISE, appendix C.3). Asking, parsing and deciding are apart: the raw reply
is kept, and a reply that cannot be read is counted as unparsed, never as a vote.
Left out: the paper's half win for a tie; win% is of the pairs that were decided, with the ties beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, get_args

from engine.models.protocols import Writer, require
from engine.progress import Watch
from engine.prompts import fill
from engine.settings import Decoding
from engine.statistics import binomial_test, interval_or_none
from engine.types import Prompt, Segment, Value

Vote = Literal["x", "y", "tie"]
Winner = Literal["x", "y", "tie", "disagreed", "unparsed"]
Level = Literal["none", "superficial", "partial", "full"]
CRITERIA = ("relevance", "correctness", "completeness", "coherence", "clarity", "missing steps")
HIGHEST = 5
EMBEDDED = "embedded"
GREEDY = Decoding(max_new_tokens=512, temperature=0.0)
EMBEDDED_DECODING = Decoding(max_new_tokens=96, temperature=0.0)  # not trained to judge: what goes on repeats itself


class PairJudgement(Value, frozen=True):
    """Two answers compared. `raw` are the replies, `prompts` what was asked.

    `orders` are the votes for x, y or tie with x shown first and with y shown first, None where a reply could not be
    read.
    """

    winner: Winner
    orders: tuple[Vote | None, Vote | None]
    raw: tuple[str, str]
    prompts: tuple[str, str]
    judge: str


class CriteriaJudgement(Value, frozen=True):
    """Scores 0 to 5 by criterion; None where the reply has none. `total` (0 to 30) is None unless all are there."""

    scores: dict[str, int | None]
    total: int | None
    raw: str
    judge: str


class RelevanceJudgement(Value, frozen=True):
    """The level, None where the reply names none or more than one."""

    level: Level | None
    raw: str
    judge: str


class Tally(Value, frozen=True):
    """Judgements of x against y. `win_share` is of the decided pairs without ties, None without any.

    `mean` is over the pairs whose orders agree, +1 for x, 0 tie, -1 for y, with its 95% bootstrap interval (None
    under ten pairs); `p` is two-sided binomial over wins and losses. `disagreed` and `unparsed` are not counted in
    either, and are always shown.
    """

    wins: int
    losses: int
    ties: int
    disagreed: int
    unparsed: int
    win_share: float | None
    mean: float | None
    low: float | None
    high: float | None
    p: float


# Asking


def pair_prompt(question: str, passages: Sequence[str], first: str, second: str) -> Prompt:
    """The comparison with `first` shown as X; nothing says which condition wrote which."""
    shown = "".join(fill("passage", number=n, text=text) for n, text in enumerate(passages, start=1))
    return _prompt(fill("judge_pair", question=question, passages=shown, x=first, y=second))


def judge_pair(
    judge: Writer, question: str, passages: Sequence[str], x: str, y: str, watch: Watch | None = None
) -> PairJudgement:
    """Ask twice, x first and y first; raises what the judge raises (`CannotDo`, `PromptTooLong`, `ServerError`)."""
    require(judge, "generate")
    prompts = (pair_prompt(question, passages, x, y), pair_prompt(question, passages, y, x))
    raw = tuple(_reply(judge, prompt, watch) for prompt in prompts)
    orders = (parse_pair(raw[0]), swapped(parse_pair(raw[1])))
    return PairJudgement(
        winner=decide(*orders),
        orders=orders,
        raw=(raw[0], raw[1]),
        prompts=(prompts[0].text, prompts[1].text),
        judge=judge.name,
    )


def judge_criteria(
    judge: Writer, question: str, reference: str, answer: str, watch: Watch | None = None
) -> CriteriaJudgement:
    """Score an answer against a reference on the six criteria."""
    require(judge, "generate")
    prompt = _prompt(fill("judge_criteria", question=question, reference=reference, answer=answer))
    raw = _reply(judge, prompt, watch)
    scores = parse_criteria(raw)
    found = [score for score in scores.values() if score is not None]
    total = sum(found) if len(found) == len(CRITERIA) else None
    return CriteriaJudgement(scores=scores, total=total, raw=raw, judge=judge.name)


def judge_relevance(
    judge: Writer, problem: str, step: str, document: str, watch: Watch | None = None
) -> RelevanceJudgement:
    """How far a document helps with a step of a problem."""
    require(judge, "generate")
    prompt = _prompt(fill("judge_relevance", problem=problem, step=step, document=document))
    raw = _reply(judge, prompt, watch)
    return RelevanceJudgement(level=parse_relevance(raw), raw=raw, judge=judge.name)


def _reply(judge: Writer, prompt: Prompt, watch: Watch | None) -> str:
    decoding = EMBEDDED_DECODING if judge.name == EMBEDDED else GREEDY
    return judge.generate(prompt, decoding, None, watch).text


def _prompt(text: str) -> Prompt:
    return Prompt(segments=(Segment(kind="instruction", text=text),))


# Parsing


def parse_pair(reply: str) -> Vote | None:
    """The vote of a reply in its own order (x = shown as X); None where it has none, or two that differ.

    >>> parse_pair("X adds a date.\\n**Verdict: Y**"), parse_pair("Verdict: X or Y")
    ('y', None)
    """
    found = _lines(reply, "verdict", ("x", "y", "tie"))
    return found.pop() if len(found) == 1 else None  # type: ignore[return-value]


def parse_relevance(reply: str) -> Level | None:
    """The level of a reply; None where it has none, or two that differ."""
    found = _lines(reply, "relevance", get_args(Level))
    return found.pop() if len(found) == 1 else None  # type: ignore[return-value]


def parse_criteria(reply: str) -> dict[str, int | None]:
    """The six scores of a reply; None where a criterion is missing, out of range or scored twice differently.

    >>> parse_criteria("Relevance: 4\\n- clarity: 5/5\\ncoherence: 7")["clarity"]
    5
    """
    numbers = tuple(str(n) for n in range(HIGHEST + 1))
    found = {name: _lines(reply, name, numbers, end=r"(?:\s*/\s*5)?") for name in CRITERIA}
    return {name: int(next(iter(values))) if len(values) == 1 else None for name, values in found.items()}


def _lines(reply: str, label: str, values: Sequence[str], end: str = "") -> set[str]:
    """The values that stand after `label:` on lines with nothing else on them but marks."""
    pattern = rf"^[\W_]*{re.escape(label)}[\s*_]*[:=][\s*_]*({'|'.join(values)}){end}[\W_]*$"
    return {match.casefold() for match in re.findall(pattern, reply, re.IGNORECASE | re.MULTILINE)}


# Deciding


def swapped(vote: Vote | None) -> Vote | None:
    """A vote of the second order in the names of the first."""
    names: Mapping[Vote | None, Vote | None] = {"x": "y", "y": "x"}
    return names.get(vote, vote)


def decide(first: Vote | None, second: Vote | None) -> Winner:
    """The winner where both orders agree."""
    if first is None or second is None:
        return "unparsed"
    return first if first == second else "disagreed"


def tally(judgements: Iterable[PairJudgement | Winner]) -> Tally:
    """Count judgements of x against y."""
    winners = [j if isinstance(j, str) else j.winner for j in judgements]
    counts = {name: winners.count(name) for name in get_args(Winner)}
    values = [{"x": 1.0, "tie": 0.0, "y": -1.0}[w] for w in winners if w in ("x", "y", "tie")]
    decided = counts["x"] + counts["y"]
    interval = interval_or_none(values)
    return Tally(
        wins=counts["x"],
        losses=counts["y"],
        ties=counts["tie"],
        disagreed=counts["disagreed"],
        unparsed=counts["unparsed"],
        win_share=counts["x"] / decided if decided else None,
        mean=sum(values) / len(values) if values else None,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        p=binomial_test(counts["x"], decided),
    )


def judge_warning(judge: str, writers: Sequence[str] = ()) -> str:
    """What has to stand beside a judgement by this model; empty where nothing does."""
    if judge in writers:
        return f"{judge} judges its own answers: models prefer their own. Name another judge."
    if judge == EMBEDDED:
        return "The embedded model was not trained to judge: its votes show how the page works and nothing else."
    return ""
