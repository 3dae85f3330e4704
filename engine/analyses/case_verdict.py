"""Does an answer stand: a verdict on each fact and sentence, the best evidence, and the counts of a whole case.

Facts are those of the last check of the answer (ARE, 4). A fact has the verifier's verdict, or a reviewer's own. One
that is not borne out counts as edited once a reviewer accepts all of its edits, or writes its sentence anew. Its
probability is then that of the check after the edit. A sentence has the worst state of its facts: facts that were not
edited keep their own. Nothing is computed by a model here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Literal, get_args

from msgspec.structs import replace

from engine.analyses.facts import KIND as CHECK, record_of
from engine.analyses.used_supports import KIND as USED_SUPPORTS
from engine.answer.citations import without_markers
from engine.answer.in_documents import may_not_answer, probably_answered
from engine.cases.places import decisions, edit_decisions, numbered, revision, rewritten
from engine.cases.review import Conclusion, Mark, MarkDraft, Review, review_of
from engine.core.errors import InputError
from engine.core.text import Span, counted
from engine.core.values import Case, Value
from engine.methods.are.anchor import closest
from engine.methods.are.backtrack import Decision, accepted_ids, exact, is_open, put_in, revised
from engine.methods.are.guards import TOLD
from engine.methods.are.shared_words import missing, rough_stems
from engine.methods.are.values import IN_WORDS, AreRecord, Change, Evidence, FactRecord, Placed, Stand
from engine.methods.used_supports import Quadrant
from engine.models.tables import names_columns

FactState = Stand | Literal["edited", "no claim"]
"""The state of a fact or sentence in the text as it now is; a sentence without a fact has "no claim"."""
STATES: tuple[FactState, ...] = ("contradicted", "not found", "unsure", "not checked", "edited", "borne out")
"""Worst first."""
SETTLED: tuple[FactState, ...] = ("borne out", "edited", "no claim")
"""The states that need nobody's attention."""
FACT_STATES: tuple[FactState, ...] = ("borne out", "edited", "contradicted", "not found", "unsure", "not checked")
VERDICTS = {"fact": tuple(IN_WORDS.values()), "edit": get_args(Decision)}
"""The words with which a reviewer can decide on each."""
SAME_THING = 0.6  # share of a fact's words from which a sentence that contradicts it is about the same thing


def in_words(machine: str) -> str:
    """A stored verdict of the machine in the words of the pages; other values as they are.

    >>> in_words("editing_required"), in_words("answered"), in_words("")
    ('contradicted', 'answered', 'none given')
    """
    return IN_WORDS.get(machine.replace(" ", "_"), machine.replace("_", " ")) or "none given"


class QuotedEvidence(Value, frozen=True):
    """Characters [start, end) of a passage's `text`; `number` is its place in the case (None: from the corpus)."""

    text: str
    start: int
    end: int
    title: str
    number: int | None = None

    @property
    def words(self) -> str:
        """The quoted sentence."""
        return self.text[self.start : self.end]


class FactEdit(Change, frozen=True):
    """An edit of a fact: `new` for `old` at [start, end) of the checked text; `open`: undecided, and can be put in.

    `said` is the decision, and of an accepted one why the text does not take it.
    """

    id: str
    decision: Decision | None = None
    said: str = ""
    open: bool = False


class FactVerdict(Value, frozen=True):
    """A fact by its number ("2.1"), its verdict, by whom, its evidence; `rewritten`: a reviewer wrote its sentence.

    `against` is the sentence of another passage that contradicts a fact that the check found borne out. `doubt` is why
    a guard made the verdict unsure.
    """

    number: str
    text: str
    stand: Stand
    by: str
    quote: QuotedEvidence | None = None
    against: QuotedEvidence | None = None
    probability: float | None = None
    proposed: str = ""
    mark: Mark | None = None
    edits: tuple[FactEdit, ...] = ()
    rewritten: bool = False
    doubt: str = ""

    def mends(self, edit: FactEdit) -> bool:
        """Whether the edit corrects the fact; a deletion of what is only not found or unsure takes it out."""
        return bool(edit.new) or self.stand == "contradicted"

    @property
    def state(self) -> FactState:
        """Its state in the text as it now is."""
        changed = self.rewritten or _all_accepted(self.edits)
        return "edited" if changed and self.stand != "borne out" else self.stand


