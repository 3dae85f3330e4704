"""A check of an answer: tree of clauses and facts with their evidence, own verdicts, tracked changes, other methods."""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import msgspec
import streamlit as st

from components import state
from components.analysis_run import ask_for
from components.blocks import draw
from components.cache import workbench
from components.checked_answer import write
from components.export_figure import export_button
from components.fact_controls import Asked
from components.html import chips, escape, markdown_runs, note, plain, rows_apart, show, tag, visible
from components.sentences import KINDS
from components.style import component, listen
from engine.analyses.case_verdict import VERDICTS, CaseVerdict, FactVerdict, own_stand
from engine.analyses.claims import ENTROPY, LABELS, PEERS, EntropyOptions, PeerOptions
from engine.analyses.facts import after_edit, found_in, tracked_text
from engine.analyses.kind import Kind
from engine.cases.blocks import cut_at_citations
from engine.cases.places import decisions, edit_decisions, numbered, revision, rewritten
from engine.cases.review import Mark, Review
from engine.core.values import Case, own_title
from engine.methods.are.backtrack import Decision, accepted_ids, exact, revised
from engine.methods.are.baselines import offered
from engine.methods.are.guards import COPIED, STATED
from engine.methods.are.shared_words import shared_words
from engine.methods.are.values import (
    IN_WORDS,
    AreRecord,
    Check,
    Evidence,
    FactRecord,
    Iteration,
    Placed,
    Ruling,
    note_in_words,
)
from engine.models.closed import listed
from engine.models.defaults import default_for
from engine.report.build import facts_report
from engine.report.drawings import drawn_changes


def facts_tree(record: AreRecord, verdicts: Mapping[str, FactVerdict], chosen: str, *, key: str) -> dict[str, Any]:
    """Draw clauses and facts, with their verdicts by number, next to the fact `chosen`.

    A passage of the case that is clicked is selected. Returns what just happened: {"fact": "2.1"} for a fact that was
    chosen, {"source": [fact, round, place]} for evidence to be shown in its document (see `evidence_at`).
    """
    data = {**tree_data(record, verdicts), "key": key, "chosen": chosen, "passage": state.selected_passage(sys.maxsize)}
    drawn = component("facts")(
        data=data, key=key, on_fact_change=listen, on_passage_change=listen, on_source_change=listen
    )
    if drawn.passage is not None:
        state.select(passage=int(drawn.passage))
    return {name: said for name in ("fact", "source") if (said := drawn.get(name))}


def evidence_at(record: AreRecord, place: Sequence[int]) -> tuple[str, Evidence]:
    """A fact's words and a piece of its evidence: `place` counts facts, rounds and what a round considered from 0."""
    fact, round_, considered = map(int, place)
    found = record.facts[fact]
    return found.fact.text, found.iterations[round_].considered[considered]


def clause_pieces(text: str) -> list[dict[str, Any]]:
    """A clause cut at its citation markers: words, and numbers."""
    pieces: list[dict[str, Any]] = []
    for piece, numbers in cut_at_citations(text):
        pieces += [{"number": number} for number in numbers] or markdown_runs(piece)
    return pieces


def tree_data(record: AreRecord, verdicts: Mapping[str, FactVerdict]) -> dict[str, Any]:
    """The data to draw, as plain values; no text is markup."""
    facts = [_fact(n, fact, verdicts[name]) for n, (name, fact) in enumerate(numbered(record).items())]
    waiting = sum(fact["attention"] for fact in facts)
    return {
        "attention_title": f"Needs attention ({waiting} of {len(facts)})",
        "clauses": [
            {"number": number, "pieces": clause_pieces(clause.text)}
            for number, clause in enumerate(record.decomposition.clauses)
        ],
        "facts": facts,
    }


