from __future__ import annotations

import pytest
from msgspec.structs import replace

from engine.analyses.case_verdict import (
    case_verdict,
    changed_by_review,
    conclusions,
    fact_verdict,
    fact_verdicts,
    open_items,
    own_stand,
    without_source,
)
from engine.analyses.facts import analysis_of, record_of
from engine.analyses.kind import FACTS
from engine.answer.citations import annotate
from engine.cases.places import edit_decisions, rewrite
from engine.cases.review import MarkDraft, append, review_of, sign_off
from engine.core.settings import Settings
from engine.core.values import Analysis, Answer, AuditRecord, Case, Stamp
from engine.methods.are.guards import COPIED
from engine.methods.are.tools import Tools
from engine.methods.are.values import Check, Evidence, Fact, FactRecord, Iteration, Ruling
from engine.methods.used_supports import UseAndSupport, UsedSupports
from engine.models.protocols import Judged
from engine.workbench import Workbench
from tests.engine.are.scripted import SCORES, WordVerifier
from tests.engine.are.test_are import ANSWER, GIVEN, AlwaysContradicting, passage, run


def checked(answer: str = ANSWER, record=None) -> Case:
    passages = tuple(passage(i, text) for i, text in enumerate(GIVEN))
    case = Case(
        id="case",
        question="What of the bridge?",
        passages=passages,
        answer=annotate(Answer(text=answer), len(passages), "alce"),
        stamp=Stamp(model="someone"),
    )
    record = record or run(answer)
    return replace(case, analyses=(analysis_of(case, record, Settings()),))


def marked(case: Case, *drafts: MarkDraft):
    history = []
    for draft in drafts:
        history.append(append(case, history, draft, "2026-01-01T00:00:00+00:00"))
    return review_of(history)


def stands(case: Case, *drafts: MarkDraft) -> list[str]:
    return [sentence.state for sentence in case_verdict(case, marked(case, *drafts)).sentences]


def test_a_sentence_is_as_good_as_its_worst_fact_and_quotes_the_evidence():
    verdict = case_verdict(checked(), review_of(()))
    first, second = verdict.sentences
    assert (first.state, second.state) == ("contradicted", "not found")
    assert [(f.text, f.stand) for f in first.facts] == [
        ("The bridge opened in 1932", "contradicted"),
        ("it cost 5 million", "borne out"),
    ]
    assert [f.quote.words for f in first.facts] == [GIVEN[0], GIVEN[1]]
    assert first.facts[0].proposed == "The bridge opened in 1934"
    assert verdict.headline == "3 facts: 1 borne out, 1 contradicted, 1 not found"


def test_every_sentence_has_one_verdict_and_the_counts_add_up():
    case = checked("The bridge opened in 1934. In all the bridge cost 5 million. Whales sing loudly.")
    verdict = case_verdict(case, review_of(()))
    assert [(s.start, s.end) for s in verdict.sentences] == list(case.answer.sentences)
    assert sum(verdict.facts.values()) == 3
    assert verdict.headline == "3 facts: 2 borne out, 1 not found"


def doubted_record(answer):
    """The check of a one-fact answer with a verifier that is unsure of it."""
    record = run(answer)
    (fact,) = record.facts
    (done,) = fact.iterations
    unsure = tuple(replace(check, ruling=replace(check.ruling, unsure=True)) for check in done.checks)
    return replace(record, facts=(replace(fact, iterations=(replace(done, checks=unsure),)),))


def test_a_verdict_that_the_verifier_is_unsure_of_is_neither_borne_out_nor_contradicted():
    answer = "In 1934 the bridge opened."
    assert stands(checked(answer, doubted_record(answer))) == ["unsure"]


