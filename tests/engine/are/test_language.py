"""The language of an answer, on sentences that spaCy brings for each language, and what a check says of it."""

from __future__ import annotations

from importlib import import_module

import pytest

from engine.analyses.case_verdict import case_verdict, verdict_line
from engine.analyses.facts import record_of
from engine.cases.review import review_of
from engine.english.language import _LANGUAGES, other_language
from tests.engine.cases.test_case_verdict import checked


def sentences_of(code):
    return import_module(f"spacy.lang.{code}.examples").sentences


@pytest.mark.parametrize(("code", "name"), _LANGUAGES.items())
def test_a_text_in_another_language_is_known_and_a_sentence_is_at_least_not_taken_for_a_third_script(code, name):
    assert other_language(" ".join(sentences_of(code))) == name
    assert "another script" not in map(other_language, sentences_of(code))


@pytest.mark.parametrize("code", ["ru", "ja", "ar", "hi", "ko", "zh"])
def test_other_scripts_are_said_to_be_that(code):
    assert other_language(" ".join(sentences_of(code))) == "another script"


@pytest.mark.parametrize(
    "text",
    [
        *sentences_of("en"),
        "Schubert: Die schöne Müllerin | Bostridge, Uchida | EMI | 2003 | 62 min | CD | recorded in London in 2003",
        "In Der Spiegel of 5 March the minister called the plan, which nobody had read, a gift from heaven.",
        "ethyl acetate, hexane, silica gel, celite, brine, 2-propanol, toluene, pyridine, acetic anhydride",
        "Vincent van Gogh, Ludwig van Beethoven, Rembrandt van Rijn, Leonardo da Vinci, Vasco da Gama",
        "Charles de Gaulle, Simone de Beauvoir, Otto von Bismarck, Rio de Janeiro, Los Angeles, Las Vegas",
        "Verdi wrote La Traviata, Il trovatore, Un ballo in maschera and La forza del destino.",
        'Descartes wrote: "Je pense, donc je suis, et je ne suis pas ce que je ne suis pas."',
        "La, Ce, Pr, Nd, Es, Se, Te, I, II, III, IV, V; a, e, i, o, u; vitamins A, D, E and K",
        "α = β + γ, where Ω and λ are constants",
        "die size, die area, die yield and die cost",
        "Habeas corpus, res ipsa loquitur and stare decisis are maxims of the law.",
        "«" * 100_000,
        "",
        "1934, 200 m [1]",
    ],
)
def test_english_names_tables_and_lists_are_not_another_language(text):
    assert other_language(text) == ""


def test_a_check_of_an_answer_in_another_language_says_so_before_its_verdicts():
    case = checked("Die Brücke wurde von Anna Weber eröffnet und sie ist nicht mehr neu [1].")
    record = record_of(case)
    assert record.language == "German" and record.foreign.startswith("The answer seems to be in German. ")
    line = verdict_line(case, case_verdict(case, review_of(())))
    assert line.startswith(f"{record.foreign} 1 fact: ")
    assert record_of(checked()).foreign == ""
