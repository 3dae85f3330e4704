"""Refinement of a case as the library keeps it: the run, and what a verifier said of its citations.

The verifier's probabilities are kept by pair, so that marking a passage recomputes every score without a model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from engine.core.metrics import Entails
from engine.core.progress import Watch
from engine.core.settings import Settings
from engine.core.values import (
    Analysis,
    Answer,
    Case,
    Passage,
    Value,
    inputs_hash,
    sha256,
)
from engine.methods.refinement.conditions import VARIANTS
from engine.methods.refinement.request import Request, conditions_of, read_by, stamp_for
from engine.methods.refinement.run import refine
from engine.methods.refinement.values import Gate, Refinement
from engine.methods.signals import (
    FactKept,
    Scores,
    facts_kept,
    overlap_words,
    s3,
    scores_of,
)
from engine.models.protocols import Entailment, LanguageModel, Writer

KIND = "refinement"


class Report(Value, frozen=True):
    """`entailments`: probability by the hash of (claim, evidence), as `verifier` gave it.

    `facts`: the atomic facts of A with their verdicts, where A was taken apart. `labels`: relevance by the passage's
    number as the triggers saw it, for those that had one.
    """

    refinement: Refinement
    verifier: str = ""
    entailments: dict[str, float] = {}
    facts: tuple[tuple[str, str], ...] = ()
    labels: dict[str, bool] = {}


def request_for(
    case: Case,
    writer: Writer,
    settings: Settings,
    *,
    variants: tuple[str, ...] = tuple(VARIANTS),
    gate: Gate = "own",
    use_answer: bool = False,
    scorer: LanguageModel | None = None,
    history: tuple[float, ...] = (),
    read: tuple[tuple[int, Passage], ...] | None = None,
) -> Request:
    """A case as a request. `use_answer`: A is the case's answer, else the writer writes it.

    `read` None: what the case's own prompt gave where its answer is A, else what this writer is given (`read_by`).
    """
    if read is None:
        shown = use_answer and case.prompt is not None
        read = () if shown else read_by(writer.name, case.question, case.passages, settings.retrieval)
    return Request(
        question=case.question,
        passages=case.passages,
        writer=writer,
        settings=settings,
        variants=variants,
        gate=gate,
        given=Answer(text=case.answer.text, tokens=case.answer.tokens) if use_answer else None,
        given_by=case.stamp.model if use_answer else "",
        given_prompt=case.prompt if use_answer else None,
        scorer=scorer,
        history=history,
        read=read,
        own_set=case.corpus,
    )


def analysis_id(model: str, use_answer: bool) -> str:
    """One analysis a writer and a kind of baseline; a new run of it goes on from the last."""
    return f"{KIND}:{model}:{'given' if use_answer else 'written'}"


def analysis_of(case: Case, report: Report, use_answer: bool) -> Analysis:
    """The report as an analysis of the case."""
    stamp = report.refinement.stamp
    return Analysis(
        id=analysis_id(stamp.model, use_answer),
        kind=KIND,
        stamp=replace(stamp, inputs=inputs_hash(case.question, case.passages, case.answer.text)),
        result=report.to_dict(),
    )


def reports_of(case: Case) -> dict[str, Report]:
    """The case's reports by analysis id, last added last."""
    return {a.id: Report.from_dict(a.result) for a in case.analyses if a.kind == KIND}


def overlap_history(cases: Iterable[Case], model: str) -> tuple[float, ...]:
    """S3 of the answers that this model wrote: the distribution behind D's threshold."""
    own = (case for case in cases if case.stamp.model == model and case.answer.finished and case.answer.text)
    found = (s3(overlap_words(case.answer.text, case.passages)) for case in own)
    return tuple(value for value in found if value is not None)


def pair_key(claim: str, evidence: str) -> str:
    """The hash that a pair is kept under."""
    return sha256(f"{claim}\0{evidence}")[:16]


