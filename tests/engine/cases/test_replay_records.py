"""Replay of every kind of record: each stored number is computed again without it, and named where it was altered."""

from __future__ import annotations

import re

import msgspec
import pytest

from engine.analyses.facts import FactsOptions
from engine.analyses.kind import FACTS, STEPS, Loaders
from engine.analyses.registry import find
from engine.cases.places import leaves
from engine.core.canonical import canonical
from engine.core.errors import ModelNotFound
from engine.core.settings import Settings
from engine.core.values import Analysis, Answer, Case, Document, Token
from engine.corpus.collection import Collection
from engine.models.registry import load_writer
from engine.models.verifier import load_entailment
from engine.replay import compared, recompute, replay, stripped
from engine.workbench import Workbench
from tests.analysing import analysed, keep, refined, replay_here
from tests.engine.cases.records import CORPUS, EMBEDDER, TOOLS, full_record
from tests.planted import save_planted

KINDS = ("attr-rag", "occlusion", "used x supports", "facts", "refinement", "steps")
# What a run cost, what the rounding was, and what of a language model's words is an input.
NOT_COMPARED = re.compile(
    r"(seconds|forwards|backwards|tokens|written|read|numerical_floor)$"
    r"|numerical_floor_by_span|^steps\[\d+\]\.counts|\.shared\.|\.cost\.|\.stamp\.|threshold\.n$"
    r"|(reply|full|ablated\[\d+\]|repeats\[\d+\]|^answer)\.tokens\[\d+\]\.(id|start|end)$"
)


@pytest.fixture(scope="module")
def record(tmp_path_factory, at_home) -> tuple[Case, dict]:
    """The case and the outcomes of one replay, which see nothing of its results."""
    with at_home(tmp_path_factory.mktemp("home")):
        case = full_record()
        return case, recompute(stripped(case), TOOLS)


def altered(analysis: Analysis, path: str) -> Analysis:
    """The analysis with one of its numbers changed; a share stays one, since settings refuse what they cannot be."""
    result = msgspec.json.decode(canonical(analysis.result))
    keys = [int(number) if number else name for number, name in re.findall(r"\[(\d+)\]|\.?([^.\[\]]+)", path)]
    place = result
    for key in keys[:-1]:
        place = place[key]
    number = place[keys[-1]]
    place[keys[-1]] += 1 if isinstance(number, int) else -0.5 if 0.5 < number <= 1 else 0.5
    return msgspec.structs.replace(analysis, result=result)


def only(case: Case, analysis: Analysis) -> Case:
    return msgspec.structs.replace(case, analyses=(analysis,), hits=(), chunk_sets=())


def numbers_of(result) -> list[str]:
    found = leaves(msgspec.json.decode(canonical(result)))
    return [path for path, value in found if isinstance(value, int | float) and not isinstance(value, bool)]


def test_every_value_of_every_kind_reproduces_but_the_text_that_a_model_wrote(record):
    result = compared(*record)
    assert {kind.kind for kind in record[0].analyses} == set(KINDS)
    others = [(n.place, n.why) for n in result.numbers if n.status != "reproduced"]
    assert others == [("answer.text", "the answer of scripted-scorer is an input of the replay and is not rewritten")]
    for analysis in record[0].analyses:
        assert sum(n.place.startswith(f"analyses[{analysis.id}]") for n in result.numbers) > 10


@pytest.mark.parametrize("kind", KINDS)
def test_any_one_altered_number_is_named_and_none_is_handed_to_the_replay(record, kind):
    case, outcomes = record
    analysis = next(a for a in case.analyses if a.kind == kind)
    wanted = [path for path in numbers_of(analysis.result) if not NOT_COMPARED.search(path)]
    assert len(wanted) > 5
    bare, place = stripped(only(case, analysis)), f"analyses[{analysis.id}]"
    for path in wanted:
        other = only(case, altered(analysis, path))
        # Were the number an input, the replay would give back what it was told.
        assert stripped(other) == bare, path
        drifted = [n for n in compared(other, {place: outcomes[place]}).numbers if n.status == "drifted"]
        assert [n.place for n in drifted] == [f"{place}.{path}"]
        assert drifted[0].difference in (1, pytest.approx(0.5))


@pytest.mark.parametrize("kind", ("attr-rag", "facts", "refinement", "steps"))
def test_a_whole_replay_names_the_altered_number_of_each_kind(record, kind, at_home, tmp_path):
    places = {
        "attr-rag": "regeneration.alphas.cosine[0]",
        "facts": "report.after.attr_r",
        "refinement": "refinement.signals.s2",
        "steps": "steps[0].search.hits[0].score",
    }
    with at_home(tmp_path):
        case = full_record()
        analysis = next(a for a in case.analyses if a.kind == kind)
        other = msgspec.structs.replace(case, analyses=(altered(analysis, places[kind]),))
        result = replay_here(other, TOOLS)
    drifted = [n.place for n in result.numbers if n.status == "drifted"]
    assert drifted == [f"analyses[{analysis.id}].{places[kind]}"]
    assert drifted[0] in result.summary


