"""Contrastive occlusion: which passages speak for what was written, and which for something else in its place.

score(j) = c(all) - c(all but j), where c = log p(written | ...) - log p(instead | ...), both after the same words of
the answer; in nats, positive = the passage speaks for what was written. Without a contrast a score also counts what a
passage does to any words at this place. After Yin and Neubig, 2022, who explain one token rather than another by
gradients and erasure; here two texts are compared and passages left out (docs/methods/contrast.md). Left out: the rest
of the answer behind the words, and contrasts of whole answers.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace as changed

import numpy as np
from msgspec.structs import replace

from engine.core.errors import InputError
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
    """Where an answer has these words first, as words of their own; `InputError` where it has not."""
    found = re.search(rf"(?<!\w){re.escape(words)}(?!\w)", answer) if words else None
    if found is None:
        raise InputError(f"The answer does not have the words {words!r}. Copy them from the answer.")
    return found.span()


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
    span = place_of(answer.text, written)
    if not instead or instead == written:
        raise InputError("Give other words than those of the answer, to compare them with.")
    coded, before = model.encode(prompt), answer.text[: span[0]]
    both = [_asked(model, coded, before, said) for said in (written, instead)]
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


def _asked(model: LanguageModel, coded: TokenPrompt, before: str, said: str) -> OcclusionTask:
    """The text up to and with the words, of which the tokens of the words count."""
    text = model.encode_answer(before + said)
    task = ask(coded, text, [(len(before), len(before + said))], count_citation_markers=True)
    if not task.masks.any():
        raise InputError(f"The words {said!r} have no token of their own here. Take in the word in front of them.")
    return task


def _summed(asked: OcclusionTask, rows: Rows) -> Rows:
    """Rows of the words' log-probability, each (rows, 1)."""
    mask = asked.masks.T.astype(np.float64)
    parts = {name: getattr(rows, name) @ mask for name in ("full", "without", "alone", "placebos")}
    return changed(rows, **parts)


def _difference(model: str, asked: OcclusionTask, span: Span, sums: Sequence[Rows], numerical: Floats) -> Attribution:
    """The effect of each passage, left out and alone, on written minus instead."""
    one, other = sums
    parts = {name: getattr(one, name) - getattr(other, name) for name in ("full", "without", "alone")}
    comparable = len(one.placebos) == len(other.placebos) > 0
    rows = changed(one, **parts, placebos=one.placebos - other.placebos if comparable else one.placebos[:0])
    single = np.ones((1, 1), dtype=bool)
    task = changed(asked, ids=(0,), spans=(span,), masks=single, marked=single)
    placebo = largest_change(rows.placebos, rows.full, single) if comparable else None
    found = attribution_of(model, METHOD, task, changed(rows, alone=rows.alone[:0]), (numerical, placebo))
    alone = (rows.alone[1:] - rows.alone[0])[list(found.details.kept)].T
    details = Details(kept=found.details.kept, full=found.details.full, alone=as_tuples(alone))
    return replace(found, per_token=(), details=details)


def _of_both(sums: Sequence[Rows], value: Callable[[Rows], float]) -> tuple[float, float]:
    one, other = map(value, sums)
    return float(one), float(other)
