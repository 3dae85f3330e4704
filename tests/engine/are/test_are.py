from __future__ import annotations

import json
import re

import numpy as np
import pytest
from msgspec.structs import replace
from rapidfuzz.distance import Levenshtein

from engine.analyses.facts import KIND, FactsOptions, _decomposed, record_of
from engine.analyses.kind import Loaders, RunContext, examine, options_of
from engine.core.progress import Watch
from engine.core.settings import Settings, Verification
from engine.core.values import Answer, Case, Passage, Stamp
from engine.corpus.collection import Collection
from engine.methods.are.are import check_answer, checking, deciding, measures
from engine.methods.are.backtrack import clause_evidence, revised
from engine.methods.are.evidence import Sources, find_evidence
from engine.methods.are.guards import COPIED
from engine.methods.are.tools import Task, Tools
from engine.methods.are.values import AreRecord, Check, Evidence, Fact, FactRecord, Iteration, Ruling
from engine.models.embedder import ScriptedEmbedder
from engine.models.protocols import Judged
from engine.models.scripted import ScriptedWriter
from tests.engine.are.scripted import WordVerifier
from tests.stopping import before_the_stop, stop_at

ANSWER = "The bridge opened in 1932 and it cost 5 million. Whales sing loudly."
GIVEN = ("The bridge opened in 1934.", "In all the bridge cost 5 million and it shows.", "Rain fell all day.")


def passage(number, text):
    return Passage(id=f"d{number}", document=f"d{number}", title="", ordinal=0, start=0, end=len(text), text=text)


def sources(texts=GIVEN):
    return Sources(embedder=ScriptedEmbedder(256), case=tuple(passage(i, t) for i, t in enumerate(texts)))


def task(answer=ANSWER, texts=GIVEN, tools=None, settings=None):
    return Task(
        "What of the bridge?", answer, sources(texts), tools or Tools(WordVerifier()), settings or Verification()
    )


def context(verifier, settings=None):
    tools = Loaders(embedder=lambda name: ScriptedEmbedder(256), verifier=lambda name: verifier)
    return RunContext(settings or Settings(), tools)


def run(answer=ANSWER, texts=GIVEN, settings=None, tools=None, watch=Watch()):
    return check_answer(task(answer, texts, tools, settings), watch)


@pytest.mark.parametrize(
    ("answer", "asked"),
    [
        (ANSWER, {"The bridge opened in 1932.", "it cost 5 million.", "Whales sing loudly."}),
        ("The bridge opened in 1934. [1]", {"The bridge opened in 1934."}),
        ("The bridge opened in 1934", {"The bridge opened in 1934"}),
    ],
)
def test_a_fact_is_judged_as_a_sentence_where_the_answer_is_written_in_sentences(answer, asked):
    verifier = WordVerifier()
    record = run(answer, tools=Tools(verifier), settings=Verification(edit=False))
    assert {claim for claim, _ in verifier.pairs} >= asked
    bare = {fact.fact.text for fact in record.facts} - asked
    assert not bare & {claim for claim, _ in verifier.pairs}


def test_the_papers_figure_supportive_edited_and_nothing_found():
    record = run()
    assert [(r.fact.text, r.outcome) for r in record.facts] == [
        ("The bridge opened in 1932", "edited"),
        ("it cost 5 million", "supported"),
        ("Whales sing loudly", "unsettled"),
    ]
    assert record.revised == "The bridge opened in 1934 and it cost 5 million. Whales sing loudly."
    assert [(e.old, e.new, e.status, e.evidence.number) for e in record.edits] == [
        ("1932", "1934", "placed", 1),
        ("Whales sing loudly.", "", "suggestion", 1),
    ]
    assert record.facts[0].edit.ruling.verdict == "supportive"
    assert record.facts[1].supported_by_case is True
    assert record.facts[1].supported_by_corpus is None
    assert [len(r.iterations) for r in record.facts] == [1, 1, 3]
    assert AreRecord.from_dict(record.to_dict()) == record


