"""The inputs that the conditions of a request share, A's signals, the stamp that runs are compared by.

Grounded refinement, sections 3.2 (signals), 3.6 (sampling and limits) and 4.5.2 (the truncation confound). Ours: where
the model's window is small, the limit is lowered for all conditions alike. Left out: nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import msgspec
from msgspec.structs import replace as changed

from engine.answer.prompt import MARKERS, stamp_of, worked_examples
from engine.answer.quoting_reader import shortened
from engine.core.errors import AttributionError, InputError, ModelError
from engine.core.files import package_versions
from engine.core.progress import Watch
from engine.core.settings import Decoding, Retrieval, Settings
from engine.core.values import Answer, Case, Json, Passage, Prompt, Stamp, inputs_hash, sha256
from engine.methods import signals
from engine.methods.refinement.conditions import Conditions, Request, omit_critique, revision_prompt
from engine.methods.refinement.costs import metered
from engine.methods.refinement.values import Cost, Refinement, Signals
from engine.methods.subject import answer_for, banner, occlusion_stamped
from engine.models.embedder import load_embedder
from engine.models.protocols import LanguageModel, require

BY_STYLE = {"alce": 512, "garage": 1024}  # grounded refinement, section 3.6


def asked_limit(settings: Settings) -> int:
    """Tokens that every condition may write (section 4.5.2, the truncation confound): as set, else the style's."""
    return settings.refinement.max_new_tokens or BY_STYLE[settings.prompting.citations]


