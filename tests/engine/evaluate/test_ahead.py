"""First answers written together: the run is the one that writes them one by one, undisturbed or not."""

from __future__ import annotations

import threading

import msgspec
import pytest

from engine.cases.case_file import read_case_file
from engine.core.errors import Cancelled, ModelError
from engine.core.progress import Watch
from engine.core.settings import Decoding
from engine.core.values import Answer, Prompt, Segment
from engine.models.huggingface import HuggingFaceModel
from engine.models.scripted import ScriptedScorer
from engine.studies.config import Config, parse_config
from engine.studies.evaluate import evaluate
from engine.studies.example import Example
from engine.studies.perform import Performer, Stopped, UnitTask
from engine.studies.run import Control, Journal
from engine.studies.tools import Study, StudyTools
from engine.studies.values import (
    Estimate,
    Found,
    Results,
    Unit,
)
from tests.tiny import WINDOW, tiny_model

CONFIG = """
study = "abpc"
data = "{data}"
model = "embedded"
batch = {batch}
seeds = [1, 2]

[settings.decoding]
max_new_tokens = 8
temperature = 0.9

[settings.faithfulness]
steps = 2
rankings = 1

[options]
rankings = []
"""


class Listed(HuggingFaceModel):
    """A tiny model that lists what it is asked, one by one and together."""

    def __init__(self):
        model = tiny_model("llama")
        super().__init__("tiny", model.module, model.tokenizer)
        self.alone, self.together = [], []

    def generate(self, prompt, decoding, on_text=None, watch=None):
        self.alone.append((prompt, decoding))
        return super().generate(prompt, decoding, on_text, watch)

    def generate_many(self, prompts, decoding, watch=None):
        self.together.append(list(zip(prompts, decoding, strict=True)))
        return super().generate_many(prompts, decoding, watch)


class One(StudyTools):
    """One model for everything."""

    def __init__(self, text, model):
        super().__init__(parse_config(text))
        self.writer = self.scorer = model


@pytest.fixture
def data(tmp_path):
    """Two questions, each to be asked under two seeds."""
    texts = ("Iron rusts.", "Gold does not rust in damp air.")
    rows = [{"id": f"q{i}", "question": f"What of {i}?", "passages": texts[: i + 1]} for i in range(2)]
    path = tmp_path / "data.jsonl"
    path.write_bytes(b"\n".join(map(msgspec.json.encode, rows)))
    return path


def run(data, folder, batch, **more):
    """The rows and the cases, and the model that was asked."""
    model, text = Listed(), CONFIG.format(data=data, batch=batch)
    found = evaluate(text, folder, tools=One(text, model), **more)
    cases = [read_case_file((folder / "cases" / f"{row.case}.json").read_bytes()) for row in found.rows if row.case]
    return [timeless(row.to_dict()) for row in found.rows], [timeless(case.to_dict()) for case in cases], model


def timeless(value):
    """Without what differs between two equal runs: times, last bits of log-probabilities, and hashes over these."""
    if isinstance(value, dict):
        return {k: None if k in ("seconds", "created", "logprob", "hashes") else timeless(v) for k, v in value.items()}
    return [timeless(v) for v in value] if isinstance(value, list | tuple) else value


def test_a_run_in_batches_is_the_run_one_by_one(data, tmp_path):
    """Rows with their counts of forwards and tokens, cases with their stamps; every first answer from a batch."""
    rows, cases, one = run(data, tmp_path / "one", 1)
    together, same, many = run(data, tmp_path / "many", 3)
    assert together == rows and same == cases and len(cases) == 4
    assert (len(one.alone), one.together) == (4, []) and many.alone == []
    assert [len(batch) for batch in many.together] == [3, 1]
    assert all(row["cost"]["forwards"] > 8 and row["cost"]["tokens"] > 100 for row in rows)


def test_stopped_in_the_middle_and_resumed_nothing_is_done_twice(data, tmp_path):
    """Stopped with one answer of a batch handed out: the other is written again, what has a row is not."""
    whole, _, _ = run(data, tmp_path / "whole", 1)
    folder, control = tmp_path / "run", Control(tell=lambda progress: progress.done == 2 and control.watch.cancel.set())
    with pytest.raises(Cancelled):
        run(data, folder, 3, control=control)
    before = Journal(folder).rows()
    assert 2 <= len(before) < 4
    rows, _, model = run(data, folder, 2, resume=True)  # another size of batch is no other run
    assert rows == whole and Journal(folder).rows()[: len(before)] == before
    assert sum(map(len, model.together)) + len(model.alone) == 4 - len(before)


