"""Molecular-to-atomic fact decomposition (ARE, section 4.1.2): answer -> clauses, verbatim -> atomic facts.

With a language model by prompt (`clauses`, `facts`), asking, parsing and deciding apart; without one, and wherever a
reply cannot be used, by rules on a dependency tree (`engine/english/statements.py`), which is said on the fact and
counted.
Left out: the instruction-tuned Llama and its reply with clauses and facts in one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from itertools import pairwise

from msgspec.structs import replace

from engine.answer.citations import blanked, is_refusal
from engine.core.progress import Watch
from engine.core.text import ANY_CITATION, Span
from engine.english.pronouns import Known, resolve
from engine.english.statements import clause_starts, is_governed, split_with_pieces, unsplit
from engine.methods.are.outline import DOCUMENTS, OutlinedSentence, cells, is_label, outline
from engine.methods.are.values import Clause, Decomposition, Exchange, Fact, Piece
from engine.methods.are.verdict import asked
from engine.models.protocols import Writer
from engine.models.replies import lines
from engine.prompts import ask

_SHORTEST = 3  # words on either side of a cut
# A question, also one in quotes or brackets; not a sentence that ends with one: 'He wrote "Who's Afraid?"'
_ASKED = re.compile(r"\?[*\s]*$|^[*\s]*[\"“‘«(].*\?[\"”’»)*\s]*$", re.DOTALL)
_SORRY = re.compile(r"(?:i am|i['’]m) (?:\w+ )?sorry\W*|i apologi[sz]e\W*|my apologies\W*", re.IGNORECASE)
_LABEL = re.compile(r"\W*(?:\w{1,3}[.)]\s+)?\*\*([^*\n]{1,60}?)(?::\*\*|\*\*\s?[:–—])(?=\s+\S)")  # "**Dose:** 5 mg"
# Opening words that do not belong to the claim. A small verifier bears out "No, the bridge is shut" less often.
_NUMBER = rf" ?\[?\d+\]?(?:(?: ?[-–—] ?|(?:,|,? (?:and|or|to)) )(?:{DOCUMENTS} ?)?\[?\d+\]?)*"
_NAMED = rf"(?:(?:the|these|this|your) (?:given |provided |above |cited |retrieved )*{DOCUMENTS}|{DOCUMENTS}{_NUMBER})"
_OPENING = re.compile(
    r"[\s*_>-]*(?:\w{1,3}[.)]\s+)?"
    r"(?:(?:yes|no(?!, no,)|in (?:short|summary|conclusion)|overall|to (?:summari[sz]e|sum up)),"
    r"|(?:it(?: is|['’]s) (?:worth|important) (?:noting|to note)|it should be noted|(?:please )?note) that"
    rf"|(?:according to|as (?:stated|mentioned|noted|described) in|based on) {_NAMED}(?:{_NUMBER})?,"
    rf"|(?:the )?{DOCUMENTS}{_NUMBER} (?:says?|states?|mentions?|notes?|explains?|reports?) that)\s+(?=\S)",
    re.IGNORECASE,
)


def clause_spans(text: str) -> tuple[Span, ...]:
    """[start, end) of the clauses of `text`, in order, not overlapping, without white space at their ends, by rules.

    Sentences that claim something, cut again where a second clause has its own subject and verb. A question or an
    apology claims nothing.

    >>> [text[a:b] for text in ["Ice melts at 0 °C; it boils at 100 °C."] for a, b in clause_spans(text)]
    ['Ice melts at 0 °C', 'it boils at 100 °C.']
    """
    found: list[Span] = []
    for start, end, *_ in outline(text):
        sentence, cuts = blanked(text[start:end]), [start]
        for cut in clause_starts(sentence):
            sides = text[cuts[-1] : start + cut], sentence[cut:]
            cuts += [start + cut] if all(len(side.split()) >= _SHORTEST for side in sides) else []
        found += [_trimmed(text, *span) for span in pairwise([*cuts, end])]
    said = ((span, blanked(text[slice(*span)])) for span in found if span[0] < span[1])
    return tuple(span for span, words in said if not _ASKED.search(words) and not _SORRY.fullmatch(words))


def _trimmed(text: str, start: int, end: int) -> Span:
    """The span less white space, and less the joining marks and conjunction at its end."""
    piece = text[start:end]
    kept = re.sub(r"(?:\s|;|—|[,;]\s*(?:and|or|but|while|whereas)(?=\s*$))+$", "", piece)
    lead = len(piece) - len(piece.lstrip())
    return start + lead, start + max(len(kept), lead)


RULES = "rules"
_WORD = re.compile(r"\w+|[^\w\s]")
LONGEST = 400  # tokens of a reply; one that repeats a longer answer may have more
_MOST = 24  # facts of a clause that are read from a reply
_LOOSE = frozenset("\"'“”‘’«»`*")  # marks that a copy may have or lack
_FINAL = frozenset(".,;:!?…")
_JOINING = frozenset(("and", "but", "while", "whereas", "so", "or"))
_GAP = 8  # marks and joining words that may stand between two clauses
_MARKERS = rf"(?:\s*(?:{ANY_CITATION.pattern}))*"
_ENDING = re.compile(rf"[\"”’»*]*{_MARKERS}[.!?…]*[\"”’»*]*{_MARKERS}", re.IGNORECASE)


def decompose(
    text: str,
    writer: Writer | None = None,
    watch: Watch = Watch(),
    *,
    atomic: bool = True,
    molecular: bool = True,
    demonstrations: int = 0,
) -> Decomposition:
    """The clauses and facts of an answer; by `writer` where one is given, else by rules.

    ARE's ablations. `atomic=False`: each clause is its own one fact. `molecular=False`: each fact is a clause of the
    joined facts, so that an edit no longer comes back to its place in the answer; without both the answer is one fact.
    `demonstrations`: so many worked examples are shown to the writer. A refusal has no clause.
    """
    exchanges: list[Exchange] = []
    spans: tuple[Span, ...] = ()
    if not is_refusal(text) and (molecular or atomic):
        spans = _spans(text, writer, demonstrations, exchanges, watch)
    elif not is_refusal(text) and text.strip():
        spans = ((len(text) - len(text.lstrip()), len(text.rstrip())),)
    clauses = [Clause(start=a, end=b, text=text[a:b]) for a, b in spans]
    if not atomic:
        done = [replace(c, facts=(_fact(plain(c.text), c, RULES),)) for c in clauses]
    elif writer is None:
        done = facts_by_rules(text, clauses)
    else:
        done = _facts_by_model(text, clauses, writer, demonstrations, exchanges, watch)
    joined, done = ("", done) if molecular or not atomic else joined_facts(done)
    return Decomposition(
        clauses=tuple(done),
        text=joined,
        made_by=writer.name if writer else RULES,
        fallbacks=sum(not exchange.parsed for exchange in exchanges),
        exchanges=tuple(exchanges),
    )


def joined_facts(clauses: Sequence[Clause]) -> tuple[str, list[Clause]]:
    """The facts as one text, a full stop behind each, and each of them, once, as a clause of that text."""
    unique = {fact.text.rstrip(".").lower(): fact for clause in clauses for fact in clause.facts}
    text, units = "", []
    for fact in unique.values():
        start = len(text) + bool(text)
        said = f"{fact.text.rstrip('.')}."
        said = said[0].upper() + said[1:]
        text += f" {said}" if text else said
        pieces = (Piece(fact=0, answer=start, length=len(said)),)
        units.append(Clause(start=start, end=len(text), text=said, facts=(replace(fact, text=said, pieces=pieces),)))
    return text, units


def plain(text: str) -> str:
    """The text without citation markers, white space single.

    >>> plain("The bridge [2] opened in [1978].")
    'The bridge opened in [1978].'
    """
    return re.sub(r"\s+([.,;:?!])", r"\1", " ".join(blanked(text).split()))


def facts_by_rules(text: str, clauses: Sequence[Clause]) -> list[Clause]:
    """The clauses with their facts; a cell of a row and a list item without a verb say what they are about.

    A pronoun refers to a subject of the clauses before it; behind the clause's own subject, to this one or to nothing.
    """
    earlier, lead, done, sentences = Known(), "", [], outline(text)
    for clause in clauses:
        sentence = _sentence_of(clause, sentences)
        if facts := _facts_of_row(clause, sentence.columns):
            done.append(replace(clause, facts=tuple(facts)))
            continue
        earlier = earlier.after(sentence.lead) if sentence.lead != lead else earlier
        lead = sentence.lead
        label = _LABEL.match(clause.text)
        ahead = label.end() if label else 0
        told = clause.text
        while opening := _OPENING.match(told, ahead):
            ahead = opening.end()
            if opening[0].rstrip().endswith("that"):  # "Note that it rained and that Ann left"
                told = re.sub(r"\b(and|but) that\b", r"\1     ", told)
        words = blanked(" " * ahead + told[ahead:])
        found = split_with_pieces(words) if sentence.whole else [unsplit(words)]
        opens = [next((origin for place, origin, _ in copied if place == 0), 0) for _, copied in found]
        own = Known().after(found[opens.index(min(opens))][0]).people if found else earlier
        for (fact, copied), at in zip(found, opens, strict=True):
            resolved, put_in = resolve(fact, own if at > min(opens) else earlier)
            # A pronoun's noun is the first `put_in` characters, no copy.
            placed = ((place + len(resolved) - len(fact), origin, length) for place, origin, length in copied)
            pieces = [Piece(fact=a, answer=clause.start + b, length=n) for a, b, n in placed if a >= put_in]
            facts.append(Fact(text=resolved, made_by=RULES, pieces=tuple(pieces)))
        facts = facts or [_fact(plain(clause.text), clause, RULES)]
        earlier = earlier.after(facts[0].text, its=bool(found) and found[0][0].lower().startswith("its "))
        if label is not None and is_label(label[1]):
            facts = [_led(fact, label[1], clause.start + label.start(1)) for fact in facts]
        done.append(replace(clause, facts=tuple(_led(fact, "" if sentence.whole else lead) for fact in facts)))
    return done


def _sentence_of(clause: Clause, sentences: Sequence[OutlinedSentence]) -> OutlinedSentence:
    """The sentence that the clause belongs to, with what the answer's layout says of it."""
    alone = OutlinedSentence(clause.start, clause.end)
    return next((one for one in sentences if one.start < clause.end and clause.start < one.end), alone)


