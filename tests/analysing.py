"""Analyses of saved cases with models that a test brings."""

from __future__ import annotations

from engine.analyses.kind import REFINEMENT, Loaders, RunContext, analyse
from engine.analyses.refinement import RefinementOptions, analysis_id, reports_of
from engine.analyses.registry import kind_named
from engine.core.progress import Watch


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
