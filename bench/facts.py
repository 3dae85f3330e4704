"""Measure the check of an answer: planted errors of the bank drafts, decomposition, smallest edits, speed.

    python -m bench.facts --data DIR [--drafts 6] [--edits 100] [--quick]

DIR holds propsegment/propositions.jsonl and vitaminc/{edits,dev}.jsonl (public sets that are not part of this project).
Everything is drawn with a fixed seed; n stands beside every figure. Every planted error's outcome is written out.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from engine.models.embedder import load_embedder
from engine.models.protocols import Entailment
from engine.models.verifier import load_entailment
from engine.settings import Verification
from engine.types import Passage
from engine.verify.are import check_answer
from engine.verify.backtrack import revised
from engine.verify.decompose import decompose
from engine.verify.edit import smallest_edit
from engine.verify.evidence import Sources
from engine.verify.splitter import split
from engine.verify.task import Tools
from engine.verify.values import AreRecord
from engine.worlds import Draft, PlantedError, World, load_world

Row = dict[str, Any]
KINDS = ("amount", "date", "owner", "order", "unsupported")
SIMPLE: dict[str, Callable[[str], list[str]]] = {
    "rules": split,
    "whole sentence": lambda text: [text],
    'at commas and "and"': lambda text: [part for part in re.split(r",|\band\b", text) if part.strip()],
}


def token_f1(first: Sequence[str], second: Sequence[str]) -> float:
    """Shared words, each as often as it occurs, as F1."""
    shared = sum((Counter(first) & Counter(second)).values())
    return 2 * shared / (len(first) + len(second)) if first and second else 0.0


def decomposition(rows: Sequence[Row], splitter: Callable[[str], list[str]]) -> Row:
    """Mean best-token-F1 of the predicted facts (precision) and of the gold ones (recall), and the count's error."""
    words = lambda text: re.findall(r"\w+", text.lower())  # noqa: E731
    precision, recall, error = [], [], []
    for row in rows:
        mine = [found for text in splitter(row["sentence"]) if (found := words(text))] or [[]]
        gold = [words(text) for text in row["reference"]]
        precision.append(sum(max(token_f1(a, b) for b in gold) for a in mine) / len(mine))
        recall.append(sum(max(token_f1(a, b) for a in mine) for b in gold) / len(gold))
        error.append(abs(len(mine) - len(gold)))
    mean = lambda values: round(sum(values) / len(values), 4)  # noqa: E731
    return {"precision": mean(precision), "recall": mean(recall), "count_error": mean(error), "n": len(rows)}


def sari(source: str, output: str, reference: str) -> float:
    """SARI (Xu et al. 2016) with one reference, 0 to 100: mean over 1 to 4 words of keep F1, deletion P, addition F1.

    A part in which nothing is there to be right counts 0, as in the first implementation.
    """
    texts = [text.lower().split() for text in (source, output, reference)]
    return 100 * sum(_sari_of(*(_grams(text, n) for text in texts)) for n in range(1, 5)) / 4


