"""DOCX, HTML, tables, folders and archives; and the tricks that must come to nothing."""

from __future__ import annotations

import io
import os
import re
import tarfile
import zipfile
from pathlib import Path

import pytest
from docx import Document as Word
from docx.opc.constants import CONTENT_TYPE, RELATIONSHIP_TYPE
from docx.opc.packuri import PackURI
from docx.opc.part import Part
from docx.oxml import parse_xml

from engine.core.errors import FileError
from engine.core.progress import Watch
from engine.corpus.collection import Collection
from engine.corpus.formats import documents as formats
from engine.corpus.formats.documents import without_running_lines
from engine.corpus.formats.records import Fields
from engine.corpus.sources import load_bytes, stream_files
from engine.models.embedder import ScriptedEmbedder


def read_files(paths):
    """(documents, skipped) of files, folders and archives."""
    skipped = []
    return list(stream_files(paths, Watch(), skipped)), skipped


def docx_bytes() -> bytes:
    word = Word()
    word.add_heading("Salt", 0)
    word.add_paragraph("Salt is white.")
    word.add_heading("Steps", 2)
    word.add_paragraph("Weigh it.", style="List Number")
    word.add_paragraph("Dry it.", style="List Number")
    word.add_paragraph("A jar", style="List Bullet")
    table = word.add_table(rows=1, cols=2)
    table.rows[0].cells[0].text, table.rows[0].cells[1].text = "mass", "5 g"
    out = io.BytesIO()
    word.save(out)
    return out.getvalue()


def zip_bytes(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


def with_member(data: bytes, name: str, content: bytes) -> bytes:
    out = io.BytesIO(data)
    with zipfile.ZipFile(out, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return out.getvalue()


def test_docx_in_page_order_with_sections_and_numbers() -> None:
    (document,) = load_bytes(docx_bytes(), "salt.docx")
    assert document.text == ("Salt\n\nSalt is white.\n\nSteps\n\n1. Weigh it.\n2. Dry it.\n- A jar\nmass | 5 g\n\n")
    assert [(s.level, document.text[s.start : s.start + len(s.title)]) for s in document.sections] == [
        (1, "Salt"),
        (2, "Steps"),
    ]
    assert document.title == "Salt"


def word_bytes(body: str) -> bytes:
    """A DOCX with this body, in the words of its format."""
    word = Word()
    space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    for element in parse_xml(f'<w:body xmlns:w="{space}">{body}</w:body>'):
        word.element.body.insert_element_before(element, "w:sectPr")
    out = io.BytesIO()
    word.save(out)
    return out.getvalue()


def run(text: str, properties: str = "", kind: str = "t") -> str:
    return f'<w:r><w:rPr>{properties}</w:rPr><w:{kind} xml:space="preserve">{text}</w:{kind}></w:r>'


RAISED = '<w:vertAlign w:val="superscript"/>'


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (
            f"<w:p>{run('10')}{run('-', RAISED)}{run('6', RAISED)}{run(' m on the 1')}{run('st', RAISED)}</w:p>",
            "10^-6 m on the 1st",
        ),
        (
            f"<w:p>{run('The fine is ')}<w:ins>{run('5,000 euros')}</w:ins><w:del>{run('40', kind='delText')}</w:del>"
            f"<w:moveFrom>{run(' due')}</w:moveFrom>.</w:p>",
            "The fine is 5,000 euros",
        ),
        (f"<w:p>Due <w:sdt><w:sdtContent>{run('on 3 May')}</w:sdtContent></w:sdt></w:p>", "on 3 May"),
        (f"<w:sdt><w:sdtContent><w:p>{run('Iron rusts.')}</w:p></w:sdtContent></w:sdt>", "Iron rusts."),
        (
            "<w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val='3'/></w:tcPr>"
            f"<w:p>{run('Fees')}</w:p></w:tc></w:tr><w:tr><w:tc><w:p>{run('a')}</w:p></w:tc><w:sdt><w:sdtContent><w:tc>"
            f"<w:p>{run('b')}</w:p><w:p>{run('c')}</w:p></w:tc></w:sdtContent></w:sdt></w:tr></w:tbl>",
            "Fees\na | b c",
        ),
    ],
)
def test_a_docx_is_read_whole_and_once(body: str, text: str) -> None:
    assert load_bytes(word_bytes(body), "a.docx")[0].text.strip() == text


