"""Run the studies behind docs/findings.md: several at a time, one process each, for a given number of minutes.

    python -m bench.findings prepare --data data [--weights FOLDER]
    python -m bench.findings run --out runs --data data --minutes 9 --slots 12 [--only NAME ...]

Every run is an ordinary folder of `evaluate`; a second call resumes it. Units run question by question, so an
interrupted run is a sample of its questions with all methods. `RUNS` lists the runs in the order in which they start;
a free slot takes the next one. `prepare` makes the sample corpora and those of the public sets, the summaries and
claims to check, HotpotQA with four short paragraphs per question, and models from a folder of GGUF files.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

READER, SMALL, CAPABLE = "reader", "embedded", "qwen2.5-coder-1.5b"
AT_TEN = ("vanilla-10", "re-ranked-10", "attr-rag")
ARE_AND_OTHERS = ["are", "drqa", "efec-style", "ccver", "rarr"]
ALL_ROLES = ["decomposer", "judge", "editor", "expander"]


@dataclass(frozen=True)
class Planned:
    """A run: the fields of its config; `data` may name a file under the folder of public sets."""

    name: str
    study: str
    data: str
    model: str
    n: int = 0
    config: dict[str, Any] = field(default_factory=dict)
    tf32: bool = False  # coarser products on a GPU that has them: for what reads hundreds of rows an answer

    def as_config(self, folder: Path, batch: int, dtype: str) -> dict[str, Any]:
        """The config as a dictionary."""
        data = str(folder / self.data) if "/" in self.data else self.data
        more = {"batch": 1 if self.tf32 else batch, "dtype": dtype}
        more |= {} if dtype == "float32" else {"exact": False}
        return {"study": self.study, "data": data, "n": self.n, "model": self.model, **more, **self.config}


def attr_rag(name: str, data: str, model: str, n: int, tokens: int) -> Planned:
    """Attr-RAG, vanilla and re-ranked at 10, 20 and 30, on the paper's kind of corpus."""
    settings = {"retrieval": {"mode": "dense", "k": 30}, "decoding": {"max_new_tokens": tokens}}
    return Planned(f"attr-rag-{name}", "attr-rag-answers", data, model, n, {"settings": settings})


def attr_rag_at_ten(name: str, model: str, tokens: int, methods: tuple[str, ...] = AT_TEN) -> Planned:
    """The same from ten passages, which two processor cores can do."""
    settings = {"retrieval": {"mode": "dense", "k": 10}, "decoding": {"max_new_tokens": tokens}}
    config = {"methods": list(methods), "settings": settings}
    return Planned(f"attr-rag-{name}", "attr-rag-answers", LONG, model, 0, config)


def chunks(name: str, model: str, n: int, tokens: int) -> Planned:
    """Fig. 1a to 1c."""
    settings = {"retrieval": {"mode": "dense"}, "decoding": {"max_new_tokens": tokens}}
    options = {"long": 2}
    return Planned(
        f"chunks-{name}",
        "attr-rag-chunks",
        "bench-chemistry-long",
        model,
        n,
        {"settings": settings, "options": options},
    )


def refinement(name: str, data: str, model: str, n: int, judge: str = "", demonstrations: int = 2) -> Planned:
    """Every condition, with one seed; every second pass runs."""
    settings = {"refinement": {"max_new_tokens": 96, "demonstrations": demonstrations}}
    config = {"judge": judge, "settings": settings, "options": {"pairs": ["D-A", "E-A", "v2c-A"]}}
    return Planned(f"refinement-{name}", "refinement", data, model, n, config)


def abpc(name: str, data: str, model: str, n: int, steps: int, rankings: int, integrated: int) -> Planned:
    """Rankings of the paragraphs' tokens against random ones."""
    settings = {
        "decoding": {"max_new_tokens": 48},
        "faithfulness": {"steps": steps, "rankings": rankings},
        "gradient": {"integrated_steps": integrated},
    }
    return Planned(f"abpc-{name}", "abpc", data, model, n, {"settings": settings}, tf32=True)


def steps(name: str, model: str, n: int, tokens: int, methods: tuple[str, ...] = ()) -> Planned:
    """RAISE and its baselines, or the methods named, on multiple choice."""
    settings = {"reasoning": {"k": 5, "max_steps": 4}, "decoding": {"max_new_tokens": tokens}}
    config = {"where": {"kind": "multiple_choice"}, "settings": settings, "methods": list(methods)}
    return Planned(f"steps-{name}", "step-by-step", "science-primer", model, n, config)


