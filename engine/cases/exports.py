"""Exports of other systems as records: the question, the passages and the answer by the names that they have there.

Read are RAGAS, DeepEval, LangSmith, LangChain, LlamaIndex, OpenAI, Anthropic, and tables with a column for each. Names
are compared by their letters and digits alone. Citations that come apart from the text are written into it as `[n]`.
"""

from __future__ import annotations

import ast
import csv
import io
import math
import re
import tokenize
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from itertools import pairwise
from typing import Any

from engine.core.errors import RecordError
from engine.core.values import AuditRecord, Json, identity, json_or_none
from engine.corpus.formats.records import LONGEST_CELL

# The names of a field, the surest first.
QUESTION = ("question", "user_input", "query", "input", "inputs", "prompt", "messages")
ANSWER = (
    "answer", "response", "actual_output", "output", "outputs", "result", "completion", "generated_answer", "choices",
    "content", "messages",
)  # fmt: skip
PASSAGES = (
    "passages", "retrieved_contexts", "retrieval_context", "contexts", "context", "source_documents", "source_nodes",
    "documents", "docs", "sources", "chunks",
)  # fmt: skip
_COLUMN = re.compile(r"(passage|context|document|source|chunk)(\d+)")  # "Source 1", "Source 2": a column each
_TEXT = ("text", "page_content", "content", "passage", "chunk", "snippet")
_TITLE = ("title", "file_name", "filename", "name", "source", "url")
_INSIDE = ("node", "kwargs", "text_resource", "metadata", "meta")  # objects in a passage that hold its text or title
_SAID = ("text", "value", "content", "message", "kwargs", "answer", "result", "output", "response")
_BLOCKS = ("text", "output_text", "input_text")
_THOUGHTS = ("thinking", "reasoning")
_ROLES = {"user": "asks", "human": "asks", "assistant": "answers", "ai": "answers", "system": "sets", "tool": "finds"}
_PLACE = re.compile(r"\w+://\S+|\S+\.[A-Za-z]\w{1,4}")  # an address or a file's name


def audit_record(data: Json) -> AuditRecord:
    """The record of one exported object or row of a table; raise `RecordError` that says which part it lacks."""
    if not hasattr(data, "items"):
        raise RecordError("This is not a JSON object. Write one object per record.")
    data = {str(name): _cell(value) for name, value in data.items()}
    fields = {**data, **_object(data.get("inputs")), **_object(data.get("outputs"))}  # a run of LangSmith
    named = {_bare(name): value for name, value in fields.items() if value not in (None, "", [], {})}
    citing = Citing(_passages(named))
    question, answer = _first(named, QUESTION, "asks", citing), _first(named, ANSWER, "answers", citing)
    for what, text, names in (("question", question, QUESTION), ("answer", answer, ANSWER)):
        if not text:
            raise RecordError(f"The record has no {what}. Give it as {_listed(names)}.")
    if not citing.passages and data.get("corpus") is None:
        raise RecordError(
            "The record has no source to check the answer against. Name a corpus of the library as corpus, or give the "
            f"texts as {_listed(PASSAGES)}."
        )
    if places := [text for text in citing.passages if isinstance(text, str) and _PLACE.fullmatch(text.strip())]:
        raise RecordError(f"The source {places[0]} is a place and not a text. Give the text that the answer is about.")
    own = {name: data[name] for name in ("model", "corpus", "spans") if data.get(name) is not None}
    if "spans" in own:  # which count the characters of the answer as it is given
        if not isinstance(data.get("answer"), str):
            raise RecordError("A record with spans needs its answer as one text. Give it as answer.")
        answer = data["answer"]
    own["id"] = identity(data, "")
    return AuditRecord.from_dict({**own, "question": question, "passages": citing.passages, "answer": answer})


def _cell(value: Any) -> Any:
    """A cell as plain data: tuples and numpy's arrays as lists, NaN, which is an empty cell of pandas, as null."""
    value = value.tolist() if hasattr(value, "tolist") else list(value) if isinstance(value, tuple) else value
    return None if isinstance(value, float) and math.isnan(value) else value


def holds_record(data: Json) -> bool:
    """Whether an object has a question or an answer by any of the names."""
    return not {_bare(name) for name in data}.isdisjoint(map(_bare, (*QUESTION, *ANSWER)))