def with_notes(body: str, notes: str) -> str:
    """The text of a DOCX with these footnotes."""
    word = Word(io.BytesIO(word_bytes(body)))
    space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    notes = f"<w:footnotes {space}>{notes}</w:footnotes>"
    part = Part(PackURI("/word/footnotes.xml"), CONTENT_TYPE.WML_FOOTNOTES, notes.encode(), word.part.package)
    word.part.relate_to(part, RELATIONSHIP_TYPE.FOOTNOTES)
    out = io.BytesIO()
    word.save(out)
    return load_bytes(out.getvalue(), "a.docx")[0].text


def boxed(text: str) -> str:
    """A run with a text box, drawn for new and for old readers."""
    box = f"<w:txbxContent><w:p>{text}</w:p></w:txbxContent>"
    return (
        '<w:r><mc:AlternateContent xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006">'
        f'<mc:Choice Requires="wps">{box}</mc:Choice><mc:Fallback>{box}</mc:Fallback></mc:AlternateContent></w:r>'
    )


REFERENCE = '<w:r><w:footnoteReference w:id="2"/></w:r>'
NOTE = f'<w:footnote w:id="2"><w:p>{run("Seen in May.")}</w:p></w:footnote>'


@pytest.mark.parametrize(
    ("body", "notes", "blocks"),
    [
        (
            f"<w:p>{run('Iron rusts.')}{REFERENCE}{boxed(run('Ice floats.'))}</w:p><w:p>{run('End.')}</w:p>",
            NOTE,
            ["Iron rusts.", "Ice floats.", "Seen in May.", "End."],
        ),
        (  # the note of a box, and a box in a box, once
            f"<w:p>{run('Iron rusts.')}{boxed(run('Ice floats.') + REFERENCE + boxed(run('So it does.')))}</w:p>",
            NOTE,
            ["Iron rusts.", "Ice floats.", "So it does.", "Seen in May."],
        ),
        (
            f"<w:tbl><w:tr><w:tc><w:p>{run('Cell')}{boxed(run('Ice floats.'))}</w:p></w:tc></w:tr></w:tbl>",
            NOTE,
            ["Cell", "Ice floats."],
        ),
        (  # a note that was deleted
            f'<w:p>{run("Iron rusts.")}<w:del w:id="9">{REFERENCE}</w:del></w:p>',
            NOTE,
            ["Iron rusts."],
        ),
        (  # a drawing with paragraphs of its own kind
            f"<w:p>{run('Iron rusts.')}{REFERENCE}</w:p>",
            NOTE.replace("</w:p>", '<w:r><a:p xmlns:a="http://a.org"/></w:r></w:p>'),
            ["Iron rusts.", "Seen in May."],
        ),
    ],
)
def test_text_boxes_and_notes_of_a_docx_follow_their_paragraph(body: str, notes: str, blocks: list[str]) -> None:
    assert with_notes(body, notes).split("\n\n") == [*blocks, ""]


@pytest.mark.parametrize(
    ("pages", "kept"),
    [
        (["Gears 3 of 12\nOne.", "Gears 4 of 12\nTwo.", "Gears 5 of 12\nThree."], ["One.", "Two.", "Three."]),
        (["02 May 40\nOne.", "07 May 31\nTwo.", "19 May 55\nThree."], ["02 May 40\nOne.", "07 May 31\nTwo."]),
        (["One.\nLee 1/9", "Two.\nLee 1/9", "Three.\nLee 2/9", "Four.\nLee 3/9"], ["One.", "Two.", "Three.", "Four."]),
        (["10\nOne.", "12\nTwo.", "14\nThree."], ["One.", "Two.", "Three."]),  # two pages of a book on one
        (["14\nOne.", "12\nTwo.", "10\nThree."], ["14\nOne.", "12\nTwo.", "10\nThree."]),
        (["Part 2\nOne.", "Part 9\nTwo.", "Part 17\nThree."], ["Part 2\nOne.", "Part 9\nTwo.", "Part 17\nThree."]),
    ],
)
def test_a_line_with_the_number_of_its_page_is_left_out_and_one_with_other_numbers_kept(
    pages: list[str], kept: list[str]
) -> None:
    assert without_running_lines(pages)[: len(kept)] == kept


