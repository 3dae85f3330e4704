"""The loss of a batch: targets by their part, and which passage a token comes from.

Citing takes two hops: a passage's tokens must know its number before an answer's tokens can fetch it. Linear heads
on the layers' outputs give the first hop a target of its own; they are thrown away after training.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.nn.functional import cross_entropy, linear
from transformers import Lfm2ForCausalLM

from engine.models.embedder import fast_bfloat16
from engine.train.batches import SOURCES, Batch

WEIGHTS = (0.0, 0.1, 1.0, 1.0, 0.3, 6.0, 6.0)  # by batches.CODES: none, prompt, answer, real, memory, cite, decide
EAGER_UP_TO = 320  # tokens; above, scaled_dot_product_attention is faster on the CPU
HEAD_LAYERS = ((2, False), (4, False), (4, True), (6, True))  # layer's output, of answers (else of passages)


def training_heads(model: Lfm2ForCausalLM) -> torch.nn.ModuleList:
    """Linear heads that name a token's source passage from a layer's output.

    Without a target for the first hop, 7 million tokens left citations at chance.
    """
    return torch.nn.ModuleList([torch.nn.Linear(model.config.hidden_size, SOURCES) for _ in range(len(HEAD_LAYERS))])


def source_loss(
    heads: torch.nn.ModuleList, hidden: Sequence[torch.Tensor], batch: Batch, apart: bool = False
) -> torch.Tensor:
    """Sum of the heads' mean cross-entropies (nats) over all tokens of passages and answers that have a source.

    `apart`: the heads alone learn. New heads on trained weights would otherwise undo what was learned.
    """
    sources = torch.from_numpy(batch.sources)[:, :-1]
    codes = torch.from_numpy(batch.codes)[:, :-1]
    total = torch.zeros(())
    for head, (layer, in_answer) in zip(heads, HEAD_LAYERS, strict=True):
        place = (sources > 0) & ((codes >= 2) if in_answer else (codes == 1))
        states = hidden[min(layer, len(hidden) - 1)][place]
        if len(states):
            states = states.detach() if apart else states
            total = total + cross_entropy(head(states).float(), sources[place])
    return total


def losses(
    model: Lfm2ForCausalLM,
    batch: Batch,
    generator: torch.Generator,
    heads: torch.nn.ModuleList | None = None,
    apart: bool = False,
) -> tuple[torch.Tensor, float, float]:
    """Weighted loss (nats), and for the curriculum the means over generated answers' and citations' tokens.

    Logits are computed where a target is, and for as many prompt tokens, drawn at random: most of what a prompt
    holds cannot be predicted and the vocabulary's matrix is a tenth of the work.
    With `heads` the loss of naming each token's source is added, times 0.3.
    """
    ids = torch.from_numpy(batch.ids)
    codes = torch.from_numpy(batch.codes)[:, 1:].long()
    attention = "eager" if ids.shape[1] <= EAGER_UP_TO else "sdpa"
    if model.config._attn_implementation != attention:
        model.set_attn_implementation(attention)
    targets = codes >= 2
    share = float(targets.sum()) / max(1.0, float((codes == 1).sum()))
    drawn = (codes == 1) & (torch.rand(codes.shape, generator=generator) < share)
    place = targets | drawn
    with torch.autocast("cpu", torch.bfloat16, enabled=fast_bfloat16()):
        out = model.model(input_ids=ids[:, :-1], use_cache=False, output_hidden_states=heads is not None)
        logits = linear(out.last_hidden_state[place], model.lm_head.weight)
        naming = source_loss(heads, out.hidden_states, batch, apart) if heads is not None else torch.zeros(())
    each = cross_entropy(logits.float(), ids[:, 1:][place], reduction="none")
    weight = torch.tensor(WEIGHTS)[codes[place]]
    answers, citations = (float(each[codes[place] == code].mean().detach()) for code in (2, 5))
    return (each * weight).sum() / targets.sum().clamp(min=1) + 0.3 * naming, answers, citations
