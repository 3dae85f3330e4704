"""A model behind an OpenAI-compatible address, through the official client: it writes, it does not score.

The key is read from the environment when it is used and goes nowhere else. A request that fails before its
first word is tried again with back-off; a stream that breaks is an error that carries the text so far.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from queue import Empty, SimpleQueue
from typing import Any
from urllib.parse import urlsplit

from engine.core.errors import (
    BudgetSpent,
    GroundworkError,
    ModelError,
    ModelNotFound,
    PromptTooLong,
    ServerError,
    first_line,
)
from engine.core.progress import OnText, Watch
from engine.core.settings import Decoding
from engine.core.values import Answer, Json, Prompt, Token, Value
from engine.models.chat import as_messages, turns
from engine.models.protocols import Can

SERVED = "openai:"


def served_parts(name: str) -> tuple[str, str]:
    """The model and the address in `openai:MODEL@BASE_URL`, empty where it has none; a model may have an @ of its own.

    >>> served_parts("openai:owner/tiny@v2@http://a.example/v1"), served_parts("openai:tiny")
    (('owner/tiny@v2', 'http://a.example/v1'), ('tiny', ''))
    """
    model, found, rest = name.removeprefix(SERVED).partition("@http")
    return model.strip(), f"http{rest}" if found else ""


# Reading a streamed completion so that it can be left at any time, and keeping what has come.

POLL = 0.1  # seconds between two looks at whether the user asked to stop


class BrokenStream(Exception):
    """The connection ended or failed while text was coming."""


def stream_chunks(client: Any, request: Json, watch: Watch) -> Iterator[Any]:
    """The chunks of a streamed chat completion.

    A thread reads the connection, which may block for as long as the server is silent; this side looks at
    `watch` in between. After a cancel that thread ends at the next chunk or at the client's time-out.
    """
    import openai

    watch.step("writing")  # nothing is sent once the user asked to stop
    items: SimpleQueue[Any] = SimpleQueue()
    stop = threading.Event()
    threading.Thread(target=_read, args=(client, request, items, stop), daemon=True).start()
    try:
        while True:
            watch.step("writing")
            try:
                item = items.get(timeout=POLL)
            except Empty:
                continue
            if item is None:
                return
            if isinstance(item, openai.OpenAIError):
                raise item
            if isinstance(item, Exception):
                raise BrokenStream(f"{type(item).__name__}: {item}") from item
            yield item
    finally:
        stop.set()


def _read(client: Any, request: Json, items: SimpleQueue[Any], stop: threading.Event) -> None:
    """Put chunks, then None or the exception, into the queue: whatever fails here is raised on the other side."""
    try:
        with client.chat.completions.create(**request) as stream:
            for chunk in stream:
                if stop.is_set():
                    return
                items.put(chunk)
        items.put(None)
    except Exception as error:
        items.put(error)


# What a model thinks before it answers; some servers take away the opening tag alone, as a part of the prompt.
_THOUGHT = re.compile(r"\A(?:\s*<think>.*?(?:</think>\s*|\Z)|.*?</think>\s*)", re.DOTALL)
_CUT = ("length", "max_tokens", "content_filter", "tool_calls", "function_call")  # ends before the answer's own


class Received:
    """The state of one answer: text without the model's thoughts, the server's token counts, and how it ended."""

    def __init__(self, on_text: OnText | None = None) -> None:
        self.text = self._raw = ""
        self.ended = ""
        self._half = ""  # of a character whose other half comes in the next chunk
        self._empty = True  # nothing came, not even a thought
        self._strange = False  # something came that is not text
        self._on_text = on_text
        self._used: int | None = None
        self._tokens: list[tuple[bytes, float]] = []

    def add(self, chunk: Any) -> None:
        """Take in one chunk of the stream."""
        if getattr(chunk, "usage", None) is not None:
            self._used = chunk.usage.total_tokens
        if not getattr(chunk, "choices", None) or chunk.choices[0] is None:  # also a list or a text in a chunk's place
            return
        self._empty = False
        choice = chunk.choices[0]
        self.ended = choice.finish_reason or self.ended
        for item in (choice.logprobs.content or ()) if choice.logprobs else ():
            self._tokens.append((_bytes_of(item), item.logprob))
        # A refusal is what the model answers, in a field of its own.
        delta = choice.delta
        if (
            said := delta
            if isinstance(delta, str)
            else getattr(delta, "content", None) or getattr(delta, "refusal", None)
        ):
            if isinstance(said, list):  # parts, of which a thought is one without text
                texts = (part.get("text") for part in said if isinstance(part, dict))
                said = "".join(text for text in texts if isinstance(text, str))
            if not isinstance(said, str):
                self._strange = True
                return
            said, self._half = joined(self._half + said)
            self._take(said)
            if self._on_text is not None:
                self._on_text(self.text)

    def _take(self, said: str) -> None:
        self._raw += said
        self.text = _THOUGHT.sub("", self._raw)

    def tokens(self, messages: Sequence[dict[str, str]]) -> int:
        """Tokens read and written, as the server counts them; four characters a token where it does not say."""
        if self._used is not None or not self.text:
            return self._used or 0
        return (sum(len(message["content"]) for message in messages) + len(self.text)) // 4

    def answer(self, name: str) -> Answer:
        """The finished answer; `ServerError` where the stream broke off, `ModelError` if it was cut before a word."""
        if self._empty:
            raise ServerError(
                f"{name} sent nothing that can be read as a streamed chat. Check that the address is the base of the "
                "server's API, which often ends in /v1, and that the server streams."
            )
        self._take("\ufffd" * len(self._half))
        if self._strange:
            raise ServerError(f"{name} sent something that is not text. Choose another model.", self.text)
        if self.ended in _NO_TEXT and not self.text.strip():
            raise ModelError(f"{name} {_NO_TEXT[self.ended]}")
        if not self.ended:
            raise ServerError(
                f"{name} stopped in the middle of its answer. Ask again; the text so far is kept.", self.text
            )
        return Answer(text=self.text, tokens=byte_tokens(self.text, self._tokens), finished=self.ended not in _CUT)


_THINKS = (
    "thought until the limit of tokens and wrote no answer. Turn its thoughts off at the server, or raise "
    "decoding.max_new_tokens."
)
_NO_TEXT = {
    "length": _THINKS,
    "max_tokens": _THINKS,
    "content_filter": "withheld its answer by its content filter. Choose another model.",
    "tool_calls": "called a tool and wrote no answer. Turn its tools off, or choose another model.",
}


def joined(text: str) -> tuple[str, str]:
    """Text with its halves of characters (surrogates) joined, and the first half that it ends with.

    >>> joined("a\\ud83d\\ude00"), joined("\\ude00a\\ud83d")
    (('a😀', ''), ('�a', '\\ud83d'))
    """
    half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
    whole = text[: len(text) - len(half)]
    return whole.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"), half


def _bytes_of(token: Any) -> bytes:
    """The token's bytes; a byte that no text has where they cannot be read, so that no token is kept."""
    try:
        return bytes(list(token.bytes)) if token.bytes else token.token.encode()
    except (AttributeError, TypeError, ValueError):
        return b"\xff"


