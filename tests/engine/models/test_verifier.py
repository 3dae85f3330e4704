"""The embedded verifier: its logic with a scripted network, the shipped weights on cases of our own."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from functools import cache

import msgspec
import pytest
import torch

from engine.core.errors import ModelNotFound
from engine.models.alignment import KINDS, NAME, SMALLER
from engine.models.protocols import Entailment
from engine.models.verdicts import CLASSES, Thresholds
from engine.models.verifier import FOLDER, Calibration, EmbeddedVerifier, load_embedded, load_entailment, origin_of
from engine.models.verifier_network import ADAPTER, base_network, collate, encode, even_batches

torch.set_num_threads(1)


@cache
def untrained():
    return base_network()


def test_token_types_carry_side_and_kind():
    _, tokenizer = untrained()
    ((ids, types),) = encode(tokenizer, [("Carter paid 30", "She paid 40")])
    tokens = tokenizer.convert_ids_to_tokens(ids)
    found = dict(zip(tokens, types, strict=True))
    assert found["carter"] == 0  # opens the sentence, so its capital says nothing
    assert found["30"] == SMALLER and found["40"] == KINDS + SMALLER + 1
    assert types[0] == 0 and types[-1] == KINDS


def test_a_name_that_the_evidence_lacks_has_its_own_type():
    _, tokenizer = untrained()
    ((ids, types),) = encode(tokenizer, [("it was Carter", "it was Moore")])
    assert types[tokenizer.convert_ids_to_tokens(ids).index("carter")] == NAME


def test_a_long_text_on_either_side_is_cut_to_the_limit():
    _, tokenizer = untrained()
    encoded = encode(tokenizer, [("short claim", "word " * 400), ("word " * 400, "short evidence")], limit=40)
    assert [len(ids) for ids, _ in encoded] == [40, 40]


class ScriptedNetwork:
    """Logits from the token types: a number under its counterpart asks for an edit, no shared word is irrelevant."""

    calls = 0

    def __call__(self, input_ids, attention_mask, token_type_ids):
        self.calls += 1
        mine = token_type_ids * (token_type_ids < KINDS)
        edit = (mine == SMALLER).any(1)
        shared = ((mine == 1) | (mine == 2)).any(1)
        return torch.stack([4.0 * (shared & ~edit), 4.0 * edit, 4.0 * (~shared & ~edit)], dim=1)


def scripted(calibration: Calibration | None = None) -> EmbeddedVerifier:
    return EmbeddedVerifier(ScriptedNetwork(), untrained()[1], calibration or Calibration())


def test_verdicts_come_back_in_order_whatever_the_lengths():
    pairs = [
        ("Lind paid 30 euros", "Lind paid 40 euros."),
        ("Lind paid", "Long before that day, in the harbour, Lind paid for everything that the crew had eaten."),
        ("zebra", "Nothing of the kind."),
    ] * 30
    verifier = scripted()
    assert isinstance(verifier, Entailment)
    judged = verifier.judge(pairs)
    assert [one.verdict for one in judged] == ["editing_required", "supportive", "irrelevant"] * 30
    assert verifier.judge([]) == []
    assert verifier.entailment(pairs[:3]) == pytest.approx([0.018, 0.965, 0.018], abs=0.002)


def test_the_deciding_window_is_named():
    filler = "Some other words stand here and they say nothing that would matter to anyone at all. " * 12
    evidence = filler + "A zebra crossed."
    (judged,) = scripted().judge([("zebra", evidence)])
    start, end = judged.window
    assert judged.verdict == "supportive" and "zebra" in evidence[start:end] and judged.windows > 2


def test_thresholds_come_from_the_calibration():
    strict = Thresholds(supportive=0.99, editing_required=0.99)
    verifier = scripted(Calibration(thresholds=strict))
    assert verifier.judge([("Lind paid", "Lind paid.")])[0].verdict == "irrelevant"


def test_a_missing_folder_says_what_to_do(tmp_path):
    with pytest.raises(ModelNotFound, match="train it again"):
        load_embedded(tmp_path)


# The shipped weights


@pytest.fixture(scope="module")
def shipped():
    return load_entailment()


def test_the_shipped_files_are_small_and_complete():
    sizes = {path.name: path.stat().st_size for path in FOLDER.iterdir()}
    assert {"adapter_model.safetensors", "adapter_config.json", "head.safetensors", "thresholds.json"} <= set(sizes)
    assert "README.md" in sizes
    assert sum(sizes.values()) < 8_000_000


def test_the_shipped_calibration_is_sound():
    calibration = msgspec.json.decode((FOLDER / "thresholds.json").read_bytes(), type=Calibration)
    assert 0 < calibration.thresholds.supportive < 1 and 0 < calibration.thresholds.editing_required < 1
    assert {p.verdict for p in calibration.precisions} == set(CLASSES)
    assert all(0 <= p.share <= 1 and p.called > 0 for p in calibration.precisions)


OWN = [
    ("The kiln reached 1,240 degrees.", "After nine hours the kiln reached 1,240 degrees.", "supportive"),
    ("The kiln reached 940 degrees.", "After nine hours the kiln reached 1,240 degrees.", "editing_required"),
    ("The ferry was built in Bergen.", "The ferry was built in Gdansk in 1988.", "editing_required"),
    ("The ferry was built in 1988.", "The ferry was built in Gdansk in 1988.", "supportive"),
    ("Ida Brandt signed the lease.", "The weather in the valley was mild for most of the winter.", "irrelevant"),
    ("The invoice was not paid.", "The invoice was paid on 3 May.", "editing_required"),
    ("The glaze holds lead and it was fired twice.", "The glaze holds lead.", "irrelevant"),
    ("The mill closed after the flood.", "The mill closed before the flood.", "editing_required"),
]


def test_every_verdict_can_be_said_with_its_precision(shipped):
    said = shipped.note(shipped.judge([OWN[1][:2]])[0])
    assert re.search(r"by embedded, \d+% to \d+% \(by test set, 7 sets\) of its \w+(?: \w+)? verdicts are right", said)


def test_the_shipped_weights_settle_most_plain_cases(shipped):
    judged = shipped.judge([(claim, evidence) for claim, evidence, _ in OWN])
    right = sum(one.verdict == verdict for one, (_, _, verdict) in zip(judged, OWN, strict=True))
    assert right >= 6


def test_a_pair_gets_the_same_scores_alone_and_in_a_batch_in_both_number_formats(shipped):
    pairs = [(claim, evidence) for claim, evidence, _ in OWN]
    for verifier in (shipped, shipped.in_other_format()):
        for pair, one in zip(pairs, verifier.judge(pairs), strict=True):
            alone = verifier.judge([pair])[0]
            assert [alone.scores[c] for c in CLASSES] == pytest.approx([one.scores[c] for c in CLASSES], abs=1e-5)


def test_unrelated_sentences_around_the_evidence_leave_the_verdict(shipped):
    filler = "The town lies on a river. Its market is held on Thursdays. Many visitors come in autumn. " * 6
    pairs = [(claim, f"{filler}{evidence} {filler}") for claim, evidence, _ in OWN[:4]]
    judged = shipped.judge(pairs)
    assert sum(one.verdict == verdict for one, (_, _, verdict) in zip(judged, OWN[:4], strict=True)) >= 3


def test_the_adapter_is_added_to_the_matrices_of_its_base():
    from safetensors.torch import load_file

    from engine.models.verifier_network import load_network

    merged, base = load_network(FOLDER)[0].encoder, base_network()[0].encoder
    factors = load_file(FOLDER / ADAPTER)
    config = json.loads((FOLDER / "adapter_config.json").read_text())
    for name in ("encoder.layer.0.attention.self.query", "encoder.layer.5.output.dense"):
        up, down = (factors[f"base_model.model.{name}.lora_{side}.weight"].float() for side in "BA")
        change = config["lora_alpha"] / config["r"] * (up @ down)
        assert change.abs().max() > 0
        assert torch.equal(merged.get_submodule(name).weight, base.get_submodule(name).weight + change)


def test_collate_pads_with_a_mask():
    batch = collate([([1, 2, 3], [0, 1, 8]), ([4], [8])])
    assert batch["attention_mask"].tolist() == [[1, 1, 1], [1, 0, 0]]
    assert batch["input_ids"].tolist() == [[1, 2, 3], [4, 0, 0]]


def test_an_even_batch_has_eight_rows_of_sixteen_tokens_at_a_time():
    short, long = ([5] * 9, [0] * 9), ([6] * 17, [0] * 17)
    (alone, first), (others, second) = even_batches([short, long, short])
    assert (alone, others) == ([0, 2], [1])
    assert (first["input_ids"].shape, second["input_ids"].shape) == ((8, 16), (8, 32))
    assert first["attention_mask"].sum(1).tolist() == [9, 9, 0, 0, 0, 0, 0, 0]
    assert [len(rows) for rows, _ in even_batches([short] * 9)] == [8, 1]


def test_verdicts_are_frozen():
    judged = scripted().judge([("a b", "a b")])[0]
    assert replace(judged, windows=2).windows == 2
    with pytest.raises(AttributeError):
        judged.verdict = "irrelevant"


def test_a_shipped_verifier_is_named_by_its_published_base_and_the_hash_of_its_adapter():
    base, weights = origin_of("embedded")
    assert base == "sentence-transformers/all-MiniLM-L6-v2"
    assert weights == hashlib.sha256((FOLDER / "adapter_model.safetensors").read_bytes()).hexdigest()
    assert [origin_of(name)[0] for name in ("medium", "large")] == [
        "sentence-transformers/all-mpnet-base-v2",
        "Qwen/Qwen2.5-Coder-1.5B-Instruct",
    ]
    assert origin_of("an/nli-model") == origin_of("calibrated:leases") == ("", "")
