"""The engine as pages, command line and scripts use it: one object that knows where things live.

    workbench = Workbench()
    case = workbench.ask("How is the crude product recrystallized?", "bench-chemistry")
    check = workbench.result(workbench.analyse(case, "facts"), "facts")

A workbench holds a folder and settings, no results: every case goes into the library as it grows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from contextlib import closing, suppress
from copy import copy
from pathlib import Path
from typing import Any, Self

from filelock import FileLock
from msgspec.structs import replace

from engine.analyses.attr_rag import attr_rag_runs
from engine.analyses.kind import FACTS, OCCLUSION, Loaders, RunContext, analyse, examine, options_of
from engine.analyses.occlusion import OcclusionOptions
from engine.analyses.registry import kind_named
from engine.analyses.removal import Removal, removal
from engine.analyses.steps import new_case
from engine.answer.context import Context, Steps, check_question, finding
from engine.answer.in_documents import answered_probability
from engine.answer.quoting_reader import best_sentences
from engine.answer.write import Write, Written, prompting, quoting, refusing
from engine.cases.exports import audit_record
from engine.cases.importers import from_file, imported_case
from engine.cases.store import CaseStore, new_case_id
from engine.core.errors import (
    AttributionError,
    Cancelled,
    CorpusError,
    GroundworkError,
    InputError,
    ModelError,
    ServerError,
)
from engine.core.files import EMBEDDED, home, now
from engine.core.progress import Watch
from engine.core.settings import Chunking, Settings
from engine.core.values import Analysis, Answer, AuditRecord, Case, Json, Passage, Stamp, Step, Value, inputs_hash
from engine.corpus.collection import Collection, IngestReport, list_corpora, remove
from engine.corpus.formats.records import Fields
from engine.corpus.samples import FIRST_CASE, FIRST_QUESTION, SAMPLES, Sample
from engine.methods.attr_rag import Score, scored_by
from engine.methods.raise_.values import Problem
from engine.methods.refinement.advisor import CORPUS as TASK_CORPUS, AmlTask
from engine.methods.subject import occlusion_stamped, subject
from engine.methods.support import Scored, SentenceSupport, answer_support
from engine.models.choices import READER
from engine.models.cluster import RayEmbedder
from engine.models.defaults import AUTO, resolve_writer
from engine.models.embedder import DEFAULT, SentenceEmbedder, full_name
from engine.models.protocols import Embedder, Reranker, require
from engine.retrieve import bm25

METHODS = ("reranked", "vanilla", "attr-rag")
Options = Value | Json | None
"""Of an analysis: its kind's own value, or plain data by the names of its fields."""