class SentenceVerdict(Value, frozen=True):
    """Characters [start, end) of the answer, its facts, the worst first, and a reviewer's own text."""

    start: int
    end: int
    facts: tuple[FactVerdict, ...] = ()
    rewritten: Mark | None = None

    @property
    def accepted(self) -> tuple[FactEdit, ...]:
        """The accepted edits of its facts, in the order of the text."""
        found = {e.id: e for fact in self.facts for e in fact.edits if e.decision == "accepted"}
        return tuple(sorted(found.values(), key=lambda edit: edit.start))

    @property
    def state(self) -> FactState:
        """The worst state of its facts; "edited" where a reviewer wrote it anew."""
        if self.rewritten is not None:
            return "edited"
        return self.facts[0].state if self.facts else "no claim"

    @property
    def word(self) -> str:
        """Its state, and whether a part of it was edited."""
        partly = self.state != "edited" and any(fact.state == "edited" for fact in self.facts)
        return f"{self.state}, edited" if partly else self.state


class CaseVerdict(Value, frozen=True):
    """A case at one glance; `sentences` cover the answer, `undecided` are ids of edits, `accepted` and the rest counts.

    `citations` are pairs of a sentence and a passage that it cites, `citations_supported` those whose passage bears
    out a fact of the sentence as it now is, `citations_in_part` those of them whose sentence has another fact that is
    not settled. `citations_compared` are those in the last analysis of use and support, and `citations_used` those of
    them that are used and supporting. `text` is the answer with the accepted edits.
    """

    sentences: tuple[SentenceVerdict, ...]
    finished: bool
    verifier: str
    text: str
    accepted: int = 0
    undecided: tuple[str, ...] = ()
    signed_off: bool = False
    citations: int = 0
    citations_supported: int = 0
    citations_in_part: int = 0
    citations_compared: int = 0
    citations_used: int = 0

    def sentence_of(self, fact: str) -> int | None:
        """The number, from 1, of the first sentence that the fact belongs to."""
        numbered = enumerate(self.sentences, start=1)
        return next((n for n, sentence in numbered if fact in {f.number for f in sentence.facts}), None)

    @property
    def overridden(self) -> int:
        """How many facts have a reviewer's own verdict."""
        return len({fact.number for sentence in self.sentences for fact in sentence.facts if fact.mark})

    @property
    def open_edits(self) -> str:
        """The edits that nobody decided, in words; a sign-off settles them, since its text leaves them out."""
        return f"{counted(len(self.undecided), 'edit')} {self._unsettled}" if self.undecided else ""

    @property
    def _unsettled(self) -> str:
        return "left out of the signed text" if self.signed_off else "undecided"

    @property
    def undecided_fact(self) -> str:
        """The number of the first fact with one of these edits; "" without one."""
        facts = (fact for sentence in self.sentences for fact in sentence.facts)
        return next((fact.number for fact in facts if {edit.id for edit in fact.edits} & {*self.undecided}), "")

    @property
    def named_edits(self) -> str:
        """The same edits by their numbers, in a sentence."""
        return f"{_named('Edit', self.undecided)} {self._unsettled}." if self.undecided else ""

    @property
    def excepted(self) -> tuple[str, ...]:
        """The numbers of the sentences that are not borne out and still in the text; "partly stands" excepts them."""
        numbered = enumerate(self.sentences, start=1)
        return tuple(str(number) for number, sentence in numbered if sentence.state not in SETTLED)

    @property
    def facts(self) -> dict[FactState, int]:
        """How many facts are in each state, in the order of `FACT_STATES`, without the states of none."""
        found = Counter({fact.number: fact.state for sentence in self.sentences for fact in sentence.facts}.values())
        return {state: found[state] for state in FACT_STATES if found[state]}

    @property
    def headline(self) -> str:
        """The facts by their states, in words.

        >>> CaseVerdict(sentences=(), finished=True, verifier="v", text="").headline
        'The answer contains no claim to check.'
        """
        if not self.facts:
            return "The answer contains no claim to check."
        total = counted(sum(self.facts.values()), "fact")
        return f"{total}: {', '.join(f'{count} {state}' for state, count in self.facts.items())}"

    @property
    def quoted(self) -> bool:
        """Whether every fact is borne out because a source has its words: then nothing was judged."""
        facts = [fact for sentence in self.sentences for fact in sentence.facts]
        return bool(facts) and all(fact.state == "borne out" and fact.by in TOLD for fact in facts)

    @property
    def cited(self) -> str:
        """How many citations are supported, and how many of these for a part of their sentence alone, in words."""
        in_part = f", {self.citations_in_part} in part" if self.citations_in_part else ""
        return f"{self.citations_supported} of {counted(self.citations, 'citation')} supported{in_part}"


