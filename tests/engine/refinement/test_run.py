"""The nine conditions on one case: what each is asked, what is shared, what it costs, what happens when one fails."""

from __future__ import annotations

import threading
import time
from dataclasses import replace as replaced

import msgspec
import pytest
from msgspec.structs import replace

from engine.answer.prompt import build_prompt
from engine.answer.quoting_reader import shortened, whole_id
from engine.core.errors import BudgetSpent, InputError, ModelError, PromptTooLong, ServerError
from engine.core.progress import Watch
from engine.core.settings import Decoding, Prompting, SecondPass as RefinementSettings, Settings
from engine.core.values import Answer, Prompt, Segment
from engine.methods.refinement.conditions import VARIANTS, chosen, omit_critique, revision_prompt
from engine.methods.refinement.costs import Deadline
from engine.methods.refinement.request import MORE_TOKENS, conditions_of, scored_prompt, stream
from engine.methods.refinement.run import copied, refine, refining
from engine.methods.refinement.values import Refinement, Turn
from engine.models.scripted import ScriptedWriter, word_tokens
from engine.prompts import template
from tests.engine.refinement.refine_cases import (
    DRAFT,
    MEMORY,
    QUESTION,
    REPLIES,
    TEXTS,
    asked_case,
    passages,
    purpose,
    replies,
    request,
    scorer,
    writer,
)
from tests.engine.studies.stand_ins import Letters
from tests.stopping import before_the_stop
from tests.tiny import tiny_model

NAMES = tuple(VARIANTS)
PLAIN = ("A", "B", "C1", "C2", "D", "E")
LONG = tuple(replace(p, text=f"{p.text} It has no more to say. Nobody minds.") for p in passages())
LABELS = (True, True, False)
SHOWN = Settings(refinement=RefinementSettings(demonstrations=2))


def asked(model, name):
    """The prompts of one purpose."""
    return [text for text in model.prompts if purpose(text) == name]


def test_a_once_b_once_and_each_condition_its_own_calls():
    model = writer()
    value = refine(request(model, variants=PLAIN))
    assert [purpose(text) for text in model.prompts] == ["A", "B", "A", "C2", "grounding", "critique", "E"]
    assert {name: v.answer.text for name, v in value.variants.items()} == {
        "A": DRAFT,
        "B": MEMORY,
        "C1": DRAFT,
        "C2": REPLIES["C2"],
        "D": REPLIES["grounding"],
        "E": REPLIES["E"],
    }
    assert [t.purpose for t in value.variants["E"].turns] == ["critique", "revision"]


def test_a_has_two_demonstrations_of_two_passages_and_the_passages_in_order():
    model = writer()
    value = refine(request(model, variants=("A",), settings=SHOWN))
    shots = [s for s in value.variants["A"].turns[0].prompt.segments if s.kind == "demonstration"]
    assert [s.role for s in shots] == ["user", "assistant", "user", "assistant"]
    assert all(s.text.count("Passage ") == 2 for s in shots if s.role == "user")
    assert all("[cite_" in s.text for s in shots if s.role == "assistant")
    text = model.prompts[0]
    places = [text.index(t) for t in TEXTS]
    assert places == sorted(places)
    assert text.endswith(f"Question: {QUESTION}\nAnswer:")


def test_b_is_the_prompt_of_a_without_its_passages_and_c1_the_same_prompt():
    variants = refine(request(variants=PLAIN, settings=SHOWN)).variants
    first, memory = variants["A"].turns[0].prompt, variants["B"].turns[0].prompt
    assert memory.segments == tuple(s for s in first.segments if s.kind != "passage")
    assert [s.kind for s in memory.segments].count("demonstration") == 4
    assert variants["C1"].turns[0].prompt == first


