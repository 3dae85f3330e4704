"""The first answers of the units that come next, written in one batch: what a local model gains from several examples.

A unit whose study says that it `writes_first` is begun and left at its first call of the writer. The calls of several
units are answered together, and each unit finds its own when it runs. Nothing else changes: the answers are those that
the units would get one by one, what they take is counted in the unit, and what is not there is written by the unit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from engine.core.errors import Cancelled
from engine.core.progress import Watch
from engine.core.settings import Decoding
from engine.core.values import Answer, Prompt
from engine.models.hooks import ForwardCount
from engine.models.protocols import BatchWriter
from engine.studies.example import Example
from engine.studies.tools import Study, StudyTools
from engine.studies.values import Unit

LOOK = 8  # units looked at for an answer of a batch: several methods may begin with the same one, or with none
Call = tuple[Prompt, Decoding]
Todo = tuple[Unit, Example]


class Opening(BaseException):
    """A unit's first call of the writer, on its way out of the unit; no error that a unit could take for its own."""

    def __init__(self, call: Call) -> None:
        super().__init__()
        self.call = call


@dataclass(frozen=True)
class Held:
    """An answer with the call that it answers and the seconds that it took."""

    call: Call
    answer: Answer
    seconds: float


class Holder:
    """A writer in front of a local model: `held` answers the call that it is of, the model every other one.

    `spared` counts what the answers handed out would have taken of the model one by one, for `count_forwards`.
    """

    def __init__(self, model: BatchWriter) -> None:
        self.name, self.can = model.name, model.can
        self.encode, self.encode_answer, self.score = model.encode, model.encode_answer, model.score
        self.model = model
        self.held: Held | None = None
        self.listening = False
        self.spared = ForwardCount()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def generate(
        self,
        prompt: Prompt,
        decoding: Decoding,
        on_text: Callable[[str], None] | None = None,
        watch: Watch | None = None,
    ) -> Answer:
        """The answer held, else the model's."""
        if self.listening:
            raise Opening((prompt, decoding))
        held, self.held = self.held, None
        if held is None or held.call != (prompt, decoding):
            return self.model.generate(prompt, decoding, on_text, watch)
        (watch or Watch()).step("writing", 1, 1)
        forwards = len(held.answer.tokens) + held.answer.finished  # the end token is written too
        read = len(self.encode(prompt).ids)
        self.spared += ForwardCount(forwards, forwards, read + forwards - 1, held.seconds)
        if on_text is not None:
            on_text(held.answer.text)
        return held.answer


class Ahead:
    """Writes the first answers of units before they run, with the writer of `tools`, and hands them over."""

    def __init__(self, study: Study, tools: StudyTools, model: BatchWriter) -> None:
        self._study, self._tools, self._writer = study, tools, Holder(model)
        if tools.scorer is model:
            tools.scorer = self._writer  # what counts the scorer's forwards counts the writer's, as it did
        tools.writer = self._writer
        self._calls: dict[Unit, Call | None] = {}  # of units that did not get into a batch yet
        self._done: set[Unit] = set()
        self._held: dict[Unit, Held] = {}

    def write(self, todo: Sequence[Todo], watch: Watch) -> None:
        """Write the first answers of the unit that is next and of some that follow; nothing where that was done."""
        if todo[0][0] in self._done:
            return
        calls = self._openings(todo, watch)
        if not calls:
            return
        start = time.perf_counter()
        try:
            answers = self._writer.model.generate_many([p for p, _ in calls], [d for _, d in calls], watch)
        except Cancelled:
            raise
        except Exception:  # the unit whose fault it is says so when it runs; the others write for themselves
            return
        seconds = (time.perf_counter() - start) / len(calls)
        for (call, units), answer in zip(calls.items(), answers, strict=True):
            self._held |= {unit: Held(call, answer, seconds) for unit in units}

    @contextmanager
    def handed(self, unit: Unit) -> Iterator[None]:
        """While a unit runs, the writer has its answer."""
        self._writer.held = self._held.pop(unit, None)
        try:
            yield
        finally:
            self._writer.held = None

    def _openings(self, todo: Sequence[Todo], watch: Watch) -> dict[Call, list[Unit]]:
        """The first calls of the next units, as many as the config wants in a batch, with those that begin so."""
        size, calls = self._tools.config.batch, dict[Call, list[Unit]]()
        for unit, example in todo[: LOOK * size]:
            if unit in self._done:
                continue
            call = self._calls.pop(unit) if unit in self._calls else self._opening(unit, example, watch)
            if call is not None and call not in calls and len(calls) == size:
                self._calls[unit] = call
                break
            self._done.add(unit)
            if call is not None:
                calls.setdefault(call, []).append(unit)
        return calls

    def _opening(self, unit: Unit, example: Example, watch: Watch) -> Call | None:
        """What a unit asks first; None where it asks nothing, or fails before it does."""
        if not self._study.writes_first(self._tools.config, unit, example):
            return None
        self._writer.listening = True
        try:
            self._study.run(self._tools, unit, example, Watch(cancel=watch.cancel))
        except Opening as opening:
            return opening.call
        except Cancelled:
            raise
        except Exception:  # it fails again when it is run, and is counted then
            return None
        finally:
            self._writer.listening = False
        return None
