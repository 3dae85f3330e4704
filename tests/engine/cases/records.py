"""A case with every kind of record, made by scripted models over a small collection, as the engine makes each."""

from __future__ import annotations

from typing import ClassVar

import msgspec
from msgspec.structs import replace

from engine.analyses.facts import KIND as FACTS, FactsOptions
from engine.analyses.kind import OCCLUSION, STEPS, USED_SUPPORTS, Loaders, RunContext, examine
from engine.analyses.refinement import analysis_of
from engine.answer.context import consecutive_alignment
from engine.answer.write import prompting
from engine.core.progress import last
from engine.core.settings import Retrieval, Settings
from engine.core.values import Analysis, Case, Document, Stamp, inputs_hash
from engine.corpus.collection import Collection
from engine.methods.attr_rag import attr_rag
from engine.methods.refinement.conditions import Request
from engine.methods.refinement.run import refine_case
from engine.models.embedder import ScriptedEmbedder
from engine.models.reranker import BestSentence
from engine.models.scripted import ScriptedScorer
from engine.retrieve.search import rerank, search
from tests.analysing import analysed
from tests.engine.are.scripted import WordVerifier
from tests.engine.refinement.refine_cases import QUESTION, REPLIES, purpose

CORPUS = "bridges"
DOCUMENTS = {
    "bridge": "Hanna Lind built the bridge in 1874. The bridge was repaired in 1931 after a flood.",
    "crystals": "Crystals form when the solution cools.",
    "trains": "Trains crossed the bridge from 1880.",
    "pond": "Ice floats on the pond.",
    "rust": "Iron rusts in damp air.",
    "gloves": "Wear gloves in the laboratory.",
}
EMBEDDER = ScriptedEmbedder()
SETTINGS = Settings().apply(
    ["reasoning.threshold=0.1", "retrieval.k=4", "occlusion.placebos=1", "verification.max_iterations=2"]
)
SHOWN = {**REPLIES, "A": "Hanna Lind built the bridge in 1931 [cite_1]. Trains crossed the bridge from 1880 [cite_2]."}


def reply(asked: str) -> str:
    if asked.startswith("You plan"):
        return "Who built it? | bridge builder\nWhen was it built? | bridge year"
    if asked.startswith("You prepare a search"):
        return "bridge built Hanna Lind"
    return SHOWN[purpose(asked)]


def logprob(passages, words, t) -> float:
    return -3.0 + sum(0.3 * number for number in passages) / (t + 2)


class Scorer(ScriptedScorer):
    """A scripted model whose vocabulary outlives it, as a real one's does."""

    vocabulary: ClassVar[dict[int, str]] = {}

    def __init__(self) -> None:
        super().__init__(logprob, reply)
        self._words = self.vocabulary


TOOLS = Loaders(
    embedder=lambda name: EMBEDDER,
    reranker=lambda name: BestSentence(EMBEDDER),
    writer=lambda name: Scorer(),
    collection=lambda name: Collection.open(name, EMBEDDER),
    verifier=lambda name: WordVerifier(),
)


def full_record() -> Case:
    """The case as the library gives it back."""
    collection = Collection.create(CORPUS, EMBEDDER)
    collection.add([Document(id=k, title=k, text=t, source=k, media_type="text/plain") for k, t in DOCUMENTS.items()])
    case = _answered(collection)
    case = _with(case, analysed(case, OCCLUSION, Scorer(), SETTINGS, unrelated=_others(case, collection)[:1]))
    given = {"unrelated": _others(case, collection)[:1], "verifier": WordVerifier()}
    case = _with(case, analysed(case, USED_SUPPORTS, Scorer(), SETTINGS, **given))
    case = examine(case, FACTS, FactsOptions(), RunContext(SETTINGS, TOOLS))
    labelled = replace(case, passages=(replace(case.passages[0], relevant=True), *case.passages[1:]))
    request = Request(labelled, Scorer(), SETTINGS, gate="always", history=(0.2, 0.4))
    facts = (("Hanna Lind built the bridge.", "supportive"),)
    report = last(refine_case(request, verifier=WordVerifier(), facts=facts))
    case = _with(case, analysis_of(case, report, use_answer=False))
    case = _with(case, analysed(case, STEPS, Scorer(), SETTINGS, collection=collection, method="raise"))
    return Case.from_dict(msgspec.json.decode(msgspec.json.encode(case)))


def _with(case: Case, analysis: Analysis) -> Case:
    return replace(case, analyses=(*case.analyses, analysis))


def _others(case: Case, collection: Collection):
    held = {passage.document for passage in case.passages}
    return [passage for passage in collection.snapshot().passages if passage.document not in held]


def _answered(collection: Collection) -> Case:
    """Attr-RAG's second stage by the scripted writer, as the workbench runs it."""
    hits = tuple(search(collection, QUESTION, SETTINGS.retrieval))[:3]
    sets = rerank(QUESTION, consecutive_alignment(hits), BestSentence(EMBEDDER))
    snapshot = collection.snapshot()
    at = {(passage.document, passage.ordinal): passage for passage in snapshot.passages}
    seen = {passage.document for chunk_set in sets for passage in chunk_set.passages}
    placebos = [passage for passage in snapshot.passages if passage.document not in seen][:2]
    last = []

    def writing(numbered):
        write = prompting(Scorer(), SETTINGS.prompting, SETTINGS.decoding, numbered)

        def written(question, passages):
            last[:] = [write(question, passages)]
            return last[0].answer

        return written

    result = attr_rag(
        QUESTION,
        sets,
        writing,
        embedder=EMBEDDER,
        lookup=lambda document, ordinal: at.get((document, ordinal)),
        placebos=placebos,
        settings=SETTINGS.selection,
    )
    stamp = replace(
        last[0].stamp,
        settings={**last[0].stamp.settings, "retrieval": Retrieval(k=3).to_dict()},
        inputs=inputs_hash(QUESTION, result.passages),
    )
    own = {"selection": SETTINGS.selection.to_dict(), "seed": 1337, "placebos": [p.id for p in placebos]}
    made: Stamp = replace(stamp, settings={**stamp.settings, **own})
    return Case(
        id="0123456789ab",
        question=QUESTION,
        passages=result.passages,
        answer=last[0].answer,
        stamp=stamp,
        prompt=last[0].prompt,
        corpus=CORPUS,
        created="2026-11-20T10:00:00+00:00",
        hits=hits,
        chunk_sets=sets,
        analyses=(Analysis(id="attr-rag", kind="attr-rag", stamp=made, result=result.to_dict()),),
    )
