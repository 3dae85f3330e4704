from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from msgspec.structs import replace

from engine.analyses.facts import KIND
from engine.core.settings import Verification
from engine.english.stated import states
from engine.methods.are import guards
from engine.methods.are.anchor import anchors, closest, contested
from engine.methods.are.are import deciding
from engine.methods.are.event_order import against, dated_parts, orders, turned
from engine.methods.are.guards import (
    COPIED,
    STATED,
    TOLD,
    Read,
    doubted,
    guarded,
    speaks,
    unheld_nouns,
    with_guards,
    word_for_word,
)
from engine.methods.are.quantities import quantities
from engine.methods.are.values import Check, Evidence, Ruling
from engine.models.protocols import Judged
from tests.engine.are.scripted import WordVerifier

ON = Verification()
GUARD_ALONE = replace(ON, roles=False, word_for_word=False)
SUPPORTIVE = Ruling(verdict="supportive", by="v", note="supportive by v")
EDITING = replace(SUPPORTIVE, verdict="editing_required", note="editing required by v")
IRRELEVANT = replace(SUPPORTIVE, verdict="irrelevant", note="irrelevant by v")


def case(text: str, number: int = 1) -> Evidence:
    return Evidence(text=text, source="case", number=number)


def read(fact: str, text: str, said: str = "", dated: tuple[str, ...] = ()) -> Read:
    return Read(fact, said or fact, case(text), anchors(fact, [case(text)])[0], dated)


def ruled(ruling: Ruling, fact: str, text: str, settings: Verification = ON) -> Ruling:
    return guarded(ruling, read(fact, text), settings)


def test_the_anchor_is_the_sentence_with_most_of_the_facts_words_and_rare_words_count_more():
    fact = "The bank raised the alert in Cork"
    passages = [case("The bank is old. The bank sells bread."), case("It rained. The alert came up in Cork.", 2)]
    best, other = anchors(fact, passages)
    assert passages[1].text[best.start : best.end] == "The alert came up in Cork."
    assert (best.evidence, other.evidence) == (1, 0)
    assert 0 < other.share < best.share < 1


RIVALS = [
    (
        "Sker Rock's range is 22 miles.",
        "name: Sker Rock | range: 22",
        "The Bell light opened in 1860. Its range is 24 miles.",
    ),
    (
        "The Orme Bridge has a span of 90 metres.",
        "name: Orme Bridge | span_m: 90",
        "The Quay Bridge has a span of 36 metres.",
    ),
    ("Benzol boils at 80 degrees.", "compound: Benzol | boils_at: 80", "Aniline boils at 184 degrees."),
    ("The Cedar Bond pays 3 percent.", "product: Cedar Bond | pays: 3 percent", "The Atlas Bond pays 2 percent."),
]


@pytest.mark.parametrize(("fact", "own", "rival"), RIVALS)
def test_a_contradiction_by_a_passage_on_something_else_is_unsure_where_another_names_what_the_fact_is_about(
    fact, own, rival
):
    passages = [case(own), case(rival, 2)]
    both = {one.evidence: one for one in anchors(fact, passages)}
    found = guarded(EDITING, Read(fact, fact, passages[1], both[1]), ON)
    assert (found.verdict, found.unsure, found.lacking) == ("editing_required", True, (both[1].foreign,))
    assert found.doubt == f"another passage names {both[1].foreign}, and this one does not"
    assert both[0].foreign == "" and not speaks(fact, rival, both[1], ON)
    assert guarded(EDITING, Read(fact, fact, passages[1], both[1]), replace(ON, anchored=False)) == EDITING
    (alone,) = anchors(fact, passages[1:])  # no passage names it: perhaps this one calls it otherwise
    assert alone.foreign == ""


