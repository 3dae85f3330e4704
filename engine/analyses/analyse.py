"""The analyses of a case by name, as pages and the command line ask for them."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from engine.analyses.attribution import (
    faithfulness_of,
    method_of,
    occlusion_of,
    placebos_for,
    sentence_occlusion_of,
    token_map_of,
    used_supports_of,
)
from engine.analyses.faithfulness import Rankings
from engine.analyses.kinds import (
    DROPS,
    FAITHFULNESS,
    OCCLUSION,
    SENTENCES,
    SETS,
    TOKEN_MAP,
    USED_SUPPORTS,
)
from engine.analyses.token_map import Rows
from engine.core.errors import AttributionError
from engine.core.progress import Watch
from engine.core.settings import Settings
from engine.core.values import Analysis, Case, Passage
from engine.corpus.collection import Collection, list_corpora
from engine.methods.attr_rag import AttrRag, scored_by, with_drops
from engine.models.protocols import LanguageModel
from engine.models.verifier import load_entailment

Analyse = Callable[[Case, LanguageModel, Settings, Watch | None], Analysis]


def analyse(
    case: Case,
    method: str,
    scorer: LanguageModel,
    settings: Settings,
    watch: Watch | None = None,
    options: Rows | Rankings | None = None,
) -> Analysis:
    """`occlusion` (of passages, `of chunk sets`, `of sentences`), `token map`, `faithfulness`, `used x supports`,
    `attr-rag drops`, or a registered method.

    Raises `InputError` for another name, `Cancelled` whose `partial` is an analysis where something was finished.
    """
    if isinstance(options, Rows):
        return token_map_of(case, scorer, settings, watch, options)
    if isinstance(options, Rankings):
        return faithfulness_of(case, scorer, settings, watch, options.methods)
    if method in ANALYSES:
        return ANALYSES[method](case, scorer, settings, watch)
    return method_of(case, method, scorer, settings, watch)


def placebos_of(case: Case, settings: Settings) -> tuple[Passage, ...]:
    """Unrelated passages of the case's corpus; none where the corpus is gone or the case was imported."""
    if case.corpus is None or case.corpus not in {corpus.name for corpus in list_corpora()}:
        return ()
    passages = Collection.open(case.corpus).snapshot().passages
    return placebos_for(case, passages, settings.occlusion.placebos, settings.occlusion.seed)


def _occlusion(case: Case, scorer: LanguageModel, settings: Settings, watch: Watch | None) -> Analysis:
    return occlusion_of(case, scorer, settings, placebos=placebos_of(case, settings), watch=watch)


def _of_sets(case: Case, scorer: LanguageModel, settings: Settings, watch: Watch | None) -> Analysis:
    return occlusion_of(case, scorer, settings, by_set=True, placebos=placebos_of(case, settings), watch=watch)


def _of_sentences(case: Case, scorer: LanguageModel, settings: Settings, watch: Watch | None) -> Analysis:
    return sentence_occlusion_of(case, scorer, settings, placebos=placebos_of(case, settings), watch=watch)


def _used_supports(case: Case, scorer: LanguageModel, settings: Settings, watch: Watch | None) -> Analysis:
    placebos = placebos_of(case, settings)
    return used_supports_of(case, scorer, load_entailment(), settings, placebos=placebos, watch=watch)


def _drops(case: Case, scorer: LanguageModel, settings: Settings, watch: Watch | None) -> Analysis:
    """The case's Attr-RAG run with the teacher-forced drop of each set."""
    stored = next((analysis for analysis in case.analyses if analysis.id == "attr-rag"), None)
    if stored is None:
        raise AttributionError("This case has no Attr-RAG run. Ask with the method Attr-RAG first.")
    score = scored_by(scorer, case.stamp.model, settings.prompting, watch=watch)
    return replace(stored, result=with_drops(AttrRag.from_dict(stored.result), score).to_dict())


ANALYSES: dict[str, Analyse] = {
    OCCLUSION: _occlusion,
    SETS: _of_sets,
    SENTENCES: _of_sentences,
    TOKEN_MAP: token_map_of,
    FAITHFULNESS: faithfulness_of,
    USED_SUPPORTS: _used_supports,
    DROPS: _drops,
}