def _fact(number: int, record: FactRecord, verdict: FactVerdict) -> dict[str, Any]:
    mark, edits = verdict.mark, verdict.edits
    edited = verdict.state == "edited"
    proposed = any(edit.decision is None and verdict.mends(edit) for edit in edits) or (verdict.proposed and not edits)
    return {
        "number": number,
        "name": verdict.number,
        "clause": record.clause,
        "text": visible(record.fact.text),
        "word": "edited" if edited else f"{record.stand}, edit proposed" if proposed else record.stand,
        "sure": verdict.by if verdict.by in (COPIED, STATED) else _sure(verdict),
        "kind": KINDS["edited" if edited else record.stand],
        "attention": verdict.state not in ("borne out", "edited"),
        "own": visible(f"{mark.author}: {mark.value}") if mark else "",
        "own_kind": KINDS[own_stand(mark.value)] if mark else "",
        "lines": [visible(line) for line in (*_said(mark), *_lines(record))],
        "details": [visible(line) for line in _details(record)],
        "rounds": [
            _round((number, place), done, record, last=done is record.shown)
            for place, done in enumerate(record.iterations)
        ],
    }


def _sure(verdict: FactVerdict) -> str:
    """The probability of the verifier's verdict on the fact as it now is, "" without one."""
    return "" if verdict.probability is None else f"probability {verdict.probability:.2f}"


def _said(mark: Mark | None) -> list[str]:
    """The reviewer's verdict with its reason."""
    return [f"{mark.author} says {mark.value}: {mark.reason}"] if mark else []


def _lines(record: FactRecord) -> list[str]:
    """The outcome of the check, and why it is unsure where a rule says so."""
    doubt = record.ruling.doubt if record.ruling else ""
    return [f"{record.meaning.capitalize()}.", *([f"Unsure: {doubt}."] if doubt else [])]


def _details(record: FactRecord) -> list[str]:
    """Both columns of support, how often the verifier is right, who split the fact from its clause."""
    columns = {"the case's passages": record.supported_by_case, "the corpus": record.supported_by_corpus}
    told = {True: "perhaps borne out" if record.stand == "unsure" else "borne out", False: "not borne out"}
    said = [f"By {name}: {told[value]}." for name, value in columns.items() if value is not None]
    if record.ruling and "; else " not in record.ruling.note:  # with a reason, how often a verifier is right is idle
        said.append(f"{_capital(note_in_words(record.ruling.note.partition('; unsure')[0]))}.")
    fallback = ", because a reply was unparsable" if record.fact.fallback else ""
    return [*said, f"Split by {record.fact.made_by}{fallback}."]


def _round(at: tuple[int, int], done: Iteration, record: FactRecord, *, last: bool) -> dict[str, Any]:
    """A round to draw; `at` are the places of the fact and of the round, from 0."""
    place = at[1] + 1
    checked = {check.evidence for check in done.checks}
    rest = [number for number in range(len(done.considered)) if number not in checked]
    shown, folded = _by_weight(done)
    drawn = {
        n: {**_checked(check, done, record.fact.text, n == done.decided), "at": [*at, check.evidence]}
        for n, check in enumerate(done.checks)
    }
    edit = done.edit
    return {
        "title": f"Round {place}: {_came_to(done)}",
        "last": last,
        "searched": [visible(_searched(place, number, done)) for number in range(len(done.queries))],
        "checked": [drawn[n] for n in shown],
        "edit": visible(f"Edited: {edit.before} → {edit.after} ({edit.why}; {edit.made_by})") if edit else "",
        "rest": [
            {"title": f"Also checked: {len(folded)}", "passages": [drawn[n] for n in folded]},
            {
                "title": f"Considered and not checked: {len(rest)}",
                "passages": [
                    {**_seen(done.considered[n], record.fact.text, None, [], ""), "at": [*at, n]} for n in rest
                ],
            },
        ],
        "said": [
            {
                "title": f"The model's reply: {e.step}{'' if e.parsed else ', not parsed'}",
                "text": visible(e.reply) or listed(e.probabilities),
            }
            for e in done.exchanges
        ],
    }


