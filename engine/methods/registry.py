"""The attribution methods by name; a third party's appears as one more row.

    from engine.methods.registry import Method, register
    register(Method("my method", my_function, unit="my unit"))

`my_function(model, prompt, answer, spans, watch)` returns an `Attribution` over the prompt's passages. A package can
also announce a `Method` under the entry point group "groundwork.attribution". Relevance propagation (LRP) comes
that way and not in the tree: a patent is claimed on it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import entry_points
from typing import Any, Literal

from engine.core.errors import InputError
from engine.core.progress import Watch
from engine.core.settings import Occlusion, Settings
from engine.core.values import Answer, Attribution, Json, Prompt
from engine.methods import both_ways, hierarchy
from engine.methods.aggregate import passage_attribution
from engine.methods.attention import value_weighted_attention
from engine.methods.input_x_gradient import GRADIENT_NORM, INPUT_X_GRADIENT, Relevance, input_x_gradient
from engine.methods.integrated_gradients import integrated_gradients
from engine.methods.occlusion import occlusion
from engine.methods.spans import Span
from engine.models.protocols import LanguageModel, require
from engine.models.registry import load_writer

Attribute = Callable[[LanguageModel, Prompt, Answer, Sequence[Span], Watch], Attribution]
GROUP = "groundwork.attribution"
RECOMMENDED = GRADIENT_NORM  # of the methods that cost one backward pass, the best at ranking (bench/RESULTS.md)


@dataclass(frozen=True)
class Method:
    """One row of the table: name, function, unit of its scores, what the model must be able to do, one sentence.

    `explain` gives the relevance of every input token where the method has one: `attribute` before the sums.
    """

    name: str
    attribute: Attribute
    unit: str
    needs: Literal["score", "gradients"] = "gradients"
    about: str = ""
    explain: Callable[..., Relevance] | None = None


def _by_place(score: Callable[..., Attribution]) -> Attribute:
    """A function of the project with its stretches and watch by place, as a third party's has them."""
    return lambda model, prompt, answer, spans, watch: score(model, prompt, answer, spans=spans, watch=watch)


def _hierarchical(settings: Occlusion, *given: Any, **more: Any) -> Attribution:
    """Leave-one-out down a hierarchy, by the proxy of the settings where they name one."""
    proxy: Any = load_writer(settings.proxy) if settings.proxy else None
    if proxy is not None:
        require(proxy, "score")
    return hierarchy.hierarchical(*given, proxy=proxy, **more)


def _of_tokens(name: str, explain: Callable[..., Relevance], unit: str, about: str) -> Method:
    """A method over tokens as one over passages."""
    return Method(name, _by_place(partial(summed, explain)), unit, about=about, explain=explain)


def summed(
    explain: Callable[..., Relevance], model: LanguageModel, prompt: Prompt, answer: Answer, **asked: Any
) -> Attribution:
    """The sums of relevance over each passage's tokens."""
    return passage_attribution(explain(model, prompt, answer, **asked), model.encode(prompt))


def built_in(settings: Settings) -> tuple[Method, ...]:
    """The project's own methods with the target, the steps and the treatment of citation markers that are set."""
    how = settings.gradient
    counted: Json = {"count_citation_markers": settings.occlusion.count_citation_markers}
    gradient = partial(input_x_gradient, target=how.target, **counted)
    integrated = partial(integrated_gradients, target=how.target, steps=how.integrated_steps, **counted)
    leave_out = partial(occlusion, floors=False, settings=settings.occlusion)
    gain = partial(both_ways.both_ways, **counted)
    open_up = partial(_hierarchical, settings.occlusion, **counted)
    left_out = "Drop in the answer's log-probability without the passage."
    gained = "Gain of each word by the passage, next to the others and alone: its likely source."
    opened = "Occlusion for many passages: a cheap look at all, then exact scores of those that matter."
    weighted = "Attention weighted by the value it carries; never negative."
    reaction, squared = "How strongly the answer reacts to every input token.", f"squared gradient of the {how.target}"
    attention = partial(value_weighted_attention, **counted)
    return (
        Method("occlusion", _by_place(leave_out), "nats", "score", left_out),
        Method(both_ways.METHOD, _by_place(gain), both_ways.UNIT, "score", gained),
        Method(hierarchy.METHOD, _by_place(open_up), "nats", "score", opened),
        _of_tokens(INPUT_X_GRADIENT, gradient, how.target, "First-order effect of every input token."),
        _of_tokens(GRADIENT_NORM, partial(gradient, form="norm"), squared, reaction),
        _of_tokens("integrated gradients", integrated, how.target, "Gradients along a path from zero."),
        _of_tokens("value-weighted attention", attention, "attention x value norm", weighted),
    )


_registered: dict[str, Method] = {}


def register(method: Method) -> None:
    """Add a method for this process; `InputError` if the name is taken."""
    if method.name in {known.name for known in methods()}:
        raise InputError(f"There is already an attribution method named {method.name!r}. Choose another name.")
    _registered[method.name] = method


def unregister(name: str) -> None:
    """Take a registered method out again."""
    _registered.pop(name, None)


def methods(settings: Settings = Settings()) -> tuple[Method, ...]:
    """All methods: the built-in ones as they are set, those of installed packages, those of this process."""
    return (*built_in(settings), *_installed(), *_registered.values())


@cache
def _installed() -> tuple[Method, ...]:
    """Read once a process: looking through all installed packages takes 17 ms, and a page asks for each analysis."""
    return tuple(entry.load() for entry in entry_points(group=GROUP))


def method(name: str, settings: Settings = Settings()) -> Method:
    """The method named `name` as it is set; `InputError` listing the names there are."""
    found = {known.name: known for known in methods(settings)}
    if name not in found:
        raise InputError(f"There is no attribution method {name!r}. Choose one of: {', '.join(found)}.")
    return found[name]
