"""The examples in the sidebar."""

from __future__ import annotations

import components.cache
from engine.cases.bundled import SOLVED


def test_an_example_opens_on_the_page_that_shows_it_and_the_others_stay_within_reach(app):
    app.run()
    labels = [button.label for button in app.sidebar.button]
    assert labels[2] == "Open the solved example" and len(labels) == 4
    app.sidebar.button[2].click().run()
    assert not app.exception
    assert [title.value for title in app.title] == ["Steps"]
    assert components.cache.workbench().cases.has(SOLVED)
    assert [button.label for button in app.sidebar.button] == labels
