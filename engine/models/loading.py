"""Weights and tokenizer from a folder, a .gguf file or a Hugging Face id: safetensors, no remote code."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from pathlib import Path
from typing import Any

import torch
from huggingface_hub.errors import StrictDataclassError

from engine.core.errors import ModelError, ModelNotFound, first_line
from engine.core.hosts import is_offline
from engine.core.progress import Watch
from engine.models.gguf import check_readable, converted_folder, is_gguf, read_header
from engine.models.memory import (
    BYTES,
    MemoryEstimate,
    free_memory,
    is_out_of_memory,
    memory_estimate,
    reading_a_model,
    share_freed_memory,
)

SAMPLED = 1 << 18  # values of a tensor that the revision looks at; smaller tensors are hashed whole
# What transformers raises over files that are missing, damaged or lie.
UNREADABLE = (
    *(OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RuntimeError, StrictDataclassError),
)
INCIDENTAL = {"_name_or_path", "architectures", "dtype", "transformers_version"}  # differ between equal models


def load_parts(
    name: str | Path, dtype: str = "auto", device: str = "auto", adapter: Path | None = None, watch: Watch = Watch()
) -> tuple[Any, Any]:
    """(module, tokenizer), the module on its device; a .gguf file is converted first where it was not yet.

    `adapter` is a folder in PEFT's format that is merged into the weights. Raises `ModelNotFound` where files are
    missing or of another kind, `ModelError` where they cannot be used.
    """
    source, offline = str(converted_folder(Path(name), watch) if is_gguf(name) else name), is_offline()
    share_freed_memory()
    try:
        with reading_a_model():
            from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

            options: dict[str, Any] = {"trust_remote_code": False, "local_files_only": offline}
            tokenizer = AutoTokenizer.from_pretrained(source, **options)
            place, config = pick_device(device), AutoConfig.from_pretrained(source, **options)
            chosen = pick_dtype(dtype, place, config)
            check_memory(source, config, chosen, place)
            module: Any = AutoModelForCausalLM.from_pretrained(
                source, config=config, use_safetensors=True, dtype=chosen, **options
            )
            module = module.to(place)
            if adapter is not None:
                module = merge_adapter(module, adapter)
    except UNREADABLE as error:
        raise _explain(source, error, offline) from error
    return module, tokenizer


def gguf_file(source: Path) -> Path | None:
    """The GGUF file that a model's path is, or that lies in its folder; None without one."""
    return source if is_gguf(source) else next(source.glob("*.gguf"), None)


def merge_adapter(module: Any, folder: Path) -> Any:
    """The module with the adapter in `folder` (PEFT's format, safetensors) added to its weights."""
    from peft import PeftModel

    if not (folder / "adapter_model.safetensors").is_file():
        raise OSError(f"{folder} has no adapter_model.safetensors")
    with warnings.catch_warnings():  # PEFT reads an attribute that transformers has renamed
        warnings.simplefilter("ignore", FutureWarning)
        return PeftModel.from_pretrained(module, str(folder)).merge_and_unload()


def estimate(name: str | Path) -> MemoryEstimate:
    """The memory in float32 of the model of that id, folder or .gguf file, from its config; raises `ModelNotFound`."""
    offline = is_offline()
    source, options = str(name), {}
    if is_gguf(name):
        check_readable(read_header(Path(name)), Path(name))
        source, options = str(Path(name).parent), {"gguf_file": Path(name).name}
    try:
        with reading_a_model():
            from transformers import AutoConfig

            config = AutoConfig.from_pretrained(source, trust_remote_code=False, local_files_only=offline, **options)
        return memory_estimate(config, "float32")
    except UNREADABLE as error:
        raise _explain(str(name), error, offline) from error


def check_memory(source: str, config: Any, dtype: torch.dtype, device: str) -> None:
    """Raise `ModelError` where the weights alone are more than the memory that is free."""
    chosen = str(dtype).removeprefix("torch.")
    needed, free = memory_estimate(config, chosen).weights, free_memory(device.partition(":")[0])
    if needed > free:
        raise ModelError(
            f"{source} needs {needed / 1e9:.1f} GB for its weights in {chosen}; {free / 1e9:.1f} GB are free. "
            "Choose a smaller model, or bfloat16, or close other programs."
        )


def pick_device(device: str) -> str:
    """ "auto" is CUDA, then MPS, then the CPU; anything else is taken as it is and checked."""
    if device == "auto":
        if torch.cuda.is_available():
            return "cuda"
        return "mps" if torch.backends.mps.is_available() else "cpu"
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise ModelError("This machine has no CUDA device. Choose the device cpu.")
    return device


def pick_dtype(dtype: str, device: str, config: Any) -> torch.dtype:
    """ "auto": float32 on a CPU that holds it in half of its free memory, else the checkpoint's own."""
    if dtype not in ("auto", *BYTES):
        raise ModelError(f"There is no dtype {dtype!r}. Choose one of auto, {', '.join(BYTES)}.")
    if dtype != "auto":
        named: torch.dtype = getattr(torch, dtype)
        return named
    own: torch.dtype = getattr(config, "dtype", None) or torch.float32
    if device != "cpu" or own == torch.float32:
        return own
    fits = memory_estimate(config, "float32").weights < free_memory("cpu") // 2
    return torch.float32 if fits else torch.bfloat16


def _explain(source: str, error: Exception, offline: bool) -> ModelError:
    folder = Path(source)
    if is_out_of_memory(error):
        return ModelError(
            f"{source} does not fit into free memory. Choose a smaller model or bfloat16, or close other programs on "
            f"the device."
        )
    if os.path.isdir(source) and any(folder.glob("*.bin")) and not any(folder.glob("*.safetensors")):
        return ModelNotFound(
            f"{source} has only pickled weights, which can run code when opened. Convert them to safetensors."
        )
    if "trust_remote_code" in str(error):
        return ModelError(f"{source} needs to run its own code, which Groundwork does not allow. Choose another model.")
    out = "Unset HF_HUB_OFFLINE to download it, or give a folder." if offline else "Check the name or give a folder."
    return ModelNotFound(f"The model {source} cannot be loaded ({first_line(error)[:200]}). {out}")


def revision_of(module: Any) -> str:
    """Hash of config and weights: every value of tensors up to 262,144 values, evenly spaced ones above."""
    config = {key: value for key, value in module.config.to_dict().items() if key not in INCIDENTAL}
    digest = hashlib.sha256(json.dumps(config, sort_keys=True, default=str).encode())
    for name, tensor in sorted(module.state_dict().items()):
        values = tensor.detach().flatten()
        sample = values[:: max(1, -(-values.numel() // SAMPLED))]
        digest.update(f"{name}{tuple(tensor.shape)}".encode() + sample.float().cpu().numpy().tobytes())
    return digest.hexdigest()[:16]
