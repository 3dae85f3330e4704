"""A model behind an OpenAI-compatible address, through the official client: it writes, it does not score.

The key is read from the environment when it is used and goes nowhere else. A request that fails before its
first word is tried again with back-off; a stream that breaks is an error that carries the text so far.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from engine.errors import ModelNotFound, ServerError
from engine.models.budget import Budget
from engine.models.chat import as_messages, turns
from engine.models.protocols import Can
from engine.models.server_errors import explain, retry_after, worth_retrying
from engine.models.server_stream import Received, stream_chunks
from engine.progress import Watch
from engine.settings import Decoding
from engine.types import Answer, Prompt

OPENAI = "https://api.openai.com/v1"
WHY_NOT = (
    "A served model gives no exact score of a given text and no gradients. "
    "Score its answers with embedded or with a Hugging Face id or folder."
)
LONGEST_PAUSE = 30.0  # seconds between two attempts, whatever the server asks for


class ServerModel:
    """A `Writer` behind an address. Safe to share between threads; at most `concurrency` requests at a time.

    `timeout`: seconds without a byte. `attempts`: tries before the first word. `backoff`: seconds before the
    second try, doubled before each next one. `budget`: what may be spent, and what has been. `ignored`: what the
    server refused to take, of logprobs, seed and the count of tokens.
    """

    can = Can(why_not=WHY_NOT)
    revision = ""
    dtype = ""

    def __init__(
        self,
        model: str,
        base_url: str = "",
        key_env: str = "OPENAI_API_KEY",
        *,
        timeout: float = 60.0,
        attempts: int = 4,
        backoff: float = 0.5,
        concurrency: int = 4,
        budget: Budget | None = None,
    ) -> None:
        self.model = model
        self.base_url = checked_address(base_url or os.environ.get("OPENAI_BASE_URL", "") or OPENAI)
        self.key_env = key_env
        self.name = f"openai:{model}@{self.base_url}"
        self.timeout, self.attempts, self.backoff = timeout, attempts, backoff
        self.budget = budget or Budget()
        self.ignored: frozenset[str] = frozenset()
        self._renamed = False  # max_tokens became max_completion_tokens
        self._slots = threading.BoundedSemaphore(concurrency)

    @classmethod
    def named(cls, name: str, **options: Any) -> ServerModel:
        """From `openai:MODEL@BASE_URL`; without an address OPENAI_BASE_URL, else OpenAI's own."""
        model, _, address = name.removeprefix("openai:").partition("@http")
        if not model.strip():
            raise ModelNotFound("The name has no model. Write openai:MODEL@BASE_URL.")
        return cls(model.strip(), f"http{address}" if address else "", **options)

    def generate(
        self,
        prompt: Prompt,
        decoding: Decoding,
        on_text: Callable[[str], None] | None = None,
        watch: Watch | None = None,
    ) -> Answer:
        """Write an answer. Tokens with log-probabilities where the server gives them (ids unknown: -1).

        Raises `ServerError` with the text so far in `partial`, `PromptTooLong`, `BudgetSpent`, `Cancelled`.
        """
        watch = watch or Watch()
        messages = as_messages(prompt, turns(prompt))
        with self._slot(watch):
            for attempt in range(self.attempts):
                received = Received(on_text)
                try:
                    return self._once(messages, decoding, received, watch)
                except _transport() as error:
                    if received.text or attempt + 1 == self.attempts or not worth_retrying(error):
                        raise explain(error, self, received.text) from error
                    pause = max(retry_after(error), self.backoff * 2**attempt)
                    watch.report(f"waiting to ask {self.model} again", attempt + 1, self.attempts)
                    watch.cancel.wait(min(pause, LONGEST_PAUSE))
                    watch.step(f"asking {self.model} again", attempt + 1, self.attempts)
        raise ServerError(f"{self.name} was not asked: attempts is {self.attempts}. Allow at least one.")

    def _once(self, messages: list[dict[str, str]], decoding: Decoding, received: Received, watch: Watch) -> Answer:
        """One request, repeated only where the server refuses an optional parameter."""
        import openai

        while True:
            self.budget.call()
            try:
                for chunk in stream_chunks(self._client, self._request(messages, decoding), watch):
                    received.add(chunk)
                return received.answer(self.name)
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                if not self._give_way(str(error)):
                    raise
            finally:
                self.budget.read(received.tokens(messages))

    def _request(self, messages: list[dict[str, str]], decoding: Decoding) -> dict[str, Any]:
        limit = "max_completion_tokens" if self._renamed else "max_tokens"
        request: dict[str, Any] = {
            "model": self.model,
            "messages": messages,
            "stream": True,
            "stream_options": {"include_usage": True},
            "temperature": decoding.temperature,
            limit: decoding.max_new_tokens,
            "logprobs": True,
            "seed": decoding.seed,
        }
        if decoding.temperature > 0:
            request["top_p"] = decoding.top_p
        return {key: value for key, value in request.items() if key not in self.ignored}

    def _give_way(self, refusal: str) -> bool:
        """Leave out what the server refuses, if it is one of the parameters that can be left out."""
        if "max_completion_tokens" in refusal and not self._renamed:
            self._renamed = True
            return True
        refused = {name for name in ("logprobs", "seed", "stream_options") if name in refusal} - self.ignored
        self.ignored |= refused
        return bool(refused)

    @cached_property
    def _client(self) -> Any:
        import openai

        key = os.environ.get(self.key_env) or "none"  # local servers want no key, the client wants a text
        return openai.OpenAI(
            api_key=key, base_url=self.base_url, timeout=openai.Timeout(self.timeout, connect=10.0), max_retries=0
        )

    @contextmanager
    def _slot(self, watch: Watch) -> Iterator[None]:
        while not self._slots.acquire(timeout=0.2):
            watch.step(f"waiting for {self.model}")
        try:
            yield
        finally:
            self._slots.release()


def checked_address(address: str) -> str:
    """A base URL without a trailing slash; refused where it carries a password, since it is kept in cases."""
    wrong = ModelNotFound(f"{address!r} is no address of a server. Write it like http://127.0.0.1:8000/v1.")
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError as error:  # a port that is no number, a bracket that does not close
        raise wrong from error
    if not usable:
        raise wrong
    if parts.username or parts.password or parts.query:
        raise ModelNotFound("The address of a server must not hold a key. Put the key into OPENAI_API_KEY.")
    return address.rstrip("/")


def _transport() -> tuple[type[Exception], ...]:
    """What the client and the connection under it raise."""
    import openai

    from engine.models.server_stream import BrokenStream

    return (openai.OpenAIError, BrokenStream)