def _searched(place: int, number: int, done: Iteration) -> str:
    """A query and its results; from the second round on it is an expansion of the fact, which is never judged.

    Earlier versions did not store which query found what: then the query alone.
    """
    said = f"{'Searched with' if place == 1 else 'Search phrase'} “{done.queries[number]}”"
    if done.considered and not any(one.found_by for one in done.considered):
        return said
    return f"{said}: {found_in(done.found_with(number))}"


def _by_weight(done: Iteration) -> tuple[list[int], list[int]]:
    """The places of a round's checks, the one that decided first; apart those that a copy of the fact makes idle.

    Where a passage has the fact's words, only a sure contradiction next to it is worth reading at once.
    """
    order = sorted(range(len(done.checks)), key=lambda number: number != done.decided)
    if done.check is None or done.check.ruling.by not in (COPIED, STATED):
        return order, []
    rulings = [check.ruling for check in done.checks]
    against = [n for n in order[1:] if rulings[n].verdict == "editing_required" and not rulings[n].unsure]
    return [order[0], *against], [n for n in order[1:] if n not in against]


def _came_to(done: Iteration) -> str:
    if done.check is None:
        return "nothing new was found"
    ruling = done.check.ruling
    word = IN_WORDS.get(ruling.verdict, ruling.verdict)
    return f"unsure, perhaps {word}" if ruling.unsure else word


def _checked(check: Check, done: Iteration, fact: str, decided: bool) -> dict[str, Any]:
    rulings = [ruling for ruling in (check.ruling, check.second) if ruling is not None]
    notes = [_verdict(ruling) for ruling in rulings]
    if decided and len(done.checks) > 1:
        notes.append("This passage decided.")
    stand = "unsure" if check.ruling.unsure else IN_WORDS.get(check.ruling.verdict, "not checked")
    kind = KINDS[stand] if decided else ""
    seen = _seen(done.considered[check.evidence], fact, check.ruling.window, notes, kind)
    return {**seen, "details": [_ruled(ruling) for ruling in rulings]}


def _verdict(ruling: Ruling) -> str:
    """The verdict with its reason, or by whom and how probable."""
    word, reason, _ = ruling.note.partition("; else ")
    said = note_in_words(word) if reason else f"{IN_WORDS.get(ruling.verdict, ruling.verdict)} by {ruling.by}"
    if not reason and ruling.verdict in ruling.scores:
        said += f", probability {ruling.scores[ruling.verdict]:.2f}"
    doubt = f"Unsure: {ruling.doubt}." if ruling.doubt else "Unsure." if ruling.unsure else ""
    return visible(f"{_capital(said)}. {doubt}".strip())


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _ruled(ruling: Ruling) -> str:
    """All that is known of the verdict: how often the verifier is right, every probability, its reasons."""
    scores = ", ".join(f"{IN_WORDS.get(name, name)} {value:.2f}" for name, value in ruling.scores.items())
    reasons = f" Reason given: {ruling.reasoning}" if ruling.reasoning else ""
    return visible(f"{note_in_words(ruling.note)}.{f' Probabilities: {scores}.' if scores else ''}{reasons}")


def _seen(
    one: Evidence, fact: str, window: tuple[int, int] | None, notes: Sequence[str], decided: str
) -> dict[str, Any]:
    """A piece of evidence to draw; `decided` is the colour of the verdict that rests on it, "" of any other."""
    place = f"passage {one.number}" if one.number else "corpus"
    parts = (place, own_title(one.number, one.title or one.document), f"similarity {one.score:.2f}")
    return {
        "number": one.number,
        "head": visible(" · ".join(filter(None, parts))),
        "pieces": _pieces(one.text, shared_words(fact, one.text), window or (0, 0)),
        "notes": list(notes),
        "decided": decided,
    }


