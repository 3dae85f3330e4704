"""The served model against `transformers serve`, a server that others wrote, with a tiny model in it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from engine.core.errors import ServerError
from engine.core.progress import Watch
from engine.core.settings import Decoding
from engine.models.server import ServerModel
from tests.tiny import tiny_model, tiny_prompt

pytest.importorskip("fastapi", reason="transformers serve needs fastapi")
pytestmark = pytest.mark.slow


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    tiny_model("llama").module.save_pretrained(folder)
    tiny_model("llama").tokenizer.save_pretrained(folder)
    port = free_port()
    command = [Path(sys.executable).with_name("transformers"), "serve", folder, "--device", "cpu", "--port", str(port)]
    settings = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, env={**os.environ, **settings}, stderr=subprocess.DEVNULL)
    wait_for(f"http://127.0.0.1:{port}/health", process)
    model = ServerModel(f"openai:{folder}@http://127.0.0.1:{port}/v1")
    model.attempts = 1
    yield process, model
    process.kill()
    process.wait()


def wait_for(address: str, process: subprocess.Popen) -> None:
    pause = Watch().cancel
    for _ in range(600):
        try:
            urllib.request.urlopen(address, timeout=5).close()
        except (urllib.error.URLError, ConnectionError):
            assert process.poll() is None, "transformers serve ended"
            pause.wait(0.1)
        else:
            return
    raise AssertionError("transformers serve did not come up")


def test_greedy_text_equals_the_same_model_here(served):
    _, model = served
    decoding = Decoding(max_new_tokens=24)
    seen: list[str] = []
    answer = model.generate(tiny_prompt(2, system=True), decoding, seen.append)
    here = tiny_model("llama").generate(tiny_prompt(2, system=True), decoding)
    assert answer.text.rstrip("�") == here.text.rstrip("�")
    assert len(seen) > 3 and answer.finished is False


def test_killed_in_the_middle_it_leaves_the_text_so_far(served):
    """Runs last: the server is gone afterwards."""
    process, model = served
    with pytest.raises(ServerError) as caught:
        model.generate(tiny_prompt(2), Decoding(max_new_tokens=256), lambda text: process.kill())
    assert caught.value.partial
    with pytest.raises(ServerError, match="cannot be reached"):
        model.generate(tiny_prompt(2), Decoding(max_new_tokens=4))
