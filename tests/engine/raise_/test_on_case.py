"""Runs on a case: saved as they grow, split at another T without a call, a step opened as a case; the commands."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from engine.analyses.kind import OCCLUSION, STEPS, Loaders, RunContext, analyse, examine
from engine.analyses.steps import KIND, StepsOptions, at_threshold, changed_steps, step_case
from engine.cases.store import CaseStore
from engine.commands import shared, steps as commands
from engine.core.errors import Cancelled, ModelError, RecordError
from engine.core.progress import Watch
from engine.core.settings import Settings
from engine.core.values import Answer, Case, Stamp
from engine.corpus.collection import Collection
from engine.methods.raise_ import steps as prompts
from engine.methods.raise_.values import Solution, similarity
from engine.models.embedder import ScriptedEmbedder
from engine.models.scripted import ScriptedScorer, ScriptedWriter, reads
from engine.prompts import templates_hash
from engine.workbench import Workbench
from tests.analysing import analysed, growing, replay_here

TEXTS = {
    "ice": "Ice floats on water because ice expands on freezing.",
    "salt": "Salt lowers the freezing point of water.",
    "iron": "Iron rusts in damp air.",
}
PLAN = "Why is ice light? | ice density\nWhat does salt do? | salt freezing"


def reply(prompt: str) -> str:
    if prompt.startswith("You plan"):
        return PLAN
    if prompt.startswith("You prepare a search"):
        return "ice expands freezing water" if "Why is ice light?" in prompt else "salt lowers freezing point water"
    return "The passages say so. The final answer is (A)"


SETTINGS = Settings().apply(["reasoning.threshold=0.5"])
CASE = Case(
    id="c1",
    question="Why does the pond freeze from above?",
    options=("ice floats", "ice sinks"),
    passages=(),
    answer=Answer(text=""),
    stamp=Stamp(model="none"),
    corpus="pond",
)


@pytest.fixture
def collection(tmp_path):
    path = tmp_path / "pond.jsonl"
    path.write_text("".join(json.dumps({"_id": k, "title": "", "text": t}) + "\n" for k, t in TEXTS.items()))
    made = Collection.create("pond", ScriptedEmbedder())
    made.ingest([path])
    return made


def stepped(case, writer, collection, method="raise"):
    return analysed(case, STEPS, writer, SETTINGS, collection=collection, method=method)


def test_a_run_becomes_an_analysis_that_reads_back(collection):
    writer = ScriptedWriter(reply)
    seen = list(growing(CASE, STEPS, writer, SETTINGS, collection=collection, method="raise"))
    analysis = seen[-1]
    solution = Solution.from_dict(analysis.result)
    assert (analysis.id, analysis.kind, analysis.stamp.model) == ("steps:raise:scripted", "steps", "scripted")
    assert (solution.state, solution.choice, solution.corpus) == ("done", 0, "pond")
    assert solution.threshold == analysis.stamp.settings["reasoning"]["threshold"] == 0.5
    assert [step.kept[0].passage.document for step in solution.steps] == ["ice", "salt"]
    assert len(seen) == 6


def test_similarities_are_the_cosines_of_the_search_text(collection):
    solution = Solution.from_dict(stepped(CASE, ScriptedWriter(reply), collection).result)
    search = solution.steps[0].search
    vectors = ScriptedEmbedder().embed([search.text, *(hit.passage.text for hit in search.hits)])
    assert [similarity(hit) for hit in search.hits] == pytest.approx(list(vectors[1:] @ vectors[0]), abs=1e-6)
    assert len(search.hits) == 3


def test_another_t_moves_passages_without_a_call_or_a_search(collection):
    writer = ScriptedWriter(reply)
    solution = Solution.from_dict(stepped(CASE, writer, collection).result)
    asked, embedded = len(writer.prompts), collection.embedder.embedded
    everything, nothing = at_threshold(solution, -1.0), at_threshold(solution, 1.1)
    assert [len(s.kept) for s in everything.steps] == [3, 3]
    assert [len(s.dropped) for s in nothing.steps] == [3, 3]
    assert changed_steps(solution, solution.threshold) == ()
    assert changed_steps(solution, 1.1) == (1, 2)
    assert [s.answer for s in nothing.steps] == [s.answer for s in solution.steps]
    assert (len(writer.prompts), collection.embedder.embedded) == (asked, embedded)


def test_a_baseline_on_the_same_case_takes_the_decomposition_over(collection):
    writer = ScriptedWriter(reply)
    first = stepped(CASE, writer, collection)
    held = Case.from_dict({**CASE.to_dict(), "analyses": [first.to_dict()]})
    before = len(writer.prompts)
    hyde = Solution.from_dict(stepped(held, writer, collection, "hyde").result)
    assert not any(prompt.startswith("You plan") for prompt in writer.prompts[before:])
    assert hyde.decomposition == KIND.of(held)[0].decomposition
    assert hyde.cost.calls == 6


@pytest.mark.parametrize("method", ["raise", "cot"])
def test_a_run_whose_option_was_asked_for_holds_in_a_replay(collection, method):
    said = lambda prompt: reply(prompt).replace("(A)", "not known")  # noqa: E731
    scorer = ScriptedScorer(lambda passages, words, t: -1.0 if words[t] == "A" else -2.0, replies=said)
    analysis = stepped(CASE, scorer, collection, method)
    held = replace(CASE, analyses=(analysis,))
    assert KIND.of(held)[0].option is not None
    numbers = replay_here(held, Loaders(collection=lambda name: collection)).numbers
    assert {n.status for n in numbers if n.place.startswith("analyses")} == {"reproduced"}


def test_only_a_method_that_searches_needs_a_corpus(collection):
    bare = replace(CASE, corpus=None)
    asked = []
    tools = Loaders(writer=lambda name: ScriptedWriter(reply), collection=lambda name: asked.append(name) or collection)

    def run(case, method):
        return examine(case, KIND, StepsOptions(method=method), RunContext(SETTINGS, tools))

    with pytest.raises(RecordError, match="no corpus for RAISE to search"):
        run(bare, "raise")
    (solution,) = KIND.of(run(CASE, "least-to-most"))
    assert (solution.corpus, solution.state, asked) == ("", "done", [])
    older = KIND.of(run(bare, "cot"))[0]
    stored = stepped(CASE, ScriptedWriter(reply), collection, "cot")
    stamp = replace(stored.stamp, settings={**stored.stamp.settings, "reasoning": {"corpus": "pond"}})
    held = replace(CASE, analyses=(replace(stored, stamp=stamp, result=replace(older, corpus="pond")),))
    numbers = replay_here(held, tools).numbers
    assert {n.status for n in numbers if n.place.startswith("analyses")} == {"reproduced"} and asked == []


def test_the_stamp_of_a_run_names_its_prompts(collection):
    stamp = stepped(CASE, ScriptedWriter(reply), collection).stamp
    assert stamp.template == templates_hash(*prompts.TEMPLATES)
    source = Path(prompts.__file__).read_text(encoding="utf-8")
    named = set(re.findall(r'\b(?:fill|system|ask)\(\s*"(\w+)"', source))
    assert named | {"passage", "choose_one"} == set(prompts.TEMPLATES)


def test_what_other_weights_wrote_is_written_anew(collection):
    writer = ScriptedWriter(reply)
    first = stepped(CASE, writer, collection)
    other = replace(first, stamp=replace(first.stamp, revision="other"))
    before = len(writer.prompts)
    stepped(Case.from_dict({**CASE.to_dict(), "analyses": [other.to_dict()]}), writer, collection, "hyde")
    assert any(prompt.startswith("You plan") for prompt in writer.prompts[before:])


def test_cancel_keeps_the_finished_steps_in_the_library(collection, tmp_path):
    store, stop = CaseStore(tmp_path / "cases.sqlite"), threading.Event()
    store.save(CASE)

    def saved(case):
        if len(KIND.of(case)[-1].calls) == 3:
            stop.set()

    tools = Loaders(writer=lambda name: ScriptedWriter(reply), collection=lambda name: collection)
    context = RunContext(SETTINGS, tools, Watch(cancel=stop, case=saved), store)
    with pytest.raises(Cancelled):
        analyse(store, CASE.id, KIND, StepsOptions(model="scripted"), context)
    kept = KIND.of(store.load(CASE.id))
    assert [(s.state, len(s.steps), bool(s.steps[0].answer)) for s in kept] == [("stopped", 1, True)]


def test_a_step_opens_as_a_case_that_attribution_reads(collection):
    scorer = ScriptedScorer(reads({1}), replies=reply, name="scripted")
    analysis = stepped(CASE, scorer, collection)
    case = step_case(CASE, analysis, 1, "c2")
    assert (case.question, case.parent, case.options) == ("Why is ice light?", "c1", ())
    assert [p.document for p in case.passages] == ["ice"]
    result = analysed(case, OCCLUSION, scorer).stored()
    assert not result["notes"]  # the exact prompt, the model's own answer: no banner
    assert result["scores"][0][0] > 0
    assert Case.from_dict(case.to_dict()) == case
    with pytest.raises(RecordError, match="no step 3"):
        step_case(CASE, analysis, 3, "c3")


def test_the_only_step_of_raise_direct_opens_with_the_whole_answer(collection):
    analysis = stepped(CASE, ScriptedWriter(reply), collection, "raise-direct")
    case = step_case(CASE, analysis, 1, "c2")
    assert (case.question, case.options) == (CASE.question, CASE.options)
    assert case.answer.text == Solution.from_dict(analysis.result).final.reply


# The commands


def written_by(reply, monkeypatch):
    """Let the commands' workbench have a scripted model."""
    tools, workbench = Loaders(writer=lambda name: ScriptedWriter(reply)), shared.workbench
    monkeypatch.setattr(shared, "workbench", lambda *given: Workbench(workbench(*given).settings, tools))


