"""Files to documents: each format's text and offsets, and each kind of bad file told in a sentence."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from engine.core.errors import FileError
from engine.corpus.formats.documents import joined_words, without_running_lines
from engine.corpus.formats.records import Fields
from engine.corpus.sources import load, load_bytes


def stream_of(data: bytes) -> bytes:
    return b"<< /Length %d >>\nstream\n%s\nendstream" % (len(data), data)


def pdf_bytes(*pages: str, codes: bytes = b"") -> bytes:
    """A small PDF by hand: one Helvetica text line a page; an empty string is a page without text."""
    count = len(pages)
    meaning = f" /ToUnicode {4 + 2 * count} 0 R" if codes else ""
    kids = " ".join(f"{4 + 2 * i} 0 R" for i in range(count))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {count} >>".encode(),
        f"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica{meaning} >>".encode(),
    ]
    for i, text in enumerate(pages):
        stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode() if text else b""
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * i} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>".encode()
        )
        objects.append(stream_of(stream))
    if codes:
        objects.append(stream_of(codes))
    body, places = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, start=1):
        places.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    trailer = b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (size, len(body))
    return body + b"xref\n0 %d\n0000000000 65535 f \n" % size + table + trailer


def test_plain_text_with_any_line_breaks_and_marks() -> None:
    (document,) = load_bytes("\ufeffIron\r\nrusts.\rQuickly.".encode(), "iron_notes.txt")
    assert document.text == "Iron\nrusts.\nQuickly."
    assert (document.id, document.title, document.media_type) == ("iron_notes.txt", "iron notes", "text/plain")


def test_a_file_of_nothing_but_its_mark_holds_no_text() -> None:
    with pytest.raises(FileError, match="has no text"):
        load_bytes("\ufeff".encode(), "f.txt")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32", "cp1252"])
def test_encodings(encoding: str) -> None:
    text = "Le café est fermé à midi, dit-il; où aller après l'été? " * 20
    assert load_bytes(text.encode(encoding), "f.txt")[0].text == text


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("a.txt", "Mu\u0308ller."),
        ("a.csv", "name,text\nx,Mu\u0308ller."),
        ("a.jsonl", r'{"title": "x", "text": "Mu\u0308ller."}'),
        ("a.html", "<p>Mu\u0308ller.</p>"),
    ],
)
def test_an_accent_is_read_as_part_of_its_letter(name: str, source: str) -> None:
    assert load_bytes(source.encode(), name)[0].text.strip() == "M\u00fcller."


def test_sections_of_a_text_with_accents_apart_start_where_their_titles_are() -> None:
    (document,) = load_bytes("Mu\u0308ller.\n\n# U\u0308ber\n\nGold.".encode(), "a.md")
    assert [document.text[s.start :][:4] for s in document.sections] == [s.title for s in document.sections] == ["Über"]


def test_half_a_character_of_a_pdf_is_replaced() -> None:
    codes = b"1 begincodespacerange\n<00> <FF>\nendcodespacerange\n2 beginbfchar\n<41> <D83D>\n<42> <0042>\nendbfchar\n"
    assert load_bytes(pdf_bytes("AB", codes=codes), "a.pdf")[0].text == "\ufffdB"


def test_markdown_keeps_numbers_words_and_section_offsets() -> None:
    source = (
        "# Salt\n\nSee [Fig. 2](http://x.example) and `NaCl`.\n\n3. Weigh it.\n4. Dry *it*.\n\n## Use\n\n- Soup\n\n"
        "![A jar](j.png)\n\n<script>x()</script>\n"
    )
    (document,) = load_bytes(source.encode(), "salt.md")
    assert document.text == ("Salt\n\nSee Fig. 2 and NaCl.\n\n3. Weigh it.\n4. Dry it.\n\nUse\n\n- Soup\n\nA jar\n")
    assert document.title == "Salt"
    assert [(s.level, document.text[s.start : s.start + len(s.title)]) for s in document.sections] == [
        (1, "Salt"),
        (2, "Use"),
    ]


def test_powers_and_line_breaks_of_html_in_markdown_are_kept() -> None:
    source = "10<sup>23</sup>.<br>The 10<sup>-19</sup> J on the 1<sup>st</sup>\n\n| a |\n|---|\n| b<br/>c |\n"
    (document,) = load_bytes(source.encode(), "a.md")
    assert document.text == "10^23.\nThe 10^-19 J on the 1st\n\na\nb c\n"


def test_a_text_file_with_headings_is_read_as_markdown() -> None:
    (paper,) = load_bytes(b"# On iron\n\n**Abstract**: it rusts.\n\n## Methods\n\nWe *waited*.\n", "paper.txt")
    assert (paper.title, paper.media_type) == ("On iron", "text/markdown")
    assert paper.text == "On iron\n\nAbstract: it rusts.\n\nMethods\n\nWe waited.\n"
    for script in (
        "#!/bin/sh\n# copies a\ncp a *.b\n\n# done\n",
        "# Starts\n\n__init__ = 1\n\n# Ends\n\n__del__ = 2\n",
    ):
        assert load_bytes(script.encode(), "copy.txt")[0].text == script


def test_markdown_table_becomes_lines() -> None:
    (document,) = load_bytes(b"Table.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n", "t.md")
    assert document.text == "Table.\n\na | b\n1 | 2\n"


def test_the_cells_of_a_long_table_have_the_names_of_their_columns() -> None:
    rows = [f"| Town {n} | {n + 20} | |" for n in range(14)]
    source = "\n".join(["| Office | Staff | Lead |", "|---|---|---|", *rows])
    (document,) = load_bytes(source.encode(), "t.md")
    assert document.text.splitlines() == [f"Office: Town {n} | Staff: {n + 20}" for n in range(14)]
    (short,) = load_bytes(source[: source.index("| Town 5")].encode(), "t.md")
    assert short.text.splitlines()[:2] == ["Office | Staff | Lead", "Town 0 | 20 | "]
    (listed,) = load_bytes(source.replace("Office | Staff | Lead", "Town 99 | 7 | Ann").encode(), "t.md")
    assert listed.text.splitlines()[0] == "Town 99 | 7 | Ann"


def test_jsonl_one_document_a_line() -> None:
    lines = [{"_id": "a", "title": "T", "text": "One."}, {"_id": 7, "text": "Two."}, {"id": "c", "text": "Three."}]
    documents = load_bytes("\n\n".join(map(json.dumps, lines)).encode(), "c.jsonl")
    assert [(d.id, d.title, d.text) for d in documents] == [("a", "T", "One."), ("7", "", "Two."), ("c", "", "Three.")]
    nulls = load_bytes(b'{"_id": null, "text": "One."}\n{"_id": null, "text": "Two."}', "n.jsonl")
    assert [d.id for d in nulls] == ["n.jsonl#1", "n.jsonl#2"]


def test_jsonl_with_named_fields() -> None:
    fields = Fields(id="key", title="head", text="body")
    (document,) = load_bytes(b'{"key": "k", "head": "H", "body": "B."}', "c.jsonl", fields=fields)
    assert (document.id, document.title, document.text) == ("k", "H", "B.")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'{"_id": "a"}', "line 1, has no text"),
        (b'{"text": "x"}\n[1]', "line 2, is not a JSON object"),
        (b'{"text": "x"}\n{"text"', "line 2, is not JSON"),
        (b'{"_id": "a", "text": "x"}\n{"_id": "a", "text": "y"}', "line 2, has the id 'a' of an earlier line"),
    ],
)
def test_bad_records_name_their_line(data: bytes, words: str) -> None:
    with pytest.raises(FileError, match=words):
        load_bytes(data, "c.jsonl")


MAIL = b"""From: Ann <ann@x.example>
To: Ben <ben@x.example>
Subject: =?utf-8?Q?Caf=C3=A9?= on Friday
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="b"

