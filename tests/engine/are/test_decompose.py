from __future__ import annotations

import pytest
from hypothesis import example, given, settings, strategies as st

from engine.answer.citations import blanked, cited_sentences, style_of
from engine.answer.prompt import NOTHING_CLOSE
from engine.english import parser
from engine.english.brackets import without_brackets
from engine.english.parser import parse
from engine.english.pronouns import Known, resolve
from engine.english.statements import split, split_with_pieces
from engine.methods.are.decompose import clause_spans, decompose, parse_clauses, parse_facts
from engine.methods.are.evidence import cited_numbers, expand
from engine.models.scripted import ScriptedWriter

TEXT = "Lawrence Wackett was an engineer. He served in the war and received the James Cook Medal in 1978 [cite_2]."
WORDS = [
    "The film",
    "and",
    ",",
    "; ",
    "won",
    "in 1999",
    ".",
    " ",
    "\n",
    "Ada Berg",
    "who",
    "(2001)",
    "[cite_1]",
    "«é»",
    "was",
]


@settings(max_examples=200)
@given(st.lists(st.sampled_from(WORDS) | st.text(max_size=6), max_size=14).map(" ".join))
def test_clauses_and_what_lies_between_give_back_the_answer(text):
    spans = clause_spans(text)
    rebuilt, at = "", 0
    for start, end in spans:
        assert at <= start < end <= len(text)
        rebuilt += text[at:start] + text[start:end]
        at = end
    assert rebuilt + text[at:] == text
    for start, end in cited_sentences(text, style_of(text)):  # what makes no claim is left out whole
        mine = [span for span in spans if start <= span[0] < end]
        edges = [start, *(edge for span in mine for edge in span), end]
        left = blanked("".join(text[a:b] for a, b in zip(edges[::2], edges[1::2], strict=True)))
        words = [w for w in left.split() if any(c.isalnum() for c in w)]
        assert not mine or "?" in text or set(words) <= {"and", "but", "while", "whereas"}


@settings(max_examples=200)
@given(st.lists(st.sampled_from(WORDS) | st.text(max_size=6), max_size=14).map(" ".join))
@example("The film , who")
@example("The film won The film [A [cite_1] 0)")
def test_what_a_fact_says_it_copied_stands_in_the_answer(text):
    for clause in decompose(text).clauses:
        assert text[clause.start : clause.end] == clause.text
        assert clause.facts
        for fact in clause.facts:
            for piece in fact.pieces:
                assert (
                    fact.text[piece.fact : piece.fact + piece.length]
                    == text[piece.answer : piece.answer + piece.length]
                )
                assert clause.start <= piece.answer <= piece.answer + piece.length <= clause.end


def test_the_papers_example_pronouns_become_names():
    found = decompose(TEXT)
    assert [c.text for c in found.clauses] == [TEXT[:33], TEXT[34:]]
    assert [f.text for f in found.clauses[1].facts] == [
        "Lawrence Wackett served in the war",
        "Lawrence Wackett received the James Cook Medal in 1978",
    ]


@pytest.mark.parametrize(
    ("sentence", "facts"),
    [
        ("Ada sang, wrote and acted.", {"Ada sang", "Ada wrote", "Ada acted"}),
        ("Ann, Bea and Cleo join the cast.", {"Ann joins the cast", "Bea joins the cast", "Cleo joins the cast"}),
        ("Oslo, which lies in Norway, is old.", {"Oslo is old", "Oslo lies in Norway"}),
        ("It was founded in 1985 by Hayao Lee.", {"It was founded in 1985", "It was founded by Hayao Lee"}),
        ("Spotlight (2015) won.", {"Spotlight won", "Spotlight is from 2015"}),
        ("Nothing to see", {"Nothing to see"}),
        ("Ann has neither booked nor paid a deposit.", {"Ann has neither booked nor paid a deposit"}),
        ("Ann, whose brother sold the mill, left Cork.", {"Ann left Cork", "Ann's brother sold the mill"}),
        (
            "The museum is open from 10 a.m. and closed on Mondays.",
            {"The museum is open from 10 a.m.", "The museum is closed on Mondays"},
        ),
        (
            "The water is heated to 95 °C, poured over the grounds, and left to stand for four minutes.",
            {
                "The water is heated to 95 °C",
                "The water is poured over the grounds",
                "The water is left to stand for four minutes",
            },
        ),
        (
            "Honey never spoils because it contains little water and is slightly acidic.",
            {"Honey never spoils because it contains little water", "Honey never spoils because it is slightly acidic"},
        ),
        ('One nurse said, "I just want something that works."', {"One nurse said, I just want something that works"}),
        ("It was Rosalind Franklin who took the photograph.", {"Rosalind Franklin took the photograph"}),
        (
            "Firms pay 4% of their turnover or 20 million, whichever is higher.",
            {"Firms pay 4% of their turnover or 20 million, whichever is higher"},
        ),
        (
            "Prices rose from 2 percent in March to 3 percent in June.",
            {"Prices rose from 2 percent in March to 3 percent in June"},
        ),
        ("Nobody but Ann and Bo came to the meeting.", {"Nobody but Ann and Bo came to the meeting"}),
        ("Everyone except Ann and Bo left the office.", {"Everyone except Ann and Bo left the office"}),
        ("Only Ann and Bo have access to the vault.", {"Only Ann and Bo have access to the vault"}),
        ("Ann and Bo own 60% and 40% of the firm.", {"Ann and Bo own 60% and 40% of the firm"}),
        ("The sum of 3 and 4 is 7.", {"The sum of 3 and 4 is 7"}),
        ("Ann and her sister are twins.", {"Ann and her sister are twins"}),
        ("Counted by hand, the sums come to ten.", {"the sums are counted by hand", "the sums come to ten"}),
        ("It was on 9 April that the sum left.", {"It was on 9 April that the sum left"}),
        ("It is clear that the sum left.", {"It is clear that the sum left"}),
        ("It was not Ann who left.", {"It was not Ann who left"}),
        ("It was owned by Ann, who left.", {"It was owned by Ann", "Ann left"}),
        ("It was sold to a clerk who failed.", {"It was sold to a clerk", "a clerk failed"}),
        ("It was not sold to Bo, who left.", {"It was not sold to Bo", "Bo left"}),
        ("It hired men, two of whom he paid.", {"It hired men, two of whom he paid"}),
        ("The shop, built in 1999, was closed.", {"The shop was closed", "The shop was built in 1999"}),
        ("The Times, a newspaper, wrote it.", {"The Times wrote it", "The Times is a newspaper"}),
        (
            "The rules, agreed upon in May, made him rich, and his son was next.",
            {"The rules made him rich", "The rules were agreed upon in May", "his son was next"},
        ),
        ("The extract, which came late, showed a firm.", {"The extract came late", "The extract showed a firm"}),
        ("The Bergs, owners of the mill, left.", {"The Bergs left", "The Bergs are owners of the mill"}),
        ("一只猫坐在垫子上", {"一只猫坐在垫子上"}),
        (
            "The bridge was sold to Ann & Co in 1919, and to Orr Brothers in 1926.",
            {"The bridge was sold to Ann & Co in 1919", "The bridge was sold to Orr Brothers in 1926"},
        ),
        (
            "The lamp switched to paraffin in 1889 and to electricity in 1953.",
            {"The lamp switched to paraffin in 1889", "The lamp switched to electricity in 1953"},
        ),
        (
            "They sailed from Cork to Oslo and from Bonn to Kiel.",
            {"They sailed from Cork to Oslo", "They sailed from Bonn to Kiel"},
        ),
    ],
)
def test_the_rules_on_hand_worked_sentences(sentence, facts):
    assert set(split(sentence)) == facts