@lru_cache(maxsize=8192)  # drawn anew at each click; a fact's rounds consider the same passages
def _pieces(text: str, marks: tuple[tuple[int, int], ...], window: tuple[int, int]) -> tuple[dict[str, Any], ...]:
    """The passage cut where a shared word or the deciding window starts or ends; what a piece is not is left out."""
    text, whole = rows_apart(text), window == (0, len(text))
    cuts = sorted({0, len(text), *(() if whole else window), *(place for span in marks for place in span)})
    marked = {place for a, b in marks for place in cuts[bisect_left(cuts, a) : bisect_left(cuts, b)]}
    pieces = []
    for start, end in pairwise(cuts):
        piece: dict[str, Any] = {"text": visible(text[start:end])}
        if start in marked:
            piece["mark"] = True
        if not whole and window[0] <= start and end <= window[1]:
            piece["window"] = True
        pieces.append(piece)
    return tuple(pieces)


def override_fields(
    case: Case, record: AreRecord, verdict: CaseVerdict, review: Review, author: str, selected: str
) -> None:
    """Fact (`selected` first), verdict, its sentence to rewrite, reason; a signed-off case takes none.

    Not a form: what is typed is kept on other pages until it is saved.
    """
    if review.status == "signed off":
        return
    facts = numbered(record)
    with st.expander("Your verdict on a fact"):
        name = st.selectbox(
            "Fact",
            list(facts),
            index=list(facts).index(selected) if selected in facts else 0,
            format_func=lambda n: visible(f"{n} {facts[n].fact.text}"),
            key=f"override_fact_{case.id}_{selected}",
        )
        number = verdict.sentence_of(name) if name else None
        if name is None or number is None:
            return
        # By the fact's words, too: another check may give its number to another fact.
        fields = f"override_{case.id}_{name}_{facts[name].fact.text}"
        key = state.fields(fields)
        mark = rewritten(case.answer, review).get(number)
        if mark is not None:
            st.caption(plain(f"{mark.author} rewrote this sentence: {mark.reason}"))
            if st.button("Undo", key="override_undo", disabled=not author):
                write(case, {"undo": number}, author)
        value = st.segmented_control("Verdict", VERDICTS["fact"], key=f"{key}_verdict", persist_state="session")
        words = mark.value if mark else case.answer.text[slice(*case.answer.sentences[number - 1])]
        text = st.text_area(
            "Rewrite the sentence (empty: delete it)",
            words,
            key=f"{key}_text_{mark.number if mark else 0}",
            persist_state="session",
        )
        reason = st.text_input(
            "Reason", key=f"{key}_reason", placeholder="what the source says", persist_state="session"
        )
        asked = st.button(
            "Save",
            type="primary",
            disabled=not author,
            help=None if author else "Enter your name first. The case's history records it.",
        )
    if not asked:
        return
    changed = text if text.strip() != words.strip() else None
    if not value and changed is None:
        st.error("Choose a verdict, or change the sentence.")
    else:
        said = {"sentence": number, "fact": name, "verdict": value, "text": changed, "reason": reason}
        write(case, said, author, fields=fields)


def edits_view(case: Case, record: AreRecord, author: str) -> None:
    """The tracked changes, a decision on each, and what is exported."""
    st.header("Tracked changes")
    review = workbench().cases.review(case.id)
    decided, said = decisions(record, review), edit_decisions(record, case.answer, review)
    edits, all_decided = revision(record, case.answer, review)
    draw(tracked_text(case, record, review))
    if record.edits:
        for edit in record.edits:
            made, frozen = decided.get(edit.id), review.status == "signed off"
            edit_card(case, record, edit, made, said.get(edit.id, ""), author, frozen=frozen)
    else:
        st.caption("No edits found.")
    st.caption("The accepted text and the downloads contain only the edits you accept.")
    with st.container(horizontal=True):
        st.download_button(
            "Accepted text", revised(record.checked, edits, accepted_ids(all_decided)), "answer.txt", "text/plain"
        )
        st.download_button("Report", facts_report(case, record, review), "facts.md", "text/markdown")
        record_json = msgspec.json.encode(record.to_dict())
        st.download_button("Record as JSON", record_json, "facts.json", "application/json")
        export_button(lambda: drawn_changes(case, record, review), key=f"changes_{case.id}")


