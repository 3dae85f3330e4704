"""The cost of a condition: forwards where torch writes, unknown where something else does."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from engine.methods.refinement.costs import metered


@pytest.mark.parametrize(("llama_cpp", "forwards"), [(None, 2), (object(), None)])
def test_what_llama_cpp_writes_is_not_counted_as_no_forwards(llama_cpp, forwards):
    module = torch.nn.Embedding(3, 2)
    with metered(SimpleNamespace(module=module, llama_cpp=llama_cpp)) as meter:
        module(torch.tensor([[0, 1]]))
        module(torch.tensor([[2]]))
    assert meter.cost.forwards == forwards
