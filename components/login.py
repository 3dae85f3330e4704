"""Streamlit's own login with an OpenID Connect provider (`[auth]` in its secrets); see docs/access.md."""

from __future__ import annotations

import time

import streamlit as st
from streamlit.errors import StreamlitAuthError

from components.html import note, plain
from components.reviewer import identity
from components.style import apply_style

# The provider sends people back to the front page. The tab itself remembers where they wanted to go: no address comes
# from outside, so none can lead elsewhere.
KEEP = """<script>{
  const link = location.pathname + location.search === '/' ? '' : location.href;
  sessionStorage.setItem('groundwork-link', link);
}</script>"""
GO_BACK = """<script>{
  const link = sessionStorage.getItem('groundwork-link');
  sessionStorage.removeItem('groundwork-link');
  if (link && link !== location.href) location.replace(link);
}</script>"""


def admitted() -> bool:
    """Whether this person may see anything: always where no login is configured, else with a login that still holds."""
    claims = st.user.to_dict()
    return "is_logged_in" not in claims or bool(identity(claims, time.time()))


def require_login() -> None:
    """Show the login alone and stop, unless this person is admitted."""
    if admitted():
        return
    apply_style()
    st.html(KEEP, unsafe_allow_javascript=True)
    st.title("Log in to see cases and documents", anchor=False)
    st.write("You return to this page after logging in.")
    st.button("Log in", type="primary", on_click=_log_in)
    st.stop()


def _log_in() -> None:
    try:
        st.login()
    except StreamlitAuthError as error:
        st.error(f"The login of this server is not set up. {plain(str(error))}")


def account() -> None:
    """Who is logged in, and the way out; nothing where no login is configured."""
    known = identity(st.user.to_dict(), time.time())
    if known:
        st.html(GO_BACK, unsafe_allow_javascript=True)
        with st.container(gap=None):
            note(known)
            st.button("Log out", type="tertiary", on_click=st.logout)
