"""A kind of analysis: one value with its options, run, result, part of the report, and replay.

The registry lists the kinds; workbench, commands, pages, report and replay know none by name.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import msgspec

from engine.cases.blocks import Block
from engine.cases.review import Review, review_of, with_labels
from engine.cases.store import CaseStore, added, check_open
from engine.core.canonical import plain
from engine.core.errors import CaseError, CorpusNotFound, GroundworkError, InputError, RecordError
from engine.core.files import now, package_versions
from engine.core.progress import Watch, last
from engine.core.settings import Settings
from engine.core.values import Analysis, Case, Json, Passage, Stamp, Value, converted, inputs_hash, json_or_none
from engine.corpus.collection import Collection
from engine.models.choices import READER
from engine.models.defaults import AUTO, default_for, default_generator
from engine.models.embedder import load_embedder
from engine.models.protocols import Embedder, Entailment, LanguageModel, Reranker, Writer, require
from engine.models.registry import load_writer
from engine.models.reranker import load_reranker
from engine.models.verifier import load_entailment

# The names of the kinds, as a case stores them.
OCCLUSION = "occlusion"
SETS = "occlusion of chunk sets"
SENTENCES = "occlusion of sentences"
TOKEN_MAP = "token map"
FAITHFULNESS = "faithfulness"
USED_SUPPORTS = "used x supports"
ATTR_RAG = "attr-rag"
REFINEMENT = "refinement"
FACTS = "facts"
STEPS = "steps"

R = TypeVar("R", bound=Value)
Floor = float | tuple[float, ...]


@dataclass(frozen=True)
class Loaders:
    """Where models and collections come from, by their names."""

    embedder: Callable[[str], Embedder] = load_embedder
    reranker: Callable[[str], Reranker] = load_reranker
    writer: Callable[[str], Writer] = load_writer
    collection: Callable[[str], Collection] = Collection.open
    verifier: Callable[[str], Entailment] = load_entailment

    def collection_of(self, case: Case) -> Collection | None:
        """The case's corpus; None where it is gone or there was none."""
        try:
            return None if case.corpus is None else self.collection(case.corpus)
        except CorpusNotFound:
            return None

    def generator(self, name: str = AUTO) -> Writer:
        """The model that generates: `auto` is the default writer, the embedded model in the quoting reader's place."""
        return self.writer(default_generator() if name == AUTO else name)

    def scorer(self, name: str = AUTO) -> LanguageModel:
        """The model that scores: `auto` and `reader` mean the default one; raise `CannotDo` for one that cannot."""
        writer = self.writer(default_for("scores").model if name in (AUTO, READER) else name)
        require(writer, "score")
        scorer: LanguageModel = writer  # type: ignore[assignment]
        return scorer


@dataclass(frozen=True)
class RunContext:
    """Resources of a run, besides the case and its options: settings, models, collections, the library, progress.

    For a case of no library, from a file of records: `pool` has the passages that unrelated ones are drawn from (None:
    the case's corpus), `overlaps` S3 of the file's answers (in the library's place). `unrelated` are those passages
    themselves, in a replay (None: drawn). `server_stops`: a server that fails ends the run, not a part of it alone.
    """

    settings: Settings = Settings()
    tools: Loaders = Loaders()
    watch: Watch = field(default_factory=Watch)
    cases: CaseStore | None = None
    pool: Sequence[Passage] | None = None
    overlaps: tuple[float, ...] = ()
    unrelated: tuple[Passage, ...] | None = None
    server_stops: bool = False


class ByModel(Value, frozen=True):
    """The options of most kinds: which model scores."""

    model: str = AUTO


# What a replay comes to

# What a run costs, what it says in words, and how large its rounding was are no results. `absolute`, the sums of |R|,
# follows from rows whose signed sums are compared, and older results do not have it.
COSTS = frozenset(
    {"seconds", "forwards", "backwards", "notes", "numerical_floor", "numerical_floor_by_span", "absolute"}
)
AS_IT_CAME = frozenset({"id", "start", "end"})  # of a token that a language model wrote


