"""The values that flow between the stages: frozen, comparable, and plain JSON on request.

Text positions are half-open character offsets [start, end) into the text named in the docstring; token strings are
never keys. `to_dict` gives plain JSON values, `from_dict` checks them and says where they fail; the last part reads the
command line's JSONL records.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, get_args, get_type_hints

import msgspec

from engine.core.errors import RecordError
from engine.core.text import composed

# msgspec looks at a type when it first meets it, and two threads that do so at once crash the process. So typed data
# comes in through `converted` and `decoded`.

T = TypeVar("T")
Json = dict[str, Any]  # an object of plain JSON, where it enters or leaves
IMPORTED = "imported"  # the writer of an answer whose record names none
SPANS = "spans"  # in the settings of its stamp: the spans to explain that its record names


class Value(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A frozen value with a checked JSON form."""

    def to_dict(self) -> Json:
        """Return plain dicts, lists, strings and numbers."""
        data: Json = msgspec.to_builtins(self)
        return data

    @classmethod
    def all_from(cls, lines: Iterable[str]) -> list[Self]:
        """The records of a JSONL file; the first bad one is raised: a fit to some would pass for one to all of them."""
        found = []
        for number, data in numbered_jsonl(lines):
            if isinstance(data, RecordError):
                raise data
            try:
                found.append(cls.from_dict(identified(number, data)))
            except RecordError as error:
                raise RecordError(f"Line {number}: {error}") from error
        return found

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """The value of plain data, or the value itself; raise `RecordError` naming the place that does not fit."""
        if type(data) is cls:
            return data
        try:
            return converted(data, cls)
        except msgspec.ValidationError as error:
            raise RecordError(_misfit(error, cls)) from error


def _misfit(error: msgspec.ValidationError, kind: type[Value]) -> str:
    """Where data does not fit a value; of a word that is not among a field's, those that are."""
    wrong = re.fullmatch(r"Invalid enum value (.*) - at `\$\.(\w+)`", str(error), re.DOTALL)
    if wrong is None:
        return f"This is not a valid {kind.__name__}: {error}."
    given, field = wrong.groups()
    return f"{given} is not a {field}. Write one of: {', '.join(get_args(get_type_hints(kind)[field]))}."


_seen: set[Any] = set()
_looking = threading.Lock()


def _look_at(kind: Any) -> None:
    """Let msgspec look at a type (a class, a union, a tuple of them), alone; once is enough."""
    if kind not in _seen:
        with _looking, contextlib.suppress(msgspec.ValidationError):
            msgspec.convert(None, kind)
        _seen.add(kind)


def converted(data: Any, kind: type[T], *, strict: bool = True) -> T:
    """`data` as a `kind`; raise `msgspec.ValidationError`. Not `strict`: "7" passes for 7."""
    _look_at(kind)
    return msgspec.convert(data, kind, strict=strict)


def decoded(data: bytes | str, kind: type[T]) -> T:
    """JSON as a `kind`; raise `msgspec.DecodeError` (also `ValidationError`), also where it is not UTF-8."""
    _look_at(kind)
    try:
        return msgspec.json.decode(data, type=kind)
    except (UnicodeError, RecursionError) as error:
        raise msgspec.DecodeError(str(error)) from error


def json_or_none(data: bytes | str) -> Any:
    """The JSON value that data spell; None where they do not."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def with_nan(data: bytes | str) -> Any:
    """The value of JSON as Python writes it, with NaN and Infinity; None where data hold neither or are not that."""
    with contextlib.suppress(ValueError, RecursionError):
        text = data if isinstance(data, str) else data.decode()
        return json.loads(text) if "NaN" in text or "Infinity" in text else None
    return None


def not_finite(value: Any) -> str:
    """The place, or its end, of the first number in a JSON value that is not finite; empty without one.

    >>> not_finite({"scores": {"faithfulness": [1.0, float("nan")]}})
    'scores.faithfulness[1]'
    """
    waiting = [("", value)]  # no recursion: a hostile value is as deep as a stack
    while waiting:
        place, part = waiting.pop()
        if isinstance(part, float) and not math.isfinite(part):
            return place
        if isinstance(part, dict):
            parts = [(f"{place}.{name}".removeprefix("."), inner) for name, inner in part.items()]
        else:
            parts = [(f"{place}[{n}]", inner) for n, inner in enumerate(part if isinstance(part, list) else ())]
        waiting += [(name[-_LONGEST_PLACE:], inner) for name, inner in reversed(parts)]
    return ""


_LONGEST_PLACE = 80  # characters
NOT_FINITE = "`{}` is NaN or infinite, which JSON cannot hold. Write null, or leave the field out."


def sha256(text: str) -> str:
    """Hex SHA-256 of the UTF-8 bytes of `text` (lone surrogates kept)."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class DocumentSection(Value, frozen=True):
    """A heading and where its section starts in the document's text."""

    start: int
    level: int
    title: str


