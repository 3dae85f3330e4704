"""Open questions: BEIR (Thakur et al. 2021), Natural Questions (Kwiatkowski et al. 2019), HotpotQA (Yang et al. 2018),
Mintaka (Sen et al. 2022) and StrategyQA (Geva et al. 2021).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

from engine.core.errors import FileError, RecordError
from engine.corpus.worlds import GoldSpan
from engine.studies.datasets.files import DataSource, Layout, Record, given, has, records, relevant_ids, text, words
from engine.studies.example import Example, GoldStep

QUERIES = "queries.jsonl"
JUDGEMENTS = ("qrels/test.tsv", "qrels.tsv", "qrels/dev.tsv", "qrels/train.tsv")


def is_folder(path: Path) -> bool:
    """Whether the folder has this layout."""
    return (path / QUERIES).exists() and any((path / name).exists() for name in JUDGEMENTS)


def _read_beir(source: DataSource) -> Iterator[Example]:
    """The judged questions, in file order."""
    folder = source.path if source.path.is_dir() else source.path.parent
    if not is_folder(folder):
        raise FileError(f"{folder} is not a BEIR folder. It needs {QUERIES} and one of {', '.join(JUDGEMENTS)}.")
    gold = judgements(next(folder / name for name in JUDGEMENTS if (folder / name).exists()))

    def example(record: Record) -> Example:
        key = record["id"]
        return Example(id=key, question=text(record, "text"), source=folder.name, gold=tuple(gold.get(key, ())))

    yield from (found for found in source.each(example, folder / QUERIES) if found.gold)


def judgements(path: Path) -> dict[str, list[str]]:
    """Ids of the documents judged relevant (a score over 0) by query."""
    found: dict[str, list[str]] = defaultdict(list)
    for place, _, row in records(path):
        try:
            query, document, relevant = row["query-id"], row["corpus-id"], float(row["score"]) > 0
        except (KeyError, ValueError) as error:
            wrong = f"{place}: a judgement needs query-id, corpus-id and score, separated by tabs."
            raise RecordError(wrong) from error
        if relevant:
            found[query].append(document)
    return found


BEIR = Layout(has("_id", "text"), _read_beir)


Given = list[tuple[str, str, bool | None]]


def _is_nq(record: Record) -> bool:
    answers = isinstance(record.get("answer"), list) or "answers" in record
    return "question_text" in record or ("question" in record and answers)


@Layout.of(_is_nq)
def nq(record: Record) -> Example:
    """NQ-open, the lists of dense passage retrieval (`positive_ctxs`) or of readers (`ctxs`), the simplified original.

    The answers are spellings of one thing.
    """
    question = text(record, "question", "question_text")
    answers = words(record, "answer") or words(record, "answers") or _annotated(record)
    passages = given(question, _passages(record))
    named = record.get("doc_id")
    return Example(
        id=str(record.get("example_id", record["id"])),
        question=question,
        source="NQ",
        passages=passages,
        references=answers,
        short_answers=(answers,) if answers else (),
        gold=relevant_ids(passages) or ((str(named),) if named else ()),
    )


def _passages(record: Record) -> Given:
    if isinstance(record.get("ctxs"), list):
        return [_context(item, item.get("isgold")) for item in record["ctxs"]]
    lists = (("positive_ctxs", True), ("hard_negative_ctxs", False), ("negative_ctxs", False))
    return [_context(item, label) for name, label in lists for item in record.get(name) or ()]


def _context(item: Any, label: bool | None) -> tuple[str, str, bool | None]:
    if not isinstance(item, dict):
        raise RecordError("A passage is not an object with a text.")
    return text(item, "text"), str(item.get("title") or ""), label


def _annotated(record: Record) -> tuple[str, ...]:
    """The short answers of the simplified original: token spans of the document's text, split at spaces."""
    tokens = str(record.get("document_text", "")).split(" ")
    found = []
    for annotation in record.get("annotations") or ():
        if annotation.get("yes_no_answer", "NONE") != "NONE":
            found.append(str(annotation["yes_no_answer"]).lower())
        for span in annotation.get("short_answers") or ():
            found.append(" ".join(tokens[int(span["start_token"]) : int(span["end_token"])]))
    return tuple(dict.fromkeys(answer for answer in found if answer))


Paragraph = tuple[str, tuple[str, ...]]


