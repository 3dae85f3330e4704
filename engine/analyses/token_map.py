"""Input x gradient of a case token by token, and the flags that stand on it (grounded refinement, section 4.3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np
from msgspec.structs import replace

from engine.analyses.attribution import LARGEST_HEAT, legend, of_the_stamp, pieces_of
from engine.analyses.floors import (
    FLOOR_ROWS,
    relevance_floors,
)
from engine.analyses.kind import (
    TOKEN_MAP,
    ByModel,
    Kind,
    Loaders,
    Outcome,
    RunContext,
    less,
    words_of,
)
from engine.answer.prompt import passage_body
from engine.cases.blocks import (
    Block,
    Facts,
    Fold,
    Heat,
    Notice,
    Table,
    cells,
    name_of,
    plain,
    signed,
)
from engine.cases.review import Review
from engine.core.progress import Watch, last
from engine.core.settings import Gradient, Settings
from engine.core.values import (
    Analysis,
    Answer,
    Attribution,
    Case,
    Details,
    Prompt,
    Value,
)
from engine.methods import registry
from engine.methods.aggregate import PassageMap, passage_maps
from engine.methods.flags import (
    Concentration,
    Flags,
    concentration,
    distractor_flags,
)
from engine.methods.input_x_gradient import Relevance, input_x_gradient, input_x_gradient_rows
from engine.methods.spans import answer_spans, content_mask
from engine.methods.subject import analysis_of, subject
from engine.models.protocols import LanguageModel, TokenPrompt


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

    @property
    def numbers(self) -> tuple[int, ...]:
        """Citation numbers of the passages, in prompt order."""
        return tuple(number for number, _ in self.passages)

    def passage_rows(self) -> tuple[tuple[float, ...], ...]:
        """Relevance of each passage for each target: the sums over its tokens, (targets, passages)."""
        return tuple(tuple(sum(passage) for passage in row) for row in self.rows)

    def by_passage(self) -> Attribution:
        """The same as an attribution of passages for the answer and its sentences."""
        targets = 1 + len(self.sentences)
        return Attribution(
            method="input x gradient",
            model=self.model,
            unit=self.target,
            spans=((0, len(self.answer.text)), *self.sentences),
            sources=tuple((number,) for number in self.numbers),
            scores=self.passage_rows()[:targets],
            per_token=(),
            forwards=self.forwards,
            backwards=self.backwards,
            seconds=self.seconds,
        )


TOKENS_PER_WORD = 1.3  # English text by the tokenizers of today's models, for estimates


def token_rows(settings: Gradient, content: int, length: int) -> int:
    """Answer tokens that get a row of their own: as the budget allows, at least those that flags look at."""
    return min(content, max(settings.first_tokens, settings.token_budget // length))


def token_map_of(
    case: Case, model: LanguageModel, settings: Settings, watch: Watch | None = None
) -> Iterator[Analysis]:
    """Input x gradient of every passage token: for the answer, each sentence, and tokens as the budget allows.

    An analysis of the rows so far comes after every `TOLD`th of all rows.
    """
    prompt, answer, notes = subject(case, model, settings)
    counted = settings.occlusion.count_citation_markers
    content = tuple(int(t) for t in np.flatnonzero(content_mask(answer, count_citation_markers=counted)))
    coded = model.encode(prompt)
    tokens = content[: token_rows(settings.gradient, len(content), len(coded.ids))]

    maps: list[tuple[PassageMap, ...]] = []
    spans = answer_spans(answer)
    every = max(1, (len(spans) + len(tokens)) // TOLD)

    def keep(found: Relevance) -> Analysis:
        maps.extend(_maps(model, prompt, coded, found, len(maps)))
        result = _token_map(model, prompt, answer, found, maps)
        rows = len(result.tokens)
        if rows < len(content):
            said = f"The first {rows} of {len(content)} tokens have rows of their own, the rest by sentence."
            result = replace(result, notes=(said, *result.notes))
        result = replace(result, notes=(*notes, *result.notes))
        extra = {"gradient": settings.gradient.to_dict()}
        return analysis_of(case, model, settings, TOKEN_MAP, result.to_dict(), extra)

    grown = input_x_gradient_rows(
        model,
        prompt,
        answer,
        spans=spans,
        tokens=tokens,
        target=settings.gradient.target,
        count_citation_markers=counted,
        watch=watch,
    )
    whole = len(spans) + len(tokens)
    return (keep(found) for found in grown if found.backwards % every == 0 or found.backwards == whole)


TOLD = 16  # a value of all rows so far is made that often in a run: each costs a pass over them


def _maps(
    model: LanguageModel, prompt: Prompt, coded: TokenPrompt, found: Relevance, done: int
) -> Iterator[tuple[PassageMap, ...]]:
    """Each row from the `done`th on, by passage."""
    for row in (*found.by_span, *found.by_token)[done:]:
        yield tuple(passage_maps(model, prompt, coded, row))


def _token_map(
    model: LanguageModel, prompt: Prompt, answer: Answer, found: Relevance, maps: Sequence[tuple[PassageMap, ...]]
) -> TokenMap:
    bodies = {s.number: passage_body(s)[0] for s in prompt.segments if s.kind == "passage"}
    return TokenMap(
        model=model.name,
        target=found.target,
        answer=answer,
        passages=tuple(
            (m.number, tuple((t.start - bodies[m.number], t.end - bodies[m.number]) for t in m.tokens)) for m in maps[0]
        ),
        sentences=tuple(found.spans[1:]),
        tokens=found.tokens,
        rows=tuple(tuple(tuple(t.relevance for t in m.tokens) for m in row) for row in maps),
        argmax_differs=tuple(t for t in found.tokens if found.argmax and found.argmax[t] != answer.tokens[t].id),
        forwards=found.forwards,
        backwards=found.backwards,
        seconds=found.seconds,
        notes=found.notes,
    )


def flags_of(found: TokenMap, labels: Mapping[int, bool | None], settings: Gradient) -> Flags | None:
    """Distractor flags of the map's token rows; None where a stopped run left no token row."""
    rows = _token_rows_of(found)
    return distractor_flags(rows, found.numbers, labels, settings) if rows else None


