"""Definitions and limits of the methods used in a case, and of no others."""

from __future__ import annotations

import tomllib

from engine.analyses.attribution import attributions_of
from engine.analyses.registry import find
from engine.cases.blocks import Block, Facts, Section, plain, table
from engine.core.files import ASSETS
from engine.core.values import Case
from engine.models.self_test import remembered

DEFINITIONS: dict[str, tuple[str, str]] = {
    name: (term["title"], " ".join(term["text"].split()))
    for name, term in tomllib.loads((ASSETS / "report" / "terms.toml").read_text(encoding="utf-8")).items()
}


def used(case: Case, reviewed: bool) -> list[str]:
    """The definitions that this case needs, in reading order."""
    found = [a for analysis in case.analyses for a in attributions_of(analysis)]
    methods = {attribution.method.lower() for attribution in found}
    terms = {term for analysis in case.analyses if (kind := find(analysis.kind)) for term in kind.terms}
    needs = {
        "passage": True,
        "citation": bool(case.answer.citations),
        "retrieval": bool(case.hits),
        "rerank": bool(case.chunk_sets),
        "occlusion": any("occlusion" in method for method in methods),
        "gradient": any("gradient" in method for method in methods),
        "attribution": any(not any(n in m for n in ("occlusion", "gradient")) for m in methods),
        "markers": bool(methods),
        "numerical": any(a.numerical_floor is not None for a in found),
        "placebo": any(a.placebo_floor is not None for a in found),
        "review": reviewed,
        "hashes": True,
    }
    return [name for name in DEFINITIONS if needs.get(name) or name in terms]


def methods_blocks(case: Case, reviewed: bool) -> tuple[Block, ...]:
    """The definitions as a list of terms."""
    return (
        plain("Meaning and limits of the terms in this report.", "note"),
        Facts(tuple(DEFINITIONS[name] for name in used(case, reviewed))),
    )


# The self-test of every language model that a case used: can its scores and gradients be trusted.

# What quotes or was written elsewhere has no weights to test.
UNTESTED = ("", "reader", "imported", "auto")


def self_test_blocks(case: Case) -> tuple[Block, ...]:
    """A table a model, from the record kept on this machine; a sentence where no test of that model is kept."""
    stamps = (case.stamp, *(analysis.stamp for analysis in case.analyses))
    models = dict.fromkeys((s.model, s.revision, s.dtype) for s in stamps if s.revision and s.model not in UNTESTED)
    return tuple(Section(name, _blocks(name, revision, dtype), level=3) for name, revision, dtype in models)


def _blocks(name: str, revision: str, dtype: str) -> tuple[Block, ...]:
    checks = remembered(name, revision, dtype)
    if checks is None:
        return (plain(f"No self-test of this model is stored here. Run: python -m engine self-test {name}"),)
    rows = (
        (c.name, "passed" if c.passed else "failed", c.detail, "" if c.figure is None else f"{c.figure:.3g}")
        for c in checks
    )
    return (table(f"Self-test of {name}", ("Check", "Result", "Detail", "Figure"), rows, numeric={3}),)