def _grams(words: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


def _sari_of(source: Counter[Any], output: Counter[Any], reference: Counter[Any]) -> float:
    kept, wanted, gone = source & output, source & reference, source - output
    right = kept & reference
    keep = _f1(
        sum(right[g] / kept[g] for g in right) / len(kept) if kept else 0.0,
        sum(right[g] / wanted[g] for g in right) / len(wanted) if wanted else 0.0,
    )
    well_gone = gone - reference
    deletion = sum(well_gone[g] / gone[g] for g in well_gone) / len(gone) if gone else 0.0
    added, asked = set(output) - set(source), set(reference) - set(source)
    both = len(added & asked)
    addition = _f1(both / len(added) if added else 0.0, both / len(asked) if asked else 0.0)
    return (keep + deletion + addition) / 3


def _f1(a: float, b: float) -> float:
    return 2 * a * b / (a + b) if a + b else 0.0


def edits(data: Path, count: int, verifier: Entailment) -> Row:
    """SARI on gold edits beside copying, the share edited, and the share of supportive pairs that are edited."""
    draw = random.Random(1337)
    rows = draw.sample(_read(data / "vitaminc" / "edits.jsonl"), count)
    fine = [row for row in _read(data / "vitaminc" / "dev.jsonl") if row["label"] == "supportive"]
    fine = draw.sample(fine, min(count, len(fine)))
    scores, exact, changed = [], 0, 0
    for row in rows:
        found = smallest_edit(row["claim"], row["evidence"], verifier)
        text = found.after if found else row["claim"]
        scores.append(sari(row["claim"], text, row["gold_claim"]))
        exact += text.split() == row["gold_claim"].split()
        changed += found is not None
    copied = [sari(row["claim"], row["claim"], row["gold_claim"]) for row in rows]
    false = sum(smallest_edit(row["claim"], row["evidence"], verifier) is not None for row in fine)
    return {
        "sari": sum(scores) / count,
        "sari_of_copying": sum(copied) / count,
        "edited": changed / count,
        "exact": exact / count,
        "n": count,
        "false_edits": false / len(fine),
        "n_supportive": len(fine),
    }


def halves(world: World) -> dict[str, list[Draft]]:
    """The drafts in two halves by a fixed draw: settings were chosen on the first, the second was only measured."""
    drawn = sorted(world.drafts, key=lambda draft: draft.id)
    random.Random(7).shuffle(drawn)
    return {"chosen on": drawn[: len(drawn) // 2], "held out": drawn[len(drawn) // 2 :]}


def drafts(count: int, verifier: Entailment) -> Row:
    """Planted errors flagged and mended, correct facts changed, by half; each error's outcome.

    `mended`: put in by the run itself. `with_suggestions`: the reader who accepts every suggestion has the truth; a
    claim from nowhere can only be mended that way. `offered_for_deletion` is the price: of the correct facts.
    """
    world, embedder = load_world("bank-investigation"), load_embedder()
    found: Row = {"parts": {}, "cases": [], "spoilt": []}
    rows = []
    for name, chosen in halves(world).items():
        started = time.perf_counter()
        chosen = chosen[: max(1, count // 2)]
        mine = [_outcomes(draft, _checked(world, draft, verifier, embedder)) for draft in chosen]
        rows += mine
        found["parts"][name] = {**_shares(mine), "seconds_a_draft": (time.perf_counter() - started) / len(chosen)}
    found["parts"]["together"] = _shares(rows)
    found["cases"] = [case for row in rows for case in row["cases"]]
    found["spoilt"] = [case for row in rows for case in row["spoilt"]]
    return found


def _outcomes(draft: Draft, record: AreRecord) -> Row:
    """What became of a draft's errors and of its correct facts."""
    fine = [number for number in range(len(record.facts)) if not _holds_error(draft, record, number)]
    deletions = {edit.clause for edit in record.edits if edit.status == "suggestion" and not edit.new}
    return {
        "cases": [_planted(draft, error, record) for error in draft.errors],
        "correct": len(fine),
        "spoilt": [_spoilt(draft, record, number) for number in fine if _changed(record, number)],
        "deletions": sum(record.facts[number].clause in deletions for number in fine),
    }


def _shares(rows: Sequence[Row]) -> Row:
    cases = [case for row in rows for case in row["cases"]]
    correct = sum(row["correct"] for row in rows)
    of = lambda kind: [case for case in cases if case["kind"] == kind]  # noqa: E731
    share = lambda key, some: round(sum(case[key] for case in some) / len(some), 3) if some else None  # noqa: E731
    return {
        "flagged": share("flagged", cases),
        "mended": share("mended", cases),
        "with_suggestions": share("with_suggestions", cases),
        "n_errors": len(cases),
        "by_kind": {
            kind: [share("mended", of(kind)), share("with_suggestions", of(kind)), len(of(kind))] for kind in KINDS
        },
        "correct_changed": round(sum(len(row["spoilt"]) for row in rows) / correct, 3),
        "offered_for_deletion": round(sum(row["deletions"] for row in rows) / correct, 3),
        "n_correct": correct,
    }


def _changed(record: AreRecord, number: int) -> bool:
    return any(edit.fact == number and edit.status == "placed" for edit in record.edits)


def _spoilt(draft: Draft, record: AreRecord, number: int) -> Row:
    """A correct fact that an edit changed, with the passage it was edited from."""
    made = [[edit.old, edit.new] for edit in record.edits if edit.fact == number]
    fact = record.facts[number]
    return {
        "draft": draft.id,
        "fact": fact.fact.text,
        "edits": made,
        "evidence": fact.evidence.text if fact.evidence else "",
    }


def _checked(world: World, draft: Draft, verifier: Entailment, embedder: Any) -> AreRecord:
    question = world.question(draft.question_id)
    sources = Sources(embedder=embedder, case=world.given_passages(question))
    return check_answer(question.question, draft.draft, sources, Tools(verifier), Verification(evidence_from="case"))


def _span(draft: Draft, error: PlantedError) -> tuple[int, int]:
    start = draft.draft.index(error.wrong)
    return start, start + len(error.wrong)


def _holds_error(draft: Draft, record: AreRecord, number: int) -> bool:
    spans = [_span(draft, error) for error in draft.errors]
    pieces = record.facts[number].fact.pieces
    return any(p.answer < end and start < p.answer + p.length for p in pieces for start, end in spans)


def _planted(draft: Draft, error: PlantedError, record: AreRecord) -> Row:
    start, end = _span(draft, error)
    touched = [
        fact for fact in record.facts if any(p.answer < end and start < p.answer + p.length for p in fact.fact.pieces)
    ]
    flagged = any(f.ruling is None or f.ruling.verdict in ("editing_required", "irrelevant") for f in touched)
    here = [edit for edit in record.edits if edit.start < end and start < edit.end]
    suggested = revised(record.answer, record.edits, {edit.id for edit in record.edits})
    return {
        "draft": draft.id,
        "kind": error.kind,
        "wrong": error.wrong,
        "right": error.right,
        "flagged": flagged or not touched,
        "mended": bool(here) and _true(draft, error, record.revised),
        "with_suggestions": bool(here) and _true(draft, error, suggested),
        "edits": [[edit.old, edit.new, edit.status] for edit in here],
        "outcomes": [fact.outcome for fact in touched],
    }


def _true(draft: Draft, error: PlantedError, text: str) -> bool:
    """Does the truth stand in the place of the error, with what was around it; a claim from nowhere has to go whole."""
    start, end = _span(draft, error)
    if not error.right:
        before, after = draft.draft[:start].rstrip()[-12:], draft.draft[end:].lstrip()[:12]
        return error.wrong.strip() not in text and " ".join((before, after)).strip() in text
    return f"{draft.draft[start - 1 : start]}{error.right}{draft.draft[end : end + 4]}" in text


def speed(verifier: Entailment) -> Row:
    """40 facts against 10 passages: seconds of the whole check, report included."""
    passages = []
    for i in range(10):
        text = f"Ship {i} left port {i + 20} in {1900 + i} with {100 + i} people. It came back a year later."
        passages.append(Passage(id=str(i), document=str(i), title="", ordinal=0, start=0, end=len(text), text=text))
    answer = " ".join(f"Ship {i % 10} left port {i % 10 + 20} in {1900 + i % 10}." for i in range(40))
    sources = Sources(embedder=load_embedder(), case=tuple(passages))
    assert sum(len(clause.facts) for clause in decompose(answer).clauses) == 40
    verifier.judge([("warm", "warm")])
    started = time.perf_counter()
    check_answer("Which ships left?", answer, sources, Tools(verifier))
    return {"facts": 40, "passages": 10, "seconds": time.perf_counter() - started}


def _read(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def main() -> None:
    """Run the parts that were asked for; a part is one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--drafts", type=int, default=6)
    parser.add_argument("--edits", type=int, default=100)
    parser.add_argument("--quick", action="store_true", help="only what needs no verifier")
    asked = parser.parse_args()
    rows = [row for row in _read(asked.data / "propsegment" / "propositions.jsonl") if row["reference"]]
    for part in ("test", "dev"):
        chosen = [row for row in rows if row["split"] == part]
        for name, splitter in SIMPLE.items():
            print(json.dumps({"decomposition": name, "split": part, **decomposition(chosen, splitter)}), flush=True)
    if asked.quick:
        return
    verifier = load_entailment()
    if asked.drafts:
        print(json.dumps({"drafts": drafts(asked.drafts, verifier)}), flush=True)
    if asked.edits:
        print(json.dumps({"edits": edits(asked.data, asked.edits, verifier)}), flush=True)
    print(json.dumps({"speed": speed(verifier)}), flush=True)


if __name__ == "__main__":
    main()
