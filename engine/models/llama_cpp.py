"""llama.cpp in process (package xllamacpp, MIT): writes on a CPU with the quantized weights of a GGUF file.

torch scores and differentiates the same weights, dequantized. Writing reads every weight once per token, so 4 bits
instead of 16 or 32 save most of the time; small models gain little (bench/RESULTS.md, "llama.cpp").
"""

from __future__ import annotations

import importlib.util
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.core.errors import ModelError, raised_as
from engine.core.progress import Watch
from engine.core.settings import Decoding
from engine.core.values import Json
from engine.models.protocols import Ids

LEAST = 500_000_000  # parameters of a model that llama.cpp writes for
CONTEXT = 4096  # tokens of prompt and answer at first: the cache is allocated as a whole, twice as large when needed

OnToken = Callable[[int, float], None]


def writes_faster(parameters: int, device: str) -> bool:
    """Whether llama.cpp is installed and faster than torch for a model of so many parameters on that device."""
    return device == "cpu" and parameters >= LEAST and importlib.util.find_spec("xllamacpp") is not None


class LlamaCpp:
    """A GGUF file as a writer of tokens, one text at a time; `window` is the most tokens of prompt and text."""

    def __init__(self, file: Path, window: int, threads: int) -> None:
        self.file, self.window, self.threads = file, window, threads
        self.context = 0
        self._server: Any = None

    def load(self, tokens: int) -> None:
        """Load the file unless it is, with room for so many tokens; `ModelError` where llama.cpp cannot."""
        if tokens <= self.context:
            return
        self.context, self._server = 0, None  # its memory is free before the next one takes more
        context = min(self.window, max(CONTEXT, 1 << (tokens - 1).bit_length()))
        failures = (ImportError, RuntimeError)  # a system library may be missing, as libgomp in slim images
        with raised_as(ModelError, f"llama.cpp cannot load {self.file.name}", "Download it again.", *failures):
            self._server = served(self.file, context, self.threads)
        self.context = context

    def write(self, ids: Ids, decoding: Decoding, limit: int, on_token: OnToken, watch: Watch) -> tuple[str, bool]:
        """Write up to `limit` tokens after the prompt `ids`; return the text and whether the model ended it.

        `on_token` gets each token's id and its log-probability in nats before temperature and top-p. Of a character
        that takes several tokens only the last comes. Raises `Cancelled` between two tokens, `ModelError`.
        """
        written, said = 0, Said()

        def take(chunk: Json) -> bool:
            """Read a chunk; return whether to stop. Nothing is raised into llama.cpp's thread."""
            nonlocal written
            try:
                for token in said.tokens(chunk):
                    on_token(*token)
                    written += 1
                watch.step("writing", written, limit)
            except BaseException as error:  # raised again when llama.cpp has stopped
                said.problem = error
            return said.problem is not None

        self.load(len(ids) + limit)
        self._server.handle_completions(request(ids, decoding, limit), take)
        if said.problem is not None:
            raise said.problem
        return "".join(said.texts), said.reason == "stop"


def served(file: Path, context: int, threads: int) -> Any:
    """A llama.cpp server with the file loaded; raises `ImportError` or `RuntimeError`."""
    import xllamacpp

    asked = xllamacpp.CommonParams()
    asked.model.path = str(file)
    asked.n_ctx, asked.n_parallel = context, 1
    asked.cpuparams.n_threads = asked.cpuparams_batch.n_threads = threads
    asked.warmup, asked.verbosity = False, -1
    asked.api_keys = [secrets.token_hex()]  # it listens on a port of this machine, which nobody else may use
    server = xllamacpp.Server(asked)
    server.handle_completions({"prompt": [0], "max_tokens": 1})  # let go before its first text, it would hang
    return server


@dataclass
class Said:
    """The reply of llama.cpp to a prompt: its parts, why it stopped, or what went wrong."""

    texts: list[str] = field(default_factory=list)
    reason: str = ""
    problem: BaseException | None = None

    def tokens(self, chunk: Mapping[str, Any]) -> Iterator[tuple[int, float]]:
        """The (id, log-probability) of a chunk's tokens."""
        if "error" in chunk:
            told = chunk["error"].get("message", "no reason given")
            way_out = "Ask again, or take the .gguf file out of the model's folder: torch writes without it."
            raise ModelError(f"llama.cpp stopped writing ({told}). {way_out}")
        for choice in chunk.get("choices", ()):
            for token in (choice.get("logprobs") or {}).get("content") or ():
                yield token["id"], token["logprob"]
            self.texts.append(choice.get("text", ""))
            self.reason = choice.get("finish_reason") or ""


def request(ids: Ids, decoding: Decoding, limit: int) -> Json:
    """The request of a completion: greedy, or nucleus sampling after the temperature, as in writing.py."""
    return {
        "prompt": list(ids),
        "max_tokens": limit,
        "stream": True,
        "logprobs": 1,
        "cache_prompt": False,  # a cached prompt is read in other batches, which can change the last bits
        "samplers": ["temperature", "top_p"],
        "temperature": decoding.temperature,
        "top_p": decoding.top_p,
        "seed": decoding.seed,
    }
