"""The report's sections for every kind of record: their words, their safety, and the reviewer's verdict with them."""

from __future__ import annotations

import re

import html5lib
import msgspec
import pytest
from markdown_it import MarkdownIt
from msgspec.structs import replace

from engine.analyses.case_verdict import case_verdict
from engine.analyses.facts import after_edit, attribution_report, made, record_of, tracked_changes, tracked_runs
from engine.analyses.kind import TOKEN_MAP
from engine.analyses.occlusion import strongest
from engine.analyses.token_map import methods_run
from engine.cases.blocks import Facts, Section, name_of
from engine.cases.importers import imported_case
from engine.cases.places import decisions, numbered, places
from engine.cases.review import MarkDraft, review_of, sign_off
from engine.core.canonical import canonical
from engine.core.values import Analysis, AuditRecord, Case, GivenPassage
from engine.methods.are.backtrack import proposed
from engine.methods.are.values import AreRecord, Evidence, Placed, Ruling, note_in_words
from engine.models.verifier import origin_of
from engine.report.build import html_report, markdown_report, measured_shares, summary_blocks
from engine.report.compare import shared_scales
from tests.engine.are.test_are import run
from tests.engine.cases.records import full_record
from tests.engine.cases.test_case_verdict import checked
from tests.engine.cases.test_report import HOSTILE, parsed, reviewed

TEXTS = {"text", "reply", "why", "note", "reasoning", "query", "question", "title", "document", "sentence", "problem",
         "old", "new", "before", "after", "measured", "editor", "banner", "joined", "made_by"}  # fmt: skip


@pytest.fixture(scope="module")
def case(tmp_path_factory, at_home) -> Case:
    with at_home(tmp_path_factory.mktemp("home")):
        return full_record()


def result_of(case: Case, kind: str) -> dict:
    return next(a.result for a in case.analyses if a.kind == kind)


def section(html: str, title: str) -> str:
    return re.search(rf"<h3>{re.escape(title)}.*?(?=<h3>|<h2>)", html, re.DOTALL)[0]


def poisoned(value):
    """The same record with hostile words wherever it has free text."""
    if isinstance(value, dict):
        return {k: HOSTILE if k in TEXTS and isinstance(v, str) else poisoned(v) for k, v in value.items()}
    return [poisoned(v) for v in value] if isinstance(value, list) else value


def test_every_record_has_a_section_of_its_own_and_nothing_is_raw(case):
    html = html_report(case)
    parsed(html)
    assert "What was stored" not in html
    assert len(html.encode()) < 2 * 2**20


def test_hostile_words_in_records_stay_words(case):
    bad = tuple(replace(a, result=poisoned(msgspec.json.decode(canonical(a.result)))) for a in case.analyses)
    tree = parsed(html_report(replace(case, analyses=bad)))
    assert not {e.tag for e in tree.iter() if isinstance(e.tag, str)} & {"script", "img", "iframe", "form", "link"}
    assert "What was stored" not in html_report(replace(case, analyses=bad))
    rendered = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    text = rendered.render(markdown_report(replace(case, analyses=bad)))
    names = {e.tag for e in html5lib.parse(text, namespaceHTMLElements=False).iter() if isinstance(e.tag, str)}
    assert not names & {"script", "img", "a", "style"}


def test_a_record_of_another_shape_is_shown_as_it_was_stored(case):
    broken = tuple(replace(a, result={"strange": 1}) for a in case.analyses)
    html = html_report(replace(case, analyses=broken))
    parsed(html)
    assert html.count("What was stored") == len(broken)


def test_the_facts_with_verdict_evidence_and_measures_before_and_after(case):
    record = AreRecord.from_dict(result_of(case, "facts"))
    html = section(html_report(case), "Atomic facts (ARE)")
    for name, fact in numbered(record).items():
        assert f'<th scope="row">{name}</th>' in html
        assert fact.stand in html
    for value in (record.report.before.attr_r, record.report.after.attr_r, record.report.after.pres):
        assert f"{value:.3f}" in html
    assert "Before editing" in html
    assert record.facts[0].evidence.text in html


