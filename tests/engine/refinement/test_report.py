"""A case's report holds enough to score again with other labels and to resume a run."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from engine.analyses.refinement import analysis_of, reports_of
from engine.answer.citations import annotate
from engine.core.settings import Settings
from engine.core.values import Answer, Case, Stamp
from engine.methods.refinement.conditions import Request
from engine.methods.refinement.run import RefinementReport, assessed, refine, report_scores
from engine.methods.signals import overlap_history, scores_of
from engine.models.scripted import ScriptedWriter
from tests.engine.refinement.refine_cases import DRAFT, QUESTION, passages, writer


class Verifier:
    """Entails where the claim's first word is in the evidence; counts what it is asked."""

    name = "first word"

    def __init__(self):
        self.asked = []

    def judge(self, pairs, watch=None):
        raise AssertionError("not used")

    def entailment(self, pairs, watch=None):
        self.asked += pairs
        return np.array([float(claim.split()[0] in evidence) for claim, evidence in pairs], dtype=np.float32)


def case(text="Hanna Lind built it in 1874 [cite_1].", labels=(None, None, None), model="scripted"):
    return Case(
        id="c",
        question=QUESTION,
        passages=passages(labels),
        answer=annotate(Answer(text=text), 3),
        stamp=Stamp(model=model),
        corpus="bridges",
    )


def run(verifier, labels=(None, None, None)):
    given = case(labels=labels)
    value = refine(Request(given, writer(), Settings(), variants=("A", "C2", "D")))
    return given, assessed(RefinementReport(refinement=value), given.passages, verifier)


def test_scores_from_what_is_kept_equal_scores_with_the_verifier_under_any_labels():
    verifier = Verifier()
    _, report = run(verifier)
    asked = len(verifier.asked)
    for labels in ((None, None, None), (True, False, None), (False, True, True)):
        found = report_scores(report, passages(labels))
        for name, variant in report.refinement.variants.items():
            assert found[name] == scores_of(
                variant.answer, passages(labels), lambda pairs: verifier.entailment(pairs), ()
            )
    assert asked == len(set(verifier.asked))


def test_the_verifier_is_not_asked_twice():
    verifier = Verifier()
    given, report = run(verifier)
    asked = len(verifier.asked)
    assert asked > 0
    assert assessed(report, given.passages, verifier) == report
    assert len(verifier.asked) == asked


def test_an_answer_that_was_not_judged_has_its_other_scores():
    _, report = run(Verifier())
    bare = replace(report, entailments={})
    assert report_scores(bare, passages())["A"].citation_precision is None
    assert report_scores(bare, passages())["A"].words > 0


def test_a_report_comes_back_from_the_case_and_is_gone_on_from():
    given, report = run(Verifier())
    analysis = analysis_of(given, report, use_answer=False)
    found = reports_of(replace(given, analyses=(analysis,)))
    assert found == {"refinement:scripted:written": report}
    more = writer()
    value = refine(Request(given, more, Settings(), variants=("C1",)), report.refinement)
    assert len(more.prompts) == 1
    assert set(value.variants) == {"A", "B", "C1", "C2", "D"}


def test_the_cases_own_answer_can_be_a():
    value = refine(Request(case("Given."), writer(), Settings(), variants=("A",), use_answer=True))
    assert value.baseline.text == "Given."
    assert refine(Request(case("Given."), writer(), Settings(), variants=("A",))).baseline.text == DRAFT


def test_the_history_is_of_the_models_own_finished_answers():
    cases = [case(), case(model="other"), case(text=""), case("Lind loved trains.")]
    refusal = case("The passages do not say.")
    cases.append(replace(refusal, answer=replace(refusal.answer, refused=True)))
    assert overlap_history(cases, "scripted") == pytest.approx((4 / 4, 1 / 3))


def test_the_demonstrations_are_of_another_set():
    from engine.answer.prompt import demonstrations, worked_examples

    assert len(demonstrations()) >= 3
    assert all(len(d.passages) == 2 for d in demonstrations())
    own = demonstrations()[0]
    for shown in (
        worked_examples(2, "Who built the bridge?", "[{}]", own.set),
        worked_examples(2, own.question, "[{}]"),
    ):
        assert len(shown) == 4 and not any(own.question in segment.text for segment in shown)


def test_a_stored_report_of_another_prompt_is_not_used():
    given, report = run(Verifier())
    other = replace(given, question="Who repaired the bridge?")
    model = ScriptedWriter(writer().replies)
    refine(Request(other, model, Settings(), variants=("A",)), report.refinement)
    assert len(model.prompts) == 2


def test_the_facts_of_a_are_followed_into_every_condition():
    from engine.analyses.refinement import report_facts

    given = case()
    value = refine(Request(given, writer(C2="Lind built it [cite_1]."), Settings(), variants=("A", "C2")))
    facts = (("Hanna built it.", "supportive"), ("Lind built it.", "irrelevant"))
    verifier = Verifier()
    report = assessed(RefinementReport(refinement=value, facts=facts), given.passages, verifier)
    found = report_facts(report)
    assert [(k.fact, k.kept) for k in found["A"]] == [("Hanna built it.", 1.0), ("Lind built it.", 1.0)]
    assert [(k.verdict, k.kept) for k in found["C2"]] == [("supportive", 0.0), ("irrelevant", 1.0)]
    assert report_facts(replace(report, entailments={})) == {}


