"""A small OpenAI-compatible server as a process of its own; the model's name says how it behaves.

Run as `python served.py`: it prints its port. Nothing here imports the engine.
"""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOKENS = [b"Hanna", b" Lind", b" built", b" it", b" \xf0\x9f", b"\x91\xa9", b" [cite", b"_1", b"]."]
TEXT = b"".join(TOKENS).decode()

asked: Counter[str] = Counter()
bodies: list[dict] = []
headers: list[dict] = []
lock = threading.Lock()
pair = threading.Barrier(2)
flying = most = 0


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        """Say nothing."""

    def do_GET(self):
        self.reply(200, {"bodies": bodies, "headers": headers, "most": most, "asked": dict(asked)})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with lock:
            bodies.append(body)
            headers.append(dict(self.headers))
            asked[body["model"]] += 1
        mode, _, argument = body["model"].partition(":")
        getattr(self, f"mode_{mode}", self.unknown)(body, argument)

    def unknown(self, body, argument):
        self.reply(404, error(f"The model {body['model']} does not exist"))

    def reply(self, status, value, **extra):
        data = json.dumps(value).encode()
        self.send_response(status)
        for name, text in {"content-type": "application/json", "content-length": str(len(data)), **extra}.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(data)

    def start(self):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def event(self, value):
        data = f"data: {value if isinstance(value, str) else json.dumps(value)}\n\n".encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def end(self):
        self.event("[DONE]")
        self.wfile.write(b"0\r\n\r\n")

    def words(self, body, count=len(TOKENS), reason="stop"):
        """Stream text at character borders; the tokens' bytes come with it where they are asked for."""
        self.start()
        held: list[bytes] = []
        for token in TOKENS[:count]:
            held.append(token)
            try:
                text = b"".join(held).decode()
            except UnicodeDecodeError:
                continue
            self.event(chunk(text, None, held if body.get("logprobs") else None))
            held = []
        if reason:
            self.event(chunk("", reason, None))

    def mode_words(self, body, argument):
        self.words(body)
        self.end()

    def mode_length(self, body, argument):
        self.words(body, 3, "length")
        self.end()

    def mode_silent(self, body, argument):
        """End cleanly without a finish reason."""
        self.words(body, 2, None)
        self.end()

    def mode_die(self, body, argument):
        self.words(body, 3, None)
        os._exit(1)

    def mode_hang(self, body, argument):
        self.words(body, int(argument or 2), None)
        threading.Event().wait()

    def mode_mute(self, body, argument):
        """Take the request and never answer."""
        threading.Event().wait()

    def mode_flaky(self, body, argument):
        if asked[body["model"]] <= int(argument):
            return self.reply(503, error("Loading"))
        return self.mode_words(body, argument)

    def mode_busy(self, body, argument):
        self.reply(429, error("Too many requests"), **{"retry-after": argument or "0"})

    def mode_nologprobs(self, body, argument):
        if "logprobs" in body or "seed" in body:
            return self.reply(400, error("Unsupported parameters: logprobs, seed"))
        return self.mode_words(body, argument)

    def mode_newlimit(self, body, argument):
        if "max_tokens" in body:
            return self.reply(400, error("'max_tokens' is not supported. Use 'max_completion_tokens' instead."))
        return self.mode_words(body, argument)

    def mode_toolong(self, body, argument):
        self.reply(400, error("This model's maximum context length is 512 tokens, you asked for 9000."))

    def mode_badrequest(self, body, argument):
        self.reply(400, error("temperature must be 1"))

    def mode_key(self, body, argument):
        if self.headers["authorization"] != "Bearer right":
            return self.reply(401, error("Incorrect API key"))
        return self.mode_words(body, argument)

    def mode_midway(self, body, argument):
        self.words(body, 2, None)
        self.event({"error": {"message": "out of memory"}})
        self.end()

    def mode_delta(self, body, argument):
        """Stream one field and one text, "field=text", then end for the reason behind a bar."""
        given, _, reason = argument.partition("|")
        field, _, text = given.partition("=")
        self.start()
        self.event({**chunk("", None, None), "choices": [{"index": 0, "delta": {field: text}, "finish_reason": None}]})
        self.event(chunk("", reason, None))
        self.end()

    def mode_odd(self, body, argument):
        """Send what the model's name says, as JSON, in the place of each chunk's text; a list first: as a chunk."""
        self.start()
        for number, said in enumerate(json.loads(argument.replace("%", "\\"))):
            plain = {"index": 0, "delta": {"content": said}, "finish_reason": None}
            self.event(said if not number else {**chunk("", None, None), "choices": [plain]})
        self.event(chunk("", "stop", None))
        self.end()

    def mode_tokens(self, body, argument):
        """Send a text with tokens whose bytes or spelling cannot be read."""
        strange = {"none": {"token": None, "bytes": None}, "byte": {"token": "Iron", "bytes": [300]}}[argument]
        self.start()
        logprobs = {"content": [{**strange, "logprob": -1.0, "top_logprobs": []}]}
        self.event(
            {**chunk("", None, None), "choices": [{"index": 0, "delta": {"content": "Iron"}, "logprobs": logprobs}]}
        )
        self.event(chunk("", "stop", None))
        self.end()

    def mode_whole(self, body, argument):
        """Reply with a page, as a server does at another path, whatever was asked."""
        self.reply(200, {"error": "Unexpected endpoint or method."})

    def mode_quota(self, body, argument):
        self.reply(429, {"error": {"message": "You exceeded your quota.", "code": "insufficient_quota"}})

    def mode_denied(self, body, argument):
        self.reply(403, error("No access to this model"))

    def mode_strict(self, body, argument):
        """Refuse the seed as FastAPI does: the reason is in no field that the client knows."""
        if "seed" in body:
            return self.reply(422, {"detail": [{"loc": ["body", "seed"], "msg": "extra fields not permitted"}]})
        return self.mode_words(body, argument)

    def mode_nosystem(self, body, argument):
        if body["messages"][0]["role"] == "system":
            return self.reply(400, error("System role not supported"))
        return self.mode_words(body, argument)

    def mode_small(self, body, argument):
        self.reply(400, error("the request exceeds the available context size, try increasing it"))

    def mode_blocked(self, body, argument):
        self.start()
        self.event({"error": {"message": "Prompt is blocked"}})
        self.end()

    def mode_pairs(self, body, argument):
        """Answer two at a time; remember how many were in flight."""
        global flying, most
        with lock:
            flying += 1
            most = max(most, flying)
        pair.wait()
        with lock:
            flying -= 1
        self.mode_words(body, argument)


def error(message):
    return {"error": {"message": message, "type": "invalid_request_error"}}


def chunk(text, reason, tokens):
    logprobs = tokens and {
        "content": [
            {"token": t.decode(errors="replace"), "bytes": list(t), "logprob": -0.5, "top_logprobs": []} for t in tokens
        ]
    }
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": reason, "logprobs": logprobs}
    return {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [choice]}


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(server.server_address[1], flush=True)
    server.serve_forever()