def test_each_condition_draws_from_a_stream_of_its_own():
    seeds = (1337, 2024, 42)
    runs = [
        refine(request(scorer(), variants=NAMES, gate="always", settings=Settings(decoding=Decoding(seed=seed))))
        for seed in seeds
    ]
    drawn = [run.variants[name].seed for run in runs for name in NAMES]
    assert [run.variants["A"].seed for run in runs] == list(seeds)
    assert len(set(drawn)) == len(drawn)  # D and v2c, which ask the same, and C1 and every run's A among them


def test_a_seed_that_a_run_of_a_has_is_taken_by_no_other_condition():
    clash = stream(1337, "C1")
    assert stream(1337, "C1", (clash,)) not in (clash, 1337)
    settings = Settings(refinement=RefinementSettings(seeds=(1337, clash)))
    assert refine(request(variants=("C1",), settings=settings)).variants["C1"].seed != clash


def test_the_critique_asks_for_faults_and_leaves_no_way_out():
    asked = template("critique").casefold()
    assert all(fault in asked for fault in ("contradict", "do not support", "citations"))
    assert not {"if", "none", "otherwise", "unless"} & set(asked.replace(".", " ").split())


def test_a_small_writer_reads_the_same_short_passages_in_every_condition():
    read = shortened(QUESTION, LONG, Letters(), 2)
    assert [number for number, _ in read] == sorted(number for number, _ in read)
    value = refine(request(variants=PLAIN, gate="always", read=read))
    for name in ("A", "C1", "C2", "D", "E"):
        for turn in value.variants[name].turns:
            shown = [s for s in turn.prompt.segments if s.kind == "passage"]
            assert [s.number for s in shown] == [number for number, _ in read]
            assert all(piece.text in s.text for s, (_, piece) in zip(shown, read, strict=True))
    assert value.variants["E"].turns[0].prompt.numbers == value.variants["A"].turns[0].prompt.numbers


def test_what_is_read_keeps_the_number_of_its_passage_and_is_a_stretch_of_it():
    read = shortened("When was the bridge repaired?", LONG, Letters(), 2)
    for number, piece in read:
        whole = LONG[number - 1]
        start = piece.start - whole.start
        assert whole.text[start : start + len(piece.text)] == piece.text
        assert whole_id(piece) == whole.id


def test_a_second_pass_of_a_small_writer_is_bounded_by_the_draft_and_no_other_ones():
    endless = " ".join(["Lind"] * 500)
    own = dict.fromkeys(("B", "C2", "grounding", "critique", "E"), endless)
    free = refine(request(writer(**own), variants=PLAIN, gate="always"))
    assert {free.variants[n].cost.written for n in ("B", "C2", "D")} == {500}
    settings = Settings(refinement=RefinementSettings(growth=2.0))
    value = refine(request(writer(**own), variants=PLAIN, gate="always", settings=settings))
    limit = 2 * len(word_tokens(DRAFT)) + MORE_TOKENS
    assert {value.variants[n].cost.written for n in ("B", "C2", "D")} == {limit}
    assert value.variants["E"].cost.written == 2 * limit
    assert value.variants["D"].outcome == "cut" and f"{limit} tokens" in value.variants["D"].problem
    assert (RefinementSettings().growth_for("embedded"), RefinementSettings().growth_for("another")) == (2.0, 0.0)


def test_the_revisions_hold_the_input_of_a_the_draft_and_their_own_critique():
    model = writer()
    value = refine(request(model, variants=PLAIN, gate="always"))
    first = value.variants["A"].turns[0].prompt
    for name in ("C2", "D", "E"):
        prompt = value.variants[name].turns[-1].prompt
        assert prompt.segments[: len(first.segments)] == first.segments
        assert (prompt.segments[-2].role, prompt.segments[-2].text) == ("assistant", DRAFT)
        assert prompt.segments[-1].text.startswith("A reviewer says about your answer:")
    assert REPLIES["critique"] in asked(model, "E")[0]
    critique = value.variants["E"].turns[0].prompt.segments
    assert [(s.kind, s.role) for s in critique] == [("system", "system"), *[("passage", "user")] * 3, ("draft", "user")]
    assert "come from memory" not in asked(model, "C2")[0]
    assert DRAFT in asked(model, "critique")[0]
    assert all(text in asked(model, "critique")[0] for text in TEXTS)


