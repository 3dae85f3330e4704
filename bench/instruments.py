"""Make one table of how far each instrument can be trusted: `python -m bench.instruments [--write]`.

Nothing is measured or typed here. Every figure is read from a section of bench/RESULTS.md or from a model card's table,
so this table changes with them. An instrument without a section there has no row.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from bench.results import RESULTS, write_section

CARDS = RESULTS.parent.parent / "assets" / "models"
SECTION = "instruments"
# What the texts of a set are.
KINDS = {
    "HealthVer": "health claims, research abstracts",
    "COVID-Fact": "COVID claims, news and papers",
    "CLIMATE-FEVER": "climate claims, Wikipedia",
    "VitaminC dev": "Wikipedia edits",
    "VitaminC": "Wikipedia edits",
    "FeverSymmetric test": "Wikipedia facts",
    "FoolMeTwice held-out pages": "trivia, Wikipedia",
    "FoolMeTwice": "trivia, Wikipedia",
    "CLAP NQ, made": "search questions, Wikipedia",
    "CLAP NQ": "search questions, Wikipedia",
    "NQ": "search questions, Wikipedia",
    "HotpotQA": "two-step questions, Wikipedia",
    "XQuAD": "Wikipedia paragraphs",
    "XSum": "summaries of news by models",
    "CNN": "summaries of news by models",
    "bank drafts": "reports of an invented bank",
    "bank investigation, drafts": "reports of an invented bank",
    "dev": "sentences of mixed kinds",
    "test": "sentences of mixed kinds",
}
Table = list[dict[str, str]]


class Row(NamedTuple):
    """An instrument on a set; `figure` with its interval where one was taken, `floors` what simpler means reach."""

    instrument: str
    set: str
    n: str
    measure: str
    figure: str
    floors: str = "-"
    seconds: str = "-"


def section(name: str, text: str) -> str:
    """The marked section of that name; empty if there is none."""
    found = re.search(f"<!-- {re.escape(name)} -->(.*?)<!-- /{re.escape(name)} -->", text, re.DOTALL)
    return found[1] if found else ""


def tables(text: str) -> Iterator[Table]:
    """The tables of a Markdown text, a dictionary per row by the head's cells.

    >>> next(tables("| a | b |\\n| --- | --- |\\n| 1 | 2 |"))
    [{'a': '1', 'b': '2'}]
    """
    for block in re.findall(r"(?:^\|.*\n?)+", text, re.MULTILINE):
        head, _, *rows = ([cell.strip() for cell in line.strip().strip("|").split("|")] for line in block.splitlines())
        yield [dict(zip(head, cells, strict=True)) for cells in rows]


def table_with(column: str, text: str) -> Table:
    """The first table with the column; empty if there is none."""
    return next((found for found in tables(text) if found and column in found[0]), [])


def verifiers(results: str) -> Iterator[Row]:
    """The three verifiers; the medium and the large one from their cards."""
    sources = {
        "verifier, small": section("verifier", results),
        "verifier, medium": card("verifier_medium"),
        "verifier, large": card("verifier_large"),
    }
    for name, text in sources.items():
        for row in table_with("macro-F1 (interval)", text):
            rate = row.get("pairs/s", "")
            yield Row(
                name,
                row["set"],
                row["pairs"],
                "macro-F1",
                re.sub(r" ?\[.*?\]", "", row["macro-F1 (interval)"]),
                floors(row["word overlap / majority"]),
                f"{1 / float(rate):.2f}" if rate else "-",
            )


def floors(both: str) -> str:
    """The two floors of a verifier in words.

    >>> floors("0.39 / 0.21")
    'word overlap 0.39, majority 0.21'
    """
    overlap, majority = (part.strip() for part in both.split("/"))
    return f"word overlap {overlap}, majority {majority}" if overlap != "-" else "-"


def card(name: str) -> str:
    return (CARDS / name / "README.md").read_text(encoding="utf-8")


def heads(table: Table) -> Iterator[tuple[str, str, str]]:
    """(column, set, n) of the columns that name a set and its size, as in "CNN, n = 332, supported 0.73"."""
    for column in table[0]:
        if found := re.match(r"(.+?), n = ([\d,]*\d)", column):
            yield column, found[1], found[2]


def evidence(results: str) -> Iterator[Row]:
    """Which sentences of a page bear on a claim."""
    if table := table_with("ranking", section("evidence", results)):
        rows = {row["ranking"]: row for row in table}
        for column, name, n in heads(table):
            first = {ranking: row[column].split(",")[0] for ranking, row in rows.items()}
            simple = ", ".join(f"{key} {first[key]}" for key in ("BM25", "word overlap", "similarity"))
            yield Row(
                "evidence: relevance", name, n, "evidence first, share (standard error)", first["relevance"], simple
            )


def claims(results: str) -> Iterator[Row]:
    """The check of a claim with the passages found for it."""
    for row in table_with("surest", section("claims", results)):
        simple = f"supportive first {row['supportive first']}, most relevant passage {row['first']}"
        yield Row("check of a claim, several passages", row["set"], row["claims"], "macro-F1", row["outcome"], simple)


def support(results: str) -> Iterator[Row]:
    """How far an answer's sentence is borne out."""
    if table := table_with("score", section("support", results)):
        rows = {row["score"]: row for row in table}
        for column, name, n in heads(table):
            simple = ", ".join(f"{key} {rows[key][column].split()[0]}" for key in ("words", "similarity", "verdict"))
            yield Row("support of a sentence", name, n, "AUROC", rows["support"][column], simple)


