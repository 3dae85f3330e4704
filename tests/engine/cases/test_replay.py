"""Replay: what reproduces, what drifts and by how much, what cannot be compared and why."""

from __future__ import annotations

import io
import threading

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

import engine.replay
from engine.analyses.attribution import other_revision
from engine.analyses.kind import Loaders, Outcome
from engine.answer.context import consecutive_alignment, kept_passages
from engine.answer.in_documents import answered_probability
from engine.answer.quoting_reader import read
from engine.answer.write import quoting
from engine.core.canonical import canonical
from engine.core.errors import Cancelled, ModelNotFound
from engine.core.files import package_versions
from engine.core.progress import Watch
from engine.core.settings import Occlusion, Reader, Retrieval, Settings
from engine.core.values import Analysis, AuditRecord, Case, Document, Stamp, inputs_hash
from engine.corpus.collection import Collection
from engine.methods.attr_rag import attr_rag, scored_by
from engine.methods.regeneration import answering
from engine.models.embedder import ScriptedEmbedder
from engine.models.reranker import BestSentence
from engine.models.scripted import ScriptedScorer
from engine.replay import IMPORTED, NOT_LOOKED_FOR, Number, Replay, compare, part_names, recompute, replay, stripped
from engine.retrieve.bm25 import unknown_words
from engine.retrieve.search import rerank, search
from engine.workbench import Workbench
from tests.analysing import analysed, replay_here
from tests.engine.cases.samples import full_case

QUESTION = "Which solvent dissolves the crude product?"
TEXTS = {
    "a": "The crude product dissolves in hot water. It is cooled in ice.",
    "b": "Methanol is a solvent. Wear gloves.",
    "c": "The bridge was built in 1874.",
}
EMBEDDER = ScriptedEmbedder()


def scorer():
    return ScriptedScorer(lambda passages, words, t: -3.0 + 0.25 * len(passages) + 0.01 * t)


TOOLS = Loaders(
    embedder=lambda name: EMBEDDER,
    reranker=lambda name: BestSentence(EMBEDDER),
    writer=lambda name: scorer(),
    collection=lambda name: Collection.open(name, EMBEDDER),
)


@pytest.fixture
def case() -> Case:
    """A case of a small collection, answered by the quoting reader and scored by a scripted model."""
    collection = Collection.create("kitchen", EMBEDDER)
    collection.add([Document(id=k, title=k, text=t, source=k, media_type="text/plain") for k, t in TEXTS.items()])
    hits = tuple(search(collection, QUESTION, Retrieval(k=3)))
    sets = rerank(QUESTION, consecutive_alignment(hits), BestSentence(EMBEDDER))
    passages = tuple(passage for chunk_set in sets for passage in chunk_set.passages)
    reading = read(QUESTION, passages, EMBEDDER, Reader(close_enough=0.0))
    stamp = Stamp(
        model="reader",
        revision=EMBEDDER.name,
        settings={"reader": Reader(close_enough=0.0).to_dict(), "retrieval": Retrieval(k=3).to_dict()},
        versions=package_versions(),
        inputs=inputs_hash(QUESTION, passages),
    )
    made = Case(
        id="0123456789ab",
        question=QUESTION,
        passages=passages,
        answer=reading.answer,
        stamp=stamp,
        corpus="kitchen",
        hits=hits,
        chunk_sets=sets,
        analyses=(Analysis(id="reading", kind="reading", stamp=stamp, result=reading.to_dict()),),
    )
    settings = Settings(occlusion=Occlusion(placebos=0))
    occluded = analysed(made, "occlusion", scorer(), settings)
    made = msgspec.structs.replace(made, analyses=(*made.analyses, occluded))
    return Case.from_dict(msgspec.json.decode(msgspec.json.encode(made)))


def with_result(case: Case, index: int, change) -> Case:
    analyses = list(case.analyses)
    result = msgspec.json.decode(msgspec.json.encode(analyses[index].result))
    change(result)
    analyses[index] = msgspec.structs.replace(analyses[index], result=result)
    return msgspec.structs.replace(case, analyses=tuple(analyses))


def test_every_number_of_an_untouched_case_reproduces(case):
    result = replay_here(case, TOOLS)
    assert result.count("reproduced") == len(result.numbers)
    places = {number.place.split(".")[0].split("[")[0] for number in result.numbers}
    assert places == {"stamp", "hits", "chunk_sets", "answer", "analyses"}


