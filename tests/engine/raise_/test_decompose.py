"""The decomposition parser: every layout that models write, and what cannot be read."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from engine.methods.raise_.steps import decompose_prompt, parse, search_prompt
from engine.methods.raise_.values import Problem, SubQuestion, parse_choice, stated_answer
from engine.prompts import examples

TWO = [("What is momentum?", "conservation of momentum"), ("How far does it slide?", "friction stopping distance")]
FIRST = "What is momentum? | conservation of momentum"
SECOND = "How far does it slide? | friction stopping distance"
LAYOUTS = {
    "as asked": f"{FIRST}\n{SECOND}",
    "numbered": f"1. {FIRST}\n2) {SECOND}",
    "bracketed": f"(1) {FIRST}\n(2) {SECOND}",
    "lettered": f"a) {FIRST}\nb) {SECOND}",
    "bulleted": f"- {FIRST}\n* {SECOND}",
    "prose around": (f"Here is the plan:\n\n1. {FIRST}\n2. {SECOND}\n\nThese two suffice."),
    "the paper's": (
        "Subquestion 1: What is momentum?\nSearch Query for Subquestion 1: conservation of momentum\n\n"
        "Subquestion 2: How far does it slide?\nSearch Query for Subquestion 2: friction stopping distance"
    ),
    "the paper's in bold": (
        '**Subquestion 1:** What is momentum?\n**Search Query for Subquestion 1:** "conservation of momentum"\n'
        "**Subquestion 2:** How far does it slide?\n**Search Query for Subquestion 2:** friction stopping distance"
    ),
    "queries after all": (
        "Subquestion 1: What is momentum?\nSubquestion 2: How far does it slide?\n"
        "Search Query for Subquestion 2: friction stopping distance\n"
        "Search Query for Subquestion 1: conservation of momentum"
    ),
    "labels on their own lines": (
        "Subquestion 1:\nWhat is momentum?\nSearch Query for Subquestion 1:\nconservation of momentum\n"
        "Subquestion 2:\nHow far does it slide?\nSearch Query for Subquestion 2:\nfriction stopping distance"
    ),
    "short labels": (
        "Q1: What is momentum?\n   - Search query: conservation of momentum\n"
        "Q2: How far does it slide?\n   - Search query: friction stopping distance"
    ),
    "steps": (
        "Step 1 - What is momentum?\nQuery: conservation of momentum\n"
        "Step 2 - How far does it slide?\nQuery: friction stopping distance"
    ),
    "table": (f"| # | Question | Query |\n|---|---|---|\n| 1 | {FIRST} |\n| 2 | {SECOND} |"),
    "fenced": f"```\n{FIRST}\n{SECOND}\n```",
    "opening and talk": f"Sure, here is the plan:\n{FIRST}\n{SECOND}\n\nWould you like me to answer these?",
    "windows lines": f"{FIRST}\r\n{SECOND}\r\n",
    "no spaces at the bar": f"{FIRST}\n{SECOND}".replace(" | ", "|"),
}


@pytest.mark.parametrize("reply", LAYOUTS.values(), ids=LAYOUTS)
def test_every_layout_gives_the_same_two(reply):
    found, notes = parse(reply)
    assert [(s.question, s.query) for s in found] == TWO
    assert notes == ()


def test_a_missing_query_is_the_sub_question_and_said():
    found, notes = parse("1. What is momentum?\n2. How far does it slide? | friction")
    assert [s.query for s in found] == ["What is momentum?", "friction"]
    assert "1 of the sub-questions had no" in notes[0]


def test_one_sub_question():
    found, notes = parse("Why does ice float? | density of ice")
    assert [s.question for s in found] == ["Why does ice float?"]
    assert notes == ()


def test_thirty_are_read_and_a_bound_is_said():
    reply = "\n".join(f"{i}. What is part {i}? | part {i}" for i in range(1, 31))
    assert len(parse(reply)[0]) == 30
    assert parse(reply)[1] == ()
    found, notes = parse(reply, most=4)
    assert [s.query for s in found] == ["part 1", "part 2", "part 3", "part 4"]
    assert notes == ("The reply has 30 sub-questions; only the first 4 are used.",)


def test_a_loop_of_one_line_is_one_sub_question():
    found, notes = parse("What is heat? | heat\n" * 20)
    assert len(found) == 1
    assert notes == ("19 repeated sub-questions were left out.",)


@pytest.mark.parametrize(
    "reply", ["", "  \n", "I cannot help with that.", "(A) 36 g\n(B) 9.0 g", "|---|---|", "```\n```"]
)
def test_what_names_no_sub_question_is_unparsed(reply):
    assert parse(reply)[0] == ()


def test_bars_and_stars_inside_a_question_stay():
    found, _ = parse("1. What is |x| for x = 2*y? | absolute value")
    assert (found[0].question, found[0].query) == ("What is |x| for x = 2*y?", "absolute value")


@given(st.text(max_size=300))
def test_any_text_is_read_without_an_error(reply):
    found, _ = parse(reply)
    assert all(s.question.strip() and s.query.strip() for s in found)
    assert len({s.question.casefold() for s in found}) == len(found)


@pytest.mark.parametrize("piece", [" ", "\t", "query 7: x\n", "question ", "a | ", "**", "|", "- ", "step\n", "1."])
def test_long_replies_are_read_in_one_go(piece):
    """Reading that took the square of the length would not end here."""
    for start in ("", "question", "search query for", "step 1"):
        found, _ = parse(start + piece * 100_000 + "x", most=2)
        assert len(found) <= 2 and all(step.question.strip() for step in found)
        assert len(found) == len(parse(start + piece * 100 + "x", most=2)[0])


@pytest.mark.parametrize("piece", ["answer is ", "answer:", "(", "\\boxed{", "*"])
def test_a_long_answer_is_searched_for_its_option_in_one_go(piece):
    assert parse_choice(f"The answer is {piece * 20_000}", ("36 g", "9.0 g")) is None


def test_the_prompt_holds_the_problem_with_its_options():
    text = decompose_prompt(Problem(question="How far {?}", options=("1 m", "2 m"))).text
    assert "How far {?}\n(A) 1 m\n(B) 2 m" in text


CHOICES = {
    "The final answer is (B)": 1,
    "the final answer is (b).": 1,
    "Thus **The final answer is (C)**": 2,
    "The final answer is $\\boxed{B}$.": 1,
    "The final answer is B.": 1,
    "Answer: C": 2,
    "The final answer is (A). No: the final answer is (B).": 1,
    "The final answer is 9.0 g": 1,
    "The final answer is a mass of 36 g": None,
    "The final answer is A mass of 36 g": None,
    "The final answer is (E)": None,
    "The final answer is \\(\\boxed{B}\\)": 1,
    "Final Answer: \\[ \\boxed{B} \\]": 1,
    "Final Answer:\n\\[\n\\boxed{B}\n\\]": 1,
    "The answer is option (B)": 1,
    "The answer is 'B'.": 1,
    "The answer is therefore (B)": 1,
    "The final answer is (9.0 g).": 1,
    "The final answer is 36 g or 9.0 g": None,
    "The mass of the salt is 9.0 g.": 1,
    "Multiply.\n\n**9.0 g**": 1,
    "The mass of the salt is not 9.0 g.": None,
    "The mass of the salt cannot be 9.0 g.": None,
    "It is not clear whether the value is 36 g.": None,
    "If the temperature is 36 g": None,
    "The mass of the salt is 19.0 g.": None,
    "It must be (B)": None,
    "": None,
}


@pytest.mark.parametrize(("reply", "expected"), CHOICES.items(), ids=range(len(CHOICES)))
def test_the_option_stated_last_is_the_choice(reply, expected):
    assert parse_choice(reply, ("36 g", "9.0 g", "20 g")) == expected


SPECIES = ("S. aureus", "E. coli", "B. subtilis", "C. elegans", "yeast")


@pytest.mark.parametrize(
    ("reply", "options", "expected"),
    [
        ("The final answer is E. coli.", SPECIES, 1),
        ("The final answer is E. coli or yeast.", SPECIES, None),
        ("The final answer is E.", SPECIES, 4),
        ("The final answer is B. subtilis", ("B. subtilis", "E. coli"), 0),
        ("The final answer is A, B and C", ("A and B", "B and C", "A, B and C"), 2),
        ("The final answer is (S)-2-butanol.", ("(R)-2-butanol", "(S)-2-butanol"), 1),
        ("The final answer is (A).", ("B", "A"), 0),
        ("The final answer is (4).", ("2", "3", "4", "5"), 2),
        ("The child has the gene with a probability of 1/4, so it is 1/16.", ("1/4", "1", "16", "1/16"), 3),
        ("The loss in the line is 12.5 W.", ("5 W", "2.5 W", "125 W"), None),
        ("It is so.", ("", "", ""), None),
    ],
)
def test_the_words_of_an_option_name_it_before_any_letter_in_them(reply, options, expected):
    assert parse_choice(reply, options) == expected


@pytest.mark.parametrize(
    "reply",
    ["(B)", "B", "B.", "**B**", "B) 12 V", "(B) 12 V", "Option B", "The correct option is (B).", "Final Answer\n(B)"],
)
def test_a_last_line_of_a_letter_alone_names_its_option(reply):
    assert parse_choice(f"Ohm's law gives the voltage.\n{reply}", ("3 V", "12 V", "8 V")) == 1


@pytest.mark.parametrize("reply", ["B or A", "(A) or (B)", "A battery of 12 V is meant", "I", "B) 8 V", "(D)"])
def test_a_last_line_of_more_than_a_letter_names_none(reply):
    assert parse_choice(reply, ("3 V", "12 V", "8 V")) is None


@pytest.mark.parametrize("said", ["(A) or (B)", "(A), (B), or (C)", "(A)(B)(C)", "(A) / (B)"])
def test_an_answer_of_several_letters_names_none(said):
    assert parse_choice(f"The final answer is {said}.", ("3 V", "12 V", "8 V")) is None


def test_an_answer_with_a_word_on_another_option_or_a_citation_names_one():
    options = ("3 V", "12 V", "8 V")
    assert parse_choice("The correct answer is (B), (A) is wrong because it is too low.", options) == 1
    assert parse_choice("The answer is (B) [a].", options) == 1


def test_a_letter_that_is_an_option_itself_is_read_as_one():
    assert parse_choice("C", ("H", "C", "O", "N")) == 1 and parse_choice("(C)", ("H", "C", "O", "N")) == 2


def test_a_query_may_follow_its_sub_question_in_the_same_line():
    assert parse("1) Sub-question: What is X? Query: x of y")[0] == (
        SubQuestion(question="What is X?", query="x of y"),
    )


def test_a_reply_that_was_cut_off_ends_with_no_option():
    assert parse_choice("so the current is 5", ("5", "50")) == 0
    assert parse_choice("so the current is 5", ("5", "50"), finished=False) is None


def test_an_open_answer_is_what_it_states():
    assert stated_answer("Because. The final answer is: 18 g") == "18 g"
    assert stated_answer("18 g") == "18 g"
    assert stated_answer("Unsaid. The final answer is") == "Unsaid. The final answer is"


def test_examples_stand_as_turns_between_the_instruction_and_the_problem():
    problem = Problem(question="Why is the sky blue?")
    none, two = decompose_prompt(problem), decompose_prompt(problem, 2)
    assert (two.segments[0], two.segments[-1]) == (none.segments[0], none.segments[-1])
    shown = two.segments[1:-1]
    assert [(s.kind, s.role) for s in shown] == [("demonstration", "user"), ("demonstration", "assistant")] * 2
    assert decompose_prompt(problem, 1).segments == (*two.segments[:3], two.segments[-1])
    assert decompose_prompt(problem, 9) == two


def test_every_example_of_a_decomposition_is_in_the_form_that_is_asked_for():
    for example in examples()["sub_questions"]:
        found, notes = parse(example.reply)
        assert len(found) >= 2 and not notes
        assert all(sub.query != sub.question for sub in found)


def test_step_back_is_shown_principles():
    sub = SubQuestion(question="Why is the sky blue?", query="sky")
    assert [s.kind for s in search_prompt("principle", sub, 2).segments].count("demonstration") == 4
    assert search_prompt("principle", sub).segments[-1].text == search_prompt("principle", sub, 2).segments[-1].text
