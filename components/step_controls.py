"""The parts of the Steps page: the problem, a run and its steps as they arrive, the relevance of what was retrieved."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from components import state
from components.analysis_run import FROZEN, begin as start_analysis, frozen, is_open
from components.cache import workbench
from components.html import escape, plain, show, tag, visible
from components.model_choice import model_title, writer_options
from components.polling import cancel_button, redraw_while_running, wait_for
from components.reviewer import reviewer, write_marks
from components.runs import Run
from components.step_tree import final_card, plan_card, step_card
from engine.analyses.kind import STEPS
from engine.analyses.said import RelevanceOptions
from engine.analyses.steps import KIND, StepsOptions
from engine.cases.review import rating, rating_targets, review_of, reviewers_ratings, withdrawals
from engine.core.errors import GroundworkError
from engine.core.files import EMBEDDED
from engine.core.settings import Settings
from engine.core.text import counted
from engine.core.values import Case
from engine.corpus.collection import list_corpora
from engine.methods.judge import judge_warning
from engine.methods.raise_.relevance import KIND as RELEVANCE, LEVELS, Rating, Ratings, ratings_of
from engine.methods.raise_.threshold import PRIMER, primer
from engine.methods.raise_.values import ReasonStep, Solution, method_of
from engine.models.defaults import default_for

PROBLEM = "problem"  # the fields of a new one
SAMPLES = 24  # problems of the science primer that are offered; it has more
NOT_RATED = "not rated"

Mark = Callable[[Rating], None]
"""The callback for a level that a reviewer chose or withdrew."""


def run_name(case: Case) -> str:
    """The session's name for the run on a case: one at a time."""
    return f"steps:{case.id}"


def begin(case: Case, method: str, model: str, settings: Settings | None = None) -> None:
    """Run a method on the case in the background, with the session's settings where none are given.

    The case is saved after every call.
    """
    options = StepsOptions(method=method, model=model)
    start_analysis(case, STEPS, options, run_name(case), label=method, settings=settings)


@redraw_while_running(every=0.3)
def watch_run(run: Run[Case]) -> None:
    """A run's progress, cancel, and its steps as they arrive."""
    label = method_of(run.label).label
    st.progress(run.share, text=f"{label}: {plain(run.stage or 'waiting for its turn')}")
    cancel_button(run, key="cancel_steps")
    found = [s for s in KIND.of(run.case) if s.method == run.label] if run.case else []
    if run.case and found:
        plan_card(found[-1])
        for step in found[-1].steps:
            step_card(step)
        final_card(found[-1], run.case)


def model_choice() -> str:
    """Who works the problem out."""
    chosen = st.selectbox(
        "Written by",
        writer_options() or [EMBEDDED],
        key="steps_model",
        format_func=model_title,
        accept_new_options=True,
        persist_state="session",
        help="A model that writes: embedded, a Hugging Face id or folder, a .gguf file, openai:MODEL@BASE_URL.",
    )
    return chosen or EMBEDDED


def problem_fields(corpus: str | None) -> None:
    """A new problem, typed or taken from the science primer, as a case of its own; `corpus` is offered first.

    Not a form, which would lose on another page what was typed.
    """
    # First in the list instead of by `index`: a default next to a value that a button set is warned about.
    names = (found.name for found in list_corpora())
    corpora = sorted(names, key=lambda name: (name != corpus, name != PRIMER))
    if not corpora:
        st.info("There are no documents yet. Add some on the Corpora page.")
        return
    with st.popover("Problems of the science primer"):
        for number, question in enumerate(primer().questions[:SAMPLES] if PRIMER in corpora else ()):
            values = (question.question, "\n".join(question.options))
            st.button(plain(question.question), key=f"problem_{number}", type="tertiary", on_click=_fill, args=values)
    fields = state.fields(PROBLEM)
    text = st.text_area("Problem", key=f"{fields}_text", height=90, persist_state="session")
    left, middle, right = st.columns([5, 3, 2], vertical_alignment="bottom")
    options = left.text_area(
        "Options, one per line (none: an open problem)", key=f"{fields}_options", height=110, persist_state="session"
    )
    chosen = middle.selectbox("Corpus", corpora, key=f"{fields}_corpus", persist_state="session")
    if right.button("Open as a case", type="primary", width="stretch"):
        _open(text, options, chosen)


def _fill(text: str, options: str) -> None:
    for name, value in {"text": text, "options": options, "corpus": PRIMER}.items():
        state.set_value(f"{state.fields(PROBLEM)}_{name}", value)