def are(name: str, data: str, model: str, n: int, roles: list[str], methods: list[str], study: str = "are") -> Planned:
    """Drafts with planted errors, summaries that a model wrote, or claims of people."""
    config = {
        "methods": methods,
        "settings": {"verification": {"evidence_from": "case"}},
        "options": {"by_model": roles},
    }
    return Planned(f"{name}", study, data, model, n, config)


def are_claims(label: str) -> Planned:
    """Claims of people about COVID-19 that their source's label says this of."""
    return only("label", label, are(f"are-claims-{label.partition('_')[0]}", CLAIMS, SMALL, 100, [], ["are", "drqa"]))


def only(what: str, value: str, planned: Planned) -> Planned:
    """The run with the examples alone of which the set says this."""
    return replace(planned, config={**planned.config, "where": {what: value}})


HOTPOT, SUMMARIES, DRAFTS = "hotpotqa_100/qa.jsonl", "summaries/qa.jsonl", "bank-investigation-drafts"
HOTPOT_SHORT, CLAIMS = "hotpotqa_short/qa.jsonl", "claims/qa.jsonl"
LONG = "bench-chemistry-long"
ASKED = ("clapnq", "xquad_en", "nq_gold_passage")  # questions of one page each, searched among all pages of their set
RUNS = (
    steps("small", SMALL, 0, 64),
    steps("capable", CAPABLE, 44, 1024),
    steps("raise-capable", CAPABLE, 44, 160, ("raise",)),
    attr_rag("small", LONG, SMALL, 0, 128),
    attr_rag("capable", LONG, CAPABLE, 0, 192),
    refinement("small", HOTPOT, SMALL, 0),
    refinement("capable", HOTPOT, CAPABLE, 50, judge=CAPABLE),
    are("are-capable", DRAFTS, CAPABLE, 0, ALL_ROLES, ["are"]),
    are("are-capable-others", DRAFTS, CAPABLE, 0, ALL_ROLES, ["drqa", "efec-style", "ccver", "rarr"]),
    chunks("small", SMALL, 0, 128),
    abpc("small", HOTPOT_SHORT, SMALL, 60, 5, 3, 8),
    abpc("capable", HOTPOT_SHORT, CAPABLE, 60, 5, 3, 8),
    are("are-embedded", DRAFTS, SMALL, 0, [], ["are", "drqa"]),
    are("ablations-embedded", DRAFTS, SMALL, 0, [], [], "are-ablations"),
    refinement("bank-small", "bank-investigation", SMALL, 0),
    attr_rag("reader", LONG, READER, 0, 128),
    attr_rag("reader-short", "bench-chemistry", READER, 0, 128),
    attr_rag("reader-science", "science-primer", READER, 0, 128),
    attr_rag("reader-bank", "bank-investigation", READER, 0, 128),
    attr_rag("reader-clapnq", "clapnq_asked/qa.jsonl", READER, 100, 128),
    attr_rag("reader-xquad", "xquad_en_asked/qa.jsonl", READER, 100, 128),
    attr_rag("reader-nq", "nq_gold_passage_asked/qa.jsonl", READER, 100, 128),
    chunks("reader", READER, 0, 128),
    attr_rag_at_ten("ten-small", SMALL, 96),
    are("are-summaries", SUMMARIES, SMALL, 100, [], ["are", "drqa"]),
    *map(are_claims, ("supportive", "editing_required", "irrelevant")),
    only("set", "xsum", are("are-summaries-capable", SUMMARIES, CAPABLE, 40, ALL_ROLES, ARE_AND_OTHERS)),
    are("are-editor", DRAFTS, CAPABLE, 0, ["editor"], ["are"]),
    are("are-judge", DRAFTS, CAPABLE, 0, ["judge"], ["are"]),
    are("are-decomposer", DRAFTS, CAPABLE, 0, ["decomposer"], ["are"]),
    are("are-expander", DRAFTS, CAPABLE, 0, ["expander"], ["are"]),
    refinement("zero-shot-small", HOTPOT, SMALL, 0, demonstrations=0),
    refinement("zero-shot-capable", HOTPOT_SHORT, CAPABLE, 50, judge=CAPABLE, demonstrations=0),
    refinement("bank-capable", "bank-investigation", CAPABLE, 0, judge=CAPABLE),
    chunks("capable", CAPABLE, 0, 192),
    attr_rag_at_ten("ten-capable", CAPABLE, 128),
    attr_rag_at_ten("few-capable", CAPABLE, 128, ("vanilla-4", "re-ranked-4")),
)