def test_alce_style_asks_for_its_own_markers_everywhere():
    model = writer(A="Lind built it [1]. She loved trains.")
    settings = Settings(prompting=Prompting(citations="alce"))
    value = refine(request(model, settings=settings, gate="always", labels=LABELS))
    assert all("cite_" not in text for text in model.prompts)
    assert value.baseline.citations[0].number == 1
    assert value.decoding.max_new_tokens == 512
    assert refine(request(variants=("A",))).decoding.max_new_tokens == 1024


def test_every_condition_gets_the_same_limit_temperature_and_top_p():
    seen = []

    class Noting(ScriptedWriter):
        def generate(self, prompt, decoding, on_text=None, watch=Watch()):
            seen.append(decoding)
            return super().generate(prompt, decoding, on_text, watch)

    refine(request(Noting(replies()), variants=PLAIN, gate="always"))
    assert {(d.max_new_tokens, d.temperature, d.top_p) for d in seen} == {(1024, 0.7, 0.95)}
    assert len({d.seed for d in seen}) == len(PLAIN)


def test_an_untriggered_condition_is_a_byte_for_byte_and_costs_nothing():
    model = writer(A="Hanna Lind built the bridge in 1874 [cite_1].")
    value = refine(request(model, variants=PLAIN))
    d = value.variants["D"]
    assert value.signals.s3 == 1
    assert (d.outcome, d.triggered, d.answer) == ("not triggered", False, value.baseline)
    assert (d.cost.forwards, d.cost.written, d.turns) == (0, 0, ())
    assert asked(model, "grounding") == []
    always = refine(request(writer(A=value.baseline.text), variants=PLAIN, gate="always"))
    assert always.variants["D"].answer.text == REPLIES["grounding"]


def test_the_threshold_comes_from_the_history_of_twenty():
    kept = refine(request(variants=("D",), history=tuple([0.1] * 20)))
    assert kept.threshold.value == pytest.approx(0.1)
    assert not kept.variants["D"].triggered
    assert refine(request(variants=("D",), history=tuple([0.9] * 20))).variants["D"].triggered


def test_the_counts_are_those_of_the_writer():
    model = scorer()
    value = refine(request(model, variants=PLAIN))
    own = sum(v.cost.forwards for v in value.variants.values())
    assert own + value.shared["S2"].forwards == model.forwards
    assert value.shared["S2"].forwards == 2
    assert value.variants["A"].cost.forwards == value.variants["A"].cost.written == len(word_tokens(DRAFT))
    assert value.variants["E"].cost.written == len(word_tokens(REPLIES["critique"])) + len(word_tokens(REPLIES["E"]))


def test_signals_are_taken_of_a():
    value = refine(request(scorer(gain=0.5), variants=("A",)))
    assert value.signals.s2 == pytest.approx(1.5)
    assert value.signals.s3 == pytest.approx(
        4 / 6
    )  # Hanna Lind built 1874, not: loved trains; "it", "in" and "she" are stop words
    assert value.signals.s1 == 0
    assert set(value.variants) == {"A", "B"}


def test_a_writer_without_probabilities_says_what_to_do_and_a_scorer_helps():
    value = refine(request(labels=LABELS, settings=Settings()))
    assert value.signals.s2 is None
    assert "Choose a language model" in value.signals.missing["S2"]
    assert [value.variants[n].outcome for n in ("v2a", "v2b", "v2c")] == ["failed"] * 3
    assert "gradients" in value.variants["v2c"].problem
    helped = refine(request(writer(), labels=LABELS, settings=Settings(), scorer=tiny_model("llama")), value)
    assert [helped.variants[n].outcome for n in ("v2a", "v2b", "v2c")] == ["answered"] * 3
    assert helped.signals.banner.startswith("Written by scripted. Scored by tiny-llama.")


