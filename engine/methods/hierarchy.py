"""Leave-one-out for many passages, down a hierarchy from blocks of passages to single ones.

Left out one by one, n passages cost n + 1 rows. Here blocks of neighbours are left out first, and the blocks with the
largest change are opened (AttriBoT, Liu et al., 2024: hierarchical attribution). Every reported passage was left out
alone: its score is that of `occlusion`, and a note tells what was not looked at. Up to `EXACT` passages all of them
are left out alone. AttriBoT's proxy model and its pruning by a gradient are not here.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence

import numpy as np
from msgspec.structs import replace

from engine.core.progress import Watch
from engine.core.settings import Occlusion
from engine.core.values import Answer, Attribution, Prompt
from engine.methods.occlusion import Rows, ask, attribution_of, occlusion
from engine.methods.spans import Span, answer_spans, passage_numbers, passage_positions
from engine.models.hooks import count_forwards
from engine.models.protocols import LanguageModel, TokenPrompt, require

METHOD = "hierarchical leave-one-out"
EXACT = Occlusion().max_sources
SHARE = 0.2  # of the rows of exact leave-one-out, unless the blocks and one of them take more
Numbers = tuple[int, ...]


def hierarchical(
    model: LanguageModel,
    prompt: Prompt,
    answer: Answer,
    *,
    spans: Sequence[Span] | None = None,
    count_citation_markers: bool = False,
    watch: Watch | None = None,
) -> Attribution:
    """Exact drops of the passages that matter most, in at most `SHARE` of the rows or one block; see `occlusion`."""
    require(model, "score")
    settings = Occlusion(count_citation_markers=count_citation_markers)
    coded = model.encode(prompt)
    numbers = passage_numbers(coded)
    if len(numbers) <= EXACT:
        found = occlusion(model, prompt, answer, spans=spans, floors=False, settings=settings, watch=watch)
        return replace(found, method=METHOD)
    start = time.perf_counter()
    chosen = tuple(spans) if spans is not None else answer_spans(answer)
    size = math.isqrt(len(numbers) - 1) + 1  # at which all blocks and the passages of one take fewest rows
    blocks = [tuple(numbers[first : first + size]) for first in range(0, len(numbers), size)]
    left = max(int(SHARE * (len(numbers) + 1)), 2) - 1 - len(blocks)
    with count_forwards(model) as count:
        full = model.score([coded], [token.id for token in answer.tokens], watch)
        opened = set(_opened(blocks, _drops(model, coded, answer, blocks, full, settings, watch), left))
        kept = [n for n in numbers if n in opened]
        groups = [(n,) for n in kept]
        removed = [passage_positions(coded, group) for group in groups]
        asked = ask(coded, answer, groups, removed, chosen, count_citation_markers=count_citation_markers)
        without = model.score([asked.without(j) for j in range(len(groups))], asked.ids, watch)
    none = np.zeros((0, len(asked.ids)))
    said = (
        f"{len(kept)} of {len(numbers)} passages were left out one by one: those of the blocks that changed the answer"
        f" most, out of {len(blocks)}. The others are not scored."
    )
    result = attribution_of(model.name, METHOD, asked, Rows(full[0], without, none, none, notes=(said,)), (None, None))
    return replace(result, forwards=count.rows, seconds=time.perf_counter() - start)


def _drops(
    model: LanguageModel,
    coded: TokenPrompt,
    answer: Answer,
    blocks: Sequence[Numbers],
    full: np.ndarray,
    settings: Occlusion,
    watch: Watch | None,
) -> np.ndarray:
    """The whole answer's drop in nats without each block; -inf where the model gave no finite probability."""
    removed = [passage_positions(coded, block) for block in blocks]
    whole = [(0, len(answer.text))]
    asked = ask(coded, answer, blocks, removed, whole, count_citation_markers=settings.count_citation_markers)
    without = model.score([asked.without(j) for j in range(len(blocks))], asked.ids, watch)
    drops: np.ndarray = (full - without) @ asked.masks[0].astype(np.float64)
    return np.where(np.isfinite(drops), drops, -np.inf)


def _opened(blocks: Sequence[Numbers], drops: np.ndarray, left: int) -> Iterator[int]:
    """The passages of the block with the largest drop, and of further ones while `left` rows hold them."""
    for rank, block in enumerate(np.argsort(-drops, kind="stable")):
        left -= len(blocks[block])
        if rank and left < 0:
            return
        yield from blocks[block]
