"""A training set for a decomposer from anybody's triples (ARE, 4.1.1 and C.4; METHODS section 3).

    python -m engine.train.decomposer_data triples.jsonl --out DIR [--samples 8138] [--held-out 1000] [--seed 1337]

Triples (a line each: {"subject", "relation", "object"} or a list of the three) -> filtered as in C.4 -> atomic facts ->
texts of molecular clauses. DIR gets train.jsonl and held_out.jsonl with {"text", "clauses": [{"text", "facts"}]}, and
lora.json with the paper's settings of the tuning. Subjects of the held-out part are in no training text. Where the
paper has a language model put the facts into words, rules do; the tuning itself needs a model of your own.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from engine.errors import InputError
from engine.train.jobs_facts import joined
from engine.train.worlds import Triple, World, fact

USELESS = (
    *("ID", ".svg", ".jpg", ".png", ".JPG", ".JPEG", "http://", "https://", "Category:", "Wikipedia:", "code"),
    *("UMLS CUI", "Wikimedia", ".map", "ISO", "UNESCO", "html", "IPTC", "ISNI", "ISSN"),
)
LORA = {"epochs": 3, "learning_rate": 1e-4, "warmup_ratio": 0.1, "lr_scheduler": "cosine", "cutoff_length": 2048}
MOST = 6  # facts of a text
_USELESS = re.compile("|".join(rf"\b{re.escape(w)}\b" if w.isalpha() else re.escape(w) for w in USELESS))

Row = dict[str, Any]


def kept(triples: Iterable[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """The triples that say something, each once: none of the rules' words, no empty part.

    >>> kept([("Ada", "ISNI", "0001"), ("Ada", "born in", "Cork"), ("Ada", "image", "ada.jpg")])
    [('Ada', 'born in', 'Cork')]
    """
    whole = [t for t in dict.fromkeys(triples) if all(part.strip() for part in t)]
    return [t for t in whole if not any(_USELESS.search(part) for part in t)]


def read_triples(path: Path) -> list[tuple[str, str, str]]:
    """The triples of a JSONL file; raise `InputError` naming the first line that is none."""
    found = []
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                parts = _parts(line)
                if not isinstance(parts, list) or len(parts) != 3 or not all(isinstance(part, str) for part in parts):
                    raise InputError(f'Line {number} of {path} is no triple. Write ["subject", "relation", "object"].')
                found.append((parts[0], parts[1], parts[2]))
    return found


def _parts(line: str) -> Any:
    """What a line holds in the place of a triple; None where it is no JSON."""
    try:
        data = json.loads(line)
    except ValueError:
        return None
    return [data.get(name) for name in ("subject", "relation", "object")] if isinstance(data, dict) else data


def sample(triples: Sequence[Triple], rng: random.Random) -> Row:
    """One text on one subject: its clauses are verbatim, their facts name the subject."""
    facts = [fact(t, rng) for t in rng.sample(list(triples), min(len(triples), rng.randint(1, MOST)))]
    clauses: list[Row] = []
    while facts:
        size = 2 if rng.random() < 0.6 else 1
        group, facts = facts[:size], facts[size:]
        sentence, _ = joined(group, rng)
        clauses.append({"text": sentence, "facts": [one.statement.removesuffix(".") for one in group]})
    return {"text": " ".join(clause["text"] for clause in clauses), "clauses": clauses}


def samples(triples: Sequence[tuple[str, str, str]], count: int, rng: random.Random) -> Iterator[Row]:
    """`count` texts, subjects drawn alike; raise `InputError` without a usable triple."""
    world = World.of(kept(triples))
    about: dict[str, list[Triple]] = defaultdict(list)
    for triple in world.triples:
        about[triple.subject].append(triple)
    if not about:
        raise InputError("No triple is left after filtering. Give triples with words for subject, relation and object.")
    subjects = list(about)
    for _ in range(count):
        yield sample(about[rng.choice(subjects)], rng)


def split_by_subject(
    triples: Sequence[tuple[str, str, str]], share: float, rng: random.Random
) -> tuple[list[tuple[str, str, str]], list[tuple[str, str, str]]]:
    """(training, held out): about `share` of the subjects are held out, at least one where there are two."""
    subjects = sorted({t[0] for t in triples})
    rng.shuffle(subjects)
    apart = set(subjects[: max(1, round(share * len(subjects)))] if len(subjects) > 1 else [])
    return [t for t in triples if t[0] not in apart], [t for t in triples if t[0] in apart]


def main(arguments: Sequence[str] | None = None) -> None:
    """Read, filter, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("triples", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--samples", type=int, default=8138, help="the paper's 7138 and 1000")
    parser.add_argument("--held-out", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1337)
    asked = parser.parse_args(arguments)
    rng = random.Random(asked.seed)
    triples = kept(read_triples(asked.triples))
    training, apart = split_by_subject(triples, asked.held_out / max(1, asked.samples), rng)
    asked.out.mkdir(parents=True, exist_ok=True)
    parts = {"train": (training, asked.samples - asked.held_out), "held_out": (apart, asked.held_out if apart else 0)}
    for name, (own, count) in parts.items():
        lines = [json.dumps(row, ensure_ascii=False) for row in (samples(own, count, rng) if count else ())]
        (asked.out / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        print(f"{name}: {len(lines)} texts from {len(own)} triples")
    (asked.out / "lora.json").write_text(json.dumps(LORA, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
