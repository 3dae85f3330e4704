"""Made pairs and splits of the verifier's training, on a folder of public sets in miniature."""

from __future__ import annotations

import json
from itertools import islice
from random import Random

import pytest

from engine.core.errors import FileError
from training import verifier_edits as edits
from training.verifier_data import Page, fever_symmetric, fool_me_twice, held_out_page, load_pools, overlap
from training.verifier_held_out import held_out_sets
from training.verifier_pairs import _beside_negation, _both_negated, draw
from training.verifier_questions import claim_of, claims_from_questions

SENTENCE = "The bridge, which crosses the Lune, was opened in March 1874 by Hanna Lind and cost more than 4,200 crowns."
NAMES = ["Otto Berg", "Riga", "Maria Tell", "Narva"]


@pytest.mark.parametrize("kind", sorted(edits.CHANGES))
def test_every_change_changes_one_place_only(kind):
    text = "In March 1874 the first bridge was opened by Hanna Lind after Otto Moor refused the 4,200 crowns."
    for seed in range(8):
        changed = edits.CHANGES[kind][0](text, Random(seed), NAMES)
        assert changed is not None and changed != text
        assert overlap(text, changed) > 0.6


def test_a_changed_number_keeps_its_look():
    for seed in range(40):
        changed = edits.change_number("It cost 4,200 crowns.", Random(seed), [])
        assert changed != "It cost 4,200 crowns." and changed.startswith("It cost ") and changed.endswith(" crowns.")
        year = edits.change_number("It opened in 1874.", Random(seed), [])
        assert 1 <= abs(int(year[-5:-1]) - 1874) <= 40


def test_negation_is_taken_out_or_put_in():
    assert edits.negate("It was not sold.", Random(0), []) == "It was sold."
    assert edits.negate("It was sold.", Random(1), []) in ("It was not sold.", "It was never sold.")
    assert edits.negate("Rain fell.", Random(0), []) is None


@pytest.mark.parametrize(
    ("text", "others"),
    [
        ("No rights are waived.", {"The rights are not waived.", "It is not true that rights are waived."}),
        ("The lamp does not have a switch.", {"The lamp lacks a switch.", "The lamp is without a switch."}),
        ("It hurt nobody.", {"It hurt not a single person.", "It hurt none of the people."}),
        ("It rained.", {None}),
    ],
)
def test_a_negation_in_another_form(text, others):
    said = {edits.renegate(text, Random(seed)) for seed in range(40)}
    assert said & others and said <= others | {"No lamp does have a switch.", "The lamp doesn't have a switch.",
        "The lamp does never have a switch.", "The lamp does in no case have a switch."}  # fmt: skip


def test_the_passive_says_the_same_and_the_swapped_one_the_reverse():
    assert edits.passive("Hanna Lind opened the old bridge in 1874.") == (
        "The old bridge was opened by Hanna Lind in 1874.",
        "Hanna Lind was opened by the old bridge in 1874.",
    )
    for text in (
        "She opened the bridge.",
        "The bridge opened.",
        "The bridge was opened by Ada.",
        "Ada sees Otto Berg.",
    ):
        assert edits.passive(text) is None


def test_what_both_sides_deny_is_borne_out():
    page = Page("Bridge", ("The old bridge was sold to Otto Moor.", "It had no lamps at all."), ("Riga",))
    made = [_both_negated(page, 0, page.sentences[0], [], Random(seed)) for seed in range(40)]
    for claim, evidence, label in made:
        assert edits.DENIAL.search(claim)
        assert label == (0 if "sold" in evidence and edits.DENIAL.search(evidence.split(" It had")[0]) else 1)
    beside = [_beside_negation(page, 0, page.sentences[0], ["Riga"], Random(seed)) for seed in range(40)]
    assert {label for _, _, label in beside} == {0, 1}
    assert all("no lamps" in evidence for _, evidence, _ in beside)


def test_a_dropped_detail_leaves_a_shorter_sentence_with_nothing_new():
    for seed in range(20):
        left = edits.drop_detail(SENTENCE, Random(seed))
        assert left and len(left) < len(SENTENCE)
        assert set(left.replace(",", " ").split()) <= set(SENTENCE.replace(",", " ").split())


def test_rewording_keeps_numbers_and_names():
    for seed in range(20):
        text = edits.reword(SENTENCE, Random(seed), "The old bridge")
        assert "1874" in text and "Hanna Lind" in text and ("4,200" in text or "4200" in text)


