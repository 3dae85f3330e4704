from __future__ import annotations

import numpy as np
import pytest

from engine.analyses.removal import removal
from engine.answer.citations import annotate
from engine.answer.write import Written
from engine.core.errors import InputError
from engine.core.progress import last
from engine.core.settings import Settings
from engine.core.values import Answer, AuditRecord, Case, Stamp
from engine.methods.occlusion import occluding
from engine.methods.subject import subject
from tests.tiny import tiny_model

PASSAGES = ("The kiln of Ostrel is green.", "Maren holds forty litres.", "Ostrel lies north.")
TEXT = "The kiln is green. [cite_1]"


@pytest.fixture
def case():
    given = AuditRecord(question="What colour is the kiln?", passages=PASSAGES, answer=TEXT).as_passages()
    answer = annotate(Answer(text=TEXT), len(given))
    return Case(id="c", question="What colour is the kiln?", passages=given, answer=answer, stamp=Stamp(model="x"))


def quote_all(question, passages, watch=None):
    """A writer that says every passage it is given, each with its number."""
    text = " ".join(f"{passage.text} [cite_{n}]" for n, passage in enumerate(passages, start=1))
    return Written(answer=annotate(Answer(text=text), len(passages)), stamp=Stamp(model="quote all"))


def test_the_new_answer_cites_by_the_numbers_of_the_case(case):
    found = removal(case, [2], quote_all, tiny_model("llama"), Settings())
    assert found.answer.text == "The kiln of Ostrel is green. [cite_1] Ostrel lies north. [cite_3]"
    assert [(c.number, c.valid) for c in found.answer.citations] == [(1, True), (3, True)]
    assert (found.left_out, found.writer) == ((2,), "quote all")


def test_the_drop_is_that_of_leaving_them_out_together(case):
    model = tiny_model("llama")
    found = removal(case, [3, 1], quote_all, model, Settings())
    prompt, answer, _ = subject(case, model, Settings())
    each = last(occluding(model, prompt, answer, sources=[(1, 3), (2,)], floors=False))
    assert found.drop is not None and found.drop.sources == ((1, 3),)
    assert np.allclose([row[0] for row in found.drop.scores], [row[0] for row in each.scores], atol=1e-4)


@pytest.mark.parametrize("gone", [[], [1, 2, 3]])
def test_something_is_left_out_and_something_kept(case, gone):
    with pytest.raises(InputError, match="keep at least one"):
        removal(case, gone, quote_all, tiny_model("llama"), Settings())