@pytest.fixture
def invoke(collection, monkeypatch, tmp_path):
    written_by(reply, monkeypatch)

    def call(command, records, *arguments):
        path = tmp_path / "in.jsonl"
        path.write_text("\n".join(json.dumps(record) for record in records))
        result = CliRunner().invoke(command, [str(path), "--corpus", "pond", *arguments])
        return result, [json.loads(line) for line in result.stdout.splitlines()]

    return call


def test_steps_writes_a_line_a_method_and_an_error_in_a_bad_records_place(invoke):
    records = [
        {"id": "a", "question": CASE.question, "options": CASE.options},
        {"id": "b"},
        {"id": "c", "question": " "},
    ]
    result, rows = invoke(commands.steps, records, "--method", "raise,cot", "--set", "reasoning.threshold=0.5")
    assert result.exit_code == 1
    assert [(r["id"], r.get("method"), "error" in r) for r in rows] == [
        ("a", "raise", False),
        ("a", "cot", False),
        ("b", None, True),
        ("c", None, True),
    ]
    raise_row, cot = rows[0], rows[1]
    assert (raise_row["choice"], raise_row["state"], raise_row["calls"], cot["calls"]) == ("A", "done", 6, 1)
    step = raise_row["steps"][0]
    assert (step["question"], step["query"]) == ("Why is ice light?", "ice density")
    assert step["logical_query"] == "ice expands freezing water"
    assert [p["document"] for p in step["kept"]] == ["ice"]
    assert {p["document"] for p in step["dropped"]} == {"salt", "iron"}
    assert all(p["score"] < 0.5 for p in step["dropped"])
    assert cot["steps"] == []