def settles_nothing(*relevances):
    """A round whose checks all say irrelevant; the most relevant of them decides."""
    found = tuple(Evidence(text=f"{value}", source="corpus", relevance=value) for value in relevances)
    ruling = Ruling(verdict="irrelevant", by="someone", note="")
    checks = tuple(Check(evidence=place, ruling=ruling) for place in range(len(found)))
    return Iteration(queries=("q",), considered=found, checks=checks, decided=deciding(checks, found))


def test_where_nothing_settles_a_fact_the_most_relevant_evidence_of_all_rounds_is_shown():
    fact = Fact(text="Whales sing loudly", made_by="rules")
    rounds = (settles_nothing(0.3, 0.6), settles_nothing(0.4), settles_nothing(0.2), Iteration(queries=("q",)))
    record = FactRecord(clause=0, fact=fact, iterations=rounds, outcome="unsettled")
    assert (record.shown, record.evidence.text) == (rounds[0], "0.6")
    assert replace(record, outcome="supported").shown == rounds[2]
    # E_i of the attribution report stays the evidence of the last round.
    assert [one.text for one in clause_evidence([record], 0)] == ["0.2"]


def test_a_sentence_that_nothing_speaks_of_stays_unless_the_reader_accepts_its_deletion():
    record = run()
    mend, deletion = record.edits
    assert "Whales" in record.revised
    assert revised(ANSWER, record.edits, {deletion.id}) == "The bridge opened in 1932 and it cost 5 million."
    assert revised(ANSWER, record.edits, {mend.id, deletion.id}) == "The bridge opened in 1934 and it cost 5 million."
    half = run("The bridge cost 5 million and whales sing loudly.")
    assert all(edit.new for edit in half.edits)


class Doubting(WordVerifier):
    """Contradicts with the first passage, as surely as told, and supports with any other at 0.5."""

    def __init__(self, sure):
        super().__init__()
        self.against = Judged("editing_required", {"supportive": 0.0, "editing_required": sure, "irrelevant": 1 - sure})

    def judge(self, pairs, watch=Watch()):
        unsure = Judged("supportive", {"supportive": 0.5, "editing_required": 0.3, "irrelevant": 0.2})
        return [self.against if text == GIVEN[0] else unsure for _, text in pairs]


@pytest.mark.parametrize("sure", [0.9, 0.55, 0.01])
def test_no_passage_of_a_later_round_undoes_a_contradiction(sure):
    fact, bare = "The bridge opened in 1932.", Verification(keep=1, names_and_numbers=False, anchored=False)
    (record,) = run(fact, tools=Tools(Doubting(sure)), settings=bare).facts
    assert [len(done.checks) for done in record.iterations] == [1, 1, 1]
    assert (record.outcome, record.evidence.text) == ("contradicted", GIVEN[0])
    # Without edits there is nothing to search for again (ARE, 4.3: irrelevant facts alone are).
    (once,) = run(fact, tools=Tools(Doubting(sure)), settings=replace(bare, edit=False)).facts
    assert (once.outcome, len(once.iterations)) == ("contradicted", 1)


class AlwaysContradicting(WordVerifier):
    """Calls every claim contradicted."""

    def _verdict(self, claim, evidence):
        return "editing_required"


def test_a_contradiction_by_a_passage_with_few_of_the_words_is_shown_unsure_and_edits_nothing():
    record = run(
        "Alcohol is paid up to 20 pounds a day.", ("Alcohol is not paid.",), tools=Tools(AlwaysContradicting())
    )
    (fact,) = record.facts
    assert (fact.outcome, fact.ruling.unsure, fact.edit) == ("contradicted", True, None)
    (deletion,) = record.edits
    assert (deletion.status, deletion.new) == ("suggestion", "")


@pytest.mark.parametrize(
    ("answer", "left"),
    [
        ("The bridge, which sang loudly of whales, opened in 1934.", "The bridge opened in 1934."),
        ("The bridge opened in 1934, and in spring it sang [cite_1].", "The bridge opened in 1934 [cite_1]."),
    ],
)
def test_an_aside_that_nothing_speaks_of_can_go_by_itself(answer, left):
    record = run(answer)
    (deletion,) = [edit for edit in record.edits if not edit.new]
    assert (record.revised, deletion.status) == (answer, "suggestion")
    assert revised(answer, record.edits, {deletion.id}) == left


