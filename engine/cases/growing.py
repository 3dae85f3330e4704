"""A case in the making: every change is saved before it is shown."""

from __future__ import annotations

from typing import Any

import msgspec

from engine.answer.context import Context
from engine.answer.write import Written
from engine.cases.store import CaseStore
from engine.core.files import now
from engine.core.progress import Watch
from engine.core.settings import Settings
from engine.core.values import (
    Analysis,
    Answer,
    Case,
    Step,
    inputs_hash,
)


class Growing:
    """The case of one run; `case` is its state so far, which is also what the library holds."""

    def __init__(self, store: CaseStore, case: Case, settings: Settings, watch: Watch) -> None:
        self.case = case
        self._store = store
        self._settings = settings
        self._watch = watch

    def change(self, **values: Any) -> Case:
        """Replace fields, save, tell."""
        self.case = msgspec.structs.replace(self.case, **values)
        self._store.save(self.case)
        self._watch.case(self.case)
        return self.case

    def step(self, step: Step) -> None:
        """Add a finished step."""
        self.change(steps=(*self.case.steps, step))

    def context(self, context: Context) -> None:
        """Freeze the passages."""
        self.change(hits=context.hits, chunk_sets=context.sets, passages=context.passages)

    def broken(self, text: str) -> Case:
        """Keep the text that had come when the writer went away, marked as not finished."""
        return self.change(answer=Answer(text=text, finished=False))

    def answer(self, written: Written) -> Case:
        """Add the answer with its stamp, and the quoting reader's selection as an analysis."""
        stamp = msgspec.structs.replace(
            written.stamp,
            inputs=inputs_hash(self.case.question, self.case.passages),
            created=now(),
            settings={**written.stamp.settings, "retrieval": self._settings.retrieval.to_dict()},
        )
        analyses = self.case.analyses
        if written.reading is not None:
            analyses = (
                *analyses,
                Analysis(id="reading", kind="reading", stamp=stamp, result=written.reading.to_dict()),
            )
        return self.change(answer=written.answer, prompt=written.prompt, stamp=stamp, analyses=analyses)
