"""Measure whether a verifier knows a value again in another notation: python -m bench.notation --data DIR [--write].

Sentences of five public sets that hold a date, an amount of money, a percentage, a number, a measure, a limit ("over
50") or a time of day. The claim is the sentence. Its evidence is the same sentence with that value in another notation
(borne out), and with another value in that notation (contradicted). The verifier judges both as it is, and without
bringing claim and evidence to one notation. The notations are written by code that shares nothing with the reader; the
seed is fixed.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path

import numpy as np

from bench.results import DATA, arguments, conditions, publish, read_lines, table
from engine.core.text import sentences
from engine.models.alignment import clean
from engine.models.verdicts import combine
from engine.models.verifier import EmbeddedVerifier, load_embedded

SETS = ("climate_fever/verify", "covidfact/verify", "fool_me_twice/verify", "healthver/verify", "vitaminc/dev")
MOST, WORDS = 60, 45  # sentences of a kind, words of a sentence
MONTHS = [date(2000, month, 1).strftime("%B") for month in range(1, 13)]
_MONTH = "|".join(MONTHS)
_BLANK = "\N{NARROW NO-BREAK SPACE}"
Written = tuple[str, str]  # the value in another notation, and another value in that notation


def _dates(found: re.Match[str], rng: random.Random) -> Written:
    month, day = MONTHS.index(found["a"] or found["b"]) + 1, int(found["d"] or found["e"])
    told = date(int(found["y"]), month, day)
    form = rng.choice(["%Y-%m-%d", "%d.%m.%Y", "%d %b %Y", "%b. %d, %Y", "%Y/%m/%d"])
    return told.strftime(form), (told + timedelta(days=rng.choice([-40, -3, 2, 35]))).strftime(form)


def _number(text: str) -> float:
    return float(text.replace(",", ""))


def _plain(value: float) -> str:
    return f"{value:.10g}"


def _money(found: re.Match[str], rng: random.Random) -> Written:
    value, scale = _number(found["n"]), found["scale"] or ""
    name, code = {"$": ("dollars", "USD"), "£": ("pounds", "GBP"), "€": ("euros", "EUR")}[found["sign"]]
    form = rng.choice([f"{{}}{scale} {name}", f"{code} {{}}{scale}", f"{{}}{scale} {code}"])
    return form.format(found["n"]), form.format(_plain(round(value * rng.choice([0.5, 1.4]) + 2)))


def _percent(found: re.Match[str], rng: random.Random) -> Written:
    form = rng.choice([one for one in ("{}%", "{} per cent", "{} percent", "{} pct") if one[2:] != found["sign"]])
    return form.format(found["n"]), form.format(_plain(round(_number(found["n"]) * 1.4 + 2)))


def _large(found: re.Match[str], rng: random.Random) -> Written:
    mark, value = rng.choice([_BLANK, " ", "'"]), int(_number(found["n"]))
    return f"{value:,}".replace(",", mark), f"{round(value * rng.choice([0.6, 1.4])):,}".replace(",", mark)


_SMALLER = {
    "kilometres": ("metres", 1000), "km": ("m", 1000), "kilometers": ("m", 1000), "metres": ("cm", 100),
    "meters": ("centimeters", 100), "kg": ("grams", 1000), "tonnes": ("kg", 1000), "hours": ("minutes", 60),
    "minutes": ("seconds", 60), "weeks": ("days", 7), "litres": ("ml", 1000), "liters": ("mL", 1000),
    "feet": ("inches", 12), "mg": ("g", 0.001), "grams": ("mg", 1000), "cm": ("mm", 10), "MW": ("kW", 1000),
}  # fmt: skip


def _measures(found: re.Match[str], rng: random.Random) -> Written:
    unit, times = _SMALLER[found["unit"]]
    value = _number(found["n"]) * times
    return f"{_plain(value)} {unit}", f"{_plain(value * rng.choice([2, 3]))} {unit}"


def _times(found: re.Match[str], rng: random.Random) -> Written:
    hour = int(found["h"]) % 12 + 12 * found["half"].lower().startswith("p")
    return f"{hour:02}:{found['m'] or '00'}", f"{(hour + rng.choice([1, 3])) % 24:02}:{found['m'] or '00'}"


_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_ONES = ("", "-one", "-two", "-three", "-four", "-five", "-six", "-seven", "-eight", "-nine")


def _words(found: re.Match[str], rng: random.Random) -> Written:
    value = int(found["n"])
    other = rng.choice([number for number in range(20, 100) if number != value])
    same, changed = (_TENS[number // 10 - 2] + _ONES[number % 10] for number in (value, other))
    return same, changed


_SIGNS = {
    ">": ("more than", "over", "above", "greater than"), "<": ("less than", "fewer than", "below", "under"),
    "\N{GREATER-THAN OR EQUAL TO}": ("at least",), "\N{LESS-THAN OR EQUAL TO}": ("at most", "no more than"),
}  # fmt: skip
_SIGN = {words: sign for sign, all_words in _SIGNS.items() for words in all_words}
_TURNED = dict(zip(_SIGNS, ("<", ">", *reversed(list(_SIGNS)[2:])), strict=True))


def _limits(found: re.Match[str], rng: random.Random) -> Written:
    sign = _SIGN[found.group()]
    return sign, _TURNED[sign]


_N = r"(?<![\w.,-])(?P<n>\d[\d,]*(?:\.\d+)?)"
KINDS: dict[str, tuple[re.Pattern[str], Callable[[re.Match[str], random.Random], Written]]] = {
    "dates": (
        re.compile(
            rf"\b(?:(?P<d>[12]?\d|3[01]) (?P<a>{_MONTH})|(?P<b>{_MONTH}) (?P<e>[12]?\d|3[01]) ?,) (?P<y>[12]\d{{3}})\b"
        ),
        _dates,
    ),
    "money": (
        re.compile(r"(?<![A-Za-z])(?P<sign>[$£€])(?P<n>\d[\d,]*(?:\.\d+)?)(?P<scale> [mb]illion\b)?(?![\w-])"),
        _money,
    ),
    "percentages": (re.compile(rf"{_N}(?P<sign>%| percent\b| per cent\b)"), _percent),
    "numbers in words": (re.compile(r"(?<![\w.,:$£€/-])(?P<n>[2-9]\d)(?= [a-z])"), _words),
    "large numbers": (re.compile(r"(?<![\w.,$£€-])(?P<n>\d{1,3}(?:,\d{3})+)(?![\d,.]\d|[\d%])"), _large),
    # not the end of a range, whose start has no unit of its own: "200 to 270 cm" is not 200 to 2700 mm
    "measures": (
        re.compile(rf"(?<![/:])(?<!\d\N{{EN DASH}})(?<!\b(?:to|or) )(?<!and ){_N} (?P<unit>{'|'.join(_SMALLER)})\b"),
        _measures,
    ),
    "limits": (re.compile(rf"\b(?:{'|'.join(_SIGN)})(?= [$£€]?\d)"), _limits),
    "times of day": (
        re.compile(r"\b(?P<h>1[0-2]|[1-9])(?::(?P<m>[0-5]\d))? ?(?P<half>[ap]\.?m\b\.?)", re.IGNORECASE),
        _times,
    ),
}


def texts(data: Path) -> Iterator[str]:
    """The sentences of the sets' evidence, each once."""
    seen: set[str] = set()
    for name in SETS:
        for record in read_lines(data / f"{name}.jsonl"):
            evidence = record["evidence"]
            text = clean(evidence if isinstance(evidence, str) else " ".join(evidence))
            for start, end in sentences(text):
                if len(text[start:end].split()) <= WORDS and text[start:end] not in seen:
                    seen.add(text[start:end])
                    yield text[start:end]