def test_one_altered_number_is_named_with_its_drift(case):
    def alter(result):
        result["scores"][0][1] += 0.125

    result = replay_here(with_result(case, 1, alter), TOOLS)
    drifted = [number for number in result.numbers if number.status == "drifted"]
    assert [number.place for number in drifted] == ["analyses[occlusion:scripted-scorer].scores[0][1]"]
    assert drifted[0].difference == pytest.approx(0.125)
    assert "analyses[occlusion:scripted-scorer].scores[0][1] the most" in result.summary


@pytest.mark.parametrize("place", ["hits[1].score", "chunk_sets[0].score", "stamp.inputs", "answer.text"])
def test_an_altered_value_outside_the_analyses_is_named(case, place):
    changes = {
        "hits[1].score": {"hits": (case.hits[0], msgspec.structs.replace(case.hits[1], score=0.987), *case.hits[2:])},
        "chunk_sets[0].score": {
            "chunk_sets": (msgspec.structs.replace(case.chunk_sets[0], score=9.0), *case.chunk_sets[1:])
        },
        "stamp.inputs": {"stamp": msgspec.structs.replace(case.stamp, inputs="0" * 64)},
        "answer.text": {"answer": msgspec.structs.replace(case.answer, text=case.answer.text + " More.")},
    }
    altered = msgspec.structs.replace(case, **changes[place])
    drifted = [number.place for number in replay_here(altered, TOOLS).numbers if number.status == "drifted"]
    assert place in drifted


def asked(case: Case) -> Case:
    """The case as *Ask* leaves it: with what it says of the question."""
    likely = answered_probability(QUESTION, kept_passages(case.hits, case.chunk_sets, Retrieval().keep), EMBEDDER)
    collection = Collection.open("kitchen", EMBEDDER)
    return replace(
        case, answerable=likely, unknown_words=unknown_words(QUESTION, collection.folder, collection.snapshot())
    )


@pytest.mark.parametrize(
    ("place", "change"),
    [
        ("hits[1].text", lambda c: {"hits": (c.hits[0], other_text(c.hits[1]), *c.hits[2:])}),
        ("hits", lambda c: {"hits": c.hits[:2]}),
        ("hits", lambda c: {"hits": ()}),
        (
            "answer.sentences[0][1]",
            lambda c: {"answer": replace(c.answer, sentences=((0, 3), *c.answer.sentences[1:]))},
        ),
        ("answer.citations[0].valid", lambda c: {"answer": replace(c.answer, citations=invalid(c))}),
        ("answer.citations", lambda c: {"answer": replace(c.answer, citations=())}),
        ("answer.refused", lambda c: {"answer": replace(c.answer, refused=True)}),
        ("answerable", lambda c: {"answerable": 0.999}),
        ("unknown_words", lambda c: {"unknown_words": (*c.unknown_words, ("unheard", ""))}),
    ],
)
def test_an_altered_value_that_the_report_prints_is_named(case, place, change):
    whole = asked(case)
    assert replay_here(whole, TOOLS).count("reproduced") == len(replay_here(whole, TOOLS).numbers)
    found = replay_here(replace(whole, **change(whole)), TOOLS)
    status = "cannot" if place == "answerable" else "drifted"  # an earlier version may have measured otherwise
    assert place in [number.place for number in found.numbers if number.status == status]


def other_text(hit):
    return replace(hit, passage=replace(hit.passage, text=hit.passage.text + " Not so."))


def invalid(case):
    return tuple(replace(citation, valid=False) for citation in case.answer.citations)


def test_words_that_an_earlier_version_did_not_look_for_are_not_called_drifted(case):
    collection = Collection.open("kitchen", EMBEDDER)
    strange = replace(asked(case), question="Which solvent dissolves the zyxine?", analyses=())
    assert unknown_words(strange.question, collection.folder, collection.snapshot())
    (found,) = [n for n in replay_here(strange, TOOLS).numbers if n.place == "unknown_words"]
    assert (found.status, found.why) == ("cannot", NOT_LOOKED_FOR)


