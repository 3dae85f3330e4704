"""The parts of the Refinement page: its controls, a run's progress, signals on scales, passage labels, the judge."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import starmap

import msgspec
import streamlit as st

from components import state
from components.advice import judgement_view
from components.analysis_run import FROZEN, begin as start_analysis, is_open
from components.answer import with_pills
from components.html import banner, escape, note, plain, show, tag, visible
from components.polling import cancel_button, redraw_while_running, wait_for
from components.runs import Run
from components.settings_panel import settings_panel
from components.variants import variant_cards
from engine.analyses.kind import REFINEMENT
from engine.analyses.refinement import RefinementOptions, analysis_id, reports_of
from engine.analyses.said import JUDGEMENT, PAIR, JudgeOptions
from engine.cases.blocks import cut
from engine.cases.review import MARKED, Review
from engine.core.settings import Settings
from engine.core.text import counted
from engine.core.values import Case
from engine.methods.judge import first_share, judge_warning
from engine.methods.refinement.conditions import VARIANTS
from engine.methods.refinement.run import RefinementReport
from engine.methods.refinement.values import Gate, OverlapThreshold, Signals, Word
from engine.models.choices import READER, Defaults
from engine.models.closed import listed
from engine.models.defaults import can_fill, default_for, default_generator
from engine.models.registry import writers
from engine.report.drawings import s2_ends

GATES = {"own": "Own rules", "always": "Always"}
BASELINES = {False: "Write A now", True: "The case's answer is A"}
PASSAGE_CHARACTERS = 600  # of a passage shown under its label
LABEL_WIDTH = 280  # pixels that the choice of a label takes

Mark = Callable[[int, str], None]
"""(passage number, a word of MARKED): what to do when a label changes."""


@dataclass(frozen=True)
class Chosen:
    """Who writes, who scores (empty: the writer), whether A is the case's answer, and the settings."""

    model: str
    scorer: str
    use_answer: bool
    settings: Settings


def begin(case: Case, names: tuple[str, ...], gate: Gate, chosen: Chosen) -> None:
    """Start the conditions in the background; each is saved with the case as it ends."""
    stored = reports_of(case).get(analysis_id(chosen.model, chosen.use_answer))
    scorer = chosen.scorer or (stored.refinement.scorer if stored else "")
    options = msgspec.structs.replace(options_for(names, gate, chosen), scorer=scorer)
    start_analysis(case, REFINEMENT, options, f"refine:{case.id}", settings=chosen.settings)


def options_for(names: tuple[str, ...], gate: Gate, chosen: Chosen) -> RefinementOptions:
    """The choices as options of the analysis."""
    return RefinementOptions(
        model=chosen.model, variants=names, gate=gate, scorer=chosen.scorer, use_answer=chosen.use_answer
    )


@redraw_while_running()
def watch_run(run: Run[Case], report_id: str, names: tuple[str, ...]) -> None:
    """The running conditions: what is finished, what is being written, cancel."""
    found = reports_of(run.case).get(report_id) if run.case else None
    done = [n for n in names if found and n in found.refinement.variants]
    st.progress(
        len(done) / len(names),
        text=f"{plain(run.stage or 'starting')}: {len(done)} of {counted(len(names), 'condition')}",
    )
    cancel_button(run, key="cancel_refinement")
    if run.text:
        st.caption("Being written")
        st.text(visible(run.text[-800:]))
    if found is not None and done:
        variant_cards(found, run.case.passages, done, diff=False)


def controls(case: Case) -> tuple[tuple[str, ...], Gate, Chosen]:
    """Choose conditions, models and triggers."""
    left, middle, right = st.columns([2, 2, 3])
    help_text = (
        f"Available: {', '.join(writers()) or 'none'}. Also a Hugging Face id or folder, a .gguf file, "
        "openai:MODEL@BASE_URL."
    )
    model = left.text_input("Written by", _first_writer(case), key=f"refine_model_{case.id}", help=help_text)
    scorer = middle.text_input(
        "Scored by",
        _first_scorer(case),
        key=f"refine_scorer_{case.id}",
        placeholder="the writer",
        help="Local model for S2 and the gradient triggers, if the writer cannot score.",
    )
    gate = right.segmented_control(
        "Second pass trigger",
        list(GATES),
        format_func=GATES.get,
        default=_last_gate(case),
        key=f"refine_gate_{case.id}",
        required=True,
        help="Own rules: a condition writes a second pass only where its own rule fires. Always: each writes one.",
    )
    left, right = st.container(key="folds").columns(2)
    more = left.expander("Conditions and baseline", expanded=not reports_of(case))
    names = more.pills(
        "Conditions",
        list(VARIANTS),
        selection_mode="multi",
        default=list(VARIANTS),
        format_func=lambda name: f"{name} · {VARIANTS[name].title}",
        key="refine_names",
    )
    given = bool(case.answer.text.strip())
    use_answer = more.segmented_control(
        "Baseline",
        [False, True] if given else [False],
        format_func=BASELINES.get,
        default=given and _begins_with_the_answer(case, model.strip()),
        required=True,
        key=f"refine_baseline_{case.id}",
        help="The other conditions are compared with A.",
    )
    with right:
        settings = settings_panel("refinement", "gradient", "decoding", "prompting", "occlusion", paper="refinement")
    chosen = Chosen(model.strip(), scorer.strip(), use_answer, settings)
    ordered = tuple(name for name in VARIANTS if name in {"A", *names})
    return ordered, gate, chosen


