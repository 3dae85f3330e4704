"""One unit, wherever it runs: from a task to the row and the case file that the run will write."""

from __future__ import annotations

from msgspec.structs import replace

from engine.cases.case_file import write_case_file
from engine.core.errors import BudgetSpent, Cancelled, GroundworkError, ServerError
from engine.core.progress import Watch
from engine.core.values import Value
from engine.models.budget import Spent
from engine.models.memory import is_out_of_memory
from engine.studies.catalogue import study_of
from engine.studies.config import Config, Limit
from engine.studies.example import Example
from engine.studies.tools import StudyTools
from engine.studies.values import OUT_OF_MEMORY, Failure, Found, Row, Unit

STOPS = (Cancelled, ServerError, BudgetSpent)  # the unit is not at fault: it is run again when the run goes on


class UnitTask(Value, frozen=True):
    """A unit with its example; `allowance` is what it may take of served models."""

    unit: Unit
    example: Example
    allowance: Limit = Limit()


class Done(Value, frozen=True, tag="done"):
    """A unit that ended, well or badly, with the bytes of its case file (empty: it has none)."""

    unit: Unit
    row: Row
    case: str = ""


class Stopped(Value, frozen=True, tag="stopped"):
    """A unit that did not end for a reason that is not its own; `kind` is the error's type."""

    unit: Unit
    kind: str
    message: str


class Lost(Value, frozen=True, tag="lost"):
    """A unit whose worker went away."""

    unit: Unit


Outcome = Done | Stopped | Lost


class Performer:
    """Runs the units of one config in this process, with the models loaded once."""

    def __init__(self, config: Config, tools: StudyTools | None = None) -> None:
        self.study = study_of(config.study)
        self.tools = tools or StudyTools(config)

    def within_allowance(self, task: UnitTask) -> Done | Stopped:
        """Run a unit that has a budget of its own."""
        self.tools.allow(task.allowance)
        return self.perform(task)

    def perform(self, task: UnitTask, watch: Watch | None = None) -> Done | Stopped:
        """Run a unit. An error of the unit's own is its row; one that is not stops it."""
        unit, watch, before = task.unit, watch or Watch(), self.tools.budget.mine
        try:
            found: Found | Failure = self.study.run(self.tools, unit, task.example, watch)
        except STOPS as error:
            return Stopped(unit=unit, kind=type(error).__name__, message=str(error))
        except Exception as error:  # one example must not end a run of hours: it is shown and counted as failed
            known = isinstance(error, GroundworkError)
            kind = OUT_OF_MEMORY if is_out_of_memory(error) else type(error).__name__
            found = Failure(type=kind, message=str(error) if known else f"Unexpected: {error}")
        served = self.tools.budget.mine - before
        if isinstance(found, Failure):
            return Done(unit=unit, row=Row(unit=unit, state="failed", failure=found, served=served))
        return self._done(unit, found, served)

    def _done(self, unit: Unit, found: Found, served: Spent) -> Done:
        name = f"{self.study.name}-{unit.key}"
        case = replace(found.case, id=name, tags=(*found.case.tags, self.study.name)) if found.case else None
        kept = {field: getattr(found, field) for field in ("values", "missing", "cost", "unparsed")}
        row = Row(unit=unit, state="done", case=name if case else "", served=served, **kept)
        return Done(unit=unit, row=row, case=write_case_file(case).decode() if case else "")