def copying():
    """C2 repeats its request; D revises."""
    request = refine(Request(case(), writer(), Settings(), variants=("A", "C2"))).variants["C2"].turns[-1].prompt
    return refine(Request(case(), writer(C2=request.segments[-1].text), Settings(), variants=("A", "C2", "D")))


def test_a_copied_reply_is_no_answer_in_the_report():
    from engine.analyses.refinement import _answer

    value = copying()
    (block,) = _answer(case(), value, "C2")
    assert "no answer. The model repeated its instructions" in str(block)
    assert "no answer" not in str(_answer(case(), value, "D"))


def test_a_revision_that_is_a_word_for_word_says_so():
    from components.variants import _facts

    value = refine(Request(case(), writer(A=DRAFT, C2=DRAFT), Settings(), variants=("A", "C1", "C2", "D")))
    states = {name: _facts(variant, value)[0][1] for name, variant in value.variants.items()}
    assert (states["A"], states["C2"]) == ("written", "revised: equals A")
    assert states["D"] in ("revised", "not triggered: equals A")


def test_an_answer_that_repeats_a_has_no_scores_of_its_own():
    from engine.analyses.refinement import kept_facts, score_blocks

    value = refine(Request(case(), writer(C2=DRAFT), Settings(), variants=("A", "C2", "E")))
    facts = (("Hanna built it.", "supportive"),)
    report = assessed(RefinementReport(refinement=value, facts=facts), passages(), Verifier())
    assert value.repeats == {"C2"}
    for table in (score_blocks(report, passages())[0], kept_facts(report)[0]):
        assert table.columns[1:] == ("A", "B", "C2", "E")
        assert "= A: the answer is A's, word for word." in table.caption
        _, a, _, c2, e = (cell.text for cell in table.rows[0])
        assert c2 == "= A" and "= A" not in (a, e)
    written = next(row for row in score_blocks(report, passages())[0].rows if row[0].text == "Tokens written")
    assert written[3].text.isdecimal()
    assert report_scores(report, passages())["C2"] == report_scores(report, passages())["A"]


def test_a_missing_score_names_the_answers_that_miss_it():
    from engine.analyses.refinement import score_blocks

    _, report = run(Verifier())
    notes = [block.runs[0].text for block in score_blocks(report, passages())[1:]]
    assert notes == [
        "No passages are labelled. Mark passages as relevant or not.",
        "B: The answer does not cite any passages.",
    ]


def test_conditions_that_share_a_trigger_give_its_reason_once():
    from engine.analyses.refinement import _conditions, trigger_reasons

    names = ("A", "C2", "v2a", "v2b", "v2c")
    request = Request(case(labels=(None, None, False)), writer(), Settings(), variants=names, gate="always")
    value = refine(request)
    sentence = value.variants["v2a"].trigger.sentence
    assert len(sentence) > 80
    assert trigger_reasons(value, names) == {
        "v2a": sentence,
        "v2b": "Same trigger as v2a.",
        "v2c": "Same trigger as v2a.",
    }
    assert trigger_reasons(value, ("A", "v2c")) == {"v2c": sentence}
    assert str(_conditions(value, names)).count(sentence) == 1


def test_a_rule_that_cannot_be_asked_gives_its_reason_once():
    from engine.analyses.refinement import _conditions

    value = refine(Request(case(), writer(), Settings(), variants=("A", "v2a", "v2b")))
    stored = value.variants["v2b"]
    assert stored.outcome == "failed" and stored.problem == stored.trigger.sentence != ""
    assert str(_conditions(value, ("A", "v2a", "v2b"))).count(stored.problem) == 1


def test_the_caption_of_the_costs_says_what_they_include():
    from engine.analyses.refinement import score_blocks

    given, report = run(Verifier())
    scores = score_blocks(report, given.passages)[0]
    assert "Cost includes A and the trigger where a condition needs them." in scores.caption
    marked = {(cell.kind, cell.note) for row in scores.rows for cell in row if cell.kind}
    assert marked and all(kind == note for kind, note in marked)  # in words, and not by colour alone
    written = next(row for row in scores.rows if row[0].text == "Tokens written")
    a, c2 = (report.refinement.variants[name].cost.written for name in ("A", "C2"))
    assert [written[list(scores.columns).index(name)].text for name in ("A", "C2")] == [str(a), str(a + c2)]


def test_a_copied_reply_is_folded_on_its_card():
    def draw(value, passages):
        from components.variants import variant_cards
        from engine.methods.refinement.run import RefinementReport

        variant_cards(RefinementReport(refinement=value), passages, ("A", "C2", "D"), diff=False)

    from streamlit.testing.v1 import AppTest

    app = AppTest.from_function(draw, kwargs={"value": copying(), "passages": case().passages}).run(timeout=30)
    assert not app.exception
    _, copied, revised = "".join(one.proto.body for one in app.get("html")).split("<section")[1:4]
    assert "<summary>What it wrote</summary>" in copied and "The model repeated" in copied
    assert "<details>" not in revised
