"""Make a decomposer's training set from your triples (ARE, section 4.1.2 and appendix C.4).

    python -m training.decomposer_data triples.jsonl --out DIR [--samples 8138] [--held-out 1000] [--seed 1337]

Triples (one per line: {"subject", "relation", "object"} or a list of the three) -> filtered as in C.4 -> facts ->
texts of molecular clauses. DIR gets train.jsonl and held_out.jsonl with {"text", "clauses": [{"text", "facts"}]}, the
same as chat messages (train_messages.jsonl, held_out_messages.jsonl) in the words of the decomposer's own prompts, and
lora.json with the paper's tuning settings, which `training.decomposer` uses. No subject of the held-out part occurs in
a training text. In the paper a language model words the facts; here `PREDICATES` does. Relations that it does not list
are left out; `--predicates FILE` adds yours.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from engine.core.errors import InputError
from engine.core.values import Prompt
from engine.models.chat import as_messages, turns
from engine.prompts import ask

USELESS = (
    *("ID", ".svg", ".jpg", ".png", ".JPG", ".JPEG", "http://", "https://", "Category:", "Wikipedia:", "code"),
    *("UMLS CUI", "Wikimedia", ".map", "ISO", "UNESCO", "html", "IPTC", "ISNI", "ISSN"),
)
LORA = {
    "epochs": 3,
    "learning_rate": 1e-4,
    "batch_size": 1,
    "gradient_accumulation": 2,
    "warmup_ratio": 0.1,
    "lr_scheduler": "cosine",
    "cutoff_length": 2048,
}
PREDICATES = {
    "author": "was written by {o}",
    "award": "received the {o}",
    "award received": "received the {o}",
    "capital": "has {o} as its capital",
    "country": "is in {o}",
    "country of citizenship": "was a citizen of {o}",
    "date of birth": "was born {t}",
    "date of death": "died {t}",
    "died in": "died in {o}",
    "born in": "was born in {o}",
    "director": "was directed by {o}",
    "educated at": "studied at {o}",
    "employer": "worked for {o}",
    "field of work": "worked in {o}",
    "founded by": "was founded by {o}",
    "headquarters location": "has its headquarters in {o}",
    "inception": "was founded {t}",
    "located in": "is in {o}",
    "member of": "was a member of {o}",
    "occupation": "worked as {a} {o}",
    "performer": "was performed by {o}",
    "place of birth": "was born in {o}",
    "place of death": "died in {o}",
    "publisher": "was published by {o}",
    "sex or gender": "is {o}",
    "spouse": "was married to {o}",
}
PRONOUNS = {("sex or gender", "male"): "He", ("sex or gender", "female"): "She"}
THINGS = ("author", "capital", "director", "founded by", "headquarters location", "inception", "performer")
MOST = 6  # facts per text
_USELESS = re.compile("|".join(rf"\b{re.escape(w)}\b" if w.isalpha() else re.escape(w) for w in USELESS))

Row = dict[str, Any]


def kept(triples: Iterable[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """The distinct triples without an empty part or a word of `USELESS`.

    >>> kept([("Ada", "ISNI", "0001"), ("Ada", "born in", "Cork"), ("Ada", "image", "ada.jpg")])
    [('Ada', 'born in', 'Cork')]
    """
    whole = [t for t in dict.fromkeys(triples) if all(part.strip() for part in t)]
    return [t for t in whole if not any(_USELESS.search(part) for part in t)]


def read_triples(path: Path) -> list[tuple[str, str, str]]:
    """The triples of a JSONL file; raise `InputError` naming the first line that is not one."""
    found = []
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                parts = _parts(line)
                if not isinstance(parts, list) or len(parts) != 3 or not all(isinstance(part, str) for part in parts):
                    raise InputError(
                        f'Line {number} of {path} is not a triple. Write ["subject", "relation", "object"].'
                    )
                found.append((parts[0], parts[1], parts[2]))
    return found


def _parts(line: str) -> Any:
    """The parts of a line's triple; None if the line is not JSON."""
    try:
        data = json.loads(line)
    except ValueError:
        return None
    return [data.get(name) for name in ("subject", "relation", "object")] if isinstance(data, dict) else data


def predicate(relation: str, value: str, predicates: Mapping[str, str] = PREDICATES) -> str:
    """A sentence's words after its subject; empty for a relation without a wording.

    >>> predicate("placeOfBirth", "Cork"), predicate("occupation", "engineer"), predicate("time zone", "UTC")
    ('was born in Cork', 'worked as an engineer', '')
    """
    article, when = "an" if value[:1].lower() in "aeiou" else "a", f"{'in' if value.isdigit() else 'on'} {value}"
    return predicates.get(in_words(relation), "").format(o=value, a=article, t=when)