def test_the_methods_before_a_failed_one_have_their_lines(invoke, monkeypatch):
    def said(prompt):
        if prompt.startswith("You write the paragraph"):
            raise ModelError("It went away.")
        return reply(prompt)

    written_by(said, monkeypatch)
    records = [{"id": "a", "question": CASE.question}]
    result, rows = invoke(commands.steps, records, "--method", "raise,hyde,cot", "--set", "reasoning.threshold=0.5")
    assert result.exit_code == 1
    assert [(row["id"], row.get("method"), "error" in row) for row in rows] == [
        ("a", "raise", False),
        ("a", None, True),
    ]


def test_an_unread_plan_is_a_row_with_the_raw_reply(invoke, monkeypatch):
    written_by(lambda prompt: "no plan", monkeypatch)
    result, rows = invoke(commands.steps, [{"id": "a", "question": "Why?"}], "--set", "reasoning.threshold=0.5")
    assert (result.exit_code, rows[0]["state"], rows[0]["raw"], rows[0]["answer"]) == (0, "unparsed", "no plan", "")


def test_calibrate_threshold_keeps_t_unless_it_is_a_dry_run(invoke):
    records = [{"question": "ice floats on water", "gold": [TEXTS["ice"][:10]]}] * 20
    result, rows = invoke(commands.calibrate_threshold, records, "--dry-run")
    assert (result.exit_code, rows[0]["kept"], rows[0]["pairs"]) == (0, False, 20)
    value = rows[0]["value"]
    _, rows = invoke(commands.calibrate_threshold, records)
    assert rows[0]["kept"]
    _, rows = invoke(commands.steps, [{"id": "a", "question": "Why?"}])
    assert rows[0]["threshold"] == pytest.approx(value)
