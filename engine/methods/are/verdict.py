"""The verdict on a fact and its evidence (ARE, section 4.3, appendix A.3): supportive, editing required and so on.

By an entailment model (scores kept) or a language model: one that scores answers a closed question (models/closed.py),
another one's reply is parsed. A reply that cannot be parsed is a verdict of its own: shown, counted, never guessed. ARE
parses replies only. Left out: nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from engine.core.progress import Watch
from engine.core.settings import Decoding
from engine.core.text import Span
from engine.core.values import Prompt, T
from engine.methods.are.values import Exchange, Ruling, VerdictName
from engine.models.closed import can_score, choose
from engine.models.protocols import Entailment, Judged, VerdictClass, Writer
from engine.models.replies import lines, parse_option
from engine.models.tables import tables
from engine.models.verdicts import EVEN, Thresholds, decide
from engine.prompts import ask, fill, with_examples

WORDS: dict[str, VerdictClass] = {"agrees": "supportive", "disagrees": "editing_required", "irrelevant": "irrelevant"}
_SAID = re.compile(r"\b(agrees|disagrees|irrelevant)\b", re.IGNORECASE)
SHORT = Decoding(max_new_tokens=200)
_LABELS = ("answer", "verdict", "conclusion")
_DENIED = re.compile(r"\b(?:not|nor|neither)\b|n't\b", re.IGNORECASE)


def asked(
    step: str, prompt: Prompt, writer: Writer, limit: int, parse: Callable[[str], T | None], watch: Watch = Watch()
) -> tuple[T | None, Exchange]:
    """A language model's reply of at most `limit` tokens as `parse` reads it (None: not readable), and the exchange."""
    reply = writer.generate(prompt, Decoding(max_new_tokens=limit), None, watch).text
    found = parse(reply)
    return found, Exchange(step=step, prompt=prompt.text, reply=reply, parsed=found is not None)


def judge(pairs: Sequence[tuple[str, str]], verifier: Entailment, watch: Watch = Watch()) -> list[Ruling]:
    """The entailment model's rulings on (fact, evidence) pairs, in order."""
    return [Ruling.of(judged, verifier) for judged in verifier.judge(pairs, watch)]


def judged_twice(pairs: Sequence[tuple[str, str, Span]], verifier: Entailment, watch: Watch = Watch()) -> list[Judged]:
    """Verdicts on facts by the evidence and by one part of it alone: the mean of the two readings' probabilities.

    A pair is a fact, its evidence and the span of the sentence on it. A small model loses a fact among the sentences
    around it, and of the sentence alone what the others add. A table is read once: a row alone has no column names.
    """
    several = [n for n, (_, text, span) in enumerate(pairs) if text[slice(*span)] != text.strip() and not tables(text)]
    alone = [(fact, text[slice(*span)]) for fact, text, span in map(pairs.__getitem__, several)]
    judged = verifier.judge([*((fact, text) for fact, text, _ in pairs), *alone], watch) if pairs else []
    found, thresholds = judged[: len(pairs)], getattr(verifier, "thresholds", EVEN)
    for n, one in zip(several, judged[len(pairs) :], strict=True):
        found[n] = mean(found[n], one, pairs[n][2], thresholds)
    return found


def mean(whole: Judged, alone: Judged, span: Span, thresholds: Thresholds) -> Judged:
    """The verdict by the mean probabilities, irrelevant only where one of the two readings is.

    Its window is that of the reading that speaks more for it.
    """
    scores = {name: (whole.scores[name] + alone.scores[name]) / 2 for name in whole.scores}
    unrelated = "irrelevant" in (whole.verdict, alone.verdict)
    verdict = decide(scores["supportive"], scores["editing_required"], thresholds, can_be_irrelevant=unrelated)
    window = whole.window if whole.scores[verdict] >= alone.scores[verdict] else span
    return replace(whole, verdict=verdict, scores=scores, window=window)


def ask_verdict(
    fact: str, evidence: str, context: str, writer: Writer, watch: Watch = Watch(), *, demonstrations: int = 0
) -> tuple[Ruling, Exchange]:
    """A language model's ruling on a fact in its context, and the exchange that it comes from."""
    question = ask("verdict", context=context, fact=fact, evidence=evidence)
    return asked_ruling("verdict", question, writer, watch, demonstrations)


def asked_ruling(
    name: str, question: Prompt, writer: Writer, watch: Watch = Watch(), demonstrations: int = 0
) -> tuple[Ruling, Exchange]:
    """A language model's ruling on a question made from template `name`, and the exchange that it comes from.

    A model that scores rules by likelihood: `scores` are the shares of the three answers (not calibrated), and there is
    no reasoning. Another model's reply is read; it may come out unparsed.
    """
    # The worked examples' replies have the form that is asked for.
    tail = fill("choose_one" if can_score(writer) else "reason_first", options=", ".join(WORDS))
    prompt = with_examples(name, question, demonstrations, tail, reasoned=not can_score(writer))
    choice = choose(writer, prompt, tuple(WORDS), _option, decoding=SHORT, watch=watch)
    exchange = Exchange(
        step="verdict",
        prompt=choice.prompt.text,
        reply=choice.reply,
        parsed=choice.option is not None,
        probabilities=choice.probabilities,
    )
    if choice.by != "likelihood":
        verdict, reasoning = parse_verdict(choice.reply)
        named = f"{verdict.replace('_', ' ')} by {writer.name}, not measured"
        said = named if choice.option else f"unparsed reply of {writer.name}"
        return Ruling(verdict=verdict, by=writer.name, note=said, reasoning=reasoning), exchange
    scores: dict[str, float] = {WORDS[word]: round(share, 4) for word, share in choice.probabilities.items()}
    return Ruling.of(Judged(WORDS[str(choice.option)], scores), writer), exchange


def parse_verdict(reply: str) -> tuple[VerdictName, str]:
    """(verdict, reasoning) of a reply; unparsed if it has no verdict, or two that differ.

    >>> parse_verdict("The article says 1983, not 1978.\\ndisagrees")
    ('editing_required', 'The article says 1983, not 1978.')
    """
    word = _option(reply)
    if word is None:
        return "unparsed", reply.strip()
    found = [line for line in lines(reply) if parse_option(line, tuple(WORDS), _LABELS) is None]
    return WORDS[word], " ".join(found) or reply.strip()


def _option(reply: str) -> str | None:
    """The word alone on a line; without one, the one word of the three in the last line."""
    said = lines(reply)
    alone = {word for line in said if (word := parse_option(line, tuple(WORDS), _LABELS))}
    last = said[-1] if said and not alone else ""
    words = alone or {word.lower() for word in _SAID.findall(last)}
    return words.pop() if len(words) == 1 and not _DENIED.search(last) else None
