"""Groundwork in the browser: page config, navigation, and the frame that every page shares. No computation."""

import streamlit as st

from components.frame import draw_frame
from components.login import admitted, require_login
from engine.core.files import ASSETS

st.set_page_config(page_title="Groundwork", page_icon=str(ASSETS / "icon.png"), layout="wide")
st.logo(str(ASSETS / "logo.svg"), size="large")

page = st.navigation(
    {
        "Ask": [
            st.Page("pages/ask/ask.py", title="Ask", default=True),
            st.Page("pages/ask/corpora.py", title="Corpora"),
        ],
        "Inspect": [
            st.Page("pages/inspect/attribution.py", title="Attribution"),
            st.Page("pages/inspect/refinement.py", title="Refinement"),
            st.Page("pages/inspect/facts.py", title="Facts"),
            st.Page("pages/inspect/steps.py", title="Steps"),
        ],
        "Review": [
            st.Page("pages/review/cases.py", title="Cases"),
            st.Page("pages/review/compare.py", title="Compare"),
            st.Page("pages/review/evaluate.py", title="Evaluate"),
            st.Page("pages/review/settings.py", title="Settings"),
        ],
    },
    position="sidebar" if admitted() else "hidden",
    expanded=True,
)
require_login()
draw_frame()
page.run()