@pytest.mark.parametrize(
    ("place", "change"),
    [
        ("answer.sentences", {"sentences": ()}),
        ("answer.citations", {"citations": ()}),
        ("answer.refused", {"refused": True}),
    ],
)
def test_what_is_read_off_an_imported_answer_is_read_again(tmp_path, monkeypatch, place, change):
    monkeypatch.setenv("GROUNDWORK_HOME", str(tmp_path))
    tools = Loaders(embedder=lambda name: EMBEDDER)
    record = AuditRecord(question="Who?", answer="Ann [1]. Bo [3].", passages=("Ann did.", "Bo did."))
    case = Workbench(tools=tools).audit(record)
    assert replay_here(case, tools).holds
    altered = replay_here(replace(case, answer=replace(case.answer, **change)), tools)
    assert [n.place for n in altered.numbers if n.status == "drifted"][:1] == [place]


def test_the_copy_that_is_replayed_holds_no_result(case):
    copy = stripped(case)
    assert {hit.score for hit in copy.hits} == {0.0}
    assert all(analysis.result == {} for analysis in copy.analyses)
    assert copy.steps == ()
    alone = msgspec.structs.replace(case, analyses=case.analyses[:1])
    assert stripped(alone).answer.text == ""


def test_drops_by_a_revision_that_is_gone_cannot_be_compared_and_the_rest_can(case):
    first, now = scorer(), scorer()
    first.revision, now.revision = "first", "now"
    read = quoting(EMBEDDER, Reader(close_enough=0.0))
    score = scored_by(first, writer="reader")
    found = attr_rag(QUESTION, case.chunk_sets, lambda numbered: answering(read), embedder=EMBEDDER, score=score)
    stored = Analysis(id="attr-rag", kind="attr-rag", stamp=case.stamp, result=found.to_dict())
    alone = msgspec.structs.replace(case, analyses=(stored,))
    for model, status in ((first, "reproduced"), (now, "cannot")):
        tools = Loaders(**{**vars(TOOLS), "writer": lambda name, model=model: model})
        drops = [n for n in replay_here(alone, tools).numbers if n.place.startswith("analyses[attr-rag].drops")]
        assert {n.status for n in drops} == {status}
    assert {n.why for n in drops} == {other_revision("scripted-scorer", "first", "now")}


def test_a_missing_model_a_changed_one_and_a_changed_collection_are_reasons(case):
    def absent(name):
        raise ModelNotFound("No such model here. Load it first.")

    why = {n.place: n.why for n in replay_here(case, Loaders(**{**vars(TOOLS), "writer": absent})).numbers if n.why}
    assert why == {"analyses[occlusion:scripted-scorer]": "No such model here. Load it first."}

    changed = scorer()
    changed.revision = "other"
    why = [
        n.why for n in replay_here(case, Loaders(**{**vars(TOOLS), "writer": lambda name: changed})).numbers if n.why
    ]
    assert why == [other_revision("scripted-scorer", "", "other")]
    assert why[0].startswith("scored by another revision of scripted-scorer (without a name), which is not installed")

    text = TEXTS["a"].replace("ice", "snow")
    document = Document(id="a", title="a", text=text, source="a", media_type="text/plain")
    Collection.open("kitchen", EMBEDDER).add([document])
    cannot = [n for n in replay_here(case, TOOLS).numbers if n.status == "cannot"]
    assert [n.place for n in cannot] == ["hits"]
    assert "has changed" in cannot[0].why


def test_a_drift_within_the_floor_is_reproduced_and_one_above_is_not():
    found = compare("x", {"a": 1.0, "b": 1.0}, Outcome(values={"a": 1.0005, "b": 1.002}, floor=0.001))
    assert [(n.place, n.status) for n in found] == [("x.a", "reproduced"), ("x.b", "drifted")]
    assert found[1].difference == pytest.approx(0.002)


@pytest.mark.parametrize(("steps", "drifted"), [(3, 0), (5, 4)])
def test_the_readers_figures_round_as_often_as_they_have_a_cosine(case, steps, drifted):
    moved = steps * float(np.finfo(np.float32).eps)  # of each cosine; four are within the floor

    def alter(result):
        first = result["candidates"][0]
        first["closeness"] += moved
        first["score"] += 4 * moved
        first["parts"]["cosine"] += 2 * moved
        first["parts"]["passage"] -= 2 * moved

    assert replay_here(with_result(case, 0, alter), TOOLS).count("drifted") == drifted


