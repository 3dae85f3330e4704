"""`python -m tests.trust.fuzz --trials N`: real files of every kind, damaged at random, into the loaders.

Runs under an address-space limit of the memory that the imports take plus 1 GB and an alarm of 10 s a file; one JSON
line says what came of it. A failure is kept with the seed and trial that make it again.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import resource
import signal
import tarfile
import tempfile
import time
import zipfile
import zlib
from pathlib import Path
from typing import Any

from engine.core.errors import GroundworkError
from engine.corpus.sources import load_bytes
from tests.engine.corpus.test_loaders import pdf_bytes
from tests.engine.corpus.test_sources import read_files
from tests.trust.attacks import ALL, TEXTS

SECONDS, MEMORY = 10, 2**30


def seeds() -> dict[str, bytes]:
    """A whole file of each kind."""
    page = f"<html><head><title>A</title></head><body><h1>B</h1><p>{'Words of a page. ' * 40}</p>{ALL}</body></html>"
    rows = "id,title,text\n" + "".join(f'{i},"T {i}","Text of row {i}, quoted ""so""."\n' for i in range(30))
    lines = "".join(
        json.dumps({"_id": str(i), "title": "T", "text": f"Line {i}. Ice melts."}) + "\n" for i in range(30)
    )
    files = {
        "a.pdf": pdf_bytes("Ice melts at 0 degrees.", "Iron rusts in damp air.", "Third page."),
        "packed.pdf": _packed_pdf(),
        "a.docx": _docx(),
        "a.html": page.encode(),
        "a.md": ("# H\n\n- a\n- b\n\n| x | y |\n|---|---|\n| 1 | 2 |\n\n" + "\n\n".join(TEXTS.values())).encode(),
        "a.csv": rows.encode(),
        "a.tsv": rows.replace(",", "\t").encode("utf-16"),
        "a.jsonl": lines.encode(),
        "a.txt": ("Ice melts. " * 200).encode("cp1252"),
    }
    return {**files, "a.zip": _zip(files), "a.tar.gz": _tar(files, "w:gz"), "a.tar.xz": _tar(files, "w:xz")}


def _packed_pdf() -> bytes:
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(pdf_bytes("One page.", "Another page."))))
    writer.add_metadata({"/Title": "Packed"})
    for page in writer.pages:
        page.compress_content_streams()
    buffer = io.BytesIO()
    writer.write(buffer)
    return buffer.getvalue()


def _docx() -> bytes:
    from docx import Document

    document, buffer = Document(), io.BytesIO()
    document.add_heading("Salt", 1)
    document.add_paragraph("Salt lowers the freezing point.")
    document.add_paragraph("Weigh it.", style="List Number")
    table = document.add_table(2, 2)
    table.cell(0, 0).text = "NaCl"
    document.save(buffer)
    return buffer.getvalue()


def _zip(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def _tar(files: dict[str, bytes], mode: Any) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def damaged(data: bytes, rng: random.Random) -> bytes:
    """`data` with a few of: flipped bytes, cut, repeated, swapped and inserted pieces, changed numbers."""
    found = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        place = rng.randrange(max(1, len(found)))
        match rng.randrange(7):
            case 0:
                found[place : place + 1] = bytes([rng.randrange(256)])
            case 1:
                del found[place : place + rng.choice((1, 8, 100))]
            case 2:
                found = found[: max(1, place)]
            case 3:
                piece = found[place : place + rng.choice((4, 50, 500))]
                found[place:place] = piece * rng.choice((1, 2, 50))
            case 4:
                number = rng.choice((b"0", b"-1", b"9999999999", b"2147483648", b"4294967295"))
                found[place : place + len(number)] = number
            case 5:
                found[place:place] = rng.choice(
                    (b"\0", b"\xff\xfe", b"<<", b">>", b"stream\n", b"PK\x03\x04", b"{[", b"</")
                )
            case 6:
                other = rng.randrange(max(1, len(found)))
                found[place : place + 20], found[other : other + 20] = (
                    found[other : other + 20],
                    found[place : place + 20],
                )
    return bytes(found)


def inside(name: str, data: bytes, rng: random.Random) -> bytes:
    """Damage under the packing: a member of a zip file, or a packed stream of a PDF, is damaged and packed again."""
    if name.endswith((".zip", ".docx")):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {m: archive.read(m) for m in archive.namelist()}
        victim = rng.choice(sorted(members))
        return _zip({**members, victim: damaged(members[victim], rng)})
    start = data.find(b"stream\n")
    end = data.find(b"\nendstream", start)
    if name.endswith(".pdf") and 0 <= start < end:
        return data[: start + 7] + zlib.compress(damaged(b"BT (x) Tj ET " * 50, rng)) + data[end:]
    return damaged(data, rng)


def attempt(name: str, data: bytes, folder: Path) -> str:
    """ "read", "refused", or the failure."""
    signal.alarm(SECONDS)
    try:
        if name.endswith((".zip", ".gz", ".xz")):
            path = folder / name
            path.write_bytes(data)
            documents, skipped = read_files([path])
            assert documents or skipped
            return "read" if documents else "refused"
        assert all(document.text.strip() for document in load_bytes(data, name))
        return "read"
    except GroundworkError as error:
        return "refused" if len(str(error)) > 20 else f"says too little: {error}"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"[:300]
    finally:
        signal.alarm(0)


def _too_long(*_: object) -> None:
    raise TimeoutError(f"over {SECONDS} s")


def run(trials: int, seed: int) -> dict[str, Any]:
    """The outcomes of `trials` damaged files."""
    whole, rng = seeds(), random.Random(seed)
    outcome: dict[str, Any] = {"files": 0, "read": 0, "refused": 0, "failures": [], "slowest_s": 0.0}
    with tempfile.TemporaryDirectory() as folder:
        for name, data in whole.items():
            assert attempt(name, data, Path(folder)) == "read", name
        _limit()
        for trial in range(trials):
            name = rng.choice(sorted(whole))
            data = (damaged if rng.random() < 0.6 else lambda d, r, n=name: inside(n, d, r))(whole[name], rng)
            started = time.perf_counter()
            found = attempt(name, data, Path(folder))
            outcome["slowest_s"] = max(outcome["slowest_s"], round(time.perf_counter() - started, 2))
            outcome["files"] += 1
            if found in ("read", "refused"):
                outcome[found] += 1
            else:
                outcome["failures"].append({"trial": trial, "name": name, "what": found})
    outcome["peak_mb"] = peak_mb()
    return outcome


def peak_mb() -> int:
    """Most resident memory of this process since it started, in MB, the imports included.

    Not getrusage: there a started process also counts what its parent had taken.
    """
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) // 1024


def _limit() -> None:
    """1 GB more than the imports and whole files have taken, and an alarm a file."""
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + MEMORY, taken + MEMORY))
    signal.signal(signal.SIGALRM, _too_long)


def main() -> None:
    """Print the summary as one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1337)
    asked = parser.parse_args()
    print(json.dumps(run(asked.trials, asked.seed)))


if __name__ == "__main__":
    main()