def test_v2_asks_for_what_its_name_says():
    model = writer()
    value = refine(request(model, labels=LABELS, settings=Settings(), scorer=tiny_model("llama")))
    assert value.variants["v2a"].trigger.passages == (3,)
    names = [asked(model, name)[0].rsplit("says about your answer:", 1)[1] for name in ("v2a", "v2b")]
    assert all("[cite_3]" in text and "[cite_2]" not in text for text in names)
    assert "Leave out every statement" in names[1] and "Leave out every statement" not in names[0]
    d, v2c = value.variants["D"].turns[0].prompt, value.variants["v2c"].turns[0].prompt
    assert d == v2c
    assert (value.gradient.forwards, value.gradient.backwards) == (1, len(value.gradient.per_token) + 1)
    assert value.shared["gradient"].forwards == 1
    assert value.shared["gradient"].backwards == value.gradient.backwards


def test_a_critique_names_no_passage_that_the_writer_was_not_shown():
    """The prompt has passage 2 alone, and passages 1 and 3 are labelled not relevant."""
    read = ((2, passages()[1]),)
    model = writer(A="It was repaired in 1931 [cite_2].")
    tiny, names = tiny_model("llama"), ("A", "v2a", "v2b", "v2c")
    given = {"variants": names, "gate": "always", "read": read, "scorer": tiny}
    value = refine(request(model, labels=(False, None, False), **given))
    assert value.variants["v2a"].trigger.passages == (2,)  # not labelled, and all that there is
    assert "The answer relies on [cite_2]," in next(text for text in model.prompts if "may not bear on" in text)
    silent = writer(A="It was repaired in 1931 [cite_2].")
    value = refine(request(silent, labels=(False, True, False), **given))
    assert [value.variants[name].outcome for name in names] == ["answered", *["not applicable"] * 2, "answered"]
    assert not any("may not bear on" in text for text in silent.prompts)
    own = refine(request(silent, labels=(None, False, None), **{**given, "gate": "own"}))
    assert own.variants["v2c"].trigger.rule == "unavailable" and "one passage" in own.variants["v2c"].problem


def test_a_label_changes_the_trigger_with_no_new_gradient_and_writes_only_what_it_changes():
    tiny = tiny_model("llama")
    first = refine(request(writer(), labels=(None, None, True), settings=Settings(), scorer=tiny))
    assert not first.variants["v2c"].triggered
    model = writer()
    second = refine(request(model, labels=(None, None, False), settings=Settings(), scorer=tiny), first)
    assert second.variants["v2c"].triggered
    assert second.gradient is first.gradient
    assert [purpose(text) for text in model.prompts] == ["v2a", "v2b", "grounding"]
    back = refine(request(ScriptedWriter([]), labels=(None, None, True), settings=Settings(), scorer=tiny), second)
    assert back.variants["v2c"].answer == back.baseline


def test_a_run_goes_on_from_what_is_there():
    some = refine(request(variants=("A", "C2")))
    model = writer()
    value = refine(request(model, variants=("E",)), some)
    assert [purpose(text) for text in model.prompts] == ["critique", "E"]
    assert set(value.variants) == {"A", "B", "C2", "E"}
    assert value.finished
    again = ScriptedWriter([])
    assert refine(request(again, variants=("E",)), value) == value


def test_other_inputs_or_settings_are_not_gone_on_from():
    some = refine(request(variants=("A",)))
    model = writer()
    refine(request(model, variants=("A",), settings=Settings(refinement=RefinementSettings(temperature=0.0))), some)
    assert asked(model, "A")


