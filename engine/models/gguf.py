"""GGUF files: the header, read with bounds; and the file converted once to safetensors that give gradients.

GGUF is the format of llama.cpp (github.com/ggml-org/ggml, in its docs folder). transformers dequantizes the weights;
they are stored in bfloat16, tied weights once. Conversion takes seconds to minutes, loading what it wrote a second.
"""

from __future__ import annotations

import mmap
import shutil
import struct
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

from engine.core.errors import ModelError, ModelNotFound, StorageError, raised_as
from engine.core.files import models_folder, place_folder, sha256_of
from engine.core.progress import Watch
from engine.core.values import Value
from engine.models.catalogue import draft_of, folder_name, is_complete
from engine.models.memory import FREE_SPACE, check_room, reading_a_model

SUFFIX = ".gguf"
_VERSIONS = (2, 3)
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_DIMENSIONS = 8  # of a tensor; ggml has 4
# Fields that size what is built before the weights are read: a file cannot claim more than its tensors hold.
_SIZES = ("block_count", "embedding_length", "feed_forward_length", "vocab_size", "attention.head_count")
_SMALL = 64 << 20  # bytes for config, tokenizer and the file system's own use


class Tensor(Value, frozen=True):
    """One tensor of a GGUF file: its quantization by name ("Q4_K"), its count of values; size and offset in bytes."""

    name: str
    quantization: str
    values: int
    size: int
    offset: int


class Header(Value, frozen=True):
    """The header of a GGUF file, before its weights."""

    architecture: str
    tensors: tuple[Tensor, ...]

    @property
    def values(self) -> int:
        """Number of parameters, as the file stores them."""
        return sum(tensor.values for tensor in self.tensors)


def is_gguf(name: str | Path) -> bool:
    """Whether a model's name is that of a GGUF file."""
    return str(name).lower().endswith(SUFFIX)


def read_header(path: Path) -> Header:
    """The header of a GGUF file; every length in it is checked against the file's size before use.

    Raises `ModelNotFound` where there is no such file, `ModelError` where it is not GGUF, cut or damaged.
    """
    with _readable(path), path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise ModelError(f"{path} is not a GGUF file. Give a .gguf file or a Hugging Face folder.")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _Reader(data, path).header()


def _readable(path: Path) -> AbstractContextManager[None]:
    return raised_as(ModelNotFound, f"{path} cannot be read", "Check the path.", OSError)


