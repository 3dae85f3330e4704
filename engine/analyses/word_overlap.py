"""Word overlap of a case: its answer's sentences and its passages, counted; a row of its own next to the scores."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import shorten

from engine.analyses.kind import Again, Kind, Loaders, Outcome, RunContext, analysis_by, less
from engine.answer.citations import without_markers
from engine.cases.blocks import Block, Cell, plain, table
from engine.cases.review import Review
from engine.core.settings import Settings
from engine.core.values import Analysis, Case, Value
from engine.methods.spans import Span
from engine.methods.subject import default_spans
from engine.methods.word_overlap import METHOD, WordOverlap, in_words, word_overlap

LONGEST = 120  # characters of a sentence in the table
MEANING = (
    "Counted, not scored. Where words decide, the source of a sentence has it word for word, or has most of its words."
    " The count misses paraphrase and cannot tell apart two passages with the same words. It does not say that the"
    " writer used a passage, or that a passage supports the sentence."
)


class CountedSpans(Value, frozen=True):
    """Which stretches of the answer are looked up, in characters: () is the whole answer and each sentence."""

    spans: tuple[Span, ...] = ()


def overlap_of(case: Case, spans: tuple[Span, ...] = ()) -> WordOverlap:
    """The counts for those stretches of the case's answer, by default the whole and each sentence."""
    texts = [passage.text for passage in case.passages]
    return word_overlap(case.answer.text, texts, spans or default_spans(case, in_words(case.answer), Settings()))


def overlap_blocks(case: Case, found: WordOverlap, review: Review | None = None) -> list[Block]:
    """The meaning of the counts, and one row per span with a column per passage."""
    numbers = range(1, len(case.passages) + 1)
    counted = table(
        "Words of the answer that each passage has; stop words do not count",
        ("Answer", "Words", *(f"in {number}" for number in numbers)),
        (_row(case, found, span) for span in range(len(found.spans))),
        numeric=range(1, len(numbers) + 2),
    )
    return [plain(MEANING, "note"), counted]


def _row(case: Case, found: WordOverlap, span: int) -> list[Cell | str]:
    each = zip(found.shared[span], found.word_for_word[span], strict=True)
    return [_named(case, found.spans[span]), str(found.words[span]), *(_cell(shared, whole) for shared, whole in each)]


def _named(case: Case, span: Span) -> Cell:
    if span == (0, len(case.answer.text)) and span not in case.answer.sentences:
        return Cell("the whole answer")
    sentences = case.answer.sentences
    places = (f"sentence-{sentences.index(span) + 1}",) if span in sentences else ()
    return Cell(shorten(without_markers(case.answer.text[slice(*span)]), LONGEST, placeholder="…"), places=places)


def _cell(shared: int, whole: bool) -> Cell:
    return Cell("all", note="word for word", kind="chosen") if whole else Cell(str(shared), faint=not shared)


def _run(case: Case, options: CountedSpans, context: RunContext) -> Iterator[Analysis]:
    yield analysis_by(case, METHOD, "no model", overlap_of(case, options.spans))


def _again(case: Case, analysis: Analysis, tools: Loaders) -> Outcome:
    return Outcome(values=less(overlap_of(case, CountedSpans.from_dict(analysis.result).spans)))


KIND = Kind(
    name=METHOD,
    title="Word overlap: the passages that have the answer's words",
    result=WordOverlap,
    blocks=overlap_blocks,
    options=CountedSpans,
    run=_run,
    cost=lambda case, options, settings: "no model; words are counted",
    again=Again(_again, lambda found: CountedSpans(spans=found.spans)),
)