def test_a_pronoun_without_a_known_subject_stays():
    assert resolve("He won", Known()) == ("He won", 0)
    assert resolve("Their sleep is light", Known().after("The cats hunt mice.")) == ("The cats' sleep is light", 9)


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("Cork is wet. Riga is dry although it lies on the coast.", ["Riga is dry", "it lies on the coast"]),
        ("Bo Lind left. Ada Berg sang although she was sad.", ["Ada Berg sang", "Ada Berg was sad"]),
        ("The bank closed. When it reopened, people came.", ["people came", "The bank reopened"]),
    ],
)
def test_a_pronoun_behind_the_subject_of_its_sentence_refers_to_nothing_before_it(text, facts):
    assert [fact.text for fact in decompose(text).clauses[1].facts] == facts


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("The Orme Bridge is long. Its main span is 90 metres. It opened in 1902.", "The Orme Bridge opened in 1902"),
        ("The Cedar Bond is new. Its fee is low, and it pays 3 percent.", "The Cedar Bond pays 3 percent"),
        ("Ada Berg sells wax. Her shop is in Cork. It opened in 1902.", "Ada Berg's shop opened in 1902"),
        ("The acid is weak. The acid's salt is white. It melts at 90 degrees.", "The acid's salt melts at 90 degrees"),
        ("Its author is Mark. It was written early.", "It was written early"),
    ],
)
def test_behind_what_is_its_own_it_is_still_the_thing_before(text, last):
    assert decompose(text).clauses[-1].facts[0].text == last


def test_a_pronoun_brings_its_noun_without_brackets():
    (_, clause) = decompose("Ada Berg (1901-1977) was a painter. She moved to Cork in 1950.").clauses
    assert [fact.text for fact in clause.facts] == ["Ada Berg moved to Cork in 1950"]
    (_, clause) = decompose("Copper(II) sulfate is blue. It dissolves.").clauses
    assert [fact.text for fact in clause.facts] == ["Copper(II) sulfate dissolves"]


def test_a_subject_that_is_said_to_be_a_person_is_not_it():
    known = Known().after("The Alder Bridge opened.").after("The Alder Bridge's engineer was Ida Mohr.")
    assert resolve("It is long", known)[0] == "The Alder Bridge is long"
    assert resolve("She died", known)[0] == "The Alder Bridge's engineer died"


def test_the_ablations_leave_a_stage_out():
    assert len(decompose(TEXT, molecular=False, atomic=False).clauses) == 1
    assert [len(c.facts) for c in decompose(TEXT, atomic=False).clauses] == [1, 1]


@pytest.mark.parametrize("text", ["[" + "1" * 5000, "[" + "cite_1 " * 5000, "[1" + ", " * 5000])
def test_a_marker_that_never_closes_is_read_in_one_go(text):
    """This run once took time that doubled with each digit: the test would not end."""
    assert blanked(text) == text


@pytest.mark.parametrize("text", ["", "   \n", "[cite_1]"])
def test_a_text_without_words_has_no_clauses(text):
    assert decompose(text).clauses == ()


def test_a_models_reply_is_used_where_it_can_be_parsed():
    writer = ScriptedWriter(["Ice melts.\nSteam rises.", "1. Ice melts.", "- Steam rises."], name="splitter")
    found = decompose("Ice melts. Steam rises.", writer)
    assert [[f.text for f in c.facts] for c in found.clauses] == [["Ice melts."], ["Steam rises."]]
    assert (found.fallbacks, found.made_by, found.clauses[0].facts[0].made_by) == (0, "splitter", "splitter")


def test_a_reply_that_cannot_be_parsed_is_counted_and_the_rules_step_in():
    found = decompose("Ice melts. Steam rises.", ScriptedWriter(["Ice melts slowly.", "", "Whales sing."]))
    assert [f.text for c in found.clauses for f in c.facts] == ["Ice melts", "Steam rises"]
    assert all(f.fallback and f.made_by == "rules" for c in found.clauses for f in c.facts)
    assert found.fallbacks == 3
    assert [e.reply for e in found.exchanges] == ["Ice melts slowly.", "", "Whales sing."]


@pytest.mark.parametrize(
    ("text", "clauses"),
    [
        ("| Part | Price |\n| --- | :-: |\n| Pump | 40 euros |", ["| Pump | 40 euros |"]),
        ("Part | Price\n--- | ---\nPump | 40 euros", ["Pump | 40 euros"]),
        ("The pump broke.\n---\nIt was mended.", ["The pump broke.", "It was mended."]),
        ("Pump | 40 euros\nValve | 12 euros", ["Pump | 40 euros", "Valve | 12 euros"]),
        ("Can it break? It did.", ["It did."]),
        ('"What broke?" [2]', []),
        ('What is "rust"?', []),
        ('She wrote "Who Broke It?" [2]', ['She wrote "Who Broke It?" [2]']),
    ],
)
def test_the_head_of_a_table_and_a_question_claim_nothing(text, clauses):
    assert [text[a:b] for a, b in clause_spans(text)] == clauses


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("## Dosage\n\nIt is 5 mg.", ["It is 5 mg"]),
        ("**Dosage**\n\n200 mg twice a day.", ["Dosage: 200 mg twice a day"]),
        ("Storage\nThe loaf keeps for a week.", ["The loaf keeps for a week"]),
        ("1. Port\n\n   The port is old.\n\n2. Jobs\n\n   Jobs are few.", ["The port is old", "Jobs are few"]),
        ("Paris", ["Paris"]),
        ("Paris\nLondon", ["Paris", "London"]),
        ("**Paris**", ["Paris"]),
        ("#1 in sales is the pump.", ["#1 in sales is the pump"]),
        ("Sure! Here are the key points:\n- **Term:** five years", ["Term: five years"]),
        ("### Key facts\n- Term: five years", ["Term: five years"]),
        ("## Lease\n\nSure!\n\nThe term is five years.", ["The term is five years"]),
        ("Certainly. The term is five years. See also section 4.", ["The term is five years"]),
        ("**Sources:** [Lease](https://a.org), p. 3\n- Source: Lake Inari", ["Source: Lake Inari"]),
        ("I'm sorry, but the documents do not name a fee.", ["the documents do not name a fee"]),
        ("Yes.\n\nThe term is five years.", ["The term is five years"]),
        ("No, the gate is shut. In short, it is old.", ["the gate is shut", "the gate is old"]),
        ("It is worth noting that the gate leaks.", ["the gate leaks"]),
        (
            "According to Passage 1, the gate is old. As noted in the documents, it leaks.",
            ["the gate is old", "the gate leaks"],
        ),
        ("Document [2] states that the gate is old.", ["the gate is old"]),
        ("1. In summary, according to Sources 1 and 2, the gate is old.", ["the gate is old"]),
        ("Note that the gate shut and that Ann left.", ["the gate shut", "Ann left"]),
        ('"No, I will not go," Ann said.', ["No, I will not go, Ann said"]),
        ("According to police documents, the gate is old.", ["According to police documents, the gate is old"]),
        ("No gate is old. Note 3 is old.", ["No gate is old", "Note 3 is old"]),
        ("They may contain lead: treat them with bleach.", ["They may contain lead", "treat them with bleach"]),
        ("Here are the fees: adults pay 90.", ["Here are the fees: adults pay 90"]),
        ("Hello, the rent is 900!", ["Hello, the rent is 900"]),
        ("- Best\n- Bo Berg", ["Best", "Bo Berg"]),
        ("Here is the summary. Here the term ends.", ["Here the term ends"]),
        ("Hi Ada,\n\nThe term is five years.\n\nBest regards,\nBo Berg\nBerg Ltd", ["The term is five years"]),
        (
            "Dear all, the port is old.\nBest\nThe term ends in May.",
            ["Dear all, the port is old", "The term ends in May"],
        ),
        ("The term is five years. Please note that I am an AI and this is not advice.", ["The term is five years"]),
        ("This is not advice, but the term is two years.", ["This is not advice", "the term is two years"]),
        ("The term is five years. Let me know if you need more!", ["The term is five years"]),
        ("The pump broke [1].\n\n**References**\n[1] Price list of 2020.\n[2]: https://a.org", ["The pump broke"]),
        ("[1] The pump broke.", ["The pump broke"]),
        ("The pump broke in May [1-3]. It leaked [2–3].", ["The pump broke in May", "The pump leaked"]),
        ("According to Passages 1–3, the pump broke.", ["the pump broke"]),
        ("The pump [^1] broke.\n\n[^1]: Pump manual, 2020.", ["The pump broke"]),
        (
            "To start, run `pump --on`:\n\n```sh\npump --on  # starts\n```\n\nIt runs.",
            ["To start, run pump --on", "It runs"],
        ),
    ],
)
def test_a_heading_an_announcement_a_reference_and_talk_claim_nothing(text, facts):
    assert [fact.text for clause in decompose(text).clauses for fact in clause.facts] == facts


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("Dosage for adults:\n- 200 mg twice a day", ["Dosage for adults: 200 mg twice a day"]),
        (
            "* Dosage:\n  * Mild: 5 mg\n  * Take it at noon.\n* Storage:\n  * below 25 °C",
            ["Dosage: Mild: 5 mg", "Take it at noon", "Storage: below 25 °C"],
        ),
        ("Side effects include: [1]\n- rash\n\nThey pass.", ["Side effects include: rash", "Side effects pass"]),
        ("When a job fails, PyQueue does this:\n- It retries the job.", ["PyQueue retries the job"]),
        ("### Comet\n- **Found:** in 1988\n> - Size: 2 km", ["Comet: Found: in 1988", "Comet: Size: 2 km"]),
        (
            "- **1854:** The line opened and tolls fell.\n- **1932** – The port closed.",
            ["1854: The line opened", "1854: tolls fell", "1932: The port closed"],
        ),
        (
            "**Rent:** 900 euros a month, paid in advance\n**Term:** two years",
            ["Rent: 900 euros a month, paid in advance", "Term: two years"],
        ),
        ("- Rent: 40 euros (2021: 38)\n- Fish, eggs", ["Rent: 40 euros (2021: 38)", "Fish, eggs"]),
        (
            "| Case | Dose | Pause |\n|---|--:|---|\n| **Mild** | 5 mg [1] | - |\n| Severe | 9 mg | 2 h |",
            ["Dose: Mild: 5 mg", "Dose: Severe: 9 mg", "Pause: Severe: 2 h"],
        ),
        ("| Property | Value |\n|---|---|\n| Weight | 58 kg |", ["Weight: 58 kg"]),
        (
            "| Plan | Seats | Max. use |\n|---|---|---|\n| Team | 20 | Costs $49 a month. Has 9 GB. |",
            ["Seats: Team: 20", "Max. use: Team: Costs $49 a month. Has 9 GB."],
        ),
        ("(a) **Report:** within 72 hours; and\n(b) **Fine:** 2%.", ["Report: within 72 hours", "Fine: 2%"]),
        ("Names of firms are:\n- Berg Ltd\n\nThis is not new.", ["Names of firms are: Berg Ltd", "This is not new"]),
    ],
)
def test_an_item_and_a_cell_keep_what_they_are_about(text, facts):
    found = decompose(text).clauses
    assert [fact.text for clause in found for fact in clause.facts] == facts
    for fact in (fact for clause in found for fact in clause.facts):
        copied = [text[p.answer : p.answer + p.length] for p in fact.pieces]
        assert copied == [fact.text[p.fact : p.fact + p.length] for p in fact.pieces] and copied


