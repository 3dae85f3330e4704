"""A local model that several units ask at the same time: it writes all their answers in one batch that never stops.

Units run in threads and wait for their answers. One more thread writes as long as any unit waits: whoever asks joins
the batch between two tokens, and whose answer ends leaves it. A study that asks for `exact` answers gets those that
each unit would get alone. Each unit is counted what its own answers would have taken one by one.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Any

from engine.core.errors import Cancelled
from engine.core.progress import OnText, Watch
from engine.core.settings import Decoding
from engine.core.values import Answer, Prompt
from engine.models.hooks import ForwardCount
from engine.models.protocols import BatchWriter, WritingRequest, WrittenAnswer

POLL = 0.2  # seconds between two looks at whether the user asked to stop


@dataclass(eq=False)
class _Call:
    """A request whose answer is waited for, until it is `over`: written, or left to who asked."""

    asked: WritingRequest
    written: WrittenAnswer | None = None
    over: bool = False


class Together:
    """A writer in front of a model that writes batches of up to `rows`; safe to share between threads.

    `spared` is what `count_forwards` has to add for the current thread: what was written for it.
    """

    def __init__(self, model: BatchWriter, rows: int, exact: bool) -> None:
        self.name, self.can, self.model = model.name, model.can, model
        self.encode, self.encode_answer, self.score = model.encode, model.encode_answer, model.score
        self._rows, self._exact = rows, exact
        self._waiting: list[_Call] = []
        self._going: dict[WritingRequest, _Call] = {}
        self._writing = False
        self._cancel = threading.Event()
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
        """The model's answer; `on_text` gets the whole of it."""
        call, start = _Call(self.model.request(prompt, decoding)), time.perf_counter()
        self._wait_for(call, watch)
        waited = time.perf_counter() - start
        if call.written is None:  # the batch failed: whose fault it was shows when each writes for itself
            self._count(ForwardCount(seconds=-waited))
            return self.model.generate(prompt, decoding, on_text, watch)
        answer = call.written.answer
        forwards = len(answer.tokens) + answer.finished  # the end token is written too
        read = len(call.asked.ids)
        self._count(ForwardCount(forwards, forwards, read + forwards - 1, call.written.seconds - waited))
        if on_text is not None:
            on_text(answer.text)
        return answer

    def _wait_for(self, call: _Call, watch: Watch) -> None:
        with self._changed:
            self._waiting.append(call)
            if not self._writing:
                self._writing = True
                threading.Thread(target=self._write, daemon=True).start()
            try:
                while not call.over:
                    watch.step("waiting for the model")
                    self._changed.wait(POLL)
            except Cancelled:
                self._waiting = [one for one in self._waiting if one is not call]
                self._going.pop(call.asked, None)
                if not self._going and not self._waiting:
                    self._cancel.set()
                raise

    def _write(self) -> None:
        """Write until nobody waits."""
        watch = Watch(cancel=self._cancel)
        while self._more():
            try:
                for written in self.model.write_stream(self._take, self._rows, self._exact, watch):
                    self._hand_out(written)
            except Exception:  # the unit whose fault it is says so when it writes for itself; Cancelled: nobody waits
                self._give_up()

    def _more(self) -> bool:
        """Whether anybody waits; if not, the next to ask starts another thread."""
        with self._changed:
            self._cancel.clear()
            self._writing = bool(self._waiting)
            return self._writing

    def _take(self) -> WritingRequest | None:
        with self._changed:
            if not self._waiting:
                return None
            call = self._waiting.pop(0)
            self._going[call.asked] = call
            return call.asked

    def _hand_out(self, written: WrittenAnswer) -> None:
        with self._changed:
            call = self._going.pop(written.asked, None)  # None: cancelled meanwhile
            if call is not None:
                call.written, call.over = written, True
                self._changed.notify_all()

    def _give_up(self) -> None:
        """Leave what was being written to those who asked."""
        with self._changed:
            for call in self._going.values():
                call.over = True
            self._going.clear()
            self._changed.notify_all()

    def _count(self, more: ForwardCount) -> None:
        self._mine.spared = self.spared + more
