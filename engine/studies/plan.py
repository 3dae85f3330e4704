"""From a config to the units of a run: examples loaded, those that lack what the study needs left out and named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from engine.core.errors import InputError, raised_as
from engine.core.progress import Watch
from engine.core.values import T, converted, sha256
from engine.corpus.collection import Collection, list_corpora
from engine.corpus.samples import SAMPLES
from engine.studies.catalogue import study_of
from engine.studies.config import Config, Load
from engine.studies.datasets import load
from engine.studies.example import Example, lacks
from engine.studies.tools import Study, StudyTools
from engine.studies.values import Estimate, Unit

GOLDEN = (5**0.5 - 1) / 2
SAMPLED = 3  # examples whose cost is worked out; the others are taken to cost their mean


@dataclass(frozen=True)
class Plan:
    """The plan of a run. `left_out` counts examples by what they lack, `off` lists parts that are off and for how many.

    `data` is a hash of the examples: a run is resumed on the same ones only.
    """

    config: Config
    study: Study
    examples: dict[str, Example]
    units: tuple[Unit, ...]
    left_out: dict[str, int]
    off: tuple[str, ...]
    data: str

    def writes(self, units: Iterable[Unit]) -> bool:
        """Whether any of the units asks the writer for text."""
        return any(self.study.writes(self.config, unit, self.examples[unit.example]) for unit in units)

    def searched(self, units: Sequence[Unit]) -> list[str]:
        """The corpora that the units open, by name."""
        own = {unit.method for unit in units}
        methods = {name for name in own if self.study.searches(self.config, name)}
        found = {self.examples[unit.example].corpus for unit in units if unit.method in methods}
        return sorted(found - {""})


def plan(config: Config) -> Plan:
    """Load the data and lay out the units; raise `InputError` where nothing is left to run."""
    study = study_of(config.study)
    strange = sorted(set(config.methods) - set(study.methods))
    if strange:
        raise InputError(
            f"{', '.join(strange)} is not a method of {study.name}. Its methods are: {', '.join(study.methods)}."
        )
    if unknown := sorted(config.options.keys() - {*study.options}):
        known = ", ".join(study.options) or "none"
        raise InputError(f"[options] {', '.join(unknown)} is not an option of {study.name}. Its options are: {known}.")
    study.check(config)
    usable: list[Example] = []
    left_out: Counter[str] = Counter()
    with raised_as(InputError, "[load] cannot be used", "Correct it, or leave it out.", msgspec.ValidationError):
        converted(config.load, Load)
    for example in load(config.data, **config.load):
        if any(getattr(example, name, example.about.get(name)) != value for name, value in config.where.items()):
            continue
        missing = lacks(example, study.needs)
        left_out.update(missing)
        if not missing:
            usable.append(example)
    chosen = evenly(usable, config.n)
    if not chosen and config.where and not left_out:
        asked = ", ".join(f"{field} = {value}" for field, value in config.where.items())
        raise InputError(f"No example of {config.data} has {asked}. Correct [where], or leave it out.")
    if not chosen:
        wanted = ", ".join(left_out or study.needs)
        raise InputError(f"{study.name} cannot use any example of {config.data}: they lack {wanted}.")
    methods = [name for name in study.methods if not config.methods or name in config.methods]
    units = tuple(Unit(example=e.id, method=m, seed=s) for e in chosen for s in config.seeds for m in methods)
    by_id = {example.id: example for example in chosen}
    data = sha256("\n".join(sha256(repr(example.to_dict())) for example in chosen))
    return Plan(config, study, by_id, units, dict(left_out), switched_off(study, chosen), data)


def evenly(examples: Sequence[T], count: int) -> list[T]:
    """`count` examples at even distances, so that every part of the file is in; all of them for 0.

    >>> evenly([1, 2, 3, 4, 5, 6], 3), evenly([1, 2], 0)
    ([1, 3, 5], [1, 2])
    """
    count = min(count or len(examples), len(examples))
    return [examples[i * len(examples) // count] for i in range(count)]


def sampling(units: Sequence[Unit]) -> list[Unit]:
    """The units in the order in which they are run: wherever it is broken off, what has run is a sample of all.

    A question's methods together, the first seed before the others, questions spread over the data: by multiples of
    the golden ratio, any beginning of which lies evenly in [0, 1).

    >>> [unit.example for unit in sampling([Unit(example=name, method="m", seed=1) for name in "abcdef"])]
    ['a', 'f', 'c', 'e', 'b', 'd']
    """
    places = {name: number for number, name in enumerate(dict.fromkeys(unit.example for unit in units))}
    seeds = {seed: number for number, seed in enumerate(dict.fromkeys(unit.seed for unit in units))}
    return sorted(units, key=lambda unit: (seeds[unit.seed], places[unit.example] * GOLDEN % 1))


def switched_off(study: Study, examples: Sequence[Example]) -> tuple[str, ...]:
    """Parts that are off because a field is missing, and for how many examples."""
    without = Counter(need for example in examples for need in lacks(example, study.uses))
    off = ((what, without[need], need) for need, what in study.uses.items() if without[need])
    return tuple(f"{what}: off for the {n} of {len(examples)} examples without {need}." for what, n, need in off)


def prepare(planned: Plan, watch: Watch) -> None:
    """Make the sample corpora that a study searches, where they are absent; others must be there already."""
    wanted = set(planned.searched(planned.units))
    if not wanted:
        return
    there = {corpus.name for corpus in list_corpora() if corpus.documents}
    for sample in SAMPLES:
        if sample.name in wanted - there:
            Collection.create(sample.name).ingest(sample.documents, watch)


def check_corpora(planned: Plan, tools: StudyTools, units: Sequence[Unit]) -> None:
    """Open the corpora of the units: `CorpusNotFound`, `CorpusMismatch` now, and not from each unit."""
    for name in planned.searched(units):
        tools.collection(name)


def load_models(planned: Plan, tools: StudyTools, units: Sequence[Unit]) -> None:
    """Load the models that the units take, so that a wrong name is raised once and not by each of them."""
    if units:
        for role in planned.study.models:
            getattr(tools, role)
    if planned.writes(units) and not planned.config.reads:
        tools.writer  # noqa: B018  # loaded when it is looked at


def estimate(planned: Plan, tools: StudyTools, units: Sequence[Unit]) -> Estimate:
    """The most that `units` will take, from the first few examples of each method; corpora must be prepared."""
    total = Estimate()
    for method in dict.fromkeys(unit.method for unit in units):
        own = [unit for unit in units if unit.method == method]
        sample = evenly(own, SAMPLED)
        costs = [planned.study.cost(tools, unit, planned.examples[unit.example]) for unit in sample]
        total += scaled(sum(costs, Estimate()), len(own) / len(sample))
    return total


def scaled(cost: Estimate, times: float) -> Estimate:
    """The cost of so many times as much, rounded up."""
    return Estimate(**{name: -int(-getattr(cost, name) * times // 1) for name in cost.__struct_fields__})