def test_a_whole_number_does_not_round():
    outcome = Outcome(values={"end": 12, "share": 0.99, "ruled": 1}, floor=0.02)
    found = {n.place: (n.status, n.floor) for n in compare("x", {"end": 13, "share": 1.0, "ruled": 0.99}, outcome)}
    assert found == {"x.end": ("drifted", 0.0), "x.share": ("reproduced", 0.02), "x.ruled": ("reproduced", 0.02)}
    found = compare("x", {"end": 12}, Outcome(values={"end": 12}, floor=20))
    assert [(n.status, n.floor) for n in found] == [("reproduced", 0.0)]


def test_a_replay_holds_where_only_what_was_imported_cannot_be_compared():
    imported = Number(place="answer", status="cannot", why=IMPORTED)
    fine, gone = (
        Number(place="stamp.inputs", status="reproduced"),
        Number(place="hits", status="cannot", why="no corpus"),
    )
    assert Replay(case="c", numbers=(fine, imported)).holds
    assert not Replay(case="c", numbers=(fine, imported, gone)).holds
    assert not Replay(case="c", numbers=(imported, Number(place="x", status="drifted"))).holds
    assert Replay(case="c", numbers=(fine, imported, gone)).summary == (
        "1 of 3 values reproduced; 2 could not be compared (answer: the answer was imported, so it is not rewritten,"
        " hits: no corpus)."
    )


def test_an_imported_answer_of_a_model_called_reader_is_not_the_quoting_readers(tmp_path, monkeypatch):
    monkeypatch.setenv("GROUNDWORK_HOME", str(tmp_path))
    case = Workbench().audit(AuditRecord(question="Who?", answer="Ann.", passages=("Ann did.",), model="reader"))
    assert recompute(stripped(case), Loaders())["answer"].why == IMPORTED


def test_a_kind_without_replay_and_a_value_that_is_gone_are_named():
    assert compare("x", {"a": 1}, Outcome(values={}))[0].status == "cannot"
    assert compare("x", [1, 2], Outcome(values=[1]))[0].status == "drifted"
    result = replay_here(full_case(stamp=Stamp(model="elsewhere"), origin="imported", hits=(), chunk_sets=()), TOOLS)
    assert any(n.place == "analyses[x]" and "never seen" in n.why for n in result.numbers)


def test_a_row_of_what_was_not_compared_comes_first_with_its_reason():
    gone = compare("answer", "text", Outcome(why="the answer was imported, so it is not rewritten"))
    found = Replay(case="c", numbers=(*compare("x", [0.5, 0.2], Outcome(values=[0.5, 0.9])), *gone))
    assert [(row["place"], row["result"], row["reason"]) for row in found.rows] == [
        ("x[1]", "drifted", ""),
        ("answer", "not compared", "the answer was imported, so it is not rewritten"),
        ("x[0]", "reproduced", ""),
    ]
    assert [row["stored"] for row in found.rows] == ["0.2", "", "0.5"]


def test_versions_that_differ_are_listed(case):
    stamp = msgspec.structs.replace(case.stamp, versions={**case.stamp.versions, "numpy": "0.1"})
    result = replay_here(msgspec.structs.replace(case, stamp=stamp, analyses=()), TOOLS)
    assert result.versions == (("numpy", "0.1", package_versions()["numpy"]),)


def test_a_fresh_process_recomputes_what_it_is_given():
    case = full_case(origin="imported", stamp=Stamp(model="elsewhere", inputs="0" * 64), hits=(), chunk_sets=())
    case = msgspec.structs.replace(case, analyses=())
    first = replay(case).numbers[0]
    assert (first.place, first.status, first.stored) == ("stamp.inputs", "drifted", "0" * 64)
    assert first.replayed == inputs_hash(case.question, case.passages)


def test_a_replay_names_each_part_and_counts_it_before_it_begins(case):
    told = []
    recompute(stripped(case), TOOLS, Watch(report=lambda *place: told.append(place)))
    names = list(part_names(case).values())
    assert names[:3] == ["search", "re-ranking", "answer"] and len(names) == 3 + len(case.analyses) > 3
    assert told == [(name, number, len(names) + 1) for number, name in enumerate(names, start=1)]


def test_the_fresh_process_says_where_it_is(monkeypatch):
    case = full_case(origin="imported", analyses=(), hits=(), chunk_sets=())
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(canonical(stripped(case)))))
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(out := io.BytesIO()))
    engine.replay.main()
    assert engine.replay._last_part(out.getvalue()) == ("answer", 1, 2)


def test_a_replay_can_be_stopped():
    stop = threading.Event()
    stop.set()
    with pytest.raises(Cancelled):
        replay(full_case(), Watch(cancel=stop))
