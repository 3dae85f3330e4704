"""Leave-one-out for many passages: a cheap look at all of them, then exact scores of those that matter most.

Left out one by one, n passages cost n + 1 rows. Here the model first reads the prompt once and answers with each
passage's keys masked (knockout.py), and leaves out only the passages whose mask changed the answer most. A model whose
keys cannot be masked leaves out blocks of passages and opens those with the largest change; a small model (`proxy`) can
leave out every passage for a large one (AttriBoT, Liu et al., 2024: hierarchical attribution and proxy modelling).
Whatever is reported was left out alone under the large model: its score is that of `occlusion`; what was not looked at
is told. Up to `EXACT` passages all of them are. Left out: AttriBoT's pruning by a gradient, and its proxy's own scores
as the result.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from engine.core.errors import AttributionError
from engine.core.progress import Watch
from engine.core.settings import Occlusion
from engine.core.values import Answer, Attribution, Prompt
from engine.methods.occlusion import OcclusionTask, Rows, ask, attribution_of, occlusion
from engine.methods.spans import Floats, Span, passage_numbers
from engine.methods.subject import answer_for
from engine.models.hooks import ForwardCount, count_forwards
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
    count_citation_markers: bool = False,
    watch: Watch = Watch(),
) -> Attribution:
    """Exact drops of the passages that matter most.

    They are found by `proxy`, by blocks where `documents` names them, else by masked keys; neighbours in the prompt are
    the blocks where keys cannot be masked. Raises what `occlusion` raises, and `AttributionError` where a passage is in
    no document or in two.
    """
    require(model, "score")
    numbers = passage_numbers(model.encode(prompt))
    if len(numbers) <= EXACT:
        settings = Occlusion(count_citation_markers=count_citation_markers)
        found = occlusion(model, prompt, answer, spans=spans, floors=False, settings=settings, watch=watch)
        return replace(found, method=METHOD)
    start = time.perf_counter()
    budget = max(int(SHARE * (len(numbers) + 1)), 2)
    search = _Search(model, prompt, answer, numbers, budget, count_citation_markers, watch)
    with count_forwards(model) as count:
        looked = None if proxy or documents else search.by_masked_keys(count)
        if looked is None:
            looked = search.by_blocks(documents) if proxy is None else search.by_proxy(proxy)
        kept, full, how = looked
        groups = [(n,) for n in numbers if n in kept]
        asked = ask(model.encode(prompt), answer, spans, groups, count_citation_markers=count_citation_markers)
        without = model.score(asked.ablated, asked.ids, watch)
    none = np.zeros((0, len(asked.ids)))
    said = f"{len(kept)} of {len(numbers)} passages were left out one by one: {how}. The others are not scored."
    result = attribution_of(model.name, METHOD, asked, Rows(full, without, none, none, notes=(said,)))
    return replace(result, forwards=count.rows, seconds=time.perf_counter() - start)


Chosen = tuple[frozenset[int], Floats, str]
"""The passages to leave out one by one, the full row's log-probabilities (tokens,), and how they were found."""


@dataclass(frozen=True)
class _Search:
    """The search for the passages that matter most.

    It takes `budget` rows of the model in all, the exact ones included; blocks take more where one block fills it.
    """

    model: LanguageModel
    prompt: Prompt
    answer: Answer
    numbers: Numbers
    budget: int
    count_citation_markers: bool
    watch: Watch

    def by_masked_keys(self, count: ForwardCount) -> Chosen | None:
        """The passages without whose keys the answer changes most, and the last one; None where keys cannot be masked.

        A mask keeps all distances. Without the last passage the question moves next to another one, which a mask cannot
        show: that passage is always left out.
        """
        knock_out = getattr(self.model, "score_knocked_out", None)
        task = self._task(self.model, self.answer, [(number,) for number in self.numbers])
        masked = knock_out(task.prompt, task.removed, task.ids, self.watch) if knock_out else None
        if masked is None:
            return None
        kept = _largest(self.numbers, _drops(masked, task), self.budget - count.rows - 1) | {self.numbers[-1]}
        return kept, masked[0], "the last one, and those without whose keys the answer changed most"

    def by_proxy(self, proxy: LanguageModel) -> Chosen:
        """The passages that matter most to a small model, with its own tokens of the same text."""
        own = answer_for(proxy, self.answer, "", len(self.numbers))
        task = self._task(proxy, own, [(number,) for number in self.numbers])
        scored = proxy.score([task.prompt, *task.ablated], task.ids, self.watch)
        kept = _largest(self.numbers, _drops(scored, task), self.budget - 1)
        return kept, self._full(), f"{proxy.name} left out each passage and ranked them by effect on its answer"

    def by_blocks(self, documents: Sequence[Sequence[int]] | None) -> Chosen:
        """The passages of the blocks that change the answer most when they are left out."""
        blocks, full = _blocks(self.numbers, documents), self._full()
        task = self._task(self.model, self.answer, blocks)
        drops = _drops(np.vstack([full, self.model.score(task.ablated, task.ids, self.watch)]), task)
        kept = frozenset(_opened(blocks, drops, self.budget - 1 - len(blocks)))
        return kept, full, f"the blocks that changed the answer most, out of {len(blocks)}, were opened"

    def _task(self, scorer: LanguageModel, answer: Answer, groups: Sequence[Numbers]) -> OcclusionTask:
        """The groups of passages as sources of the whole answer."""
        coded, whole = scorer.encode(self.prompt), [(0, len(answer.text))]
        return ask(coded, answer, whole, groups, count_citation_markers=self.count_citation_markers)

    def _full(self) -> Floats:
        ids = [token.id for token in self.answer.tokens]
        full: Floats = self.model.score([self.model.encode(self.prompt)], ids, self.watch)[0]
        return full


def _largest(numbers: Sequence[int], drops: np.ndarray, count: int) -> frozenset[int]:
    """The passages with the largest drops; at least one."""
    return frozenset(numbers[j] for j in np.argsort(-drops, kind="stable")[: max(count, 1)])


def _drops(scored: np.ndarray, task: OcclusionTask) -> np.ndarray:
    """The whole answer's drops in nats from the first row to each other; -inf where a probability is not finite."""
    drops: np.ndarray = (scored[0] - scored[1:]) @ task.masks[0].astype(np.float64)
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