def is_export(data: Any) -> bool:
    """Whether question, passages or answer have only the name that another system gives them."""
    named = {_bare(name) for name in data} if isinstance(data, dict) else set()
    parts = (QUESTION, PASSAGES, ANSWER)
    return any(own not in data and not named.isdisjoint(map(_bare, (own, *others))) for own, *others in parts)


class Citing:
    """Passages, and the numbers by which an answer cites them; texts that are only cited become passages."""

    def __init__(self, passages: Iterable[Any]) -> None:
        self.passages = list(passages)
        self._given = bool(self.passages)

    def marked(self, text: str, block: Json) -> str:
        """The text of a block with the markers of its citations."""
        # OpenAI cites a file at a place of the text: the numbers are those of everything that was found in it.
        places = [one for one in _objects(block.get("annotations")) if isinstance(one.get("index"), int)]
        for one in sorted(places, key=lambda one: int(one["index"]), reverse=True):
            place, name = max(0, one["index"]), one.get("filename")
            titles = [found.get("title") if isinstance(found, dict) else None for found in self.passages]
            numbers = [number for number, title in enumerate(titles, start=1) if name and title == name]
            text = text[:place] + _markers(numbers) + text[place:]
        # Anthropic cites for a whole block, by the place of a document or by its words.
        return text + _markers(filter(None, map(self._number, _objects(block.get("citations")))))

    def _number(self, citation: Json) -> int:
        text, index = citation.get("cited_text"), citation.get("document_index")
        if self._given:
            return index + 1 if isinstance(index, int) else 0
        if not isinstance(text, str) or not text.strip():
            return 0
        passage = {"text": text, "title": str(citation.get("document_title") or citation.get("title") or "")}
        if passage not in self.passages:
            self.passages.append(passage)
        return self.passages.index(passage) + 1


def _objects(value: Any) -> list[Json]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _markers(numbers: Iterable[int]) -> str:
    found = "".join(f"[{number}]" for number in dict.fromkeys(numbers))
    return f" {found}" if found else ""


def _first(named: Json, names: Iterable[str], role: str, citing: Citing) -> str:
    """The text of the first field of those names that has one."""
    return next((text for name in names if (text := _said(named.get(_bare(name)), role, citing).strip())), "")


def _said(value: Any, role: str, citing: Citing) -> str:
    """A field's text: itself, that of an object, of the last message of a role, or of blocks in a row."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        messages = [item for item in _objects(value) if _role(item)]
        if messages:
            return next((_said(item, role, citing) for item in reversed(messages) if _role(item) == role), "")
        blocks = value if len(value) == 1 else [item for item in _objects(value) if item.get("type") in _BLOCKS]
        return "".join(_said(item, role, citing) for item in blocks)
    if not isinstance(value, dict) or value.get("type") in _THOUGHTS:
        return ""
    text = next((text for name in _SAID if (text := _said(value.get(name), role, citing))), "")
    return citing.marked(text, value) if text else ""


def _role(message: Json) -> str:
    """Who says a message of a chat; "" for what is not one."""
    inside = message.get("kwargs")  # LangChain's own form of it
    fields = inside if isinstance(inside, dict) else message
    return next((_ROLES[said] for name in ("role", "type") if (said := str(fields.get(name))) in _ROLES), "")


def _passages(named: Json) -> list[Any]:
    for name in PASSAGES:
        found = [_passage(given) for given in _listing(named.get(_bare(name)))]
        if found:
            return found
    searched = [_passage(found) for item in _objects(named.get("output")) for found in _objects(item.get("results"))]
    if searched:  # by OpenAI's file search
        return searched
    columns = ((_COLUMN.fullmatch(name), value) for name, value in named.items())
    found = sorted((match[1], int(match[2]), value) for match, value in columns if match and isinstance(value, str))
    for (kind, one, _), (same, other, _) in pairwise([("", 0, ""), *found]):
        if other > one + 1 and (same == kind or other > 1):
            raise RecordError(
                f"The {same} {other - 1} is empty, and {same} {other} is not. Citations go by these numbers. Fill it, "
                "or number the others anew."
            )
    return [value for _, _, value in found]


def _listing(value: Any) -> list[Any]:
    """A list as it is, a text that spells one, as tables have it, or the one passage that was given."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        return _spelled(value.strip()) or [value]
    return value if isinstance(value, list) else [value] if value else []


