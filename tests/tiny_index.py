"""A folder of made-up wheels that pip takes for a package index, and a catalogue of the tiny models in them."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from pathlib import Path

from tests.tiny_gguf import write_gguf

ENVIRONMENT = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CONFIG_FILE")


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def wheel(index: Path, name: str, members: dict[str, bytes]) -> Path:
    """A wheel of version 1.0 with those members, and nothing to run but a module that must not be."""
    module = name.replace("-", "_")
    info = f"{module}-1.0.dist-info"
    path = index / f"{module}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{module}/__init__.py", "raise SystemExit('the package was imported')")
        for member, data in members.items():
            archive.writestr(member, data)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


def parts(index: Path, name: str, data: bytes, count: int = 2) -> list[dict[str, object]]:
    """`data` cut into wheels; their rows in the catalogue."""
    size, rows = -(-len(data) // count), []
    for number in range(count):
        part, package = data[number * size : (number + 1) * size], f"{name}-part{number + 1}"
        member = f"{package.replace('-', '_')}/data/part.bin"
        file = wheel(index, package, {member: part})
        rows.append(
            {
                "name": package,
                "version": "1.0",
                "bytes": file.stat().st_size,
                "sha256": digest(file.read_bytes()),
                "member": member,
                "member_bytes": len(part),
            }
        )
    return rows


def fields(kind: str, form: str, file: str, data: bytes) -> dict[str, object]:
    return {
        "kind": kind,
        "publisher": "Nobody",
        "licence": "Apache-2.0",
        "good_for": "Tests.",
        "form": form,
        "file": file,
        "bytes": len(data),
        "sha256": digest(data),
        "disk": 300_000,
        "memory": 1_000_000,
    }


def tiny_entry(index: Path) -> dict[str, object]:
    """A tiny language model, its GGUF file cut into two wheels."""
    data = write_gguf(index.parent / "tiny.gguf").read_bytes()
    return fields("language model", "gguf", "tiny.gguf", data) | {"wheels": parts(index, "tiny", data)}


def tiny_embedder_entry(index: Path, folder: Path) -> dict[str, object]:
    """The model in `folder` as one zip in three wheels, with a stray member that leads out of its folder."""
    out, rows = io.BytesIO(), []
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../stray.txt", "outside")
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            name, data = path.relative_to(folder).as_posix(), path.read_bytes()
            archive.writestr(f"model/{name}", data)
            rows.append({"path": name, "member": f"model/{name}", "bytes": len(data), "sha256": digest(data)})
    data = out.getvalue()
    return fields("embedder", "zip", "e.zip", data) | {"wheels": parts(index, "emb", data, 3), "files": rows}


def write_catalogue(path: Path, entries: dict[str, dict[str, object]]) -> Path:
    """A catalogue file; JSON's texts, numbers and lists are TOML's, its objects become inline tables."""
    lines = []
    for name, entry in entries.items():
        lines.append(f"[{json.dumps(name)}]")
        lines += [f"{key} = {_toml(value)}" for key, value in entry.items()]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def _toml(value: object) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + " }"
    return json.dumps(value)


def use_index(monkeypatch, index: Path) -> None:
    """pip finds packages in that folder and nowhere else."""
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
