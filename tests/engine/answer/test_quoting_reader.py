"""The quoting reader: word for word, in document order, cited, refusing, and the same every time."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

import pytest

from engine.answer.citations import cited_sentences
from engine.answer.quoting_reader import NEAR, NOTHING_CLOSE, Reading, best_sentences, depth_of, read, withheld
from engine.answer.sentence_scores import WEIGHTS, answer_cue, score_sentences
from engine.core.settings import Chunking, Reader
from engine.core.values import Document, Passage
from engine.corpus.chunking import passages as cut
from engine.corpus.sources import load_bytes
from engine.models.embedder import ScriptedEmbedder, load_embedder

PROCEDURE = """Acetaminophen

Recrystallization

The crude product is dissolved in boiling water. Carbon is stirred in and the product boiled gently. The hot product is
filtered through paper. The product crystals are chilled in ice.

Waste

Old filtrates go into a bottle for waste.
"""


@pytest.fixture
def reader() -> Callable[..., Reading]:
    return partial(read, embedder=ScriptedEmbedder(dimensions=512), settings=Reader(close_enough=0.3))


def passages_of(*texts: str, words: int = 12) -> list[Passage]:
    documents = [
        Document(id=f"d{i}", title="", text=text, source="", media_type="text/plain") for i, text in enumerate(texts)
    ]
    return [p for d in documents for p in cut(d, Chunking(words=words))]


def test_a_short_question_gets_the_sentence_that_answers_it(reader: Callable[..., Reading]) -> None:
    passages = passages_of("Gold shines. It is soft.", "Iron was first smelted in Anatolia. Iron is grey and hard.")
    answer = reader("Where was iron first smelted?", passages).answer
    assert answer.text.startswith("Iron was first smelted in Anatolia. [cite_2]")
    assert not answer.refused


def test_a_row_of_a_table_is_quoted_though_it_ends_without_a_mark() -> None:
    rows = load_bytes(b"name,role,languages\nAda Quill,teacher,Tamil\nJon Eek,guard,Danish\n", "staff.csv")
    page = load_bytes(b"# Pool\n\n| Day | Visitors |\n| --- | --- |\n| Tuesday | 187 |\n", "pool.md")
    passages = [p for document in (*rows, *page) for p in cut(document, Chunking(words=12))]
    reader = partial(read, embedder=load_embedder())
    answer = reader("Which languages does Ada Quill speak?", passages).answer
    assert answer.text.startswith("name: Ada Quill | role: teacher | languages: Tamil [cite_1]")
    one = Document(
        id="d", title="", text="who: Jon | tongue: Danish\nwho: Ada | tongue: Tamil", source="", media_type=""
    )
    assert reader("What tongue is Ada's?", cut(one, Chunking())).answer.text == "who: Ada | tongue: Tamil [cite_1]"
    assert "Tuesday | 187" in reader("How many visitors came to the pool on Tuesday?", passages).answer.text


POLICY = b"""# Travel

The following rules apply to booking:

- Economy class is booked for flights under six hours.
- Rail is preferred for journeys under 500 km.

## Meals

| Country | Breakfast | Dinner |
|---|---|---|
| Germany | 9 EUR | 28 EUR |
| France | 11 EUR | 32 EUR |

## Portal

Install the portal with pip:

