"""Groundwork in the browser: page config, navigation, and the frame that every page shares. No computation."""

import streamlit as st

from engine.core.files import ASSETS

st.set_page_config(page_title="Groundwork", page_icon=str(ASSETS / "icon.png"), layout="wide")
st.logo(str(ASSETS / "logo.svg"), size="large")

# The first visit to a fresh server waits for these imports, which takes seconds; it is told so.
with st.spinner("Groundwork is starting"):
    from components.frame import draw_frame
    from components.login import admitted, require_login
    from components.pages import SECTIONS, page
    from components.polling import page_being_drawn

chosen = st.navigation(
    {section: [page(name) for name in names] for section, names in SECTIONS.items()},
    position="sidebar" if admitted() else "hidden",
    expanded=True,
)
require_login()
with page_being_drawn():
    draw_frame()
    chosen.run()