def _led(fact: Fact, lead: str, at: int | None = None) -> Fact:
    """The fact behind what it is about, which is copied from the answer's characters from `at` on, if given."""
    if not lead:
        return fact
    moved = (Piece(fact=p.fact + len(lead) + 2, answer=p.answer, length=p.length) for p in fact.pieces)
    copied = [] if at is None else [Piece(fact=0, answer=at, length=len(lead))]
    return replace(fact, text=f"{lead}: {fact.text}", pieces=(*copied, *moved))


def _facts_of_row(clause: Clause, columns: Sequence[str]) -> list[Fact]:
    """A fact for each cell of a table's row behind the first, with the head of its column and the first one."""
    (start, name), *others = cells(blanked(clause.text)) or [(0, "")]
    if len(columns) != len(others) + 1:
        return []
    facts = []
    for column, (at, cell) in zip(columns[1:], others, strict=True):
        piece = Piece(fact=0, answer=clause.start + at, length=len(cell))
        named = _led(Fact(text=cell, made_by=RULES, pieces=(piece,)), name, clause.start + start)
        facts += [_led(named, column if is_label(column) else "")] if any(map(str.isalnum, cell)) else []
    return facts


def _fact(text: str, clause: Clause, made_by: str) -> Fact:
    """A fact whose words are looked up in its clause; a word that occurs there twice is not copied."""
    mine, theirs = list(_WORD.finditer(text)), list(_WORD.finditer(clause.text))
    pieces = []
    for i, match in enumerate(mine):
        places = [j for j, other in enumerate(theirs) if other.group() == match.group()]
        if len(places) > 1:
            places = [j for j in places if _beside(mine, i, theirs, j)]
        if len(places) == 1:
            start = clause.start + theirs[places[0]].start()
            pieces.append(Piece(fact=match.start(), answer=start, length=len(match.group())))
    return Fact(text=text, made_by=made_by, pieces=tuple(pieces))


