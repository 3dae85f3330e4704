"""The scripted models do what their script says and keep count."""

from __future__ import annotations

import pytest

from engine.core.errors import Cancelled, ModelError
from engine.core.progress import Watch
from engine.core.settings import Decoding
from engine.models.hooks import count_forwards
from engine.models.protocols import LanguageModel, Writer, require
from engine.models.scripted import ScriptedScorer, ScriptedWriter, reads, word_tokens
from tests.tiny import tiny_prompt


def test_they_fit_the_protocols():
    assert isinstance(ScriptedWriter([]), Writer)
    assert not isinstance(ScriptedWriter([]), LanguageModel)
    assert isinstance(ScriptedScorer(reads({1})), LanguageModel)
    require(ScriptedScorer(reads({1})), "score")


@pytest.mark.parametrize(
    "replies", [["Hanna Lind [cite_1]."], {"bridge": "Hanna Lind [cite_1]."}, lambda asked: "Hanna Lind [cite_1]."]
)
def test_every_form_of_script_streams_its_words(replies):
    seen: list[str] = []
    answer = ScriptedWriter(replies).generate(tiny_prompt(), Decoding(), seen.append)
    assert seen == ["Hanna", "Hanna Lind", "Hanna Lind [cite_1]."]
    assert answer.text == "Hanna Lind [cite_1]." and answer.finished


def test_a_reply_over_the_limit_is_cut_and_says_so():
    answer = ScriptedWriter(["one two three"]).generate(tiny_prompt(), Decoding(max_new_tokens=2))
    assert (answer.text, answer.finished) == ("one two", False)


def test_a_script_that_ends_is_an_error():
    writer = ScriptedWriter(["once"])
    writer.generate(tiny_prompt(), Decoding())
    with pytest.raises(ModelError, match="no reply"):
        writer.generate(tiny_prompt(), Decoding())


def test_cancel_stops_between_words():
    watch = Watch()
    seen: list[str] = []

    def stop_after_two(text: str) -> None:
        seen.append(text)
        if len(seen) == 2:
            watch.cancel.set()

    with pytest.raises(Cancelled):
        ScriptedWriter(["a b c d"]).generate(tiny_prompt(), Decoding(), stop_after_two, watch)
    assert seen == ["a", "a b"]


def test_a_scorer_that_reads_passage_3_alone():
    scorer = ScriptedScorer(reads({3}, gain=2.0, base=-5.0))
    prompt = scorer.encode(tiny_prompt(4))
    ids = [t.id for t in scorer.encode_answer("Crystals form.").tokens]
    rows = [prompt, *(prompt.without({n}) for n in (1, 2, 3, 4))]
    with count_forwards(scorer) as count:
        scores = scorer.score(rows, ids)
    assert scores.tolist() == [[-3, -3], [-3, -3], [-3, -3], [-5, -5], [-3, -3]]
    assert count.forwards == 5 and count.tokens == sum(len(r.ids) + 2 for r in rows)


def test_the_function_sees_the_passages_and_the_words():
    seen = []

    def logprob(passages, words, t):
        seen.append((dict(passages), list(words), t))
        return -1.0

    scorer = ScriptedScorer(logprob, ["Hanna Lind"])
    prompt = tiny_prompt(2).without({1})
    answer = scorer.generate(prompt, Decoding())
    assert [t.logprob for t in answer.tokens] == [-1.0, -1.0]
    assert seen[1] == ({2: prompt.segments[1].text}, ["Hanna", " Lind"], 1)


def test_word_tokens_cover_the_text():
    text = "  Two words\nand 👩‍👩‍👧 more. "
    tokens = word_tokens(text)
    assert "".join(text[t.start : t.end] for t in tokens) == text
