"""No host is contacted: a question is asked and scored with every way out of this machine closed and watched."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import socket, sys

tried = []

def refuse(self, address, *rest):
    if self.family in (socket.AF_INET, socket.AF_INET6):
        tried.append(address)
        raise OSError("the network is cut")
    return connect(self, address, *rest)

def no_lookup(host, *rest, **named):
    tried.append(host)
    raise OSError("the network is cut")

connect = socket.socket.connect
socket.socket.connect = refuse
socket.getaddrinfo = no_lookup

from engine.workbench import Workbench

workbench = Workbench()
case = workbench.ask("How is the crude product of the acetaminophen experiment recrystallized?", "bench-chemistry")
assert case.answer.citations, case.answer.text
assert case.hits
sys.exit(f"contacted: {tried}" if tried else 0)
"""


def test_asking_contacts_no_host_even_where_downloads_are_allowed(sample_home, monkeypatch):
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
