"""Attribution: what each passage did to the answer, by leaving it out, by gradients, and how far to trust that."""

import streamlit as st

from components import state
from components.answer import answer_view
from components.attr_rag import attr_rag_view
from components.attribution import attribution_table, floors_line
from components.cache import workbench, workers
from components.faithfulness import faithfulness_view
from components.frame import open_case
from components.heading import heading
from components.html import escape, plain, show, tag
from components.runs import start
from components.token_map import token_map
from components.used_supports import used_supports_view
from engine.attribute.attr_rag import AttrRag
from engine.attribute.on_case import FaithfulnessReport, TokenMap
from engine.attribute.used_supports import UsedSupports
from engine.types import Analysis, Attribution, Case


def ask_for(case: Case, method: str, label: str, cost: str, model: str) -> None:
    """A button with its cost that starts the analysis; while it runs, progress and cancel."""
    name = f"{method}:{case.id}"
    run = state.run_of(name)
    if run is not None and run.running:
        watch_analysis(name)
        return
    left, right = st.columns([1, 4], vertical_alignment="center")
    if left.button(label, key=f"start_{name}", type="primary", width="stretch"):
        state.keep_run(
            name, start(workers(), lambda r: workbench().attribute(case.id, method, model, r.watch), label=label)
        )
        st.rerun()
    right.caption(cost)
    if run is not None and run.problem:
        (st.info if run.was_cancelled else st.error)(plain(run.problem))


@st.fragment(run_every=0.8)
def watch_analysis(name: str) -> None:
    """Poll one running analysis."""
    run = state.run_of(name)
    if run is None or not run.running:
        st.rerun()
    share = min(1.0, run.done / run.total) if run.total else 0.0
    text = f"{run.label}: {run.stage or 'loading the model'}"
    st.progress(share, text=f"{text} {run.done} of {run.total}" if run.total else text)
    if st.button("Cancel", key=f"cancel_{name}", disabled=run.cancelling):
        run.stop()
        st.rerun(scope="fragment")


def latest(case: Case, kind: str) -> Analysis | None:
    """The analysis of that kind that was added last."""
    return next((analysis for analysis in reversed(case.analyses) if analysis.kind == kind), None)


def banners(notes: tuple[str, ...]) -> None:
    """What has to stand above a score."""
    for note in notes:
        if note.startswith("Written by "):
            show(tag("p", escape(note), class_="gw-banner"))


def occlusion_tab(case: Case, model: str) -> None:
    """Each source left out: how much less likely is this answer without it."""
    rows = 2 * len(case.passages) + 2 + 5 + 3
    ask_for(case, "occlusion", "Leave each passage out", f"about {rows} scored rows: no text is generated", model)
    found = latest(case, "occlusion")
    if found is not None:
        attribution = Attribution.from_dict(found.result)
        banners(attribution.notes)
        attribution_table(attribution, case)
        st.caption(plain(floors_line(attribution)))
        alone = attribution.details.get("alone")
        if alone:
            with st.expander("Each passage alone: two copies of one fact hide each other when only one is left out"):
                attribution_table(
                    Attribution.from_dict({**attribution.to_dict(), "scores": alone, "notes": [], "details": {}}), case
                )
    selection = latest(case, "attr-rag")
    if selection is not None:
        st.subheader("What would the writer say instead: occlusion by regeneration, and the selection")
        attr_rag_view(AttrRag.from_dict(selection.result))
    else:
        st.caption("Ask with the method Attr-RAG to see what the writer would say without each chunk set.")


def tokens_tab(case: Case, model: str) -> None:
    """Every passage as a heatmap of input x gradient."""
    ask_for(case, "token map", "Map the tokens", "one forward pass, one backward pass a token of the answer", model)
    found = latest(case, "token map")
    if found is None:
        return
    result = TokenMap.from_dict(found.result)
    banners(result.notes)
    token_map(result, case, key=f"token_map_{case.id}")
    for note in result.notes:
        if not note.startswith("Written by "):
            st.caption(plain(note))
    if result.argmax_differs:
        st.caption(
            f"At {len(result.argmax_differs)} tokens (dotted) {plain(result.model)} would itself have chosen another"
            " one; the token of the answer is explained all the same."
        )
    cost = f"{result.forwards} forward and {result.backwards} backward passes, {result.seconds:.1f} s"
    st.caption(f"Input x gradient of the {result.target.replace('_', '-')} by {plain(result.model)}. {cost}.")


def faithfulness_tab(case: Case, model: str) -> None:
    """Do the rankings find what matters."""
    ask_for(case, "faithfulness", "Delete and measure", "about 500 scored rows; half a minute on two cores", model)
    found = latest(case, "faithfulness")
    if found is not None:
        report = FaithfulnessReport.from_dict(found.result)
        banners(report.notes)
        faithfulness_view(report, key=f"faithfulness_{case.id}")


def used_tab(case: Case, model: str) -> None:
    """What the model used beside what the passage supports."""
    ask_for(
        case, "used x supports", "Compare use and support", "occlusion, and one verdict a sentence and passage", model
    )
    found = latest(case, "used x supports")
    if found is not None:
        result = UsedSupports.from_dict(found.result)
        banners(result.notes)
        used_supports_view(result, case)


heading(
    "Attribution",
    "What did each passage do to this answer, and how far can that be trusted?",
    "occlusion",
    "input-x-gradient",
    "faithfulness",
    "used-x-supports",
    "occlusion-by-regeneration",
    "attr-rag",
    "integrated-gradients",
    "attention",
)
case = open_case()
if case is not None:
    show(tag("h2", escape(case.question), class_="gw-question"))
    answer_view(case.answer)
    scorer = st.text_input(
        "Scored by",
        "embedded",
        key="scorer",
        persist_state="session",
        help="A model that gives probabilities and gradients: embedded, a Hugging Face id or a folder.",
    )
    tabs = st.tabs(["Occlusion", "Tokens", "Faithfulness", "Used x supports"])
    for tab, draw in zip(tabs, (occlusion_tab, tokens_tab, faithfulness_tab, used_tab), strict=True):
        with tab:
            draw(case, scorer)
