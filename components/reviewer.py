"""Who marks: the person whom a login vouches for, else the name that is typed; and the writing of marks.

Two logins are understood: Streamlit's own OpenID Connect (`[auth]` in .streamlit/secrets.toml) and a reverse proxy
that puts the person's name into a header, which GROUNDWORK_USER_HEADER names; see docs/access.md.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import streamlit as st

from components import state
from components.cache import workbench
from components.html import note, plain
from engine.analyses.case_verdict import check_verdict
from engine.cases.review import MarkDraft
from engine.core.errors import GroundworkError

HEADER = "GROUNDWORK_USER_HEADER"
LONGEST = 200  # characters of a name


def reviewer() -> str:
    """The name that goes into the history: the login's, which cannot be changed here, or the one that is typed."""
    known = _logged_in()
    if known:
        # No caption: Markdown would make a link of the address.
        note(f"Reviewer: {known}, as logged in")
        return known
    return st.text_input(
        "Reviewer", key="reviewer", persist_state="session", placeholder="your name", width=320, max_chars=LONGEST
    ).strip()


def known_reviewer() -> str:
    """The name without a field for it: the login's, or what was typed on another page; "" where there is none."""
    return _logged_in() or str(state.value_of("reviewer") or "").strip()


def _logged_in() -> str:
    return identity(st.user.to_dict(), time.time()) or forwarded(os.environ.get(HEADER, ""), st.context.headers)


def by_name(act: Callable[[str], None]) -> None:
    """Act under the reviewer's name, which is asked for once where it is not known."""
    if author := known_reviewer():
        act(author)
    else:
        _who_reviews(act)


@st.dialog("Who reviews?")
def _who_reviews(act: Callable[[str], None]) -> None:
    with st.form("who_reviews", border=False):
        name = st.text_input("Reviewer", key="who_reviews_name", placeholder="your name", max_chars=LONGEST)
        given = st.form_submit_button("Continue", type="primary")
    if given and name.strip():
        state.set_value("reviewer", name.strip())
        act(name.strip())
    elif given:
        st.error("Enter your name. The case's history records it.")


def needs_name(author: str) -> str | None:
    """The help of a button that is disabled until the `author` is known."""
    return None if author else "Enter your name first."


def new_version_button(case_id: str, *, key: str) -> None:
    """A button that opens a new version of a signed-off case."""
    if st.button("Make a new version", key=key, help="The new version starts open, with the same content."):
        by_name(partial(_open_new_version, case_id))


def _open_new_version(case_id: str, author: str) -> None:
    state.open_case(workbench().cases.new_version(case_id, author).id)
    st.rerun()


def write_marks(case_id: str, drafts: Sequence[MarkDraft], seen: str | None = None, *, fields: str = "") -> None:
    """Write marks into a case's history and draw the page anew; say why not where they are refused.

    `seen` is the head hash of the history that the page showed: something newer refuses them. `fields` names those that
    the marks were typed into: they are empty again once the marks are written. No drafts change nothing.
    """
    if not drafts:
        return
    try:
        for draft in drafts:
            check_verdict(draft)
        workbench().cases.add_marks(case_id, drafts, seen)
    except GroundworkError as error:
        st.error(plain(str(error)))
    else:
        state.empty(fields)
        st.rerun()


def identity(claims: Mapping[str, object], now: float) -> str:
    """Name and address of an OpenID Connect login; "" where there is none or its token has expired.

    >>> identity({"is_logged_in": True, "name": "Ada Quill", "email": "ada@example.org", "exp": 9}, now=5)
    'Ada Quill <ada@example.org>'
    """
    expires = claims.get("exp")
    if not claims.get("is_logged_in") or (isinstance(expires, int | float) and expires <= now):
        return ""
    name, address = (_one_line(claims.get(key)) for key in ("name", "email"))
    return f"{name} <{address}>" if name and address else name or address or _one_line(claims.get("sub"))


def forwarded(header: str, headers: Mapping[str, str]) -> str:
    """The person that a reverse proxy names in its header; "" where no header was agreed on."""
    return _one_line(headers.get(header)) if header else ""


def _one_line(value: object) -> str:
    return " ".join(str(value or "").split())[:LONGEST]
