"""An evaluation from its config to its tables, on this machine or on a cluster; what `evaluate` and the page call."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

import msgspec

from engine.core.errors import InputError, StorageError, raised_as
from engine.core.files import locked_now, package_versions
from engine.core.progress import Watch
from engine.core.values import Value, decoded, sha256
from engine.report.markdown import one_line
from engine.studies import summary
from engine.studies.catalogue import study_of
from engine.studies.config import CONFIGS, NO_RESULT_HANGS_ON, Config, departures, parse_config, read_config
from engine.studies.plan import Plan, check_corpora, estimate, load_models, plan, prepare
from engine.studies.pools import Pool, Processes, RayPool, Threads
from engine.studies.run import Control, Journal, Run, check_folder, write_whole
from engine.studies.tables import FORMATS, to_json, to_markdown
from engine.studies.tools import StudyTools
from engine.studies.values import Cell, Column, Estimate, Failure, Results, Row, StudyTable, Unit

Where = Literal["local", "ray"]


class RunManifest(Value, frozen=True):
    """run.json: what a run is of, and what it ran on. `units` in their order; `data` and `config` are hashes."""

    study: str
    shows: tuple[str, ...]
    config: str
    data: str
    units: tuple[Unit, ...]
    left_out: dict[str, int]
    off: tuple[str, ...]
    departures: tuple[str, ...]
    cost: Estimate
    versions: dict[str, str]


class Evaluation(Value, frozen=True):
    """A run as it is on the disk: what was asked, how far it came, what it shows."""

    config: Config
    manifest: RunManifest
    rows: tuple[Row, ...]
    results: Results

    @property
    def failures(self) -> tuple[tuple[Unit, Failure], ...]:
        """The units that failed and why."""
        return tuple((row.unit, row.failure) for row in self.rows if row.failure is not None)


def cost_of(config: Config, watch: Watch) -> tuple[Plan, Estimate]:
    """Plan a config and its largest cost; loads data and corpora, runs nothing."""
    planned = plan(config)
    prepare(planned, watch)
    tools = StudyTools(config)
    check_corpora(planned, tools, planned.units)
    return planned, estimate(planned, tools, planned.units)


def evaluate(
    text: str,
    folder: Path,
    *,
    resume: bool = False,
    workers: int = 1,
    on: Where = "local",
    control: Control | None = None,
    on_cost: Callable[[Plan, Estimate], None] | None = None,
    tools: StudyTools | None = None,
) -> Evaluation:
    """Run the config in `text`, or resume the run in `folder`, and write its tables and figures.

    `on_cost` gets the plan of the units left and the most that they will take before the first one starts; it may
    raise `Cancelled`. Raises `InputError` for another config, other data or a folder in use; and what `Run.go` raises.
    """
    control, config = control or Control(), parse_config(text)
    check_folder(folder, resume)
    busy = InputError(f"Another process is running in {folder}. Wait for it to finish, or choose another folder.")
    way_out = "Free some space or make the folder writable, then resume; or choose another folder."
    with raised_as(StorageError, f"The run in {folder} could not be written", way_out, OSError):
        folder.mkdir(parents=True, exist_ok=True)
        with locked_now(folder / ".lock", busy):
            planned = plan(config)
            prepare(planned, control.watch)
            run = Run(planned, folder, control)
            waiting, own = list(run.waiting), tools or StudyTools(config)
            check_corpora(planned, own, waiting)
            if on == "local" and workers == 1:  # others load their own, and there may be no room for one more
                load_models(planned, own, waiting)
            cost = estimate(planned, own, waiting)
            _begin(planned, text, folder, cost)
            if on_cost is not None:
                on_cost(dataclasses.replace(planned, units=tuple(waiting)), cost)
            if run.waiting:
                with closing(_pool(run, workers, on, tools)) as pool:
                    run.go(pool)
            return draw(folder)


def _pool(run: Run, workers: int, on: Where, tools: StudyTools | None) -> Pool:
    config = run.plan.config
    if on == "ray":
        return RayPool(config, workers)
    if workers > 1:
        return Processes(config, workers, run.folder)
    left = config.budget.less(run.served)
    return Threads(config, run.control.watch, left, tools, run.plan.writes(run.waiting))


def hashes_of(config: Config) -> tuple[str, str]:
    """The hash of a config, and that of earlier versions, which had settings in the order of the file.

    Fields that may be changed before a run goes on do not count, nor does `exact`, which earlier versions did not have.
    """
    neutral = Config(study="", data="")
    changes: dict[str, Any] = {name: getattr(neutral, name) for name in NO_RESULT_HANGS_ON}
    same = msgspec.structs.replace(config, **changes)
    now, before = (msgspec.json.encode(same, order=order).decode() for order in ("deterministic", None))
    return sha256(now.replace('"exact":true,', "", 1)), sha256(before.replace('"exact":true,', "", 1))


def _begin(planned: Plan, text: str, folder: Path, cost: Estimate) -> None:
    """Write what the run is of, or see that it is the same one."""
    path, hashes = folder / "run.json", hashes_of(planned.config)
    if path.exists():
        known = decoded(path.read_bytes(), RunManifest)
        if known.config not in hashes:
            raise InputError(f"{folder} contains a run with another config. Resume it with its own config.toml.")
        if known.data != planned.data:
            raise InputError(f"The examples differ from those {folder} was started with. Start again in a new folder.")
        return
    paper = CONFIGS / f"{planned.config.study.replace('-', '_')}_paper.toml"
    manifest = RunManifest(
        study=planned.study.name,
        shows=planned.study.shows,
        config=hashes[0],
        data=planned.data,
        units=planned.units,
        left_out=planned.left_out,
        off=planned.off,
        departures=departures(planned.config, read_config(paper)) if paper.exists() else (),
        cost=cost,
        versions=package_versions(),
    )
    write_whole(folder / "config.toml", text.encode())
    write_whole(path, to_json(manifest).encode())


def stored(folder: Path) -> tuple[RunManifest, Config, list[Row]]:
    """The manifest of a run, its config, its rows in the order of its units; raise `InputError` if there is none."""
    damaged, again = f"{folder}/run.json is damaged", "Start again in a new folder."
    with (
        raised_as(InputError, f"{folder} does not contain a run", "Give the folder used with --out.", OSError),
        raised_as(InputError, damaged, again, msgspec.MsgspecError),
    ):
        manifest = decoded((folder / "run.json").read_bytes(), RunManifest)
        config = parse_config((folder / "config.toml").read_text(encoding="utf-8"))
        by_unit = {row.unit: row for row in Journal(folder).rows()}
    return manifest, config, [by_unit[unit] for unit in manifest.units if unit in by_unit]


def opened(folder: Path) -> Evaluation:
    """The run in a folder as far as it came; raise `InputError` where there is none."""
    manifest, config, rows = stored(folder)
    results = study_of(config.study).results(config, rows) if rows else Results()
    return Evaluation(config=config, manifest=manifest, rows=tuple(rows), results=results)


def draw(folder: Path) -> Evaluation:
    """Write tables and figures of what is there, and results.md with all of it."""
    evaluation = opened(folder)
    for table in evaluation.results.tables:
        for kind, write in FORMATS.items():
            write_whole(folder / "tables" / f"{table.name}.{kind}", write(table).encode())
    for figure in evaluation.results.figures:
        write_whole(folder / "figures" / f"{figure.name}.json", to_json(figure).encode())
    write_whole(folder / "results.md", report(evaluation).encode())
    return evaluation


INEXACT = "close choices are left as the batch made them; written alone, an answer may have other words"


def report(evaluation: Evaluation) -> str:
    """The run's data and models, failures, parts left out or off, departures from the paper; then its tables."""
    config, manifest, failed = evaluation.config, evaluation.manifest, evaluation.failures
    study = study_of(config.study)
    model, verifier, judge, data = map(one_line, (config.model, config.verifier, config.judge or "none", config.data))
    lines = [
        f"# {study.title}",
        "",
        f"After {', '.join(manifest.shows)}. Model {model}, verifier {verifier},"
        f" judge {judge}; {data}; seeds {', '.join(map(str, config.seeds))}.",
        "",
        f"{len(evaluation.rows)} of {len(manifest.units)} units have run, {len(failed)} failed,"
        f" {sum(row.unparsed for row in evaluation.rows)} replies were unreadable.",
        "",
        *_listed("Failed", [f"{unit.example}, {unit.method}: {failure.message}" for unit, failure in failed]),
        *_listed("Left out", [f"{count} examples without {what}" for what, count in manifest.left_out.items()]),
        *_listed("Switched off", [*manifest.off, *evaluation.results.notes]),
        *_listed("Departs from the paper's setting", manifest.departures),
        *_listed("Answers", [] if config.exact else [INEXACT]),
        *(to_markdown(table) for table in evaluation.results.tables),
    ]
    return "\n".join(lines)