def main() -> None:
    """Prepare, run the chosen runs, or run one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["prepare", "run", "one", "list"])
    parser.add_argument("--out", type=Path, default=Path("runs"), help="one folder per run")
    parser.add_argument("--data", type=Path, default=Path("data"), help="the folder of public sets")
    parser.add_argument("--only", nargs="*", default=None, metavar="NAME", help="only these runs")
    parser.add_argument(
        "--minutes", type=float, default=60.0, help="minutes after which every run stops; it can be resumed"
    )
    parser.add_argument("--slots", type=int, default=1, help="number of parallel runs")
    parser.add_argument("--n", type=int, default=None, help="questions per run, if fewer than planned")
    parser.add_argument("--batch", type=int, default=16, help="batch size of a local model that writes")
    parser.add_argument("--model", default="", help="use instead of each run's own model and judge")
    parser.add_argument("--dtype", default="float32", help="of local models")
    parser.add_argument("--weights", type=Path, default=None, help="a folder of GGUF files, for `prepare`")
    given = parser.parse_args()
    chosen = [planned for planned in RUNS if given.only is None or planned.name in given.only]
    if given.what == "list":
        print("\n".join(f"{p.name}: {p.study} on {p.data} with {p.model}, n {p.n or 'all'}" for p in chosen))
    elif given.what == "prepare":
        prepare(given.data, given.weights)
    elif given.what == "one":
        one(chosen[0], given)
    else:
        run(chosen, given)


def prepare(data: Path, weights: Path | None) -> None:
    """Make the files that parallel runs would otherwise make all at once."""
    from engine.core.progress import Watch
    from engine.corpus.collection import Collection, list_corpora
    from engine.corpus.samples import SAMPLES
    from engine.models.catalogue import catalogue
    from engine.models.gguf import convert

    public = {name: [data / name / "corpus.jsonl"] for name in ASKED if (data / name).is_dir()}
    there = {corpus.name for corpus in list_corpora() if corpus.documents}
    for name, documents in ({sample.name: sample.documents for sample in SAMPLES} | public).items():
        if name not in there:
            Collection.create(name).ingest(documents, Watch())
    for name in public:
        (data / f"{name}_asked").mkdir(exist_ok=True)
        records = map(json.loads, (data / name / "qa.jsonl").open(encoding="utf-8"))
        lines = (question_line(record, name) for record in records if record.get("answerable", True))
        (data / f"{name}_asked" / "qa.jsonl").write_text("".join(lines), encoding="utf-8")
    for entry in catalogue():
        if weights is not None and (weights / entry.file).is_file():
            print(entry.name, convert(weights / entry.file, entry.folder), flush=True)
    if (data / "qags" / "localise.jsonl").is_file():
        (data / SUMMARIES).parent.mkdir(exist_ok=True)
        (data / SUMMARIES).write_text(
            "".join(map(summary_line, (data / "qags" / "localise.jsonl").open(encoding="utf-8")))
        )
    if (data / "healthver" / "verify.jsonl").is_file():
        (data / CLAIMS).parent.mkdir(exist_ok=True)
        (data / CLAIMS).write_text(
            "".join(map(claim_line, (data / "healthver" / "verify.jsonl").open(encoding="utf-8")))
        )
    if (data / HOTPOT).is_file():
        (data / HOTPOT_SHORT).parent.mkdir(exist_ok=True)
        records = map(json.loads, (data / HOTPOT).open(encoding="utf-8"))
        shortest = sorted(map(with_few_paragraphs, records), key=words_in)[:60]
        lines = (json.dumps(record, ensure_ascii=False) + "\n" for record in shortest)
        (data / HOTPOT_SHORT).write_text("".join(lines), encoding="utf-8")


def with_few_paragraphs(record: dict[str, Any], most: int = 4) -> dict[str, Any]:
    """A HotpotQA question with its supporting paragraphs and the shortest others, in their order."""
    supporting = {title for title, *_ in record["supporting_facts"]}
    kept = sorted(record["passages"], key=lambda p: (p["title"] not in supporting, words_in({"passages": [p]})))[:most]
    return record | {"passages": [passage for passage in record["passages"] if passage in kept]}


def words_in(record: dict[str, Any]) -> int:
    """Words of a record's paragraphs."""
    return sum(len(sentence.split()) for passage in record["passages"] for sentence in passage["sentences"])


