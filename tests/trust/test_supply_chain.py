"""Groundwork's parts are pinned and licensed; weights are safetensors only, and no model brings code."""

from __future__ import annotations

import ast
import json
import os
import pickle
import re
import subprocess
from pathlib import Path

import pytest

from bench import licences
from engine.core.errors import ModelError
from engine.core.files import sha256_of
from engine.models.catalogue import catalogue
from engine.models.embedder import load_embedder
from engine.models.registry import load_writer
from engine.models.reranker import load_reranker
from engine.models.verifier import load_nli
from tests.tiny import tiny_model

ROOT = licences.ROOT
# Permissive, or weak copyleft that a program which only calls the library does not inherit.
ACCEPTED = re.compile(
    r"MIT(-0|-CMU)?|Apache-2\.0|0?BSD(-[23]-Clause)?|ISC|PSF-2\.0|MPL-(1\.1|2\.0)|Zlib|HPND|Unlicense|CC0-1\.0|BSL-1\.0"
    r"|CNRI-Python|LGPL(-2\.1-or-later)?|LLVM-exception"
)
ACCELERATOR = re.compile(r"nvidia-|cuda-|triton$")  # a torch for GPUs brings its own
NEVER_CALLED = {"eval", "exec", "compile", "__import__"}
PICKLES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}


def test_everything_installed_is_pinned_at_its_version():
    pinned = licences.pins()
    here = {n: d for n, d in licences.installed().items() if n not in ("pip", "setuptools")}
    found = {n: d.version.partition("+")[0] for n, d in here.items() if not ACCELERATOR.match(n)}
    assert {n: v for n, v in found.items() if pinned.get(n, "").partition("+")[0] != v} == {}


def test_every_requirement_has_a_pin():
    pinned = licences.pins()
    for file in ("requirements.txt", "requirements-dev.txt"):
        for line in (ROOT / file).read_text(encoding="utf-8").splitlines():
            name = re.match(r"[\w.-]+", line)
            if name and not line.startswith(("-", "#")):
                assert licences.canonical(name[0]) in pinned, line


def test_the_table_of_licences_is_up_to_date():
    """A platform may lack some distributions. Installed ones are in the table, and those in the table are pinned."""
    written = (ROOT / "docs" / "licences.md").read_text(encoding="utf-8")
    again = "; run: python -m bench.licences"
    assert [row for row in licences.rows() if f"| {' | '.join(row)} |" not in written] == [], again
    pinned = licences.pins()
    stated = re.findall(r"^\| ([\w.-]+) \| ([\w.+]+) \| .+ \|$", written, re.MULTILINE)
    assert len(stated) > 100
    assert [(name, version) for name, version in stated if name != "distribution" and pinned.get(name) != version] == []


def test_the_bill_of_materials_is_up_to_date_and_names_the_models():
    written = json.loads(licences.MATERIALS.read_text(encoding="utf-8"))
    here = licences.materials()
    assert written["metadata"] == here["metadata"]
    again = "; run: python -m bench.licences"
    assert [part for part in here["components"] if part not in written["components"]] == [], again
    models = {p["name"]: p["hashes"][0]["content"] for p in written["components"] if p["type"].endswith("-model")}
    own = {path: sha256_of(path) for path in (ROOT / "assets" / "models").rglob("*.safetensors")}
    assert len(own) >= 4
    shipped = {f"groundwork-{path.parent.name}: {path.name}": digest for path, digest in own.items()}
    assert models == {entry.name: entry.sha256 for entry in catalogue()} | shipped
    page = licences.TABLE.read_text(encoding="utf-8")
    assert all(f"- {e.name}, by {e.publisher}: {e.licence}\n" in page for e in catalogue())
    assert all(f"(../assets/models/{path.parent.name}/README.md), on " in page for path in own)


def test_every_licence_is_one_that_can_be_lived_with():
    for name, _, terms in licences.rows():
        choices = terms.replace("(", "").replace(")", "").split(" OR ")
        fine = [c for c in choices if all(ACCEPTED.fullmatch(part) for part in re.split(" AND | WITH ", c))]
        assert fine, f"{name}: {terms}"


def sources() -> list[Path]:
    return [ROOT / "app.py", *(p for d in ("engine", "components", "pages", "bench") for p in (ROOT / d).rglob("*.py"))]


