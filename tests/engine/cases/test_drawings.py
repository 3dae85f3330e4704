from __future__ import annotations

import csv
import gzip
import io
import re
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace

from components import style
from engine.analyses.contrast import KIND as CONTRASTS
from engine.analyses.facts import record_of
from engine.analyses.faithfulness import FaithfulnessReport
from engine.analyses.refinement import KIND as REFINED
from engine.analyses.steps import at_threshold
from engine.analyses.token_map import TokenMap
from engine.cases.bundled import AUDITED, EXAMPLE, SOLVED, file_of
from engine.cases.case_file import read_case_file
from engine.cases.review import MarkDraft, review_of
from engine.core.canonical import content_hash
from engine.core.values import Attribution
from engine.methods.are.backtrack import proposed
from engine.methods.raise_.values import Solution, similarity
from engine.methods.used_supports import UsedSupports
from engine.report import drawings
from engine.report.drawings import (
    drawn_changes,
    drawn_contrast,
    drawn_facts,
    drawn_faithfulness,
    drawn_map,
    drawn_occlusion,
    drawn_signals,
    drawn_steps,
    drawn_use,
    to_csv,
    to_latex,
    to_svg,
)
from tests.engine.cases.test_case_verdict import checked, marked

SVG = "{http://www.w3.org/2000/svg}"


def result(case, kind):
    return next(a.result for a in case.analyses if a.kind == kind)