def drawn(data: Path) -> dict[str, list[tuple[str, str, str]]]:
    """For each kind the claims, with evidence that bears each out and evidence that contradicts it."""
    found: defaultdict[str, list[tuple[str, str, str]]] = defaultdict(list)
    rng = random.Random(1337)
    pool = sorted(texts(data))
    rng.shuffle(pool)
    for text in pool:
        for kind, (form, write) in KINDS.items():
            match = form.search(text)
            if match is None or len(found[kind]) == MOST:
                continue
            same, other = (text[: match.start()] + one + text[match.end() :] for one in write(match, rng))
            found[kind].append((text, same, other))
    return dict(found)


def shares(probabilities: Sequence[np.ndarray], verifier: EmbeddedVerifier) -> tuple[float, float]:
    """Shares called supportive and contradicted."""
    called = [combine(rows, [(0, 0)] * len(rows), verifier.thresholds).verdict for rows in probabilities]
    return called.count("supportive") / len(called), called.count("editing_required") / len(called)


def rows(data: Path) -> Iterator[list[object]]:
    """The rows of the table."""
    verifier = load_embedded()
    for kind, triples in drawn(data).items():
        for how in ("as written", "in one notation"):
            row: list[float] = []
            for place in (1, 2):
                pairs = [(triple[0], triple[place]) for triple in triples]
                if how == "as written":
                    row += shares([verifier.classify([pair]) for pair in pairs], verifier)
                else:
                    row += shares([rows for rows, _ in verifier.by_window(pairs)], verifier)
            yield [f"{kind}, {how}", len(triples), *(f"{one:.2f}" for one in row)]


def main() -> None:
    """Measure, print, and save with --write."""
    asked = arguments(__doc__, data=DATA)
    heads = "notation | sentences | same value: borne out | contradicted | other value: borne out | contradicted"
    told = f"Made pairs of real sentences, embedded verifier. {conditions()}"
    publish(asked, "notation", "Values in another notation", told, table(heads, rows(asked.data)))


if __name__ == "__main__":
    main()
