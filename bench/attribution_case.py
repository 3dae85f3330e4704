"""The model, prompt and answer of the attribution bench. Imports nothing from this project.

A random-weight Llama with a byte-level BPE over made-up reports. Speed and exactness do not depend on what a model
knows. `save` writes it to a folder, `load` reads it back in any environment with transformers.
"""

from __future__ import annotations

import functools
import json
import random
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

_NOUNS = (
    "acid answer bridge builder camera castle century chapel chemist clerk coast colour council crystal current "
    "delta desert device dialect doctor dynasty empire engine estate factory farmer fever filter forest fossil "
    "garden glacier granite harbour harvest history island journal kingdom ladder library lantern machine market "
    "meadow merchant mineral mirror monument mountain museum needle nitrate novel oxygen painter palace paper "
    "parish pepper piano planet plaster poet portrait powder prison quarry railway record reform river salt "
    "school sculptor senate shelter signal silver sketch soldier solvent station stone street sugar surgeon "
    "tanner temple theatre timber tower trader treaty tunnel valley vessel village violin voyage water weaver "
    "window winter"
)
_VERBS = "built found sold moved painted burned repaired copied opened closed measured heated cooled drew carried"
WORDS, VERBS = _NOUNS.split(), _VERBS.split()
INSTRUCTION = "Answer the question from the passages and cite them."
QUESTION = "\n\nQuestion: Who built the tower?\nAnswer:"


@dataclass(frozen=True)
class Shape:
    """Sizes of the model and of the case; sizes of text are in tokens."""

    hidden: int = 384
    layers: int = 8
    heads: int = 6
    key_heads: int = 2
    inner: int = 1024
    vocabulary: int = 32_000
    passages: int = 10
    passage_tokens: int = 100
    answer_tokens: int = 48
    dtype: str = "float32"


LARGE = Shape(hidden=896, layers=24, heads=14, key_heads=2, inner=4864, vocabulary=151_936, dtype="bfloat16")
SMALL = Shape(hidden=160, layers=4, heads=4, key_heads=2, inner=448, vocabulary=8_000)


@dataclass(frozen=True)
class TextCase:
    """The prompt in parts, and the answer. Joined, the parts are the prompt."""

    before: str
    passages: tuple[str, ...]
    after: str
    answer: str

    @property
    def prompt(self) -> str:
        return self.before + "".join(self.passages) + self.after


def sentence(rng: random.Random) -> str:
    words = rng.sample(WORDS, 4)
    return f"The {words[0]} {words[1]} {rng.choice(VERBS)} the {words[2]} {words[3]} in {rng.randint(1500, 1999)}."


def make_tokenizer() -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    rng = random.Random(1)
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=1024,
        special_tokens=["<pad>", "<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator((sentence(rng) for _ in range(4000)), trainer)
    return PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", eos_token="</s>", pad_token="<pad>")


def make_case(tokenizer: Any, shape: Shape, seed: int = 0) -> TextCase:
    """Passages of about `passage_tokens` tokens and an answer of exactly `answer_tokens`."""
    rng = random.Random(seed)
    passages = []
    for number in range(1, shape.passages + 1):
        text = f"\n\nPassage {number}:"
        while len(tokenizer(text)["input_ids"]) < shape.passage_tokens:
            text += " " + sentence(rng)
        passages.append(text)
    ids = tokenizer(" " + " ".join(sentence(rng) for _ in range(20)))["input_ids"][: shape.answer_tokens]
    return TextCase(INSTRUCTION, tuple(passages), QUESTION, tokenizer.decode(ids))


def make_model(shape: Shape) -> Any:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=shape.vocabulary,
        hidden_size=shape.hidden,
        intermediate_size=shape.inner,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.key_heads,
        max_position_embeddings=8192,
        tie_word_embeddings=True,
        initializer_range=0.05,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
    )
    torch.manual_seed(0)
    return LlamaForCausalLM(config).to(getattr(torch, shape.dtype)).eval().requires_grad_(False)


def save(folder: Path, model: Any, tokenizer: Any, cases: list[TextCase]) -> None:
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / "cases.json").write_text(json.dumps([asdict(case) for case in cases]), encoding="utf-8")


def load_cases(folder: Path) -> list[TextCase]:
    rows = json.loads((folder / "cases.json").read_text(encoding="utf-8"))
    return [TextCase(r["before"], tuple(r["passages"]), r["after"], r["answer"]) for r in rows]


def cpu_seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """CPU seconds of the fastest of `repeats` runs, on one thread, so other processes do not count."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def plain_forward(model: Any, tokenizer: Any, case: TextCase) -> Callable[[], object]:
    """Run one forward pass over prompt + answer with all logits: the unit of every ratio."""
    import torch

    ids = torch.tensor([tokenizer(case.prompt + case.answer)["input_ids"]])

    def work() -> object:
        with torch.no_grad():
            return model(input_ids=ids, use_cache=False).logits

    return work


class Counter:
    """Counts the rows of every forward pass, even when a caller bypasses the module's hooks."""

    def __init__(self, model: Any) -> None:
        self.rows = 0
        self.model = model
        forward = model.forward

        @functools.wraps(forward)
        def counted(*arguments: Any, **named: Any) -> Any:
            value = named.get("input_ids")
            value = named.get("inputs_embeds") if value is None else value
            self.rows += int((arguments[0] if value is None else value).shape[0])
            return forward(*arguments, **named)

        model.forward = counted

    def stop(self) -> None:
        """Restore the model's own forward."""
        del self.model.forward
