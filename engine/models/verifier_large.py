"""The large verifier: Qwen2.5-Coder-1.5B with a trained low-rank adapter (Hu et al. 2021), by name `large`.

One closed question a pair, answered by the likelihood of three letters. Evidence is read in windows of up to 320 words,
so that a page of ten sentences is one question. assets/models/verifier_large/README.md says how it was trained and how
well it does; thresholds.json has its calibration. 1.6 s for a claim and a sentence on two cores.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from engine.core.errors import ModelNotFound
from engine.core.files import ASSETS
from engine.core.values import decoded
from engine.models.alignment import clean
from engine.models.catalogue import entry_of
from engine.models.protocols import Floats
from engine.models.verdicts import softmax
from engine.models.verifier import LARGE, VERIFIERS, Calibration, Pairs, TrainedVerifier

BASE = VERIFIERS[LARGE]
FOLDER = ASSETS / "models" / "verifier_large"
WORDS = 320
_BATCH = 8
_LEAST = 1e-6  # share of a letter under which its logarithm goes no lower

# The words that it was trained with; another wording would be another verifier.
LETTERS = ("A", "B", "C")
ASKED = (
    "Evidence: {evidence}\n\nClaim: {claim}\n\nA: the evidence bears out the whole claim\n"
    "B: the evidence contradicts the claim\nC: the evidence does not settle the claim\nAnswer with one letter."
)


def questions(tokenizer: Any, pairs: Sequence[tuple[str, str]]) -> list[list[int]]:
    """The token ids of the closed question about each (claim, evidence) pair, up to the place of the letter."""
    turns = [[{"role": "user", "content": ASKED.format(claim=c, evidence=e)}] for c, e in pairs]
    texts = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    ids: list[list[int]] = tokenizer(texts, add_special_tokens=False)["input_ids"]
    return ids


def letter_logits(module: Any, head: Any, tokenizer: Any, ids: Sequence[list[int]]) -> Any:
    """Logits of the three letters after each question, a tensor of shape (questions, 3).

    `module` gives hidden states, `head` is the matrix of output embeddings. Padding follows the text, and later tokens
    are not seen by earlier ones, so that no mask is needed.
    """
    import torch

    device, width = head.device, max(map(len, ids))
    padded = torch.tensor([one + [0] * (width - len(one)) for one in ids], device=device)
    states = module(input_ids=padded, use_cache=False).last_hidden_state
    last = states[torch.arange(len(ids)), torch.tensor([len(one) - 1 for one in ids], device=device)]
    letters = [tokenizer.encode(letter, add_special_tokens=False)[0] for letter in LETTERS]
    return (last.to(head.dtype) @ head[letters].T).float()


def log_shares(logits: Floats) -> Floats:
    """Logarithms of the letters' shares, which is what the calibration was fitted on; shape (pairs, 3)."""
    result: Floats = np.log(softmax(logits) + _LEAST).astype(np.float32)
    return result


class LargeVerifier(TrainedVerifier):
    """The adapted model behind the `Entailment` protocol; its logits are logarithms of the letters' shares."""

    def __init__(self, module: Any, tokenizer: Any, calibration: Calibration) -> None:
        """Wrap a causal module in eval mode and its tokenizer."""
        super().__init__(calibration, LARGE, _BATCH, WORDS)
        self._module, self._tokenizer = module, tokenizer

    def _forward(self, pairs: Pairs) -> Floats:
        import torch

        ids = questions(self._tokenizer, [(clean(claim), clean(evidence)) for claim, evidence in pairs])
        head = self._module.get_output_embeddings().weight
        with self._lock, torch.inference_mode():
            logits = letter_logits(self._module.model, head, self._tokenizer, ids)
        return log_shares(logits.cpu().numpy())


def load_large() -> LargeVerifier:
    """The large verifier on the installed model; raise `ModelNotFound` with the command that installs it."""
    from engine.models.huggingface import HuggingFaceModel

    base = entry_of(BASE)
    if not base.installed:
        raise ModelNotFound(
            f"The large verifier needs {BASE}, which is not installed. Run: {base.how_to_install}, or use embedded."
        )
    try:
        calibration = decoded((FOLDER / "thresholds.json").read_bytes(), Calibration)
    except (OSError, msgspec.DecodeError) as error:
        raise ModelNotFound(f"{FOLDER} cannot be read ({error}). Restore it, or use embedded.") from error
    model = HuggingFaceModel.load(base.folder, called=LARGE, adapter=FOLDER)
    return LargeVerifier(model.module, model.tokenizer, calibration)
