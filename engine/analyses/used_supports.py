"""Used x supports: for each sentence and passage, does the model use it, and does the passage support it?"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from msgspec.structs import replace

from engine.analyses.attribution import of_the_stamp, passages_cell, placebos_of
from engine.analyses.floors import Listening, drop_floor
from engine.analyses.kind import USED_SUPPORTS, ByModel, Kind, Outcome, RunContext, less
from engine.cases.blocks import Block, Facts, Table, notices, signed, table
from engine.cases.review import Review
from engine.core.files import EMBEDDED
from engine.core.progress import last
from engine.core.settings import Settings
from engine.core.text import counted
from engine.core.values import Analysis, Case
from engine.methods.occlusion import occlusion
from engine.methods.subject import analysis_of, subject
from engine.methods.used_supports import UsedSupports, used_supports
from engine.models.protocols import LanguageModel


def _run(case: Case, options: ByModel, context: RunContext) -> Iterator[Analysis]:
    model, verifier = context.tools.scorer(options.model), context.tools.verifier(EMBEDDED)
    settings, watch, unrelated = context.settings, context.watch, placebos_of(case, context)
    prompt, answer, notes = subject(case, model, settings)
    texts = [passage.text for passage in unrelated]
    spans = answer.sentences or None
    scored = occlusion(model, prompt, answer, spans=spans, placebos=texts, settings=settings.occlusion, watch=watch)
    passages = {number: passage.text for number, passage in enumerate(case.passages, start=1)}
    result = replace(used_supports(scored, answer, passages, verifier, watch), notes=(*notes, *scored.notes))
    extra = {
        "occlusion": settings.occlusion.to_dict(),
        "placebos": [passage.id for passage in unrelated],
        "verifier": verifier.name,
    }
    yield analysis_of(case, model, settings, USED_SUPPORTS, result, extra)


def _blocks(case: Case, found: UsedSupports, review: Review) -> list[Block]:
    facts = Facts((("Use scored by", found.scorer), ("Support judged by", found.verifier)))
    return [facts, *notices(found.notes), *(_table(case, found, span) for span in range(len(found.spans)))]


def _table(case: Case, found: UsedSupports, span: int) -> Table:
    start, end = found.spans[span]
    rows = (
        (passages_cell(case, numbers), signed(cell.used), f"{cell.supports:.2f}", cell.quadrant)
        for numbers, cell in zip(found.sources, found.cells[span], strict=True)
    )
    said = " ".join(case.answer.text[start:end].split())
    caption = f"{said} (used means over {found.floor[span]:.3g} nats, the {found.floor_kind} floor)"
    return table(caption, ("Passage", "Used, nats", "Supports, p", "Together"), rows, numeric={1, 2})


def _again(case: Case, analysis: Analysis, model: LanguageModel, context: RunContext) -> Outcome:
    verifier = Listening(context.tools.verifier(str(analysis.stamp.settings.get("verifier", EMBEDDED))))
    tools = dataclasses.replace(context.tools, verifier=lambda name: verifier)
    own = dataclasses.replace(context, tools=tools)
    values = less(last(_run(case, ByModel(model=model.name), own)).result)
    prompt, answer, _ = subject(case, model, context.settings)
    nats = drop_floor(model, model.encode(prompt), [token.id for token in answer.tokens])
    return Outcome(values=values, floor=nats, floors={"supports": verifier.floor})


def _cost(case: Case, options: ByModel, settings: Settings) -> str:
    pairs = len(case.answer.sentences) * len(case.passages)
    return f"occlusion by sentence, and {counted(pairs, 'verdict')}: one per sentence and passage"


KIND = Kind(
    name=USED_SUPPORTS,
    title="Used x supports",
    result=UsedSupports,
    blocks=_blocks,
    run=_run,
    cost=_cost,
    terms=("used",),
    again=of_the_stamp(_again, by_placebos=frozenset({"floor", "floor_kind", "quadrant"})),
)
