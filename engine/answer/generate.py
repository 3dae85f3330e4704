"""An answer written by a language model: prompt, writing, citations (METHODS section 0)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from engine.answer.citations import annotate
from engine.answer.prompt import build_prompt
from engine.models.protocols import Writer, require
from engine.progress import Watch
from engine.prompts import templates_hash
from engine.settings import Decoding, Prompting
from engine.types import Answer, Passage, Prompt, Stamp
from engine.versions import package_versions

TEMPLATES = ("answer", "answer_from_memory", "passage", "question")


def answer_with(
    model: Writer,
    question: str,
    passages: Sequence[Passage],
    prompting: Prompting,
    decoding: Decoding,
    on_text: Callable[[str], None] | None = None,
    watch: Watch | None = None,
    *,
    numbers: Sequence[int] = (),
) -> tuple[Prompt, Answer]:
    """The exact prompt, and the model's answer with sentences and citations; passages are 1..n or under `numbers`.

    Raises `PromptTooLong` with the count and the passages that would have to go, `CannotDo`, `Cancelled`, and
    whatever the model raises.
    """
    require(model, "generate")
    prompt = build_prompt(question, passages, prompting, numbers=numbers)
    answer = model.generate(prompt, decoding, on_text, watch)
    return prompt, annotate(answer, max(prompt.numbers, default=0), prompting.citations)


def stamp_of(model: Any, prompting: Prompting, decoding: Decoding, inputs: str = "") -> Stamp:
    """What wrote an answer: model, revision, dtype, template hashes, settings, seed, versions, time (UTC).

    `template` joins the hash of the engine's prompt templates with that of the model's chat template.
    """
    own = templates_hash(*TEMPLATES)
    chat = getattr(model, "template", "")
    return Stamp(
        model=model.name,
        revision=getattr(model, "revision", ""),
        dtype=getattr(model, "dtype", ""),
        template=f"{own}+{chat}" if chat else own,
        settings={"prompting": prompting.to_dict(), "decoding": decoding.to_dict()},
        seed=decoding.seed if decoding.temperature > 0 else None,
        versions=package_versions(),
        inputs=inputs,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )
