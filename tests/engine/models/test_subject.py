"""The sentences of a text that a claim with a number, or with a name, is about."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from engine.core.settings import Verification
from engine.core.text import sentences
from engine.core.values import Passage
from engine.methods.are.are import check_answer
from engine.methods.are.evidence import Sources
from engine.methods.are.tools import Task, Tools
from engine.models.embedder import load_embedder
from engine.models.subject import on_subject, subject_sentences, with_pronouns
from engine.models.verifier import load_entailment

FEES = "Adults pay 90 euros. Seniors pay 60 euros. Students pay 45 euros."
FOUNDERS = "Ann Berg founded the school in Cork. Later Bo Lind became its head and moved it to Riga."
SHARED = "Ann Berg founded the school in Cork, and Bo Lind moved the school to Riga."
RATES = "The river is 45 km long, and the canal is 12 km long."


def read(claim: str, text: str) -> list[str]:
    return [text[slice(*span)] for span in subject_sentences(claim, text)]


@pytest.mark.parametrize(
    ("claim", "text", "sentences"),
    [
        ("Adults pay 60 euros.", FEES, ["Adults pay 90 euros."]),
        ("Adults pay EUR 45.", FEES, ["Adults pay 90 euros."]),
        ("Adults pay 90 euros.", FEES, []),
        ("Adults pay 30 euros.", FEES, []),
        ("All pay.", FEES, []),
        ("Adults pay 60 euros.", "Fees:\n- Adults: 90 euros\n- Seniors: 60 euros", ["- Adults: 90 euros"]),
        ("Ann won 3 medals.", "Ann won gold at the 5 games. She took home 3 medals.", []),
        ("Ann won 3 medals.", "Ann won 2 medals. The prize was 3 medals for Bo.", ["Ann won 2 medals."]),
        ("On 5 May adults pay 60 euros.", "On 5 May adults pay 90 euros. Seniors pay 60 euros.", []),
        ("The tower was built in 1990.", "The tower is high. In 1990 it burned.", []),
        ("It opened on 5 May 2020.", "It opened on 3 May 2020. It closed on 2020-05-05.", []),
        (
            "The fair opened on 5 May 2020.",
            "The fair opened 2020-05-03. Ticket sale ends 5 May 2020.",
            ["The fair opened 2020-05-03."],
        ),
    ],
)
def test_a_number_of_another_sentence_leaves_the_sentences_on_the_subject(claim, text, sentences):
    assert read(claim, text) == sentences


def test_sentences_that_share_as_many_words_are_all_on_the_subject():
    text = "Ann sold a boat. Ann sold a house. Bo swam."
    assert [text[a:b] for a, b in on_subject({"ann", "sold"}, text, 0.5)] == ["Ann sold a boat.", "Ann sold a house."]
    assert on_subject({"ann", "sold", "car", "van", "bus"}, text, 0.5) == []


def test_a_sentence_goes_with_the_one_before_or_after_it_by_a_pronoun():
    text = "Ann swam. She won 3 medals. Bo came."
    first, second, third = sentences(text)
    assert with_pronouns([first], text) == with_pronouns([second], text) == {first, second}
    assert with_pronouns([third], text) == {third}


@given(st.text(alphabet="ab 9.\n5", max_size=80), st.text(alphabet="ab 95.", max_size=20))
def test_only_sentences_without_the_claims_number_are_left(text, claim):
    found = subject_sentences(claim, text)
    assert set(found) <= set(sentences(text))
    assert all(claim.strip() != text[slice(*span)].strip() for span in found)


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        ("Adults pay 90 euros.", "supportive"),
        ("Adults pay 60 euros.", "editing_required"),
        ("The fee for seniors is 60 euros.", "supportive"),
        ("The fee for seniors is 45 euros.", "editing_required"),
    ],
)
def test_the_verifier_binds_a_number_to_its_sentence(claim, verdict):
    (judged,) = load_entailment().judge([(claim, FEES)])
    assert judged.verdict == verdict


FERRIES = "The Terna, built in 1998, carries 120 passengers; the Alke, built in 2016, carries 180 passengers."


@pytest.mark.parametrize(
    ("text", "fact", "elsewhere"),
    [
        (FOUNDERS, "Ann Berg founded the school in Cork.", ""),
        (FOUNDERS, "Bo Lind founded the school in Cork.", "Bo Lind"),
        (SHARED, "Bo Lind moved the school to Riga.", ""),
        (SHARED, "Ann Berg moved the school to Riga.", "Ann Berg"),
        (RATES, "The river is 45 km long.", ""),
        (RATES, "The canal is 45 km long.", "45 km"),
        (FERRIES, "The Alke carries 180 passengers.", ""),
        (FERRIES, "The Alke carries 120 passengers.", "120"),
    ],
)
def test_a_name_or_number_of_another_part_makes_the_verdict_unsure(text, fact, elsewhere):
    passage = Passage(id="1", document="1", title="", ordinal=0, start=0, end=len(text), text=text)
    sources = Sources(embedder=load_embedder(), case=(passage,))
    # The guard alone: of the sentence on the fact alone the verifier itself calls some of these contradicted.
    task = Task("Who?", fact, sources, Tools(load_entailment()), Verification(sentence_alone=False))
    (checked,) = check_answer(task).facts
    ruling = checked.iterations[0].checks[0].ruling
    assert (ruling.verdict, ruling.unsure) == ("supportive", bool(elsewhere))
    assert not elsewhere or f"the part on this does not contain {elsewhere}" in ruling.note
