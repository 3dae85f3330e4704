"""The values of a check of an answer: evidence, rulings, edits, and the whole record (ARE, section 4).

Offsets are characters: of a placed edit into the answer, of a change into the fact it changes.
"""

from __future__ import annotations

import re
from typing import Any, Literal

from msgspec.structs import replace

from engine.core.values import Value
from engine.models.protocols import Entailment, Judged, VerdictClass, Writer
from engine.models.verdicts import UNSURE, verdict_note


class Piece(Value, frozen=True):
    """`length` characters of a fact from `fact` on are the answer's from `answer` on, copied."""

    fact: int
    answer: int
    length: int


class Fact(Value, frozen=True):
    """An atomic fact; `pieces` say which of its characters are in the answer, `made_by` who made it.

    `fallback` is True where a language model's reply could not be parsed and the rules stepped in.
    """

    text: str
    made_by: str
    pieces: tuple[Piece, ...] = ()
    fallback: bool = False


class Clause(Value, frozen=True):
    """A molecular clause: the answer's characters [start, end), verbatim, and its facts."""

    start: int
    end: int
    text: str
    facts: tuple[Fact, ...] = ()


class Exchange(Value, frozen=True):
    """One question to a language model, its raw reply, and whether it could be parsed.

    `probabilities` are the shares of the allowed answers where likelihood decided; `reply` is then what came before.
    """

    step: str
    prompt: str
    reply: str
    parsed: bool
    probabilities: dict[str, float] = {}


class Decomposition(Value, frozen=True):
    """An answer as clauses in order; `fallbacks` counts the replies replaced by the rules.

    `text`, where not empty, stands for the answer: its facts joined, each its own clause (ARE without molecular
    clauses); every offset is then into it.
    """

    clauses: tuple[Clause, ...]
    made_by: str
    fallbacks: int = 0
    exchanges: tuple[Exchange, ...] = ()
    text: str = ""


VerdictName = Literal[VerdictClass, "unparsed"]
Stand = Literal["borne out", "contradicted", "not found", "unsure", "not checked"]
IN_WORDS: dict[str, Stand] = {"supportive": "borne out", "editing_required": "contradicted", "irrelevant": "not found"}
"""The verdicts of the paper in the words of the pages."""


class Evidence(Value, frozen=True):
    """A passage found for a fact: `number` is its place in the case (None: from the corpus), `score` its cosine.

    `relevance` in [0, 1] is what it was ranked by: that of its closest sentence or itself (`engine.retrieve.relevance`)
    or its cosine. `in_corpus`: a passage of the case that the search found in the corpus as well.
    `found_by` are the places of the round's queries that found it. `title` is the passage's heading, `speaker` who
    speaks at its start (`Passage`).
    """

    text: str
    source: Literal["case", "corpus"]
    passage: str = ""
    document: str = ""
    title: str = ""
    number: int | None = None
    score: float = 0.0
    relevance: float = 0.0
    in_corpus: bool = False
    found_by: tuple[int, ...] = ()
    speaker: str = ""


class Ruling(Value, frozen=True):
    """A verdict of a verifier, with the words to show with it (`note`).

    `scores` are its class probabilities (an entailment model), `reasoning` its words (a language model); `window` is
    the span of the evidence that decided. `unsure` is True where the verdict's probability is under 0.6. `lacking` are
    numbers and names of the fact that the evidence does not hold, where they turned the verdict. `lowered` is True
    where a guard, not the probability, made it unsure.
    """

    verdict: VerdictName
    by: str
    note: str
    scores: dict[str, float] = {}
    reasoning: str = ""
    window: tuple[int, int] = (0, 0)
    unsure: bool = False
    lacking: tuple[str, ...] = ()
    lowered: bool = False

    @classmethod
    def of(cls, judged: Judged, verifier: Entailment | Writer) -> Ruling:
        """The ruling of an entailment model, or of a language model that scores."""
        return cls(
            verdict=judged.verdict,
            by=verifier.name,
            note=note_of(judged, verifier),
            scores={name: round(float(score), 4) for name, score in judged.scores.items()},
            window=judged.window,
            unsure=judged.scores[judged.verdict] < UNSURE,
        )

    def because(self, why: str) -> Ruling:
        """The ruling as supportive on other grounds than its own; `grounds` reads them back."""
        return replace(self, verdict="supportive", note=f"supportive, because {why}; else {self.note}")

    @property
    def grounds(self) -> str:
        """Why it is supportive other than by the verifier; empty without a reason."""
        found = _BECAUSE.match(self.note)
        return found["why"] if found else ""

    @property
    def doubt(self) -> str:
        """Why a guard made it unsure; empty where the probability did, or nothing."""
        return self.note.partition(UNSURE_AS)[2] if self.lowered else ""


