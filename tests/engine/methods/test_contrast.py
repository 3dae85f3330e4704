"""Contrast: by hand, invariants, and against one forward for each prompt; on a case, in its report and replay."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from engine.analyses.contrast import KIND, _told_apart, in_words, proposed
from engine.analyses.kind import Loaders
from engine.cases.importers import imported_case
from engine.cases.store import added
from engine.core.errors import AttributionError, InputError
from engine.core.values import Answer, AuditRecord, Prompt, Segment
from engine.corpus.collection import Collection
from engine.methods.contrast import contrast, place_of
from engine.methods.spans import span_mask
from engine.models.scripted import ScriptedScorer, word_tokens
from engine.report.build import markdown_report
from engine.workbench import Workbench
from tests.analysing import analysed, replay_here
from tests.engine.methods.test_both_ways import prompt_of
from tests.engine.methods.test_on_case import make_case
from tests.tiny import KINDS, tiny_model, tiny_prompt

TEXT = "Hanna Lind built the bridge in 1874."


def by_year(passages, words, t):
    """Passage 1 makes 1932 likely, passage 2 makes 1934 likely; other words do not react."""
    if words[t].strip() == "1934":
        return np.log(0.6 if 2 in passages else 0.2)
    if words[t].strip() == "1932":
        return np.log(0.5 if 1 in passages else 0.1)
    return np.log(0.9)


def test_by_hand_each_passage_speaks_for_its_year():
    model = ScriptedScorer(by_year)
    answer = model.encode_answer("It opened in 1934 , they say")
    found = contrast(model, prompt_of("1932", "1934", "trout"), answer, "1934", "1932")
    assert found.effect.scores[0] == pytest.approx((np.log(0.1 / 0.5), np.log(0.6 / 0.2), 0))
    assert found.effect.details.alone[0] == pytest.approx((np.log(0.1 / 0.5), np.log(0.6 / 0.2), 0))
    assert np.exp(found.likely) == pytest.approx((0.6, 0.5)) and np.exp(found.bare) == pytest.approx((0.2, 0.1))
    assert (found.span, found.tokens) == ((13, 17), (1, 1))
    assert found.effect.numerical_floor == 0 and found.effect.placebo_floor is None
    said = in_words(found)
    assert "finds both about alike, without any “1934” likelier (2.0 times)" in said
    assert "Passage 2 speaks most for “1934” (1.1 nats). Passage 1 speaks most for “1932” (1.6 nats)." in said


def test_an_effect_no_larger_than_an_unrelated_passages_is_none():
    """Any passage more makes 1934 likelier by as much as passage 1 does."""

    def logprob(passages, words, t):
        return np.log(0.1 + 0.1 * len(passages)) if words[t].strip() == "1934" else np.log(0.5)

    model = ScriptedScorer(logprob)
    answer = model.encode_answer("It opened in 1934")
    found = contrast(model, prompt_of("1934", "trout"), answer, "1934", "1932", placebos=["Of other things."] * 3)
    assert found.effect.placebo_floor == pytest.approx(np.log(0.4 / 0.3))
    assert found.effect.scores[0] == pytest.approx((np.log(0.3 / 0.2),) * 2)
    far = contrast(model, prompt_of("a", "b", "c", "d"), answer, "1934", "1932", placebos=["Of other things."] * 3)
    assert all(score > far.effect.placebo_floor for score in far.effect.scores[0])


@pytest.mark.parametrize("kind", KINDS)
def test_against_one_forward_for_each_prompt(kind):
    model, prompt = tiny_model(kind), tiny_prompt(3)
    found = contrast(model, prompt, model.encode_answer(TEXT), "1874", "nineteen")

    def difference(kept):
        coded, begin, sums = model.encode(prompt.keep(kept)), TEXT.index("1874"), []
        for words in ("1874", "nineteen"):
            text = model.encode_answer(TEXT[:begin] + words)
            scored = model.score([coded], [token.id for token in text.tokens])[0]
            own = span_mask(text, (begin, begin + len(words)))
            sums.append(scored[own].sum())
        return sums[0] - sums[1]

    everything = {1, 2, 3}
    expected = [difference(everything) - difference(everything - {j}) for j in (1, 2, 3)]
    alone = [difference({j}) - difference(set()) for j in (1, 2, 3)]
    assert found.effect.scores[0] == pytest.approx(expected, abs=2e-4)
    assert found.effect.details.alone[0] == pytest.approx(alone, abs=2e-4)
    assert found.likely[0] - found.likely[1] == pytest.approx(difference(everything), abs=2e-4)
    assert found.effect.forwards == 2 * (2 * 3 + 2) + 2 * 4


def test_the_other_way_round_the_signs_turn():
    model, prompt = tiny_model("llama"), tiny_prompt(3)
    other = TEXT.replace("1874", "1901")
    one = contrast(model, prompt, model.encode_answer(TEXT), "1874", "1901")
    back = contrast(model, prompt, model.encode_answer(other), "1901", "1874")
    assert np.array(one.effect.scores) == pytest.approx(-np.array(back.effect.scores), abs=1e-4)
    assert one.likely == pytest.approx(back.likely[::-1], abs=1e-4)


def test_words_are_looked_up_as_words():
    assert place_of("In 21874 and 1874 (1874).", "1874") == (13, 17)
    for words in ("187", "", "1875", "(.*"):
        with pytest.raises(InputError, match="does not have the words"):
            place_of("In 21874 and 1874.", words)


@pytest.mark.parametrize("instead", ["", " ", "1874", " 1874 "])
def test_texts_that_do_not_differ_are_refused(instead):
    model = tiny_model("llama")
    with pytest.raises(InputError, match="other words"):
        contrast(model, tiny_prompt(2), model.encode_answer(TEXT), "1874", instead)


def test_without_passages_it_says_so():
    model = tiny_model("llama")
    bare = Prompt(segments=(Segment(kind="question", text="Who?"),))
    with pytest.raises(AttributionError, match="no source to leave out"):
        contrast(model, bare, model.encode_answer(TEXT), "1874", "1901")


def test_each_contrast_of_a_case_is_kept_reported_and_replayed():
    model, case = tiny_model("llama"), make_case()
    words = case.answer.text.split()
    for written, instead in ((words[0], "Neither"), (words[1], "other")):
        case = added(case, analysed(case, "contrast", model, written=written, instead=instead))
    assert [found.instead for found in KIND.of(case)] == ["Neither", "other"]
    report = markdown_report(case)
    assert f"“{words[0]}”" in report and "“other”" in report
    replayed = replay_here(case, Loaders(writer=lambda name: model, collection=Collection.open))
    found = {number.place: number.status for number in replayed.numbers if number.place.startswith("analyses[contrast")}
    assert found and set(found.values()) == {"reproduced"}


def test_nothing_is_proposed_without_a_check():
    assert proposed(make_case()) == ()


@pytest.mark.parametrize(
    ("answer", "words", "start"),
    [
        ("It is 5% so", "%", 7),
        ("bridge, which", ", which", 6),
        ("Lind’s", "’s", 4),
        ("桥于1932年建成", "年", 6),
        ("a(b)", "(b)", 1),
        ("It rose from 3.5 to 3", "3", 20),
        ("Of 2.5 and 5,000 it took 5, not 6", "5", 25),
    ],
)
def test_signs_and_texts_without_spaces_are_found_where_they_are(answer, words, start):
    assert place_of(answer, words) == (start, start + len(words))


class Glued(ScriptedScorer):
    """A scorer whose tokens are three characters, wherever words begin; each has a probability of its own."""

    def encode_answer(self, text):
        places = range(0, len(text), 3)
        self._learn(" ".join(text[i : i + 3] for i in places))
        tokens = [replace(word_tokens(text[i : i + 3])[0], start=i, end=min(i + 3, len(text))) for i in places]
        self._words.update({token.id: text[token.start : token.end] for token in tokens})
        return Answer(text=text, tokens=tuple(tokens))


def test_a_token_that_takes_in_the_end_of_the_words_before_counts():
    """ "(Lin" is one token: the first letters of both texts are not lost with it."""

    def logprob(passages, words, t):
        return -float(len(words[t])) if 1 in passages else -2.0 * ord(words[t][-1])

    model = Glued(logprob)
    answer = model.encode_answer("By (Lind)")
    found = contrast(model, prompt_of("a"), answer, "Lind", "Smit")
    assert found.tokens == (2, 2), "(Li, nd"
    sums = [[-2.0 * ord(sign) for sign in signs] for signs in ("id", "mt")]
    assert found.bare == pytest.approx([sum(one) for one in sums])


def test_the_place_of_an_edit_is_told_apart_by_the_words_before_it():
    text = "In 5 of 9 cases the limit is 3.5 mg."
    at = text.index("5 mg")
    assert _told_apart(text, at, "5", "7") == ("3.5", "3.7")
    assert _told_apart(text, text.index("9"), "9", "8") == ("9", "8")
    twice = "It is 5. It is 5."
    assert _told_apart(twice, twice.rindex("5"), "5", "6") == ("5. It is 5", "5. It is 6")
    assert _told_apart("Of 89,000 'in all'", 3, "89", "98") == ("89,000", "98,000")
    assert _told_apart("he said 'Lind'", 9, "Lind", "Berg") == ("Lind", "Berg")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a" * 200_000 + " 1934 end", ("1934", "1932")),
        ("a." * 100_000 + "1934" + "b" * 100_000, None),
        ("1934 " * 40_000, None),
    ],
)
def test_the_place_of_an_edit_in_an_answer_made_to_stall(text, found):
    assert _told_apart(text, text.rindex("1934"), "1934", "1932") == found


def test_the_edits_of_a_check_are_proposed():
    bench = Workbench()
    passages = ["The Kolm bridge was opened in 1932 by the mayor.", "Trout live in the river."]
    record = {"id": "k", "question": "When did it open?", "passages": passages}
    case = bench.examine(
        imported_case(AuditRecord.from_dict(record | {"answer": "The Kolm bridge was opened in 1934."})), "facts"
    )
    assert proposed(case) == (("1934", "1932"),)