def words(svg: str) -> list[str]:
    return [element.text for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def bundled(name):
    return read_case_file(gzip.decompress(file_of(name).read_bytes())).case


@pytest.fixture(scope="module")
def case():
    return bundled(EXAMPLE)


def every_drawing(case):
    solved = bundled(SOLVED)
    yield solved, drawn_steps(solved, Solution.from_dict(result(solved, "steps")))
    yield case, drawn_signals(case, REFINED.of(case)[-1].refinement)
    yield case, drawn_use(case, UsedSupports.from_dict(result(case, "used x supports")))
    yield case, drawn_faithfulness(case, FaithfulnessReport.from_dict(result(case, "faithfulness")))
    other = checked()
    record = record_of(other)
    yield case, drawn_map(case, TokenMap.from_dict(result(case, "token map")))
    yield case, drawn_occlusion(case, Attribution.from_dict(result(case, "occlusion")))
    audited = bundled(AUDITED)
    yield audited, drawn_contrast(audited, CONTRASTS.of(audited)[-1])
    yield other, drawn_facts(other, record, review_of(()))
    yield other, drawn_changes(other, record, review_of(()))


def test_every_drawing_has_its_caption_with_the_hash_in_each_format(case):
    for own, drawing in every_drawing(case):
        assert drawing.caption.endswith(f"content hash {content_hash(own)[:16]}.")
        svg = to_svg(drawing)
        assert " ".join(words(svg)).endswith(" ".join(drawing.caption.split()))
        assert drawing.caption.split()[-1] in to_latex(drawing)
        rows = list(csv.reader(io.StringIO(to_csv(drawing))))
        assert rows[0] == ["part", "column", "text", "value"] and len(rows) > 1


def test_nothing_is_drawn_outside_the_picture(case):
    for _, drawing in every_drawing(case):
        picture = ElementTree.fromstring(to_svg(drawing))
        width, height = float(picture.get("width")), float(picture.get("height"))
        for text in picture.iter(f"{SVG}text"):
            assert 0 <= float(text.get("x")) <= width and 0 <= float(text.get("y")) <= height
            assert float(text.get("x")) + float(text.get("textLength")) <= width


def test_a_map_draws_each_word_with_its_share_of_the_relevance(case):
    found = TokenMap.from_dict(result(case, "token map"))
    drawing = drawn_map(case, found)
    shares = [span.value for part in drawing.parts for span in part.spans]
    assert 0 < sum(shares) <= 1 + 1e-9 and min(shares) >= 0
    assert max(span.depth for part in drawing.parts for span in part.spans) == pytest.approx(1.0)
    spelled = {" ".join(span.text for span in part.spans) for part in drawing.parts}
    assert spelled == {" ".join(case.passages[number - 1].text.split()) for number in found.numbers}


def test_a_map_is_drawn_for_a_sentence_that_has_its_row(case):
    found = TokenMap.from_dict(result(case, "token map"))
    number = 1 + found.answer.sentences.index(found.sentences[0])
    start, _end = found.sentences[0]
    whole, own = drawn_map(case, found), drawn_map(case, found, number)
    assert found.answer.text[start : start + 20] in own.caption and "of the answer, by" in whole.caption
    assert own.parts != whole.parts


def test_occlusion_holds_every_number_at_full_precision(case):
    found = Attribution.from_dict(result(case, "occlusion"))
    rows = list(csv.DictReader(io.StringIO(to_csv(drawn_occlusion(case, found)))))
    assert [float(row["value"]) for row in rows] == [value for row in found.scores for value in row]


def test_a_contrast_holds_the_passages_left_out_and_alone():
    case = bundled(AUDITED)
    found = CONTRASTS.of(case)[-1]
    drawing = drawn_contrast(case, found)
    rows = list(csv.DictReader(io.StringIO(to_csv(drawing))))
    effect = found.effect
    assert [float(row["value"]) for row in rows] == [*effect.scores[0], *effect.details.alone[0]]
    assert found.written in drawing.caption and "Floors: " in drawing.caption


def test_curves_hold_every_point_and_are_drawn_to_scale(case):
    found = FaithfulnessReport.from_dict(result(case, "faithfulness"))
    drawing = drawn_faithfulness(case, found)
    rows = list(csv.DictReader(io.StringIO(to_csv(drawing))))
    curves = (*found.curves, found.passages)
    points = [(x, y) for c in curves for ys in (c.morf, c.lerf) for x, y in zip(c.shares, ys, strict=True)]
    assert [(float(row["text"]), float(row["value"])) for row in rows] == points
    lines = [e.get("points").split() for e in ElementTree.fromstring(to_svg(drawing)).iter(f"{SVG}polyline")][::2]
    for line, y in zip(lines, (ys for c in curves for ys in (c.morf, c.lerf)), strict=True):
        heights = [float(point.split(",")[1]) for point in line]
        assert (heights[0] - heights[-1]) == pytest.approx((y[-1] - y[0]) * drawings.PLOT, abs=0.2)
    assert to_latex(drawing).count("\\addplot") == 2 * len(curves)


def test_use_and_support_are_two_grids_of_one_tint(case):
    found = UsedSupports.from_dict(result(case, "used x supports"))
    use, support = drawn_use(case, found).parts
    cells = [cell for row in found.cells for cell in row]
    assert [span.value for _, spans in use.rows for span in spans] == [cell.used for cell in cells]
    assert [span.value for _, spans in support.rows for span in spans] == [cell.supports for cell in cells]
    tints = [[span.colour for _, spans in grid.rows for span in spans] for grid in (use, support)]
    assert "-0.0" not in {span.text for _, spans in use.rows for span in spans}
    assert {"Use (nats)", "Support"} <= set(words(to_svg(drawn_use(case, found))))
    assert tints[0] == tints[1] == [drawings.QUADRANT[cell.quadrant] for cell in cells]


def test_a_step_is_drawn_with_each_passage_that_t_kept_or_dropped():
    case = bundled(SOLVED)
    run = at_threshold(Solution.from_dict(result(case, "steps")), 0.5)
    drawing = drawn_steps(case, run)
    assert [part.title for part in drawing.parts[:-1]] == [f"Step {step.number}. {step.question}" for step in run.steps]
    hits = [hit for step in run.steps for hit in (*step.kept, *step.dropped)]
    tinted = [span for part in drawing.parts for span in part.spans if span.colour]
    assert [span.value for span in tinted] == [similarity(hit) for hit in hits]
    words = {span.text.split()[0]: span.colour for span in tinted}
    assert words == {"kept": drawings.STATE["borne out"], "dropped": drawings.STATE["not checked"]}
    assert all((span.value >= 0.5) == span.text.startswith("kept") for span in tinted)
    assert drawing.parts[-1].title == "Final answer" and drawing.parts[-1].spans[0].text == run.final.reply


def test_signals_are_drawn_over_their_scales_and_words_by_whether_a_passage_has_them(case):
    found = REFINED.of(case)[-1].refinement
    grid, words_of_a = drawn_signals(case, found).parts
    signals = found.signals
    assert [cells[0].value for _, cells in grid.rows] == [signals.s1, signals.s2, signals.s3]
    s1, _, s3 = (cells[0].depth for _, cells in grid.rows)
    assert s1 == pytest.approx(1 - signals.s1) and s3 == pytest.approx(signals.s3)  # grounded: S1 low, S3 high
    tints = {True: drawings.SIZE, False: drawings.POSITIVE}
    tinted = [(span.text, span.colour) for span in words_of_a.spans if span.colour]
    assert tinted == [(found.baseline.text[w.start : w.end], tints[w.found]) for w in signals.words]
    missing = replace(found, signals=replace(signals, s2=None))
    assert "–" in words(to_svg(drawn_signals(case, missing)))


def test_changes_are_struck_and_underlined_as_they_were_decided():
    case = checked()
    edit, deletion = record_of(case).edits
    drafts = [
        MarkDraft(kind="override", author="Ada", target=f"edit:{e.id}", value=value, reason="read", machine=proposed(e))
        for e, value in ((edit, "accepted"), (deletion, "rejected"))
    ]
    said = to_latex(drawn_changes(case, record_of(case), marked(case, *drafts)))
    assert re.findall(r"\\sout\{([^}]*)\}", said) == ["1932"]
    assert re.findall(r"\\uline\{([^}]*)\}", said) == ["1934"]


def test_hostile_text_is_text_in_each_format():
    text = "<script>alert(1)</script> & \\input{x} =1+1"
    drawing = drawings.Drawing(
        name="x", caption=text, parts=(drawings.Paragraph(title=text, spans=(drawings.Span(text="=1+1"),)),)
    )
    assert list(ElementTree.fromstring(to_svg(drawing)).iter(f"{SVG}script")) == []
    assert r"\input" not in to_latex(drawing)
    assert list(csv.reader(io.StringIO(to_csv(drawing))))[1][2] == "'=1+1"


def test_figures_and_pages_share_one_palette():
    own = (drawings.NEGATIVE, drawings.POSITIVE, drawings.SIZE, 100 * drawings.STRONGEST)
    assert own == (style.NEGATIVE, style.POSITIVE, style.SEQUENTIAL, style.STRENGTH)
