"""A run of the conditions and its scores by a verifier (grounded refinement, section 3.5): citations, and A's facts.

The verifier's probabilities are kept by pair, so that marking a passage recomputes every score without a model. The
facts of A in the other answers are ours. Left out: the paper's second scorer; another verifier is another run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from engine.core.progress import Watch
from engine.core.values import Answer, Passage, Value
from engine.methods.refinement.request import Request
from engine.methods.refinement.run import refining
from engine.methods.refinement.values import Refinement
from engine.methods.signals import FactKept, Scores, facts_kept, pair_key, remembered, scores_of
from engine.models.protocols import Entailment


class RefinementReport(Value, frozen=True):
    """`entailments`: probability by the hash of (claim, evidence), as `verifier` gave it.

    `facts`: the atomic facts of A with their verdicts, where A was taken apart. `labels`: relevance by the passage's
    number as the triggers saw it, for those that had one.
    """

    refinement: Refinement
    verifier: str = ""
    entailments: dict[str, float] = {}
    facts: tuple[tuple[str, str], ...] = ()
    labels: dict[str, bool] = {}


def refine_case(
    request: Request,
    *,
    earlier: RefinementReport | None = None,
    verifier: Entailment | None = None,
    facts: tuple[tuple[str, str], ...] = (),
    watch: Watch = Watch(),
) -> Iterator[RefinementReport]:
    """Run the conditions and the verifier: the report after every step.

    The case carries the current labels, `facts` are those of A with their verdicts. Raises what `refining` raises.
    """
    labels = {str(number): label for number, label in request.case.labels.items() if label is not None}
    by, kept = (earlier.verifier, earlier.entailments) if earlier else ("", {})
    for value in refining(request, earlier.refinement if earlier else None, watch):
        report = RefinementReport(refinement=value, verifier=by, entailments=kept, facts=facts, labels=labels)
        yield report
    if verifier is not None:
        yield assessed(report, request.case.passages, verifier, watch)


def assessed(
    report: RefinementReport, passages: Sequence[Passage], verifier: Entailment, watch: Watch = Watch()
) -> RefinementReport:
    """Ask the verifier for every pair that the scores need and that it has not judged yet."""
    kept = dict(report.entailments) if report.verifier == verifier.name else {}
    entails = remembered(lambda pairs: verifier.entailment(pairs, watch).tolist(), kept)
    for answer in answers_of(report.refinement).values():
        scores_of(answer, passages, entails)
        facts_kept(report.facts, answer.text, entails)
    return replace(report, verifier=verifier.name, entailments=kept)


def answers_of(refinement: Refinement) -> dict[str, Answer]:
    """The answer of each condition that has one."""
    return {name: v.answer for name, v in refinement.variants.items() if v.answer is not None}


def report_facts(report: RefinementReport) -> dict[str, tuple[FactKept, ...]]:
    """For each condition, which facts of A its answer still says; empty where the verifier was not asked."""
    ask = _remembering(report.entailments)
    try:
        return {name: facts_kept(report.facts, a.text, ask) for name, a in answers_of(report.refinement).items()}
    except KeyError:  # facts were found after the verifier was asked: the next run asks it again
        return {}


def report_scores(
    report: RefinementReport, passages: Sequence[Passage], golds: Sequence[str] = ()
) -> dict[str, Scores]:
    """Scores of every condition with an answer, with the labels that the passages carry now; no model is asked."""
    ask, found = _remembering(report.entailments), {}
    for name, answer in answers_of(report.refinement).items():
        try:
            found[name] = scores_of(answer, passages, ask, golds)
        except KeyError:  # the verifier has not been asked about this answer yet
            found[name] = scores_of(answer, passages, None, golds)
    return found


def _remembering(entailments: dict[str, float]) -> Callable[[Sequence[tuple[str, str]]], list[float]]:
    return lambda pairs: [entailments[pair_key(*pair)] for pair in pairs]