@pytest.mark.parametrize(
    ("fact", "rival"),
    [
        ("Ada Berg sold the mill in 1990.", "Bo Lind sold the mill in 1990."),  # the name alone may be wrong
        ("Ada Berg sold the mill in 1990.", "Berg sold the mill in 1991 to Bo Lind."),
        ("It opened in 1990.", "Bo Lind opened it in 1991."),
        ("Fee: 45 euros in 1990", "Bo Lind pays 90 euros."),
        ("In 1990 the mill was sold to Ada Berg.", "Bo Lind bought it in 1991."),
    ],
)
def test_a_passage_that_differs_in_the_name_alone_or_has_a_part_of_it_is_not_on_something_else(fact, rival):
    assert [one.foreign for one in anchors(fact, [case("Ada Berg was born in Cork. Fee: none."), case(rival, 2)])] == [
        "",
        "",
    ]


@pytest.mark.parametrize(
    ("fact", "full", "short", "lacking"),
    [
        ("Ada Berg sold the mill in 1990.", "Ada Berg was born in Cork.", "Berg sold the mill in 1990.", ()),
        ("Orvel Mills bought a kiln.", "Orvel Mills is a firm.", "Then Orvel bought a kiln.", ()),
        ("New Cork joined in 1912.", "New Cork is a state.", "Cork joined in 1912.", ("New",)),
        ("Paris Berg was born in Paris.", "Paris Berg sings.", "Berg was born in Oslo.", ("Paris",)),
        ("Ada Berg sold the mill in 1990.", "Ada Berg was born in Cork.", "Bo Berg sold the mill in 1990.", ("Ada",)),
        ("Ada Berg sold the mill in 1990.", "Cork has a mill.", "Berg sold the mill in 1990.", ("Ada",)),
    ],
)
def test_a_passage_that_has_a_part_of_a_name_that_another_gives_in_full_does_not_lack_it(fact, full, short, lacking):
    found = {one.evidence: one for one in anchors(fact, [case(full), case(short, 2)])}
    assert found[1].lacking == lacking


def test_what_is_quoted_of_a_passage_is_the_sentence_with_the_words_that_few_of_its_sentences_hold():
    passage = case("The pump of the plant is old. Ann runs the plant. The pump needs oil.")
    quoted = closest("The pump of the plant needs coal", passage)
    assert passage.text[quoted.start : quoted.end] == "The pump needs oil."


def test_of_two_passages_that_hold_alike_the_cited_one_comes_first():
    passages = [case("The gate is old."), case("The gate is old.", 2)]
    assert [a.evidence for a in anchors("The gate is old", passages)] == [0, 1]
    assert [a.evidence for a in anchors("The gate is old", passages, {2})] == [1, 0]


def test_a_passage_that_lacks_what_this_one_holds_does_not_speak_for_a_name():
    fact = "The owner of the mill is Ann Lund with 80 per cent"
    right = case("The owner of the mill is Bea Holm with 80 per cent.")
    other = case("The owner of the mill is Ann Lund with 60 per cent.", 2)
    found = anchors(fact, [right, other])
    here = next(a for a in found if a.evidence == 0)
    assert contested(here, found) == {"Ann", "Lund"}
    found = anchors(fact, [right, case("The owner of the mill is Ann Lund with 80 per cent.", 2)])
    assert contested(next(a for a in found if a.evidence == 0), found) == frozenset()


def test_a_number_that_another_passage_on_the_fact_holds_is_not_contested():
    fact = "The harbour banked EUR 500 in March"
    wrong, right = case("The harbour banked EUR 700 in March."), case("The harbour banked EUR 500 in March.", 2)
    found = {a.evidence: a for a in anchors(fact, [wrong, right])}
    assert found[0].lacking == ("500",)
    assert contested(found[0], list(found.values())) == frozenset()
    assert contested(found[0], [found[0]]) == {"500"}


