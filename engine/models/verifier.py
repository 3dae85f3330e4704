"""Verifiers of evidence: the embedded one, the large one (verifier_large.py), classifiers by id or folder (ARE, 4.3).

Three verdicts: supportive, editing required, irrelevant (also where the evidence supports a part only). `embedded` is
all-MiniLM-L6-v2 with a trained low-rank adapter; assets/models/verifier/README.md says on what it was trained and how
well it does. Calibration and thresholds were fitted on dev halves (thresholds.json). Others: any NLI classifier whose
config names its labels, and TRUE (Honovich et al. 2022). Left out: a logistic layer on counts of differing numbers,
names and negations, which gained nothing; models that need remote code.
"""

from __future__ import annotations

import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cache
from pathlib import Path
from typing import Any, Self

import msgspec
import numpy as np

from engine.core.errors import CannotDo, ModelError, ModelNotFound, raised_as
from engine.core.files import ASSETS, EMBEDDED, sha256_of
from engine.core.metrics import Entails
from engine.core.progress import Watch
from engine.core.values import Value, decoded
from engine.english.notation import in_one_notation
from engine.models.alignment import clean
from engine.models.choices import fast_bfloat16
from engine.models.memory import CLOSE_OTHERS, SAFE, is_out_of_memory, loaded_once, loading
from engine.models.protocols import Entailment, Floats, Judged
from engine.models.server import SERVED
from engine.models.subject import read_for
from engine.models.verdicts import CLASSES, EVEN, WINDOW_WORDS, Precision, Thresholds, combine, softmax, verdict_note

# Any classifier of one window as a verifier of evidence of any length.

Pairs = Sequence[tuple[str, str]]
Classify = Callable[[Pairs], Floats]


class WindowedVerifier:
    """A classifier of (claim, window) pairs behind the `Entailment` protocol.

    `classify` gives class probabilities of shape (pairs, 3) in the order supportive, editing required, irrelevant.
    """

    def __init__(
        self,
        classify: Classify,
        name: str,
        thresholds: Thresholds = EVEN,
        batch_size: int = 16,
        words: int = WINDOW_WORDS,
        precisions: Sequence[Precision] = (),
    ) -> None:
        """Wrap `classify`, which is called with at most `batch_size` pairs at a time; `words` of a window, at most."""
        self.classify, self.thresholds, self.batch_size, self.words = classify, thresholds, batch_size, words
        self.name, self._precisions = name, precisions
        self._known: dict[tuple[str, str], Floats] | None = None

    def remembering(self) -> Self:
        """The same classifier with a memory of its own: it reads no window twice for the same claim."""
        other = copy(self)
        other._known = {}
        return other

    def note(self, judged: Judged) -> str:
        """The words shown with one of its verdicts."""
        return verdict_note(judged, self.name, self._precisions)

    def judge(self, pairs: Pairs, watch: Watch = Watch()) -> list[Judged]:
        """Judge (claim, evidence) pairs in order, each with the window that decided."""
        return [combine(rows, spans, self.thresholds) for rows, spans in self.by_window(pairs, watch)]

    def entailment(self, pairs: Pairs, watch: Watch = Watch()) -> Floats:
        """Probability in [0, 1] that the evidence bears out the claim: the maximum over its windows."""
        return np.array([rows[:, 0].max() for rows, _ in self.by_window(pairs, watch)], dtype=np.float32)

    def by_window(self, pairs: Pairs, watch: Watch = Watch()) -> list[tuple[Floats, list[tuple[int, int]]]]:
        """For each pair, the class probabilities of its windows, shape (windows, 3), and their spans."""
        read = [read_for(claim, evidence, self.words) for claim, evidence in pairs]
        flat = [in_one_notation(c, text) for (c, _), found in zip(pairs, read, strict=True) for _, text in found]
        known = {} if self._known is None else self._known
        new = [pair for pair in dict.fromkeys(flat) if pair not in known]
        known.update(zip(new, self._in_batches(self.classify, new, watch), strict=True))
        probabilities = np.array([known[pair] for pair in flat])
        parts = np.split(probabilities, np.cumsum(list(map(len, read)))[:-1]) if pairs else []
        return [(rows, [span for span, _ in found]) for rows, found in zip(parts, read, strict=True)]

    def order(self, pair: tuple[str, str]) -> Any:
        """The key by which pairs are sorted into batches: longest first, so that little padding is computed."""
        return -sum(map(len, pair))

    def _in_batches(self, classify: Classify, pairs: Pairs, watch: Watch = Watch()) -> Floats:
        """Rows of three numbers for each pair, in order."""
        result = np.zeros((len(pairs), 3), dtype=np.float32)
        order = sorted(range(len(pairs)), key=lambda i: self.order(pairs[i]))
        for first in range(0, len(order), self.batch_size):
            watch.step("verify", first, len(order))
            rows = order[first : first + self.batch_size]
            result[rows] = classify([pairs[i] for i in rows])
        return result


