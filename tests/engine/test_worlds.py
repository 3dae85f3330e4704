"""The sample worlds hold what their READMEs say, and every label holds to the stored text."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import msgspec
import numpy as np
import pytest

from engine.core.errors import RecordError
from engine.core.settings import Chunking
from engine.core.text import sentences
from engine.core.values import Passage
from engine.corpus.chunking import passages
from engine.corpus.collection import Collection, embedding_text
from engine.corpus.samples import FIRST_QUESTION, SAMPLES
from engine.corpus.worlds import WORLDS, Draft, World, load_world
from engine.methods.are.decompose import plain
from engine.models.embedder import ScriptedEmbedder, load_embedder

RUN = 10  # words in a row that no two documents may share
CHUNKINGS = (Chunking(), Chunking(method="words", words=60, overlap=20), Chunking(method="headings", words=150))


@pytest.fixture(scope="module")
def worlds() -> dict[str, World]:
    return {name: load_world(name) for name in WORLDS}


@pytest.fixture(scope="module")
def chemistry(worlds) -> World:
    return worlds["bench-chemistry"]


@pytest.fixture(scope="module")
def bank(worlds) -> World:
    return worlds["bank-investigation"]


@pytest.fixture(scope="module")
def primer(worlds) -> World:
    return worlds["science-primer"]


def cut(world: World, chunking: Chunking = Chunking()) -> list[Passage]:
    return [passage for document in world.documents.values() for passage in passages(document, chunking)]


def words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+(?:['’.,-][^\W_]+)*", text.casefold())


def plain_words(text: str) -> list[str]:
    """The words without amounts and other words with a digit, so that a template with other numbers is a match."""
    return [word for word in words(text) if not any(c.isdigit() for c in word)]


def shared_runs(texts: dict[str, str], split) -> list[tuple[str, str, str]]:
    """(document, other document, run) for every run of `RUN` words that two of `texts` share."""
    owner: dict[tuple[str, ...], str] = {}
    found = []
    for key, text in texts.items():
        row = split(text)
        for run in zip(*(row[i:] for i in range(RUN)), strict=False):
            first = owner.setdefault(run, key)
            if first != key:
                found.append((first, key, " ".join(run)))
    return found


def mini(tmp_path: Path, question: dict, draft: dict | None = None, facts: tuple[dict, ...] = ()) -> Path:
    """A world of two documents, one question and perhaps one draft with the facts of its sentences."""
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "boil.md").write_text("# Boiling\n\nWater *boils* at 100 °C. It freezes at 0 °C.\n")
    (tmp_path / "documents" / "echo.md").write_text("# Echo\n\nTwice. Twice.\n")
    (tmp_path / "questions.jsonl").write_bytes(msgspec.json.encode(question) + b"\n")
    if draft is not None:
        (tmp_path / "drafts.jsonl").write_bytes(msgspec.json.encode(draft) + b"\n")
    if facts:
        (tmp_path / "facts.jsonl").write_bytes(b"\n".join(map(msgspec.json.encode, facts)))
    return tmp_path


BOILS = {"document": "boil.md", "quote": "Water boils at 100 °C."}
ASKED = {"id": "m1", "question": "When does water boil?", "kind": "short", "answer": "At 100 °C.", "gold": [BOILS]}
WRONG = {"kind": "amount", "wrong": "90 °C", "right": "100 °C", "truth": "It is 100 °C.", "evidence": [BOILS]}
DRAFT = {"id": "w1", "question_id": "m1", "draft": "Water boils at 90 °C.", "errors": [WRONG]}
SAID = {"draft_id": "w1", "sentence": "Water boils at 90 °C.", "facts": ["Water boils at 90 °C."]}


def test_a_quote_is_found_in_the_rendered_text_not_in_the_markdown(tmp_path):
    world = load_world("mini", mini(tmp_path, ASKED))
    (span,) = world.gold_spans(world.questions[0])
    # "Boiling" and a blank line stand before it: 9 characters; the asterisks are gone.
    assert span == ("boil.md", 9, 31)
    assert world.documents["boil.md"].text[9:31] == BOILS["quote"]
    first, second = cut(world, Chunking(words=6))[:2]
    assert (first.text, second.text) == ("Boiling\n\nWater boils at 100 °C.", "It freezes at 0 °C.")
    assert world.gold_passages(world.questions[0], [second, first]) == (first,)


@pytest.mark.parametrize(
    ("quote", "said"),
    [
        ({"document": "boil.md", "quote": "Water *boils*"}, "contains it 0 times: 'Water \\*boils\\*'"),
        ({"document": "echo.md", "quote": "Twice."}, "contains it 2 times: 'Twice.'"),
        ({"document": "gone.md", "quote": "Twice."}, "gone.md is unknown: 'Twice.'"),
        ({"document": "boil.md", "quote": " "}, "contains it 0 times"),
    ],
)
def test_a_quote_that_does_not_stand_once_is_named(tmp_path, quote, said):
    world = load_world("mini", mini(tmp_path, ASKED | {"gold": [quote]}))
    with pytest.raises(RecordError, match=f"^mini, m1: .*{said}"):
        world.gold_spans(world.questions[0])


def test_facts_are_read_in_file_order(tmp_path):
    later = {"draft_id": "w1", "sentence": "So.", "facts": ["So it is.", "So it was."]}
    world = load_world("mini", mini(tmp_path, ASKED, DRAFT | {"draft": "Water boils at 90 °C. So."}, (later, SAID)))
    assert [label.facts for label in world.facts] == [("So it is.", "So it was."), ("Water boils at 90 °C.",)]


def test_a_malformed_record_is_named_by_file_and_line(tmp_path):
    with pytest.raises(RecordError, match=r"questions.jsonl, line 1, is not a valid WorldQuestion: .*kind"):
        load_world("mini", mini(tmp_path, ASKED | {"kind": "riddle"}))
    with pytest.raises(RecordError, match="Choose one of: bench-chemistry"):
        load_world("atlantis")


def test_a_draft_is_corrected_span_by_span():
    claim = {"kind": "unsupported", "wrong": "Ice sings.", "right": "", "truth": "Nobody says so.", "evidence": [BOILS]}
    draft = Draft.from_dict(DRAFT | {"draft": "Water boils at 90 °C. Ice sings. So it is.", "errors": [WRONG, claim]})
    assert draft.corrected == "Water boils at 100 °C. So it is."


@pytest.mark.parametrize("name", WORLDS)
def test_every_quote_is_the_text_at_its_span(worlds, name):
    world = worlds[name]
    labelled = {}
    for question in (*world.questions, *world.long_questions):
        steps = (quote for step in question.steps for quote in step.gold)
        labelled[question.id] = [*question.gold, *question.passages, *steps]
        assert question.gold
    for draft in (*world.drafts, *world.more_drafts):
        labelled[draft.id] = [quote for error in draft.errors for quote in error.evidence]
    for record, quotes in labelled.items():
        for quote in quotes:
            document, start, end = world.span(quote, record)
            assert world.documents[document].text[start:end] == quote.quote
            assert world.documents[document].text.count(quote.quote) == 1


def test_the_gold_of_a_question_is_that_of_its_steps(worlds):
    for world in worlds.values():
        for question in world.questions:
            gold = {quote for step in question.steps for quote in step.gold}
            assert not question.steps or gold == set(question.gold), question.id
            assert (question.kind == "multiple_choice") == (question.correct is not None), question.id


@pytest.mark.parametrize("name", WORLDS)
def test_every_gold_character_stands_in_a_gold_passage(worlds, name):
    world = worlds[name]
    for chunking in CHUNKINGS:
        pieces = cut(world, chunking)
        for question in world.questions:
            held: dict[str, set[int]] = {}
            for passage in world.gold_passages(question, pieces):
                held.setdefault(passage.document, set()).update(range(passage.start, passage.end))
            for document, start, end in world.gold_spans(question):
                text = world.documents[document].text
                assert {i for i in range(start, end) if not text[i].isspace()} <= held[document]


def test_ids_are_unique_over_all_worlds(worlds):
    for kinds in (("questions", "long_questions"), ("drafts", "more_drafts")):
        ids = Counter(record.id for world in worlds.values() for kind in kinds for record in getattr(world, kind))
        assert max(ids.values()) == 1
    documents = Counter(key for world in worlds.values() for key in world.documents)
    assert max(documents.values()) == 1


def test_questions_are_not_asked_twice(worlds):
    asked = Counter(
        " ".join(words(question.question))
        for world in worlds.values()
        for question in (*world.questions, *world.long_questions)
    )
    assert [question for question, times in asked.items() if times > 1] == []


@pytest.mark.parametrize("split", [words, plain_words])
def test_no_two_documents_share_a_run_of_ten_words(worlds, split):
    texts = {key: document.text for world in worlds.values() for key, document in world.documents.items()}
    assert shared_runs(texts, split) == []


def test_a_shared_run_would_be_found():
    ten = "one two three four five six seven eight nine ten"
    assert shared_runs({"a": f"Zero, {ten}!", "b": f"{ten} eleven"}, words) == [("a", "b", ten)]
    assert shared_runs({"a": ten, "b": ten.replace("five", "5")}, words) == []
    stamped = "heat it to {} degrees and stir it for ten long minutes under reflux"
    assert shared_runs({"a": stamped.format("90"), "b": stamped.format("40")}, plain_words) != []


def test_the_samples_are_the_worlds(worlds):
    assert [sample.name for sample in SAMPLES] == list(WORLDS)
    assert all(sample.documents and worlds[sample.name].documents for sample in SAMPLES)


def test_bench_chemistry_counts(chemistry):
    assert len(chemistry.documents) >= 150
    lengths = {key: len(document.text.split()) for key, document in chemistry.documents.items()}
    procedures = {key for question in chemistry.questions for key in {q.document for q in question.gold}}
    longest = {key for key, length in lengths.items() if length >= 600}
    assert len(longest) == 10
    assert longest <= procedures
    assert max(lengths.values()) <= 1_500
    assert {question.kind for question in chemistry.questions} == {"short", "long"}
    assert {question.passages_needed for question in chemistry.questions} == {1, 2, 3, 4, 5}
    assert min(Counter(question.experiment for question in chemistry.questions).values()) >= 8
    assert len({question.experiment for question in chemistry.questions}) == 10
    long = [question for question in (*chemistry.questions, *chemistry.long_questions) if question.kind == "long"]
    assert len(long) == 73
    assert sum((question.passages_needed or 0) >= 2 for question in long) == 65


def test_bench_chemistry_passages_needed_are_those_of_the_default_chunking(chemistry):
    """By one at most, and for one question in ten at most, should the splitter ever place a sentence otherwise."""
    pieces = cut(chemistry)
    questions = (*chemistry.questions, *chemistry.long_questions)
    needed = [question.passages_needed or 0 for question in questions]
    found = [len(chemistry.gold_passages(question, pieces)) for question in questions]
    off = [abs(a - b) for a, b in zip(needed, found, strict=True)]
    assert max(off) <= 1
    assert sum(off) <= len(off) // 10


def test_bank_questions_give_ten_to_fifteen_labelled_passages(bank):
    for question in bank.questions:
        given = bank.given_passages(question)
        assert 10 <= len(given) <= 15, question.id
        assert {passage.relevant for passage in given} == {True, False}, question.id
        assert len({passage.id for passage in given}) == len(given), question.id
        for passage in given:
            assert bank.documents[passage.document].text[passage.start : passage.end] == passage.text


def test_bank_gold_stands_in_a_relevant_passage_or_in_none_given(bank):
    for question in bank.questions:
        for passage in bank.gold_passages(question, bank.given_passages(question)):
            assert passage.relevant, (question.id, passage.text)


@pytest.mark.parametrize(("drafts", "least"), [("drafts", 10), ("more_drafts", 9)])
def test_bank_drafts(bank, drafts, least):
    every = getattr(bank, drafts)
    faulty = [draft for draft in every if draft.errors]
    assert len(faulty) >= 20
    assert len(every) > len(faulty), "a checker must be able to find nothing"
    kinds = Counter(error.kind for draft in faulty for error in draft.errors)
    assert set(kinds) == {"amount", "date", "owner", "order", "unsupported"}
    assert min(kinds.values()) >= least
    for draft in every:
        passages_given = len(bank.question(draft.question_id).passages)
        cited = {int(number) for number in re.findall(r"\[cite_(\d+)\]", draft.draft)}
        assert cited <= set(range(1, passages_given + 1)), draft.id
    for draft in faulty:
        for error in draft.errors:
            assert draft.draft.count(error.wrong) == 1, draft.id
            assert (error.right == "") == (error.kind == "unsupported"), (draft.id, error.wrong)
            assert error.right != error.wrong
            assert error.evidence and error.truth


def test_no_planted_error_stands_in_what_the_draft_was_given(bank):
    """A false span may occur in a mistaken document, never in the evidence that refutes it."""
    for draft in (*bank.drafts, *bank.more_drafts):
        for error in draft.errors:
            wrong = re.sub(r"\s*\[cite_\d+\]", "", error.wrong)
            for quote in error.evidence:
                held = re.search(rf"(?<!\d){re.escape(wrong)}", quote.quote, re.IGNORECASE)
                assert not held, (draft.id, error.wrong)


def test_a_corrected_draft_holds_no_planted_error(bank):
    for draft in (*bank.drafts, *bank.more_drafts):
        for error in draft.errors:
            assert draft.corrected.count(error.wrong) == error.right.count(error.wrong), (draft.id, error.wrong)


def test_bank_facts(bank):
    """Facts of whole sentences of drafts, each a sentence without a citation; what the README counts."""
    drafts = {draft.id: draft.draft for draft in (*bank.drafts, *bank.more_drafts)}
    first = [label for label in bank.facts if label.draft_id.startswith("d")]
    assert {label.draft_id for label in first} == {draft.id for draft in bank.drafts}
    assert (len(first), sum(len(label.facts) for label in first)) == (80, 163)
    assert len({(label.draft_id, label.sentence) for label in bank.facts}) == len(bank.facts)
    assert (len(bank.facts), sum(len(label.facts) for label in bank.facts)) == (152, 356)
    for label in bank.facts:
        text = drafts[label.draft_id]
        assert label.sentence in [text[a:b] for a, b in sentences(text)]
        assert text.count(label.sentence) == 1
        assert len(set(label.facts)) == len(label.facts) > 0
        for fact in label.facts:
            assert fact == plain(fact) and re.fullmatch(r"[A-Z0-9].*[^.]\.", fact), fact


def test_bank_facts_lose_no_number_and_resolve_pronouns(bank):
    """The facts have exactly the numbers of the sentence, and no fact opens with a pronoun."""
    number = re.compile(r"\d+(?:[.,:/-]\d+)*")
    for label in bank.facts:
        held = {found for fact in label.facts for found in number.findall(fact)}
        said = set(number.findall(plain(label.sentence)))
        assert said <= held <= said | {"24-061"}, label.sentence  # a report's name, for "it"
        assert not [fact for fact in label.facts if re.match(r"(?:He|She|It|They|Those|These|His|Its|Their) ", fact)]


def test_bank_facts_keep_the_planted_errors(bank):
    """A fact says what its sentence says: no right wording of an error stands where the sentence has the wrong one."""
    errors = {draft.id: draft.errors for draft in (*bank.drafts, *bank.more_drafts)}
    planted = [(e, label) for label in bank.facts for e in errors[label.draft_id] if e.wrong in label.sentence]
    assert len(planted) >= 30
    for error, label in planted:
        if error.right and error.right not in label.sentence:
            assert not [fact for fact in label.facts if error.right in fact], label


def test_primer_counts(primer):
    assert len(primer.documents) >= 300
    lengths = [len(document.text.split()) for document in primer.documents.values()]
    assert min(lengths) >= 80
    assert max(lengths) <= 120
    kinds = Counter(question.kind for question in primer.questions)
    assert kinds["multiple_choice"] >= 60
    assert kinds["open"] >= 30
    assert len({document.title for document in primer.documents.values()}) == len(primer.documents)


def test_primer_questions_need_two_steps_and_two_passages(primer):
    for question in primer.questions:
        assert len(question.steps) >= 2, question.id
        assert len({quote.document for quote in question.gold}) >= 2, question.id
        assert all(step.gold for step in question.steps), question.id


def test_primer_options(primer):
    choices = [question for question in primer.questions if question.kind == "multiple_choice"]
    for question in choices:
        assert len(set(question.options)) == len(question.options) == 4, question.id
        assert question.options[question.correct] == question.answer, question.id
    places = Counter(question.correct for question in choices)
    assert max(places.values()) - min(places.values()) <= 4


@pytest.mark.parametrize("name", WORLDS)
def test_gold_passages_are_found_in_a_collection_of_the_files(worlds, name, tmp_path, monkeypatch):
    monkeypatch.setenv("GROUNDWORK_HOME", str(tmp_path))
    world = worlds[name]
    collection = Collection.create(name, ScriptedEmbedder())
    collection.ingest(next(sample.documents for sample in SAMPLES if sample.name == name))
    stored = collection.snapshot().passages
    assert {passage.document for passage in stored} == set(world.documents)
    pieces = cut(world)
    for question in world.questions:
        found = world.gold_passages(question, stored)
        assert {p.id for p in found} == {p.id for p in world.gold_passages(question, pieces)}


def test_the_first_start_waits_for_no_vectors_and_they_are_the_embedders(prepared_home, at_home):
    texts, vectors = SAMPLES[0].embedded
    with at_home(prepared_home):
        asked = {embedding_text(passage) for passage in Collection.open(SAMPLES[0].name).snapshot().passages}
    assert asked <= {*texts}
    assert FIRST_QUESTION in texts
    some = range(0, len(texts), 25)
    again = load_embedder().embed([texts[i] for i in some])
    assert np.allclose(again, vectors[list(some)], atol=1e-5)