def byte_tokens(text: str, tokens: Sequence[tuple[bytes, float]]) -> tuple[Token, ...]:
    """Tokens with character spans from their bytes; none where the bytes do not spell the text.

    >>> [(t.start, t.end) for t in byte_tokens("aé", [(b"a", -1.0), (b"\\xc3", -1.0), (b"\\xa9", -1.0)])]
    [(0, 1), (1, 2), (1, 2)]
    """
    if b"".join(piece for piece, _ in tokens) != text.encode():
        return ()
    character = [index for index, letter in enumerate(text) for _ in letter.encode()]
    found: list[Token] = []
    first = 0
    for piece, logprob in tokens:
        last = first + len(piece)
        start = character[first] if first < len(character) else len(text)
        found.append(Token(id=-1, start=start, end=character[last - 1] + 1 if piece else start, logprob=logprob))
        first = last
    return tuple(found)


# What a served model's failures mean, and whether asking again can help.

KEY = "OPENAI_API_KEY"  # the environment's variable
PASSING = (408, 409, 425, 429)  # and every 5xx
TOO_LONG = re.compile(
    r"context[ _]length|context size|maximum context|too many tokens|(?:prompt|input) is too long", re.IGNORECASE
)


def worth_retrying(error: Exception) -> bool:
    """Whether the failure may pass: connection, overload, a server's own fault; not a spent quota."""
    import openai

    if getattr(error, "code", None) == "insufficient_quota":
        return False
    if isinstance(error, openai.APIStatusError):
        return error.status_code in PASSING or error.status_code >= 500
    if isinstance(error, openai.APITimeoutError):  # it would compute the same again, for as long
        return False
    return not isinstance(error, openai.OpenAIError) or isinstance(error, openai.APIConnectionError)


def retry_after(error: Exception) -> float:
    """Seconds that the server asks to wait; 0 where it does not say."""
    headers = getattr(getattr(error, "response", None), "headers", {})
    try:
        return float(headers.get("retry-after", 0))
    except ValueError:
        return 0.0


