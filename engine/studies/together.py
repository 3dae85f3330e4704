"""A local model that several units ask at the same time: it writes all their answers in one batch that never stops.

Units run in threads and wait for their answers. One more thread writes as long as any unit waits: whoever asks joins
the batch between two tokens, and whose answer ends leaves it. A study that asks for `exact` answers gets those that
each unit would get alone. Each unit is counted what its own answers would have taken one by one.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from engine.core.errors import Cancelled
from engine.core.progress import OnText, Watch
from engine.core.settings import Decoding
from engine.core.values import Answer, Prompt
from engine.models.hooks import ForwardCount
from engine.models.protocols import WritingRequest, WrittenAnswer

if TYPE_CHECKING:
    from engine.models.huggingface import HuggingFaceModel

POLL = 0.2  # seconds between two looks at whether the user asked to stop


@dataclass(eq=False)
class _Call:
    """A request, and what becomes of it: None where whoever asked must write it."""

    asked: WritingRequest
    written: Future[WrittenAnswer | None] = field(default_factory=Future)


class Together:
    """A writer in front of a model that writes batches of up to `rows`; safe to share between threads.

    `spared` is what `count_forwards` has to add for the current thread: what was written for it.
    """

    def __init__(self, model: HuggingFaceModel, rows: int, exact: bool) -> None:
        self.name, self.can, self.model = model.name, model.can, model
        self.encode, self.encode_answer, self.score = model.encode, model.encode_answer, model.score
        self._rows, self.exact = rows, exact
        self._lock = threading.Lock()
        self._waiting: list[_Call] = []
        self._going: dict[WritingRequest, _Call] = {}
        self._writing = False
        self._watch = Watch(self._tell)
        self._stage = "waiting for the model"
        self._mine = threading.local()

    def __getattr__(self, name: str) -> Any:
        if name == "model":  # of a copy that is being made
            raise AttributeError(name)
        return getattr(self.model, name)

    @property
    def spared(self) -> ForwardCount:
        """The current thread's."""
        return getattr(self._mine, "spared", ForwardCount())

    def generate(
        self, prompt: Prompt, decoding: Decoding, on_text: OnText | None = None, watch: Watch = Watch()
    ) -> Answer:
        """The model's answer; `on_text` gets the whole of one that came in a batch."""
        call, start = _Call(self.model.request(prompt, decoding)), time.perf_counter()
        written = self._written(call, watch)
        waited = time.perf_counter() - start
        if written is None or written.answer is None:
            self._count(ForwardCount(seconds=-waited))
            return self.model.generate(prompt, decoding, on_text, watch)
        answer = written.answer
        forwards = len(answer.tokens) + answer.finished  # the end token is written too
        self._count(ForwardCount(forwards, forwards, len(call.asked.ids) + forwards - 1, written.seconds - waited))
        if on_text is not None:
            on_text(answer.text)
        return answer

    def _written(self, call: _Call, watch: Watch) -> WrittenAnswer | None:
        """The result of the batch for a call."""
        with self._lock:
            self._waiting.append(call)
            if not self._writing:
                threading.Thread(target=self._write).start()
                self._writing = True
        try:
            while True:
                watch.step(self._stage)
                try:
                    return call.written.result(POLL)
                except TimeoutError:
                    continue
        except Cancelled:
            self._leave(call)
            raise

    def _leave(self, call: _Call) -> None:
        """Nobody waits for the call; where nobody waits at all, writing stops."""
        with self._lock:
            self._waiting = [one for one in self._waiting if one is not call]
            self._going.pop(call.asked, None)
            if not self._going and not self._waiting:
                self._watch.cancel.set()

    def _write(self) -> None:
        """Write until nobody waits."""
        while self._more():
            try:
                for written in self.model.write_stream(self._take, self._rows, self.exact, self._watch):
                    self._hand_out(written)
            except Exception:  # whose fault it is shows when each writes for itself; Cancelled: nobody waits
                self._give_up()

    def _more(self) -> bool:
        """Whether anybody waits; if not, the next to ask starts another thread."""
        with self._lock:
            self._watch.cancel.clear()
            self._writing = bool(self._waiting)
            return self._writing

    def _take(self) -> WritingRequest | None:
        with self._lock:
            if not self._waiting:
                return None
            call = self._waiting.pop(0)
            self._going[call.asked] = call
            return call.asked

    def _hand_out(self, written: WrittenAnswer) -> None:
        with self._lock:
            call = self._going.pop(written.asked, None)  # None: cancelled meanwhile
        if call is not None:
            call.written.set_result(written)

    def _give_up(self) -> None:
        """Leave what was being written, or if nothing was, what waits, to those who asked."""
        with self._lock:
            calls = [*self._going.values()] or self._waiting
            self._going = {}
            self._waiting = [call for call in self._waiting if call not in calls]
        for call in calls:
            call.written.set_result(None)

    def _tell(self, stage: str, done: int, total: int) -> None:
        self._stage = stage

    def _count(self, more: ForwardCount) -> None:
        self._mine.spared = self.spared + more