def _spelled(text: str) -> list[Any]:
    """The list that a text spells in JSON or Python; numpy leaves out the commas, so texts are told by their quotes."""
    if isinstance(found := json_or_none(text), list):
        return found
    with suppress(ValueError, SyntaxError, tokenize.TokenError, RecursionError, MemoryError):
        found = ast.literal_eval(text)
        if isinstance(found, list) and all(isinstance(item, str) for item in found):
            tokens = tokenize.generate_tokens(io.StringIO(text).readline)
            return [ast.literal_eval(token.string) for token in tokens if token.type == tokenize.STRING]
        return found if isinstance(found, list) else []
    return []


def _passage(given: Any) -> Any:
    """A text as it is; of an object its text and a title, with the page where that is known."""
    if not isinstance(given, dict):
        return given
    fields = _unfolded(given)
    text = next((fields[name] for name in _TEXT if isinstance(fields.get(name), str)), None)
    if text is None:
        raise RecordError(f"A passage has no text. Give it as {_listed(_TEXT)}.")
    title = next((fields[name] for name in _TITLE if isinstance(fields.get(name), str)), "")
    if title and fields.get("page_label"):
        title = f"{title}, page {fields['page_label']}"
    relevant = {"relevant": given["relevant"]} if "relevant" in given else {}
    return {"text": text, "title": title, **relevant}


def _unfolded(given: Json) -> Json:
    """The fields of an object and of those inside it; its own go first."""
    inner = [_unfolded(given[name]) for name in _INSIDE if isinstance(given.get(name), dict)]
    return {name: value for fields in (*reversed(inner), given) for name, value in fields.items()}


def _object(value: Any) -> Json:
    """An object, also one that a table's cell spells in JSON."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        value = json_or_none(value)
    return value if isinstance(value, dict) else {}


def _bare(name: str) -> str:
    """A name by its letters and digits.

    >>> _bare("User Input"), _bare("actualOutput")
    ('userinput', 'actualoutput')
    """
    return re.sub(r"[\W_]", "", name).lower()


def _listed(names: tuple[str, ...]) -> str:
    *most, last = names[:7]
    return f"{', '.join(most)} or {last}"


# Files: what holds the objects.


def rows_of(whole: Any) -> list[Any]:
    """The objects of a JSON file: a list, one object, the lists in an object, or a table by its columns."""
    if not isinstance(whole, dict) or "format" in whole:  # a case file
        return whole if isinstance(whole, list) else [whole]
    if not holds_record(whole):
        lists = [value for value in whole.values() if isinstance(value, list) and value]
        held = [rows for rows in lists if isinstance(rows[0], dict) and holds_record(rows[0])]
        return [row for rows in held for row in rows] or [whole]  # also the parts of a data set: "train", "test"
    columns = list(whole.values())
    if all(isinstance(column, dict) and column.keys() == columns[0].keys() for column in columns):  # as pandas has it
        columns = [list(column.values()) for column in columns]
    alike = all(isinstance(column, list) and len(column) == len(columns[0]) for column in columns)
    # One list alone is a chat, and so is one next to as many passages.
    if alike and len(columns) > 1 and not any(_role(item) for column in columns for item in _objects(column)):
        return [dict(zip(whole, row, strict=True)) for row in zip(*columns, strict=True)]
    return [whole]


def table_rows(text: str) -> list[Json | RecordError]:
    """The rows of CSV or TSV with a header line, empty cells left out; none where the text is not a table."""
    header = text.lstrip().partition("\n")[0]
    mark = max(",;\t|", key=header.count)
    if mark not in header or header.startswith(("{", "[")):
        return []
    csv.field_size_limit(LONGEST_CELL)
    reader = csv.reader(io.StringIO(text.lstrip(), newline=""), delimiter=mark, skipinitialspace=True)
    try:
        names, *rows = reader
    except csv.Error:
        return []
    # A line that is an object, below a header of no known name, is one of JSONL whose first line is broken.
    if not holds_record(dict.fromkeys(names)) and "\n{" in text:
        return []
    count = Counter(filter(None, map(_bare, names)))
    if again := next((name for name in names if count[_bare(name)] > 1), ""):
        return [RecordError(f"The table has the column {again!r} twice. Give every column its own name.")]
    return [_row(names, row) for row in rows if any(row)]


def _row(names: list[str], row: list[str]) -> Json | RecordError:
    if any(row[len(names) :]):
        return RecordError("The row has more cells than the header line. Put a cell with a delimiter in quotes.")
    return {name: cell for name, cell in zip(names, row, strict=False) if cell.strip()}
