import csv
import io

import msgspec
import pytest
from markdown_it import MarkdownIt

from engine.core.errors import InputError
from engine.models.server import Spent
from engine.studies.catalogue import names, study_of
from engine.studies.config import CONFIGS, Config, Limit, departures, parse_config, presets, read_config
from engine.studies.tables import to_csv, to_json, to_latex, to_markdown
from engine.studies.values import Column, Measure, StudyTable

TABLE = StudyTable(
    name="t",
    title="A <b>title</b>",
    columns=(Column(name="method"), Column(name="score_1", unit="share", better="higher"), Column(name="count")),
    rows=(("=SUM(A1)|x", Measure(value=0.5, low=0.25, high=0.75, n=12), 3), ("50% & more", Measure(value=None), None)),
    n=12,
    shows="a paper, Table 1",
    notes=("2 failed.",),
)


def test_csv_holds_everything_and_starts_no_formula():
    head, first, second = csv.reader(io.StringIO(to_csv(TABLE)))
    assert head == [
        "method",
        "score_1 (share)",
        "score_1 (share) low",
        "score_1 (share) high",
        "score_1 (share) n",
        "count",
    ]
    assert first == ["'=SUM(A1)|x", "0.5", "0.25", "0.75", "12", "3"]
    assert second == ["50% & more", "", "", "", "0", ""]


def test_json_comes_back_as_it_was():
    assert msgspec.json.decode(to_json(TABLE), type=StudyTable) == TABLE


def test_markdown_says_n_unit_and_direction_and_lets_no_markup_through():
    text = to_markdown(TABLE)
    assert "n = 1 question." in to_markdown(msgspec.structs.replace(TABLE, n=1))
    assert "n = 12 questions" in text and "score\\_1 (share) ↑" in text and "0.500 [0.250, 0.750]" in text
    assert "\\<b\\>" in text and "<b>" not in MarkdownIt("commonmark", {"html": True}).render(text)
    assert "\\|x" in text and "2 failed." in text
    assert text.count("\n|") == 4


def test_latex_escapes_its_own_characters():
    text = to_latex(TABLE)
    assert r"score\_1 (share) $\uparrow$" in text and r"50\% \& more & - & - \\" in text
    assert text.count(r"\\") == 3


def test_every_preset_reads_and_names_a_study_and_each_study_has_a_small_and_a_paper_one():
    for name in presets():
        config = read_config(CONFIGS / f"{name}.toml")
        assert config.study in names()
        assert set(config.methods) <= set(study_of(config.study).methods)
    for name in names():
        stem = name.replace("-", "_")
        assert [read_config(CONFIGS / f"{preset}.toml").study for preset in (stem, f"{stem}_paper")] == [name] * 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("study = 3", "study"),
        ("study = [", "not a valid config"),
        ('study = "a"\ndata = "b"\nseeds = []', "no seed"),
        ('study = "a"\ndata = "b"\n[settings.retrieval]\nkk = 3', "kk"),
        ('study = "a"\ndata = "b"\n[settings.retrieval]\nk = "three"', "wrong type"),
        ('study = "a"\ndata = "b"\nmodels = 3', "models"),
    ],
)
def test_a_config_that_does_not_fit_says_where(text, said):
    with pytest.raises(InputError, match=said.replace("[", r"\[")):
        parse_config(text)


def test_departures_name_what_differs_from_the_paper():
    paper = Config(study="s", data="d", seeds=(1, 2), settings={"retrieval": {"k": 30}}, budget=Limit(calls=3))
    ours = Config(study="s", data="d", settings={"retrieval": {"k": 5}})
    assert departures(ours, paper) == ("seeds: 1337, not 1, 2", "settings.retrieval.k: 5, not 30")
    assert departures(paper, paper) == ()


def test_a_budget_is_shared_without_losing_a_call():
    assert Limit(calls=10).less(Spent(calls=3)).share(3) == Limit(calls=3)
    assert Limit(tokens=2).less(Spent(tokens=5)) == Limit(tokens=0)
    assert Limit().less(Spent(calls=9, tokens=9)) == Limit()
