"""A chat server that answers every request with one text, in this process; it can go away in the middle of a word."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Replies:
    """`text` is streamed in pieces; after `breaks` pieces the connection is cut, as by a killed server."""

    def __init__(self, text: str, breaks: int | None = None, status: int = 200) -> None:
        self.headers: list[dict[str, str]] = []
        served = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *args):
                """Say nothing."""

            def do_POST(self):
                self.rfile.read(int(self.headers["content-length"]))
                served.headers.append({name.lower(): value for name, value in self.headers.items()})
                if status != 200:
                    return self._fail()
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                for number, event in enumerate(events(text)):
                    if number == breaks:
                        return self.connection.close()
                    self.wfile.write(f"data: {event}\n\n".encode())
                    self.wfile.flush()
                return None

            def _fail(self):
                data = json.dumps({"error": {"message": text, "type": "server_error"}}).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.model = f"openai:script@http://127.0.0.1:{self.server.server_port}/v1"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        """Take the server away."""
        self.server.shutdown()
        self.server.server_close()


def events(text: str) -> list[str]:
    """The events of a streamed completion that says `text`."""
    pieces = [text[i : i + 40] for i in range(0, len(text), 40)]
    return [*(_chunk(piece, None) for piece in pieces), _chunk("", "stop"), "[DONE]"]


def _chunk(text: str, reason: str | None) -> str:
    delta = {"role": "assistant", "content": text}
    return json.dumps(
        {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
    )
