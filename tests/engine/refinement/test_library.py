"""Refinement of saved cases: saved as it grows, labels from the review, history, quartiles, judgements, facts."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from engine.analyses.kind import Loaders, RunContext, analyse
from engine.analyses.refinement import (
    KIND,
    RefinementOptions,
    facts_of,
    history_of,
    reports_of,
    run_ahead,
    trigger_table,
)
from engine.analyses.said import PAIR, JudgeOptions
from engine.answer.citations import annotate
from engine.cases.review import MarkDraft
from engine.cases.store import CaseStore
from engine.core.errors import Cancelled, InputError
from engine.core.progress import Watch
from engine.core.settings import Settings, setting_labels
from engine.core.values import Analysis, Answer, Case, Stamp
from engine.corpus.collection import Collection
from engine.models.scripted import ScriptedWriter
from engine.studies.on_case import advice_on, labelled_case, library_quartiles, stored_vectors
from tests.analysing import refined
from tests.engine.refinement.refine_cases import QUESTION, NoTrains, passages, purpose, replies, writer
from tests.tiny import tiny_model

SHORT = Settings()
ANSWER = "Hanna Lind built it in 1874 [cite_1]."


@pytest.fixture
def cases(tmp_path):
    return CaseStore(tmp_path / "cases.sqlite")


def save(cases, case_id="c", question=QUESTION, model="imported", text=ANSWER):
    answer = annotate(Answer(text=text), 3)
    case = Case(id=case_id, question=question, passages=passages(), answer=answer, stamp=Stamp(model=model))
    cases.save(case)
    return case


def run(cases, case_id="c", model=None, **options):
    given = {"variants": ("A", "D"), "verifier": NoTrains(), **options}
    return refined(cases, case_id, model or writer(), SHORT, **given)


def test_a_case_is_saved_after_every_condition_and_a_stopped_run_is_gone_on_from(cases):
    save(cases)
    seen = []
    watch = Watch(case=seen.append)

    def reply(text):
        if purpose(text) == "grounding":
            watch.cancel.set()
        return replies()(text)

    with pytest.raises(Cancelled):
        run(cases, model=ScriptedWriter(reply), watch=watch)
    assert [len(next(iter(reports_of(c).values())).refinement.variants) for c in seen] == [1, 2, 2]
    model = writer()
    report = run(cases, model=model)
    assert [purpose(text) for text in model.prompts] == ["grounding"]
    assert reports_of(cases.load("c")) == {"refinement:scripted:written": report}
    assert report.entailments


def test_a_mark_of_a_reviewer_starts_v2c(cases):
    save(cases)
    tiny = tiny_model("llama")
    first = run(cases, variants=("A", "v2c"), scorer=tiny)
    assert first.refinement.variants["v2c"].trigger.rule == "concentration"
    cases.add_mark("c", MarkDraft(kind="relevance", author="Ada", target="passage:2", value="not relevant"))
    assert labelled_case(cases, "c").passages[1].relevant is False
    second = run(cases, variants=("A", "v2c"), scorer=tiny)
    trigger = second.refinement.variants["v2c"].trigger
    assert (trigger.rule, trigger.fired, trigger.passages) == ("labels", True, (2,))
    assert second.refinement.shared["gradient"] == first.refinement.shared["gradient"]  # seconds too: not run again


def test_the_cost_counts_what_another_trigger_would_write_or_set_back(cases):
    save(cases)

    def cost(gate, **options):
        wanted = RefinementOptions(model="scripted", variants=("A", "D"), gate=gate, **options)
        return KIND.cost(cases.load("c"), wanted, SHORT)

    assert cost("always").startswith("up to 3 texts to write")
    assert cost("always", use_answer=True).startswith("up to 2 texts to write")
    report = run(cases, model=writer(A=ANSWER))
    assert report.refinement.variants["D"].outcome == "not triggered"
    assert cost("own") == "every chosen condition is written."
    assert cost("always") == "up to 1 text to write."
    (row, _) = trigger_table(report.refinement, {}, "always", SHORT).rows
    assert "fires (changed since the last run)" in [cell.text for cell in row]
    run(cases, model=writer(A=ANSWER, grounding=ANSWER), gate="always")
    assert cost("always") == "every chosen condition is written."
    ended = "every chosen condition is written, D set back to A, because the trigger does not fire."
    assert cost("own") == ended


TEMPERATURES = ("decoding.temperature", "refinement.temperature")
OTHERWISE = {
    "refinement.temperature": ", ".join(setting_labels()[path] for path in TEMPERATURES),
    "retrieval.sentences": "what the writer reads",
}


def test_the_cost_says_what_other_settings_would_replace_or_decide_anew(cases):
    case = save(cases)
    wanted = RefinementOptions(model="scripted", variants=("A", "C2", "D"))

    def cost(**values):
        return KIND.cost(cases.load("c"), wanted, SHORT.with_values(values))

    run(cases, variants=("A", "C2", "D"))
    assert cost() == "every chosen condition is written."
    assert cost(**{"refinement.seconds": 60.0}) == "every chosen condition is written."
    assert cost(**{"refinement.overlap_threshold": 0.01}).endswith(
        "D set back to A, because the trigger does not fire."
    )
    again = "up to 4 texts to write, 1 of them only if the trigger fires, 2 scored rows for S2. Replaces the stored run"
    for path, value in (
        ("refinement.temperature", 0.2),
        ("decoding.seed", 7),
        ("decoding.top_p", 0.5),
        ("prompting.citations", "alce"),
        ("retrieval.sentences", 1),
    ):
        told = setting_labels().get(path, "") if path.startswith(("decoding", "prompting")) else OTHERWISE[path]
        assert cost(**{path: value}) == f"{again}, which differs in {told}.", path
    (report,) = reports_of(cases.load("c")).values()
    low = SHORT.with_values({"refinement.overlap_threshold": 0.01})
    (row,) = trigger_table(report.refinement, {}, "own", low).rows[:1]
    assert "not under 0.01" in row[3].text
    cases.update("c", lambda stored: replace(stored, question="Who repaired it?"))
    assert cost() == f"{again}, which differs in question, passages or answer."
    assert case.question == QUESTION


def test_the_cost_counts_gradient_rows_that_another_setting_computes_again(cases):
    save(cases)
    run(cases, variants=("A", "v2c"), scorer=tiny_model("llama"))

    def cost(**values):
        options = RefinementOptions(model="scripted", variants=("A", "v2c"))
        return KIND.cost(cases.load("c"), options, SHORT.with_values(values))

    assert "passes" not in cost()
    assert "1 forward and 5 backward passes for the flags" in cost(**{"gradient.first_tokens": 4})


def test_a_condition_with_nothing_to_name_is_not_ahead_until_a_label_changes_it(cases):
    case = save(cases)
    cases.save(replace(case, passages=tuple(replace(p, relevant=True) for p in case.passages)))
    report = run(cases, variants=("A", "v2a"), gate="always", scorer=tiny_model("llama"))
    assert report.refinement.variants["v2a"].outcome == "not applicable"
    wanted = RefinementOptions(model="scripted", variants=("A", "v2a"), gate="always")
    assert run_ahead(cases.load("c"), wanted, SHORT).writes == []
    cases.add_mark("c", MarkDraft(kind="relevance", author="Ada", target="passage:2", value="not relevant"))
    assert run_ahead(labelled_case(cases, "c"), wanted, SHORT).writes == ["v2a"]


def test_the_threshold_reads_the_library_from_twenty_cases_on(cases):
    for number in range(19):
        save(cases, f"c{number}", model="scripted")
    threshold = run(cases, "c0").refinement.threshold
    assert (threshold.n, threshold.value, threshold.rule[:19]) == (19, 0.75, "fixed until there a")
    save(cases, "c19", model="scripted", text="Lind loved trains.")
    found = history_of(cases, "scripted")
    assert len(found) == 20
    assert min(found) == pytest.approx(1 / 3)
    assert run(cases, "c0").refinement.threshold.n == 20


def test_quartiles_over_the_library_take_the_ungated_runs(cases):
    drafts = ("Lind loved trains [cite_1].", "Lind built trains [cite_1].", "Hanna Lind built trains [cite_1].", ANSWER)
    for number, draft in enumerate(drafts):
        save(cases, f"c{number}", question=f"{QUESTION} {number}")
        run(cases, f"c{number}", writer(A=draft, grounding=ANSWER), gate="always")
    found = library_quartiles(cases)
    assert [q.gain for q in found.quartiles] == [1, 1, 1, 0]
    assert [round(q.s3_low, 2) for q in found.quartiles] == [0.33, 0.67, 0.75, 1.0]


def test_gated_runs_are_not_counted(cases):
    for number in range(4):
        save(cases, f"c{number}", question=f"{QUESTION} {number}")
        run(cases, f"c{number}")
    with pytest.raises(InputError, match="at least 4 questions, but there are 0"):
        library_quartiles(cases)


def test_a_judgement_is_kept_with_its_raw_replies(cases):
    save(cases)
    run(cases)
    judge = ScriptedWriter(["Verdict: Y", "Verdict: X"], name="judge")
    context = RunContext(tools=Loaders(writer=lambda name: judge))
    (found,) = PAIR.of(analyse(cases, "c", PAIR, JudgeOptions(judge="judge", x="A", y="D"), context))
    assert found.judgement.winner == "y"
    kept = next(a for a in cases.load("c").analyses if a.kind == "judgement")
    assert (kept.stored()["x"], kept.stored()["y"]) == ("A", "D")
    assert kept.stored()["judgement"]["raw"] == ["Verdict: Y", "Verdict: X"]


def test_facts_of_this_very_answer_are_followed(cases):
    from engine.methods.are.values import AreRecord, Clause, Decomposition, Fact, FactRecord

    case = save(cases)
    fact = Fact(text="Lind built it.", made_by="rules")
    record = AreRecord(
        question=QUESTION,
        answer=ANSWER,
        revised=ANSWER,
        decomposition=Decomposition(clauses=(Clause(start=0, end=4, text="Hann", facts=(fact,)),), made_by="rules"),
        facts=(FactRecord(clause=0, fact=fact),),
        edits=(),
        report=None,
        verifier="v",
        editor="rules",
        decomposer="rules",
        evidence_from="case",
        max_iterations=1,
    )
    analysis = Analysis(id="facts", kind="facts", stamp=Stamp(model="v"), result=record.to_dict())
    with_facts = replace(case, analyses=(analysis,))
    assert facts_of(with_facts) == (("Lind built it.", "not checked"),)
    assert facts_of(replace(with_facts, answer=Answer(text="Another."))) == ()
    assert facts_of(case) == ()


def test_advice_on_a_case_without_its_corpus_compares_words(cases):
    case = save(cases)
    found = advice_on(case.question, case.passages, case.hits, "gone", s3=0.5)
    sentence = next(p.sentence for p in found.proxies if p.name == "similarity of passages")
    assert "share" in sentence


def test_a_passage_that_lost_an_overlap_has_the_vector_of_the_whole(sample_home):
    snapshot = Collection.open("bench-chemistry").snapshot()
    whole = snapshot.passages[3]
    cut = replace(whole, id=f"{whole.id}+21", start=whole.start + 21, text=whole.text[21:])
    assert (stored_vectors("bench-chemistry", (cut,)) == snapshot.vectors[3:4]).all()
    assert stored_vectors("bench-chemistry", (whole, cut)) is None, "two pieces of one passage"
