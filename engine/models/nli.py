"""Verifiers from the hub behind the `Entailment` protocol: three-way NLI classifiers and T5-style TRUE models.

TRUE (Honovich et al. 2022) is a T5 that reads "premise: ... hypothesis: ..." and writes 1 or 0. Any sequence
classifier works whose config names its labels: their order is read from `config.id2label`, never assumed. Evidence
longer than a window is read in windows, thresholds 0.5 (`engine.models.windowed`). Left out: models that need remote
code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from engine.errors import CannotDo, ModelError, ModelNotFound, first_line
from engine.models.lock import LOADING
from engine.models.protocols import Entailment, Floats
from engine.models.verdicts import CLASSES
from engine.models.windowed import Classify, WindowedVerifier

_NAMES = {
    "supportive": r"entail|support|true|consistent|agree|yes",
    "editing_required": r"contradict|refut|false|disagree|^no$",
    "irrelevant": r"neutral|not.?enough|nei|unrelated|irrelevant|unverif|no[nt].?entail|unsupport|inconsistent",
}


def label_order(id2label: Mapping[int, str]) -> list[int]:
    """The class (0 supportive, 1 editing required, 2 irrelevant) of each output of a classifier.

    >>> label_order({0: "CONTRADICTION", 1: "NEUTRAL", 2: "ENTAILMENT"})
    [1, 2, 0]

    Two-way models give [0, 2] or [2, 0]. Raises `ModelError` where the names do not say which is which.
    """
    order = [_class_of(id2label[i]) for i in sorted(id2label)]
    if None in order or 0 not in order or len(set(order)) != len(order) or len(order) < 2:
        names = ", ".join(id2label[i] for i in sorted(id2label))
        raise ModelError(
            f"The labels of this model ({names}) do not say which means entailment. "
            "Choose a natural language inference model whose config names its labels."
        )
    return [index for index in order if index is not None]


def _class_of(label: str) -> int | None:
    """The class that a label's name means; the negated forms first, since they contain the plain ones."""
    name = label.strip().lower().replace("_", " ")
    for wanted in reversed(CLASSES):
        if re.search(_NAMES[wanted], name):
            return CLASSES.index(wanted)
    return None


def sequence_classifier(model: Any, tokenizer: Any) -> Classify:
    """Class probabilities of a sequence-classification model; evidence is the premise, the claim the hypothesis."""
    import torch

    order = label_order({int(i): str(label) for i, label in model.config.id2label.items()})

    def classify(pairs: Sequence[tuple[str, str]]) -> Floats:
        texts = [evidence for _, evidence in pairs], [claim for claim, _ in pairs]
        inputs = tokenizer(
            *texts, truncation="longest_first", max_length=_limit(tokenizer), padding=True, return_tensors="pt"
        )
        with torch.inference_mode():
            own = torch.softmax(model(**inputs.to(model.device)).logits.float(), dim=-1).cpu().numpy()
        result = np.zeros((len(pairs), 3), dtype=np.float32)
        result[:, order] = own
        return result

    return classify


def true_classifier(model: Any, tokenizer: Any) -> Classify:
    """P("1") against P("0") as what is written first by a T5-style TRUE model; it knows no contradiction."""
    import torch

    shared, one, zero = first_difference(*(tokenizer(d, add_special_tokens=False)["input_ids"] for d in "10"))
    prefix = [model.config.decoder_start_token_id, *shared]

    def classify(pairs: Sequence[tuple[str, str]]) -> Floats:
        texts = [f"premise: {evidence} hypothesis: {claim}" for claim, evidence in pairs]
        inputs = tokenizer(texts, truncation=True, max_length=_limit(tokenizer), padding=True, return_tensors="pt")
        start = torch.tensor([prefix] * len(pairs), device=model.device)
        with torch.inference_mode():
            logits = model(**inputs.to(model.device), decoder_input_ids=start).logits[:, -1, [one, zero]]
        yes, no = torch.softmax(logits.float(), dim=-1).cpu().numpy().T
        return np.stack([yes, np.zeros_like(yes), no], axis=1)

    return classify


def first_difference(one: Sequence[int], zero: Sequence[int]) -> tuple[list[int], int, int]:
    """The ids that "1" and "0" share at their start, and the first id of each that differs.

    T5 writes "1" as one token and "0" as a blank and a digit, so the last token alone would compare the wrong two.
    """
    for i, (a, b) in enumerate(zip(one, zero, strict=False)):
        if a != b:
            return list(one[:i]), a, b
    raise CannotDo("This model's tokenizer writes 1 and 0 alike. Choose a model that answers 1 or 0.")


def _limit(tokenizer: Any) -> int:
    return min(int(tokenizer.model_max_length), 512)


def load_nli(name: str) -> Entailment:
    """Load a hub id or folder; raise `ModelNotFound` with the way out, `ModelError` where the labels are unnamed."""
    try:
        with LOADING:
            from transformers import (
                AutoConfig,
                AutoModelForSeq2SeqLM,
                AutoModelForSequenceClassification,
                AutoTokenizer,
            )

            config = AutoConfig.from_pretrained(name, trust_remote_code=False)
            named = any("Classification" in a for a in config.architectures or ())
            writes = bool(config.is_encoder_decoder) and not named
            kind = AutoModelForSeq2SeqLM if writes else AutoModelForSequenceClassification
            model = kind.from_pretrained(name, trust_remote_code=False, use_safetensors=True).eval()
            tokenizer = AutoTokenizer.from_pretrained(name, trust_remote_code=False)
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise ModelNotFound(
            f"The verifier {name} cannot be loaded ({first_line(error)}). "
            "Give a folder or hub id of an NLI model with safetensors, or use embedded."
        ) from error
    classify = true_classifier(model, tokenizer) if writes else sequence_classifier(model, tokenizer)
    return WindowedVerifier(classify, name)