def note_in_words(note: str) -> str:
    """The note of a ruling as the pages say it.

    >>> note_in_words("supportive, because it says so; else irrelevant by V, 52% of its irrelevant verdicts are right")
    'borne out, because it says so. Without this: not found by V; 52% of its not found verdicts are right'
    """
    said = _VERDICT.sub(lambda found: IN_WORDS[found[0].replace(" ", "_")], note)
    return _SHARE.sub(r"\1;", said.replace("; else ", ". Without this: ", 1))


_VERDICT = re.compile(r"\b(supportive|editing required|irrelevant)(?= by |, because | verdicts are | scores higher)")
_SHARE = re.compile(r"(?<= by )([^,;]+),(?= \d)")
UNSURE_AS = "; unsure, "  # in the note of a ruling, before the reason
_BECAUSE = re.compile(r"supportive, because (?P<why>.+?); else ", re.DOTALL)


def note_of(judged: Judged, verifier: Any) -> str:
    """Who says so, and how often it is right on which set."""
    own = getattr(verifier, "note", None)
    return str(own(judged)) if own else verdict_note(judged, verifier.name)


class Change(Value, frozen=True):
    """Characters [start, end) of a text, the old text and the new text."""

    start: int
    end: int
    old: str
    new: str


class Edit(Value, frozen=True):
    """A fact before and after, what changed and why; `ruling` is the check of the edited fact (None: not checked)."""

    before: str
    after: str
    changes: tuple[Change, ...]
    why: str
    made_by: str
    ruling: Ruling | None = None


class Check(Value, frozen=True):
    """A ruling on the fact against `considered[evidence]`; `second` is a language model's, side by side."""

    evidence: int
    ruling: Ruling
    second: Ruling | None = None


class Iteration(Value, frozen=True):
    """One round on a fact: what was searched, considered and checked, which check decided, and an edit if any.

    `considered` comes in the order of similarity, case and corpus apart; `decided` is the place in `checks` (None:
    nothing was found, or an earlier contradiction stands).
    """

    queries: tuple[str, ...]
    considered: tuple[Evidence, ...] = ()
    checks: tuple[Check, ...] = ()
    decided: int | None = None
    edit: Edit | None = None
    exchanges: tuple[Exchange, ...] = ()

    def found_with(self, query: int) -> tuple[Evidence, ...]:
        """The results of the query at that place, in the order of similarity to the fact."""
        return tuple(one for one in self.considered if query in one.found_by)

    @property
    def check(self) -> Check | None:
        """The check that decided."""
        return None if self.decided is None else self.checks[self.decided]

    @property
    def evidence(self) -> Evidence | None:
        """The evidence of the check that decided."""
        return None if self.decided is None else self.considered[self.checks[self.decided].evidence]


Outcome = Literal["supported", "edited", "contradicted", "unsettled", "unparsed", "no evidence", "not checked"]
OUTCOMES: dict[Outcome, tuple[Stand, str]] = {
    "supported": ("borne out", "borne out by a passage"),
    "edited": ("contradicted", "contradicted by a passage; borne out if the edit is accepted"),
    "contradicted": ("contradicted", "contradicted by a passage; no edit was good enough"),
    "unsettled": ("not found", "no evidence found that settles it"),
    "no evidence": ("not found", "nothing was found"),
    "unparsed": ("unsure", "the verifier's reply was unreadable"),
    "not checked": ("not checked", "it says what the documents lack, or the run stopped before checking it"),
}
"""Each outcome in the words of the pages, and its meaning."""


