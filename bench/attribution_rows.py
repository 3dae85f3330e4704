"""Measure each method of the attribution bench: CPU seconds, plain forward passes they equal, rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.attribution_case import Counter, TextCase, cpu_seconds
from engine.core.values import Prompt, Segment
from engine.methods.input_x_gradient import input_x_gradient
from engine.methods.occlusion import occlusion
from engine.models.huggingface import HuggingFaceModel
from engine.models.scoring import score_rows

FEW_TOKENS = 6  # answer tokens on which captum's default is measured, and with a large model what goes token by token


@dataclass(frozen=True)
class Row:
    """A table row: method, CPU seconds, plain forward passes they equal, rows through the model."""

    name: str
    seconds: float
    plain: float
    rows: float


def prompt_of(case: TextCase) -> Prompt:
    passages = [Segment(kind="passage", text=text, number=n) for n, text in enumerate(case.passages, start=1)]
    return Prompt(
        segments=(Segment(kind="instruction", text=case.before), *passages, Segment(kind="question", text=case.after))
    )


def measured(name: str, module: Any, plain: float, work: Callable[[], object], repeats: int = 3) -> Row:
    counter = Counter(module)
    seconds = cpu_seconds(work, repeats)
    counter.stop()
    return Row(name, seconds, seconds / plain, counter.rows / repeats)


def ours(model: HuggingFaceModel, case: TextCase, plain: float, repeats: int) -> list[Row]:
    prompt = prompt_of(case)
    answer = model.encode_answer(case.answer)
    coded = model.encode(prompt)
    rows = [coded.ids, *(coded.without({n}).ids for n in prompt.numbers)]
    ids = [token.id for token in answer.tokens]
    module = model.module

    def plain_rows() -> object:
        return score_rows(module, rows, ids)

    whole = ((0, len(answer.text)),)
    return [
        measured(
            "input x gradient, whole answer", module, plain, lambda: input_x_gradient(model, prompt, answer), repeats
        ),
        measured(
            "leave-one-out", module, plain, lambda: occlusion(model, prompt, answer, spans=whole, floors=False), repeats
        ),
        measured("leave-one-out without prefix reuse", module, plain, plain_rows, repeats),
    ]


def exact_tops(model: HuggingFaceModel, cases: list[TextCase]) -> list[int]:
    tops = []
    for case in cases:
        result = occlusion(model, prompt_of(case), model.encode_answer(case.answer), floors=False)
        tops.append(int(np.argmax(result.scores[0])))
    return tops


def captum_rows(module: Any, tokenizer: Any, case: TextCase, plain: float, few: int) -> tuple[list[Row], list[str]]:
    from captum.attr import (
        FeatureAblation,
        LayerGradientXActivation,
        LLMAttribution,
        LLMGradientAttribution,
        TextTemplateInput,
        TextTokenInput,
    )

    count = len(case.passages)
    template = TextTemplateInput(case.before + "{}" * count + case.after, list(case.passages), [""] * count)
    one = TextTemplateInput("{}" + "".join((*case.passages[1:], case.after)), [case.passages[0]], [""])
    ablation = LLMAttribution(FeatureAblation(module), tokenizer)
    embedding = module.get_input_embeddings()
    gradient = LLMGradientAttribution(LayerGradientXActivation(module, embedding), tokenizer)
    answer = tokenizer(case.answer, return_tensors="pt")["input_ids"][0]
    # By default the prompt goes through the model again for every answer token, beside a cache that grows each time:
    # a few tokens and one passage are measured and scaled linearly, which is a lower bound.
    scale = (count + 1) / 2 * len(answer) / FEW_TOKENS
    works: tuple[tuple[str, float, Callable[[], object]], ...] = (
        (
            "captum LLMAttribution, forward_in_tokens=False",
            1.0,
            lambda: ablation.attribute(template, target=answer, forward_in_tokens=False),
        ),
        ("captum LLMAttribution, default", scale, lambda: ablation.attribute(one, target=answer[:FEW_TOKENS])),
        (
            "captum LLMGradientAttribution",
            len(answer) / few,
            lambda: gradient.attribute(TextTokenInput(case.prompt, tokenizer), target=answer[:few]),
        ),
    )
    rows, notes = [], []
    for name, factor, work in works:
        embedding.requires_grad_("Gradient" in name)
        try:
            row = measured(name, module, plain, work, 1)
            rows.append(Row(name, row.seconds * factor, row.plain * factor, row.rows * factor))
        except Exception as error:  # a peer that fails is a row of the table, not the end of the run
            notes.append(f"{name} failed: {type(error).__name__}: {str(error)[:200]}.")
        embedding.requires_grad_(False)
        print(rows[-1:], flush=True)
    return rows, [*notes, *captum_notes(count, len(answer), few)]


def captum_notes(count: int, length: int, few: int) -> list[str]:
    """Say which captum figures are scaled, for `count` passages and an answer of `length` tokens."""
    default = (
        f"captum LLMAttribution by default was measured on {FEW_TOKENS} of {length} tokens and 2 of {count + 1} "
        "evaluations and scaled linearly. Its cost grows faster, so its row is a lower bound. Under transformers 5 its "
        "values are also wrong (the cached prompt is repeated); forward_in_tokens=False is exact."
    )
    scaled = (
        f"captum LLMGradientAttribution and inseq work token by token: {few} of {length} were measured and scaled "
        "linearly."
    )
    return [default, scaled] if few < length else [default]