def concentration_of(found: TokenMap, settings: Gradient) -> Concentration | None:
    """The label-free trigger on the same rows; None without them."""
    rows = _token_rows_of(found)
    lengths = [len(spans) for _, spans in found.passages]
    return concentration(rows, found.numbers, lengths, settings) if rows else None


def _token_rows_of(found: TokenMap) -> tuple[tuple[float, ...], ...]:
    return found.passage_rows()[1 + len(found.sentences) :]


# The attributions of passages that a case holds by one model, ready to be compared (agreement.py).

ALONE = "each alone"


def methods_run(case: Case, model: str) -> dict[str, Attribution]:
    """Passage-level attributions under `model` by name of the method; what a stopped run left incomplete is left out.

    The token map stands for input x gradient, and occlusion also gives the scores of each passage alone.
    """
    found: dict[str, Attribution] = {}
    for analysis in case.analyses:
        if analysis.result.get("model") == model:
            found.update(_attributions(analysis))
    every = tuple((number,) for number in range(1, len(case.passages) + 1))
    return {name: attribution for name, attribution in found.items() if attribution.sources == every}


def _attributions(analysis: Analysis) -> dict[str, Attribution]:
    if analysis.kind == TOKEN_MAP:
        return {"input x gradient": TokenMap.from_dict(analysis.result).by_passage()}
    if analysis.kind not in {method.name for method in registry.methods()}:
        return {}
    found = Attribution.from_dict(analysis.result)
    alone = found.details.alone
    own = {analysis.kind: found}
    if alone:
        own[ALONE] = replace(found, method=ALONE, scores=alone, per_token=(), details=Details())
    return own


Row = tuple[tuple[float, ...], ...]


