"""Token maps of a case: relevance of every passage token for the answer, a sentence or a token of it, and their flags.

The whole answer's row is computed first; a sentence's or a token's when it is asked for. Grounded refinement,
section 4.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from engine.analyses.attribution import LARGEST_HEAT, legend, of_the_stamp, pieces_of, seen_otherwise, settings_of
from engine.analyses.faithfulness import RankingCheck, Rankings, ranked_with, rankings_beside, report_by, rows_ahead
from engine.analyses.floors import FLOOR_ROWS, relevance_floors
from engine.analyses.kind import FAITHFULNESS, TOKEN_MAP, ByModel, Kind, Outcome, RunContext, less, words_of
from engine.answer.prompt import passage_body
from engine.cases.blocks import (
    Block,
    Cell,
    Facts,
    Fold,
    Heat,
    Table,
    Text,
    TextRun,
    name_of,
    notices,
    of_passages,
    plain,
    signed,
    table,
)
from engine.cases.review import Review
from engine.core.errors import AttributionError, CannotDo, RecordError
from engine.core.progress import last
from engine.core.settings import Gradient, Settings
from engine.core.text import counted as number_of
from engine.core.values import Analysis, Answer, Attribution, Case, Details, Prompt, Stamp, Value
from engine.methods import registry
from engine.methods.aggregate import passage_places
from engine.methods.faithfulness import agreement, first_source
from engine.methods.flags import Concentration, Flags, concentration, distractor_flags
from engine.methods.input_x_gradient import INPUT_X_GRADIENT, Relevance
from engine.methods.spans import Span, content_mask, first_content_tokens
from engine.methods.subject import stamp_for, subject
from engine.models.protocols import LanguageModel, TokenPrompt


class MapRows(ByModel, frozen=True):
    """The target besides the whole answer, and the registered method, which must score every token.

    `sentences` are indices into the answer's sentences, `tokens` into its tokens. One forward pass and one backward
    pass per row for the gradient methods.
    """

    method: str = INPUT_X_GRADIENT
    sentences: tuple[int, ...] = ()
    tokens: tuple[int, ...] = ()

    def target(self) -> dict[str, int]:
        """The one row that is asked for, as the page names it."""
        return {"sentence": self.sentences[0]} if self.sentences else {"token": self.tokens[0]}


class TokenMap(Value, frozen=True, omit_defaults=True):
    """Relevance of a case's passage tokens as the page draws it.

    `passages[p]` = (number, token spans [start, end) in that passage's text). `rows[r][p][i]` is the relevance of
    token i of passage p for target r. Targets: the whole answer first, then `sentences` (spans of the answer), then
    the answer tokens `tokens` (indices into `answer.tokens`): those that were asked for, in the answer's order. Row r
    sums, with what lies outside passages, to the target's relevance. `argmax_differs` are the counted tokens at which
    the model itself would have chosen another one.
    """

    model: str
    target: str
    answer: Answer
    passages: tuple[tuple[int, tuple[tuple[int, int], ...]], ...]
    sentences: tuple[tuple[int, int], ...]
    tokens: tuple[int, ...]
    rows: tuple[tuple[tuple[float, ...], ...], ...]
    argmax_differs: tuple[int, ...]
    forwards: int = 0
    backwards: int = 0
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    method: str = INPUT_X_GRADIENT

    def __post_init__(self) -> None:
        """Raise `ValueError` where rows do not have a value for each token: a case file may contain anything."""
        shape = tuple(len(spans) for _, spans in self.passages)
        targets = len(self.sentences) + len(self.tokens)
        if len(self.rows) not in (targets, targets + 1) or any(tuple(map(len, row)) != shape for row in self.rows):
            raise ValueError("the rows do not match the passages and targets")

    @property
    def numbers(self) -> tuple[int, ...]:
        """Citation numbers of the passages, in prompt order."""
        return tuple(number for number, _ in self.passages)

    def passage_rows(self) -> tuple[tuple[float, ...], ...]:
        """Relevance of each passage for each target: the signed sums over its tokens, (targets, passages)."""
        return tuple(tuple(sum(passage) for passage in row) for row in self.rows)

    def absolute_rows(self) -> tuple[tuple[float, ...], ...]:
        """The sums of |R| over each passage's tokens, (targets, passages): what passages are ranked by."""
        return tuple(tuple(sum(map(abs, passage)) for passage in row) for row in self.rows)

    def by_passage(self) -> Attribution:
        """The same as an attribution of passages for the answer and the sentences that have a row."""
        targets = 1 + len(self.sentences)
        return Attribution(
            method=self.method,
            model=self.model,
            unit=self.target,
            spans=((0, len(self.answer.text)), *self.sentences),
            sources=tuple((number,) for number in self.numbers),
            scores=self.passage_rows()[:targets],
            per_token=(),
            details=Details(absolute=self.absolute_rows()[:targets]),
        )

    def with_rows(self, more: TokenMap) -> TokenMap:
        """This map with the rows of `more`, whose first row is not the whole answer's; costs add up."""
        rows = dict(zip((*self.sentences, *self.tokens), self.rows[1:], strict=True))
        rows |= zip((*more.sentences, *more.tokens), more.rows, strict=True)
        spans, own = sorted({*self.sentences, *more.sentences}), sorted({*self.tokens, *more.tokens})
        return replace(
            self,
            sentences=tuple(spans),
            tokens=tuple(own),
            rows=(self.rows[0], *(rows[target] for target in (*spans, *own))),
            argmax_differs=tuple(sorted({*self.argmax_differs, *more.argmax_differs})),
            forwards=self.forwards + more.forwards,
            backwards=self.backwards + more.backwards,
            seconds=self.seconds + more.seconds,
        )


def _run(case: Case, asked: MapRows, context: RunContext) -> Iterator[Analysis]:
    """The map with the rows that are `asked` for; rows that the case holds are kept.

    Raises `CannotDo` for a method without a value per token, `AttributionError` for a sentence or token that is not
    there, `Cancelled`.
    """
    model, settings = context.tools.scorer(asked.model), context.settings
    prompt, answer, notes = subject(case, model, settings)
    own = registry.method(asked.method, settings)
    if own.explain is None:
        raise CannotDo(f"{asked.method} scores whole passages, not tokens. Choose another method.")
    coded = model.encode(prompt)
    stamp = stamp_for(case, model, settings, {"gradient": settings.gradient.to_dict()})
    name = TOKEN_MAP if asked.method == INPUT_X_GRADIENT else f"{TOKEN_MAP}, {asked.method}"
    identity = f"{name}:{model.name}"
    known = _known(case, identity, stamp)
    whole = () if known else ((0, len(answer.text)),)
    spans, tokens = _missing(asked, answer, known)

    if known and not spans and not tokens:
        result = known
    else:
        counted = content_mask(answer, count_citation_markers=settings.occlusion.count_citation_markers)
        found = own.explain(model, prompt, answer, spans=(*whole, *spans), tokens=tokens, watch=context.watch)
        more = _token_map(model, prompt, coded, answer, found, len(whole), np.flatnonzero(counted).tolist())
        result = known.with_rows(more) if known else replace(more, method=own.name, notes=(*notes, *more.notes))
    yield Analysis(id=identity, kind=TOKEN_MAP, stamp=stamp, result=result)


def _known(case: Case, identity: str, stamp: Stamp) -> TokenMap | None:
    """The map that the case holds, where the same model computed it with the same settings on the same inputs."""
    stored = case.analysis(identity)
    if stored is None or not stored.result:
        return None
    return TokenMap.from_dict(stored.result) if _decisive(stored.stamp) == _decisive(stamp) else None


def _decisive(stamp: Stamp) -> tuple[object, ...]:
    """Inputs, weights and settings of a map, which decide its rows; an older stamp lacks settings that are defaults."""
    gradient = Gradient.from_dict(stamp.settings.get("gradient", {}))
    return stamp.inputs, stamp.revision, stamp.dtype, {**stamp.settings, "gradient": gradient}


def _missing(asked: MapRows, answer: Answer, known: TokenMap | None) -> tuple[tuple[Span, ...], tuple[int, ...]]:
    beyond = [f"sentence {i + 1}" for i in asked.sentences if not 0 <= i < len(answer.sentences)]
    beyond += [f"token {i + 1}" for i in asked.tokens if not 0 <= i < len(answer.tokens)]
    if beyond:
        raise AttributionError(f"The answer has no {beyond[0]}. Choose one of its sentences or tokens.")
    sentences, tokens = {answer.sentences[i] for i in asked.sentences}, set(asked.tokens)
    if known:
        sentences, tokens = sentences.difference(known.sentences), tokens.difference(known.tokens)
    return tuple(sorted(sentences)), tuple(sorted(tokens))


def _token_map(
    model: LanguageModel,
    prompt: Prompt,
    coded: TokenPrompt,
    answer: Answer,
    found: Relevance,
    whole: int,
    counted: Sequence[int],
) -> TokenMap:
    """The rows as a map; the first `whole` spans of `found` are the whole answer, `counted` the tokens that count."""
    passages = list(passage_places(model, prompt, coded))
    rows = (*found.by_span, *found.by_token)
    bodies = [(number, passage_body(segment)[0], tokens) for number, segment, tokens in passages]
    return TokenMap(
        model=model.name,
        target=found.target,
        answer=answer,
        passages=tuple(
            (number, tuple((t.start - body, max(t.start, t.end) - body) for t in tokens))
            for number, body, tokens in bodies
        ),
        sentences=tuple(found.spans[whole:]),
        tokens=found.tokens,
        rows=tuple(tuple(tuple(row[t.position] for t in tokens) for *_, tokens in passages) for row in rows),
        argmax_differs=tuple(t for t in counted if found.argmax and found.argmax[t] != answer.tokens[t].id),
        forwards=found.forwards,
        backwards=found.backwards,
        seconds=found.seconds,
        notes=found.notes,
    )


def map_of(case: Case, method: str, model: str) -> TokenMap | None:
    """The case's map by that method and model."""
    found = (KIND.read(analysis) for analysis in case.analyses if analysis.kind == TOKEN_MAP)
    return next((map_ for map_ in found if (map_.method, map_.model) == (method, model)), None)


def rows_for_flags(found: TokenMap, settings: Settings) -> MapRows:
    """The rows of the first K content tokens, which the flags look at."""
    counted = settings.occlusion.count_citation_markers
    first = first_content_tokens(found.answer, settings.gradient.first_tokens, count_citation_markers=counted)
    return MapRows(model=found.model, method=found.method, tokens=first)


def flags_of(found: TokenMap, labels: Mapping[int, bool | None], settings: Settings) -> Flags | None:
    """Distractor flags of the map's first K token rows; None where one of them was not computed."""
    rows = _token_rows_of(found, settings)
    return distractor_flags(rows, found.numbers, labels, settings.gradient) if rows else None


def concentration_of(found: TokenMap, settings: Settings) -> Concentration | None:
    """The label-free trigger on the same rows; None without them."""
    rows = _token_rows_of(found, settings)
    lengths = [len(spans) for _, spans in found.passages]
    return concentration(rows, found.numbers, lengths, settings.gradient) if rows else None


def _token_rows_of(found: TokenMap, settings: Settings) -> tuple[tuple[float, ...], ...]:
    """Passage relevance for the first K content tokens; empty unless each has a row."""
    own = dict(zip(found.tokens, found.passage_rows()[1 + len(found.sentences) :], strict=True))
    wanted = rows_for_flags(found, settings).tokens
    return tuple(own[token] for token in wanted) if set(wanted) <= own.keys() else ()


def concentration_blocks(case: Case, found: TokenMap, trigger: Concentration, settings: Settings) -> list[Block]:
    """Whether the label-free trigger fires and by which rule; on how many tokens each passage exceeds the ratio."""
    fired = f"Fires for passage {', '.join(map(str, trigger.numbers))}." if trigger.fires else "Does not fire."
    words = "tokens" if settings.occlusion.count_citation_markers else "content tokens"
    rule = (
        f" A passage counts if its share of the relevance is at least {trigger.ratio:g} times its share of the text for"
        f" {settings.gradient.share:.0%} or more of the first {trigger.tokens} {words}. With each token's shares in"
        f" random order the rule fires in {trigger.random_rate:.0%} of 200 draws. {trigger.sentence}"
    )
    total = max(1, sum(len(spans) for _, spans in found.passages))
    rows = (
        (
            Cell(name_of(case, number), places=of_passages(number)),
            f"{len(spans) / total:.0%}",
            Cell(f"{times} of {number_of(trigger.tokens, 'token')}", faint=number not in trigger.numbers),
        )
        for (number, spans), times in zip(found.passages, trigger.times, strict=True)
    )
    shares = table("", ("Passage", "Share of the text", "Over the ratio"), rows, numeric={1, 2})
    return [Text((TextRun(fired, "strong"), TextRun(rule)), "note"), shares]


AGREE = 0.5  # rank correlation from which a map and occlusion are said to agree


def agreement_with(case: Case, found: TokenMap, occluded: Attribution, settings: Settings) -> str:
    """Whether map and occlusion rank the passages alike, and which of the two to go by where they do not.

    Empty where a rank correlation is not defined.
    """
    by_map = found.by_passage()
    (pair,) = agreement({found.method: by_map, "occlusion": occluded})
    if pair.rho is None:
        return ""
    first, other = (f"passage {one.sources[first_source(one)][0]}" for one in (by_map, occluded))
    same = f"Both put {first} first." if pair.same_top else f"This map puts {first} first, occlusion {other}."
    said = f"{same} Rank correlation over {pair.sources} passages: {pair.rho:+.2f}."
    if pair.rho >= AGREE and pair.same_top:
        return f"Agrees with occlusion. {said}"
    return (
        f"Differs from occlusion. {said} Occlusion measures the answer without a passage. A gradient map estimates "
        f"the effect of small changes, and one passage can replace another. {_better_of_both(case, found, settings)}"
    )


def _better_of_both(case: Case, found: TokenMap, settings: Settings) -> str:
    """Which of the two deletes what matters first, where that was measured."""
    report = report_by(case, found.model, settings_of_map(case, found, settings))
    own, other = (report.curve_of(name) if report else None for name in (found.method, "occlusion"))
    if own is None or other is None:
        return "Check this map to see which ranking works better here."
    if report is not None and max(own.abpc, other.abpc) <= report.random.reach:
        return (
            f"On this case neither is above random rankings (this map {own.abpc:+z.3f}, occlusion {other.abpc:+z.3f})."
        )
    better = f"occlusion ({other.abpc:+z.3f})" if other.abpc > own.abpc else f"this map ({own.abpc:+z.3f})"
    return f"On this case, deleting the top words of {better} changes the answer more: use that ranking."


CHECK_SECONDS = 300.0  # a check that may take longer waits for a click


def settings_of_map(case: Case, found: TokenMap, settings: Settings) -> Settings:
    """`settings` with those that the map was computed with, so that its check measures the ranking that is drawn."""
    stored = (a for a in case.analyses if a.kind == TOKEN_MAP and a.stamp.model == found.model)
    stamp = next((a.stamp for a in stored if TokenMap.from_dict(a.result).method == found.method), None)
    return ranked_with(settings_of(stamp), settings) if stamp else settings


def check_of(case: Case, found: TokenMap) -> RankingCheck | None:
    """The map's ABPC next to random rankings, from the case's faithfulness report by the same model and settings."""
    report = report_by(case, found.model, settings_of_map(case, found, Settings()))
    return report.check_of(found.method) if report else None


def check_due(case: Case, found: TokenMap, settings: Settings) -> tuple[str, Rankings] | None:
    """The check that follows the map by itself, where the settings want it and the case does not have it.

    None for one that may take longer than `CHECK_SECONDS`. The map itself tells the time per pass; a row of the check
    is half a pass, because half of the words are deleted on average.
    """
    if not settings.faithfulness.check_maps or check_of(case, found) is not None:
        return None
    wanted = rankings_beside(found.method, found.model)
    pace = found.seconds / max(1, found.forwards + 2 * found.backwards)
    return (FAITHFULNESS, wanted) if pace * rows_ahead(case, wanted, settings) / 2 <= CHECK_SECONDS else None


def methods_run(case: Case, model: str) -> dict[str, Attribution]:
    """Passage-level attributions under `model` by name of the method; what a stopped run left incomplete is left out.

    A token map counts as its method, and occlusion also gives what each passage does alone and both ways.
    """
    found: dict[str, Attribution] = {}
    names = {method.name for method in registry.methods()}
    every = tuple((number,) for number in range(1, len(case.passages) + 1))
    for analysis in case.analyses:
        try:
            if analysis.kind == TOKEN_MAP:
                one = TokenMap.from_dict(analysis.result).by_passage()
            elif analysis.kind in names:
                one = Attribution.from_dict(analysis.result)
            else:
                continue
        except RecordError:
            continue  # the report says that it cannot be read
        if (one.model, one.sources) == (model, every):
            found[one.method] = one
            found |= seen_otherwise(one)
    return found


Row = tuple[tuple[float, ...], ...]


def _blocks(case: Case, found: TokenMap, review: Review) -> list[Block]:
    check = check_of(case, found)
    places = [found.answer.sentences.index(span) + 1 for span in found.sentences]
    names = ["Whole answer", *(f"Sentence {place}" for place in places)]
    targets = list(zip(names, found.rows[: len(names)], strict=True))
    facts = (
        ("Method", found.method),
        ("Scored by", found.model),
        ("Target", found.target),
        ("Cost", f"{found.forwards:,} forwards, {found.backwards:,} backwards, {found.seconds:.1f} s"),
        ("Faithfulness", check.sentence if check else "not checked"),
        ("Answer tokens where the model would have chosen another", str(len(found.argmax_differs))),
    )
    heats = Fold("The passages for the whole answer", _heats(case, found, found.rows[0]))
    return [Facts(facts), *notices(found.notes), _sums(case, found, targets), heats]


def _sums(case: Case, found: TokenMap, targets: list[tuple[str, Row]]) -> Table:
    sizes = found.absolute_rows()[0]
    whole = sum(sizes) or 1.0
    rows = (
        (name_of(case, number), f"{sizes[p] / whole:.0%}", *(signed(sum(row[p])) for _, row in targets))
        for p, number in enumerate(found.numbers)
    )
    columns = ("Passage", "Share of |relevance|", *(name for name, _ in targets))
    caption = f"Sum over each passage's tokens, {found.target}; positive pushes the target up"
    return table(caption, columns, rows, numeric=range(1, len(columns)))


def _heats(case: Case, found: TokenMap, row: Row) -> tuple[Block, ...]:
    values = sorted(abs(value) for passage in row for value in passage)
    # The largest single token would drain all others of colour.
    largest = (values[int(0.99 * (len(values) - 1))] or values[-1]) if values else 0.0
    blocks: list[Block] = [plain(legend(largest, found.target), "note")]
    drawn = 0
    for p in sorted(range(len(found.passages)), key=lambda p: -sum(map(abs, row[p]))):
        number, spans = found.passages[p]
        drawn += len(spans)
        if drawn > LARGEST_HEAT and len(blocks) > 1:
            blocks.append(plain("The report leaves out weaker passages to stay small.", "note"))
            break
        text = case.passages[number - 1].text if 1 <= number <= len(case.passages) else ""
        kept = [(span, value) for span, value in zip(spans, row[p], strict=True) if span[0] >= 0]
        pieces = pieces_of(text, [span for span, _ in kept], [value for _, value in kept])
        blocks.append(Heat(f"Passage {name_of(case, number)}", pieces, largest, found.target))
    return tuple(blocks)


def _given(found: TokenMap) -> MapRows:
    sentences = tuple(i for i, span in enumerate(found.answer.sentences) if span in found.sentences)
    return MapRows(method=found.method, sentences=sentences, tokens=found.tokens)


def _again(case: Case, analysis: Analysis, model: LanguageModel, context: RunContext) -> Outcome:
    prompt, answer, _ = subject(case, model, context.settings)
    asked = replace(MapRows.from_dict(analysis.result), model=model.name)
    bare = replace(case, analyses=())  # rows that the case holds would be kept
    values = less(last(_run(bare, asked, context)).result)
    own = registry.method(asked.method, context.settings)
    explained = ((0, len(answer.text)), *(answer.sentences[i] for i in asked.sentences))
    assert own.explain is not None
    spans, each = relevance_floors(own.explain, model, prompt, answer, explained, asked.tokens[:FLOOR_ROWS])
    return Outcome(values=values, floors={"rows": (*spans, each)})


def passes_of(case: Case, asked: MapRows, settings: Settings) -> tuple[int, int]:
    """Forward and backward passes for the rows that are asked for and not there; where all are, for a map run anew."""
    known = map_of(case, asked.method, asked.model)
    tokens = set(asked.tokens) - set(known.tokens if known else ())
    sentences = {i for i in asked.sentences if not known or case.answer.sentences[i] not in known.sentences}
    rows = (known is None) + len(tokens) + len(sentences) or 1
    if asked.method == "integrated gradients":
        steps = settings.gradient.integrated_steps
        return (steps + 2) * rows, steps * rows  # two forwards for its delta
    return (2, 0) if asked.method == "value-weighted attention" else (1, rows)


def _cost(case: Case, options: MapRows, settings: Settings) -> str:
    forwards, backwards = passes_of(case, options, settings)
    both = f"{forwards:,} forward and {number_of(backwards, 'backward pass', 'backward passes')}"
    said = both if backwards else number_of(forwards, "forward pass", "forward passes")
    return f"{said} over {words_of(case):,} words"


KIND = Kind(
    name=TOKEN_MAP,
    title="Token map: relevance of the passages' tokens",
    result=TokenMap,
    blocks=_blocks,
    options=MapRows,
    run=_run,
    cost=_cost,
    check=check_due,
    checked=check_of,
    terms=("gradient",),
    again=of_the_stamp(_again, _given),
)