@pytest.mark.parametrize(
    ("verdict", "outcome", "scores", "lowered", "stand"),
    [
        ("supportive", "supported", (0.59, 0.3, 0.11), False, "unsure"),
        ("supportive", "supported", (0.6, 0.3, 0.1), False, "borne out"),
        ("editing_required", "contradicted", (0.3, 0.64, 0.06), True, "unsure"),
        ("editing_required", "contradicted", (0.3, 0.64, 0.06), False, "contradicted"),
        ("irrelevant", "unsettled", (0.2, 0.21, 0.59), False, "not found"),
    ],
)
def test_a_verdict_for_or_against_is_unsure_under_0_6_or_where_a_guard_doubts_it(
    verdict, outcome, scores, lowered, stand
):
    ruling = Ruling.of(Judged(verdict, dict(zip(SCORES, scores, strict=True))), WordVerifier())
    if lowered:
        ruling = replace(ruling, unsure=True, lowered=True)
    one = Evidence(text="Whales hum.", source="case")
    done = Iteration(queries=("q",), considered=(one,), checks=(Check(evidence=0, ruling=ruling),), decided=0)
    fact = FactRecord(clause=0, fact=Fact(text="Whales sing", made_by="rules"), iterations=(done,), outcome=outcome)
    assert fact_verdict("1.1", fact).stand == stand


def test_a_sentence_that_a_passage_has_word_for_word_is_borne_out_whatever_the_verifier_says():
    answer = "The bridge opened in 1934. [1]"
    record = run(answer, tools=Tools(AlwaysContradicting()))
    assert record.edits == ()
    (sentence,) = case_verdict(checked(answer, record), review_of(())).sentences
    (fact,) = sentence.facts
    assert (fact.stand, fact.by, fact.probability, fact.quote.words) == ("borne out", COPIED, None, GIVEN[0])


def test_a_reviewers_own_verdict_replaces_the_verifiers():
    case = checked()
    mark = MarkDraft(kind="override", author="Ada", target="fact:1.1", value="borne out", reason="the other bridge")
    verdict = case_verdict(case, marked(case, mark))
    assert [s.state for s in verdict.sentences] == ["borne out", "not found"]
    assert {f.number: f.by for f in verdict.sentences[0].facts}["1.1"] == "Ada"
    assert verdict.overridden == 1


@pytest.mark.parametrize("value", ["supportive", "Borne out"])
def test_reviewers_words_of_both_vocabularies_are_understood(value):
    assert own_stand(value) == "borne out"


def decision(edit, value):
    """A reviewer's decision on an edit."""
    machine = f"{edit.start}-{edit.end}: {edit.old} -> {edit.new}"
    return MarkDraft(
        kind="override", author="Ada", target=f"edit:{edit.id}", value=value, reason="read", machine=machine
    )


def test_accepted_edits_are_in_the_text_and_counted():
    case = checked()
    (edit, _deletion) = run().edits
    accept = decision(edit, "accepted")
    verdict = case_verdict(case, marked(case, accept))
    assert (verdict.accepted, verdict.undecided) == (1, ("2",))
    assert "1934" in verdict.text
    assert verdict.headline == "3 facts: 1 borne out, 1 edited, 1 not found"


def test_the_machines_verdict_stays_said_where_a_review_changed_it():
    case = checked()
    verdict = case_verdict(case, review_of(()))
    assert changed_by_review(case, verdict) == ""
    after = case_verdict(case, marked(case, decision(run().edits[0], "accepted")))
    assert after.headline == "3 facts: 1 borne out, 1 edited, 1 not found"
    assert changed_by_review(case, after) == f"The machine's verdict, before the review: {verdict.headline}."


def test_a_citation_of_a_passage_that_is_not_there_is_an_open_item():
    case = checked("The bridge opened in 1934 [7].")
    assert without_source(case) == "1 citation without a source"
    assert open_items(case, case_verdict(case, review_of(())), review_of(()))[0] == "1 citation without a source."
    assert without_source(checked()) == ""


def test_a_fact_whose_sentence_a_reviewer_rewrote_is_edited_unless_it_was_borne_out():
    case = checked()
    verdict = case_verdict(case, marked(case, rewrite(case.answer, 1, "The bridge cost 5 million.", "Ada", "read")))
    assert verdict.facts == {"borne out": 1, "edited": 1, "not found": 1}
    assert list(verdict.facts) == ["borne out", "edited", "not found"]


