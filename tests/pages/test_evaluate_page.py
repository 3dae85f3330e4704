"""Evaluate: the cost before the start, a run to its end, its tables, one of its cases, and two runs compared."""

from __future__ import annotations

import msgspec
import pytest
from streamlit.testing.v1 import AppTest

import components.cache
from components.evaluation_results import finding, frame, question_of, questions, units
from components.evaluation_run import live, said
from components.figures import COLOURS, drawn
from engine.studies.catalogue import study_of
from engine.studies.config import CONFIGS, Config, as_toml, parse_config, presets, read_config
from engine.studies.evaluate import compare_runs, evaluate, opened
from engine.studies.library import folder_of, runs, take_in
from engine.studies.run import Journal, Progress
from engine.studies.values import Axis, Column, Figure, Measure, Series, StudyTable

PAGE = "pages/review/evaluate.py"
SECONDS = CONFIGS / "seconds.toml"


def texts(app):
    return " ".join(str(e.value) for e in [*app.markdown, *app.caption, *app.info, *app.warning, *app.error])


def button(app, key):
    return next(b for b in app.button if b.key == key)


def test_from_the_cost_to_the_tables(app):
    app.run()
    app.switch_page(PAGE).run()
    assert not app.exception
    assert button(app, "start_evaluation").disabled
    button(app, "see_cost").click().run()
    for name, asked in app.session_state["groundwork_runs"].items():
        if name.startswith("evaluation_cost"):
            asked.future.result()
    app.run()
    assert not app.exception and "24" in [m.value for m in app.metric]
    button(app, "start_evaluation").click().run()
    (name,) = components.cache.evaluators().runs
    live(name).run.future.result()
    app.run()
    assert not app.exception and "24 of 24 units, 0 failed" in texts(app)
    assert any("gold" in str(f.value.columns) for f in app.dataframe)


def test_a_new_user_sees_a_finished_study_and_opens_a_case_of_it(app):
    app.run()
    app.switch_page(PAGE).run()
    assert not app.exception
    shown = app.selectbox(key="run").value
    assert all(one.shipped and one.finished for one in runs())
    assert "included with Groundwork" in texts(app)
    first = opened(folder_of(shown))
    leaderboard = first.results.tables[0]
    assert app.header[0].value == question_of(first.config)
    assert "Jaccard: words that both texts have, of all their words" in texts(app)
    order = " ".join(str(node.proto) for node in app.main)
    assert 0 < order.find(leaderboard.title) < order.find("Departs from the paper")
    assert app.dataframe[0].value.iloc[:, 0].tolist() == [row[0] for row in leaderboard.rows]
    case = next(row.case for row in first.rows if row.case)
    store = components.cache.workbench().cases
    assert store.load(take_in(store, folder_of(shown), case)).question


def test_a_study_opens_with_what_its_first_comparison_found(app):
    columns = Column.row("method | minus ARE (0 to 1) | p, Holm")
    table = StudyTable(name="t", title="Attr_r", columns=columns, rows=(), n=74)
    row = lambda *measure: (("DRQA", Measure(value=measure[0], low=measure[1], high=measure[2], n=74), 0.01),)  # noqa: E731
    with_row = lambda *measure: finding([msgspec.structs.replace(table, rows=row(*measure))])  # noqa: E731
    assert finding([table]) == finding([]) == ""
    interval = "95% interval -0.300 to -0.100, 74 questions"
    assert with_row(-0.2, -0.3, -0.1) == f"Attr_r: DRQA is 0.200 lower than ARE ({interval})."
    assert with_row(0.01, -0.1, 0.1).startswith("Attr_r: no clear difference between DRQA and ARE (+0.010, ")
    assert "too few for an interval" in with_row(0.5, None, None)
    scored = (("D - A", "citation precision", Measure(value=0.2, low=0.1, high=0.3, n=9), 0.01),)
    columns = Column.row("comparison | score | difference (of the score) | p, Holm")
    said = finding([msgspec.structs.replace(table, title="Pairs", columns=columns, rows=scored)])
    assert said.startswith("Pairs: D is 0.200 higher than A in citation precision (95% interval +0.100")
    app.run()
    app.switch_page(PAGE)
    app.query_params["run"] = "refinement-small"
    app.run()
    assert not app.exception
    assert any("D is 0.380 lower than A in NLI citation precision" in one.proto.body for one in app.get("html"))