def placed(number: int, start: int, end: int, new: str, answer: str, status="placed") -> Placed:
    return Placed(
        id=str(number), clause=0, fact=0, start=start, end=end, old=answer[start:end], new=new, status=status,
        why="it says otherwise", evidence=Evidence(text="e", source="case"),
    )  # fmt: skip


def test_tracked_changes_spell_the_answer_and_what_becomes_of_it():
    answer = "Built in 1931 by Ann."
    edits = [
        placed(1, 9, 13, "1874", answer),
        placed(2, 17, 20, "Hanna", answer),
        placed(3, 0, 5, "x", answer, "suggestion"),
    ]
    runs = tracked_runs(answer, edits, {"2": "rejected"})
    assert [(r.text, r.kind) for r in runs] == [
        ("Built in ", "text"),
        ("1931", "old"),
        ("1874", "new"),
        (" (edit 1, not decided)", "strong"),
        (" by ", "text"),
        ("Ann", "text"),
        (" (edit 2, rejected)", "strong"),
        (".", "text"),
    ]


def with_edit(case: Case) -> Case:
    """The case whose check proposes one edit."""
    index = next(i for i, a in enumerate(case.analyses) if a.kind == "facts")
    record = AreRecord.from_dict(case.analyses[index].result)
    start = record.answer.index("1931")
    record = replace(record, edits=(placed(1, start, start + 4, "1874", record.answer),))
    analyses = list(case.analyses)
    analyses[index] = replace(analyses[index], result=record.to_dict())
    return replace(case, analyses=tuple(analyses))


def test_a_reviewers_word_on_a_fact_and_an_edit_stands_beside_the_machines_own(case):
    case = with_edit(case)
    found = {place.target: place for place in places(case)}
    fact, edit = found["fact:1.1"], found["edit:1"]
    assert fact.machine == "unsure"  # the passage has 1931 in another sentence
    draft = MarkDraft(kind="override", author="Ada", target="fact:1.1", value="wrong year", reason="Read the plaque.",
                  machine=fact.machine)  # fmt: skip
    accept = MarkDraft(
        kind="override", author="Bo", target="edit:1", value="accepted", reason="Agreed.", machine=edit.machine
    )
    marks = reviewed(case, draft, accept)
    html = section(html_report(case, marks), "Atomic facts (ARE)")
    row = re.search(r'<tr><th scope="row">1\.1</th>.*?</tr>', html, re.DOTALL)[0]
    assert fact.machine.replace("_", " ") in row
    assert "wrong year<small>by Ada: Read the plaque.</small>" in row
    assert "<del>1931</del><ins>1874</ins>" in html
    assert "(edit 1, accepted)" in html
    assert "accepted<small>by Bo: Agreed.</small>" in html
    assert "wrong year" not in section(html_report(case), "Atomic facts (ARE)")
    text = markdown_report(case, marks).replace("\\", "")
    assert "~~1931~~**1874**" in text
    assert "wrong year (by Ada: Read the plaque.)" in text


def test_the_counts_of_a_check_are_in_the_words_of_the_verdict_line():
    case = checked()
    record = record_of(case)
    said = dict(made(record).pairs)
    assert said["Before any review"] == "1 borne out, 1 contradicted, 1 not found"
    assert case_verdict(case, review_of(())).headline.endswith(said["Before any review"])
    assert dict(made(replace(record, facts=())).pairs)["Before any review"] == "nothing to check"


def summary(case: Case, *marks) -> dict[str, str]:
    """The facts of the report's first page."""
    blocks = summary_blocks(case, review_of(marks), "c", "h")
    inside = (part for block in blocks if isinstance(block, Section) for part in block.blocks)
    return {name: said for b in (*blocks, *inside) if isinstance(b, Facts) for name, said in b.pairs}


def test_what_settles_no_fact_is_called_the_closest_sentence():
    case = checked("The bridge opened in 1932. The bridge sings in winter.")
    *_, drawn = summary_blocks(case, review_of(()), "c", "h")
    verdicts, evidence = ([row[column] for row in drawn.rows] for column in (2, 3))
    assert [cell.text for cell in verdicts] == ["contradicted", "unsure"]
    assert [cell.note.startswith("closest sentence, passage ") for cell in evidence] == [False, True]


