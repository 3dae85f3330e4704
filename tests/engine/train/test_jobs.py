"""The jobs' training samples: each reply is what its evidence, passages or clause bear out."""

import random

import pytest

from engine.home import ASSETS
from engine.prompts import template
from engine.reason.decompose import parse
from engine.reason.options import parse_choice, stated_answer
from engine.train.batches import encode
from engine.train.jobs import LEVELS, difficulty_of
from engine.train.jobs_distractor import distractor_example, distractor_job
from engine.train.jobs_facts import (
    AGREES,
    DISAGREES,
    FACT_JOBS,
    IRRELEVANT,
    claim_and_evidence,
    edit_job,
    facts_on_one,
    other_value,
    text_of,
    verdict_job,
)
from engine.train.jobs_reason import REASON_JOBS, chain_of, final_answer_job, sub_answer_job, sub_questions_job
from engine.train.jobs_refine import REFINE_JOBS, SOUND, draft_of
from engine.train.tokenizer import load_tokenizer

EASY = LEVELS[2]


def target_of(pieces):
    return "".join(p.text for p in pieces if p.part in ("real", "decide"))


@pytest.mark.parametrize("seed", range(20))
def test_clauses_are_verbatim_and_in_order(seed):
    rng = random.Random(seed)
    text, clauses = text_of(facts_on_one(EASY, rng, 4), rng)
    starts = [text.index(clause) for clause, _ in clauses]
    assert starts == sorted(starts)


@pytest.mark.parametrize("seed", range(20))
def test_evidence_holds_the_value_exactly_where_the_verdict_is_agrees(seed):
    rng = random.Random(seed)
    claim, evidence, held = claim_and_evidence(EASY, rng, AGREES)
    assert held.triple.object == claim.triple.object and held.triple.object.lower() in evidence.lower()
    claim, evidence, held = claim_and_evidence(EASY, rng, DISAGREES)
    assert held.triple.object.lower() in evidence.lower() and held.triple.object != claim.triple.object
    claim, evidence, _ = claim_and_evidence(EASY, rng, IRRELEVANT)
    assert claim.statement.lower() not in evidence.lower()


@pytest.mark.parametrize("seed", range(20))
def test_an_edit_changes_the_value_and_nothing_else(seed):
    prompt, reply, _ = edit_job(EASY, random.Random(seed))
    wrong = prompt.text.split("Fact: ")[1].split("\nEvidence")[0]
    said, fixed = reply.text.split("\n")
    old, new = said.removesuffix(".").split(" should be ")
    assert wrong.lower().replace(old.lower(), new.lower()) == fixed.lower()


def test_another_value_keeps_subject_and_relation():
    rng = random.Random(0)
    for _ in range(30):
        triple = facts_on_one(EASY, rng, 1)[0].triple
        other = other_value(triple, rng)
        assert (other.subject, other.relation) == (triple.subject, triple.relation)
        assert other.object != triple.object


def test_a_critique_finds_a_fault_exactly_where_draft_and_revision_differ():
    rng = random.Random(0)
    made = [draft_of(EASY, rng) for _ in range(60)]
    assert all((d.critique == SOUND) == (d.draft == d.revised) for d in made)
    assert 5 < sum(d.critique == SOUND for d in made) < 50


@pytest.mark.parametrize("job", dict.fromkeys(FACT_JOBS + REFINE_JOBS + REASON_JOBS))
def test_a_job_is_a_prompt_of_its_template_then_one_reply(job):
    pieces = job(EASY, random.Random(3))
    parts = [p.part for p in pieces]
    targets = parts[parts.index("real") :]
    assert targets in (["real", "end"], ["real", "decide", "end"])
    assert {*parts[: -len(targets)]} == {"prompt"}
    opening = template(job.__name__.removesuffix("_job")).split(".")[0]
    assert pieces[0].text.startswith(opening)


@pytest.mark.parametrize("seed", range(20))
def test_the_parsers_of_raise_read_what_the_jobs_teach(seed):
    chain = chain_of(EASY, random.Random(seed))
    reply = target_of(sub_questions_job(EASY, random.Random(seed)))
    assert parse(reply) == (chain.subs, ())
    assert chain.facts[0].triple.object == chain.facts[1].triple.subject
    final = target_of(final_answer_job(EASY, random.Random(seed)))
    if chain.problem.options:
        assert parse_choice(final, chain.problem.options) == chain.correct
        assert chain.problem.options[chain.correct] == chain.facts[1].triple.object
    else:
        assert stated_answer(final) == chain.facts[1].triple.object


@pytest.mark.parametrize("seed", range(20))
def test_a_sub_answer_is_a_passage_of_its_prompt_and_later_steps_are_not_in_it(seed):
    *prompt, reply, _ = sub_answer_job(EASY, random.Random(seed))
    assert sum(piece.text.rstrip().endswith(reply.text) for piece in prompt) == 1


def test_a_planted_distractor_gives_another_value_and_is_the_reply_only_where_it_stands_first():
    rng = random.Random(0)
    for _ in range(60):
        example, planted = distractor_example(rng, 5, difficulty_of(EASY, rng))
        right = example.asked[0]
        assert len(example.passages) == 5 and planted.value != right.value and planted.passage != right.passage
        assert right.value.lower() in example.passages[right.passage - 1].lower()
        assert planted.value.lower() in example.passages[planted.passage - 1].lower()
    taken = [distractor_job(LEVELS[6], random.Random(seed)) for seed in range(80)]
    cited = [next(p.source for p in pieces if p.part == "real") for pieces in taken]
    assert 8 < cited.count(1) < 60


def test_a_deciding_word_goes_on_from_the_reply_without_a_space_of_its_own():
    tokenizer = load_tokenizer(ASSETS / "models" / "language_model")
    pieces = verdict_job(EASY, random.Random(1))
    ids, codes, _ = encode(pieces, tokenizer)
    said = tokenizer.decode([i for i, code in zip(ids, codes, strict=True) if code in (3, 6)], skip_special_tokens=True)
    assert said.strip() == target_of(pieces)
    assert tokenizer.decode([i for i, code in zip(ids, codes, strict=True) if code == 6], skip_special_tokens=True) in (
        "agrees",
        "disagrees",
        "irrelevant",
    )
