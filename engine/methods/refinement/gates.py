"""When a second pass runs: S3, flags from labels, concentration, or always.

Grounded refinement, sections 3.4 (S3), 4.3.2 (labels) and 4.5.5 (concentration).

A rule is a pure function of what is stored with the case, so that a label marked on the page changes a trigger
without a model call. In a gated run a condition whose rule does not fire is A, byte for byte: a tie. Ours: without
labels the flags' rule is concentration, unless the settings name one. Left out: nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from engine.core.progress import Watch
from engine.core.settings import Settings
from engine.core.values import Answer, Attribution, Details, Prompt
from engine.methods import registry
from engine.methods.flags import FEWEST_RANKED, Concentration, Flags, concentration, distractor_flags
from engine.methods.refinement.values import Gate, OverlapThreshold, Trigger
from engine.methods.spans import anchor, first_content_tokens
from engine.models.protocols import LanguageModel

Labels = Mapping[int, bool | None]


def overlap_trigger(s3: float | None, threshold: OverlapThreshold) -> Trigger:
    """D's rule: S3 of A is under the threshold."""
    figures = {"threshold": threshold.value, "cases": float(threshold.n)}
    if s3 is None:
        sentence = "A has no content words, so S3 is not defined and the rule does not fire."
        return Trigger(rule="S3", fired=False, sentence=sentence, figures=figures)
    fired = s3 < threshold.value
    sentence = f"S3 of A is {s3:.2f}, {'under' if fired else 'not under'} {threshold.value:.2f} ({threshold.rule})."
    return Trigger(rule="S3", fired=fired, sentence=sentence, figures={"S3": s3, **figures})


def flags_trigger(gradient: Attribution | None, missing: str, labels: Labels, settings: Settings) -> Trigger:
    """The rule of v2a to v2c on the stored gradient rows: labels where there are any, else concentration."""
    if gradient is None:
        return Trigger(rule="unavailable", fired=False, sentence=missing)
    wanted = settings.refinement.trigger
    if len(numbers := _numbers(gradient)) < FEWEST_RANKED:
        return Trigger(rule="unavailable", fired=False, sentence=ONE_PASSAGE)
    labelled = any(labels.get(number) is not None for number in numbers)
    if wanted == "labels" or (wanted == "auto" and labelled):
        return labels_trigger(flags_of(gradient, labels, settings))
    return concentration_trigger(concentration_of(gradient, settings))


ONE_PASSAGE = "The prompt has one passage, and the flags compare passages. Use D, or the trigger Always."


def flags_of(gradient: Attribution, labels: Labels, settings: Settings) -> Flags:
    """The distractor flags of the stored gradient rows."""
    return distractor_flags(gradient.per_token, _numbers(gradient), labels, settings.gradient)


def concentration_of(gradient: Attribution, settings: Settings) -> Concentration:
    """The concentration trigger on the stored gradient rows."""
    lengths = gradient.details.lengths
    return concentration(gradient.per_token, _numbers(gradient), lengths, settings.gradient)


def _numbers(gradient: Attribution) -> list[int]:
    return [source[0] for source in gradient.sources]


def labels_trigger(flags: Flags) -> Trigger:
    """Fires where a passage labelled not relevant is high in the gradient ranking."""
    times = {p.number: p.times for p in flags.passages if p.flagged}
    unlabelled = all(p.relevant is None for p in flags.passages)
    if times:
        said = ", ".join(f"passage {n} on {t}" for n, t in times.items())
        sentence = f"Labelled not relevant and high in the gradient ranking: {said} of {flags.tokens} tokens."
    elif unlabelled:
        sentence = "No passage of the prompt is labelled, so this rule cannot fire. Mark passages as relevant or not."
    else:
        sentence = "No passage labelled not relevant is high in the gradient ranking."
    return Trigger(
        rule="labels",
        fired=bool(times),
        sentence=" ".join(filter(None, (sentence, flags.sentence))),
        passages=flags.flagged,
        figures={
            "chance that one passage is high": flags.chance,
            "random rankings: passages high": flags.random_rate,
            "random rankings: flag": flags.random_flag_rate,
            "tokens": float(flags.tokens),
        },
    )


