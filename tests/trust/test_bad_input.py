"""Any bytes and any text into every loader, parser, importer and the case file: a value or a typed error."""

from __future__ import annotations

import json
import string

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from engine.answer.citations import find_citations
from engine.cases.case_file import read_case_file, write_case_file
from engine.cases.importers import LAYOUTS, read_cases
from engine.cases.markup import escape, visible
from engine.cases.query import Query
from engine.cases.review import Mark, MarkDraft, check_chain, check_draft, review_of
from engine.cases.store import CaseStore
from engine.core.errors import CaseFileError, FileError, GroundworkError
from engine.core.settings import Chunking, Settings
from engine.core.text import CITATION, sentences, words
from engine.core.values import AuditRecord, read_jsonl
from engine.corpus.chunking import passages
from engine.corpus.sources import MEDIA_TYPES, load_bytes
from engine.methods.are.decompose import decompose, parse_clauses, parse_facts
from engine.methods.are.edit import parse_edit
from engine.methods.are.verdict import parse_verdict
from engine.methods.judge import parse_criteria, parse_pair, parse_relevance
from engine.methods.raise_.steps import parse as parse_plan
from engine.methods.raise_.values import parse_choice
from engine.models.server import ServerModel, byte_tokens, checked_address
from engine.studies.config import parse_config
from engine.studies.datasets import LAYOUTS as DATA_LAYOUTS, load as load_data
from tests.engine.cases.samples import JSON, full_case

settings.register_profile("trust", suppress_health_check=list(HealthCheck))
settings.load_profile("trust")

TEXT = st.text(max_size=200)
# Text that looks like what a parser waits for, with something wrong in it.
PARTS = st.sampled_from(
    ["{", "}", "[", "]", '"', ":", ",", "|", "\n", "\r", "\t", "\0", "\ufeff", "\ud800", "<", ">", "&#0;", "&lt", "---",
     "# ", "- ", "1. ", "=", "+", "'", "\\", "\\u", "\\ud800", "[cite_1]", "[1]", "A", "supportive", "null", "1e999",
     "9" * 400, "<p>", "</", "<!--", "<![CDATA[", "\u202e", "ÿ", "🦊", "question", "text", "%s"]
)  # fmt: skip
SHAPED = st.lists(PARTS | st.text(string.printable, max_size=6), max_size=30).map("".join)
ANY = TEXT | SHAPED
BYTES = st.binary(max_size=300) | ANY.map(lambda text: text.encode("utf-8", "surrogatepass"))
NAMES = st.sampled_from([f"f{ending}" for ending in MEDIA_TYPES])
DEEP = "[" * 100_000


@given(BYTES, NAMES)
def test_a_loader_gives_documents_or_says_why_not(data, name):
    try:
        documents = load_bytes(data, name)
    except FileError as error:
        assert len(str(error)) > 20
        return
    assert documents
    for document in documents:
        assert document.text.strip()
        for passage in passages(document, Chunking(words=20)):
            assert passage.text == document.text[passage.start : passage.end]


@given(BYTES, st.sampled_from([None, *LAYOUTS]), BYTES | st.none())
def test_an_importer_gives_whole_cases_or_says_why_not(data, layout, sources):
    for _, found in read_cases(data, layout, sources):
        if not isinstance(found, GroundworkError):
            case, history = found
            assert read_case_file(write_case_file(case, history)).case == case


PARTS = ["text", "title", "start", "end", "relevant", "role", "type", "node", "citations", "annotations", "results"]
RECORD = st.dictionaries(
    st.sampled_from(
        ["id", "_id", "question", "passages", "answer", "docs", "output", "grounding", "response", "source_id",
         "labels", "evidence_relevant", "spans", "format", "schema", "case", "stamp", "text", "title", "data", "args",
         "inputs", "outputs", "contexts", "source_nodes", "Source 1", "choices", "messages", "content"]
    ),
    JSON | st.lists(st.dictionaries(st.sampled_from(PARTS), JSON, max_size=3)),
    max_size=6,
)  # fmt: skip


@given(RECORD, st.sampled_from([None, *LAYOUTS]))
def test_records_of_the_right_names_and_wrong_values(record, layout):
    sources = json.dumps({"source_id": record.get("source_id"), "source_info": record.get("text")}).encode()
    rows = list(read_cases(json.dumps(record).encode(), layout, sources))
    assert all(isinstance(found, GroundworkError) or found[0].question for _, found in rows)


@given(BYTES)
def test_a_case_file_is_whole_or_refused(data):
    with pytest.raises(CaseFileError):
        read_case_file(data)


@given(st.data())
def test_a_case_file_with_anything_changed_is_refused(data):
    raw = json.loads(write_case_file(full_case()))
    place, key = raw, "case"
    while isinstance(place[key], dict | list) and place[key] and data.draw(st.booleans()):
        place = place[key]
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
    changed = data.draw(JSON)
    same = msgspec.json.encode(changed) == msgspec.json.encode(place[key])
    was_empty = place[key] in (None, "", [], {}) and changed in (None, "", [], {})
    # The number of the schema is not part of what is hashed, and a number may be spelled 2 or 2.0.
    if same or was_empty or key in ("schema", "case") or changed == place[key]:
        return
    place[key] = changed
    with pytest.raises(CaseFileError):
        read_case_file(json.dumps(raw))


