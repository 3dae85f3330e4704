"""The large verifier's question, shares and windows on a tiny model of its base's shape; its shipped files."""

import json

import msgspec
import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from engine.core.errors import ModelNotFound
from engine.core.values import decoded
from engine.models.protocols import Judged
from engine.models.verdicts import CLASSES
from engine.models.verifier import Calibration, load_entailment
from engine.models.verifier_large import ASKED, FOLDER, LETTERS, LargeVerifier, log_shares
from tests.tiny import tiny_model

PAIRS = [
    ("The bridge was built in 1874.", "Hanna Lind built the bridge in 1874."),
    ("The mill closed.", "The mill grinds barley. Its wheel turns twice a minute, and boats pass it by a lock."),
    ("A kiln burned oak.", "It was repaired in 1931."),
]


@pytest.fixture(scope="module")
def model():
    return tiny_model("qwen2")


@pytest.fixture(scope="module")
def verifier(model):
    return LargeVerifier(model.module, model.tokenizer, Calibration())


def asked_alone(model, claim, evidence):
    """The three letters' probabilities by one whole forward, as the field's textbooks have it."""
    turn = [{"role": "user", "content": ASKED.format(claim=claim, evidence=evidence)}]
    text = model.tokenizer.apply_chat_template(turn, tokenize=False, add_generation_prompt=True)
    ids = model.tokenizer(text, add_special_tokens=False, return_tensors="pt")["input_ids"]
    letters = [model.tokenizer.encode(letter, add_special_tokens=False)[0] for letter in LETTERS]
    with torch.inference_mode():
        every = torch.log_softmax(model.module(input_ids=ids).logits[0, -1].double(), dim=-1)[letters]
    return (every - torch.logsumexp(every, dim=0)).exp().numpy()


def test_the_shares_are_those_of_a_whole_forward(model, verifier):
    found = np.exp(verifier.logits(PAIRS))
    wanted = [asked_alone(model, claim, evidence) for claim, evidence in PAIRS]
    np.testing.assert_allclose(found, wanted, atol=5e-5)


def test_a_pair_has_the_same_shares_alone_and_among_longer_ones(verifier):
    together = verifier.logits(PAIRS)
    alone = np.concatenate([verifier.logits([pair]) for pair in PAIRS])
    np.testing.assert_allclose(together, alone, atol=5e-5)


def test_evidence_that_several_claims_share_is_read_once(model, verifier, monkeypatch):
    evidence = "Hanna Lind built the bridge in 1874, after the flood had taken the old one away."
    pairs = [("The bridge was built in 1874.", evidence), PAIRS[1], ("A flood came.", evidence), PAIRS[2]]
    read, whole = [], model.module.model.forward
    monkeypatch.setattr(model.module.model, "forward", lambda **given: read.append(given) or whole(**given))
    found = np.exp(verifier.logits(pairs))
    tokens = [given["input_ids"].numel() for given in read]
    np.testing.assert_allclose(found, [asked_alone(model, *pair) for pair in pairs], atol=5e-5)
    assert len(tokens) == 4 and tokens[0] > len(model.tokenizer(evidence)["input_ids"])


def test_log_shares_by_hand():
    shares = np.exp(log_shares(np.log(np.array([[1.0, 2.0, 1.0], [30.0, 10.0, 60.0]], np.float32)) + 7))
    np.testing.assert_allclose(shares, [[0.25, 0.5, 0.25], [0.3, 0.1, 0.6]], atol=1e-5)


def test_a_page_of_ten_sentences_is_read_at_once(verifier):
    page = " ".join(f"Sentence {n} says that the weir was lowered by {n} feet in spring." for n in range(10))
    judged = verifier.judge([("The weir was lowered.", page)])[0]
    assert set(judged.scores) == set(CLASSES) and sum(judged.scores.values()) == pytest.approx(1.0)
    assert verifier.entailment([("The weir was lowered.", page)])[0] == pytest.approx(judged.scores["supportive"])


def test_without_its_base_it_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setenv("GROUNDWORK_MODELS", str(tmp_path))
    with pytest.raises(ModelNotFound, match=r"models install qwen2.5-coder-1.5b"):
        load_entailment("large")


def test_the_shipped_files_fit_together():
    config = json.loads((FOLDER / "adapter_config.json").read_text())
    factors = load_file(FOLDER / "adapter_model.safetensors")
    assert {name.split(".")[-3] for name in factors} == set(config["target_modules"])
    assert {tensor.shape[0] for name, tensor in factors.items() if "lora_A" in name} == {config["r"]}
    calibration = msgspec.json.decode((FOLDER / "thresholds.json").read_bytes(), type=Calibration)
    assert all(scale > 0 for scale in calibration.scale)
    assert {p.verdict for p in calibration.precisions} == set(CLASSES)


def test_its_verdicts_say_how_often_they_are_right(model):
    calibration = decoded((FOLDER / "thresholds.json").read_bytes(), Calibration)
    note = LargeVerifier(model.module, model.tokenizer, calibration).note(
        Judged("supportive", {"supportive": 0.9, "editing_required": 0.05, "irrelevant": 0.05})
    )
    assert note.startswith("supportive by large, ") and note.endswith("of its supportive verdicts are right")
