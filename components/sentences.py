"""The answer with each sentence tinted by its verdict, next to its best evidence."""

from __future__ import annotations

from math import exp
from typing import Any

from components import state
from components.evidence import answer_pieces, answer_title
from components.html import gap_runs, rows_apart, table_classes, text_after, text_before, visible
from components.style import component, listen
from engine.analyses.case_verdict import (
    SETTLED,
    VERDICTS,
    CaseVerdict,
    FactEdit,
    FactState,
    FactVerdict,
    QuotedEvidence,
    SentenceVerdict,
)
from engine.analyses.occlusion import strongest
from engine.answer.citations import annotate, style_of
from engine.cases.review import Mark
from engine.core.text import sentences
from engine.core.values import Answer, Case, own_title
from engine.methods.are.guards import COPIED, STATED

KINDS: dict[FactState, str] = {
    "borne out": "good",
    "edited": "mended",
    "contradicted": "bad",
    "not found": "open",
    "unsure": "unsure",
    "not checked": "grey",
    "no claim": "grey",
}
LONGEST = 60  # characters of an edit on its button
NOTICED = 1.1  # how much less likely a token has to be without a source that mattered
AROUND = 110  # characters shown on either side of a quoted sentence
LEADS = {"not found": "No source settles this. The closest sentence:", "contradicted": "", "borne out": ""}


def sentences_view(case: Case, verdict: CaseVerdict, *, frozen: bool, key: str) -> dict[str, Any] | None:
    """Draw the tinted answer next to its evidence; the link keeps the selected sentence and passage.

    Returns the decision that was just made, if any: on an edit ({"edit": "1", "value": "accepted"}), on a sentence
    ({"sentence": 3, "fact": "2.1", "verdict": "borne out", "reason": "...", "text": None or its new words}), or to undo
    ({"undo": 3}). A `frozen` case takes none. Else the source that was just clicked, if any
    ({"opened": {"sentence": 3, "passage": 1}}).
    """
    data = {**sentences_data(case, verdict), "frozen": frozen, "verdicts": list(VERDICTS["fact"])}
    drawn = component("sentences")(data=data, key=key, on_selected_change=listen, on_decision_change=listen)
    if drawn.selected:
        state.select(**{name: int(number) for name, number in drawn.selected.items()})
    asked: dict[str, Any] | None = drawn.decision
    return asked or ({"opened": drawn.selected} if "passage" in (drawn.selected or {}) else None)


def sentences_data(case: Case, verdict: CaseVerdict) -> dict[str, Any]:
    """The data to draw, as plain values; no text is markup."""
    drawn, position, before = [], 0, ""
    mattered = strongest(case)
    texts = ("" if s.rewritten else case.answer.text[s.start : s.end] for s in verdict.sentences)
    looks = table_classes(list(texts))  # a sentence written anew is drawn as text, not as a row
    for number, (sentence, look) in enumerate(zip(verdict.sentences, looks, strict=True), start=1):
        gap = gap_runs(case.answer.text[position : sentence.start], before, look)
        used = _used(*mattered[number]) if number in mattered else ""
        drawn.append({**_sentence(case, number, sentence), "gap": gap, "table": look, "used": used})
        position, before = sentence.end, look
    return {
        "title": answer_title(case),
        "sentences": drawn,
        "tail": gap_runs(case.answer.text[position:], before, ""),
        "chosen": state.selected_sentence(len(drawn)) or first_in_doubt(verdict),
        "passage": state.selected_passage(len(case.passages)),
    }


def first_in_doubt(verdict: CaseVerdict) -> int | None:
    """The number of the first sentence that is neither borne out nor edited, else None."""
    doubtful = (n for n, s in enumerate(verdict.sentences, start=1) if s.state not in SETTLED)
    return next(doubtful, None)


def _sentence(case: Case, number: int, sentence: SentenceVerdict) -> dict[str, Any]:
    worst = sentence.facts[0] if sentence.facts else None
    return {
        "number": number,
        "pieces": _pieces(case, sentence),
        "text": visible(case.answer.text[sentence.start : sentence.end]),
        "rewritten": visible(_anew(sentence.rewritten)) if sentence.rewritten else "",
        "claim": bool(sentence.facts),
        "kind": KINDS[sentence.state],
        "word": sentence.word,
        "by": _by(worst) if worst and not sentence.rewritten else "",
        "facts": _once([_fact(fact) for fact in sentence.facts]),
    }


def _used(number: int, nats: float, model: str) -> str:
    """Occlusion's result for a sentence; an effect that one does not notice is not said to matter."""
    said = f"({nats:+.2f} nats per token by {model}, occlusion)"
    if exp(nats) < NOTICED:
        return visible(f"No source mattered for this sentence. Source {number} comes closest {said}")
    less = f"on average each token is {exp(nats):.1f}x less likely without it"
    return visible(f"Source {number} mattered most: {less} {said}")