class Outcome(Value, frozen=True):
    """A part computed again: `values` in the shape of the stored ones, or `why` it could not be.

    `floor` is how far a number may move by rounding alone, in the part's own unit; `floors` are those of the numbers
    under a name, where they have another unit or size than the rest: one, or one for each entry of the list.
    """

    values: Any = None
    floor: float = 0.0
    why: str = ""
    floors: Mapping[str, Floor] = {}


def less(result: Any, but: Container[str] = COSTS) -> Any:
    """A stored result without fields that are not results, at any depth: by default its cost and notes."""
    if isinstance(result, Value):
        result = plain(result)
    if isinstance(result, dict):
        return {key: less(value, but) for key, value in plain(result).items() if key not in but}
    return [less(value, but) for value in result] if isinstance(result, list) else result


Given = Callable[[Any], Value]


@dataclass(frozen=True)
class Again:
    """How analyses of one kind are computed again.

    `given` is what of a result is an input, as a value: texts that a language model wrote. The copy that is replayed
    holds that and nothing else. `compared` is what of it is held against the outcome of `run`, in the same shape.
    """

    run: Callable[[Case, Analysis, Loaders], Outcome]
    given: Given | None = None
    compared: Callable[[Any], Any] = less


@dataclass(frozen=True)
class Kind(Generic[R]):
    """One kind of analysis.

    `run` yields the analysis as it grows, the last one whole; whoever drives it keeps, shows and stops. None: it comes
    with the case and is not run. `cost` says ahead what a run takes. `blocks` draw a result in the report, `terms` name
    the definitions that it needs there. `again` replays it, `not_again` says why nothing does.
    `keeps_each`: every growing value is stored, because a later run goes on from it; else the last, and of a stopped
    run only where the case holds none. `entered` puts it into the case, `stopped` marks what was not finished.
    `scores_answer`: whether the text of the case's answer is an input. `check` is the analysis that tells how far to
    trust a result, as its kind and options, where it is due: the settings want it and the case does not have it.
    `checked` is what the case has of it. `figures` are the main numbers of a result, which a line of the command line
    begins with.
    """

    name: str
    title: str
    result: type[R]
    blocks: Callable[[Case, R, Review], list[Block]]
    options: type[Value] = ByModel
    run: Callable[[Case, Any, RunContext], Iterator[Analysis]] | None = None
    cost: Callable[[Case, Any, Settings], str] = lambda case, options, settings: ""
    terms: tuple[str, ...] = ()
    again: Again | None = None
    not_again: str = ""
    keeps_each: bool = False
    entered: Callable[[Case, Analysis], Case] = added
    stopped: Callable[[Analysis], Analysis] = lambda analysis: analysis
    scores_answer: bool = True
    check: Callable[[Case, R, Settings], tuple[str, Value] | None] = lambda case, result, settings: None
    checked: Callable[[Case, R], Value | None] = lambda case, result: None
    figures: Callable[[R], Json] = lambda result: {}

    def read(self, analysis: Analysis) -> R:
        """The stored result as its value; raise `RecordError` where another version stored another shape."""
        return self.result.from_dict(analysis.result)

    def of(self, case: Case) -> tuple[R, ...]:
        """The results of this kind that a case holds, the one added last at the end."""
        return tuple(self.read(analysis) for analysis in case.analyses if analysis.kind == self.name)

    def last(self, case: Case) -> R | None:
        """The result of this kind that was added to the case last; None without one."""
        return next((self.read(analysis) for analysis in reversed(case.analyses) if analysis.kind == self.name), None)

    def readable(self, case: Case) -> R | None:
        """As `last`; None also where another version stored another shape: the report says that it cannot be read."""
        with suppress(RecordError):
            return self.last(case)
        return None


