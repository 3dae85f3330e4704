"""What holds of every value, whichever thread builds it."""

from __future__ import annotations

import subprocess
import sys

FIRST_USE = """
import threading
from engine.types import Answer, Case, Stamp
data = Case(id="c", question="q", passages=(), answer=Answer(text="a"), stamp=Stamp(model="m")).to_dict()
barrier = threading.Barrier(8)
def convert():
    barrier.wait()
    assert Case.from_dict(data).id == "c"
threads = [threading.Thread(target=convert) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""


def test_many_threads_may_be_the_first_to_build_a_value():
    # A process of its own: what this guards against is a crash, and only the first use of a type can show it.
    done = subprocess.run([sys.executable, "-c", FIRST_USE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
