"""The contrast of a case: why the answer has these words and not others, passage by passage."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise

from msgspec.structs import replace

from engine.analyses import facts
from engine.analyses.attribution import floors, of_the_stamp, passages_cell, placebos_of, stamped, under_floor
from engine.analyses.floors import drop_floor
from engine.analyses.kind import ByModel, Kind, Outcome, RunContext, less, words_of
from engine.cases.blocks import Block, Cell, Facts, notices, plain, signed, table
from engine.cases.review import Review
from engine.cases.words import DiffWord, word_diff
from engine.core.errors import InputError
from engine.core.progress import last
from engine.core.settings import Settings
from engine.core.values import Analysis, Case, sha256
from engine.methods.contrast import METHOD, Contrast, checked_texts, contrast, place_of
from engine.methods.occlusion import rows_needed
from engine.methods.subject import analysis_of, subject
from engine.models.protocols import LanguageModel

ALIKE = 0.2  # nats: a quarter likelier
BEFORE, AFTER = re.compile(r"[\w$€£][\w.,’'$€£-]*$"), re.compile(r"[\w.,’'%-]*")  # what a word or a number holds
LONGEST = 40  # characters of it on either side
MOST_BEFORE = 200  # characters in front that tell a place apart


class ContrastOptions(ByModel, frozen=True):
    """Words of the answer, and others to compare them with."""

    written: str = ""
    instead: str = ""


def proposed(case: Case) -> tuple[tuple[str, str], ...]:
    """(written, instead) for each place that an edit of the case's last check of facts changes, each pair once."""
    record, text = facts.KIND.readable(case), case.answer.text
    pairs = []
    for edit in record.edits if record else ():
        at = edit.start
        if text[edit.start : edit.end] != edit.old:
            continue  # of another text
        for one, after in pairwise((*word_diff(edit.old, edit.new), DiffWord(text="", change="same"))):
            if (one.change, after.change) == ("removed", "added"):
                pairs.append(_told_apart(text, at, one.text, after.text))
            at += len(one.text) * (one.change != "added")
    return tuple(dict.fromkeys(pair for pair in pairs if pair is not None))


def _told_apart(text: str, at: int, old: str, new: str) -> tuple[str, str] | None:
    """The texts with as many words in front as it takes to find the place; None where it takes too many."""
    start, end = at + len(old) - len(old.lstrip()), at + len(old.rstrip())
    begun, rest = BEFORE.search(text, max(0, start - LONGEST), start), AFTER.match(text, end, end + LONGEST)
    start = begun.start() if begun else start
    after = rest[0].rstrip(".,’'-") if rest else ""
    end, new = end + len(after), new.rstrip() + after
    while at - start <= MOST_BEFORE:
        written = text[start:end]
        with suppress(InputError):
            if place_of(text, written)[0] == start:
                return written, f"{text[start:at]}{new}".strip()
        if not start:
            break
        start = len(text[:start].rstrip())
        start = max(text.rfind(" ", 0, start), text.rfind("\n", 0, start)) + 1
    return None


def _run(case: Case, options: ContrastOptions, context: RunContext) -> Iterator[Analysis]:
    checked_texts(case.answer.text, options.written.strip(), options.instead.strip())  # before a model is loaded
    model, settings, unrelated = context.tools.scorer(options.model), context.settings, placebos_of(case, context)
    prompt, answer, notes = subject(case, model, settings)
    asked = options.written, options.instead
    texts = [passage.text for passage in unrelated]
    found = contrast(model, prompt, answer, *asked, placebos=texts, settings=settings.occlusion, watch=context.watch)
    found = replace(found, effect=replace(found.effect, notes=(*notes, *found.effect.notes)))
    extra = {
        "occlusion": settings.occlusion.to_dict(),
        "placebos": [passage.id for passage in unrelated],
        "options": {"written": found.written, "instead": found.instead},
    }
    analysis = analysis_of(case, model, settings, METHOD, found, extra)
    told = sha256(f"{found.written}\n{found.instead}")[:8]
    yield replace(analysis, id=f"{analysis.id}:{found.span[0]}:{told}")


