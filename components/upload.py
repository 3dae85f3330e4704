"""How large an uploaded file may be: Streamlit's route checks neither size nor kind, so the size is checked here."""

from __future__ import annotations

LIMIT = 200 * 2**20  # bytes; as `server.maxUploadSize`, which the browser alone keeps


def too_large(size: int) -> str:
    """Why a file of `size` bytes is not taken; "" where it is.

    >>> too_large(250 * 2**20), too_large(3)
    ('It has 250 MB; the limit is 200 MB. Split it into parts.', '')
    """
    if size <= LIMIT:
        return ""
    return f"It has {size / 2**20:,.0f} MB; the limit is {LIMIT >> 20} MB. Split it into parts."
