"""A prompt's segments placed into a model's chat template, each piece known by itself (docs/methods/common-ground.md).

The template is rendered once around placeholders, so that no segment's text ever passes through it: what the
template adds comes back as pieces of its own, and a segment's ids depend on its text alone. A template that
trims its messages therefore trims nothing here.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, pairwise
from typing import Any

from engine.core.errors import ModelError
from engine.core.values import Prompt

TEMPLATE = -1


@dataclass(frozen=True)
class TemplatePiece:
    """Text that is tokenised on its own; `segment` is its index in the prompt, `TEMPLATE` for the template's."""

    segment: int
    text: str


@dataclass(frozen=True)
class ChatTurn:
    """One message: its role and the indexes of the segments that it is made of."""

    role: str
    segments: tuple[int, ...]


def turns(prompt: Prompt, *, system: bool = True) -> tuple[ChatTurn, ...]:
    """Neighbouring segments of one role as one message; not `system`: system text counts as the user's."""
    roles = [segment.role if system or segment.role != "system" else "user" for segment in prompt.segments]
    groups = groupby(range(len(roles)), key=roles.__getitem__)
    return tuple(ChatTurn(role=role, segments=tuple(group)) for role, group in groups)


def chat_pieces(tokenizer: Any, prompt: Prompt) -> tuple[TemplatePiece, ...]:
    """The prompt's segments in order with the template's own pieces around them.

    Without a chat template: the tokenizer's BOS token if it has one, then the segments. Raises `ModelError`
    where the template cannot hold the messages.
    """
    if not tokenizer.chat_template:
        bos = (TemplatePiece(TEMPLATE, tokenizer.bos_token),) if tokenizer.bos_token else ()
        return bos + tuple(_turn_pieces(prompt, range(len(prompt.segments))))
    messages, frame = fitting_turns(tokenizer, prompt)
    pieces = [TemplatePiece(TEMPLATE, frame[0])]
    for turn, after in zip(messages, frame[1:], strict=True):
        pieces += [*_turn_pieces(prompt, turn.segments), TemplatePiece(TEMPLATE, after)]
    return tuple(piece for piece in pieces if piece.text)


def fitting_turns(tokenizer: Any, prompt: Prompt) -> tuple[tuple[ChatTurn, ...], list[str]]:
    """The messages as the template takes them, system text merged where it must be, and what it writes around them."""
    for system in (True, False):
        messages = turns(prompt, system=system)
        frame = render_frame(tokenizer, messages)
        if frame is not None:
            return messages, frame
    roles = ", ".join(turn.role for turn in turns(prompt))
    raise ModelError(
        f"The model's chat template cannot hold messages of the roles {roles}. "
        "Use a model with a standard chat template, or a prompt without demonstrations."
    )


def as_messages(prompt: Prompt, messages: tuple[ChatTurn, ...]) -> list[dict[str, str]]:
    """The messages as a chat template or a server takes them: role and content."""
    return [
        {"role": turn.role, "content": "".join(piece.text for piece in _turn_pieces(prompt, turn.segments))}
        for turn in messages
    ]


# A template is a program that comes with a model. transformers runs it in Jinja's sandbox, which bounds neither time
# nor memory: so each is tried once in a process of its own, under limits.

LONGEST = 100_000  # characters that a template may write around two short messages
_SECONDS, _MEMORY = 5, 2**29
_TRIAL = """
import json, sys
from jinja2 import nodes
from jinja2.exceptions import TemplateError, TemplateSyntaxError
from jinja2.ext import Extension
from jinja2.sandbox import ImmutableSandboxedEnvironment

class Generation(Extension):
    tags = {"generation"}
    def parse(self, parser):
        next(parser.stream)
        return parser.parse_statements(["name:endgeneration"], drop_needle=True)

def refuse(message):
    raise TemplateError(message)

given = json.load(sys.stdin)
try:
    import resource
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + given["memory"],) * 2)
    resource.setrlimit(resource.RLIMIT_CPU, (given["seconds"],) * 2)
except (ImportError, OSError):
    pass  # where there are no such limits the one of time is the caller's
own = ImmutableSandboxedEnvironment(
    trim_blocks=True, lstrip_blocks=True, extensions=[Generation, "jinja2.ext.loopcontrols"]
)
own.globals |= {"raise_exception": refuse, "strftime_now": lambda form: "2026-01-01"}
try:
    template = own.from_string(given["template"])
    for roles in (["system", "user"], ["user", "assistant", "user"]):
        messages, length = [{"role": role, "content": "x"} for role in roles], 0
        try:
            for part in template.generate(
                messages=messages, add_generation_prompt=True, bos_token="", eos_token="", enable_thinking=False
            ):
                length += len(part)
                if length > given["longest"]:
                    sys.exit("it writes more than fits into a prompt")
        except TemplateSyntaxError:
            raise
        except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError):
            pass  # these roles it does not take
except TemplateSyntaxError as error:
    sys.exit(f"it cannot be read: {error}")
except (MemoryError, RecursionError, OverflowError) as error:
    sys.exit(f"it takes too much memory ({type(error).__name__})")
"""


@lru_cache(maxsize=64)
def check_template(template: str) -> None:
    """Try a chat template under limits; `ModelError` where it does not terminate, takes too much or writes too much."""
    given = {"template": template, "memory": _MEMORY, "seconds": _SECONDS, "longest": LONGEST}
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-c", _TRIAL],
            input=json.dumps(given),
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=4 * _SECONDS,
        )
        if not done.returncode:
            return
        said = done.stderr.strip().splitlines() or ["it fails"]
        reason = said[-1] if done.returncode > 0 else "it does not terminate"
    except subprocess.TimeoutExpired:
        reason = "it does not terminate"
    raise ModelError(
        f"The model's chat template is not used: {reason[:200]}. Use another model, or another file of this one."
    )


def render_frame(tokenizer: Any, messages: tuple[ChatTurn, ...]) -> list[str] | None:
    """The template's text around each message, len(messages) + 1 texts; None where it refuses, drops or moves one."""
    from jinja2.exceptions import TemplateError

    named = tokenizer.chat_template
    for template in named.values() if isinstance(named, dict) else (named,):
        check_template(template)
    marks = [f"\ue000{index}\ue001" for index in range(len(messages))]
    chat = [{"role": turn.role, "content": mark} for turn, mark in zip(messages, marks, strict=True)]
    try:
        text = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True, enable_thinking=False)
    except TemplateError:
        return None
    frame = []
    for mark in marks:
        before, found, text = text.partition(mark)
        if not found:
            return None
        frame.append(before)
    return [*frame, text]


def _turn_pieces(prompt: Prompt, indexes: Sequence[int]) -> Iterator[TemplatePiece]:
    """The segments of one message; where system text had to join it, a blank line follows that text."""
    for index, after in pairwise((*indexes, indexes[-1] if indexes else 0)):
        yield TemplatePiece(index, prompt.segments[index].text)
        if prompt.segments[index].role == "system" != prompt.segments[after].role:
            yield TemplatePiece(TEMPLATE, "\n\n")