def test_a_models_headings_claim_nothing_and_what_has_no_verb_is_led_by_the_layout():
    text = "## Doses\nAdults take 5 mg.\n\n| Case | Dose |\n|---|---|\n| Severe | 9 mg |\n\nStorage:\n- below 25 °C"
    clauses = "## Doses\nAdults take 5 mg.\n| Case | Dose |\n|---|---|\n| Severe | 9 mg |\nStorage:\n- below 25 °C"
    found = decompose(text, ScriptedWriter([clauses, "Adults take 5 mg."]))
    facts = [fact.text for clause in found.clauses for fact in clause.facts]
    assert facts == ["Adults take 5 mg.", "Dose: Severe: 9 mg", "Storage: below 25 °C"]


def test_marks_of_markdown_are_no_words_of_a_fact():
    text = "> **Note:** The *pump* runs `in v. 2` on [Linux](https://a.org) ([docs](https://b.org)).【2†source】"
    (clause,) = decompose(text).clauses
    assert [fact.text for fact in clause.facts] == ["The pump runs in v. 2 on Linux"]
    assert cited_numbers(text, clause) == {2}


@pytest.mark.parametrize(
    ("sentence", "facts"),
    [
        ("Fish died (Hale et al., 2021).", ["Fish died"]),
        ("Fish died (Moreno 2018; Hale & Bo 2019a).", ["Fish died"]),
        ("Fish died (the report, p. 4).", ["Fish died"]),
        ("Fish died (see Table 2).", ["Fish died"]),
        ("Fish died [Source: the report].", ["Fish died"]),
        ("The act (s. 4) binds firms.", ["The act binds firms"]),
    ],
)
def test_brackets_that_name_a_source_say_nothing(sentence, facts):
    assert split(sentence) == facts


def test_a_models_line_that_no_verb_governs_is_replaced_by_its_clause():
    writer = ScriptedWriter(["Wash the white crystals with 40 mL of water.", "white crystals\n40 mL of water"])
    found = decompose("Wash the white crystals with 40 mL of water.", writer)
    assert [(f.text, f.fallback) for f in found.clauses[0].facts] == [
        ("Wash the white crystals with 40 mL of water.", True)
    ]


def test_parsers_refuse_what_is_not_copied_or_leaves_words_out():
    assert parse_clauses("Ice melts.\nSteam rises.", "Ice melts. Steam rises.") == ((0, 10), (11, 23))
    assert parse_clauses("Ice melts.", "Ice melts. Steam rises.") is None
    assert parse_clauses("Steam rises.\nIce melts.", "Ice melts. Steam rises.") is None
    assert parse_facts("", "Ice melts.") is None


CITED = 'Ice "melts" at 0 °C [cite_1], and steam rises [cite_2]. It\'s wet.'
SPANS = ('Ice "melts" at 0 °C [cite_1]', "steam rises [cite_2].", "It's wet.")


@pytest.mark.parametrize(
    "reply",
    [
        'Ice "melts" at 0 °C [cite_1]\nsteam rises [cite_2].\nIt\'s wet.',
        "1. Ice melts at 0 °C.\n2. steam rises.\n3. It’s wet",
        "Sure, here are the clauses:\n\n- **Ice melts at 0 °C**\n- **steam rises**\n- **It's wet.**\n\nLet me know!",
        '```\n"Ice  melts at 0 °C;"\n"steam rises"\n"It\'s wet"\n```',
    ],
)
def test_a_copy_may_lack_markers_quotes_white_space_and_its_last_mark(reply):
    assert tuple(CITED[a:b] for a, b in parse_clauses(reply, CITED)) == SPANS


@pytest.mark.parametrize(
    "reply",
    [
        "Ice melts at 0 °C\nIt's wet",
        "Ice melts at 1 °C\nsteam rises\nIt's wet",
        "Ice melts at 0 °C\nSteam rises\nIt's wet",
        "Ice melts at 0 °C\nsteam rises\nIt's wet\nIt's wet",
        "Ice melts, at 0 °C\nsteam rises\nIt's wet",
        "Ice melts at 0 °C and steam\nrises\nIt's not wet",
    ],
)
def test_a_copy_may_lack_no_word_and_change_none(reply):
    assert parse_clauses(reply, CITED) is None


@settings(max_examples=200)
@given(st.lists(st.sampled_from(WORDS) | st.text(max_size=6), max_size=14).map(" ".join))
def test_the_clauses_by_rules_are_read_back_where_they_are_read_at_all(text):
    spans = clause_spans(text)
    read = parse_clauses("\n".join(" ".join(text[a:b].split()) for a, b in spans), text) or ()
    at = 0
    for start, end in read:
        assert at <= start < end <= len(text)
        at = end