def concentration_trigger(found: Concentration) -> Trigger:
    """Fires where a passage takes more than its length's share of relevance, labels or not."""
    if found.fires:
        which = "passage" if len(found.numbers) == 1 else "passages"
        named = ", ".join(map(str, found.numbers))
        sentence = f"Relevance is concentrated on {which} {named}, at {found.ratio:g} times the share of its length."
    else:
        sentence = f"No passage reaches {found.ratio:g} times the share of its length on enough of the tokens."
    return Trigger(
        rule="concentration",
        fired=found.fires,
        sentence=f"{sentence} {found.sentence}",
        passages=found.numbers,
        figures={"ratio": found.ratio, "random rankings: fires": found.random_rate, "tokens": float(found.tokens)},
    )


def gated(own: Trigger, gate: Gate, gradient: Attribution | None, labels: Labels) -> Trigger:
    """The trigger under the gate: "always" fires whatever the rule says, and keeps its verdict in the sentence.

    `labels` are those of the passages in A's prompt. Where the rule points at none of them, v2a and v2b are given those
    labelled not relevant, else the one that is highest by |relevance| over A and not labelled relevant, if any.
    """
    if gate == "own":
        return own
    state = "would have fired" if own.fired else "would not have fired"
    if own.rule == "unavailable":
        state = "is not available"
    named, note = own.passages, ""
    if not named and own.rule != "S3":
        named, note = _stand_ins(gradient, labels)
    sentence = f"Always on; the {own.rule if own.rule != 'unavailable' else 'own'} rule {state}. {own.sentence}{note}"
    return Trigger(rule="always", fired=True, sentence=sentence, passages=named, figures=own.figures)


def _stand_ins(gradient: Attribution | None, labels: Labels) -> tuple[tuple[int, ...], str]:
    """Passages to name where none is flagged, and the sentence that says so."""
    marked = tuple(number for number, label in sorted(labels.items()) if label is False)
    if marked:
        return marked, " The critique names the passages labelled not relevant instead."
    rows = zip(gradient.scores[0], _numbers(gradient), strict=True) if gradient else ()
    free = [(abs(score), -number) for score, number in rows if labels.get(number) is not True]
    if not free:
        return (), ""
    number = -max(free)[1]
    return (number,), f" The critique names passage {number}, the highest in the gradient ranking."


EVERY_TIME = Trigger(rule="always", fired=True, sentence="This condition revises every answer.")


def gradient_rows(
    model: LanguageModel, prompt: Prompt, answer: Answer, settings: Settings, watch: Watch = Watch()
) -> Attribution:
    """Passage relevance by `refinement.ranked_by`: the answer in `scores`, its first K content tokens in `per_token`.

    `details.lengths` are the passages' token counts. Input x gradient: one forward, K + 1 backwards. A method without
    values per input token is asked for the stretches of those tokens, unless it scores all anyway. Raises `InputError`
    for an unknown method, `CannotDo`, `PromptTooLong`, `AttributionError` without content tokens.
    """
    counted = settings.occlusion.count_citation_markers
    first = first_content_tokens(answer, settings.gradient.first_tokens, count_citation_markers=counted)
    own = registry.method(settings.refinement.ranked_by, settings)
    if own.explain is not None:
        found = registry.summed(own.explain, model, prompt, answer, tokens=first, watch=watch)
    else:
        starts = [anchor(answer.text, answer.tokens[t].start) for t in first]
        stretches = [(start, max(start + 1, answer.tokens[t].end)) for start, t in zip(starts, first, strict=True)]
        whole = (0, len(answer.text))
        found = own.attribute(model, prompt, answer, [whole, *stretches], watch)
        each = len(found.per_token) == len(answer.tokens)
        rows = tuple(found.per_token[t] for t in first) if each else found.scores[1:]
        found = replace(found, spans=(whole,), scores=found.scores[:1], per_token=rows, details=Details(tokens=first))
    coded = model.encode(prompt)
    lengths = tuple(end - start for start, end in map(coded.passage_span, _numbers(found)))
    return replace(found, details=replace(found.details, lengths=lengths, absolute=()))
