"""Does an answer stand: a verdict on each sentence from its facts, the best evidence, and the counts of a whole case.

A sentence is as good as its worst fact; one that a passage has word for word is not left unsure. Facts are those of
the last check of the answer (ARE, 4); a reviewer's own verdict on a fact replaces the verifier's, and so does an
accepted edit. Nothing is computed by a model here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec.structs import replace

from engine.analyses.facts import record_of
from engine.answer.citations import without_markers
from engine.cases.places import decisions, numbered
from engine.cases.review import Mark, Review
from engine.core.errors import RecordError
from engine.core.text import counted, sentences
from engine.core.values import Case, Value
from engine.methods.are.anchor import anchors
from engine.methods.are.export import accepted_text
from engine.methods.are.values import AreRecord, Evidence, FactRecord

Stand = Literal["contradicted", "not found", "unsure", "not checked", "borne out", "no claim"]
STANDS: tuple[Stand, ...] = ("contradicted", "not found", "unsure", "not checked", "borne out", "no claim")
"""Worst first: a sentence takes the first of its facts'. "no claim" is a sentence without a fact."""
OF_OUTCOME: dict[str, Stand] = {
    "supported": "borne out",
    "edited": "contradicted",
    "contradicted": "contradicted",
    "unsettled": "not found",
    "no evidence": "not found",
    "unparsed": "unsure",
    "not checked": "not checked",
}
OWN_VERDICTS: dict[str, Stand] = {
    "supportive": "borne out",
    "editing_required": "contradicted",
    "irrelevant": "not found",
}
"""What a reviewer's verdict on a fact means for its sentence; any other word of theirs leaves it "unsure"."""


COPIED = "word for word in the source"


class QuotedEvidence(Value, frozen=True):
    """Characters [start, end) of a passage's `text`; `number` is its place in the case (None: from the corpus)."""

    text: str
    start: int
    end: int
    title: str
    number: int | None = None
    passage: str = ""

    @property
    def words(self) -> str:
        """The quoted sentence."""
        return self.text[self.start : self.end]


class FactVerdict(Value, frozen=True):
    """A fact by its number ("2.1"), where it leaves its sentence, who says so, and the evidence it rests on."""

    number: str
    text: str
    stand: Stand
    by: str
    quote: QuotedEvidence | None = None
    probability: float | None = None
    proposed: str = ""
    mark: Mark | None = None


class SentenceVerdict(Value, frozen=True):
    """Characters [start, end) of the answer, the verdict, and the facts that it comes from, the worst first."""

    start: int
    end: int
    stand: Stand
    facts: tuple[FactVerdict, ...] = ()


class CaseVerdict(Value, frozen=True):
    """A case at one glance; `sentences` cover the answer, edits and citations are counts.

    `citations` are pairs of a sentence and a passage that it cites, `citations_supported` those whose passage bears
    out a fact of the sentence. `text` is the answer with the accepted edits.
    """

    sentences: tuple[SentenceVerdict, ...]
    finished: bool
    verifier: str
    text: str
    accepted: int = 0
    rejected: int = 0
    undecided: int = 0
    citations: int = 0
    citations_supported: int = 0

    @property
    def overridden(self) -> int:
        """How many facts have a reviewer's own verdict."""
        return len({fact.number for sentence in self.sentences for fact in sentence.facts if fact.mark})

    @property
    def counts(self) -> dict[Stand, int]:
        """How many sentences with a claim have each verdict, worst first, without those that none has."""
        found = Counter(sentence.stand for sentence in self.sentences)
        return {stand: found[stand] for stand in STANDS if found[stand] and stand != "no claim"}

    @property
    def headline(self) -> str:
        """The counts in one sentence.

        >>> CaseVerdict(sentences=(), finished=True, verifier="v", text="").headline
        'The answer makes no claim that could be checked.'
        """
        counts = dict(self.counts)
        total = sum(counts.values())
        if not total:
            return "The answer makes no claim that could be checked."
        good = counts.pop("borne out", 0)
        first = f"{good} of {counted(total, 'sentence')} {'is' if good == 1 else 'are'} borne out"
        return ", ".join([first, *(f"{count} {stand}" for stand, count in counts.items())]) + "."


def case_verdict(case: Case, review: Review) -> CaseVerdict | None:
    """The verdicts of the case's last check, with the reviewer's own in place of the verifier's.

    None before a check, and for one that another version stored in another shape.
    """
    try:
        record = record_of(case)
    except RecordError:
        return None
    if record is None:
        return None
    decided = decisions(record, review)
    taken = Counter(decided.get(edit.id, "undecided") for edit in record.edits)
    cited = _cited(case, record)
    return CaseVerdict(
        sentences=sentence_verdicts(case, record, review),
        finished=record.finished,
        verifier=record.verifier,
        text=accepted_text(record, decided),
        accepted=taken["accepted"],
        rejected=taken["rejected"],
        undecided=taken["undecided"],
        citations=len(cited),
        citations_supported=sum(cited.values()),
    )


