"""`python -m tests.trust.container ROOT [--environment VENV]`: follow the Containerfile without a container engine.

The image's root is a folder; its Python is a virtual environment there, or one that is named. COPY and RUN do what they
say with the image's paths moved below ROOT; only making a user is left out, and said. Then the command is started, and
the health check asked until it answers. One JSON line says what was done.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
SECONDS = 600  # for the first start, which reads the sample documents
MAKES_USER = re.compile(r"^(useradd|install) ")


def instructions(text: str) -> list[tuple[str, str]]:
    """(instruction, the rest of it) of a container file; comments left out, continued lines joined.

    >>> instructions("# a\\nRUN one \\\\\\n && two\\nUSER 1")
    [('RUN', 'one   && two'), ('USER', '1')]
    """
    lines = text.replace("\\\n", " ").splitlines()
    parts = (line.split(maxsplit=1) for line in lines if line.strip() and not line.startswith("#"))
    return [(name, rest) for name, rest in parts]


class Image:
    """The state after the instructions so far: a folder as the root, environment variables, a working folder."""

    def __init__(self, root: Path, python: Path) -> None:
        self.root, self.python, self.folder = root, python, root
        self.variables = {"PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}", "HOME": str(root)}
        self.done: list[str] = []
        self.left_out: list[str] = []
        self.command: list[str] = []
        self.health: list[str] = []

    def moved(self, text: str) -> str:
        """The text with the image's own absolute paths below the root."""
        return re.sub(r"(?<![\w.:/])/(data|opt)\b", f"{self.root}/\\1", text)

    def follow(self, name: str, rest: str) -> None:
        """Do what an instruction says."""
        match name:
            case "ENV":
                self.variables |= {k: self.moved(v) for k, v in re.findall(r"(\w+)=(\S+)", rest)}
            case "WORKDIR":
                self.folder = Path(self.moved(rest))
                self.folder.mkdir(parents=True, exist_ok=True)
            case "COPY":
                self.copy(rest.split())
            case "RUN":
                for step in rest.split("&&"):
                    self.run(step.strip())
            case "VOLUME":
                for path in json.loads(rest):
                    Path(self.moved(path)).mkdir(parents=True, exist_ok=True)
            case "CMD":
                self.command = json.loads(rest)
            case "HEALTHCHECK":
                self.health = json.loads(rest[rest.index("[") :])
            case "FROM" | "USER" | "EXPOSE":
                self.left_out.append(f"{name} {rest}")
            case _:
                raise SystemExit(f"{name} is not followed here.")
        self.done.append(name)

    def copy(self, words: list[str]) -> None:
        *sources, target = words
        for source in sources:
            place = self.folder / target
            if (PROJECT / source).is_dir():
                shutil.copytree(PROJECT / source, place, dirs_exist_ok=True)
            else:
                shutil.copy2(PROJECT / source, place / Path(source).name)

    def run(self, step: str) -> None:
        if MAKES_USER.match(step):
            self.left_out.append(f"RUN {step}")
            return
        subprocess.run(self.moved(step), shell=True, check=True, cwd=self.folder, env=self.environment())

    def environment(self) -> dict[str, str]:
        pip = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "LANG"))}
        return pip | self.variables

    def healthy(self, port: int) -> float:
        """Seconds until the health check of the started command is good."""
        check = [word.replace("8501", str(port)) for word in self.health]
        environment = self.environment() | {"PORT": str(port), "STREAMLIT_SERVER_ADDRESS": "127.0.0.1"}
        started = time.monotonic()
        process = subprocess.Popen(self.command, cwd=self.root, env=environment, executable=self.which())
        try:
            while time.monotonic() - started < SECONDS:
                if subprocess.run(check, env=environment, capture_output=True).returncode == 0:
                    return time.monotonic() - started
                if process.poll() is not None:
                    raise SystemExit(f"{self.command} ended with {process.returncode}.")
            raise SystemExit(f"{self.command} was not healthy after {SECONDS} s.")
        finally:
            process.terminate()
            process.wait()

    def which(self) -> str:
        return str(shutil.which(self.command[0], path=self.variables["PATH"]))


def main() -> None:
    """Follow the file, start the command, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path)
    parser.add_argument("--environment", type=Path, help="a virtual environment to install into; default: a new one")
    parser.add_argument("--port", type=int, default=8599)
    asked = parser.parse_args()
    root = asked.root.resolve()
    root.mkdir(parents=True)
    environment = asked.environment or root / "usr"
    if asked.environment is None:
        subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    image = Image(root, environment.absolute() / "bin" / "python")
    for name, rest in instructions((PROJECT / "Containerfile").read_text(encoding="utf-8")):
        image.follow(name, rest)
    seconds = image.healthy(asked.port)
    print(json.dumps({"followed": image.done, "left_out": image.left_out, "healthy_after_s": round(seconds, 1)}))


if __name__ == "__main__":
    main()