def test_a_long_series_of_fragments_is_read_in_one_go():
    """Each "and" doubles what may be a fact, and none of it is one: without a bound this would not end."""
    series = ("sold to Ann in 1990 and to Bo in 1995, " * 25).rstrip(", ")
    assert split(series) == [series]


def test_a_series_of_dates_without_and_is_read_in_one_go():
    """Each date asked those behind it, and they the ones before: time doubled with each."""
    dates = "The classes are on " + ", ".join(f"May {day}" for day in range(1, 31))
    assert split(f"{dates}.") == [dates]


@pytest.mark.parametrize("thing", ["lamps", "Cork", "sang"])
def test_a_long_series_is_taken_apart_and_a_very_long_one_stays_whole(thing):
    """Each part hangs on the one before it, so that the tree is as deep as the series is long."""
    for parts in (195, 2000):
        series = f"Ann sold {', '.join([thing] * parts)} and left"
        assert len(split(f"{series}.")) >= 1
    assert split(f"{series}.") == [series]


@pytest.mark.parametrize("piece", ["a ", "and ", ", ", "[1", "[cite_1] ", '"', "Fact 1: ", "* ", "a\n", "ab\n\n"])
def test_long_replies_are_read_in_one_go(piece):
    """Reading that took the square of the length would not end here."""
    reply = piece * 50_000
    for start, end in parse_clauses(reply, reply) or ():
        assert 0 <= start < end <= len(reply)
    assert parse_clauses(reply + "b", reply + "c") is None
    assert all(fact.strip() in reply for fact in parse_facts(reply, reply) or ())


def test_what_models_write_around_facts():
    reply = "Sure! Here are the facts:\n\n1. **Ice melts.**\n2. Ice floats.\n\nLet me know if you need more facts."
    assert parse_facts(reply, "Ice melts and floats.") == ["Ice melts.", "Ice floats."]
    assert parse_facts("Ice melts.\nWhales sing.", "Ice melts and floats.") is None


def test_two_phrases_are_read_out_of_what_models_write():
    reply = 'Here are two search phrases:\n\n1. "ice melting point"\n2. "ice floats"\n\nI hope this helps.'
    phrases, exchange = expand("Ice melts.", "What melts?", ScriptedWriter([reply]))
    assert (phrases, exchange.parsed) == (("ice melting point", "ice floats"), True)


@pytest.mark.parametrize(
    ("sentence", "facts"),
    [
        (
            "The solid was dissolved in a boiling tube and using 20 mL of water.",
            {"The solid was dissolved in a boiling tube and using 20 mL of water"},
        ),
        (
            "The salt is dissolved in a beaker containing water and using 20 mL of acid.",
            {
                "The salt is dissolved in a beaker containing water",
                "The salt is dissolved in a beaker using 20 mL of acid",
            },
        ),
        (
            "The mill banked 900 pounds, and its takings and deposits agree.",
            {"The mill banked 900 pounds", "its takings agree", "its deposits agree"},
        ),
        ("If Ann or Bea pays and Cleo signs, the deed stands.", {"If Ann or Bea pays and Cleo signs, the deed stands"}),
        ("If you pay and sign in May, the deed stands.", {"If you pay and sign in May, the deed stands"}),
        (
            "These are the pine marten, the stoat and the weasel.",
            {"These are the pine marten", "These are the stoat", "These are the weasel"},
        ),
        ("She met Otto, a clerk, and Bea.", {"She met Otto", "Otto is a clerk", "She met Bea"}),
        (
            "For the tenants' and owners' good, the deed was burned.",
            {"For the tenants' and owners' good, the deed was burned"},
        ),
        ("Five were made in Cork, for 40 euros.", {"Five were made in Cork", "Five were made for 40 euros"}),
        ("The mill earned most in Cork at the fair.", {"The mill earned most in Cork at the fair"}),
        ("It was made only in Cork in 1932.", {"It was made only in Cork in 1932"}),
        ("Fill in form E-7 within 30 days after the trip.", {"Fill in form E-7 within 30 days after the trip"}),
        ("Ada met the owner (a clerk).", {"Ada met the owner", "the owner is a clerk"}),
        ("Ada sold the mill (including its yard).", {"Ada sold the mill (including its yard)"}),
        ("You may (if the owner agrees) sell the deed.", {"You may (if the owner agrees) sell the deed"}),
        ("He owns two mills, which he bought in 2019.", {"He owns two mills", "he bought two mills in 2019"}),
        ("It was a siege, during which Ada left.", {"It was a siege", "Ada left during a siege"}),
        ("She retired in 2019 and died in 2021.", {"She retired in 2019", "She died in 2021"}),
        (
            "The till was short because a clerk keyed a sum and reversed it.",
            {"The till was short because a clerk keyed a sum", "The till was short because a clerk reversed it"},
        ),
        (
            "Ada Lovelace wrote the notes and Charles Babbage built the engine.",
            {"Ada Lovelace wrote the notes", "Charles Babbage built the engine"},
        ),
        (
            "The Romans built roads and the Greeks built temples.",
            {"The Romans built roads", "the Greeks built temples"},
        ),
        ("She thought the dog and the cat slept.", {"She thought the dog slept", "She thought the cat slept"}),
        ("It began on Monday, which delayed the delivery.", {"It began on Monday, which delayed the delivery"}),
        ("Two men with 7 votes were left out, which hurt.", {"Two men with 7 votes were left out, which hurt"}),
    ],
)
def test_coordinated_facts_are_sentences(sentence, facts):
    assert set(split(sentence)) == facts


@pytest.mark.parametrize(
    ("instruction", "facts"),
    [
        (
            "Dissolve the acid in 20 mL of water and boil gently for ten minutes.",
            ["Dissolve the acid in 20 mL of water", "boil gently for ten minutes"],
        ),
        ("2. Add the salt in one lot and wash it down.", ["Add the salt in one lot", "wash it down"]),
        ("Stir with ether, chill and filter.", ["Stir with ether, chill and filter"]),
        ("Put the magnesium and a stirring bar in the flask.", ["Put the magnesium and a stirring bar in the flask"]),
        ("Put the acid into the flask with 9 mL of water.", ["Put the acid into the flask with 9 mL of water"]),
        ("Add triethylene glycol, boiling chip, thermometer.", ["Add triethylene glycol, boiling chip, thermometer"]),
        ("The crude product using 20 mL for each boil gently.", ["The crude product using 20 mL for each boil gently"]),
        ("Stop when the smell and the colour have gone.", ["Stop when the smell and the colour have gone"]),
        ("Stir until it melts and the smell has gone.", ["Stir until it melts and the smell has gone"]),
        ("75 minutes, rinsing the flask.", ["75 minutes, rinsing the flask"]),
    ],
)
def test_an_instruction_is_taken_apart_at_its_verbs_or_stays_whole(instruction, facts):
    assert split(instruction) == facts


