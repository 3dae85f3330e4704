"""Write the JSON Schema of the case file, with the result of every kind of analysis of the project's own.

python -m bench.case_file_schema > docs/case-file.schema.json
"""

from __future__ import annotations

import json
from inspect import cleandoc

import msgspec

from engine.analyses.attribution import method_kind
from engine.analyses.registry import BUILT_IN
from engine.cases.case_file import NEWEST, CaseFile
from engine.core.settings import Settings
from engine.core.values import Json
from engine.methods import registry as methods


def schema() -> Json:
    """The JSON Schema; the shape of an analysis' result goes by its kind, which is its tag."""
    results = {kind.name: kind.result for kind in (*map(method_kind, methods.built_in(Settings())), *BUILT_IN)}
    shapes = (CaseFile, *dict.fromkeys(results.values()))
    placed, named = msgspec.json.schema_components(shapes, ref_template="#/$defs/{name}")
    of = dict(zip(shapes, placed, strict=True))
    described = msgspec.json.schema_components((CaseFile,))[1]
    for name in named.keys() - described.keys():
        named[name].pop("description", None)  # docs/methods says what a result means
    for shape in named.values():
        if "description" in shape:
            shape["description"] = cleandoc(shape["description"])  # Python 3.13 dedents docstrings, 3.11 does not
    named["Analysis"]["allOf"] = [
        {"if": {"properties": {"kind": {"const": kind}}}, "then": {"properties": {"result": of[result]}}}
        for kind, result in results.items()
    ]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Groundwork case file, schema {NEWEST}",
        **of[CaseFile],
        "$defs": named,
    }


if __name__ == "__main__":
    print(json.dumps(schema(), indent=2, ensure_ascii=False))