def _first_writer(case: Case) -> str:
    """The case's writer where it is a model that is here; else the default writer, unless only others have run."""
    default, ran = default_generator(), [report.refinement.stamp.model for report in reports_of(case).values()]
    own = case.stamp.model
    if case.origin == "generated" and own != READER and (own in ran or can_fill(own, "writes")):
        return own
    return default if default in ran or not ran else ran[-1]


def _first_scorer(case: Case) -> str:
    """The default scorer if the user chose one and nothing was scored by another; empty: the writer."""
    name = default_for("scores").model
    held = {report.refinement.scorer for report in reports_of(case).values()}
    return "" if name == Defaults().scores or held - {name} else name


def _last_gate(case: Case) -> Gate:
    """The gate of the case's last run: another one would set back what is written."""
    return next((report.refinement.gate for report in reversed(reports_of(case).values())), "own")


def _begins_with_the_answer(case: Case, model: str) -> bool:
    """Whether A is the case's own answer, as in the run that is there; without a run, where it was imported."""
    held = reports_of(case)
    own, fresh = (analysis_id(model, use_answer) in held for use_answer in (True, False))
    return not fresh and (own or case.origin == "imported")


def marked_words(text: str, words: Sequence[Word]) -> None:
    """A's text with its content words marked: found in a passage, or in none."""
    spans = ((word.start, word.end, word.found) for word in words)
    show(tag("div", "".join(starmap(_marked_piece, cut(text, spans))), class_="gw-answer"))


def _marked_piece(piece: str, found: bool | None) -> str:
    if found is None:
        return with_pills(piece)
    kind, title = ("gw-present", "in a passage") if found else ("gw-absent", "in no passage")
    return tag("span", escape(piece), class_=kind, title=title)


def signal_scales(signals: Signals, threshold: OverlapThreshold | None, history: Sequence[float] = ()) -> None:
    """S1, S2 and S3, each on its scale with the grounded end named; S3 with D's threshold and its distribution."""
    why = signals.missing
    tick = threshold.value if threshold else None
    scales = (
        signal_scale(
            "S1", "similarity of the answers with and without passages", signals.s1, (0, 1), "grounded", "", why
        ),
        signal_scale("S2", "gain from the passages, nats per token", signals.s2, s2_ends(signals), "", "grounded", why),
        signal_scale("S3", "content words found in a passage", signals.s3, (0, 1), "", "grounded", why, tick, history),
    )
    show(tag("div", "".join(scales), class_="gw-scales"))


def signal_scale(
    name: str,
    about: str,
    figure: float | None,
    ends: tuple[float, float],
    left: str,
    right: str,
    missing: Mapping[str, str],
    tick: float | None = None,
    dots: Sequence[float] = (),
) -> str:
    """One signal on its scale as HTML: a bar from 0 to its figure, a dot per earlier figure, a tick with its label."""
    title = tag("b", escape(f"{name} {figure:.2f}" if figure is not None else name)) + f" {escape(about)}"
    if figure is None:
        return tag(
            "div", title + tag("p", escape(missing.get(name, "Not computed yet.")), class_="gw-note"), class_="gw-scale"
        )
    start, end = sorted((_percent(0.0, ends), _percent(figure, ends)))
    bar = tag("span", class_="gw-fill", style=f"left:{start:.1f}%;width:{max(0.5, end - start):.1f}%")
    bar += "".join(tag("span", class_="gw-dot", style=f"left:{_percent(dot, ends):.1f}%") for dot in dots)
    if tick is not None:
        bar += tag("span", class_="gw-tick", style=f"left:{_percent(tick, ends):.1f}%", title=f"threshold {tick:.2f}")
    labels = tag("span", escape(f"{ends[0]:.3g} {left}".strip())) + tag(
        "span", escape(f"{ends[1]:.3g} {right}".strip())
    )
    if tick is not None:
        labels += tag(
            "span",
            escape(f"threshold {tick:.2f}"),
            class_="gw-under",
            style=f"left:clamp(3rem,{_percent(tick, ends):.1f}%,calc(100% - 3rem))",
        )
    label = f"{name} {figure:.2f} on a scale from {ends[0]:.3g} to {ends[1]:.3g}"
    drawn = tag("div", bar, class_="gw-bar", role="img", aria_label=label)
    return tag("div", title + drawn + tag("div", labels, class_="gw-ends"), class_="gw-scale")