class Workbench:
    """Collections, models and the case library under one data folder."""

    def __init__(self, settings: Settings | None = None, tools: Loaders | None = None) -> None:
        self.settings = settings or Settings()
        self.tools = tools or Loaders()
        self.cases = CaseStore(home() / "cases.sqlite")

    def using(self, settings: Settings) -> Self:
        """The same library and tools under other settings."""
        other = copy(self)
        other.settings = settings
        return other

    # Corpora

    @property
    def embedder(self) -> Embedder:
        """The embedder of new collections and of the quoting reader."""
        return self.tools.embedder(DEFAULT)

    @property
    def reranker(self) -> Reranker:
        """The re-ranker of the settings; raise `ModelNotFound`."""
        return self.tools.reranker(self.settings.retrieval.reranker)

    def collection(self, name: str) -> Collection:
        """Open a collection; raise `CorpusNotFound`, `CorpusMismatch` where the settings name another embedder."""
        return self.tools.collection(name).embedded_by(self.settings.retrieval.embedder)

    def ingest(
        self,
        paths: Path | str | Sequence[Path | str],
        name: str,
        watch: Watch = Watch(),
        fields: Fields | None = None,
        ray_workers: int = 0,
    ) -> IngestReport:
        """Add files and folders to the collection `name`, made if absent with the settings' chunking and embedder.

        A new one is gone again if none of the files can be read. With `ray_workers` so many actors on a Ray cluster
        embed the passages.
        """
        # A text is one path, not the folders of its letters.
        files = [Path(path) for path in ([paths] if isinstance(paths, Path | str) else paths)]
        known = name in {corpus.name for corpus in list_corpora()}
        chunking = None if known and self.settings.chunking == Chunking() else self.settings.chunking
        wanted = self.settings.retrieval.embedder
        embedder = self.tools.embedder(full_name(wanted)) if wanted and not known else None
        collection = Collection.create(name, embedder, chunking).embedded_by(wanted)
        if ray_workers:
            with closing(RayEmbedder(collection.embedder, ray_workers)) as spread:
                report = dataclasses.replace(collection, given=spread).ingest(files, watch, fields)
        else:
            report = collection.ingest(files, watch, fields)
        if not known and not report.documents:
            remove(name)
            return report
        bm25.index_of(collection.folder, collection.snapshot())  # now, so that the first question does not wait for it
        return report

    def prepare_first(self, watch: Watch = Watch()) -> None:
        """Ingest the first sample corpus, if it is absent, and write the case that is open on the first start."""
        self._prepare(SAMPLES[0], watch)
        with _one_process():
            if not self.cases.has(FIRST_CASE):
                self.ask(FIRST_QUESTION, SAMPLES[0].name, model=READER, case_id=FIRST_CASE, watch=watch)

    def prepare_rest(self, watch: Watch = Watch()) -> None:
        """Load the embedder and ingest the other sample corpora that are absent."""
        self.embedder.embed(["warm"])
        for sample in SAMPLES[1:]:
            self._prepare(sample, watch)

    def prepare_samples(self, watch: Watch = Watch()) -> None:
        """All that a first start prepares."""
        self.prepare_first(watch)
        self.prepare_rest(watch)

    def prepare_check(self) -> None:
        """Load what a check of an answer needs, by one of a single fact; nothing is kept."""
        passage = "On 3 May 2021 the tank held 4 litres."
        record = AuditRecord(question="What did it hold?", passages=(passage,), answer=passage.replace("4", "5"))
        self.examine(imported_case(record.checked()), FACTS)

    def _prepare(self, sample: Sample, watch: Watch) -> None:
        with _one_process():
            if sample.name in {corpus.name for corpus in list_corpora() if corpus.documents}:
                return
            if isinstance(embedder := self.embedder, SentenceEmbedder):
                embedder.remember(*sample.embedded)
            report = self.ingest(sample.documents, sample.name, watch)
        if not report.documents:
            reasons = "; ".join(f"{name}: {reason}" for name, reason in report.skipped) or "its files are missing"
            raise CorpusError(f"The sample corpus {sample.name} could not be read ({reasons}).")

    # Answers

    def writer(self, model: str = "auto", numbered: Sequence[Passage] = ()) -> Write:
        """Who answers: `reader` quotes, `auto` is the default writer, others are models (`numbered`: see there)."""
        model = resolve_writer(model)
        if model == READER:
            return quoting(self.embedder, self.settings.reader)
        writer = self.tools.writer(model)
        require(writer, "generate")
        return prompting(writer, self.settings.prompting, self.settings.decoding, numbered)

    def ask(
        self,
        question: str,
        corpus: str,
        *,
        method: str = "reranked",
        model: str = "auto",
        documents: Sequence[str] = (),
        case_id: str | None = None,
        watch: Watch = Watch(),
    ) -> Case:
        """Answer a question of a corpus by one of `METHODS`; the case is saved, and handed to `watch`, step by step.

        `documents` limits the search to those of the corpus, as the setting `retrieval.documents` does.

        Raises `InputError` for another method or document and a question that cannot be asked, `CorpusNotFound`,
        `CorpusMismatch`, and what the model raises; a `ServerError` leaves the text so far in the case. A case that
        fails before its first word is not kept; one that was cancelled keeps its finished steps.
        """
        if method not in METHODS:
            raise InputError(f"There is no answering method {method!r}. Choose from: {', '.join(METHODS)}.")
        model = resolve_writer(model)
        case = Case(
            id=case_id or new_case_id(),
            question=check_question(question),
            passages=(),
            answer=Answer(text="", finished=False),
            stamp=Stamp(model=model),
            corpus=corpus,
            created=now(),
        )
        collection = self.collection(corpus)
        searched = tuple(documents) or self.settings.retrieval.documents
        own = {"retrieval.embedder": collection.manifest.embedder, "retrieval.documents": searched}
        used = self.settings.with_values(own)
        grow = Growing(self.cases, case, used, watch)
        try:
            return self._answered(grow, collection, method)
        except GroundworkError as error:
            if not (grow.case.answer.text or isinstance(error, Cancelled)):
                self.cases.discard(grow.case.id)
            raise

    def _answered(self, grow: Growing, collection: Collection, method: str) -> Case:
        question, model, watch = grow.case.question, grow.case.stamp.model, grow.watch
        steps = Steps(watch, on_step=grow.step)
        write = self.writer(model)
        reranked = method != "vanilla"
        how = grow.settings.retrieval
        for context in finding(question, collection, self.reranker, how, reranked=reranked, steps=steps):
            grow.context(context)
        grow.change(
            answerable=answered_probability(question, context.passages, self.embedder),
            unknown_words=()
            if how.mode == "dense"
            else bm25.unknown_words(question, collection.folder, collection.snapshot()),
        )
        if method == "attr-rag":
            return self._attr_rag(grow, collection, watch)
        shorter = self._shortened(question, context, steps, model)
        if shorter is not context:
            grow.context(context := shorter)
        prompts = self.settings.prompting
        if under := prompts.refuse_under_for(model):  # whether the passages answer is asked first
            write = refusing(write, self.tools.scorer(model), self.embedder, prompts, under)
        try:
            written = steps.run(
                "answer",
                lambda: write(question, context.passages, watch),
                lambda w: {"sentences": len(w.answer.sentences), "citations": len(w.answer.citations)},
            )
        except ServerError as error:
            grow.change(answer=Answer(text=error.partial, finished=False))  # what had come when the writer went away
            raise
        return grow.answer(written)

    def ask_task(self, task: AmlTask, watch: Watch = Watch()) -> Case:
        """Answer a task's question from as many passages as its table supposes; save it under the task's name."""
        settings = self.settings.with_values({"retrieval.k": max(10, task.k), "retrieval.keep": task.k})
        case = self.using(settings).ask(task.question, TASK_CORPUS, method="vanilla", watch=watch)
        named = replace(case, title=task.name, tags=(*case.tags, "aml"))
        self.cases.save(named)
        return named

    def problem(self, question: str, corpus: str, options: Sequence[str] = ()) -> Case:
        """Save a problem of a corpus as a case that is not answered yet, for `analyse(case, "steps")`.

        Raises `QuestionError`, `RecordError` for options that nobody can choose among, `CorpusNotFound`.
        """
        self.tools.collection(corpus)
        case = new_case(Problem(question=question, options=tuple(options)), corpus, new_case_id(), now())
        self.cases.save(case)
        return case

    def _shortened(self, question: str, context: Context, steps: Steps, model: str) -> Context:
        """The context with the best sentences in place of whole passages, for a writer that is given those."""
        most = self.settings.retrieval.sentences_for(model)
        if not most or not context.passages:
            return context
        best = steps.run(
            "sentences",
            lambda: best_sentences(question, context.passages, self.embedder, most),
            lambda pieces: {"pieces": len(pieces)},
        )
        return dataclasses.replace(context, passages=best)

    def _attr_rag(self, grow: Growing, collection: Collection, watch: Watch) -> Case:
        """Attr-RAG's second stage on all the retrieved chunk sets; the case keeps what was selected."""
        before = grow.case.steps
        for run in attr_rag_runs(
            grow.case.question,
            grow.case.chunk_sets,
            collection.snapshot().passages,
            lambda numbered: self.writer(grow.case.stamp.model, numbered),
            embedder=self.embedder,
            settings=self.settings.selection,
            seed=self.settings.occlusion.seed,
            score=self._own_drops(grow.case, watch),
            watch=watch,
        ):
            grow.change(steps=(*before, *run.found.steps))
        grow.change(passages=run.found.passages)
        case = grow.answer(run.written[-1])
        stamp = replace(case.stamp, settings={**case.stamp.settings, **occlusion_stamped(self.settings)})
        return grow.change(analyses=(*case.analyses, run.analysis(stamp)))

    # Analyses

    def analyse(self, case: Case | str, kind: str, options: Options = None, watch: Watch = Watch()) -> Case:
        """Run an analysis of the registry on a saved case (or the id of one) and keep it there.

        `options` are the kind's own value or plain data by its names: {"model": "embedded"}. `watch` hears how far it
        is, what is being written and the case as it grows, and stops it. Raises `InputError` for another name, and
        what the kind raises; what was finished by then is kept (see `engine.analyses.kind`).
        """
        found, name = kind_named(kind), case if isinstance(case, str) else case.id
        return analyse(self.cases, name, found, options_of(found, options or ()), self.context(watch))

    def analyse_all(
        self, cases: Sequence[Case | str] | Case | str, kind: str, options: Options = None, watch: Watch = Watch()
    ) -> dict[str, str]:
        """Run an analysis on one or several saved cases, in order; why not, by the id of a case that failed.

        `watch` hears how many are done. A stop keeps those and what was finished of the one it comes upon.
        """
        failed = {}
        several = [cases] if isinstance(cases, Case | str) else cases  # an id is one case, not one for each letter
        for done, case in enumerate(several):
            watch.step("answers", done, len(several))
            try:
                self.analyse(case, kind, options, Watch(cancel=watch.cancel))
            except Cancelled:
                raise
            except GroundworkError as error:
                failed[case if isinstance(case, str) else case.id] = str(error)
        return failed

    def result(self, case: Case | str, kind: str) -> Value | None:
        """The last result of a kind in a case (or the id of one), as the kind's own value; None without one.

        The same for a run just made and for one from the library. Raises `InputError` for another name, `RecordError`
        where another version stored another shape.
        """
        return kind_named(kind, run=False).last(self.cases.load(case) if isinstance(case, str) else case)

    def examine(self, case: Case, kind: str, options: Options = None, context: RunContext | None = None) -> Case:
        """As `analyse`, on a case that is in no library: the case with what was found, and nothing is kept."""
        found = kind_named(kind)
        return examine(case, found, options_of(found, options or ()), context or self.context())

    def scored(self, case: Case, scorer: str, watch: Watch = Watch()) -> Case:
        """The case with occlusion by this model, computed where it is not there; nothing is kept."""
        if case.analysis(f"{OCCLUSION}:{self.tools.scorer(scorer).name}"):
            return case
        context = dataclasses.replace(self.context(watch), pool=())
        return self.examine(case, OCCLUSION, OcclusionOptions(model=scorer), context)

    def cost(self, case: Case, kind: str, options: Options = None) -> str:
        """The cost of an analysis of the case, in words, before it runs."""
        found = kind_named(kind)
        return found.cost(case, options_of(found, options or ()), self.settings)

    def without(self, case: Case, left_out: Sequence[int], scorer: str = AUTO, watch: Watch = Watch()) -> Removal:
        """The case's answer without some passages, by who wrote it (an imported one by the default writer)."""
        writer = self.writer(AUTO if case.origin == "imported" else case.stamp.model)
        return removal(case, left_out, writer, self.tools.scorer(scorer), self.settings, watch)

    def context(self, watch: Watch = Watch()) -> RunContext:
        """The resources of an analysis on this workbench."""
        return RunContext(self.settings, self.tools, watch, self.cases)

    def _own_drops(self, case: Case, watch: Watch) -> Score | None:
        """How to score Attr-RAG's sets under the model that writes; None where it has no probabilities."""
        name = case.stamp.model
        if name in (AUTO, READER) or not self.tools.writer(name).can.score:
            return None
        scorer = self.tools.scorer(name)
        return scored_by(scorer, scorer.name, self.settings.prompting, self.settings.occlusion, watch=watch)

    # Answers from elsewhere

    def audit(self, record: AuditRecord | Json, file: str = "") -> Case:
        """Save an answer from elsewhere, from a file if named, as a case; raise `RecordError`, `CorpusNotFound`.

        A record may be plain data, as the `audit` command reads it: {"question": ..., "passages": [...],
        "answer": ...}, a row of a table, the export of another system.
        """
        record = AuditRecord.from_dict(record.to_dict()) if isinstance(record, AuditRecord) else audit_record(record)
        if record.corpus is not None:
            self.tools.collection(record.corpus)
        case = imported_case(record.checked())
        case = from_file(case, file) if file else case
        if case.passages:
            case = replace(case, answerable=answered_probability(case.question, case.passages, self.embedder))
        self.cases.save(case)
        return case

    def support(
        self, case: Case, watch: Watch = Watch(), *, model: str = AUTO, verifier: str = EMBEDDED
    ) -> tuple[SentenceSupport, ...]:
        """How far the passages bear out each sentence of the answer, by a verifier and a model that scores.

        Where the scorer is missing or the passages exceed its window, the other parts decide.
        """
        scored: Scored | None = None
        with suppress(ModelError, AttributionError):
            scorer = self.tools.scorer(model)
            prompt, answer, _ = subject(case, scorer, self.settings)
            scored = scorer, prompt, answer
        return answer_support(case.answer, case.passages, self.tools.verifier(verifier), self.embedder, scored, watch)


