"""A Hugging Face causal language model: writing, exact scoring, and the module itself for gradients.

Generation, scoring and whatever uses `module` directly take turns through `hold`, a row of a scoring at a time: a short
question comes in between the rows of a long analysis.
"""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch
from msgspec.structs import replace

from engine.core.errors import ModelError
from engine.core.progress import OnText, Watch, last
from engine.core.settings import Decoding
from engine.core.values import Answer, Prompt, Token, sha256
from engine.models.batching import Batch, Take, is_exact, pads_exactly
from engine.models.chat import chat_pieces
from engine.models.hooks import cancellable, folded_head
from engine.models.knockout import Removed, knockout_scores
from engine.models.llama_cpp import LlamaCpp, writes_faster
from engine.models.loading import gguf_file, load_parts, revision_of
from engine.models.memory import check_fits
from engine.models.offsets import close_gaps, spans_of_ids, stable_text
from engine.models.protocols import Can, Ids, LogProbs, TokenPrompt, WritingRequest, WrittenAnswer
from engine.models.scoring import Beginning, continuation_scores, scores_by_batch, scores_from_prefix, worth_reusing
from engine.models.writing import Tokens, write_alone

# Llama 2, Mistral 7B v0.1 and Gemma 1 put a space before whatever they tokenise: a prompt tokenised piece by piece
# would gain one at every seam. The ids are otherwise the same.


def prefixless(tokenizer: Any) -> Any:
    """`tokenizer` itself where it adds no prefix, else a copy that adds none."""
    if not getattr(tokenizer, "is_fast", False):
        return tokenizer
    backend = tokenizer.backend_tokenizer
    parts = {"normalizer": backend.normalizer, "pre_tokenizer": backend.pre_tokenizer}
    states = [json.loads(part.__getstate__()) for part in parts.values() if part is not None]
    if all(without_prefix(state) == state for state in states):
        return tokenizer
    from tokenizers import Tokenizer

    state = json.loads(backend.to_str())
    fresh = Tokenizer.from_str(json.dumps(state | {name: without_prefix(state[name]) for name in parts}))
    other = copy.deepcopy(tokenizer)
    other.backend_tokenizer.normalizer = fresh.normalizer
    other.backend_tokenizer.pre_tokenizer = fresh.pre_tokenizer
    return other


def without_prefix(state: Any) -> Any:
    """The JSON state of a normalizer or pre-tokenizer with every leading-space rule switched off.

    >>> without_prefix({"type": "Metaspace", "replacement": "_", "prepend_scheme": "always"})["prepend_scheme"]
    'never'
    """
    if not isinstance(state, dict):
        return state
    if state.get("type") == "Prepend":
        return None
    if state.get("type") == "Metaspace":
        return state | {"prepend_scheme": "never"}
    if state.get("type") == "ByteLevel" and "add_prefix_space" in state:
        return state | {"add_prefix_space": False}
    lists = {key: [without_prefix(item) for item in value] for key, value in state.items() if isinstance(value, list)}
    return state | {key: [item for item in items if item is not None] for key, items in lists.items()}


class Turns:
    """A lock that threads get in the order in which they ask; the one that has it may take it again."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._line: list[int] = []  # threads; it is the first one's turn

    @contextmanager
    def mine(self, waiting: Callable[[], None]) -> Iterator[None]:
        """The current thread's turn; `waiting` is called while it has not come, and may raise to leave the line."""
        me = threading.get_ident()
        if me in self._line:  # nobody waits twice: it has its turn
            yield
            return
        self._line.append(me)
        try:
            while not self._has_come(me):
                waiting()
            yield
        finally:
            with self._changed:
                self._line.remove(me)
                self._changed.notify_all()

    def _has_come(self, thread: int) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._line[0] == thread, timeout=0.2)


