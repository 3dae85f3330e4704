"""The ranking on Ask: the search's order as soon as it ends, then where re-ranking puts each passage."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from components.ranking import ranking_rows
from engine.core.progress import Watch
from engine.workbench import Workbench


def test_the_search_is_told_first_and_re_ranking_gives_each_passage_its_second_place(sample_home):
    seen = []
    question = "Which solvent extracts caffeine from the tea?"
    Workbench().ask(question, "bench-chemistry", model="reader", watch=Watch(case=seen.append))
    searched = next(case for case in seen if case.hits)
    assert not searched.chunk_sets and not searched.passages
    rows = ranking_rows(searched)
    assert [row["before"] for row in rows] == list(range(1, len(searched.hits) + 1))
    assert {row["after"] for row in rows} == {row["given"] for row in rows} == {None}
    assert [[score["name"] for score in row["scores"]] for row in rows] == [["retrieved"]] * len(rows)

    rows = ranking_rows(seen[-1])
    assert sorted(row["after"] for row in rows) == [row["before"] for row in rows]
    # The writer is given the first ones, under the numbers of their places.
    given = {row["after"]: row["given"] for row in rows if row["given"]}
    assert given == {place: place for place in range(1, len(seen[-1].passages) + 1)}
    scores = [float(row["scores"][1]["text"]) for row in sorted(rows, key=lambda row: row["after"])]
    assert scores == sorted(scores, reverse=True)
    shares = {row["scores"][0]["text"]: row["scores"][0]["share"] for row in rows}
    longest = max(1.0, *(hit.score for hit in seen[-1].hits))
    assert all(abs(share - float(text) / longest) < 1e-3 for text, share in shares.items())


def draw_provenance():
    import gzip

    from components.provenance import provenance
    from engine.cases.bundled import EXAMPLE, file_of
    from engine.cases.case_file import read_case_file

    provenance(read_case_file(gzip.decompress(file_of(EXAMPLE).read_bytes())).case)


def test_the_readers_candidates_are_a_plain_table_quoted_ones_first():
    app = AppTest.from_function(draw_provenance, default_timeout=60).run()
    assert not app.exception and not app.dataframe
    drawn = next(str(html.proto.body) for html in app.get("html") if "<table" in str(html.proto.body))
    rows = drawn.split("<tbody>")[1].split("</tr>")[:-1]
    quoted = [">yes<" in row for row in rows]
    assert len(rows) > 20 and quoted == sorted(quoted, reverse=True) and any(quoted)
    assert "The crude product is recrystallized thus" in drawn