```sh
pip install portal
```
"""


def test_what_is_held_back_is_what_a_lower_threshold_quotes() -> None:
    passages = [p for document in load_bytes(POLICY, "policy.md") for p in cut(document, Chunking())]
    question, embedder = "Which rules apply to booking?", load_embedder()
    quoted, refused = (read(question, passages, embedder, Reader(close_enough=limit)) for limit in (0.0, 2.0))
    assert refused.answer.text == NOTHING_CLOSE
    assert withheld(refused, passages) == quoted.answer
    assert withheld(quoted, passages) is None


@pytest.mark.parametrize(
    ("question", "lines"),
    [
        (
            "Which rules apply to booking?",
            [
                "The following rules apply to booking: [cite_1]",
                "- Economy class is booked for flights under six hours. [cite_1]",
                "- Rail is preferred for journeys under 500 km. [cite_1]",
            ],
        ),
        (
            "How much is paid for dinner in Germany?",
            ["Country | Breakfast | Dinner [cite_1]", "Germany | 9 EUR | 28 EUR [cite_1]"],
        ),
        ("How do I install the portal?", ["Install the portal with pip: [cite_1]", "pip install portal [cite_1]"]),
    ],
)
def test_what_a_line_introduces_and_a_table_s_first_row_come_along(question: str, lines: list[str]) -> None:
    passages = [p for document in load_bytes(POLICY, "policy.md") for p in cut(document, Chunking())]
    answer = read(question, passages, load_embedder()).answer
    assert answer.text.splitlines() == lines
    assert [answer.text[start:end] for start, end in answer.sentences] == lines
    assert answer.sentences == cited_sentences(answer.text)  # as a check of the text alone will read it


def test_a_list_is_quoted_across_the_passages_that_it_is_cut_into() -> None:
    (document,) = load_bytes(POLICY, "policy.md")
    passages = cut(document, Chunking(words=12))[::-1]  # the order of citations is another
    answer = read("Which rules apply to booking?", passages, load_embedder()).answer
    items = ["- Economy class is booked for flights under six hours.", "- Rail is preferred for journeys under 500 km."]
    said = [" ".join(line.split()[:-1]) for line in answer.text.splitlines()]
    assert said == ["The following rules apply to booking:", *items]
    assert len({citation.number for citation in answer.citations}) > 1


def test_quotes_are_word_for_word_and_every_offset_fits(reader: Callable[..., Reading]) -> None:
    passages = passages_of(PROCEDURE, "Gold shines. The crude gold product is weighed.")
    answer = reader("How is the crude product dissolved and filtered?", passages).answer
    assert len(answer.sentences) == len(answer.quotes) == len(answer.citations) > 1
    for (start, end), citation, (index, number, first, last) in zip(
        answer.sentences, answer.citations, answer.quotes, strict=True
    ):
        quoted = " ".join(passages[number - 1].text[first:last].split())  # a line break of the page is a space
        assert answer.text[start:end] == f"{quoted} [cite_{number}]"
        assert answer.text[citation.start : citation.end] == f"[cite_{number}]"
        assert citation.number == number
        assert answer.sentences[index] == (start, end)
    assert "\n" not in answer.text


def quoted(reader: Callable[..., Reading], question: str, passages: list[Passage]) -> list[str]:
    return [passages[n - 1].text[s:e] for _, n, s, e in reader(question, passages).answer.quotes]


def test_an_explanation_is_the_section_in_order_without_its_heading(reader: Callable[..., Reading]) -> None:
    texts = quoted(reader, "How is the recrystallization of the product in boiling water done?", passages_of(PROCEDURE))
    assert texts[0] == "The crude product is dissolved in boiling water."
    assert texts[-1] == "The product crystals are chilled in ice."
    assert len(texts) == 4


def test_without_headings_an_explanation_is_a_run_after_the_best_sentence(reader: Callable[..., Reading]) -> None:
    text = "Gold is soft. Iron rust forms in damp air. Rust of iron needs damp salt air. Tea is a drink. Tea is hot."
    texts = quoted(reader, "How does iron rust form in damp air?", passages_of(text, words=100))
    assert texts[:2] == ["Iron rust forms in damp air.", "Rust of iron needs damp salt air."]
    assert "Tea is hot." not in texts


def test_numbered_steps_are_quoted_whole_and_in_order(reader: Callable[..., Reading]) -> None:
    steps = [f"{i}. {verb} the flask." for i, verb in enumerate(("Weigh", "Fill", "Seal", "Shake", "Store"), start=1)]
    text = "Gold is soft. It shines.\n\nFlask procedure\n\n" + "\n".join(steps) + "\n"
    assert quoted(reader, "Explain all the steps of the flask procedure.", passages_of(text, words=100)) == steps


def test_nothing_close_is_said(reader: Callable[..., Reading]) -> None:
    reading = reader("Who won the 1998 football final?", passages_of(PROCEDURE))
    assert reading.answer.refused
    assert reading.answer.text == NOTHING_CLOSE
    assert reading.closeness < reading.threshold
    assert "nothing was quoted" in reading.rule
    assert reader("anything", []).answer.refused
    assert reader("anything", passages_of("   \n")).answer.refused


def test_documents_come_in_the_order_of_their_best_sentence(reader: Callable[..., Reading]) -> None:
    passages = passages_of("Copper rusts green in air.", "Iron rusts red in damp air.")
    several = partial(read, embedder=ScriptedEmbedder(dimensions=512), settings=Reader(sentences=2, close_enough=0.0))
    reading = several("What rusts red in damp air?", passages)
    assert reading.answer.quotes[0][1] == 2
    if len(reading.answer.quotes) == 2:
        scores = [c.score for c in reading.candidates if c.chosen]
        assert max(scores) - min(scores) <= NEAR


def test_the_same_passages_give_the_same_answer(reader: Callable[..., Reading]) -> None:
    passages = passages_of(PROCEDURE, "Gold shines.")
    assert reader("How is it filtered?", passages) == reader("How is it filtered?", passages)


def test_the_order_of_documents_does_not_change_what_is_quoted(reader: Callable[..., Reading]) -> None:
    texts = ["Iron rusts in damp air.", "Gold is soft and shines.", "Glass is made from sand and soda."]
    question = "What is glass made from?"
    first = reader(question, passages_of(*texts)).answer
    shuffled = texts[:]
    random.Random(3).shuffle(shuffled)
    second = reader(question, passages_of(*shuffled)).answer
    assert first.text.split(" [")[0] == second.text.split(" [")[0]


def test_scores_are_the_sum_of_their_parts_and_the_parts_are_those_named() -> None:
    found = score_sentences("What rusts?", passages_of(PROCEDURE), ScriptedEmbedder())
    assert found
    for candidate in found:
        assert set(candidate.parts) == set(WEIGHTS)
        assert candidate.score == pytest.approx(sum(candidate.parts.values()))
    assert max(c.parts["passage"] for c in found) == 0.0
    assert [c.heading for c in found][:2] == [True, True]


def test_a_sentence_is_read_with_the_heading_above_it() -> None:
    text = "Strike\n\nAbel Crowther was sent to prison.\n\nDye works\n\nThe river was red. Indigo came from Bengal."
    found = score_sentences("Who led the strike?", passages_of(text, words=100), load_embedder())
    close = {c.start: c.closeness for c in found if not c.heading}
    alone = score_sentences("Who led the strike?", passages_of(text.replace("Strike\n\n", "")), load_embedder())
    assert max(close, key=lambda start: close[start]) == text.index("Abel")
    assert close[text.index("Abel")] > 0.4 > alone[0].closeness
    cut_off = passages_of(text, words=9)  # the heading goes over to the next passage of the document
    assert [p.text for p in cut_off][1:] == ["Dye works\n\nThe river was red.", "Indigo came from Bengal."]
    indigo = score_sentences("What was used in the dye works?", cut_off[1:], ScriptedEmbedder())[-1]
    alone = score_sentences("What was used in the dye works?", cut_off[2:], ScriptedEmbedder())[-1]
    assert indigo.closeness > alone.closeness


def test_lines_of_a_list_without_marks_are_quoted(reader: Callable[..., Reading]) -> None:
    passages = passages_of("Tray cake\n\nTopping\n1 kg plums\n250 g butter\n60 g sugar\n\nBake it.", words=100)
    assert reader("How much butter?", passages).answer.text.splitlines()[0] == "250 g butter [cite_1]"


NOTES = """Notes on Heron

