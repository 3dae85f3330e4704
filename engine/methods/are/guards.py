"""Guards for the verifier: word counts can change a verdict, and the ruling says so.

names_and_numbers: a small entailment model overlooks a number or name that is not in the evidence. A supportive verdict
on a fact with one is unsure, as is one on a date that "03/05/2024" may be. Where the sentence on the fact lacks one,
and the model finds the fact much likelier borne out with a number or name of that sentence in its place, the passage
contradicts the fact (editing required).
event_order: a supportive verdict on "A before B" by a passage with "A after B", or where the dates of the two events in
the passages say so, is editing required. It is unsure where the two events there have few words of the fact's.
parties: a supportive verdict on "Ann paid Bo" by a passage with "Bo paid Ann" is editing required, as is one on "to Ann
in June" by "to Ann in May and to Bo in June" (english/parties.py).
roles: a role names a person or a body, and the model takes one for another ("line manager" for "head of department"). A
supportive verdict under 0.9 is unsure, and remains supportive, if the fact names a role by a common noun and the
passage has no word near in meaning to it.
left_open: a supportive verdict is unsure where the passage says the fact only as a plan, a possibility, a condition or
somebody's claim (english/stated.py).
anchored: a passage none of whose sentences holds enough of the fact's words seems to speak of something else: its
contradiction is unsure and asks for no edit. So is that of a passage that lacks the name that opens the fact and
another number or name of it, where a passage with this name holds as much of the fact. It stays a contradiction: a
guard lowers certainty and hides nothing.
said elsewhere (with names_and_numbers): a supportive verdict is unsure where the passage has a name or number of the
fact only in sentences, or in facts of its sentence, on something else, and its part on the rest of the fact contradicts
the fact when it is read alone.
word_for_word: a passage that says the fact in its own words bears it out, whatever the verifier says: the answer's
whole sentence is one of the passage's, or the fact's words are in one in the same order (english/stated.py). A sentence
with a speaker's label ("Ann: ...") is one of that speaker's turn, and is contradicted by the turn of another. Words
decide then; the ruling says so and has no probabilities.
Each can be switched off; `python -m bench.guards` measures what each is worth. No paper's method: ARE trusts its
language model. Left out: guards for a language model's verdicts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from msgspec.structs import replace

from engine.core.progress import Watch
from engine.core.settings import Verification
from engine.core.text import Span, sentences
from engine.core.turns import continued, labelled, turn_at, turns
from engine.english.notation import amounts, either_day, values
from engine.english.parser import common_nouns
from engine.english.parties import exchanged, mispaired
from engine.english.pronouns import opens_with_pronoun
from engine.english.stated import left_open, states
from engine.english.statements import split
from engine.english.words import WHAT, WHO
from engine.methods.are.anchor import SPEAKS, Anchor
from engine.methods.are.edit import CANDIDATES, Replacement, apply, replacements
from engine.methods.are.event_order import against
from engine.methods.are.names import names
from engine.methods.are.shared_words import WORD, is_content, missing, rough_stems
from engine.methods.are.values import UNSURE_AS, Evidence, Ruling
from engine.methods.are.verdict import judged_twice
from engine.models.alignment import stem
from engine.models.protocols import Embedder, Entailment, Judged
from engine.models.subject import holding_most, on_subject, plain_stems, with_pronouns

COPIED, STATED = "word for word in the source", "in the words of the source"  # who judged in place of a verifier
TOLD = {
    COPIED: "the passage says it word for word",
    STATED: "the passage says it in these words, with others between them",
}
ALL = 0.99  # share of the fact's words from which all are held: a parse is dear
SAME = 0.5  # share from which a sentence's number or name may be what the fact should have
PREFERS = 0.2  # p(supportive) that it adds, from which the passage contradicts the fact; bench/guards.py

REST = 0.6  # share of the fact's other words from which a part is on what the fact says of a name or number

NEAR = 0.55  # cosine from which a word of the passage may mean the same as a noun of the fact
WELL = 0.9  # p(supportive) from which roles are not compared
SOMEONE = 0.05  # how much nearer a noun is to WHO than to WHAT, at least, to count as a role


@dataclass(frozen=True)
class Read:
    """A fact with the evidence that a verifier read for it.

    `said` is the answer's sentence; `dated` are the parts of all passages considered that name a day: they tell an
    order of events where the evidence does not.
    """

    fact: str
    said: str
    evidence: Evidence
    anchor: Anchor
    dated: Sequence[str] = ()

    @property
    def sentence(self) -> Span:
        """The evidence's sentence on the fact, with the one before where that says who "she" is."""
        return self.anchor.named, self.anchor.end


