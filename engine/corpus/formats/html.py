"""HTML: the main content as trafilatura finds it, without menus, scripts and adverts; nothing is fetched.

Where it finds no main content, the visible text of the body stands in.
"""

from __future__ import annotations

from engine.corpus.formats import markdown
from engine.corpus.formats.plain import require_text
from engine.types import Section


def extract(source: str, name: str) -> tuple[str, tuple[Section, ...], str]:
    """(text, sections, title) of a page; raise `FileError` if there is no text in it."""
    import trafilatura

    title = _title(source)
    found = trafilatura.extract(
        source, output_format="markdown", include_tables=True, include_comments=False, favor_recall=True
    )
    if not found:
        return require_text(_visible(source), name), (), title
    text, sections = markdown.render(found)
    return require_text(text, name), sections, title or (sections[0].title if sections else "")


def _title(source: str) -> str:
    """The page's title, or an empty string."""
    tree = _tree(source)
    found = tree.findtext(".//title") if tree is not None else None
    return " ".join((found or "").split())


def _visible(source: str) -> str:
    """The text of the body, less scripts and styles, one line a block."""
    tree = _tree(source)
    body = tree.find("body") if tree is not None else None
    if body is None:
        return ""
    for element in list(body.iter("script", "style", "noscript", "template")):
        element.drop_tree()
    return "\n".join(line for line in (" ".join(t.split()) for t in body.itertext()) if line)


def _tree(source: str):  # type: ignore[no-untyped-def]
    """The parsed page, or None for a page that is not there."""
    from lxml import etree, html

    try:
        return html.document_fromstring(source.encode("utf-8", "replace"), parser=html.HTMLParser(encoding="utf-8"))
    except (etree.LxmlError, ValueError):
        return None
