"""The network of the trained verifiers: an encoder read as a cross-encoder, with aligned token types.

The small one stands on all-MiniLM-L6-v2, the large one on all-mpnet-base-v2.

Input: [CLS] claim [SEP] evidence [SEP]; the token type of a word is its side (claim 0, evidence 1) times eight plus
the kind that `engine.models.alignment` gives it. Output: three logits (supportive, editing required, irrelevant) from
the first state, the mean and the maximum over the claim, the mean over the evidence and the difference of the means.
Imported only where torch is wanted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

from engine.core.errors import ModelNotFound
from engine.models.alignment import KINDS, align
from engine.models.catalogue import EMBEDDER, installed_folder
from engine.models.embedder import DEFAULT, packaged_weights
from engine.models.loading import merge_adapter
from engine.models.memory import reading_a_model

MAX_TOKENS = 160
ADAPTER = "adapter_model.safetensors"  # low-rank factors, in peft's own layout
_ROWS, _TOKENS = 8, 16  # of an even batch
REST = "head.safetensors"  # head, token types, biases and norms, by parameter name


class EvidenceNetwork(nn.Module):
    """An encoder (BERT, MPNet) with sixteen token types and a three-way head."""

    def __init__(self, encoder: Any) -> None:
        """Wrap `encoder`; the types are added to its word embeddings, since MPNet has none of its own."""
        super().__init__()
        self.encoder = encoder
        width = encoder.config.hidden_size
        self.types = nn.Embedding(2 * KINDS, width)
        nn.init.normal_(self.types.weight, std=0.01)
        self.head = nn.Sequential(nn.Linear(5 * width, 256), nn.GELU(), nn.Dropout(0.1), nn.Linear(256, 3))

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, token_type_ids: torch.Tensor
    ) -> torch.Tensor:
        """Logits, shape (pairs, 3), from ids, mask and types of shape (pairs, tokens), on whatever device they are."""
        device = self.types.weight.device
        input_ids, attention_mask, token_type_ids = (
            tensor.to(device) for tensor in (input_ids, attention_mask, token_type_ids)
        )
        embeds = self.encoder.get_input_embeddings()(input_ids) + self.types(token_type_ids)
        states = self.encoder(inputs_embeds=embeds, attention_mask=attention_mask).last_hidden_state
        evidence = (token_type_ids >= KINDS).to(states.dtype) * attention_mask
        claim = attention_mask - evidence
        mean_claim, mean_evidence = _mean(states, claim), _mean(states, evidence)
        most = states.masked_fill(claim.unsqueeze(-1) == 0, -1e4).amax(1)
        features = [states[:, 0], mean_claim, most, mean_evidence, (mean_claim - mean_evidence).abs()]
        logits: torch.Tensor = self.head(torch.cat(features, dim=-1))
        return logits.float()


def _mean(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    weights = mask.to(states.dtype).unsqueeze(-1)
    return (states * weights).sum(1) / weights.sum(1).clamp(min=1.0)


Encoded = tuple[list[int], list[int]]


def encode(tokenizer: Any, pairs: Sequence[tuple[str, str]], limit: int = MAX_TOKENS) -> list[Encoded]:
    """Token ids and token types of each (claim, evidence) pair, at most `limit` tokens, the longer text cut first."""
    if not pairs:
        return []
    batch = tokenizer(
        [claim for claim, _ in pairs],
        [evidence for _, evidence in pairs],
        truncation="longest_first",
        max_length=limit,
        return_offsets_mapping=True,
    )
    rows = zip(pairs, batch["input_ids"], batch["offset_mapping"], strict=True)
    return [
        (ids, _types(claim, evidence, np.asarray(offsets), batch.sequence_ids(row)))
        for row, ((claim, evidence), ids, offsets) in enumerate(rows)
    ]


def _types(claim: str, evidence: str, offsets: Any, texts: Sequence[int | None]) -> list[int]:
    """Side times eight plus kind for each token; a special token has kind 0 and the side of the text before it."""
    mine, other = align(claim, evidence)
    sides = np.maximum.accumulate([text or 0 for text in texts])
    starts, real = offsets[:, 0], offsets[:, 1] > offsets[:, 0]
    kinds = np.where(sides == 0, mine[np.minimum(starts, len(mine) - 1)], other[np.minimum(starts, len(other) - 1)])
    types: list[int] = (sides * KINDS + np.where(real, kinds, 0)).tolist()
    return types


Batch = dict[str, torch.Tensor]


def collate(encoded: Sequence[Encoded]) -> Batch:
    """Padded tensors of shape (pairs, longest)."""
    rows = [torch.tensor([ids, [1] * len(ids), types]).T for ids, types in encoded]
    ids, mask, types = pad_sequence(rows, batch_first=True).unbind(-1)
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}


def even_batches(encoded: Sequence[Encoded]) -> Iterator[tuple[list[int], Batch]]:
    """Batches whose shape follows from the length of their pairs alone, each with the positions of its pairs.

    In bfloat16 the shape of a batch decides how its sums are rounded, which moved a probability by 0.003: so each has
    eight rows, empty ones at the end, and a whole number of sixteen tokens. A pair then has one result, whatever it is
    read with.
    """
    lengths = [-(-len(ids) // _TOKENS) * _TOKENS for ids, _ in encoded]
    for length in sorted(set(lengths)):
        alike = [i for i, own in enumerate(lengths) if own == length]
        for first in range(0, len(alike), _ROWS):
            rows = alike[first : first + _ROWS]
            batch = collate([encoded[i] for i in rows])
            missing = (0, length - batch["input_ids"].shape[1], 0, _ROWS - len(rows))
            yield rows, {name: nn.functional.pad(tensor, missing) for name, tensor in batch.items()}


def base_network(base: str = DEFAULT) -> tuple[EvidenceNetwork, Any]:
    """The untrained network on an embedder, no dropout in the encoder, and its tokenizer; raise `ModelNotFound`."""
    folder = packaged_weights() if base == DEFAULT else installed_folder(base, EMBEDDER)
    if folder is None:
        raise ModelNotFound(f"A verifier cannot use {base}: the model catalogue has no embedder of that name.")
    # Eager attention: the fused kernel's backward pass takes a third of the training time on a CPU.
    with reading_a_model():
        from transformers import AutoModel, AutoTokenizer

        encoder = AutoModel.from_pretrained(
            folder,
            attn_implementation="eager",
            add_pooling_layer=False,
            dtype=torch.float32,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
        tokenizer = AutoTokenizer.from_pretrained(folder)
    return EvidenceNetwork(encoder), tokenizer


def load_network(folder: Path) -> tuple[EvidenceNetwork, Any]:
    """The trained network in eval mode, adapter merged into the base, and the tokenizer; as many logits as trained."""
    from safetensors.torch import load_file

    config = json.loads((folder / "adapter_config.json").read_text(encoding="utf-8"))
    network, tokenizer = base_network(config["base_model_name_or_path"].rpartition("/")[2])
    network.encoder = merge_adapter(network.encoder, folder)
    rest = {name: tensor.float() for name, tensor in load_file(folder / REST).items()}
    logits, hidden = rest[f"head.{len(network.head) - 1}.weight"].shape
    network.head[-1] = nn.Linear(hidden, logits)
    unknown = network.load_state_dict(rest, strict=False).unexpected_keys
    if unknown:
        raise KeyError(f"{REST} has tensors that the network lacks: {', '.join(unknown)}")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return network.eval().requires_grad_(False).to(device), tokenizer