--b
Content-Type: text/plain; charset=utf-8
Content-Transfer-Encoding: quoted-printable

It costs =C2=A34, and the table is boo=
ked.
> Is it booked?
>> Who pays?
--b
Content-Type: application/pdf
Content-Disposition: attachment; filename="menu.pdf"

x
--b--
"""


def test_a_mail_has_its_fields_and_its_words_without_codes_and_marks_of_quotation() -> None:
    (document,) = load_bytes(MAIL, "cafe.eml")
    assert (document.title, document.media_type) == ("Café on Friday", "message/rfc822")
    assert document.text == (
        "From: Ann <ann@x.example>\nTo: Ben <ben@x.example>\nSubject: Café on Friday\nAttachments: menu.pdf\n\n"
        "It costs £4, and the table is booked.\nIs it booked?\nWho pays?"
    )
    page = b"From: a@x.example\nContent-Type: text/html\n\n<p>It is open until six in the evening.</p>"
    assert load_bytes(page, "a.eml")[0].text.rstrip() == "From: a@x.example\n\nIt is open until six in the evening."


def test_subtitles_are_what_is_said_by_sentence_or_by_speaker() -> None:
    srt = (
        b"1\n00:00:01,000 --> 00:00:04,200\nThe bay of\n<i>Fundy</i> is\n\n2\n00:00:05,000 --> 00:00:06,000\nlarge.\n\n"
    )
    (film,) = load_bytes(srt + b"3\n00:00:07,000 --> 00:00:08,000\nWhy?\n", "tides.srt")
    assert film.text == "The bay of Fundy is large.\nWhy?"
    vtt = (
        "WEBVTT\n\n{0}\n<v Ann Lee>Shall we</v>\n\n{0}\n<v Ann Lee>start?</v>\n\nNOTE x\n\n{0}\n<v Ben>Yes. Now.</v>\n"
    ).format("00:01.000 --> 00:02.000")
    assert load_bytes(vtt.encode(), "call.vtt")[0].text == "Ann Lee: Shall we start?\nBen: Yes. Now."


def test_the_objects_of_a_json_file_are_rows() -> None:
    issues = [
        {"id": 7, "title": "Silt", "open": True, "notes": [{"by": "Ann", "text": "Soon."}], "due": None},
        {"id": 8, "title": "Rail"},
    ]
    rows = load_bytes(json.dumps({"project": "Bank", "issues": issues}).encode(), "export.json")
    assert [(row.id, row.title) for row in rows] == [
        ("export.json#id=7", "Silt"),
        ("export.json#id=8", "Rail"),
        ("export.json#3", "Bank"),
    ]
    assert rows[2].text == "project: Bank"
    assert rows[0].text == "id: 7 | title: Silt | open: true | notes: Ann; Soon."
    (whole,) = load_bytes(b'{"name": "Bank", "levels": [3, 4.5]}', "one.json")
    assert whole.text == "name: Bank | levels: 3; 4.5"
    (named,) = load_bytes(b'[{"k": "a", "body": "One."}]', "two.json", fields=Fields(id="k", title="", text="body"))
    assert (named.id, named.text) == ("a", "One.")


def test_every_list_of_objects_in_a_json_file_is_read() -> None:
    rows = load_bytes(json.dumps({"a": [{"t": "Ice."}, {"t": "Tin."}], "b": [{"t": "Zinc."}]}).encode(), "m.json")
    assert [row.text for row in rows] == ["t: Ice.", "t: Tin.", "t: Zinc."]


@pytest.mark.parametrize("name", ["t.csv", "t.json"])
def test_rows_have_their_own_id_where_it_tells_all_apart(name: str) -> None:
    def ids(*given: str) -> list[str]:
        rows = [{"id": one, "text": f"Note {n}."} for n, one in enumerate(given)]
        table = "id,text\n" + "".join(f"{row['id']},{row['text']}\n" for row in rows)
        return [row.id for row in load_bytes((json.dumps(rows) if name == "t.json" else table).encode(), name)]

    assert ids("a", "b") == [f"{name}#id=a", f"{name}#id=b"]
    assert ids("2021", "2021") == ids("a", "") == [f"{name}#1", f"{name}#2"]


def test_a_log_is_text() -> None:
    assert load_bytes(b"02:00:11 started\n", "a.log")[0].media_type == "text/plain"


def test_pdf_pages() -> None:
    (document,) = load_bytes(pdf_bytes("First page.", "", "Third page."), "p.pdf")
    assert document.text == "First page.\n\n\n\nThird page."
    assert [document.text[start:][:5] for start in document.pages] == ["First", "\n\nThi", "Third"]


def test_ligatures_of_a_pdf_are_read_as_letters() -> None:
    (document,) = load_bytes(pdf_bytes("A scienti\\256c note."), "p.pdf")
    assert document.text == "A scientific note."


def test_a_pdf_without_the_meaning_of_its_codes_has_the_letters_of_tex() -> None:
    (document,) = load_bytes(pdf_bytes("A \\034rst e\\033ort, pages 5\\0257."), "p.pdf")
    assert document.text == "A first effort, pages 5–7."


def test_heads_and_feet_of_pages_are_left_out_and_a_sentence_goes_over_the_page() -> None:
    pages = ["Gears\nOne wheel turns\nPage 1", "Gears\nthe other.\nPage 2", "Gears\nThree.\nPage 3"]
    assert without_running_lines(pages) == ["One wheel turns", "the other.", "Three."]
    assert without_running_lines(["Page 1", "Page 2", "Page 3"]) == ["Page 1", "Page 2", "Page 3"]
    assert without_running_lines(["Gears\nOne.", "Gears\nTwo."]) == ["Gears\nOne.", "Gears\nTwo."]
    (document,) = load_bytes(pdf_bytes("One wheel turns", "the other.", "Three."), "p.pdf")
    assert document.text == "One wheel turns\nthe other.\n\nThree."
    assert [document.text[start:][:3] for start in document.pages] == ["One", "the", "Thr"]


@pytest.mark.parametrize(
    "starts",
    [
        ["01/02 5,000.00\n02/02 40.00", "03/02 60.00\n04/02 7.50", "05/02 900.00\n06/02 1.00"],
        ["Question 1", "Question 2", "Question 3"],
        ["Balance: 5,000.00", "Balance: 40.00", "Balance: €7"],
    ],
)
def test_a_line_that_differs_in_more_than_a_page_number_stays(starts: list[str]) -> None:
    pages = [f"{start}\nOne {word}." for start, word in zip(starts, ("wheel", "gear", "axle"), strict=True)]
    assert without_running_lines(pages) == pages
    numbered = [f"{page}\n- {number} -\nGears {number}/3" for number, page in enumerate(pages, start=1)]
    assert without_running_lines(numbered) == pages


@pytest.mark.parametrize(
    ("page", "read"),
    [
        ("an inves-\ntigation", "an investigation"),
        ("well known, well-\nknown", "well known, well-\nknown"),
        ("in a form to inform, to in-\nform", "in a form to inform, to inform"),
        ("the Smith-\nWaterman score", "the Smith-\nWaterman score"),
        ("in 1990-\n1995", "in 1990-\n1995"),
    ],
)
def test_a_word_that_a_line_break_cuts_is_whole_and_a_compound_keeps_its_hyphen(page: str, read: str) -> None:
    assert joined_words([page]) == [read]


@pytest.mark.parametrize(
    ("said", "title"),
    [("Gearbox 7", "Gearbox 7"), ("letter.html", ""), ("Microsoft Word - a", ""), ("about:blank", "")],
)
def test_a_name_of_a_file_is_not_the_title_of_a_pdf(said: str, title: str) -> None:
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(pdf_bytes("A page."))))
    writer.add_metadata({"/Title": said})
    out = io.BytesIO()
    writer.write(out)
    (document,) = load_bytes(out.getvalue(), "gear_box.pdf")
    assert document.title == (title or "gear box")


def test_encrypted_pdf() -> None:
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter()
    writer.append(PdfReader(io.BytesIO(pdf_bytes("Secret."))))
    writer.encrypt("password", algorithm="RC4-128")
    out = io.BytesIO()
    writer.write(out)
    with pytest.raises(FileError, match="protected by a password"):
        load_bytes(out.getvalue(), "p.pdf")


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("scan.pdf", pdf_bytes("", ""), "probably a scan"),
        ("odd.pdf", pdf_bytes("Iron.").replace(b"<< /Length", b"<< /Filter /FlatDecode /Length"), "page 1, is damaged"),
        ("cut.pdf", pdf_bytes("A page.")[:120], "damaged"),
        ("cut2.pdf", b"%PDF-1.4\n", "damaged"),
        ("false.pdf", b"just words", "does not start like a PDF file"),
        ("hidden.txt", pdf_bytes("A page."), "does not match its name"),
        ("archive.txt", b"PK\x03\x04rest", "does not match its name"),
        ("empty.txt", b" \n", "is empty"),
        ("bytes.txt", bytes(range(256)) * 20, "not text"),
        ("image.png", b"\x89PNG\r\n", "unknown format"),
        ("blank.md", b"<!-- nothing -->\n", "has no text"),
    ],
)
def test_bad_files_say_what_to_do(name: str, data: bytes, words: str) -> None:
    with pytest.raises(FileError, match=words) as caught:
        load_bytes(data, name)
    assert name in str(caught.value)


def test_a_path_that_is_no_file(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.txt"):
        with pytest.raises(FileError, match="not a file"):
            load(path)