class Document(Value, frozen=True):
    """The text extracted from one file or record; every offset of a passage points into `text`.

    `pages[i]` is the offset at which page i + 1 starts (empty where the format has no pages).
    """

    id: str
    title: str
    text: str
    source: str
    media_type: str
    sections: tuple[DocumentSection, ...] = ()
    pages: tuple[int, ...] = ()


class Passage(Value, frozen=True):
    """A frozen span of a document: `text == document.text[start:end]`.

    `ordinal` counts the document's passages from 0. The id names document, content and span, so it never
    comes to mean something else. `speaker` is who speaks at its start, where that is within a turn of a transcript.
    """

    id: str
    document: str
    title: str
    ordinal: int
    start: int
    end: int
    text: str
    page: int | None = None
    relevant: bool | None = None
    speaker: str = ""

    @property
    def label(self) -> str:
        """The name for readers: the document's title, or without one its file name, and who continues to speak."""
        return self._told(self.title or self.document)

    @property
    def heading(self) -> str:
        """The document's title, which may be empty, and who continues to speak: it is read with the text."""
        return self._told(self.title)

    def _told(self, title: str) -> str:
        return f"{title} ({self.speaker} continues)".strip() if self.speaker else title


class Hit(Value, frozen=True):
    """A retrieved passage; `score` is the ranking's own, `parts` the scores that it was made from."""

    passage: Passage
    score: float
    parts: dict[str, float] = {}


class ChunkSet(Value, frozen=True):
    """Retrieved passages of one document with consecutive ordinals, in document order (Attr-RAG, section IV-B).

    `text` is the passages' text merged by offsets: no character stands twice. `score` is the re-ranker's.
    `filled` is kept for older files: what gap filling adds stands with the Attr-RAG run.
    """

    passages: tuple[Passage, ...]
    text: str
    score: float
    filled: tuple[int, ...] = ()


Role = Literal["system", "user", "assistant"]
Kind = Literal["system", "instruction", "demonstration", "passage", "question", "draft", "critique", "template"]


class Segment(Value, frozen=True):
    """One piece of a prompt, tokenised on its own; a passage keeps its citation `number` when others are removed."""

    kind: Kind
    text: str
    role: Role = "user"
    number: int | None = None


class Prompt(Value, frozen=True):
    """A prompt as segments. A model adds its chat template's own tokens around the roles."""

    segments: tuple[Segment, ...]

    @property
    def text(self) -> str:
        """The segments' text joined, without a chat template; a blank line parts the roles."""
        turns = groupby(self.segments, key=lambda segment: segment.role)
        return "\n\n".join("".join(segment.text for segment in turn).strip("\n") for _, turn in turns)

    @property
    def numbers(self) -> tuple[int, ...]:
        """The citation numbers of the passages that are in the prompt, in prompt order."""
        return tuple(s.number for s in self.segments if s.kind == "passage" and s.number is not None)

    def keep(self, numbers: frozenset[int] | set[int]) -> Prompt:
        """The prompt with only those passages; all other segments stay."""
        return Prompt(segments=tuple(s for s in self.segments if s.kind != "passage" or s.number in numbers))

    def without(self, numbers: frozenset[int] | set[int]) -> Prompt:
        """The prompt with those passages removed; the others keep their numbers."""
        return self.keep(set(self.numbers) - set(numbers))


class Token(Value, frozen=True):
    """A token of the answer with its span in the answer's text; `logprob` in nats where it is known."""

    id: int
    start: int
    end: int
    logprob: float | None = None