def case_verdict(case: Case, review: Review) -> CaseVerdict | None:
    """The case's last check, with the reviewer's own verdicts in place; None without one that can be read."""
    record = CHECK.readable(case)
    if record is None:
        return None
    edits, decided = revision(record, case.answer, review)
    judged = sentence_verdicts(case, record, review)
    cited = _cited(case, record, judged)
    quadrants = _quadrants(case)
    compared = [quadrants[pair] for pair in cited if pair in quadrants]
    return CaseVerdict(
        sentences=judged,
        finished=record.finished,
        verifier=record.verifier,
        text=revised(record.checked, edits, accepted_ids(decided)),
        accepted=len(put_in(record.checked, edits, accepted_ids(decided))),
        undecided=tuple(edit.id for edit in edits if edit.id not in decided),
        signed_off=review.status == "signed off",
        citations=len(cited),
        citations_supported=sum(cited.values()),
        citations_in_part=sum(bears and judged[place].state not in SETTLED for (place, _), bears in cited.items()),
        citations_compared=len(compared),
        citations_used=compared.count("used and supporting"),
    )


def by_machine(case: Case) -> CaseVerdict | None:
    """The last check as it came out, without a reviewer's verdicts and decisions."""
    return case_verdict(case, review_of(()))


def changed_by_review(case: Case, verdict: CaseVerdict | None) -> str:
    """The headline of the machine alone, in a sentence; empty where no reviewer changed it."""
    before = by_machine(case) if verdict else None
    if verdict is None or before is None or before.headline == verdict.headline:
        return ""
    return f"The machine's verdict, before the review: {before.headline}."


def without_source(case: Case) -> str:
    """The citations of passages that are not there, in words; empty without one."""
    invalid = sum(not citation.valid for citation in case.answer.citations)
    return f"{counted(invalid, 'citation')} without a source" if invalid else ""


def verdict_line(case: Case, verdict: CaseVerdict | None) -> str:
    """The facts by their states, and whether the documents answer the question, which no fact tells.

    A doubt comes first. Nothing but the facts once somebody signed, who has read the rest.
    """
    said = verdict.headline if verdict else "The answer was not checked against its sources."
    if doubt := doubt_about(case, verdict):
        return f"{doubt} {said}"
    answered = "" if verdict and verdict.signed_off else probably_answered(case)
    return f"{said.removesuffix('.')}. {answered}" if answered else said


def doubt_about(case: Case, verdict: CaseVerdict | None) -> str:
    """Why the states of the facts mean little, in a sentence; empty without a reason, and once somebody signed.

    The language is not English, or the documents may not answer: facts that answer nothing may be borne out.
    """
    if verdict and verdict.signed_off:
        return ""
    record = record_of(case) if verdict else None
    return (record.foreign if record else "") or (probably_answered(case) if may_not_answer(case) else "")


