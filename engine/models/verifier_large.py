"""The large verifier: Qwen2.5-Coder-1.5B with a trained low-rank adapter (Hu et al. 2021), by name `large`.

One closed question a pair, answered by the likelihood of three letters. Evidence is read in windows of up to 320 words,
so that a page of ten sentences is one question, and once for all claims about it that are asked together.
assets/models/verifier_large/README.md says how it was trained and how well it does; thresholds.json has its
calibration. 1.6 s for a claim and a sentence on two cores.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from engine.core.errors import ModelNotFound, raised_as
from engine.core.files import ASSETS
from engine.core.values import decoded
from engine.models.alignment import clean
from engine.models.catalogue import entry_of
from engine.models.offsets import common_length
from engine.models.protocols import Floats
from engine.models.verdicts import softmax
from engine.models.verifier import LARGE, VERIFIERS, Calibration, Pairs, TrainedVerifier

BASE = VERIFIERS[LARGE]
FOLDER = ASSETS / "models" / "verifier_large"
WORDS = 320
_BATCH = 16
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

    `module` gives hidden states, `head` is the matrix of output embeddings. What all questions begin with is read once.
    Padding follows the text, and later tokens are not seen by earlier ones, so that no mask is needed.
    """
    import torch

    device, width = head.device, max(map(len, ids))
    padded = torch.tensor([one + [0] * (width - len(one)) for one in ids], device=device)
    shared = min((common_length(ids[0], one) for one in ids[1:]), default=0)
    read = None
    if shared:
        read = module(input_ids=padded[:1, :shared], use_cache=True).past_key_values
        read.batch_repeat_interleave(len(ids))
    states = module(input_ids=padded[:, shared:], past_key_values=read, use_cache=bool(shared)).last_hidden_state
    ends = torch.tensor([len(one) - shared - 1 for one in ids], device=device)
    last = states[torch.arange(len(ids)), ends]
    letters = [tokenizer.encode(letter, add_special_tokens=False)[0] for letter in LETTERS]
    return (last.to(head.dtype) @ head[letters].T).float()


def together(evidence: Sequence[str]) -> list[list[int]]:
    """The places of the questions that are read together: those with the same evidence, and all others at once.

    >>> together(["a", "b", "a", "c"])
    [[0, 2], [1, 3]]
    """
    places: defaultdict[str, list[int]] = defaultdict(list)
    for place, text in enumerate(evidence):
        places[text].append(place)
    several = [group for group in places.values() if len(group) > 1]
    alone = [group[0] for group in places.values() if len(group) == 1]
    return [*several, alone] if alone else several


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

    def order(self, pair: tuple[str, str]) -> tuple[int, str, int]:
        """The claims about one evidence next to each other."""
        claim, evidence = pair
        return -len(evidence), evidence, -len(claim)

    def _forward(self, pairs: Pairs) -> Floats:
        import torch

        ids = questions(self._tokenizer, [(clean(claim), clean(evidence)) for claim, evidence in pairs])
        head, logits = self._module.get_output_embeddings().weight, np.empty((len(pairs), 3), np.float32)
        for rows in together([evidence for _, evidence in pairs]):
            with self._lock, torch.inference_mode():
                found = letter_logits(self._module.model, head, self._tokenizer, [ids[i] for i in rows])
            logits[rows] = found.cpu().numpy()
        return log_shares(logits)


def load_large() -> LargeVerifier:
    """The large verifier on the installed model; raise `ModelNotFound` with the command that installs it."""
    from engine.models.huggingface import HuggingFaceModel

    base = entry_of(BASE)
    if not base.installed:
        raise ModelNotFound(
            f"The large verifier needs {BASE}, which is not installed. {base.how_to_install}. Or use embedded."
        )
    way_out = "Restore it, or use embedded."
    with raised_as(ModelNotFound, f"{FOLDER} cannot be read", way_out, OSError, msgspec.DecodeError):
        calibration = decoded((FOLDER / "thresholds.json").read_bytes(), Calibration)
    model = HuggingFaceModel.load(base.folder, called=LARGE, adapter=FOLDER)
    return LargeVerifier(model.module, model.tokenizer, calibration)