RULES_ONLY = {
    "refinement.overlap_threshold": 0.01,
    "refinement.overlap_percentile": 10.0,
    "refinement.overlap_cases": 5,
    "refinement.trigger": "concentration",
    "refinement.seconds": 60.0,
    "prompting.refuse_under": 0.5,
    "gradient.share": 0.9,
    "gradient.ratio": 3.0,
    "gradient.used_top": 1,
}
OF_THE_ROWS = {
    "refinement.ranked_by": "gradient norm",
    "gradient.target": "log_probability",
    "gradient.first_tokens": 4,
    "occlusion.count_citation_markers": True,
}


@pytest.mark.parametrize("path", RULES_ONLY)
def test_a_setting_that_no_text_depends_on_leaves_the_texts_and_the_gradient_rows(path):
    tiny, names = tiny_model("llama"), ("A", "C2", "v2c")
    some = refine(request(variants=names, scorer=tiny, gate="always"))
    changed, silent = Settings().with_values({path: RULES_ONLY[path]}), ScriptedWriter([])
    seen = list(refining(request(silent, variants=names, scorer=tiny, gate="always", settings=changed), some))
    assert set(seen[0].variants) == {"A", "B", *names} and silent.prompts == []
    assert {n: v.answer for n, v in seen[-1].variants.items()} == {n: v.answer for n, v in some.variants.items()}
    assert seen[-1].gradient is some.gradient
    assert seen[-1].stamp.settings != some.stamp.settings  # a replay decides by these settings


@pytest.mark.parametrize("path", OF_THE_ROWS)
def test_a_setting_of_the_gradient_rows_computes_these_again_and_writes_nothing(path):
    tiny, names = tiny_model("llama"), ("A", "C2", "v2c")
    some = refine(request(variants=names, scorer=tiny, gate="always"))
    changed, silent = Settings().with_values({path: OF_THE_ROWS[path]}), ScriptedWriter([])
    value = refine(request(silent, variants=names, scorer=tiny, gate="always", settings=changed), some)
    assert silent.prompts == [] and set(value.variants) == {"A", "B", *names}
    assert value.gradient is not None and value.gradient != some.gradient
    assert value.shared["S2"] == some.shared["S2"]


def test_a_changed_threshold_decides_anew_over_what_is_there():
    some = refine(request(variants=("A", "D")))
    assert some.variants["D"].triggered
    low = Settings(refinement=RefinementSettings(overlap_threshold=0.01))
    value = refine(request(ScriptedWriter([]), variants=("A", "D"), settings=low), some)
    assert value.threshold.value == 0.01 and value.variants["D"].answer == value.baseline


def test_each_condition_is_handed_out_as_it_ends():
    seen: list[Refinement] = []
    seen = list(refining(request(variants=PLAIN)))
    names = [tuple(v.variants) for v in seen]
    assert names == [("A",), ("A", "B"), ("A", "B")] + [PLAIN[: i + 1] for i in range(2, 6)]
    assert seen[-1].finished


def test_a_cancel_keeps_what_was_finished():
    watch = Watch(cancel=threading.Event())

    def reply(text):
        if purpose(text) == "C2":
            watch.cancel.set()
        return replies()(text)

    told = before_the_stop(refining(request(ScriptedWriter(reply), variants=PLAIN), watch=watch))
    assert set(told[-1].variants) == {"A", "B", "C1"}
    rest = writer()
    value = refine(request(rest, variants=PLAIN), told[-1])
    assert [purpose(text) for text in rest.prompts] == ["C2", "grounding", "critique", "E"]
    assert value.finished