def test_a_citation_counts_as_used_where_use_and_support_were_compared():
    case = checked("The bridge opened in 1934 [1]. In all the bridge cost 5 million [2]. Whales sing loudly [1].")
    plain = case_verdict(case, review_of(()))
    assert (plain.citations, plain.citations_compared) == (3, 0)

    def cells(*quadrants):
        return tuple(UseAndSupport(used=1.0, supports=1.0, quadrant=quadrant) for quadrant in quadrants)

    found = UsedSupports(
        spans=case.answer.sentences[:2],
        sources=((1,), (2,)),
        cells=(cells("used and supporting", "neither"), cells("used and supporting", "supported but not used")),
        floor=(0.0, 0.0),
        floor_kind="zero",
        scorer="someone",
        verifier="someone",
    )
    done = Analysis(id="u", kind="used x supports", stamp=Stamp(model="someone"), result=found.to_dict())
    verdict = case_verdict(replace(case, analyses=(*case.analyses, done)), review_of(()))
    assert (verdict.citations, verdict.citations_compared, verdict.citations_used) == (3, 2, 1)
    older = replace(done, result={"cells": "in another shape"})
    verdict = case_verdict(replace(case, analyses=(*case.analyses, older)), review_of(()))
    assert (verdict.citations, verdict.citations_compared) == (3, 0)


def doubted(fact):
    """The fact with checks that the verifier is unsure of."""
    (done,) = fact.iterations
    checks = tuple(replace(check, ruling=replace(check.ruling, unsure=True)) for check in done.checks)
    return replace(fact, iterations=(replace(done, checks=checks),))


def checked_again(fact, probability):
    """The fact with an edit that the verifier gives this probability."""
    (done,) = fact.iterations
    ruling = replace(done.edit.ruling, scores=done.edit.ruling.scores | {"supportive": probability})
    return replace(fact, iterations=(replace(done, edit=replace(done.edit, ruling=ruling)),))


def test_an_accepted_edit_makes_its_fact_edited_with_the_probability_of_the_check_after_it():
    record = run()
    wrong, cost, whales = record.facts
    wrong = checked_again(wrong, 0.7)
    (edit, _deletion) = record.edits
    rejected = decision(edit, "rejected")
    for first, before in ((wrong, "contradicted"), (doubted(wrong), "unsure")):
        case = checked(record=replace(record, facts=(first, cost, whales)))
        given, after = (fact_verdicts(case, record_of(case), marked(case, *m))["1.1"] for m in ((), (rejected,)))
        assert (given.state, given.probability, after.state) == (before, 0.9, before)
        accepted = case_verdict(case, marked(case, decision(edit, "accepted"))).sentences[0]
        assert (accepted.state, accepted.word) == ("edited", "edited")
        (fact,) = (fact for fact in accepted.facts if fact.number == "1.1")
        assert (fact.stand, fact.state) == (before, "edited")
        assert fact.probability == 0.7


def test_a_fact_that_a_reviewer_calls_borne_out_keeps_the_probability_of_the_verdict_that_is_shown_with_it():
    record = run()
    (edit, _deletion) = record.edits
    record = replace(record, facts=(checked_again(record.facts[0], 0.7), *record.facts[1:]))
    case = checked(record=record)
    own = MarkDraft(kind="override", author="Ada", target="fact:1.1", value="borne out", reason="read")
    fact = fact_verdicts(case, record, marked(case, decision(edit, "accepted"), own))["1.1"]
    assert (fact.state, fact.probability) == ("borne out", 0.9)


def test_the_other_facts_of_an_edited_sentence_keep_their_states():
    record = run()
    wrong, cost, whales = record.facts
    case = checked(record=replace(record, facts=(wrong, doubted(cost), whales)))
    (edit, _deletion) = record.edits
    review = marked(case, decision(edit, "accepted"))
    sentence = case_verdict(case, review).sentences[0]
    assert (sentence.state, sentence.word) == ("unsure", "unsure, edited")
    assert {fact.number: fact.state for fact in sentence.facts} == {"1.2": "unsure", "1.1": "edited"}
    assert open_items(case, case_verdict(case, review), review)[-2:] == [
        "Sentence 2 is not borne out and still in the text.",
        "Sentence 1 is unsure and still in the text.",
    ]


