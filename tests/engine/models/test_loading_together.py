"""Several threads that read models at once: each gets whole weights."""

from concurrent.futures import ThreadPoolExecutor

from engine.models.loading import load_parts
from engine.models.verifier_network import base_network
from tests.tiny import save_tiny


def test_models_read_by_several_threads_at_once_are_whole(tmp_path):
    folder = save_tiny(tmp_path / "tiny")

    def read(number):
        module = base_network()[0] if number % 2 else load_parts(folder)[0]
        return any(parameter.is_meta for parameter in module.parameters())

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(read, range(12))) == [False] * 12
