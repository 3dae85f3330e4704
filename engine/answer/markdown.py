"""Markdown in an answer: blank its marks, so that its words are read alone.

Chat models write their answers in Markdown. Bold, code, links, quotes, check boxes and HTML tags are blanked, so that
offsets stay. The marks of headings, lists and tables stay: they say where a
sentence begins. Left out: what a formula says, indented code, reference links.
"""

from __future__ import annotations

import re

_TAGS = "p|br|hr|b|i|u|em|strong|s|sup|sub|small|mark|a|span|div|ul|ol|li|h[1-6]|blockquote|details|summary|answer"
_MARKUP = re.compile(
    r"^[ \t]*(?P<fence>```|~~~)[^\n]*\n(?:[^\n]*\n){0,999}?[ \t]*(?P=fence)[`~]*[ \t]*$"
    r"|(?<!`)(?P<ticks>`{1,3})(?P<inside>[^`\n]+)(?P=ticks)"
    r"|\(\[[^\[\]\n]*\]\([^()\s]*\)\)|!\[[^\[\]\n]*\]\([^()\s]*\)"  # "([docs](url))", an image
    r"|\[(?P<link>[^\[\]\n]+)\]\([^()\s]*\)"
    r"|(?<![\w$])\${1,2}(?P<formula>[^\s$](?:[^$\n]{0,200}[^\s$])?)\${1,2}(?![\w$])|\\[()\[\]]"
    r"|^[ \t]*(?:>[ \t]?)+"
    r"|(?<=[-*+] )\[[ xX]\](?= )"
    rf"|</?(?:{_TAGS})(?:\s[^<>\n]*)?/?>"
    r"|(?<![\w*])\*{1,3}(?=[^\s*])|(?<=[^\s*])\*{1,3}(?![\w*])"  # an edge of bold, never "2*3" or "* item"
    r"|(?<=[^\W\d])\*\*(?=\w)|(?<=\w)\*\*(?=[^\W\d])"  # bold inside a word, not "2**3"
    r"|(?<!\w)_(?=[^\s_][^\n_]*_(?!\w))|(?<=[^\s_])_(?!\w)",
    re.MULTILINE,
)


def unmarked(text: str, blank: str = " ") -> str:
    """`text` with blanks in place of its Markdown and of fenced code, so that offsets stay, or without them ("").

    >>> unmarked("**Dose:** call `f(*args)`, see [the docs](https://a.org), $x$ and 2*3*4 for $5.", "")
    'Dose: call f(*args), see the docs, x and 2*3*4 for $5.'
    """

    def said(found: re.Match[str]) -> str:
        words = found["inside"] or found["link"] or found["formula"]
        before, _, behind = found.group().partition(words) if words else (found.group(), "", "")
        return re.sub(r"[^\n]", blank, before) + (words or "") + re.sub(r"[^\n]", blank, behind)

    return _MARKUP.sub(said, text)
