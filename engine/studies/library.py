"""The evaluations of a data folder and those that come with the workbench: a folder a run.

A unit's case goes into the library when somebody opens it. A run that was shipped has its cases in one archive.
"""

from __future__ import annotations

import contextlib
import re
import tarfile
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from msgspec.structs import replace

from engine.cases.case_file import read_case_file
from engine.cases.store import CaseStore
from engine.core.errors import CaseNotFound, InputError
from engine.core.files import ASSETS, home, package_versions
from engine.core.text import about
from engine.core.values import Value
from engine.studies.config import Config
from engine.studies.evaluate import RunManifest, stored
from engine.studies.plan import Plan
from engine.studies.pools import at_once
from engine.studies.run import Journal
from engine.studies.summary import by_method
from engine.studies.values import Estimate, Row, Unit

SHIPPED = ASSETS / "evaluations"
FIRST = "attr-rag-ten-capable"  # a table of the first of the papers, by the larger model
CASES = "cases.tar.xz"  # one text for the compressor: the cases of a run share their passages
_STRANGE = re.compile(r"[^a-z0-9]+")


class Listed(Value, frozen=True):
    """A run at a glance: folder name, config, units with a row and failed ones; `shipped` with the workbench or not."""

    name: str
    config: Config
    done: int
    failed: int
    total: int
    shipped: bool = False

    @property
    def finished(self) -> bool:
        """Whether every unit has a row."""
        return self.done >= self.total


def evaluations() -> Path:
    """The folder of all runs that the page starts."""
    return home() / "evaluations"


def folder_of(name: str) -> Path:
    """The folder of a run; raise `InputError` for a name that leads elsewhere."""
    if name != Path(name).name or not name.strip("."):
        raise InputError(f"{name!r} is not the name of a run. Choose one from the list.")
    own, shipped = evaluations() / name, SHIPPED / name
    return shipped if shipped.is_dir() and not own.exists() else own


def new_name(config: Config, at: datetime) -> str:
    """A name for a run that begins now: study, data set, and the minute; numbered where that is taken.

    >>> new_name(Config(study="are", data="sets/My data.jsonl"), datetime(2026, 1, 2, 3, 4, 5))
    'are-my-data-20260102-030405'
    """
    data = _STRANGE.sub("-", Path(config.data).stem.casefold()).strip("-")[:40]
    bare = f"{config.study}-{data}-{at:%Y%m%d-%H%M%S}"
    taken = (f"{bare}-{number}" if number else bare for number in range(1_000))
    return next(name for name in taken if not (evaluations() / name).exists())


def folders() -> list[Path]:
    """The folder of every run, the one begun last first, then what was shipped: `FIRST`, those with cases, others."""
    own = [path.parent for path in sorted(evaluations().glob("*/run.json"), key=lambda path: -path.stat().st_mtime)]
    taken = {folder.name for folder in own}
    known = sorted(path.parent for path in SHIPPED.glob("*/run.json") if path.parent.name not in taken)
    return [*own, *sorted(known, key=lambda folder: (folder.name != FIRST, not (folder / CASES).exists()))]


def readable() -> Iterator[tuple[Path, RunManifest, Config, list[Row]]]:
    """Every run that this version can read, as `stored`, in the order of `folders`."""
    for folder in folders():
        with contextlib.suppress(InputError):  # a run of another version stays on the disk; it cannot be shown
            yield folder, *stored(folder)


def runs() -> list[Listed]:
    """The runs of `readable` at a glance."""
    return [
        Listed(
            name=folder.name,
            config=config,
            done=len(rows),
            failed=sum(row.state == "failed" for row in rows),
            total=len(manifest.units),
            shipped=folder.parent == SHIPPED,
        )
        for folder, manifest, config, rows in readable()
    ]


def ahead(planned: Plan, cost: Estimate) -> str:
    """How long a plan will take with one worker, as a sentence; empty where no earlier run tells of each method.

    That is a run of the same study by the same models on the same kind of device. A method's units take their mean
    there, as many of them at a time; one of the same data comes before one of this machine. With other data or
    settings a unit takes as many times longer as `cost`, the most that the plan takes, has more tokens per unit.
    """
    wanted, writes = planned.config, planned.writes(planned.units)
    counts = Counter(unit.method for unit in planned.units)
    nearest: dict[str, tuple[tuple[bool, bool], float, str]] = {}  # by method: how like it is, seconds, run in words
    for folder, manifest, config, rows in readable():
        if not _comparable(manifest, config, wanted):
            continue
        alike = all(getattr(config, n) == getattr(wanted, n) for n in ("data", "load", "settings", "options", "paper"))
        shipped = folder.parent == SHIPPED
        differs = ["another machine"] * shipped + ["other data or settings"] * (not alike)
        run = f"{folder.name} ({', '.join(differs)})" if differs else folder.name
        for method, own in by_method(rows, counts).items():
            seconds = counts[method] * sum(row.cost.seconds for row in own) / len(own) / at_once(config, writes)
            seconds *= 1 if alike else _longer(cost.tokens, planned.units, manifest)
            if method not in nearest or (alike, not shipped) > nearest[method][0]:
                nearest[method] = (alike, not shipped), seconds, run
    paces = [nearest[method] for method in counts if method in nearest]
    if not paces or len(paces) < len(counts):
        return ""
    runs = dict.fromkeys(run for *_, run in paces)
    said = about(sum(seconds for _, seconds, _ in paces))
    return f"About {said} with one worker, at the pace of {' and '.join(runs)}."


def _longer(tokens: int, units: Sequence[Unit], manifest: RunManifest) -> float:
    """How many times the tokens per unit of a run these units have; 1 where one of the two has none."""
    there = manifest.cost.tokens / len(manifest.units)
    return tokens / len(units) / there if tokens and there else 1.0


def _comparable(manifest: RunManifest, config: Config, wanted: Config) -> bool:
    """Whether a run is of the same study by the same models on the same kind of device."""
    builds = {versions.get("torch", "").partition("+")[2] for versions in (manifest.versions, package_versions())}
    same = all(getattr(config, name) == getattr(wanted, name) for name in ("study", "model", "verifier", "judge"))
    return same and len(builds) == 1


def state_of(folder: Path) -> tuple[int, int]:
    """Size and time of what is written so far: as long as they stay, so do the results."""
    journal = Journal(folder)
    try:
        found = (journal.packed if journal.packed.exists() else journal.path).stat()
    except FileNotFoundError:
        return 0, 0
    return found.st_size, found.st_mtime_ns


def take_in(cases: CaseStore, folder: Path, name: str) -> str:
    """Put a unit's case into the library under its name and the run's, also out of the bin; return its id there."""
    case_id = f"{name}-{folder.name}"
    with contextlib.suppress(CaseNotFound):
        return cases.load(case_id).id
    if cases.has(case_id):
        return cases.restore(case_id).id
    try:
        file = f"{Path(name).name}.json"
        if (folder / CASES).exists():
            with tarfile.open(folder / CASES) as archive:
                data = archive.extractfile(file).read()  # type: ignore[union-attr]  # every member is a file
        else:
            data = (folder / "cases" / file).read_bytes()
        found = read_case_file(data)
    except (OSError, KeyError) as error:
        raise InputError(f"The case {name} is not in {folder}. Run the unit again.") from error
    cases.put(replace(found.case, id=case_id), found.history)
    return case_id
