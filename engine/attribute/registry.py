"""The attribution methods by name; a third party's appears as one more row.

    from engine.attribute.registry import Method, register
    register(Method("my method", my_function, unit="my unit"))

`my_function(model, prompt, answer, spans, watch)` returns an `Attribution` over the prompt's passages. A package can
also announce a `Method` under the entry point group "groundwork.attribution". Relevance propagation (LRP) comes
that way and not in the tree: a patent is claimed on it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import entry_points
from typing import Literal

from engine.attribute.aggregate import passage_attribution
from engine.attribute.attention import value_weighted_attention
from engine.attribute.input_x_gradient import input_x_gradient
from engine.attribute.integrated_gradients import integrated_gradients
from engine.attribute.occlusion import occlusion
from engine.attribute.relevance import Relevance
from engine.attribute.spans import Span
from engine.errors import InputError
from engine.models.protocols import LanguageModel
from engine.progress import Watch
from engine.settings import Gradient
from engine.types import Answer, Attribution, Prompt

Attribute = Callable[[LanguageModel, Prompt, Answer, Sequence[Span], Watch | None], Attribution]
GROUP = "groundwork.attribution"


@dataclass(frozen=True)
class Method:
    """One row of the table: name, function, unit of its scores, what the model must be able to do, one sentence."""

    name: str
    attribute: Attribute
    unit: str
    needs: Literal["score", "gradients"] = "gradients"
    about: str = ""


def _occlusion(
    model: LanguageModel, prompt: Prompt, answer: Answer, spans: Sequence[Span], watch: Watch | None
) -> Attribution:
    return occlusion(model, prompt, answer, spans=spans, floors=False, watch=watch)


def _summed(explain: Callable[..., Relevance]) -> Attribute:
    """A method over tokens as one over passages: sums over each passage's tokens."""

    def attribute(
        model: LanguageModel, prompt: Prompt, answer: Answer, spans: Sequence[Span], watch: Watch | None
    ) -> Attribution:
        relevance = explain(model, prompt, answer, spans=spans, watch=watch)
        return passage_attribution(relevance, model.encode(prompt))

    return attribute


def built_in(how: Gradient) -> tuple[Method, ...]:
    """The project's own methods; `how` gives the gradient methods their target and steps."""
    gradient = partial(input_x_gradient, target=how.target)
    integrated = partial(integrated_gradients, target=how.target, steps=how.integrated_steps)
    return (
        Method("occlusion", _occlusion, "nats", "score", "Drop of the answer's log-probability without the passage."),
        Method("input x gradient", _summed(gradient), how.target, about="First-order effect of every input token."),
        Method("integrated gradients", _summed(integrated), how.target, about="Gradients along a path from zero."),
        Method(
            "value-weighted attention",
            _summed(value_weighted_attention),
            "attention x value norm",
            about="Where the attention goes, weighted by what it carries; never negative.",
        ),
    )


_registered: dict[str, Method] = {}
_lock = threading.Lock()


def register(method: Method) -> None:
    """Add a method for this process; `InputError` if the name is taken."""
    with _lock:
        if method.name in {known.name for known in built_in(Gradient())} | _registered.keys():
            raise InputError(f"There is already an attribution method named {method.name!r}. Choose another name.")
        _registered[method.name] = method


def unregister(name: str) -> None:
    """Take a registered method out again."""
    with _lock:
        _registered.pop(name, None)


def methods(how: Gradient | None = None) -> tuple[Method, ...]:
    """All methods: the built-in ones as `how` sets them, those of installed packages, those of this process."""
    return (*built_in(how or Gradient()), *_installed(), *_registered.values())


@cache
def _installed() -> tuple[Method, ...]:
    """Read once a process: looking through all installed packages takes 17 ms, and a page asks for each analysis."""
    return tuple(entry.load() for entry in entry_points(group=GROUP))


def method(name: str, how: Gradient | None = None) -> Method:
    """The method named `name` as `how` sets it; `InputError` listing the names there are."""
    found = {known.name: known for known in methods(how)}
    if name not in found:
        raise InputError(f"There is no attribution method {name!r}. Choose one of: {', '.join(found)}.")
    return found[name]
