"""Attribution: what each passage did to the answer, by leaving it out, by gradients, and how far to trust that."""

from collections.abc import Callable
from functools import partial

import streamlit as st

from components import state
from components.analysis_run import as_reported, ask_for, banners, begin, is_banner, is_by, latest, seconds_said
from components.answer import answer_view
from components.attribution_tabs import agreement_view, attr_rag_view, contrast_tab, faithfulness_view, removal_view
from components.blocks import draw
from components.cache import workbench
from components.case_head import case_head
from components.export_figure import export_button
from components.frame import open_case
from components.heading import heading
from components.html import plain
from components.model_choice import draw_models_line
from components.occlusion import by_another, occlusion_view
from components.settings_panel import chosen_settings, settings_panel
from components.token_map import flags_view, map_agreement, map_check, map_seconds, token_map
from components.used_supports import used_supports_view
from engine.analyses.attribution import Spans
from engine.analyses.faithfulness import FaithfulnessReport, RankingCheck, Rankings, rows_ahead
from engine.analyses.kind import ATTR_RAG, FAITHFULNESS, OCCLUSION, SENTENCES, SETS, TOKEN_MAP, USED_SUPPORTS, ByModel
from engine.analyses.registry import runnable
from engine.analyses.token_map import MapRows, TokenMap, map_of, methods_run
from engine.analyses.word_overlap import CountedSpans, overlap_blocks, overlap_of
from engine.cases.review import with_labels
from engine.core.text import counted
from engine.core.values import Attribution, Case
from engine.methods import registry
from engine.methods.attr_rag import AttrRag
from engine.methods.contrast import METHOD as CONTRAST
from engine.methods.used_supports import UsedSupports
from engine.methods.word_overlap import METHOD as WORD_OVERLAP
from engine.models.defaults import default_for
from engine.models.registry import source_of
from engine.report.drawings import drawn_map

# Analyses with a place of their own on this page.
TABBED = (OCCLUSION, SETS, SENTENCES, TOKEN_MAP, FAITHFULNESS, USED_SUPPORTS, ATTR_RAG, CONTRAST, "input x gradient")


def occlusion_tab(case: Case, model: str) -> None:
    """Each source left out: how much less likely is this answer; and what the writer would say instead."""
    occlusion_view(case, model, chosen_settings())
    overlap_view(case)
    selection = latest(case, "attr-rag")
    if selection is None:
        st.caption("To see what the writer would say without each chunk set, ask with the method Attr-RAG.")
        return
    st.subheader("What would the writer say instead: occlusion by regeneration, and the selection")
    found = AttrRag.from_dict(selection.result)
    if found.drops is None:
        ask_for(case, ATTR_RAG, "Score the drop of each set", model)
    attr_rag_view(found, case)


@st.fragment
def overlap_view(case: Case) -> None:
    """The answer's words in each passage, counted when the fold is opened; no model is asked."""
    title = "Word overlap: which passages have the words of each sentence, counted without a model"
    fold = st.expander(title, key="word_overlap", on_change="rerun")
    if fold.open:
        with fold:
            draw(*overlap_blocks(case, overlap_of(case)))
            if latest(case, WORD_OVERLAP) is None:
                ask_for(case, WORD_OVERLAP, "Add to the report", options=CountedSpans())
            else:
                st.caption("The report of this case has these counts.")


def tokens_tab(case: Case, model: str) -> None:
    """Every passage as a heatmap of its words, the map's reliability, and the flags based on it."""
    method = _choose_map(case, model)
    whole = MapRows(model=model, method=method)
    result = map_of(case, method, model)
    more = map_seconds(case, whole)
    lead = "How much does the answer depend on each word of the passages?"
    ask_for(case, TOKEN_MAP, "Map the tokens", model, more, options=whole, lead=lead, done=result is not None)
    if result is None:
        answer_view(case.answer)
        return
    banners(result.notes)
    check = map_check(case, result, model)
    beside = methods_run(case, model).get(OCCLUSION)
    draw_map(case, result, beside, check, f"{case.id}, {method}")
    if beside is not None:
        map_agreement(case, result, beside)
    sentence = state.selected_sentence(len(case.answer.sentences))
    export_button(lambda: drawn_map(case, result, sentence), key=f"map_{case.id}")
    for note in result.notes:
        if not is_banner(note):
            st.caption(plain(note))
    if result.argmax_differs:
        st.caption(
            f"{plain(result.model)} would have chosen another token in {counted(len(result.argmax_differs), 'place')}"
            f" (wavy line). The map explains the token in the answer."
        )
    cost = f"{result.forwards} forward and {result.backwards} backward passes, {result.seconds:.1f} s"
    st.caption(f"{method.capitalize()} of the {result.target.replace('_', '-')} by {plain(result.model)}. {cost}.")
    st.subheader("Passages high in this ranking")
    flags_view(result, case, chosen_settings(), model)


def draw_map(case: Case, result: TokenMap, beside: Attribution | None, check: RankingCheck | None, name: str) -> None:
    """The map; a click on a row that is not there begins its computation."""
    sentence = state.selected_sentence(len(case.answer.sentences))
    row = f"row of {name}"
    selected, asked_for = state.value_of(row) or (None, {})
    # Another sentence was selected since.
    chosen = asked_for if asked_for and selected == sentence else {"sentence": sentence - 1} if sentence else {}

    def ask(asked: MapRows) -> None:
        state.set_value(row, (sentence, asked.target()))
        begin(case, TOKEN_MAP, asked, f"{TOKEN_MAP}:{case.id}", "Explain the row")

    token_map(result, case, key=f"token_map_{case.id}", chosen=chosen, beside=beside, check=check, ask=ask)


