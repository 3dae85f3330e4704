"""One frozen dataclass per stage; every field carries its label and unit, and `PAPERS` the values that papers give.

`apply(["retrieval.k=20", "paper=raise", ...])` reads the command line's `--set`.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import msgspec.inspect

from engine.core.errors import InputError
from engine.core.files import EMBEDDED
from engine.core.values import Json, Value, converted


def about(label: str, unit: str = "", *, ge: float | None = None, le: float | None = None) -> msgspec.Meta:
    """A field's label on the page and its bounds (`ge`, `le`), which are checked wherever settings are read."""
    return msgspec.Meta(ge=ge, le=le, title=label, extra={"unit": unit})


BEST_SENTENCE = "best-sentence"  # the name of best-sentence similarity among the re-rankers
SMALL_WRITER = 1  # sentence; measured best (bench/RESULTS.md): among two it picks the wrong one too often
GROWTH = 2.0  # times A's tokens
REFUSE = 0.2  # of 200 XQuAD questions refuses 0.06 that the corpus answers, 0.79 that it does not (bench/RESULTS.md)


class Chunking(Value, frozen=True):
    """How documents become passages."""

    method: Annotated[Literal["sentences", "words", "headings"], about("Split by")] = "sentences"
    words: Annotated[int, about("Passage length", "words", ge=1)] = 100
    overlap: Annotated[int, about("Overlap", "words", ge=0)] = 0


SearchMode = Literal["dense", "bm25", "hybrid"]


class Retrieval(Value, frozen=True):
    """Stage 1 of Attr-RAG, and what every search uses."""

    k: Annotated[int, about("Passages retrieved", "passages", ge=1)] = 30
    mode: Annotated[SearchMode, about("Search mode")] = "hybrid"
    # Of a question, the check of its answer, and `search` (`rows_of_documents` of retrieve/search.py); not of steps.
    documents: Annotated[tuple[str, ...], about("Documents searched", "names, * for any part")] = ()
    # Of a new corpus; a corpus that exists keeps the one in its manifest, and is not searched with another.
    # Empty: the default embedder, or whatever the corpus has.
    embedder: Annotated[str, about("Embedder")] = ""
    reranker: Annotated[str, about("Re-ranker")] = BEST_SENTENCE
    align_gap: Annotated[int, about("Gap that still joins a chunk set", "passages", ge=1)] = 1
    rerank_pool: Annotated[int, about("Pool for re-ranked baselines", "passages", ge=1)] = 50
    keep: Annotated[int, about("Chunk sets given to the writer", "sets", ge=1)] = 5
    # None: SMALL_WRITER for the embedded model, whole passages for any other. Attr-RAG works on whole passages.
    sentences: Annotated[
        Annotated[int, msgspec.Meta(ge=0)] | None, about("Best sentences given instead of passages", "sentences")
    ] = None

    doubt_under: Annotated[float, about("Warn if an answer is less likely than", "probability", ge=0.0, le=1.0)] = 0.2

    def sentences_for(self, model: str) -> int:
        """How many of the best sentences that writer is given; 0: whole passages."""
        if self.sentences is not None:
            return self.sentences
        return SMALL_WRITER if model == EMBEDDED else 0


class Reader(Value, frozen=True):
    """The quoting reader; see answer/quoting_reader.py for what the threshold is and what it was chosen on."""

    sentences: Annotated[int, about("Sentences quoted for a short question, at most", "sentences", ge=1)] = 2
    close_enough: Annotated[float, about("Closeness below which nothing is quoted", "0 to 1.5")] = 0.36


class Decoding(Value, frozen=True):
    """How a writer writes."""

    max_new_tokens: Annotated[int, about("Length limit of a text", "tokens", ge=1)] = 512
    temperature: Annotated[float, about("Temperature", "0: greedy", ge=0.0)] = 0.0
    top_p: Annotated[float, about("Nucleus (top-p)", "share of probability", ge=0.0, le=1.0)] = 0.95
    seed: Annotated[int, about("Seed of sampling")] = 1337


class Prompting(Value, frozen=True):
    """How a question and passages become a prompt."""

    citations: Annotated[Literal["garage", "alce"], about("Citation style", "garage: [cite_N], alce: [N]")] = "garage"
    # Probability that the passages answer, by the writer and by the closest sentence (`answered` of answer/write.py).
    # None: REFUSE for the embedded model, 0 for any other, which is not measured.
    refuse_under: Annotated[
        Annotated[float, msgspec.Meta(ge=0.0, le=1.0)] | None, about("Refuse below this probability", "0: never")
    ] = None
    # Before the passages of an answer; for an answer from memory at most 3.
    demonstrations: Annotated[int, about("Worked examples in a prompt", "examples", ge=0)] = 0

    def refuse_under_for(self, model: str) -> float:
        """The probability below which that writer's answer in Ask is a refusal; 0: it always answers."""
        if self.refuse_under is not None:
            return self.refuse_under
        return REFUSE if model == EMBEDDED else 0.0