def rulings_on(
    pairs: Sequence[Read], verifier: Entailment, embedder: Embedder, settings: Verification, watch: Watch = Watch()
) -> list[Ruling]:
    """The verifier's rulings on pairs as the guards leave them, in order."""
    judged = verdicts_on([(pair.fact, pair) for pair in pairs], verifier, settings, watch)
    return with_guards([Ruling.of(one, verifier) for one in judged], pairs, verifier, embedder, settings)


def verdicts_on(
    facts: Sequence[tuple[str, Read]], verifier: Entailment, settings: Verification, watch: Watch = Watch()
) -> list[Judged]:
    """The verdicts on facts, each by the evidence of a pair, and of its sentence alone where that is switched on."""
    if settings.sentence_alone:
        return judged_twice([(fact, one.evidence.text, one.sentence) for fact, one in facts], verifier, watch)
    return verifier.judge([(fact, one.evidence.text) for fact, one in facts], watch)


def with_guards(
    rulings: Sequence[Ruling], pairs: Sequence[Read], verifier: Entailment, embedder: Embedder, settings: Verification
) -> list[Ruling]:
    """The verifier's rulings on pairs as the guards leave them, in order."""
    instead = preferred(rulings, pairs, verifier, settings) if settings.names_and_numbers else [None] * len(pairs)
    found = [
        guarded(ruling, pair, settings, other) for ruling, pair, other in zip(rulings, pairs, instead, strict=True)
    ]
    if settings.names_and_numbers:
        found = said_elsewhere(found, pairs, verifier)
    found = doubted(found, pairs, embedder, settings)
    return list(map(word_for_word, found, pairs)) if settings.word_for_word else found


def preferred(
    rulings: Sequence[Ruling], pairs: Sequence[Read], verifier: Entailment, settings: Verification
) -> list[Replacement | None]:
    """The number or name that the verifier prefers in place of one that the sentence on the fact lacks, if any.

    Only for supportive rulings. It is one of that sentence, which holds most of the fact's words.
    """
    tried = [
        (place, change)
        for place, (ruling, pair) in enumerate(zip(rulings, pairs, strict=True))
        if ruling.verdict == "supportive"
        for change in _in_place(pair)
    ]
    asked = [(apply(pairs[place].fact, change), pairs[place]) for place, change in tried]
    best: list[Replacement | None] = [None] * len(pairs)
    least = [ruling.scores.get("supportive", 1.0) + PREFERS for ruling in rulings]
    for (place, change), judged in zip(tried, verdicts_on(asked, verifier, settings), strict=True):
        if judged.scores["supportive"] > least[place]:
            best[place], least[place] = change, judged.scores["supportive"]
    return best


def _in_place(pair: Read) -> list[Replacement]:
    """The replacements of what the sentence on the fact lacks by what it has."""
    anchor, text = pair.anchor, pair.evidence.text
    near = f"{pair.evidence.title}\n{text[slice(*pair.sentence)]}"
    lacking = set(missing(pair.fact, near)) if anchor.share >= SAME else set()
    if not lacking:
        return []
    found = replacements(pair.fact, text[anchor.start : anchor.end])
    return [change for change in found if set(missing(apply(pair.fact, change), near)) < lacking][:CANDIDATES]


def guarded(ruling: Ruling, pair: Read, settings: Verification, instead: Replacement | None = None) -> Ruling:
    """The ruling of an entailment model, turned where a guard speaks against it; `instead`: see `preferred`."""
    fact, evidence, anchor = pair.fact, pair.evidence.text, pair.anchor
    if settings.names_and_numbers and ruling.verdict == "supportive":
        if instead is not None:
            said = fact[instead.start : instead.end]
            ruling = _contradicted(ruling, f"the passage has {instead.new} in place of {said}", (said,))
        elif anchor.lacking:
            where = "the part on this" if any(one in evidence for one in anchor.lacking) else "the passage"
            ruling = _lowered(ruling, f"{where} does not contain {', '.join(anchor.lacking)}")
    if settings.event_order and ruling.verdict == "supportive":
        order = against(fact, evidence, pair.dated)
        if order is not None:
            word = fact[order.start : order.end]
            why = f'the dates do not say "{word}" but' if order.dated else f'the passage does not say "{word}" but'
            ruling = _contradicted(ruling, f"{why} the reverse", (word,))
            if not (order.known or ruling.unsure):
                ruling = _lowered(ruling, "it may say so of other events")
    for find, how in ((exchanged, "in each other's place"), (mispaired, "apart, each with another")):
        if settings.parties and ruling.verdict == "supportive" and (found := find(fact, evidence)):
            one, other = fact[slice(*found.first)], fact[slice(*found.second)]
            ruling = _contradicted(ruling, f"the passage has {one} and {other} {how}", (one, other))
    if settings.names_and_numbers and _is_sure(ruling) and (date := either_day(fact, evidence)):
        ruling = _lowered(ruling, f"{date} can be another day, too")
    if settings.left_open and _is_sure(ruling) and (word := left_open(evidence, fact)):
        ruling = _lowered(ruling, f'the passage leaves it open ("{word}")')
    if ruling.verdict == "editing_required" and not speaks(fact, evidence, anchor, settings):
        if anchor.foreign:
            lowered = _lowered(ruling, f"another passage names {anchor.foreign}, and this one does not")
            return replace(lowered, lacking=(anchor.foreign,))
        return _lowered(ruling, "no sentence of the passage contains enough of the fact")
    return ruling


