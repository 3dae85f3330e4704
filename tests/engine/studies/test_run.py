import dataclasses
import json
import multiprocessing
import random
import re
import signal
import subprocess
import sys

import msgspec
import pytest
from msgspec.structs import replace

from engine.cases.case_file import write_case_file
from engine.cases.store import CaseStore
from engine.core.errors import BudgetSpent, Cancelled, CorpusNotFound, InputError, ModelError, StorageError
from engine.core.progress import Watch
from engine.core.settings import Decoding
from engine.core.values import Answer, Case, Hit, Passage, Prompt, Stamp, decoded
from engine.models.registry import add_model
from engine.studies.config import parse_config, read_config
from engine.studies.evaluate import RunManifest, evaluate, hashes_of, opened
from engine.studies.example import Example
from engine.studies.library import SHIPPED, ahead, evaluations, take_in
from engine.studies.plan import check_corpora, plan, prepare
from engine.studies.pools import Done, Lost, Performer, Processes, Stopped, Threads, at_once
from engine.studies.run import Control, Journal, Run
from engine.studies.tools import StudyTools
from engine.studies.values import Estimate, Failure, Found, Row, Unit


def timeless(rows):
    """Rows without what differs from one run to the next by nature: seconds."""
    return [(row.unit, row.state, row.values, row.missing, row.failure) for row in rows]


def told_by(folder):
    """The tables and figures of a run; the draft of a file that was never put in place (".….new") is none of them."""
    shown = [path for place in ("tables", "figures") for path in (folder / place).glob("[!.]*")]
    return {path.name: path.read_bytes() for path in shown}


def test_a_run_writes_rows_tables_and_what_it_ran_on(sample_home, retrieval, tmp_path):
    found = evaluate(retrieval(4), tmp_path / "run")
    assert len(found.rows) == 12 and not found.failures
    assert {path.name for path in (tmp_path / "run" / "tables").iterdir()} == {
        f"by_depth.{kind}" for kind in ("csv", "json", "tex", "md")
    }
    again = opened(tmp_path / "run")
    assert again.rows == found.rows and again.results == found.results
    assert (tmp_path / "run" / "config.toml").read_text() == retrieval(4)


def test_a_run_that_cannot_be_written_says_so_and_is_resumed(sample_home, retrieval, tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "tables").touch()  # a file where a folder has to be
    with pytest.raises(StorageError, match=r"could not be written \(File exists: tables\)\. .* then resume"):
        evaluate(retrieval(2), folder)
    (folder / "tables").unlink()
    assert len(evaluate(retrieval(2), folder, resume=True).rows) == 6


def test_more_passages_find_no_less_gold(sample_home, retrieval, tmp_path):
    rows = evaluate(retrieval(6), tmp_path / "run").rows
    by_unit = {(row.unit.example, row.unit.method): row.values for row in rows}
    for example in {row.unit.example for row in rows}:
        counts = [by_unit[example, name]["found"] for name in ("top-5", "top-10", "top-30")]
        assert counts == sorted(counts) and counts[-1] <= by_unit[example, "top-5"]["gold"]
        assert by_unit[example, "top-10"]["density"] == counts[1] / 10


