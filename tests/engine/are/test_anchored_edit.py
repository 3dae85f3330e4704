from __future__ import annotations

import pytest

from engine.analyses.case_verdict import fact_verdict
from engine.core.progress import Watch
from engine.methods.are.anchor import SPEAKS, anchors, others
from engine.methods.are.anchored_edit import anchored_edit, smallest_edit
from engine.methods.are.shared_words import missing
from engine.methods.are.values import Edit, Evidence, Fact, FactRecord, Iteration
from engine.models.protocols import Judged
from tests.engine.are.scripted import WordVerifier, judged


class Doubtful(WordVerifier):
    """Never supports, and finds a claim with the evidence's numbers a little better."""

    def judge(self, pairs, watch=Watch()):
        found = super().judge(pairs, watch)
        low = judged("irrelevant").scores
        return [
            type(one)("irrelevant", {**low, "supportive": 0.2 if one.verdict == "supportive" else 0.1}) for one in found
        ]


def edited(fact: str, *texts: str, verifier=None, cited=frozenset(), clause=""):
    found = [Evidence(text=text, source="case", number=n) for n, text in enumerate(texts, 1)]
    near = anchors(fact, found, cited)
    beside = others(near[0], near, texts, clause)
    return anchored_edit(fact, found[near[0].evidence], near[0], beside, verifier or WordVerifier())


@pytest.mark.parametrize(
    ("fact", "text", "after"),
    [
        ("The harbour banked EUR 850 in March", "In March the harbour banked EUR 580.", "580"),
        ("He came on 5 March", "Rain fell. He came on 8 March.", "8 March"),
        ("The shares belong to Marek Dolin", "The shares belong to Elena Marcov.", "Elena Marcov"),
        ("He left before the storm", "He left after the storm.", "after"),
        ("Dose for adults: Severe: 675 mg", "Mild cases: adults take 500 mg. Severe cases take 875 mg.", "875 mg"),
        ("The total is EUR 1,111 in all", "We paid EUR 471 and EUR 664: the total in all is EUR 1,135.", "1,135"),
    ],
)
def test_what_the_sentence_has_in_its_place_is_put_in(fact, text, after):
    found = edited(fact, text)
    assert after in found.after
    assert found.ruling.verdict == "supportive"
    assert len(missing(found.after, text)) < len(missing(fact, text)) or found.changes[0].old in ("before", "after")


def test_words_of_a_label_that_no_passage_has_do_not_count_against_a_sentence():
    found = [Evidence(text="The pump weighs 58 kg.", source="case", number=1)]
    assert anchors("Weight: Value: 68 kg", found)[0].share > SPEAKS > anchors("Weight of value 68 kg", found)[0].share


def test_a_number_that_another_passage_on_the_fact_holds_is_left_alone():
    fact = "The harbour banked EUR 850 in March"
    wrong = "In March the harbour banked EUR 580."
    assert edited(fact, wrong) is not None
    assert edited(fact, wrong, "EUR 850 the harbour banked in March.") is None


def test_a_name_is_not_replaced_by_one_that_lacks_the_words_the_passage_holds():
    fact = "The payment was made by Kestrin Holdings"
    assert edited(fact, "The payment was made by Limerick Freight, once Ann Holdings.").after.endswith("Ann Holdings")
    assert edited(fact, "Holdings: the payment was made by Ann.") is None


def test_words_and_verifier_together_confirm_an_edit_and_the_ruling_says_so():
    found = edited("The harbour banked EUR 850 in March", "In March the harbour banked EUR 580.", verifier=Doubtful())
    assert found.after == "The harbour banked EUR 580 in March"
    assert found.ruling.verdict == "supportive"
    assert found.ruling.note.startswith("supportive, because one sentence holds 86% of its words")


def test_an_edit_that_takes_back_what_it_put_in_is_none():
    """The only replacement puts in "not", which the verifier contradicts; the next takes it out."""
    assert edited("The mill was closed in 1931", "The mill was closed in 1931.") is None


def test_a_stored_edit_that_changes_nothing_is_not_offered():
    fact = Fact(text="The mill was closed", made_by="rules")
    same = Edit(before=fact.text, after=fact.text, changes=(), why="negation as the passage has it", made_by="rules")
    record = FactRecord(clause=0, fact=fact, iterations=(Iteration(queries=("q",), edit=same),), outcome="edited")
    assert record.edit is None
    assert fact_verdict("1.1", record).proposed == ""