@pytest.mark.long
def test_in_a_fresh_process_every_kind_reproduces_and_each_altered_number_is_named(sample_home):
    """With a model of the data folder, over the process boundary, the results removed."""
    changes = ["retrieval.k=6", "retrieval.keep=2", "refinement.max_new_tokens=24", "decoding.max_new_tokens=24"]
    bench = Workbench(Settings().apply(changes))
    case = bench.ask("How is the crude product recrystallized?", "bench-chemistry", method="attr-rag")
    save_planted(sample_home / "models" / "planted")
    collection, model = bench.collection("bench-chemistry"), load_writer("planted")
    bench.analyse(case.id, FACTS, FactsOptions())
    refined(bench.cases, case.id, model, bench.settings, variants=("A", "B", "v2a"), verifier=load_entailment())
    worked_out = analysed(case, STEPS, model, bench.settings, collection=collection, method="cot-rag")
    case = keep(bench.cases, case.id, worked_out)
    found = replay(case)
    assert [(n.place, n.status, n.difference, n.floor) for n in found.numbers if n.status != "reproduced"] == []
    places = {
        "attr-rag": "regeneration.alphas.cosine[0]",
        "facts": "report.after.attr_r",
        "refinement": "refinement.signals.s1",
        "steps": "steps[0].search.hits[0].score",
    }
    analyses = tuple(altered(a, places[a.kind]) if a.kind in places else a for a in case.analyses)
    drifted = {
        n.place for n in replay(msgspec.structs.replace(case, analyses=analyses)).numbers if n.status == "drifted"
    }
    assert drifted == {f"analyses[{a.id}].{places[a.kind]}" for a in case.analyses if a.kind in places}


def test_the_copy_holds_no_number_of_a_result_but_ids_and_offsets_of_replies(record):
    for analysis in stripped(record[0]).analyses:
        inputs = {"replies", "order", "gate", "scorer", "verifier", "threshold", "cases", "facts", "labels", "finished",
                  "by_prompt", "corpus", "method", "passages", "revision"}  # fmt: skip
        assert set(analysis.result) <= inputs
        for reply in analysis.result.get("replies", ()):
            assert set(reply) == {"answer", "prompt"}
            answer = Answer.from_dict(reply["answer"])
            tokens = tuple(Token(id=token.id, start=token.start, end=token.end) for token in answer.tokens)
            assert answer == Answer(text=answer.text, tokens=tokens, refused=answer.refused, finished=answer.finished)
        assert find(analysis.kind).again is not None


def test_an_altered_reply_moves_what_was_computed_from_it(record, at_home, tmp_path):
    with at_home(tmp_path):
        case = full_record()
        index = next(i for i, a in enumerate(case.analyses) if a.kind == "refinement")
        result = msgspec.json.decode(canonical(case.analyses[index].result))
        reply = result["refinement"]["variants"]["A"]["turns"][0]["reply"]
        reply["text"] = reply["text"].replace("1931", "1932")
        analyses = [*case.analyses]
        analyses[index] = msgspec.structs.replace(analyses[index], result=result)
        found = replay_here(msgspec.structs.replace(case, analyses=tuple(analyses)), TOOLS)
    drifted = {n.place.rpartition("].")[2] for n in found.numbers if n.status == "drifted"}
    assert "refinement.signals.s3" in drifted
    assert "refinement.variants.A.answer.text" in drifted


def test_what_cannot_be_had_again_says_why(record, at_home, tmp_path):
    def absent(name):
        raise ModelNotFound("No such verifier here. Load it first.")

    with at_home(tmp_path):
        case = full_record()
        found = replay_here(case, Loaders(**{**vars(TOOLS), "verifier": absent}))
        why = {n.place.partition("]")[0]: n.why for n in found.numbers if n.status == "cannot"}
        assert why["analyses[facts:word table"] == "No such verifier here. Load it first."
        assert why["analyses[refinement:scripted-scorer:written"] == "No such verifier here. Load it first."
        gone = [
            Document(id=name, title=name, text="It burnt.", source=name, media_type="text/plain")
            for name in ("bridge", "pond", "rust", "gloves")
        ]
        Collection.open(CORPUS, EMBEDDER).add(gone)
        found = replay_here(case, TOOLS)
        why = {n.place.partition("]")[0]: n.why for n in found.numbers if n.status == "cannot"}
        assert "has changed" in why["analyses[steps:raise:scripted-scorer"]
        assert "has changed" in why["analyses[facts:word table"]


@pytest.mark.parametrize("kind", ("facts", "refinement", "steps"))
def test_a_run_that_was_stopped_is_not_replayed(record, kind, at_home, tmp_path):
    changes = {
        "facts": lambda r: r.update(finished=False),
        "refinement": lambda r: r["refinement"]["variants"].pop("E"),
        "steps": lambda r: r.update(state="stopped"),
    }
    case = record[0]
    index = next(i for i, a in enumerate(case.analyses) if a.kind == kind)
    result = msgspec.json.decode(canonical(case.analyses[index].result))
    changes[kind](result)
    analysis = msgspec.structs.replace(case.analyses[index], result=result)
    with at_home(tmp_path):
        full_record()
        found = replay_here(msgspec.structs.replace(case, analyses=(analysis,)), TOOLS)
    assert next(n.why for n in found.numbers if n.place == f"analyses[{analysis.id}]").startswith("the ")