def test_killed_at_random_and_resumed_it_is_the_run_that_nothing_disturbed(sample_home, retrieval, tmp_path):
    config, whole, killed = tmp_path / "config.toml", tmp_path / "whole", tmp_path / "killed"
    config.write_text(retrieval(0))
    evaluate(config.read_text(), whole)
    total, at = len(Journal(whole).rows()), random.Random(7)
    kept = 0
    for _ in range(2):
        wanted = kept + at.randrange(1, total // 3)
        command = [sys.executable, "-m", "engine", "evaluate", str(config), "--out", str(killed)]
        resume = ["--resume"] if (killed / "run.json").exists() else []
        process = subprocess.Popen([*command, *resume], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while len(Journal(killed).rows()) < wanted and process.poll() is None:
            pass
        process.send_signal(signal.SIGKILL)
        process.wait()
        rows = Journal(killed).rows()
        assert kept < len(rows) < total, "it was to be killed in the middle"
        kept = len(rows)
    with Journal(killed).path.open("ab") as file:
        file.write(b'{"unit":{"example":"torn')  # as a kill in the middle of a write leaves it
    before = Journal(killed).rows()
    after = evaluate(config.read_text(), killed, resume=True)
    lines = Journal(killed).rows()
    assert lines[: len(before)] == before and len(lines) == total == len({row.unit for row in lines})
    assert timeless(after.rows) == timeless(opened(whole).rows)
    assert told_by(killed) == told_by(whole)


def test_a_folder_is_not_overwritten_nor_resumed_with_something_else(sample_home, retrieval, tmp_path):
    folder = tmp_path / "run"
    with pytest.raises(InputError, match="not contain a run to resume"):
        evaluate(retrieval(1), folder, resume=True)
    evaluate(retrieval(1), folder)
    with pytest.raises(InputError, match="--resume"):
        evaluate(retrieval(1), folder)
    with pytest.raises(InputError, match="another config"):
        evaluate(retrieval(2), folder, resume=True)
    evaluate(retrieval(1) + "\n[budget]\ncalls = 5\n", folder, resume=True)  # a budget may be raised
    evaluate("concurrency = 1\n" + retrieval(1), folder, resume=True)  # and a server be asked less


def test_cancel_keeps_what_was_done_and_pause_begins_nothing(sample_home, retrieval, tmp_path):
    seen = []

    def tell(progress):
        seen.append(progress)
        if progress.done == 2 and not progress.paused:
            control.pause.set()
        elif progress.paused and len([p for p in seen if p.paused]) > 3:
            control.watch.cancel.set()

    control = Control(tell=tell)
    with pytest.raises(Cancelled):
        evaluate(retrieval(4), tmp_path / "run", control=control)
    paused = [progress.done for progress in seen if progress.paused]
    assert paused[0] <= 3 and paused[-1] == paused[1]  # what ran when it was paused ends, and nothing else begins
    kept = len(Journal(tmp_path / "run").rows())
    assert 2 <= kept <= 3
    assert len(evaluate(retrieval(4), tmp_path / "run", resume=True).rows) == 12


def pids():
    """The processes that this one started and that live."""
    return [child.pid for child in multiprocessing.active_children()]


def test_a_worker_that_is_killed_costs_nothing_but_its_unit(sample_home, retrieval, tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    planned = plan(parse_config(retrieval(20)))
    pool = Processes(planned.config, 2, folder)
    first = pids()

    def tell(progress):
        if progress.done >= 5 and first[0] in pids():
            subprocess.run(["kill", "-9", str(first[0])], check=True)

    try:
        rows = Run(planned, folder, Control(tell=tell)).go(pool)
        assert first[0] not in pids() and first[1] in pids()
    finally:
        pool.close()
    assert timeless(rows) == timeless(evaluate(retrieval(20), tmp_path / "other").rows)
    assert len(Journal(folder).rows()) == len(planned.units)


class Scripted:
    """A pool that answers each unit with what the script says of it, in turn."""

    size = 1

    def __init__(self, script):
        self.script, self.given = script, []

    def give(self, unit, example, left):
        self.given.append((unit, left))

    def take(self, seconds):
        unit, _ = self.given[-1]
        said = self.script(unit, len(self.given))
        return Stopped(unit=unit, kind=said, message="It is so.") if isinstance(said, str) else said(unit)

    def close(self):
        """Nothing to end."""


def done(unit):
    return Done(row=Row(unit=unit, state="done", values={"needed": None, "found": 1}))


def scripted(retrieval, tmp_path, script, extra=""):
    run = Run(plan(parse_config(retrieval(2) + extra)), tmp_path, Control())
    return run, Scripted(script)


def test_a_unit_that_loses_three_workers_is_failed_and_the_others_go_on(sample_home, retrieval, tmp_path):
    run, pool = scripted(retrieval, tmp_path, None)
    bad = run.plan.units[1]
    pool.script = lambda unit, _: (lambda u: Lost(unit=u)) if unit == bad else done
    rows = run.go(pool)
    assert [row.state for row in rows] == ["done", "failed", "done", "done", "done", "done"]
    assert rows[1].failure.type == "WorkerLost" and [u for u, _ in pool.given].count(bad) == 3


def test_a_resumed_run_tries_again_what_failed_through_no_fault_of_the_unit(sample_home, retrieval, tmp_path):
    run, pool = scripted(retrieval, tmp_path, None)
    lost, wrong = run.plan.units[1], run.plan.units[2]
    failed = Done(row=Row(unit=wrong, state="failed", failure=Failure(type="InputError", message="No.")))
    said = {lost: lambda u: Lost(unit=u), wrong: lambda u: failed}
    pool.script = lambda unit, _: said.get(unit, done)
    run.go(pool)
    again = Run(run.plan, tmp_path, Control())
    assert list(again.waiting) == [lost]
    rows = again.go(Scripted(lambda unit, _: done))
    assert [row.state for row in rows] == ["done", "done", "failed", "done", "done", "done"]
    assert len(Journal(tmp_path).rows()) == 6 and not Run(run.plan, tmp_path, Control()).waiting


def test_a_server_that_is_gone_stops_the_run_and_fails_no_unit(sample_home, retrieval, tmp_path):
    from engine.core.errors import ServerError

    run, pool = scripted(retrieval, tmp_path, lambda unit, turn: done if turn < 3 else "ServerError")
    with pytest.raises(ServerError, match="2 of 6 units are saved"):
        run.go(pool)
    assert len(Journal(tmp_path).rows()) == 2 and len(pool.given) == 5


def test_one_unit_that_the_server_will_not_do_is_failed(sample_home, retrieval, tmp_path):
    run, pool = scripted(retrieval, tmp_path, None)
    bad = run.plan.units[0]
    pool.script = lambda unit, _: "ServerError" if unit == bad else done
    rows = run.go(pool)
    assert [row.state for row in rows].count("failed") == 1 and rows[0].failure.type == "ServerError"


def test_an_empty_budget_stops_the_run_and_what_is_left_is_told(sample_home, retrieval, tmp_path):
    from msgspec.structs import replace

    from engine.models.server import Spent

    def spending(unit):
        outcome = done(unit)
        return replace(outcome, row=replace(outcome.row, served=Spent(calls=4, tokens=10)))

    run, pool = scripted(
        retrieval, tmp_path, lambda unit, turn: spending if turn < 3 else "BudgetSpent", "\n[budget]\ncalls = 10\n"
    )
    with pytest.raises(BudgetSpent):
        run.go(pool)
    assert [left.calls for _, left in pool.given] == [10, 6, 2]


def test_a_damaged_line_is_named(tmp_path):
    journal = Journal(tmp_path)
    journal.path.write_bytes(b'{"unit": 3}\n')
    with pytest.raises(InputError, match="Line 1"):
        journal.rows()


def test_the_time_ahead_is_the_pace_of_the_run_most_like_the_plan(sample_home, retrieval, monkeypatch):
    for name, seconds in (("first", 3.0), ("other-data", 50.0)):
        folder = evaluations() / name
        rows = evaluate(retrieval(2), folder).rows
        text = (folder / "config.toml").read_text()
        lines = [msgspec.json.encode(replace(row, cost=replace(row.cost, seconds=seconds))) + b"\n" for row in rows]
        (folder / "units.jsonl").write_bytes(b"".join(lines))
        made = folder / "run.json"
        manifest = decoded(made.read_bytes(), RunManifest)
        made.write_bytes(msgspec.json.encode(replace(manifest, cost=Estimate(tokens=600))))  # 100 a unit
        if name == "other-data":
            (folder / "config.toml").write_text(text.replace('mode = "bm25"', 'mode = "dense"'))
    same = plan(parse_config(retrieval(4)))
    assert ahead(same, Estimate()) == "About 40 s with one worker, at the pace of first."  # 12 units
    dense = retrieval(1).replace('mode = "bm25"', 'mode = "hybrid"')
    cut = plan(parse_config(f"{retrieval(4)}\n[load]\npassages = 1\n"))
    assert "(other data or settings)" in ahead(cut, Estimate())
    other = plan(parse_config(dense))  # 3 units
    said = "with one worker, at the pace of other-data (other data or settings)."
    assert ahead(other, Estimate()) == f"About 2 min {said}"
    assert ahead(other, Estimate(tokens=600)) == f"About 5 min {said}"
    assert ahead(dataclasses.replace(other, units=()), Estimate()) == ""
    assert ahead(plan(parse_config(retrieval(1).replace('"reader"', '"embedded"'))), Estimate()) == ""


def test_units_that_write_go_by_the_batch_and_those_that_do_not_one_by_one():
    config = parse_config('study = "are"\ndata = "x"\nmodel = "embedded"\nbatch = 8\nconcurrency = 4')
    assert [at_once(config, writes) for writes in (True, False)] == [8, 1]
    assert at_once(replace(config, model="auto"), writes=True) == 1
    assert at_once(replace(config, model="openai:some"), writes=False) == 4


def test_a_served_model_under_the_users_own_name_has_the_runs_budget_and_concurrency():
    add_model("openai:tiny@http://127.0.0.1:9/v1", "srv")
    by_name = 'model = "srv"\njudge = "srv"\nconcurrency = 3\n[budget]\ncalls = 0'
    config = parse_config(f'study = "are"\ndata = "x"\n{by_name}')
    tools = StudyTools(config)
    tools.allow(config.budget)
    for model in (tools.writer, tools.judge):
        with pytest.raises(BudgetSpent):
            model.generate(Prompt(segments=()), Decoding())
    pool = Threads(config, Watch(), config.budget, tools)
    pool.close()
    assert pool.size == at_once(config, writes=False) == 3


def test_settings_in_another_order_are_the_same_config(sample_home, retrieval, tmp_path):
    first, second = "[settings.occlusion]\nmax_sources = 9\n", "[settings.decoding]\nmax_new_tokens = 5\n"
    begun = evaluate(f"{retrieval(1)}\n{first}\n{second}", tmp_path / "run")
    resumed = evaluate(f"{retrieval(1)}\n{second}\n{first}", tmp_path / "run", resume=True)
    assert resumed.rows == begun.rows


def test_a_where_that_fits_no_example_is_told(retrieval):
    with pytest.raises(InputError, match=r"No example of .* has kind = none\. Correct \[where\]"):
        plan(parse_config(f"{retrieval(1)}\n[where]\nkind = 'none'\n"))


ARE = """
study = "are"
data = "{data}"
n = 1
methods = ["drqa"]
verifier = "{verifier}"
"""


def test_a_sample_corpus_that_a_check_searches_is_made_where_it_is_absent():
    config = parse_config(ARE.format(data="bank-investigation-drafts", verifier="embedded"))
    planned = plan(config)
    check = msgspec.structs.replace(config, settings={"verification": {"evidence_from": "case"}})
    assert plan(check).searched(planned.units) == []
    with pytest.raises(CorpusNotFound):
        check_corpora(planned, StudyTools(config), planned.units)
    prepare(planned, Watch())
    check_corpora(planned, StudyTools(config), planned.units)


def test_a_corpus_that_there_is_not_is_refused_before_the_first_unit(tmp_path):
    path = tmp_path / "own.jsonl"
    path.write_bytes(msgspec.json.encode({"question": "Q?", "answer": "Iron rusts.", "corpus": "metals"}))
    with pytest.raises(CorpusNotFound, match="There is no corpus 'metals'"):
        evaluate(ARE.format(data=path, verifier="embedded"), tmp_path / "run")
    assert not (tmp_path / "run" / "run.json").exists()


@pytest.mark.parametrize(
    "config",
    [
        ARE.format(data="{data}", verifier="no-such/verifier"),
        'study = "refinement"\ndata = "{data}"\nverifier = "no-such/verifier"\nmodel = "openai:m@http://127.0.0.1:9/v1"',
        'study = "refinement"\ndata = "{data}"\nmodel = "reader"',
        'study = "abpc"\ndata = "{data}"\nmodel = "openai:m@http://127.0.0.1:9/v1"',
    ],
)
def test_a_model_that_no_unit_could_use_is_refused_before_the_run_begins(tmp_path, config):
    path = tmp_path / "own.jsonl"
    path.write_bytes(msgspec.json.encode({"question": "Q?", "answer": "Iron rusts.", "passages": ["Iron rusts."]}))
    with pytest.raises(ModelError):
        evaluate(config.format(data=path), tmp_path / "run")
    assert not (tmp_path / "run" / "run.json").exists()


PASSAGE = Passage(id="p", document="d", title="", ordinal=0, start=0, end=4, text="Ice.")


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"hits": (Hit(passage=PASSAGE, score=float("nan")),)}, "RecordError"),
        ({"question": "caf\udce9"}, "UnicodeEncodeError"),
    ],
)
def test_a_unit_whose_case_cannot_be_written_has_failed(retrieval, change, kind):
    def ran(tools, unit, example, watch):
        case = Case(id="", question="Q?", passages=(), answer=Answer(text="A."), stamp=Stamp(model="m"))
        return Found(values={}, case=msgspec.structs.replace(case, **change))

    performer = Performer(parse_config(retrieval(1)))
    performer.study = dataclasses.replace(performer.study, run=ran)
    unit = Unit(example="a", method="top-5", seed=1)
    done = performer.perform(unit, Example(id="a", question="Q?"), Watch())
    assert isinstance(done, Done) and (done.row.state, done.row.failure.type, done.case) == ("failed", kind, "")


