"""Hooks on a model's forward: counting what a method costs, and stopping within one layer's time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, fields
from typing import Any

from engine.core.errors import Cancelled
from engine.core.progress import Watch


@dataclass
class ForwardCount:
    """The use of a model: forward passes, rows, and token positions (padding included).

    `seconds` are those of answers that were written before the block that counts and handed out inside it.
    """

    forwards: int = 0
    rows: int = 0
    tokens: int = 0
    seconds: float = 0.0

    def __add__(self, other: ForwardCount) -> ForwardCount:
        return ForwardCount(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


@contextmanager
def count_forwards(model: Any) -> Iterator[ForwardCount]:
    """Count the forwards of `model` made by the current thread inside the block.

    `model` is a `HuggingFaceModel`, a transformers module, or a scripted model (which keeps its own count). What a
    model hands out that was written before (its running count is `spared`) counts as written here.
    """
    module = getattr(model, "module", model)
    hooked = hasattr(module, "register_forward_pre_hook")
    count, before, thread = ForwardCount(), _counted(model, hooked), threading.get_ident()

    def hook(_: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        if threading.get_ident() == thread:
            given = (named.get("input_ids"), named.get("inputs_embeds"), *arguments[:1])
            rows, tokens = next((value.shape[:2] for value in given if value is not None), (0, 0))
            count.forwards += 1
            count.rows += rows
            count.tokens += rows * tokens

    try:
        with module.register_forward_pre_hook(hook, with_kwargs=True) if hooked else nullcontext():
            yield count
    finally:
        after = _counted(model, hooked)
        for part in fields(count):
            more = getattr(after, part.name) - getattr(before, part.name)
            setattr(count, part.name, getattr(count, part.name) + more)


def _counted(model: Any, hooked: bool) -> ForwardCount:
    """A model's own running count: what it hands out written before, and a script's forwards."""
    own = ForwardCount() if hooked else ForwardCount(model.forwards, model.forwards, model.tokens)
    return own + (getattr(model, "spared", None) or ForwardCount())


@contextmanager
def cancellable(module: Any, watch: Watch) -> Iterator[None]:
    """Raise `Cancelled` before the next layer of `module` once `watch` is cancelled; a forward may take seconds."""

    def hook(*_: Any) -> None:
        if watch.cancel.is_set():
            raise Cancelled("Stopped while the model was reading. Finished parts are kept.")

    with ExitStack() as hooks:
        for layer in layers_of(module):
            hooks.enter_context(layer.register_forward_pre_hook(hook))
        yield


def layers_of(module: Any) -> tuple[Any, ...]:
    """The decoder's layers: the children of the longest module list."""
    from torch.nn import ModuleList

    lists = [m for m in module.modules() if isinstance(m, ModuleList)]
    return tuple(max(lists, key=lambda children: sum(1 for _ in children))) if lists else ()


def folded_head(module: Any) -> None:
    """Let the output layer of a model in half precision get its hidden states in plain strides; their values stay.

    torch multiplies the last position of a longer row by a weight without gradients as a batch of matrices, for which
    it copies the whole weight: of Qwen 1.5B in bfloat16 on a CPU that takes three times as long as to read 200 tokens.
    """

    def hook(_: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...] | None:
        hidden = arguments[0]
        if hidden.dtype.itemsize > 2:
            return None  # float32 is not copied, and another path would round otherwise than stored results
        return (hidden.flatten(0, -2).unflatten(0, hidden.shape[:-1]), *arguments[1:])

    head = module.get_output_embeddings()
    if head is not None:
        head.register_forward_pre_hook(hook)


@contextmanager
def picked_positions(module: Any, positions: Any, kept: int) -> Iterator[None]:
    """Let the output layer see only `positions` (rows, tokens) of the `kept` hidden states that reach it.

    Only for calls of the current thread; without an output layer of its own the model is left as it is.
    """
    head = module.get_output_embeddings()
    if head is None:
        yield
        return
    thread = threading.get_ident()

    def hook(_: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...] | None:
        hidden = arguments[0]
        if threading.get_ident() != thread or hidden.shape[:2] != (positions.shape[0], kept):
            return None
        index = positions.to(hidden.device)[..., None].expand(-1, -1, hidden.shape[-1])
        return (hidden.gather(1, index), *arguments[1:])

    with head.register_forward_pre_hook(hook):
        yield
