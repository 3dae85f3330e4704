"""Four-level relevance of the retrieved passages: the analyst's own and a model's, beside each other."""

from __future__ import annotations

import streamlit as st

from components import state
from components.cache import workbench, workers
from components.html import escape, plain, show, tag, visible
from components.polling import wait_for
from components.runs import start
from engine.errors import GroundworkError
from engine.judge import judge_warning
from engine.models.registry import load_writer
from engine.reason.relevance import ANALYST, KIND, LEVELS, Rating, Ratings, rate, ratings_analysis, ratings_of
from engine.reason.values import ReasonStep, Solution
from engine.types import Case

NOT_RATED = "not rated"


def relevance_view(case: Case, solution: Solution, *, key: str) -> None:
    """Levels of one step at a time, shares of each rater over the whole run, and the model's button."""
    searched = [step for step in solution.steps if step.search and step.search.hits]
    if not searched:
        st.caption("This run searched nothing, so there are no passages to rate.")
        return
    raters = [r for r in _all(case) if (r.method, r.model) == (solution.method, solution.model)]
    for ratings in raters:
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
    _rate_step(case, solution, next(s for s in searched if s.number == chosen), raters, key)


def _all(case: Case) -> list[Ratings]:
    return [Ratings.from_dict(analysis.result) for analysis in case.analyses if analysis.kind == KIND]


def _rate_step(case: Case, solution: Solution, step: ReasonStep, raters: list[Ratings], key: str) -> None:
    """A row a passage: what the models say, and a choice for the analyst."""
    own = ratings_of(case, solution, ANALYST)
    for hit in (*step.kept, *step.dropped):
        said = [f"{r.by}: {r.level(step.number, hit.passage.id) or 'no level'}" for r in raters if r.by != ANALYST]
        left, right = st.columns([4, 1])
        left.text(visible(f"{hit.passage.title or hit.passage.document}: {hit.passage.text}"))
        if said:
            left.caption(plain("; ".join(said)))
        level = own.level(step.number, hit.passage.id)
        options = (NOT_RATED, *LEVELS)
        picked = right.selectbox(
            "Relevance",
            options,
            index=options.index(level) if level else 0,
            key=f"{key}_{step.number}_{hit.passage.id}",
        )
        if picked != (level or NOT_RATED) and picked != NOT_RATED:
            _keep(case, own.with_rating(Rating(step=step.number, passage=hit.passage.id, level=picked)))


def _keep(case: Case, ratings: Ratings) -> None:
    try:
        workbench().cases.add_analysis(case.id, ratings_analysis(case, ratings))
    except GroundworkError as error:
        st.error(plain(str(error)))
        return
    st.rerun()


def _ask_model(case: Case, solution: Solution, key: str) -> None:
    """A named model rates every passage of the run."""
    name = f"relevance:{case.id}:{solution.method}"
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    judge = left.text_input("Rated by the model", "", key=f"{key}_judge", placeholder="openai:MODEL@BASE_URL")
    count = sum(len(step.search.hits) for step in solution.steps if step.search)
    if right.button(f"Rate {count} passages: {count} calls", key=f"{key}_rate", disabled=not judge):

        def work(run):  # type: ignore[no-untyped-def]
            ratings = rate(solution, load_writer(judge), run.watch)
            return workbench().cases.add_analysis(case.id, ratings_analysis(case, ratings))

        state.keep_run(name, start(workers(), work, label="relevance"))
        st.rerun()
    warning = judge_warning(judge, (solution.model,)) if judge else ""
    if warning:
        st.warning(plain(warning))
    wait_for(name, "Rating")