def _blocks(case: Case, found: TokenMap, review: Review) -> list[Block]:
    """Sums a passage as a table, then the passages as heatmaps, the strongest first."""
    names = ["Whole answer", *(f"Sentence {i}" for i in range(1, len(found.sentences) + 1))]
    targets = list(zip(names, found.rows[: len(names)], strict=True))
    blocks: list[Block] = [
        Facts(
            (
                ("Scored by", found.model),
                ("Target", found.target),
                ("Cost", f"{found.forwards:,} forwards, {found.backwards:,} backwards, {found.seconds:.1f} s"),
                ("Answer tokens where the model would have chosen another", str(len(found.argmax_differs))),
            )
        ),
        *(Notice(note) for note in found.notes if not note.startswith("Written by ")),
        _sums(case, found, targets),
    ]
    blocks.append(Fold("The passages for the whole answer", _heats(case, found, found.rows[0])))
    return blocks


def _sums(case: Case, found: TokenMap, targets: list[tuple[str, Row]]) -> Table:
    numbers = [number for number, _ in found.passages]
    rows = tuple(
        cells(name_of(case, number), *(signed(sum(row[p])) for _, row in targets)) for p, number in enumerate(numbers)
    )
    columns = ("Passage", *(name for name, _ in targets))
    caption = f"Sum over each passage's tokens, {found.target}; positive pushes the target up"
    return Table(caption, columns, rows, numeric=frozenset(range(1, len(columns))))


def _heats(case: Case, found: TokenMap, row: Row) -> tuple[Block, ...]:
    values = sorted(abs(value) for passage in row for value in passage)
    # The largest single token would drain all others of colour.
    largest = (values[int(0.99 * (len(values) - 1))] or values[-1]) if values else 0.0
    blocks: list[Block] = [plain(legend(largest, found.target), "note")]
    drawn = 0
    for p in sorted(range(len(found.passages)), key=lambda p: -abs(sum(row[p]))):
        number, spans = found.passages[p]
        drawn += len(spans)
        if drawn > LARGEST_HEAT and len(blocks) > 1:
            blocks.append(plain("Weaker passages are left out to keep the report small.", "note"))
            break
        text = case.passages[number - 1].text if 1 <= number <= len(case.passages) else ""
        kept = [(span, value) for span, value in zip(spans, row[p], strict=True) if span[0] >= 0]
        pieces = pieces_of(text, [span for span, _ in kept], [value for _, value in kept])
        blocks.append(Heat(f"Passage {name_of(case, number)}", pieces, largest, found.target))
    return tuple(blocks)


def _again(case: Case, analysis: Analysis, model: LanguageModel, settings: Settings, tools: Loaders) -> Outcome:
    """The map again."""
    values = less(last(token_map_of(case, model, settings)).result)
    prompt, answer, _ = subject(case, model, settings)
    counted = settings.occlusion.count_citation_markers
    explain = partial(input_x_gradient, target=settings.gradient.target, count_citation_markers=counted)
    tokens = values["tokens"][:FLOOR_ROWS]
    spans, each = relevance_floors(explain, model, prompt, answer, answer_spans(answer), tokens)
    return Outcome(values=values, floors={"rows": (*spans, each)})


def _run(case: Case, options: ByModel, context: RunContext) -> Iterator[Analysis]:
    return token_map_of(case, context.tools.scorer(options.model), context.settings, context.watch)


def _cost(case: Case, options: ByModel, settings: Settings) -> str:
    """What the forward pass reads, and the backward passes at least."""
    least = settings.gradient.first_tokens
    return (
        f"one forward over {words_of(case):,} words, from {backwards_of(case, settings)} backward passes on: the"
        f" answer, each sentence, and at least {least} of its tokens"
    )


def backwards_of(case: Case, settings: Settings) -> int:
    """About how many backward passes a map takes, before the model has cut anything into tokens."""
    answer = len(case.answer.text.split())
    words = answer + sum(len(passage.text.split()) for passage in case.passages)
    tokens = token_rows(settings.gradient, round(TOKENS_PER_WORD * answer), round(TOKENS_PER_WORD * words))
    return 1 + len(case.answer.sentences) + tokens


KIND = Kind(
    name=TOKEN_MAP,
    title="Token map: input x gradient of the passages' tokens",
    result=TokenMap,
    blocks=_blocks,
    run=_run,
    cost=_cost,
    terms=("gradient",),
    again=of_the_stamp(_again),
)