@pytest.mark.parametrize(
    "sentence",
    [
        "She led the team in sacks with 11",
        "Velorin can be recommended for children under 12",
        "In Judge Brandt's view, a buyer who uses goods without knowing of the defect has not accepted them",
        "Oscar winner and Emmy nominee Ann Lee sang",
        "The mill and the port are the main buyers",
        "The main towns are Cork and Galway",
        "Ann and Bea both left",
        "Without tin, using lead, it would melt",
        "The flat was in use from 1870 to 1939",
        "The capital and seat of government is Oslo",
        "The source(s) of the stain remain unknown",
        "The committee approved the purchase of a new printer and the repair of the old one",
        "The plague left fields untended and villages empty",
        "The mill is open only on Mondays and Fridays",
        "Leave is granted only to clerks and pilots",
        "It can be used only by staff and pupils",
        "The first bridge was built of wood, the second of stone",
        "While cats are solitary hunters, dogs hunt in packs",
        "The room has a desk, a lamp, and a view of the lake",
        "Five clerks and six pilots, a total of eleven people, were hired",
        "The firm made two models, one for clerks and one for pilots",
        "The report makes two demands: raise the budget and hire more staff",
        "The first and second floors are offices",
        "It is a poem of three lines with five, seven and five syllables",
        "Its walls, towers and gates were pulled down in 1860",
        "Tin is lighter and cheaper than lead",
        "Trains are faster but more expensive than buses",
        "Wood is cheaper and easier to work than steel",
        "She studied law at Cork and economics at Leiden",
        "The drug was sold in Cork in 2016 and in Bonn in 2018",
        "Some were taken by her sister and some by a clerk",
        "The number of clerks and pilots fell by 7 percent",
        "Sales in Cork and Oslo grew by 5 and 11 percent",
        "It sold the Irish and Welsh mills for 90 and 45 euros, respectively",
        "Oil and water do not mix",
        "Ann and Bo share a house",
        "There are no shops and ports on the island",
        "The inn has no pool, gym and sauna",
        "Few clerks and pilots were hired",
        "Not all clerks and pilots were hired",
        "The rule excludes most books and toys",
        "Half of the books and toys were sold",
        "Clerks and pilots who handle ballots must be trained",
        "Members, guests and pupils who arrive late must sign in",
        "He sold the house to Ann for 90 euros and the car to Bo for 40 euros",
        "He gave Ann a book and Bo a pen",
        "Hydrogen and oxygen combine to form water",
    ],
)
def test_what_is_true_only_together_stays_together(sentence):
    assert split(f"{sentence}.") == [sentence]


@pytest.mark.parametrize(
    ("sentence", "facts"),
    [
        ("Miami played twice, losing both games.", ["Miami played twice", "Miami lost both games"]),
        ("The mill is old, lying on the river.", ["The mill is old", "The mill lies on the river"]),
        (
            "Ann flew to Paris, becoming a clerk and sparking a strike.",
            ["Ann flew to Paris", "Ann became a clerk", "Ann sparked a strike"],
        ),
        ("The towns are rich, being ports.", ["The towns are rich", "The towns are ports"]),
    ],
)
def test_a_participle_becomes_a_finite_verb(sentence, facts):
    assert split(sentence) == facts


@pytest.mark.parametrize(
    ("sentence", "facts"),
    [
        ("They teach and examine young pupils.", ["They teach and examine young pupils"]),
        ("It was compared with others (compare tin and zinc).", ["It was compared with others (compare tin and zinc)"]),
        ("The Care (Wales) (Fees) Act passed.", ["The Care (Wales) (Fees) Act passed"]),
        ("The notes were written by Ann, working with Bo.", ["The notes were written by Ann, working with Bo"]),
        ("Ann Lee (1914–1953) wrote plays.", ["Ann Lee (1914–1953) wrote plays"]),
        ("| Ann Lee (pilot) | 12 May |", ["| Ann Lee (pilot) | 12 May |"]),
        (
            "Neither Ann nor Bo won the prize (although Ann bid in 1915 and Bo bid in 1937).",
            ["Neither Ann nor Bo won the prize", "Ann bid in 1915", "Bo bid in 1937"],
        ),
        ("He swam in San Diego–Tijuana.", ["He swam in San Diego–Tijuana"]),
        ("She lives in Cork, Ireland.", ["She lives in Cork", "Cork is in Ireland"]),
        ("The rent was paid to Vale Ltd, Dublin.", ["The rent was paid to Vale Ltd", "Vale Ltd is in Dublin"]),
        ("Ann is an able clerk and actor.", ["Ann is an able clerk", "Ann is an actor"]),
        ("It has ten towns (all ports).", ["It has ten towns", "ten towns are all ports"]),
        ("It cut off (by land) Cork and Galway.", ["It cut off (by land) Cork", "It cut off (by land) Galway"]),
    ],
)
def test_objects_names_and_brackets_stay_whole(sentence, facts):
    assert split(sentence) == facts


@pytest.mark.parametrize(
    ("sentence", "facts"),
    [
        ("She sold a mill that burned in May.", ["She sold a mill", "a mill burned in May"]),
        ("Never sell a mill that burned in May.", ["Never sell a mill that burned in May"]),
        ("She must not sell mills that burned in May.", ["She must not sell mills that burned in May"]),
        ("She did not sell a mill which lost money.", ["She did not sell a mill which lost money"]),
        ("She must sell the mill that burned in May.", ["She must sell the mill", "the mill burned in May"]),
    ],
)
def test_what_need_not_exist_is_not_said_to_be(sentence, facts):
    assert split(sentence) == facts


@pytest.mark.parametrize(
    ("sentence", "facts"),
    [
        (
            "The crude product was dissolved in ethanol, using 20 mL for each gram, and boiled gently.",
            {"The crude product was dissolved in ethanol, using 20 mL for each gram, and boiled gently"},
        ),
        (
            "After the ether had evaporated, the residue, which weighed 1.2 g, was washed.",
            {"After the ether had evaporated, the residue was washed", "the residue weighed 1.2 g"},
        ),
        (
            "The crystals were collected by suction, washed with cold water.",
            {"The crystals were collected by suction", "The crystals were washed with cold water"},
        ),
    ],
)
def test_what_no_verb_governs_falls_back_to_its_clause(sentence, facts):
    assert set(split(sentence)) == facts


def test_a_content_word_that_no_fact_has_brings_the_whole_clause_back():
    text = "Refilled by tap; nobody, alas, knew."
    said = " ".join(split(text))
    assert all(word in said for word in ("Refilled", "tap", "nobody", "alas", "knew"))


def test_the_facts_do_not_depend_on_what_was_parsed_before():
    texts = ["Ada won and left.", "The mill, sold in May, burnt down.", "Ice melts; steam rises."]
    first = [split(text) for text in texts]
    parse.cache_clear()
    assert [split(text) for text in reversed(texts)] == first[::-1]


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """A machine whose packages lack the parser's data: another place is searched."""
    monkeypatch.setattr(parser, "PUBLISHED", "no_such_package_a")
    monkeypatch.setattr(parser, "REPACKED", "no_such_package_b")
    for cached in (parser._located, parser._language, parser.parse):
        cached.cache_clear()
    yield
    monkeypatch.undo()
    for cached in (parser._located, parser._language, parser.parse):
        cached.cache_clear()


def test_without_the_parser_each_sentence_cut_at_semicolons_is_one_fact(bare):
    found = decompose("Ada won, and Bea lost; Cleo left at ten. He stayed [cite_1].")
    assert [[f.text for f in c.facts] for c in found.clauses] == [
        ["Ada won, and Bea lost"],
        ["Cleo left at ten"],
        ["He stayed"],
    ]
    assert "requirements-weights.txt" in parser.absence()


def test_other_files_than_the_published_ones_are_refused(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "config.cfg").write_text("[nlp]")
    before = parser.digest(tmp_path / "data")
    (tmp_path / "data" / "config.cfg").write_text("[nlp]\n")
    assert parser.digest(tmp_path / "data") != before


def test_a_year_behind_a_comma_is_no_second_subject():
    assert not any(fact.startswith("2007") for fact in split("The first plane was shown on July 8, 2007 at the plant."))


def test_the_parts_of_a_passive_series_share_its_subject():
    assert split("The product was washed with cold ethanol, dried under vacuum and weighed.") == [
        "The product was washed with cold ethanol",
        "The product was dried under vacuum",
        "The product was weighed",
    ]
    assert split("The clerk, trained in Cork and hired in May, was dismissed.") == [
        "The clerk was dismissed",
        "The clerk was trained in Cork",
        "The clerk was hired in May",
    ]


def test_half_a_character_does_no_harm():
    assert split("The film won \ud800 in 1999; it opened in May.") == ["The film won \ud800 in 1999; it opened in May"]


@pytest.mark.parametrize("text", ["The passages do not say. [cite_1]", NOTHING_CLOSE])
def test_a_refusal_claims_nothing(text):
    assert decompose(text).clauses == ()


