"""Each setting changes what comes out: a run once with a base, and once with one setting more."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from engine.analyses.attribution import placebos_for
from engine.analyses.kind import TOKEN_MAP
from engine.analyses.steps import means_for
from engine.analyses.token_map import TokenMap, check_due
from engine.answer.context import find_context
from engine.answer.in_documents import doubted
from engine.core.progress import Watch, last
from engine.core.settings import Chunking, Decoding, Settings, all_settings
from engine.core.values import Answer
from engine.corpus.collection import Collection
from engine.methods import registry
from engine.methods.are.are import check_answer
from engine.methods.are.event_order import dated_parts
from engine.methods.are.guards import guarded, verdicts_on
from engine.methods.are.tools import Tools
from engine.methods.attr_rag import fill_gaps, select
from engine.methods.faithfulness import Deletion, removable
from engine.methods.occlusion import occlusion
from engine.methods.raise_.solve import solve
from engine.methods.raise_.values import method_of
from engine.methods.refinement.gates import flags_trigger, gradient_rows
from engine.methods.refinement.request import decoding_for
from engine.methods.signals import overlap_threshold
from engine.methods.spans import content_mask
from engine.models.embedder import ScriptedEmbedder
from engine.models.reranker import load_reranker
from engine.models.scripted import ScriptedWriter
from engine.workbench import Workbench
from tests.analysing import analysed
from tests.engine.are.scripted import WordVerifier
from tests.engine.are.test_are import AlwaysContradicting, task
from tests.engine.are.test_guards import READ, SILENT, SUPPORTIVE, doubts, read
from tests.engine.methods.test_on_case import make_case
from tests.engine.raise_.test_solve import PROBLEM, reply
from tests.engine.test_settings import EMBEDDER, RECORD, SCRIPTED, TEXTS, run
from tests.tiny import passages, tiny_answer, tiny_model, tiny_prompt

Values = Mapping[str, Any]
QUESTION = "Who built the bridge?"
BASE = {EMBEDDER: SCRIPTED}

# Shown by a test of their own: what they change takes a longer run or a stopped clock.
ELSEWHERE = {
    "selection.floor": "methods.test_attr_rag:test_what_unrelated_passages_change_as_much_is_said_so_and_can_be_kept",
    "occlusion.proxy": "methods.test_hierarchy:test_a_small_model_names_what_the_large_one_measures",
    "refinement.seeds": "refinement.test_run:test_a_seed_that_a_run_of_a_has_is_taken_by_no_other_condition",
    "refinement.seconds": "refinement.test_run:test_a_condition_that_takes_too_long_is_given_up",
    "verification.row_words": "are.test_are:test_a_fact_without_a_name_is_searched_again_by_its_words",
    "verification.demonstrations": "are.test_examples:test_a_check_shows_as_many_as_its_setting_asks_for",
}
CHUNKS = {"chunking.method": "words", "chunking.words": 6, "chunking.overlap": 9}
EMBEDDED = {"retrieval.embedder": ""}
FOUND = {
    "retrieval.k": 1,
    "retrieval.mode": "bm25",
    "retrieval.documents": ("stones.txt",),
    "retrieval.align_gap": 2,
    "retrieval.keep": 1,
}
RANKED = {"retrieval.reranker": ""}  # the test has the name
POOLED = {"retrieval.rerank_pool": 1}
READER = {"reader.sentences": 1, "reader.close_enough": 1.5, "retrieval.doubt_under": 1.0}
WRITTEN = {
    "retrieval.sentences": 1,
    "prompting.citations": "alce",
    "prompting.refuse_under": 1.0,
    "prompting.demonstrations": 1,
    "decoding.max_new_tokens": 3,
    "decoding.temperature": 3.0,
    "decoding.top_p": 0.05,
    "decoding.seed": 7,
}
SELECTED = {
    "selection.expansion": "neighbour",
    "selection.neighbour_threshold": 0.2,
    "selection.min_metrics": 1,
    "selection.max_share": 0.5,
    "selection.max_gap": 1,
}
ATTRIBUTED = {
    "occlusion.count_citation_markers": True,
    "occlusion.placebos": 0,
    "occlusion.max_sources": 2,
    "occlusion.seed": 5,
    "gradient.target": "log_probability",
    "gradient.integrated_steps": 3,
}
DELETED = {"faithfulness.steps": 2, "faithfulness.rankings": 2, "faithfulness.seed": 3}
CHECKED = {"faithfulness.check_maps": False}
FLAGGED = {
    "refinement.ranked_by": "gradient norm",
    "refinement.trigger": "concentration",
    "gradient.first_tokens": 4,
    "gradient.used_top": 1,
    "gradient.share": 1.0,
}
RATIO = {"gradient.ratio": 0.01}
REFINED = {
    "refinement.demonstrations": 1,
    "refinement.max_new_tokens": 6,
    "refinement.temperature": 0.01,
    "refinement.overlap_threshold": 0.0,
}
BOUNDED = {"refinement.growth": 0.5}
PERCENTILE = {"refinement.overlap_percentile": 10.0, "refinement.overlap_cases": 9}
STEPS = {"reasoning.k": 1, "reasoning.threshold": 0.99, "reasoning.max_steps": 1, "reasoning.demonstrations": 0}
FACTS = {
    "verification.evidence_from": "corpus",
    "verification.passages": 1,
    "verification.keep": 1,
    "verification.rank_by": "similarity",
    "verification.max_iterations": 1,
    "verification.anchored": False,
    "verification.edit": False,
    "verification.atomic": False,
    "verification.molecular": False,
    "verification.re_retrieval": False,
}
GUARDED = {
    "verification.word_for_word": False,
    "verification.sentence_alone": False,
    "verification.names_and_numbers": False,
    "verification.event_order": False,
    "verification.parties": False,
    "verification.roles": False,
    "verification.left_open": False,
}


def without_effect(outcome: Callable[[Values], Any], changes: Values, base: Values = BASE) -> list[str]:
    """The settings that leave what comes out as it is."""
    first = outcome(base)
    assert outcome(base) == first, "the run does not give the same twice, so it shows nothing"
    return [path for path, value in changes.items() if outcome({**base, path: value}) == first]


def settings_of(values: Values) -> Settings:
    return Settings().with_values(values)


@pytest.fixture
def bridges(tmp_path: Path) -> Collection:
    """The four texts, and a document of several passages."""
    lines = [json.dumps({"_id": f"d{i}", "title": f"T{i}", "text": text}) for i, text in enumerate(TEXTS)]
    (tmp_path / "bridges.jsonl").write_text("\n".join(lines))
    (tmp_path / "stones.txt").write_text(STONES)
    made = Collection.create("bridges", ScriptedEmbedder(), Chunking(words=8))
    made.ingest([tmp_path / "bridges.jsonl", tmp_path / "stones.txt"])
    return made


STONES = """Stones

