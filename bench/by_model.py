"""Compare a language model with the rules at splitting and editing.

    python -m bench.by_model --data DIR [--model NAME] [--dtype bfloat16] [--n 100] [--edits 100] [--out FILE] [--write]

Facts: PropSegmEnt's test part and the bank drafts' sentences, best-token F1 against the gold facts. FILE gets the
model's facts, one sentence a line. Edits: VitaminC's
claims with a corrected one, SARI; the model is asked for every claim, then only for those that the verifier calls
*editing required*, as ARE does. The model answers greedily, many prompts at once, after three worked examples.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.facts import sari
from bench.gold_facts import Row, bank_facts, decomposition, lead
from bench.results import DATA, arguments, conditions, publish, read_lines, table
from engine.core.settings import Decoding
from engine.core.values import Prompt
from engine.english.statements import split
from engine.methods.are.anchored_edit import smallest_edit
from engine.methods.are.decompose import parse_facts
from engine.methods.are.edit import parse_edit
from engine.models.registry import load_writer
from engine.models.verifier import load_entailment
from engine.prompts import ask

EXAMPLES = 3
ROWS = 16


def replies(model: Any, prompts: Sequence[Prompt], most: int) -> list[str]:
    """Greedy replies of at most `most` tokens, in order; longest prompts first, so that little is padded."""
    asked = [model.request(prompt, Decoding(max_new_tokens=most)) for prompt in prompts]
    waiting = iter(sorted(asked, key=lambda one: -len(one.ids)))
    found = {}
    for written in model.write_stream(lambda: next(waiting, None), ROWS, exact=False):
        found[written.asked] = written.answer.text
        print(f"{len(found)}/{len(asked)}", flush=True)
    return [found[one] for one in asked]


def facts(model: Any, rows: Sequence[Row]) -> dict[str, list[str]]:
    """The facts of each sentence, by the sentence; the rules' where a reply cannot be read (`parsed` counts them)."""
    asked = [ask("facts", EXAMPLES, text=r["sentence"], clause=r["sentence"]) for r in rows]
    said = replies(model, asked, 160)
    read = [parse_facts(reply, row["sentence"]) for reply, row in zip(said, rows, strict=True)]
    return {row["sentence"]: found or split(row["sentence"]) for row, found in zip(rows, read, strict=True)}


def splitting(data: Path, model: Any, n: int, out: Path | None) -> list[Row]:
    """The figures of the model and of the rules on each set, and the model's lead over the rules."""
    test = [row for row in read_lines(data / "propsegment" / "propositions.jsonl") if row["reference"]]
    test = random.Random(1337).sample([row for row in test if row["split"] == "test"], n)
    found = []
    for name, rows in (("PropSegmEnt test", test), *bank_facts().items()):
        start = time.perf_counter()
        by_model = facts(model, rows)
        seconds = (time.perf_counter() - start) / len(rows)
        leads = [lead(rows, by_model.__getitem__, split, part) for part in (0, 1)]
        for who, splitter, each, ahead in ((model.name, by_model.__getitem__, seconds, leads), ("rules", split, 0, ())):
            found.append({"set": name, "who": who, **decomposition(rows, splitter), "seconds": each, "leads": ahead})
            print(json.dumps(found[-1], default=str), flush=True)
        if out:
            with out.open("a", encoding="utf-8") as file:
                file.writelines(
                    json.dumps({"set": name, "sentence": s, "facts": f}) + "\n" for s, f in by_model.items()
                )
    return found


def editing(data: Path, model: Any, n: int) -> list[Row]:
    """SARI and exact edits of the model, asked always or by the verifier's verdict, and of the checked replacements."""
    rows = random.Random(1337).sample(read_lines(data / "vitaminc" / "edits.jsonl"), n)
    verifier = load_entailment()
    start = time.perf_counter()
    said = replies(model, [ask("edit", EXAMPLES, fact=row["claim"], evidence=row["evidence"]) for row in rows], 200)
    seconds = (time.perf_counter() - start) / n
    fixes = [parse_edit(reply, row["claim"]) for reply, row in zip(said, rows, strict=True)]
    always = [fix[1] if fix else row["claim"] for fix, row in zip(fixes, rows, strict=True)]
    verdicts = [judged.verdict for judged in verifier.judge([(row["claim"], row["evidence"]) for row in rows])]
    gated = [
        text if verdict == "editing_required" else row["claim"]
        for text, verdict, row in zip(always, verdicts, rows, strict=True)
    ]
    edits = [smallest_edit(row["claim"], row["evidence"], verifier) for row in rows]
    replaced = [edit.after if edit else row["claim"] for edit, row in zip(edits, rows, strict=True)]
    found = []
    for who, texts in ((model.name, always), (f"{model.name}, where contradicted", gated), ("replacements", replaced)):
        scores = [sari(row["claim"], text, row["gold_claim"]) for row, text in zip(rows, texts, strict=True)]
        exact = sum(text.split() == row["gold_claim"].split() for row, text in zip(rows, texts, strict=True))
        found.append({"who": who, "sari": sum(scores) / n, "exact": exact / n, "n": n, "seconds": seconds})
        print(json.dumps(found[-1]), flush=True)
    print(json.dumps({"parsed": sum(fix is not None for fix in fixes) / n}), flush=True)
    return found


TOLD = (
    "Facts of a sentence against gold facts: best-token F1 of the facts and of the gold ones, error of the count. The "
    "model sees three worked examples and answers greedily. Ahead: of the rules on the same sentences. Seconds: next "
    "to other work."
)


def report(split_by: Sequence[Row], edited: Sequence[Row]) -> Iterator[str]:
    """The tables of the results page."""
    rows = (
        f"{row['who']} | {row['set']} | {row['n']} | {row['precision']:.3f} ({row['low']:.3f} to {row['high']:.3f}) |"
        f" {_ahead(row, 0)} | {row['recall']:.3f} | {_ahead(row, 1)} | {row['count_error']:.2f} | {row['seconds']:.1f}"
        for row in split_by
    )
    yield from table(
        "facts by | set | sentences | of the facts | ahead | of the gold ones | ahead | count | seconds", rows
    )
    if edited:
        yield "\nEdits of VitaminC's contradicted claims.\n"
        rows = (f"{row['who']} | {row['n']} | {row['sari']:.1f} | {row['exact']:.2f}" for row in edited)
        yield from table("edits by | claims | SARI | exact", rows)


def _ahead(row: Row, part: int) -> str:
    """The lead over the rules with its interval; "-" for the rules."""
    found = row["leads"][part] if row["leads"] else None
    return f"{found.mean:+.3f} ({found.low:+.3f} to {found.high:+.3f})" if found else "-"


def main() -> None:
    """Measure, print, and write the section on request."""
    asked = arguments(
        __doc__,
        data=DATA,
        model=("qwen2.5-coder-1.5b", "the model that splits and edits"),
        dtype=("bfloat16", "its number format"),
        n=(100, "sentences of PropSegmEnt"),
        edits=(100, "claims to edit; 0: none"),
        out={"type": Path, "help": "a file for the model's facts"},
    )
    if asked.out:
        asked.out.unlink(missing_ok=True)
    model = load_writer(asked.model, asked.dtype, "cpu")
    split_by = splitting(asked.data, model, asked.n, asked.out)
    edited = editing(asked.data, model, asked.edits) if asked.edits else []
    told = f"{conditions(models=asked.model)}\n\n{TOLD}"
    publish(asked, "by_model", "A language model against the rules", told, report(split_by, edited))


if __name__ == "__main__":
    main()