def test_the_passage_that_a_clause_cites_is_checked_however_unlike_it_is():
    texts = [*(f"The bridge cost {n} million, a lot." for n in range(12)), "Iron rusts."]
    answer = "The bridge cost 40 million [13]."
    looked = run(answer, texts, Verification(max_iterations=1)).facts[0].iterations[0].considered
    assert len(looked) == 11
    assert looked[-1].number == 13
    assert len(run(answer, texts, Verification(anchored=False)).facts[0].iterations[0].considered) == 10


def test_facts_shown_are_facts_extracted_and_every_round_is_kept():
    record = run()
    extracted = [f.text for clause in record.decomposition.clauses for f in clause.facts]
    assert [r.fact.text for r in record.facts] == extracted
    unsettled = record.facts[2]
    assert unsettled.iterations[0].queries == ("Whales sing loudly",)
    assert len(unsettled.iterations[1].queries) == 2
    assert all("Whales sing loudly" not in e.new for e in record.edits)


def test_a_fact_without_a_name_is_searched_again_by_its_words():
    for row_words, query in ((True, "The 126 31 whales sing times calves"), (False, "The 126 31")):
        answer, settings = "The whales sing 126 times to 31 calves.", Verification(keep=1, row_words=row_words)
        (fact,) = run(answer, settings=settings, tools=Tools(WordVerifier())).facts
        assert fact.iterations[1].queries[0] == query


def test_an_expansion_only_searches_the_fact_itself_is_judged():
    verifier = WordVerifier()
    writer = ScriptedWriter(["songs of whales\nwhale noise"])  # asked once: it would say the same again
    run("Whales sing loudly.", settings=Verification(keep=1), tools=Tools(verifier, expander=writer))
    judged_claims = {claim for claim, _ in verifier.pairs}
    assert judged_claims == {"Whales sing loudly."}


def test_both_phrases_of_an_expansion_and_what_each_found_are_kept():
    texts = ("Iron rusts in rain.", "The choir sang songs of praise.", "Loud noise harms the ear.")
    writer = ScriptedWriter(["choir songs\nloud noise"])
    settings = Verification(keep=1, passages=1, anchored=False)
    first, again, *_ = (
        run("Iron rusts quickly abroad.", texts, settings, Tools(WordVerifier(), expander=writer)).facts[0].iterations
    )
    assert [one.number for one in first.found_with(0)] == [1]
    assert again.queries == ("choir songs", "loud noise")
    found = {n for query in (0, 1) for n in (one.number for one in again.found_with(query))}
    assert found and found <= {2, 3}
    assert again.considered[0].number in {2, 3}


@pytest.mark.parametrize(("switch", "rounds", "text"), [
    ({"edit": False}, 3, ANSWER),
    ({"re_retrieval": False}, 1, ANSWER.replace("1932", "1934")),
    ({"max_iterations": 1}, 1, ANSWER.replace("1932", "1934")),
])  # fmt: skip
def test_ablations_are_switches(switch, rounds, text):
    record = run(settings=Verification(**switch))
    assert record.revised == text
    assert max(len(r.iterations) for r in record.facts) == rounds


def test_without_molecular_clauses_the_edited_facts_joined_are_the_revised_answer():
    record = run("The bridge opened in 1932 and it cost 5 million.", settings=Verification(molecular=False))
    assert [clause.text for clause in record.decomposition.clauses] == [f"{fact.fact.text}" for fact in record.facts]
    assert record.checked == "The bridge opened in 1932. It cost 5 million."
    assert record.revised == "The bridge opened in 1934. It cost 5 million."
    assert all(record.checked[c.start : c.end] == c.text for c in record.decomposition.clauses)
    assert record.report.after.pres == pytest.approx(
        1 - Levenshtein.distance(record.answer, record.revised) / len(record.answer)
    )
    assert record.report.after.pres < run("The bridge opened in 1932 and it cost 5 million.").report.after.pres
    assert revised(record.checked, record.edits) == record.revised
    assert AreRecord.from_dict(record.to_dict()) == record


