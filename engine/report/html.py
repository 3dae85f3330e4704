"""The report as one HTML file: no script, no network, every text escaped.

assets/report holds the templates: report.html, and blocks.html for what it is made of. The policy in the head allows
one style sheet, by its hash, and nothing else. Colours are steps of a scale written as classes, because the policy
allows no style attribute either.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Collection, Iterable
from functools import cache
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from engine.cases import blocks as b
from engine.cases.markup import escape, markdown_parts
from engine.core.files import ASSETS

STEPS = 5  # steps of colour on either side of zero


def _css_string(text: str) -> str:
    """The text between the quotes of a CSS string: all but letters, digits, blanks and full stops as code points."""
    return "".join(c if c.isalnum() or c in " ." else f"\\{ord(c):x} " for c in text)


def to_html(document: b.ReportDocument) -> str:
    """The whole file."""
    style = (ASSETS / "report" / "report.css").read_text(encoding="utf-8")
    style += f'@page {{ @bottom-left {{ content: "{_css_string(document.foot)}"; }} }}\n'
    hashed = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{hashed}'; base-uri 'none'; form-action 'none'"
    return _environment().get_template("report.html").render(document=document, policy=policy, style=Markup(style))


def fragment(blocks: Iterable[b.Block], current: Collection[str] = ()) -> str:
    """Blocks as HTML, every text escaped, to be put into a page.

    A page has no places to link to. Cells that name one of the places `current` are marked as selected.
    """
    module: Any = _environment().get_template("blocks.html").make_module({"linked": False, "current": current})
    return "\n".join(str(module.draw(block)) for block in blocks)


@cache
def _environment() -> Environment:
    """The templates; autoescape escapes what `finalize` leaves, so that no value can reach the file as it is."""
    environment = Environment(
        loader=FileSystemLoader(ASSETS / "report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_escaped,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(
        kind=lambda block: type(block).__name__,
        markdown=markdown_parts,
        line=lambda text: " ".join(text.split()),
        step=_step,
        signed=lambda value: f"{value:+z.3f}",  # what rounds to 0 has a plus
    )
    environment.globals.update(linked=True, current=())
    return environment


def _escaped(value: Any) -> Markup:
    """A value as our own escaping writes it, which also makes hidden characters visible; what is markup stays."""
    return value if isinstance(value, Markup) else Markup(escape(str(value)))


def _step(value: float, largest: float) -> str:
    """The class of a value's colour: p1 to p5, n1 to n5, empty near zero."""
    step = round(STEPS * min(1.0, abs(value) / largest)) if largest > 0 else 0
    return f"{'p' if value > 0 else 'n'}{step}" if step else ""
