"""A small run that needs no model: gold among the passages that BM25 finds in the chemistry corpus."""

import pytest

RETRIEVAL = """
study = "attr-rag-chunks"
data = "bench-chemistry"
n = {n}
model = "reader"
methods = ["top-5", "top-10", "top-30"]

[settings.retrieval]
mode = "bm25"

[options]
answers = false
"""


@pytest.fixture
def retrieval():
    """The config of `n` questions at three depths."""
    return lambda n: RETRIEVAL.format(n=n)
