"""evaluate: a study over a data set."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from engine.commands.shared import emit, main, set_option, speaker
from engine.studies.config import as_toml, config_text, parse_config, with_assignments
from engine.studies.plan import Plan
from engine.studies.run import Control, Progress
from engine.studies.values import Estimate

if TYPE_CHECKING:
    from engine.studies.evaluate import Where


@main.command()
@click.argument("config", type=click.Path(path_type=Path))
@click.option("--out", required=True, type=click.Path(file_okay=False, path_type=Path), help="The run's folder.")
@click.option("--resume", is_flag=True, help="Resume the run in that folder.")
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True, help="Processes, or Ray workers.")
@click.option("--on", type=click.Choice(["local", "ray"]), default="local", show_default=True)
@set_option
def evaluate(config: Path, out: Path, resume: bool, workers: int, on: Where, assignments: tuple[str, ...]) -> None:
    """Run a study over a data set: a TOML file, or the name of a preset.

    Use --resume to continue a stopped run; finished units are kept. The last line is the summary.

    Example: python -m engine evaluate refinement --out runs/refinement --workers 2
    """
    from engine.studies.evaluate import evaluate as run_evaluation, report  # loads pandas: half a second

    text = config_text(config)
    parsed = parse_config(text, config.name)  # what is wrong in it is told with the file's name
    if assignments:
        text = as_toml(with_assignments(parsed, assignments))
    result = run_evaluation(
        text, out, resume=resume, workers=workers, on=on, control=Control(tell=_teller()), on_cost=_say_cost
    )
    failed = result.failures
    summary = {
        "units": len(result.manifest.units),
        "failed": len(failed),
        "unparsed": sum(row.unparsed for row in result.rows),
        "model": result.config.model,
        "tables": [str(out / "tables" / f"{table.name}.csv") for table in result.results.tables],
        "figures": [str(out / "figures" / f"{figure.name}.json") for figure in result.results.figures],
        "notes": [*result.manifest.off, *result.results.notes],
        "departures": list(result.manifest.departures),
    }
    emit({"summary": summary})
    click.echo(report(result), err=True)
    if failed:
        sys.exit(1)


def _say_cost(plan: Plan, cost: Estimate) -> None:
    """The largest cost of the remaining units, before the first one."""
    from engine.studies.library import ahead  # loads pandas too

    parts = [f"{value:,} {name}" for name, value in cost.to_dict().items() if value]
    most = ", ".join(parts) or "no model calls"
    click.echo(f"{len(plan.units)} units of {plan.study.name} left to do. At most: {most}.", err=True)
    if known := ahead(plan, cost):
        click.echo(known, err=True)


def _teller() -> Callable[[Progress], None]:
    say = speaker()

    def tell(progress: Progress) -> None:
        left = "" if progress.remaining is None else f", about {progress.remaining:,.0f} s left"
        say(f"{progress.done:,}/{progress.total:,} units, {progress.failed} failed{left}")

    return tell
