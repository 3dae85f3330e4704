"""The ABPC study: by hand on a model whose gradient and probabilities are known, and against the engine's ABPC."""

from __future__ import annotations

import math
from contextlib import contextmanager
from types import SimpleNamespace

import msgspec
import pytest
import torch

from engine.analyses.faithfulness import FURTHER, METHODS, measured
from engine.cases.case_file import read_case_file
from engine.core.errors import InputError
from engine.core.progress import Watch, last
from engine.models.protocols import Can
from engine.models.scripted import ScriptedScorer, word_tokens
from engine.studies.catalogue.abpc import extra, results
from engine.studies.config import Config, parse_config
from engine.studies.evaluate import evaluate
from engine.studies.tools import StudyTools
from engine.studies.values import Failure, Row, Unit
from tests.tiny import passages, tiny_model

CONFIG = """
study = "abpc"
data = "{data}"
model = "embedded"

[settings.decoding]
max_new_tokens = 8
temperature = 0.0

[settings.faithfulness]
steps = 5
rankings = 6

[settings.gradient]
integrated_steps = 4

[options]
rankings = {rankings}
"""
KEY = " KEY"


class IsKey(torch.nn.Module):
    """Embeds word 0 as 1 and every other as 0."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1), requires_grad=False)

    def forward(self, ids):
        return (ids == 0).float()[..., None]


class CountsKeys(torch.nn.Module):
    """Every logit is the number of key words read, so that its gradient is 1 and only a key word has relevance."""

    def __init__(self):
        super().__init__()
        self.embedding = IsKey()

    def get_input_embeddings(self):
        return self.embedding

    def forward(self, inputs_embeds, use_cache=False):
        read = inputs_embeds.sum((1, 2))[:, None, None]
        return SimpleNamespace(logits=read.expand(-1, inputs_embeds.shape[1], 99))


class Reader(ScriptedScorer):
    """Sure of "yes indeed" while a passage holds the key word, one in ten otherwise; the key word has id 0."""

    can = Can(score=True, gradients=True)

    def __init__(self):
        def sure(passages, words, t):
            return 0.0 if KEY in "".join(passages.values()) else math.log(0.1)

        super().__init__(sure, lambda text: "yes indeed", "reader of a key word")
        self._ids = {KEY: 0}
        self.module = CountsKeys()

    @contextmanager
    def hold(self, watch=Watch()):
        yield self.module

    def encode_answer(self, text):
        return self._numbered(super().encode_answer(text))

    def generate(self, prompt, decoding, on_text=None, watch=Watch()):
        return self._numbered(super().generate(prompt, decoding, on_text, watch))

    def _learn(self, text):
        words = [text[t.start : t.end] for t in word_tokens(text)]
        ids = [self._ids.setdefault(word, len(self._ids)) for word in words]
        self._words.update(zip(ids, words, strict=True))
        return ids

    def _numbered(self, answer):
        pairs = zip(answer.tokens, self._learn(answer.text), strict=True)
        return msgspec.structs.replace(answer, tokens=tuple(msgspec.structs.replace(t, id=i) for t, i in pairs))


class Only(StudyTools):
    """One model for everything."""

    def __init__(self, config, model):
        super().__init__(config)
        self.writer = self.scorer = model


def run(folder, records, model, rankings):
    data = folder / "data.jsonl"
    data.write_bytes(b"\n".join(map(msgspec.json.encode, records)))
    text = CONFIG.format(data=data, rankings=msgspec.json.encode(rankings).decode())
    found = evaluate(text, folder / "run", tools=Only(parse_config(text), model))
    assert not found.failures
    return found


def test_abpc_of_a_key_word_by_hand(tmp_path):
    """Ten passage words, the key word fourth ("Passage 1: a KEY b", "Passage 2: c d e"), removed two at a time."""
    record = {"id": "q", "question": "What opens?", "passages": ["a KEY b", "c d e"]}
    (row,) = run(tmp_path, [record], Reader(), ["integrated gradients"]).rows
    found = row.values
    shares, morf, lerf = found["curves"]["input x gradient"]
    assert shares == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1])
    assert morf == pytest.approx([1, 0.1, 0.1, 0.1, 0.1, 0.1])  # the key word goes first
    assert lerf == pytest.approx([1, 1, 1, 1, 1, 0.1])  # and last
    area = {"morf": 0.2 * (0.55 + 4 * 0.1), "lerf": 0.2 * (4 + 0.55)}
    assert found["abpc"]["input x gradient"] == pytest.approx(area["lerf"] - area["morf"]) == 0.72
    assert found["abpc"]["integrated gradients"] == pytest.approx(0.72)  # the logit is linear
    assert found["abpc_nats"]["input x gradient"] == pytest.approx(0.8 * math.log(10))
    _, morf, lerf = found["curves"]["occlusion"]  # passage 1 first, in text order: the key word in the second pair
    assert morf == pytest.approx([1, 1, 0.1, 0.1, 0.1, 0.1]) and lerf == pytest.approx([1, 1, 1, 1, 0.1, 0.1])
    assert found["abpc"]["occlusion"] == pytest.approx(0.36)
    assert found["passage_abpc"] == pytest.approx(0.775 - 0.325)
    possible = [0.72, 0.36, 0.0, -0.36, -0.72]  # the key word in the first pair, the second, ...
    assert any(found["random"]["low"] == pytest.approx(one) for one in possible)
    assert any(found["random"]["high"] == pytest.approx(one) for one in possible)
    assert found["random"]["n"] == 6 and found["abpc"]["random"] == found["random"]["mean"]
    assert found["diagnostics"]["conservation"] == pytest.approx(1) and found["tokens"] == 2


def test_figures_are_the_engines_abpc_of_the_same_answer(tmp_path):
    """Of a tiny model's own answers, read back from the case file."""
    texts = [passage.text for passage in passages(3)]
    records = [{"id": str(n), "question": f"Who built bridge {n}?", "passages": texts[: n + 2]} for n in range(2)]
    model = tiny_model("llama")
    found = run(tmp_path, records, model, list(FURTHER))
    settings = parse_config((tmp_path / "run" / "config.toml").read_text()).stages(1337)
    for row in found.rows:
        case = read_case_file((tmp_path / "run" / "cases" / f"{row.case}.json").read_bytes()).case
        report = last(measured(model, case.prompt, case.answer, settings, methods=(*METHODS, *FURTHER)))
        assert [curve.ranking for curve in report.curves] == list(row.values["curves"])
        for curve in report.curves:
            assert row.values["abpc"][curve.ranking] == pytest.approx(curve.abpc, abs=1e-6)
            assert row.values["abpc_nats"][curve.ranking] == pytest.approx(curve.abpc_nats, abs=1e-5)
        assert row.values["abpc"]["random"] == pytest.approx(report.random.mean, abs=1e-6)
        (analysis,) = case.analyses
        assert [curve["ranking"] for curve in analysis.stored()["curves"]] == [*METHODS, *FURTHER]


