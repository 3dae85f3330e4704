"""Refinement: signals, triggers, gradient rows, prompts, outcomes and the verifier's figures, from the kept replies.

What the writer wrote is an input; its prompts are built again and the tokens of its replies are scored anew.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from engine.analyses.refinement import Report, assessed, request_for
from engine.cases.replay.attribution import differs, settings_of
from engine.cases.replay.floors import Listening, relevance_floors, token_floor
from engine.cases.replay.outcome import (
    AS_IT_CAME,
    COSTS,
    Floor,
    Json,
    Kind,
    Outcome,
    Tools,
    less,
)
from engine.cases.replay.replies import Repeating, Reply
from engine.core.settings import Refinement as Rules
from engine.core.values import Analysis, Case
from engine.methods import registry
from engine.methods.refinement.request import Request, own_tokens, scored_prompt
from engine.methods.refinement.run import refine
from engine.methods.refinement.values import Refinement
from engine.models.protocols import LanguageModel

# Beside costs: the stamp (it is the analysis' own), and what was handed in.
LEFT_OUT = COSTS | {"stamp", "cost", "shared", "facts", "labels", "n"}
THRESHOLD = "D's threshold is a percentile of S3 over the library as it was then; it is an input of the replay"


def given(result: Json) -> Json:
    """The replies with the hashes of their prompts, what was asked for, and D's threshold where the library gave it."""
    report = Report.from_dict(result)
    value = report.refinement
    names = ("A", "B", *(name for name in value.order if name not in ("A", "B")))
    written = [turn for name in names if name in value.variants for turn in value.variants[name].turns]
    return {
        "replies": [Reply.of(turn.reply, turn.prompt).to_dict() for turn in written],
        "order": list(value.order),
        "gate": value.gate,
        "scorer": value.scorer,
        "verifier": report.verifier,
        "cases": value.threshold.n if value.threshold else 0,
        "threshold": value.threshold.value
        if value.threshold and not value.threshold.rule.startswith("fixed")
        else None,
        "facts": [list(fact) for fact in report.facts],
        "labels": report.labels,
        "finished": value.finished,
    }


def compared(result: Json) -> Any:
    """All but costs and inputs; an answer that was given to the run keeps no probabilities."""
    values = less(result, LEFT_OUT)
    value = values.get("refinement", {})
    for variant in value.get("variants", {}).values():
        if not variant.get("turns") and variant.get("answer"):
            variant["answer"] = less(variant["answer"], {"logprob"})
        for turn in variant.get("turns", ()):
            turn["reply"]["tokens"] = less(turn["reply"].get("tokens", []), AS_IT_CAME)
            turn["reply"].pop("text", None)
    return values


def again(case: Case, analysis: Analysis, tools: Tools) -> Outcome:
    """Every condition again with the writer's kept replies."""
    asked = analysis.result
    if not asked.get("finished"):
        return Outcome(why="the run was stopped before its end; run what is missing, then replay it")
    model = tools.writer(analysis.stamp.model)
    why = differs(analysis.stamp, model)
    if why:
        return Outcome(why=why)
    case = _labelled(case, asked["labels"])
    repeating = Repeating([Reply.from_dict(reply) for reply in asked["replies"]], model)
    scorer = None if asked["scorer"] in ("", model.name) else tools.writer(asked["scorer"])
    request = _request(case, analysis, repeating, scorer)  # type: ignore[arg-type]
    value = refine(request)
    report, floor = _assessed(case, value, asked, tools)
    values = compared(report.to_dict())
    why = ""
    if len(request.history) >= request.settings.refinement.overlap_cases:
        why, values["refinement"] = THRESHOLD, less(values["refinement"], {"threshold"})
    if not repeating.can.score:
        values = less(values, {"logprob"})
    nats, gradient = _floors(request, value, scorer or model)  # type: ignore[arg-type]
    floors = {"entailments": floor, "logprob": token_floor(repeating, repeating.rows), **gradient}
    return Outcome(values=values, floor=nats, floors=floors, why=why)


def _labelled(case: Case, labels: dict[str, bool]) -> Case:
    """The case with the labels that the triggers saw."""
    if not labels:
        return case
    passages = (replace(p, relevant=labels.get(str(n))) for n, p in enumerate(case.passages, start=1))
    return replace(case, passages=tuple(passages))


def _request(case: Case, analysis: Analysis, writer: Repeating, scorer: LanguageModel | None) -> Request:
    asked, stamp = analysis.result, analysis.stamp
    rules = Rules.from_dict(stamp.settings.get("refinement", {}))
    settings = replace(settings_of(stamp), refinement=rules)
    return request_for(
        case,
        writer,
        settings,
        variants=tuple(asked["order"]),
        gate=asked["gate"],
        use_answer=bool(stamp.settings.get("given")),
        scorer=scorer,
        # A library whose S3 are all that value has it as every percentile.
        history=(float(asked["threshold"] or 0.0),) * int(asked["cases"]),
    )


def _assessed(case: Case, value: Refinement, asked: Json, tools: Tools) -> tuple[Report, float]:
    facts = tuple((str(fact), str(verdict)) for fact, verdict in asked["facts"])
    bare = Report(refinement=value, facts=facts)
    if not asked["verifier"]:
        return bare, 0.0
    verifier = Listening(tools.verifier(asked["verifier"]))
    report = assessed(value, case.passages, verifier, replace(bare, verifier=verifier.name))
    return report, verifier.floor


def _floors(request: Request, value: Refinement, model: LanguageModel) -> tuple[float, dict[str, Floor]]:
    """The rounding of one token's log-probability under the model that scores, and of the gradient rows."""
    if value.baseline is None or not model.can.score:
        return 0.0, {}
    prompt, answer = scored_prompt(request, value), own_tokens(request, value.baseline)
    nats = token_floor(model, [(model.encode(prompt), [token.id for token in answer.tokens])]) if answer.tokens else 0.0
    rows = value.gradient
    if rows is None:
        return nats, {}
    settings = request.settings
    counted = settings.occlusion.count_citation_markers
    own = registry.method(settings.refinement.ranked_by, settings.gradient, count_citation_markers=counted)
    if own.explain is None:  # differences of log-probabilities
        return nats, {}
    whole, each = relevance_floors(own.explain, model, prompt, answer, rows.spans, rows.details["tokens"])
    return nats, {"scores": whole, "elsewhere": whole, "per_token": each}


KIND = Kind(again, given, compared)