@given(st.text(max_size=40), st.lists(st.text(max_size=60), max_size=4))
def test_every_passage_has_one_anchor_with_a_share_between_0_and_1(fact, texts):
    found = anchors(fact, [case(text, n) for n, text in enumerate(texts, 1)])
    assert sorted(a.evidence for a in found) == list(range(len(texts)))
    assert all(0 <= a.share <= 1 + 1e-9 for a in found)


def test_a_number_with_its_digits_in_another_order_is_looked_for_where_it_stands():
    fact, text = "What reached her is EUR 638,000", "She had three accounts. In sum EUR 683,000 came to her."
    (found,) = anchors(fact, [case(text)])
    assert text[found.start : found.end].startswith("In sum")
    (other,) = anchors(fact, [case(text.replace("683,000", "783,000"))])
    assert found.share > other.share


@pytest.mark.parametrize(
    ("text", "comparison"),
    [("in no case longer than 90 days", "<="), ("it may not go past 60", "<="), ("it took longer than 9 days", ">")],
)
def test_a_limit_that_is_denied_is_the_opposite_limit(text, comparison):
    assert [q.comparison for q in quantities(text)] == [comparison]


class Prefers(WordVerifier):
    """Finds a claim with the word borne out with one probability, any other with another."""

    def __init__(self, word, with_it, without):
        self.word, self.with_it, self.without = word, with_it, without

    def judge(self, pairs, watch=None):
        return [self._by(self.with_it if self.word in claim else self.without) for claim, _ in pairs]

    def _by(self, share):
        return Judged("supportive", {"supportive": share, "editing_required": 0.0, "irrelevant": 1 - share})


def test_a_number_that_the_verifier_prefers_in_place_of_a_lacking_one_turns_a_supportive_verdict_and_says_so():
    pair = read("The work cost EUR 5,000", "They paid. The work cost EUR 6,000.")
    half = replace(SUPPORTIVE, scores={"supportive": 0.5, "editing_required": 0.3, "irrelevant": 0.2})
    (turned_ruling,) = with_guards([half], [pair], Prefers("6,000", 0.71, 0.2), None, GUARD_ALONE)
    assert (turned_ruling.verdict, turned_ruling.lacking) == ("editing_required", ("5,000",))
    assert "the passage has 6,000 in place of 5,000" in turned_ruling.note
    (lowered,) = with_guards([half], [pair], Prefers("6,000", 0.69, 0.2), None, GUARD_ALONE)
    assert (lowered.verdict, lowered.unsure, lowered.lacking) == ("supportive", True, ())
    assert ruled(SUPPORTIVE, "He left", "He left.") == SUPPORTIVE


def test_nothing_is_preferred_where_the_passage_has_all_or_speaks_of_something_else_or_the_verdict_is_another():
    always, cost = Prefers("EUR", 1.0, 1.0), "The work cost EUR 5,000"

    def preferred(rulings, pairs, verifier):
        return [found and found.new for found in guards.preferred(rulings, pairs, verifier, ON)]

    doubtful = replace(SUPPORTIVE, scores={"supportive": 0.4, "editing_required": 0.3, "irrelevant": 0.3})
    assert preferred([doubtful], [read(cost, "The work cost EUR 6,000.")], always) == ["6,000"]
    assert preferred([doubtful], [read(cost, "The work cost EUR 5,000.")], always) == [None]
    assert preferred([doubtful], [read(cost, "Rain fell on EUR 6,000 of wheat.")], always) == [None]
    assert preferred([doubtful], [read(cost, "The work cost EUR 6,000. She paid EUR 5,000.")], always) == ["6,000"]
    assert preferred([IRRELEVANT], [read(cost, "The work cost EUR 6,000.")], always) == [None]
    assert preferred([], [], always) == []


def test_a_name_that_a_passage_lacks_makes_a_supportive_verdict_unsure_and_nothing_else():
    lowered = ruled(SUPPORTIVE, "He is in Estonia", "He left.")
    assert (lowered.verdict, lowered.unsure) == ("supportive", True)
    assert "does not contain Estonia" in lowered.note
    assert ruled(IRRELEVANT, "He is in Estonia", "He left.") == IRRELEVANT