@pytest.mark.parametrize(
    ("sentence", "facts"),
    [
        (
            "If the mill stops, check the belt and restart the engine.",
            ["If the mill stops, check the belt", "If the mill stops, restart the engine"],
        ),
        (
            "The loan, if granted, will cost 90 euros and run for a year.",
            ["The loan, if granted, will cost 90 euros", "The loan, if granted, will run for a year"],
        ),
        (
            "Had the gate been shut, the well would have filled and the mill would have stopped.",
            [
                "Had the gate been shut, the well would have filled",
                "Had the gate been shut, the mill would have stopped",
            ],
        ),
        (
            "According to Ann, the sale saved the mill but hurt the town.",
            ["According to Ann, the sale saved the mill", "According to Ann, the sale hurt the town"],
        ),
        (
            "Without rain, the crops fail and the wells dry up.",
            ["Without rain, the crops fail", "Without rain, the wells dry up"],
        ),
        (
            "A deal is made when one side offers it and the other accepts it.",
            ["A deal is made when one side offers it and the other accepts it"],
        ),
    ],
)
def test_a_condition_in_front_holds_for_each_part(sentence, facts):
    assert split(sentence) == facts


@pytest.mark.parametrize(
    ("sentence", "facts"),
    [
        (
            "Ann is the founder and owner of the mill.",
            ["Ann is the founder of the mill", "Ann is the owner of the mill"],
        ),
        (
            "She likes the price and weight of the lamp.",
            ["She likes the price of the lamp", "She likes the weight of the lamp"],
        ),
        (
            "Every clerk and pilot must wear a badge.",
            ["Every clerk must wear a badge", "Every pilot must wear a badge"],
        ),
        (
            "All clerks and pilots must wear these badges and caps.",
            [
                "All clerks must wear these badges",
                "All clerks must wear these caps",
                "All pilots must wear these badges",
                "All pilots must wear these caps",
            ],
        ),
        (
            "Doctors and nurses working at night get a bonus.",
            ["Doctors working at night get a bonus", "nurses working at night get a bonus"],
        ),
        (
            "The ban covers cars and lorries registered before 2005.",
            ["The ban covers cars", "The ban covers lorries", "cars and lorries were registered before 2005"],
        ),
        (
            "The mill sells bread and a cake that is made of rye.",
            ["The mill sells bread", "The mill sells a cake", "a cake is made of rye"],
        ),
        ("The inn has no pool and no gym.", ["The inn has no pool", "The inn has no gym"]),
    ],
)
def test_a_phrase_or_word_that_the_parts_share_is_in_each(sentence, facts):
    assert split(sentence) == facts


@pytest.mark.parametrize(
    ("sentence", "facts"),
    [
        ("He was both a gifted clerk and an able pilot.", ["He was a gifted clerk", "He was an able pilot"]),
        (
            "The software supports both dark and light themes.",
            ["The software supports dark themes", "The software supports light themes"],
        ),
        (
            "She fell when both her main and reserve ropes broke.",
            ["She fell", "her main ropes broke", "her reserve ropes broke"],
        ),
        (
            "Bea completed the role because Bo died before filming ended, and all of the clerks donated the fees.",
            ["Bea completed the role because Bo died before filming ended, and all of the clerks donated the fees"],
        ),
        (
            "The rule applies to Cork and Kerry but not to Oslo.",
            ["The rule applies to Cork but not to Oslo", "The rule applies to Kerry but not to Oslo"],
        ),
    ],
)
def test_both_and_not_belong_to_no_part_alone(sentence, facts):
    assert split(sentence) == facts


@pytest.mark.parametrize(
    ("sentence", "facts"),
    [
        (
            "The filter should be cleaned weekly and replaced every six months.",
            ["The filter should be cleaned weekly", "The filter should be replaced every six months"],
        ),
        ("The cup was held in Wales and won by Bo.", ["The cup was held in Wales", "The cup was won by Bo"]),
    ],
)
def test_a_later_participle_has_the_be_that_it_shares(sentence, facts):
    assert split(sentence) == facts


@pytest.mark.parametrize(
    ("sentence", "facts"),
    [
        ("Insulin, discovered in 1921, is a hormone.", ["Insulin is a hormone", "Insulin was discovered in 1921"]),
        ("The band is a trio formed in 1993.", ["The band is a trio", "The band was formed in 1993"]),
        ("The firm, based in Cork, is a bank.", ["The firm is a bank", "The firm is based in Cork"]),
    ],
)
def test_a_participle_with_a_year_is_past(sentence, facts):
    assert split(sentence) == facts


@pytest.mark.parametrize(
    ("sentence", "facts"),
    [
        ("The form, signed by both owners, must be sent.", ["The form, signed by both owners, must be sent"]),
        ("The mill, built in 1921, must be sold.", ["The mill must be sold", "The mill was built in 1921"]),
        (
            "The margin rose to 33 percent, driven by lower costs.",
            ["The margin rose to 33 percent, driven by lower costs"],
        ),
    ],
)
def test_a_participle_stays_with_what_a_rule_asks_for_and_with_an_amount(sentence, facts):
    assert split(sentence) == facts


@pytest.mark.parametrize(
    ("sentence", "facts"),
    [
        (
            "The island's two towns, Port Hale and Essen, are linked by a ferry.",
            ["The island's two towns are linked by a ferry", "The island's two towns are Port Hale and Essen"],
        )
    ],
)
def test_a_list_that_explains_a_plural_stays_together(sentence, facts):
    assert split(sentence) == facts


@pytest.mark.parametrize(
    ("sentence", "facts"),
    [
        ("She moved to Cork, where she taught music.", ["She moved to Cork", "she taught music in Cork"]),
        ("It cost 90 euros, of which 40 euros went to Ann.", ["It cost 90 euros", "40 euros of 90 euros went to Ann"]),
        ("Yeast produces gas, which is why bread rises.", ["Yeast produces gas, which is why bread rises"]),
        ("It is a number greater than one that has no parts.", ["It is a number greater than one that has no parts"]),
    ],
)
def test_a_relative_clause_says_what_its_preposition_says(sentence, facts):
    assert split(sentence) == facts


def test_a_condition_is_not_cut_off_from_the_second_clause_that_it_holds_for():
    found = decompose("When the valve opens, the air leaves, and a mixture enters the cylinder.")
    assert [[fact.text for fact in clause.facts] for clause in found.clauses] == [
        ["When the valve opens, the air leaves", "When the valve opens, a mixture enters the cylinder"]
    ]


