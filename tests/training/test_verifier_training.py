"""The saved weights of a training, read back by the engine and by a later training."""

from __future__ import annotations

import pytest
import torch

from engine.models.embedder import DEFAULT
from engine.models.verifier_network import base_network, collate, encode, load_network
from training.verifier import add_adapters, mix, save, take_up, trained

PAIRS = [("Lind paid 40 euros.", "Lind paid 40 euros on 3 May."), ("Moor owns it.", "Moor owns the mill.")]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    torch.manual_seed(7)
    network, tokenizer = base_network(DEFAULT)
    add_adapters(network, 4)
    for name, parameter in network.named_parameters():
        if name.endswith("weight.0.b"):
            torch.nn.init.normal_(parameter, std=0.02)
    folder = tmp_path_factory.mktemp("verifier")
    save(trained(network), folder, DEFAULT)
    return network.eval(), tokenizer, folder


def test_a_later_training_goes_on_from_the_same_weights(saved):
    network, _, folder = saved
    other, _ = base_network(DEFAULT)
    add_adapters(other, 4)
    take_up(other, folder)
    before, after = trained(network), trained(other)
    assert before.keys() == after.keys()
    for name, tensor in before.items():
        torch.testing.assert_close(after[name], tensor, rtol=2**-7, atol=1e-6)  # stored as bfloat16


def test_a_mix_is_the_mean_of_the_start_and_what_was_trained(saved, tmp_path):
    network, _, folder = saved
    save({name: 3 * tensor for name, tensor in trained(network).items()}, tmp_path, DEFAULT)
    mix(folder, tmp_path, 0.25)
    mixed, _ = base_network(DEFAULT)
    add_adapters(mixed, 4)
    take_up(mixed, tmp_path)
    for name, tensor in trained(network).items():
        torch.testing.assert_close(trained(mixed)[name], 2.5 * tensor, rtol=2**-6, atol=1e-6)


def test_weights_of_another_network_are_refused(saved):
    network, _ = base_network(DEFAULT)
    with pytest.raises(KeyError, match="another network"):
        take_up(network, saved[2])


def test_the_engine_merges_what_was_trained(saved):
    network, tokenizer, folder = saved
    inputs = collate(encode(tokenizer, PAIRS))
    merged, _ = load_network(folder)
    with torch.no_grad():
        torch.testing.assert_close(merged(**inputs), network(**inputs), rtol=0.05, atol=0.02)
