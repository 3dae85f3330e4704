"""The config of an evaluation: a TOML file, stored with the results.

study = "refinement"
data = "bank-investigation"      # a sample world, or the path of a data set
n = 6                            # examples; 0: all of them
seeds = [1337, 2024, 42]
model = "embedded"
paper = "refinement"             # first everything that this paper gives, as --set paper=refinement

[load]                           # passed on to the data set's loader
[settings.refinement]            # as --set refinement.temperature=0.7
temperature = 0.7
[options]                        # the study's own
[budget]                         # of a served model
calls = 2000
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import tomli_w

from engine.core.errors import InputError
from engine.core.files import EMBEDDED
from engine.core.settings import Settings
from engine.core.values import Json, T, Value, converted
from engine.models.registry import source_of
from engine.models.server import SERVED, Spent

CONFIGS = Path(__file__).with_name("configs")
NO_RESULT_HANGS_ON = ("budget", "concurrency", "batch", "title")  # fields of a config


class Limit(Value, frozen=True):
    """The budget of a served model over the whole run, including earlier parts; None: no limit.

    A unit that was cut off leaves no row, so that what it had taken is not known to the next part. Workers of their
    own share what is left; units in flight can take it over the limit by one call each.
    """

    calls: Annotated[int, msgspec.Meta(ge=0)] | None = None
    tokens: Annotated[int, msgspec.Meta(ge=0)] | None = None

    def less(self, spent: Spent) -> Limit:
        """The rest of the budget after so much, never below 0."""
        return self._each(lambda name, limit: max(0, limit - getattr(spent, name)))

    def share(self, parts: int) -> Limit:
        """One of equal parts, rounded up."""
        return self._each(lambda name, limit: -(-limit // parts))

    def _each(self, change: Callable[[str, int], int]) -> Limit:
        return Limit(**{name: change(name, limit) for name, limit in self.to_dict().items() if limit is not None})


class Load(Value, frozen=True):
    """[load]: what `datasets.load` takes. A config keeps the table as it was given: its hash names the run."""

    layout: str | None = None
    limit: Annotated[int, msgspec.Meta(ge=0)] | None = None
    seed: int = 1337
    corpus: str = ""
    per_stratum: Annotated[int, msgspec.Meta(ge=0)] = 0
    passages: Annotated[int, msgspec.Meta(ge=0)] = 0


class Config(Value, frozen=True):
    """One evaluation. Empty `methods`: all of the study's. Empty `judge`: nothing that needs one is run.

    `title` is what a preset asks and how long it takes.

    `concurrency` requests at a time go to a served model; `batch` answers are written at once by a local one in this
    process (1: one by one). Neither changes a result: in half precision, where rounding would, answers are written one
    by one unless `exact` is false. `dtype` is of local models: auto, float32, bfloat16, float16.
    """

    study: str
    data: str
    title: str = ""
    n: Annotated[int, msgspec.Meta(ge=0)] = 0
    methods: tuple[str, ...] = ()
    seeds: tuple[Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)], ...] = (1337,)
    model: str = EMBEDDED
    verifier: str = EMBEDDED
    judge: str = ""
    concurrency: Annotated[int, msgspec.Meta(ge=1)] = 4
    batch: Annotated[int, msgspec.Meta(ge=0)] = 8
    dtype: str = "auto"
    exact: bool = True
    load: Json = {}
    where: dict[str, str | int | float | bool] = {}
    settings: dict[str, Json] = {}
    options: Json = {}
    paper: str = ""
    budget: Limit = Limit()

    @property
    def reads(self) -> bool:
        """Whether the quoting reader answers instead of a language model."""
        return self.model in ("auto", "reader")

    @property
    def served(self) -> bool:
        """Whether a server answers, also where the model goes by the user's own name."""
        return source_of(self.model.strip()).startswith(SERVED)

    def option(self, name: str, kind: type[T], default: T) -> T:
        """An option of the study; raise `InputError` for one of another type."""
        try:
            return converted(self.options[name], kind) if name in self.options else default
        except msgspec.ValidationError as error:
            raise InputError(f"options.{name} is {self.options[name]!r}: {error}.") from error

    def stages(self, seed: int) -> Settings:
        """The engine's settings with this config's changes and a unit's seed; raise `InputError` for a strange one."""
        start = Settings().apply([f"paper={self.paper}"] if self.paper else [])
        data, values = start.to_dict(), Json()
        for stage, fields in self.settings.items():
            strange = sorted(set(fields) - set(data.get(stage, {})))
            if strange or stage not in data:
                known = ", ".join(data.get(stage, data))
                raise InputError(f"[settings.{stage}] {', '.join(strange)} is not a setting. Available: {known}.")
            values |= {f"{stage}.{field}": value for field, value in fields.items()}
        for place in ("decoding.seed", "occlusion.seed", "faithfulness.seed"):
            if place in values:
                raise InputError(f"{place} has no effect on a study. Write seeds = [...] in the config instead.")
            values[place] = seed
        values.setdefault("refinement.seeds", self.seeds)  # of A's runs: no other condition draws from one of them
        return start.with_values(values)


