"""Make one table of how far each instrument can be trusted: `python -m bench.instruments [--write]`.

Nothing is measured or typed here. Every figure is read from a section of bench/RESULTS.md or from a model card's table,
so this table changes with them. An instrument without a section there has no row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from scipy.stats import binomtest

from bench.results import RESULTS, arguments, write_section

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
    "NQ, CLAP NQ, HotpotQA": "questions, Wikipedia",
    "XQuAD": "Wikipedia paragraphs",
    "XSum": "summaries of news by models",
    "CNN": "summaries of news by models",
    "bank drafts": "reports of an invented bank",
    "bank drafts, later": "reports of an invented bank",
    "bank drafts, held out": "reports of an invented bank",
    "bank investigation, drafts": "reports of an invented bank",
    "audited answers": "answers in other words than leases, minutes and the like",
    "dev": "sentences of mixed kinds",
    "test": "sentences of mixed kinds",
}
METHODS = ("occlusion both ways", "leave-one-out", "alone")  # the others were candidates
Table = list[dict[str, str]]


class Row(NamedTuple):
    """An instrument on a set; `figure` with its interval, `floors` what simpler means reach, `calibration` its ECE."""

    instrument: str
    set: str
    n: str
    measure: str
    figure: str
    floors: str = "-"
    seconds: str = "-"
    calibration: str = "-"


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
                row["ECE"],
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
            for place, measure in enumerate(("evidence first, share (standard error)", "evidence in the first five")):
                cells = {ranking: row[column].split(", ")[place] for ranking, row in rows.items()}
                simple = ", ".join(f"{key} {cells[key]}" for key in ("BM25", "word overlap", "similarity"))
                yield Row("evidence: relevance", name, n, measure, cells["relevance"], simple)


def claims(results: str) -> Iterator[Row]:
    """The check of a claim with the passages found for it."""
    for row in table_with("surest", section("claims", results)):
        simple = f"supportive first {row['supportive first']}, most relevant passage {row['first']}"
        way, n, seconds = "check of a claim, several passages", row["claims"], row["seconds"]
        yield Row(way, row["set"], n, "macro-F1", row["outcome"], simple, seconds)


def support(results: str) -> Iterator[Row]:
    """How far an answer's sentence is borne out."""
    if table := table_with("score", section("support", results)):
        rows = {row["score"]: row for row in table}
        for column, name, n in heads(table):
            simple = ", ".join(f"{key} {rows[key][column].split()[0]}" for key in ("words", "similarity", "verdict"))
            yield Row("support of a sentence", name, n, "AUROC", rows["support"][column], simple)


def audited(results: str) -> Iterator[Row]:
    """Whether a verifier prefers a right sentence to the same with one error, and to added ones."""
    text = section("audited", results)
    scores = {row["score"].removeprefix("verifier "): row for row in table_with("score", text)}
    counts = re.search(r"(\d+) pairs .* (\d+) added", text)
    if counts is None:
        return
    for name, own in {"embedded": "small", "medium": "medium", "large": "large"}.items():
        for column, n, measure in (
            ("pairs", counts[1], "pairs: the right one is preferred to the one with an error"),
            ("AUROC, right against added", f"{counts[1]} and {counts[2]}", "AUROC against added sentences"),
        ):
            simple = ", ".join(f"{one} {scores[one][column].split()[0]}" for one in ("word overlap", "similarity"))
            if name in scores:
                yield Row(f"verifier, {own}", "audited answers", n, measure, scores[name][column], simple)


def in_documents(results: str) -> Iterator[Row]:
    """Whether the passages answer the question."""
    for row in table_with("AUROC", section("in-documents", results)):
        ece = row["expected calibration error"]
        yield Row("is it in the documents", row["set"], row["n"], "AUROC", row["AUROC"], "chance 0.50", calibration=ece)


