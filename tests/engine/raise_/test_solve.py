"""RAISE and its baselines with a scripted model: order of calls, what each prompt holds, malformed replies, costs."""

from __future__ import annotations

import math
import threading

import pytest

from engine.core.errors import Cancelled, CannotDo, InputError, ModelError
from engine.core.progress import Watch
from engine.core.values import Hit, Passage
from engine.methods.raise_.solve import (
    EMPTY_ANSWER,
    NO_OPTION,
    NOTHING_KEPT,
    OPTION_ASKED,
    Means,
    known_calls,
    solutions,
    solve,
)
from engine.methods.raise_.steps import chain_of_thought_prompt, final_answer_prompt
from engine.methods.raise_.values import METHODS, Problem, Solution, method_of
from engine.models.protocols import Can
from engine.models.scripted import ScriptedScorer, ScriptedWriter

PROBLEM = Problem(question="How far does the pair slide?", options=("3.1 m", "1.0 m"))
PLAN = "What speed has the pair? | momentum search\nHow far does it go? | stopping search"
GUESSES = {
    "What speed has the pair?": "GUESS-ONE momentum is conserved",
    "How far does it go?": "GUESS-TWO work of friction",
}
TEXTS = {"near": "NEAR passage", "middle": "MIDDLE passage", "far": "FAR passage"}


def passage(name: str) -> Passage:
    text = TEXTS[name]
    return Passage(id=name, document=name, title="", ordinal=0, start=0, end=len(text), text=text)


class Finder:
    """Three passages at 0.9, 0.5 and 0.1 for every text; remembers what was searched."""

    def __init__(self, scores=(0.9, 0.5, 0.1)):
        self.scores = scores
        self.texts = []

    def __call__(self, text):
        self.texts.append(text)
        return tuple(
            Hit(passage=passage(n), score=s, parts={"dense": s}) for n, s in zip(TEXTS, self.scores, strict=True)
        )


def reply(prompt: str) -> str:
    """The script's reply to each kind of prompt."""
    if prompt.startswith("You plan"):
        return PLAN
    sub = next((q for q in GUESSES if f"Question: {q}" in prompt), "")
    if prompt.startswith("You prepare a search"):
        return GUESSES.get(sub, "GUESS-DIRECT")
    if prompt.startswith("You name what"):
        return f"PRINCIPLE of {sub}"
    if prompt.startswith("You write the paragraph"):
        return f"PARAGRAPH for {sub}"
    if prompt.startswith("You answer one step"):
        return {"What speed has the pair?": "ANSWER-ONE", "How far does it go?": "ANSWER-TWO"}[sub]
    return "So the final answer is (B)"


def run(name: str, replies=reply, find=None, threshold=0.4, **means):
    writer = ScriptedWriter(replies)
    found = find or Finder()
    method = method_of(name)
    return solve(PROBLEM, method, Means(model=writer, find=found, threshold=threshold, **means)), writer, found


def test_raise_calls_in_the_order_of_algorithm_1():
    solution, writer, find = run("raise")
    purposes = [asked.purpose for asked in solution.calls]
    assert purposes == ["sub-questions", "logical query", "sub-answer", "logical query", "sub-answer", "answer"]
    assert [asked.prompt.text for asked in solution.calls] == writer.prompts
    assert find.texts == list(GUESSES.values())
    assert (solution.state, solution.choice) == ("done", 1)


def test_what_each_raise_prompt_holds():
    _, writer, _ = run("raise")
    plan, query_one, step_one, query_two, step_two, final = writer.prompts
    assert all(option in plan for option in PROBLEM.options)
    for query, other in ((query_one, "How far does it go?"), (query_two, "What speed has the pair?")):
        assert PROBLEM.question not in query
        assert not any(option in query for option in PROBLEM.options)
        assert other not in query
        assert "Passage" not in query
    assert "momentum search" in query_one
    assert "stopping search" in query_two
    for step in (step_one, step_two):
        assert PROBLEM.text in step
        assert "NEAR passage" in step
        assert "MIDDLE passage" in step
        assert "FAR passage" not in step
        assert "GUESS" not in step
    assert "Steps so far: none" in step_one
    assert "How far does it go?" not in step_one
    assert "1. What speed has the pair?\nANSWER-ONE" in step_two
    assert step_two.endswith("Question: How far does it go?\nAnswer:")
    assert PROBLEM.text in final
    assert "1. What speed has the pair?\nANSWER-ONE\n2. How far does it go?\nANSWER-TWO" in final
    assert not any(text in final for text in TEXTS.values())
    assert "GUESS" not in final


