"""One case and what is asked of it; from it what every condition shares, and the stamp that runs are compared by."""

from __future__ import annotations

from dataclasses import dataclass, replace

import msgspec
from msgspec.structs import replace as changed

from engine.answer.demonstrations import worked_examples
from engine.answer.generate import stamp_of
from engine.answer.prompt import MARKERS
from engine.attribute.subject import markers_stamped
from engine.models.protocols import LanguageModel, Writer
from engine.refine.conditions import Conditions
from engine.refine.limits import asked_limit, shared_limit
from engine.refine.values import Gate
from engine.refine.variants import VARIANTS
from engine.settings import Decoding, Settings
from engine.types import Answer, Passage, Prompt, Segment, Stamp, inputs_hash


@dataclass(frozen=True)
class Request:
    """One case and what is asked of it. Labels are the passages' own `relevant`.

    `given` is A where the answer comes from elsewhere (`given_by` wrote it, from `given_prompt` if known). `scorer`
    computes S2 and the gradient rows, by default the writer where it can. `history` is S3 over the loaded question
    set or the library's cases by this writer. `own_set` is the question's set or corpus, for the demonstrations;
    `demonstrations` replaces the shipped ones.
    """

    question: str
    passages: tuple[Passage, ...]
    writer: Writer
    settings: Settings = Settings()
    variants: tuple[str, ...] = tuple(VARIANTS)
    gate: Gate = "own"
    given: Answer | None = None
    given_by: str = ""
    given_prompt: Prompt | None = None
    scorer: LanguageModel | None = None
    history: tuple[float, ...] = ()
    own_set: str | None = None
    demonstrations: tuple[Segment, ...] | None = None

    @property
    def scores_with(self) -> LanguageModel:
        """The model that S2 and the gradient rows are asked of; `require` says whether it can."""
        return self.scorer or self.writer  # type: ignore[return-value]

    @property
    def labels(self) -> dict[int, bool | None]:
        """Relevance by passage number."""
        return {number: passage.relevant for number, passage in enumerate(self.passages, start=1)}


def conditions_of(request: Request) -> tuple[Conditions, tuple[str, ...]]:
    """What the conditions share, and what is worth knowing of it."""
    settings, style = request.settings.refinement, request.settings.prompting.citations
    shots = request.demonstrations
    if shots is None:
        shots = worked_examples(settings.demonstrations, request.question, MARKERS[style], request.own_set)
    decoding = changed(
        request.settings.decoding,
        temperature=settings.temperature,
        max_new_tokens=asked_limit(request.settings),
    )
    conditions = Conditions(
        question=request.question,
        passages=request.passages,
        writer=request.writer,
        prompting=request.settings.prompting,
        decoding=decoding,
        other_seed=next_seed(decoding.seed, settings.seeds),
        demonstrations=shots,
    )
    limit = shared_limit(conditions)
    notes = []
    if limit < decoding.max_new_tokens:
        notes.append(
            f"Every condition may write {limit} tokens, not {decoding.max_new_tokens}: so much of the model's window"
            " is left beside draft and critique."
        )
    if decoding.temperature == 0:
        notes.append("Greedy decoding draws nothing: C1 repeats A.")
    return replace(conditions, decoding=changed(decoding, max_new_tokens=limit)), tuple(notes)


def next_seed(seed: int, seeds: tuple[int, ...]) -> int:
    """C1's seed: the one after A's in the list, around its end.

    >>> next_seed(1337, (1337, 2024, 42)), next_seed(42, (1337, 2024, 42)), next_seed(7, (7,))
    (2024, 1337, 8)
    """
    after = (*seeds[seeds.index(seed) + 1 :], *seeds) if seed in seeds else seeds
    return next((other for other in after if other != seed), seed + 1)


def stamp_for(request: Request, decoding: Decoding) -> Stamp:
    """What the answers depend on: equal stamps (time aside) mean that one run can go on from the other.

    The scorer is not part of it: another one measures the same answers again.
    """
    given = request.given.text if request.given else ""
    inputs = inputs_hash(request.question, request.passages, given)
    stamp = stamp_of(request.writer, request.settings.prompting, decoding, inputs)
    own = {
        "refinement": request.settings.refinement.to_dict(),
        "gradient": request.settings.gradient.to_dict(),
        "given": request.given is not None,
        **markers_stamped(request.settings),
    }
    # As the library gives it back: JSON knows lists, no tuples.
    return changed(stamp, settings=msgspec.json.decode(msgspec.json.encode({**stamp.settings, **own})))


def same_run(first: Stamp, second: Stamp) -> bool:
    """Whether two stamps differ in time at most."""
    return changed(first, created="") == changed(second, created="")