def _is_sure(ruling: Ruling) -> bool:
    """Does it bear the fact out, and is it not unsure yet."""
    return ruling.verdict == "supportive" and not ruling.unsure


def word_for_word(ruling: Ruling, pair: Read) -> Ruling:
    """The ruling, or a supportive one where the evidence has the words: its window is the passage's sentence.

    Words with a speaker's label ("Ann: ...") are supported by that speaker's turn alone, and contradicted where the
    evidence has only another of its speakers say them.
    """
    evidence, near = pair.evidence.text, (pair.anchor.start, pair.anchor.end)
    wanted = " ".join(pair.said.split())
    lines = [(span, " ".join(evidence[slice(*span)].split())) for span in sentences(evidence)]
    whole = [span for span, line in lines if line == wanted]
    speaker, words = labelled(wanted)
    if speaker:
        told = continued(turns(evidence)[0], evidence, pair.evidence.speaker)
        same = ((turn_at(told, span[0]), span) for span, line in lines if words in (line, labelled(line)[1]))
        by_speaker = {turn.speaker: span for turn, span in same if turn and turn.speaker}
        if speaker in by_speaker:
            whole = [by_speaker[speaker]]
        elif by_speaker and speaker in {turn.speaker for turn in told}:
            return _contradicted(ruling, f"the passage has {' and '.join(by_speaker)} say this", ())
    # A copy of "It opened in 1978" says so of the fact's bridge only where the passage names this one.
    named = not opens_with_pronoun(wanted) or rough_stems(pair.fact) <= rough_stems(f"{pair.evidence.title} {evidence}")
    if named and whole:
        found, by = whole[0], COPIED
    elif pair.anchor.share > ALL and states(evidence[slice(*near)], pair.fact):
        found, by = near, COPIED if _in_sequence(pair.fact, evidence[slice(*near)]) else STATED
    else:
        return ruling
    return Ruling(verdict="supportive", by=by, note=ruling.because(TOLD[by]).note, window=found)


def _in_sequence(fact: str, sentence: str) -> bool:
    """Whether the words of the fact are in the sentence without others between them."""
    own, others = (" ".join(WORD.findall(text.casefold())) for text in (fact, sentence))
    return f" {own} " in f" {others} "


def speaks(fact: str, evidence: str, anchor: Anchor, settings: Verification) -> bool:
    """Does the anchor's sentence speak of the fact: enough of its words, or its two events in the other order.

    Not where it speaks of another thing, as far as its names tell.
    """
    if not settings.anchored or anchor.foreign:
        return not settings.anchored
    if anchor.share >= SPEAKS:
        return True
    return settings.event_order and against(fact, evidence[anchor.start : anchor.end]) is not None


def said_elsewhere(rulings: Sequence[Ruling], pairs: Sequence[Read], verifier: Entailment) -> list[Ruling]:
    """The rulings, unsure where the part on the fact lacks a value of it that other parts have, and contradicts it."""
    found = list(rulings)
    sure = [(place, pair) for place, pair in enumerate(pairs) if _is_sure(rulings[place])]
    asked = [(place, *one) for place, pair in sure for one in _elsewhere(pair.fact, pair.evidence.text)]
    judged = verifier.judge([(pairs[place].fact, part) for place, _, part in asked]) if asked else []
    for (place, value, _), one in zip(asked, judged, strict=True):
        if one.verdict == "editing_required" and not found[place].unsure:
            found[place] = _lowered(found[place], f"the part on this does not contain {value}")
    return found


