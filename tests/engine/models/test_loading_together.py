"""Several threads that read models at once: each gets whole weights."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from engine.models.loading import load_parts
from engine.models.memory import loaded_once
from engine.models.verifier_network import base_network
from tests.tiny import save_tiny


def test_models_read_by_several_threads_at_once_are_whole(tmp_path):
    folder = save_tiny(tmp_path / "tiny")

    def read(number):
        module = base_network()[0] if number % 2 else load_parts(folder)[0]
        return any(parameter.is_meta for parameter in module.parameters())

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(read, range(12))) == [False] * 12


def test_a_model_that_several_threads_ask_for_is_loaded_once():
    begun, both = [], threading.Barrier(2)

    @loaded_once
    def load(name):
        begun.append(name)
        return object()

    def ask(_):
        both.wait(30)
        return load("a")

    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(ask, range(2))
    assert one is other is load("a") and begun == ["a"]


HELD = """
import sys, threading, psutil, torch
from engine.models.memory import share_freed_memory
if sys.argv[1] == "shared":
    share_freed_memory()
turn, end = threading.Lock(), threading.Event()
def work():
    with turn:
        for most in (2_000_000, 1_000_000, 1_500_000):
            kept = [torch.ones(1 + 7919 * i * i % most) for i in range(60)]
            small = [torch.ones(100) for _ in range(1000)]
            del kept
        seen.append(1)
    end.wait()
seen, threads = [], [threading.Thread(target=work) for _ in range(6)]
for thread in threads:
    thread.start()
while len(seen) < 6:
    threads[0].join(0.01)
print(psutil.Process().memory_info().rss)
end.set()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no arenas")
def test_threads_share_the_memory_that_others_have_freed():
    own, shared = (
        int(subprocess.run([sys.executable, "-c", HELD, how], capture_output=True, check=True).stdout)
        for how in ("own", "shared")
    )
    assert own > 2 * shared
