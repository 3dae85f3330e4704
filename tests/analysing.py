"""Analyses of cases with models that a test brings."""

from __future__ import annotations

from engine.analyses.kind import REFINEMENT, Loaders, RunContext, analyse, grown
from engine.analyses.refinement import RefinementOptions, analysis_id, reports_of
from engine.analyses.registry import kind_named
from engine.cases.store import added
from engine.core.progress import Watch, last
from engine.core.settings import Settings
from engine.replay import compared, recompute, stripped


def growing(
    case,
    kind,
    model,
    settings=None,
    watch=None,
    *,
    unrelated=(),
    collection=None,
    verifier=None,
    embedder=None,
    **options,
):
    """The analysis of a kind by a model on a case of no library, as it grows."""
    tools = Loaders(
        embedder=lambda name: embedder,
        writer=lambda name: model,
        collection=lambda name: collection,
        verifier=lambda name: verifier,
    )
    context = RunContext(settings or Settings(), tools, watch or Watch(), unrelated=tuple(unrelated))
    found = kind_named(kind)
    return grown(case, found, found.options(model=model.name, **options), context)


def analysed(case, kind, model, settings=None, **given):
    """The whole analysis; see `growing`."""
    return last(growing(case, kind, model, settings, **given))


def keep(cases, case_id, analysis):
    """Put an analysis into a saved case, in place of an earlier one of the same id."""
    return cases.update(case_id, lambda case: added(case, analysis))


def replay_here(case, tools=None):
    """The case replayed in this process, with models and collections of the caller's."""
    return compared(case, recompute(stripped(case), tools or Loaders()))


def refined(cases, case_id, writer, settings, *, scorer=None, verifier=None, watch=None, **options):
    """Conditions run on a saved case; the report."""
    models = {model.name: model for model in (writer, scorer) if model is not None}
    tools = Loaders(writer=models.__getitem__, verifier=lambda name: verifier)
    wanted = RefinementOptions(
        model=writer.name, scorer=scorer.name if scorer else "", verifier=verifier.name if verifier else "", **options
    )
    context = RunContext(settings, tools, watch or Watch(), cases)
    case = analyse(cases, case_id, kind_named(REFINEMENT), wanted, context)
    return reports_of(case)[analysis_id(writer.name, wanted.use_answer)]
