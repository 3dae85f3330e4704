"""The engine's requirements of a model: small protocols, each with only the varying parts.

A model says what it can do in `can`; a caller that needs more raises `CannotDo` with the way out through
`require`. All log-probabilities are natural logarithms (nats).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from engine.core.errors import CannotDo
from engine.core.progress import OnText, Watch
from engine.core.settings import Decoding
from engine.core.values import Answer, Prompt

Floats = NDArray[np.float32]
Ids = Sequence[int]  # of tokens
LogProbs = NDArray[np.float64]  # of tokens, in nats
VerdictClass = Literal["supportive", "editing_required", "irrelevant"]


@dataclass(frozen=True)
class Can:
    """A model's abilities; `why_not` suggests an alternative for missing ones."""

    generate: bool = True
    score: bool = False
    gradients: bool = False
    why_not: str = ""


@dataclass(frozen=True)
class TokenPrompt:
    """A prompt as token ids, ready for the model: chat-template pieces included.

    `ids` is the concatenation of the segments' own ids; `spans[i]` = (segment index, first, last + 1) in `ids`,
    in order; pieces that the chat template adds carry segment index -1. `numbers[i]` is the citation number
    where the piece is a passage, else None. Removing a passage removes exactly its ids.
    """

    ids: tuple[int, ...]
    spans: tuple[tuple[int, int, int], ...]
    numbers: tuple[int | None, ...]

    @classmethod
    def of(cls, pieces: Iterable[tuple[int, Ids, int | None]]) -> TokenPrompt:
        """From the pieces in order: each one's segment, ids and citation number."""
        ids: list[int] = []
        spans: list[tuple[int, int, int]] = []
        numbers: list[int | None] = []
        for segment, new, number in pieces:
            spans.append((segment, len(ids), len(ids) + len(new)))
            numbers.append(number)
            ids.extend(new)
        return cls(ids=tuple(ids), spans=tuple(spans), numbers=tuple(numbers))

    def without(self, numbers: frozenset[int] | set[int]) -> TokenPrompt:
        """The same ids less those of the passages `numbers`, positions closed up; nothing tokenised again."""
        pieces = zip(self.spans, self.numbers, strict=True)
        return TokenPrompt.of((s, self.ids[start:end], n) for (s, start, end), n in pieces if n not in numbers)

    def passage_span(self, number: int) -> tuple[int, int]:
        """[first, last + 1) of passage `number` in `ids`; KeyError if it is not there."""
        for (_, start, end), known in zip(self.spans, self.numbers, strict=True):
            if known == number:
                return start, end
        raise KeyError(number)


@runtime_checkable
class Embedder(Protocol):
    """Texts to unit vectors."""

    name: str
    dimensions: int

    def embed(self, texts: Sequence[str], watch: Watch = Watch()) -> Floats:
        """Return unit vectors, shape (len(texts), dimensions)."""


@runtime_checkable
class Reranker(Protocol):
    """Scores of texts for a question; higher is better, scale is the model's own."""

    name: str

    def rank_scores(self, question: str, texts: Sequence[str]) -> Floats:
        """Return one score per text, shape (len(texts),)."""


@dataclass(frozen=True)
class Judged:
    """A verdict of evidence on a claim with the three class probabilities (sum 1).

    `window` is the [start, end) span of the evidence that decided, where it is known; `windows` how many were read.
    """

    verdict: VerdictClass
    scores: dict[str, float]
    window: tuple[int, int] = (0, 0)
    windows: int = 1


@runtime_checkable
class Entailment(Protocol):
    """Does evidence bear out a claim: the three classes of ARE (4.3)."""

    name: str

    def judge(self, pairs: Sequence[tuple[str, str]], watch: Watch = Watch()) -> list[Judged]:
        """Judge (claim, evidence) pairs, batched, in order."""

    def entailment(self, pairs: Sequence[tuple[str, str]], watch: Watch = Watch()) -> Floats:
        """Probability in [0, 1] that the evidence entails the claim, shape (len(pairs),)."""


@runtime_checkable
class Writer(Protocol):
    """Whatever can write text from a prompt: a local language model, a server, a scripted fake."""

    name: str
    can: Can

    def generate(
        self, prompt: Prompt, decoding: Decoding, on_text: OnText | None = None, watch: Watch = Watch()
    ) -> Answer:
        """Write an answer; `on_text` gets the text so far; raise PromptTooLong or Cancelled.

        The answer carries text and tokens (ids, spans, log-probabilities where known); citations and sentences
        are added by `engine.answer.citations`.
        """


@runtime_checkable
class LanguageModel(Writer, Protocol):
    """A writer that gives probabilities; every white-box method needs one."""

    def encode(self, prompt: Prompt) -> TokenPrompt:
        """Tokenise each segment on its own and concatenate; add the chat template's tokens."""

    def encode_answer(self, text: str) -> Answer:
        """An answer from plain text, tokenised once (imported answers): token ids and character spans."""

    def score(self, prompts: Sequence[TokenPrompt], answer_ids: Ids, watch: Watch = Watch()) -> LogProbs:
        """Teacher-forced log-probabilities (nats) of the answer's tokens, shape (len(prompts), len(answer_ids)).

        Row i, column t: log p(answer[t] | prompts[i], answer[:t]). Exact: a row does not depend on the others
        beyond the numerical floor.
        """


@dataclass(frozen=True, eq=False)
class WritingRequest:
    """An answer to be written: the prompt's ids, the most tokens, and how to choose them."""

    ids: Ids
    limit: int
    decoding: Decoding


@dataclass(frozen=True)
class WrittenAnswer:
    """The answer to a request, None where it must be written alone, and its share of the batch's seconds."""

    asked: WritingRequest
    answer: Answer | None
    seconds: float


def require(model: Writer, capability: Literal["generate", "score", "gradients"]) -> None:
    """Raise `CannotDo` with the way out unless `model` has the capability."""
    if not getattr(model.can, capability):
        words = {"generate": "write text", "score": "score a given text", "gradients": "give gradients"}
        raise CannotDo(f"{model.name} cannot {words[capability]}. {model.can.why_not}".strip())


def growing_scores(
    model: LanguageModel, prompts: Sequence[TokenPrompt], answer_ids: Ids, watch: Watch = Watch()
) -> Iterator[LogProbs]:
    """`model.score` as it grows where the model can tell (nan: a row not reached yet), else whole at once."""
    grows = getattr(model, "scores", None)
    if grows is None:
        yield model.score(prompts, answer_ids, watch)
    else:
        yield from grows(prompts, answer_ids, watch)