# From the hub. Label order is read from `config.id2label`, never assumed; TRUE reads "premise: ... hypothesis: ..." and
# writes 1 or 0.

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
            f"The labels of this model ({names}) do not show which one means entailment. "
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
    raise CannotDo("This model's tokenizer encodes 1 and 0 alike. Choose a model that answers 1 or 0.")


def _limit(tokenizer: Any) -> int:
    return min(int(tokenizer.model_max_length), 512)


def load_nli(name: str) -> Entailment:
    """Load a hub id or folder; raise `ModelNotFound` with the way out, `ModelError` where the labels are unnamed."""
    if name.startswith(SERVED):
        raise CannotDo(
            f"{name} cannot be the verifier: a served model gives no probabilities of verdicts. Use embedded or an NLI "
            "model, and the served model as a second opinion (--judge)."
        )
    with loading(f"The verifier {name}", "Give a folder or hub id of an NLI model with safetensors, or use embedded."):
        from transformers import AutoConfig, AutoModelForSeq2SeqLM, AutoModelForSequenceClassification, AutoTokenizer

        config = AutoConfig.from_pretrained(name, trust_remote_code=False)
        named = any("Classification" in a for a in config.architectures or ())
        writes = bool(config.is_encoder_decoder) and not named
        kind = AutoModelForSeq2SeqLM if writes else AutoModelForSequenceClassification
        model = kind.from_pretrained(name, trust_remote_code=False, **SAFE).eval()
        tokenizer = AutoTokenizer.from_pretrained(name, trust_remote_code=False)
    classify = true_classifier(model, tokenizer) if writes else sequence_classifier(model, tokenizer)
    return WindowedVerifier(classify, name)


FOLDER = ASSETS / "models" / "verifier"
MEDIUM, LARGE = "medium", "large"
CALIBRATED = "calibrated:"  # and the name of a calibration on a person's own pairs
# The shipped verifiers, weakest and fastest first, and the catalogue's name of the model that each runs on.
VERIFIERS = {EMBEDDED: "", MEDIUM: "all-mpnet-base-v2", LARGE: "qwen2.5-coder-1.5b"}
_BATCH = 64


class Calibration(Value, frozen=True):
    """Calibration from logits to verdicts, fitted on dev halves: p = softmax(scale * logits + bias), 3 values each."""

    scale: tuple[float, ...] = (1.0, 1.0, 1.0)
    bias: tuple[float, ...] = (0.0, 0.0, 0.0)
    thresholds: Thresholds = EVEN
    precisions: tuple[Precision, ...] = ()

    def probabilities(self, logits: Floats) -> Floats:
        """Calibrated class probabilities, shape (pairs, 3)."""
        return softmax(logits * np.asarray(self.scale, np.float32) + np.asarray(self.bias, np.float32))


class TrainedVerifier(WindowedVerifier, ABC):
    """A trained verifier of ours: `_forward` gives the logits of one batch of pairs."""

    def __init__(
        self, calibration: Calibration, name: str, batch_size: int = _BATCH, words: int = WINDOW_WORDS
    ) -> None:
        super().__init__(self._read, name, calibration.thresholds, batch_size, words, calibration.precisions)
        self.calibration, self._lock = calibration, threading.Lock()

    def logits(self, pairs: Pairs) -> Floats:
        """The model's logits for pairs whose evidence is one window, shape (pairs, 3)."""
        return self._in_batches(self._forward, pairs)

    def _read(self, pairs: Pairs) -> Floats:
        return self.calibration.probabilities(self._forward(pairs))

    @abstractmethod
    def _forward(self, pairs: Pairs) -> Floats:
        """Logits of one batch of pairs, shape (pairs, 3)."""