def decomposition(results: str) -> Iterator[Row]:
    """Facts of a sentence, by the rules and by a language model on some of the sentences."""
    measure = "token F1 of the facts"
    table = table_with("splitter", section("decomposition", results))
    for row in table:
        if row["splitter"] == "rules":
            others = [one for one in table if one["set"] == row["set"] and not one["splitter"].startswith("rules")]
            simple = ", ".join(f"{other['splitter']} {other['of the facts'].split()[0]}" for other in others)
            name = f"PropSegmEnt {row['set']}" if row["set"] in ("dev", "test") else row["set"]
            yield Row(
                "decomposition: rules", name, row["sentences"], measure, row["of the facts"], simple, row["seconds"]
            )
    table = table_with("facts by", section("by_model", results))
    rules = {row["set"]: f"rules {row['of the facts']}" for row in table if row["facts by"] == "rules"}
    for row in table:
        if row["facts by"] != "rules":
            name, n = f"decomposition: {row['facts by']}", row["sentences"]
            yield Row(name, row["set"], n, measure, row["of the facts"], rules[row["set"]])


def edits(results: str) -> Iterator[Row]:
    """The smallest edit of a contradicted claim, by replacements and by a language model on some of the claims."""
    found = re.search(r"VitaminC, n = (\d+): SARI (\S+ \(.+? to \S+); copying (\S+);", section("facts", results))
    if found:
        yield Row("edit: replacements", "VitaminC", found[1], "SARI", f"{found[2]})", f"copying {found[3]}")
    table = table_with("edits by", section("by_model", results))
    rules = next((f"replacements {row['SARI']}" for row in table if row["edits by"] == "replacements"), "-")
    for row in table:
        if row["edits by"] != "replacements":
            yield Row(f"edit: {row['edits by']}", "VitaminC", row["claims"], "SARI", row["SARI"], rules)


def sources(results: str) -> Iterator[Row]:
    """Which passage a real answer comes from, by the methods of the app; Wilson's interval."""
    text = section("real-answers", results)
    counts = {name: int(n) for n, name in re.findall(r"(\d+) of (NQ|CLAP NQ|HotpotQA)", text)}
    rows = {row["row"]: row for row in table_with("row", text)}
    for way in [way for way in METHODS if way in rows]:
        for name, n in counts.items():
            simple = ", ".join(f"{key} {rows[key][name]}" for key in ("word overlap", "verbatim, then word overlap"))
            share = rows[way][name]
            low, high = binomtest(round(float(share) * n), n).proportion_ci(method="wilson")
            figure = f"{share} ({low:.2f} to {high:.2f})"
            yield Row(f"attribution: {way}", name, str(n), "source first, share", figure, simple)


def scorers(results: str) -> Iterator[Row]:
    """The same with a larger scorer, on the answers that both scorers have read."""
    text = section("real-answers-scorers", results)
    counts = re.findall(r"(\d+) of (NQ|CLAP NQ|HotpotQA)", text)[:3]
    names, n = ", ".join(name for _, name in counts), str(sum(int(n) for n, _ in counts))
    table = table_with("scorer", text)
    whole = "all (95% interval)"
    simple = next((f"{row['row']} {row[whole]}" for row in table if row["row"].startswith("verbatim")), "-")
    for row in table:
        if row["row"] in METHODS:
            yield Row(
                f"attribution: {row['row']}, by {row['scorer']}", names, n, "source first, share", row[whole], simple
            )


def retrieval(results: str) -> Iterator[Row]:
    """Whether the passage that answers is found first."""
    for table in tables(section("ranking", results)):
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
    *(
        verifiers,
        claims,
        audited,
        evidence,
        support,
        sources,
        scorers,
        retrieval,
        in_documents,
        decomposition,
        edits,
        judges,
    ),
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
        f"| {r.instrument} | {kind(r.set)} | {r.set} | {r.n} | {r.measure} | {r.figure} | {r.floors} |"
        f" {r.calibration} | {r.seconds} |"
        for r in rows
    ]
    return "\n".join(
        (
            "## All instruments",
            "",
            "Read by `python -m bench.instruments` from the other sections and the model cards, which say how each"
            " figure was taken. Brackets: 95% intervals, or the standard error where the measure says so. Floors:"
            " what simpler means reach on the same texts. ECE: expected calibration error. Seconds: for one pair,"
            " claim, question or sentence, often on a busy machine."
            " [What this means](../docs/trust.md)."
            f" Without a section yet: {absent}.",
            "",
            "| instrument | kind of text | set | n | measure | figure | floors | ECE | s |",
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
            *lines,
        )
    )


def main() -> None:
    """Print the table, or write it into bench/RESULTS.md."""
    asked = arguments(__doc__)
    text = table(Path(RESULTS).read_text(encoding="utf-8"))
    if asked.write:
        write_section(SECTION, text)
    print(text)


if __name__ == "__main__":
    main()