@pytest.mark.parametrize(
    ("sentence", "facts"),
    [
        (
            "Ann Lee (April 28, 1930 – August 3, 1983) was a clerk.",
            ["Ann Lee was a clerk", "Ann Lee lived from April 28, 1930 to August 3, 1983"],
        ),
        (
            "Sara Gilbert (born Sara Rebecca Abeles; January 29, 1975 – May 4, 2001) is an actress.",
            [
                "Sara Gilbert is an actress",
                "Sara Gilbert was born Sara Rebecca Abeles",
                "Sara Gilbert lived from January 29, 1975 to May 4, 2001",
            ],
        ),
        (
            "It shows giant clouds (GC) and was made by Bo, among others.",
            ["It shows giant clouds", "It was made by Bo, among others", "giant clouds are abbreviated as GC"],
        ),
        (
            "Cork has an Internet of Things (IoT).",
            ["Cork has an Internet of Things", "an Internet of Things is abbreviated as IoT"],
        ),
        (
            "The deal covers sales (a), service (b) and training (c).",
            ["The deal covers sales (a)", "The deal covers service (b)", "The deal covers training (c)"],
        ),
        ("Bo met Rick (Ann Lee).", ["Bo met Rick", "Bo met Rick (Ann Lee)"]),
        (
            "The speed is 30 revolutions per minute (RPM).",
            ["The speed is 30 revolutions per minute", "revolutions per minute is abbreviated as RPM"],
        ),
        ("Cork won four medals (3 gold, 1 silver).", ["Cork won four medals (3 gold, 1 silver)"]),
        ("The song was a hit in Norway (No. 11).", ["The song was a hit in Norway (No. 11)"]),
        ("The lake is 371 feet (113 m) deep.", ["The lake is 371 feet deep", "371 feet are 113 m"]),
        (
            "The Council on Tall Buildings and Urban Habitat (CTBUH) was formed in 1969.",
            [
                "The Council on Tall Buildings and Urban Habitat was formed in 1969",
                "The Council on Tall Buildings and Urban Habitat is abbreviated as CTBUH",
            ],
        ),
        (
            "Ada Berg (Norwegian: Åda; born 20 April 1969) is a pilot.",
            ["Ada Berg is a pilot", "the Norwegian for Ada Berg is Åda", "Ada Berg was born 20 April 1969"],
        ),
        ("Ann Lee (died in 1990) was a clerk.", ["Ann Lee (died in 1990) was a clerk"]),
        ("The mill (order number: 7) was sold.", ["The mill was sold", "the order number of the mill is 7"]),
        (
            "The mill (note: prices may vary) was sold.",
            ["The mill was sold", "The mill (note: prices may vary) was sold"],
        ),
        ("Wien [ˈviːn] is a city.", ["Wien is a city", "Wien is pronounced ˈviːn"]),
        (
            "Ann Lee (Cork, April 4, 1979 – New York, May 2, 2008) was a clerk.",
            ["Ann Lee was a clerk", "Ann Lee (Cork, April 4, 1979 – New York, May 2, 2008) was a clerk"],
        ),
        ("Bo Lind, Jr., was a clerk at Alma Mills, Ltd.", ["Bo Lind, Jr., was a clerk at Alma Mills, Ltd."]),
        (
            "Ann Lind is a Swedish clerk, 9th head of the bank from 1977 to 1981.",
            ["Ann Lind is a Swedish clerk", "Ann Lind is 9th head of the bank from 1977 to 1981"],
        ),
        ("The rule (which is old) applies.", ["The rule (which is old) applies"]),
        ("The price (fell by 3% in May) is low.", ["The price (fell by 3% in May) is low"]),
        (  # one place may have the other, be in it or be it
            "Bo has shops in Germany (Berlin).",
            ["Bo has shops in Germany", "Bo has shops in Germany (Berlin)"],
        ),
        (
            "Games were held in Germany (1936) and Russia (2014).",
            [
                "Games were held in Germany",
                "Games were held in Russia",
                "Games were held in Germany (1936) and Russia (2014)",
            ],
        ),
    ],
)
def test_brackets_say_what_they_say_of_the_noun_before_them(sentence, facts):
    assert split(sentence) == facts


@pytest.mark.parametrize(
    ("sentence", "facts"),
    [
        ("The old mill—opened in 1999—was sold.", ["The old mill was sold", "The old mill was opened in 1999"]),
        ("The trial — a study of two drugs — ended.", ["The trial ended", "The trial is a study of two drugs"]),
        (
            "He met both clubs in Cork—Alma and Bor—in May.",
            ["He met both clubs in Cork in May", "both clubs in Cork are Alma and Bor"],
        ),
        ("The king—he was eleven—stayed away.", ["The king stayed away", "he was eleven"]),
        ("The king (nobody was hurt) stayed away.", ["The king stayed away", "nobody was hurt"]),
        ("The bank—which had lent the money—failed.", ["The bank failed", "The bank had lent the money"]),
        ("It cost 3—4 euros in 1980—1990.", ["It cost 3—4 euros in 1980—1990"]),
    ],
)
def test_a_pair_of_dashes_is_read_as_brackets_on_the_whole_phrase_before_it(sentence, facts):
    assert split(sentence) == facts


def test_a_sentence_after_a_dash_is_a_clause_with_its_pronoun_resolved():
    text = "The fee is waived — it had been 40 euros. The river rose—nobody was hurt."
    found = decompose(text).clauses
    assert [clause.text for clause in found] == [text[0:17], text[20:41], text[42:56], text[57:]]
    assert [fact.text for clause in found for fact in clause.facts] == [
        "The fee is waived",
        "The fee had been 40 euros",
        "The river rose",
        "nobody was hurt",
    ]


@pytest.mark.parametrize(
    "sentence", ["Ann left—because it was cold.", "It rained—the first time in May.", "The bank failed—which was sad."]
)
def test_other_words_after_a_dash_stay_in_their_clause(sentence):
    assert [clause.text for clause in decompose(sentence).clauses] == [sentence]


def test_dashes_without_end_are_read_in_time_and_copied_words_are_where_they_were():
    for text in ("a—" * 4000, "a —" + " b" * 4000 + "—c"):
        assert without_brackets(text)[1] == sorted(set(without_brackets(text)[1]))
    text = "The old mill—opened in 1999—was sold."
    for words, pieces in split_with_pieces(text):
        assert all(words[a : a + length] == text[b : b + length] for a, b, length in pieces)


@pytest.mark.parametrize(
    ("sentence", "facts"),
    [
        ("Home is a song by Ann Lee, released in 1938.", ["Home is a song by Ann Lee", "Home was released in 1938"]),
        (
            "Monta is one of the nine river states, located in the north.",
            ["Monta is one of the nine river states", "Monta is located in the north"],
        ),
        (
            "A plan is a type of map drawn by hand at a large scale.",
            ["A plan is a type of map", "A plan is drawn by hand", "A plan is drawn at a large scale"],
        ),
        ("The Sharks are a team based in Cork.", ["The Sharks are a team", "The Sharks are based in Cork"]),
        ("Anna and Ben are clerks hired in 2010.", ["Anna and Ben are clerks", "Anna and Ben were hired in 2010"]),
        (
            "Rick and Mary is a play by Ann Lee, shown in 1813.",
            ["Rick and Mary is a play by Ann Lee", "Rick and Mary was shown in 1813"],
        ),
        (
            "Ann, born in 1950, and Bo, born in 1955, were friends.",
            ["Ann and Bo were friends", "Ann was born in 1950", "Bo was born in 1955"],
        ),
        (
            "Built in 1901, the mill and the port are listed.",
            ["the mill is listed", "the port is listed", "the mill was built in 1901"],
        ),
    ],
)
def test_a_participle_tells_of_the_thing_that_is_said_to_be_something(sentence, facts):
    assert split(sentence) == facts


@pytest.mark.parametrize(
    "sentence",
    [
        "The act is the title given to the law",  # which title, the participle alone tells
        "Apollo was the ship that landed two people on the Moon",
        "There were 224 passengers and crew aboard the ship",
        "It was sold for the price that Ann paid",
        "The Prince and Me is a film",  # one thing, says "is"
        "The state consists of two islands and a coast",
        "The farmers left the port, which led to the loss of the mill",  # the event led to it
        "The wall names soldiers from Norway who died in the war",  # the soldiers did
        "They played in Italy and Paris, France",
    ],
)
def test_what_alone_tells_which_one_is_meant_stays(sentence):
    assert split(f"{sentence}.") == [sentence]


@pytest.mark.parametrize(
    ("sentence", "facts"),
    [
        (
            "The film was co-written by Ann and co-produced by Bo.",
            ["The film was co-written by Ann", "The film was co-produced by Bo"],
        ),
        (
            "Silver claims to have served in the navy and lost his leg.",
            ["Silver claims to have served in the navy", "Silver claims to have lost his leg"],
        ),
        (
            "The band has made six albums, toured Norway and sold 10 million records.",
            ["The band has made six albums", "The band has toured Norway", "The band has sold 10 million records"],
        ),
        (
            "The company has sold the mill, and the price collapsed.",
            ["The company has sold the mill", "the price collapsed"],
        ),
        (
            "Water, salt and flour are mixed, kneaded for 10 minutes and left to rise.",
            [
                "Water is mixed",
                "salt is mixed",
                "flour is mixed",
                "Water is kneaded for 10 minutes",
                "Water is left to rise",
            ],
        ),
        (
            "The court held that the treaty failed and in any case the claim was late.",
            ["The court held that the treaty failed", "The court held that in any case the claim was late"],
        ),
        (
            "The bridge links the city of Cork, Ireland – the port of the south – to Bonn.",
            ["The bridge links the city of Cork to Bonn", "Cork is in Ireland", "Cork is the port of the south"],
        ),
    ],
)
def test_words_with_hyphens_and_marks_around_a_part_stay_whole(sentence, facts):
    assert split(sentence) == facts