1.4.0 (2024-05-02)

New

- Search in all folders.
- A dark theme.
- Sign-in by key.

1.3.0 (2023-01-18)

New

- Export of the heron chart.
"""


def test_a_list_is_quoted_whole_once_two_of_its_items_are(reader: Callable[..., Reading]) -> None:
    items = ["- Search in all folders.", "- A dark theme.", "- Sign-in by key."]
    assert quoted(reader, "Search in folders, sign-in by key?", passages_of(NOTES, words=100)) == items
    assert quoted(reader, "Is there a dark theme?", passages_of(NOTES, words=100)) == items[1:2]
    long = "Notes\n\n" + "\n".join(f"- Blue flask {n}." for n in range(20))
    assert len(quoted(reader, "A blue flask?", passages_of(long, words=100))) == 2
    led = "Notes\n\nThe box has:\n\n- Blue flask, big.\n- A lamp.\n- Blue flask, red.\n"
    assert len(quoted(reader, "A blue flask?", passages_of(led, words=100))) == 4


def test_a_heading_is_quoted_where_it_has_what_is_asked_for_and_its_sentence_lacks_it() -> None:
    found = partial(quoted, partial(read, embedder=load_embedder()))
    passages = passages_of(NOTES, words=100)
    for question in ("When was the export of the heron chart added?", "Which version added the heron chart export?"):
        assert found(question, passages) == ["1.3.0 (2023-01-18)", "- Export of the heron chart."]
    assert found("What can be exported?", passages) == ["- Export of the heron chart."]
    cats = passages_of("4 Cats\n\nCats with flu live in the shed.", words=100)
    asked = passages_of("Roe: Does Ann have the key?\nBell: no, it is lost.", words=100)
    assert found("Who has the key?", asked) == ["Bell: no, it is lost."]
    assert found("How many cats live in the shed?", cats) == ["Cats with flu live in the shed."]


INTERVIEW = (
    "Roe: Do fines work?\nBell: No. They keep pupils away.\n\nRoe: What do pupils want?\nBell: Quiet. Home is loud."
)


def test_the_question_of_an_interview_is_not_its_answer(reader: Callable[..., Reading]) -> None:
    passages = passages_of(INTERVIEW, "Books are lent for two weeks.")
    for question, reply in (("Do fines work?", "Bell: No."), ("What do pupils want?", "Bell: Quiet.")):
        found = reader(question, passages).answer.text
        assert found.startswith(reply) and "Roe" not in found
    (piece, *_) = best_sentences("What do pupils want?", passages, ScriptedEmbedder(), 1)
    assert piece.text == "Roe: What do pupils want?\nBell: Quiet."


def test_words_of_the_one_who_asks_head_the_reply_and_are_not_quoted(reader: Callable[..., Reading]) -> None:
    told = "Roe: You left the hospital in April. Can you say why?\nBell: Childcare. It closes early."
    found = reader("Why did Bell leave the hospital?", passages_of(told, words=100))
    assert [c.heading for c in found.candidates] == [True, True, False, False]
    assert found.answer.text == "Bell: Childcare. [cite_1] It closes early. [cite_1]"


def test_a_quotation_out_of_a_turn_begins_with_its_speaker(reader: Callable[..., Reading]) -> None:
    ward = "Roe: How are breaks?\nBell: Fine. I get both breaks. I like it."
    shop = "Roe: How are breaks?\nCole: Bad, no rest. We get breaks never."
    both = passages_of(ward, shop, words=100)
    answer = reader("Do you get breaks?", both).answer
    assert answer.text == "Bell: I get both breaks. [cite_1] Cole: We get breaks never. [cite_2]"
    assert [both[n - 1].text[a:b] for _, n, a, b in answer.quotes] == ["I get both breaks.", "We get breaks never."]
    assert [answer.text[a:b] for a, b in answer.sentences] == answer.text.replace("] ", "]|").split("|")


def test_the_words_of_a_turn_whose_beginning_was_not_found_are_those_of_its_speaker(
    reader: Callable[..., Reading],
) -> None:
    text = "Roe: And then?\nBell: I went. It was far. I took no breaks in May. I slept.\nRoe: Why?"
    first, second, last = passages_of(text, words=9)
    assert (first.speaker, second.speaker) == ("", "Bell")
    assert reader("Who took no breaks?", [second]).answer.text.startswith("Bell: I took no breaks in May. [cite_1]")
    assert reader("Why?", [second, last]).answer.text.count("Roe") == 0
    (piece,) = best_sentences("Who took no breaks?", [second], ScriptedEmbedder(), 1)
    assert piece.speaker == "Bell"


def test_each_speaker_whom_the_question_names_is_quoted(reader: Callable[..., Reading]) -> None:
    ward = "Roe: How are breaks?\nBell: The breaks are short breaks. The breaks are late breaks. I like the breaks."
    shop = "Roe: And the breaks?\nCole: The breaks got lost last year in all of the noise of it. I left."
    both = passages_of(ward, shop, words=100)
    assert "Cole" not in reader("What does Bell say about breaks?", both).answer.text
    found = reader("What do Bell and Cole say about breaks?", both)
    assert "Bell: The breaks are" in found.answer.text and "Cole: The breaks got lost" in found.answer.text
    assert found.rule.endswith("each speaker whom the question names.")


def test_what_somebody_says_about_a_thing_is_not_looked_for_by_the_word_says() -> None:
    passages = passages_of("My wife says no. I rest badly.", words=100)
    for question in ("What did Tom say about rest?", "What does Tom think of rest?"):
        wife, rest = score_sentences(question, passages, ScriptedEmbedder())
        assert wife.parts["words"] == 0 < rest.parts["words"]
    wife, _ = score_sentences("What did she say?", passages, ScriptedEmbedder())
    assert wife.parts["words"] > 0


def test_the_speaker_of_a_turn_is_known_in_the_next_passage_of_it(reader: Callable[..., Reading]) -> None:
    told = "Roe: Why go?\nBell: Money. It was little for me. The old bus stopped late at night."
    passages = passages_of(told, words=10)
    assert [p.text for p in passages][1:] == ["The old bus stopped late at night."]
    found = reader("When did the old bus stop at night?", passages)
    assert found.answer.text == "Bell: The old bus stopped late at night. [cite_2]"


@pytest.mark.parametrize(
    ("question", "sentence", "cue"),
    [
        ("When did it open?", "It opened in May.", 1.0),
        ("When did it open?", "It opened late.", 0.0),
        ("When did it open?", "It may not march on.", 0.0),
        ("In which version was it added?", "It came with 3.4.", 1.0),
        ("In which version was it added?", "It was added (#77).", 0.0),
        ("How many were there?", "There were 20.", 1.0),
        ("How many were there?", "There were some.", 0.0),
        ("Who led Rome?", "The ruler was Caesar.", 1.0),
        ("Who led Rome?", "In Rome there was none.", 0.0),
        ("What is tin?", "Tin is a metal.", 1.0),
        ("What are the alloys of tin?", "In short, alloys of tin (bronze, pewter) are metals.", 1.0),
        ("What does pewter mean?", "Pewter, an alloy, refers to tin with lead.", 1.0),
        ("What is tin?", "They melted tin.", 0.5),
        ("Why is it a cat?", "It is a cat.", 0.5),
    ],
)
def test_answer_cues(question: str, sentence: str, cue: float) -> None:
    assert answer_cue(question, sentence) == cue


@pytest.mark.parametrize(
    ("question", "depth"),
    [
        ("Who wrote it?", "short"),
        ("How many were there?", "short"),
        ("What can go wrong?", "short"),
        ("How is the crude product recrystallized?", "explain"),
        ("Why is it cooled?", "short"),
        ("Describe the apparatus.", "explain"),
        ("Explain all the steps of the reduction.", "steps"),
        ("Give the procedure step by step.", "steps"),
        ("List the steps.", "steps"),
    ],
)
def test_depth_by_wording(question: str, depth: str) -> None:
    assert depth_of(question) == depth