def test_the_window_of_the_ruling_lies_in_the_passage():
    text = "It rained. In March the harbour banked EUR 580."
    found = edited("The harbour banked EUR 850 in March", text)
    start, end = found.ruling.window
    assert start >= 0 and end <= len(text)


class Doubting(WordVerifier):
    """Calls everything irrelevant, with the same scores."""

    def judge(self, pairs, watch=Watch()):
        return [judged("irrelevant") for _ in pairs]


@pytest.mark.parametrize(
    ("fact", "text", "after"),
    [
        (
            "The owner of the mill is Ann Lund with 80 per cent",
            "Of the mill Bea Holm has 80 per cent, Cy Dean 20.",
            "Bea Holm",
        ),
        ("The mill left Ann Lund 34 per cent", "The mill left Bea Holm 22 and Ann Lund 24 per cent.", "24"),
    ],
)
def test_what_is_pinned_by_its_neighbours_needs_no_more_from_the_verifier(fact, text, after):
    found = edited(fact, text, verifier=Doubting())
    assert after in found.after
    assert "next to the same words" in found.ruling.note


@pytest.mark.parametrize(
    ("fact", "text"),
    [
        ("The owner of the mill is Ann Lund with 80 per cent", "The owner of the mill is Bea Holm with 20 per cent."),
        (
            "The owner of the mill is Ann Lund with 80 per cent",
            "The mill: 80 per cent for its owner Bea Holm or Cy Dean.",
        ),
        ("The mill took eleven sums, EUR 850 in all", "The mill: eleven sums from EUR 580 to EUR 620 in all."),
    ],
)
def test_nothing_is_pinned_without_a_shared_neighbour_or_with_two_of_a_kind(fact, text):
    assert edited(fact, text, verifier=Doubting()) is None


class Deaf(WordVerifier):
    """Says the same of every pair."""

    def judge(self, pairs, watch=Watch()):
        return [judged("irrelevant") for _ in pairs]


@pytest.mark.parametrize(
    ("fact", "text"),
    [
        ("In March the account took in EUR 500, of which EUR 90 was sales", "In March the account took in EUR 500."),
        ("The shop closed from 3 March to 8 March", "The shop closed on 3 March, in spring."),
        (
            "Kestrel Holdings of Limerick paid for a shop in Nenagh",
            "Kestrel Holdings (Ireland), Limerick, paid for a shop in spring.",
        ),
    ],
)
def test_nothing_is_put_in_that_the_fact_says_already(fact, text):
    found = edited(fact, text)
    assert found is None or found.after.count("500") + found.after.count("3 March") + found.after.count("Kestrel") < 2


@pytest.mark.parametrize(
    ("fact", "text"),
    [
        ("It was struck out after a protest by the Gate Bank", "It was struck out after a protest of an Irish firm."),
        ("It was passed on in Oslo", "It was passed on to Bea Holm."),
    ],
)
def test_a_name_stands_for_none_of_another_kind(fact, text):
    assert edited(fact, text) is None


def test_what_counts_for_a_day_alone_counts_for_the_day_with_its_month():
    fact = "The firm Ardel was formed in Riga on 13 October 2023 by Ann"
    assert edited(fact, "Ardel was set up in Riga by Ann on 3 October 2023.", verifier=Deaf()).after == fact.replace(
        "13", "3"
    )


def test_a_sentence_with_most_other_numbers_and_names_of_the_fact_settles_a_number_without_the_verifier():
    fact = "On 11 June Ann Berg gave Bo Lund 45 per cent of the mill"
    found = edited(fact, "On 11 June Ann Berg handed Bo Lund 54 per cent.", verifier=Deaf())
    assert found.after == fact.replace("45", "54")
    assert edited(fact, "On 12 May some of the mill went to Bo Lund: 54 per cent.", verifier=Deaf()) is None


def test_of_two_numbers_the_one_with_the_same_digits_is_taken():
    assert (
        "640,000"
        in edited("The mill paid EUR 604,000", "In all EUR 619,000 or EUR 640,000 is what the mill paid.").after
    )


def test_a_number_that_no_passage_has_is_one_with_its_digits_in_another_order():
    fact, text = "The old mill paid EUR 604,000 for the gate", "For the gate the old mill gave EUR 640,000."
    assert "640,000" in edited(fact, text, verifier=Deaf()).after
    assert edited(fact, text.replace("640,000", "650,000"), verifier=Deaf()) is None
    assert edited(fact, text, "The lease was EUR 604,000.", verifier=Deaf()) is None
    assert edited("It paid 15 for the old gate", "For the old gate it gave 51.", verifier=Deaf()) is None


