"""The page on large corpora multiplies what was measured, and is up to date."""

from __future__ import annotations

import pytest

from bench import arithmetic
from bench.instruments import section
from bench.results import RESULTS

MEASURED = """
<!-- scale -->
| passages | ingest, processor s | BM25, processor s | peak, with search | on disk |
| ---: | ---: | ---: | ---: | ---: |
| 200,000 | 20 | 40 | 1.00 GB | 0.50 GB |
| 1,000,000 | 100 | 120 | 1.40 GB | 2.90 GB |
<!-- /scale -->
"""


def test_slopes_by_hand():
    assert arithmetic.slopes(MEASURED) == pytest.approx(
        {"peak, with search": 0.5, "on disk": 3.0, "ingest, processor s": 100.0, "BM25, processor s": 100.0}
    )
    table = arithmetic.table(MEASURED)
    assert "| 100 | 300 | 50 | 5.6 |" in table
    assert "the largest size that was measured is 1 million" in table


def test_the_page_is_up_to_date():
    page = arithmetic.PAGE.read_text(encoding="utf-8")
    expected = arithmetic.table(RESULTS.read_text(encoding="utf-8"))
    assert section("arithmetic", page).strip() == expected, "run: python -m bench.arithmetic"