class Occlusion(Value, frozen=True):
    """Teacher-forced and regenerated occlusion."""

    # In every attribution, flag and curve: removing passage 3 makes the 3 of [3] unlikely whatever it says.
    count_citation_markers: Annotated[bool, about("Count citation markers")] = False
    placebos: Annotated[int, about("Placebos for the floor", "unrelated passages", ge=0)] = 5
    max_sources: Annotated[int, about("Fit a surrogate above this many sources", "sources", ge=1)] = 60
    seed: Annotated[int, about("Seed of placebos and surrogate")] = 1337
    # A model's name; empty: the hierarchy masks the passages' keys, or opens blocks of neighbours.
    proxy: Annotated[str, about("Small model that chooses the passages of a hierarchy")] = ""


class Selection(Value, frozen=True):
    """Adaptive selection of Attr-RAG, section IV-B-d; docs/methods/attr-rag.md."""

    # neighbour is the literal reading; chain walks down from the best set while the steps are small.
    expansion: Annotated[Literal["chain", "neighbour"], about("Expansion")] = "chain"
    neighbour_threshold: Annotated[float, about("Largest step to a neighbour", "of alpha, 0 to 1")] = 0.05
    min_metrics: Annotated[int, about("Metrics needed to choose a set", "of 6", ge=1)] = 3
    max_share: Annotated[float, about("Sets kept, at most", "share of all sets", ge=0.0, le=1.0)] = 0.5
    # Alpha at or under which no metric chooses a set: how much unrelated passages change the answer.
    floor: Annotated[
        Literal["median", "largest", "none"], about("Floor of regeneration", "of the unrelated passages")
    ] = "median"
    max_gap: Annotated[int, about("Largest gap to fill", "passages", ge=0)] = 2


class Gradient(Value, frozen=True, forbid_unknown_fields=False):  # older stamps hold settings that are gone
    """Input x gradient and its flags; grounded refinement, section 4.3."""

    target: Annotated[Literal["logit", "log_probability"], about("Target of the gradient")] = "logit"
    first_tokens: Annotated[int, about("Content tokens a flag considers", "tokens", ge=1)] = 10
    used_top: Annotated[int, about("Top passages that count as high", "passages", ge=1)] = 3
    share: Annotated[float, about("Share of tokens on which it must be high", "share", ge=0.0, le=1.0)] = 0.3
    # 1.5 for five passages or fewer, which the paper chose after seeing its data.
    ratio: Annotated[
        float,
        about("Concentration trigger", "times the passage's share of length; at most 1.5 for 5 passages or fewer"),
    ] = 2.0
    integrated_steps: Annotated[int, about("Steps of Integrated Gradients", "steps", ge=1)] = 32


class Faithfulness(Value, frozen=True):
    """MoRF, LeRF, ABPC."""

    steps: Annotated[int, about("Steps of deletion", "steps", ge=1)] = 10
    rankings: Annotated[int, about("Random rankings", "rankings", ge=1)] = 10
    seed: Annotated[int, about("Seed of random rankings")] = 1337
    # No number depends on it. A check that takes long waits for a click: see analyses/token_map.py.
    check_maps: Annotated[bool, about("Check each token map")] = True


class SecondPass(Value, frozen=True):
    """The second pass: what the conditions share and when they fire; grounded refinement, section 3."""

    demonstrations: Annotated[int, about("Worked examples before A's passages", "examples", ge=0)] = 0
    max_new_tokens: Annotated[
        int, about("Length limit of every condition", "tokens; 0: 512 (ALCE) or 1,024 (GaRAGe)", ge=0)
    ] = 0
    temperature: Annotated[float, about("Temperature of every condition", "0: greedy", ge=0.0)] = 0.7
    # No other condition draws from one of them.
    seeds: Annotated[tuple[int, ...], about("Seeds of A's runs, separated by commas")] = (1337, 2024, 42)
    # None: GROWTH for the embedded model, which runs on to the limit otherwise; no bound for any other.
    growth: Annotated[
        Annotated[float, msgspec.Meta(ge=0.0)] | None, about("Length of later conditions", "times A's; 0: unlimited")
    ] = None
    overlap_threshold: Annotated[float, about("D triggers below this overlap (single question)", "S3, 0 to 1")] = 0.75
    overlap_percentile: Annotated[float, about("D triggers below this percentile of S3", "0 to 100")] = 40.0
    overlap_cases: Annotated[int, about("Cases needed to use the percentile", "cases", ge=1)] = 20
    ranked_by: Annotated[str, about("Ranking for v2a to v2c", "a registered attribution method")] = "input x gradient"
    trigger: Annotated[
        Literal["auto", "labels", "concentration"], about("Trigger of v2a to v2c", "auto: labels if available")
    ] = "auto"
    seconds: Annotated[float, about("Time limit per condition", "seconds")] = 600.0

    def growth_for(self, model: str) -> float:
        """The longest later condition by that writer, in multiples of A's length; 0: unlimited."""
        if self.growth is not None:
            return self.growth
        return GROWTH if model == EMBEDDED else 0.0


