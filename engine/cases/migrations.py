"""Case files of older schemas, brought up to this one as plain JSON, one step a schema.

Schema 1 was the bare case, as `ask --json` prints it: no envelope, no history, no hashes. What a later part of
Groundwork adds to the file comes in as one more step here, with a kept file of the older schema among the tests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.cases.canonical import content_hash, digest
from engine.errors import CaseFileError
from engine.types import Case, sha256
from engine.value import converted

Json = dict[str, Any]


def envelope(data: Json) -> Json:
    """Schema 1 to 2: the bare case gets an envelope; its hashes are those of what was read."""
    case = converted(data, Case)
    return {
        "format": "groundwork-case",
        "schema": 2,
        "case": data,
        "history": [],
        "hashes": {
            "question": sha256(case.question),
            "passages": [sha256(passage.text) for passage in case.passages],
            "answer": sha256(case.answer.text),
            "analyses": [digest(analysis) for analysis in case.analyses],
            "content": content_hash(case),
            "history": "",
        },
    }


# STEPS[i] brings a file from schema i + 1 to i + 2.
STEPS: tuple[Callable[[Json], Json], ...] = (envelope,)


def migrated(data: Json) -> Json:
    """A file of any schema up to this one, as this one; raise `CaseFileError` for a newer or unknown one."""
    bare = "format" not in data and "question" in data
    version = data.get("schema", 1)
    if not bare and data.get("format") != "groundwork-case":
        raise CaseFileError("This is no case file: $.format is not groundwork-case. Choose the layout that it has.")
    if bare:
        version = 1
    newest = len(STEPS) + 1
    if not isinstance(version, int) or not 1 <= version <= newest:
        raise CaseFileError(
            f"The case file has schema {version!r} at $.schema; this version of Groundwork reads 1 to {newest}."
            " Update Groundwork to open it."
        )
    for step in STEPS[version - 1 :]:
        data = step(data)
    return data
