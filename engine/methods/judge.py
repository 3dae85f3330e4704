"""Language models as judges: pairwise grounding, six criteria, four levels of relevance.

Pairwise (grounded refinement, sections 3.5 and 4.4.2): blinded, told to judge grounding, not length, asked in both
orders, counted only where the two agree. Six criteria from 0 to 5, total 30 (Attr-RAG, section V). Relevance of a
passage to a sub-question on four levels (RAISE, appendix C.3). Each is a closed question (models/closed.py): a judge
that scores answers by likelihood; another one's reply is kept, and counted as unparsed where it cannot be read.
Left out: the paper's half win for a tie; win% is of the pairs that were decided, with the ties beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeVar, get_args

from engine.core.progress import Watch
from engine.core.statistics import binomial_test, interval_or_none, mean_or_none
from engine.core.values import Prompt, Value
from engine.models.closed import GREEDY, By, Choice, can_score, choose, choose_each
from engine.models.protocols import Writer, require
from engine.models.replies import bare, parse_option
from engine.prompts import ask, fill

Vote = Literal["x", "y", "tie"]
Winner = Literal[Vote, "disagreed", "unparsed"]
Said = TypeVar("Said", bound=Winner | None)
VOTES = {"x": 1.0, "tie": 0.0, "y": -1.0}  # what a winner counts in a mean
Level = Literal["none", "superficial", "partial", "full"]
MEANING = {
    "relevance": "it keeps to the question and to the subject of the reference.",
    "correctness": "its facts, quantities and terms agree with the reference.",
    "completeness": "it has everything that matters in the reference.",
    "coherence": "it has a sensible order and its parts fit together.",
    "clarity": "it is precise and easy to understand.",
    "missing steps": "5 if no step, precaution or part of the reference is missing, 0 if most are.",
}
CRITERIA = tuple(MEANING)
HIGHEST = 5
NUMBERS = tuple(str(number) for number in range(HIGHEST + 1))
PAIR = ("X", "Y", "tie")
_SCORED = re.compile(
    rf"(?P<name>{'|'.join(CRITERIA)})\s*[:=]\s*(?P<score>[0-{HIGHEST}])(?:\s*/\s*{HIGHEST}| out of {HIGHEST})?[.,;]?",
    re.IGNORECASE,
)
LEVELS: tuple[Level, ...] = get_args(Level)


class PairJudgement(Value, frozen=True):
    """Two answers compared. `raw` are the replies, `prompts` what was asked, both empty for equal answers: a tie.

    `orders` are the votes for x, y or tie with x shown first and with y shown first, None where a reply could not be
    read. `probabilities` are the shares of x, y and tie in each order where likelihood decided (`by`), else empty.
    """

    winner: Winner
    orders: tuple[Vote | None, Vote | None]
    raw: tuple[str, str]
    prompts: tuple[str, str]
    judge: str
    by: By = "reply"
    probabilities: tuple[dict[str, float], dict[str, float]] = ({}, {})

    @property
    def preferred(self) -> Vote | None:
        """The vote with the largest mean share over both orders, which a fixed bias for a position does not turn.

        None without shares. It decides more pairs than `winner`, the papers' rule, and is told beside it.
        """
        one, other = self.probabilities
        both: dict[Vote, float] = {vote: one[vote] + other[vote] for vote in get_args(Vote) if vote in one}
        return max(both, key=lambda vote: both[vote], default=None)


class CriteriaJudgement(Value, frozen=True):
    """Scores 0 to 5 by criterion; None where the reply has none. `total` (0 to 30) is None unless all are there.

    By likelihood each criterion is a question of its own, and `probabilities` has the shares of 0 to 5 for each.
    """

    scores: dict[str, int | None]
    total: int | None
    raw: str
    judge: str
    by: By = "reply"
    probabilities: dict[str, dict[str, float]] = {}


class Tally(Value, frozen=True):
    """Judgements of x against y. `win_share` is of the decided pairs without ties, None without any.

    `mean` is over the pairs whose orders agree, +1 for x, 0 tie, -1 for y, with its 95% bootstrap interval (None
    under ten pairs); `p` is two-sided binomial over wins and losses. `disagreed` and `unparsed` are not counted in
    either, and are always shown. `first_share` is the position bias: of the single votes for an answer, the share for
    the one that was shown first (0.5: none), None without any.
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
    first_share: float | None = None


def pair_prompt(question: str, passages: Sequence[str], first: str, second: str) -> Prompt:
    """The comparison with `first` shown as X; nothing says which condition wrote which."""
    shown = "".join(fill("passage", number=n, text=text) for n, text in enumerate(passages, start=1))
    return ask("judge_pair", question=question, passages=shown, x=first, y=second)


def judge_pair(
    judge: Writer, question: str, passages: Sequence[str], x: str, y: str, watch: Watch = Watch()
) -> PairJudgement:
    """Ask twice, x first and y first; raises what the judge raises (`CannotDo`, `PromptTooLong`, `ServerError`).

    Equal texts are a tie that nobody is asked about: both orders are one prompt, so a vote for a place would count.
    """
    if x == y:
        return PairJudgement(winner="tie", orders=("tie", "tie"), raw=("", ""), prompts=("", ""), judge=judge.name)
    shown = (pair_prompt(question, passages, x, y), pair_prompt(question, passages, y, x))
    first, second = choose_each(judge, shown, PAIR, parse_pair, watch=watch)
    orders = (_vote(first.option), swapped(_vote(second.option)))
    return PairJudgement(
        winner=decide(*orders),
        orders=orders,
        raw=(first.reply, second.reply),
        prompts=(first.prompt.text, second.prompt.text),
        judge=judge.name,
        by=first.by,
        probabilities=(_shares(first), _shares(second, turned=True)),
    )