def test_a_contradiction_by_a_passage_that_seems_to_speak_of_something_else_is_unsure():
    fact, text = "The tenants complained about the sale of the shop", "The harbour has 160 berths."
    lowered = ruled(EDITING, fact, text)
    assert (lowered.verdict, lowered.unsure) == ("editing_required", True)
    assert ruled(EDITING, fact, text, replace(ON, anchored=False)) == EDITING
    assert ruled(EDITING, fact, "The tenants praised the sale of the shop.") == EDITING


def test_a_short_denial_stays_a_contradiction():
    sure = replace(EDITING, scores={"supportive": 0.1, "editing_required": 0.76, "irrelevant": 0.14})
    found = ruled(sure, "Alcohol is paid up to 20 pounds a day", "Alcohol is not paid.")
    assert (found.verdict, found.scores) == ("editing_required", sure.scores)
    assert "unsure" in found.note


@given(st.text(max_size=60), st.text(max_size=80), st.booleans(), st.booleans(), st.booleans())
def test_no_guard_hides_a_contradiction(fact, text, numbers, order, anchored):
    settings = replace(ON, names_and_numbers=numbers, event_order=order, anchored=anchored)
    assert ruled(EDITING, fact, text, settings).verdict == "editing_required"


@pytest.mark.parametrize(
    ("fact", "sentence", "word", "instead"),
    [
        ("He left before the storm", "He left two days after the storm.", "before", "after"),
        ("He left before the storm", "The storm came before he left.", "before", "after"),
        ("The vote preceded the strike", "The vote followed the strike.", "preceded", "followed"),
        ("The vote was followed by the strike", "The vote was preceded by the strike.", "followed by", "preceded by"),
        (
            "Ann paid the mill on 6 May, before she received EUR 90",
            "Ann received EUR 90 on 2 May. Rain fell on 9 May.",
            "before",
            "after",
        ),
        ("After the storm, he left", "He left before the storm.", "After", "Before"),
        ("The port closed because sales fell", "Sales fell because the port closed.", "because", ""),
        ("It left one day before the alarm rang", "On 6 May, one day after the alarm, EUR 9 left.", "before", "after"),
    ],
)
def test_the_opposite_order_of_the_same_events_is_seen(fact, sentence, word, instead):
    order = against(fact, sentence)
    assert fact[order.start : order.end] == word
    assert turned(fact, order) == instead
    assert ruled(SUPPORTIVE, fact, sentence).verdict == "editing_required"
    off = replace(ON, event_order=False, names_and_numbers=False)
    assert ruled(SUPPORTIVE, fact, sentence, off) == SUPPORTIVE


@pytest.mark.parametrize(
    ("fact", "sentence"),
    [
        ("The film was Ann's last role due to her death", "It is the final part that Ann took before her death."),
        ("Ann kept goal at home before the ground was sold", "After the ground was sold, Ann played abroad."),
    ],
)
def test_the_opposite_order_of_events_with_few_common_words_is_unsure(fact, sentence):
    found = ruled(SUPPORTIVE, fact, sentence)
    assert (found.verdict, found.doubt) == ("editing_required", "it may say so of other events")
    assert not ruled(SUPPORTIVE, "He left before the storm", "The storm came before he left.").unsure


