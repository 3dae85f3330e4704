"""Closed questions by hand-worked likelihoods, by replies, and against a tiny model's own scores."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from engine.core.errors import CannotDo
from engine.core.values import Prompt, Segment
from engine.models.closed import Choice, after, by_likelihood, choose, closed, probabilities
from engine.models.protocols import Can
from engine.models.scripted import ScriptedScorer, ScriptedWriter
from engine.models.verdicts import softmax
from engine.prompts import ask, with_examples
from tests.tiny import KINDS, tiny_model

BODY = ask("verdict", context="c", fact="f", evidence="e")
OPTIONS = ("agrees", "disagrees", "partly so")
LOGS = {"agrees": -1.0, "disagrees": -1.0 - math.log(2), "partly": -0.5, " so": -0.5 - math.log(4)}


def scorer(replies=()) -> ScriptedScorer:
    return ScriptedScorer(lambda passages, words, t: LOGS.get(words[t], -3.0), replies)


def test_the_shares_by_hand():
    """exp of -1, -1 - ln 2 and (-0.5 - 0.5 - ln 4): 1, 1/2 and 1/4 of the first, so 4/7, 2/7 and 1/7."""
    model = scorer()
    found = choose(model, BODY, OPTIONS)
    assert (found.option, found.by, found.reply) == ("agrees", "likelihood", "")
    assert list(found.probabilities.values()) == pytest.approx([4 / 7, 2 / 7, 1 / 7])
    assert found.prompt == closed(BODY, OPTIONS)
    assert found.prompt.text.endswith("Answer with one of these: agrees, disagrees, partly so.")
    assert model.prompts == []


@pytest.mark.parametrize("model", [scorer(), tiny_model("llama")], ids=["scripted", "tiny"])
def test_under_one_prompt_the_order_of_the_options_changes_nothing(model):
    prompt = closed(BODY, OPTIONS)
    (first,) = probabilities(model, [prompt], OPTIONS)
    assert sum(first.values()) == pytest.approx(1)
    for order in itertools.permutations(OPTIONS):
        assert probabilities(model, [prompt], order)[0] == pytest.approx(first)


def test_a_share_is_the_softmax_of_the_models_own_scores():
    model, prompt = tiny_model("llama"), closed(BODY, OPTIONS)
    coded = model.encode(prompt)
    sums = [model.score([coded], [t.id for t in model.encode_answer(o).tokens])[0].sum() for o in OPTIONS]
    whole = sum(math.exp(s) for s in sums)
    expected = [math.exp(s) / whole for s in sums]
    assert list(probabilities(model, [prompt], OPTIONS)[0].values()) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_reading_what_is_shared_once_gives_the_scores_of_each_option_alone(kind):
    model = tiny_model(kind)
    asked = [closed(prompt, OPTIONS) for prompt in (BODY, ask("verdict", context="c", fact="f", evidence="two"), BODY)]
    coded = [model.encode(prompt) for prompt in asked]
    ids = [[token.id for token in model.encode_answer(option).tokens] for option in OPTIONS]
    assert any(len(one) > 1 for one in ids)
    alone = np.array([[model.score([prompt], one).sum() for one in ids] for prompt in coded])
    assert model.score_continuations(coded, ids) == pytest.approx(alone, abs=2e-4)
    assert model.score_continuations(coded[:1], ids) == pytest.approx(alone[:1], abs=2e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_worked_examples_are_read_once_and_the_shares_are_those_of_a_model_that_was_asked_nothing_before(kind):
    model, read = tiny_model(kind), []
    prompts = [
        with_examples("verdict", ask("verdict", context="c", fact="f", evidence=evidence), 1, reasoned=False)
        for evidence in ("one", "two or three")
    ]
    first = probabilities(model, prompts[:1], OPTIONS)
    hook = model.module.get_input_embeddings().register_forward_hook(
        lambda _, given, __: read.append(given[0].shape[1])
    )
    second = probabilities(model, prompts[1:], OPTIONS)
    hook.remove()
    assert second == probabilities(tiny_model(kind), prompts[1:], OPTIONS)
    assert first == probabilities(model, prompts[:1], OPTIONS)
    whole, ids = model.encode(prompts[1]), [[t.id for t in model.encode_answer(o).tokens] for o in OPTIONS]
    alone = [[model.score([whole], one).sum() for one in ids]]
    assert list(second[0].values()) == pytest.approx(softmax(np.array(alone))[0].tolist(), rel=1e-3)
    assert max(read) < len(whole.ids) / 2


def test_of_equal_shares_the_first_wins():
    model = ScriptedScorer(lambda passages, words, t: -1.0)
    assert choose(model, BODY, ("yes", "no")).option == "yes"
    assert choose(model, BODY, ("no", "yes")).option == "no"


def test_a_model_that_cannot_score_writes_its_reason_and_is_read():
    model = ScriptedWriter(["It says so.\n**agrees**", "Who knows."])
    found = choose(model, BODY, OPTIONS)
    assert (found.option, found.by, found.probabilities) == ("agrees", "reply", {})
    assert found.prompt.text == model.prompts[0]
    assert model.prompts[0].endswith("line of its own one of these: agrees, disagrees, partly so.")
    lost = choose(model, BODY, OPTIONS)
    assert (lost.option, lost.reply) == (None, "Who knows.")


def test_after_an_empty_reply_the_question_stays_in_its_turn():
    assert after(BODY, "", OPTIONS) == closed(BODY, OPTIONS)


def test_the_value_survives_json_and_a_model_that_can_do_neither_is_refused():
    found = choose(scorer(), BODY, OPTIONS)
    assert Choice.from_dict(found.to_dict()) == found
    model = ScriptedWriter(["agrees"])
    model.can = Can(generate=False, why_not="Choose another.")
    with pytest.raises(CannotDo):
        choose(model, BODY, OPTIONS)
    short = Prompt(segments=(Segment(kind="question", text="Well?"),))
    assert by_likelihood(scorer(), short, ("agrees", "disagrees")).option == "agrees"
