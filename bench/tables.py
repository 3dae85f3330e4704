"""Measure whether a verifier finds the row of a table that a claim is about: python -m bench.tables [--write].

Tables are drawn from real data that Plotly brings along: countries (Gapminder, 2007) and districts of an election in
Montreal. A claim says a cell of a table in a sentence: as it is, with the value of another row or column, or with a
changed number. The verifier judges each against the table's text, once as it is and once by what the claim is about.
The seed is fixed.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from plotly import data

from bench.results import arguments, conditions, publish, table
from engine.core.text import BETWEEN_CELLS
from engine.models.verdicts import combine
from engine.models.verifier import EmbeddedVerifier, load_embedded

SIZES, TABLES = (4, 8, 16), 40  # rows of a table; tables of each kind and size
KINDS = ("as it is", "another row's value", "another column's number", "a changed number")
Claim = tuple[str, str]  # with its evidence


def frames() -> Iterator[tuple[str, Sequence[str], list[list[str]]]]:
    """Caption, column names and rows of each kind of table; the first column names the row."""
    world = data.gapminder().query("year == 2007")
    columns = ["Country", "Continent", "Life expectancy", "Population"]
    rows = [
        [row.country, row.continent, f"{row.lifeExp:.1f} years", f"{row.pop:,}"]
        for row in world.itertuples(index=False)
    ]
    yield "Countries in 2007", columns, rows
    districts = data.election()
    rows = [
        [row.district.split("-", 1)[1], *map(str, row[1:5]), row.winner] for row in districts.itertuples(index=False)
    ]
    yield (
        "Mayoral election",
        ["District", "Coderre votes", "Bergeron votes", "Joly votes", "Total votes", "Winner"],
        rows,
    )


def claims(rng: random.Random, size: int) -> Iterator[tuple[str, Claim]]:
    """Each claim with its kind, for every kind of table."""
    for caption, columns, pool in frames():
        for _ in range(TABLES):
            rows = rng.sample(pool, size)
            lines = (BETWEEN_CELLS.join(cells) for cells in (columns, *rows))
            text = f"{caption}\n\n" + "\n".join(lines) + "\n"
            row, place = rng.choice(rows), rng.randrange(1, len(columns))
            others = [other[place] for other in rows if other[place] != row[place]]
            says = f"The {columns[place].lower()} of {row[0]} is {{}}."
            yield KINDS[0], (says.format(row[place]), text)
            if others:
                yield KINDS[1], (says.format(rng.choice(others)), text)
            numbers = [cell for cell in row[1:] if cell[0].isdigit() and cell != row[place]]
            if row[place][0].isdigit():
                yield KINDS[2], (says.format(rng.choice(numbers)), text)
                yield KINDS[3], (says.format(changed(row[place], rng)), text)


def changed(cell: str, rng: random.Random) -> str:
    """The cell with one digit of its number raised by one to four."""
    place = rng.choice([i for i, c in enumerate(cell) if c.isdigit()])
    return cell[:place] + str((int(cell[place]) + rng.randint(1, 4)) % 10) + cell[place + 1 :]


def verdicts(verifier: EmbeddedVerifier, pairs: Sequence[Claim], by_rows: bool) -> list[str]:
    """The verdicts on the tables' text as it is, or by rows."""
    if by_rows:
        return [judged.verdict for judged in verifier.judge(pairs)]
    return [combine(verifier.classify([pair]), [(0, 0)], verifier.thresholds).verdict for pair in pairs]


def outcomes() -> Iterator[list[object]]:
    """The shares borne out and contradicted, by the tables' size and the kind of claim."""
    verifier, rng = load_embedded(), random.Random(1337)
    for size in SIZES:
        drawn = list(claims(rng, size))
        for kind in KINDS:
            pairs = [pair for name, pair in drawn if name == kind]
            found = [verdicts(verifier, pairs, by_rows) for by_rows in (False, True)]
            shares = [one.count(v) / len(pairs) for one in found for v in ("supportive", "editing_required")]
            yield [size, kind, len(pairs), *(f"{share:.2f}" for share in shares)]


def main() -> None:
    """Measure, print, and save with --write."""
    asked = arguments(__doc__)
    heads = "rows | claim | claims | text as it is: borne out | contradicted | by rows: borne out | contradicted"
    told = f"Made claims on real data, embedded verifier. {conditions()}"
    publish(asked, "tables", "Claims about a table", told, table(heads, outcomes()))


if __name__ == "__main__":
    main()
