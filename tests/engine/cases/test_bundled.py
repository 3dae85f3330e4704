"""The cases that ship: readable by every page's types, and nothing in them drifts when they are replayed."""

from __future__ import annotations

import gzip
from html import unescape

import pytest
from msgspec.structs import replace

from bench.audited_example import PLANTED
from bench.refinement_kinds import KINDS
from bench.worked_example import CONDITIONS, CORPUS, PROBLEM, QUESTION, WRITER
from engine.analyses.case_verdict import by_machine, case_verdict
from engine.analyses.facts import record_of
from engine.analyses.faithfulness import FaithfulnessReport
from engine.analyses.kind import plain
from engine.analyses.occlusion import PASSAGES, strongest
from engine.analyses.refinement import facts_of, reports_of
from engine.analyses.registry import find
from engine.analyses.steps import KIND
from engine.analyses.token_map import TokenMap
from engine.cases.bundled import AUDITED, EXAMPLE, SOLVED, bundled, take_in
from engine.cases.case_file import read_case_file
from engine.cases.places import leaves
from engine.cases.review import review_of
from engine.cases.store import CaseStore
from engine.core.values import Attribution
from engine.corpus.samples import SAMPLES
from engine.methods.attr_rag import AttrRag
from engine.methods.raise_.threshold import primer
from engine.methods.refinement.run import report_facts
from engine.methods.used_supports import UsedSupports
from engine.report.build import html_report
from tests.analysing import replay_here

READERS = {
    "occlusion": Attribution,
    "attr-rag": AttrRag,
    "token map": TokenMap,
    "faithfulness": FaithfulnessReport,
    "used x supports": UsedSupports,
}


@pytest.fixture
def store(tmp_path):
    return CaseStore(tmp_path / "cases.sqlite")


@pytest.fixture
def case(store):
    take_in(store)
    return store.load(EXAMPLE)


def test_every_page_finds_its_analysis(case):
    assert case.question == QUESTION
    latest = {analysis.kind: analysis for analysis in case.analyses}
    for kind, reader in READERS.items():
        assert reader.from_dict(latest[kind].result).notes is not None
    assert record_of(case).facts
    (report,) = reports_of(case).values()
    assert set(CONDITIONS) <= set(report.refinement.variants)
    assert report.facts == facts_of(case)
    kept = report_facts(report)
    assert [fact.state(fact) for fact in kept["A"]] == ["said"] * len(report.facts)
    _recrystallized, *steps = zip(kept["B"], kept["A"], strict=True)  # B says that it is, and nothing of how
    assert [fact.state(in_a) for fact, in_a in steps] == ["gone"] * len(steps)


def test_its_passages_are_of_documents_of_the_sample(case):
    (sample,) = (sample for sample in SAMPLES if sample.name == CORPUS)
    assert {passage.document for passage in case.passages} <= {path.name for path in sample.documents}


def test_it_is_taken_in_once_and_stays_deleted(store, case):
    take_in(store)
    store.delete(EXAMPLE)
    take_in(store)
    assert EXAMPLE not in {row.id for row in store.rows()}


SECOND_PASSES = sorted(bundled().keys() - {EXAMPLE, AUDITED, SOLVED})


@pytest.mark.parametrize("name", SECOND_PASSES)
def test_a_second_pass_is_what_its_title_says_and_nothing_of_it_drifts(name, store, case):
    found = store.load(name)
    (report,) = reports_of(found).values()
    assert KINDS[found.title](report, found.passages)
    assert found.stamp.seed == report.refinement.stamp.seed and found.id == name
    replayed = replay_here(found)
    assert replayed.count("drifted") == 0
    why = {number.place: number.why for number in replayed.numbers if number.status == "cannot"}
    assert all(WRITER in reason or "embedded" in reason for reason in why.values()), why  # models that are not here


@pytest.mark.parametrize("path", bundled().values(), ids=lambda path: path.name)
def test_every_result_of_a_former_version_is_read_as_the_value_of_its_kind(path):
    """Nothing that was stored is lost in the value."""
    case = read_case_file(gzip.decompress(path.read_bytes())).case
    assert case.analyses
    for analysis in case.analyses:
        held = leaves(plain(find(analysis.kind).read(analysis)))
        assert set(leaves(plain(analysis.result))) <= set(held), analysis.id


def test_the_audited_example_has_planted_errors_mended_a_verdict_of_the_reviewers_own_and_a_signature(store):
    take_in(store)
    case, history = store.load_whole(AUDITED)
    review = review_of(history)
    verdict = case_verdict(case, review)
    assert review.status == "signed off"
    found = {fact.stand for sentence in verdict.sentences for fact in sentence.facts}
    assert {"borne out", "contradicted", "unsure"} <= found
    assert {sentence.state for sentence in verdict.sentences} == {"borne out", "edited"}
    assert verdict.accepted >= 1 and not verdict.undecided and verdict.overridden >= 1
    assert verdict.citations_supported == verdict.citations
    page = unescape(html_report(case, history))
    assert "edited<small>by embedded, probability" in page
    # The first page says the conclusion first, then the facts, then what the machine alone said.
    told = (
        "Stands as edited: signed off by",
        verdict.headline,
        "The machine's verdict, before the review",
        "Final text",
    )
    places = [page.index(words) for words in told]
    assert places == sorted(places)
    assert review.conclusion.machine == by_machine(case).headline
    accepted = [wrong for wrong in PLANTED if wrong not in verdict.text]
    assert accepted and all(PLANTED[wrong] in verdict.text for wrong in accepted)


def test_the_solved_example_has_the_right_option_and_read_the_passages_that_it_takes(store):
    take_in(store)
    (run,) = KIND.of(store.load(SOLVED))
    problem = next(question for question in primer().questions if question.id == PROBLEM)
    assert (run.state, run.method, run.choice) == ("done", "raise", problem.correct)
    assert {step.document for step in problem.gold} <= {p.document for step in run.steps for p in step.passages}


def test_each_sentence_of_the_worked_example_says_which_passage_mattered_most(store):
    take_in(store)
    case = store.load(EXAMPLE)
    found = strongest(case)
    cited = {
        number: {c.number for c in case.answer.citations if s <= c.start < e}
        for number, (s, e) in enumerate(case.answer.sentences, start=1)
    }
    assert found and all(passage in cited[number] for number, (passage, _, _) in found.items())
    assert all(nats > 0 for _, nats, _ in found.values())
    assert strongest(replace(case, analyses=())) == {}


def test_no_passage_mattered_most_where_the_run_was_stopped_before_the_last(store):
    take_in(store)
    case = store.load(EXAMPLE)
    found = PASSAGES.last(case)
    cut = {name: tuple(row[:-1] for row in getattr(found, name)) for name in ("scores", "per_token")}
    details = replace(found.details, alone=(), gained=(), with_markers=())
    stopped = replace(found, sources=found.sources[:-1], details=details, **cut)
    run = replace(next(one for one in case.analyses if one.kind == PASSAGES.name), result=stopped)
    assert strongest(replace(case, analyses=(run,))) == {}