class Citation(Value, frozen=True):
    """A citation marker in the answer; `valid` is False if the passage does not exist."""

    start: int
    end: int
    number: int
    valid: bool


class Answer(Value, frozen=True):
    """An answer; tokens, sentences and citations carry offsets into `text`.

    `sentences` are [start, end) pairs. `refused` is True when the writer said that the passages do not answer.
    `quotes` (quoting reader only) are (sentence index, passage number, start, end) into the passage's text.
    """

    text: str
    tokens: tuple[Token, ...] = ()
    sentences: tuple[tuple[int, int], ...] = ()
    citations: tuple[Citation, ...] = ()
    quotes: tuple[tuple[int, int, int, int], ...] = ()
    refused: bool = False
    finished: bool = True


class Stamp(Value, frozen=True):
    """The origin of a result: enough to run it again and to refuse a mix of two runs.

    `inputs` is the hash of question, passages and answer text (an answer's own stamp: question and passages).
    """

    model: str
    revision: str = ""
    dtype: str = ""
    template: str = ""
    settings: Json = {}
    seed: int | None = None
    versions: dict[str, str] = {}
    inputs: str = ""
    created: str = ""


class Details(Value, frozen=True, omit_defaults=True, forbid_unknown_fields=False):
    """Details of an attribution besides its scores; the stored form leaves out unmeasured ones.

    Of each source: `kept`, its place among those asked for; `source_spans` and `text_spans`, [passage number, start,
    end] in the prompt's segment and in the passage's text; `lengths`, its tokens. Of each span: `full`, the answer's
    log-probability in nats, `content_tokens`, the floors `..._by_span`, and `elsewhere`, the sum outside the sources.
    (spans, sources): `with_markers`, `alone`, each as the only source, `gained`, the probability that it adds to the
    others and alone (occlusion both ways), and `absolute`, the sums of |R| of its tokens.
    Of each answer token: `placebo_floor_by_token` and `content`, whether it counts. `tokens` are those of `per_token`:
    their places in the answer, or [start, end) in its text, as `token_spans` are. `delta` and `steps` are of integrated
    gradients, `approximate`, `hold_out_correlation` (a span each) and `ablations` of a surrogate, `alphas` and `floors`
    of regeneration by metric. `revision` is the scoring model's, where the stamp is another one's.
    """

    kept: tuple[int, ...] = ()
    source_spans: tuple[tuple[int, int, int], ...] = ()
    text_spans: tuple[tuple[int, int, int], ...] = ()
    lengths: tuple[int, ...] = ()
    full: tuple[float, ...] = ()
    content_tokens: tuple[int, ...] = ()
    numerical_floor_by_span: tuple[float, ...] = ()
    placebo_floor_by_span: tuple[float, ...] = ()
    elsewhere: tuple[float, ...] = ()
    absolute: tuple[tuple[float, ...], ...] = ()
    with_markers: tuple[tuple[float, ...], ...] = ()
    alone: tuple[tuple[float, ...], ...] = ()
    gained: tuple[tuple[float, ...], ...] = ()
    placebo_floor_by_token: tuple[float, ...] = ()
    content: tuple[bool, ...] = ()
    tokens: tuple[int | tuple[int, int], ...] = ()
    token_spans: tuple[tuple[int, int], ...] = ()
    delta: float | None = None
    steps: float | None = None
    approximate: bool = False
    hold_out_correlation: tuple[float | None, ...] = ()
    ablations: int = 0
    alphas: dict[str, tuple[float, ...]] = {}
    floors: dict[str, float] = {}
    revision: str | None = None


class Attribution(Value, frozen=True):
    """Signed scores of sources for spans of the answer (positive = makes the answer more likely).

    `sources[j]` are the passage numbers removed together as source j (one number a passage for a passage-level
    attribution). `scores[s][j]` is the total over the content tokens of answer span s, in `unit`.
    `per_token[t][j]` is the same for answer token t. Shapes: (spans, sources), (tokens, sources).
    """

    method: str
    model: str
    unit: str
    spans: tuple[tuple[int, int], ...]
    sources: tuple[tuple[int, ...], ...]
    scores: tuple[tuple[float, ...], ...]
    per_token: tuple[tuple[float, ...], ...]
    numerical_floor: float | None = None
    placebo_floor: float | None = None
    forwards: int = 0
    backwards: int = 0
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    details: Details = Details()

    def __post_init__(self) -> None:
        """Raise `ValueError` where rows do not have a score for each source: a case file may contain anything."""
        more = (self.details.alone, self.details.gained, self.details.absolute, self.details.with_markers)
        by_span = (self.scores, *filter(None, more))
        rows = chain(self.per_token, *by_span)
        if any(len(table) != len(self.spans) for table in by_span) or any(len(r) != len(self.sources) for r in rows):
            raise ValueError("the scores do not match the spans and sources")