def test_the_first_page_says_who_judged_how_well_and_what_nobody_checked():
    case = checked()
    (check,) = case.analyses
    stamp = replace(check.stamp, versions={"groundwork": "1.2.3"}, created="2026-11-20T10:00:00+00:00")
    case = replace(case, analyses=(replace(check, stamp=stamp),))
    said = summary(case)
    assert said["Facts judged by"] == "word table (3)"
    own = MarkDraft(kind="override", author="Ada", target="fact:1.1", value="borne out", reason="Read it.")
    assert summary(case, *reviewed(case, own))["Facts judged by"] == "word table (2), Ada (1)"
    assert said["Verifier"] == ("word table, weights not stored in this case, Groundwork 1.2.3, 2026-11-20 10:00 UTC")
    assert said["How often the verifier is right"] == "not measured"
    assert said["Not checked"].endswith("anything outside the passages")
    stamp = replace(stamp, revision="a1b2", settings={**stamp.settings, "base": "some/base"})
    known = replace(case, corpus="minutes", analyses=(replace(check, stamp=stamp),))
    assert summary(known)["Verifier"].startswith("word table, some/base, weights a1b2, Groundwork")
    assert summary(known)["Not checked"].endswith("anything outside the passages and the corpus")
    assert not {"Verifier", "Not checked"} & summary(replace(case, analyses=())).keys()


def test_a_check_by_a_shipped_verifier_stores_its_base_and_weights():
    (check,) = checked(record=replace(run(), verifier="embedded")).analyses
    assert (check.stamp.settings["base"], check.stamp.revision) == origin_of("embedded")
    case = replace(checked(), analyses=(check,))
    assert f"embedded, sentence-transformers/all-MiniLM-L6-v2, weights {check.stamp.revision}" in html_report(case)
    assert "Self-tests of the models" not in html_report(case)


def test_the_shares_of_right_verdicts_are_those_that_the_check_stored():
    record = record_of(checked())
    measured = "supportive by v, 36% to 82% (by test set, 7 sets) of its supportive verdicts are right"
    assert measured_shares(replace(record, measured="supportive by v, not measured")) == {}
    assert measured_shares(replace(record, measured=measured)) == {"borne out": "36% to 82% (by test set, 7 sets)"}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("The bridge opened in 1934 [1]. Whales sing [2].", "2 citations checked: in 1 the passage bears out a fact"),
        ("The bridge opened in 1934.", "none"),
    ],
)
def test_the_first_page_counts_the_citations_that_bear_out_a_fact_of_their_sentence(answer, said):
    assert summary(checked(answer, run(answer)))["Citations"].startswith(said)


def test_the_writer_of_an_imported_answer_is_named_once_and_its_origin_is_told_as_it_is_stored():
    record = AuditRecord(question="Where?", passages=("Here.",), answer="Here.")
    for model, said in (("", "not named in the imported record"), ("a model", "a model (imported)")):
        case = imported_case(replace(record, model=model))
        text = markdown_report(case).replace("\\", "")
        assert text.count("Written by: ") == 1 and f"- Written by: {said}\n- Imported from: not stored" in text
        assert f"writer of the answer: {said}." in text and "unknown" not in text
        assert "### Passage 1\n" in text
    file = replace(case, stamp=replace(case.stamp, settings={"file": "answers.jsonl"}))
    assert summary(file)["Imported from"] == "answers.jsonl"
    assert "Imported from" not in summary(checked())


