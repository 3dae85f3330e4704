"""Audit answers with subtle errors: python -m bench.audited [--verifiers NAME ...] [--check NAME ...] [--write].

`audited_answers.jsonl` has 24 invented documents of 24 kinds (a lease, minutes, a laboratory protocol, ...), with seven
pairs of sentences each and a sentence whose content is added. A pair says something of the document in other words,
once right and once with one error, and both sentences share all other words. They were written by somebody who did not
know the instruments; nobody else checked them. Each verifier judges every sentence alone against the whole document.
Then the check of an answer does: of all right sentences, of all wrong ones, and of the added one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from bench.results import arguments, conditions, publish, read_lines, table
from engine.core.text import sentences, stems
from engine.core.values import AuditRecord
from engine.methods.are.are import check_answer
from engine.methods.are.evidence import Sources
from engine.methods.are.tools import Task, Tools
from engine.models.embedder import load_embedder
from engine.models.protocols import Embedder, Entailment
from engine.models.verifier import load_entailment

SET = Path(__file__).with_name("audited_answers.jsonl")
ASKED = "What does the document say?"
WORST_FIRST = ("contradicted", "not found", "unsure", "not checked", "borne out")
SHOWN = ("borne out", "contradicted", "not found", "unsure")
KINDS = ("right", "wrong", "added")
Audited = dict[str, Any]


def audited() -> list[Audited]:
    """Each document with its right, wrong and added sentences, and the errors of the wrong ones."""
    return [
        {
            "document": row["document"],
            "errors": [pair["error"] for pair in row["pairs"]],
            "right": [pair["true"] for pair in row["pairs"]],
            "wrong": [pair["false"] for pair in row["pairs"]],
            "added": row["added"],
        }
        for row in read_lines(SET)
    ]


def word_shares(said: Sequence[str], document: str) -> list[float]:
    """For each sentence the share of its words that the document has."""
    held = set(stems(document))
    return [float(np.mean([stem in held for stem in stems(text)])) for text in said]


def similarities(said: Sequence[str], document: str, embedder: Embedder) -> list[float]:
    """For each sentence its cosine with the closest sentence of the document."""
    texts = [document[start:end] for start, end in sentences(document)]
    return list((embedder.embed(said) @ embedder.embed(texts).T).max(axis=1))


def judged(said: Sequence[str], document: str, verifier: Entailment) -> list[float]:
    """The probability of supportive of each sentence against the whole document."""
    return [ruling.scores["supportive"] for ruling in verifier.judge([(text, document) for text in said])]


def checked(said: Sequence[str], document: str, verifier: Entailment, embedder: Embedder) -> Iterator[str]:
    """The state of each sentence of an answer of these: the worst of its facts."""
    case = AuditRecord(question=ASKED, passages=(document,)).as_passages()
    record = check_answer(Task(ASKED, " ".join(said), Sources(embedder=embedder, case=case), Tools(verifier)))
    start = 0
    for text in said:
        end = start + len(text)
        own = [clause.start < end and start < clause.end for clause in record.decomposition.clauses]
        yield min((fact.stand for fact in record.facts if own[fact.clause]), key=WORST_FIRST.index)
        start = end + 1


def compared(scores: dict[str, list[float]]) -> tuple[str, str, str]:
    """Pairs whose right sentence has the higher score, with a 95% interval, and AUROC against wrong and added ones."""
    right, wrong, added = (np.array(scores[kind]) for kind in KINDS)
    higher = (right > wrong) + (right == wrong) / 2
    draws = np.random.default_rng(1337).choice(higher, (1000, len(higher))).mean(axis=1)
    low, high = np.quantile(draws, (0.025, 0.975))
    ranked = [roc_auc_score([True] * len(right) + [False] * len(rest), [*right, *rest]) for rest in (wrong, added)]
    return f"{higher.mean():.2f} ({low:.2f} to {high:.2f})", f"{ranked[0]:.2f}", f"{ranked[1]:.2f}"


def by_error(found: dict[str, list[str]], errors: Sequence[str]) -> list[str]:
    """For each kind of error of five pairs or more: how many wrong sentences are borne out, of how many."""
    states = defaultdict(list)
    for error, state in zip(errors, found["wrong"], strict=True):
        states[error].append(state)
    rows = sorted(states.items(), key=lambda item: -len(item[1]))
    return [f"{error} {own.count('borne out')} of {len(own)}" for error, own in rows if len(own) > 4]


def main() -> None:
    """Measure, print, and save with --write."""
    asked = arguments(
        __doc__,
        verifiers=(["embedded"], "that judge the sentences alone"),
        check=(["embedded"], "that check the answers fact by fact"),
    )
    embedder, documents = load_embedder(), audited()
    scores: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    verifiers = {name: load_entailment(name) for name in dict.fromkeys([*asked.verifiers, *asked.check])}
    for one in documents:
        for kind in KINDS:
            said, document = one[kind], one["document"]
            scores["word overlap"][kind] += word_shares(said, document)
            scores["similarity"][kind] += similarities(said, document, embedder)
            for name in asked.verifiers:
                scores[f"verifier {name}"][kind] += judged(said, document, verifiers[name])
    pairs, added = len(scores["similarity"]["right"]), len(scores["similarity"]["added"])
    about = (
        f"Invented documents, and sentences in other words than theirs: {pairs} pairs of a right one and the same with "
        f"one error, and {added} added ones. They were written for this and checked by their writer alone. *Pairs*: "
        "the right one has the higher score (chance: 0.5). " + conditions()
    )
    heads = "score | pairs | AUROC, right against wrong | AUROC, right against added"
    lines = table(heads, ((name, *compared(found)) for name, found in scores.items()))
    rows, told = [], []
    for name in asked.check:
        found = {
            kind: [
                state for one in documents for state in checked(one[kind], one["document"], verifiers[name], embedder)
            ]
            for kind in KINDS
        }
        for kind, states in found.items():
            counts = Counter(states)
            rows.append((name, kind, len(states), *(f"{counts[state] / len(states):.2f}" for state in SHOWN)))
        errors = [error for one in documents for error in one["errors"]]
        told += ["", f"Wrong sentences that {name} bears out with certainty: {', '.join(by_error(found, errors))}."]
    check = "\nThe check of an answer, with its guards; a sentence has the worst state of its facts.\n"
    states_of = table(f"verifier | sentences | n | {' | '.join(SHOWN)}", rows)
    publish(asked, "audited", "Answers with subtle errors", about, [*lines, check, *states_of, *told])


if __name__ == "__main__":
    main()
