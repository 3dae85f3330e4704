"""Work that ends while a page is drawn for a click: the click counts, and the page is drawn anew after it."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest


def script() -> None:
    import streamlit as st

    from components.polling import page_being_drawn, redraw

    st.session_state["drawn"] = st.session_state.get("drawn", 0) + 1
    with page_being_drawn():
        if st.session_state.pop("work has ended", False):
            redraw()
        if st.button("Further down"):
            st.session_state["pressed"] = True


def test_a_click_on_what_comes_below_ended_work_is_not_lost():
    app = AppTest.from_function(script).run()
    assert app.session_state["drawn"] == 1
    app.session_state["work has ended"] = True
    app.button[0].click().run()
    assert app.session_state["pressed"] and app.session_state["drawn"] == 3


def test_outside_of_a_page_it_is_drawn_anew_at_once():
    def poll() -> None:
        import streamlit as st

        from components.polling import redraw

        if st.session_state.pop("work has ended", False):
            redraw()
            st.write("not reached")
        st.write("drawn")

    app = AppTest.from_function(poll)
    app.session_state["work has ended"] = True
    assert [part.value for part in app.run().markdown] == ["drawn"]
