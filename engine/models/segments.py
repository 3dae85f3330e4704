"""A tokenizer for text in the middle of a prompt: none that adds a space of its own before each piece.

SentencePiece-style tokenizers (Llama 2, Mistral 7B v0.1, Gemma 1) put a space before whatever they are given.
A prompt tokenised piece by piece would gain one at every seam. The ids are otherwise the same.
"""

from __future__ import annotations

import copy
import json
from typing import Any


def prefixless(tokenizer: Any) -> Any:
    """`tokenizer` itself where it adds no prefix, else a copy that adds none."""
    if not getattr(tokenizer, "is_fast", False):
        return tokenizer
    backend = tokenizer.backend_tokenizer
    parts = {"normalizer": backend.normalizer, "pre_tokenizer": backend.pre_tokenizer}
    if not any(_adds_prefix(part) for part in parts.values() if part is not None):
        return tokenizer
    from tokenizers import Tokenizer

    state = json.loads(backend.to_str())
    fresh = Tokenizer.from_str(json.dumps(state | {name: without_prefix(state[name]) for name in parts}))
    other = copy.deepcopy(tokenizer)
    other.backend_tokenizer.normalizer = fresh.normalizer
    other.backend_tokenizer.pre_tokenizer = fresh.pre_tokenizer
    return other


def _adds_prefix(part: Any) -> bool:
    state = json.loads(part.__getstate__())
    return bool(without_prefix(state) != state)


def without_prefix(state: Any) -> Any:
    """The JSON state of a normalizer or pre-tokenizer with every leading-space rule switched off.

    >>> without_prefix({"type": "Metaspace", "replacement": "_", "prepend_scheme": "always"})["prepend_scheme"]
    'never'
    """
    if not isinstance(state, dict):
        return state
    if state.get("type") == "Prepend":
        return None
    if state.get("type") == "Metaspace":
        return state | {"prepend_scheme": "never"}
    if state.get("type") == "ByteLevel" and "add_prefix_space" in state:
        return state | {"add_prefix_space": False}
    lists = {key: [without_prefix(item) for item in value] for key, value in state.items() if isinstance(value, list)}
    return state | {key: [item for item in items if item is not None] for key, items in lists.items()}