def edit_card(
    case: Case, record: AreRecord, edit: Placed, decision: Decision | None, said: str, author: str, *, frozen: bool
) -> None:
    """One edit: what changes, why, on which fact and passage, and the decision as `said`; none on a `frozen` case."""
    old, new = edit.old or "nothing", edit.new or "taken out"
    fact = record.facts[edit.fact]
    evidence = fact.evidence or edit.evidence
    status = said or ("suggestion" if edit.status == "suggestion" else "open")
    with st.container(border=True):
        show(tag("div", tag("b", f"{escape(edit.id)}. ") + escape(f"{old} → {new}")))
        show(chips([("status", status), ("fact", fact.fact.text), ("because", edit.why)]))
        with st.expander(plain(f"The passage: {evidence.title or evidence.document}")):
            st.text(visible(evidence.text))
        if after := after_edit(edit):
            st.caption(plain(after), help=plain(edit.ruling.note) if edit.ruling else None)
        if frozen:
            return
        if edit.status == "suggestion" and not exact(edit, record.checked):
            st.caption(
                "Its position is uncertain, so it is not applied. If you agree, rewrite the sentence under "
                '"Your verdict on a fact".'
            )
            return
        # By the edit's words, too: another check may give its number to another edit.
        key = f"reason_{case.id}_{edit.id}_{edit.old}_{edit.new}"
        reason = st.text_input("Note", key=key, placeholder="reason (optional)")
        with st.container(horizontal=True):
            for value, label in (("accepted", "Accept"), ("rejected", "Reject")):
                pressed = st.button(
                    f"{label} {edit.id}",
                    key=f"{value}_{case.id}_{edit.id}",
                    disabled=not author or decision == value,
                    help=None if author else "Enter your name first. The case's history records it.",
                )
                if pressed:
                    write(case, {"edit": edit.id, "value": value, "reason": reason}, author)


def compare_panel(case: Case, asked: Asked) -> None:
    """Two folded studies: the methods that ARE is compared with, and the entropy of facts and sub-questions."""
    with st.expander("Other methods on this answer: DRQA, RARR, CCVER, an EFEC-style editor"):
        names = offered(asked.judge)
        st.caption(
            'Same passages and verifier. All except DRQA ask and edit with the "Language model as a second opinion".'
        )
        if len(names) == 1:
            note('Without a language model only DRQA can run. Choose one above, under "Models of the check".')
        label = LABELS.__getitem__
        chosen = st.pills("Methods", names, selection_mode="multi", default=names, format_func=label, key="others")
        peers = PeerOptions(methods=tuple(chosen), verifier=asked.verifier, judge=asked.judge)
        ask_for(case, PEERS.name, "Run them", options=peers, settings=asked.settings)
        _draw_last(case, PEERS)
    with st.expander("Entropy of the facts and of the sub-questions"):
        model = st.text_input(
            "Scored by",
            default_for("scores").model,
            key="entropy_model",
            help="A model that gives probabilities: embedded, a Hugging Face id or folder, a .gguf file.",
        )
        entropy = EntropyOptions(model=model, judge=asked.judge)
        ask_for(case, ENTROPY.name, "Compute the entropy", options=entropy, settings=asked.settings)
        _draw_last(case, ENTROPY)


def _draw_last(case: Case, kind: Kind[Any]) -> None:
    """The last result of that kind, where the case has one."""
    found = kind.last(case)
    if found is not None:
        draw(*kind.blocks(case, found, Review()))