def _percent(figure: float, ends: tuple[float, float]) -> float:
    return min(100.0, max(0.0, 100 * (figure - ends[0]) / (ends[1] - ends[0])))


def passage_labels(case: Case, review: Review, mark: Mark, *, key: str, disabled: bool = False) -> None:
    """One row per passage; `case` has the current labels, `review` their authors."""
    selected = state.selected_passage(len(case.passages))
    for number, passage in enumerate(case.passages, start=1):
        with st.container(horizontal=True, vertical_alignment="center"):
            by = review.labels.get(number)
            # Only a reviewer's label can be taken back, not one that came with the data.
            offered = [word for word in MARKED.values() if word != MARKED[None] or by or passage.relevant is None]
            words = [str(number), passage.label, "selected" if number == selected else ""]
            if by is not None:
                words.append(f"marked by {by.author}")
            elif passage.relevant is not None:
                words.append("labelled in the data")
            st.text(visible(" · ".join(filter(None, words))), width="stretch")
            # After the passage that it labels, where they are one below the other.
            with st.container(width=LABEL_WIDTH):
                _choose_label(number, MARKED[passage.relevant], offered, mark, f"{key}_{number}", disabled)
        note(passage.text if len(passage.text) <= PASSAGE_CHARACTERS else passage.text[:PASSAGE_CHARACTERS] + "…")


def _choose_label(number: int, label: str, offered: list[str], mark: Mark, key: str, disabled: bool) -> None:
    """The choice starts from what stands, so that a change made elsewhere shows; a change is written at once."""
    chosen = st.segmented_control(
        f"Passage {number}",
        offered,
        default=label,
        required=True,
        key=f"{key}_{label}_{disabled}",  # a choice that came too late is dropped
        disabled=disabled,
        label_visibility="collapsed",
    )
    if chosen != label:
        mark(number, chosen)


def judge_tab(case: Case, report: RefinementReport) -> None:
    """Two conditions before a judge that the user names, in both orders."""
    st.caption(
        "The judge does not know which condition wrote which answer. It judges grounding, not length, in both "
        "orders; a result counts only if the orders agree. A model that scores decides by likelihood (not "
        "calibrated); otherwise its reply is parsed."
    )
    written = [n for n, v in report.refinement.variants.items() if v.answer is not None]
    one, two, three = st.columns([1, 1, 2])
    first = one.selectbox("Compare", written, index=0, key="judge_first")
    others = [n for n in written if n != first]
    second = two.selectbox("with", others, key="judge_second") if others else None
    name = three.text_input(
        "Judge",
        default_for("judges").model,
        key="judge_model",
        placeholder="openai:MODEL@BASE_URL, an id, a folder, a .gguf file",
    )
    warning = judge_warning(name.strip(), (report.refinement.stamp.model,)) if name.strip() else ""
    if warning:
        banner(warning)
    run_id = f"judge:{case.id}"
    open_ = is_open(case)
    if not open_:
        st.caption(FROZEN)
    if st.button("Ask in both orders", disabled=not (name.strip() and second and open_)):
        start_analysis(case, JUDGEMENT, JudgeOptions(judge=name.strip(), x=first, y=second or ""), run_id)
        st.rerun()
    wait_for(run_id, "The judge reads the pair in both orders")
    pairs = PAIR.of(case)
    bias = first_share(judged.judgement.orders for judged in pairs)
    if len(pairs) > 1 and bias is not None:
        st.caption(f"Position bias over {len(pairs)} pairs: {bias:.0%} of the votes chose the answer shown first.")
    for judged in reversed(pairs):
        found = judged.judgement
        judgement_view(found, judged.x, judged.y)
        with st.expander("Replies, or vote probabilities"):
            for raw, shares in zip(found.raw, found.probabilities, strict=True):
                st.code(visible(raw) or listed(shares) or "(empty)", language=None, wrap_lines=True)
