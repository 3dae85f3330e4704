"""Text that a model writes for the training of verifier and writer: what is kept of its replies."""

from random import Random

import numpy as np
import pytest

from engine.models.embedder import packaged_weights
from training.made_text import Claim, claims_of, elsewhere, page_of, window_of
from training.verifier import Recipe, wanted
from training.verifier_data import EDITING, IRRELEVANT, SUPPORTIVE, Page

PAGE = Page("Dams", ("The dam is old.", "It has two gates.", "Nets were torn.", "The mill paid."), ())


def test_a_reply_gives_one_statement_of_each_kind_that_can_be_understood_alone():
    reply = "TRUE: The dam has two gates.\nFALSE: The passage says three gates.\nOPEN: The dam will be widened soon.\n"
    found = claims_of(reply, "It has two gates.")
    assert [(one.claim, one.label) for one in found] == [
        ("The dam has two gates.", SUPPORTIVE),
        ("The dam will be widened soon.", IRRELEVANT),
    ]


def test_a_paragraph_loses_the_sentence_that_was_cut_off():
    page = page_of(
        "fisheries", "The survey covered 14 landing places in March.\nThe catch fell to 95 tonnes a year. Nets"
    )
    assert page is not None
    assert page.sentences == ("The survey covered 14 landing places in March.", "The catch fell to 95 tonnes a year.")
    assert page_of("fisheries", "The catch fell to 95 tonnes a year.") is None


@pytest.mark.parametrize("seed", range(20))
def test_a_window_and_other_evidence_are_of_the_page(seed):
    rng = Random(seed)
    page, first, end = window_of(PAGE, rng)
    assert 0 <= first < end
    said = " ".join(page.sentences[first:end])
    for other in elsewhere(Claim("The dam is old.", said, EDITING), (page, first, end), rng):
        if said in other.evidence or any(part in other.evidence for part in page.sentences[first:end]):
            assert other.label == EDITING
        else:
            assert other.label == IRRELEVANT


def test_the_teacher_is_followed_on_made_pairs_and_the_label_elsewhere():
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(packaged_weights())
    drawn, made = [("A dam is old.", "The dam is old.", EDITING)], [("It has gates.", "It has two gates.", IRRELEVANT)]
    taught = np.array([[0.7, 0.1, 0.2]], dtype=np.float32)
    found = wanted(tokenizer, drawn, made, taught, Recipe(smoothing=0.03, times=2))
    assert len(found.encoded) == 3
    np.testing.assert_allclose(found.shares, [[0.01, 0.98, 0.01], [0.7, 0.1, 0.2], [0.7, 0.1, 0.2]], atol=1e-6)
