"""Attribution of a case: the case's own passages, prompt and answer in, an `Analysis` with its stamp out.

The prompt is the one that was sent where the scorer wrote the answer, else the engine's answering prompt over the
case's passages (METHODS section 0, "Stamps"); a banner in the notes says so.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from engine.answer.generate import stamp_of
from engine.answer.prompt import build_prompt
from engine.attribute import registry
from engine.attribute.aggregate import passage_attribution, passage_maps
from engine.attribute.agreement import Pair, agreement
from engine.attribute.faithfulness import (
    Curves,
    RandomABPC,
    curves,
    diagnostics,
    passage_curves,
    passage_ranking,
    random_abpc,
    removable,
    token_ranking,
)
from engine.attribute.floors import passage_body
from engine.attribute.input_x_gradient import input_x_gradient
from engine.attribute.occlusion import occlusion
from engine.attribute.scorer import answer_for, banner
from engine.attribute.spans import answer_spans, content_mask
from engine.attribute.used_supports import used_supports
from engine.errors import AttributionError
from engine.models.hooks import count_forwards
from engine.models.protocols import Entailment, LanguageModel
from engine.progress import Watch
from engine.settings import Settings
from engine.types import Analysis, Answer, Attribution, Case, Passage, Prompt, Stamp, Value, inputs_hash


class TokenMap(Value, frozen=True):
    """Input x gradient of a case as the page draws it.

    `passages[p]` = (number, token spans [start, end) in that passage's text). `rows[r][p][i]` is the relevance of
    token i of passage p for target r. Targets: the whole answer first, then `sentences`, then the answer tokens
    `tokens` (indices into `answer.tokens`). Row r sums, with what lies outside passages, to the target's relevance.
    """

    model: str
    target: str
    answer: Answer
    passages: tuple[tuple[int, tuple[tuple[int, int], ...]], ...]
    sentences: tuple[tuple[int, int], ...]
    tokens: tuple[int, ...]
    rows: tuple[tuple[tuple[float, ...], ...], ...]
    argmax_differs: tuple[int, ...] = ()
    forwards: int = 0
    backwards: int = 0
    seconds: float = 0.0
    notes: tuple[str, ...] = ()


def subject(case: Case, model: LanguageModel, settings: Settings) -> tuple[Prompt, Answer, tuple[str, ...]]:
    """(prompt, answer with the model's token ids, notes) for scoring a case; `AttributionError` without passages."""
    if not case.passages:
        raise AttributionError("This case has no passages, so there is nothing to attribute its answer to.")
    own = case.prompt is not None and case.stamp.model == model.name
    prompt = case.prompt if own and case.prompt else build_prompt(case.question, case.passages, settings.prompting)
    answer = answer_for(model, case.answer, case.stamp.model, len(case.passages), settings.prompting.citations)
    said = banner(case.stamp.model, model.name)
    return prompt, answer, (said,) if said else ()


def placebos_for(case: Case, corpus: Sequence[Passage], count: int, seed: int) -> tuple[Passage, ...]:
    """`count` passages of documents that the case does not hold, drawn by `seed`."""
    held = {passage.document for passage in case.passages}
    others = [passage for passage in corpus if passage.document not in held]
    order = np.random.default_rng(seed).permutation(len(others))[:count]
    return tuple(others[i] for i in order)


def sources_of(case: Case) -> tuple[tuple[int, ...], ...]:
    """Passage numbers grouped into the chunk sets that they came in; a passage outside every set is its own source."""
    groups: dict[int, list[int]] = {}
    places = {passage.id: index for index, chunk_set in enumerate(case.chunk_sets) for passage in chunk_set.passages}
    for number, passage in enumerate(case.passages, start=1):
        groups.setdefault(places.get(passage.id, -number), []).append(number)
    return tuple(tuple(numbers) for numbers in groups.values())


def occlusion_of(
    case: Case,
    model: LanguageModel,
    settings: Settings,
    *,
    by_set: bool = False,
    placebos: Sequence[Passage] = (),
    watch: Watch | None = None,
) -> Analysis:
    """Teacher-forced occlusion of every passage (or chunk set), with each alone and both floors."""
    prompt, answer, notes = subject(case, model, settings)
    result = occlusion(
        model,
        prompt,
        answer,
        sources=sources_of(case) if by_set else None,
        placebos=[passage.text for passage in placebos],
        alone=True,
        settings=settings.occlusion,
        watch=watch,
    )
    result = replace(result, notes=(*notes, *result.notes))
    kind = "occlusion of chunk sets" if by_set else "occlusion"
    extra = {"occlusion": settings.occlusion.to_dict(), "placebos": [p.id for p in placebos]}
    return _analysis(case, model, settings, kind, result.to_dict(), extra)


def method_of(
    case: Case, method: str, model: LanguageModel, settings: Settings, watch: Watch | None = None
) -> Analysis:
    """Any registered method over the case's passages, for the whole answer and each sentence."""
    prompt, answer, notes = subject(case, model, settings)
    result: Attribution = registry.method(method).attribute(model, prompt, answer, answer_spans(answer), watch)
    result = replace(result, notes=(*notes, *result.notes))
    return _analysis(case, model, settings, method, result.to_dict(), {"gradient": settings.gradient.to_dict()})


def token_map_of(case: Case, model: LanguageModel, settings: Settings, watch: Watch | None = None) -> Analysis:
    """Input x gradient of every passage token: for the answer, each sentence, and tokens as the budget allows."""
    prompt, answer, notes = subject(case, model, settings)
    spans = answer_spans(answer)
    content = tuple(int(t) for t in np.flatnonzero(content_mask(answer)))
    coded = model.encode(prompt)
    tokens = content[: settings.gradient.token_budget // len(coded.ids)]
    if len(tokens) < len(content):
        notes += (f"The first {len(tokens)} of {len(content)} tokens have rows of their own, the rest by sentence.",)
    target = settings.gradient.target
    found = input_x_gradient(model, prompt, answer, spans=spans, tokens=tokens, target=target, watch=watch)
    maps = [passage_maps(model, prompt, coded, row) for row in (*found.by_span, *found.by_token)]
    segments = {s.number: s for s in prompt.segments if s.kind == "passage"}
    bodies = {number: segment.text.index(passage_body(segment)) for number, segment in segments.items()}
    result = TokenMap(
        model=model.name,
        target=target,
        answer=answer,
        passages=tuple(
            (m.number, tuple((t.start - bodies[m.number], t.end - bodies[m.number]) for t in m.tokens)) for m in maps[0]
        ),
        sentences=tuple(spans[1:]),
        tokens=tokens,
        rows=tuple(tuple(tuple(t.relevance for t in m.tokens) for m in row) for row in maps),
        argmax_differs=tuple(t for t in tokens if found.argmax and found.argmax[t] != answer.tokens[t].id),
        forwards=found.forwards,
        backwards=found.backwards,
        seconds=found.seconds,
        notes=(*notes, *found.notes),
    )
    return _analysis(case, model, settings, "token map", result.to_dict(), {"gradient": settings.gradient.to_dict()})


def used_supports_of(
    case: Case,
    model: LanguageModel,
    verifier: Entailment,
    settings: Settings,
    *,
    placebos: Sequence[Passage] = (),
    watch: Watch | None = None,
) -> Analysis:
    """What the model used of each passage, sentence by sentence, beside what the passage supports."""
    prompt, answer, notes = subject(case, model, settings)
    texts = [passage.text for passage in placebos]
    spans = answer.sentences or None
    scored = occlusion(model, prompt, answer, spans=spans, placebos=texts, settings=settings.occlusion, watch=watch)
    passages = {number: passage.text for number, passage in enumerate(case.passages, start=1)}
    result = replace(used_supports(scored, answer, passages, verifier, watch), notes=(*notes, *scored.notes))
    extra = {
        "occlusion": settings.occlusion.to_dict(),
        "placebos": [passage.id for passage in placebos],
        "verifier": verifier.name,
    }
    return _analysis(case, model, settings, "used x supports", result.to_dict(), extra)


class FaithfulnessReport(Value, frozen=True):
    """Curves of the gradient and the occlusion ranking, the passage-level curve, random rankings, diagnostics."""

    model: str
    curves: tuple[Curves, ...]
    passages: Curves
    random: RandomABPC
    diagnostics: dict[str, float | None]
    agreement: tuple[Pair, ...]
    forwards: int = 0
    seconds: float = 0.0
    notes: tuple[str, ...] = ()


def faithfulness_of(case: Case, model: LanguageModel, settings: Settings, watch: Watch | None = None) -> Analysis:
    """MoRF, LeRF and ABPC of input x gradient and occlusion on the case's passages, beside random rankings."""
    prompt, answer, notes = subject(case, model, settings)
    start = time.perf_counter()
    with count_forwards(model) as count:
        report = faithfulness(model, prompt, answer, settings, watch)
    report = replace(report, forwards=count.rows, seconds=time.perf_counter() - start, notes=notes)
    extra = {"faithfulness": settings.faithfulness.to_dict(), "gradient": settings.gradient.to_dict()}
    return _analysis(case, model, settings, "faithfulness", report.to_dict(), extra)


def faithfulness(
    model: LanguageModel, prompt: Prompt, answer: Answer, settings: Settings, watch: Watch | None = None
) -> FaithfulnessReport:
    """The report of one prompt and answer; without gradients (`CannotDo`) there is none."""
    coded = model.encode(prompt)
    ids = [token.id for token in answer.tokens]
    explained = content_mask(answer)
    target = settings.gradient.target
    relevance = input_x_gradient(model, prompt, answer, target=target, watch=watch)
    by_gradient = passage_attribution(relevance, coded)
    left_out = occlusion(model, prompt, answer, spans=relevance.spans, floors=False, watch=watch)
    rankings: dict[str, Sequence[int]] = {
        "input x gradient": token_ranking(relevance.by_span[0], removable(coded)),
        "occlusion": passage_ranking(coded, left_out.scores[0], left_out.sources),
    }
    found = curves(model, coded, ids, explained, rankings, settings.faithfulness.steps, watch)
    explained_target = float(sum(v for v, e in zip(relevance.values, explained, strict=True) if e))
    return FaithfulnessReport(
        model=model.name,
        curves=tuple(found.values()),
        passages=passage_curves(model, coded, ids, explained, left_out.scores[0], watch),
        random=random_abpc(model, coded, ids, explained, settings.faithfulness, watch),
        diagnostics=diagnostics(relevance.by_span[0], coded, explained_target),
        agreement=agreement({"input x gradient": by_gradient, "occlusion": left_out}),
    )


def _analysis(
    case: Case, model: LanguageModel, settings: Settings, kind: str, result: dict[str, Any], extra: dict[str, Any]
) -> Analysis:
    inputs = inputs_hash(case.question, case.passages, case.answer.text)
    written = stamp_of(model, settings.prompting, settings.decoding, inputs)
    stamp: Stamp = replace(written, settings={**written.settings, **extra})
    return Analysis(id=f"{kind}:{model.name}", kind=kind, stamp=stamp, result=result)
