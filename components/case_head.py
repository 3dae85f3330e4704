"""The head of every page of a case: the question, in one line whether the answer stands, each part of it a link, and
whether the documents answer the question."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import streamlit as st

from components.cache import workbench
from components.checking import check_button, is_being_checked
from components.html import banner, escape, plain, show, tag
from components.pages import page_link
from components.sentences import KINDS
from components.settings_panel import chosen_settings
from engine.analyses.case_verdict import CaseVerdict, case_verdict, doubt_about, without_source
from engine.answer.in_documents import doubted, nothing_said, probably_answered, unknown
from engine.cases.review import Review
from engine.core.text import counted
from engine.core.values import Case
from engine.methods.raise_.values import Problem


class Part(NamedTuple):
    """A part of the line: its words as Markdown, the page that shows what they say, and what the link asks of it."""

    label: str
    page: str
    query: Mapping[str, str] = {}


def case_head(case: Case, *, offer: bool = True) -> CaseVerdict | None:
    """Draw it and return the verdict; where nothing was checked it offers the check (`offer`), else it says so."""
    show(tag("h2", escape(case.question), class_="gw-question"))
    if case.options:
        show(tag("p", escape(Problem(question="", options=case.options).text.strip()), class_="gw-answer"))
    review = workbench().cases.review(case.id)
    verdict, absent = case_verdict(case, review), review.absent is not None
    # Who signed has read whether the documents answer.
    doubt = "" if review.status == "signed off" else doubted(case, chosen_settings().retrieval)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="case_head"):
        if verdict is None and not (offer and is_being_checked(case)):
            show(tag("p", escape(_unchecked(case, warned=bool(doubt))), class_="gw-unchecked"), width="content")
        elif verdict is not None and not absent and not doubt:  # facts may be borne out and not answer the question
            show(_bar(verdict), width="content")
        if verdict is None and offer and case.answer.text.strip() and case.answer.finished and not case.answer.refused:
            check_button(case, key=f"check_{case.id}")
        for part in head_parts(case, verdict, review, warned=bool(doubt)):
            page_link(part.page, part.label, case=case.id, **part.query)
    if not absent and (said := nothing_said(case) or doubt):
        st.warning(plain(said))
    elif not absent and (said := unknown(case)):
        banner(said)
    if verdict is not None and not absent and not doubt and (said := _answers(case, verdict)):
        st.caption(plain(said))
    return verdict


def head_parts(case: Case, verdict: CaseVerdict | None, review: Review, *, warned: bool = False) -> list[Part]:
    """Facts by state, edits to decide on, citations, their use, the review.

    `warned`: a warning says already that the documents may not answer.
    """
    parts = [] if verdict is None else _checked_parts(case, verdict, warned=warned)
    if case.passages and not case.answer.refused and not any(part.page == "inspect/attribution" for part in parts):
        parts.append(Part("What mattered", "inspect/attribution"))
    if lacking := without_source(case):
        parts.append(Part(lacking, _answer_page(case)))
    said = plain(_reviewed(review))
    said = f"{said[:1].upper()}{said[1:]}"
    if review.status == "signed off":  # who signed has the last word
        return [Part(f"**{said}**", "review/cases", {"review": "first"}), *parts]
    return [*parts, Part(said, "review/cases", {"review": "first"})]


def _answer_page(case: Case) -> str:
    return "ask/audit" if case.origin == "imported" else "ask/ask"


def _checked_parts(case: Case, verdict: CaseVerdict, *, warned: bool) -> list[Part]:
    stopped = "" if verdict.finished else ". The check was stopped early"
    doubt = doubt_about(case, verdict)
    told = warned and doubt == probably_answered(case)
    said = f"{'' if told else doubt} {verdict.headline}".strip().removesuffix(".")
    parts = [Part(f"**{said}{stopped}**", "inspect/facts")]
    if verdict.open_edits:
        parts.append(Part(verdict.open_edits, "inspect/facts", {"fact": verdict.undecided_fact}))
    if verdict.overridden:
        parts.append(Part(f"{counted(verdict.overridden, 'verdict')} by a reviewer", "inspect/facts"))
    if verdict.citations:
        parts.append(Part(verdict.cited, _answer_page(case)))
    if verdict.citations_compared:
        used = f"{verdict.citations_used} of {verdict.citations_compared} citations used and supporting"
        parts.append(Part(used, "inspect/attribution", {"attribution_tab": "Used x supports"}))
    return parts


def _answers(case: Case, verdict: CaseVerdict) -> str:
    """Whether the documents answer the question, which no fact tells; empty where the line says it or one signed."""
    answered = probably_answered(case)
    if not answered or verdict.signed_off or doubt_about(case, verdict):
        return ""
    quoted = "The facts are quoted, so nothing was judged. "
    return f"{quoted if verdict.quoted else ''}{answered}"


def _bar(verdict: CaseVerdict) -> str:
    """A bar with a part per state of the facts; the link next to it says the same in words."""
    parts = "".join(
        tag("i", "", class_=f"gw-{KINDS[state]}", style=f"flex-grow:{count}") for state, count in verdict.facts.items()
    )
    return tag("span", parts, class_="gw-verdicts", aria_hidden="true")


def _unchecked(case: Case, *, warned: bool) -> str:
    if case.answer.refused:
        return "The writer says that the passages do not answer the question."
    if not case.answer.text.strip():
        return "The case has no answer to check."
    return f"Not checked yet. {'' if warned else probably_answered(case)}".strip()


def _reviewed(review: Review) -> str:
    said = review.conclusion or review.absent
    if review.status != "open":
        status = f"{review.status} by {review.reviewer}"
        return f"{said.value}, {status}" if said else status
    return f"{said.value}, by {said.author}: review and export" if said else "not reviewed: review and export"