def with_assignments(config: Config, assignments: Sequence[str]) -> Config:
    """The config with `--set` over its settings, a paper in place of its paper; raise `InputError` with the reason."""
    papers = [value.strip() for path, _, value in (a.partition("=") for a in assignments) if path.strip() == "paper"]
    own = [a for a in assignments if a.partition("=")[0].strip() != "paper"]
    settings, data = {stage: dict(fields) for stage, fields in config.settings.items()}, Settings().apply(own).to_dict()
    for assignment in own:
        stage, _, field = assignment.partition("=")[0].strip().partition(".")
        value = data[stage][field]
        settings.setdefault(stage, {})[field] = list(value) if isinstance(value, tuple) else value
    changed = msgspec.structs.replace(config, settings=settings, paper=papers[-1] if papers else config.paper)
    changed.stages(changed.seeds[0])
    return changed


def read_config(path: Path) -> Config:
    """The config of a TOML file, or of a preset that is named; raise `InputError` saying what does not fit."""
    return parse_config(config_text(path), path.name)


def config_text(path: Path) -> str:
    """The text of a TOML file, or of a preset that is named; raise `InputError` where it cannot be read."""
    preset = CONFIGS / f"{path.name.removesuffix('.toml')}.toml"
    named = path.parent == Path() and preset.exists() and not path.exists()
    try:
        return (preset if named else path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InputError(f"The config {path} cannot be read ({reason}). Give a TOML file.") from error


_LONGEST = 50_000  # characters; the standard library's parser takes time with the square of a dotted key's length


def parse_config(text: str, name: str = "the config") -> Config:
    """The config written in `text`; `InputError` for one that is none, or longer than any config is."""
    if len(text) > _LONGEST:
        raise InputError(f"{name} has {len(text):,} characters; a config has at most {_LONGEST:,}.")
    try:
        config = converted(tomllib.loads(text), Config)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise InputError(f"{name} is not a valid config: {error}.") from error
    if not config.seeds:
        raise InputError(f"{name} has no seeds. Write for example seeds = [1337].")
    if len(set(config.seeds)) < len(config.seeds):
        raise InputError(f"{name} has a seed twice, so its rows would count twice. Write each seed once.")
    config.stages(config.seeds[0])
    return config


def presets() -> tuple[str, ...]:
    """The names of the presets that come with the engine."""
    return tuple(sorted(path.stem for path in CONFIGS.glob("*.toml")))


def departures(config: Config, paper: Config) -> tuple[str, ...]:
    """Where a run departs from the paper's, one line a field, so that no table is taken for the paper's own.

    >>> departures(Config(study="s", data="x", n=6), Config(study="s", data="x", n=300))
    ('n: 6, not 300',)
    """
    ours, theirs = flat(_in_effect(config)), flat(_in_effect(paper))
    return tuple(
        f"{name}: {_said(ours.get(name))}, not {_said(theirs.get(name))}"
        for name in {**ours, **theirs}
        if ours.get(name) != theirs.get(name) and name.partition(".")[0] not in NO_RESULT_HANGS_ON
    )


def _in_effect(config: Config) -> Json:
    """The config's fields, with every setting as it is used in place of the paper and its changes."""
    stages = config.stages(Settings().decoding.seed).to_dict()
    stages["refinement"].pop("seeds")  # the config's own field
    return {**config.to_dict(), "paper": "", "settings": stages}


def flat(data: Json, prefix: str = "") -> Json:
    """Nested tables as dotted names."""
    found: Json = {}
    for name, value in data.items():
        found.update(flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value})
    return found


def _said(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value)) or "all"
    return "the engine's default" if value is None else "none" if value == "" else str(value)


def as_toml(config: Config) -> str:
    """The TOML that the config would be read from: `parse_config` of it gives the config again.

    >>> print(as_toml(Config(study="are", data="d", n=3, load={"limit": 5})))
    study = "are"
    data = "d"
    n = 3
    <BLANKLINE>
    [load]
    limit = 5
    """
    bare = Config(study="", data="").to_dict()
    given = {name: value for name, value in config.to_dict().items() if value != bare.get(name)}
    return tomli_w.dumps(_known({**given, "data": config.data})).strip()


def _known(table: Mapping[str, Any]) -> Json:
    """The table without None, which TOML cannot say."""
    return {
        name: _known(value) if isinstance(value, Mapping) else value
        for name, value in table.items()
        if value is not None
    }