def open_items(case: Case, verdict: CaseVerdict, review: Review) -> list[str]:
    """Open items before anyone relies on the text: undecided edits, claims without support."""
    found = [] if verdict.finished else ["The check was stopped early."]
    if lacking := without_source(case):
        found.append(f"{lacking}.")
    if verdict.named_edits:
        found.append(verdict.named_edits)
    record = record_of(case)
    if record is None:
        return found
    for fact in fact_verdicts(case, record, review).values():
        if fact.mark is not None and fact.state == "contradicted":
            found.append(f'{fact.mark.author} calls "{fact.text}" contradicted, and the text still says it.')
        if fact.against and fact.mark is None and fact.state == "borne out":
            place = f"passage {fact.against.number}" if fact.against.number else "a passage of the corpus"
            words = " ".join(fact.against.words.split())
            found.append(f'{place[0].upper()}{place[1:]} may contradict "{fact.text}": "{words}"')
    in_part = review.conclusion is not None and review.conclusion.value == "partly stands"
    how = "excepted from the conclusion" if in_part else "still in the text"
    doubtful = [number for number in verdict.excepted if verdict.sentences[int(number) - 1].state == "unsure"]
    wrong = [number for number in verdict.excepted if number not in doubtful]
    for numbers, said in ((wrong, "not borne out"), (doubtful, "unsure")):
        found += [f"{_named('Sentence', numbers)} {said} and {how}."] if numbers else []
    return found


def _named(what: str, numbers: Sequence[str]) -> str:
    """Things by their numbers, with the verb.

    >>> _named("Edit", "3"), _named("Sentence", "124")
    ('Edit 3 is', 'Sentences 1, 2 and 4 are')
    """
    *before, last = numbers
    return f"{what}s {', '.join(before)} and {last} are" if before else f"{what} {last} is"


def conclusions(verdict: CaseVerdict | None) -> tuple[Conclusion, ...]:
    """The conclusions available to a reviewer.

    With accepted edits the original answer cannot stand; it partly stands where some of it is not borne out.
    """
    whole: Conclusion = "stands as edited" if verdict and verdict.accepted else "stands"
    return (whole, *(("partly stands",) if verdict and verdict.excepted else ()), "does not stand")


def check_conclusion(case: Case, review: Review) -> None:
    """Raise `InputError` for a conclusion of the sign-off that the review before it does not allow."""
    allowed = conclusions(case_verdict(case, review))
    if review.conclusion and review.conclusion.value not in allowed:
        said = f"The conclusion {review.conclusion.value!r} does not fit the edits that you accepted and what is open."
        raise InputError(f"{said} Choose one of: {', '.join(allowed)}.")


def sentence_verdicts(case: Case, record: AreRecord, review: Review) -> tuple[SentenceVerdict, ...]:
    """A verdict per sentence of the answer, in order; a fact belongs to each sentence that its clause touches."""
    facts, alone = numbered(record), _alone(case, record, review)
    result = []
    anew = rewritten(case.answer, review)
    for number, (start, end) in enumerate(case.answer.sentences, start=1):
        own = [
            # Nobody checked what a reviewer wrote.
            replace(alone[name], rewritten=True, probability=None) if number in anew else alone[name]
            for name, fact in facts.items()
            if (clause := record.decomposition.clauses[fact.clause]).start < end and start < clause.end
        ]
        own.sort(key=lambda fact: STATES.index(fact.state))
        result.append(SentenceVerdict(start=start, end=end, facts=tuple(own), rewritten=anew.get(number)))
    return tuple(result)


def fact_verdicts(case: Case, record: AreRecord, review: Review) -> dict[str, FactVerdict]:
    """The verdict on each fact by its number, as its sentence has it; one of no sentence has its own."""
    of_sentences = [fact for one in reversed(sentence_verdicts(case, record, review)) for fact in one.facts]
    return _alone(case, record, review) | {fact.number: fact for fact in of_sentences}