def _open(text: str, options: str, corpus: str) -> None:
    """Save the problem as a case and open it."""
    try:
        case = workbench().problem(text, corpus, [line.strip() for line in options.splitlines() if line.strip()])
    except GroundworkError as error:
        st.error(plain(str(error)))
        return
    state.empty(PROBLEM)
    state.open_case(case.id)
    st.rerun()


def relevance_view(case: Case, solution: Solution, *, key: str) -> None:
    """Levels of one step at a time, shares of each rater over the whole run, and the model's button."""
    searched = [step for step in solution.steps if step.search and step.search.hits]
    if not searched:
        st.caption("This run did not search, so there are no passages to rate.")
        return
    raters = ratings_of(case, solution)
    history = workbench().cases.history(case.id)
    own = reviewers_ratings(solution, review_of(history))
    for ratings in (*raters, *([own] if own.ratings else [])):
        shares = ", ".join(f"{name} {share:.0%}" for name, share in ratings.shares().items())
        show(
            tag(
                "p",
                tag("b", escape(ratings.by)) + escape(f": {shares} of {len(ratings.ratings)} rated"),
                class_="gw-note",
            )
        )
    _ask_model(case, solution, key)
    numbers = [step.number for step in searched]
    chosen = st.selectbox("Step", numbers, format_func=lambda n: f"Step {n}", key=f"{key}_step") or numbers[0]
    author, open_ = reviewer(), is_open(case)
    if not open_:
        frozen(case, "rate", "This case is signed off. Make a new version of it to rate passages.")
    elif not author:
        st.caption("Enter your name to rate passages. The case's history records it.")

    def mark(rated: Rating) -> None:
        """Write a level, or take back what stands where there is none, and draw the page anew."""
        places = rating_targets(solution, rated.step, rated.passage)
        taken_back = [draft for place in places for draft in withdrawals(history, "override", place, author)]
        write_marks(case.id, [rating(solution, rated, raters, author)] if rated.level else taken_back)

    step = next(s for s in searched if s.number == chosen)
    _rate_step(step, raters, own, mark, key=key, disabled=not (author and open_))


def _in_words(rating: Rating | None) -> str:
    """A level, and the mean of the levels by their shares.

    >>> _in_words(Rating(step=1, passage="p", level="full", probabilities={"none": 0.25, "full": 0.75}))
    'full (mean 2.2 of 3)'
    >>> _in_words(None)
    'no level'
    """
    if rating is None or rating.level is None:
        return "no level"
    return rating.level if rating.mean is None else f"{rating.level} (mean {rating.mean:.1f} of {len(LEVELS) - 1})"


def _rate_step(
    step: ReasonStep, raters: Sequence[Ratings], own: Ratings, mark: Mark, *, key: str, disabled: bool
) -> None:
    """One row per passage: the models' ratings, and a choice for the reviewer."""
    options = (NOT_RATED, *LEVELS)
    for hit in (*step.kept, *step.dropped):
        said = [f"{r.by}: {_in_words(r.rating(step.number, hit.passage.id))}" for r in raters]
        left, right = st.columns([4, 1])
        left.text(visible(f"{hit.passage.label}: {hit.passage.text}"))
        if said:
            left.caption(plain("; ".join(said)))
        level = own.level(step.number, hit.passage.id)
        # The level is in the key: the choice starts from what stands, also where it was changed elsewhere. One that
        # came too late is dropped.
        picked = right.selectbox(
            "Relevance",
            options,
            index=options.index(level or NOT_RATED),
            key=f"{key}_{step.number}_{hit.passage.id}_{level}_{disabled}",
            disabled=disabled,
        )
        wanted = next((name for name in LEVELS if name == picked), None)
        if wanted != level:
            mark(Rating(step=step.number, passage=hit.passage.id, level=wanted))


def _ask_model(case: Case, solution: Solution, key: str) -> None:
    """A named model rates every passage of the run."""
    name = f"relevance:{case.id}:{solution.method}"
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    judge = left.text_input(
        "Rated by the model", default_for("judges").model, key=f"{key}_judge", placeholder="openai:MODEL@BASE_URL"
    )
    count = sum(len(step.search.hits) for step in solution.steps if step.search)
    lacking = "" if judge else "Enter the model first."
    lacking = lacking if is_open(case) else FROZEN
    label = f"Rate {counted(count, 'passage')}: {counted(count, 'call')}"
    if right.button(label, key=f"{key}_rate", disabled=bool(lacking), help=lacking or None):
        options = RelevanceOptions(judge=judge, method=solution.method, model=solution.model)
        start_analysis(case, RELEVANCE, options, name)
        st.rerun()
    warning = judge_warning(judge, (solution.model,)) if judge else ""
    if warning:
        st.warning(plain(warning))
    wait_for(name, "Rating")
