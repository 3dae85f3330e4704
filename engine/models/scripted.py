"""Models that follow a script: public stand-ins, so that users test their own code as this package is tested.

`ScriptedWriter` answers from a list, a table or a function. `ScriptedScorer` is a whole `LanguageModel` whose
log-probabilities are a Python function of the passages in the prompt. Neither loads anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from engine.core.errors import ModelError
from engine.core.progress import OnText, Watch
from engine.core.settings import Decoding
from engine.core.values import Answer, Prompt, Token, sha256
from engine.models.protocols import Can, Ids, LogProbs, TokenPrompt

Replies = Mapping[str, str] | Callable[[str], str] | Sequence[str]
TokenLogprob = Callable[[Mapping[int, str], Sequence[str], int], float]
WORD = re.compile(r"\s*\S+|\s+$")


def word_tokens(text: str) -> tuple[Token, ...]:
    """A token a word, leading whitespace included; ids are stable over processes.

    >>> [(t.start, t.end) for t in word_tokens("Ice  melts.")]
    [(0, 3), (3, 11)]
    """
    return tuple(
        Token(id=int(sha256(m.group())[:8], 16) >> 1, start=m.start(), end=m.end()) for m in WORD.finditer(text)
    )


class ScriptedWriter:
    """Writes what the script says; `prompts` are the texts it was asked, in order.

    `replies` is a function of the prompt's text, a table (the first key found in the prompt's text wins), or a
    list handed out in order. Text is streamed word by word.
    """

    can = Can(why_not="It is a script. Choose a language model.")

    def __init__(self, replies: Replies, name: str = "scripted") -> None:
        self.name = name
        self.replies = replies
        self.prompts: list[str] = []
        self.forwards = 0
        self.tokens = 0

    def generate(
        self, prompt: Prompt, decoding: Decoding, on_text: OnText | None = None, watch: Watch = Watch()
    ) -> Answer:
        """The reply to `prompt`, cut after `decoding.max_new_tokens` words."""
        text = self._reply(prompt.text)
        tokens = word_tokens(text)
        kept = tokens[: decoding.max_new_tokens]
        self.prompts.append(prompt.text)
        for written, token in enumerate(kept):
            watch.step("writing", written, len(kept))
            self.forwards += 1
            self.tokens += 1
            if on_text is not None:
                on_text(text[: token.end])
        return Answer(text=text[: kept[-1].end] if kept else "", tokens=kept, finished=len(kept) == len(tokens))

    def _reply(self, asked: str) -> str:
        if callable(self.replies):
            return self.replies(asked)
        if isinstance(self.replies, Mapping):
            found = next((reply for key, reply in self.replies.items() if key in asked), None)
        else:
            index = len(self.prompts)
            found = self.replies[index] if index < len(self.replies) else None
        if found is None:
            raise ModelError(f"The script of {self.name} has no reply to: {asked[-200:]!r}. Add one.")
        return found


class ScriptedScorer(ScriptedWriter):
    """A language model whose log-probabilities (nats) are a Python function.

    `logprob(passages, words, t)` gets the passages in the prompt as {number: text of its segment} in prompt
    order, the answer's words, and the position t; it returns log p(words[t]). Tokens are whole words.
    """

    can = Can(score=True, why_not="It is a script and has no weights. Choose a language model.")

    def __init__(self, logprob: TokenLogprob, replies: Replies = (), name: str = "scripted-scorer") -> None:
        super().__init__(replies, name)
        self.logprob = logprob
        self._words: dict[int, str] = {}

    def encode(self, prompt: Prompt) -> TokenPrompt:
        """Word ids segment by segment, no template."""
        parts = enumerate(prompt.segments)
        return TokenPrompt.of((i, self._learn(s.text), s.number if s.kind == "passage" else None) for i, s in parts)

    def encode_answer(self, text: str) -> Answer:
        """A token a word."""
        self._learn(text)
        return Answer(text=text, tokens=word_tokens(text))

    def score(self, prompts: Sequence[TokenPrompt], answer_ids: Ids, watch: Watch = Watch()) -> LogProbs:
        """The function's values, shape (len(prompts), len(answer_ids)); one forward counted a prompt."""
        words = [self._words[i] for i in answer_ids]
        scores = np.zeros((len(prompts), len(words)))
        for row, prompt in enumerate(prompts):
            watch.step("scoring", row, len(prompts))
            self.forwards += 1
            self.tokens += len(prompt.ids) + len(words)
            passages = self._passages(prompt)
            scores[row] = [self.logprob(passages, words, t) for t in range(len(words))]
        return scores

    def generate(
        self, prompt: Prompt, decoding: Decoding, on_text: OnText | None = None, watch: Watch = Watch()
    ) -> Answer:
        """The scripted reply, its tokens with the function's log-probabilities."""
        answer = super().generate(prompt, decoding, on_text, watch)
        self._learn(answer.text)
        words = [answer.text[t.start : t.end] for t in answer.tokens]
        passages = self._passages(self.encode(prompt))
        tokens = tuple(replace(t, logprob=self.logprob(passages, words, i)) for i, t in enumerate(answer.tokens))
        return replace(answer, tokens=tokens)

    def _learn(self, text: str) -> list[int]:
        tokens = word_tokens(text)
        self._words.update({t.id: text[t.start : t.end] for t in tokens})
        return [t.id for t in tokens]

    def _passages(self, prompt: TokenPrompt) -> dict[int, str]:
        found = zip(prompt.spans, prompt.numbers, strict=True)
        return {n: "".join(self._words[i] for i in prompt.ids[s:e]) for (_, s, e), n in found if n is not None}


def reads(numbers: Collection[int], gain: float = 1.0, base: float = -5.0) -> TokenLogprob:
    """For `ScriptedScorer`: `base` nats per token plus `gain` for each of the passages `numbers`, in any order."""
    wanted = frozenset(numbers)
    return lambda passages, words, t: base + gain * len(wanted & passages.keys())
