"""The review of a case: status, marks that stand, adding one, history and its protection; the sign-off."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from components import state
from components.answer import with_pills
from components.blocks import draw
from components.html import chips, escape, note, plain, show, tag, visible
from components.reviewer import needs_name, write_marks
from engine.analyses.case_verdict import (
    VERDICTS,
    CaseVerdict,
    SentenceVerdict,
    by_machine,
    case_verdict,
    changed_by_review,
    conclusions,
    in_words,
    open_items,
    verdict_line,
)
from engine.analyses.facts import record_of, tracked_text
from engine.answer.citations import without_markers
from engine.cases.places import MarkTarget, places
from engine.cases.review import RELEVANCE, STATUSES, Chain, Conclusion, Mark, MarkDraft, Review, sign_off, status_name
from engine.core.text import counted
from engine.core.values import Case
from engine.report.build import history_table, mark_tables

Add = Callable[[MarkDraft, str], None]  # the mark, and the name of the fields that it comes from
VERBS = {"open": "Reopen", "in review": "Start review", "signed off": "Sign off"}
KINDS = {"note": "Note", "relevance": "Relevance label", "override": "Own verdict"}
MEANINGS: dict[Conclusion, str] = {
    "stands": "The answer is reliable as given.",
    "stands as edited": "The text above is reliable; the original answer is not.",
    "partly stands": "The text above is reliable, except what is not borne out.",
    "does not stand": "The answer is not reliable.",
}
WHOLE: tuple[Conclusion, ...] = ("stands", "stands as edited")


def review_status(review: Review, author: str, add: Add, sign: Callable[[], None], *, key: str) -> None:
    """The status and who set it, and the ways on from it; `sign` opens the sign-off."""
    said = [("status", status_name(review.status)), *([("by", review.reviewer)] if review.reviewer else [])]
    show(chips([*said, *([("conclusion", review.conclusion.value)] if review.conclusion else [])]), width="content")
    if review.status == "signed off":
        return
    for status in STATUSES:
        signs = status == "signed off"
        look = {"type": "primary" if signs else "secondary", "disabled": not author, "help": needs_name(author)}
        if status != review.status and st.button(VERBS[status], key=f"{key}_{status}", **look):
            sign() if signs else add(MarkDraft(kind="status", author=author, value=status), "")


@st.fragment
def add_mark(case: Case, author: str, add: Add, *, key: str) -> None:
    """The fields of one mark, kept until it is written; an override is shown next to the machine's verdict."""
    kind = st.segmented_control(
        "Add", list(KINDS), format_func=KINDS.get, default="note", required=True, key=f"{key}_kind"
    )
    found = [p for p in places(case) if _fits(kind, p)]
    if not found:
        note("There are no passages to label.")
        return
    name = f"{key}_{case.id}_{kind}"
    fields = state.fields(name)
    place = st.selectbox("About", found, format_func=_target_name, key=f"{fields}_place", persist_state="session")
    if kind == "relevance":
        value = st.radio("Label", RELEVANCE, horizontal=True, key=f"{fields}_label", persist_state="session")
    elif choices := VERDICTS.get(place.target.partition(":")[0]) if kind == "override" else None:
        key = f"{fields}_{place.target}"
        value = st.radio("Your verdict", choices, index=None, horizontal=True, key=key, persist_state="session") or ""
    elif kind == "override":
        value = st.text_input("Your verdict", key=f"{fields}_verdict", persist_state="session")
    else:
        value = st.text_area("Note", key=f"{fields}_note", height=90, persist_state="session")
    reason = "" if kind == "note" else st.text_input("Reason", key=f"{fields}_reason", persist_state="session")
    if st.button("Add to the history", type="primary", disabled=not author, help=needs_name(author)):
        add(
            MarkDraft(kind=kind, author=author, value=value, target=place.target, reason=reason, machine=place.machine),
            name,
        )


def _fits(kind: str, place: MarkTarget) -> bool:
    return kind != "relevance" or place.target.startswith("passage:")


def _target_name(place: MarkTarget) -> str:
    said = f" (machine: {in_words(place.machine)})" if place.machine else ""
    return visible(f"{place.label[:100]}{said}")


def standing_marks(review: Review) -> None:
    """Overrides next to the machine's verdicts, labels, notes."""
    if not (review.overrides or review.labels or review.notes):
        note("No notes, labels or verdicts yet.")
    for marks in mark_tables(review):
        draw(marks)


