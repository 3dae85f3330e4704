"""Memory and numbers of a model: what it will take, whether a prompt fits, and the same sums in another order.

`memory_estimate` reads the config alone, before anything is loaded. `eager_attention` and `computed_otherwise` give the
other sums that floors and replays compare with. A prompt over the window is refused with what would have to go.
"""

from __future__ import annotations

import copy
import ctypes
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cache, wraps
from pathlib import Path
from shutil import disk_usage
from typing import Any, TypeVar

from engine.core.errors import ModelError, ModelNotFound, PromptTooLong, StorageError, raised_as
from engine.models.protocols import TokenPrompt

T = TypeVar("T")
ARENA_MAX = -8  # M_ARENA_MAX of malloc.h
_LAYERS = 1_000  # the most that a model may claim; each is built, without storage, to count its parameters
PROMPT_TOKENS = 4096  # of the prompt that memory is estimated for
BYTES = {"float32": 4.0, "bfloat16": 2.0, "float16": 2.0}


@dataclass(frozen=True)
class MemoryEstimate:
    """Bytes, by what takes them, for one prompt of `PROMPT_TOKENS` tokens; `parameters` is a count."""

    parameters: int
    weights: int
    cache: int
    activations: int


def memory_estimate(config: Any, dtype: str) -> MemoryEstimate:
    """The memory of a model with this transformers config.

    Parameters are counted on a model without storage: exact. The cache is keys and values of every layer;
    activations are one layer's and the logits of 256 answer positions, an upper estimate.
    """
    parameters = count_parameters(config)
    size = BYTES[dtype]
    return MemoryEstimate(
        parameters=parameters,
        weights=int(parameters * size),
        cache=int(PROMPT_TOKENS * cache_values(config) * size),
        activations=row_bytes(config, PROMPT_TOKENS, 256),
    )


def count_parameters(config: Any) -> int:
    """Number of parameters of the causal model of `config`, tied ones once."""
    import torch
    from transformers import AutoModelForCausalLM

    layers = getattr(config.get_text_config(), "num_hidden_layers", 0)
    if not isinstance(layers, int) or not 0 <= layers <= _LAYERS:
        raise ValueError(f"its config claims {layers} layers")
    with torch.device("meta"):
        module = AutoModelForCausalLM.from_config(config)  # type: ignore[no-untyped-call]
    return sum(parameter.numel() for parameter in module.parameters())


def cache_values(config: Any) -> int:
    """Numbers a token adds to the key-value cache, all layers."""
    config = config.get_text_config()
    heads = config.num_attention_heads
    width = getattr(config, "head_dim", None) or config.hidden_size // heads
    pairs = getattr(config, "num_key_value_heads", None) or heads
    return int(2 * config.num_hidden_layers * pairs * width)


def row_bytes(config: Any, tokens: int, answer: int) -> int:
    """Bytes of one row's activations in a forward without gradients: one layer's, and float32 logits twice."""
    config = config.get_text_config()
    wide = getattr(config, "intermediate_size", None) or getattr(config, "n_inner", None) or 4 * config.hidden_size
    return int(4 * tokens * (8 * config.hidden_size + 3 * int(wide)) + 12 * answer * config.vocab_size)


def free_memory(device: str) -> int:
    """Free bytes on `device` ("cpu", "cuda", "mps")."""
    import psutil
    import torch

    if device == "cuda":  # torch holds on to what it once had, and uses it again
        return int(torch.cuda.mem_get_info()[0] + torch.cuda.memory_reserved() - torch.cuda.memory_allocated())
    return int(psutil.virtual_memory().available)


def share_freed_memory() -> None:
    """Let threads use memory that others have freed: glibc keeps it for each, gigabytes after a gradient.

    Without glibc nothing happens, and threads that run already keep what they have.
    """
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).mallopt(ARENA_MAX, 1)


FREE_SPACE = "Free some space, or set GROUNDWORK_MODELS to another disk"
CLOSE_OTHERS = "Close other programs that use it, or choose a smaller model or bfloat16."