def test_without_molecular_clauses_a_fact_is_read_in_its_own_sentence():
    answer = "The old iron bridge rose in 1940, fell in 1950 and sank in 1960. Rain fell all day."
    judged = run(answer, ("Rain fell all day.", "The bridge sank in 1970."), Verification(molecular=False))
    copied = {record.fact.text for record in judged.facts if record.ruling and record.ruling.by == COPIED}
    assert copied == {"Rain fell all day."}


def test_without_molecular_clauses_lost_markers_are_no_change():
    marked, bare = "Whales sing loudly [cite_1].", "Whales sing loudly."
    settings = Verification(molecular=False)
    assert run(marked, settings=settings).report.after.pres == run(bare, settings=settings).report.after.pres == 1


def test_a_search_with_the_clauses_names_leaves_out_its_citation_markers():
    record = run("Whales sing loudly [cite_1].", settings=Verification(keep=1))
    assert record.facts[0].iterations[2].queries == record.facts[0].iterations[1].queries


def test_evidence_can_be_ranked_by_similarity_alone():
    texts = ("Whales whales whales.", "Whales sing loudly and so do many others of the deep blue sea.")
    by = {how: run("Whales sing loudly.", texts, Verification(rank_by=how)) for how in ("relevance", "similarity")}
    for how, record in by.items():
        seen = record.facts[0].iterations[0].considered
        if how == "similarity":
            assert [one.relevance for one in seen] == [one.score for one in seen]
            assert [one.score for one in seen] == sorted((one.score for one in seen), reverse=True)
    assert by["relevance"].facts[0].iterations[0].considered != by["similarity"].facts[0].iterations[0].considered


def test_without_atomic_facts_each_clause_is_one():
    assert [r.fact.text for r in run(settings=Verification(atomic=False)).facts][1] == "Whales sing loudly."


def test_nothing_to_check_against_is_said_and_counted():
    record = run(texts=())
    assert {r.outcome for r in record.facts} == {"no evidence"}
    assert (record.report.after.attr_r, record.report.after.attr_p, record.report.after.pres) == (0, 0, 1)
    assert "no evidence to check against" in record.notes[0]


def test_an_empty_answer_has_a_record_without_facts():
    record = run("  ")
    assert (record.facts, record.edits, record.report.after.clauses) == ((), (), 0)


def test_replies_of_a_judge_that_cannot_be_parsed_are_an_outcome():
    record = run("Whales sing.", tools=Tools(WordVerifier(), judge=ScriptedWriter(lambda _: "Perhaps.")))
    assert [r.outcome for r in record.facts] == ["unparsed"]
    assert record.facts[0].iterations[0].exchanges[0].reply == "Perhaps."


def test_both_verifiers_side_by_side():
    tools = Tools(WordVerifier(), judge=ScriptedWriter(lambda _: "So it says.\nagrees", name="lm"), both=True)
    check = run("Whales sing.", tools=tools).facts[0].iterations[0].check
    assert (check.ruling.by, check.second.by, check.second.verdict) == ("word table", "lm", "supportive")


def test_a_clause_verdict_of_the_verifier_undoes_no_edit_of_a_language_model_that_judges_alone():
    class Against(WordVerifier):
        def _verdict(self, claim, evidence):
            return "editing_required" if "1991" in claim else "irrelevant"

    def said(prompt):
        if prompt.startswith("You correct"):
            return "It has 1991, not 1990.\nAnn won in 1991."
        return "agrees" if "Fact: Ann won in 1991" in prompt else "disagrees"

    alone = Tools(Against(), judge=ScriptedWriter(said, name="lm"), editor=ScriptedWriter(said, name="lm"))
    assert run("Ann won in 1990.", ("Ann won in 1991.",), tools=alone).revised == "Ann won in 1991."


def test_cancel_gives_back_what_was_finished():
    record = before_the_stop(checking(task(), stop_at(0, "edits into clauses")))[-1]
    assert [r.outcome for r in record.facts] == ["edited", "supported", "unsettled"]
    assert not record.finished


