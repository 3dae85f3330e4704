"""Input x gradient of a case token by token, and the flags that stand on it (grounded refinement, section 4.3)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from msgspec.structs import replace

from engine.analyses.kinds import TOKEN_MAP
from engine.answer.prompt import passage_body
from engine.core.errors import Cancelled
from engine.core.progress import Watch
from engine.core.settings import Gradient, Settings
from engine.core.values import (
    Analysis,
    Answer,
    Attribution,
    Case,
    Prompt,
    Value,
)
from engine.methods import registry
from engine.methods.aggregate import passage_maps
from engine.methods.flags import (
    Concentration,
    Flags,
    concentration,
    distractor_flags,
)
from engine.methods.input_x_gradient import Relevance, input_x_gradient
from engine.methods.spans import answer_spans, content_mask
from engine.methods.subject import analysis_of, kept, subject
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


def rows_expected(words: int, answer_words: int, sentences: int, settings: Gradient) -> int:
    """About how many backward passes a map takes, before the model has cut anything into tokens."""
    tokens = token_rows(settings, round(TOKENS_PER_WORD * answer_words), round(TOKENS_PER_WORD * words))
    return 1 + sentences + tokens


def token_map_of(case: Case, model: LanguageModel, settings: Settings, watch: Watch | None = None) -> Analysis:
    """Input x gradient of every passage token: for the answer, each sentence, and tokens as the budget allows.

    `Cancelled` carries the analysis of the rows that were done.
    """
    prompt, answer, notes = subject(case, model, settings)
    counted = settings.occlusion.count_citation_markers
    content = tuple(int(t) for t in np.flatnonzero(content_mask(answer, count_citation_markers=counted)))
    coded = model.encode(prompt)
    tokens = content[: token_rows(settings.gradient, len(content), len(coded.ids))]

    def keep(found: Relevance) -> Analysis:
        result = _token_map(model, prompt, coded, answer, found)
        rows = len(result.tokens)
        if rows < len(content):
            said = f"The first {rows} of {len(content)} tokens have rows of their own, the rest by sentence."
            result = replace(result, notes=(said, *result.notes))
        result = replace(result, notes=(*notes, *result.notes))
        extra = {"gradient": settings.gradient.to_dict()}
        return analysis_of(case, model, settings, TOKEN_MAP, result.to_dict(), extra)

    try:
        return keep(
            input_x_gradient(
                model,
                prompt,
                answer,
                spans=answer_spans(answer),
                tokens=tokens,
                target=settings.gradient.target,
                count_citation_markers=counted,
                watch=watch,
            )
        )
    except Cancelled as stopped:
        raise kept(stopped, keep) from stopped


def _token_map(model: LanguageModel, prompt: Prompt, coded: TokenPrompt, answer: Answer, found: Relevance) -> TokenMap:
    maps = [passage_maps(model, prompt, coded, row) for row in (*found.by_span, *found.by_token)]
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
    alone = found.details.get("alone")
    own = {analysis.kind: found}
    if alone:
        own[ALONE] = replace(found, method=ALONE, scores=tuple(map(tuple, alone)), per_token=(), details={})
    return own