def _beside(mine: Sequence[re.Match[str]], i: int, theirs: Sequence[re.Match[str]], j: int) -> bool:
    """Is a neighbour of word i of the fact the neighbour of word j of the clause, on the same side."""
    before = i > 0 and j > 0 and mine[i - 1].group() == theirs[j - 1].group()
    after = i + 1 < len(mine) and j + 1 < len(theirs) and mine[i + 1].group() == theirs[j + 1].group()
    return before or after


def _spans(
    text: str, writer: Writer | None, demonstrations: int, exchanges: list[Exchange], watch: Watch
) -> tuple[Span, ...]:
    if writer is None:
        return clause_spans(text)
    prompt, limit = ask("clauses", demonstrations, text=text), max(LONGEST, 100 + 2 * len(text.split()))
    watch.step("clauses")
    spans, exchange = asked("clauses", prompt, writer, limit, lambda reply: parse_clauses(reply, text), watch)
    exchanges.append(exchange)
    claims = clause_spans(text)
    return tuple(s for s in spans if any(a < s[1] and s[0] < b for a, b in claims)) if spans else claims


def parse_clauses(reply: str, text: str) -> tuple[Span, ...] | None:
    """Spans of the reply's lines in `text`, in order; None unless all are copied and no word is left out.

    A line may differ in citation markers, white space, quotes, bold and final punctuation. The span takes in the marks
    that end a sentence and the markers behind it.

    >>> text = 'Ice "melts" [cite_1]. Steam  rises.'
    >>> [text[a:b] for a, b in parse_clauses("1. Ice melts\\n2. Steam rises", text) or ()]
    ['Ice "melts" [cite_1].', 'Steam  rises.']
    """
    theirs, at = _pieces(text), 0
    spans: list[Span] = []
    for line in lines(reply):
        mine = [piece for piece, _ in _pieces(line)]
        while mine and mine[-1] in _FINAL:
            mine.pop()
        if not mine:
            continue
        place = _next_place(mine, theirs, at)
        if place is None:
            return None
        at = place + len(mine)
        last, start = theirs[at - 1]
        match = _ENDING.match(text, start + len(last))
        spans.append((theirs[place][1], match.end() if match else start + len(last)))
    return tuple(spans) if spans and all(_skipped(piece) for piece, _ in theirs[at:]) else None