def in_words(found: Contrast) -> str:
    """The outcome, in a few sentences."""
    written, instead = f"“{found.written}”", f"“{found.instead}”"

    def likelier(nats: float) -> str:
        if abs(nats) < ALIKE:
            return "both about alike"
        factor = math.exp(min(abs(nats), 20.0))
        times = f"{factor:,.0f} times" if factor >= 10 else f"{factor:.1f} times"
        return f"{written if nats > 0 else instead} likelier ({'over a million times' if factor > 1e6 else times})"

    with_all, bare = (likelier(one - other) for one, other in (found.likely, found.bare))
    said = [f"With its passages, {found.effect.model} finds {with_all}, without any {bare}."]
    scores, (numerical, placebo) = found.effect.scores[0], floors(found.effect, 0)
    clear = [j for j, score in enumerate(scores) if not under_floor(score, numerical, placebo)]
    for words, sign in ((written, 1), (instead, -1)):
        own = [j for j in clear if sign * scores[j] > 0]
        if own:
            best = max(own, key=lambda j: sign * scores[j])
            numbers = ", ".join(map(str, found.effect.sources[best]))
            said.append(f"Passage {numbers} speaks most for {words} ({abs(scores[best]):.1f} nats).")
    if not clear:
        than = "rounding may" if placebo is None else "an unrelated one would"
        said.append(f"No passage changes this more than {than}.")
    return " ".join(said)


def _blocks(case: Case, found: Contrast, review: Review | None = None) -> list[Block]:
    """The outcome in words, then a row per passage."""
    effect = found.effect
    numerical, placebo = floors(effect, 0)
    order = sorted(range(len(effect.sources)), key=lambda j: -effect.scores[0][j])
    alone = effect.details.alone[0] if effect.details.alone else ()

    def row(j: int) -> tuple[Cell, ...]:
        value = effect.scores[0][j]
        said = under_floor(value, numerical, placebo)
        name = passages_cell(case, effect.sources[j])
        return name, Cell(signed(value), note=said, faint=bool(said)), Cell(signed(alone[j]) if alone else "")

    caption = f"Positive: the passage speaks for “{found.written}”. Negative: for “{found.instead}”. In nats."
    scores = table(caption, ("Passage", "Left out of all", "Alone"), map(row, order), numeric={1, 2})
    told = (
        ("Written", found.written),
        ("Compared with", found.instead),
        ("Probability with all passages", _both(found.likely)),
        ("Probability without passages", _both(found.bare)),
        ("Scored by", effect.model),
        ("Cost", f"{effect.forwards:,} rows, {effect.seconds:.1f} s"),
    )
    return [plain(in_words(found)), Facts(told), *notices(effect.notes), scores]


def _both(nats: tuple[float, float]) -> str:
    one, other = (f"{math.exp(value):.2g}" for value in nats)
    return f"{one} and {other}"


def _again(case: Case, analysis: Analysis, model: LanguageModel, context: RunContext) -> Outcome:
    values = less(last(_run(case, stamped(ContrastOptions, analysis), context)).result)
    prompt, answer, _ = subject(case, model, context.settings)
    floor = 2 * drop_floor(model, model.encode(prompt), [token.id for token in answer.tokens])  # two drops
    return Outcome(values=values, floor=floor)


def _cost(case: Case, options: ContrastOptions, settings: Settings) -> str:
    rows = 2 * rows_needed(len(case.passages), alone=True, placebos=settings.occlusion.placebos)
    return f"up to {rows} forward passes of up to {words_of(case):,} words; nothing is generated"


KIND = Kind(
    name=METHOD,
    title="Contrast: why these words and not others",
    result=Contrast,
    blocks=_blocks,
    options=ContrastOptions,
    run=_run,
    cost=_cost,
    again=of_the_stamp(_again, by_placebos=frozenset({"placebo_floor", "placebo_floor_by_span"})),
)