def explain(error: Exception, model: Any, partial: str) -> GroundworkError:
    """The failure as an error of ours: what happened, what to do next. `model` is the `ServerModel`."""
    if TOO_LONG.search(_said_by(error)):
        return PromptTooLong(f"The prompt is too long for {model.name}: {_short(error)}. Leave out some passages.")
    if partial:
        return ServerError(
            f"{model.name} disconnected in the middle of its answer. Ask again; the text so far is kept.", partial
        )
    return ServerError(_reason(error, model))


def _reason(error: Exception, model: Any) -> str:
    import openai

    if isinstance(error, openai.APITimeoutError):
        return f"{model.name} did not reply for {model.timeout:g} seconds. Try again, or choose another model."
    if isinstance(error, openai.AuthenticationError):  # its words may have a part of the key
        return f"{model.name} refused the key. Set {KEY} to a key that may use this model."
    if isinstance(error, openai.PermissionDeniedError):
        return f"{model.name} refused the key ({_short(error)}). Set {KEY} to a key that may use this model."
    if isinstance(error, openai.NotFoundError):
        return (
            f"{model.base_url} has no model {model.model} ({_short(error)}). Check the name, and that the "
            "address is the base of the server's API, which often ends in /v1."
        )
    if isinstance(error, openai.RateLimitError):
        return f"{model.name} accepts no more requests for now ({_short(error)}). Wait, or check the account's limits."
    if isinstance(error, openai.BadRequestError | openai.UnprocessableEntityError):
        why = _short(error).rstrip(".")
        return f"{model.name} does not accept the request: {why}. Change that setting, or choose another model."
    if isinstance(error, openai.APIStatusError):
        return f"{model.name} failed with status {error.status_code} ({_short(error)}). Try again later."
    if isinstance(error, openai.APIError) and not isinstance(error, openai.APIConnectionError):
        return f"{model.name} ended the stream with an error ({_short(error)}). Try again later."
    return f"{model.name} cannot be reached ({_short(error)}). Check that the server runs and the address is right."


def _said_by(error: Exception) -> str:
    """The server's words on a failure, with the body where they are in none of the fields that the client knows."""
    said, body = first_line(error), getattr(error, "body", None)
    known = not isinstance(body, dict | list) or (isinstance(body, dict) and str(body.get("message")) in str(error))
    return str(error) if known else f"{said} - {body}"


def _short(error: Exception) -> str:
    """The first line of what was said, without the key, which a server may say back."""
    key, said = os.environ.get(KEY), (_said_by(error).strip().splitlines() or [first_line(error)])[0]
    return (said.replace(key, "[key]") if key else said)[:200].rstrip(".")


# The budget of a served model and its use: calls and tokens, counted where they are spent.


class Spent(Value, frozen=True):
    """Requests that a server took, and the tokens that it read and wrote in them."""

    calls: int = 0
    tokens: int = 0

    def __add__(self, other: Spent) -> Spent:
        return Spent(calls=self.calls + other.calls, tokens=self.tokens + other.tokens)

    def __sub__(self, other: Spent) -> Spent:
        return Spent(calls=self.calls - other.calls, tokens=self.tokens - other.tokens)


class Budget:
    """Limits on calls and tokens (None: no limit); safe to share between threads.

    A call in flight counts at once, its tokens when it ends: tokens can be overrun by the calls that are in flight.
    """

    def __init__(self, calls: int | None = None, tokens: int | None = None) -> None:
        self.calls, self.tokens = calls, tokens
        self.spent = Spent()
        self._lock = threading.Lock()
        self._mine = threading.local()

    def call(self) -> None:
        """Count a request that is about to be sent; raise `BudgetSpent` where there is nothing left for it."""
        with self._lock:
            for what, limit in (("calls", self.calls), ("tokens", self.tokens)):
                if limit is not None and getattr(self.spent, what) >= limit:
                    raise BudgetSpent(f"The budget of {limit:,} {what} is used up. Raise it and resume the run.")
            self._add(Spent(calls=1))

    def read(self, tokens: int) -> None:
        """Count the tokens of a request that has ended."""
        with self._lock:
            self._add(Spent(tokens=tokens))

    @property
    def mine(self) -> Spent:
        """The spending of the current thread so far."""
        return getattr(self._mine, "spent", Spent())

    def _add(self, spent: Spent) -> None:
        self.spent += spent
        self._mine.spent = self.mine + spent


WHY_NOT = (
    "A served model gives neither exact scores of a given text nor gradients. Score its answers with embedded or a "
    "Hugging Face id or folder."
)
_SYSTEM = "system role"  # as servers name it that pass on a chat template's refusal
LONGEST_PAUSE = 30.0  # seconds between two attempts, whatever the server asks for