The bridge of Lind has nine arches of stone. Rain fell on the mill for a week. Lind had built three bridges in stone.

Woods

Oak was bought for the piers. Nobody counted the nails.
"""


def test_the_cut_and_the_embedder_change_what_a_corpus_holds(tmp_path: Path) -> None:
    numbered = count()
    (tmp_path / "stones.txt").write_text(STONES)

    def ingested(values: Values) -> Any:
        name = f"stones-{next(numbered)}"
        Workbench(settings_of(values)).ingest([tmp_path / "stones.txt"], name)
        held = Collection.open(name).snapshot()
        return [passage.text for passage in held.passages], held.vectors.tolist()

    assert without_effect(ingested, CHUNKS, {**BASE, "chunking.words": 12}) == []
    assert without_effect(ingested, EMBEDDED) == []


def test_search_and_re_ranking_change_what_is_found(bridges: Collection, folders: tuple[str, str]) -> None:
    def found(values: Values) -> Any:
        how = settings_of(values).retrieval
        context = find_context(QUESTION, bridges, load_reranker(how.reranker), how)
        return [hit.passage.id for hit in context.hits], [
            [p.id for p in kept.passages] for kept in context.sets[: how.keep]
        ]

    def re_ranked(values: Values) -> Any:
        return run("search", QUESTION, "--corpus", "bridges", "-k", "1", "--rerank", settings=dict(values))

    assert without_effect(found, FOUND, {**BASE, "retrieval.k": 4}) == []
    other = {"retrieval.reranker": folders[1]}
    assert without_effect(re_ranked, other) == []
    assert without_effect(re_ranked, POOLED, {**BASE, **other}) == []


def test_the_reader_reads_and_doubts_as_it_is_set(bridges: Collection) -> None:
    def read(values: Values) -> Any:
        bench = Workbench(settings_of(values))
        case = bench.ask("What is the bridge of stone?", "bridges", model="reader")
        return case.answer.text, doubted(case, bench.settings.retrieval)

    assert without_effect(read, READER, {**BASE, "reader.close_enough": 0.1}) == []


def test_prompt_and_decoding_change_what_is_written(bridges: Collection, folders: tuple[str, str]) -> None:
    def written(values: Values) -> Any:
        case = Workbench(settings_of(values)).ask(QUESTION, "bridges", model=folders[0])
        return case.prompt.text if case.prompt else "", case.answer.text

    base = {**BASE, "decoding.max_new_tokens": 8, "decoding.temperature": 1.5, "retrieval.keep": 3}
    assert without_effect(written, WRITTEN, base) == []


def test_the_rules_of_selection_change_what_is_kept() -> None:
    same = (0.50, 0.46, 0.42, 0.30)
    alphas = {"cosine": (0.50, 0.46, 0.42, 0.40), "jaccard": same, "rouge-1": same}
    apart = [replace(p, document="d", ordinal=n) for p, n in zip(passages(2), (0, 3), strict=True)]

    def selected(values: Values) -> Any:
        how = settings_of(values).selection
        filled = fill_gaps(apart, lambda document, ordinal: passages(4)[ordinal], how.max_gap)
        return select(alphas, {}, how).chosen, [passage.id for passage in filled]

    assert without_effect(selected, SELECTED, {"selection.max_gap": 3, "selection.max_share": 1.0}) == []


def test_targets_floors_and_steps_change_attributions() -> None:
    model = tiny_model("llama")
    prompt, answer = tiny_prompt(4), tiny_answer(model)
    whole = ((0, len(answer.text)),)

    def attributed(values: Values) -> Any:
        settings = settings_of(values)
        how = settings.occlusion
        texts = [p.text for p in placebos_for(make_case().passages, passages(5), how.placebos, how.seed)]
        left_out = occlusion(model, prompt, answer, placebos=texts, settings=settings.occlusion)
        rows = [
            registry.method(name, settings).attribute(model, prompt, answer, whole, Watch()).scores
            for name in ("input x gradient", "integrated gradients")
        ]
        return left_out.scores, left_out.placebo_floor, rows

    assert without_effect(attributed, ATTRIBUTED, {}) == []


def test_steps_and_rankings_change_faithfulness() -> None:
    model = tiny_model("llama")
    answer, prompt = tiny_answer(model), model.encode(tiny_prompt(3))
    ids, explained = [token.id for token in answer.tokens], content_mask(answer)

    def deleted(values: Values) -> Any:
        how = settings_of(values).faithfulness
        order = {"text": removable(prompt)}
        deletion = Deletion(model, prompt, ids, explained)
        return deletion.curves(order, how.steps)["text"].abpc, last(deletion.random_abpcs(how))

    assert without_effect(deleted, DELETED, {"faithfulness.steps": 3, "faithfulness.rankings": 3}) == []


def test_a_map_is_checked_where_the_settings_want_it() -> None:
    found = analysed(make_case(), TOKEN_MAP, tiny_model("llama"))
    case = replace(make_case(), analyses=(found,))
    due = lambda values: check_due(case, TokenMap.from_dict(found.result), settings_of(values))  # noqa: E731
    assert without_effect(due, CHECKED, {}) == []


def test_the_rules_of_flags_change_what_is_flagged() -> None:
    model = tiny_model("llama")
    prompt, answer = tiny_prompt(4), tiny_answer(model)

    def flagged(values: Values) -> Any:
        settings = settings_of(values)
        rows = gradient_rows(model, prompt, answer, settings)
        trigger = flags_trigger(rows, "", {1: False, 2: False, 3: False, 4: True}, settings)
        return rows.per_token, trigger.rule, trigger.passages

    assert without_effect(flagged, FLAGGED, {}) == []
    assert without_effect(flagged, RATIO, {"refinement.trigger": "concentration"}) == []


def test_the_settings_of_a_second_pass_change_its_answers(folders: tuple[str, str]) -> None:
    def refined(values: Values) -> Any:
        record = json.dumps({**RECORD, "answer": ""})
        told = json.loads(
            run("refine", "-", "--variants", "A,D", "--model", folders[0], settings=dict(values), stdin=record)
        )
        return [(row["answer"], row["triggered"]) for row in told["variants"].values()]

    def threshold(values: Values) -> float:
        return overlap_threshold([n / 10 for n in range(8)], settings_of(values).refinement).value

    def bound(values: Values) -> int:
        draft = Answer(text="Lind built it. " * 9)
        return decoding_for("D", Decoding(), draft, settings_of(values), "a model").max_new_tokens

    assert without_effect(refined, REFINED, {"refinement.max_new_tokens": 20}) == []
    assert without_effect(bound, BOUNDED, {}) == []
    assert without_effect(threshold, PERCENTILE, {"refinement.overlap_cases": 8}) == []


def test_the_settings_of_steps_change_what_is_read(bridges: Collection) -> None:
    def reasoned(values: Values) -> Any:
        writer, settings, method = ScriptedWriter(reply), settings_of(values), method_of("raise")
        solution = solve(PROBLEM, method, means_for(bridges, writer, settings, method))
        return writer.prompts, [[hit.passage.id for hit in (*step.kept, *step.dropped)] for step in solution.steps]

    assert without_effect(reasoned, STEPS, {"reasoning.threshold": 0.0}) == []


def test_the_settings_of_a_check_change_its_record() -> None:
    def checked(values: Values) -> Any:
        record = check_answer(task(settings=settings_of(values).verification))
        return record.revised, record.facts, record.decomposition

    def ruled(values: Values) -> Any:
        how, fact = settings_of(values).verification, "Ada left Cork in 1990"
        text = "Ada left Cork in 1991."
        dated = dated_parts("It rained.", "Chart of owners, final version issued on 21 August")
        quoted = check_answer(task(fact, (fact,), Tools(AlwaysContradicting()), how))
        several = read("Ada left Cork", "Ada left. She saw Cork. It rained.")
        return (
            quoted.facts,
            verdicts_on([("Ada left Cork", several)], WordVerifier(), how),
            guarded(SUPPORTIVE, read(fact, text), how),
            guarded(SUPPORTIVE, read(READ, SILENT, dated=dated), how),
            guarded(SUPPORTIVE, read("Ada left Cork", "Ada may leave Cork."), how),
            guarded(SUPPORTIVE, read("Ada paid Bo.", "Bo paid Ada."), how),
            doubts("The dentist approved the claim.", settings=how),
        )

    assert without_effect(checked, FACTS, {}) == []
    assert without_effect(ruled, GUARDED, {}) == []


def test_the_tests_elsewhere_exist_and_no_setting_is_missed() -> None:
    for place in ELSEWHERE.values():
        module, _, name = place.partition(":")
        assert callable(getattr(import_module(f"tests.engine.{module}"), name)), place
    shown = {path for changes in HERE for path in changes}
    assert shown | ELSEWHERE.keys() == {setting.path for setting in all_settings()}
    assert not shown & ELSEWHERE.keys()


HERE = (
    CHUNKS, EMBEDDED, FOUND, RANKED, POOLED, READER, WRITTEN, SELECTED, ATTRIBUTED, DELETED, CHECKED, FLAGGED, RATIO,
    REFINED,
    BOUNDED,
    PERCENTILE, STEPS, FACTS, GUARDED,
)  # fmt: skip