def _pieces(text: str) -> list[tuple[str, int]]:
    """Words and marks with their places, without citation markers, quotes and bold."""
    found = _WORD.finditer(blanked(text))
    return [(match.group(), match.start()) for match in found if match.group() not in _LOOSE]


def _next_place(mine: Sequence[str], theirs: Sequence[tuple[str, int]], at: int) -> int | None:
    """Where the pieces of a line begin: at `at`, or behind a few marks and joining words."""
    for place in range(at, min(at + _GAP, len(theirs) - len(mine)) + 1):
        if all(theirs[place + i][0] == piece for i, piece in enumerate(mine)):
            return place
        if not _skipped(theirs[place][0]):
            return None
    return None


def _skipped(piece: str) -> bool:
    return piece.lower() in _JOINING or not any(c.isalnum() for c in piece)


def parse_facts(reply: str, clause: str) -> list[str] | None:
    """The facts of a reply; None where there are none or one has no content word of the clause."""
    found = list(dict.fromkeys(lines(reply)))[:_MOST]
    said = set(re.findall(r"\w{4,}|\d+", clause.lower()))
    related = [said & set(re.findall(r"\w{4,}|\d+", fact.lower())) for fact in found]
    return found if found and (all(related) or not said) else None


def _governed(facts: Sequence[str], clause: Clause, made_by: str) -> tuple[Fact, ...]:
    """The facts of a model; the whole clause in the place of those that no verb governs."""
    found = {text: _fact(text, clause, made_by) for text in facts if is_governed(text)}
    if len(found) < len(facts):
        found.setdefault(whole := plain(clause.text), replace(_fact(whole, clause, made_by), fallback=True))
    return tuple(found.values())


def _facts_by_model(
    text: str, clauses: Sequence[Clause], writer: Writer, demonstrations: int, exchanges: list[Exchange], watch: Watch
) -> list[Clause]:
    by_rules, sentences = facts_by_rules(text, clauses), outline(text)
    done = []
    for number, clause in enumerate(clauses):
        watch.step("facts", number, len(clauses))
        sentence = _sentence_of(clause, sentences)
        if sentence.columns or (sentence.lead and not sentence.whole):  # what it is about is told by the layout
            done.append(by_rules[number])
            continue
        prompt = ask("facts", demonstrations, text=blanked(text), clause=plain(clause.text))
        facts, exchange = asked("facts", prompt, writer, LONGEST, partial(parse_facts, clause=clause.text), watch)
        exchanges.append(exchange)
        if facts is None:
            done.append(replace(clause, facts=tuple(replace(f, fallback=True) for f in by_rules[number].facts)))
        else:
            done.append(replace(clause, facts=_governed(facts, clause, writer.name)))
    return done
