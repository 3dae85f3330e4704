"""The values of refinement (grounded refinement, section 3.4): what a condition wrote, why it ran, what it cost."""

from __future__ import annotations

from typing import Literal, get_args

from msgspec.structs import asdict

from engine.core.settings import Decoding
from engine.core.values import Answer, Attribution, Json, Prompt, Stamp, Value

Gate = Literal["own", "always"]
WithAnswer = Literal["answered", "not triggered", "refused", "copied", "cut"]
WITH_ANSWER: tuple[WithAnswer, ...] = get_args(WithAnswer)
Outcome = Literal[WithAnswer, "not applicable", "empty", "too long", "timed out", "failed"]
Purpose = Literal["answer", "critique", "revision"]


class Turn(Value, frozen=True):
    """One call of the writer: what for, the exact prompt, the reply as it came."""

    purpose: Purpose
    prompt: Prompt
    reply: Answer


class Cost(Value, frozen=True):
    """The cost: forward and backward passes, token positions processed, seconds.

    `forwards` and `tokens` are None where the model does not say (a served one); `written` counts answer tokens.
    """

    forwards: int | None = 0
    backwards: int = 0
    tokens: int | None = 0
    written: int = 0
    seconds: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        """The sum; unknown if either is."""
        pairs = {name: (value, getattr(other, name)) for name, value in asdict(self).items()}
        return Cost.from_dict({name: None if None in pair else sum(pair) for name, pair in pairs.items()})


class Trigger(Value, frozen=True):
    """Whether a condition fires, on which rule and figures; `passages` are those that the rule points at."""

    rule: Literal["S3", "labels", "concentration", "always", "unavailable"]
    fired: bool
    sentence: str
    passages: tuple[int, ...] = ()
    figures: dict[str, float] = {}


class Variant(Value, frozen=True):
    """One condition on the case. `trigger` is None for A, B and C1, which no rule starts; `seed` is its own stream.

    `outcome` "not triggered": the answer is A's, byte for byte; "not applicable": a critique that names passages has
    none to name. `problem` says what happened to one without an answer, or what to know of one that has it (refused,
    copied from its instructions, cut at the token limit).
    """

    name: str
    outcome: Outcome
    answer: Answer | None = None
    trigger: Trigger | None = None
    seed: int | None = None
    turns: tuple[Turn, ...] = ()
    cost: Cost = Cost()
    problem: str = ""

    @property
    def triggered(self) -> bool | None:
        """Whether the second pass ran; None for a condition without one."""
        return None if self.trigger is None else self.trigger.fired

    @property
    def own_problem(self) -> str:
        """The problem, unless the trigger's sentence says it."""
        return "" if self.trigger is not None and self.problem == self.trigger.sentence else self.problem


class Word(Value, frozen=True):
    """A content word of the answer at characters [start, end); `found` if a passage has it."""

    start: int
    end: int
    found: bool


class Signals(Value, frozen=True):
    """S1 in [0, 1], S2 in nats per token, S3 in [0, 1], each None where `missing` says why; see signals.py."""

    s1: float | None = None
    s2: float | None = None
    s2_content: float | None = None
    s3: float | None = None
    words: tuple[Word, ...] = ()
    missing: dict[str, str] = {}
    banner: str = ""


class OverlapThreshold(Value, frozen=True):
    """S3 below which D fires, the rule behind it in words, and the number of cases used."""

    value: float
    rule: str
    n: int


class Refinement(Value, frozen=True):
    """All conditions of one case. `shared` is the cost of common parts: "S2", "gradient".

    `gradient` holds the passages' relevance for A's first content tokens (details.lengths: tokens a passage),
    or `gradient_missing` says what to do to get it. `order` lists the conditions asked for.
    """

    stamp: Stamp
    gate: Gate
    order: tuple[str, ...]
    decoding: Decoding
    variants: dict[str, Variant] = {}
    signals: Signals = Signals()
    threshold: OverlapThreshold | None = None
    gradient: Attribution | None = None
    gradient_missing: str = ""
    scorer: str = ""
    shared: dict[str, Cost] = {}
    notes: tuple[str, ...] = ()

    @property
    def baseline(self) -> Answer | None:
        """A's answer."""
        return self.variants["A"].answer if "A" in self.variants else None

    @property
    def repeats(self) -> frozenset[str]:
        """The conditions whose answer is A's, word for word."""
        if self.baseline is None:
            return frozenset()
        texts = {name: variant.answer.text for name, variant in self.variants.items() if variant.answer is not None}
        return frozenset(name for name, text in texts.items() if text == self.baseline.text and name != "A")

    @property
    def shown(self) -> tuple[int, ...]:
        """Numbers of the passages in the prompts; empty until a text is written from passages."""
        prompts = (turn.prompt for variant in self.variants.values() for turn in variant.turns)
        return next((prompt.numbers for prompt in prompts if prompt.numbers), ())

    @property
    def missing(self) -> dict[str, str]:
        """Why a signal or the gradient rows are not there, by their names."""
        return {**self.signals.missing, **({"gradient": self.gradient_missing} if self.gradient_missing else {})}

    @property
    def finished(self) -> bool:
        """Whether every condition asked for is there, with an answer or with what happened to it."""
        return all(name in self.variants for name in self.order)

    def summary(self) -> Json:
        """The record of the command line: name to answer, triggered, signals on A, forwards, tokens, seconds."""
        signals = {"S1": self.signals.s1, "S2": self.signals.s2, "S3": self.signals.s3}
        return {name: _row(self.variants[name], signals) for name in self.order if name in self.variants}


def _row(variant: Variant, signals: dict[str, float | None]) -> Json:
    row: Json = {
        "answer": variant.answer.text if variant.answer else None,
        "triggered": variant.triggered,
        "seed": variant.seed,
        "outcome": variant.outcome,
        "signals": signals,
        **{name: getattr(variant.cost, name) for name in ("forwards", "tokens", "written", "seconds")},
    }
    if variant.trigger is not None:
        row["trigger"] = variant.trigger.to_dict()
    if variant.problem:
        row["problem"] = variant.problem
    return row