def _choose_map(case: Case, model: str) -> str:
    """The method whose map is drawn; opens on the one that was mapped last."""
    names = [method.name for method in registry.methods() if method.explain is not None]
    stored = latest(case, TOKEN_MAP, model)
    first = TokenMap.from_dict(stored.result).method if stored else registry.RECOMMENDED
    about = {method.name: method.about for method in registry.methods()}
    chosen = st.selectbox(
        "Method",
        names,
        index=names.index(first) if first in names else 0,
        format_func=lambda name: f"{name}: {about[name]}",
        key=f"map_method_{case.id}",
    )
    return chosen or names[0]


def faithfulness_tab(case: Case, model: str) -> None:
    """Do the rankings find what matters, and do methods agree."""
    rows = rows_ahead(case, Rankings(model=model), chosen_settings())
    found = latest(case, FAITHFULNESS, model)
    more = seconds_said(case, model, rows / 2, FAITHFULNESS)
    lead = "Do the scores find the words that the answer needs? Delete words in their order and score the answer again."
    ask_for(case, FAITHFULNESS, "Delete and measure", model, more, lead=lead, done=is_by(found, model))
    if found is not None:
        report = FaithfulnessReport.from_dict(found.result)
        by_another(found, model)
        banners(report.notes)
        faithfulness_view(report, case, key=f"faithfulness_{case.id}")
    st.subheader("Do the methods agree?")
    run = methods_run(case, model)
    agreement_view(run, case, key=f"agreement_{case.id}")
    own = {analysis.kind for analysis in case.analyses}
    further = {
        name: kind
        for name, kind in runnable().items()
        if kind.options in (ByModel, Spans) and name not in TABBED and (name in own or name not in run)
    }
    last = next((analysis.kind for analysis in reversed(case.analyses) if analysis.kind in further), None)
    chosen = st.selectbox(
        "Another method",
        further,
        index=list(further).index(last) if last else 0,
        format_func=lambda name: f"{further[name].title}{' (run)' if name in own else ''}",
        key=f"further_{case.id}_{last}",  # a method that just ran is the one drawn
    )
    if chosen is not None:
        done = is_by(latest(case, chosen, model), model)
        ask_for(case, chosen, "Run it", model, done=done, view=partial(further_result, kind=chosen, model=model))


def further_result(case: Case, kind: str, model: str) -> None:
    """The result of another method, if it has one."""
    found = latest(case, kind, model)
    if found is not None:
        by_another(found, model)
        as_reported(case, found)


def used_tab(case: Case, model: str) -> None:
    """The model's use of each passage next to the passage's support."""
    found = latest(case, USED_SUPPORTS, model)
    lead = "Does each sentence depend on each passage, and does the passage support it?"
    ask_for(case, USED_SUPPORTS, "Compare use and support", model, lead=lead, done=is_by(found, model))
    if found is not None:
        result = UsedSupports.from_dict(found.result)
        by_another(found, model)
        banners(result.notes)
        used_supports_view(result, case, key="used")


TABS: dict[str, Callable[[Case, str], None]] = {
    "Occlusion": occlusion_tab,
    "Tokens": tokens_tab,
    "Faithfulness": faithfulness_tab,
    "Used x supports": used_tab,
    "Contrast": contrast_tab,
    "Without passages": removal_view,
}


@st.fragment
def tabs(case: Case, scorer: str) -> None:
    """The open one of the tabs; a click in it draws nothing else anew."""
    opened = st.tabs(list(TABS), key="attribution_tab", on_change="rerun", bind="query-params")
    for tab, view in zip(opened, TABS.values(), strict=True):
        if tab.open:
            with tab:
                view(case, scorer)


heading(
    "Attribution",
    "How did each passage affect this answer, and how reliable are these figures?",
    "occlusion",
    "input-x-gradient",
    "faithfulness",
    "used-x-supports",
    "occlusion-by-regeneration",
    "attr-rag",
    "integrated-gradients",
    "attention",
    "occlusion-both-ways",
    "word-overlap",
    "contrast",
    "hierarchy",
    "common-ground",
)
stored = open_case()
if stored is not None and not stored.passages and not stored.answer.text.strip():
    st.info("This problem has no answer yet. Work it out on Steps.")
elif stored is not None and not stored.passages:
    st.info(
        "This answer came without passages, so there is nothing to attribute it to. Audit it again with its sources"
        " pasted, or open another case."
    )
elif stored is not None:
    case = with_labels(stored, workbench().cases.review(stored.id))
    case_head(case)
    scorer = state.begin_with("scorer", default_for("scores").model)
    left, right = st.container(key="folds").columns(2)
    ran = any(analysis.kind in TABBED for analysis in case.analyses)
    with left.expander(f"Scored by {plain(scorer)}", expanded=not ran, key="scorer_fold"):
        scorer = st.text_input(
            "Scored by",
            scorer,
            key="scorer",
            persist_state="session",
            help="A model that gives probabilities and gradients: embedded, a Hugging Face id or folder, a .gguf file.",
        )
        draw_models_line(scorer.strip())
    with right:
        settings_panel("occlusion", "gradient", "faithfulness", "prompting", paper="refinement")
    tabs(case, source_of(scorer.strip()))
