"""A model's chat template is a program of somebody else's: it ends, writes little, and reaches nothing."""

from __future__ import annotations

import contextlib

import pytest

from engine.core.errors import ModelError
from engine.models import chat
from tests.tiny import NO_SYSTEM, TURNS, tiny_prompt, tiny_tokenizer

LOOP = "{% for a in range(90000) %}{% for b in range(90000) %}{% set c = a %}{% endfor %}{% endfor %}"
HOSTILE = {
    "loops without a word": LOOP,
    "loops with words": LOOP.replace("{% set c = a %}", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
    "a long text at once": "{{ 'x' * 10 ** 10 }}",
    "padding": "{{ '%2000000000d' % 1 }}",
    "a power": "{% set n = 9 ** (9 ** 9) %}{{ messages[0].content }}",
    "recursion": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "no template": "{% for m in messages %}",
}


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    chat.check_template.cache_clear()
    monkeypatch.setattr(chat, "_SECONDS", 1)
    yield
    chat.check_template.cache_clear()


@pytest.mark.parametrize("name", HOSTILE)
def test_a_template_that_does_not_end_or_takes_too_much_is_refused(name):
    with pytest.raises(ModelError, match="chat template is not used"):
        chat.chat_pieces(tiny_tokenizer(template=HOSTILE[name]), tiny_prompt(1))


@pytest.mark.parametrize(
    "escape",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ messages.append(1) }}",
        "{{ cycler.__init__.__globals__.os.system('touch OUT') }}",
        "{% include 'pyproject.toml' %}",
    ],
)
def test_a_template_reaches_nothing_outside(escape, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = ""
    with contextlib.suppress(ModelError, TypeError):  # refused by the sandbox, or no loader to include from
        text = "".join(p.text for p in chat.chat_pieces(tiny_tokenizer(template=escape + TURNS), tiny_prompt(1)))
    assert "<class" not in text and "[project]" not in text
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("template", [TURNS, NO_SYSTEM])
def test_a_usual_template_is_tried_once(template, monkeypatch):
    tokenizer = tiny_tokenizer(template=template)
    first = chat.chat_pieces(tokenizer, tiny_prompt(1))
    monkeypatch.setattr(chat.sys, "executable", "/nowhere")  # a second trial would fail
    assert chat.chat_pieces(tokenizer, tiny_prompt(1)) == first