def judge_criteria(
    judge: Writer, question: str, reference: str, answer: str, watch: Watch = Watch()
) -> CriteriaJudgement:
    """Score an answer against a reference on the six criteria: six questions for a judge that scores, else one."""
    about = {"question": question, "reference": reference, "answer": answer}
    if can_score(judge):
        prompts = [ask("judge_criterion", criterion=f"{name}: {said}", **about) for name, said in MEANING.items()]
        asked = dict(zip(MEANING, choose_each(judge, prompts, NUMBERS, watch=watch), strict=True))
        scores = {name: int(str(choice.option)) for name, choice in asked.items()}
        return CriteriaJudgement(
            scores=dict(scores),
            total=sum(scores.values()),
            raw="\n\n".join(choice.reply for choice in asked.values() if choice.reply),
            judge=judge.name,
            by="likelihood",
            probabilities={name: choice.probabilities for name, choice in asked.items()},
        )
    require(judge, "generate")
    listed = "\n".join(f"{name}: {meaning}" for name, meaning in MEANING.items())
    raw = judge.generate(ask("judge_criteria", criteria=listed, **about), GREEDY, None, watch).text
    read = parse_criteria(raw)
    known = [score for score in read.values() if score is not None]
    total = sum(known) if len(known) == len(CRITERIA) else None
    return CriteriaJudgement(scores=read, total=total, raw=raw, judge=judge.name)


def judge_relevance(judge: Writer, problem: str, step: str, document: str, watch: Watch = Watch()) -> Choice:
    """How far a document helps with a step of a problem: the level, None where the reply names none or several."""
    prompt = ask("judge_relevance", problem=problem, step=step, document=document)
    return choose(judge, prompt, LEVELS, parse_relevance, watch=watch)


def _shares(choice: Choice, *, turned: bool = False) -> dict[str, float]:
    """The shares of the votes, those of the second order in the names of the first."""
    votes = {_vote(option): share for option, share in choice.probabilities.items()}
    return {str(swapped(vote) if turned else vote): share for vote, share in votes.items()}


def _vote(option: str | None) -> Vote | None:
    return option.casefold() if option else None  # type: ignore[return-value]


def parse_pair(reply: str) -> Vote | None:
    """The vote of a reply in its own order (x = shown as X); None where it has none, or two that differ.

    >>> parse_pair("X adds a date.\\n**Verdict: Y**"), parse_pair("Verdict: X or Y")
    ('y', None)
    """
    return _vote(parse_option(reply, PAIR, ("verdict", "answer", "winner", "better answer")))


def parse_relevance(reply: str) -> Level | None:
    """The level of a reply; None where it has none, or two that differ."""
    return parse_option(reply, LEVELS, ("relevance", "level", "rating", "answer"))  # type: ignore[return-value]


def parse_criteria(reply: str) -> dict[str, int | None]:
    """The six scores of a reply; None where a criterion is missing, out of range or scored twice differently.

    >>> parse_criteria("Relevance: 4\\n- clarity: 5/5\\ncoherence: 7")["clarity"]
    5
    """
    found: dict[str, set[int]] = {name: set() for name in CRITERIA}
    for line in reply.splitlines():
        match = _SCORED.fullmatch(bare(line).replace("*", "").strip())
        if match:
            found[match["name"].casefold()].add(int(match["score"]))
    return {name: scores.pop() if len(scores) == 1 else None for name, scores in found.items()}


def swapped(vote: Said) -> Said:
    """A vote or winner of the second order in the names of the first."""
    names: Mapping[Said, Said] = {"x": "y", "y": "x"}  # type: ignore[dict-item]
    return names.get(vote, vote)


def decide(first: Vote | None, second: Vote | None) -> Winner:
    """The winner where both orders agree."""
    if first is None or second is None:
        return "unparsed"
    return first if first == second else "disagreed"


def tally(judgements: Iterable[PairJudgement | Winner]) -> Tally:
    """Count judgements of x against y; winners alone have no position bias."""
    judged = list(judgements)
    winners = [j if isinstance(j, str) else j.winner for j in judged]
    counts = {name: winners.count(name) for name in get_args(Winner)}
    values = [VOTES[winner] for winner in winners if winner in VOTES]
    decided = counts["x"] + counts["y"]
    interval = interval_or_none(values)
    return Tally(
        wins=counts["x"],
        losses=counts["y"],
        ties=counts["tie"],
        disagreed=counts["disagreed"],
        unparsed=counts["unparsed"],
        win_share=counts["x"] / decided if decided else None,
        mean=mean_or_none(values),
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        p=binomial_test(counts["x"], decided),
        first_share=first_share(j.orders for j in judged if not isinstance(j, str)),
    )


def first_share(orders: Iterable[Sequence[Vote | None]]) -> float | None:
    """Of the single votes for an answer, with x shown first and with y shown first, the share for the first one.

    >>> first_share([("x", "y"), ("x", "x"), ("tie", None)]), first_share([("tie", "tie")])
    (0.75, None)
    """
    firsts = ((vote, first) for pair in orders for vote, first in zip(pair, ("x", "y"), strict=True))
    return mean_or_none([vote == first for vote, first in firsts if vote in ("x", "y")])


def judge_warning(judge: str, writers: Sequence[str]) -> str:
    """The warning to show with judgements by this model; empty unless it judges its own answers."""
    said = f"{judge} judges its own answers, and models prefer their own. Choose another judge."
    return said if judge in writers else ""
