"""Leave-one-out for many passages: down from documents to passages, or from a small model's choice to the large one.

Left out one by one, n passages cost n + 1 rows. Here either blocks of passages are left out first and the blocks with
the largest change are opened, or a small model (`proxy`) leaves out every passage and the large one checks those that
changed it most (AttriBoT, Liu et al., 2024: hierarchical attribution and proxy modelling). Whatever is reported was
left out alone under the large model: its score is that of `occlusion`; what was not looked at is told. Up to `EXACT`
passages all of them are. Left out: AttriBoT's pruning by a gradient, and its proxy's own scores as the result.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence

import numpy as np
from msgspec.structs import replace

from engine.core.errors import AttributionError
from engine.core.progress import Watch
from engine.core.settings import Occlusion
from engine.core.values import Answer, Attribution, Prompt
from engine.methods.occlusion import Rows, ask, attribution_of, occlusion
from engine.methods.spans import Span, passage_numbers
from engine.methods.subject import answer_for
from engine.models.hooks import count_forwards
from engine.models.protocols import LanguageModel, require

METHOD = "hierarchical leave-one-out"
EXACT = Occlusion().max_sources
SHARE = 0.2  # of the rows of exact leave-one-out
Numbers = tuple[int, ...]


def hierarchical(
    model: LanguageModel,
    prompt: Prompt,
    answer: Answer,
    *,
    spans: Sequence[Span] | None = None,
    documents: Sequence[Sequence[int]] | None = None,
    proxy: LanguageModel | None = None,
    share: float = SHARE,
    count_citation_markers: bool = False,
    watch: Watch | None = None,
) -> Attribution:
    """Exact drops of the passages that matter most; `documents` are the blocks (default: neighbours in the prompt).

    Raises what `occlusion` raises, and `AttributionError` where a passage stands in no document or in two.
    """
    require(model, "score")
    settings = Occlusion(count_citation_markers=count_citation_markers)
    coded = model.encode(prompt)
    numbers = passage_numbers(coded)
    if len(numbers) <= EXACT:
        found = occlusion(model, prompt, answer, spans=spans, floors=False, settings=settings, watch=watch)
        return replace(found, method=METHOD)
    start = time.perf_counter()
    left = max(int(share * (len(numbers) + 1)), 2) - 1
    with count_forwards(model) as count:
        full = model.score([coded], [token.id for token in answer.tokens], watch)
        if proxy is None:
            blocks = _blocks(numbers, documents)
            drops = _drops(model, prompt, answer, blocks, full, settings, watch)
            kept = tuple(_opened(blocks, drops, left - len(blocks)))
            how = f"the blocks that changed the answer most, out of {len(blocks)}, were opened"
        else:
            own = answer_for(proxy, answer, "", len(numbers))  # its own tokens of the same text
            drops = _drops(proxy, prompt, own, [(n,) for n in numbers], None, settings, watch)
            kept = tuple(numbers[j] for j in np.argsort(-drops, kind="stable")[:left])
            how = f"{proxy.name} left out each passage and ranked them by effect on its answer"
        kept = tuple(n for n in numbers if n in set(kept))
        asked = ask(coded, answer, spans, [(n,) for n in kept], count_citation_markers=count_citation_markers)
        without = model.score([asked.without(j) for j in range(len(kept))], asked.ids, watch)
    none = np.zeros((0, len(asked.ids)))
    said = f"{len(kept)} of {len(numbers)} passages were left out one by one: {how}. The others are not scored."
    result = attribution_of(model.name, METHOD, asked, Rows(full[0], without, none, none, notes=(said,)))
    return replace(result, forwards=count.rows, seconds=time.perf_counter() - start)


def _drops(
    model: LanguageModel,
    prompt: Prompt,
    answer: Answer,
    blocks: Sequence[Numbers],
    full: np.ndarray | None,
    settings: Occlusion,
    watch: Watch | None,
) -> np.ndarray:
    """The whole answer's drop in nats without each block; -inf where the model gave no finite probability."""
    coded = model.encode(prompt)
    whole = [(0, len(answer.text))]
    asked = ask(coded, answer, whole, blocks, count_citation_markers=settings.count_citation_markers)
    rows = [asked.without(j) for j in range(len(blocks))]
    scored = model.score([coded, *rows] if full is None else rows, asked.ids, watch)
    full, without = (scored[:1], scored[1:]) if full is None else (full, scored)
    drops: np.ndarray = (full - without) @ asked.masks[0].astype(np.float64)
    return np.where(np.isfinite(drops), drops, -np.inf)


def _blocks(numbers: Sequence[int], documents: Sequence[Sequence[int]] | None) -> list[Numbers]:
    """The documents' passages, or neighbours in blocks of about the square root of their number."""
    if documents is None:
        size = math.isqrt(len(numbers) - 1) + 1  # all blocks and one block's passages take fewest rows
        return [tuple(numbers[first : first + size]) for first in range(0, len(numbers), size)]
    blocks = [tuple(block) for block in documents if block]
    if sorted(n for block in blocks for n in block) != sorted(numbers):
        raise AttributionError(
            "The documents do not partition the prompt's passages. List each passage in exactly one document."
        )
    return blocks


def _opened(blocks: Sequence[Numbers], drops: np.ndarray, left: int) -> Iterator[int]:
    """The passages of the block with the largest drop, and of further ones while `left` rows hold them."""
    for rank, block in enumerate(np.argsort(-drops, kind="stable")):
        left -= len(blocks[block])
        if rank and left < 0:
            return
        yield from blocks[block]