def test_an_edit_that_two_facts_share_is_accepted_for_both():
    case = checked("The bridge opened in 1932 and the bridge cost 5 million in 1932.")
    record = record_of(case)
    wrong, cost = record.facts
    again = replace(wrong, fact=replace(wrong.fact, text=f"{wrong.fact.text} at last"))
    shared = replace(record, facts=(wrong, again, cost), edits=record.edits[:1])
    case = checked(record.answer, shared)
    review = marked(case, decision(shared.edits[0], "accepted"))
    verdicts = fact_verdicts(case, shared, review)
    assert [verdicts[name].state for name in ("1.1", "1.2")] == ["edited", "edited"]


def test_a_deletion_takes_out_each_open_fact_of_its_clause():
    case = checked("Whales sing loudly and whales sleep deeply.")
    assert [fact.outcome for fact in record_of(case).facts] == ["unsettled", "unsettled"]
    (deletion,) = record_of(case).edits
    verdict = case_verdict(case, marked(case, decision(deletion, "accepted")))
    assert (verdict.text, verdict.sentences[0].word) == ("", "edited")
    assert verdict.headline == "2 facts: 2 edited"
    assert [fact.probability for fact in verdict.sentences[0].facts] == [None, None]


def test_a_citation_is_supported_where_its_passage_bears_out_a_fact_of_the_sentence():
    case = checked("The bridge opened in 1934 [1]. In all the bridge cost 5 million [3].")
    verdict = case_verdict(case, review_of(()))
    assert (verdict.citations_supported, verdict.citations) == (1, 2)
    assert verdict.cited == "1 of 2 citations supported"


def test_a_citation_that_bears_out_one_fact_of_two_is_supported_in_part():
    case = checked("The bridge opened in 1934 and whales sing loudly [1].")
    verdict = case_verdict(case, review_of(()))
    assert [fact.state for fact in verdict.sentences[0].facts] == ["not found", "borne out"]
    assert verdict.cited == "1 of 1 citation supported, 1 in part"


def test_facts_in_the_words_of_their_sources_are_quoted():
    quoting = case_verdict(checked("The bridge opened in 1934 [1]."), review_of(()))
    (fact,) = quoting.sentences[0].facts
    judged = replace(quoting.sentences[0], facts=(replace(fact, by="embedded"),))
    word_for_word = replace(quoting.sentences[0], facts=(replace(fact, by=COPIED),))
    assert replace(quoting, sentences=(word_for_word,)).quoted
    assert not replace(quoting, sentences=(judged, word_for_word)).quoted
    assert not replace(quoting, sentences=()).quoted


def test_citations_follow_the_facts_of_their_sentence_in_doubt_by_a_reviewer_and_once_edited():
    case = checked("The bridge opened in 1932 [1].")
    (edit,) = record_of(case).edits
    accept = decision(edit, "accepted")
    says = MarkDraft(kind="override", author="Ada", target="fact:1.1", value="borne out", reason="passage 1 has it")
    for marks, supported in (((), 0), ((accept,), 1), ((says,), 1)):
        assert case_verdict(case, marked(case, *marks)).citations_supported == supported
    answer = "In 1934 the bridge opened [1]."
    assert case_verdict(checked(answer, doubted_record(answer)), review_of(())).citations_supported == 0
    right = checked("The bridge opened in 1934 [1].")
    denied = replace(says, value="contradicted")
    assert case_verdict(right, review_of(())).citations_supported == 1
    assert case_verdict(right, marked(right, denied)).citations_supported == 0


def test_an_answer_that_nobody_checked_has_no_verdict():
    case = checked()
    assert case_verdict(replace(case, analyses=()), review_of(())) is None


def test_a_sign_off_settles_the_edits_that_nobody_decided():
    case = checked()
    assert case_verdict(case, review_of(())).open_edits == "2 edits undecided"
    assert case_verdict(case, review_of(())).undecided_fact == "1.1"
    first, deletion = record_of(case).edits
    for decided, fact in (((first,), "2.1"), ((first, deletion), "")):
        review = marked(case, *(decision(edit, "accepted") for edit in decided))
        assert case_verdict(case, review).undecided_fact == fact
    review = marked(case, *sign_off("Ada", "does not stand", "the year is wrong"))
    verdict = case_verdict(case, review)
    assert verdict.open_edits == "2 edits left out of the signed text"
    assert open_items(case, verdict, review)[0] == "Edits 1 and 2 are left out of the signed text."