def test_shipped_runs_bring_no_words_of_public_sets():
    for one in runs():
        for row in Journal(folder_of(one.name)).rows() if "/" in one.config.data else ():
            assert not row.case and not {"evidence", "revised"} & row.values.keys()


def test_another_preset_of_the_same_study_brings_its_own_model():
    def page():
        from components.evaluation_setup import setup

        setup()

    app = AppTest.from_function(page, default_timeout=60).run()
    model = lambda: next(box.value for box in app.selectbox if box.label == "Model")  # noqa: E731
    for name in ("refinement_small", "refinement_capable"):
        app.selectbox(key="evaluation_preset").set_value(name).run()
        assert not app.exception and model() == read_config(CONFIGS / f"{name}.toml").model


def test_every_preset_is_its_own_text_again():
    for name in presets():
        config = read_config(CONFIGS / f"{name}.toml")
        assert parse_config(as_toml(config)) == config


def test_two_runs_beside_each_other_and_a_case_of_one(sample_home):
    text = SECONDS.read_text().replace("n = 8", "n = 3")
    other = text.replace('mode = "dense"', 'mode = "bm25"').replace("answers = false", "answers = true")
    first, second = (evaluate(t, folder_of(n)) for t, n in ((text, "one"), (other, "two")))
    own = [one for one in runs() if not one.shipped]
    assert {one.name for one in own} == {"one", "two"} and all(one.finished for one in own)
    table = compare_runs(first, second)
    same = compare_runs(first, first)
    assert table.n == 3 and all(row[4].value == 0.0 for row in same.rows)
    found = next(row for row in table.rows if row[:2] == ("top-10", "recall"))
    assert found[4].value == pytest.approx(found[2].value - found[3].value)
    case = next(row.case for row in second.rows if row.case)
    store = components.cache.workbench().cases
    case_id = take_in(store, folder_of("two"), case)
    assert take_in(store, folder_of("two"), case) == case_id and store.load(case_id).answer.text
    assert opened(folder_of("two")).config == second.config


def test_names_of_runs_stay_inside_their_folder(sample_home):
    from engine.core.errors import InputError

    for strange in ("../x", "a/b", "..", ""):
        with pytest.raises(InputError):
            folder_of(strange)


def test_progress_is_told_in_words():
    progress = Progress(done=3, failed=1, total=12, remaining=125.0)
    assert said(progress) == "3 of 12 units, 1 failed, about 2 min left"
    assert said(msgspec.structs.replace(progress, paused=True)).endswith("paused")


def test_a_measure_sorts_as_a_number_and_keeps_its_interval():
    columns = (Column(name="method"), Column(name="F1", better="higher"))
    rows = (("a", Measure(value=0.5, low=0.4, high=0.6, n=12)), ("b", Measure(value=None)))
    shown = frame(StudyTable(name="t", title="T", columns=columns, rows=rows, n=12))
    assert list(shown.columns) == ["method", "F1 ↑", "F1, 95%"]
    assert shown["F1 ↑"][0] == 0.5 and shown["F1, 95%"].tolist() == ["0.400 to 0.600", ""]


def test_two_columns_of_one_name_keep_their_units_and_their_intervals():
    columns = (Column(name="ABPC", unit="probability"), Column(name="ABPC", unit="nats"))
    row = (Measure(value=0.2, low=0.1, high=0.3, n=12), Measure(value=2.0, low=1.5, high=2.5, n=12))
    shown = frame(StudyTable(name="t", title="T", columns=columns, rows=(row,), n=12))
    assert shown["ABPC (probability), 95%"].tolist() == ["0.100 to 0.300"]
    assert shown["ABPC (nats), 95%"].tolist() == ["1.500 to 2.500"]


def test_a_long_unit_stays_out_of_a_columns_head():
    column = Column(name="Attr_p", unit="share of clauses or evidences", better="higher")
    shown = frame(StudyTable(name="t", title="T", columns=(column,), rows=((Measure(value=0.5),),), n=12))
    assert list(shown.columns) == ["Attr_p ↑"]


def test_a_p_value_is_never_shown_as_nothing_and_a_small_score_stays_a_number():
    columns = (Column(name="BLEU"), Column(name="p, Holm"))
    shown = frame(StudyTable(name="t", title="T", columns=columns, rows=((3e-12, 3e-12), (0.25, 0.04)), n=12))
    assert shown["p, Holm"].tolist() == ["<0.0001", "0.0400"]
    assert shown["BLEU"].tolist() == [0.0, 0.25]