def in_words(relation: str) -> str:
    """A relation's name in lower-case words.

    >>> in_words("placeOfBirth"), in_words("Died_in")
    ('place of birth', 'died in')
    """
    return re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", relation).lower()


def pronoun(about: Iterable[tuple[str, str, str]]) -> str:
    """The pronoun for the subject of these triples; empty where they do not tell.

    >>> pronoun([("Ada", "sex or gender", "female")]), pronoun([("Emma", "author", "Austen")]), pronoun([])
    ('She', 'It', '')
    """
    said = {(in_words(relation), value) for _, relation, value in about}
    by_gender = [word for known, word in PRONOUNS.items() if known in said]
    return next(iter(by_gender), "It" if any(relation in THINGS for relation, _ in said) else "")


def sample(subject: str, predicates: Sequence[str], rng: random.Random, pronoun: str = "") -> Row:
    """One text about one subject: sentences of one or two predicates, each with the facts that it states.

    After the first sentence the `pronoun`, if any, replaces every other name; facts keep the name (appendix A.2).
    """
    rest = rng.sample(list(predicates), min(len(predicates), rng.randint(1, MOST)))
    clauses: list[Row] = []
    while rest:
        size = 2 if rng.random() < 0.6 else 1
        group, rest = rest[:size], rest[size:]
        named = pronoun if pronoun and len(clauses) % 2 else subject
        clauses.append({"text": f"{named} {' and '.join(group)}.", "facts": [f"{subject} {said}" for said in group]})
    return {"text": " ".join(clause["text"] for clause in clauses), "clauses": clauses}


def samples(
    triples: Sequence[tuple[str, str, str]], count: int, rng: random.Random, predicates: Mapping[str, str] = PREDICATES
) -> Iterator[Row]:
    """`count` texts, subjects drawn with equal chances; raise `InputError` if no relation has a wording."""
    about: dict[str, list[tuple[str, str, str]]] = defaultdict(list)
    for triple in kept(triples):
        if predicate(*triple[1:], predicates):
            about[triple[0]].append(triple)
    if not about:
        raise InputError("No triple is left: none of the relations has a wording. Add yours with --predicates FILE.")
    subjects = list(about)
    for _ in range(count):
        subject = rng.choice(subjects)
        said = [predicate(relation, value, predicates) for _, relation, value in about[subject]]
        yield sample(subject, said, rng, pronoun(about[subject]))


def pairs(row: Row) -> Iterator[tuple[Prompt, str]]:
    """(prompt, wanted reply) of a text: one for its clauses, then one for the facts of each clause."""
    yield ask("clauses", text=row["text"]), "\n".join(clause["text"] for clause in row["clauses"])
    for clause in row["clauses"]:
        yield ask("facts", text=row["text"], clause=clause["text"]), "\n".join(clause["facts"])


def as_chat(prompt: Prompt, reply: str) -> Row:
    """A pair as chat messages."""
    return {"messages": [*as_messages(prompt, turns(prompt)), {"role": "assistant", "content": reply}]}


def split_by_subject(
    triples: Sequence[tuple[str, str, str]], share: float, rng: random.Random
) -> tuple[list[tuple[str, str, str]], list[tuple[str, str, str]]]:
    """(training, held out): about `share` of the subjects are held out; at least one of two or more."""
    subjects = sorted({t[0] for t in triples})
    rng.shuffle(subjects)
    apart = set(subjects[: max(1, round(share * len(subjects)))] if len(subjects) > 1 else [])
    return [t for t in triples if t[0] not in apart], [t for t in triples if t[0] in apart]


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """One JSON object per line."""
    path.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    """Read, filter, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("triples", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--samples", type=int, default=8138, help="the paper's 7138 and 1000")
    parser.add_argument("--held-out", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1337)
    parser.add_argument("--predicates", type=Path, help='JSON: {"relation": "was built by {o}"}')
    asked = parser.parse_args(arguments)
    rng = random.Random(asked.seed)
    wordings = {**PREDICATES, **(json.loads(asked.predicates.read_bytes()) if asked.predicates else {})}
    triples = [t for t in kept(read_triples(asked.triples)) if predicate(t[1], t[2], wordings)]
    training, apart = split_by_subject(triples, asked.held_out / max(1, asked.samples), rng)
    asked.out.mkdir(parents=True, exist_ok=True)
    parts = {"train": (training, asked.samples - asked.held_out), "held_out": (apart, asked.held_out if apart else 0)}
    for name, (own, count) in parts.items():
        texts = list(samples(own, count, rng, wordings)) if count else []
        write_rows(asked.out / f"{name}.jsonl", texts)
        write_rows(asked.out / f"{name}_messages.jsonl", (as_chat(*pair) for row in texts for pair in pairs(row)))
        print(f"{name}: {len(texts)} texts from {len(own)} triples")
    (asked.out / "lora.json").write_text(json.dumps(LORA, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
