"""Ask: a question, the steps as they run, the answer next to its passages."""

import re
from collections.abc import Sequence

import streamlit as st

from components import state
from components.answer import answer_view, with_pills
from components.cache import document_lengths, questions, snapshot_of, workbench
from components.case_head import case_head
from components.checked_answer import checked_answer, not_in_documents
from components.doors import doors
from components.evidence import evidence
from components.frame import EXAMPLES, open_case
from components.heading import heading
from components.html import escape, note, plain, show, tag, visible
from components.model_choice import METHOD_NAMES, draw_models_line, model_title, writer_options
from components.polling import cancel_button, redraw, redraw_while_running, say_problem
from components.provenance import provenance
from components.ranking import ranking
from components.runs import Run, Shared
from components.settings_panel import chosen_settings, chosen_workbench, settings_panel
from components.source_view import open_source
from components.steps import draw_steps
from engine.analyses.reading import KIND as READING
from engine.answer.in_documents import doubted
from engine.answer.quoting_reader import withheld
from engine.cases.query import Query
from engine.cases.store import new_case_id
from engine.core.values import Case
from engine.corpus.collection import list_corpora
from engine.corpus.samples import FIRST_CASE, SAMPLES

EXPECTED = {
    "reranked": ("retrieve", "align", "re-rank", "answer"),
    "vanilla": ("retrieve", "answer"),
    "attr-rag": ("retrieve", "align", "re-rank", "occlusion by regeneration", "selection", "final answer"),
}
TRIES = "questions_to_try"
FEW_NAMED = 3  # of the chosen documents, in a line
MOST_NAMED = 1_000  # documents that are offered by name; of a larger corpus their names are typed
UNCLOSED = re.compile(
    r"\s*\[[\w, ;-]{0,20}$"
)  # the beginning of a citation marker, at the end of what is written so far


def begin(question: str, corpus: str, documents: Sequence[str], method: str, model: str) -> None:
    """Start a run for this session; a running one is asked to stop."""
    state.take_value(state.ASKING)
    if isinstance(run, Run):  # not one of another session, which this one only watches
        run.stop()
    forget()
    bench, case_id = chosen_workbench(), new_case_id()

    def work(run: Run[Case]) -> Case:
        return bench.ask(
            question, corpus, documents=documents, method=method, model=model, case_id=case_id, watch=run.watch
        )

    state.keep_asked(case_id, running=True)
    state.keep_run(run_name(), questions().start(work, label=method), shared=True)


def run_name() -> str:
    """The name of the question's run."""
    return f"ask:{state.asked()}"


@redraw_while_running()
def watch_run(run: Run[Case]) -> None:
    """The running question: who writes, steps, text so far, cancel."""
    if run.case is not None:  # which is there from the first step on
        show(tag("h2", escape(run.case.question), class_="gw-question"))
        note(f"Written by {run.case.stamp.model}")
    steps = run.case.steps if run.case else ()
    expected = EXPECTED[run.label]
    if run.waiting:
        st.caption(plain(run.waiting))
    draw_steps(expected, steps, current=run.stage or expected[0])
    cancel_button(run, key="cancel_ask")
    if run.text:
        show(tag("div", with_pills(UNCLOSED.sub("", run.text)), class_="gw-answer"))
    if run.case is not None and run.case.hits:
        ranking(run.case, key=f"ranking_{run.case.id}", moving=True)


def finish(case_id: str, run: Run[Case] | Shared | None) -> None:
    """Open the case of a question that ended, if it is kept; once, where it is half made.

    `run` is None where it ended before the page was loaded anew.
    """
    if state.first_time(f"asked {case_id}") and workbench().cases.has(case_id):
        state.open_case(case_id)
        redraw()  # the case picker, drawn before, shows the new case
    if run is None or not run.problem:
        forget()
        redraw()


def forget() -> None:
    """Drop the last question's run."""
    state.forget_run(run_name())
    state.keep_asked("", running=False)


@st.fragment
def given_passages(case: Case) -> None:
    """The answer and the passages that the writer was given; a click on one draws nothing else anew."""
    selected = state.selected_passage(len(case.passages))
    asked = evidence(case, key=f"evidence_{case.id}", lengths=document_lengths(case), opened=selected)
    if "passage" in asked:
        state.select(passage=asked["passage"])
    if "source" in asked:
        open_source(case, asked["source"])


def would_have_said(case: Case) -> None:
    """The sentences that the quoting reader held back, because nothing was close enough."""
    for reading in READING.of(case):
        if answer := withheld(reading, case.passages, chosen_settings().reader):
            with st.expander("What it would have said"):
                answer_view(answer)


def ask_form(case: Case | None) -> None:
    """Question, corpus and method; one run at a time for a session. The corpus of the open case or, at a start, the one
    last asked comes first.

    Folded above a case that the user opened, so that the first thing there is whether its answer stands.
    """
    if case is None or case.id == FIRST_CASE or run is not None:
        question_fields(case)
    else:
        with st.expander("Ask another question", expanded=bool(state.value_of(state.ASKING))):
            question_fields(case)


def last_asked() -> str | None:
    """The corpus of the newest question in the library, so that a new session begins where the last one ended."""
    rows = workbench().cases.rows(Query(sort="created"))
    return next((row.corpus for row in rows if row.origin == "generated" and row.id not in EXAMPLES), None)