class _Reader:
    """A position in a GGUF file's header that never leaves the file."""

    def __init__(self, data: mmap.mmap, path: Path) -> None:
        self.data, self.path, self.place = data, path, 4

    def header(self) -> Header:
        (version,) = self.take("I")
        if version not in _VERSIONS:
            raise ModelError(
                f"{self.path} is GGUF version {version}; only little-endian versions 2 and 3 are supported. Convert "
                f"it again with a current llama.cpp."
            )
        tensors, fields = self.take("QQ")
        known = dict(self.field() for _ in self.counted(fields, 13))
        found = tuple(self.tensor() for _ in self.counted(tensors, 24))
        self.check_size(found, known.get("general.alignment", 32))
        architecture = str(known.get("general.architecture", ""))
        self.check_claims({name: known.get(f"{architecture}.{name}") for name in _SIZES}, found)
        return Header(architecture=architecture, tensors=found)

    def take(self, form: str) -> tuple[Any, ...]:
        """Numbers of struct's form, little-endian."""
        return struct.unpack("<" + form, self.bytes(struct.calcsize("<" + form)))

    def bytes(self, count: int) -> bytes:
        start = self.skip(count)
        return self.data[start : self.place]

    def skip(self, count: int) -> int:
        """Move on by `count` bytes; return where they began."""
        if count > len(self.data) - self.place:
            raise self.damaged("its header is longer than the file")
        start, self.place = self.place, self.place + count
        return start

    def counted(self, count: int, least: int) -> range:
        """`range(count)` for things of at least `least` bytes each."""
        if count * least > len(self.data) - self.place:
            raise self.damaged(f"it claims {count:,} entries, more than it can contain")
        return range(count)

    def text(self) -> str:
        return self.bytes(*self.take("Q")).decode("utf-8", "replace")

    def field(self) -> tuple[str, Any]:
        return self.text(), self.value(*self.take("I"))

    def value(self, kind: int) -> Any:
        """A scalar or a text; arrays are passed over, and come as None."""
        if kind in _SCALARS:
            return self.take(_SCALARS[kind])[0]
        if kind == _STRING:
            return self.text()
        if kind != _ARRAY:
            raise self.damaged(f"it has a field of unknown type {kind}")
        item, count = self.take("IQ")
        if item in _SCALARS:
            self.skip(count * struct.calcsize("<" + _SCALARS[item]))
        elif item == _STRING:
            for _ in self.counted(count, 8):
                self.skip(*self.take("Q"))
        else:
            raise self.damaged(f"it has an array of unknown type {item}")
        return None

    def tensor(self) -> Tensor:
        from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

        name = self.text()
        (dimensions,) = self.take("I")
        if dimensions > _DIMENSIONS:
            raise self.damaged(f"a tensor claims {dimensions:,} dimensions")
        values = 1
        for size in self.take("Q" * len(self.counted(dimensions, 8))):
            values *= size
        kind, offset = self.take("IQ")
        if kind not in {known.value for known in GGMLQuantizationType}:
            return Tensor(name=name, quantization=f"number {kind}", values=values, size=0, offset=offset)
        known = GGMLQuantizationType(kind)
        block, size = GGML_QUANT_SIZES[known]
        return Tensor(name=name, quantization=known.name, values=values, size=values // block * size, offset=offset)

    def check_size(self, tensors: Sequence[Tensor], alignment: Any) -> None:
        """Raise `ModelError` where a tensor would end after the file does."""
        if not isinstance(alignment, int) or alignment < 1:
            raise self.damaged(f"its alignment is {alignment}")
        start = -(-self.place // alignment) * alignment
        needed = max((start + tensor.offset + tensor.size for tensor in tensors), default=0)
        if needed > len(self.data):
            raise self.damaged(f"its tensors need {needed:,} bytes and it has {len(self.data):,}")

    def check_claims(self, sizes: Mapping[str, Any], tensors: Sequence[Tensor]) -> None:
        """Raise `ModelError` if a size is not a positive number, or more than the tensors have layers or values."""
        most = sum(tensor.values for tensor in tensors)
        for name, size in sizes.items():
            if size is None:
                continue
            if not isinstance(size, int) or not 0 < size <= (len(tensors) if name == "block_count" else most):
                raise self.damaged(f"its {name} is {size}, which its {len(tensors):,} tensors cannot hold")

    def damaged(self, why: str) -> ModelError:
        return ModelError(f"{self.path} is incomplete or damaged: {why}. Download it again.")


def check_readable(header: Header, path: Path) -> None:
    """Raise `ModelError` for an architecture or a quantization that cannot be converted."""
    from gguf import quants
    from transformers.modeling_gguf_pytorch_utils import GGUF_SUPPORTED_ARCHITECTURES

    if header.architecture not in GGUF_SUPPORTED_ARCHITECTURES:
        raise ModelError(
            f"{path} has the architecture {header.architecture or '(unnamed)'}, which transformers cannot read from "
            "GGUF. Give the model's Hugging Face folder, or serve it and give openai:MODEL@BASE_URL."
        )
    kinds = {tensor.quantization for tensor in header.tensors}
    unreadable = sorted(kind for kind in kinds - {"F32", "F16"} if not hasattr(quants, kind))
    if unreadable:
        raise ModelError(
            f"{path} holds weights quantized as {', '.join(unreadable)}, which is not supported. Choose a file "
            f"quantized as Q8_0, Q6_K, Q5_K_M or Q4_K_M."
        )


def convert(path: Path, folder: Path, watch: Watch = Watch(), *, move: bool = False) -> Path:
    """Convert a GGUF file to a Hugging Face folder, unless the folder is there; return the folder.

    It appears under its name when all of it is written: what was broken off is made again from the start. One process
    converts, others wait. With `move` the file itself goes into the folder, too. Raises `ModelError` for a file that
    cannot be converted or too little memory, `StorageError` for too little disk, `Cancelled` between two stages.
    """
    from safetensors import SafetensorError

    if is_complete(folder):
        return folder
    with draft_of(folder, watch) as draft:
        if is_complete(folder):  # another process converted it meanwhile
            return folder
        header = read_header(path)
        check_readable(header, path)
        check_room(f"Converting {path.name}", folder.parent, *needed_room(header))
        tokenizer, module = _read(path, watch)
        watch.step("writing the weights", 2, 3)
        failed = f"{path.name} cannot be converted into {folder.parent}"
        with raised_as(StorageError, failed, f"{FREE_SPACE}.", OSError, SafetensorError):
            _write(module, tokenizer, draft)
            if move:
                path.replace(draft / path.name)
            place_folder(draft, folder)
        watch.report("writing the weights", 3, 3)
    return folder


def needed_room(header: Header) -> tuple[int, int]:
    """Bytes of disk that the converted weights take, and of memory that converting takes.

    Weights take 2 bytes per value in bfloat16; the largest tensor passes through float32 twice. Measured peaks: 5.5 GB
    for 1.8 billion values, 0.7 GB for 135 million.
    """
    largest = max((tensor.values for tensor in header.tensors), default=0)
    return 2 * header.values + _SMALL, 2 * header.values + 8 * largest + 4 * _SMALL


def _read(path: Path, watch: Watch) -> tuple[Any, Any]:
    """(tokenizer, module) of a GGUF file; `ModelError` where transformers cannot make them."""
    watch.step("reading the tokenizer", 0, 3)
    failures = (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RuntimeError)
    way_out = "Choose another file of this model."
    with raised_as(ModelError, f"{path} cannot be converted", way_out, *failures, struct.error), reading_a_model():
        from tqdm import tqdm
        from transformers import AutoTokenizer, modeling_gguf_pytorch_utils

        # Its bar is one of its own, which transformers' switch does not reach.
        modeling_gguf_pytorch_utils.tqdm = partial(tqdm, disable=True)  # type: ignore[attr-defined]
        tokenizer = AutoTokenizer.from_pretrained(str(path.parent), gguf_file=path.name, local_files_only=True)
        watch.step("dequantizing the weights", 1, 3)
        return tokenizer, _module(path)


def _write(module: Any, tokenizer: Any, draft: Path) -> None:
    """Write weights in bfloat16, config, generation config and tokenizer into `draft`."""
    import torch
    from safetensors.torch import save_file

    # save_pretrained refuses a module that was read from quantized weights: the state dict is written instead.
    tied: dict[int, tuple[str, Any]] = {}  # by the place of the data: tied weights under their first name
    for name, tensor in module.state_dict().items():
        tied.setdefault(tensor.data_ptr(), (name, tensor))
    weights = {name: tensor.to(torch.bfloat16).contiguous() for name, tensor in tied.values()}
    save_file(weights, draft / "model.safetensors", metadata={"format": "pt"})
    module.config.architectures = [type(module).__name__]
    if hasattr(module.config, "quantization_config"):
        del module.config.quantization_config
    module.config.save_pretrained(draft)
    module.generation_config.save_pretrained(draft)
    tokenizer.save_pretrained(draft)
    shutil.copymode(draft / "config.json", draft / "model.safetensors")  # which save_file makes for its user alone


def _module(path: Path) -> Any:
    """The module with all of its weights from the file, in bfloat16."""
    import torch
    from transformers import AutoModelForCausalLM, GgufConfig

    loaded: Any = AutoModelForCausalLM.from_pretrained(
        str(path.parent),
        gguf_file=path.name,
        dtype=torch.bfloat16,
        local_files_only=True,
        output_loading_info=True,
        quantization_config=GgufConfig(dequantize=True),
    )
    module, read = loaded
    missing = sorted({*read["missing_keys"], *(str(key) for key in read["mismatched_keys"])})
    if missing:
        raise ValueError(f"it lacks {len(missing)} weights, first {missing[0]}")
    return module


def converted_folder(path: Path, watch: Watch = Watch()) -> Path:
    """The folder of a converted GGUF file, converted now if it was not; named by the file's SHA-256, too."""
    if not path.is_file():
        raise ModelNotFound(f"{path} does not exist. Check the path.")
    with _readable(path):
        return convert(path, models_folder() / folder_name(path.stem, sha256_of(path)), watch)
