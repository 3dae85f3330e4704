"""The frozen value that everything is, and its way in from JSON, safe from whichever thread comes first.

msgspec looks at a type when it first meets it; two threads that are the first to do so bring the process down. So
typed data comes in through `converted` and `decoded` here, and a decoder of one's own is made after `ready`.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
from typing import Any, Self, TypeVar, overload

import msgspec

from engine.errors import RecordError

T = TypeVar("T")


class Value(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A frozen value with a checked JSON form."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain dicts, lists, strings and numbers."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        return data

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Check `data` and build the value; raise `RecordError` naming the place that does not fit."""
        try:
            return converted(data, cls)
        except msgspec.ValidationError as error:
            raise RecordError(f"This is no valid {cls.__name__}: {error}.") from error


_ready: set[Any] = set()
_getting_ready = threading.Lock()


def ready(kind: Any) -> None:
    """Let msgspec look at a type (a class, a union, a tuple of them) once, alone."""
    if kind in _ready:
        return
    with _getting_ready:
        with contextlib.suppress(msgspec.ValidationError):
            msgspec.convert(None, kind)
        _ready.add(kind)


@overload
def converted(data: Any, kind: type[T], *, strict: bool = True) -> T: ...
@overload
def converted(data: Any, kind: Any, *, strict: bool = True) -> Any: ...
def converted(data: Any, kind: Any, *, strict: bool = True) -> Any:
    """`data` as a `kind`; raise `msgspec.ValidationError`. Not `strict`: "7" passes for 7."""
    ready(kind)
    return msgspec.convert(data, kind, strict=strict)


@overload
def decoded(data: bytes | str, kind: type[T]) -> T: ...
@overload
def decoded(data: bytes | str, kind: Any) -> Any: ...
def decoded(data: bytes | str, kind: Any) -> Any:
    """JSON as a `kind`; raise `msgspec.DecodeError`, `msgspec.ValidationError` among them."""
    ready(kind)
    return msgspec.json.decode(data, type=kind)


def sha256(text: str) -> str:
    """Hex SHA-256 of the UTF-8 bytes of `text` (lone surrogates kept)."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