class ServerModel:
    """A `Writer` behind an address. Safe to share between threads; at most `concurrency` requests at a time.

    `budget`: what may be spent, and what has been. `ignored`: what the server refused to take, of logprobs, seed, the
    count of tokens and the system role, whose text then opens the user's message.
    """

    can = Can(why_not=WHY_NOT)
    revision = ""
    dtype = ""
    timeout = 300.0  # seconds without a byte: a large model on a processor reads a long prompt for minutes
    attempts = 4  # tries before the first word
    backoff = 0.5  # seconds before the second try, doubled before each next one

    def __init__(self, name: str, *, concurrency: int = 4, budget: Budget | None = None) -> None:
        """From `openai:MODEL@BASE_URL`; without an address that of OPENAI_BASE_URL; raise `ModelNotFound` for none."""
        self.model, given = served_parts(name)
        if not self.model:
            raise ModelNotFound("The model is missing. Write openai:MODEL@BASE_URL.")
        address = given or os.environ.get("OPENAI_BASE_URL", "")
        if not address:  # nothing leaves this machine unless its place is named
            raise ModelNotFound(
                f"The address of the model {self.model} is missing. Write {SERVED}{self.model}@BASE_URL, for example"
                f" {SERVED}{self.model}@http://127.0.0.1:8000/v1, or set OPENAI_BASE_URL."
            )
        self.base_url = checked_address(address)
        self.name = f"{SERVED}{self.model}@{self.base_url}"
        self.budget = budget or Budget()
        self.ignored: frozenset[str] = frozenset()
        self._renamed = False  # max_tokens became max_completion_tokens
        self._slots = threading.BoundedSemaphore(concurrency)

    def generate(
        self, prompt: Prompt, decoding: Decoding, on_text: OnText | None = None, watch: Watch = Watch()
    ) -> Answer:
        """Write an answer. Tokens with log-probabilities where the server gives them (ids unknown: -1).

        Raises `ServerError` with the text so far in `partial`, `ModelError` where no text came, `PromptTooLong`,
        `BudgetSpent`, `Cancelled`.
        """
        import openai

        with self._slot(watch):
            for attempt in range(self.attempts):
                received = Received(on_text)
                try:
                    return self._once(prompt, decoding, received, watch)
                except (openai.OpenAIError, BrokenStream) as error:
                    if received.text or attempt + 1 == self.attempts or not worth_retrying(error):
                        raise explain(error, self, received.text) from error
                    pause = max(retry_after(error), self.backoff * 2**attempt)
                    watch.report(f"waiting to ask {self.model} again", attempt + 1, self.attempts)
                    watch.cancel.wait(min(pause, LONGEST_PAUSE))
                    watch.step(f"asking {self.model} again", attempt + 1, self.attempts)
        raise ServerError(f"{self.name} was not called: attempts is {self.attempts}. Allow at least one.")

    def _once(self, prompt: Prompt, decoding: Decoding, received: Received, watch: Watch) -> Answer:
        """One request, repeated only where the server refuses an optional parameter."""
        import openai

        while True:
            self.budget.call()
            messages = as_messages(prompt, turns(prompt, system=_SYSTEM not in self.ignored))
            try:
                for chunk in stream_chunks(self._client, self._request(messages, decoding), watch):
                    received.add(chunk)
                return received.answer(self.name)
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                if not self._give_way(_said_by(error)):
                    raise
            finally:
                self.budget.read(received.tokens(messages))

    def _request(self, messages: list[dict[str, str]], decoding: Decoding) -> Json:
        limit = "max_completion_tokens" if self._renamed else "max_tokens"
        request: Json = {
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
        refused = {name for name in ("logprobs", "seed", "stream_options", _SYSTEM) if name in refusal.lower()}
        refused -= self.ignored
        self.ignored |= refused
        return bool(refused)

    @cached_property
    def _client(self) -> Any:
        import openai

        key = os.environ.get(KEY) or "none"  # local servers want no key, the client wants a text
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
    """A base URL, without the path of a chat or a last slash; refused with a password, since it is kept in cases."""
    wrong = ModelNotFound(f"{address!r} is not the address of a server. Write it like http://127.0.0.1:8000/v1.")
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError as error:  # a port that is no number, a bracket that does not close
        raise wrong from error
    if not usable:
        raise wrong
    if parts.username or parts.password or parts.query:
        raise ModelNotFound("A server's address must not contain a key. Put the key into OPENAI_API_KEY.")
    return address.rstrip("/").removesuffix("/chat/completions")
