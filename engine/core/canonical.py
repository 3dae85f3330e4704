"""One spelling for every value, so that equal values have equal bytes and equal hashes.

Canonical JSON here: UTF-8, keys sorted, no white space, numbers as short as they read back the same; a number that
is not finite is null, as everywhere in the library.
"""

from __future__ import annotations

import hashlib
from typing import Any, TypeVar

import msgspec

from engine.core.values import Case, Value

V = TypeVar("V", bound=Value)


def canonical(value: Any) -> bytes:
    """The canonical JSON of a value, without a line break at the end.

    >>> canonical({"b": 1.0, "a": [None, "ä"]}).decode()
    '{"a":[null,"ä"],"b":1.0}'
    """
    return msgspec.json.encode(value, order="sorted")


def plain(value: Any) -> Any:
    """A value as the library stores it: plain JSON, what is not finite as null."""
    return msgspec.json.decode(canonical(value))


def digest(value: Any) -> str:
    """Hex SHA-256 of the canonical JSON of `value` without its empty parts.

    Empty parts (null, "", [], {}) are left out, so that a field that a later version adds does not change the hash
    of an older case.

    >>> digest({"a": 1, "b": None, "c": {"d": ""}}) == digest({"a": 1})
    True
    """
    return hashlib.sha256(canonical(_pruned(plain(value)))).hexdigest()


def settled(value: V) -> V:
    """The value as it reads back: 2 in a field of floats is 2.0. Raises `RecordError` where it cannot be read back."""
    return type(value).from_dict(plain(value))


def content_hash(case: Case) -> str:
    """Hash of everything in a case but the number of its schema."""
    data = settled(case).to_dict()
    data.pop("schema", None)
    return digest(data)


def _pruned(value: Any) -> Any:
    if isinstance(value, dict):
        parts = {key: _pruned(part) for key, part in value.items()}
        return {key: part for key, part in parts.items() if part is not None and part not in ("", [], {})}
    if isinstance(value, list):
        return [_pruned(part) for part in value]
    return value