def test_an_open_problem_shows_no_options():
    writer = ScriptedWriter(reply)
    solve(Problem(question="How far?"), method_of("raise"), Means(model=writer, find=Finder()))
    assert not any("(A)" in prompt for prompt in writer.prompts)


def test_t_splits_the_hits_and_both_parts_are_kept():
    solution, _, _ = run("raise", threshold=0.5)
    for step in solution.steps:
        assert [h.passage.id for h in step.kept] == ["near", "middle"]
        assert [h.passage.id for h in step.dropped] == ["far"]


def test_a_step_with_nothing_kept_is_answered_from_the_earlier_ones_and_says_so():
    solution, writer, _ = run("raise", threshold=0.95)
    assert all(step.kept == () and step.notes == (NOTHING_KEPT,) for step in solution.steps)
    assert "Passage 1" not in writer.prompts[4]
    assert "ANSWER-ONE" in writer.prompts[4]
    assert solution.state == "done"


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.name)
def test_the_number_of_calls_is_what_the_table_says(method):
    solution, writer, find = run(method.name)
    assert len(writer.prompts) == method.calls(2) == solution.cost.calls
    assert (
        len(find.texts) == solution.cost.searches == (0 if method.searches is None else 2 if method.decomposed else 1)
    )
    assert (solution.state, solution.choice) == ("done", 1)
    assert Solution.from_dict(solution.to_dict()) == solution


SEARCHED = {
    "raise": list(GUESSES.values()),
    "raise-without-t": list(GUESSES.values()),
    "raise-direct": ["GUESS-DIRECT"],
    "cot-rag": [PROBLEM.question],
    "least-to-most-rag": list(GUESSES),
    "step-back-rag": [f"PRINCIPLE of {q}" for q in GUESSES],
    "hyde": [f"PARAGRAPH for {q}" for q in GUESSES],
    "cot": [],
    "least-to-most": [],
    "step-back": [],
}


@pytest.mark.parametrize("name", SEARCHED)
def test_what_each_method_searches(name):
    assert run(name)[2].texts == SEARCHED[name]


def test_per_sub_question_the_retrieval_methods_differ_in_the_text_searched_and_t_only():
    prompts = {}
    for name in ("raise", "raise-without-t", "least-to-most-rag", "step-back-rag", "hyde"):
        solution, _, _ = run(name, threshold=0.0)  # a T that drops nothing: what is left is the search text
        prompts[name] = [a.prompt for a in solution.calls if a.purpose in ("sub-questions", "sub-answer", "answer")]
    assert all(found == prompts["raise"] for found in prompts.values())


def test_only_raise_and_raise_direct_drop():
    for name in SEARCHED:
        solution, _, _ = run(name, threshold=0.4)
        dropped = any(step.dropped for step in solution.steps)
        assert dropped == (name in ("raise", "raise-direct")), name


def test_step_back_gives_the_principle_to_the_answer_and_searches_nothing():
    _, writer, find = run("step-back")
    assert "PRINCIPLE of What speed has the pair?" in writer.prompts[2]
    assert find.texts == []
    assert not any("PRINCIPLE" in prompt for prompt in run("step-back-rag")[1].prompts)


def test_direct_methods_see_problem_options_and_their_passages():
    assert [PROBLEM.text in p for p in run("cot")[1].prompts] == [True]
    assert "Passage" not in run("cot")[1].prompts[0].replace("passages", "")
    assert "FAR passage" in run("cot-rag")[1].prompts[0]
    assert "FAR passage" not in run("raise-direct")[1].prompts[1]
    assert "NEAR passage" in run("raise-direct")[1].prompts[1]


