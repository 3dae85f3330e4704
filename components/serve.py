"""`python -m components.serve`: start the app on this machine and say where it is."""

from __future__ import annotations

import importlib
import os
import socket
from pathlib import Path
from typing import Any

APP = Path(__file__).resolve().parent.parent / "app.py"
PORTS = range(8501, 8551)


def free_port() -> int:
    """The first of `PORTS` that nobody listens on."""
    for port in PORTS:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port
    raise SystemExit(f"No free port from {PORTS[0]} to {PORTS[-1]}. Stop another app, or set PORT.")


def server_options(port: int) -> dict[str, Any]:
    """Streamlit's options: the port, and the address that ADDRESS names, as in a container, else this machine alone."""
    return {"server_port": port, "server_headless": True, "server_address": os.environ.get("ADDRESS") or "127.0.0.1"}


def main() -> None:
    """Serve app.py until interrupted, on 127.0.0.1 unless ADDRESS names another address of this machine."""
    os.chdir(APP.parent)
    from streamlit import net_util
    from streamlit.runtime.pages_manager import PagesManager
    from streamlit.web import bootstrap

    # A folder named pages/ wakes Streamlit's old page discovery until st.navigation has run once; a first visit
    # by deep link would then be told "Page not found".
    PagesManager.uses_pages_directory = False
    # Before it turns a page of another origin away, Streamlit would ask a server on the internet for this machine's
    # own address: nobody else is asked.
    net_util.get_external_ip = lambda: None
    port = int(os.environ.get("PORT") or free_port())
    options = server_options(port)
    bootstrap.load_config_options(options)
    # What the first page imports takes seconds: done before the address is told, so that the page comes at once.
    importlib.import_module("components.frame")
    print(f"Groundwork is at http://127.0.0.1:{port} (stop with Ctrl-C)", flush=True)
    bootstrap.run(str(APP), False, [], options)


if __name__ == "__main__":
    main()
