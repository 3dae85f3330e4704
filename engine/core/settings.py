"""One small frozen dataclass a stage; every field says its unit and where its default comes from.

`apply(["retrieval.k=20", ...])` reads the command line's `--set stage.field=value`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec

from engine.core.errors import InputError
from engine.core.files import EMBEDDED
from engine.core.values import Value, converted

# Bounds are checked where settings are read (`apply`, a config, a stored case), so that a strange one is told there.
Count = Annotated[int, msgspec.Meta(ge=1)]
CountOrZero = Annotated[int, msgspec.Meta(ge=0)]
Share = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
SMALL_WRITER = 2  # sentences; measured best on 60 questions, intervals overlap (bench/RESULTS.md)
Temperature = Annotated[float, msgspec.Meta(ge=0.0)]


class Chunking(Value, frozen=True):
    """How documents become passages."""

    method: Literal["sentences", "words", "headings"] = "sentences"
    words: int = 100  # budget of a passage in words; 100 as in RAISE's Wikipedia passages
    overlap: int = 0  # words shared by neighbours


class Retrieval(Value, frozen=True):
    """Stage 1 of Attr-RAG, and what every search uses."""

    k: Count = 30  # passages retrieved; Attr-RAG, section IV-A
    mode: Literal["dense", "bm25", "hybrid"] = "hybrid"
    align_gap: Count = 1  # ordinals apart that still join a chunk set; Attr-RAG, section IV-B-a
    rerank_pool: Count = 50  # passages re-ranked by the re-ranked baselines; Attr-RAG, section V, names no pool
    keep: Count = 5  # chunk sets that a reader or a writer is given in `reranked`
    # Best sentences that a writer is given in place of whole passages; 0: whole passages. None: SMALL_WRITER for the
    # embedded model, whole passages for any other. Attr-RAG always works on whole passages.
    sentences: CountOrZero | None = None

    def sentences_for(self, model: str) -> int:
        """How many of the best sentences that writer is given; 0: whole passages."""
        if self.sentences is not None:
            return self.sentences
        return SMALL_WRITER if model == EMBEDDED else 0


class Reader(Value, frozen=True):
    """The quoting reader; see answer/quoting_reader.py for what the threshold is and what it was chosen on."""

    sentences: Count = 2  # most sentences quoted for a short question
    close_enough: float = 0.45  # closeness of the closest sentence under which the reader says that nothing is close


class Decoding(Value, frozen=True):
    """How a writer writes."""

    max_new_tokens: Count = 512  # ALCE style; 1,024 for GaRAGe style; grounded refinement, section 3.6
    temperature: Temperature = 0.0  # 0 = greedy; the refinement studies use 0.7
    top_p: Share = 0.95
    seed: int = 1337


class Prompting(Value, frozen=True):
    """How a question and passages become a prompt."""

    citations: Literal["garage", "alce"] = "garage"  # [cite_N] or [N]
    # Probability of "yes" to "do the passages answer this question?" under which a model that scores says that they do
    # not. 0: not asked. Off by default: the embedded model's doubt says nothing (bench/RESULTS.md).
    refuse_under: Share = 0.0
    demonstrations: CountOrZero = 0  # worked examples: before the passages, and for ARE's models (there at most 3)


class Occlusion(Value, frozen=True):
    """Teacher-forced and regenerated occlusion."""

    count_citation_markers: bool = False  # in every attribution, flag and curve
    placebos: CountOrZero = 5  # unrelated passages inserted one at a time
    max_sources: Count = 60  # above, a surrogate over random ablations stands in
    seed: int = 1337


class Selection(Value, frozen=True):
    """Adaptive selection of Attr-RAG, section IV-B-d; docs/methods/attr-rag.md."""

    expansion: Literal["chain", "neighbour"] = "chain"
    neighbour_threshold: float = 0.05  # largest step of alpha (0 to 1) that the walk goes down
    min_metrics: Count = 3  # metrics that must choose a set for it to join
    max_share: Share = 0.5  # of the sets, at most
    max_gap: CountOrZero = 2  # ordinals apart that gap filling still bridges


class Gradient(Value, frozen=True, forbid_unknown_fields=False):  # older stamps hold settings that are gone
    """Input x gradient and its flags; grounded refinement, section 4.3."""

    target: Literal["logit", "log_probability"] = "logit"
    first_tokens: Count = 10  # K content tokens that a flag looks at
    used_top: Count = 3
    share: Share = 0.3  # of the K tokens
    ratio: float = 2.0  # concentration trigger; 1.5 for five passages or fewer
    integrated_steps: Count = 32


class Faithfulness(Value, frozen=True):
    """MoRF, LeRF, ABPC."""

    steps: Count = 10
    rankings: Count = 20  # random rankings beside it
    seed: int = 1337


class Refinement(Value, frozen=True):
    """The second pass: what the conditions share and when they fire; grounded refinement, section 3."""

    demonstrations: CountOrZero = 2  # shots before A's passages
    max_new_tokens: CountOrZero = 0  # of every condition; 0 = 512 (ALCE's citations) or 1,024 (GaRAGe's)
    temperature: Temperature = 0.7  # of every condition, 0 = greedy; grounded refinement, section 3.6
    seeds: tuple[int, ...] = (1337, 2024, 42)  # grounded refinement, section 3.6; C1 takes the one after A's
    overlap_threshold: float = 0.75  # S3 under which D fires, for a lone question
    overlap_percentile: float = 40.0  # of S3 over the question set, once there are enough
    overlap_cases: Count = 20  # cases by the same model from which the percentile is taken
    ranked_by: str = "input x gradient"  # attribution method, any that is registered, whose ranks trigger v2a to v2c
    trigger: Literal["auto", "labels", "concentration"] = "auto"  # of v2a to v2c; auto: labels where there are any
    seconds: float = 600.0  # a variant may take; then it is given up and the others go on


class Reasoning(Value, frozen=True):
    """Step by step: RAISE and its baselines; RAISE, section 3 and appendix B."""

    k: Count = 10  # passages a search; RAISE, appendix B.3
    threshold: float | None = None  # T, a cosine; None: the embedder's own, see methods/raise_/threshold.py
    max_steps: Count = 30  # sub-questions of one reply that are worked on; the paper sets no bound


class Verification(Value, frozen=True):
    """ARE: evidence, verdicts, edits; ARE, section 4."""

    evidence_from: Literal["case", "corpus", "both"] = "both"
    passages: Count = 10  # searched for a fact; ARE's o, section 4.2
    keep: Count = 3  # of them that are checked, a source; ARE keeps the best one (set 1 for the paper's figures)
    max_iterations: Count = 3  # rounds of a fact; ARE, section 4.3, names no bound
    names_and_numbers: bool = True  # evidence without a fact's number or name is no support; methods/are/guards.py
    event_order: bool = True  # "A before B" is not supported by "A after B"; methods/are/guards.py
    anchored: bool = True  # a passage must speak of the fact, and what it cites is checked; methods/are/anchor.py
    edit: bool = True  # ablation "w/o edit"
    atomic: bool = True  # ablation "w/o atomic": a clause is its own fact
    molecular: bool = True  # ablation "w/o molecular": the answer is one clause
    re_retrieval: bool = True  # ablation "w/o re-retrieval": irrelevant is final


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
    refinement: Refinement = Refinement()
    reasoning: Reasoning = Reasoning()
    verification: Verification = Verification()

    def apply(self, assignments: Sequence[str]) -> Settings:
        """Return the settings with `stage.field=value` applied; raise `InputError` naming what is wrong.

        A list is written with commas: refinement.seeds=1337,2024.
        """
        data: dict[str, Any] = self.to_dict()
        for assignment in assignments:
            path, equals, value = assignment.partition("=")
            stage, _, field = path.strip().partition(".")
            if not equals or field not in data.get(stage, {}):
                known = ", ".join(f"{s}.{f}" for s in data for f in data[s])
                raise InputError(
                    f"--set {assignment!r} names no setting. Write stage.field=value with one of: {known}."
                )
            listed = isinstance(data[stage][field], (list, tuple))
            data[stage][field] = [part.strip() for part in value.split(",")] if listed else value.strip()
        try:
            return converted(data, Settings, strict=False)
        except msgspec.ValidationError as error:
            raise InputError(f"--set has a value of the wrong kind or out of its range: {error}.") from error
