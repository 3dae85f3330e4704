"""Every source that code or docs name can be opened: a paper's section that exists, a listed reference, a file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CODE = [path for room in ("engine", "training", "components", "pages", "bench") for path in (ROOT / room).rglob("*.py")]
DOCS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
CARDS = list((ROOT / "assets" / "models").rglob("*.md"))
BIBLIOGRAPHY = (ROOT / "docs" / "bibliography.md").read_text(encoding="utf-8")
PAPERS = ("Attr-RAG", "RAISE", "grounded refinement", "ARE")
_ID = r"(?:[IVX]+(?:-[A-Z](?:-[a-z])?)?|\d(?:\.\d){0,2}|[A-E](?:\.\d)?)"
_LIST = rf"{_ID}(?:(?:, (?:and )?| and | or | to ){_ID})*\b"
_CITED = re.compile(
    rf"\b(Attr-RAG|RAISE|[Gg]rounded refinement|ARE)(?: \([^)]*\))?,? "
    rf"(?:section|appendi)(?:s|x|ces)? ({_LIST})(?:,? (?:and )?(?:section|appendi)(?:s|x|ces)? ({_LIST}))?"
)
_AUTHORS = re.compile(r"\b([A-Z][a-z]+(?:-[A-Z][a-z]+)?)(?: et al\.| and [A-Z][a-z]+),? \(?((?:19|20)\d\d)\b")


def papers() -> dict[str, set[str]]:
    """The sections of each of the four papers, ranges written out."""
    rows = [line.strip("| ").split(" | ") for line in BIBLIOGRAPHY.splitlines() if line.startswith("| ")]
    return {row[0]: {s for part in row[2].split(", ") for s in spread(part)} for row in rows if row[0] in PAPERS}


def spread(part: str) -> list[str]:
    """The sections of "3.1 to 3.3", or the one section that is named.

    >>> spread("A.1 to A.3")
    ['A.1', 'A.2', 'A.3']
    """
    first, _, last = part.partition(" to ")
    stem, _, number = first.rpartition(".")
    return [f"{stem}.{n}" for n in range(int(number), int(last.rpartition(".")[2]) + 1)] if last else [first]


def citations(text: str) -> list[tuple[str, str]]:
    """(paper, section) of everything in `text` that is cited by section.

    >>> citations("(grounded refinement, sections 3.4\\n# and 4.3.2; ARE, section 4.3 and appendix A.4)")
    [('grounded refinement', '3.4'), ('grounded refinement', '4.3.2'), ('ARE', '4.3'), ('ARE', 'A.4')]
    """
    flat = re.sub(r"\s+#?\s*", " ", text)
    found = []
    for match in _CITED.finditer(flat):
        name = match[1][0].lower() + match[1][1:] if match[1].lower().startswith("g") else match[1]
        found += [(name, section) for group in match.groups()[1:] if group for section in re.findall(_ID, group)]
    return found


def test_the_four_papers_are_listed_with_their_sections():
    assert set(papers()) == set(PAPERS)
    assert spread("A.1 to A.3") == ["A.1", "A.2", "A.3"]


def test_citations_are_found_across_lines():
    text = "(grounded refinement, sections 3.4\n# and 4.3.2; ARE, section 4.3 and appendix A.4; RAISE, section 9)"
    cited = citations(text)
    assert cited == [
        *(("grounded refinement", "3.4"), ("grounded refinement", "4.3.2")),
        *(("ARE", "4.3"), ("ARE", "A.4"), ("RAISE", "9")),
    ]
    assert cited[-1][1] not in papers()["RAISE"]


@pytest.mark.parametrize("path", [*CODE, *DOCS], ids=lambda path: str(path.relative_to(ROOT)))
def test_every_section_that_is_cited_is_one_of_its_paper(path):
    known = papers()
    wrong = [
        f"{paper}, {section}"
        for paper, section in citations(path.read_text(encoding="utf-8"))
        if section not in known[paper]
    ]
    assert not wrong


def test_every_reference_is_in_the_bibliography_with_its_year():
    known = {(name, year) for name, year in re.findall(r"^- ([A-Z][\w-]+).*?, (\d{4})\b", BIBLIOGRAPHY, re.MULTILINE)}
    known |= {("Oh", "2025"), ("Yan", "2024"), ("Ngam", "2026")}
    for path in (*CODE, *DOCS, *CARDS):
        cited = set(_AUTHORS.findall(re.sub(r"\s+#?\s*", " ", path.read_text(encoding="utf-8"))))
        assert cited <= known, f"{path.relative_to(ROOT)}: {sorted(cited - known)}"


def test_no_paper_of_the_bibliography_has_two_years():
    titles = re.findall(r"^- .*?(\d{4})[^*]*\*(.+?)\*", BIBLIOGRAPHY, re.MULTILINE)
    assert len(titles) == len({title for _, title in titles}) > 30


def test_every_page_and_file_that_code_names_is_there():
    named = re.compile(
        r"(?<![\w/])(?:docs|engine|training|components|pages|bench|assets|tests)/[\w/.-]*\.(?:md|py|json|toml)\b"
    )
    for path in (*CODE, *DOCS, *CARDS):
        for name in named.findall(path.read_text(encoding="utf-8")):
            assert (ROOT / name).exists(), f"{path.relative_to(ROOT)}: {name}"


def test_every_python_file_that_code_names_is_there():
    named = re.compile(r"(?<![\w./*{-])((?:[a-z_]+/)*[a-z_]+\.py)\b")
    names = {path.name for path in (*CODE, ROOT / "app.py")}
    for path in CODE:
        for name in named.findall(path.read_text(encoding="utf-8")):
            places = [root / name for root in (ROOT, ROOT / "engine", path.parent)]
            there = any(place.exists() for place in places) if "/" in name else name in names
            assert there, f"{path.relative_to(ROOT)}: {name}"


def test_every_module_that_docs_name_is_there():
    named = re.compile(r"\b((?:engine|training|components|pages|bench)(?:\.[a-z_]+)+)\b")
    for path in (*DOCS, *CARDS):
        for name in named.findall(path.read_text(encoding="utf-8")):
            place = ROOT / name.replace(".", "/")
            attribute = place.parent.with_suffix(".py").exists()
            assert place.with_suffix(".py").exists() or place.is_dir() or attribute, f"{path.name}: {name}"


def test_every_setting_that_docs_name_is_one():
    from engine.core.settings import Settings

    settings = Settings().to_dict()
    named = re.compile(rf"\b({'|'.join(settings)})\.([a-z_]+)\b(?!\.)")
    for path in DOCS:
        text = re.sub(r"\S*/\S*|\w+\.(?:md|py|toml|jsonl?)\b", "", path.read_text(encoding="utf-8"))
        for stage, field in named.findall(text):
            assert field in settings[stage], f"{path.name}: {stage}.{field}"


def test_no_reference_leads_out_of_the_repository():
    assert not [path for path in (*CODE, *DOCS) if re.search(r"METHODS(?:\.md)?,? section", path.read_text("utf-8"))]
