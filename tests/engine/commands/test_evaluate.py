"""`python -m engine evaluate`: the preset of seconds, end to end."""

import json

from click.testing import CliRunner

from engine.commands import main


def call(*arguments):
    return CliRunner().invoke(main, ["evaluate", *map(str, arguments)])


def test_a_preset_by_name_says_its_cost_and_leaves_tables(sample_home, tmp_path):
    done = call("seconds", "--out", tmp_path / "run")
    assert done.exit_code == 0, done.output
    summary = json.loads(done.stdout.splitlines()[-1])["summary"]
    assert summary["units"] == 24 and summary["failed"] == 0 and summary["model"] == "reader"
    assert "24 units of attr-rag-chunks left to do. At most: no model calls." in done.stderr
    assert any("Fig. 1a" in note for note in summary["notes"])
    assert (tmp_path / "run" / "tables" / "by_depth.csv").read_text().startswith("k (passages)")
    assert [figure.rsplit("/", 1)[-1] for figure in summary["figures"]] == ["fig_1b.json"]
    again = call("seconds", "--out", tmp_path / "run", "--resume")
    assert json.loads(again.stdout.splitlines()[-1])["summary"] == summary


def test_a_wrong_call_is_refused_before_anything_runs(sample_home, tmp_path):
    config = tmp_path / "config.toml"
    config.write_text('study = "attr-rag-chunks"\ndata = "bench-chemistry"\nmethods = ["top-7"]\n')
    wrong = tmp_path / "wrong.toml"
    wrong.write_text('study = "are"\ndata = 3\n')
    for arguments, said in (
        ((wrong,), "wrong.toml is not a valid config: Expected `str`, got `int` - at `$.data`"),
        ((wrong, "--set", "decoding.temperature=0.7"), "wrong.toml is not a valid config"),
        ((tmp_path / "none.toml",), "cannot be read"),
        ((config,), "top-7 is not a method"),
        (("seconds", "--resume"), "not contain a run to resume"),
    ):
        done = call(*arguments, "--out", tmp_path / "run")
        assert done.exit_code == 2 and said in done.stderr, done.output
    assert not (tmp_path / "run" / "units.jsonl").exists()
