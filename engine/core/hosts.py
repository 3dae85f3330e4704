"""Which hosts this process would contact as it is configured: by default none."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

HUB = "https://huggingface.co"


def hosts() -> tuple[str, ...]:
    """The hosts that the environment names, each with when it is contacted and with what; not before."""
    hub = "" if is_offline() else os.environ.get("HF_ENDPOINT") or HUB
    cluster = os.environ.get("RAY_ADDRESS", "")
    named = (
        (hub, "a Hugging Face id is given for a model: its files are downloaded"),
        (os.environ.get("GROUNDWORK_CHROMA"), "a corpus is searched or changed: vectors and passage ids"),
        (os.environ.get("OPENAI_BASE_URL"), "a model is named openai:MODEL: question, passages and drafts"),
        (cluster and f"ray://{cluster.removeprefix('ray://')}", "a run is started --on ray: cases, settings, texts"),
    )
    return tuple(f"{bare_address(address)} when {when}" for address, when in named if address)


def is_offline() -> bool:
    """Whether HF_HUB_OFFLINE forbids the network."""
    return os.environ.get("HF_HUB_OFFLINE", "").lower() in ("1", "true", "yes", "on")


def bare_address(address: str) -> str:
    """Scheme, host and port, without a user, a password or a query; empty if it is not an address.

    >>> given = ("https://user:secret@models.example:8443/v1?key=1", "user:secret@models.example", "http://[")
    >>> [bare_address(address) for address in given]
    ['https://models.example:8443', 'no address', 'no address']
    """
    try:
        parts = urlsplit(address)
    except ValueError:  # a bracket that does not close
        return "no address"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}" if parts.netloc else "no address"