def test_a_past_that_may_belong_to_the_passive_before_it_is_not_said_alone():
    assert split("The plan was approved in May by the board and sent to the states.") == [
        "The plan was approved in May and sent to the states",
        "The plan was approved by the board and sent to the states",
    ]
    assert split("The mill was built in May and lost its roof.") == [
        "The mill was built in May",
        "The mill lost its roof",
    ]


@pytest.mark.parametrize(
    ("sentence", "facts"),
    [
        ("Ann Lee (right) won a prize.", ["Ann Lee (right) won a prize"]),
        (
            "The Australian and New Zealand governments acted in March.",
            ["The Australian and New Zealand governments acted in March"],
        ),
        (
            "Many countries have closed schools and kindergartens to minimise COVID19, but the role is unclear.",
            [
                "Many countries have closed schools",
                "the role is unclear",
                "Many countries have closed schools and kindergartens to minimise COVID19, but the role is unclear",
            ],
        ),
        (
            "Options include hydroxychloroquine, tocilizumab, remdesivir, lopinavir (Kaletra), and nitazoxanide.",
            [
                "Options include hydroxychloroquine",
                "Options include tocilizumab",
                "Options include remdesivir",
                "Options include lopinavir",
                "Options include nitazoxanide",
                "lopinavir is Kaletra",
            ],
        ),
    ],
)
def test_pictures_governments_lists_and_misread_nouns(sentence, facts):
    assert split(sentence) == facts


@pytest.mark.parametrize(
    ("sentence", "facts"),
    [
        (
            "In German, the word means stone and is not used for a cup.",
            ["In German, the word means stone", "In German, the word is not used for a cup"],
        ),
        ("In May, Ann came to Cork and left it in June.", ["In May, Ann came to Cork", "Ann left it in June"]),
        ("He was a weak and incompetent leader.", ["He was a weak leader", "He was an incompetent leader"]),
        ("U.S. Route 1 (US 1) is a major road.", ["U.S. Route 1 is a major road", "U.S. Route 1 is US 1"]),
        (
            "Age and other illnesses are reported as predictors of death.",
            ["Age and other illnesses are reported as predictors of death"],
        ),
    ],
)
def test_phrases_in_front_articles_and_numbered_names(sentence, facts):
    assert split(sentence) == facts


def test_what_an_apposition_says_has_its_article():
    assert split("Ann Lee, author of the series, left.") == ["Ann Lee left", "Ann Lee is an author of the series"]
    assert split("The ship sank near Cork, United Kingdom.") == [
        "The ship sank near Cork",
        "Cork is in the United Kingdom",
    ]


@pytest.mark.parametrize(
    ("sentence", "facts"),
    [
        (
            "The Vampire Diaries is a series developed by Ann Lee.",
            ["The Vampire Diaries is a series", "The Vampire Diaries is developed by Ann Lee"],
        ),
        (
            "Lead and tin, the active materials on the plates, react with acid.",
            ["Lead and tin, the active materials on the plates, react with acid"],
        ),
    ],
)
def test_what_is_said_of_one_thing_or_of_several_agrees_with_them(sentence, facts):
    assert split(sentence) == facts


@pytest.mark.parametrize(
    ("sentence", "facts"),
    [
        ("In people who have had chickenpox, the virus stays.", ["In people who have had chickenpox, the virus stays"]),
        (
            "Experts praised the acting of Ann Lee, Elle Fanning, Bo Ray and Cy Fox, but disliked the plot.",
            ["Experts praised the acting of Ann Lee, Elle Fanning, Bo Ray and Cy Fox", "Experts disliked the plot"],
        ),
    ],
)
def test_a_class_that_a_clause_picks_out_and_a_series_of_names_stay_whole(sentence, facts):
    assert split(sentence) == facts


def test_letters_in_brackets_are_an_abbreviation_though_they_spell_a_word():
    assert split("Ann is a clerk of the World Health Organization (WHO).") == [
        "Ann is a clerk of the World Health Organization",
        "the World Health Organization is abbreviated as WHO",
    ]


@pytest.mark.parametrize(
    ("sentence", "facts"),
    [
        (
            "The mayor, as well as the clerk, signed the deed.",
            ["The mayor signed the deed", "the clerk signed the deed"],
        ),
        (
            "The mill sold oats as well as rye and barley.",
            ["The mill sold oats", "The mill sold rye", "The mill sold barley"],
        ),
    ],
)
def test_as_well_as_leaves_no_word_behind(sentence, facts):
    assert split(sentence) == facts


@pytest.mark.parametrize(
    "sentence",
    [
        "Sales grew in Spain but not in Italy",
        "The treaty was signed by the king, not by the mayor",
        "Rents rose by 4% in Cork and 6% in Kerry",
        "Credits were EUR 412,000 in 2022 and EUR 968,000 in 2023",
    ],
)
def test_phrases_of_which_one_is_denied_or_has_an_amount_of_its_own_stay_together(sentence):
    assert split(f"{sentence}.") == [sentence]


@pytest.mark.parametrize(
    ("sentence", "facts"),
    [
        ("The dam broke, killing nine sheep.", ["The dam broke, killing nine sheep"]),
        (
            "The council passed a law, allowing shops to open on Sundays.",
            ["The council passed a law, allowing shops to open on Sundays"],
        ),
        ("Ann left the firm in 1990, becoming a pilot.", ["Ann left the firm in 1990", "Ann became a pilot"]),
        ("The firm, opening a plant in May, can hire Bo.", ["The firm can hire Bo", "The firm opens a plant in May"]),
    ],
)
def test_what_came_of_an_event_is_not_said_of_its_subject(sentence, facts):
    assert split(sentence) == facts


@pytest.mark.parametrize(
    "sentence",
    [
        "The shop sells bread from France and wine from Italy",
        "She reads books about birds and films about trees",
        "The box contains a manual in French, a cable and a battery",
        "She bought a dress with pockets, a scarf and a belt",
    ],
)
def test_a_series_behind_a_phrase_is_not_of_the_noun_inside_it(sentence):
    assert split(f"{sentence}.") == [sentence]


def test_a_series_inside_a_phrase_is_taken_apart():
    assert split("He worked in towns and villages in Ireland.") == [
        "He worked in towns in Ireland",
        "He worked in villages in Ireland",
    ]


@pytest.mark.parametrize(
    ("sentence", "facts"),
    [
        (
            "The court held that the deed was valid and rejected the appeal.",
            ["The court held that the deed was valid and rejected the appeal"],
        ),
        (
            "The clerk said that the safe was old and that the lock stuck.",
            ["The clerk said that the safe was old", "The clerk said that the lock stuck"],
        ),
    ],
)
def test_a_later_verb_that_may_be_the_speakers_stays(sentence, facts):
    assert split(sentence) == facts


@pytest.mark.parametrize(
    ("sentence", "facts"),
    [
        (
            "If it rains, the match is cancelled and tickets are refunded.",
            ["If it rains, the match is cancelled", "If it rains, tickets are refunded"],
        ),
        (
            "If a claim is late, it is refused and costs are charged.",
            ["If a claim is late, it is refused", "If a claim is late, costs are charged"],
        ),
        ("The roof leaks in winter, when the snow melts.", ["The roof leaks in winter, when the snow melts"]),
        ("It was the clerk, not the owner, who kept it.", ["It was the clerk, not the owner, who kept it"]),
    ],
)
def test_a_condition_and_a_denial_are_not_lost(sentence, facts):
    assert split(sentence) == facts