def test_a_units_case_comes_back_from_the_bin(sample_home, tmp_path):
    folder, store = tmp_path / "run", CaseStore(tmp_path / "cases.sqlite")
    case = Case(id="unit", question="Q?", passages=(), answer=Answer(text="A."), stamp=Stamp(model="m"))
    (folder / "cases").mkdir(parents=True)
    (folder / "cases" / "unit.json").write_bytes(write_case_file(case))
    name = take_in(store, folder, "unit")
    store.set_tags(name, ["kept"])
    store.delete(name)
    assert take_in(store, folder, "unit") == name and store.load(name).tags == ("kept",)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("concurrency = 0", "Expected `int` >= 1 - at `$.concurrency`"),
        ("batch = -2", "Expected `int` >= 0 - at `$.batch`"),
        ("seeds = [18446744073709551616]", "Expected `int` <= 9223372036854775807 - at `$.seeds[0]`"),
        ("[budget]\ncalls = -1", "Expected `int` >= 0 - at `$.budget.calls`"),
        ("[budget]\ntokens = -1", "Expected `int` >= 0 - at `$.budget.tokens`"),
    ],
)
def test_a_number_that_no_run_can_have_is_refused(retrieval, line, said):
    name, _, _ = line.partition(" ")
    text = "\n".join(kept for kept in retrieval(1).splitlines() if not kept.startswith(name))
    with pytest.raises(InputError, match=re.escape(said)):
        parse_config(f"{text}\n{line}" if "[" in name else f"{line}\n{text}")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("limits = 3", "Object contains unknown field `limits`"),
        ('limit = "3"', "Expected `int | null`, got `str`"),
        ("limit = -1", "Expected `int` >= 0"),
        ("seed = 1.5", "Expected `int`, got `float`"),
        ("corpus = 3", "Expected `str`, got `int`"),
        ("passages = -3", "Expected `int` >= 0"),
        ("per_stratum = -3", "Expected `int` >= 0"),
    ],
)
def test_a_mistake_under_load_is_told(retrieval, line, said):
    with pytest.raises(InputError, match=rf"\[load\] cannot be used \({re.escape(said)}"):
        plan(parse_config(f"{retrieval(1)}\n[load]\n{line}\n"))