def _one_process() -> FileLock:
    """Held by the one process that prepares the samples of a data folder; another waits, and finds them there."""
    return FileLock(home() / "samples.lock", thread_local=False)


@dataclasses.dataclass
class Growing:
    """The case of one run, every change saved before it is shown; `case` is its state so far, as the library has it."""

    store: CaseStore
    case: Case
    settings: Settings
    watch: Watch

    def change(self, **values: Any) -> Case:
        """Replace fields, save, tell."""
        self.case = replace(self.case, **values)
        self.store.save(self.case)
        self.watch.case(self.case)
        return self.case

    def step(self, step: Step) -> None:
        """Add a finished step."""
        self.change(steps=(*self.case.steps, step))

    def context(self, context: Context) -> None:
        """Freeze the passages."""
        self.change(hits=context.hits, chunk_sets=context.sets, passages=context.passages)

    def answer(self, written: Written) -> Case:
        """Add the answer with its stamp, and the quoting reader's selection as an analysis."""
        stamp = replace(
            written.stamp,
            inputs=inputs_hash(self.case.question, self.case.passages),
            created=now(),
            settings={**written.stamp.settings, "retrieval": self.settings.retrieval.to_dict()},
        )
        analyses = self.case.analyses
        if written.reading is not None:
            analyses = (*analyses, Analysis(id="reading", kind="reading", stamp=stamp, result=written.reading))
        answerable = stamp.settings.get("answerable", self.case.answerable)  # asked of the writer, too
        return self.change(
            answer=written.answer, prompt=written.prompt, stamp=stamp, analyses=analyses, answerable=answerable
        )