def test_the_surest_verdict_decides():
    def check(verdict, p=None, lowered=False, lacking=()):
        scores = {} if p is None else {verdict: p}
        ruling = Ruling(verdict=verdict, by="", note="", scores=scores, lowered=lowered, lacking=lacking)
        return Check(evidence=0, ruling=ruling)

    def decided(*checks, relevance=(0.5, 0.5, 0.5)):
        placed = [replace(check, evidence=place) for place, check in enumerate(checks)]
        return deciding(placed, [Evidence(text="", source="case", relevance=r) for r in relevance])

    assert decided(check("editing_required", 0.6), check("supportive", 0.9), check("irrelevant", 1)) == 1
    assert decided(check("editing_required", 0.9), check("supportive", 0.6), check("irrelevant", 1)) == 0
    assert decided(check("editing_required", 0.9), check("supportive", 0.6), relevance=(0.5, 0.8)) == 1
    assert decided(check("editing_required", 0.9, lowered=True), check("supportive", 0.6)) == 1
    on_another = check("editing_required", 0.9, lowered=True, lacking=("Ada",))
    assert decided(on_another, check("supportive", 0.4, lowered=True)) == 1
    assert decided(on_another, check("irrelevant", 0.9)) == 0  # a guard hides no contradiction
    assert decided(check("editing_required"), check("supportive"), check("unparsed")) == 1
    assert decided(check("unparsed"), check("irrelevant", 0.9)) == 1
    assert decided() is None


def test_measures_on_a_fixed_entailment_table():
    # Clause 0: best 0.9 from its own E; clause 1: best 0.6 from E_0, its own 0.4 is no entailment.
    matrix = np.array([[0.9, 0.6], [0.1, 0.4]])
    found = measures(matrix, "abcdef", "abXdef!", "v")
    assert found.attr_r == pytest.approx(0.75)
    assert found.attr_p == pytest.approx(0.5)
    assert found.pres == pytest.approx(1 - Levenshtein.distance("abcdef", "abXdef!") / 6)
    assert found.f1_rp == pytest.approx(2 * 0.75 * found.pres / (0.75 + found.pres))
    assert found.f1_pp == pytest.approx(2 * 0.5 * found.pres / (0.5 + found.pres))


def test_the_report_pairs_each_clause_with_its_own_evidence_once():
    report = run().report
    assert [len(c.evidence) for c in report.clauses] == [2, 1]
    assert report.clauses[0].joined == f"{GIVEN[0]}\n{GIVEN[1]}"
    assert report.before.pres == 1
    assert report.after.pres == pytest.approx(1 - 1 / len(ANSWER))


def test_every_role_is_named_and_the_judge_decides_next_to_the_verifier_or_alone():
    loaders = Loaders(writer=lambda name: ScriptedWriter([], name=name), verifier=lambda name: WordVerifier())
    second = options_of(KIND, ["judge=j"]).load(loaders)
    assert (second.judge.name, second.measured, second.editor) == ("j", True, None)
    alone = options_of(KIND, ["judge=j", "editor=e", "expander=x", "decomposer=d", "both=false"]).load(loaders)
    assert [one.name for one in (alone.judge, alone.editor, alone.expander, alone.decomposer)] == ["j", "e", "x", "d"]
    assert not alone.measured
    whole = FactsOptions(verifier="lm:m", judge="j", editor="rules")
    assert whole.spelled_out == FactsOptions(judge="m", editor="rules", expander="m", both=False)
    assert whole.load(loaders).editor is None


def test_a_case_gets_an_analysis_that_reads_back():
    case = Case(
        id="c",
        question="What of the bridge?",
        passages=sources().case,
        answer=Answer(text=ANSWER),
        stamp=Stamp(model="m"),
    )
    case = examine(case, KIND, FactsOptions(), context(WordVerifier()))
    (analysis,), record = case.analyses, record_of(case)
    assert record.revised.startswith("The bridge opened in 1934")
    assert analysis.kind == "facts"
    assert analysis.stamp.inputs


def test_a_case_passage_that_the_corpus_holds_too_speaks_for_the_corpus(tmp_path):
    (tmp_path / "bridge.txt").write_text("The bridge opened in 1934.")
    corpus = Collection.create("bridges", ScriptedEmbedder(256))
    corpus.ingest([tmp_path / "bridge.txt"])
    given = corpus.snapshot().passages
    both = Sources(embedder=ScriptedEmbedder(256), case=given, collection=corpus)
    record = check_answer(Task("When?", "The bridge opened in 1934.", both, Tools(WordVerifier())))
    (fact,) = record.facts
    assert [one.source for done in fact.iterations for one in done.considered] == ["case"]
    assert (fact.supported_by_case, fact.supported_by_corpus) == (True, True)


