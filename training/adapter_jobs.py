"""Make examples for every job of a writer: the engine's prompt and the wanted reply.

Replies are copied from the sources or written by code, so each is known to be right. The prompts come from the
functions used at run time, so training and use cannot drift apart.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal, TypeVar

from engine.answer.prompt import MARKERS, build_prompt, passage_segments
from engine.answer.write import OPTIONS, answerable_prompt
from engine.core.settings import Prompting
from engine.core.text import content_words, sentences
from engine.core.values import Passage, Prompt, Segment
from engine.english.statements import split
from engine.methods.are.decompose import clause_spans
from engine.methods.are.evidence import expanded_by_rules
from engine.methods.raise_.steps import decompose_prompt, ending, search_prompt
from engine.methods.raise_.values import Problem, SubQuestion, letter
from engine.models.closed import closed
from engine.prompts import ask, fill, system
from training.adapter_data import Question, Sources, number_of

VERDICTS = {"supportive": "agrees", "editing_required": "disagrees", "irrelevant": "irrelevant"}
T = TypeVar("T")
LEVELS = ("none", "superficial", "partial", "full")


@dataclass(frozen=True)
class Example:
    """A prompt and the wanted reply."""

    job: str
    prompt: Prompt
    reply: str


Job = Callable[[Sources, random.Random], Example]


def answer(sources: Sources, rng: random.Random) -> Example:
    """The sentence(s) that answer, each with its citation."""
    question = _answerable(sources, rng)
    style: Literal["garage", "alce"] = "garage" if rng.random() < 0.8 else "alce"
    most = rng.choices((1, 2, 3, 4, 6, 8, 10), (3, 8, 8, 6, 4, 2, 1))[0]
    context = sources.context(question, rng, max(most, len(question.answers)))
    if rng.random() < 0.15:
        context = [question.passage, *sources.neighbours(question)[: rng.randint(0, 2)]]
        rng.shuffle(context)
    said = [(_sentence(question, i), _number(question, i, context)) for i in range(len(question.answers))]
    reply = " ".join(f"{text} {MARKERS[style].format(n)}" for text, n in said if n is not None)
    return Example("answer", build_prompt(question.text, context, Prompting(citations=style)), reply)


def answerable(sources: Sources, rng: random.Random) -> Example:
    """Whether the passages answer; half of the examples lack the answering passage."""
    yes = rng.random() < 0.5
    question = _answerable(sources, rng) if yes or rng.random() < 0.6 else _unanswerable(sources, rng)
    context = sources.context(question, rng, rng.choice((4, 6, 8)), answered=yes)
    return Example("answerable", closed(answerable_prompt(question.text, context), OPTIONS), "yes" if yes else "no")


def clauses(sources: Sources, rng: random.Random) -> Example:
    """A text as clauses, verbatim."""
    text = _some_text(sources, rng, 60)
    return Example("clauses", ask("clauses", text=text), "\n".join(text[a:b] for a, b in clause_spans(text)))


def facts(sources: Sources, rng: random.Random) -> Example:
    """A clause as atomic facts; not a long one, in which the rules go wrong most."""
    while True:
        text = _some_text(sources, rng, 50)
        spans = [text[a:b] for a, b in clause_spans(text)]
        clause = max(rng.sample(spans, min(3, len(spans))), key=lambda c: len(split(c)))
        found = split(clause)
        if len(clause.split()) <= 24 and len(found) <= 4 and all(len(fact.split()) >= 4 for fact in found):
            return Example("facts", ask("facts", text=text, clause=clause), "\n".join(found))


def verdict(sources: Sources, rng: random.Random) -> Example:
    """A claim against a sentence of its page."""
    label = rng.choice(tuple(VERDICTS))
    row = _draw(sources.verdicts, rng, lambda r: r["label"] == label)
    prompt = ask("verdict", context=row["page"], fact=row["claim"], evidence=row["evidence"])
    return Example("verdict", closed(prompt, tuple(VERDICTS.values())), VERDICTS[label])


def edit(sources: Sources, rng: random.Random) -> Example:
    """A claim mended by its evidence with the smallest change."""
    row = _draw(sources.edits, rng, lambda r: len(_changes(r["claim"], r["gold_claim"])) == 1)
    old, new = _changes(row["claim"], row["gold_claim"])[0]
    said = f'The evidence says "{new}", the fact says "{old}".' if old and new else "The evidence says it otherwise."
    return Example("edit", ask("edit", fact=row["claim"], evidence=row["evidence"]), f"{said}\n{row['gold_claim']}")


def expansion(sources: Sources, rng: random.Random) -> Example:
    """Two search phrases for a claim."""
    row = rng.choice(sources.verdicts)
    return Example("expand", ask("expand", fact=row["claim"]), "\n".join(expanded_by_rules(row["claim"], row["page"])))


def sub_questions(sources: Sources, rng: random.Random) -> Example:
    """A problem made of two or three questions, split again."""
    asked = _distinct(sources, rng, rng.randint(2, 3))
    lines = [f"{_asked(q)} | {_query(q)}" for q in asked]
    return Example("sub_questions", decompose_prompt(Problem(question=_combined(asked, rng))), "\n".join(lines))


def logical_query(sources: Sources, rng: random.Random) -> Example:
    """The statement of a helpful text: the answering sentence and the next one."""
    question = _answerable(sources, rng)
    sub = SubQuestion(question=_asked(question), query=_query(question))
    return Example("logical_query", search_prompt("logical query", sub), _around(question))


def hypothetical(sources: Sources, rng: random.Random) -> Example:
    """A paragraph that answers."""
    question = _answerable(sources, rng)
    sub = SubQuestion(question=_asked(question), query=_query(question))
    return Example("hypothetical_answer", search_prompt("hypothetical answer", sub), _around(question))


def principle(sources: Sources, rng: random.Random) -> Example:
    """The principle behind the question."""
    question = _answerable(sources, rng)
    sub = SubQuestion(question=_asked(question), query=_query(question))
    return Example("principle", search_prompt("principle", sub), f"{question.passage.title}: {_around(question)}")


def sub_answer(sources: Sources, rng: random.Random) -> Example:
    """One step of a problem, answered from its kept passages."""
    first, second = _distinct(sources, rng, 2)
    steps = f"\n1. {_asked(first)}\n{_sentence(first)}" if rng.random() < 0.5 else "none"
    asked = ask("sub_answer", problem=_combined((first, second), rng), steps=steps)
    shown = passage_segments(sources.context(second, rng, rng.choice((2, 4, 6))))
    tail = Segment(kind="question", text=fill("question", question=_asked(second)))
    return Example("sub_answer", Prompt(segments=(*asked.segments, *shown, tail)), _sentence(second))


def final_answer(sources: Sources, rng: random.Random) -> Example:
    """The conclusion from the steps: an option by its letter, or the sentence that says it."""
    question, *others = _distinct(sources, rng, 4)
    if rng.random() < 0.3:
        return _concluded(Problem(question=_asked(question)), question, _sentence(question))
    options = [question.short, *(other.short for other in others)]
    rng.shuffle(options)
    said = f"{_sentence(question)} The final answer is ({letter(options.index(question.short))})"
    return _concluded(Problem(question=_asked(question), options=tuple(options)), question, said)


def _concluded(problem: Problem, question: Question, reply: str) -> Example:
    steps = f"\n1. {_asked(question)}\n{_sentence(question)}"
    asked = ask("final_answer", problem=problem.text, steps=steps, ending=ending(problem))
    return Example("final_answer", asked, reply)


def critique(sources: Sources, rng: random.Random) -> Example:
    """A draft with a sentence that is in no passage; the critique names it."""
    question, context, draft, planted = _drafted(sources, rng)
    tail = fill("critique_draft", question=question.text, draft=draft)
    segments = (system("critique"), *passage_segments(context), Segment(kind="draft", text=tail))
    said = f'The passages do not support the statement "{planted}" Leave it out and keep the rest.'
    return Example("critique", Prompt(segments=segments), said)


def revision(sources: Sources, rng: random.Random) -> Example:
    """The draft rewritten after a critique; supported sentences stay."""
    question, context, draft, planted = _drafted(sources, rng)
    fixed = (fill("critique_generic"), fill("critique_grounding"), fill("critique_omit"))
    said = rng.choice((*fixed, f'The passages do not support the statement "{planted}" Leave it out.'))
    marker = MARKERS["garage"]
    turns = (
        Segment(kind="draft", role="assistant", text=draft),
        Segment(
            kind="critique", text=fill("revise_turn", critique=said, question=question.text, marker=marker.format(1))
        ),
    )
    number = number_of(question, context)
    asked = build_prompt(question.text, context, Prompting())
    return Example(
        "revision", Prompt(segments=(*asked.segments, *turns)), f"{_sentence(question)} {marker.format(number)}"
    )


def pair(sources: Sources, rng: random.Random) -> Example:
    """An answer against itself, or against itself with an unsupported sentence."""
    question, context, spoiled, _ = _drafted(sources, rng)
    sound = f"{_sentence(question)} {MARKERS['garage'].format(number_of(question, context))}"
    x, y, said = rng.choice(((sound, spoiled, "X"), (spoiled, sound, "Y"), (sound, sound, "tie")))
    shown = "".join(segment.text for segment in passage_segments(context))
    return Example(
        "judge_pair",
        closed(ask("judge_pair", question=question.text, passages=shown, x=x, y=y), ("X", "Y", "tie")),
        said,
    )


def relevance(sources: Sources, rng: random.Random) -> Example:
    """How much a document helps: the answering one, its page without the answer, a neighbour, or any other."""
    question, other = _distinct(sources, rng, 2)
    level = rng.choice(LEVELS)
    start, end = question.answers[0]
    text = question.passage.text
    documents = {
        "full": text,
        "partial": (text[:start] + text[end:]).strip() or text,
        "superficial": sources.neighbours(question)[0].text,
        "none": other.passage.text,
    }
    document = " ".join(documents[level].split()[:90])
    prompt = ask("judge_relevance", problem=_combined((question, other), rng), step=_asked(question), document=document)
    return Example("judge_relevance", closed(prompt, LEVELS), level)


JOBS: dict[Job, float] = {
    answer: 17,
    answerable: 29,
    verdict: 18,
    edit: 3,
    clauses: 4,
    facts: 5,
    expansion: 2,
    sub_questions: 2,
    logical_query: 1,
    hypothetical: 1,
    principle: 1,
    sub_answer: 1,
    final_answer: 2,
    critique: 2,
    revision: 2,
    pair: 6,
    relevance: 6,
}


def examples(sources: Sources, seed: int) -> Iterator[Example]:
    """Yield examples endlessly, drawn by the weights of `JOBS`."""
    rng = random.Random(seed)
    while True:
        yield rng.choices(list(JOBS), list(JOBS.values()))[0](sources, rng)


def _draw(rows: Sequence[T], rng: random.Random, fits: Callable[[T], bool]) -> T:
    while True:
        row = rng.choice(rows)
        if fits(row):
            return row


def _answerable(sources: Sources, rng: random.Random) -> Question:
    return _draw(sources.questions, rng, lambda q: bool(q.answers))


def _unanswerable(sources: Sources, rng: random.Random) -> Question:
    return _draw(sources.questions, rng, lambda q: not q.answers)


def _distinct(sources: Sources, rng: random.Random, count: int) -> tuple[Question, ...]:
    found: dict[str, Question] = {}
    while len(found) < count:
        question = _draw(sources.questions, rng, lambda q: bool(q.short))
        found.setdefault(question.short.lower(), question)
    return tuple(found.values())


def _sentence(question: Question, index: int = 0) -> str:
    start, end = question.answers[index]
    return question.passage.text[start:end]


def _number(question: Question, index: int, context: Sequence[Passage]) -> int | None:
    return number_of(Question(question.text, question.passage, (question.answers[index],)), context)


def _asked(question: Question) -> str:
    text = question.text.strip()
    return text[:1].upper() + text[1:].rstrip("?") + "?"


def _query(question: Question) -> str:
    return " ".join(content_words(question.text))


def _combined(asked: Sequence[Question], rng: random.Random) -> str:
    joined = " ".join(_asked(q) for q in asked)
    return rng.choice((joined, f"Two things are wanted. {joined}", f"{joined} Explain how the answers go together."))


def _around(question: Question) -> str:
    text, (start, end) = question.passage.text, question.answers[0]
    after = next((span for span in sentences(text) if span[0] >= end), None)
    both = text[start : after[1]] if after else text[start:end]
    return both if len(both.split()) <= 60 else text[start:end]


def _some_text(sources: Sources, rng: random.Random, most: int) -> str:
    """A sentence or two of some passage, of six to `most` words."""
    while True:
        text = rng.choice(sources.passages).text
        spans = sentences(text)
        first = rng.randrange(len(spans))
        last = min(first + rng.randint(0, 1), len(spans) - 1)
        taken = text[spans[first][0] : spans[last][1]]
        if 6 <= len(taken.split()) <= most and taken[-1] in ".!?":
            return taken


def _changes(old: str, new: str) -> list[tuple[str, str]]:
    a, b = old.split(), new.split()
    codes = SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    return [(" ".join(a[i:j]), " ".join(b[k:m])) for kind, i, j, k, m in codes if kind != "equal"]


def _drafted(sources: Sources, rng: random.Random) -> tuple[Question, list[Passage], str, str]:
    """(question, context, a draft with one planted sentence, that sentence)."""
    question, other = _distinct(sources, rng, 2)
    context = sources.context(question, rng, rng.choice((3, 4, 6)))
    marker = MARKERS["garage"].format(number_of(question, context))
    planted = _sentence(other)
    parts = [f"{_sentence(question)} {marker}", f"{planted} {marker}" if rng.random() < 0.5 else planted]
    rng.shuffle(parts)
    return question, context, " ".join(parts), planted
