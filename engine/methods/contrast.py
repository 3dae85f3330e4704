"""Contrastive occlusion: which passages speak for what was written, and which for something else in its place.

score(j) = c(all) - c(all but j), where c = log p(written | ...) - log p(instead | ...), both after the same words of
the answer; in nats, positive = the passage speaks for what was written. Without a contrast a score also counts what a
passage does to any words at this place. After Yin and Neubig, 2022, who explain one token rather than another by
gradients and erasure; here two texts are compared and passages left out (docs/methods/contrast.md). Left out: the rest
of the answer behind the words, and contrasts of whole answers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace as changed

import numpy as np
from msgspec.structs import replace

from engine.core.errors import AttributionError, InputError
from engine.core.progress import Watch, last
from engine.core.settings import Occlusion
from engine.core.values import Answer, Attribution, Details, Prompt, Value
from engine.methods.occlusion import (
    OcclusionTask,
    Rows,
    ask,
    attribution_of,
    floors_of,
    largest_change,
    placebo_prompts,
    score_rows,
)
from engine.methods.spans import Floats, Span, as_tuples
from engine.models.hooks import count_forwards
from engine.models.offsets import common_length
from engine.models.protocols import LanguageModel, TokenPrompt, require

METHOD = "contrast"


class Contrast(Value, frozen=True):
    """Two texts at one place of an answer, and what each passage does to the choice between them.

    `span`: the place of `written`, in characters. `likely` and `bare`: the log-probabilities (nats) of written and
    instead, with all passages and with none. `tokens`: of each. `effect`: one span, a score per passage.
    """

    span: Span
    written: str
    instead: str
    likely: tuple[float, float]
    bare: tuple[float, float]
    tokens: tuple[int, int]
    effect: Attribution


def place_of(answer: str, words: str) -> Span:
    """Where an answer has these words first; not inside a longer word. `InputError` where it has not.

    >>> place_of("In 1874, not 187", "187"), place_of("From 3.5 to 3", "3")
    ((13, 16), (12, 13))
    """
    start = answer.find(words) if words else -1
    while start >= 0:
        end = start + len(words)
        before, behind = answer[max(0, start - 2) : start][::-1], answer[end : end + 2]
        if not (_goes_on(words[0], before) or _goes_on(words[-1], behind)):
            return start, end
        start = answer.find(words, start + 1)
    raise InputError(f"The answer does not have the words {words!r}. Copy them from the answer.")


def _goes_on(sign: str, beyond: str) -> bool:
    """Whether the word whose end is this sign has letters beyond it, seen from there: "3" in "3.5" has.

    A word has none after a point, nor in Chinese or Thai.
    """
    if sign.isdigit() and beyond[:1] in (".", ",") and beyond[1:].isdigit():
        return True
    return sign.isascii() and sign.isalnum() and (beyond[:1].isalnum() or beyond[:1] == "_")


def checked_texts(answer: str, written: str, instead: str) -> Span:
    """The place of `written`; raise `InputError` where it has none, or where the texts do not differ."""
    span = place_of(answer, written)
    if not instead or instead == written:
        raise InputError("Give other words than those of the answer, to compare them with.")
    return span


def contrast(
    model: LanguageModel,
    prompt: Prompt,
    answer: Answer,
    written: str,
    instead: str,
    *,
    placebos: Sequence[str] = (),
    settings: Occlusion = Occlusion(),
    watch: Watch = Watch(),
) -> Contrast:
    """The effect of each passage on the choice between `written`, words of the answer, and `instead`.

    `placebos` are texts of other documents. 2 (2n + 2) rows for n passages, and the floors. Raises `InputError` for
    words that the answer does not have or that do not differ, and what `occlusion` raises.
    """
    require(model, "score")
    written, instead, start = written.strip(), instead.strip(), time.perf_counter()
    span = checked_texts(answer.text, written, instead)
    both = _asked(model, model.encode(prompt), answer.text[: span[0]], (written, instead))
    changed_prompts = placebo_prompts(prompt, placebos[: settings.placebos], settings.seed)
    extra = [model.encode(one) for one in changed_prompts]
    half = 2 * len(both[0].groups) + 2 + len(extra)  # rows of one text
    with count_forwards(model) as count:
        rows = [
            last(score_rows(model, one, extra, alone=True, watch=watch.part(place * half, 2 * half)))
            for place, one in enumerate(both)
        ]
        each = [floors_of(model, one, own)[0][:1] for one, own in zip(both, rows, strict=True)]
    sums = [_summed(one, own) for one, own in zip(both, rows, strict=True)]
    effect = _difference(model.name, both[0], span, sums, each[0] + each[1])
    return Contrast(
        span=span,
        written=written,
        instead=instead,
        likely=_of_both(sums, lambda own: own.full[0]),
        bare=_of_both(sums, lambda own: own.alone[0, 0]),
        tokens=(int(both[0].masks.sum()), int(both[1].masks.sum())),
        effect=replace(effect, forwards=count.rows, seconds=time.perf_counter() - start),
    )


def _asked(model: LanguageModel, coded: TokenPrompt, before: str, texts: Sequence[str]) -> list[OcclusionTask]:
    """Each text with the words in front of it, of which the tokens from its own first one on count.

    Where a token takes in the end of `before` it counts, and where the texts part earlier, all tokens from there on do:
    tokens that both have cancel out.
    """
    answers = [model.encode_answer(before + text) for text in texts]
    ids = [[token.id for token in answer.tokens] for answer in answers]
    own = [next(i for i, token in enumerate(answer.tokens) if token.end > len(before)) for answer in answers]
    first = min(common_length(*ids), *own)
    tasks = []
    for answer in answers:
        task = ask(coded, answer, [(0, len(answer.text))], count_citation_markers=True)
        mask = np.arange(len(answer.tokens))[None] >= first
        tasks.append(changed(task, masks=mask, marked=mask))
    return tasks


def _summed(asked: OcclusionTask, rows: Rows) -> Rows:
    """Rows of the words' log-probability, each (rows, 1)."""
    mask = asked.masks.T.astype(np.float64)
    parts = {name: getattr(rows, name) @ mask for name in ("full", "without", "alone", "placebos")}
    return changed(rows, **parts)


