"""A config as the TOML that it would be read from: fields at their default are left out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from engine.evaluate.config import Config

_BARE = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


def as_toml(config: Config) -> str:
    """The text; `parse_config` of it gives the config again.

    >>> print(as_toml(Config(study="are", data="d", n=3, load={"limit": 5})))
    study = "are"
    data = "d"
    n = 3
    <BLANKLINE>
    [load]
    limit = 5
    """
    bare = Config(study="", data="").to_dict()
    given = {name: value for name, value in config.to_dict().items() if value != bare.get(name)}
    given.setdefault("data", config.data)
    return "\n".join(_table(given, ())).strip()


def _table(table: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    """A table's own values, then its tables, each under its heading."""
    plain = {name: value for name, value in table.items() if not isinstance(value, Mapping) and value is not None}
    if path and plain:
        yield ""
        yield f"[{'.'.join(map(_key, path))}]"
    for name, value in plain.items():
        yield f"{_key(name)} = {_value(value)}"
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _table(value, (*path, name))


def _key(name: str) -> str:
    return name if name and set(name) <= _BARE else json.dumps(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_value, value))}]"
    return repr(value)