@pytest.mark.parametrize(
    ("fact", "text", "other"),
    [
        ("The old shop is in Cork", "The old shop is Orvel Ltd.", "Rain fell in Cork."),
        ("The sister of the clerk sits in Orvel", "The sister of the clerk sits, in Cork.", "Orvel Ltd is old."),
        ("The mill has no contact with Ann Berg", "The mill has no contact with Limerick.", "Ann Berg left."),
        ("The sum came from Dubai with a note", "The sum came with a note from PM-04.", "In Dubai it rained."),
    ],
)
def test_a_name_gives_way_to_no_name_of_another_kind(fact, text, other):
    assert edited(fact, text, other) is None


@pytest.mark.parametrize(
    ("fact", "text", "others", "after"),
    [
        (
            "The firm paid Ann Berg EUR 40 in May",
            "In May the firm paid the Commission EUR 40.",
            (),
            "The firm paid Commission EUR 40 in May",
        ),
        (
            "In May the mill was sold to Hugh Toll",
            "In May the mill was sold to Berg.",
            ("Yesterday Ada Berg left.",),
            "to Berg",
        ),
        (
            "The mill was sold by Ann Berg",
            "The mill was sold by Adrian.",
            ("Ann Berg met Adrian Lund.",),
            "by Adrian Lund",
        ),
        ("The mill was moved to New York", "The mill was moved to Riga.", (), "to Riga"),
        ("In May it was sold to Orvel Bank", "In May it was sold to First Delta Bank.", (), "to First Delta Bank"),
        ("Bea took 6 ships in May", "Seven ships Bea took in May.", (), "took seven ships in May"),
    ],
)
def test_a_name_or_number_is_put_in_whole_and_nothing_else(fact, text, others, after):
    assert edited(fact, text, *others).after.endswith(after)


def test_a_pronouns_sentence_lends_its_names_and_nothing_else():
    assert edited("The mill was sold to Bo on 3 May", "The mill was built on 9 March. It was sold to Bo.") is None


def test_a_day_of_the_clause_is_no_number_of_it():
    found = edited("It made 5 gifts to Ann", "It made 8 gifts to Ann.", clause="On 8 May it made 5 gifts to Ann")
    assert found.after == "It made 8 gifts to Ann"


def test_a_person_named_in_full_is_replaced_by_one_in_full():
    text, other = "The note on the gate went to Fergal.", "It was read by Fergal Stone."
    assert (
        edited("The note on the gate went to Hugh Toll", text, other).after
        == "The note on the gate went to Fergal Stone"
    )
    twice = edited("The note on the gate went to Hugh Toll", text, other, "It woke Fergal Lund.")
    assert twice.after == "The note on the gate went to Fergal"


def test_what_is_said_of_a_name_goes_with_it():
    found = edited("The watchdog AMLA may set a lower figure", "To the watchdog the Commission may set a lower figure.")
    assert found.after == "The Commission may set a lower figure"
    assert [(change.old, change.new) for change in found.changes] == [("The watchdog AMLA", "The Commission")]


def test_a_date_is_put_in_by_a_sentence_that_has_all_else_but_a_name_that_other_passages_have():
    fact = "On 22 March 2024 Pell wired EUR 98,000 to Vale Consulting LLP in Leith"
    text = "On 26 March 2024 EUR 98,000 went to Vale Consulting LLP, Leith."
    assert edited(fact, text, "Pell is old.", verifier=Deaf()).after == fact.replace("22", "26")
    assert edited(fact, text, verifier=Deaf()) is None


def test_the_last_day_of_a_span_is_mended_by_its_last_day():
    found = edited("From January until 31 May the mill took EUR 9", "From 1 January until 15 May the mill took EUR 9.")
    assert found.after == "From January until 15 May the mill took EUR 9"


def test_nothing_is_put_in_that_the_clause_says_beside_the_fact():
    fact, text = "The call came on 12 October", "The call came on a Friday and asked to wait until 7 November."
    assert edited(fact, text).after == "The call came on 7 November"
    assert edited(fact, text, clause=f"{fact}, which asked to wait until 7 November") is None


def test_who_she_is_stands_in_the_sentence_before():
    found = edited("Ann Berg agreed to wait a week", "Bea Holm was called. She agreed to wait a week.")
    assert found.after == "Bea Holm agreed to wait a week"