class Failing(ScriptedWriter):
    """Raises at one purpose."""

    def __init__(self, at, error):
        super().__init__(replies())
        self.at, self.error = at, error

    def generate(self, prompt, decoding, on_text=None, watch=Watch()):
        if purpose(prompt.text) == self.at:
            raise self.error
        return super().generate(prompt, decoding, on_text, watch)


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (PromptTooLong("The prompt has 9,000 tokens."), "too long"),
        (ServerError("The server did not answer within 60 s."), "failed"),
        (ModelError("It went away."), "failed"),
    ],
)
def test_a_condition_that_fails_leaves_the_others_standing(error, outcome):
    value = refine(request(Failing("grounding", error), variants=PLAIN))
    d = value.variants["D"]
    assert (d.outcome, d.answer, d.problem) == (outcome, None, str(error))
    assert [value.variants[n].outcome for n in ("A", "B", "C1", "C2", "E")] == ["answered"] * 5
    again = writer()
    assert refine(request(again, variants=PLAIN), value).variants["D"].outcome == "answered"
    assert [purpose(text) for text in again.prompts] == ["grounding"]


@pytest.mark.parametrize("error", [BudgetSpent("The budget is used up."), ServerError("It went away.")])
def test_in_a_study_a_spent_budget_and_a_server_that_fails_end_the_run(error):
    with pytest.raises(type(error)):
        refine(request(Failing("grounding", error), variants=PLAIN, server_stops=True))


def test_a_budget_that_is_spent_is_no_condition_that_failed():
    with pytest.raises(BudgetSpent):
        refine(request(Failing("grounding", BudgetSpent("The budget is used up.")), variants=PLAIN))


class NoLogprobs(ScriptedWriter):
    """A server that sends text alone."""

    def generate(self, prompt, decoding, on_text=None, watch=Watch()):
        return replace(super().generate(prompt, decoding, on_text, watch), tokens=())


@pytest.mark.parametrize("given", [False, True])
def test_a_writer_that_sends_no_log_probabilities_leaves_the_flags_out_and_says_so(given):
    case = asked_case(passages(LABELS), answer=Answer(text=DRAFT), by="elsewhere") if given else None
    value = refine(request(NoLogprobs(replies()), labels=LABELS, case=case, use_answer=given))
    assert [value.variants[n].outcome for n in ("A", "v2a", "v2b", "v2c")] == ["answered", *["failed"] * 3]
    assert "cannot give gradients" in value.gradient_missing and "gradients" in value.variants["v2c"].problem


def test_a_critique_that_came_before_the_failure_is_kept():
    value = refine(request(Failing("E", ModelError("gone")), variants=("E",)))
    assert [t.reply.text for t in value.variants["E"].turns] == [REPLIES["critique"]]


def test_empty_refused_and_cut_answers_are_said():
    value = refine(request(writer(C2="", grounding="The passages do not say.", critique=" "), variants=PLAIN))
    assert (value.variants["C2"].outcome, value.variants["C2"].answer) == ("empty", None)
    assert value.variants["D"].outcome == "refused"
    assert value.variants["D"].answer.text == "The passages do not say."
    assert value.variants["E"].outcome == "empty"
    assert "critique" in value.variants["E"].problem
    short = Settings(refinement=RefinementSettings(max_new_tokens=3))
    cut = refine(request(settings=short, variants=("A", "C2")))
    assert (cut.variants["C2"].outcome, cut.variants["C2"].answer.text) == ("cut", "Hanna Lind built")
    assert "3 tokens" in cut.variants["C2"].problem


def test_a_reply_from_the_examples_or_the_critique_is_no_revision():
    told = "Books are lent for three weeks"
    prompt = Prompt(
        segments=(
            Segment(kind="demonstration", text=f"Passage 1: {told}. Nobody pays."),
            Segment(kind="passage", text="Passage 1: Hanna Lind built the bridge. Nobody pays.", number=1),
            Segment(kind="critique", text="Some words occur in no passage [1], [2]. Revise the answer."),
        )
    )

    def found(text):
        return copied(Turn(purpose="revision", prompt=prompt, reply=Answer(text=text)))

    assert found(f"{told} [cite_1].") and found("Some words occur in no passage [cite_2].")
    assert not found("Nobody pays at all.") and not found("Hanna Lind built the bridge [cite_1].")
    assert not found(f"{told}. Hanna Lind built the bridge.") and not found("Nobody pays.") and not found("Yes.")
    said = Turn(purpose="critique", prompt=prompt, reply=Answer(text="Too long. Change it to: Some words occur in it."))
    heard = Prompt(segments=(Segment(kind="critique", text=said.reply.text),))
    again = Turn(purpose="revision", prompt=heard, reply=said.reply)
    assert copied(again, [said])
    proposed = replace(again, reply=Answer(text="Some words occur in it."))
    assert copied(proposed) and not copied(proposed, [said])
    asked_for = refine(request(variants=PLAIN)).variants["C2"].turns[-1].prompt.segments[-1].text
    value = refine(request(writer(C2=asked_for), variants=PLAIN))
    assert value.variants["C2"].outcome == "copied" and value.variants["D"].outcome == "answered"