def question_fields(case: Case | None) -> None:
    """The fields of a question; not a form, which would lose on another page what was typed and not yet asked."""
    first = last_asked() if case is None or case.id == FIRST_CASE else case.corpus
    sizes = {corpus.name: corpus.documents for corpus in list_corpora()}
    corpora = sorted(sizes, key=lambda name: name != first)
    if not corpora:
        st.info("There are no documents yet. Add some on the Corpora page.")
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        corpus = st.selectbox("Corpus", corpora, key="ask_corpus", persist_state="session", width=420)
        documents = documents_to_search(corpus, sizes[corpus])
        questions_to_try(corpus)
        draw_models_line()
    if documents:
        note(f"Only these documents are searched: {in_short(documents)}")
    question = st.text_area(
        "Question",
        key="question",
        height=72,
        placeholder="What do you want to know about these documents?",
        persist_state="session",
    )
    if run is not None and run.ended:
        say_problem(run, "Stopped. The case keeps the finished steps." if run.case is not None else "")
    middle, writer, right = st.columns([4, 4, 2], vertical_alignment="bottom")
    method = middle.selectbox(
        "Method", list(METHOD_NAMES), format_func=METHOD_NAMES.get, key="ask_method", persist_state="session"
    )
    model = writer.selectbox(
        "Written by",
        writer_options("auto", "reader"),
        key="ask_model",
        format_func=model_title,
        accept_new_options=True,
        persist_state="session",
        help="auto: the default writer of Settings, which quotes the documents unless you chose a model. Or name a "
        "model: embedded, an installed one, a Hugging Face id or folder, a .gguf file, openai:MODEL@BASE_URL.",
    )
    # The field sends its text on this key, then the button is pressed.
    if right.button("Ask", type="primary", width="stretch", shortcut="Ctrl+Enter"):
        begin(question, corpus, documents, method, model or "auto")
        st.rerun()
    settings_panel("retrieval", "reader", "decoding", "prompting", "selection", paper="attr-rag")


def documents_to_search(corpus: str, size: int) -> list[str]:
    """Offer to search some of the corpus's `size` documents only; the chosen ones, none for all."""
    if size < 2:
        return []
    key = f"documents_{corpus}"
    chosen: list[str] = state.value_of(key) or []
    fold = st.popover("Choose documents", key=f"open_{key}", on_change="rerun")
    if not fold.open:
        return chosen
    snapshot = snapshot_of(corpus) if size <= MOST_NAMED else None
    titles = {document: title for document, title, _ in snapshot.listing} if snapshot else {}
    return fold.multiselect(
        "Documents to search",
        list(dict.fromkeys([*titles, *chosen])),
        key=key,
        format_func=lambda name: visible(f"{titles[name]} ({name})" if titles.get(name, name) != name else name),
        placeholder=f"All {size:,}",
        accept_new_options=True,
        persist_state="session",
        help="Choose some, or type a name with * for any part of it: interview-*",
    )


def in_short(names: Sequence[str]) -> str:
    """The first few names, and how many others there are."""
    others = len(names) - FEW_NAMED
    return ", ".join([*names[:FEW_NAMED], *([f"{others:,} others"] if others > 0 else [])])


def questions_to_try(corpus: str) -> None:
    """Offer the questions that come with a sample corpus."""
    questions = next((sample.questions for sample in SAMPLES if sample.name == corpus), ())
    if not questions:
        return
    with st.popover("Questions to try", key=TRIES, on_change="rerun"):  # which keeps track of whether it is open
        for number, text in enumerate(questions):
            st.button(text, key=f"try_{number}", type="tertiary", on_click=try_question, args=(text,))


def try_question(text: str) -> None:
    """Fill the field with a question, close the list, and drop what went wrong with the last one."""
    state.set_value("question", text)
    state.set_value(TRIES, False)
    last = state.run_of(run_name())
    if last is not None and last.ended:
        forget()
        # Where the error held the form open above a case, it stays open.
        state.set_value(state.ASKING, state.open_case_id() not in (None, FIRST_CASE))


doors("ask")
heading(
    "Ask your documents",
    "The answer cites its passages. Groundwork saves every step as a case that you can inspect and review.",
    "quoting-reader",
    "retrieval",
    "attr-rag",
)
run = state.run_of(run_name(), over=True)  # it may have ended while the page was loaded anew
running = run is not None and not run.ended
if asked := state.asked():
    state.keep_asked(asked, running=running)
    if not running:
        finish(asked, run)
case = open_case()
ask_form(case)
if running:
    watch_run(run)
elif case is not None:
    st.divider()
    if case.corpus:  # the form above may have another one chosen
        only = f", documents {in_short(case.searched)}" if case.searched else ""
        note(f"{'Audited with' if case.origin == 'imported' else 'Asked of'} the corpus “{case.corpus}”{only}")
    verdict = case_head(case)
    if doubt := doubted(case, chosen_settings().retrieval):
        not_in_documents(case, doubt)
        would_have_said(case)
    views = {} if verdict is None else {"Sentences and evidence": lambda: checked_answer(case, verdict)}
    views["Passages given to the writer"] = lambda: given_passages(case)
    if case.hits:
        views["Ranking"] = lambda: ranking(case, key=f"ranked_{case.id}")
    # The first of them is open, anew where a check has added it: what a person asked for is what they see.
    opened = st.tabs(list(views), key=f"views_{case.id}_{len(views)}")
    for tab, draw in zip(opened, views.values(), strict=True):
        with tab:
            draw()
    draw_steps((), case.steps)
    provenance(case)