def _once(facts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The facts of a sentence without the quote of the fact before, and without an edit that was offered already."""
    before: list[dict[str, Any]] = [{"quote": None}, *facts]
    offered: set[str] = set()
    for fact in facts:
        fact["edits"] = [edit for edit in fact["edits"] if edit["id"] not in offered]
        offered |= {edit["id"] for edit in fact["edits"]}
    return [
        {**fact, "quote": None} if fact["quote"] == last["quote"] else fact
        for fact, last in zip(facts, before, strict=False)
    ]


def _pieces(case: Case, sentence: SentenceVerdict) -> list[dict[str, Any]]:
    """The sentence cut at its citation markers and its accepted edits, which are drawn struck and underlined."""
    if sentence.rewritten is not None:
        new = annotate(Answer(text=sentence.rewritten.value), len(case.passages), style_of(case.answer.text))
        changed = (
            ("del", answer_pieces(case.answer, case.passages, sentence.start, sentence.end)),
            ("ins", answer_pieces(new, case.passages)),
        )
        return [{**piece, "change": change} for change, pieces in changed for piece in pieces]
    pieces, position = [], sentence.start
    for edit in sentence.accepted:
        if edit.start < position or edit.end > sentence.end or case.answer.text[edit.start : edit.end] != edit.old:
            continue
        pieces += answer_pieces(case.answer, case.passages, position, edit.start)
        pieces += [{"text": visible(edit.old), "change": "del"}, {"text": visible(edit.new), "change": "ins"}]
        position = edit.end
    return [
        piece
        for piece in (*pieces, *answer_pieces(case.answer, case.passages, position, sentence.end))
        if piece.get("text") != ""
    ]


def _anew(mark: Mark) -> str:
    """Who wrote a sentence anew, and why."""
    return f"{mark.author} {'rewrote this sentence' if mark.value.strip() else 'deleted this sentence'}: {mark.reason}"


def _by(fact: FactVerdict) -> str:
    if fact.mark is not None:
        return visible(f"by {fact.by}")
    if fact.by in (COPIED, STATED):
        return fact.by
    return "" if fact.probability is None else f"probability {fact.probability:.2f}"


def _fact(fact: FactVerdict) -> dict[str, Any]:
    notes = [f"Edit {edit.id} {edit.said}: {_change(edit)}" for edit in fact.edits if edit.decision]
    if fact.proposed and fact.mark is None and not fact.edits:
        notes.append(f"Suggested: {fact.proposed}")
    if fact.against is not None:
        notes.append(f"Another source may say otherwise. {_place(fact.against)}: “{fact.against.words}”")
    if fact.state == "unsure" and fact.mark is None:
        notes.append(f"Unsure: {fact.doubt}." if fact.doubt else "The verifier is unsure: read the source.")
    if fact.mark is not None:
        notes.append(f"{fact.mark.author} says {fact.mark.value}: {fact.mark.reason}")
    return {
        "name": fact.number,
        "text": visible(fact.text),
        "word": fact.state,
        "lead": LEADS.get(fact.state, "") if fact.quote else "No source has a sentence on this.",
        "quote": _quote(fact.quote) if fact.quote else None,
        "notes": [visible(note) for note in notes],
        "edits": [_offer(fact, edit) for edit in fact.edits if edit.open],
    }


def _offer(fact: FactVerdict, edit: FactEdit) -> dict[str, Any]:
    """An edit with the words of its button; only one that corrects the fact is a fix."""
    fix, words = fact.mends(edit), _change(edit)
    why = ": no source settles it" if fact.stand in ("not found", "unsure") else ""
    return {
        "id": edit.id,
        "fix": fix,
        "say": visible(f"Fix: {words}" if fix else f"{words[0].upper()}{words[1:]}{why}"),
    }


def _change(edit: FactEdit) -> str:
    """The change in words: a short one whole, a long one by its first words.

    >>> _change(FactEdit(id="1", start=0, end=4, old="2022", new="2023"))
    '2022 → 2023'
    """
    old, new = (text if len(text) <= LONGEST else text[: LONGEST - 1].rstrip() + "…" for text in (edit.old, edit.new))
    if not old:
        return f"put in “{new}”"
    return f"{old} → {new}" if new else f"take out “{old}”"


def _quote(quote: QuotedEvidence) -> dict[str, Any]:
    """The quoted sentence with some of what is around it, and where it is from."""
    text = rows_apart(quote.text)
    before, after = text[: quote.start], text[quote.end :]
    far = quote.start - AROUND
    near = next((start for start, end in sentences(text) if max(far - AROUND, 0) <= start <= far < end), None)
    return {
        "before": visible(text_before(before, AROUND) if near is None else f"{'… ' if near else ''}{before[near:]}"),
        "words": visible(text[quote.start : quote.end]),
        "after": visible(text_after(after, AROUND)),
        "source": visible(_place(quote)),
        "number": quote.number,
    }


def _place(quote: QuotedEvidence) -> str:
    """Where a quote is from."""
    place = f"Source {quote.number}" if quote.number else "Corpus"
    title = own_title(quote.number, quote.title)
    return f"{place} · {title}" if title else place