def test_the_table_of_load_is_hashed_as_it_was_given(retrieval):
    config = parse_config(f"{retrieval(1)}\n[load]\nseed = 1337\ncorpus = 'c'\nlimit = 2\n")
    assert config.load == {"seed": 1337, "corpus": "c", "limit": 2} and [*config.load] == ["seed", "corpus", "limit"]


def test_where_finds_numbers_and_switches(tmp_path):
    path, about = tmp_path / "own.jsonl", [{"level": 3, "new": True}, {"level": 4, "new": True}, {"level": 3}]
    lines = [msgspec.json.encode({"question": "Q?", "answer": "A b.", "about": kept}) for kept in about]
    path.write_bytes(b"\n".join(lines))
    found = plan(parse_config(f'study = "are"\ndata = "{path}"\n[where]\nlevel = 3\nnew = true\n'))
    assert [example.about for example in found.examples.values()] == [{"level": 3, "new": True}]


def test_an_option_that_no_study_reads_is_refused_before_anything_runs():
    config = parse_config('study = "refinement"\ndata = "bank-investigation"\n[options]\nconditons = ["D"]')
    with pytest.raises(
        InputError, match=r"conditons is not an option of refinement\. Its options are: conditions, pairs"
    ):
        plan(config)


@pytest.mark.parametrize(
    ("study", "option", "said"),
    [
        ("refinement", 'pairs = ["D-Z"]', "A pair of conditions is written like D-A"),
        ("refinement", "pairs = [3]", r"options.pairs is \[3\]: Expected `str`, got `int`"),
        ("refinement", "conditions = 3", "options.conditions is 3: Expected `array`"),
        ("refinement", 'conditions = ["D", "Z"]', "z is not a condition"),
        ("attr-rag-chunks", 'long = "x"', "options.long is 'x': Expected `int`"),
        ("attr-rag-chunks", 'answers = "no"', "options.answers is 'no': Expected `bool`"),
        ("attr-rag-chunks", "depth = 7", "options.depth is 7. Choose from: 5, 10"),
        ("are", 'by_model = ["jdge"]', "'jdge' is not a role. Choose from: decomposer, judge"),
        ("are", 'by_model = "judge"', "options.by_model is 'judge': Expected `array`"),
        ("are-ablations", 'by_model = ["jdge"]', "'jdge' is not a role"),
        ("abpc", "rankings = 3", "options.rankings is 3: Expected `array`"),
        ("abpc", 'rankings = ["guess"]', "'guess' is not an available ranking"),
    ],
)
def test_an_option_that_cannot_be_used_is_refused_before_anything_runs(study, option, said):
    config = parse_config(f'study = "{study}"\ndata = "bank-investigation-drafts"\n[options]\n{option}')
    with pytest.raises(InputError, match=said):
        plan(config)


@pytest.mark.parametrize(
    "name", ["steps-small", "attr-rag-ten-small", "refinement-small", "are-editor", "chunks-reader"]
)
def test_a_run_of_an_earlier_version_is_known_by_its_config(name):
    folder = SHIPPED / name
    manifest = json.loads((folder / "run.json").read_bytes())
    assert manifest["config"] in hashes_of(read_config(folder / "config.toml"))


def test_another_config_is_another_run():
    config = read_config(SHIPPED / "steps-small" / "config.toml")
    other = msgspec.structs.replace(config, exact=False)
    assert not set(hashes_of(config)) & set(hashes_of(other))
    assert hashes_of(config) == hashes_of(msgspec.structs.replace(config, batch=3))