# Malformed replies


def says(purpose_start: str, text: str):
    """The script with one kind of reply replaced."""
    return lambda prompt: text if prompt.startswith(purpose_start) else reply(prompt)


def test_an_unreadable_plan_ends_the_run_in_a_visible_state():
    solution, writer, find = run("raise", says("You plan", "I would rather not."))
    assert (solution.state, solution.steps, solution.answer, solution.choice) == ("unparsed", (), "", None)
    assert solution.decomposition is not None
    assert solution.decomposition.asked.reply == "I would rather not."
    assert (len(writer.prompts), find.texts) == (1, [])


@pytest.mark.parametrize(
    ("name", "start", "searched"),
    [
        ("raise", "You prepare a search", ["momentum search", "stopping search"]),
        ("hyde", "You write the paragraph", ["momentum search", "stopping search"]),
        ("step-back-rag", "You name what", ["momentum search", "stopping search"]),
        ("raise-direct", "You prepare a search", [PROBLEM.question]),
    ],
)
def test_an_empty_search_text_gives_way_to_the_search_query_and_says_so(name, start, searched):
    solution, _, find = run(name, says(start, "  \n"))
    assert find.texts == searched
    assert all("so the search used the search query" in step.notes[0] for step in solution.steps)


def test_an_empty_sub_answer_is_said_and_passed_on_as_none():
    solution, writer, _ = run("raise", says("You answer one step", ""))
    assert all(step.notes == (EMPTY_ANSWER,) for step in solution.steps)
    assert "1. What speed has the pair?\n(no answer)" in writer.prompts[-1]


def test_a_final_reply_without_an_option_chooses_none():
    solution, _, _ = run("raise", says("You solve a problem from", "About a metre."))
    assert (solution.state, solution.choice, solution.notes) == ("done", None, (NO_OPTION,))
    assert solution.answer == "About a metre."


def test_a_model_that_scores_is_asked_for_the_option_that_its_answer_does_not_name():
    nats = {"A": math.log(0.1), "B": math.log(0.3)}
    replies = says("You solve a problem from", "About a metre.")
    model = ScriptedScorer(lambda passages, words, t: nats.get(words[t], -1.0), replies)
    solution = solve(PROBLEM, method_of("raise"), Means(model=model, find=Finder()))
    assert solution.option is not None
    assert (solution.answer, solution.choice, solution.option.reply) == ("About a metre.", 1, "B")
    assert solution.option.probabilities == pytest.approx({"A": 0.25, "B": 0.75})
    assert solution.notes == (OPTION_ASKED.format("B", 0.75),)
    assert solution.final is not None
    asked = solution.option.prompt.segments
    assert asked[:-2] == solution.final.prompt.segments
    assert [(s.role, s.text) for s in asked[-2:]] == [
        ("assistant", "About a metre."),
        ("user", "Answer with one of these: A, B."),
    ]
    assert solution.cost.calls == method_of("raise").calls(2) + 1
    assert Solution.from_dict(solution.to_dict()) == solution
    known = known_calls(solution, model, solution.decoding)
    again = solve(PROBLEM, method_of("raise"), Means(model=model, find=Finder(), known=known))
    assert again.option == solution.option


def test_an_option_that_the_answer_names_is_not_asked_for_again():
    model = ScriptedScorer(lambda passages, words, t: -1.0, reply)
    solution = solve(PROBLEM, method_of("cot"), Means(model=model, find=Finder()))
    assert (solution.choice, solution.option) == (1, None)


def test_thirty_steps_run_and_a_bound_holds():
    plan = "\n".join(f"What is {i}? | q{i}" for i in range(30))
    replies = lambda p: plan if p.startswith("You plan") else "text"  # noqa: E731
    assert len(run("least-to-most", replies)[0].steps) == 30
    solution, _, _ = run("least-to-most", replies, max_steps=3)
    assert len(solution.steps) == 3
    assert "only the first 3 are used" in solution.decomposition.notes[0]


