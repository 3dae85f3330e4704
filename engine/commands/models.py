"""models (list, add, install, remove), self-test."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click

from engine.commands.shared import emit, main, progress
from engine.models.catalogue import LANGUAGE_MODEL, catalogue, entry_of
from engine.models.install import install as install_model, remove as remove_model
from engine.models.registry import ModelCard, add_model, available_models, drop_added, load_writer
from engine.models.self_test import self_test as run_self_test


@main.group(invoke_without_command=True)
@click.pass_context
def models(context: click.Context) -> None:
    """List the available models, what each can do, and which ones can be installed.

    Example: python -m engine models
    """
    if context.invoked_subcommand is None:
        for card in (*available_models(), *_further_cards()):
            emit(card)


def _further_cards() -> Iterator[ModelCard]:
    """The catalogue's embedders, and those of its language models that are not installed."""
    for entry in catalogue():
        if entry.installed and entry.kind == LANGUAGE_MODEL:
            continue
        told = f"Not installed: {entry.download / 1e9:.2f} GB to download. {entry.how_to_install}"
        where, note = (str(entry.folder), "") if entry.installed else ("", told)
        yield ModelCard(name=entry.name, kind=entry.kind, can_generate=False, where=where, note=note)


@models.command()
@click.argument("name")
def install(name: str) -> None:
    """Download a model of the catalogue, check it and make it usable by its name; run again to resume.

    Example: python -m engine models install qwen2.5-coder-1.5b
    """
    emit({"name": name, "where": str(install_model(entry_of(name), progress()))})


@models.command()
@click.argument("source")
@click.option("--name", default="", help="Your name for the model; by default the last part of its source.")
def add(source: str, name: str) -> None:
    """Add a model to the list under a name: a folder, a .gguf file, a Hugging Face id, openai:MODEL@BASE_URL.

    Example: python -m engine models add openai:gpt@http://127.0.0.1:8000/v1 --name local-server
    """
    emit(add_model(source, name))


@models.command()
@click.argument("name")
def remove(name: str) -> None:
    """Delete an installed model, or take an added one off the list.

    Example: python -m engine models remove qwen2.5-coder-1.5b
    """
    if not drop_added(name):
        remove_model(entry_of(name), progress())
    emit({"name": name, "removed": True})


@main.command("self-test")
@click.argument("model")
def self_test(model: str) -> None:
    """Check a model's prompts, scores and gradients.

    Example: python -m engine self-test embedded
    """
    checks = run_self_test(load_writer(model, watch=progress()))
    for check in checks:
        emit(check)
    if not all(check.passed for check in checks):
        sys.exit(1)
