"""Tiny random language models of every shape that the engine meets, made from configs alone.

Two layers, width 32, a byte-level BPE of 384 tokens trained here. The weights are wide enough that removing a
passage moves the answer's log-probability by nats, so that a wrong position or mask cannot hide.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.core.progress import Watch
from engine.core.values import Answer, Passage, Prompt, Segment

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from engine.core.settings import Decoding
    from engine.models.huggingface import HuggingFaceModel
    from engine.models.protocols import LanguageModel

KINDS = ("llama", "llama_no_bos", "qwen2", "qwen3", "gemma", "gpt2", "lfm2", "mistral")
WINDOW = 512
SLIDING = 64

TEXT = (
    "The crude product is dissolved in hot water and left to cool until crystals form.",
    "Passage 1: The bridge was built in 1874 by Hanna Lind and repaired in 1931.",
    "Question: Who built the bridge? Answer: Hanna Lind built the bridge [cite_1].",
    "The passages do not say. The question is answered from the numbered passages only.",
)

ANSWER = "Hanna Lind built the bridge [cite_1]. It was repaired in 1931 [cite_2]."

TURNS = (
    "{{ bos_token }}{% for m in messages %}{{ '<|start|>' + m['role'] + '\\n' + m['content'] + '<|end|>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|start|>assistant\\n' }}{% endif %}"
)
NO_SYSTEM = (
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}"
    "{% endif %}{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Roles must alternate') }}{% endif %}"
    "{{ '<|start|>' + m['role'] + '\\n' + m['content'] | trim + '<|end|>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|start|>assistant\\n' }}{% endif %}"
)


def tiny_tokenizer(
    *, bos: bool = True, template: str | None = None, texts: Iterable[str] = TEXT, vocabulary: int = 384
) -> PreTrainedTokenizerFast:
    """A byte-level BPE of `vocabulary` tokens trained on `texts`."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=["<pad>", "<s>", "</s>", "<|start|>", "<|end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator(texts, trainer)
    names = {"bos_token": "<s>"} if bos else {}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        eos_token="</s>",
        pad_token="<pad>",
        additional_special_tokens=["<|start|>", "<|end|>"],
        **names,
    )
    tokenizer.chat_template = template
    return tokenizer


def tiny_config(kind: str, vocabulary: int) -> Any:
    """The transformers config of `kind`."""
    import transformers as t

    common: dict[str, Any] = {
        "vocab_size": vocabulary,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": WINDOW,
        "initializer_range": 0.3,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": 0,
    }
    if kind in ("llama", "llama_no_bos"):
        return t.LlamaConfig(**common)
    if kind == "qwen2":
        return t.Qwen2Config(**common, tie_word_embeddings=True)
    if kind == "qwen3":
        return t.Qwen3Config(**common, head_dim=8)
    if kind == "gemma":
        return t.Gemma2Config(**common, head_dim=8, query_pre_attn_scalar=8, sliding_window=SLIDING)
    if kind == "mistral":
        return t.MistralConfig(**common, sliding_window=SLIDING)
    if kind == "lfm2":
        return t.Lfm2Config(
            **common, layer_types=["conv", "full_attention"], conv_L_cache=3, block_auto_adjust_ff_dim=False
        )
    if kind == "gpt2":
        return t.GPT2Config(
            vocab_size=vocabulary, n_embd=32, n_layer=2, n_head=4, n_positions=WINDOW, initializer_range=0.3,
            bos_token_id=2, eos_token_id=2,
        )  # fmt: skip
    raise KeyError(kind)


TEMPLATES = {"llama": TURNS, "qwen2": TURNS, "qwen3": TURNS, "gemma": NO_SYSTEM, "lfm2": TURNS, "mistral": NO_SYSTEM}


@cache
def tiny_model(kind: str, seed: int = 0) -> HuggingFaceModel:
    """A random model of `kind` (one of `KINDS`), float32 on the CPU; the same object for the same arguments.

    `gpt2` and `llama_no_bos` have no chat template; `gemma` and `mistral` have one without a system role.
    """
    import torch
    from transformers import AutoModelForCausalLM

    from engine.models.huggingface import HuggingFaceModel

    torch.set_num_threads(1)
    tokenizer = tiny_tokenizer(bos=kind not in ("llama_no_bos", "gpt2", "qwen2"), template=TEMPLATES.get(kind))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module = AutoModelForCausalLM.from_config(tiny_config(kind, len(tokenizer)), dtype=torch.float32)
    return HuggingFaceModel(f"tiny-{kind}", module, tokenizer)


def save_tiny(folder: Path, kind: str = "llama") -> Path:
    """`folder` with the model and its tokenizer in it, as `load_writer` reads them."""
    tiny_model(kind).module.save_pretrained(folder)
    tiny_model(kind).tokenizer.save_pretrained(folder)
    return folder


def passages(count: int = 4) -> tuple[Passage, ...]:
    """Short made-up passages of different lengths."""
    texts = (
        "Hanna Lind built the bridge in 1874.",
        "The bridge was repaired in 1931 after a flood took its two middle arches away.",
        "Crystals form when the solution cools.",
        "Hot water dissolves the crude product; 12.5 mL are enough for one gram at 95 °C.",
        "Nothing is known of the builder’s later life.",
    )
    return tuple(
        Passage(id=f"p{i}", document=f"d{i}", title="t", ordinal=0, start=0, end=len(text), text=text)
        for i, text in enumerate((texts * (count // len(texts) + 1))[:count])
    )


def tiny_prompt(count: int = 4, *, system: bool = False) -> Prompt:
    """A short prompt over `passages(count)` as one user message, with a system segment on request."""
    from engine.answer.prompt import build_prompt

    asked = build_prompt("Who built the bridge?", passages(count)).segments[1:]
    prompt = (Segment(kind="instruction", text="Answer the question from the passages."), *asked)
    first = (Segment(kind="system", role="system", text="You cite passages."),) if system else ()
    return Prompt(segments=(*first, *prompt))


def written_together(
    model: HuggingFaceModel, prompts: Sequence[Prompt], each: Sequence[Decoding], watch: Watch = Watch(), rows: int = 64
) -> list[Answer]:
    """The answers of one batch, in the order of the prompts; one that it leaves to whoever asked is written alone."""
    asked = [model.request(prompt, one) for prompt, one in zip(prompts, each, strict=True)]
    waiting = iter(asked)
    answers = {one.asked: one.answer for one in model.write_stream(lambda: next(waiting, None), rows, True, watch)}
    return [answers[one] or model.generate(p, d) for one, p, d in zip(asked, prompts, each, strict=True)]


def tiny_answer(model: LanguageModel, text: str = ANSWER) -> Answer:
    """`text` in the model's tokens, with its citations."""
    from engine.answer.citations import annotate

    return annotate(model.encode_answer(text), 9)


def save_cross_encoder(folder: Path) -> Path:
    """`folder` with a sentence-transformers CrossEncoder of random weights in it."""
    import torch
    from sentence_transformers import CrossEncoder
    from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

    from engine.models.embedder import packaged_weights

    tokenizer = AutoTokenizer.from_pretrained(str(packaged_weights()))
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = BertForSequenceClassification(BertConfig(vocab_size=len(tokenizer), num_labels=1, **sizes))
    plain = folder / "plain"
    module.save_pretrained(plain)
    tokenizer.save_pretrained(plain)
    CrossEncoder(str(plain)).save_pretrained(str(folder / "cross-encoder"))
    return folder / "cross-encoder"
