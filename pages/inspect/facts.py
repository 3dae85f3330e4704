"""Facts: does the answer stand, fact by fact; edits as tracked changes; what each clause rests on."""

import msgspec
import streamlit as st

from components import state
from components.answer import answer_view
from components.cache import workbench, workers
from components.facts import facts_tree, measures_view, tracked_changes
from components.frame import open_case
from components.heading import heading
from components.html import chips, escape, plain, show, tag, visible
from components.polling import wait_for
from components.runs import Run, start
from components.used_supports import used_supports_view
from engine.attribute.used_supports import UsedSupports
from engine.cases.review import Draft, review_of
from engine.corpus.collection import list_corpora
from engine.errors import Cancelled, GroundworkError
from engine.models.verifier import load_entailment
from engine.records import AuditRecord
from engine.settings import Settings
from engine.types import Analysis, Case
from engine.verify.decompose import decompose
from engine.verify.export import Decision, accepted_text, as_markdown
from engine.verify.on_case import facts_of, record_of
from engine.verify.task import Tools
from engine.verify.values import AreRecord, Placed

SOURCES = {"both": "case and corpus", "case": "the case's passages", "corpus": "the corpus"}


def own_draft() -> None:
    """A form that makes a case of a pasted answer."""
    with st.form("own_draft", border=False):
        question = st.text_input("Question that the draft answers", key="draft_question")
        draft = st.text_area("Draft to check", key="draft_text", height=140)
        names = [corpus.name for corpus in list_corpora()]
        corpus = st.selectbox("Corpus to check it against", names, key="draft_corpus")
        if not st.form_submit_button("Make a case of it", type="primary"):
            return
    if not draft.strip():
        st.error("The draft is empty. Paste the text to check.")
        return
    try:
        case = workbench().audit(AuditRecord(question=question, passages=(), answer=draft, model="pasted"))
        workbench().cases.update(case.id, lambda saved: msgspec.structs.replace(saved, corpus=corpus))
    except GroundworkError as error:
        st.error(plain(str(error)))
        return
    state.open_case(case.id)
    st.rerun()


def check(case: Case, verifier: str, settings: Settings, run: Run[Case]) -> Case:
    """The check in its worker: what is finished is kept when it is stopped."""
    run.stage = "loading the verifier"
    bench = workbench()
    known = {corpus.name for corpus in list_corpora()}
    collection = bench.collection(case.corpus) if case.corpus in known and case.corpus is not None else None
    try:
        found = facts_of(case, Tools(load_entailment(verifier)), settings, bench.embedder, collection, run.watch)
    except Cancelled as stopped:
        if isinstance(stopped.partial, Analysis):
            bench.cases.add_analysis(case.id, stopped.partial)
        raise
    return bench.cases.add_analysis(case.id, found)


def controls(case: Case) -> None:
    """What to check against and by whom, with what it will cost; progress while it runs."""
    name = f"facts:{case.id}"
    running = state.run_of(name)
    if running is not None and running.running:
        wait_for(name, "Checking the answer")
        return
    left, middle, right = st.columns([2, 2, 1.4], vertical_alignment="bottom")
    source = left.selectbox("Evidence from", list(SOURCES), format_func=SOURCES.get, key="facts_source") or "both"
    verifier = middle.text_input(
        "Verifier", "embedded", key="facts_verifier", help="embedded, or an NLI model's id or folder."
    )
    own = workbench().settings
    chosen = msgspec.structs.replace(own.verification, evidence_from=source)
    settings = msgspec.structs.replace(own, verification=chosen)
    if right.button("Check the answer", key="start_facts", type="primary", width="stretch"):
        state.keep_run(name, start(workers(), lambda run: check(case, verifier, settings, run), label="facts"))
        st.rerun()
    count = sum(len(clause.facts) for clause in decompose(case.answer.text).clauses)
    sides = 2 if source == "both" else 1
    most = count * chosen.keep * sides * chosen.max_iterations
    st.caption(
        f"{count} facts, at most {most} verdicts and some more for edits; about 40 verdicts a second on a free core."
        " Nothing is sent anywhere."
    )
    if running is not None and running.problem:
        (st.info if running.was_cancelled else st.error)(plain(running.problem))


def decisions_of(case: Case, record: AreRecord) -> dict[str, Decision]:
    """The last decision on each edit of this check; one on another check's edit does not count."""
    marks = review_of(workbench().cases.history(case.id)).overrides
    found: dict[str, Decision] = {}
    for edit in record.edits:
        mark = marks.get(f"edit:{edit.id}")
        if mark is not None and mark.machine == proposed(edit) and mark.value in ("accepted", "rejected"):
            found[edit.id] = "accepted" if mark.value == "accepted" else "rejected"
    return found