def _elsewhere(fact: str, evidence: str) -> Iterator[tuple[str, str]]:
    """Names and numbers of the fact that the evidence has only apart from what it says of the rest, with this part.

    That is a sentence, or one of its own facts. A number of another sentence is for the verifier (models/subject.py).
    """
    for (start, end), value, has in _values(fact):
        rest = plain_stems(f"{fact[:start]} {fact[end:]}")
        subject = on_subject(rest, evidence, REST)
        places = [span for span in sentences(evidence) if has(evidence[slice(*span)])]
        if subject and places and with_pronouns(subject, evidence).isdisjoint(places):
            yield value, evidence[slice(*subject[0])]
        for span in sorted({*subject}.intersection(places)):
            parts = split(evidence[slice(*span)])
            near = [parts[place] for place in holding_most(rest, parts, REST)]
            if near and any(map(has, parts)) and not any(map(has, near)):
                yield value, near[0]


def _values(fact: str) -> Iterator[tuple[Span, str, Callable[[str], object]]]:
    """The names, and the numbers in digits, of a fact: where, as written, and whether a text has it."""
    for start, end, name in names(fact):
        last = re.compile(rf"\b{re.escape(name.split()[-1])}(?!\w)", re.IGNORECASE)  # "Pets" may only open the fact
        yield (start, end), name, last.search
    for one in amounts(fact):
        raw = fact[one.start : one.end]
        if any(c.isdigit() for c in raw):
            yield (one.start, one.end), raw, partial(_has_value, one.keys[0])


def _has_value(value: tuple[float | str, str], text: str) -> bool:
    return value in values(text)


def _contradicted(ruling: Ruling, why: str, lacking: tuple[str, ...]) -> Ruling:
    note = f"editing required, because {why}; else {ruling.note}"
    return replace(ruling, verdict="editing_required", note=note, lacking=lacking)


def _lowered(ruling: Ruling, why: str) -> Ruling:
    return replace(ruling, unsure=True, lowered=True, note=f"{ruling.note.removesuffix('; unsure')}{UNSURE_AS}{why}")


def doubted(
    rulings: Sequence[Ruling], pairs: Sequence[Read], embedder: Embedder, settings: Verification
) -> list[Ruling]:
    """The rulings, unsure where the passage has nothing near a role of the fact."""
    texts = [f"{pair.evidence.title} {pair.evidence.text}" for pair in pairs]
    asked = {
        place: (unheld_nouns(pair.fact, texts[place]), _terms(texts[place]))
        for place, (ruling, pair) in enumerate(zip(rulings, pairs, strict=True))
        if settings.roles and _is_sure(ruling)
        if ruling.scores.get("supportive", 1.0) < WELL
    }
    asked = {place: (nouns, terms) for place, (nouns, terms) in asked.items() if nouns}
    if not asked:
        return list(rulings)
    flat = list(dict.fromkeys([*WHO, *WHAT, *(t for nouns, terms in asked.values() for t in (*nouns, *terms))]))
    vectors = dict(zip(flat, embedder.embed(flat), strict=True))

    def nearest(noun: str, texts: Sequence[str]) -> float:
        return max((float(vectors[noun] @ vectors[text]) for text in texts), default=0.0)

    result = list(rulings)
    for place, (nouns, terms) in asked.items():
        roles = [noun for noun in nouns if noun not in WHO and nearest(noun, WHO) - nearest(noun, WHAT) > SOMEONE]
        if far := [role for role in roles if nearest(role, terms) < NEAR]:
            result[place] = _lowered(result[place], f"the passage says nothing like {', '.join(far)}")
    return result


def unheld_nouns(fact: str, evidence: str) -> tuple[str, ...]:
    """Common nouns of the fact, in lower case, whose stems the evidence does not have; empty without the parser.

    >>> unheld_nouns("The line manager approved 3 claims", "The head of department approves a claim.")
    ('line', 'manager')
    """
    held = {stem(part) for word in WORD.findall(evidence.lower()) for part in (word, *re.split("[-'’]", word))}
    measured = {place for amount in amounts(fact) for place in range(amount.start, amount.end)}
    spans = (span for span in common_nouns(fact) if span[0] not in measured)
    nouns = filter(is_content, (fact[start:end].lower() for start, end in spans))
    parts = {noun: [stem(part) for part in re.split("['’]", noun) if len(part) > 1] for noun in nouns}
    return tuple(noun for noun, stems in parts.items() if not held.issuperset(stems))


def _terms(text: str) -> tuple[str, ...]:
    """The content words of a text in lower case, and pairs of them that are neighbours."""
    words = WORD.findall(text.lower())
    beside = [f"{one} {other}" for one, other in pairwise(words) if is_content(one) and is_content(other)]
    return tuple(dict.fromkeys([*filter(is_content, words), *beside]))