def analysis_by(
    case: Case, kind: str, by: str, result: Value, settings: Json | None = None, template: str = "", revision: str = ""
) -> Analysis:
    """A result on the case's answer under a stamp that names who made it; one per kind and maker."""
    stamp = Stamp(
        model=by,
        revision=revision,
        template=template,
        settings=settings or {},
        versions=package_versions(),
        inputs=inputs_hash(case.question, case.passages, case.answer.text),
        created=now(),
    )
    return Analysis(id=f"{kind}:{by}", kind=kind, stamp=stamp, result=result)


def words_of(case: Case) -> int:
    """Words of the passages and the answer, which is what a row of the model reads."""
    return sum(len(passage.text.split()) for passage in case.passages) + len(case.answer.text.split())


def options_of(kind: Kind[Any], given: Value | Mapping[str, Any] | Sequence[str] = ()) -> Value:
    """The options of a kind: its own value as it is, or one from plain data, or from FIELD=VALUE.

    The VALUE of a list is written with commas or as JSON. Raise `InputError` naming what is wrong.
    """
    if isinstance(given, kind.options):
        return given
    fields = {field.name: field.default for field in msgspec.structs.fields(kind.options)}
    named = given.to_dict() if isinstance(given, Value) else given
    pairs = named.items() if isinstance(named, Mapping) else [one.split("=", 1) for one in named]
    data: Json = {}
    for name, *value in pairs:
        if not value or name not in fields:
            raise InputError(f"{kind.name} has no option {name!r}. Write FIELD=VALUE with one of: {', '.join(fields)}.")
        (data[name],) = value
        if isinstance(fields[name], tuple) and isinstance(data[name], str):
            listed = json_or_none(data[name])
            data[name] = listed if isinstance(listed, list) else [part.strip() for part in data[name].split(",")]
    try:
        return converted(data, kind.options, strict=False)
    except msgspec.ValidationError as error:
        raise InputError(f"An option of {kind.name} is missing or of the wrong kind: {error}.") from error


def analyse(cases: CaseStore, case_id: str, kind: Kind[Any], options: Value, context: RunContext) -> Case:
    """Run a kind on a saved case, the reviewers' labels in place; return the case with what was found.

    What was finished of a run that is stopped or fails is kept where the case holds nothing of it yet. Raises what
    the kind raises; `CaseFrozen` before anything runs.
    """
    with cases.writing() as connection:
        check_open(connection, case_id)
    case, marks = cases.load_whole(case_id)
    held = {analysis.id for analysis in case.analyses}
    latest: Analysis | None = None

    def keep(analysis: Analysis) -> Case:
        saved = cases.update(case_id, lambda stored: kind.entered(stored, analysis))
        context.watch.case(saved)
        return saved

    saved = case
    try:
        for latest in grown(with_labels(case, review_of(marks)), kind, options, context):
            if kind.keeps_each:
                saved = keep(latest)
            elif latest.id not in held:  # what would be kept of a run that is stopped now
                context.watch.case(kind.entered(case, latest))
    except GroundworkError:
        if latest is not None:
            marked = kind.stopped(latest)
            if marked is not latest if kind.keeps_each else latest.id not in held:
                keep(marked)
        raise
    return saved if kind.keeps_each or latest is None else keep(latest)


def examine(case: Case, kind: Kind[Any], options: Value, context: RunContext) -> Case:
    """The same on a case that is in no library, and nothing is kept: the case with what was found."""
    return kind.entered(case, last(grown(case, kind, options, context)))


def grown(case: Case, kind: Kind[Any], options: Value, context: RunContext) -> Iterator[Analysis]:
    """The analysis of a case as it grows; raise `CaseError` for a kind that is not run."""
    if kind.run is None:
        raise CaseError(f"{kind.title}: this came with the case and cannot be run.")
    return kind.run(case, options, context)
