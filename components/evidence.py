"""An answer next to its passages: score bars, position in the document, citations that open them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from components.html import gap_runs, markdown_runs, table_classes, visible
from components.settings_panel import chosen_settings
from components.style import component, listen
from engine.analyses.case_verdict import source_sentence
from engine.answer.in_documents import doubted
from engine.answer.quoting_reader import whole_id
from engine.cases.blocks import cut, marked_runs
from engine.core.values import Answer, Case, Passage

LIKENESS = 1.6  # what a cosine with a bonus for shared words stays under; a cross-encoder's logits go beyond


def evidence(case: Case, *, key: str, lengths: Mapping[str, int], opened: int | None = None) -> dict[str, int]:
    """Draw the answer of a case and its passages, passage `opened` unfolded.

    Returns what just happened: {"passage": n} for one that was opened (0: closed), {"source": n} for one that is to be
    shown in its document.

    `lengths` are the document lengths in characters, for each passage's place; where one is missing, the place is
    measured against the furthest passage of the document in this case.
    """
    data = {**evidence_data(case, lengths), "opened": opened}
    drawn = component("evidence")(data=data, key=key, on_passage_change=listen, on_source_change=listen)
    return {name: int(number) for name in ("passage", "source") if (number := drawn.get(name)) is not None}


def evidence_data(case: Case, lengths: Mapping[str, int]) -> dict[str, Any]:
    """The data to draw, as plain values: all text is cut by offsets here, and none of it is markup."""
    scales = score_scales(case)
    return {
        "answer": laid_out(case.answer, case.passages),
        "answer_title": answer_title(case),
        "refused": case.answer.refused,
        "passages": [_passage(case, number, scales, lengths) for number in cited_first(case)],
        "passages_title": f"Passages given to the writer ({len(case.passages)})",
    }


def answer_title(case: Case) -> str:
    """The heading of the answer; one that the documents do not seem to give is not called an answer."""
    if not case.answer.finished:
        return "Answer, so far"
    if case.answer.refused or not doubted(case, chosen_settings().retrieval):
        return "Answer"
    return (
        "Closest sentences, probably not an answer"
        if case.answer.quotes
        else "The writer's text, probably not an answer"
    )


def score_scales(case: Case) -> dict[str, dict[str, float]]:
    """The scores of the search and of the re-ranking, by passage id."""
    ranked = {passage.id: chunk_set.score for chunk_set in case.chunk_sets for passage in chunk_set.passages}
    return {"retrieved": {hit.passage.id: hit.score for hit in case.hits}, "chunk set": ranked}


def cited_first(case: Case) -> list[int]:
    """The numbers of the passages, those that the answer cites before the others."""
    cited = {citation.number for citation in case.answer.citations}
    return sorted(range(1, len(case.passages) + 1), key=lambda number: number not in cited)


def answer_pieces(
    answer: Answer, passages: tuple[Passage, ...], start: int = 0, end: int | None = None
) -> list[dict[str, Any]]:
    """Characters [start, end) of the answer cut at their citation markers."""
    text, pieces = answer.text[start:end], []
    inside = (c for c in answer.citations if start <= c.start and c.end <= start + len(text))
    for piece, citation in cut(text, ((c.start - start, c.end - start, c) for c in inside)):
        if citation is None:
            pieces += markdown_runs(piece)
            continue
        number, valid = citation.number, citation.valid
        title = f"Open passage {number}: {passages[number - 1].label}" if valid else f"Passage {number} does not exist"
        pieces.append({"number": number, "valid": valid, "title": visible(title)})
    return pieces


def laid_out(answer: Answer, passages: tuple[Passage, ...]) -> list[dict[str, Any]]:
    """The answer cut at its citation markers; a row of a table is one piece that holds its own."""
    pieces: list[dict[str, Any]] = []
    before, position = "", 0
    looks = table_classes([answer.text[start:end] for start, end in answer.sentences])
    for (start, end), look in zip(answer.sentences, looks, strict=True):
        pieces += gap_runs(answer.text[position:start], before, look)
        own = answer_pieces(answer, passages, start, end)
        pieces += [{"row": own, "style": look}] if look else own
        before, position = look, end
    return [*pieces, *gap_runs(answer.text[position:], before, "")]


def _passage(
    case: Case, number: int, scales: Mapping[str, Mapping[str, float]], lengths: Mapping[str, int]
) -> dict[str, Any]:
    passage = case.passages[number - 1]
    length = max(lengths.get(passage.document, 0), *(p.end for p in case.passages if p.document == passage.document))
    whole = whole_id(passage)
    cited = sum(citation.number == number for citation in case.answer.citations)
    quoted = {(start, end) for _, quote, start, end in case.answer.quotes if quote == number}
    if cited and not quoted:
        quoted = {span for n in _citing(case.answer, number) if (span := source_sentence(case, number, n, None))}
    return {
        "number": number,
        "title": visible(passage.label),
        "cited": f"cited {cited}x" if cited else "",
        "scores": [score_bar(name, scale, whole) for name, scale in scales.items() if whole in scale],
        "place": [passage.start / length, passage.end / length],
        "place_text": f"page {passage.page}" if passage.page is not None else f"{100 * passage.start // length}%",
        "pieces": _marked(passage.text, quoted),
    }


def _citing(answer: Answer, number: int) -> list[int]:
    """The sentences, from 1, that cite a passage."""
    places = [citation.start for citation in answer.citations if citation.number == number]
    return [n for n, (a, b) in enumerate(answer.sentences, start=1) if any(a <= place < b for place in places)]


def score_bar(name: str, scale: Mapping[str, float], passage: str) -> dict[str, Any]:
    """A bar as long as the score, 1 being whole; scores of no fixed scale go from the lowest (2%) to the highest."""
    low, high, score = min(scale.values()), max(scale.values()), scale[passage]
    if low >= -1 and high <= LIKENESS:
        share = max(0.0, score) / max(1.0, high)
    else:
        share = 0.02 + 0.98 * ((score - low) / (high - low) if high > low else 1.0)
    return {"name": name, "share": share, "text": f"{score:.3f}"}


def _marked(text: str, spans: Iterable[tuple[int, int]]) -> list[dict[str, Any]]:
    return [{"text": visible(run.text), "mark": run.kind == "mark"} for run in marked_runs(text, spans)]
