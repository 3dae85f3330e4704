"""The mean of several trained weights of one shape, which often does more than each: python -m engine.train.average.

    python -m engine.train.average FOLDER FOLDER ... --out FOLDER

Legs of training that start from one another lie in one basin, and the mean of their weights forgets less of what an
earlier leg knew (Wortsman et al. 2022, "Model soups"). Averaged in float32, kept in bfloat16.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import torch
from transformers import Lfm2ForCausalLM

from engine.train.architecture import load, save


def average(folders: Sequence[Path], out: Path) -> None:
    """Write the mean of the folders' weights, with the last one's tokenizer and the training logs of all.

    Raises `ValueError` for weights of different shapes or names.
    """
    models, tokenizers = zip(*(load(folder) for folder in folders), strict=True)
    states = [model.state_dict() for model in models]
    shapes = [{name: tensor.shape for name, tensor in state.items()} for state in states]
    if any(shape != shapes[0] for shape in shapes):
        raise ValueError("The weights differ in shape. Average legs of one model only.")
    mean = Lfm2ForCausalLM(models[0].config)
    mean.load_state_dict({name: torch.stack([s[name] for s in states]).mean(0) for name in states[0]})
    logs = [json.loads((folder / "training.json").read_text(encoding="utf-8")) for folder in folders]
    save(mean, tokenizers[-1], out, {"mean of": logs})


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Average the weights of several legs of training.")
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(arguments)
    average(options.folders, options.out)


if __name__ == "__main__":
    main()
