"""A browser's side of Streamlit's websocket, without a browser: pages, widgets by label, fragments that poll.

It speaks BackMsg and ForwardMsg as the front end does: a rerun carries the state of every widget that was set, a
fragment with `auto_rerun` is run again until the page stops asking for it.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import connect

DRAWN = ("markdown", "heading", "html", "text", "alert")
WIDGETS = ("text_area", "text_input", "button", "selectbox")


@dataclass
class Page:
    """The output of one script run: texts, widgets by label, component data, in order."""

    texts: list[str] = field(default_factory=list)
    widgets: dict[str, Any] = field(default_factory=dict)
    components: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def add(self, element: Any) -> None:
        """Take in one element."""
        kind = element.WhichOneof("type")
        value = getattr(element, kind)
        if kind in DRAWN:
            self.texts.append(value.body)
            if kind == "alert" and value.format == value.ERROR:
                self.problems.append(value.body)
        elif kind == "exception":
            self.problems.append(value.message)
        elif kind in WIDGETS:
            self.widgets[value.label] = value
        elif kind == "bidi_component":
            self.components.append(value.json or value.mixed.json)

    @property
    def said(self) -> str:
        """All that is drawn, as text."""
        return "\n".join((*self.texts, *self.components))


class Session:
    """One user's connection. `timings` are (what, seconds until the script had finished).

    A reverse proxy's side too: `host` is the name that the browser asked for, `headers` what the proxy adds.
    """

    def __init__(
        self,
        port: int,
        query: str = "",
        timeout: float = 300.0,
        host: str = "127.0.0.1",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.timeout, self.query = timeout, query
        self.pages: dict[str, str] = {}
        self.page = Page()
        self.timings: list[tuple[str, float]] = []
        self._hash, self._fragment, self._polls, self._in_fragment = "", "", 0.0, False
        self._states: dict[str, str] = {}
        self._socket = connect(
            f"ws://{host}/_stcore/stream",
            sock=socket.create_connection(("127.0.0.1", port)),
            subprotocols=["streamlit"],  # type: ignore[list-item]
            additional_headers=headers,
            max_size=None,
            open_timeout=timeout,
        )
        self.rerun("first paint")

    def close(self) -> None:
        """End the session as a closed tab does."""
        self._socket.close()

    def rerun(self, what: str, trigger: str = "", fragment: str = "") -> Page:
        """Run the script, or a fragment of it; `trigger` is the id of a pressed button."""
        message = BackMsg()
        state = message.rerun_script
        state.query_string, state.page_script_hash, state.fragment_id = self.query, self._hash, fragment
        state.is_auto_rerun = bool(fragment)
        for widget, value in self._states.items():
            state.widget_states.widgets.add(id=widget, string_value=value)
        if trigger:
            state.widget_states.widgets.add(id=trigger, trigger_value=True)
        self._in_fragment = bool(fragment)
        started = time.perf_counter()
        self._socket.send(message.SerializeToString())
        self._receive()
        self.timings.append((what, time.perf_counter() - started))
        return self.page

    def _receive(self) -> None:
        """Take messages until the script has finished; a rerun that the script asked for itself is part of it."""
        deadline = time.monotonic() + self.timeout
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"after {self.timeout} s the script has not finished: {self.page.said[-500:]}")
            message = ForwardMsg()
            message.ParseFromString(self._socket.recv(timeout=left))
            kind = message.WhichOneof("type")
            if kind == "new_session":
                self._begin()
            elif kind == "delta" and message.delta.WhichOneof("type") == "new_element":
                self.page.add(message.delta.new_element)
            elif kind == "navigation":
                self.pages = {p.url_pathname: p.page_script_hash for p in message.navigation.app_pages}
                self._hash = message.navigation.page_script_hash
            elif kind == "page_info_changed":
                self.query = message.page_info_changed.query_string
            elif kind == "auto_rerun":
                self._fragment, self._polls = message.auto_rerun.fragment_id, message.auto_rerun.interval
            elif kind == "script_finished" and message.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN:
                return

    def _begin(self) -> None:
        """A whole run draws the page anew; a fragment's run adds to it."""
        if not self._in_fragment:
            self.page, self._fragment = Page(), ""
        self._in_fragment = False

    def open(self, path: str, what: str = "view") -> Page:
        """Go to a page by its address, as the navigation does."""
        self._hash = self.pages[path]
        self._states.clear()
        return self.rerun(what)

    def fill(self, label: str, value: str) -> None:
        """Set a text field; it is sent with the next run."""
        self._states[self.page.widgets[label].id] = value

    def press(self, label: str, what: str = "press") -> Page:
        """Press a button."""
        return self.rerun(what, trigger=self.page.widgets[label].id)

    def wait(self, until: Callable[[Page], bool]) -> Page:
        """Run what polls, in the interval that it asks for, until the page shows what is waited for.

        Raises `TimeoutError` when it took too long, and at once where nothing on the page polls any more.
        """
        deadline = time.monotonic() + self.timeout
        while not until(self.page):
            if time.monotonic() > deadline or not self._fragment:
                waited = f"after {self.timeout} s" if self._fragment else "nothing polls, and"
                raise TimeoutError(f"{waited} the page shows: {self.page.said[-500:]}")
            time.sleep(max(0.2, self._polls))
            self.rerun("poll", fragment=self._fragment)
        return self.page
