"""Reading a streamed completion so that it can be left at any time, and keeping what has come."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from queue import Empty, SimpleQueue
from typing import Any

from engine.errors import ServerError
from engine.progress import Watch
from engine.types import Answer, Token

POLL = 0.1  # seconds between two looks at whether the user asked to stop


class BrokenStream(Exception):
    """The connection ended or failed while text was coming."""


def stream_chunks(client: Any, request: dict[str, Any], watch: Watch) -> Iterator[Any]:
    """The chunks of a streamed chat completion.

    A thread reads the connection, which may block for as long as the server is silent; this side looks at
    `watch` in between. After a cancel that thread ends at the next chunk or at the client's time-out.
    """
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
            if isinstance(item, Exception):
                raise item
            yield item
    finally:
        stop.set()


def _read(client: Any, request: dict[str, Any], items: SimpleQueue[Any], stop: threading.Event) -> None:
    """Put chunks, then None or the exception, into the queue: whatever fails here is raised on the other side."""
    import openai

    try:
        with client.chat.completions.create(**request) as stream:
            for chunk in stream:
                if stop.is_set():
                    return
                items.put(chunk)
        items.put(None)
    except openai.OpenAIError as error:
        items.put(error)
    except Exception as error:
        broken = BrokenStream(f"{type(error).__name__}: {error}")
        broken.__cause__ = error
        items.put(broken)


class Received:
    """What has come of one answer: text, the tokens that the server named, and how it ended."""

    def __init__(self, on_text: Callable[[str], None] | None = None) -> None:
        self.text = ""
        self.ended = ""
        self._on_text = on_text
        self._used: int | None = None
        self._tokens: list[tuple[bytes, float]] = []

    def add(self, chunk: Any) -> None:
        """Take in one chunk of the stream."""
        if getattr(chunk, "usage", None) is not None:
            self._used = chunk.usage.total_tokens
        if not chunk.choices:
            return
        choice = chunk.choices[0]
        self.ended = choice.finish_reason or self.ended
        for item in (choice.logprobs.content or ()) if choice.logprobs else ():
            self._tokens.append((bytes(item.bytes) if item.bytes else item.token.encode(), item.logprob))
        if choice.delta and choice.delta.content:
            self.text += choice.delta.content
            if self._on_text is not None:
                self._on_text(self.text)

    def tokens(self, messages: Sequence[dict[str, str]]) -> int:
        """Tokens read and written, as the server counts them; four characters a token where it does not say."""
        if self._used is not None or not self.text:
            return self._used or 0
        return (sum(len(message["content"]) for message in messages) + len(self.text)) // 4

    def answer(self, name: str) -> Answer:
        """The finished answer; `ServerError` where the stream ended without saying why."""
        if not self.ended:
            raise ServerError(
                f"{name} stopped in the middle of its answer. Ask again; the text so far is kept.", self.text
            )
        return Answer(text=self.text, tokens=byte_tokens(self.text, self._tokens), finished=self.ended == "stop")


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