def test_no_source_runs_code_that_it_was_given():
    found = []
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            found += [f"{path.relative_to(ROOT)}:{node.lineno}: {what}" for what in risks(node)]
    assert found == []


def risks(node: ast.AST) -> list[str]:
    """The part of a syntax tree node that could run code from outside."""
    if isinstance(node, ast.Import):
        return [f"import {a.name}" for a in node.names if a.name.partition(".")[0] in PICKLES]
    if isinstance(node, ast.ImportFrom):
        return [f"from {node.module}"] if (node.module or "").partition(".")[0] in PICKLES else []
    if not isinstance(node, ast.Call):
        return []
    name, words = ast.unparse(node.func), {k.arg: ast.unparse(k.value) for k in node.keywords}
    said = [f"{name}({k}={v})" for k, v in words.items() if (k, v) in RISKY]
    if name in NEVER_CALLED or name in ("os.system", "os.popen", "yaml.load"):
        said.append(name)
    if name == "torch.load" and words.get("weights_only") != "True":
        said.append(name)
    if name in ("np.load", "numpy.load") and words.get("allow_pickle") != "False":
        said.append(f"{name} without allow_pickle=False")
    return said


RISKY = {("trust_remote_code", "True"), ("allow_pickle", "True"), ("shell", "True"), ("use_safetensors", "False")}


def test_the_search_for_such_code_finds_it():
    for line in ("import pickle", "eval('1')", "torch.load(p)", "np.load(p)", "f(trust_remote_code=True)",
                 "from joblib import load", "run('x', shell=True)", "os.system('x')"):  # fmt: skip
        assert [r for node in ast.walk(ast.parse(line)) for r in risks(node)], line


def test_the_weights_that_ship_are_safetensors():
    listed = subprocess.run(["git", "ls-files", "assets"], cwd=ROOT, capture_output=True, text=True, check=True)
    endings = {Path(name).suffix for name in listed.stdout.splitlines()}
    assert ".safetensors" in endings
    assert not endings & {".bin", ".pt", ".pth", ".pkl", ".ckpt", ".h5", ".onnx", ".npy", ".npz", ".msgpack", ".so"}


class Attack:
    """Writes a file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self):
        return os.mkdir, (str(self.marker),)


@pytest.fixture
def attacker(tmp_path):
    """A model folder whose pickled weights and own code leave a marker when they are run, and the marker."""
    folder, marker = tmp_path / "model", tmp_path / "ran"
    model = tiny_model("llama")
    model.tokenizer.save_pretrained(folder)
    code = f"import os\nos.mkdir({str(marker)!r})\n"
    config = {**model.module.config.to_dict(), "architectures": ["LlamaForCausalLM"]}
    (folder / "config.json").write_text(json.dumps(config))
    for name in ("pytorch_model.bin", "model.bin"):
        (folder / name).write_bytes(pickle.dumps(Attack(marker)))
    for name in ("modeling_own.py", "configuration_own.py", "tokenization_own.py"):
        (folder / name).write_text(code)
    return folder, marker


LOADERS = {"writer": load_writer, "embedder": load_embedder, "re-ranker": load_reranker, "verifier": load_nli}


@pytest.mark.parametrize("kind", LOADERS)
def test_pickled_weights_are_never_opened(attacker, kind):
    folder, marker = attacker
    with pytest.raises(ModelError):
        LOADERS[kind](str(folder))
    assert not marker.exists()


@pytest.mark.parametrize("kind", LOADERS)
def test_code_that_comes_with_a_model_is_never_run(attacker, kind):
    folder, marker = attacker
    own = {"AutoConfig": "configuration_own.C", "AutoModel": "modeling_own.M", "AutoModelForCausalLM": "modeling_own.M"}
    config = json.loads((folder / "config.json").read_text())
    changed = {
        **config,
        "model_type": "own",
        "auto_map": {**own, "AutoModelForSequenceClassification": "modeling_own.M"},
    }
    (folder / "config.json").write_text(json.dumps(changed))
    (folder / "modules.json").write_text(json.dumps([{"idx": 0, "name": "0", "path": "", "type": "modeling_own.M"}]))
    with pytest.raises(ModelError):
        LOADERS[kind](str(folder))
    assert not marker.exists()
