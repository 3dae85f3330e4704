"""Blocks of a report on a page: what a kind of analysis prints, a page draws from the same values."""

from __future__ import annotations

from components import state
from components.html import show, tag
from engine.cases.blocks import Block
from engine.report.html import fragment


def draw(*blocks: Block) -> None:
    """Draw blocks in the look of the pages; the rows of what is selected are marked."""
    show(markup(*blocks))


def markup(*blocks: Block) -> str:
    """The same as HTML, to be put into other markup."""
    return tag("div", fragment(blocks, state.selected_places()), class_="gw-blocks")
