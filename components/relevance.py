"""Relevance of the retrieved passages on four levels: the reviewer's next to the model's."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from components.analysis_run import begin, is_open
from components.cache import workbench
from components.html import escape, plain, show, tag, visible
from components.polling import wait_for
from components.reviewer import reviewer, write_marks
from engine.analyses.said import RelevanceOptions
from engine.cases.review import rating, rating_targets, review_of, reviewers_ratings, withdrawals
from engine.core.text import counted
from engine.core.values import Case
from engine.methods.judge import judge_warning
from engine.methods.raise_.relevance import KIND as RELEVANCE, LEVELS, Rating, Ratings, ratings_of
from engine.methods.raise_.values import ReasonStep, Solution
from engine.models.defaults import default_for

NOT_RATED = "not rated"

Mark = Callable[[Rating], None]
"""The callback for a level that a reviewer chose or withdrew."""


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
        st.caption("This case is signed off. Make a new version of it to rate passages.")
    elif not author:
        st.caption("Enter your name to rate passages. The case's history records it.")

    def mark(rated: Rating) -> None:
        """Write a level, or take back what stands where there is none, and draw the page anew."""
        places = rating_targets(solution, rated.step, rated.passage)
        taken_back = [draft for place in places for draft in withdrawals(history, "override", place, author)]
        write_marks(case.id, [rating(solution, rated, raters, author)] if rated.level else taken_back)

    step = next(s for s in searched if s.number == chosen)
    _rate_step(step, raters, own, mark, key=key, disabled=not (author and open_))


def _said(rating: Rating | None) -> str:
    """A level, and the mean of the levels by their shares.

    >>> _said(Rating(step=1, passage="p", level="full", probabilities={"none": 0.25, "full": 0.75})), _said(None)
    ('full (mean 2.2 of 3)', 'no level')
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
        said = [f"{r.by}: {_said(r.rating(step.number, hit.passage.id))}" for r in raters]
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
    if right.button(
        f"Rate {counted(count, 'passage')}: {counted(count, 'call')}",
        key=f"{key}_rate",
        disabled=not (judge and is_open(case)),
    ):
        options = RelevanceOptions(judge=judge, method=solution.method, model=solution.model)
        begin(case, RELEVANCE, options, name)
        st.rerun()
    warning = judge_warning(judge, (solution.model,)) if judge else ""
    if warning:
        st.warning(plain(warning))
    wait_for(name, "Rating")