def test_the_check_after_an_edit_is_told_in_sentences():
    edit = placed(1, 9, 13, "1874", "Built in 1931 by Ann.")
    assert after_edit(edit) == "Not checked after the edit." and after_edit(replace(edit, new="")) == ""
    sure = Ruling(verdict="supportive", by="v", note="supportive by v, not measured", scores={"supportive": 0.82})
    said = "After the edit the fact agrees with the passage."
    assert after_edit(replace(edit, ruling=sure)) == f"{said} The verifier gives this a probability of 0.82."
    why = "supportive, because no passage has the number; the sentence has its digits in another order; else "
    doubted = replace(
        sure, note=f"{why}irrelevant by v, not measured; unsure", scores={"supportive": 0.28}, unsure=True
    )
    assert after_edit(replace(edit, ruling=doubted)) == (
        f"{said} No passage has the number. The sentence has its digits in another order. The verifier gives this a "
        "probability of 0.28. It is unsure: read the passage."
    )
    assert after_edit(replace(edit, ruling=replace(sure, scores={}))) == said


def test_the_report_has_one_word_for_a_verdict_and_names_the_papers_once(case):
    text = markdown_report(case)
    before, _, methods = text.partition("## Methods")
    assert "editing required" not in before and "irrelevant" not in before
    assert methods.count("supportive, editing required and irrelevant") == methods.count("editing required") == 1
    assert note_in_words("supportive, because it says so; else editing required by v, not measured; unsure") == (
        "borne out, because it says so. Without this: contradicted by v, not measured; unsure"
    )
    assert note_in_words('unsure, the passage says nothing like "irrelevant"').endswith('"irrelevant"')


def test_a_passage_without_a_title_is_named_by_its_number_alone():
    case = imported_case(
        AuditRecord(question="Q?", passages=("One.", GivenPassage(text="Two.", title="Minutes")), answer="A.")
    )
    assert [name_of(case, number) for number in (1, 2, 3)] == ["1", "2 Minutes", "3"]


def test_the_measures_after_editing_say_that_a_reviewer_decides(case):
    record = AreRecord.from_dict(result_of(case, "facts"))
    measures, clauses, *_ = attribution_report(case, record, record.report)
    assert measures.columns[1:3] == ("Before editing", "If all edits are accepted") and "A reviewer" in measures.caption
    assert clauses.columns[1] == "If all edits are accepted"


def test_the_text_with_all_edits_of_the_check_is_called_its_proposal(case):
    record = AreRecord.from_dict(result_of(case, "facts"))
    *_, fold = attribution_report(case, replace(record, revised="Built in 1874."), record.report)
    assert fold.title == "The answer as the check proposed it, before any review"


def test_a_decision_on_a_suggestion_is_said_in_place_of_its_state(case):
    record = AreRecord.from_dict(result_of(with_edit(case), "facts"))
    (edit,) = record.edits
    suggested = replace(record, edits=(replace(edit, status="suggestion"),))
    reject = MarkDraft(kind="override", author="Bo", target="edit:1", value="rejected", machine=proposed(edit))
    for marks, said in (((), "a suggestion, not put in"), ((reject,), "rejected")):
        *_, table = tracked_changes(case, suggested, review_of(reviewed(case, *marks)))
        assert [row[-1].text for row in table.rows] == [said]


def test_a_decision_without_a_reason_names_who_decided(case):
    case = with_edit(case)
    edit = next(place for place in places(case) if place.target == "edit:1")
    accept = MarkDraft(kind="override", author="Bo", target="edit:1", value="accepted", machine=edit.machine)
    html = html_report(case, reviewed(case, accept))
    assert "accepted<small>by Bo</small>" in section(html, "Atomic facts (ARE)")
    assert "<td>none given</td><td>Bo</td>" in html


def test_what_nobody_decided_is_left_out_of_a_signed_text(case):
    case = with_edit(case)
    marks = reviewed(case, *sign_off("Ada", "stands", "Read it."))
    assert "(edit 1, not decided)" in html_report(case)
    assert "not decided" not in html_report(case, marks)
    assert "(edit 1, left out)" in html_report(case, marks)


def test_a_decision_on_another_checks_edit_does_not_count(case):
    record = AreRecord.from_dict(result_of(with_edit(case), "facts"))
    stale = MarkDraft(
        kind="override", author="Bo", target="edit:1", value="accepted", reason="Agreed.", machine="0-1: a -> b"
    )
    assert decisions(record, review_of(reviewed(case, stale))) == {}


