"""Closed questions: which of a few allowed answers a model gives, by likelihood where it can score, else by its reply.

Likelihood: the log-probabilities (nats) of an option's tokens after the prompt are summed, and a softmax over the
options turns the sums into shares. Nothing is written, so nothing is unparsed. The shares rank these options; they are
not calibrated. Sums are not divided by the number of tokens: a longer option pays for each token, but once it has begun
the rest of a listed option is nearly certain, and a mean would favour long options for that. The end of the turn is not
counted, so no option may be the beginning of another. Of options with equal shares the first one wins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeGuard

import numpy as np

from engine.core.progress import Watch
from engine.core.settings import Decoding
from engine.core.values import Prompt, Segment, Value
from engine.models.offsets import common_length
from engine.models.protocols import LanguageModel, TokenPrompt, Writer, require
from engine.models.replies import parse_option
from engine.models.verdicts import softmax
from engine.prompts import fill

Parse = Callable[[str], str | None]
By = Literal["likelihood", "reply"]
GREEDY = Decoding(max_new_tokens=512, temperature=0.0)


class Choice(Value, frozen=True):
    """The answer to a closed question. `option` is None where a reply names none, or two that differ.

    `probabilities` are the shares of all options (sum 1), empty where a reply decided. `prompt` is what was scored or
    sent, `reply` what the model wrote, empty by likelihood.
    """

    option: str | None
    by: By
    prompt: Prompt
    probabilities: dict[str, float] = {}
    reply: str = ""


def can_score(model: Writer) -> TypeGuard[LanguageModel]:
    """Whether likelihoods decide for this model."""
    return model.can.score and isinstance(model, LanguageModel)


def closed(prompt: Prompt, options: Sequence[str], template: str = "choose_one") -> Prompt:
    """The prompt with the allowed answers, as `template` names them."""
    question = Segment(kind="question", text=fill(template, options=", ".join(options)))
    return Prompt(segments=(*prompt.segments, question))


def choose(
    model: Writer,
    prompt: Prompt,
    options: Sequence[str],
    parse: Parse | None = None,
    *,
    decoding: Decoding = GREEDY,
    watch: Watch = Watch(),
) -> Choice:
    """The option that the model gives to the question of `prompt`, which does not list the options yet.

    One that cannot score writes its reason first; `parse` reads its reply instead of `parse_option`. Raises what the
    model raises (`CannotDo`, `PromptTooLong`).
    """
    if can_score(model):
        return by_likelihood(model, closed(prompt, options), options, watch)
    require(model, "generate")
    question = closed(prompt, options, "reason_first")
    reply = model.generate(question, decoding, None, watch).text
    option = parse(reply) if parse else parse_option(reply, options)
    return Choice(option=option, by="reply", prompt=question, reply=reply)


def choose_each(
    model: Writer, prompts: Sequence[Prompt], options: Sequence[str], parse: Parse | None = None, watch: Watch = Watch()
) -> list[Choice]:
    """`choose` for several prompts with the same options; what the prompts begin with is read once."""
    if not can_score(model):
        return [choose(model, prompt, options, parse, watch=watch) for prompt in prompts]
    asked = [closed(prompt, options) for prompt in prompts]
    return list(map(_likeliest, asked, probabilities(model, asked, options, watch)))


def after(prompt: Prompt, reply: str, options: Sequence[str]) -> Prompt:
    """The closed question as the next turn after a reply; in the same turn where the reply is empty."""
    if not reply:
        return closed(prompt, options)
    question = fill("choose_one", options=", ".join(options)).lstrip("\n")
    said = Segment(kind="draft", role="assistant", text=reply)
    return Prompt(segments=(*prompt.segments, said, Segment(kind="question", text=question)))


def by_likelihood(model: LanguageModel, prompt: Prompt, options: Sequence[str], watch: Watch = Watch()) -> Choice:
    """The likeliest option directly after `prompt`."""
    return _likeliest(prompt, probabilities(model, [prompt], options, watch)[0])


def probabilities(
    model: LanguageModel, prompts: Sequence[Prompt], options: Sequence[str], watch: Watch = Watch()
) -> list[dict[str, float]]:
    """For each prompt the share of each option among all of them (sum 1), by the likelihood of its text after it."""
    require(model, "score")
    ids = [[token.id for token in model.encode_answer(option).tokens] for option in options]
    if together := getattr(model, "score_continuations", None):
        coded = [model.encode(prompt) for prompt in prompts]
        sums = together(coded, ids, watch, _worked_examples(prompts, coded))
    else:
        each = map(model.encode, prompts)
        sums = np.array([[model.score([one], option, watch).sum() for option in ids] for one in each])
    return [dict(zip(options, softmax(row).tolist(), strict=True)) for row in sums]


def _worked_examples(prompts: Sequence[Prompt], coded: Sequence[TokenPrompt]) -> int:
    """The ids that all begin with, up to the end of their worked examples; 0 without examples."""
    kinds = [segment.kind for segment in prompts[0].segments]
    if "demonstration" not in kinds:
        return 0
    last = max(place for place, kind in enumerate(kinds) if kind == "demonstration")
    head = next((start for segment, start, _ in coded[0].spans if segment > last), 0)
    return min(common_length(coded[0].ids[:head], prompt.ids[:-1]) for prompt in coded)


def _likeliest(prompt: Prompt, shares: dict[str, float]) -> Choice:
    best = max(shares, key=shares.__getitem__)  # of equal ones the first
    return Choice(option=best, by="likelihood", prompt=prompt, probabilities=shares)


def listed(shares: Mapping[str, float]) -> str:
    """The shares for a reader, highest first.

    >>> listed({"yes": 0.25, "no": 0.75})
    'no 75%, yes 25%'
    """
    return ", ".join(f"{option} {share:.0%}" for option, share in sorted(shares.items(), key=lambda item: -item[1]))