class Reasoning(Value, frozen=True):
    """Step by step: RAISE and its baselines; RAISE, section 3 and appendix B."""

    k: Annotated[int, about("Passages per search", "passages", ge=1)] = 10
    # None: that of the corpus or of its embedder, see methods/raise_/threshold.py.
    threshold: Annotated[float | None, about("Threshold T", "cosine; empty: the corpus's own")] = None
    max_steps: Annotated[int, about("Sub-questions, at most", "steps", ge=1)] = 30
    # Before the decomposition and Step-Back's principle, as in the papers of Least-to-Most and Step-Back.
    demonstrations: Annotated[int, about("Worked examples in the first steps", "examples, at most 2", ge=0)] = 2


class Verification(Value, frozen=True):
    """ARE: evidence, verdicts, edits; ARE, section 4."""

    evidence_from: Annotated[Literal["case", "corpus", "both"], about("Evidence from")] = "both"
    passages: Annotated[int, about("Passages searched per fact", "passages", ge=1)] = 10
    keep: Annotated[int, about("Passages checked per fact and source", "passages", ge=1)] = 3
    rank_by: Annotated[Literal["relevance", "similarity"], about("Check the passages first by")] = "relevance"
    max_iterations: Annotated[int, about("Rounds, at most", "rounds", ge=1)] = 3
    demonstrations: Annotated[int, about("Worked examples for a language model", "examples, at most 3", ge=0)] = 3
    # Our own, beside a verifier: see methods/are/guards.py and anchor.py.
    word_for_word: Annotated[bool, about("Bear out what a passage says word for word")] = True
    sentence_alone: Annotated[bool, about("Read the sentence on a fact alone, too")] = True
    names_and_numbers: Annotated[bool, about("Match names and numbers")] = True
    event_order: Annotated[bool, about("Match the order of events")] = True
    parties: Annotated[bool, about("Match who does what to whom")] = True
    roles: Annotated[bool, about("Match roles by meaning")] = True
    left_open: Annotated[bool, about("Mark what a passage leaves open")] = True
    anchored: Annotated[bool, about("Evidence must name the subject")] = True
    row_words: Annotated[bool, about("Search again by words where a fact has no name")] = True
    # Off: the paper's ablations.
    edit: Annotated[bool, about("Edit what the evidence contradicts")] = True
    atomic: Annotated[bool, about("Split clauses into atomic facts")] = True
    molecular: Annotated[bool, about("Use clauses, so edits fit back into the answer")] = True
    re_retrieval: Annotated[bool, about("Search again if unsettled")] = True


class Given(NamedTuple):
    """A value that a paper gives, and where."""

    value: bool | int | float | str | tuple[int, ...]
    section: str


@dataclass(frozen=True)
class Paper:
    """A paper's title and the settings that it gives, by `stage.field`."""

    title: str
    gives: dict[str, Given]


_PAPERS = Path(__file__).with_name("papers.toml")
PAPERS: Mapping[str, Paper] = converted(tomllib.loads(_PAPERS.read_text(encoding="utf-8")), dict[str, Paper])


