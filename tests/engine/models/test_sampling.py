"""Nucleus sampling: by hand, as frequencies, and against transformers' own filter."""

from __future__ import annotations

import pytest
import torch

from engine.core.settings import Decoding
from engine.models.writing import choose, nucleus


def test_nucleus_by_hand():
    kept = nucleus(torch.tensor([0.2, 0.5, 0.3]), 0.7)
    assert kept.tolist() == pytest.approx([0, 0.625, 0.375])


@pytest.mark.parametrize("top_p", [0.05, 0.3, 0.77, 0.95, 1.0])
def test_nucleus_agrees_with_transformers(top_p):
    from transformers import TopPLogitsWarper

    generator = torch.Generator().manual_seed(3)
    for _ in range(20):
        logits = torch.randn(50, generator=generator, dtype=torch.float64) * 3
        theirs = TopPLogitsWarper(top_p)(None, logits[None])[0].softmax(-1)
        torch.testing.assert_close(nucleus(logits.softmax(-1), top_p), theirs)


def test_greedy_takes_the_best_and_draws_nothing():
    generator = torch.Generator().manual_seed(0)
    before = generator.get_state()
    assert choose(torch.tensor([0.0, 3.0, 1.0]), Decoding(temperature=0.0), generator) == 1
    assert torch.equal(before, generator.get_state())


def test_frequencies_follow_temperature_and_top_p():
    """softmax([0, ln 4, ln 16] / 2) = (1, 2, 4) / 7; top-p 0.8 drops the first: (2, 4) / 6."""
    logits = torch.tensor([0.0, 4.0, 16.0]).clamp(min=1).log()
    generator = torch.Generator().manual_seed(11)
    decoding = Decoding(temperature=2.0, top_p=0.8)
    drawn = torch.tensor([choose(logits, decoding, generator) for _ in range(4000)])
    shares = torch.bincount(drawn, minlength=3) / len(drawn)
    assert shares[0] == 0
    assert shares[2].item() == pytest.approx(2 / 3, abs=0.03)  # 4 standard errors


def test_a_tiny_top_p_still_leaves_one_token():
    assert nucleus(torch.tensor([0.5, 0.5]), 0.0).sum() == 1
