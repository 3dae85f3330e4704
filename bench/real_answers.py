"""Which passage an answer comes from: python -m bench.real_answers --data DIR --out FILE [--n 40] [--write].

Human answers with a known source: NQ (the short answer), CLAP NQ (the first sentence) and HotpotQA (the short answer,
two paragraphs), each with the nearest other passages by BM25. How often a row puts a true source first: leave-one-out,
each passage alone, both, other sums of the same token scores, next to word overlap and verbatim matching. Token scores
are kept in FILE, a line per answer: a run that is started again continues, and a new sum costs nothing. `--write` only
reports what FILE holds.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from bench.results import conditions, write_section
from bench.retrieval import lines
from bench.token_maps import cut
from engine.answer.prompt import build_prompt
from engine.core.progress import last
from engine.core.text import content_words, sentences
from engine.core.values import AuditRecord
from engine.methods.occlusion import ask, score_rows
from engine.methods.spans import passage_numbers, passage_positions
from engine.models.alignment import clean
from engine.models.huggingface import HuggingFaceModel
from engine.models.registry import load_writer
from engine.retrieve.bm25 import Bm25

PASSAGES, LONGEST = 6, 130
Floats = NDArray[np.float64]


class Known(NamedTuple):
    """A question, its passages in random order, an answer, and the numbers (from 0) of the passages it comes from."""

    id: str
    question: str
    passages: tuple[str, ...]
    answer: str
    gold: tuple[int, ...]


def mixed(rng: random.Random, gold: Sequence[str], others: Sequence[str]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The passages in random order, and where the true ones are."""
    order = rng.sample(range(PASSAGES), PASSAGES)
    texts = [*gold, *others][:PASSAGES]
    return tuple(texts[i] for i in order), tuple(place for place, i in enumerate(order) if i < len(gold))


def beside_nearest(name: str, rows: Sequence[dict[str, Any]], n: int) -> Iterator[Known]:
    """One passage that answers, and the nearest of the other questions' passages."""
    rng, texts = random.Random(5), [row["passage"] for row in rows]
    index = Bm25.of(texts)
    for place in rng.sample(range(len(rows)), n):
        row = rows[place]
        order = np.argsort(-np.asarray(index.scores(row["question"])), kind="stable")
        near = [texts[i] for i in order if texts[i] != row["passage"]][: PASSAGES - 1]
        passages, gold = mixed(rng, [row["passage"]], near)
        yield Known(f"{name} {place}", row["question"], passages, row["answer"], gold)


def nq(folder: Path, n: int) -> Iterator[Known]:
    """Short answers; passages cut to whole sentences around the answer."""
    rows = [
        {
            **row,
            "passage": cut(row["passage"], max(row["passage"].find(row["answers"][0]), 0)),
            "answer": row["answers"][0],
        }
        for row in lines(folder / "nq_gold_passage" / "qa.jsonl")
        if row["answers"][0] in row["passage"]
    ]
    yield from beside_nearest("NQ", rows, n)


def clapnq(folder: Path, n: int) -> Iterator[Known]:
    """First sentences of long answers."""
    rows = []
    for row in lines(folder / "clapnq" / "qa.jsonl"):
        if row["answerable"] and len(row["passage"].split()) <= LONGEST:
            answer = clean(row["answers"][0])
            (start, end), *_ = sentences(answer)
            rows.append({"question": row["question"], "passage": clean(row["passage"]), "answer": answer[start:end]})
    yield from beside_nearest("CLAP NQ", rows, min(n, len(rows)))


def hotpotqa(folder: Path, n: int) -> Iterator[Known]:
    """Short answers; the supporting paragraphs that have the answer, or all of them where none has."""
    rng, found = random.Random(5), 0
    for row in lines(folder / "hotpotqa_100" / "qa.jsonl"):
        texts = {p["title"]: " ".join(p["sentences"]) for p in row["passages"]}
        titles = list(dict.fromkeys(title for title, *_ in row["supporting_facts"]))
        if found == n or row["answer"] in ("yes", "no") or not set(titles) <= texts.keys():
            continue
        found += 1
        others = [text for title, text in texts.items() if title not in titles]
        passages, gold = mixed(rng, [texts[title] for title in titles], rng.sample(others, PASSAGES - len(titles)))
        holding = tuple(i for i in gold if row["answer"].lower() in passages[i].lower())
        yield Known(f"HotpotQA {found}", row["question"], passages, row["answer"], holding or gold)


def scored(model: HuggingFaceModel, known: Known) -> dict[str, Any]:
    """Token log-probabilities of the answer under all passages, all but each, none, and each alone."""
    record = AuditRecord(question=known.question, passages=known.passages, answer=known.answer)
    coded = model.encode(build_prompt(known.question, record.as_passages()))
    answer = model.encode_answer(known.answer)
    groups = [(n,) for n in passage_numbers(coded)]
    removed = [passage_positions(coded, group) for group in groups]
    spans = ((0, len(known.answer)),)
    task = ask(coded, answer, groups, removed, spans, count_citation_markers=False)
    rows = last(score_rows(model, task, (), alone=True, watch=None))
    return {
        **known._asdict(),
        "starts": [token.start for token in answer.tokens],
        "full": rows.full.round(4).tolist(),
        "without": rows.without.round(4).tolist(),
        "alone": rows.alone.round(4).tolist(),
    }