def test_a_prompt_that_is_too_long_fails_its_own_unit_alone(data, tmp_path):
    bad = msgspec.json.encode({"id": "long", "question": "Why?", "passages": ["Iron rusts. " * WINDOW]})
    data.write_bytes(bad + b"\n" + data.read_bytes())
    rows, cases, _ = run(data, tmp_path / "one", 1)
    together, same, many = run(data, tmp_path / "many", 3)
    assert together == rows and same == cases
    assert [row["state"] for row in rows] == ["failed"] * 2 + ["done"] * 4
    assert rows[0]["failure"]["type"] == "PromptTooLong" and "Prompt 1 of" not in rows[0]["failure"]["message"]
    assert (len(many.alone), [len(batch) for batch in many.together]) == (3, [3, 3]), (
        "those of the batch with the long ones"
    )


class Batching(ScriptedScorer):
    """A script that can be asked in batches."""

    def __init__(self, fails=()):
        super().__init__(lambda passages, words, t: -1.0, lambda text: f"On {text}.")
        self.batches, self.fails = [], fails

    def writes_together(self):
        return True

    def generate_many(self, prompts, decoding, watch=None):
        self.batches.append([prompt.text for prompt in prompts])
        if set(self.fails) & set(self.batches[-1]):
            raise ModelError("It broke.")
        (watch or Watch()).step("writing")
        return [self.generate(prompt, one) for prompt, one in zip(prompts, decoding, strict=True)]


def begins_with(tools: StudyTools, unit: Unit, example: Example, watch: Watch) -> Found:
    """Two calls: the example's question first, then the method's name."""
    begun.append(unit)
    prompts = [Prompt(segments=(Segment(kind="question", text=t),)) for t in (example.question, unit.method)]
    answers: list[Answer] = [tools.writer.generate(prompt, Decoding(), None, watch) for prompt in prompts]
    return Found(values={"said": [answer.text for answer in answers]})


begun: list[Unit] = []
STUDY = Study(
    name="begins",
    title="",
    shows=(),
    methods=("m", "n", "late"),
    run=begins_with,
    results=lambda config, rows: Results(),
    cost=lambda tools, unit, example: Estimate(),
    writes_first=lambda config, unit, example: unit.method != "late",
)
TODO = [
    (Unit(example=f"e{i}", method=method, seed=1), Example(id=f"e{i}", question=f"e{i}"))
    for i in range(3)
    for method in STUDY.methods
]


def performer(model, batch=2):
    """A performer of the study above, which is in no list of studies."""
    config = Config(study="abpc", data="", batch=batch)
    tools = StudyTools(config)
    tools.writer = tools.scorer = model
    begun.clear()
    made = Performer(config, tools)
    made.study = STUDY
    return made


def perform_all(made, watch=None):
    """Every unit in its order, each told of those that follow."""
    return [
        made.perform(UnitTask(unit=unit, example=example), watch, TODO[place + 1 :])
        for place, (unit, example) in enumerate(TODO)
    ]


def test_units_that_begin_alike_share_an_answer():
    model = Batching()
    done = perform_all(performer(model))
    assert model.batches == [["e0", "e1"], ["e2"]]
    assert [one.row.values["said"] for one in done] == [[f"On {e.id}.", f"On {u.method}."] for u, e in TODO]


def test_only_what_writes_first_is_begun_twice():
    perform_all(performer(Batching()))
    assert {begun.count(unit) for unit, _ in TODO if unit.method == "late"} == {1}
    assert {begun.count(unit) for unit, _ in TODO if unit.method != "late"} == {2}


def test_a_batch_that_fails_leaves_its_units_to_themselves():
    model = Batching(fails=["e1"])
    done = perform_all(performer(model))
    assert [one.row.state for one in done] == ["done"] * 9 and len(model.batches) == 2


def test_a_cancelled_batch_stops_the_unit_and_fails_none():
    cancel = threading.Event()
    cancel.set()
    unit, example = TODO[0]
    stopped = performer(Batching()).perform(UnitTask(unit=unit, example=example), Watch(cancel=cancel), TODO[1:])
    assert isinstance(stopped, Stopped) and stopped.kind == "Cancelled"


def test_without_units_that_follow_nothing_is_batched():
    """As in a worker, which has one unit at a time."""
    model = Batching()
    made = performer(model)
    for unit, example in TODO:
        made.perform(UnitTask(unit=unit, example=example))
    assert model.batches == [] and len(begun) == len(TODO)
