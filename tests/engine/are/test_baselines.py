from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from engine.core.errors import CannotDo, InputError
from engine.core.metrics import d_correct, n_c, paired
from engine.methods.are.baselines import (
    NAMES,
    entropies,
    entropy,
    offered,
    parse_questions,
    parse_revision,
    run_baseline,
)
from engine.methods.are.tools import Tools
from engine.models.scripted import ScriptedScorer, ScriptedWriter
from tests.engine.are.scripted import WordVerifier
from tests.engine.are.test_are import task

ANSWER = "The bridge opened in 1932. It rained all day."
TEXTS = ("The bridge opened in 1934.", "It rained all day.")


def run(name, writer=None):
    return run_baseline(name, task(ANSWER, TEXTS, Tools(WordVerifier(), judge=writer)))


def asked_of(question, answer=ANSWER):
    """A model that asks `question` about anything, sees 1932 disagree with 1934 on it, and mends the year."""

    def reply(asked):
        if asked.startswith("You check an answer"):
            return question
        if asked.startswith("You compare an answer"):
            answered, _, rest = asked.rpartition("\nAnswer: ")[2].partition("\nQuestion: ")
            disagrees = rest.startswith(question) and "1934" in rest and "1932" in answered
            return "It says 1934.\ndisagrees" if disagrees else "Fine.\nagrees"
        return "The year.\n" + answer.replace("1932", "1934")

    return ScriptedWriter(reply)


def test_drqa_retrieves_once_and_edits_nothing():
    found = run("drqa")
    assert (found.revised, len(found.queries), found.measures.pres) == (ANSWER, 1, 1)
    assert found.aggregated is None


@pytest.mark.parametrize("name", NAMES)
def test_every_baseline_has_measures_by_the_verifier(name):
    found = run(name, asked_of("Did it open in 1932?"))
    assert found.measures.by == "word table"
    assert 0 <= found.measures.attr_p <= 1


@pytest.mark.parametrize("name", ["rarr", "ccver", "efec-style"])
def test_a_method_that_asks_is_not_offered_without_a_model(name):
    assert offered(None) == ("drqa",)
    with pytest.raises(CannotDo, match="language model"):
        run(name)


@pytest.mark.parametrize(("name", "question"), [("rarr", "When did it open?"), ("ccver", "Did it open in 1932?")])
def test_rarr_and_ccver_ask_about_the_whole_answer_pass_the_gate_and_edit(name, question):
    writer = asked_of(question)
    found = run(name, writer)
    assert found.revised == ANSWER.replace("1932", "1934")
    assert found.queries == (question,)
    assert ANSWER in writer.prompts[0]
    assert found.aggregated is not None
    steps = [said.step for said in found.exchanges]
    assert steps.count("questions") == 3  # the answer, then its two clauses
    assert "verdict" in steps and "edit" in steps  # replies of the gate and the editor are kept, too


def test_an_edit_of_several_paragraphs_keeps_them_and_one_of_other_words_is_not_taken():
    answer = "It opened in 1932.\n\nIt rained all day."
    assert parse_revision("The year.\n" + answer.replace("1932", "1934"), answer) == answer.replace("1932", "1934")
    assert parse_revision("The year.\nNobody knows when.", answer) is None
    assert parse_revision("Only what differs.", answer) is None


def test_an_edit_that_was_cut_off_is_not_taken():
    usual = asked_of("When did it open?").replies
    answer = ANSWER + " It rained all day." * 50

    def reply(asked):
        return usual(asked) if not asked.startswith("You correct") else "year " * 600 + "\n" + answer.replace("2", "4")

    found = run_baseline("rarr", task(answer, TEXTS, Tools(WordVerifier(), judge=ScriptedWriter(reply))))
    edits = [said for said in found.exchanges if said.step == "edit"]
    assert found.revised == answer
    assert edits and not any(said.parsed for said in edits)
    assert all(parse_revision(said.reply, answer) for said in edits)  # but for its end that is missing


def test_ccver_searches_with_yes_no_questions_only_and_a_reply_without_one_is_said():
    found = run("ccver", asked_of("When did it open?"))
    assert (found.queries, found.evidence, found.revised) == ((), (), ANSWER)
    assert "does not contain a question" in found.notes[0]
    assert not any(said.parsed for said in found.exchanges)


def test_questions_are_read_once_each_in_their_order():
    reply = "Here are the questions:\n1. Did it open?\n- Was it shut?\n2. Did it open?\nIt was."
    assert parse_questions(reply) == ("Did it open?", "Was it shut?")


def test_the_entropy_of_sub_questions_is_that_of_the_questions_asked_not_of_the_facts():
    model = ScriptedScorer(lambda passages, words, t: math.log(0.5))
    found = entropies(["a b"], ["Did it open?", "Was it?"], model)
    assert (found["facts"].tokens, found["sub_questions"].tokens) == (2, 5)
    assert entropies(["a b"], [], model).keys() == {"facts"}


def test_an_unknown_baseline_is_named_with_those_there_are():
    with pytest.raises(InputError, match="drqa"):
        run("magic")


def test_entropy_by_hand():
    model = ScriptedScorer(lambda passages, words, t: math.log(0.5))
    found = entropy(["a b", "c"], model)
    assert found.entropy == pytest.approx(0.25 * math.log(4) + 0.5 * math.log(2))
    assert found.surprisal == pytest.approx((math.log(4) + math.log(2)) / 2)
    assert found.per_token == pytest.approx(math.log(2))
    assert (found.texts, found.tokens) == (2, 3)
    with pytest.raises(CannotDo):
        entropy(["a"], ScriptedWriter([]))


def test_the_pairing_is_the_largest_one():
    rng = np.random.default_rng(3)
    for _ in range(20):
        both = rng.random((3, 4)) < 0.4
        brute = max(sum(both[i, p[i]] for i in range(3)) for p in itertools.permutations(range(4), 3))
        assert paired(both) == brute


def test_a_fact_is_paired_once():
    entails = WordVerifier().entailment
    assert d_correct(["a b", "a b"], ["b a"], entails) == 0.5
    assert d_correct([], ["a"], entails) == 0
    assert n_c([["a"]], [["b", "c"]]) == 0