def _difference(model: str, asked: OcclusionTask, span: Span, sums: Sequence[Rows], numerical: Floats) -> Attribution:
    """The effect of each passage, left out and alone, on written minus instead."""
    one, other = sums
    parts = {name: getattr(one, name) - getattr(other, name) for name in ("full", "without", "alone")}
    comparable = len(one.placebos) == len(other.placebos)
    placebos = one.placebos - other.placebos if comparable else one.placebos[:0]
    rows = changed(one, **parts, placebos=placebos, notes=tuple(dict.fromkeys((*one.notes, *other.notes))))
    single = np.ones((1, 1), dtype=bool)
    task = changed(asked, ids=(0,), spans=(span,), masks=single, marked=single)
    placebo = largest_change(rows.placebos, rows.full, single) if len(placebos) else None
    found = attribution_of(model, METHOD, task, changed(rows, alone=rows.alone[:0]), (numerical, placebo))
    alone: tuple[tuple[float, ...], ...] = ()
    if np.isfinite(rows.alone).all():
        alone = as_tuples((rows.alone[1:] - rows.alone[0])[list(found.details.kept)].T)
    details = Details(kept=found.details.kept, full=found.details.full, alone=alone)
    return replace(found, per_token=(), details=details)


def _of_both(sums: Sequence[Rows], value: Callable[[Rows], float]) -> tuple[float, float]:
    one, other = map(value, sums)
    if not np.isfinite((one, other)).all():
        raise AttributionError("The model gave a probability that is not finite. Load it in float32 or bfloat16.")
    return float(one), float(other)
