"""Make README's table of methods from the pages of docs/methods: method, paper, file, command.

`python -m bench.method_table` writes it. A test fails when it is out of date. The order is that of docs/README.md.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
START, END = "<!-- methods: written by python -m bench.method_table -->\n", "<!-- /methods -->\n"
HEAD = "| method | paper | code | command: `python -m engine` ... |\n| --- | --- | --- | --- |\n"


def order() -> list[str]:
    """The names of the pages, down the columns of the table in docs/README.md, common ground left out."""
    rows = [
        line.split("|")[1:-1]
        for line in (ROOT / "docs" / "README.md").read_text("utf-8").splitlines()
        if line.startswith("| ")
    ]
    return [
        name for column in zip(*rows, strict=True) for cell in column for name in re.findall(r"methods/(\S+)\.md", cell)
    ]


def row(name: str) -> str:
    """One row, from the page's own heading, source, code and first command."""
    text = (ROOT / "docs" / "methods" / f"{name}.md").read_text(encoding="utf-8")
    title = text.splitlines()[0].removeprefix("# ")
    files = re.findall(r"`(\S+)`", re.search(r"^Code: (.+)$", text, re.MULTILINE)[1])
    return f"| [{title}](docs/methods/{name}.md) | {paper(text)} | [{files[0]}]({files[0]}) | `{command(text)}` |\n"


def paper(text: str) -> str:
    """The first source named on the page; "ours" if it is not a paper.

    >>> paper("## Source\\n\\nARE, section 4.3 and\\nappendix A.3, for the verdicts; VitaminC: 2021.\\n\\nCode: x")
    'ARE, section 4.3 and appendix A.3'
    """
    source = " ".join(text.partition("## Source\n")[2].split())
    first = re.split(r"(?<!\bal)[;:.](?= |$)|,? for |, is | \(pairs\)", source)[0]
    return "ours" if first.startswith("Not from") else first


def command(text: str) -> str:
    """The page's first command: its name, and the method or analysis that it is given.

    >>> command("```sh\\npython -m engine attribute a.jsonl --method occlusion --model embedded\\n```")
    'attribute --method occlusion'
    """
    words = shlex.split(re.search(r"python -m engine ([^`\n]+)", text)[1])
    if words[0] == "analyse":
        return f"analyse CASE {shlex.quote(words[2])}"
    chosen = next((i for i, word in enumerate(words) if word in ("--method", "--verifier")), None)
    return " ".join([words[0], *(words[chosen : chosen + 2] if chosen else [])])


def table() -> str:
    """The whole table with its marks."""
    return f"{START}{HEAD}{''.join(map(row, order()))}{END}"


def written(readme: str) -> str:
    """`readme` with the current table."""
    before, _, rest = readme.partition(START)
    return before + table() + rest.partition(END)[2]


if __name__ == "__main__":
    README.write_text(written(README.read_text(encoding="utf-8")), encoding="utf-8")
