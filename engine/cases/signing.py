"""Signatures of review entries: HMAC-SHA256 under a key file that the reviewers keep outside the library.

`GROUNDWORK_SIGNING_KEY` names the file. Whoever has the key can verify and can sign; whoever has only the library
can do neither.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from pathlib import Path

from engine.errors import FileError

VARIABLE = "GROUNDWORK_SIGNING_KEY"
SHORTEST = 16  # bytes; a shorter key could be guessed


def signing_key() -> bytes | None:
    """The key, or None where no file is named; raise `FileError` for a file that is absent, unreadable or too short."""
    path = os.environ.get(VARIABLE)
    if not path:
        return None
    try:
        key = Path(path).read_bytes().strip()
    except OSError as error:
        raise FileError(
            f"The signing key file that {VARIABLE} names cannot be read ({error.strerror}). Mend the path, or unset"
            f" {VARIABLE} to review without signatures."
        ) from error
    if len(key) < SHORTEST:
        raise FileError(
            f"The signing key has {len(key)} bytes; at least {SHORTEST} are needed. Write a longer one, for example"
            " with: openssl rand -hex 32."
        )
    return key


def key_name(key: bytes) -> str:
    """A public name of a key: it tells two keys apart and gives neither away."""
    return hmac.new(key, b"groundwork: name of this key", hashlib.sha256).hexdigest()[:12]


def sign(key: bytes, digest: str) -> str:
    """The signature of a hash, hex."""
    return hmac.new(key, digest.encode("ascii"), hashlib.sha256).hexdigest()


def signature_holds(key: bytes, digest: str, signature: str) -> bool:
    """Whether `signature` was made with `key` for `digest`."""
    return hmac.compare_digest(sign(key, digest), signature)