def check_room(what: str, folder: Path, disk: int, memory: int) -> None:
    """Raise `StorageError` or `ModelError` where `what` ("Installing x") needs more bytes than are free."""
    free, left = disk_usage(folder).free, free_memory("cpu")
    if disk > free:
        raise StorageError(f"{what} needs {disk / 1e9:.1f} GB in {folder}; {free / 1e9:.1f} GB are free. {FREE_SPACE}.")
    if memory > left:
        raise ModelError(
            f"{what} needs {memory / 1e9:.1f} GB of memory; {left / 1e9:.1f} GB are free. Close other programs, or "
            "choose a smaller model."
        )


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception of torch or numpy says that memory ran out."""
    text = str(error).lower()
    return isinstance(error, MemoryError) or "out of memory" in text or "can't allocate memory" in text


# Other sums: eager attention, which also shows its weights, and float64.

SHARE = 0.25  # of the free memory that the weights of one layer may take


@contextmanager
def eager_attention(module: Any) -> Iterator[None]:
    """Switch to eager attention, the only one that gives its weights, and back afterwards."""
    before = module.config._attn_implementation
    module.set_attn_implementation("eager")
    try:
        yield
    finally:
        module.set_attn_implementation(before)


@contextmanager
def summed_otherwise(model: Any, tokens: int, *, graph: bool = False) -> Iterator[None]:
    """The same quantities by another order of sums, for rows of up to `tokens`: what differs is rounding.

    A model without a module, or without the memory for a layer's attention weights, stays as it is. `graph`: the
    weights of every layer are kept, for gradients.
    """
    if not hasattr(model, "module"):
        yield
        return
    with model.hold() as module:
        config = module.config.get_text_config()
        layer = 12 * int(config.num_attention_heads) * tokens**2  # bytes, with the float32 softmax of the weights
        layers = int(config.num_hidden_layers) if graph else 1
        fits = layers * layer <= SHARE * free_memory(module.device.type)
        with eager_attention(module) if fits else nullcontext():
            yield


@contextmanager
def computed_otherwise(model: Any, tokens: int) -> Iterator[Any]:
    """The model in another arithmetic, for rows of up to `tokens`: what its numbers differ by is rounding.

    In float64 where there is memory for it, else by another order of sums, gradients included; a model without a
    module as it is.
    """
    twin = in_double(model)
    with summed_otherwise(model, tokens, graph=True) if twin is None else nullcontext():
        yield model if twin is None else twin


def in_double(model: Any) -> Any | None:
    """A copy of the model in float64, to tell the rounding of its numbers; None without a module or room for it."""
    if not hasattr(model, "module"):
        return None
    with model.hold() as module:
        place = module.device.type
        size = 8 * sum(parameter.numel() for parameter in module.parameters())
        fixed = place == "mps" or getattr(module, "is_quantized", False)  # neither goes into float64
        if fixed or size > SHARE * free_memory(place):
            return None
        twin = copy.copy(model)
        twin.module = copy.deepcopy(module).double()
    return twin


# Whether a prompt fits the window; it is never cut.

LEAST_ROOM = 64  # tokens that an answer needs for the prompt to count as fitting


def check_fits(prompt: TokenPrompt, window: int, answer: int, name: str, *, least: bool = False) -> int:
    """Tokens left for the answer, at most `answer`; raise `PromptTooLong` where that is too few.

    Scoring needs room for all of `answer`; writing (`least`) for `LEAST_ROOM` of it, and says afterwards that
    the answer was cut.
    """
    needed = min(answer, LEAST_ROOM) if least else answer
    if len(prompt.ids) + needed > window:
        gone = passages_to_drop(prompt, window - needed)
        count = f"The prompt has {len(prompt.ids)} tokens and the answer needs {needed}; {name} accepts {window}."
        if gone is None:
            raise PromptTooLong(f"{count} It would not fit even without passages: use a model with a longer window.")
        words = "passage" if len(gone) == 1 else "passages"
        raise PromptTooLong(f"{count} It would fit without {words} {', '.join(map(str, gone))}.")
    return min(answer, window - len(prompt.ids))


def passages_to_drop(prompt: TokenPrompt, room: int) -> tuple[int, ...] | None:
    """The fewest passages from the end whose removal brings the prompt to `room` tokens; None if none does."""
    over = len(prompt.ids) - room
    dropped: list[int] = []
    for (_, start, end), number in zip(reversed(prompt.spans), reversed(prompt.numbers), strict=True):
        if over <= 0:
            break
        if number is not None:
            dropped.append(number)
            over -= end - start
    return tuple(sorted(dropped)) if over <= 0 else None


_READING = threading.RLock()  # reentrant, since one model may be read within another's load


SAFE = {"use_safetensors": True}  # pickled weights can run code when opened


def loaded_once(load: Callable[[str], T]) -> Callable[..., T]:
    """`functools.cache` for several threads: one loads, the others wait for what it has loaded; by name or default."""
    kept: Callable[..., T] = cache(load)
    locks: defaultdict[str, threading.RLock] = defaultdict(threading.RLock)
    (default,) = getattr(load, "__defaults__", None) or ("",)

    @wraps(load)
    def alone(name: str = default) -> T:
        with locks[name]:  # of its own: another name may load for minutes
            return kept(name)

    return alone


@contextmanager
def loading(what: str, way_out: str) -> Iterator[None]:
    """`reading_a_model` for a model that is named by id or folder; `ModelNotFound` with the way out where it fails."""
    failures = (OSError, ValueError, KeyError, RuntimeError)
    with raised_as(ModelNotFound, f"{what} cannot be loaded", way_out, *failures), reading_a_model():
        yield


@contextmanager
def reading_a_model() -> Iterator[None]:
    """Around everything that imports from transformers and reads a model: one at a time, without its bars and hints.

    While transformers reads a model it builds it on the meta device by switches of the whole process: two threads that
    read at once give "Cannot copy out of meta tensor". Its lazy imports fail in the same way.
    """
    with _READING:
        from transformers.utils import logging

        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        logging.set_verbosity_error()  # type: ignore[no-untyped-call]
        yield
