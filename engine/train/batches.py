"""Samples as token ids, padded into batches, with every token's part in the loss and its source passage."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerFast

from engine.models.segments import prefixless
from engine.train.jobs import Part, Piece

CODES: dict[Part, int] = {"prompt": 1, "answer": 2, "real": 3, "memory": 4, "cite": 5, "decide": 6, "end": 0}
SOURCES = 64  # classes of the training heads: citation numbers, 0 for none
WIDTHS = 16  # rows are padded to a multiple, so that fewer shapes of memory are asked for
Sample = tuple[list[int], list[int], list[int]]


@dataclass(frozen=True)
class Batch:
    """Token ids (rows, columns) padded on the right; of every token its part in the loss and its source passage."""

    ids: NDArray[np.int64]
    codes: NDArray[np.int8]
    sources: NDArray[np.int64]


@cache
def segment_tokenizer(tokenizer: PreTrainedTokenizerFast) -> Any:
    """The tokenizer of prompt segments; see `prefixless`."""
    return prefixless(tokenizer)


def encode(pieces: Sequence[Piece], tokenizer: PreTrainedTokenizerFast) -> Sample:
    """Ids, codes, sources of a sample: BOS, then every piece tokenised on its own; an `end` piece is one EOS.

    Prompt pieces are tokenised as `HuggingFaceModel.encode` does it, without the space that answers begin with; so
    are `decide` pieces, which go on from the piece before.
    """
    ids, codes, sources = [tokenizer.bos_token_id], [0], [0]
    whole = tokenizer([p.text for p in pieces], add_special_tokens=False)["input_ids"]
    inner = segment_tokenizer(tokenizer)([p.text for p in pieces], add_special_tokens=False)["input_ids"]
    for position, (piece, as_answer, as_segment) in enumerate(zip(pieces, whole, inner, strict=True)):
        new = as_segment if piece.part in ("prompt", "decide") else as_answer
        if piece.part == "end":
            ids.append(tokenizer.eos_token_id)
            codes.append(CODES[pieces[position - 1].part])
            sources.append(0)
        else:
            ids += new
            codes += [CODES[piece.part]] * len(new)
            sources += [min(piece.source, SOURCES - 1)] * len(new)
    return ids, codes, sources


def batches(samples: Iterator[Sample], tokens: int, pool: int, rng: random.Random) -> list[Batch]:
    """Draw `pool` times `tokens` tokens, sort by length, cut into batches of about `tokens`, shuffle.

    Samples of the memory job are short and hardly predictable: they are spread over the batches, since a batch of
    nothing else would move the weights as far as any other.
    """
    drawn: list[Sample] = []
    spread: list[Sample] = []
    total = 0
    while total < pool * tokens:
        new = next(samples)
        (spread if CODES["memory"] in new[1] else drawn).append(new)
        total += len(new[0])
    drawn.sort(key=lambda s: len(s[0]))
    groups: list[list[Sample]] = [[]]
    for item in drawn:
        if groups[-1] and (len(groups[-1]) + 1) * len(item[0]) > tokens:
            groups.append([])
        groups[-1].append(item)
    for position, new in enumerate(spread):
        groups[position % len(groups)].append(new)
    made = [pad(group) for group in groups]
    rng.shuffle(made)
    return made


def pad(group: Sequence[Sample]) -> Batch:
    """Rows padded on the right with code 0; causal attention never looks there."""
    width = -(-max(len(sample[0]) for sample in group) // WIDTHS) * WIDTHS
    ids = np.full((len(group), width), 2, dtype=np.int64)
    codes = np.zeros((len(group), width), dtype=np.int8)
    sources = np.zeros((len(group), width), dtype=np.int64)
    for row, (new, parts, numbers) in enumerate(group):
        ids[row, : len(new)] = new
        codes[row, : len(parts)] = parts
        sources[row, : len(numbers)] = numbers
    return Batch(ids, codes, sources)