class HuggingFaceModel:
    """A loaded causal model with its tokenizer; a `LanguageModel` whose `module` gives gradients."""

    def __init__(self, name: str, module: Any, tokenizer: Any) -> None:
        self.name = name
        self.llama_cpp: LlamaCpp | None = None  # what writes in place of the module
        self.module = module.eval().requires_grad_(False)
        folded_head(self.module)
        self.tokenizer = tokenizer
        self._segment_tokenizer = prefixless(tokenizer)
        self.can = Can(generate=True, score=True, gradients=True)
        self._turns = Turns()
        self._beginning = Beginning()
        self._tokenizing = threading.Lock()

    @classmethod
    def load(
        cls,
        name_or_folder: str | Path,
        dtype: str = "auto",
        device: str = "auto",
        *,
        called: str | None = None,
        adapter: Path | None = None,
        watch: Watch = Watch(),
    ) -> HuggingFaceModel:
        """Load by id, folder or .gguf file.

        `dtype`: auto, float32, bfloat16, float16; `device`: auto, cpu, cuda, mps; `adapter` is merged into the weights.
        With dtype "auto", a large model of a GGUF file writes by llama.cpp on a CPU. Raises `ModelNotFound` or
        `ModelError`.
        """
        module, tokenizer = load_parts(name_or_folder, dtype, device, adapter, watch)
        model = cls(called or str(name_or_folder), module, tokenizer)
        file = gguf_file(Path(name_or_folder)) if dtype == "auto" and adapter is None else None
        if file is not None and writes_faster(module.num_parameters(), model.device):
            model.llama_cpp = LlamaCpp(file, model.window, torch.get_num_threads())
        return model

    @property
    def dtype(self) -> str:
        """The dtype of the weights, e.g. "float32"."""
        return str(self.module.dtype).removeprefix("torch.")

    @property
    def device(self) -> str:
        """Where the weights are, e.g. "cpu"."""
        return str(self.module.get_input_embeddings().weight.device)

    @property
    def window(self) -> int:
        """Most tokens of prompt and answer together."""
        config = self.module.config.get_text_config()
        known = (getattr(config, "max_position_embeddings", None), self.tokenizer.model_max_length)
        return min(int(w) for w in known if w)

    @property
    def template(self) -> str:
        """Hash of the chat template, for stamps; empty without one."""
        return sha256(str(self.tokenizer.chat_template))[:16] if self.tokenizer.chat_template else ""

    @cached_property
    def revision(self) -> str:
        """Hash of config and weights; see `revision_of`."""
        return revision_of(self.module)

    @cached_property
    def stop_ids(self) -> frozenset[int]:
        """Ids that end an answer: the tokenizer's and those of the generation config."""
        configured = self.module.generation_config.eos_token_id
        ids = configured if isinstance(configured, list | tuple) else [configured]
        return frozenset(int(i) for i in (*ids, self.tokenizer.eos_token_id) if i is not None)

    @contextmanager
    def hold(self, watch: Watch = Watch()) -> Iterator[Any]:
        """The module for the current thread alone; waiting for it can be cancelled."""
        with self._turns.mine(partial(watch.step, "waiting for the model")):
            yield self.module

    def encode(self, prompt: Prompt) -> TokenPrompt:
        """Every segment tokenised on its own; the chat template's pieces carry segment -1.

        Text that spells a special token stays text inside segments: a passage cannot end a turn.
        """
        numbers = {i: segment.number for i, segment in enumerate(prompt.segments) if segment.kind == "passage"}
        return TokenPrompt.of(
            (p.segment, self._ids(p.text, special=p.segment < 0, first=not place), numbers.get(p.segment))
            for place, p in enumerate(chat_pieces(self.tokenizer, prompt))
        )

    def encode_answer(self, text: str) -> Answer:
        """An answer from plain text, tokenised once; every token's span covers its characters."""
        with self._tokenizing:
            coded = self.tokenizer(
                text, add_special_tokens=False, split_special_tokens=True, return_offsets_mapping=self.tokenizer.is_fast
            )
        ids = coded["input_ids"]
        if self.tokenizer.is_fast:
            spans = close_gaps(coded["offset_mapping"], len(text))
        else:
            spans = spans_of_ids(ids, text, self.decode)
        return Answer(text=text, tokens=_tokens(ids, spans, [None] * len(ids)))

    def decode(self, ids: Ids) -> str:
        """The text of token ids, special tokens left out."""
        text: str = self.tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text

    def score(self, prompts: Sequence[TokenPrompt], answer_ids: Ids, watch: Watch = Watch()) -> LogProbs:
        """Exact teacher-forced log-probabilities (nats), shape (len(prompts), len(answer_ids)); see scoring.py."""
        return last(self.scores(prompts, answer_ids, watch))

    def scores(self, prompts: Sequence[TokenPrompt], answer_ids: Ids, watch: Watch = Watch()) -> Iterator[LogProbs]:
        """The same as it grows, nan where a row is not reached yet."""
        for prompt in prompts:
            check_fits(prompt, self.window, len(answer_ids), self.name)
        steps = self._scoring([prompt.ids for prompt in prompts], answer_ids, watch)
        while True:
            with self.hold(watch):
                found = next(steps, None)
            if found is None:
                return
            yield found

    def _scoring(self, rows: Sequence[Ids], answer: Ids, watch: Watch) -> Iterator[LogProbs]:
        reused = False
        if answer and worth_reusing(self.module, rows):
            reused = yield from scores_from_prefix(self.module, rows, answer, watch)
        if not reused:
            yield from scores_by_batch(self.module, rows, answer, watch)

    def score_knocked_out(
        self, prompt: TokenPrompt, removed: Removed, answer_ids: Ids, watch: Watch = Watch()
    ) -> LogProbs | None:
        """Log-probabilities with each source's keys masked, see knockout.py; None where the model cannot."""
        check_fits(prompt, self.window, len(answer_ids), self.name)
        with self.hold(watch) as module:
            return knockout_scores(module, prompt.ids, removed, answer_ids, watch)

    def score_continuations(
        self, prompts: Sequence[TokenPrompt], continuations: Sequence[Ids], watch: Watch = Watch(), head: int = 0
    ) -> LogProbs:
        """log p(continuation | prompt) in nats, shape (len(prompts), len(continuations)); shared text is read once.

        The first `head` ids, which all must have, are kept for the next call.
        """
        for prompt in prompts:
            check_fits(prompt, self.window, max(map(len, continuations)), self.name)
        with self.hold(watch) as module, cancellable(module, watch):
            return continuation_scores(module, [prompt.ids for prompt in prompts], continuations, self._beginning, head)

    def generate(
        self, prompt: Prompt, decoding: Decoding, on_text: OnText | None = None, watch: Watch = Watch()
    ) -> Answer:
        """Write an answer up to the end token, `decoding.max_new_tokens` or the window's end.

        `on_text` gets the text so far. Tokens carry the model's own log-probabilities. `finished` is False where
        no end token came. Raises `PromptTooLong`, or `Cancelled` within one layer's time.
        """
        asked = self.request(prompt, decoding)
        llama_cpp, written = self._loaded_llama_cpp(len(asked.ids) + asked.limit, watch), Tokens()

        def take(token: int, logprob: float) -> None:
            written.append((token, logprob))
            if on_text is not None and token not in self.stop_ids:
                on_text(stable_text(self.decode([token for token, _ in written])))

        with self.hold(watch) as module:
            if llama_cpp is None:
                for token, logprob in write_alone(module, asked, self.stop_ids, watch):
                    take(token, logprob)
                return self._answer(written)
            text, finished = llama_cpp.write(asked.ids, decoding, asked.limit, take, watch)
        answer = self._answer(written)  # tokenised anew, without log-probabilities, where llama.cpp lost tokens
        return replace(answer if answer.text == text else self.encode_answer(text), finished=finished)

    def _loaded_llama_cpp(self, tokens: int, watch: Watch) -> LlamaCpp | None:
        """The writer in place of the module; None once it could not load, since torch has the same weights."""
        try:
            if self.llama_cpp is not None:
                with self.hold(watch):
                    self.llama_cpp.load(tokens)
        except ModelError:
            self.llama_cpp = None
        return self.llama_cpp

    def request(self, prompt: Prompt, decoding: Decoding) -> WritingRequest:
        """The prompt's ids, and the most tokens that fit after them; raises `PromptTooLong`."""
        coded = self.encode(prompt)
        limit = check_fits(coded, self.window, decoding.max_new_tokens, self.name, least=True)
        return WritingRequest(coded.ids, limit, decoding)

    def writes_together(self, exact: bool) -> bool:
        """Whether torch writes, padding leaves a row's log-probabilities as they are (measured once a model), and, with
        `exact`, numbers are precise enough for that.
        """
        return self.llama_cpp is None and (is_exact(self.module) or not exact) and self._pads_exactly

    def write_stream(self, take: Take, rows: int, exact: bool, watch: Watch = Watch()) -> Iterator[WrittenAnswer]:
        """Answers as they end, up to `rows` at once, until none is being written and `take` has no other; batching.py.

        With `exact` those of `generate`, log-probabilities to the numerical floor, or none where a choice was so close
        that rounding may turn it. Else such a choice is left as it is. The model is held for a token at a time.
        """
        batch = Batch(self.module, self.stop_ids, rows, exact)
        while True:
            with self.hold(watch):
                ended = batch.advance(take, watch)
            for row in ended:
                yield WrittenAnswer(row.asked, self._answer(row.tokens) if row.clear else None, row.seconds)
            if not ended and batch.is_empty:
                return

    @cached_property
    def _pads_exactly(self) -> bool:
        with self.hold() as module:
            return pads_exactly(module)

    def _answer(self, written: Tokens) -> Answer:
        """The answer of tokens up to an end token, which is left out."""
        finished = bool(written) and written[-1][0] in self.stop_ids
        kept = written[:-1] if finished else written
        ids, logprobs = [token for token, _ in kept], [logprob for _, logprob in kept]
        text = self.decode(ids)
        return Answer(text=text, tokens=_tokens(ids, spans_of_ids(ids, text, self.decode), logprobs), finished=finished)

    def _ids(self, text: str, *, special: bool, first: bool) -> list[int]:
        tokenizer = self.tokenizer if special and first else self._segment_tokenizer
        with self._tokenizing:  # the flag is a state of the shared tokenizer
            coded = tokenizer(text, add_special_tokens=False, split_special_tokens=not special)
        ids: list[int] = coded["input_ids"]
        return ids


def _tokens(ids: Ids, spans: Sequence[tuple[int, int]], logprobs: Sequence[float | None]) -> tuple[Token, ...]:
    joined = zip(ids, spans, logprobs, strict=True)
    return tuple(Token(id=i, start=start, end=end, logprob=p) for i, (start, end), p in joined)
