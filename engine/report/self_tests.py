"""The self-test of every language model that a case used: can its scores and gradients be trusted."""

from __future__ import annotations

from engine.cases.blocks import (
    Block,
    Section,
    Table,
    cells,
    plain,
)
from engine.core.values import Case
from engine.models.self_test import remembered

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
        return (plain(f"No self-test of this model is kept here. Run: python -m engine self-test {name}"),)
    rows = tuple(
        cells(c.name, "passed" if c.passed else "failed", c.detail, "" if c.figure is None else f"{c.figure:.3g}")
        for c in checks
    )
    return (Table(f"Self-test of {name}", ("Check", "Result", "Detail", "Figure"), rows, numeric=frozenset({3})),)