def _listed(title: str, said: Sequence[str]) -> list[str]:
    return [f"{title}:", *(f"- {one_line(line)}" for line in said), ""] if said else []


# Two runs of one study: every value that both measured, by method, over their common questions.


def numbers(rows: Sequence[Row]) -> list[str]:
    """Names of the values that are numbers in some row, in the order in which the rows bring them."""
    found = dict.fromkeys(name for row in rows for name, value in row.values.items() if isinstance(value, (int, float)))
    return list(found)


def compare_runs(first: Evaluation, second: Evaluation) -> StudyTable:
    """Means and paired differences; raise `InputError` for runs of two studies or without a question in common."""
    if first.config.study != second.config.study:
        raise InputError(
            f"One run is of {first.config.study}, the other of {second.config.study}. Choose two runs of one study."
        )
    one, other = summary.by_method(first.rows), summary.by_method(second.rows)
    names = [name for name in numbers(first.rows) if name in numbers(second.rows)]
    labels = study_of(first.config.study).labels
    heads: list[tuple[Cell, ...]] = []
    found: list[summary.PairedComparison] = []
    for method in (method for method in one if method in other):
        for name in names:
            a, b = (summary.by_question(rows[method], name) for rows in (one, other))
            means = [summary.measured([v for q, v in x.items() if q in y]) for x, y in ((a, b), (b, a))]
            if means[0].n:
                heads.append((labels.get(method, method), name, *means))
                found.append(summary.pair(method, a, b))
    if not found:
        raise InputError("The two runs have no question in common. Compare runs of the same data set.")
    by_holm = summary.corrected(found)
    return StudyTable(
        name="comparison",
        title="Two runs",
        columns=Column.row(
            "method | value | first | second | first minus second | higher (questions) | "
            "lower (questions) | p, Holm | effect (d_z)"
        ),
        rows=tuple(
            (*head, c.difference, c.higher, c.lower, c.p, c.effect) for head, c in zip(heads, by_holm, strict=True)
        ),
        n=max(c.difference.n for c in by_holm),
        notes=(summary.PAIRED, summary.CORRECTION, "Only questions in both runs; a failed unit counts as 0."),
    )