def assessed(
    refinement: Refinement,
    passages: Sequence[Passage],
    verifier: Entailment,
    known: Report | None = None,
    watch: Watch | None = None,
) -> Report:
    """Ask the verifier for every pair that the scores need and that it has not judged yet."""
    kept = dict(known.entailments) if known is not None and known.verifier == verifier.name else {}

    def entails(pairs: Sequence[tuple[str, str]]) -> list[float]:
        new = [pair for pair in dict.fromkeys(pairs) if pair_key(*pair) not in kept]
        if new:
            probabilities = verifier.entailment(new, watch)
            kept.update({pair_key(*pair): float(p) for pair, p in zip(new, probabilities, strict=True)})
        return [kept[pair_key(*pair)] for pair in pairs]

    facts = known.facts if known is not None else ()
    for answer in _answers(refinement).values():
        scores_of(answer, passages, entails)
        facts_kept(facts, answer.text, entails)
    labels = known.labels if known is not None else {}
    return Report(refinement=refinement, verifier=verifier.name, entailments=kept, facts=facts, labels=labels)


def report_facts(report: Report) -> dict[str, tuple[FactKept, ...]]:
    """For each condition, which facts of A its answer still says; empty where the verifier was not asked."""
    ask = _remembering(report.entailments)
    try:
        return {name: facts_kept(report.facts, a.text, ask) for name, a in _answers(report.refinement).items()}
    except KeyError:  # facts were found after the verifier was asked: the next run asks it again
        return {}


def report_scores(report: Report, passages: Sequence[Passage], golds: Sequence[str] = ()) -> dict[str, Scores]:
    """Scores of every condition with an answer, with the labels that the passages carry now; no model is asked."""
    ask = _remembering(report.entailments)
    return {name: _scores(answer, passages, ask, golds) for name, answer in _answers(report.refinement).items()}


def _answers(refinement: Refinement) -> dict[str, Answer]:
    return {name: v.answer for name, v in refinement.variants.items() if v.answer is not None}


def _remembering(entailments: dict[str, float]) -> Callable[[Sequence[tuple[str, str]]], list[float]]:
    return lambda pairs: [entailments[pair_key(*pair)] for pair in pairs]


def _scores(answer: Answer, passages: Sequence[Passage], ask: Entails, golds: Sequence[str]) -> Scores:
    try:
        return scores_of(answer, passages, ask, golds)
    except KeyError:  # the verifier has not been asked about this answer yet
        return scores_of(answer, passages, None, golds)


def refine_case(
    case: Case,
    request: Request,
    *,
    earlier: Report | None = None,
    verifier: Entailment | None = None,
    facts: tuple[tuple[str, str], ...] = (),
    save: Callable[[Report], None] | None = None,
    on_text: Callable[[str, str], None] | None = None,
    watch: Watch | None = None,
) -> Report:
    """Run the conditions and the verifier; `save` gets the report after every step, so that nothing is lost.

    `case` carries the labels as they are now, `facts` are those of A with their verdicts. Raises what `refine`
    raises; what was saved stays.
    """
    labels = {str(number): label for number, label in request.labels.items() if label is not None}
    report = replace(earlier or Report(refinement=_nothing(request)), facts=facts, labels=labels)

    def keep(value: Refinement) -> None:
        nonlocal report
        report = replace(report, refinement=value)
        if save is not None:
            save(report)

    value = refine(request, earlier.refinement if earlier else None, keep, on_text, watch)
    report = replace(report, refinement=value)
    if verifier is not None:
        report = assessed(value, case.passages, verifier, report, watch)
    if save is not None:
        save(report)
    return report


def _nothing(request: Request) -> Refinement:
    """The value before anything has run."""
    decoding = conditions_of(request)[0].decoding
    return Refinement(stamp=stamp_for(request, decoding), gate=request.gate, order=(), decoding=decoding)