@pytest.mark.parametrize(
    ("question", "answer", "claim"),
    [
        ("who built the bridge", "Hanna Lind", "Hanna Lind built the bridge"),
        ("when did the mill close", "1874", "the mill close in 1874"),
        ("how many people are in the choir", "40", "40 people are in the choir"),
        ("why did it close", "rain", None),
    ],
)
def test_claims_of_questions(question, answer, claim):
    assert claim_of(question, answer) == claim


def test_wrong_answers_come_from_the_passage():
    row = {
        "question": "who built the bridge",
        "answers": ["Hanna Lind"],
        "passage": "In 1874 the bridge was built by Hanna Lind. It was repaired by Otto Moor. The river is wide there.",
    }
    pairs = claims_from_questions([row])
    assert {label for _, _, label in pairs} == {0, 1, 2}
    assert all("Hanna Lind" not in claim for claim, _, label in pairs if label == 1)
    assert all("Hanna Lind" not in evidence for _, evidence, label in pairs if label == 2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The public sets' layout with a few invented records each."""
    root = tmp_path_factory.mktemp("data")
    labels = ["supportive", "editing_required", "irrelevant"]
    towns = ["Riga", "Narva", "Turku", "Visby", "Tartu", "Kotka"]
    pairs = [
        {
            "page": town,
            "claim": f"{town} had {n + 20} mills",
            "evidence": f"In {1800 + n} there were {n + 20} mills in {town}.",
            "label": labels[n % 3],
        }
        for n, town in enumerate(towns * 4)
    ]
    passages = [
        {
            "_id": str(n),
            "title": town,
            "text": f"{SENTENCE} The mayor of {town} was Otto Berg in {1900 + n}. He had two sons.",
        }
        for n, town in enumerate(towns)
    ]
    question = {"question": "who opened the bridge", "answers": ["Hanna Lind"], "passage": SENTENCE, "doc_id": "0"}
    clapnq = [
        {
            "answerable": True,
            "answers": [p["text"].split(" The mayor")[0]],
            "passage": p["text"],
            "sentences": [SENTENCE, f"The mayor of {p['title']} was Otto Berg.", "He had two sons and a boat."],
            "selected_sentences": [[SENTENCE]],
        }
        for p in passages
    ]
    fever = [{**pair, "split": "dev" if n < 12 else "test"} for n, pair in enumerate(pairs)]
    fever[20] = {**fever[0], "split": "test"}
    fool = [
        {**p, "evidence": [p["evidence"]], "retrieved": ["The harbour froze over in that long year."]} for p in pairs
    ]
    files = {
        "vitaminc/train": pairs,
        "vitaminc/dev": pairs[:6],
        "fever_symmetric/verify": fever,
        "fool_me_twice/verify": fool,
        "propsegment/propositions": [{"sentence": SENTENCE, "reference": ["the bridge was opened in March 1874"]}],
        "nq_gold_passage/corpus": passages,
        "nq_gold_passage/qa": [question],
        "xquad_en/corpus": passages,
        "xquad_en/qa": [question],
        "hotpotqa_100/qa": [
            {"passages": [{"title": "Lune", "sentences": [SENTENCE, " It has three red arches in all."]}]}
        ],
        "clapnq/qa": clapnq,
    }
    for name, rows in files.items():
        path = root / f"{name}.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return root


def test_held_out_pairs_are_never_drawn(folder):
    away = {claim for claim, _, _ in fool_me_twice(folder, held_out=True)}
    mine = {claim for claim, _, _ in fool_me_twice(folder, held_out=False)}
    assert not away & mine
    assert all(held_out_page(claim.split()[0]) for claim in away)
    dev = fever_symmetric(folder, held_out=False)
    test = fever_symmetric(folder, held_out=True)
    assert test and not {c for c, _, _ in dev} & {c for c, _, _ in test}
    assert not {e for _, e, _ in dev} & {e for _, e, _ in test}


def test_drawing_is_seeded_and_mixes_classes(folder):
    pools = load_pools(folder)
    one, same, other = (list(islice(draw(pools, Random(seed)), 300)) for seed in (1, 1, 2))
    assert one == same != other
    assert {label for _, _, label in one} == {0, 1, 2}
    assert all(claim.strip() and evidence.strip() for claim, evidence, _ in one)


def test_the_halves_of_a_held_out_set_share_no_claim(folder):
    for data in held_out_sets(folder):
        fitted = {data.pairs[i][0] for i in data.half(fitted=True)}
        kept = {data.pairs[i][0] for i in data.half(fitted=False)}
        assert not fitted & kept
        assert len(data.fitted) == len(data.pairs)


def test_an_absent_set_is_named(tmp_path):
    with pytest.raises(FileError, match=r"vitaminc.*--data"):
        load_pools(tmp_path)