def in_documents(results: str) -> Iterator[Row]:
    """Whether the passages answer the question."""
    for row in table_with("AUROC", section("in-documents", results)):
        yield Row("is it in the documents", row["set"], row["n"], "AUROC", row["AUROC"], "chance 0.50")


def decomposition(results: str) -> Iterator[Row]:
    """Facts of a sentence."""
    table = table_with("splitter", section("facts", results))
    for row in table:
        if row["splitter"] == "rules":
            simple = ", ".join(
                f"{other['splitter']} {other['of the facts']}"
                for other in table
                if other["set"] == row["set"] and not other["splitter"].startswith("rules")
            )
            name = f"PropSegmEnt {row['set']}" if row["set"] in ("dev", "test") else row["set"]
            yield Row(
                "decomposition: rules", name, row["sentences"], "token F1 of the facts", row["of the facts"], simple
            )


def sources(results: str) -> Iterator[Row]:
    """Which passage a real answer comes from."""
    text = section("real-answers", results)
    counts = {name: n for n, name in re.findall(r"(\d+) of (NQ|CLAP NQ|HotpotQA)", text)}
    rows = {row["row"]: row for row in table_with("row", text)}
    for way, row in rows.items():
        for name, n in counts.items():
            simple = ", ".join(f"{key} {rows[key][name]}" for key in ("word overlap", "verbatim, then word overlap"))
            if "overlap" not in way:
                yield Row(f"attribution: {way}", name, n, "source first, share", row[name], simple)


def retrieval(results: str) -> Iterator[Row]:
    """Whether the passage that answers is found first."""
    if table := table_with("ranking", section("ranking", results)):
        for column, name, n in heads(table):
            for row in table:
                if row["ranking"].startswith("hybrid"):
                    others = {r["ranking"]: r[column].split(",")[0] for r in table if r["embedder"] == row["embedder"]}
                    simple = f"BM25 {others['bm25']}, dense {others['dense']}"
                    measure = "gold passage first, share (standard error)"
                    way = f"retrieval: {row['ranking']}, {row['embedder']}"
                    yield Row(way, name, n, measure, others[row["ranking"]], simple, row["seconds"])


def judges(results: str) -> Iterator[Row]:
    """How judges rate planted differences."""
    for row in table_with("judge", section("judges", results)):
        yield Row(f"judge: {row['judge']}", "CLAP NQ", row["n"], row["measured"], row["share (95% interval)"])


READ: tuple[Callable[[str], Iterator[Row]], ...] = (
    *(verifiers, claims, evidence, support, sources, retrieval, in_documents, decomposition, judges),
)


def kind(name: str) -> str:
    """The kind of text in a set, by the longest known name that its name begins or ends with."""
    known = sorted(KINDS, key=len, reverse=True)
    return next((KINDS[key] for key in known if name.startswith(key) or name.endswith(f" {key}")), "-")


def table(results: str) -> str:
    """The section's text."""
    found = {read.__name__.replace("_", " "): list(read(results)) for read in READ}
    rows = [row for part in found.values() for row in part]
    absent = ", ".join(name for name, part in found.items() if not part) or "none"
    lines = [
        f"| {r.instrument} | {kind(r.set)} | {r.set} | {r.n} | {r.measure} | {r.figure} | {r.floors} | {r.seconds} |"
        for r in rows
    ]
    return "\n".join(
        (
            "## All instruments",
            "",
            "Read by `python -m bench.instruments` from the other sections and the model cards, which say how each"
            " figure was taken. Brackets: 95% intervals, or the standard error where the measure says so. Floors:"
            " what simpler means reach on the same texts. Seconds: for one pair or answer, often on a busy machine."
            " [What this means](../docs/trust.md)."
            f" Without a section yet: {absent}.",
            "",
            "| instrument | kind of text | set | n | measure | figure | floors | s |",
            "| --- | --- | --- | --- | --- | --- | --- | --- |",
            *lines,
        )
    )


def main() -> None:
    """Print the table, or write it into bench/RESULTS.md."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    text = table(Path(RESULTS).read_text(encoding="utf-8"))
    if parser.parse_args().write:
        write_section(SECTION, text)
    print(text)


if __name__ == "__main__":
    main()