class Step(Value, frozen=True):
    """One step of a run as it happened: name, seconds, and counts worth showing."""

    name: str
    seconds: float
    counts: dict[str, float] = {}


if TYPE_CHECKING:
    Result = Value | Json
else:
    Result = Any  # msgspec takes no union of a struct and a dict


class Analysis(Value, frozen=True):
    """A method's result on a case, with the stamp of its origin.

    `kind` is the tag of `result`: that kind's own value. From the library or a file it is the value's plain JSON until
    the kind reads it (`Workbench.result`), so that what an older version wrote keeps its bytes and its hash.
    """

    id: str
    kind: str
    stamp: Stamp
    result: Result

    def stored(self) -> Json:
        """The result as plain JSON."""
        return self.result.to_dict() if isinstance(self.result, Value) else self.result


class Case(Value, frozen=True):
    """One question, one frozen set of passages, one answer, and every analysis of it.

    `answerable` is the probability that what was found answers the question (answer/in_documents.py), in [0, 1]; None
    where it was not asked. `unknown_words` are words of the question that no document of the corpus has, each with the
    nearest word of one, or "". `parent` is the case that this one is a new version of.
    """

    id: str
    question: str
    passages: tuple[Passage, ...]
    answer: Answer
    stamp: Stamp
    corpus: str | None = None
    title: str = ""
    created: str = ""
    origin: Literal["generated", "imported"] = "generated"
    hits: tuple[Hit, ...] = ()
    chunk_sets: tuple[ChunkSet, ...] = ()
    prompt: Prompt | None = None
    steps: tuple[Step, ...] = ()
    analyses: tuple[Analysis, ...] = ()
    options: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    answerable: float | None = None
    unknown_words: tuple[tuple[str, str], ...] = ()
    parent: str | None = None
    schema: int = 1

    @property
    def labels(self) -> dict[int, bool | None]:
        """Whether each passage, by its number, is labelled relevant; None where it has no label."""
        return {number: passage.relevant for number, passage in enumerate(self.passages, start=1)}

    @property
    def searched(self) -> tuple[str, ...]:
        """The documents of the corpus that the question was asked of, by name or pattern; empty for all of them."""
        how = self.stamp.settings.get("retrieval")  # a case file may have anything there
        names = how.get("documents") if isinstance(how, dict) else ()
        return tuple(map(str, names)) if isinstance(names, (list, tuple)) else ()

    def analysis(self, name: str) -> Analysis | None:
        """The analysis of that id; None without one."""
        return next((analysis for analysis in self.analyses if analysis.id == name), None)


def inputs_hash(question: str, passages: tuple[Passage, ...], answer: str = "") -> str:
    """Hash of what an analysis is about: question, passage texts in order, answer text."""
    return sha256(msgspec.json.encode([question, [p.text for p in passages], answer]).decode())


# Records of the command line's JSONL files, checked on reading.

LINE_LIMIT = 16 * 2**20  # characters of one record; a longer line is refused, not parsed


class GivenPassage(Value, frozen=True):
    """A passage as people write it: plain text, or text with title and relevance."""

    text: str
    title: str = ""
    relevant: bool | None = None


