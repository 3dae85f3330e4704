"""The answer with each sentence in the tint of its verdict, and the best evidence quoted beside it."""

from __future__ import annotations

from functools import cache
from typing import Any

import streamlit as st

from components import state
from components.evidence import answer_pieces
from components.html import visible
from components.style import stylesheet
from engine.analyses.case_verdict import COPIED, CaseVerdict, FactVerdict, QuotedEvidence, SentenceVerdict, Stand
from engine.core.values import Answer, Case

KINDS: dict[Stand, str] = {
    "borne out": "good",
    "contradicted": "bad",
    "not found": "open",
    "unsure": "unsure",
    "not checked": "grey",
    "no claim": "grey",
}
AROUND = 110  # characters shown on either side of a quoted sentence
LEADS = {"not found": "No source settles this. The closest sentence:", "contradicted": "", "borne out": ""}


@cache
def _component() -> Any:
    return st.components.v2.component(
        "groundwork_sentences",
        html='<div class="gw"></div>',
        css=stylesheet("sentences.css"),
        js=stylesheet("sentences.js"),
    )


def sentences_view(case: Case, verdict: CaseVerdict, *, key: str) -> None:
    """Draw the tinted answer beside its evidence; the chosen sentence is kept in the link."""
    drawn = _component()(data=sentences_data(case, verdict), key=key, on_sentence_change=lambda: None)
    if drawn.sentence:
        state.choose_sentence(int(drawn.sentence))


def sentences_data(case: Case, verdict: CaseVerdict) -> dict[str, Any]:
    """What is drawn, as plain values; no text is markup."""
    drawn, position = [], 0
    for number, sentence in enumerate(verdict.sentences, start=1):
        drawn.append(_sentence(case, number, sentence, position))
        position = sentence.end
    return {
        "sentences": drawn,
        "tail": visible(case.answer.text[position:]),
        "chosen": state.chosen_sentence(len(drawn)) or first_in_doubt(verdict),
    }


def first_in_doubt(verdict: CaseVerdict) -> int | None:
    """The number of the first sentence that is not borne out, else None."""
    doubtful = (n for n, s in enumerate(verdict.sentences, start=1) if s.stand not in ("borne out", "no claim"))
    return next(doubtful, None)


def _sentence(case: Case, number: int, sentence: SentenceVerdict, position: int) -> dict[str, Any]:
    worst = sentence.facts[0] if sentence.facts else None
    return {
        "number": number,
        "gap": visible(case.answer.text[position : sentence.start]),
        "pieces": _pieces(case, sentence.start, sentence.end),
        "claim": bool(sentence.facts),
        "kind": KINDS[sentence.stand],
        "word": sentence.stand,
        "by": _by(worst) if worst else "",
        "facts": _quoted_once([_fact(fact) for fact in sentence.facts]),
    }


def _quoted_once(facts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The facts of a sentence; one that rests on the same quote as the fact before does not repeat it."""
    before = [None, *(fact["quote"] for fact in facts)]
    return [
        {**fact, "quote": None} if fact["quote"] == last else fact for fact, last in zip(facts, before, strict=False)
    ]


def _pieces(case: Case, start: int, end: int) -> list[dict[str, Any]]:
    """The sentence cut at its citation markers."""
    inside = [c for c in case.answer.citations if start <= c.start and c.end <= end]
    moved = tuple(type(c)(start=c.start - start, end=c.end - start, number=c.number, valid=c.valid) for c in inside)
    return answer_pieces(Answer(text=case.answer.text[start:end], citations=moved), case.passages)


def _by(fact: FactVerdict) -> str:
    if fact.mark is not None:
        return visible(f"by {fact.by}")
    if fact.by == COPIED:
        return COPIED
    return "" if fact.probability is None else f"p {fact.probability:.2f}"


def _fact(fact: FactVerdict) -> dict[str, Any]:
    notes = []
    if fact.proposed and fact.mark is None:
        notes.append(f"Suggested: {fact.proposed}")
    if fact.stand == "unsure" and fact.mark is None:
        notes.append("The verifier is unsure: read the source.")
    if fact.mark is not None:
        notes.append(f"{fact.mark.author}: {fact.mark.value}. {fact.mark.reason}")
    return {
        "text": visible(fact.text),
        "word": fact.stand,
        "lead": LEADS.get(fact.stand, "") if fact.quote else "No source was found.",
        "quote": _quote(fact.quote) if fact.quote else None,
        "notes": [visible(note) for note in notes],
    }


def _quote(quote: QuotedEvidence) -> dict[str, str]:
    """The quoted sentence with some of what is around it, and where it is from."""
    before, after = quote.text[: quote.start], quote.text[quote.end :]
    place = f"Source {quote.number}" if quote.number else "Corpus"
    title = "" if quote.title == f"passage {quote.number}" else f" · {quote.title}"
    return {
        "before": visible(("… " if len(before) > AROUND else "") + before[-AROUND:].lstrip()),
        "words": visible(quote.words),
        "after": visible(after[:AROUND].rstrip() + (" …" if len(after) > AROUND else "")),
        "source": visible(place + title),
    }