def _alone(case: Case, record: AreRecord, review: Review) -> dict[str, FactVerdict]:
    """The verdict on each fact by its number, without its sentence."""
    decided, said = decisions(record, review), edit_decisions(record, case.answer, review)
    result = {}
    for place, (name, fact) in enumerate(numbered(record).items()):
        edits = tuple(
            FactEdit(
                id=edit.id,
                start=edit.start,
                end=edit.end,
                old=edit.old,
                new=edit.new,
                decision=(decision := decided.get(edit.id)),
                said=said.get(edit.id, ""),
                open=decision is None
                and review.status != "signed off"
                and (edit.status == "placed" or exact(edit, record.checked)),
            )
            for edit in record.edits
            if _changes(edit, place, fact)
        )
        result[name] = fact_verdict(name, fact, review.overrides.get(f"fact:{name}"), edits=edits)
    return result


def _changes(edit: Placed, place: int, fact: FactRecord) -> bool:
    """Whether the edit is one of the fact at `place`, or makes the same change to another fact of its clause."""
    if edit.fact == place or edit.clause != fact.clause:
        return edit.fact == place
    if edit.ruling is None and not edit.new:
        return is_open(fact)  # a deletion is offered once for the open facts of a clause
    own = fact.edit.changes if fact.edit else ()
    return any((one.old.strip(), one.new.strip()) == (edit.old.strip(), edit.new.strip()) for one in own)


def _all_accepted(edits: Sequence[FactEdit]) -> bool:
    return bool(edits) and all(edit.decision == "accepted" for edit in edits)


def fact_verdict(
    name: str, fact: FactRecord, mark: Mark | None = None, *, edits: tuple[FactEdit, ...] = ()
) -> FactVerdict:
    """The verdict by the reviewer's mark, else by the check; an edited fact has the probability after the edit."""
    stand, ruling = own_stand(mark.value) if mark else fact.stand, fact.ruling
    window = ruling.window if ruling and fact.stand != "not found" else (0, 0)
    if stand != "borne out" and _all_accepted(edits):
        ruling = fact.edit.ruling if fact.edit else None
    return FactVerdict(
        number=name,
        text=fact.fact.text,
        stand=stand,
        by=mark.author if mark else ruling.by if ruling else "",
        quote=_quote(fact.fact.text, fact.evidence, window) if fact.evidence else None,
        against=_against(fact),
        probability=ruling.scores.get(ruling.verdict) if ruling else None,
        proposed=fact.edit.after if fact.edit else "",
        mark=mark,
        edits=edits,
        doubt=ruling.doubt if ruling else "",
    )


def source_sentence(case: Case, number: int, sentence: int | None, verdict: CaseVerdict | None) -> Span | None:
    """Characters of passage `number` that hold the sentence which the answer's `sentence` (from 1) rests on.

    The verdict's evidence, else what was quoted, else the sentence with most of its words; without `sentence`, of the
    first one that cites the passage. None where the passage shares no word with it.
    """
    answer, passage = case.answer, case.passages[number - 1]
    if sentence is None:
        cited = (c.start for c in answer.citations if c.number == number)
        spans = list(answer.sentences)
        sentence = next((n for at in cited for n, (a, b) in enumerate(spans, start=1) if a <= at < b), None)
        if sentence is None:
            return None
    for fact in verdict.sentences[sentence - 1].facts if verdict else ():
        if fact.quote and fact.quote.number == number and fact.quote.text == passage.text:
            return fact.quote.start, fact.quote.end
    for quoting, quoted, start, end in answer.quotes:
        if (quoting + 1, quoted) == (sentence, number):
            return start, end
    words = without_markers(answer.text[slice(*answer.sentences[sentence - 1])])
    return closest_sentence(words, Evidence(text=passage.text, source="case", title=passage.title))


def closest_sentence(words: str, one: Evidence) -> Span | None:
    """Characters of the evidence's sentence that holds most of the words; None where it shares none."""
    nearest = closest(words, one)
    return (nearest.start, nearest.end) if nearest.share > 0 else None