class Settings(Value, frozen=True):
    """All stages together, as a case stores them."""

    chunking: Chunking = Chunking()
    retrieval: Retrieval = Retrieval()
    reader: Reader = Reader()
    decoding: Decoding = Decoding()
    prompting: Prompting = Prompting()
    occlusion: Occlusion = Occlusion()
    selection: Selection = Selection()
    gradient: Gradient = Gradient()
    faithfulness: Faithfulness = Faithfulness()
    refinement: SecondPass = SecondPass()
    reasoning: Reasoning = Reasoning()
    verification: Verification = Verification()

    def apply(self, assignments: Sequence[str]) -> Settings:
        """Return the settings with `stage.field=value` applied in order; raise `InputError` naming what is wrong.

        `paper=NAME` sets everything that the paper gives. A list is written with commas: refinement.seeds=1337,2024.
        """
        data: Json = self.to_dict()
        for assignment in assignments:
            path, equals, value = (part.strip() for part in assignment.partition("="))
            if path == "paper" and value not in PAPERS:
                raise InputError(f"There is no paper {value!r}. Choose one of: {', '.join(PAPERS)}.")
            paper = {place: given.value for place, given in PAPERS[value].gives.items()} if path == "paper" else {}
            for place, content in (paper or {path: value}).items():
                stage, _, field = place.partition(".")
                if not equals or field not in data.get(stage, {}):
                    known = ", ".join(f"{s}.{f}" for s in data for f in data[s])
                    raise InputError(
                        f"--set {assignment!r} is not a setting. Write stage.field=value with one of: {known};"
                        f" or paper= with one of: {', '.join(PAPERS)}."
                    )
                if isinstance(data[stage][field], (list, tuple)) and isinstance(content, str):
                    data[stage][field] = [part.strip() for part in content.split(",")]
                else:
                    data[stage][field] = content
        return _checked(data, strict=False)

    def value(self, path: str) -> Any:
        """The value of `stage.field`."""
        stage, _, field = path.partition(".")
        return getattr(getattr(self, stage), field)

    def with_values(self, values: Mapping[str, Any]) -> Settings:
        """The settings with values by `stage.field`; raise `InputError` for one of the wrong kind or out of range."""
        data: Json = self.to_dict()
        for path, value in values.items():
            stage, _, field = path.partition(".")
            data[stage][field] = value
        return _checked(data, strict=True)


def _checked(data: Json, strict: bool) -> Settings:
    """The settings of plain data; raise `InputError` for a value of the wrong kind or out of its range."""
    try:
        found = converted(data, Settings, strict=strict)
    except msgspec.ValidationError as error:
        raise InputError(f"A setting has the wrong type or is out of range: {error}.") from error
    for path, value in ((f"{s}.{f}", v) for s, fields in found.to_dict().items() for f, v in fields.items()):
        if isinstance(value, float) and not math.isfinite(value):
            raise InputError(f"{path} is {value}. Write a finite number.")
    return found


Kind = Literal["switch", "choice", "whole", "number", "list", "text"]


@dataclass(frozen=True)
class Setting:
    """One field as a page draws it: bounds are None where there are none, `choices` are those of a choice."""

    stage: str
    field: str
    label: str
    unit: str
    default: Any
    kind: Kind
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    optional: bool = False

    @property
    def path(self) -> str:
        """Its name for `--set`."""
        return f"{self.stage}.{self.field}"

    @property
    def papers(self) -> dict[str, Given]:
        """Each paper's value, by the paper's name."""
        return {name: paper.gives[self.path] for name, paper in PAPERS.items() if self.path in paper.gives}


@cache
def all_settings() -> tuple[Setting, ...]:
    """Every setting, stage by stage in their order."""
    stages = Settings()
    return tuple(
        _described(stage.name, field)
        for stage in msgspec.structs.fields(Settings)
        for field in msgspec.inspect.type_info(type(getattr(stages, stage.name))).fields  # type: ignore[attr-defined]
    )


@cache
def setting_labels() -> dict[str, str]:
    """Every setting's label, with its path: "Seed (decoding.seed)" by "decoding.seed"."""
    return {setting.path: f"{setting.label} ({setting.path})" for setting in all_settings()}


_KINDS: dict[type, Kind] = {
    msgspec.inspect.BoolType: "switch",
    msgspec.inspect.LiteralType: "choice",
    msgspec.inspect.IntType: "whole",
    msgspec.inspect.FloatType: "number",
    msgspec.inspect.VarTupleType: "list",
    msgspec.inspect.StrType: "text",
}


def _described(stage: str, field: msgspec.inspect.Field) -> Setting:
    said: Any = field.type
    kind, optional = said.type, False
    if isinstance(kind, msgspec.inspect.UnionType):
        kind, optional = next(t for t in kind.types if not isinstance(t, msgspec.inspect.NoneType)), True
    return Setting(
        stage=stage,
        field=field.name,
        label=said.extra_json_schema["title"],
        unit=said.extra["unit"],
        default=field.default,
        kind=_KINDS[type(kind)],
        choices=tuple(map(str, kind.values)) if isinstance(kind, msgspec.inspect.LiteralType) else (),
        least=getattr(kind, "ge", None),
        most=getattr(kind, "le", None),
        optional=optional,
    )