# Ways to make one value per passage of the token scores; shape (passages,).


def token_gains(row: Mapping[str, Any]) -> tuple[Floats, Floats]:
    """(leave-one-out, alone less none) of every token, shape (passages, tokens), nats."""
    full, without, alone = (np.array(row[name]) for name in ("full", "without", "alone"))
    return full - without, alone[1:] - alone[0]


def unlike_question(row: Mapping[str, Any]) -> NDArray[np.bool_]:
    """Which tokens belong to words that the question does not have; all where none does."""
    known, text = set(content_words(row["question"])), row["answer"]
    kept = np.array([not set(content_words(_word(text, start))) <= known for start in row["starts"]])
    return kept if kept.any() else np.ones(len(kept), dtype=bool)


def _word(text: str, start: int) -> str:
    """The word of the character, or the one after it where it is a space."""
    start += len(text[start:]) - len(text[start:].lstrip())
    first = text.rfind(" ", 0, start) + 1
    return text[first:].split(" ")[0]


def over_rival(gain: Floats) -> Floats:
    """By how much each passage is above the best other one, where it is; per token."""
    best = np.sort(gain, axis=0)
    rival = np.where(gain == best[-1], best[-2], best[-1])
    return np.maximum(gain - rival, 0.0)


def rows_of(row: Mapping[str, Any]) -> dict[str, Floats]:
    """Every way's value per passage."""
    out, alone = token_gains(row)
    shares = np.exp(np.array(row["alone"]))
    new = unlike_question(row)
    words = set(content_words(row["answer"]))
    overlap = [len(words & set(content_words(text))) for text in row["passages"]]
    verbatim = [row["answer"].lower() in text.lower() for text in row["passages"]]
    return {
        "leave-one-out": out.sum(1),
        "alone": alone.sum(1),
        "leave-one-out + alone": (out + alone).sum(1),
        "leave-one-out + alone, gains only": np.maximum(out, 0).sum(1) + np.maximum(alone, 0).sum(1),
        "alone, gains up to 3 nats": np.clip(alone, -3, 3).sum(1),
        "alone, probabilities": (shares[1:] - shares[0]).sum(1),
        "alone, over the best other": over_rival(alone).sum(1),
        "both, over the best other": (over_rival(alone) + over_rival(out)).sum(1),
        "leave-one-out + alone, words not in the question": (out + alone)[:, new].sum(1),
        "alone, words not in the question": alone[:, new].sum(1),
        "word overlap": np.array(overlap, dtype=float),
        "verbatim, then word overlap": np.array(verbatim, dtype=float) * 1000 + overlap,
    }


HEAD = "| row | NQ | CLAP NQ | HotpotQA | all (95% interval) |\n| --- | --- | --- | --- | --- |"
SETS = ("NQ", "CLAP NQ", "HotpotQA")


def hit(values: Floats, gold: Sequence[int]) -> float:
    """Whether a true source is first; of equal firsts the share that is true."""
    first = np.flatnonzero(values >= values.max() - 1e-9)
    return float(np.isin(first, list(gold)).mean())


def table(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """The share of answers whose true source is first, by row and set."""
    hits = [{name: hit(values, row["gold"]) for name, values in rows_of(row).items()} for row in found]
    lines_of = []
    for name in hits[0]:
        cells = []
        for of in (*SETS, ""):
            own = [h[name] for h, row in zip(hits, found, strict=True) if row["id"].startswith(of)]
            low, high = binomtest(round(sum(own)), len(own)).proportion_ci(method="wilson") if own else (0.0, 1.0)
            share = f"{np.mean(own):.2f}" if own else ""
            cells.append(share if of else f"{share} ({low:.2f} to {high:.2f})")
        lines_of.append(f"| {name} | {' | '.join(cells)} |")
    return lines_of


def run(data: Path, out: Path, name: str, n: int) -> None:
    """Score what has no line yet, the sets in turn."""
    done = {row["id"] for row in lines(out)} if out.exists() else set()
    drawn = [list(part(data, n)) for part in (nq, clapnq, hotpotqa)]
    left = [known for place in range(n) for part in drawn for known in part[place : place + 1]]
    model = load_writer(name)
    assert isinstance(model, HuggingFaceModel)
    with out.open("a", encoding="utf-8") as file:
        for known in left:
            if known.id not in done:
                print(json.dumps(scored(model, known)), file=file, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--model", default="embedded")
    parser.add_argument("--n", type=int, default=40, help="answers of each set")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    if not asked.write:
        run(asked.data, asked.out, asked.model, asked.n)
    found = lines(asked.out)
    counts = ", ".join(f"{sum(row['id'].startswith(of) for row in found)} of {of}" for of in SETS)
    print(HEAD, *table(found), sep="\n")
    if asked.write:
        told = f"{PASSAGES} passages, of which one (HotpotQA: one or two) is the source; answers: {counts}."
        section = [
            "## The source of real answers",
            "",
            conditions(scorer=asked.model),
            "",
            told,
            "",
            HEAD,
            *table(found),
        ]
        write_section("real-answers", "\n".join(section))


if __name__ == "__main__":
    main()