def history_view(history: Sequence[Mark], chain: Chain) -> None:
    """How the history is protected, and every entry, oldest first, with its hash."""
    if chain.problem:
        st.error(plain(chain.protection))
    with st.expander("How the history is protected"):
        note(chain.protection)
        if chain.head:
            st.code(chain.head, language=None)
    if history:
        with st.expander(f"The whole history ({counted(len(history), 'entry', 'entries')})"):
            draw(history_table(history))


@st.dialog("Sign off", width="medium")
def sign_off_dialog(case: Case, review: Review, author: str) -> None:
    """The sign-off over the page; a sign-off freezes the case."""
    sign_off_view(case, review, author)


def sign_off_view(case: Case, review: Review, author: str) -> None:
    """Show what is signed and take the conclusion."""
    verdict = case_verdict(case, review)
    show(tag("p", tag("b", escape(verdict_line(case, verdict)))))
    if before := changed_by_review(case, verdict):
        note(before)
    doubtful = _in_doubt(case, verdict) if verdict else {}
    edited = bool(verdict and verdict.accepted)
    with_edits = f", with {counted(verdict.accepted, 'edit')}" if verdict and edited else ""
    # The headings of Streamlit are smaller than the text in a dialog.
    show(tag("h3", f"Text that you sign{with_edits}", class_="gw-question"))
    show(tag("div", _marked(verdict.text if verdict else case.answer.text, doubtful), class_="gw-answer gw-signed"))
    record = record_of(case) if verdict else None
    if record is not None and (record.edits or edited):
        with st.expander("Tracked changes"):
            draw(tracked_text(case, record, review))
            note("Struck: taken out. Underlined: put in. The text above leaves out undecided edits.")
    if items := _open_lines(case, verdict, review, doubtful) if verdict else []:
        st.warning("\n".join(f"- {plain(line)}" for line in items))
    with st.form("sign_off", border=False):
        options = conclusions(verdict)
        conclusion = st.radio(
            "Conclusion",
            options,
            index=None,
            format_func=lambda c: f"The answer {c}",
            captions=[f"{MEANINGS[c]}{_left_over(doubtful) if c in WHOLE else ''}" for c in options],
            key="sign_off_conclusion",
        )
        reason = st.text_input("Reason", key="sign_off_reason", placeholder="what you read and why you decided")
        note(f"Signed by {author}. Signing freezes the case; a later change needs a new version.")
        asked = st.form_submit_button("Sign off and freeze", type="primary")
    refused = st.container()
    if not asked:
        return
    machine = by_machine(case)
    with refused:
        if conclusion is None:
            st.error("Choose a conclusion.")
            return
        write_marks(
            case.id, sign_off(author, conclusion, reason, machine.headline if machine else ""), review.head or None
        )


def _in_doubt(case: Case, verdict: CaseVerdict) -> dict[int, str]:
    """The sentences that are not borne out and still in the text, with their accepted edits, by number."""
    return {n: _with_edits(case.answer.text, verdict.sentences[n - 1]) for n in map(int, verdict.excepted)}


def _with_edits(text: str, sentence: SentenceVerdict) -> str:
    start, words = sentence.start, text[sentence.start : sentence.end]
    for edit in reversed(sentence.accepted):
        words = words[: edit.start - start] + edit.new + words[edit.end - start :]
    return words


def _open_lines(case: Case, verdict: CaseVerdict, review: Review, doubtful: dict[int, str]) -> list[str]:
    """The open items before the sign-off, with the words of each sentence that is `doubtful`."""
    others = [line for line in open_items(case, verdict, review) if not line.startswith("Sentence")]
    named = {n: f"Sentence {n} is {verdict.sentences[n - 1].state} and still in the text" for n in doubtful}
    return [*others, *(f"{named[n]}: “{without_markers(words)}”" for n, words in doubtful.items())]


def _left_over(doubtful: dict[int, str]) -> str:
    if not doubtful:
        return ""
    return f" {counted(len(doubtful), 'sentence')} {'is' if len(doubtful) == 1 else 'are'} not borne out."


def _marked(text: str, doubtful: dict[int, str]) -> str:
    """The text as markup, with the doubtful sentences marked."""
    drawn = ""
    for words in doubtful.values():
        if words and words in text:
            before, _, text = text.partition(words)
            drawn += with_pills(before) + tag("mark", with_pills(words))
    return drawn + with_pills(text)