@pytest.mark.parametrize("name", ["f.jsonl", "f.md", "f.html", "f.txt", "f.csv"])
def test_deep_nesting_is_no_crash(name):
    for text in (
        DEEP,
        "<div>" * 100_000,
        "> " * 50_000 + "x",
        '{"a":' * 100_000,
        "*" * 50_000,
        "[" * 50_000 + "x](" * 9,
    ):
        try:
            found = load_bytes(text.encode(), name)
        except FileError as error:
            assert name in str(error)
        else:
            assert found and all(document.text for document in found)


@pytest.mark.parametrize("layout", [None, *LAYOUTS])
def test_deep_json_is_no_crash_in_an_importer(layout):
    for text in (DEEP, '{"question":' * 100_000, '{"a":1}\n' + DEEP):
        rows = list(read_cases(text.encode(), layout))
        assert any(isinstance(found, GroundworkError) for _, found in rows)


@given(ANY)
def test_text_functions_take_any_text(text):
    for spans in (sentences(text), words(text)):
        assert all(0 <= start < end <= len(text) for start, end in spans)
    escape(text)
    visible(text)
    for style in ("garage", "alce"):
        cited = {at for c in find_citations(text, 3, style) for at in range(c.start, c.end)}
        assert cited == {at for m in CITATION[style].finditer(text) for at in range(*m.span())}
    for clause in decompose(text).clauses:
        assert clause.text == text[clause.start : clause.end]


@given(ANY)
def test_parsers_of_replies_take_any_reply(reply):
    text = "Ice melts. Iron rusts."
    steps, _ = parse_plan(reply)
    assert all(step.question.strip() for step in steps)
    assert parse_choice(reply, ("one", "two")) in (None, 0, 1)
    assert parse_pair(reply) in (None, "x", "y", "tie")
    assert parse_relevance(reply) in (None, "none", "superficial", "partial", "full")
    assert all(score is None or 0 <= score <= 5 for score in parse_criteria(reply).values())
    assert parse_edit(reply, text) is None or all(parse_edit(reply, text))
    assert parse_verdict(reply)[0] in ("supportive", "editing_required", "irrelevant", "unparsed")
    assert all(0 <= start < end <= len(text) for start, end in parse_clauses(reply, text) or ())
    assert all(fact.strip() for fact in parse_facts(reply, text) or ())


@given(ANY)
def test_command_line_input_is_a_value_or_a_typed_error(text):
    for read in (
        lambda: Settings().apply([text]),
        lambda: parse_config(text),
        lambda: ServerModel(f"openai:{text}"),
        lambda: checked_address(text),
        lambda: check_draft(MarkDraft(kind="relevance", author=text, value=text, target=f"passage:{text}"), 3, ()),
        lambda: [AuditRecord.from_dict(r) for _, r in read_jsonl(text.split("\n")) if isinstance(r, dict)],
    ):
        try:
            read()
        except GroundworkError as error:
            assert str(error)


@given(st.lists(st.builds(Mark, kind=st.sampled_from(["note", "status", "relevance"]), author=TEXT, value=TEXT,
       target=TEXT, case=TEXT, number=st.integers(-2, 9), time=TEXT, content=TEXT), max_size=4))  # fmt: skip
def test_a_made_up_history_never_holds(marks):
    assert not marks or check_chain(marks, "0123456789ab").problem
    review_of(marks)


@given(ANY, ANY)
@settings(max_examples=30)
def test_the_library_is_searched_by_any_words(tmp_path_factory, words_, tag):
    store = CaseStore(tmp_path_factory.mktemp("library") / "cases.sqlite")
    store.save(full_case())
    query = Query(text=words_, tag=tag)
    assert store.count(query) == len(store.rows(query))


@given(st.binary(max_size=60), st.lists(st.binary(max_size=9), max_size=5))
def test_tokens_of_a_server_that_do_not_spell_the_text_are_left_out(text, pieces):
    shown = text.decode("utf-8", "replace")
    tokens = byte_tokens(shown, [(piece, -1.0) for piece in pieces])
    assert not tokens or b"".join(pieces) == shown.encode()


@given(BYTES | RECORD.map(lambda record: json.dumps(record).encode()), st.sampled_from(sorted(DATA_LAYOUTS)),
       st.sampled_from([".jsonl", ".json", ".csv", ".tsv"]))  # fmt: skip
def test_a_data_set_is_read_or_refused(tmp_path_factory, data, layout, ending):
    path = tmp_path_factory.mktemp("data") / f"set{ending}"
    path.write_bytes(data)
    try:
        assert all(example.question for example in load_data(path, layout))
    except GroundworkError as error:
        assert str(error)
