"""A local model that several units ask at the same time: what waits when it comes free is written in one batch.

Units run in threads. Whoever finds the model idle writes for all that wait, so that batches form by themselves. Units
of one batch come back one after the other. The first would find the model idle again and write alone while the rest
waits, so it waits for the others, up to `PATIENCE`. Nothing else changes: each answer is the one that its unit would
get alone, and each unit is counted what its own answers would have taken one by one.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Any

from engine.core.errors import Cancelled
from engine.core.progress import OnText, Watch
from engine.core.settings import Decoding
from engine.core.values import Answer, Prompt
from engine.models.hooks import ForwardCount, count_forwards
from engine.models.protocols import BatchWriter

POLL = 0.2  # seconds between two looks at whether the user asked to stop
PATIENCE = 0.1  # of the time that the last batch took


@dataclass(eq=False)
class _Call:
    """A prompt that waits for its answer; `seconds` is its share of the batch that wrote it."""

    prompt: Prompt
    decoding: Decoding
    answer: Answer | None = None
    seconds: float = 0.0
    thread: int = field(default_factory=threading.get_ident)


class Together:
    """A writer in front of a model that writes batches of up to `rows`; safe to share between threads.

    `spared` is what `count_forwards` has to add for the current thread: what others wrote for it, less what it wrote
    for others.
    """

    def __init__(self, model: BatchWriter, rows: int, patience: float = PATIENCE) -> None:
        self.name, self.can, self.model = model.name, model.can, model
        self.encode, self.encode_answer, self.score = model.encode, model.encode_answer, model.score
        self._rows, self._patience = rows, patience
        self._waiting: list[_Call] = []
        self._writing = False
        self._away: set[int] = set()  # threads of the last batch that have not come back
        self._until = 0.0  # when they are waited for no more, by the clock that only runs forward
        self._changed = threading.Condition()
        self._mine = threading.local()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    @property
    def spared(self) -> ForwardCount:
        """The current thread's."""
        return getattr(self._mine, "spared", ForwardCount())

    def generate(
        self, prompt: Prompt, decoding: Decoding, on_text: OnText | None = None, watch: Watch = Watch()
    ) -> Answer:
        """The model's answer; `on_text` gets the whole of one that came in a batch."""
        call, start = _Call(prompt, decoding), time.perf_counter()
        batch = self._batch_of(call, watch)
        if len(batch) > 1:
            self._write(batch, watch)
        if call.answer is None:  # alone, or the batch failed: whose fault it was shows when each writes for itself
            begun = time.perf_counter()
            self._count(ForwardCount(seconds=start - begun))
            try:
                return self.model.generate(prompt, decoding, on_text, watch)
            finally:
                if len(batch) == 1:
                    self._end(batch, [], begun)
        forwards = len(call.answer.tokens) + call.answer.finished  # the end token is written too
        read, waited = len(self.encode(prompt).ids), time.perf_counter() - start
        self._count(ForwardCount(forwards, forwards, read + forwards - 1, call.seconds - waited))
        if on_text is not None:
            on_text(call.answer.text)
        return call.answer

    def _batch_of(self, call: _Call, watch: Watch) -> list[_Call]:
        """The calls this thread must write, its own first; nothing if another thread has written them."""
        with self._changed:
            self._away.discard(call.thread)
            self._waiting.append(call)
            try:
                while call.answer is None and (self._writing or call not in self._waiting or self._more_come()):
                    watch.step("waiting for the model")
                    left = self._until - time.perf_counter()
                    self._changed.wait(POLL if self._writing or not 0 < left < POLL else left)
            except Cancelled:
                self._waiting = [one for one in self._waiting if one is not call]
                raise
            if call.answer is not None:
                return []
            self._waiting.remove(call)
            others, self._waiting = self._waiting[: self._rows - 1], self._waiting[self._rows - 1 :]
            self._writing = True
            return [call, *others]

    def _more_come(self) -> bool:
        """Whether a batch is worth waiting for: there is room, and a thread of the last one may still come back."""
        room = len(self._waiting) < self._rows
        return room and bool(self._away) and time.perf_counter() < self._until

    def _write(self, batch: list[_Call], watch: Watch) -> None:
        """Answer all of a batch, or put the others' calls back."""
        start, count, left = time.perf_counter(), ForwardCount(), batch[1:]
        try:
            with count_forwards(self.model) as count:
                answers = self.model.generate_many([c.prompt for c in batch], [c.decoding for c in batch], watch)
            for call, answer in zip(batch, answers, strict=True):
                call.answer, call.seconds = answer, (time.perf_counter() - start) / len(batch)
            left = []
        except Cancelled:
            raise
        except Exception:  # the unit whose fault it is says so when it writes for itself
            return
        finally:
            self._count(ForwardCount(-count.forwards, -count.rows, -count.tokens))
            self._end(batch, left, start)

    def _end(self, batch: list[_Call], left: list[_Call], start: float) -> None:
        """Put the calls that are `left` of a batch back, and expect the threads of the others."""
        with self._changed:
            self._waiting = [*left, *self._waiting]
            self._away = {call.thread for call in batch if call not in left}
            now = time.perf_counter()
            self._until = now + self._patience * (now - start)
            self._writing = False
            self._changed.notify_all()

    def _count(self, more: ForwardCount) -> None:
        self._mine.spared = self.spared + more
