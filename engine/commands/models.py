"""models, self-test."""

from __future__ import annotations

import sys

import click

from engine.commands.shared import emit
from engine.models.registry import available_models, load_writer
from engine.models.self_test import self_test as run_self_test


@click.command()
def models() -> None:
    """List the models at hand and what each can do.

    Example: python -m engine models
    """
    for card in available_models():
        emit(card.to_dict())


@click.command("self-test")
@click.argument("model")
def self_test(model: str) -> None:
    """Check that a model's prompts, scores and gradients can be trusted.

    Example: python -m engine self-test embedded
    """
    checks = run_self_test(load_writer(model))
    for check in checks:
        emit(check.to_dict())
    if not all(check.passed for check in checks):
        sys.exit(1)


COMMANDS = (models, self_test)
