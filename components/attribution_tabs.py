"""The tabs of Attribution: Attr-RAG's selection, faithfulness and the agreement of methods, contrast, live removal."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import plotly.graph_objects as go
import streamlit as st

from components import state
from components.analysis_run import as_reported, ask_for, banners, frozen, is_open
from components.answer import answer_markup, answer_view
from components.blocks import draw
from components.cache import questions
from components.diff import word_diff
from components.export_figure import export_button
from components.figures import BUTTONS, GREY
from components.html import chart_text, escape, note, plain, show, tag, text_after, visible
from components.occlusion import floors_line
from components.polling import progress, result_of, say_problem
from components.settings_panel import chosen_settings, chosen_workbench
from components.style import NEGATIVE, POSITIVE, component
from engine.analyses.attr_rag import selection_blocks, set_name, why_table
from engine.analyses.attribution import floors, under_floor
from engine.analyses.contrast import KIND as CONTRAST, ContrastOptions, in_words, proposed
from engine.analyses.faithfulness import FaithfulnessReport, agreement_table, diagnostic_facts
from engine.analyses.removal import Removal
from engine.answer.citations import without_markers
from engine.cases.blocks import name_of
from engine.cases.words import word_diff as words_of
from engine.core.errors import InputError, RecordError
from engine.core.text import Span
from engine.core.values import Analysis, Attribution, Case
from engine.methods.attr_rag import AttrRag
from engine.methods.contrast import Contrast, checked_texts
from engine.models.choices import READER
from engine.report.drawings import drawn_contrast, drawn_faithfulness

CONTRAST_LEAD = "Why these words and not others? Each passage is left out, to see which of the two it makes likelier."
OTHER_WORDS = "Other words"
FIELDS = (("Words of the answer", "as the answer has them"), ("Compared with", "other words in their place"))
BAR_HEIGHT = 34  # pixels of a bar with its gap
SENTENCE_CHARACTERS = 80  # of a sentence in the picker
TITLE_CHARACTERS = 48  # of a passage's title next to its bar
PASSAGE_CHARACTERS = 70  # of a passage next to its box


def attr_rag_view(found: AttrRag, case: Case) -> None:
    """Draw the selection of one run; the sets that hold the selected passage of the case are marked."""
    draw(*selection_blocks(case, found))
    if found.drops is not None:
        banners(found.drops.notes)
        st.caption(plain(f"Drop: how much less likely the answer becomes without one set. {floors_line(found.drops)}"))
    if found.selection.reasons:
        with st.expander("Why each set was kept or dropped"):
            draw(why_table(case, found))
    st.subheader("Before and after")
    sets = len(found.sets)
    before, after = found.regeneration.full.text, found.answer.text
    whole, rest = (
        f"the answer from {'the one set' if sets == 1 else f'all {sets} sets'}",
        f"the answer from the {len(found.selection.chosen)} kept",
    )
    if before == after:
        answer_view(found.answer)
        st.caption(f"Identical: {whole} and {rest}.")
    else:
        word_diff(words_of(before, after), left=whole, right=rest)
    if found.filled:
        _added_passages(found)
    with st.expander("Answers written without one set"):
        _compare_without_one(found, whole)


def _added_passages(found: AttrRag) -> None:
    """Passages that gap filling added: they stand between selected ones, whether or not retrieval found them."""
    items = "".join(
        tag("li", escape(f"{p.label}, passage {p.ordinal + 1}: ") + tag("q", escape(p.text))) for p in found.filled
    )
    show(tag("p", "Added to fill gaps between selected passages:", class_="gw-note") + tag("ul", items))


def _compare_without_one(found: AttrRag, whole: str) -> None:
    """The answer without each set against the answer from all of them."""
    written = range(len(found.regeneration.ablated))
    names = [visible(set_name(chunk_set)) for chunk_set in found.sets]
    chosen = st.selectbox("Without", written, format_func=names.__getitem__, key="attr_rag_without")
    if chosen is None:
        return
    text = found.regeneration.ablated[chosen].text
    if text == found.regeneration.full.text:
        st.caption("The answer is identical.")
        return
    word_diff(words_of(found.regeneration.full.text, text), left=whole, right="the answer without the set")


def faithfulness_view(report: FaithfulnessReport, case: Case, *, key: str) -> None:
    """Draw the report; every curve is named, every number has its comparison."""
    columns = st.columns(len(report.curves) + 1)
    for column, curve in zip(columns, report.curves, strict=False):
        beats = curve.abpc - report.random.mean
        column.metric(f"ABPC, {curve.ranking}", f"{curve.abpc:+z.3f}", f"{beats:+z.3f} against random", border=True)
    spread = f"{report.random.low:+z.3f} to {report.random.high:+z.3f} over {report.random.n} rankings"
    columns[-1].metric(
        "ABPC, random", f"{report.random.mean:+z.3f}", spread, delta_color="off", delta_arrow="off", border=True
    )
    st.caption(
        "ABPC = area under LeRF minus area under MoRF, in [-1, 1]. With a good ranking, the answer becomes "
        "unlikely soon after the most relevant tokens are removed. One case gives a point, not an interval."
    )
    drawing = drawn_faithfulness(case, report)
    component("plots")(data={"plots": [plot.to_dict() for plot in drawing.parts]}, key=f"{key}_plots")
    export_button(lambda: drawing, key=key)
    with st.expander("Diagnostics of the relevance map"):
        draw(diagnostic_facts(report))
        st.caption(f"{report.forwards} forward passes, {report.seconds:.1f} s, scored by {plain(report.model)}.")


def agreement_view(methods: Mapping[str, Attribution], case: Case, *, key: str) -> None:
    """The pairs of methods as a matrix for the whole answer or one sentence."""
    if len(methods) < 2:
        st.caption("Run at least two methods with this scorer to compare them.")
        return
    spans = next(iter(methods.values())).spans
    shared = [span for span in spans if all(span in found.spans for found in methods.values())]
    chosen = st.selectbox("For", shared, format_func=lambda span: _span_name(spans.index(span), span, case), key=key)
    draw(agreement_table(methods, chosen or spans[0]))


def _span_name(index: int, span: Span, case: Case) -> str:
    text = " ".join(without_markers(case.answer.text[slice(*span)]).split())
    return f"{index}. {text_after(text, SENTENCE_CHARACTERS)}" if index else "the whole answer"


def contrast_tab(case: Case, model: str) -> None:
    """The two texts, by default those of an edit that the check proposes, and the result of each pair."""
    if not is_open(case):
        frozen(case, "contrast", "This case is signed off. Make a new version of it to compare other words.")
        _draw_contrasts(case)
        return
    pairs = {f"{written} → {instead}": (written, instead) for written, instead in proposed(case)}
    chosen = OTHER_WORDS
    if pairs:
        names = [*pairs, OTHER_WORDS]
        picked = st.pills("Edits of the check", names, default=names[0], format_func=plain, key=f"contrast_{case.id}")
        chosen = picked or OTHER_WORDS
    written, instead = (
        place.text_input(
            label, value, key=f"{label}_{case.id}_{chosen}", persist_state="session", placeholder=empty
        ).strip()
        for place, (label, empty), value in zip(st.columns(2), FIELDS, pairs.get(chosen, ("", "")), strict=True)
    )
    run = state.run_of(f"{CONTRAST.name}:{case.id}")
    view = partial(_draw_contrasts, written=written, instead=instead)
    if (run is not None and not run.ended) or _can_compare(case, written, instead):
        asked = ContrastOptions(model=model, written=written, instead=instead)
        own = {"written": written, "instead": instead}
        done = any(one.stamp.model == model and one.stamp.settings.get("options") == own for one in _contrasts_of(case))
        ask_for(case, CONTRAST.name, "Compare", model, options=asked, lead=CONTRAST_LEAD, done=done, view=view)
    else:
        st.button("Compare", type="primary", disabled=True, help="Enter words of the answer, and other words.")
        view(case)


def _contrasts_of(case: Case, written: str = "", instead: str = "") -> list[Analysis]:
    """The contrasts of a case, those of the two texts first, then the newest."""
    own = {"written": written, "instead": instead}
    newest = [one for one in reversed(case.analyses) if one.kind == CONTRAST.name]
    return sorted(newest, key=lambda one: one.stamp.settings.get("options") != own)


def _can_compare(case: Case, written: str, instead: str) -> bool:
    """Whether both texts are there and differ; says what is missing."""
    if not written or not instead:
        st.caption(CONTRAST_LEAD)
        return False
    try:
        checked_texts(case.answer.text, written, instead)
    except InputError as error:
        st.error(plain(str(error)))
        return False
    return True


def _draw_contrasts(case: Case, written: str = "", instead: str = "") -> None:
    """Each contrast of the case, the first one open."""
    for place, analysis in enumerate(_contrasts_of(case, written, instead)):
        try:
            found = CONTRAST.read(analysis)
        except RecordError:
            as_reported(case, analysis)
            continue
        with st.expander(plain(f"{found.written} → {found.instead}"), expanded=not place):
            banners(found.effect.notes)
            st.markdown(plain(in_words(found)))
            st.plotly_chart(_contrast_bars(case, found), key=f"bars_{analysis.id}", config=BUTTONS)
            export_button(partial(drawn_contrast, case, found), key=analysis.id)
            with st.expander("All figures"):
                as_reported(case, analysis)


def _contrast_bars(case: Case, found: Contrast) -> go.Figure:
    """A bar per passage, to the right for what was written; grey where an unrelated passage does as much."""
    effect, under = found.effect, floors(found.effect, 0)
    scores = effect.scores[0]
    order = sorted(range(len(scores)), key=lambda j: scores[j])
    colours = [GREY if under_floor(scores[j], *under) else POSITIVE if scores[j] > 0 else NEGATIVE for j in order]
    names = ["; ".join(name_of(case, number) for number in effect.sources[j]) for j in order]
    bars = go.Bar(
        x=[scores[j] for j in order],
        y=[chart_text(text_after(name, TITLE_CHARACTERS)) for name in names],
        orientation="h",
        marker={"color": colours, "opacity": 0.7},
        hovertemplate="%{y}: %{x:+.2f} nats<extra></extra>",
    )
    axis = f"← for “{found.instead}”     nats     for “{found.written}” →"
    return go.Figure(bars).update_layout(
        height=90 + BAR_HEIGHT * len(order),
        margin={"l": 10, "r": 10, "t": 10, "b": 10},
        xaxis={"title": chart_text(axis), "zeroline": True},
        yaxis={"automargin": True},
    )


def removal_view(case: Case, model: str) -> None:
    """The passages to untick, next to the answer without the unticked ones."""
    left, right = st.columns([2, 3], gap="large")
    with left:
        note("Untick the passages to leave out.")
        gone = tuple(n for n in range(1, len(case.passages) + 1) if not _ticked(case, n))
    name = f"without:{case.id}"
    with right:
        _write_without(case, gone, model, name)
        found = result_of(name)
        run = state.run_of(name)
        if isinstance(found, Removal) and found.left_out == gone:
            draw_removal(case, found)
        elif run is None or run.ended:
            show(answer_markup(case.answer))


def _ticked(case: Case, number: int) -> bool:
    passage = case.passages[number - 1]
    words = " ".join(visible(passage.text).split())
    return st.checkbox(
        plain(f"{number} · {text_after(words, PASSAGE_CHARACTERS)}"),
        value=True,
        key=f"keep_{case.id}_{number}",
        help=plain(passage.label),
    )


def _write_without(case: Case, gone: tuple[int, ...], model: str, name: str) -> None:
    """Start a run where one is asked for; a quoted answer costs milliseconds and is written again at once."""
    run = state.run_of(name)
    if run is not None and not run.ended:
        progress(run, name, "Without the passages")
        return
    asked = str((gone, model.strip(), chosen_settings()))
    fresh = run is None or run.label != asked
    possible = 0 < len(gone) < len(case.passages)
    at_once = case.stamp.model == READER and possible and fresh
    if not at_once:
        label = "Write without them" if len(gone) != 1 else f"Write without passage {gone[0]}"
        ready = possible and (fresh or run.problem is not None)
        if not st.button(label, key=f"start_{name}", type="primary", disabled=not ready):
            if run is not None and not fresh:
                say_problem(run)
            return
    bench = chosen_workbench()
    work = lambda run: bench.without(case, gone, model.strip(), run.watch)  # noqa: E731
    state.keep_run(name, questions().start(work, label=asked))
    st.rerun()


def draw_removal(case: Case, found: Removal) -> None:
    """Both answers as one text, and what the passages add to the old one."""
    named = ", ".join(map(str, found.left_out))
    if found.answer.refused:
        st.info(f"Without {named}, {plain(found.writer)} says that the passages do not answer the question.")
    elif found.answer.text == case.answer.text:
        st.success(f"The answer without {named} is identical.")
        show(answer_markup(found.answer))
    else:
        word_diff(words_of(case.answer.text, found.answer.text), left="the answer", right=f"the answer without {named}")
    st.caption(plain(f"{_drop_line(found.drop) if found.drop else found.why} Written by {found.writer}; not saved."))


def _drop_line(drop: Attribution) -> str:
    """The drop of the whole answer in words."""
    nats, tokens = drop.scores[0][0], drop.details.content_tokens[0]
    each = nats / tokens if tokens else 0.0
    return f"Without them the original answer changes by {-nats:+z,.1f} nats ({-each:+z.2f} per token; {drop.model})."
