"""The embedded model's tokenizer: byte-level BPE with every digit a token of its own.

A space is put before every text (and taken off on decoding), so that a word has the same id at the start of an
answer as inside a passage: a model that copies then needs one rule, not two. Digits stand alone, without the
space before them, so that 43 and 43,518 share their tokens and the 3 of "Passage 3" is the 3 of "[cite_3]".
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

BOS, EOS, PAD = "<s>", "</s>", "<pad>"
PIECES = r" ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def train_tokenizer(texts: Iterable[str], vocabulary: int = 2048) -> PreTrainedTokenizerFast:
    """Train on `texts`; ids 0, 1, 2 are BOS, EOS and padding."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=False))
    tokenizer.normalizer = normalizers.Prepend(" ")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Strip(" ", 1, 0)])
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[BOS, EOS, PAD],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    made: PreTrainedTokenizerFast = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer,
        bos_token=BOS,
        eos_token=EOS,
        pad_token=PAD,
        model_max_length=16_384,
        clean_up_tokenization_spaces=False,
    )
    return made


def load_tokenizer(folder: Path) -> PreTrainedTokenizerFast:
    """Read a saved tokenizer."""
    found: PreTrainedTokenizerFast = PreTrainedTokenizerFast.from_pretrained(folder)
    return found