def without_targets() -> bytes:
    """A DOCX whose relations lead nowhere."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(docx_bytes())) as whole, zipfile.ZipFile(out, "w") as broken:
        for member in whole.namelist():
            data = whole.read(member)
            broken.writestr(member, re.sub(rb' Target="[^"]*"', b"", data) if member.endswith(".rels") else data)
    return out.getvalue()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (docx_bytes()[:400], "damaged"),
        (without_targets(), "damaged"),
        (zip_bytes({"a.txt": b"no word file"}), "damaged"),
        (with_member(docx_bytes(), "word/vbaProject.bin", b"x"), "macros"),
        (with_member(docx_bytes(), "word/media/x.bin", b"0" * 60_000_000), "unpacks to more"),
        (b"plain words", "does not start like a DOCX"),
    ],
)
def test_docx_that_is_not_opened(data: bytes, words: str) -> None:
    with pytest.raises(FileError, match=words):
        load_bytes(data, "x.docx")


def test_html_main_content_without_menus_and_scripts() -> None:
    paragraph = "Iron rusts in damp air because water and oxygen reach the metal. " * 6
    source = (
        "<html><head><title>Rust &amp; iron</title><script>alert('x')</script></head><body>"
        "<nav><a href='/'>Home</a><a href='/b'>Buy now</a></nav><article><h1>Rust</h1>"
        f"<p>{paragraph}</p><h2>Cure</h2><p>{paragraph.replace('Iron', 'Steel')}</p>"
        "<img src='http://tracker.example/x.png'></article><footer>Cookies</footer></body></html>"
    )
    (document,) = load_bytes(source.encode(), "rust.html")
    assert document.title == "Rust & iron"
    assert "Iron rusts in damp air" in document.text
    assert "Steel rusts" in document.text
    for noise in ("alert", "Buy now", "tracker", "<p>"):
        assert noise not in document.text
    assert "Cure" in [document.text[s.start : s.start + len(s.title)] for s in document.sections]


@pytest.mark.parametrize("cell", ["th", "td"])
def test_a_table_of_html_keeps_its_rows_with_and_without_header_cells(cell):
    bare = "<tr><td></td><td></td></tr>" if cell == "td" else ""  # a row of pictures is not the line below the head
    rows = f"{bare}<tr><td>SSH</td><td>22/tcp</td></tr><tr><td>DNS</td><td>53/udp</td></tr>"
    head = f"<tr><{cell}>Service</{cell}><{cell}>Port</{cell}></tr>"
    said = f"<p>{'These ports are open by default on the server. ' * 5}</p>"
    page = f"<html><body><article>{said}<table>{head}{rows}</table>{said}</article></body></html>"
    (document,) = load_bytes(page.encode(), "ports.html")
    assert "Service | Port\n" in document.text and "\nSSH | 22/tcp\nDNS | 53/udp\n" in document.text


def test_headings_of_a_page_without_a_main_element_are_sections_in_a_box_too():
    said = f"<p>{'These ports are open by default on the server. ' * 5}</p>"
    boxed = "<div class='titlepage'><div><h2 class='title'><a id='x'></a>1.1. <i>Beta</i></h2></div><hr></div>"
    page = f"<html><body><h1>Alpha</h1>{said}{boxed}{said}<ol><li>{said * 3}</li></ol></body></html>"
    (document,) = load_bytes(page.encode(), "ports.html")
    assert [(section.level, section.title) for section in document.sections] == [(1, "Alpha"), (2, "1.1. Beta")]
    assert document.text.count("These ports") == 25


def test_what_is_raised_above_the_line_stays_apart():
    said = "It counts 2<sup>31</sup> seconds and 10<sup>-3</sup> s, as told<sup><a>3</a></sup> on the 5<sup>th</sup>."
    (document,) = load_bytes(f"<html><body><article><p>{said * 5}</p></article></body></html>".encode(), "a.html")
    assert document.text.startswith("It counts 2^31 seconds and 10^-3 s, as told [3] on the 5th.")


def test_preformatted_text_keeps_its_lines_and_has_no_headings():
    said = f"<p>{'Run the commands below as the administrator. ' * 9}</p>"
    code = "<pre>Password: x\n# apt update\n# apt <b>upgrade</b></pre>"
    page = f"<html><body><h2>Updates</h2>{said}{code}<!-- a -->Then call <tt>sync</tt>\nto end.{said}</body></html>"
    (document,) = load_bytes(page.encode(), "updates.html")
    assert [section.title for section in document.sections] == ["Updates"]
    assert "\nPassword: x\n# apt update\n# apt upgrade\n\nThen call sync to end.\n" in document.text


def test_the_permalink_of_a_heading_is_not_read():
    said = f"<p>{'Iron rusts in damp air because of water. ' * 9}</p>"
    page = f"<html><body><h1>Rust<a href='#rust'>\N{PILCROW SIGN}</a></h1>{said}</body></html>"
    assert [section.title for section in load_bytes(page.encode(), "a.html")[0].sections] == ["Rust"]


def test_headings_inside_headings_are_read():
    said = f"<p>{'Iron rusts in damp air because of water. ' * 9}</p>"
    (document,) = load_bytes(f"<html><body><h1>A<h2>B</h2></h1>{said}</body></html>".encode(), "a.html")
    assert "Iron rusts" in document.text


def test_a_cell_over_several_rows_is_repeated_so_that_the_others_keep_their_columns():
    rows = (
        "<tr><td rowspan=2>USA<td>59<td>210<tr><td>64<td>285",
        "<tr><td>Chad<td rowspan='3'>40<td>90<tr><td>Mali<td rowspan=9999>95<tr><td>Peru<tr><td colspan=2>Fiji",
    )
    page = f"<h2>Limits</h2><table><tr><th>Land<th>Meals<th>Hotel{''.join(rows)}</table><p>Late claims are refused.</p>"
    text = load_bytes(page.encode(), "t.html")[0].text
    told = ("USA | 59 | 210", "USA | 64 | 285", "Chad | 40 | 90", "Mali | 40 | 95", "Peru | 40 | 95", "Fiji")
    assert all(row in text for row in told)


def test_a_bar_within_a_cell_parts_no_cells():
    (document,) = load_bytes(b"| Part | Use |\n|---|---|\n| a \\| b | both |\n", "t.md")
    assert document.text == "Part | Use\na|b | both\n"


@pytest.mark.parametrize(
    ("items", "told"),
    [
        ("<ol start=4><li>Open the <b>valve</b>.<li>Close it.</ol>", ["4. Open the valve.", "5. Close it."]),
        ("<ol type=a><li>Deaths<li>Births</ol>", ["a. Deaths", "b. Births"]),
        ("<ol><li value=7>Seven<li>Eight<li value=x>Nine</ol>", ["7. Seven", "8. Eight", "9. Nine"]),
        ("<ol><li>One<li>Two</ol>", ["1. One", "2. Two"]),
        ("<ol start=3><li>Three<ul><li>by hand</ul><li>Four</ol>", ["1. Three", "2. Four"]),
        ("<ol type=A start=26><li>Last<li>Beyond</ol>", ["Z. Last", "27. Beyond"]),
        ("<ul><li>These:<ol type=a><li>Deaths<li>Births</ol></ul>", ["- These:", "  1. Deaths", "  2. Births"]),
    ],
)
def test_a_list_keeps_its_own_numbers_and_letters(items, told):
    page = f"<html><body><main><h1>Tank</h1><p>{'The tank is filled by hand. ' * 9}</p>{items}</main></body></html>"
    lines = load_bytes(page.encode(), "t.html")[0].text.splitlines()
    assert [line for line in lines if line in told] == told


def test_html_without_main_content_gives_the_visible_text() -> None:
    (document,) = load_bytes(b"<html><body><div>Iron.</div><script>x()</script></body></html>", "a.htm")
    assert document.text.strip() == "Iron."
    with pytest.raises(FileError, match="has no text"):
        load_bytes(b"<html><body><script>x()</script></body></html>", "a.htm")


def test_csv_rows_are_documents() -> None:
    rows = load_bytes(b'name;mass\nIron;"5,0 g"\n;\nSalt;2 g\n', "t.csv")
    assert [(d.id, d.text) for d in rows] == [
        ("t.csv#1", "name: Iron | mass: 5,0 g"),
        ("t.csv#3", "name: Salt | mass: 2 g"),
    ]


@pytest.mark.parametrize(
    ("table", "texts"),
    [
        (
            'id,title,text\n400,"Minutes","She said ""5,000 euros"", then left."\n',
            ['She said "5,000 euros", then left.'],
        ),
        ("id;text\n1;the lab's own, and Ada's\n2;'a;b'\n", ["the lab's own, and Ada's"]),
        ('id, text\n1, "Heat, then cool"\n', ["Heat, then cool"]),
        ("text\nHeat; then cool\nStir; then wait\n", ["Heat; then cool", "Stir; then wait"]),
        ("a,,\n1,2,\n", ["a: 1 | column 2: 2"]),
    ],
)
def test_cells_of_a_table_are_whole(table: str, texts: list[str]) -> None:
    assert [row.text for row in load_bytes(table.encode(), "t.csv", bad=lambda _: None)] == texts


def test_a_row_of_too_many_cells_and_a_column_named_twice_are_told() -> None:
    said: list[str] = []
    table = b"id,text\n1,Heat to 90 degrees, then cool\n2,Wait,,\n"
    (row,) = load_bytes(table, "t.csv", bad=lambda error: said.append(str(error)))
    assert (row.id, row.text) == ("t.csv#id=2", "Wait")
    assert said == ["t.csv, row 1, has more cells than the header line. Put a cell with a delimiter in quotes."]
    with pytest.raises(FileError, match="the column 'value' twice"):
        load_bytes(b"name,value,value\nkiln,1,2\n", "t.csv")


def test_csv_rows_without_a_title_column_are_named_by_their_first_short_cell_else_by_their_place() -> None:
    rows = load_bytes(b"id,name,note\n1,Ada Quill,Chemist.\n2,,\n", "people.csv")
    assert [row.title for row in rows] == ["Ada Quill", "people.csv, row 2"]


def test_rows_of_one_title_are_told_apart_by_their_place_unless_a_column_gave_it() -> None:
    rows = load_bytes(b"supplier,item\nBright Lamps,Tube\nHollis,Cuts\nBright Lamps,Sign\n", "bought.csv")
    lamps = ["Bright Lamps (bought.csv, row 1)", "Bright Lamps (bought.csv, row 3)"]
    assert [row.title for row in rows] == [lamps[0], "Hollis", lamps[1]]
    titled = load_bytes(b"title,text\nRust,Iron rusts.\nRust,Salt helps.\n", "rust.csv")
    assert [row.title for row in titled] == ["Rust", "Rust"]


def test_csv_with_named_columns_and_tsv() -> None:
    data = b"key\thead\tbody\nk1\tH\tIron rusts.\n"
    (row,) = load_bytes(data, "t.tsv", fields=Fields(id="key", title="head", text="body"))
    assert (row.id, row.title, row.text) == ("k1", "H", "Iron rusts.")
    with pytest.raises(FileError, match="no column 'story'"):
        load_bytes(data, "t.tsv", fields=Fields(text="story"))
    with pytest.raises(FileError, match="no row"):
        load_bytes(b"a,b\n", "t.csv")
    with pytest.raises(FileError, match="'a' twice"):  # else the second would take the first one's place unsaid
        load_bytes(b"_id,text\na,One.\na,Two.\n", "t.csv")


def test_folders_and_archives_with_relative_names(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.txt").write_text("Iron.")
    (folder / "deep" / "a.txt").write_text("Gold.")
    (folder / ".hidden.txt").write_text("No.")
    (folder / "picture.png").write_bytes(b"\x89PNG")
    (folder / "old.zip").write_bytes(zip_bytes({"c.txt": b"Tin."}))
    (folder / "link.txt").symlink_to("/etc/hostname")
    packed = tmp_path / "more.tar.gz"
    with tarfile.open(packed, "w:gz") as archive:
        archive.add(folder / "deep" / "a.txt", "more/b.txt")
    documents, skipped = read_files([folder, packed])
    assert {d.id: d.text for d in documents} == {"a.txt": "Iron.", "deep/a.txt": "Gold.", "more/b.txt": "Gold."}
    assert [name for name, _ in skipped] == ["link.txt", "old.zip", "picture.png"] and "by itself" in skipped[1][1]
    assert "It is a link" in skipped[0][1]


def test_a_linked_folder_and_a_folder_without_files_are_told(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a.txt").write_text("Iron.")
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / ".hidden").write_text("No.")
    (tmp_path / "full" / "more").symlink_to(tmp_path / "bare")
    documents, skipped = read_files([tmp_path / "full", tmp_path / "bare"])
    assert [d.id for d in documents] == ["a.txt"]
    assert [name for name, _ in skipped] == ["more", "bare"] and "no files" in skipped[1][1]


@pytest.mark.skipif(os.name != "posix", reason="Windows has no pipes in folders and names files in UTF-16")
def test_a_pipe_and_a_name_that_is_not_text_are_skipped(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Iron.")
    (tmp_path / os.fsdecode(b"caf\xe9.txt")).write_text("Gold.")
    for name in ("b.txt", "c.jsonl"):
        os.mkfifo(tmp_path / name)
    documents, skipped = read_files([tmp_path])
    assert [d.id for d in documents] == ["a.txt"]
    assert dict(skipped) == {
        "b.txt": "b.txt is not a file that can be read. Check the path.",
        "c.jsonl": "c.jsonl is not a file that can be read. Check the path.",
        "caf?.txt": "Its name is not UTF-8 text. Rename the file.",
    }


def test_path_tricks_links_and_nested_archives_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "t.zip"
    path.write_bytes(
        zip_bytes({"../up.txt": b"x", "/abs.txt": b"x", "c:\\w.txt": b"x", "in.zip": b"x", "good.txt": b"Fine."})
    )
    documents, skipped = read_files([path])
    assert [d.id for d in documents] == ["good.txt"]
    assert len(skipped) == 4
    tar = tmp_path / "t.tar"
    with tarfile.open(tar, "w") as archive:
        link = tarfile.TarInfo("passwd.txt")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    assert read_files([tar]) == ([], [])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["t.tar", "t.zip"]


def test_bombs_are_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = tmp_path / "bomb.zip"
    bomb.write_bytes(zip_bytes({"zeros.txt": b"0" * 40_000_000}))
    documents, skipped = read_files([bomb])
    assert documents == []
    assert "unpacks to more" in skipped[0][1]
    monkeypatch.setattr("engine.corpus.sources.UNPACKED", 3_000_000)
    packed = tmp_path / "bomb.tgz"
    with tarfile.open(packed, "w:gz") as archive:
        member = tarfile.TarInfo("zeros.txt")
        member.size = 9_000_000
        archive.addfile(member, io.BytesIO(b"0" * member.size))
    assert "unpacks to more" in read_files([packed])[1][0][1]
    assert formats.UNPACKED > 3_000_000


@pytest.mark.parametrize("name", ["x.zip", "x.tar", "x.tgz"])
def test_damaged_archives(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"\x1f\x8bnot an archive at all" if name == "x.tgz" else b"not an archive at all")
    documents, skipped = read_files([path])
    assert documents == []
    assert "damaged" in skipped[0][1]


def test_two_files_of_one_name_are_told(tmp_path: Path) -> None:
    for place, text in (("a", "Iron."), ("b", "Gold."), ("c", "Iron.")):
        (tmp_path / place).mkdir()
        (tmp_path / place / "n.txt").write_text(text)
    documents, skipped = read_files([tmp_path / p / "n.txt" for p in "abc"])
    assert [d.text for d in documents] == ["Iron."]
    assert [name for name, _ in skipped] == ["n.txt"]


def test_a_line_of_a_megabyte_and_odd_text_are_harmless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUNDWORK_HOME", str(tmp_path / "home"))
    (tmp_path / "long.txt").write_text("word " * 200_000 + "x" * 50_000)
    (tmp_path / "odd.txt").write_text(
        "\u202eright to left\u0000 <script>alert(1)</script> $x$ :red[y]", encoding="utf-8"
    )
    report = Collection.create("c", ScriptedEmbedder()).ingest([tmp_path / "long.txt", tmp_path / "odd.txt"])
    assert report.documents == 2
    assert report.passages > 1_600
