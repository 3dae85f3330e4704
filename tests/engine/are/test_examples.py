"""The shipped examples are in the form that the parsers read, and are shown as turns."""

from __future__ import annotations

import pytest

from engine.core.settings import Verification
from engine.methods.are.are import check_answer
from engine.methods.are.baselines import parse_questions, parse_revision
from engine.methods.are.decompose import decompose, parse_clauses, parse_facts
from engine.methods.are.edit import asked_edit, parse_edit
from engine.methods.are.evidence import Sources
from engine.methods.are.tools import Task, Tools
from engine.methods.are.verdict import ask_verdict, parse_verdict
from engine.models.embedder import ScriptedEmbedder
from engine.models.scripted import ScriptedScorer, ScriptedWriter
from engine.prompts import ask, examples, with_examples
from tests.engine.are.scripted import WordVerifier


def test_every_example_is_read_by_its_own_parser():
    shipped = examples()
    three = ("answer_from_memory", "clauses", "facts", "verdict", "agreement", "edit", "revise_answer")
    three += ("check_questions", "yes_no_questions")
    assert {name: len(rows) for name, rows in shipped.items()} == {
        **dict.fromkeys(three, 3),
        **dict.fromkeys(("sub_questions", "principle"), 2),
    }
    for kind in ("check_questions", "yes_no_questions"):
        for example in shipped[kind]:
            assert parse_questions(example.reply, yes_no=kind == "yes_no_questions") == tuple(example.reply.split("\n"))
    for example in shipped["clauses"]:
        assert parse_clauses(example.reply, example.given["text"]) is not None
    for example in shipped["facts"]:
        assert parse_facts(example.reply, example.given["clause"]) == example.reply.split("\n")
    for example in shipped["edit"]:
        assert parse_edit(example.reply, example.given["fact"]) == tuple(example.reply.split("\n"))
    for example in shipped["revise_answer"]:
        assert parse_revision(example.reply, example.given["answer"]) == example.reply.partition("\n")[2]
    for kind in ("verdict", "agreement"):
        verdicts = {parse_verdict(example.reply)[0] for example in shipped[kind]}
        assert verdicts == {"supportive", "editing_required", "irrelevant"}


@pytest.mark.parametrize("count", [0, 1, 3])
def test_examples_are_turns_between_the_system_message_and_the_question(count):
    plain = ask("edit", fact="f", evidence="e")
    prompt = with_examples("edit", plain, count)
    assert [s.role for s in prompt.segments] == ["system", *["user", "assistant"] * count, "user"]
    assert (prompt.segments[0], prompt.segments[-1]) == plain.segments
    assert ask("edit", count, fact="f", evidence="e") == prompt


def test_a_writer_is_shown_reasons_and_a_scorer_the_bare_answer():
    writer = ScriptedWriter(["It says so.\nagrees"])
    ask_verdict("f", "e", "c", writer, demonstrations=1)
    assert "gives the same year for the opening of the tunnel.\nagrees" in writer.prompts[0]
    assert writer.prompts[0].count("Then write on a line of its own") == 2
    _, exchange = ask_verdict("f", "e", "c", ScriptedScorer(lambda passages, words, t: -1.0), demonstrations=1)
    assert exchange.prompt.count("Answer with one of these") == 2
    assert "same year" not in exchange.prompt


@pytest.mark.parametrize("count", [0, 3])
def test_a_check_shows_as_many_as_its_setting_asks_for(count):
    text = "Ice melts."
    writer = ScriptedWriter([text, text])
    tools, settings = Tools(WordVerifier(), decomposer=writer), Verification(demonstrations=count, max_iterations=1)
    check_answer(Task("What melts?", text, Sources(ScriptedEmbedder(256)), tools, settings))
    assert [prompt.count("Clauses:") + prompt.count("Facts:") for prompt in writer.prompts] == [count + 1, count + 1]


def test_the_decomposer_and_the_editor_are_shown_them_too():
    text = "Ice melts."
    writer = ScriptedWriter([text, text, "The word.\nIce thaws."])
    decompose(text, writer, demonstrations=2)
    asked_edit(text, "Ice thaws.", writer, demonstrations=2)
    assert [prompt.count("Clauses:") for prompt in writer.prompts] == [3, 0, 0]
    assert [prompt.count("Facts:") for prompt in writer.prompts] == [0, 3, 0]
    assert [prompt.count("Difference:") for prompt in writer.prompts] == [0, 0, 3]