class EmbeddedVerifier(TrainedVerifier):
    """The trained network behind the `Entailment` protocol."""

    def __init__(self, network: Any, tokenizer: Any, calibration: Calibration, name: str = EMBEDDED) -> None:
        """Wrap an `EvidenceNetwork` in eval mode."""
        import torch

        super().__init__(calibration, name)
        self._network, self._tokenizer = network, tokenizer
        self._bfloat16 = fast_bfloat16() and not torch.cuda.is_available()

    def in_other_format(self) -> EmbeddedVerifier:
        """The same network in float32 where this one multiplies bfloat16, and the other way round."""
        other = EmbeddedVerifier(self._network, self._tokenizer, self.calibration, self.name)
        other._lock, other._bfloat16 = self._lock, not self._bfloat16
        return other

    def _forward(self, pairs: Pairs) -> Floats:
        """Logits of one batch; bfloat16 where the processor has it."""
        import torch

        from engine.models.verifier_network import collate, encode, even_batches

        encoded = encode(self._tokenizer, [(clean(claim), clean(evidence)) for claim, evidence in pairs])
        batches = even_batches(encoded) if self._bfloat16 else [([*range(len(pairs))], collate(encoded))]
        logits = np.zeros((len(pairs), 3), dtype=np.float32)
        with self._lock, torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=self._bfloat16):
            for rows, batch in batches:
                logits[rows] = self._network(**batch)[: len(rows)].cpu().numpy()
        return logits


def load_embedded(folder: Path = FOLDER, name: str = EMBEDDED) -> EmbeddedVerifier:
    """The verifier from its shipped folder on its base; raise `ModelNotFound` with the way out.

    Raises `ModelError` where the device has no memory left for it.
    """
    from engine.models.verifier_network import load_network

    failures = (OSError, msgspec.DecodeError, KeyError, RuntimeError)
    way_out = "Restore that folder, or train it again: python -m training.verifier --data DIR."
    with raised_as(ModelNotFound, f"The {name} verifier in {folder} cannot be read", way_out, *failures):
        calibration = decoded((folder / "thresholds.json").read_bytes(), Calibration)
        try:
            network, tokenizer = load_network(folder)
        except (RuntimeError, MemoryError) as error:
            if is_out_of_memory(error):
                raise ModelError(f"The device is out of memory for the {name} verifier. {CLOSE_OTHERS}") from error
            raise
    return EmbeddedVerifier(network, tokenizer, calibration, name)


def remembering(verifier: Entailment) -> Entailment:
    """The verifier with a memory for one check, of the windows that it has read; others than windowed ones as is."""
    return verifier.remembering() if isinstance(verifier, WindowedVerifier) else verifier


def entails_by(verifier: Entailment) -> Entails:
    """The verifier as the formulas ask it: (claim, evidence) pairs to probabilities in [0, 1]."""
    return lambda pairs: [float(score) for score in verifier.entailment(pairs)]


def load_entailment(name: str = EMBEDDED) -> Entailment:
    """A verifier by name: `embedded`, `medium`, `large`, a hub id or folder of an NLI model, or `calibrated:NAME`."""
    if name.startswith(CALIBRATED):
        from engine.models.calibration import load_calibrated

        return load_calibrated(name)  # the pairs may have been labelled anew since
    return _loaded(name)


@cache
def origin_of(name: str) -> tuple[str, str]:
    """The published base of a shipped verifier and the SHA-256 of its trained adapter; empty for any other."""
    if name not in VERIFIERS:
        return "", ""
    folder = _folder(name)
    config = msgspec.json.decode((folder / "adapter_config.json").read_bytes())
    return config["base_model_name_or_path"], sha256_of(folder / "adapter_model.safetensors")


def _folder(name: str) -> Path:
    return FOLDER if name == EMBEDDED else FOLDER.with_name(f"verifier_{name}")


@loaded_once
def _loaded(name: str) -> Entailment:
    """A verifier's model, loaded once a process."""
    if name in (EMBEDDED, MEDIUM):
        return load_embedded(_folder(name), name)
    if name == LARGE:
        from engine.models.verifier_large import load_large

        return load_large()
    return load_nli(name)
