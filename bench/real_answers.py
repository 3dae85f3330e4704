"""Which passage an answer comes from: python -m bench.real_answers --data DIR --out FILE [--n 40] [--write].

    python -m bench.real_answers --data DIR --out FILE --model NAME --than embedded OTHER [--write]   # two scorers

Human answers with a known source: NQ (the short answer), CLAP NQ (the first sentence) and HotpotQA (the short answer,
one or two paragraphs), among the nearest other passages to the answer and to the question by BM25. The table says how
often a ranking puts a true source first: leave-one-out, each passage alone, both ways, Shapley values, other sums of
the same token scores, word overlap and verbatim matching. FILE stores the token scores under every subset of the
passages, one line per answer: a second run continues, and a new sum costs nothing. `--write` only reports the contents
of FILE. `--than` compares it with the contents of OTHER, from a run with another scorer, on the answers of both.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import comb
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from bench.results import DATA, arguments, conditions, publish, read_lines, table
from engine.answer.prompt import build_prompt
from engine.core.progress import Watch, last
from engine.core.statistics import paired_bootstrap
from engine.core.text import content_words, sentences
from engine.core.values import AuditRecord
from engine.methods.both_ways import METHOD as BOTH_WAYS
from engine.methods.occlusion import ask, score_rows, token_gains
from engine.methods.spans import anchor
from engine.methods.word_overlap import METHOD as OVERLAP, WordOverlap, word_overlap
from engine.models.alignment import clean
from engine.models.huggingface import HuggingFaceModel
from engine.models.registry import load_writer
from engine.retrieve.bm25 import Postings

PASSAGES, LONGEST = 4, 100  # passages of a question; words of one
SHARING = 2  # of the others, the nearest to the answer
Floats = NDArray[np.float64]


class Known(NamedTuple):
    """A question, its passages in random order, an answer, and the numbers (from 0) of the passages it comes from."""

    id: str
    question: str
    passages: tuple[str, ...]
    answer: str
    gold: tuple[int, ...]


class Sourced(NamedTuple):
    """A question, its answer, and the texts that it comes from."""

    question: str
    answer: str
    gold: tuple[str, ...]


def among_neighbours(name: str, rows: Sequence[Sourced], titles: Mapping[str, str], n: int) -> Iterator[Known]:
    """Each row's sources among other texts of the set: the nearest to the answer, then the nearest to the question.

    `titles` gives the page of every text. Other texts of the source's page that contain the answer are left out: they
    may be sources, too.
    """
    rng, texts = random.Random(5), list(titles)
    index = Postings.of(texts)

    def nearest(query: str, but: set[str], least: float = 0.0) -> list[str]:
        scores = np.asarray(index.scores(query))
        return [texts[i] for i in np.argsort(-scores, kind="stable") if scores[i] >= least and texts[i] not in but]

    for place in rng.sample(range(len(rows)), min(n, len(rows))):
        row = rows[place]
        pages = {titles[text] for text in row.gold}
        own = {text for text in texts if titles[text] in pages and holds(text, row.answer)} | {*row.gold}
        sharing = nearest(row.answer, own, least=0.1)[:SHARING]
        about = nearest(row.question, own | {*sharing})
        drawn = [*row.gold, *sharing, *about][:PASSAGES]
        order = rng.sample(range(PASSAGES), PASSAGES)
        gold = tuple(number for number, i in enumerate(order) if i < len(row.gold))
        yield Known(f"{name} {place}", row.question, tuple(drawn[i] for i in order), row.answer, gold)


def holds(text: str, answer: str) -> bool:
    """Whether the text contains the answer word for word, ignoring case."""
    return answer.lower() in text.lower()


def short(text: str) -> bool:
    return len(text.split()) <= LONGEST


def joined(text: str) -> str:
    """CLAP NQ's tokens as running text: "-- 1,000 people ( or more ) ." -> "-- 1,000 people (or more)."."""
    text = re.sub(r" ([.,;:!?%)\]]|n't\b|'(?:s|re|ve|ll|d|m)\b)", r"\1", clean(text))
    return re.sub(r"([(\[$]) ", r"\1", text).replace(" - ", "-")


def nq(folder: Path, n: int) -> Iterator[Known]:
    """Short answers."""
    rows = [row for row in read_lines(folder / "nq_gold_passage" / "qa.jsonl") if short(row["passage"])]
    known = [Sourced(row["question"], row["answers"][0], (row["passage"],)) for row in rows]
    known = [row for row in known if holds(row.gold[0], row.answer)]
    yield from among_neighbours("NQ", known, {row["passage"]: row["title"] for row in rows}, n)