def sentence_verdicts(case: Case, record: AreRecord, review: Review) -> tuple[SentenceVerdict, ...]:
    """A verdict per sentence of the answer, in order; a fact belongs to each sentence that its clause touches."""
    decided = decisions(record, review)
    wrong = {edit.fact for edit in record.edits if edit.new and decided.get(edit.id) == "accepted"}
    found = [
        (record.decomposition.clauses[fact.clause], name, fact, place in wrong)
        for place, (name, fact) in enumerate(numbered(record).items())
    ]
    result = []
    for start, end in case.answer.sentences:
        words = without_markers(case.answer.text[start:end])
        own = [
            word_for_word(fact_verdict(name, fact, review.overrides.get(f"fact:{name}"), mended=mended), fact, words)
            for clause, name, fact, mended in found
            if clause.start < end and start < clause.end
        ]
        own.sort(key=lambda fact: STANDS.index(fact.stand))
        result.append(
            SentenceVerdict(start=start, end=end, stand=own[0].stand if own else "no claim", facts=tuple(own))
        )
    return tuple(result)


def fact_verdict(name: str, fact: FactRecord, mark: Mark | None = None, *, mended: bool = False) -> FactVerdict:
    """Where a fact stands: by the reviewer's mark where there is one, else by what the check came to.

    `mended`: a reviewer accepted an edit that changes it, so it was wrong.
    """
    ruling = fact.ruling
    stand = OF_OUTCOME[fact.outcome]
    if mended:
        stand = "contradicted"
    elif ruling is not None and ruling.unsure and stand in ("borne out", "contradicted"):
        stand = "unsure"
    return FactVerdict(
        number=name,
        text=fact.fact.text,
        stand=own_stand(mark.value) if mark else stand,
        by=mark.author if mark else ruling.by if ruling else "",
        quote=_quote(fact.fact.text, fact.evidence) if fact.evidence else None,
        probability=ruling.scores.get(ruling.verdict) if ruling else None,
        proposed=fact.edit.after if fact.edit else "",
        mark=mark,
    )


def word_for_word(verdict: FactVerdict, fact: FactRecord, words: str) -> FactVerdict:
    """The verdict; "borne out" where the verifier is unsure and `words` are a whole sentence of a passage it read."""
    if verdict.stand != "unsure" or verdict.mark is not None:
        return verdict
    wanted = " ".join(words.split())
    for one in (one for done in fact.iterations for one in done.considered):
        for start, end in sentences(one.text):
            if " ".join(one.text[start:end].split()) == wanted:
                quote = _quoted(one, start, end)
                return replace(verdict, stand="borne out", by=COPIED, probability=None, quote=quote)
    return verdict


def own_stand(value: str) -> Stand:
    """What a reviewer's words mean for a sentence.

    >>> own_stand("editing required"), own_stand("borne out"), own_stand("perhaps")
    ('contradicted', 'borne out', 'unsure')
    """
    word = value.strip().lower()
    known = next((stand for stand in ("borne out", "contradicted", "not found") if stand == word), None)
    return known or OWN_VERDICTS.get(word.replace(" ", "_"), "unsure")


def _quote(fact: str, one: Evidence) -> QuotedEvidence:
    """The sentence of the evidence that holds most of the fact's words."""
    best = anchors(fact, [one])[0]
    return _quoted(one, best.start, best.end)


def _quoted(one: Evidence, start: int, end: int) -> QuotedEvidence:
    title = one.title or one.document
    return QuotedEvidence(text=one.text, start=start, end=end, title=title, number=one.number, passage=one.passage)


def _cited(case: Case, record: AreRecord) -> Mapping[tuple[int, int], bool]:
    """Of each (sentence, cited passage) of the answer that was checked, whether the passage bears out a fact of it."""
    spans = record.decomposition.clauses
    result: dict[tuple[int, int], bool] = {}
    for place, (start, end) in enumerate(case.answer.sentences):
        own = [f for f in record.facts if spans[f.clause].start < end and start < spans[f.clause].end]
        numbers = {c.number for c in case.answer.citations if c.valid and start <= c.start < end}
        result |= {(place, number): _bears_out(number, own) for number in numbers if own}
    return result


def _bears_out(number: int, facts: Sequence[FactRecord]) -> bool:
    return any(
        check.ruling.verdict == "supportive" and done.considered[check.evidence].number == number
        for fact in facts
        for done in fact.iterations
        for check in done.checks
    )