WRAPPED = (
    "Terms\n\nThe second part of the sum was paid by the National\nBank of Ostrel to the builder of the bridge on 3\n"
    "March 1934, all in one."
)


def test_a_passage_with_wrapped_lines_is_read_and_quoted_as_one_with_none():
    fact = "The National Bank of Ostrel paid the second part on 3 March 1934."
    record = run(answer=fact, texts=(WRAPPED,))
    evidence = record.facts[0].evidence
    assert "National Bank of Ostrel" in evidence.text and "on 3 March 1934" in evidence.text
    assert len(evidence.text) == len(WRAPPED) and evidence.text.startswith("Terms\n\nThe")
    assert all(not r.ruling.lacking for f in record.facts for done in f.iterations for r in done.checks)


class Counting(WordVerifier):
    """Counts what it is asked."""

    asked = 0

    def judge(self, pairs, watch=Watch()):
        self.asked += len(pairs)
        return super().judge(pairs, watch)


@pytest.mark.parametrize("rounds", [1, 3])
def test_the_cost_said_before_a_check_covers_what_it_takes(rounds):
    """Thirteen passages, of which ten a fact are read to be ranked and at most four are checked."""
    texts = tuple(f"Passage {n} tells of bridge {n}, opened in {1900 + n}." for n in range(13))
    settings = Settings(verification=Verification(max_iterations=rounds, evidence_from="case", edit=False))
    given = Case(
        id="c",
        question="When?",
        passages=tuple(passage(i, t) for i, t in enumerate(texts)),
        answer=Answer(text="The bridge opened in 1932 and it cost 5 million."),
        stamp=Stamp(model="m"),
    )
    said = KIND.cost(given, FactsOptions(), settings)
    taken = _decomposed.cache_info().misses
    assert KIND.cost(given, FactsOptions(), settings) == said and _decomposed.cache_info().misses == taken
    checked, read = (int(number.replace(",", "")) for number in re.findall(r"([\d,]+) (?:verdict|sentence)", said))
    verifier = Counting()
    found = record_of(examine(given, KIND, FactsOptions(), context(verifier, settings)))
    ran = sum(len(done.checks) for fact in found.facts for done in fact.iterations)
    ranked = sum(len(done.considered) for fact in found.facts for done in fact.iterations)
    assert (checked, read) == (2 * rounds * 4, 2 * rounds * 10)
    assert ran <= checked and ranked <= read
    if rounds == 1:
        assert ranked == read and verifier.asked >= ran + ranked


@pytest.mark.parametrize(("mode", "first"), [("dense", "often"), ("hybrid", "often"), ("bm25", "rare")])
def test_the_corpus_is_searched_in_the_mode_of_the_settings(mode, first, tmp_path, monkeypatch):
    monkeypatch.setenv("GROUNDWORK_HOME", str(tmp_path / "home"))
    texts = {
        "often": "Harbour harbour harbour fees",
        "rare": "The harbour report names many stones, among them zircon, granite, slate, basalt and marble.",
        **{f"dues {year}": f"Harbour dues of year {year} rose" for year in range(8)},
    }
    embedder = ScriptedEmbedder(512)
    corpus = Collection.create("harbour", embedder)
    path = tmp_path / "harbour.jsonl"
    path.write_text("\n".join(json.dumps({"_id": name, "title": "", "text": text}) for name, text in texts.items()))
    corpus.ingest([path])
    asked = ["Harbour zircon"]
    ((found,),) = find_evidence(asked, [asked], Sources(embedder, (), corpus, mode), Verification(passages=1))
    assert found.document == first


def test_what_is_said_of_the_documents_is_not_checked():
    found = run("The bridge opened in 1934. The passages do not mention who built it. Toll: not stated")
    assert [fact.outcome for fact in found.facts] == ["supported", "not checked", "not checked"]
    assert found.finished