def test_open_items_name_the_sentences_that_nothing_bears_out_and_the_edits_without_a_decision():
    case = checked()
    (edit, deletion) = run().edits

    def items(*drafts):
        review = marked(case, *drafts)
        return open_items(case, case_verdict(case, review), review)

    assert items() == ["Edits 1 and 2 are undecided.", "Sentences 1 and 2 are not borne out and still in the text."]
    assert items(decision(edit, "accepted"), decision(deletion, "accepted")) == []
    own = MarkDraft(kind="override", author="Bo", target="fact:1.2", value="contradicted", reason="it cost 6 million")
    said = 'Bo calls "it cost 5 million" contradicted, and the text still says it.'
    assert said in items(own, decision(deletion, "accepted"))


def test_an_edited_answer_cannot_stand_as_it_was():
    verdict = case_verdict(checked(), review_of(()))
    assert conclusions(None) == ("stands", "does not stand")
    assert conclusions(verdict) == ("stands", "partly stands", "does not stand")
    assert conclusions(replace(verdict, accepted=1)) == ("stands as edited", "partly stands", "does not stand")


def test_an_answer_that_stands_in_part_names_what_is_excepted_and_one_without_exception_stands_whole():
    case = checked()
    accepted, deleted = (decision(edit, "accepted") for edit in run().edits)
    whole = case_verdict(case, marked(case, accepted, deleted))
    assert conclusions(whole) == ("stands as edited", "does not stand")
    review = marked(case, accepted, *sign_off("Ada", "partly stands", "no source on the whales"))
    verdict = case_verdict(case, review)
    assert verdict.excepted == ("2",)
    assert review.conclusion.value == "partly stands"
    assert open_items(case, verdict, review) == [
        "Edit 2 is left out of the signed text.",
        "Sentence 2 is not borne out and excepted from the conclusion.",
    ]


def test_a_sentence_that_a_reviewer_wrote_anew_takes_the_place_of_its_edits():
    case = checked()
    (edit, _deletion) = run().edits
    accept = decision(edit, "accepted")
    anew = rewrite(case.answer, 1, "It opened in 1934 and cost 5 million.", "Ada", "as the register has it")
    out = rewrite(case.answer, 2, "", "Ada", "nobody says so")
    review = marked(case, accept, anew, out)
    verdict = case_verdict(case, review)
    assert verdict.text == "It opened in 1934 and cost 5 million."
    assert (verdict.accepted, verdict.undecided) == (2, ())
    nowhere = replace(edit, status="suggestion", old="words that are not there")
    suggested = replace(run(), edits=(nowhere,))
    said = edit_decisions(suggested, case.answer, marked(case, decision(nowhere, "accepted")))
    assert said == {edit.id: "accepted, not applied: its place in the text is not known"}
    assert edit_decisions(run(), case.answer, review) == {
        edit.id: "accepted, not applied: a reviewer wrote the sentence anew"
    }
    assert [s.state for s in verdict.sentences] == ["edited", "edited"]
    assert open_items(case, verdict, review) == []
    assert conclusions(verdict)[0] == "stands as edited"


def test_words_for_a_sentence_that_the_answer_no_longer_has_are_not_put_in():
    case = checked()
    anew = replace(rewrite(case.answer, 2, "Another.", "Ada", "read"), machine="Some other sentence.")
    assert case_verdict(case, marked(case, anew)).text == case.answer.text


def test_a_fact_knows_its_edits_and_which_can_still_be_put_in():
    case = checked()
    (edit, _deletion) = run().edits
    (fact,) = [f for s in case_verdict(case, review_of(())).sentences for f in s.facts if f.text.endswith("1932")]
    assert [(e.id, e.old, e.new, e.decision, e.open) for e in fact.edits] == [(edit.id, "1932", "1934", None, True)]
    signed = case_verdict(case, marked(case, *sign_off("Ada", "stands", "Read it.")))
    assert [e.open for s in signed.sentences for f in s.facts for e in f.edits] == [False, False]
    assert signed.sentence_of(fact.number) == 1 and signed.sentence_of("9.9") is None