@pytest.mark.parametrize(
    ("fact", "sentence"),
    [
        ("He left before the storm", "He left before the storm."),
        ("He left before the storm", "The storm came after he left."),
        ("He left before the storm", "They ate after the match."),
        ("He left on Monday", "He left after the storm."),
        (
            "The fair was moved on 5 May because of the strike on 8 May",
            "The fair was moved on 5 May. A strike came on 8 May.",
        ),
        ("They met after the storm broke the pier", "A storm broke the pier, so they met on 5 May."),
        ("The sale preceded the loan by two weeks", "The sale came and the loan followed two weeks later."),
        ("The account was opened ten days before", "It had been opened ten days before."),
        ("The account was opened ten days afterwards", "It had been opened nine days before."),
        ("The shop was closed two days later", "It was opened two days before."),
        ("The mill was paid before it sold corn", "The mill sold corn. Two days before, it was paid."),
        ("Ann paid the mill on 6 May, after she received EUR 90", "Ann received EUR 90 on 2 May."),
        ("Ann paid the mill before she received EUR 90", "Ann received EUR 90 on 2 May and paid the mill."),
        (
            "The cash was followed by a transfer of EUR 98",
            "EUR 98 came as a transfer. After it the month ends with EUR 18, so that the cash was gone.",
        ),
    ],
)
def test_no_order_is_turned_where_none_is_stated_or_both_agree(fact, sentence):
    assert against(fact, sentence) is None


READ = "The deeds were read on 19 August, shortly after the final chart had been issued"
SILENT = "The deeds were read on 19 August by two of us, and the final page was signed."


def test_the_dates_of_other_passages_tell_an_order_that_the_passage_does_not_give():
    chart = dated_parts("It rained.", "Chart of owners, final version issued on 21 August")
    order = against(READ, SILENT, chart)
    assert order.dated and (READ[order.start : order.end], turned(READ, order)) == ("after", "before")
    assert "dates" in guarded(SUPPORTIVE, read(READ, SILENT, dated=chart), ON).note
    assert against(READ, SILENT, dated_parts("The final chart was issued on 17 August.")) is None
    assert against(READ, SILENT) is None


def test_dates_that_differ_tell_nothing_and_the_words_of_the_passage_come_first():
    chart = dated_parts("The final chart was issued on 21 August. The final chart was issued on 22 August.")
    assert against(READ, SILENT, chart) is None
    said = "The deeds were read after the final chart was issued."
    assert against(READ, said, dated_parts("The final chart was issued on 21 August.")) is None


@given(st.text(alphabet="ab eforaft", max_size=60))
def test_an_order_never_contradicts_its_own_sentence(text):
    assert all(0 <= o.start < o.end <= len(text) for o in orders(text))
    if len(orders(text)) == 1:
        assert against(text, text) is None


class Meanings:
    """An embedder that knows one meaning of several words, and that a dentist and a doctor are near "person".

    Every other text has a direction of its own.
    """

    name, dimensions = "meanings", 64

    def __init__(self, *same):
        self.same, self.seen = same, {}

    def embed(self, texts, watch=None):
        places = [self.seen.setdefault(next(iter(self.same)) if t in self.same else t, len(self.seen)) for t in texts]
        found = np.eye(self.dimensions, dtype=np.float32)[places]
        found[[t in ("dentist", "doctor") for t in texts], self.seen.get("person", 0)] += 0.5
        return found


APPROVED = "The claim was approved by the physician."
LIKELY = replace(SUPPORTIVE, scores={"supportive": 0.7, "editing_required": 0.2, "irrelevant": 0.1})


def doubts(fact, ruling=LIKELY, embedder=None, settings=ON):
    (after,) = doubted([ruling], [read(fact, APPROVED)], embedder or Meanings("doctor", "physician"), settings)
    return after


def test_a_noun_that_the_passage_says_nothing_like_lowers_certainty_and_nothing_else():
    assert unheld_nouns("The dentist approved the claim.", APPROVED) == ("dentist",)
    assert unheld_nouns("The claim came at 4 p.m. in 20 degrees Celsius.", f"{APPROVED} It was 20 °C.") == ()
    after = doubts("The dentist approved the claim.")
    assert (after.verdict, after.unsure, after.lowered) == ("supportive", True, True)
    assert after.note.endswith("unsure, the passage says nothing like dentist")
    again = doubts("The dentist approved the claim.", replace(LIKELY, note="supportive by V; unsure"))
    assert again.note == "supportive by V; unsure, the passage says nothing like dentist"
    assert after.scores == LIKELY.scores