def own_stand(value: str) -> Stand:
    """The state of a fact after a reviewer's verdict.

    >>> own_stand("editing required"), own_stand("borne out"), own_stand("perhaps")
    ('contradicted', 'borne out', 'unsure')
    """
    word = value.strip().lower()
    known = next((stand for stand in IN_WORDS.values() if stand == word), None)
    return known or IN_WORDS.get(word.replace(" ", "_"), "unsure")


def check_verdict(draft: MarkDraft) -> None:
    """Raise `InputError` for a reviewer's verdict that no fact, or no edit, can have."""
    what = draft.target.partition(":")[0] if draft.kind == "override" else ""
    allowed = VERDICTS.get(what)
    if allowed and draft.value not in allowed and (what == "edit" or own_stand(draft.value) == "unsure"):
        raise InputError(f"{draft.value!r} is not a verdict on {draft.place}. Choose one of: {', '.join(allowed)}.")


@lru_cache(maxsize=4096)  # every page of a case shows its verdict, at every click
def _quote(fact: str, one: Evidence, window: Span = (0, 0)) -> QuotedEvidence | None:
    """The sentence with most of the fact's words; where none is there the `window` that decided, None without one."""
    span, title = closest_sentence(fact, one) or (window if any(window) else None), one.title or one.document
    return QuotedEvidence(text=one.text, start=span[0], end=span[1], title=title, number=one.number) if span else None


def _against(fact: FactRecord) -> QuotedEvidence | None:
    """The sentence of a passage that contradicts the fact, if it has most of its words and lacks its number or name.

    Not a row of a table that begins with another name: it is on something else.
    """
    if fact.against is None:
        return None
    quote = _quote(fact.fact.text, fact.against)
    if quote is None:
        return None
    if names_columns(quote.words) and quote.words.split("|")[0].strip(" ") not in fact.fact.text:
        return None
    words = {word for word in rough_stems(fact.fact.text) if not any(map(str.isdigit, word))}
    shared = words & rough_stems(f"{quote.title} {quote.words}")
    same_thing = len(words) > 1 and len(shared) >= SAME_THING * len(words)
    return quote if same_thing and missing(fact.fact.text, quote.words) else None


def _cited(case: Case, record: AreRecord, judged: Sequence[SentenceVerdict]) -> Mapping[tuple[int, int], bool]:
    """Of each (sentence, cited passage) of the answer that was checked, whether the passage bears out a fact of it."""
    records = numbered(record)
    return {
        (place, citation.number): any(_bears_out(citation.number, fact, records[fact.number]) for fact in one.facts)
        for place, one in enumerate(judged)
        for citation in case.answer.citations
        if one.facts and citation.valid and one.start <= citation.start < one.end
    }


def _quadrants(case: Case) -> dict[tuple[int, int], Quadrant]:
    """The quadrant of each (sentence, passage) in the last analysis of use and support; none without it."""
    found = USED_SUPPORTS.readable(case)
    if found is None:
        return {}
    places = {span: place for place, span in enumerate(case.answer.sentences)}
    return {
        (places[span], number): cell.quadrant
        for span, cells in zip(found.spans, found.cells, strict=True)
        for numbers, cell in zip(found.sources, cells, strict=True)
        for number in numbers
        if span in places
    }


def _bears_out(number: int, verdict: FactVerdict, fact: FactRecord) -> bool:
    """Whether the fact, as it now is, is borne out and passage `number` says so: no doubtful verdict counts."""
    put_right = _all_accepted(verdict.edits) and any(edit.new for edit in verdict.edits)
    if verdict.stand != "borne out" and not put_right:
        return False
    return (verdict.quote is not None and verdict.quote.number == number) or any(
        check.ruling.verdict == "supportive"
        and not check.ruling.unsure
        and done.considered[check.evidence].number == number
        for done in fact.iterations
        for check in done.checks
    )