def proposed(edit: Placed) -> str:
    """The edit as a mark's machine side says it."""
    return f"{edit.start}-{edit.end}: {edit.old} -> {edit.new}"


def decide(case: Case, edit: Placed, value: Decision, author: str, reason: str) -> None:
    """Write a decision into the case's history and draw the page anew; say why not where it is refused."""
    draft = Draft(
        kind="override",
        author=author,
        value=value,
        target=f"edit:{edit.id}",
        reason=reason or f"{value} on the Facts page",
        machine=proposed(edit),
    )
    try:
        workbench().cases.add_mark(case.id, draft)
    except GroundworkError as error:
        st.error(plain(str(error)))
    else:
        st.rerun()


def edits(case: Case, record: AreRecord) -> None:
    """The tracked changes, a decision on each, and what is exported."""
    st.header("Tracked changes")
    decided = decisions_of(case, record)
    tracked_changes(record, decided)
    if record.edits:
        author = st.text_input("Reviewer", key="reviewer", persist_state="session", placeholder="your name", width=320)
        for edit in record.edits:
            edit_card(case, record, edit, decided.get(edit.id), author.strip())
    else:
        st.caption("No edit was found.")
    st.caption("An accepted edit is put in, every other one is not: the downloads hold what is accepted.")
    with st.container(horizontal=True):
        st.download_button("Accepted text", accepted_text(record, decided), "answer.txt", "text/plain")
        st.download_button("Report", as_markdown(record, decided), "facts.md", "text/markdown")
        record_json = msgspec.json.encode(record.to_dict())
        st.download_button("Record as JSON", record_json, "facts.json", "application/json")


def edit_card(case: Case, record: AreRecord, edit: Placed, decision: Decision | None, author: str) -> None:
    """One edit: what changes, why, on which fact and passage, and the decision."""
    old, new = edit.old or "nothing", edit.new or "nothing"
    status = decision or ("suggestion" if edit.status == "suggestion" else "open")
    with st.container(border=True):
        show(tag("div", tag("b", f"{escape(edit.id)}. ") + escape(f"{old} → {new}")))
        show(chips([("status", status), ("fact", record.facts[edit.fact].fact.text), ("because", edit.why)]))
        with st.expander(plain(f"The passage: {edit.evidence.title or edit.evidence.document}")):
            st.text(visible(edit.evidence.text))
        if edit.ruling is not None:
            st.caption(plain(f"After the edit it agrees with the passage it was edited from: {edit.ruling.note}."))
        if edit.status == "suggestion":
            st.caption("A suggestion is not put in: change the answer by hand if you agree.")
            return
        reason = st.text_input("Note", key=f"reason_{case.id}_{edit.id}", placeholder="why, if you want to say it")
        with st.container(horizontal=True):
            for value, label in (("accepted", "Accept"), ("rejected", "Reject")):
                pressed = st.button(
                    f"{label} {edit.id}",
                    key=f"{value}_{case.id}_{edit.id}",
                    disabled=not author or decision == value,
                    help=None if author else "Give your name first: the decision goes into the case's history.",
                )
                if pressed:
                    decide(case, edit, "accepted" if value == "accepted" else "rejected", author, reason)


def result(case: Case, record: AreRecord) -> None:
    """Everything that the check found."""
    if not record.finished:
        show(tag("p", "The check was stopped; this is what was finished.", class_="gw-banner"))
    for note in record.notes:
        show(tag("p", escape(note), class_="gw-note"))
    found = [("decomposed by", record.decomposer), ("verdicts by", record.verifier), ("edits by", record.editor)]
    show(chips([*found, ("evidence from", SOURCES[record.evidence_from]), ("seconds", f"{record.seconds:.1f}")]))
    if record.facts:
        facts_tree(record, key=f"facts_{case.id}_{record.verifier}_{record.seconds:.3f}")
    else:
        st.info("The answer says nothing that could be checked.")
    edits(case, record)
    st.header("Attribution report")
    measures_view(record)
    with st.expander("Used x supports: what the writer used of each passage beside what the passage bears out"):
        matrix = next((a for a in reversed(case.analyses) if a.kind == "used x supports"), None)
        if matrix is None:
            st.caption("Not run on this case. Compare use and support on the Attribution page.")
            st.page_link("pages/inspect/attribution.py", label="Attribution")
        else:
            used_supports_view(UsedSupports.from_dict(matrix.result), case)


heading(
    "Facts",
    "Does the answer stand, fact by fact? Each fact with a verdict and its evidence, each edit as a tracked change.",
    "facts",
    "verifier",
    "used-x-supports",
)
with st.expander("Check a draft of your own"):
    own_draft()
case = open_case()
if case is not None:
    show(tag("h2", escape(case.question), class_="gw-question"))
    record = record_of(case)
    if record is None:
        answer_view(case.answer)
    controls(case)
    if record is not None:
        result(case, record)