def test_a_condition_that_takes_too_long_is_given_up():
    clock = [0.0]

    def reply(text):
        clock[0] += 100 if purpose(text) == "C2" else 1
        return replies()(text)

    settings = Settings(refinement=RefinementSettings(seconds=50))
    value = refine(request(ScriptedWriter(reply), settings=settings, variants=PLAIN), clock=lambda: clock[0])
    assert value.variants["C2"].outcome == "timed out"
    assert "50 s" in value.variants["C2"].problem
    assert value.variants["E"].outcome == "answered"


def test_who_waits_for_a_server_hears_the_cancel_and_the_end_of_the_time():
    cancelled = threading.Event()
    cancelled.set()
    assert Deadline(cancelled, 60, time.monotonic).wait(30) and Deadline(threading.Event(), 0, time.monotonic).wait(30)
    assert Deadline(threading.Event(), 0.02, time.monotonic).wait() and Deadline(
        threading.Event(), 0.02, time.monotonic
    ).wait(30)
    assert not Deadline(threading.Event(), 60, time.monotonic).wait(0.01)


def test_without_a_baseline_nothing_is_revised():
    value = refine(request(writer(A=""), gate="always"))
    assert value.variants["A"].outcome == "empty"
    assert value.variants["B"].outcome == "answered"
    assert {value.variants[n].outcome for n in ("C2", "D", "E", "v2a", "v2b", "v2c")} == {"failed"}
    assert value.signals.s3 is None


def test_a_given_answer_is_the_baseline_and_costs_nothing():
    model = writer()
    given = Answer(text="The bridge is red.")
    value = refine(
        request(model, case=asked_case(passages(), answer=given, by="elsewhere"), variants=PLAIN, use_answer=True)
    )
    assert value.baseline.text == "The bridge is red."
    assert value.variants["A"].cost.forwards == 0
    assert len(asked(model, "A")) == 1  # C1
    assert "The bridge is red." in asked(model, "grounding")[0]


def test_a_given_answer_without_its_prompt_is_scored_on_the_prompt_that_the_conditions_read():
    model, read = scorer(), ((2, passages()[1]),)
    given = Answer(text="It was repaired in 1931 [cite_2].")
    asked_for = request(
        model,
        case=asked_case(passages(), answer=given, by="elsewhere"),
        variants=("A", "C1"),
        use_answer=True,
        settings=SHOWN,
        read=read,
    )
    value = refine(asked_for)
    prompt = scored_prompt(asked_for, replace(value, variants={}))
    assert prompt == value.variants["C1"].turns[0].prompt
    assert prompt.numbers == (2,) and "demonstration" in [s.kind for s in prompt.segments]
    assert value.signals.s2 == pytest.approx(1.0)  # a nat for each passage that there is: one


def test_a_citation_is_valid_where_the_case_has_its_passage_whatever_the_prompt_shows():
    cited = "Lind built it [cite_1] [cite_2] [cite_3] [cite_4]."
    names, read = ("A", "B", "C2"), ((2, passages()[1]),)
    value = refine(request(writer(A=cited, B=cited, C2=cited), variants=names, read=read))
    found = [[c.valid for c in value.variants[name].answer.citations] for name in names]
    assert found == [[True, True, True, False], [False] * 4, [True, True, True, False]]