def summary_line(line: str) -> str:
    """An article and a model's summary of it (QAGS), as a line of our own layout."""
    given = json.loads(line)
    answer = " ".join(sentence["text"] for sentence in given["sentences"])
    asked = {"id": given["id"], "question": "What does the article say, in short?", "passages": [given["source"]]}
    about = {"set": given["id"].rstrip("0123456789")}
    return json.dumps(asked | {"answer": answer, "model": "summariser", "about": about}, ensure_ascii=False) + "\n"


def claim_line(line: str) -> str:
    """A claim with its passage of a paper and the label (HealthVer), as a line of our own layout."""
    given = json.loads(line)
    asked = {
        "id": given["id"],
        "question": given["question"],
        "passages": [given["evidence"]],
        "answer": given["claim"],
    }
    return json.dumps(asked | {"about": {"label": given["label"]}}, ensure_ascii=False) + "\n"


def question_line(record: dict[str, Any], corpus: str) -> str:
    """A question of a public set with its references and the page that answers it, as a line of our own layout."""
    same = {"id": record["id"], "question": record["question"], "references": record["answers"]}
    return json.dumps(same | {"gold": [record["doc_id"]], "corpus": corpus}, ensure_ascii=False) + "\n"


def run(chosen: list[Planned], given: argparse.Namespace) -> None:
    """Start the runs, `slots` at a time; end them when the time is up."""
    end = time.monotonic() + 60 * given.minutes
    waiting, running = list(chosen), dict[str, subprocess.Popen[bytes]]()
    given.out.mkdir(parents=True, exist_ok=True)
    while (waiting or running) and time.monotonic() < end + 45:
        while waiting and len(running) < given.slots and time.monotonic() < end - 30:
            planned = waiting.pop(0)
            running[planned.name] = start(planned, given, (end - time.monotonic()) / 60)
        time.sleep(0.5)
        for name in [name for name, process in running.items() if process.poll() is not None]:
            print(f"{time.strftime('%H:%M:%S')} {name} ended with {running.pop(name).returncode}", flush=True)
        if time.monotonic() > end:
            waiting = []
    for name, process in running.items():
        print(f"{name} did not stop in time and is killed; its rows are kept", flush=True)
        process.kill()
        process.wait()


def start(planned: Planned, given: argparse.Namespace, minutes: float) -> subprocess.Popen[bytes]:
    """Start a run in its own process, with its output in NAME.log."""
    asked = {"out": given.out, "data": given.data, "only": planned.name, "minutes": minutes}
    asked |= {"batch": given.batch, "dtype": given.dtype} | ({"n": given.n} if given.n is not None else {})
    asked |= {"model": given.model} if given.model else {}
    arguments = [part for name, value in asked.items() for part in (f"--{name}", str(value))]
    environment = {**os.environ, **({"NVIDIA_TF32_OVERRIDE": "1"} if planned.tf32 else {})}
    with (given.out / f"{planned.name}.log").open("ab") as log:
        command = [sys.executable, "-m", "bench.findings", "one", *arguments]
        return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment)


def one(planned: Planned, given: argparse.Namespace) -> None:
    """Run one study until it ends or the time is up; print its progress."""
    from engine.core.errors import Cancelled
    from engine.studies.config import Config, as_toml
    from engine.studies.evaluate import evaluate
    from engine.studies.run import Control, Journal

    data = planned.as_config(given.data, given.batch, given.dtype)
    if given.n is not None:
        data["n"] = given.n
    if given.model:
        data |= {"model": given.model, "judge": given.model if data.get("judge") else ""}
    folder, start = given.out / planned.name, time.perf_counter()
    control = Control()
    timer = threading.Timer(60 * given.minutes, control.watch.cancel.set)
    timer.daemon = True
    timer.start()
    with contextlib.suppress(Cancelled):
        evaluate(as_toml(Config.from_dict(data)), folder, resume=(folder / "run.json").exists(), control=control)
    rows = Journal(folder).rows()
    said = {"name": planned.name, "rows": len(rows), "failed": sum(row.state == "failed" for row in rows)}
    print(json.dumps(said | {"seconds": round(time.perf_counter() - start)}), flush=True)
    os._exit(0)  # threads that write a long answer are not waited for: their units run again


if __name__ == "__main__":
    main()