def clapnq(folder: Path, n: int) -> Iterator[Known]:
    """First sentences of long answers; the other passages come from NQ, too."""
    rows = [row for row in read_lines(folder / "clapnq" / "qa.jsonl") if short(row["passage"])]
    others = [row for row in read_lines(folder / "nq_gold_passage" / "qa.jsonl") if short(row["passage"])]
    known = []
    for row in rows:
        if row["answerable"]:
            answer = joined(row["answers"][0])
            (start, end), *_ = sentences(answer)
            known.append(Sourced(row["question"], answer[start:end], (joined(row["passage"]),)))
    yield from among_neighbours("CLAP NQ", known, {joined(row["passage"]): row["title"] for row in (*rows, *others)}, n)


def hotpotqa(folder: Path, n: int) -> Iterator[Known]:
    """Short answers with the supporting paragraphs that contain them, or with all supporting paragraphs."""
    titles, known = {}, []
    for row in read_lines(folder / "hotpotqa_100" / "qa.jsonl"):
        texts = {p["title"]: " ".join(p["sentences"]) for p in row["passages"]}
        titles |= {text: title for title, text in texts.items() if short(text)}
        named = {title for title, *_ in row["supporting_facts"]}
        gold = tuple(text for title, text in texts.items() if title in named)
        holding = tuple(text for text in gold if holds(text, row["answer"])) or gold
        if row["answer"] not in ("yes", "no") and named <= texts.keys() and all(map(short, gold)):
            known.append(Sourced(row["question"], row["answer"], holding))
    yield from among_neighbours("HotpotQA", known, titles, n)


def scored(model: HuggingFaceModel, known: Known) -> dict[str, Any]:
    """Token log-probabilities of the answer under every subset of the passages.

    Row m of `left_out` lacks the passages whose bits are 1 in m: row 0 has all, the last row none.
    """
    record = AuditRecord(question=known.question, passages=known.passages, answer=known.answer)
    coded = model.encode(build_prompt(known.question, record.as_passages()))
    answer = model.encode_answer(known.answer)
    count = len(known.passages)
    groups = [[j + 1 for j in range(count) if m >> j & 1] for m in range(1, 2**count)]
    task = ask(coded, answer, ((0, len(known.answer)),), groups, count_citation_markers=False)
    rows = last(score_rows(model, task, (), alone=False, watch=Watch()))
    return {
        **known._asdict(),
        "starts": [token.start for token in answer.tokens],
        "left_out": np.vstack([rows.full, rows.without]).round(4).tolist(),
    }


# An answer of more than `WHOLE` words is taken apart, since users ask about spans; it counts as the mean of its spans.

WHOLE, PIECE = 8, 5  # words