@pytest.mark.parametrize(
    ("fact", "ruling", "settings"),
    [
        ("The doctor approved the claim.", LIKELY, ON),  # other words for the same
        ("The claim was approved.", LIKELY, ON),  # nothing more than the passage says
        ("Ada approved the claim.", LIKELY, ON),  # a name is for the guard of names
        ("The weather approved the claim.", LIKELY, ON),  # no role
        ("A person approved the claim.", LIKELY, ON),  # anybody
        ("The dentist approved the claim.", replace(LIKELY, scores={"supportive": 0.9}), ON),
        ("The dentist approved the claim.", replace(LIKELY, verdict="editing_required"), ON),
        ("The dentist approved the claim.", LIKELY, replace(ON, roles=False)),
    ],
)
def test_no_other_ruling_is_doubted(fact, ruling, settings):
    assert doubts(fact, ruling, settings=settings) == ruling


def test_nothing_is_embedded_where_every_noun_is_held():
    embedder = Meanings("doctor")
    doubts("The physician approved the claim.", embedder=embedder)
    assert embedder.seen == {}


PAID = "Account 4471 received EUR 1,240,000 on 8 April from Ardelle Trading of Dubai, quoting an invoice."


def by_words(fact: str, text: str, ruling: Ruling = EDITING, said: str = "") -> Ruling:
    return word_for_word(ruling, read(fact, text, said))


def test_a_fact_in_a_passages_own_words_is_borne_out_whatever_the_verifier_says():
    text = f"It rained. {PAID}"
    ruling = by_words("The account received EUR 1,240,000 from Ardelle Trading", text)
    assert (ruling.verdict, ruling.by, ruling.scores, ruling.unsure) == ("supportive", STATED, {}, False)
    assert text[slice(*ruling.window)] == PAID
    assert EDITING.note in ruling.note
    assert by_words("Account 4471 received EUR 1,240,000 on 8 April", text).by == COPIED


def test_a_passage_that_says_the_fact_decides_over_others_that_seem_to_contradict_it():
    said = by_words("The account received EUR 1,240,000", PAID, SUPPORTIVE)
    against = replace(EDITING, scores={"supportive": 0.1, "editing_required": 0.9, "irrelevant": 0.0})
    checks = [Check(evidence=0, ruling=against), Check(evidence=1, ruling=said)]
    assert deciding(checks, [case("It left."), case(PAID, 2)]) == 1


def test_a_whole_sentence_bears_out_what_was_read_from_it():
    said = "The bridge, which Lind built, opened in 1934."
    assert by_words("Lind built the bridge", f"{said} It is red.").verdict == "editing_required"
    assert by_words("Lind built the bridge", f"{said} It is red.", said=said).by == COPIED


def test_a_quotation_with_a_speaker_is_borne_out_by_that_speakers_turn_alone():
    text = "Roe: How are breaks?\nBell: Fine. I get both breaks.\nRoe: And you?\nCole: No. Mine is cut. I get none."
    for said, decided in (
        ("Bell: I get both breaks.", ("supportive", COPIED)),
        ("Bell: Fine.", ("supportive", COPIED)),
        ("Cole: I get both breaks.", ("editing_required", EDITING.by)),
        ("Jane: I get both breaks.", (EDITING.verdict, EDITING.by)),  # the passage may call her by another label
    ):
        ruling = by_words(said, text, said=said)
        assert (ruling.verdict, ruling.by) == decided
    part = Evidence(text="I get both breaks.\nRoe: And you?\nCole: None.", source="case", number=1, speaker="Bell")
    for said, verdict in (("Bell: I get both breaks.", "supportive"), ("Cole: I get both breaks.", "editing_required")):
        pair = Read(said, said, part, anchors(said, [part])[0])
        assert word_for_word(IRRELEVANT, pair).verdict == verdict
    ruling = by_words("Cole: I get both breaks.", text, SUPPORTIVE, "Cole: I get both breaks.")
    assert ruling.verdict == "editing_required" and "the passage has Bell say this" in ruling.note