def test_with_a_given_answer_every_condition_reads_the_prompt_that_it_answers():
    """The prompt of A is not the one that would be built here: one passage of three, cut, without worked examples."""
    short = (replace(passages()[1], text="The bridge was repaired in 1931"),)
    prompt = build_prompt(QUESTION, short, demonstrations=(), numbers=(2,))
    given = Answer(text="It was repaired in 1931 [cite_2].")
    model = ScriptedWriter(lambda text: "Reply [cite_2].")
    case = asked_case(passages(), answer=given, by="w", prompt=prompt)
    value = refine(request(model, case=case, gate="always", variants=PLAIN, use_answer=True))
    turns = {name: variant.turns for name, variant in value.variants.items()}
    assert turns["C1"][0].prompt == prompt
    assert turns["B"][0].prompt == prompt.keep(set())
    for name in ("C2", "D", "E"):
        assert turns[name][-1].prompt.segments[: len(prompt.segments)] == prompt.segments
    assert [s.text for s in turns["E"][0].prompt.segments if s.kind == "passage"] == [prompt.segments[1].text]


def test_a_case_without_passages_is_refused():
    with pytest.raises(InputError, match="no passages"):
        refine(request(case=asked_case(())))


def test_names_are_read_in_any_case_and_order():
    assert chosen("v2C, a") == ("A", "v2c")
    assert tuple(VARIANTS) == ("A", "B", "C1", "C2", "D", "E", "v2a", "v2b", "v2c")
    with pytest.raises(InputError, match="f is not a condition"):
        chosen("A,F")


def test_the_value_survives_json():
    value = refine(request(labels=LABELS, settings=Settings(), scorer=tiny_model("llama")))
    again = Refinement.from_dict(msgspec.json.decode(msgspec.json.encode(value.to_dict())))
    assert again == value
    silent = ScriptedWriter([])
    assert refine(request(silent, labels=LABELS, settings=Settings(), scorer=tiny_model("llama")), again) == value


def test_all_nine_on_real_weights_with_exactly_the_counted_forwards():
    from engine.models.hooks import count_forwards

    tiny = tiny_model("llama")
    settings = Settings(refinement=RefinementSettings(max_new_tokens=6, demonstrations=0))
    short = tuple(replace(p, text=p.text[:12]) for p in passages())
    with count_forwards(tiny) as count:
        value = refine(request(tiny, case=asked_case(short, "Who?"), settings=settings, gate="always"))
    said = sum(v.cost.forwards for v in value.variants.values()) + sum(c.forwards for c in value.shared.values())
    assert said == count.forwards
    tokens = sum(v.cost.tokens for v in value.variants.values()) + sum(c.tokens for c in value.shared.values())
    assert tokens == count.tokens
    assert all(v.cost.written <= 6 * (2 if n == "E" else 1) for n, v in value.variants.items())


def test_the_limit_leaves_room_for_every_condition_in_the_window(monkeypatch):
    tiny, window = tiny_model("llama"), 900
    monkeypatch.setattr(tiny.module.config, "max_position_embeddings", window)
    shared, notes = conditions_of(request(tiny))
    limit = shared.decoding.max_new_tokens
    assert 1 < limit < 200
    assert "of the model's window" in notes[0]
    full = "".join(tiny.decode([t.id]) for t in tiny.encode_answer(" ".join(TEXTS) * 9).tokens[:limit])
    drafted = replaced(shared, draft=Answer(text=full), flagged=(1, 2, 3))
    longest = revision_prompt(drafted, omit_critique(drafted))
    assert len(tiny.encode(longest).ids) + limit <= window
    assert len(tiny.encode(revision_prompt(drafted, full)).ids) + limit <= window + 2  # two one-token stand-ins