def row(example, gradient, occlusion):
    unit = Unit(example=example, method="rankings", seed=1)
    if gradient is None:
        return Row(unit=unit, state="failed", failure=Failure(type="ModelError", message="gone"))
    abpc = {"input x gradient": gradient, "occlusion": occlusion, "random": 0.0}
    curves = {name: [[0.0, 1.0], [1.0, 0.5 - value], [1.0, 0.5 + value]] for name, value in abpc.items()}
    values = {"abpc": abpc, "abpc_nats": {name: 2 * value for name, value in abpc.items()}, "curves": curves}
    return Row(unit=unit, state="done", values={**values, "diagnostics": {"conservation": 0.5}}, case=f"case-{example}")


def test_tables_by_hand_whatever_the_order_of_the_rows():
    config = Config(study="abpc", data="d", options={"rankings": []})
    rows = [row("a", 0.4, 0.1), row("b", 0.2, -0.1), row("c", 0.3, 0.2), row("d", None, None)]
    found = results(config, rows)
    tables = {table.name: {line[0]: line[1:] for line in table.rows} for table in found.tables}
    mean, positive, of, nats = tables["abpc"]["input x gradient"]
    assert (mean.value, positive, of, nats.value) == (pytest.approx(0.3), 3, 3, pytest.approx(0.6))
    assert tables["abpc"]["occlusion"][1:3] == (2, 3)
    difference, higher, lower = tables["differences"]["occlusion - input x gradient"][:3]
    assert (difference.value, higher, lower) == (pytest.approx(-0.7 / 3), 0, 3)
    assert tables["diagnostics"]["conservation"][1].value == 0.5
    assert any("1" in note and "failed" in note for note in found.tables[0].notes)
    (curves,) = [figure for figure in found.figures if figure.name == "curves"]
    morf = {series.name: series for series in curves.series}["occlusion, MoRF"]
    assert morf.y[-1] == pytest.approx(0.5 - 0.2 / 3) and set(morf.n) == {3}
    again = results(config, rows[::-1])
    for one, other in zip(found.tables, again.tables, strict=True):
        for line, same in zip(one.rows, other.rows, strict=True):
            assert [getattr(cell, "value", cell) for cell in line] == pytest.approx(
                [getattr(cell, "value", cell) for cell in same]
            )


def test_a_ranking_that_is_not_known_is_refused():
    with pytest.raises(InputError, match="integrated gradients"):
        extra(Config(study="abpc", data="d", options={"rankings": ["relevance propagation"]}))
