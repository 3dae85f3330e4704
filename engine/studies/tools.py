"""The tools of a unit (models, corpora, settings, loaded on demand, once per process), and the type of a study."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from engine.analyses.kind import Loaders, RunContext
from engine.answer.write import Write, prompting, quoting
from engine.core.files import EMBEDDED
from engine.core.progress import Watch
from engine.core.settings import Settings
from engine.core.values import Passage
from engine.corpus.collection import Collection
from engine.models.embedder import DEFAULT
from engine.models.protocols import Entailment, LanguageModel, Writer, require
from engine.models.registry import load_writer, source_of
from engine.models.server import SERVED, Budget, ServerModel
from engine.studies.config import Config, Limit
from engine.studies.example import Example
from engine.studies.together import Together
from engine.studies.values import Estimate, Found, Results, Row, Unit


class StudyTools:
    """A config's models by role: `writer`, `scorer` (gradients, too), `judge`; `loaders` give all others by name."""

    def __init__(self, config: Config, loaders: Loaders = Loaders()) -> None:
        self.config, self.loaders = config, loaders
        self.budget = Budget()

    @cached_property
    def writer(self) -> Writer:
        """The model named, which must be able to write."""
        model = self._load(self.config.model)
        require(model, "generate")
        return model

    @cached_property
    def scorer(self) -> LanguageModel:
        """The model whose probabilities are asked for: the one named, the embedded one for the quoting reader."""
        model = load_writer(EMBEDDED if self.config.reads else self.config.model, self.config.dtype)
        require(model, "score")
        return model  # type: ignore[return-value]

    @cached_property
    def judge(self) -> Writer | None:
        """The model that judges, None where the config names none."""
        return self._load(self.config.judge) if self.config.judge else None

    @property
    def verifier(self) -> Entailment:
        """The config's verifier."""
        return self.loaders.verifier(self.config.verifier)

    def write_together(self, rows: int) -> bool:
        """Before any use: let writer and judge write `rows` answers of threads at once; False if the writer cannot."""
        model: Any = self.writer
        if not hasattr(model, "writes_together") or not model.writes_together(self.config.exact):
            return False
        shared = Together(model, rows, self.config.exact)
        if self.judge is model:
            self.judge = shared
        if self.scorer is model:
            self.scorer = shared  # what counts the scorer's forwards counts the writer's, as it did
        self.writer = shared
        return True

    def _load(self, name: str) -> Writer:
        """A local model as the process has it; a served one of this run alone, under the run's budget."""
        source = source_of(name.strip())
        if not source.startswith(SERVED):
            return load_writer(name, self.config.dtype)
        return ServerModel(source, concurrency=self.config.concurrency, budget=self.budget)

    def allow(self, left: Limit) -> None:
        """Let served models take so much more from here on."""
        spent = self.budget.spent
        self.budget.calls = None if left.calls is None else spent.calls + left.calls
        self.budget.tokens = None if left.tokens is None else spent.tokens + left.tokens

    def context(self, settings: Settings, watch: Watch, model: Writer | None = None) -> RunContext:
        """The resources of an analysis, with each name of a writer meaning `model`, by default the config's."""
        loaders = replace(self.loaders, writer=lambda name: model or self.writer, collection=self.collection)
        return RunContext(settings, loaders, watch, server_stops=True)

    def write(self, seed: int, numbered: Sequence[Passage] = ()) -> Write:
        """Whoever answers, at a seed: the quoting reader or the writer (`numbered`: see `prompting`)."""
        settings = self.config.stages(seed)
        if self.config.reads:
            return quoting(self.loaders.embedder(DEFAULT), settings.reader)
        return prompting(self.writer, settings.prompting, settings.decoding, numbered)

    def collection(self, name: str) -> Collection:
        """An open collection; raise `CorpusNotFound`, `CorpusMismatch`."""
        return Collection.open(name).embedded_by(self.config.stages(self.config.seeds[0]).retrieval.embedder)


# A study is a module with one `STUDY`. It computes no method itself, and its results are a pure function of the rows.


@dataclass(frozen=True)
class Study:
    """One study.

    `methods` are those that make units of their own, in running order; conditions that stand on each other (A and
    what revises it) share a unit. `needs` (names in `example.NEEDS`) an example must bring or it is left out, and
    counted. `uses` says for each further need what is switched off where it is absent. `run` does one unit and raises
    what the engine raises; `results` turns all rows of a run into tables and figures without any model; `cost` is the
    most that one unit takes. `writes` says of a unit whether it asks the writer for text; by default each does.
    `labels` are the names of methods in tables and on the page, where they are not the units' own. `options` are those
    that the study reads from its config; `check` raises `InputError` for one that it cannot use. `models` are the tools
    that every unit takes; `searches` says of a method whether it opens the example's corpus.
    """

    name: str
    title: str
    shows: tuple[str, ...]
    methods: tuple[str, ...]
    run: Callable[[StudyTools, Unit, Example, Watch], Found]
    results: Callable[[Config, Sequence[Row]], Results]
    cost: Callable[[StudyTools, Unit, Example], Estimate]
    needs: tuple[str, ...] = ()
    uses: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    check: Callable[[Config], object] = lambda config: None
    models: tuple[Literal["writer", "scorer", "verifier"], ...] = ()
    searches: Callable[[Config, str], bool] = lambda config, method: False
    writes: Callable[[Config, Unit, Example], bool] = lambda config, unit, example: True
