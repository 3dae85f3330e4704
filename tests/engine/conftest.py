"""Fixtures that several tests of the engine share."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from engine.models.registry import forget_models
from tests.tiny import save_cross_encoder, save_tiny


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """A tiny language model with a window for every prompt, and a tiny cross-encoder."""
    model = save_tiny(tmp_path_factory.mktemp("model"))
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, "max_position_embeddings": 20_000}))
    yield str(model), str(save_cross_encoder(tmp_path_factory.mktemp("cross-encoder")))
    forget_models()