# Streaming, stopping, taking over


def test_the_run_is_told_after_every_call_and_search():
    means = Means(model=ScriptedWriter(reply), find=Finder())
    seen = list(solutions(PROBLEM, method_of("raise"), means, Watch()))
    assert [len(s.calls) for s in seen] == [1, 2, 3, 4, 5, 6]
    assert [len(s.steps) for s in seen] == [0, 1, 1, 2, 2, 2]
    assert seen[1].steps[0].kept
    assert seen[1].steps[0].asked is None


def test_a_stop_leaves_the_finished_steps_told():
    stop, seen = threading.Event(), []
    means = Means(model=ScriptedWriter(reply), find=Finder(), threshold=0.4)
    with pytest.raises(Cancelled):
        for solution in solutions(PROBLEM, method_of("raise"), means, Watch(cancel=stop)):
            seen.append(solution)
            if len(solution.calls) == 3:
                stop.set()
    assert [step.answer for step in seen[-1].steps] == ["ANSWER-ONE"]


def test_a_model_that_fails_leaves_what_was_told_before():
    def replies(prompt):
        if "How far does it go?" in prompt and prompt.startswith("You prepare a search"):
            raise ModelError("The server went away. Start it again.")
        return reply(prompt)

    seen = []
    with pytest.raises(ModelError):
        means = Means(model=ScriptedWriter(replies), find=Finder())
        for solution in solutions(PROBLEM, method_of("raise"), means, Watch()):
            seen.append(solution)
    assert [step.answer for step in seen[-1].steps] == ["ANSWER-ONE"]


def test_another_t_repeats_only_the_calls_that_read_other_passages():
    first, _, _ = run("raise", threshold=0.4)
    writer = ScriptedWriter(reply)
    known = known_calls(first, writer, first.decoding)
    again = solve(PROBLEM, method_of("raise"), Means(model=writer, find=Finder(), threshold=0.6, known=known))
    assert [prompt.split(".")[0] for prompt in writer.prompts] == [
        "You answer one step of a larger problem in one or two sentences"
    ] * 2  # the plan, the searches and an answer from the same words are taken over
    fresh, _, _ = run("raise", threshold=0.6)
    assert [a.prompt for a in again.calls] == [a.prompt for a in fresh.calls]
    assert again.cost.calls == fresh.cost.calls == 6


def test_calls_of_another_model_or_decoding_are_not_taken_over():
    first, writer, _ = run("raise")
    assert known_calls(first, ScriptedWriter(reply, name="other"), first.decoding) == {}
    hot = first.decoding.__class__(temperature=0.7)
    assert known_calls(first, writer, hot) == {}


def test_tokens_and_cut_replies_are_counted():
    solution, writer, _ = run("raise")
    assert solution.cost.written == writer.tokens
    assert solution.cost.read is None  # a script without a tokenizer does not say what it read
    short, _, _ = run("cot", decoding=solution.decoding.__class__(max_new_tokens=2))
    assert short.final is not None
    assert (short.final.finished, short.choice) == (False, None)


def test_a_writer_that_cannot_write_is_refused():
    writer = ScriptedWriter(reply)
    writer.can = Can(generate=False, why_not="Choose another.")
    with pytest.raises(CannotDo):
        solve(PROBLEM, method_of("raise"), Means(model=writer, find=Finder()))


def test_labels_and_names_both_name_a_method():
    assert [method_of(method.label) for method in METHODS] == list(METHODS)
    with pytest.raises(InputError, match="least-to-most-rag"):
        method_of("magic")


@pytest.mark.parametrize("prompt", [lambda problem: final_answer_prompt(problem, ()), chain_of_thought_prompt])
def test_only_a_problem_with_options_is_asked_for_a_letter(prompt):
    """An open question that hears of letters is answered with one."""
    assert "the final answer is (X)" in prompt(PROBLEM).text
    assert "the final answer is" not in prompt(Problem(question="Why?")).text
