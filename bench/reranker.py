"""Does a trained re-ranker beat best-sentence similarity: python -m bench.reranker --model FOLDER --data DIR [--write].

FOLDER is what `training.reranker` wrote. Each held-out question's best `POOL` passages of the first stage (hybrid)
are ranked anew by both; recall@1 and MRR@10 over the questions, a gold passage outside the pool counts as missed by
both. XQuAD was in no training.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from bench.results import conditions, write_section
from engine.core.statistics import paired_bootstrap
from engine.core.text import titled
from engine.models.embedder import load_embedder
from engine.models.protocols import Floats, Reranker
from engine.models.reranker import load_reranker
from engine.models.verdicts import windows
from engine.models.verifier_network import collate, encode, load_network
from engine.retrieve.search import best_rows
from training.reranker import LIMIT
from training.reranker_data import SETS, WINDOW, Ask, Ranking, first_stage, load_set

POOL = 20
UNSEEN = "xquad_en"
HEAD = (
    "| set | questions | recall@1: best sentence | trained | change | MRR@10: best sentence | trained | change |",
    "|---|---|---|---|---|---|---|---|",
)


class TrainedReranker:
    """The trained network's logit of (question, passage), the maximum over the passage's windows under its title."""

    def __init__(self, folder: Path) -> None:
        """Load the weights that `training.reranker` wrote."""
        self._network, self._tokenizer = load_network(folder)
        self.name = folder.name

    def rank_scores(self, question: str, texts: Sequence[str]) -> Floats:
        """Return one logit a text, shape (len(texts),)."""
        parts = [_windows(text) for text in texts]
        pairs = [(question, part) for found in parts for part in found]
        with torch.inference_mode():
            logits = self._network(**collate(encode(self._tokenizer, pairs, LIMIT))).numpy().reshape(-1)
        ends = np.cumsum([len(found) for found in parts])
        return np.array([part.max() for part in np.split(logits, ends[:-1])], dtype=np.float32)


def _windows(text: str) -> list[str]:
    title, _, body = text.partition("\n\n")
    return [titled(title, body[a:b]) for a, b in windows(body, WINDOW)]


@dataclass(frozen=True)
class Ranks:
    """For each question the gold passage's place after re-ranking, from 1; 0 where it is not in the pool."""

    places: tuple[int, ...]
    seconds: float

    @property
    def first(self) -> list[float]:
        """1.0 where the gold passage comes first."""
        return [float(place == 1) for place in self.places]

    @property
    def reciprocal(self) -> list[float]:
        """Reciprocal rank within the first ten."""
        return [1 / place if 0 < place <= 10 else 0.0 for place in self.places]


def ranks(data: Ranking, asked: Sequence[Ask], pools: Sequence[Sequence[int]], reranker: Reranker) -> Ranks:
    """Re-rank every question's pool."""
    places = []
    started = time.perf_counter()
    for ask, pool in zip(asked, pools, strict=True):
        texts = [f"{data.passages[p][1]}\n\n{data.passages[p][2]}" for p in pool]
        order = np.argsort(-reranker.rank_scores(ask.text, texts), kind="stable")
        ranked = [pool[i] for i in order]
        places.append(ranked.index(ask.gold) + 1 if ask.gold in ranked else 0)
    return Ranks(tuple(places), time.perf_counter() - started)


def row(name: str, plain: Ranks, trained: Ranks) -> str:
    """One line of the table; differences are trained minus best sentence with the paired bootstrap's interval."""
    cells = [name, str(len(plain.places))]
    for measure in ("first", "reciprocal"):
        a, b = getattr(plain, measure), getattr(trained, measure)
        gain = paired_bootstrap(b, a)
        cells += [f"{np.mean(a):.3f}", f"{np.mean(b):.3f}", f"{gain.mean:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]"]
    return "| " + " | ".join(cells) + " |"


def compare(folder: Path, name: str, trained: Reranker, limit: int) -> str:
    """The table's line of one set."""
    data = load_set(folder, name)
    fit = [ask for ask in data.questions if name == UNSEEN or data.held_out(ask.gold)]
    asked = random.Random(7).sample(fit, min(limit, len(fit)))
    scores = first_stage(data, asked, load_embedder())
    pools = [[int(p) for p in best_rows(scored, POOL)] for scored in scores]
    plain, ours = (ranks(data, asked, pools, r) for r in (load_reranker(), trained))
    print(f"{name}: {plain.seconds:.0f} s against {ours.seconds:.0f} s for {len(asked)} questions", flush=True)
    return row(name if name != UNSEEN else f"{name} (never trained on)", plain, ours)


def main() -> None:
    """Print the table; `--write` puts it into the results page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--limit", type=int, default=300, help="questions a set")
    parser.add_argument("--write", action="store_true", help="write the section of bench/RESULTS.md")
    options = parser.parse_args()
    trained = TrainedReranker(options.model)
    table = [*HEAD]
    for name in (*SETS, UNSEEN):
        table.append(compare(options.data, name, trained, options.limit))
        print(table[-1], flush=True)
    if options.write:
        told = f"Held-out questions, the first stage's {POOL} best passages ranked anew. "
        title = f"## Re-ranker: trained adapter against best-sentence similarity\n\n{told}\n\n{conditions()}\n"
        write_section("reranker", "\n".join([title, *table]))


if __name__ == "__main__":
    main()