def test_refinement_shows_signals_triggers_scores_and_changes_to_the_baseline(case):
    html = section(html_report(case), "Refinement")
    value = result_of(case, "refinement")["refinement"]
    assert f"{value['signals']['s3']:.3f}" in html
    for name in value["order"]:
        assert f"{name}, " in html
    assert value["variants"]["D"]["trigger"]["sentence"].split(":")[0] in html
    assert "<del>" in html
    assert "<ins>" in html
    assert "Citation precision" in html
    assert "Hanna Lind built the bridge.<small>borne out</small>" in html


def test_steps_show_what_was_kept_and_dropped_at_every_step(case):
    html = section(html_report(case), "Step by step")
    stored = result_of(case, "steps")
    assert len(stored["steps"]) == 2
    for step in stored["steps"]:
        assert f"Step {step['number']}. {step['question']}" in html
        kept = sum(hit["parts"]["dense"] >= step["threshold"] for hit in step["search"]["hits"])
        assert f"{kept} of {len(step['search']['hits'])} passages" in html
    assert ">kept</td>" in html
    assert ">dropped</td>" in html
    assert stored["final"]["reply"].split(".")[0] in html


def test_two_records_of_one_kind_are_told_apart_by_their_heads(case):
    steps = next(a for a in case.analyses if a.kind == "steps")
    html = html_report(replace(case, analyses=(steps, replace(steps, id="steps:hyde:other"))))
    assert "<h3>Step by step: steps:raise:scripted-scorer</h3>" in html
    assert "<h3>Step by step: steps:hyde:other</h3>" in html


def test_methods_of_the_records_are_defined_with_their_limits(case):
    html = html_report(case)
    bare = html_report(replace(case, analyses=()))
    for term in (
        "Atomic facts",
        "Attr_r, Attr_p, Pres",
        "Signals S1, S2, S3",
        "Refinement conditions",
        "Used x supports",
    ):
        assert f"<dt>{term}</dt>" in html
        assert f"<dt>{term}</dt>" not in bare


GIVEN = {"method": "m", "model": "m", "unit": "nats", "spans": [[0, 3]], "sources": [[1], [2]], "per_token": []}
MAP = {"model": "m", "target": "logit", "answer": {"text": "A."}, "sentences": [], "tokens": [], "argmax_differs": []}


@pytest.mark.parametrize(
    ("kind", "result"),
    [
        ("occlusion", {**GIVEN, "scores": [[0.1]]}),
        ("occlusion", {**GIVEN, "scores": []}),
        ("occlusion", {**GIVEN, "scores": [[0.1, 0.2]], "spans": [[0, 3], [4, 9]]}),
        ("occlusion", {**GIVEN, "scores": [[0.1, 0.2]], "details": {"alone": [[0.1]]}}),
        (TOKEN_MAP, {**MAP, "passages": [[1, [[0, 3]]], [2, [[0, 3]]]], "rows": [[[0.1]]]}),
        ("labels", {}),
    ],
)
def test_what_a_hand_made_file_says_of_scores_and_labels_stops_no_page(case, kind, result):
    made = replace(case, analyses=(*case.analyses, Analysis(id="x", kind=kind, stamp=case.stamp, result=result)))
    html = html_report(made)
    assert html.count("What was stored") == 1 and ".." not in re.findall(r"This is not a valid [^<]+", html)[0]
    assert (shared_scales(made), strongest(made)) == (
        shared_scales(case),
        strongest(case) if kind != "occlusion" else {},
    )
    assert methods_run(made, "m") == {}


def test_an_entropy_of_nothing_is_told(case):
    nothing = Analysis(id="x", kind="entropy", stamp=case.stamp, result={"found": {}})
    assert "Nothing was measured." in html_report(replace(case, analyses=(nothing,)))


def test_a_token_before_the_first_is_none(case):
    result = {**GIVEN, "scores": [[0.1, 0.2]], "per_token": [[0.1, 0.2]], "details": {"tokens": [-99]}}
    odd = Analysis(id="x", kind="occlusion", stamp=case.stamp, result=result)
    assert "What was stored" not in html_report(replace(case, analyses=(odd,)))