def test_four_numbers_of_a_fact_may_change():
    claim, evidence = "It has 87 oaks, 6 elms, 5 limes.", "It has 85 oaks, 7 elms, 4 limes."
    assert smallest_edit(claim, evidence, WordVerifier()).after == evidence


@pytest.mark.parametrize(
    ("claim", "evidence", "edited"),
    [
        ("She was born on 5 March 1990.", "She was born on 8 March 1990.", "She was born on 8 March 1990."),
        ("The sum was EUR 113,650.", "In all the sum was EUR 103,850.", "The sum was EUR 103,850."),
        ("Ned McDodd is the mayor.", "The mayor is Zach Ivey.", "Zach Ivey is the mayor."),
        ("The bridge is not open.", "The bridge is open.", "The bridge is open."),
        ("The southern gate is old.", "The northern gate is old.", "The northern gate is old."),
    ],
)
def test_one_span_of_the_same_kind_is_changed(claim, evidence, edited):
    found = smallest_edit(claim, evidence, WordVerifier())
    assert found.after == edited
    assert found.ruling.verdict == "supportive"
    assert sum(max(len(c.old.split()), len(c.new.split())) for c in found.changes) <= 2


def test_a_supported_claim_is_not_edited_and_costs_one_verdict():
    verifier = WordVerifier()
    assert smallest_edit("Ice melts.", "Ice melts in summer.", verifier) is None
    assert len(verifier.pairs) == 1


class FirstSaying(WordVerifier):
    """Gives that verdict on the first pair that it is asked about."""

    def __init__(self, verdict):
        super().__init__()
        self.verdicts = [verdict]

    def judge(self, pairs, watch=Watch()):
        return [self.verdicts.pop() if self.verdicts else own for own in super().judge(pairs, watch)]


@pytest.mark.parametrize(("against", "edited"), [(0.45, False), (0.55, True)])
def test_a_claim_is_edited_only_where_clearly_more_speaks_against_it_than_for_it(against, edited):
    verdict = Judged("editing_required", {"supportive": 0.4, "editing_required": against, "irrelevant": 0.6 - against})
    found = smallest_edit("Ice melts at 2 degrees.", "Ice melts at 0 degrees.", FirstSaying(verdict))
    assert (found is not None) is edited


def test_without_a_good_candidate_there_is_no_edit():
    assert smallest_edit("Ice melts fast.", "Steam rises.", WordVerifier()) is None


def test_the_gate_is_the_verdict_not_the_words():
    assert smallest_edit("It is 5.", "It is 6.", FirstSaying(judged("supportive"))) is None


class Supporting(WordVerifier):
    """Supports these claims and finds every other contradicted."""

    def __init__(self, *claims):
        super().__init__()
        self.claims = claims

    def _verdict(self, claim, evidence):
        return "supportive" if claim in self.claims else "editing_required"


def test_two_spans_that_are_wrong_together_are_both_changed():
    found = edited("The mill paid EUR 850 on 5 March", "On 8 March the mill paid EUR 580.")
    assert found.after == "The mill paid EUR 580 on 8 March"
    assert [(change.old, change.new) for change in found.changes] == [("850", "580"), ("5", "8")]
    assert found.ruling.verdict == "supportive"


def test_after_a_good_name_no_other_name_is_changed():
    fact, text = "The note went to Bea Holm in Riga", "To Ann Berg the note went in Oslo."
    first, second = "The note went to Ann Berg in Riga", "The note went to Ann Berg in Oslo"
    assert edited(fact, text, verifier=Supporting(first, second)).after == first


def test_a_comparison_is_turned_round_though_another_number_of_the_passage_bears_it_out():
    fact, text = "More than 9 ships left the port", "6 ships left the port, 20 came in."
    assert missing(fact, text) == ()
    turned = "Less than 9 ships left the port"
    assert edited(fact, text, verifier=Supporting(turned)).after == turned


def test_a_comparison_that_a_number_of_the_passage_bears_out_is_not_deleted():
    fact, text = "The firm spread it over three payments", "On account 4471 the firm made three payments."
    assert edited(fact, text, verifier=Supporting("The firm spread it three payments")) is None


def test_a_month_gives_way_to_the_month_of_a_day():
    assert edited("It opened in May 1970", "In 1970 it opened, on 26 December.").after == "It opened in December 1970"


def test_other_words_are_left_alone():
    assert smallest_edit("The tower is by a lake.", "The tower is by a mill.", WordVerifier()) is None
