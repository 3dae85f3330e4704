"""Measure inseq and context-cite on the saved case, in their own environment. Prints JSON.

python attribution_peers.py FOLDER FEW
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from attribution_case import Counter, cpu_seconds, load_cases, plain_forward  # type: ignore[import-not-found]


def measure_inseq(model: Any, tokenizer: Any, case: Any, few: int) -> dict[str, float]:
    """Measure the first `few` answer tokens, one pass each, and scale to all of them."""
    import inseq

    for parameter in model.parameters():
        parameter.requires_grad_(True)
    wrapped = inseq.load_model(model, "input_x_gradient", tokenizer=tokenizer)

    tokens = tokenizer(case.answer)["input_ids"]
    answer = tokenizer.decode(tokens[:few])

    def work() -> object:
        return wrapped.attribute(case.prompt, case.prompt + answer, show_progress=False, attributed_fn="logit")

    counter = Counter(model)
    seconds = cpu_seconds(work, 1)
    scale = len(tokens) / min(few, len(tokens))
    return {"seconds": seconds * scale, "rows": counter.rows * scale}


def measure_context_cite(model: Any, tokenizer: Any, cases: list[Any]) -> dict[str, Any]:
    import numpy as np
    from context_cite import ContextCiter
    from context_cite.context_partitioner import BaseContextPartitioner

    class Passages(BaseContextPartitioner):
        """The case's passages as sources, joined unchanged."""

        def __init__(self, case: Any) -> None:
            super().__init__("".join(case.passages))
            self.case = case

        @property
        def num_sources(self) -> int:
            return len(self.case.passages)

        def split_context(self) -> None:
            pass

        def get_source(self, index: int) -> str:
            return self.case.passages[index]

        def get_context(self, mask: Any = None) -> str:
            kept = np.ones(self.num_sources, dtype=bool) if mask is None else mask
            return "".join(p for p, keep in zip(self.case.passages, kept, strict=False) if keep)

    tokenizer.chat_template = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
    tops, rows, seconds = [], 0, 0.0
    for case in cases:
        citer = ContextCiter(
            model,
            tokenizer,
            "".join(case.passages),
            case.after,
            prompt_template=case.before.replace("{", "").replace("}", "") + "{context}{query}",
            partitioner=Passages(case),
        )
        citer._cache["output"] = case.prompt + case.answer
        counter = Counter(model)
        seconds += cpu_seconds(lambda c=citer: tops.append(int(np.argmax(c.get_attributions(as_dataframe=False)))), 1)
        rows += counter.rows
        counter.stop()
    return {"seconds": seconds / len(cases), "rows": rows / len(cases), "top": tops}


def attempt(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return work()
    except Exception as error:  # a peer that fails is a row of the table, not the end of the run
        return {"error": f"{type(error).__name__}: {error}"[:300], "trace": traceback.format_exc()[-1500:]}


def main(folder: Path, few: int) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.set_num_threads(1)
    model = AutoModelForCausalLM.from_pretrained(folder).eval().requires_grad_(False)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    cases = load_cases(folder)
    found: dict[str, Any] = {"plain": cpu_seconds(plain_forward(model, tokenizer, cases[0]))}
    found["context-cite"] = attempt(lambda: measure_context_cite(model, tokenizer, cases))
    found["inseq"] = attempt(lambda: measure_inseq(model, tokenizer, cases[0], few))
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