class AuditRecord(Value, frozen=True, forbid_unknown_fields=False):
    """A question, the passages that were given, and the answer that some system wrote.

    `corpus` names a corpus of the library in which the facts check may also search; then `passages` may be empty.
    `spans` are stretches of the answer, [start, end) in characters, that attributions explain besides the sentences.
    """

    question: str
    passages: tuple[str | GivenPassage, ...]
    answer: str = ""
    id: str = ""
    model: str = ""
    corpus: str | None = None
    spans: tuple[tuple[int, int], ...] = ()

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """As of any value, and `normal`."""
        return super().from_dict(data).normal()

    def normal(self) -> Self:
        """The record with the accents of question and answer in their letters, as documents have them; spans follow."""
        answer = composed(self.answer)
        spans = tuple((self._moved(start), self._moved(end)) for start, end in self.spans)
        return msgspec.structs.replace(self, question=composed(self.question), answer=answer, spans=spans)

    def _moved(self, place: int) -> int:
        """Where a place of the answer is once it is composed; one outside stays outside."""
        before = self.answer[:place]
        return place + len(composed(before)) - len(before)

    def checked(self) -> AuditRecord:
        """The record itself; raise `RecordError` if it has no answer, or no source to check it against."""
        if not self.answer.strip():
            raise RecordError("The record has no answer. Give the text to check as `answer`.")
        if not self.passages and self.corpus is None:
            raise RecordError("The record has no source. Give `passages` or a corpus.")
        return self

    def as_passages(self) -> tuple[Passage, ...]:
        """The passages as frozen spans of themselves; raise `RecordError` where one is empty."""
        return tuple(_passage(ordinal, given) for ordinal, given in enumerate(self.passages))


def own_title(number: int | None, title: str) -> str:
    """The title of passage `number`; "" where it only counts the passage, as that of a pasted one does."""
    return "" if number and title == _counted(number) else title


def _counted(number: int) -> str:
    return f"passage {number}"


def _passage(ordinal: int, given: str | GivenPassage) -> Passage:
    value = GivenPassage(text=given) if isinstance(given, str) else given
    if not value.text.strip():
        raise RecordError(f"Passage {ordinal + 1} is empty. Leave it out or add its text.")
    document, text = _counted(ordinal + 1), composed(value.text)
    return Passage(
        id=f"{document}@{sha256(text)[:10]}:0-{len(text)}",
        document=document,
        title=composed(value.title),
        ordinal=0,
        start=0,
        end=len(text),
        text=text,
        relevant=value.relevant,
    )


def read_jsonl(lines: Iterable[str]) -> Iterator[tuple[str, Json | RecordError]]:
    """(`identity`, object with it as its `id`) of a JSONL text's lines; a bad line has its number and its error."""
    for number, data in numbered_jsonl(lines):
        found = data if isinstance(data, RecordError) else identified(number, data)
        yield str(number) if isinstance(found, RecordError) else found["id"], found


def identified(number: int, data: Json) -> Json:
    """The record with its `id` (see `identity`) and without `_id`."""
    return {name: value for name, value in data.items() if name != "_id"} | {"id": identity(data, number)}


def identity(record: Mapping[str, Any], number: int | str) -> str:
    """A record's `id`, else its `_id` or `sample_id`, else the number of its place; null is none.

    >>> identity({"id": None, "_id": 7}, 1), identity({"id": None}, 1)
    ('7', '1')
    """
    return str(next((record[name] for name in ("id", "_id", "sample_id") if record.get(name) is not None), number))


def numbered_jsonl(lines: Iterable[str]) -> Iterator[tuple[int, Json | RecordError]]:
    """(line number from 1, object as it stands, or what is wrong with the line) of every line that is not blank.

    A byte order mark, as some editors write it before the first line, is passed over.
    """
    for number, line in enumerate(lines, start=1):
        if text := line.removeprefix("\ufeff").strip():
            yield number, _object(number, text)


def _object(number: int, line: str) -> Json | RecordError:
    if len(line) > LINE_LIMIT:
        return RecordError(
            f"Line {number} has {len(line):,} characters, over the limit of {LINE_LIMIT:,}. Give shorter passages."
        )
    try:
        data = msgspec.json.decode(line)
    except UnicodeError:
        return RecordError(f"Line {number} is not UTF-8 text. Save the file as UTF-8.")
    except (msgspec.DecodeError, RecursionError) as error:
        if place := not_finite(with_nan(line)):
            return RecordError(f"Line {number}: {NOT_FINITE.format(place)}")
        return RecordError(f"Line {number} is not JSON ({error}). Write one object per line.")
    if not isinstance(data, dict):
        return RecordError(f"Line {number} is not a JSON object. Write one object per line.")
    return data
