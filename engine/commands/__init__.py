"""The command line, built on click: one file a group of commands, one contract for all of them.

Results are JSONL on standard output in input order, messages go to standard error. Exit status 0: all good;
1: some records failed; 2: the call itself was wrong.
"""

from __future__ import annotations

import click

from engine.commands import analyses, answers, corpora, evaluate, library, models, refine, review, steps, verify
from engine.commands.shared import GroundworkGroup
from engine.core.files import VERSION


@click.group(cls=GroundworkGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(VERSION, prog_name="Groundwork")
def main() -> None:
    """Ask questions of documents and audit answers: see why an answer was written and whether it stands.

    All data is in one folder: GROUNDWORK_HOME, by default the platform's folder for user data.
    GROUNDWORK_MODELS names another folder for model weights.
    """


for module in (corpora, answers, analyses, refine, verify, steps, evaluate, library, review, models):
    for command in module.COMMANDS:
        main.add_command(command)