@Layout.of(has("question", "supporting_facts"))
def hotpotqa(record: Record) -> Example:
    """The distractor setting: a paragraph with a supporting fact is relevant, its supporting sentences are gold."""
    question, answer = text(record, "question"), text(record, "answer")
    paragraphs, supporting = _hotpotqa_paragraphs(record), _supporting(record)
    titles = {title for title, _ in supporting}
    passages = given(question, [("".join(s), title, title in titles if titles else None) for title, s in paragraphs])
    kept = [paragraph for paragraph in paragraphs if "".join(paragraph[1]).strip()]
    spans = [
        span
        for passage, (title, sentences) in zip(passages, kept, strict=True)
        for span in _spans(passage.document, title, sentences, supporting)
    ]
    return Example(
        id=record["id"],
        question=question,
        source="HotpotQA",
        passages=passages,
        references=(answer,),
        short_answers=((answer,),),
        gold=relevant_ids(passages),
        gold_spans=tuple(spans),
        domain=str(record.get("type") or ""),
        about={"level": record["level"]} if record.get("level") else {},
    )


def _hotpotqa_paragraphs(record: Record) -> list[Paragraph]:
    """(title, sentences) of `context`: pairs, columns, or objects under `passages`."""
    context = record.get("context", record.get("passages"))
    if isinstance(context, dict):
        context = list(zip(context.get("title", ()), context.get("sentences", ()), strict=True))
    if not isinstance(context, list):
        raise RecordError("The record has no paragraphs in 'context'. Use HotpotQA's distractor file.")
    return [_paragraph(item) for item in context]


def _paragraph(item: Any) -> Paragraph:
    pair = (item.get("title"), item.get("sentences")) if isinstance(item, dict) else tuple(item)
    if len(pair) != 2 or not isinstance(pair[0], str) or not isinstance(pair[1], (list, tuple)):
        raise RecordError("A paragraph of 'context' is not a pair of a title and its sentences.")
    return pair[0], tuple(map(str, pair[1]))


def _supporting(record: Record) -> set[tuple[str, int]]:
    """(title, number of the sentence from 0)."""
    facts = record.get("supporting_facts") or []
    if isinstance(facts, dict):
        facts = list(zip(facts.get("title", ()), facts.get("sent_id", ()), strict=True))
    return {(str(title), int(number)) for title, number in facts}


def _spans(document: str, title: str, sentences: tuple[str, ...], supporting: set[tuple[str, int]]) -> list[GoldSpan]:
    starts = accumulate(map(len, sentences), initial=0)
    numbered = enumerate(zip(sentences, starts, strict=False))
    return [
        GoldSpan(document, start, start + len(sentence))
        for number, (sentence, start) in numbered
        if (title, number) in supporting and sentence
    ]


@Layout.of(has("question", "complexityType"))
def mintaka(record: Record) -> Example:
    """Its JSON list, or flat records with `answerText`; English; every entity of the answer is to be named."""
    answer = record.get("answer") or {}
    said = str((answer.get("mention") if isinstance(answer, dict) else None) or record.get("answerText") or "")
    things = tuple(_spellings(thing) for thing in (answer.get("answer") if isinstance(answer, dict) else None) or ())
    return Example(
        id=record["id"],
        question=text(record, "question"),
        source="Mintaka",
        references=(said,) if said else (),
        short_answers=tuple(spellings for spellings in things if spellings) or (((said,),) if said else ()),
        domain=str(record.get("category") or ""),
        about={"complexity": record["complexityType"]} if record.get("complexityType") else {},
    )


def _spellings(thing: Any) -> tuple[str, ...]:
    """How a thing may be written: an entity's English label, a number or a date as it stands, yes and no."""
    if isinstance(thing, dict):
        label = (thing.get("label") or {}).get("en")
        return (str(label),) if label else ()
    if isinstance(thing, bool):
        return ("yes",) if thing else ("no",)
    return (str(thing),) if thing not in (None, "") else ()


OPTIONS = ("Yes", "No")
NO_PARAGRAPH = ("operation", "no_evidence")


@Layout.of(has("qid", "question"))
def strategyqa(record: Record) -> Example:
    """Yes-or-no questions with their steps and the paragraphs that answer them; a test record has no right option."""
    answer = record.get("answer")
    if answer is not None and not isinstance(answer, bool):
        raise RecordError(f"The answer is {answer!r}; StrategyQA's is true or false.")
    correct = None if answer is None else 0 if answer else 1
    return Example(
        id=str(record.get("qid", record["id"])),
        question=text(record, "question"),
        source="StrategyQA",
        references=() if correct is None else (OPTIONS[correct],),
        options=OPTIONS,
        correct=correct,
        gold=tuple(dict.fromkeys(_strategyqa_paragraphs(record.get("evidence")))),
        steps=tuple(GoldStep(question=step) for step in words(record, "decomposition")),
        about={name: record[name] for name in ("term", "facts") if record.get(name)},
    )


def _strategyqa_paragraphs(evidence: Any) -> Iterator[str]:
    """The paragraphs named anywhere in the nested lists: by annotator, step, and kind."""
    if isinstance(evidence, list):
        for inner in evidence:
            yield from _strategyqa_paragraphs(inner)
    elif isinstance(evidence, str) and evidence not in NO_PARAGRAPH:
        yield evidence
