"""The first page of a report: does the answer stand, the final text, every sentence with its evidence, by whom."""

from __future__ import annotations

from collections.abc import Sequence

from engine.analyses.case_verdict import SentenceVerdict, case_verdict, open_items
from engine.analyses.facts import record_of, tracked_runs
from engine.answer.citations import annotate, without_markers
from engine.cases.blocks import Block, Cell, Facts, Notice, Section, Text, TextRun, answer_runs, plain, table, when
from engine.cases.importers import style_of
from engine.cases.places import revision
from engine.cases.review import Review
from engine.core.values import Answer, Case

TRACKED = "Struck through: taken out. Underlined: put in. Undecided edits are proposals."


def summary_blocks(case: Case, review: Review, content: str, head: str) -> tuple[Block, ...]:
    """The summary; `content` and `head` are the hashes that tell this case and its history from any other."""
    verdict = case_verdict(case, review)
    said = verdict.headline if verdict else "The answer was not checked against its sources."
    blocks: list[Block] = [Text((TextRun(said, "strong"),), "answer")]
    signed = _signed(case, review, content, head)
    if verdict is None:
        return (*blocks, signed, Text(answer_runs(case.answer, case.passages), "answer"))
    blocks += [signed, *(Notice(line) for line in open_items(case, verdict, review))]
    title = "Final text, with the accepted edits" if verdict.accepted else "The answer"
    blocks.append(Section(title, (Text(_cited((TextRun(verdict.text),), case), "answer"),), level=3))
    blocks += _tracked(case, review)
    rows = (_row(case, n, s) for n, s in enumerate(verdict.sentences, start=1) if s.facts)
    columns = ("No.", "Original sentence", "Verdict", "Evidence, quoted")
    return (*blocks, table("Every sentence with its best evidence", columns, rows))


def _tracked(case: Case, review: Review) -> list[Block]:
    """The answer with its edits drawn in, except those that were rejected; nothing where there are none."""
    record = record_of(case)
    if not record:
        return []
    known, decided = revision(record, case.answer, review)
    edits = [edit for edit in known if decided.get(edit.id) != "rejected"]
    if not edits:
        return []
    text = Text(_cited(tracked_runs(record.checked, edits, decided), case), "answer")
    return [Section("Tracked changes", (plain(TRACKED, "note"), text), level=3)]


def _cited(runs: Sequence[TextRun], case: Case) -> tuple[TextRun, ...]:
    """The runs, each citation marker in their plain text as a link to its passage."""
    style = style_of(case.answer.text)
    found: list[TextRun] = []
    for run in runs:
        whole = annotate(Answer(text=run.text), len(case.passages), style)
        found += [run] if run.kind != "text" else answer_runs(whole, case.passages)
    return tuple(found)


def _row(case: Case, number: int, sentence: SentenceVerdict) -> tuple[Cell, ...]:
    worst = sentence.facts[0]
    quote = worst.quote
    where = Cell("none found")
    if quote is not None:
        place = f"passage {quote.number}" if quote.number else "corpus"
        title = "" if quote.title == place else f", {quote.title}"
        link = f"passage-{quote.number}" if quote.number and quote.number <= len(case.passages) else ""
        where = Cell(" ".join(quote.words.split()), note=f"{place}{title}", link=link)
    words = without_markers(case.answer.text[sentence.start : sentence.end])
    fact = worst.text if len(sentence.facts) > 1 else ""
    return Cell(str(number)), Cell(words, note=f"on: {fact}" if fact else ""), _verdict(sentence), where


def _verdict(sentence: SentenceVerdict) -> Cell:
    worst = sentence.facts[0]
    if worst.mark is not None:
        return Cell(sentence.stand, note=f"by {worst.mark.author}: {worst.mark.reason}", kind=sentence.stand)
    note = worst.by if worst.probability is None else f"by {worst.by}, p {worst.probability:.2f}"
    return Cell(sentence.stand, note=note, kind=sentence.stand)


def _signed(case: Case, review: Review, content: str, head: str) -> Facts:
    by = f" by {review.reviewer}, {when(review.time)}" if review.reviewer else ""
    said = f"{review.conclusion.value}: {review.conclusion.reason}; " if review.conclusion else ""
    return Facts(
        (
            ("Conclusion of the review", f"{said}{review.status}{by}" if by else "not reviewed"),
            ("Written by", case.stamp.model),
            ("Content hash", content),
            ("Head hash of the review", head or "none"),
        )
    )