RULES = (
    "Expenses above 500 euros must be approved by the head of department before they are paid out.",
    "Applications are reviewed by the ethics committee within thirty days.",
    "The physician prescribed an antibiotic for the child.",
    "Travel by train is booked through the office manager at least a week ahead.",
    "The works council must be heard before working hours are changed.",
    "A translator reads the contract aloud to the buyer in the presence of the notary.",
    "Fire drills are led by the caretaker and recorded by the school office.",
    "The treasurer presents the accounts to the general meeting in spring.",
)
OTHERS = (
    "Expenses above 500 euros must be approved by the line manager. The line manager must approve expenses above 500"
    " euros. Expenses over 500 euros need approval from the line manager before payment.",
    "The faculty board reviews applications within thirty days. Within thirty days the data protection officer reviews"
    " applications.",
    "The dentist prescribed an antibiotic for the child.",
    "The employee's supervisor books travel by train at least a week ahead.",
    "The shareholders must be heard before working hours are changed.",
    "A translator reads the contract aloud to the seller in the presence of the notary.",
    "The gym teacher leads fire drills.",
    "In spring the auditor presents the accounts to the general meeting.",
)
SAME = (
    "The head of department must approve expenses above 500 euros.",
    "Within thirty days, applications are looked at by the ethics committee.",
    "The doctor prescribed an antibiotic for the child.",
    "Train travel is booked through the office manager at least a week ahead.",
    "Before working hours are changed the works council has to be heard.",
    "The contract is read aloud to the buyer by a translator in the notary's presence.",
    "The caretaker leads fire drills.",
    "In spring the accounts are presented to the general meeting by the treasurer.",
)


def test_a_role_in_the_place_of_another_is_never_borne_out_and_the_same_role_in_other_words_is():
    """A person is named by a role; nothing in the wording tells two people apart but the role itself."""
    bench = Workbench()

    def stands(claims):
        record = AuditRecord(question="Who does it?", passages=RULES, answer=" ".join(claims))
        case = bench.audit(record)
        found = case_verdict(bench.analyse(case.id, FACTS), review_of(()))
        return {case.answer.text[s.start : s.end]: s.state for s in found.sentences}

    assert [text for text, stand in stands(OTHERS).items() if stand == "borne out"] == []
    assert [text for text, stand in stands(SAME).items() if stand != "borne out"] == []


def test_a_passage_that_contradicts_what_another_bears_out_is_named():
    bench = Workbench()
    told = "The bridge opened in 1931 and cost 5 million.", "The bridge was opened to traffic in 1934."
    record = AuditRecord(question="When?", passages=told, answer="The bridge opened in 1931. It cost 5 million.")
    case = bench.analyse(bench.audit(record).id, FACTS)
    verdict = case_verdict(case, review_of(()))
    year, cost = (sentence.facts[0] for sentence in verdict.sentences)
    assert (year.stand, cost.stand) == ("borne out", "borne out")
    assert year.against is not None and (year.against.number, year.against.words) == (2, told[1])
    assert cost.against is None
    said = [f'Passage 2 may contradict "The bridge opened in 1931": "{told[1]}"']
    assert open_items(case, verdict, review_of(())) == said
    disputed = MarkDraft(kind="override", author="Ada", target=f"fact:{year.number}", value="supportive", reason="read",
                         machine="supportive")  # fmt: skip
    review = marked(case, disputed)
    assert open_items(case, case_verdict(case, review), review) == []


def test_a_row_of_a_table_on_something_else_says_nothing_against_a_row():
    rows = (
        "hive: Hive 1 | year: 2024 | honey_kg: 24.0 | colony_strength: strong | queen_age: 2",
        "hive: Hive 2 | year: 2024 | honey_kg: 6.5 | colony_strength: weak | queen_age: 0",
    )
    bench = Workbench()
    case = bench.audit(AuditRecord(question="How much honey did Hive 1 give?", passages=rows, answer=rows[0]))
    verdict = case_verdict(bench.analyse(case.id, FACTS), review_of(()))
    assert [fact.against for sentence in verdict.sentences for fact in sentence.facts] == [None]