def test_examples_name_their_values_in_words():
    run = next(one for one in runs() if one.name == "are-embedded")
    rows = opened(folder_of(run.name)).rows
    labels = study_of(run.config.study).labels
    assert {"before Attr_r", "Attr_p", "Pres"} <= set(units(rows, labels).columns)
    chart = questions(rows, "attr_r", labels)
    assert chart.title == "Attr_r by example"
    # The same names as in the tables; equal points of two methods are next to each other.
    assert [series.name for series in chart.series] == ["DRQA", "ARE"] == list(units(rows, labels)["method"].unique())
    layout = drawn(chart).layout
    assert layout.scattermode == "group" and 0 < layout.yaxis.range[0] < layout.yaxis.range[1] < 1
    places = [msgspec.structs.replace(series, x=(series.name,) * len(series.y)) for series in chart.series]
    apart = drawn(msgspec.structs.replace(chart, series=tuple(places))).layout
    assert apart.scattermode is None  # a series with a place of its own stays above its name


def test_a_study_that_stored_no_title_asks_its_presets_question():
    config = Config(study="are-ablations", data="d")
    assert question_of(config) == "What is each part of ARE worth?"
    assert question_of(msgspec.structs.replace(config, title="Does it? (a night)")) == "Does it?"
    assert all(question_of(one.config).endswith("?") for one in runs())


def test_long_names_on_an_axis_are_cut_where_many_share_it():
    def ticks(names):
        series = Series(name="a", x=tuple(names), y=tuple(0.5 for _ in names))
        axes = {"x": Axis(name="example"), "y": Axis(name="value")}
        return drawn(Figure(name="f", title="F", kind="points", series=(series,), **axes)).layout.xaxis

    long = ticks(f"{number}ba52e655429939ce03dc94" for number in range(10, 20))
    assert long.labelalias["10ba52e655429939ce03dc94"] == "10ba52e6…"
    assert long.tickmode is long.ticktext is None  # Plotly leaves out what has no room
    assert ticks(f"d{number}" for number in range(20)).labelalias is None


def test_the_title_of_a_figure_is_text_above_it():
    def draw():
        from components.figures import figure_view
        from engine.studies.values import Axis, Figure, Series

        axes = {"x": Axis(name="x"), "y": Axis(name="y")}
        figure_view(
            Figure(name="f", title="Gain by S3", kind="points", series=(Series(name="a", x=(1,), y=(2,)),), **axes),
            key="f",
        )

    app = AppTest.from_function(draw).run()
    assert not app.exception
    assert [one.value for one in app.markdown] == ["**Gain by S3**"]
    (chart,) = app.get("plotly_chart")
    assert "Gain by S3" not in chart.proto.spec and '"filename": "f"' in chart.proto.config


def test_every_kind_of_figure_is_drawn_with_its_intervals_and_cases():
    line = Series(name="<b>a</b>", x=(1, 2), y=(0.5, None), low=(0.4, None), high=(0.7, None), cases=("c1", "c2"))
    for kind in ("lines", "bars", "points"):
        chart = drawn(Figure(name="f", title="F", kind=kind, x=Axis(name="x"), y=Axis(name="y"), series=(line,)))
        assert len(chart.data) == 1
        if kind == "bars":
            assert chart.data[0].marker.line.color == COLOURS[0]
    chart = drawn(Figure(name="f", title="F", kind="lines", x=Axis(name="x"), y=Axis(name="y"), series=(line,)))
    assert chart.data[0].error_y.array[0] == pytest.approx(0.2)
    assert chart.data[0].error_y.arrayminus[0] == pytest.approx(0.1)
    assert chart.data[0].customdata[0][0] == "c1"


def test_a_contour_has_its_levels_its_line_and_a_named_point():
    grid = (0.0, 1.0)
    series = (
        Series(name="F1_RP", x=grid, y=grid, z=((0.0, 0.0), (0.0, 1.0))),
        Series(name="best before editing", x=(0.4, 0.4), y=grid),
        Series(name="ARE", x=(0.7,), y=(0.9,), low=(0.8,), high=(0.95,)),
    )
    axes = {"x": Axis(name="Attr_r"), "y": Axis(name="Pres")}
    chart = drawn(Figure(name="f", title="F", kind="contour", series=series, **axes))
    levels, line, point = chart.data
    assert (levels.type, line.line.dash, point.text[0]) == ("contour", "dash", "ARE")
    assert point.error_y.arrayminus[0] == pytest.approx(0.1)