class FactRecord(Value, frozen=True):
    """A fact and all that was done for it; every fact of the decomposition has one.

    `supported_by_case`, `supported_by_corpus`: did a checked passage from there bear it out (None: none was checked).
    """

    clause: int
    fact: Fact
    iterations: tuple[Iteration, ...] = ()
    outcome: Outcome = "not checked"
    supported_by_case: bool | None = None
    supported_by_corpus: bool | None = None

    @property
    def last(self) -> Iteration | None:
        """The last round in which something was found."""
        return next((done for done in reversed(self.iterations) if done.decided is not None), None)

    @property
    def shown(self) -> Iteration | None:
        """The round to show: the last, or that of the most relevant evidence where nothing settles the fact."""
        if self.outcome != "unsettled":
            return self.last
        rounds = (done for done in self.iterations if done.evidence is not None)
        return max(rounds, key=lambda done: done.evidence.relevance if done.evidence else 0.0, default=None)

    @property
    def evidence(self) -> Evidence | None:
        """The evidence of the round to show."""
        return self.shown.evidence if self.shown else None

    @property
    def ruling(self) -> Ruling | None:
        """The ruling on the fact in the answer, by that evidence."""
        check = self.shown.check if self.shown else None
        return check.ruling if check else None

    @property
    def against(self) -> Evidence | None:
        """Of a fact that is borne out, the passage that contradicts it most surely, as two sources may; else None."""
        found = [
            (check.ruling.scores.get("editing_required", 0.0), done.considered[check.evidence])
            for done in self.iterations
            for check in done.checks
            if check.ruling.verdict == "editing_required" and not check.ruling.unsure
        ]
        return max(found, key=lambda one: one[0])[1] if found and self.outcome == "supported" else None

    @property
    def stand(self) -> Stand:
        """The outcome in the words of the pages; a doubtful verdict for or against the fact is "unsure"."""
        stand, _ = OUTCOMES[self.outcome]
        doubted = self.ruling is not None and self.ruling.unsure
        return "unsure" if doubted and stand in ("borne out", "contradicted") else stand

    @property
    def meaning(self) -> str:
        """The outcome in a sentence's words."""
        _, meaning = OUTCOMES[self.outcome]
        return f"perhaps {meaning}" if self.stand == "unsure" else meaning

    @property
    def edit(self) -> Edit | None:
        """The edit that was found, if any; stored checks have some that change nothing."""
        found = (done.edit for done in reversed(self.iterations) if done.edit is not None)
        return next((edit for edit in found if edit.after != edit.before), None)


class Placed(Value, frozen=True):
    """An edit on the answer: characters [start, end) become `new`. A suggestion is shown, never put in by itself.

    `clause` and `fact` are places in the decomposition, `why` says what is wrong, or why it is only a suggestion.
    """

    id: str
    clause: int
    fact: int
    start: int
    end: int
    old: str
    new: str
    status: Literal["placed", "suggestion"]
    why: str
    evidence: Evidence
    ruling: Ruling | None = None


class Measures(Value, frozen=True):
    """Attr_r, Attr_p in [0, 1] by the verifier `by`, and with Pres their harmonic means (ARE, section 5.1)."""

    attr_r: float
    attr_p: float
    pres: float
    f1_rp: float
    f1_pp: float
    by: str
    clauses: int


class ClauseReport(Value, frozen=True):
    """E_i: the evidence of clause i, duplicates removed, joined; `entails` is NLI(E_i, clause) after editing."""

    clause: int
    text: str
    evidence: tuple[Evidence, ...]
    joined: str
    entails: float
    best: float


class Report(Value, frozen=True):
    """The attribution report A of an answer, before and after editing."""

    clauses: tuple[ClauseReport, ...]
    before: Measures
    after: Measures


class AreRecord(Value, frozen=True):
    """All that a check of an answer found and did; what is shown and exported is read from here.

    `measured` says how often the verifier behind the measures is right when it calls a claim supported; `language` is
    the answer's, where it seems to be another than English.
    """

    question: str
    answer: str
    revised: str
    decomposition: Decomposition
    facts: tuple[FactRecord, ...]
    edits: tuple[Placed, ...]
    report: Report | None
    verifier: str
    editor: str
    decomposer: str
    evidence_from: Literal["case", "corpus", "both"]
    max_iterations: int
    finished: bool = True
    seconds: float = 0.0
    measured: str = ""
    language: str = ""
    notes: tuple[str, ...] = ()

    @property
    def foreign(self) -> str:
        """That the verdicts on an answer in another language are not to be relied on; empty for English."""
        said = f"The answer seems to be in {self.language}. The check is made for English: do not rely on its verdicts."
        return said if self.language else ""

    @property
    def checked(self) -> str:
        """The text that clauses and edits have their offsets in: the answer, or its facts joined (no clauses)."""
        return self.decomposition.text or self.answer

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """All that a language model was asked, and its replies."""
        later = (one for fact in self.facts for done in fact.iterations for one in done.exchanges)
        return *self.decomposition.exchanges, *later