def test_a_copied_sentence_with_a_pronoun_is_on_the_fact_only_where_the_passage_names_it():
    fact, said = "The Corran bridge opened in 1978", "It opened in 1978."
    assert by_words(fact, f"The Tarn theatre is by the river. {said}", said=said) == EDITING
    assert by_words(fact, f"The Corran bridge is by the river. {said}", said=said).by == COPIED


@pytest.mark.parametrize(
    ("sentence", "facts"),
    [
        ("The old mill on the river was built in 1803 by Ann Lund.", ["The mill was built by Ann Lund"]),
        ("The rent is low; the mill is a shared shed.", ["The rent is low", "The mill is a shared shed"]),
        ("Ann built the mill in 1803 and sold it to Bea Holm.", ["Ann built the mill", "Ann sold it to Bea Holm"]),
    ],
)
def test_modifiers_and_other_verbs_of_a_series_may_be_left_out(sentence: str, facts: list[str]):
    assert all(states(sentence, fact) for fact in facts)


@pytest.mark.parametrize(
    ("sentence", "fact"),
    [
        ("The mill was not sold in 1803.", "The mill was sold in 1803"),
        ("The mill was nearly sold in 1803.", "The mill was sold in 1803"),
        ("If it rains, the mill stops at noon.", "The mill stops at noon"),
        ("Bea denied that Ann sold the mill.", "Ann sold the mill"),
        ("The mill of Ann Lund was sold by Bea Holm.", "Ann Lund was sold by Bea Holm"),
        ("The film was directed by Ann Lund and written by Bea Holm.", "The film was directed by Bea Holm"),
        ("More than 50 people lived there.", "50 people lived there"),
        ("The rate may rise in May.", "The rate rise in May"),
        ("He was born in Cork in 1990.", "He was born in Cork"),
        ("Ann sold the mill to Bea.", "Bea sold the mill to Ann"),
        ("Cork is the second largest city.", "Cork is the largest city"),
        ("Most mills that were inspected had a crack.", "Most mills had a crack"),
        ("The least busy mill was sold.", "The busy mill was sold"),
        ("Ann Lund was the only female miller.", "Ann Lund was the only miller"),
        ("The former miller Ann Lund spoke.", "The miller Ann Lund spoke"),
        ("The mill opened on Sundays until 2019.", "The mill opened on Sundays"),
        ("Guests pay half when they book early.", "Guests pay half"),
        ("The mill was restored in part.", "The mill was restored"),
        ("The sale of the mill was agreed subject to a survey.", "The sale of the mill was agreed"),
        ("Most mills can grind rye.", "Mills can grind rye"),
        ("Some mills must close at night.", "Mills must close at night"),
        ("Mills over a hundred years old need a survey.", "Mills need a survey"),
        ("According to rumours, Ann Lund sold the mill.", "Ann Lund sold the mill"),
    ],
)
def test_what_takes_something_back_or_belongs_to_another_word_is_not_stated(sentence: str, fact: str):
    assert not states(sentence, fact)


def test_a_replay_takes_the_words_of_the_source_for_what_older_checks_called_them():
    fact, text = "The account received EUR 1,240,000", PAID
    now = by_words(fact, text)
    before = replace(now, by=COPIED, note=EDITING.because(TOLD[COPIED]).note)
    compared = KIND.again.compared
    assert now.by == STATED and compared(now.to_dict()) == compared(before.to_dict())
    assert compared(now.to_dict()) != compared(replace(before, by="Ada").to_dict())
