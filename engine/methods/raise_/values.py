"""The values of RAISE and its baselines: the problem, every call and search of a run, and the table of the ten methods.

RAISE, section 3 and appendix B.2. Which option a reply names is read here, and nothing is guessed from a reply that
names none. Left out: nothing of the paper's methods; "RAISE without T" is ours.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Literal, get_args

from engine.core.errors import InputError, RecordError
from engine.core.settings import Decoding
from engine.core.values import Hit, Passage, Prompt, Value

# The problem. RAISE asks for "the final answer is (X)" (figures 8, 10, 15); a reply that names no option, or one that
# does not exist, is asked for one (solve.py) or counts as wrong.

_LEAD = r"""(?:\\boxed\{|\\text\{|\\[(\[]|[\s:*_$"'“‘`]|\b(?:therefore|thus|hence|option|choice)\b)*"""
_STATED = re.compile(rf"\banswer(?:\s+is|\s*:){_LEAD}(?=(?P<said>[^\n]{{0,500}}))", re.IGNORECASE)
_LETTER = re.compile(
    r"[(\[]\s*(?P<bracketed>[A-Za-z])\s*[)\]]"
    r"""|(?P<alone>[A-Z])(?=[\s*_.,;:})$"'”’`\\\]]*$)"""
    r"""|(?P<bare>[A-Z])(?=[).:,}"'”’`])"""
)
_OR_ANOTHER = re.compile(r"[\s,/&]*(?:(?:or|and)\b)?[\s,/&]*\(\s*[A-Za-z]\s*\)(?!\s+(?:is|are|was|were|would|has)\b)")
_LAST = re.compile(  # a last line of no more than a letter, with its option's text or not
    r"(?:(?:so|thus|hence|therefore)\b[\s,:]*)?(?:(?:the )?(?:(?:final|correct|right|best) )*(?:answer|option|choice)\b"
    rf"(?: is)?)?{_LEAD}[(\[]?\s*(?P<letter>[a-z])\b[\s*_.,:;)}}\]$`\\]*(?P<rest>.*)",
    re.IGNORECASE,
)
_END = re.compile(r"""\s*$|[*_)\]}$"'”’`\\]|[.,;:!](?!\S)|[.,;:!][*_)\]}$"'”’`\\]""")
_CONCLUDES = re.compile(rf"(?:^|\n|[.!?:]\s|\b(?:is|are|was|were|equals)\s|=){_LEAD}$")
_OPEN = re.compile(r"\b(?:not|cannot|neither|nor|if|whether|unless|suppose|assume)\b|n['’]t\b")
_MARKS = " \t*_()[]."


class Problem(Value, frozen=True):
    """A question, with its options where it is multiple choice."""

    question: str
    options: tuple[str, ...] = ()

    @property
    def letters(self) -> tuple[str, ...]:
        """The letters of the options."""
        return tuple(letter(index) for index in range(len(self.options)))

    @property
    def text(self) -> str:
        """The question and a line an option, as prompts show it.

        >>> Problem(question="Which?", options=("this", "that")).text
        'Which?\\n(A) this\\n(B) that'
        """
        lines = (f"({mark}) {option}" for mark, option in zip(self.letters, self.options, strict=True))
        return "\n".join((self.question, *lines))


def check_options(options: Sequence[str]) -> None:
    """Raise `RecordError` for options that nobody can choose among: one alone, an empty one, more than letters."""
    if any(not option.strip() for option in options):
        raise RecordError("An option is empty. Give the text of every option.")
    if len(options) == 1:
        raise RecordError("The problem has one option. Give two or more, or none for an open problem.")
    letter(max(len(options) - 1, 0))


def letter(index: int) -> str:
    """A for 0; raise `RecordError` past Z."""
    if index >= len(ascii_uppercase):
        raise RecordError(f"A problem can have {len(ascii_uppercase)} options. Use fewer.")
    return ascii_uppercase[index]


def parse_choice(reply: str, options: Sequence[str], *, finished: bool = True) -> int | None:
    """The index of the option that the reply states last, or else ends with; None where it names none of them.

    A reply that was cut off ends with a thought, and not with an option.

    >>> parse_choice("So the final answer is **(B)**.", ("this", "that")), parse_choice("It is B, or A.", ("x", "y"))
    (1, None)
    >>> parse_choice("The loss in the line is 125 W.", ("12.5 W", "125 W"))
    1
    """
    stated = [_option(match["said"], options) for match in _STATED.finditer(reply)]
    last = next((option for option in reversed(stated) if option is not None), None)
    if last is not None or not finished:
        return last
    by_text = _concluded(reply, options)
    return _lettered(reply, options) if by_text is None else by_text


def _option(said: str, options: Sequence[str]) -> int | None:
    """The option that the words after "answer is" name, by its whole text or by letter.

    A letter with more words after it may be the first word of an option ("E. coli"): that letter names none.
    """
    whole = _whole(said, options)
    match = _LETTER.match(said)
    if whole is not None or match is None:
        return whole
    if match["bare"] and any(re.match(rf"{match['bare']}\W", option) for option in options):
        return None
    if _OR_ANOTHER.match(said, match.end()):
        return None
    index = ascii_uppercase.index((match["bracketed"] or match["alone"] or match["bare"]).upper())
    return index if index < len(options) else None


def _whole(said: str, options: Sequence[str]) -> int | None:
    """The longest option that the words begin with; brackets around one letter are not taken off: (A) is a letter."""
    text = said.casefold()

    def begins(option: str) -> bool:
        words = text if len(option) == 1 and option.isalpha() else text.lstrip(_MARKS)
        return words.startswith(option) and _END.match(words, len(option)) is not None

    return _longest(options, begins)


def _concluded(reply: str, options: Sequence[str]) -> int | None:
    """The longest option that is the whole last sentence, or ends it after "is" or a sign of equality.

    A sentence that denies or supposes something states none.
    """
    text = reply[-500:].casefold().rstrip(_MARKS + "\n}$\"'”’`\\!")

    def ends(option: str) -> bool:
        before = text.removesuffix(option)
        stated = text.endswith(option) and _CONCLUDES.search(before)
        return bool(stated) and not _OPEN.search(re.split(r"[.!?]\s|\n", before)[-1])

    return _longest(options, ends)


def _lettered(reply: str, options: Sequence[str]) -> int | None:
    """The option whose letter is the whole last line, or is followed by nothing but its text.

    >>> [_lettered(reply, ("iron", "tin")) for reply in ("It rusts.\\n**(B)**", "B) tin", "Option A.", "B or A")]
    [1, 1, 0, None]
    """
    lines = reply[-500:].rstrip().splitlines() or [""]
    match = _LAST.fullmatch(lines[-1].strip())
    index = ord(match["letter"].upper()) - ord("A") if match else len(options)
    if match is None or index >= len(options):
        return None
    rest = match["rest"].strip(_MARKS).casefold()
    return index if not rest or rest == options[index].strip(_MARKS).casefold() else None


def _longest(options: Sequence[str], named: Callable[[str], bool]) -> int | None:
    """The index of the longest option for whose bare text that holds; None where two have the same text."""
    plain = [option.strip(_MARKS).casefold() for option in options]
    fitting = sorted((option for option in plain if option and named(option)), key=len)
    return plain.index(fitting[-1]) if fitting and plain.count(fitting[-1]) == 1 else None


def stated_answer(reply: str) -> str:
    """The words after the last "the final answer is" of an open reply, else the whole reply.

    >>> stated_answer("Water expands. The final answer is: ice floats.")
    'ice floats.'
    """
    found = re.split(r"final answer is[\s:*_]*", reply, flags=re.IGNORECASE)
    return found[-1].strip(" *_\n") or reply.strip()


Written = Literal["logical query", "principle", "hypothetical answer"]
Searched = Literal[Written, "sub-question", "problem"]
Purpose = Literal[Written, "sub-questions", "sub-answer", "answer", "option"]
State = Literal["running", "done", "unparsed", "stopped"]


class Call(Value, frozen=True):
    """One call of the model. `read` and `written` are tokens, None where the model does not count them.

    `finished` is False where the reply was cut at the length limit. A closed question that likelihood decided has the
    option as its reply, nothing written, and the shares of all options as `probabilities`.
    """

    purpose: Purpose
    prompt: Prompt
    reply: str
    read: int | None
    written: int | None
    seconds: float
    finished: bool = True
    probabilities: dict[str, float] = {}


class SubQuestion(Value, frozen=True):
    """r_i with its search query q_i."""

    question: str
    query: str


class ProblemDecomposition(Value, frozen=True):
    """The sub-questions read from one reply; none if the reply is unreadable; `asked` has the reply."""

    subquestions: tuple[SubQuestion, ...]
    asked: Call
    notes: tuple[str, ...] = ()


class Search(Value, frozen=True):
    """The search text, its role, and the top k, best first. `asked` is the call that wrote the text, if any."""

    kind: Searched
    text: str
    hits: tuple[Hit, ...] = ()
    asked: Call | None = None
    note: str = ""


def similarity(hit: Hit) -> float:
    """Cosine of the text searched and the passage, -1 to 1."""
    return hit.parts.get("dense", hit.score)


class ReasonStep(Value, frozen=True):
    """Step i. `threshold` is T, a cosine; None keeps everything. `principle` is Step-Back's, `asked` the sub-answer."""

    number: int
    question: str
    query: str
    search: Search | None = None
    threshold: float | None = None
    principle: Call | None = None
    asked: Call | None = None
    notes: tuple[str, ...] = ()

    @property
    def kept(self) -> tuple[Hit, ...]:
        """The hits whose similarity reaches T."""
        hits = self.search.hits if self.search else ()
        return tuple(h for h in hits if self.threshold is None or similarity(h) >= self.threshold)

    @property
    def dropped(self) -> tuple[Hit, ...]:
        """The hits under T."""
        kept = {hit.passage.id for hit in self.kept}
        return tuple(h for h in (self.search.hits if self.search else ()) if h.passage.id not in kept)

    @property
    def passages(self) -> tuple[Passage, ...]:
        """The passages kept, in the order of the prompt."""
        return tuple(hit.passage for hit in self.kept)

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls of the step in the order in which they were made."""
        made = (self.search.asked if self.search else None, self.principle, self.asked)
        return tuple(call for call in made if call is not None)

    @property
    def answer(self) -> str:
        """a_i; empty until it is written."""
        return self.asked.reply.strip() if self.asked else ""


class SolutionCost(Value, frozen=True):
    """The cost of a run. Tokens are None where the model does not count them; seconds are of the model's calls."""

    calls: int
    read: int | None
    written: int | None
    searches: int
    seconds: float


class Solution(Value, frozen=True):
    """A run so far. `threshold` is T where the method has one. `final` holds the answer y.

    `option` is the closed question after an answer that names no option of a multiple-choice problem.

    A method without decomposition has no `decomposition`, and one step that is the problem itself where it searches.
    """

    method: str
    model: str
    problem: Problem
    decoding: Decoding
    corpus: str = ""
    embedder: str = ""
    threshold: float | None = None
    decomposition: ProblemDecomposition | None = None
    steps: tuple[ReasonStep, ...] = ()
    final: Call | None = None
    option: Call | None = None
    state: State = "running"
    notes: tuple[str, ...] = ()

    @property
    def answer(self) -> str:
        """The final reply; for an open problem what it states as the answer."""
        reply = self.final.reply.strip() if self.final else ""
        return reply if self.problem.options else stated_answer(reply)

    @property
    def choice(self) -> int | None:
        """The option chosen, from 0; None where there are no options, or none was named and none could be asked for."""
        if not self.final or not self.problem.options:
            return None
        said = parse_choice(self.final.reply, self.problem.options, finished=self.final.finished)
        return self.problem.letters.index(self.option.reply) if said is None and self.option else said

    @property
    def calls(self) -> tuple[Call, ...]:
        """Every call in the order in which it was made."""
        planned = [self.decomposition.asked] if self.decomposition else []
        last = [call for call in (self.final, self.option) if call is not None]
        return (*planned, *(call for step in self.steps for call in step.calls), *last)

    @property
    def cost(self) -> SolutionCost:
        """The sums over the calls."""
        return SolutionCost(
            calls=len(self.calls),
            read=_sum([asked.read for asked in self.calls]),
            written=_sum([asked.written for asked in self.calls]),
            searches=sum(step.search is not None for step in self.steps),
            seconds=sum(asked.seconds for asked in self.calls),
        )


def _sum(counts: Sequence[int | None]) -> int | None:
    """The sum, unless one of them is not known."""
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


@dataclass(frozen=True)
class ReasoningMethod:
    """A row of the table. `searches` None: no retrieval. `principled`: Step-Back's principle goes to the answer.

    Per sub-question those that search differ in the query and in T only. T is RAISE's (appendix B.3); RAISE-Direct is
    RAISE without the decomposition (RAISE, section 5, figure 2) and keeps it.
    """

    name: str
    label: str
    said: str
    searches: Searched | None = None
    decomposed: bool = True
    thresholded: bool = False
    principled: bool = False

    def calls(self, subquestions: int) -> int:
        """Model calls of a run with that many sub-questions."""
        extra = int(self.searches in get_args(Written) or self.principled)
        return 2 + subquestions * (1 + extra) if self.decomposed else 1 + extra


METHODS = (
    ReasoningMethod(
        "raise", "RAISE", "one logical query per step; drops passages below T", "logical query", thresholded=True
    ),
    ReasoningMethod("raise-without-t", "RAISE without T", "RAISE that drops nothing", "logical query"),
    ReasoningMethod(
        "raise-direct",
        "RAISE-Direct",
        "one logical query, no steps",
        "logical query",
        decomposed=False,
        thresholded=True,
    ),
    ReasoningMethod("cot", "CoT", "step by step in one call", decomposed=False),
    ReasoningMethod("cot-rag", "CoT+RAG", "CoT with what the problem itself finds", "problem", decomposed=False),
    ReasoningMethod("least-to-most", "Least-to-Most", "sub-questions in order, no search"),
    ReasoningMethod("step-back", "Step-Back", "the principle of each sub-question first, no search", principled=True),
    ReasoningMethod("least-to-most-rag", "Least-to-Most+RAG", "searches the sub-question", "sub-question"),
    ReasoningMethod("step-back-rag", "Step-Back+RAG", "searches the principle", "principle"),
    ReasoningMethod("hyde", "HyDE", "searches a hypothetical answer", "hypothetical answer"),
)


def method_of(name: str) -> ReasoningMethod:
    """The method of a name or label; raise `InputError` with the names.

    >>> method_of("CoT+RAG").name
    'cot-rag'
    """
    wanted = re.sub(r"[\s+_]+", "-", name.strip().casefold())
    for method in METHODS:
        if method.name == wanted:
            return method
    raise InputError(f"There is no method {name!r}. Choose from: {', '.join(method.name for method in METHODS)}.")