def shared_limit(conditions: Conditions) -> int:
    """The limit that leaves room in a window that is known, at least 1.

    E needs room for draft, critique and answer, each up to the limit; the others for draft and answer beside the
    longest of the fixed critiques, v2b's with every passage named.
    """
    wanted, writer = conditions.decoding.max_new_tokens, conditions.request.writer
    window = getattr(writer, "window", None)
    if window is None or not isinstance(writer, LanguageModel):
        return wanted
    everything = tuple(range(1, len(conditions.request.case.passages) + 1))
    critiques = ".", omit_critique(replace(conditions, flagged=everything))
    drafted = replace(conditions, draft=Answer(text="."))  # next to no draft
    short, long = (len(writer.encode(revision_prompt(drafted, critique)).ids) for critique in critiques)
    return max(1, min(wanted, (int(window) - short) // 3, (int(window) - long) // 2))


def read_by(
    writer: str, case: Case, retrieval: Retrieval, *, use_answer: bool = False
) -> tuple[tuple[int, Passage], ...]:
    """The part of a case's passages that a writer is given, as `Request.read` wants it: a small one the best sentences.

    Nothing of its own where A is the case's answer and its prompt is known.
    """
    most = retrieval.sentences_for(writer)
    if not most or not case.passages or (use_answer and case.prompt is not None):
        return ()
    return shortened(case.question, case.passages, load_embedder(), most)


def conditions_of(request: Request) -> tuple[Conditions, tuple[str, ...]]:
    """The common inputs of the conditions, with notes."""
    settings, style = request.settings.refinement, request.settings.prompting.citations
    shots = worked_examples(settings.demonstrations, request.case.question, MARKERS[style], request.case.corpus)
    decoding = changed(
        request.settings.decoding, temperature=settings.temperature, max_new_tokens=asked_limit(request.settings)
    )
    conditions = Conditions(request, decoding, shots, request.given_prompt)
    limit = shared_limit(conditions)
    notes = []
    if limit < decoding.max_new_tokens:
        notes.append(
            f"Every condition may write {limit} tokens, not {decoding.max_new_tokens}: draft and critique use the "
            f"rest of the model's window."
        )
    if decoding.temperature == 0:
        notes.append("Greedy decoding does not sample: C1 repeats A, and D and v2c write the same text if both fire.")
    if request.read:
        notes.append(f"{request.writer.name} reads the best sentences of the passages, in every condition the same.")
    if growth := settings.growth_for(request.writer.name):
        notes.append(f"After A a condition may write {growth:g} times A's tokens and {MORE_TOKENS} more.")
    return replace(conditions, decoding=changed(decoding, max_new_tokens=limit)), tuple(notes)


MORE_TOKENS = 32  # beside the multiple of A's length: a citation or two for a draft of one short sentence


def stream(seed: int, condition: str, taken: Sequence[int] = ()) -> int:
    """The seed of a condition in a run: A's is the run's own, any other's a hash of both that is none of `taken`.

    So C1 never repeats the A of another run, and D and v2c, which ask the same, draw apart.

    >>> stream(1337, "A"), stream(1337, "D") == stream(1337, "v2c")
    (1337, False)
    """
    if condition == "A":
        return seed
    hashes = (int(sha256(f"{seed} {condition} {n}")[:8], 16) >> 1 for n in count())
    return next(drawn for drawn in hashes if drawn != seed and drawn not in taken)


def decoding_for(condition: str, decoding: Decoding, draft: Answer | None, settings: Settings, writer: str) -> Decoding:
    """A condition's decoding: its own stream, and for all but A a limit of some times A's length where one is set."""
    how, limit = settings.refinement, decoding.max_new_tokens
    growth = how.growth_for(writer)
    if condition != "A" and draft is not None and growth:
        length = len(draft.tokens) or 2 * len(draft.text.split())  # two a word where it came as text
        limit = min(limit, int(growth * length) + MORE_TOKENS)
    return changed(decoding, seed=stream(decoding.seed, condition, how.seeds), max_new_tokens=limit)


def stamp_for(request: Request, decoding: Decoding) -> Stamp:
    """The inputs, the writer and the settings of a run: one with the same texts (`other_texts`) continues another.

    The scorer is not part of it: another one measures the same answers again.
    """
    case = request.case
    stamp = stamp_of(request.writer, request.settings.prompting, decoding, _inputs(case, request.use_answer))
    own = {
        **_stamped(request.settings),
        "given": request.use_answer,
        "sentences": 0 if request.given_prompt else request.settings.retrieval.sentences_for(request.writer.name),
        "read": [
            (n, p.start - case.passages[n - 1].start, p.end - case.passages[n - 1].start) for n, p in request.read
        ],
    }
    return changed(stamp, settings=_as_stored({**stamp.settings, **own}))


def stamp_ahead(stamp: Stamp, case: Case, settings: Settings, *, use_answer: bool) -> Stamp:
    """The stamp of the next run by the writer of `stamp`, as far as it is known before the writer is loaded.

    Its weights and window are taken to be as they were, and so are the sentences that a small writer reads.
    """
    held, how = stamp.settings, settings.refinement
    before = held.get("decoding")
    limit = before.get("max_new_tokens") if isinstance(before, dict) else None
    decoding = {**settings.decoding.to_dict(), "temperature": how.temperature, "max_new_tokens": limit}
    given = use_answer and case.prompt is not None
    sentences = 0 if given else settings.retrieval.sentences_for(stamp.model)
    own = {
        **{name: value for name, value in held.items() if name != "occlusion"},
        **_stamped(settings),
        "prompting": settings.prompting.to_dict(),
        "decoding": decoding,
        "sentences": sentences,
    }
    return changed(stamp, settings=_as_stored(own), inputs=_inputs(case, use_answer), versions=package_versions())


def _inputs(case: Case, use_answer: bool) -> str:
    return inputs_hash(case.question, case.passages, case.answer.text if use_answer else "")


def _stamped(settings: Settings) -> Json:
    """The stamp's entries for the second pass and for the rows that its rules read."""
    own = {"refinement": settings.refinement.to_dict(), "gradient": settings.gradient.to_dict()}
    return {**own, **occlusion_stamped(settings)}


def _as_stored(settings: Json) -> Json:
    """As the library gives them back: JSON knows lists, no tuples."""
    stored: Json = msgspec.json.decode(msgspec.json.encode(settings))
    return stored


# Settings that no text depends on: those of the rules, the limit of seconds, and those of Ask.
NO_TEXT = {
    "refinement": ("overlap_threshold", "overlap_percentile", "overlap_cases", "ranked_by", "trigger", "seconds"),
    "prompting": ("refuse_under", "demonstrations"),
}
NO_ROWS = ("used_top", "share", "ratio")  # settings of the gradient that only the rules read


def other_texts(stamp: Stamp, other: Stamp) -> tuple[str, ...]:
    """What sets the texts of two runs apart: inputs, writer, versions, or settings as `stage.field`; none continues.

    >>> other_texts(Stamp(model="m", settings={"decoding": {"seed": 1}}), Stamp(model="n", settings={"given": True}))
    ('model', 'decoding.seed', 'given')
    """
    one, two = map(_text_stamp, (stamp, other))
    return tuple(name for name in dict.fromkeys((*one, *two)) if one.get(name) != two.get(name))


def _text_stamp(stamp: Stamp) -> Json:
    settings = {
        f"{stage}.{field}" if field else stage: value
        for stage, values in stamp.settings.items()
        if stage not in ("gradient", "occlusion")
        for field, value in (values.items() if isinstance(values, dict) else (("", values),))
        if field not in NO_TEXT.get(stage, ())
    }
    whole = stamp.to_dict()
    return {**{name: whole[name] for name in whole if name not in ("settings", "created")}, **settings}


def same_rows(stamp: Stamp, other: Stamp) -> bool:
    """Whether the gradient rows of two runs with the same texts and scorer have the same settings."""
    one, two = (
        (
            _without(each.settings.get("gradient"), NO_ROWS),
            each.settings.get("occlusion"),
            each.settings.get("refinement", {}).get("ranked_by"),
        )
        for each in (stamp, other)
    )
    return one == two


def _without(values: Any, names: Collection[str]) -> Any:
    return {name: value for name, value in values.items() if name not in names} if isinstance(values, dict) else values


def own_tokens(request: Request, answer: Answer) -> Answer:
    """A with the scorer's token ids: as generated where it wrote A, else its text tokenised once."""
    case = request.case
    writer = (case.stamp.model if request.use_answer else request.writer.name) or "elsewhere"
    return answer_for(request.scores_with, answer, writer, len(case.passages))


def sent_for_a(value: Refinement) -> Prompt | None:
    """A's prompt where A was written in this run."""
    turns = value.variants["A"].turns if "A" in value.variants else ()
    return turns[0].prompt if turns else None


def scored_prompt(request: Request, value: Refinement) -> Prompt:
    """The prompt that A answers: the one that was sent, or the one that the conditions read."""
    return sent_for_a(value) or conditions_of(request)[0].baseline_prompt()


def signals_of(request: Request, value: Refinement, prompt: Prompt, watch: Watch) -> tuple[Signals, dict[str, Cost]]:
    """S1 to S3 of A as far as they can be computed; values known from `value` are not scored again."""
    answer, memory = value.baseline, value.variants["B"].answer if "B" in value.variants else None
    if answer is None:
        return Signals(missing=dict.fromkeys(("S1", "S2", "S3"), "The baseline has no answer.")), {}
    missing = {}
    if memory is None:
        missing["S1"] = "There is no answer without passages (condition B)."
    words = signals.overlap_words(answer.text, request.case.passages)
    if not words:
        missing["S3"] = "The answer has no content words."
    found, cost = changed(value.signals, missing={}), dict[str, Cost]()
    if found.s2 is None:
        found, cost = _second_signal(request, answer, prompt, watch)
    found = changed(
        found,
        s1=signals.s1(answer.text, memory.text) if memory else None,
        s3=signals.s3(words),
        words=words,
        missing=missing | found.missing,
    )
    return found, cost


def _second_signal(request: Request, answer: Answer, prompt: Prompt, watch: Watch) -> tuple[Signals, dict[str, Cost]]:
    """S2 over all tokens and over content tokens with its cost, or why there is none; and the banner."""
    model = request.scores_with
    wrote = request.case.stamp.model or "another system" if request.use_answer else request.writer.name
    said = banner(wrote, model.name)
    try:
        require(model, "score")
        own = own_tokens(request, answer)
        if not own.tokens:
            return Signals(missing={"S2": "The answer has no tokens."}, banner=said), {}
        with metered(model) as meter:
            whole, content = signals.s2(model, prompt, own, watch)
    except (InputError, ModelError, AttributionError) as error:
        return Signals(missing={"S2": str(error)}, banner=said), {}
    return Signals(s2=whole, s2_content=content, banner=said), {"S2": meter.cost}
