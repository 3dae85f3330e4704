"""Common parts of replays: a language model's replies, which are inputs, scored again; re-ranked sets; the corpus."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from engine.analyses.kind import Loaders
from engine.core.errors import CaseError
from engine.core.progress import OnText, Watch
from engine.core.settings import BEST_SENTENCE, Decoding
from engine.core.values import Answer, Case, ChunkSet, Prompt, Value, sha256
from engine.corpus.collection import Collection
from engine.models.protocols import Can, LanguageModel, TokenPrompt, Writer
from engine.retrieve.search import rerank


class Reply(Value, frozen=True):
    """A stored reply without its probabilities; `prompt` is the hash of the prompt's text, "" where it is not kept."""

    answer: Answer
    prompt: str = ""

    @classmethod
    def of(cls, answer: Answer, prompt: Prompt | None = None) -> Reply:
        """The reply that an answer was made of."""
        tokens = tuple(replace(token, logprob=None) for token in answer.tokens)
        written = Answer(text=answer.text, tokens=tokens, refused=answer.refused, finished=answer.finished)
        return cls(answer=written, prompt=sha256(prompt.text) if prompt is not None else "")


class Repeating:
    """A `Writer` that says the kept replies again, to the prompts that they were given to, in their order.

    Everything else is asked of `model`, which scores the tokens of each reply anew where it can; without a model it
    only repeats, under the name that is given. `rows` are the prompts and token ids that were scored.
    """

    def __init__(self, replies: Iterable[Reply], model: Writer | None = None, name: str = "") -> None:
        self.name = model.name if model is not None else name
        self.can = model.can if model is not None else Can()
        self.rows: list[tuple[TokenPrompt, tuple[int, ...]]] = []
        self._model = model
        self._kept: dict[str, list[Reply]] = {}
        for reply in replies:
            self._kept.setdefault(reply.prompt, []).append(reply)

    def __getattr__(self, name: str) -> Any:
        """Window, revision, encoding and scores are the model's own."""
        model = self.__dict__.get("_model")
        if model is None:
            raise AttributeError(name)
        return getattr(model, name)

    def generate(
        self, prompt: Prompt, decoding: Decoding, on_text: OnText | None = None, watch: Watch = Watch()
    ) -> Answer:
        """The next kept reply to this prompt; raise `CaseError` where there is none."""
        watch.step("repeating")
        waiting = self._kept.get(sha256(prompt.text)) or self._kept.get("")
        if not waiting:
            raise CaseError("The model was not given this prompt in the original run, so its reply is unknown.")
        answer = waiting.pop(0).answer
        if self._model is None or not self.can.score or not answer.tokens:
            return answer
        model: LanguageModel = self._model  # type: ignore[assignment]
        coded, ids = model.encode(prompt), tuple(token.id for token in answer.tokens)
        self.rows.append((coded, ids))
        scored = zip(answer.tokens, model.score([coded], ids)[0].tolist(), strict=True)
        return replace(answer, tokens=tuple(replace(token, logprob=value) for token, value in scored))


def reranker_of(case: Case) -> str:
    """The re-ranker that the case's stamp names; best-sentence similarity where an older stamp names none."""
    return str(case.stamp.settings.get("retrieval", {}).get("reranker", BEST_SENTENCE))


def reranked(case: Case, tools: Loaders) -> tuple[ChunkSet, ...]:
    """The case's chunk sets in stored order, each with the re-ranker's score."""
    scored = {s.passages: s for s in rerank(case.question, case.chunk_sets, tools.reranker(reranker_of(case)))}
    return tuple(scored[s.passages] for s in case.chunk_sets)


def check_unchanged(collection: Collection, passages: Iterable[str]) -> None:
    """Raise `CaseError` where a search of the collection is not comparable with an earlier one: it lost a passage."""
    asked = tuple(passages)
    known = collection.snapshot().rows(asked)
    gone = next((name for name in asked if name not in known), None)
    if gone:
        raise CaseError(f"the corpus {collection.name!r} has changed: it no longer contains {gone}")