def spans_of(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One row per span of its answer, with the span's tokens; a rest of one or two words is left out."""
    text, words = row["answer"], [match.span() for match in re.finditer(r"\S+", row["answer"])]
    size = len(words) if len(words) <= WHOLE else PIECE
    cuts = [words[i : i + size] for i in range(0, len(words), size)]
    ends = [(cut[0][0], cut[-1][1]) for cut in cuts if len(cut) > min(2, len(words) - 1)]
    return [_span(row, text, start, end) for start, end in ends]


def _span(row: Mapping[str, Any], text: str, start: int, end: int) -> dict[str, Any]:
    kept = [t for t, first in enumerate(row["starts"]) if start <= anchor(text, first) < end]
    own = np.array(row["left_out"])[:, kept].tolist()
    return {**row, "left_out": own, "answer": text[start:end], "starts": [row["starts"][t] - start for t in kept]}


# Ways to make one value per passage of the token scores; shape (passages,).

VERBATIM = f"verbatim, then {OVERLAP}"


def token_differences(row: Mapping[str, Any]) -> tuple[Floats, Floats]:
    """(leave-one-out, alone less none) of every token, shape (passages, tokens), nats."""
    rows, bits = np.array(row["left_out"]), 1 << np.arange(len(row["passages"]))
    return rows[0] - rows[bits], rows[bits[::-1].sum() - bits] - rows[-1]


def shapley(row: Mapping[str, Any], worth: Callable[[Floats], Floats] = lambda rows: rows) -> Floats:
    """Shapley values of the passages for every token, shape (passages, tokens).

    The worth of a subset of the passages is that of the token's log-probability under it. Each value is exact: the mean
    over all orders of the passages of what a passage adds to those before it.
    """
    rows, count = worth(np.array(row["left_out"])), len(row["passages"])
    values = np.zeros((count, rows.shape[1]))
    for m in range(len(rows)):
        for j in range(count):
            if m >> j & 1:  # passage j is left out, and comes next
                before = count - m.bit_count()
                values[j] += (rows[m ^ 1 << j] - rows[m]) / (count * comb(count - 1, before))
    return values


def rows_of(row: Mapping[str, Any]) -> dict[str, Floats]:
    """The value of each ranking per passage."""
    out, alone = token_differences(row)
    more, only = token_differences({**row, "left_out": np.exp(row["left_out"])})
    asked = {*content_words(row["question"]), *content_words(row["answer"])}
    counted = overlap_with(row)
    shared = np.array(counted.shared[0], dtype=float)
    return {
        BOTH_WAYS: token_gains(more, only).sum(1),
        "both ways, in nats": token_gains(out, alone).sum(1),
        "leave-one-out": out.sum(1),
        "leave-one-out, probabilities": more.sum(1),
        "alone": alone.sum(1),
        "alone, probabilities": only.sum(1),
        "leave-one-out + alone": (out + alone).sum(1),
        "leave-one-out + alone, probabilities": (more + only).sum(1),
        "Shapley": shapley(row).sum(1),
        "Shapley, gains": np.maximum(shapley(row), 0.0).sum(1),
        "Shapley, probabilities": shapley(row, np.exp).sum(1),
        "Shapley, gains in probability": np.maximum(shapley(row, np.exp), 0.0).sum(1),
        OVERLAP: shared,
        VERBATIM: shared + 1000.0 * np.array(counted.word_for_word[0]),
        "overlap with question and answer": np.array(
            [len(asked & set(content_words(text))) for text in row["passages"]], float
        ),
    }


def overlap_with(row: Mapping[str, Any]) -> WordOverlap:
    """The words of the whole answer of the row, or of its span, in each passage."""
    return word_overlap(row["answer"], row["passages"], [(0, len(row["answer"]))])


SETS = ("NQ", "CLAP NQ", "HotpotQA")
UNSEEN = 0.1  # gained probability of a span that the model expects by no passage


def hit(values: Floats, gold: Sequence[int]) -> float:
    """Whether a true source is first; with ties, the share of true sources among them."""
    first = np.flatnonzero(values >= values.max() - 1e-9)
    return float(np.isin(first, list(gold)).mean())


def by_row(found: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The share of answers whose true source is first, by row and set."""
    hits = [hits_of(row) for row in found]
    rows = ((name, *shares(found, [each[name] for each in hits])) for name in hits[0])
    return table(f"row | {' | '.join(SETS)} | all (95% interval)", rows, " --- ")


def shares(found: Sequence[Mapping[str, Any]], hits: Sequence[float]) -> list[str]:
    """The mean of the answers' hits by set, and over all with Wilson's interval."""
    cells = []
    for of in (*SETS, ""):
        own = [hit for hit, row in zip(hits, found, strict=True) if row["id"].startswith(of)]
        low, high = binomtest(round(sum(own)), len(own)).proportion_ci(method="wilson") if own else (0.0, 1.0)
        share = f"{np.mean(own):.2f}" if own else ""
        cells.append(share if of else f"{share} ({low:.2f} to {high:.2f})")
    return cells


def ahead(found: Sequence[Mapping[str, Any]]) -> str:
    """By how much occlusion both ways does better than other rows, and what its misses have in common."""
    hits = [hits_of(row) for row in found]
    told = []
    for name in (VERBATIM, OVERLAP, "leave-one-out"):
        more = paired_bootstrap([h[BOTH_WAYS] for h in hits], [h[name] for h in hits])
        told.append(f"{name} {more.mean:+.3f} ({more.low:+.3f} to {more.high:+.3f})")
    gains = [(rows_of(span)[BOTH_WAYS], span["gold"]) for row in found for span in spans_of(row)]
    missed = [values.max() for values, gold in gains if hit(values, gold) < 1]
    return (
        f"{BOTH_WAYS.capitalize()} less another row, answer by answer (95% bootstrap): {', '.join(told)}. Of its "
        f"{len(missed)} missed spans {sum(most < UNSEEN for most in missed)} gain less than {UNSEEN} by each passage."
    )


SHOWN = (BOTH_WAYS, "leave-one-out", "alone, probabilities", "Shapley, gains in probability", VERBATIM)


def two_scorers(names: Sequence[str], found: Sequence[Sequence[Mapping[str, Any]]]) -> str:
    """The answers of both by either scorer: true sources first by ranking, and what the first scorer is ahead by."""
    shared = set.intersection(*({row["id"] for row in rows} for rows in found))
    both = [sorted((row for row in rows if row["id"] in shared), key=lambda row: row["id"]) for rows in found]
    hits = [[hits_of(row) for row in rows] for rows in both]
    rows_of_both = []
    for ranking in SHOWN:
        own = [[each[ranking] for each in some] for some in hits]
        more = paired_bootstrap(*own)
        for name, rows, some in zip(names, both, own, strict=True):
            ahead_by = f"{more.mean:+.3f} ({more.low:+.3f} to {more.high:+.3f})" if some is own[0] else ""
            rows_of_both.append((ranking, name, *shares(rows, some), ahead_by))
    told = [f"{name}. {ahead(rows)}" for name, rows in zip(names, both, strict=True)]
    heads = f"row | scorer | {' | '.join(SETS)} | all (95% interval) | ahead (95% interval)"
    lines = table(heads, rows_of_both, " --- ")
    return "\n".join([f"Answers: {counts_of(both[0])}.\n", *lines, "", "\n\n".join(told)])


def counts_of(found: Sequence[Mapping[str, Any]]) -> str:
    """How many answers come from each set, in words."""
    return ", ".join(f"{sum(row['id'].startswith(of) for row in found)} of {of}" for of in SETS)


def hits_of(row: Mapping[str, Any]) -> dict[str, float]:
    """Per ranking, the share of the answer's spans whose true source is first."""
    each = [{name: hit(values, row["gold"]) for name, values in rows_of(span).items()} for span in spans_of(row)]
    return {name: float(np.mean([one[name] for one in each])) for name in each[0]}


def kind_of(span: Mapping[str, Any]) -> str:
    """How the words of a span could mislead."""
    whole = {i for i, copied in enumerate(overlap_with(span).word_for_word[0]) if copied}
    if whole - set(span["gold"]):
        return "the same words in another passage"
    if set(content_words(span["answer"])) <= set(content_words(span["question"])):
        return "the words of the question"
    return "word for word in the source alone" if whole else "word for word nowhere"


def misses(found: Sequence[Mapping[str, Any]]) -> str:
    """Per kind of span, its count and the failures of verbatim matching and of occlusion both ways."""
    rows = []
    spans = [span for row in found for span in spans_of(row)]
    for kind in sorted({kind_of(span) for span in spans}):
        own = [span for span in spans if kind_of(span) == kind]
        hits = [{name: hit(values, span["gold"]) for name, values in rows_of(span).items()} for span in own]
        missed = [sum(h[name] < 1 for h in hits) for name in (BOTH_WAYS, "leave-one-out", VERBATIM)]
        rows.append((kind, len(own), *missed))
    heads = f"spans | number | missed by {BOTH_WAYS} | by leave-one-out | by verbatim matching, ties too"
    return "\n".join(table(heads, rows, " --- "))


def run(data: Path, out: Path, name: str, n: int) -> None:
    """Score the answers that FILE lacks, one set after another."""
    done = {row["id"] for row in read_lines(out)} if out.exists() else set()
    drawn = [list(part(data, n)) for part in (nq, clapnq, hotpotqa)]
    left = [known for place in range(n) for part in drawn for known in part[place : place + 1]]
    model = load_writer(name)
    assert isinstance(model, HuggingFaceModel)
    with out.open("a", encoding="utf-8") as file:
        for known in left:
            if known.id not in done:
                print(json.dumps(scored(model, known)), file=file, flush=True)


def main() -> None:
    asked = arguments(
        __doc__,
        data=DATA,
        out=(Path, "FILE: a line per answer"),
        model=("embedded", "the scorer"),
        n=(40, "answers per set"),
        than={"nargs": 2, "metavar": ("NAME", "OTHER"), "help": "another scorer and its FILE"},
    )
    if not asked.write:
        run(asked.data, asked.out, asked.model, asked.n)
    found, title = read_lines(asked.out), "The source of real answers"
    if asked.than:
        name, other = asked.than
        told = f"{conditions(scorers=f'{asked.model} and {name}')}\n\n"
        told += f"The answers that both scorers have read, as in *{title}*."
        compared = two_scorers((asked.model, name), (found, read_lines(Path(other))))
        publish(asked, "real-answers-scorers", f"{title}, by two scorers", told, [compared])
        return
    sizes = sorted(Counter(len(row["passages"]) for row in found).items())
    told = (
        f"Answers: {counts_of(found)}; {', '.join(f'{many} with {size} passages' for size, many in sizes)}. One "
        "passage (HotpotQA: one or two) is the source, half of the others or more are the nearest to the answer by "
        "BM25, the rest the nearest to the question. "
        f"An answer of more than {WHOLE} words is asked in spans of {PIECE} and counts as their mean. "
        "Of equal firsts the share that is a source counts. That occlusion both ways "
        "counts probability, not nats, was chosen on the first 162 answers."
    )
    lines = [*by_row(found), "", misses(found), "", ahead(found)]
    publish(asked, "real-answers", title, f"{conditions(scorer=asked.model)}\n\n{told}", lines)


if __name__ == "__main__":
    main()
