"""Hub verifiers on tiny random models made from configs: label order, windows, TRUE's two tokens."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.core.errors import Cancelled, CannotDo, ModelError, ModelNotFound
from engine.core.progress import Watch
from engine.models.protocols import Entailment
from engine.models.verifier import (
    WindowedVerifier,
    first_difference,
    label_order,
    load_nli,
    remembering,
    sequence_classifier,
    true_classifier,
)
from tests.tiny import tiny_tokenizer

PAIRS = [
    ("The bridge was built in 1874.", "Hanna Lind built the bridge in 1874."),
    ("The product is red.", "The crude product is dissolved in hot water and left to cool."),
    ("It cools.", "x"),
]


@pytest.mark.parametrize(
    ("labels", "order"),
    [
        (["entailment", "neutral", "contradiction"], [0, 2, 1]),
        (["contradiction", "entailment", "neutral"], [1, 0, 2]),
        (["SUPPORTS", "REFUTES", "NOT ENOUGH INFO"], [0, 1, 2]),
        (["not_entailment", "entailment"], [2, 0]),
        (["entailed", "not-entailed"], [0, 2]),
        (["disagree", "agree", "unrelated"], [1, 0, 2]),
    ],
)
def test_label_order_is_read_from_the_names(labels, order):
    assert label_order(dict(enumerate(labels))) == order


@pytest.mark.parametrize("labels", [["LABEL_0", "LABEL_1", "LABEL_2"], ["neutral", "contradiction"], ["entailment"]])
def test_unnamed_labels_are_refused(labels):
    with pytest.raises(ModelError, match="do not show"):
        label_order(dict(enumerate(labels)))


def classifier(labels: list[str]):
    from transformers import LlamaConfig, LlamaForSequenceClassification

    tokenizer = tiny_tokenizer()
    tokenizer.pad_token = "<pad>"
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=384,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        pad_token_id=0,
        id2label=dict(enumerate(labels)),
        initializer_range=0.5,
    )
    return LlamaForSequenceClassification(config).eval(), tokenizer


def test_two_configs_that_order_their_labels_otherwise_agree_once_read():
    one, tokenizer = classifier(["entailment", "neutral", "contradiction"])
    other, _ = classifier(["contradiction", "entailment", "neutral"])
    with torch.no_grad():
        other.score.weight.copy_(one.score.weight[[2, 0, 1]])
    first, second = sequence_classifier(one, tokenizer)(PAIRS), sequence_classifier(other, tokenizer)(PAIRS)
    np.testing.assert_allclose(first, second, atol=1e-6)
    assert first.std() > 0.01
    np.testing.assert_allclose(first.sum(axis=1), 1.0, atol=1e-5)


def test_a_two_way_model_never_asks_for_an_edit():
    model, tokenizer = classifier(["entailment", "not_entailment"])
    probabilities = sequence_classifier(model, tokenizer)(PAIRS)
    assert (probabilities[:, 1] == 0).all()
    assert probabilities[:, [0, 2]].sum(axis=1) == pytest.approx([1, 1, 1], abs=1e-5)


def tiny_t5():
    from transformers import T5Config, T5ForConditionalGeneration

    torch.manual_seed(0)
    config = T5Config(
        vocab_size=384,
        d_model=16,
        d_kv=8,
        d_ff=16,
        num_layers=1,
        num_heads=2,
        decoder_start_token_id=0,
        tie_word_embeddings=False,
        initializer_factor=3.0,
    )
    tokenizer = tiny_tokenizer()
    tokenizer.pad_token = "<pad>"
    return T5ForConditionalGeneration(config).eval(), tokenizer


def test_true_compares_the_probabilities_of_one_and_zero():
    model, tokenizer = tiny_t5()
    probabilities = true_classifier(model, tokenizer)(PAIRS[:1])
    claim, evidence = PAIRS[0]
    ids = tokenizer([f"premise: {evidence} hypothesis: {claim}"], return_tensors="pt")
    with torch.no_grad():
        logits = model(**ids, decoder_input_ids=torch.tensor([[0]])).logits[0, 0]
    one, zero = (tokenizer(digit, add_special_tokens=False)["input_ids"][-1] for digit in "10")
    expected = torch.sigmoid(logits[one] - logits[zero]).item()
    np.testing.assert_allclose(probabilities, [[expected, 0.0, 1 - expected]], atol=1e-5)


def test_first_difference_when_the_digits_start_alike():
    assert first_difference([209], [3, 632]) == ([], 209, 3)
    assert first_difference([3, 5], [3, 6]) == ([3], 5, 6)
    with pytest.raises(CannotDo):
        first_difference([7], [7])


def scripted(pairs):
    """Supportive where the window holds the claim, editing where it holds its reverse."""
    table = {True: [0.9, 0.05, 0.05], False: [0.1, 0.1, 0.8]}
    return np.array([table[claim in evidence] for claim, evidence in pairs], np.float32)


def test_long_evidence_is_read_in_windows_and_order_is_kept():
    verifier = WindowedVerifier(scripted, "scripted")
    assert isinstance(verifier, Entailment)
    filler = " ".join(f"Sentence {i} has some seven words here." for i in range(40))
    pairs = [("zebra", filler), ("zebra", filler + " A zebra stands here."), ("Sentence 1", filler)] * 8
    judged = verifier.judge(pairs)
    assert [one.verdict for one in judged] == ["irrelevant", "supportive", "supportive"] * 8
    start, end = judged[1].window
    assert "zebra" in pairs[1][1][start:end] and judged[1].windows > 3
    assert verifier.entailment(pairs[:2]) == pytest.approx([0.1, 0.9])
    assert verifier.judge([]) == []


def test_a_verifier_that_remembers_reads_no_window_twice_and_judges_alike():
    read = []

    def counted(pairs):
        read.extend(pairs)
        return scripted(pairs)

    plain = WindowedVerifier(counted, "scripted")
    pairs = [("zebra", "A zebra stands here."), ("lion", "A zebra stands here."), ("zebra", "A zebra stands here.")]
    expected = plain.judge(pairs)
    assert read == pairs[:2]
    plain.judge(pairs[:1])
    assert len(read) == 3
    for _ in range(2):  # each check has a memory of its own
        read.clear()
        memory = remembering(plain)
        assert memory.judge(pairs) == memory.judge(pairs) == expected
        assert memory.entailment(pairs).tolist() == plain.entailment(pairs).tolist()
        assert read.count(pairs[1]) == 2
    other = object()
    assert remembering(other) is other


def test_a_watch_can_stop_it():
    watch = Watch()
    watch.cancel.set()
    with pytest.raises(Cancelled):
        WindowedVerifier(scripted, "scripted").judge(PAIRS, watch)


def test_a_folder_that_is_no_model_says_what_to_do(tmp_path):
    with pytest.raises(ModelNotFound, match="use embedded"):
        load_nli(str(tmp_path))


def test_a_saved_classifier_loads_from_its_folder(tmp_path):
    model, tokenizer = classifier(["contradiction", "neutral", "entailment"])
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    loaded = load_nli(str(tmp_path))
    direct = WindowedVerifier(sequence_classifier(model, tokenizer), "direct")
    assert loaded.entailment(PAIRS) == pytest.approx(direct.entailment(PAIRS), abs=1e-5)


def test_a_served_model_is_refused_as_verifier_with_what_to_use():
    with pytest.raises(CannotDo, match=r"gives no probabilities of verdicts\. Use embedded or an NLI model"):
        load_nli("openai:m@http://127.0.0.1:9/v1")
