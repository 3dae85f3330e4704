"""A case as a report: the sections in reading order, from the answer to the inputs."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from engine.analyses.attribution import attribution_blocks, attribution_of
from engine.analyses.case_verdict import (
    VERDICTS,
    CaseVerdict,
    SentenceVerdict,
    case_verdict,
    changed_by_review,
    in_words,
    open_items,
    verdict_line,
)
from engine.analyses.facts import KIND as FACTS, record_of, tracked_runs, undecided
from engine.analyses.imported import KIND as LABELS
from engine.analyses.kind import TOKEN_MAP
from engine.analyses.registry import find
from engine.answer.citations import without_markers
from engine.answer.in_documents import unknown
from engine.answer.quoting_reader import whole_id
from engine.cases.blocks import (
    Block,
    Cell,
    Code,
    Facts,
    Fold,
    Labelled,
    Notice,
    ReportDocument,
    Section,
    Table,
    Text,
    TextRun,
    answer_runs,
    cited,
    decided_by,
    marked_runs,
    of_passages,
    place,
    plain,
    short,
    table,
    when,
)
from engine.cases.places import leaves, revision
from engine.cases.review import SENTENCE, Chain, Mark, Review, check_chain, review_of, status_name
from engine.core.canonical import content_hash
from engine.core.errors import RecordError
from engine.core.files import ASSETS
from engine.core.text import counted
from engine.core.values import IMPORTED, Analysis, Case, Stamp, own_title
from engine.methods.are.backtrack import change_said
from engine.methods.are.values import AreRecord
from engine.methods.subject import banner
from engine.models.self_test import SelfTestCheck, remembered
from engine.report.html import to_html
from engine.report.markdown import to_markdown

APPENDIX = (
    "The rest of this report is the full case. Lines with a triangle open on screen; print leaves out their content."
)
TERMS = "Meaning and limits of the terms in this report."


def html_report(case: Case, history: Sequence[Mark] = (), key: bytes | None = None) -> str:
    """The report as one self-contained HTML file; `key` verifies a signed history."""
    return to_html(report(case, history, key))


def markdown_report(case: Case, history: Sequence[Mark] = (), key: bytes | None = None) -> str:
    """The report as Markdown."""
    return to_markdown(report(case, history, key))


def facts_report(case: Case, record: AreRecord, review: Review) -> str:
    """One check of the answer as Markdown: its text with the edits, facts, verdicts, evidence, measures."""
    blocks = tuple(FACTS.blocks(case, record, review))
    return to_markdown(
        ReportDocument(case.question, f"Groundwork case {case.id}", f"Check by {record.verifier}.", blocks)
    )


def report(case: Case, history: Sequence[Mark] = (), key: bytes | None = None) -> ReportDocument:
    """The report as blocks."""
    chain = check_chain(history, case.id, key)
    review = review_of(history)
    analyses: tuple[Block, ...] = tuple(
        analysis_section(case, a, number, review) for number, a in enumerate(case.analyses, start=1)
    )
    tests = self_test_blocks(case)
    content = content_hash(case)
    terms = Facts(tuple(DEFINITIONS[name] for name in used(case, bool(history))))
    given = "Sources given with the answer" if case.origin == "imported" else "Passages given to the writer"
    sections = (
        Section("Summary", summary_blocks(case, review, content, chain.head), id="summary"),
        Section("Appendix", (plain(APPENDIX), Facts(_summary(case, review)), *banners(case)), id="appendix"),
        Section("Review", review_blocks(history, review, chain), id="review"),
        Section("Answer as it was given", _answer(case), id="answer"),
        Section(f"{given} ({len(case.passages)})", _passages(case, review), id="passages"),
        *([Section("Analyses", analyses, id="analyses")] if analyses else []),
        Section("How the answer was made", _making(case), id="making"),
        Section("Methods", (Fold("The methods in words", (plain(TERMS, "note"), terms)),), id="methods"),
        *([Section("Self-tests of the models", (Fold("Every check", tests),), id="self-tests")] if tests else []),
        Section("Provenance", _provenance(case, chain.head), id="provenance"),
    )
    return ReportDocument(
        title=case.question,
        lead=f"Groundwork case {case.id}",
        foot=f"Case {case.id}. Content hash {content}. Head hash {chain.head or 'none'}.",
        blocks=sections,
    )


def banners(case: Case) -> tuple[Block, ...]:
    """The notes that belong to every figure: who wrote and who scored."""
    scorers = dict.fromkeys(a.stamp.model for a in case.analyses if a.kind == TOKEN_MAP or attribution_of(a))
    return tuple(Notice(said) for scorer in scorers if (said := banner(case.stamp.model, scorer)))


def _status(review: Review) -> str:
    if not review.reviewer:
        return status_name(review.status)
    done = "reopened" if review.status == "open" else review.status
    return f"{done} by {review.reviewer}, {when(review.time)}"


def _summary(case: Case, review: Review) -> tuple[tuple[str, str], ...]:
    pairs = [
        ("Status", _status(review)),
        ("Created", when(case.created)),
        ("Corpus", case.corpus or ""),
        ("Documents searched", ", ".join(case.searched)),
        ("Title", case.title),
        ("Tags", ", ".join(case.tags)),
        ("New version of", case.parent or ""),
        ("Probability that the passages answer", "" if case.answerable is None else f"{case.answerable:.2f}"),
    ]
    return tuple((name, value) for name, value in pairs if value)


def _writer(case: Case) -> str:
    """Who wrote the answer: the model that ran here, or whom the imported record names."""
    if case.origin != "imported":
        return case.stamp.model
    return "not named in the imported record" if case.stamp.model == IMPORTED else f"{case.stamp.model} (imported)"


def labels_of(case: Case) -> list[Labelled]:
    """Labelled spans of the answer that came with an import."""
    with suppress(RecordError):  # the section on the analysis says that it cannot be read
        return [(span.start, span.end, span.label) for labels in LABELS.of(case) for span in labels.spans]
    return []


def _answer(case: Case) -> tuple[Block, ...]:
    blocks: list[Block] = []
    if case.answer.refused:
        blocks.append(Notice("The writer says that the passages do not answer the question."))
    if not case.answer.finished:
        blocks.append(Notice("The answer is unfinished: the run was stopped or is still running."))
    blocks.append(Text(answer_runs(case.answer, case.passages, labels_of(case)), "answer"))
    invalid = sorted({c.number for c in case.answer.citations if not c.valid})
    if invalid:
        listed = ", ".join(map(str, invalid))
        blocks.append(Notice(f"The answer cites passages that do not exist: {listed}."))
    if case.options:
        options = ((str(i), option) for i, option in enumerate(case.options, start=1))
        blocks.append(table("Options of the question", ("No.", "Option"), options))
    return tuple(blocks)


def _passages(case: Case, review: Review) -> tuple[Block, ...]:
    if not case.passages:
        return (plain("The writer had no passages."),)
    markers = Counter(c.number for c in case.answer.citations if c.valid)
    sections: list[Block] = []
    for number, passage in enumerate(case.passages, start=1):
        times = {0: "not cited", 1: "cited once"}.get(markers[number], f"cited {markers[number]} times")
        said = [place(passage), times]
        if passage.relevant is not None:
            said.append(f"labelled {'relevant' if passage.relevant else 'not relevant'} in its data set")
        if number in review.labels:
            said.append(f"labelled {review.labels[number].value} by {review.labels[number].author}")
        title = own_title(number, passage.label)
        quoted = [(start, end) for _, quote, start, end in case.answer.quotes if quote == number]
        sections.append(
            Section(
                f"{number}. {title}" if title else f"Passage {number}",
                (plain("; ".join(said), "note"), Text(marked_runs(passage.text, quoted), "passage")),
                id=f"passage-{number}",
                level=3,
            )
        )
    return tuple(sections)


def _making(case: Case) -> tuple[Block, ...]:
    blocks: list[Block] = []
    if case.steps:
        rows = (
            (step.name, f"{step.seconds:.2f}", ", ".join(f"{v:,.0f} {k}" for k, v in step.counts.items()))
            for step in case.steps
        )
        blocks.append(table("Steps as they ran", ("Step", "Seconds", "Counts"), rows, numeric={1}))
    if case.hits:
        blocks.append(Fold(f"Retrieved passages with their scores ({len(case.hits)})", (_hits(case),)))
    if case.chunk_sets:
        blocks.append(Fold(f"Chunk sets in re-rank order ({len(case.chunk_sets)})", (_sets(case),)))
    if case.prompt is not None:
        parts = [Code(s.text, f"Segment {i}: {s.kind} ({s.role})") for i, s in enumerate(case.prompt.segments, start=1)]
        blocks.append(Fold("The exact prompt", tuple(b for p in parts for b in (plain(p.label, "note"), p))))
    if not blocks:
        blocks.append(plain(f"The writer of the answer: {_writer(case)}. How it was written is not stored."))
    return tuple(blocks)


def _hits(case: Case) -> Table:
    given = {whole_id(passage): number for number, passage in enumerate(case.passages, start=1)}
    parts = sorted({name for hit in case.hits for name in hit.parts})
    rows: list[list[Cell | str]] = []
    for rank, hit in enumerate(case.hits, start=1):
        number = given.get(hit.passage.id)
        where = Cell(f"passage {number}", places=of_passages(number)) if number else "not given"
        scores = (f"{hit.parts[name]:.3f}" if name in hit.parts else "" for name in parts)
        rows.append([str(rank), Cell(hit.passage.label, note=place(hit.passage)), where, f"{hit.score:.3f}", *scores])
    columns = ("Rank", "Passage", "Given to the writer", "Score", *parts)
    return table("Retrieved passages, best first", columns, rows, numeric=range(3, len(columns)))


def _sets(case: Case) -> Table:
    rows = (
        (str(rank), s.passages[0].label, ", ".join(str(p.ordinal + 1) for p in s.passages), f"{s.score:.3f}")
        for rank, s in enumerate(case.chunk_sets, start=1)
        if s.passages
    )
    return table("Chunk sets", ("Rank", "Document", "Chunks", "Score"), rows, numeric={3})


def _provenance(case: Case, head: str) -> tuple[Block, ...]:
    hashes = (
        ("Content hash", content_hash(case)),
        ("Inputs hash (question and passages)", case.stamp.inputs),
        ("Head hash of the review history", head or "none"),
        ("Case schema", str(case.schema)),
    )
    stamps = [Section("The answer", _stamp(case.stamp), level=3)]
    stamps += [Section(f"Analysis: {a.id}", _stamp(a.stamp), level=3) for a in case.analyses]
    return (Facts(hashes), Fold("Models, settings and versions of every part", tuple(stamps)))


def _stamp(stamp: Stamp) -> tuple[Block, ...]:
    pairs = [
        ("Model", stamp.model),
        ("Revision", stamp.revision),
        ("Number format", stamp.dtype),
        ("Template hash", stamp.template),
        ("Seed", short(stamp.seed)),
        ("Inputs hash", stamp.inputs),
        ("Created", when(stamp.created)),
        ("Versions", ", ".join(f"{name} {version}" for name, version in stamp.versions.items())),
    ]
    settings = msgspec.json.format(msgspec.json.encode(stamp.settings, order="sorted"), indent=2).decode()
    facts = Facts(tuple((name, value) for name, value in pairs if value))
    return (facts, *([Fold("Settings", (Code(settings, "Settings as JSON"),))] if stamp.settings else []))


# What people said of a case: status, overrides beside the machine's verdicts, labels, notes, the whole history.


def review_blocks(history: Sequence[Mark], review: Review, chain: Chain) -> tuple[Block, ...]:
    """The review section."""
    facts = [("Status", review.status)]
    if review.reviewer:
        facts.append(("Set by", f"{review.reviewer}, {when(review.time)}"))
    facts += [("Protection", chain.protection), ("Head hash (store it elsewhere)", chain.head or "none")]
    if not history:
        return Facts(tuple(facts)), plain("This case has not been reviewed yet.")

    whole = Fold(f"The whole history ({len(history)} entries)", (history_table(history),))
    return Facts(tuple(facts)), *mark_tables(review), whole


def mark_tables(review: Review) -> list[Table]:
    """The marks that hold: verdicts next to the machine's, decisions on edits, rewritten sentences, labels, notes."""
    given = review.overrides.values()
    decided = [m for m in given if m.target.startswith("edit:")]
    rewritten = [m for m in given if m.target.startswith(SENTENCE)]
    judged = (m for m in given if m not in (*decided, *rewritten))
    overrides = ((_about(m), in_words(m.machine), m.value, *_given(m)) for m in judged)
    edits = ((_about(m), change_said(m.machine), m.value, *_given(m)) for m in decided)
    sentences = ((_about(m), m.machine, m.value or "taken out", *_given(m)) for m in rewritten)
    labels = ((_about(m), m.value, *_given(m)) for _, m in sorted(review.labels.items()))
    notes = ((_about(m), m.value, m.author, when(m.time)) for m in review.notes)
    by = ("Reason", "Reviewer", "Time")
    verdicts = ("Place", "Machine's verdict", "Reviewer's verdict", *by)
    marks = (
        table("Verdicts of reviewers, next to the machine's", verdicts, overrides),
        table("Decisions on edits", ("Edit", "Change", "Decision", *by), edits),
        table("Sentences rewritten by a reviewer", ("Sentence", "Original", "Reviewer's version", *by), sentences),
        table("Relevance labels", ("Passage", "Label", *by), labels),
        table("Notes", ("Place", "Note", "Reviewer", "Time"), notes),
    )
    return [drawn for drawn in marks if drawn.rows]


def _about(mark: Mark) -> Cell:
    return Cell(mark.place, places=(mark.target.replace(":", "-", 1),))


def _given(mark: Mark) -> tuple[str, str, str]:
    return mark.reason or "none given", mark.author, when(mark.time)


def history_table(history: Sequence[Mark]) -> Table:
    """Every entry with the beginning of its hash."""
    columns = ("No.", "Time", "Who", "Kind", "Place", "Value", "Reason", "Hash", "Signature")
    signed = (f"key {m.key}" if m.signature else "not signed" for m in history)
    rows = (
        (str(m.number), when(m.time), m.author, m.kind, _about(m), m.value, m.reason, m.hash[:16], signature)
        for m, signature in zip(history, signed, strict=True)
    )
    return table("Oldest first. Entries are never removed; a withdrawal is a new entry.", columns, rows)


# The first page: does the answer stand, the final text, every sentence with its evidence, by whom.

TRACKED = "Struck through: taken out. Underlined: put in. Undecided edits await a reviewer."


def summary_blocks(case: Case, review: Review, content: str, head: str) -> tuple[Block, ...]:
    """The summary, a reviewer's conclusion first.

    `content` and `head` are the hashes that tell this case and its history from any other.
    """
    verdict = case_verdict(case, review)
    blocks: list[Block] = []
    if review.conclusion:
        concluded = f"{review.conclusion.value.capitalize()}: {_status(review)}."
        blocks.append(Text((TextRun(concluded, "strong"),), "answer"))
    blocks.append(Text((TextRun(verdict_line(case, verdict), "text" if blocks else "strong"),), "answer"))
    if before := changed_by_review(case, verdict):
        blocks.append(plain(before, "note"))
    if doubt := unknown(case):
        blocks.append(Notice(doubt))
    blocks.append(_concluded(case, review))
    hashes = (("Content hash", content), ("Head hash of the review", head or "none"))
    if verdict is None:
        return (*blocks, Text(answer_runs(case.answer, case.passages), "answer"), Facts(hashes))
    blocks += [Notice(line) for line in open_items(case, verdict, review)]
    title = "Final text, with the accepted edits" if verdict.accepted else "The answer"
    blocks.append(Section(title, (Text(cited((TextRun(verdict.text),), case), "answer"),), level=3))
    blocks += _tracked(case, review)
    blocks.append(Section("Who judged it, and how reliably", (Facts((*_judged(case, verdict), *hashes)),), level=3))
    rows = (_row(case, n, s) for n, s in enumerate(verdict.sentences, start=1) if s.facts)
    columns = ("No.", "Original sentence", "Verdict", "Evidence, quoted")
    return (*blocks, table("Every sentence with its best evidence", columns, rows))


def _tracked(case: Case, review: Review) -> list[Block]:
    """The answer with its edits drawn in, except those that were rejected; nothing where there are none."""
    record = record_of(case)
    if not record:
        return []
    known, decided = revision(record, case.answer, review)
    edits = [edit for edit in known if decided.get(edit.id) != "rejected"]
    if not edits:
        return []
    text = Text(cited(tracked_runs(record.checked, edits, decided, undecided(review)), case), "answer")
    return [Section("Tracked changes", (plain(TRACKED, "note"), text), level=3)]


def _row(case: Case, number: int, sentence: SentenceVerdict) -> tuple[Cell, ...]:
    worst = sentence.facts[0]
    quote = worst.quote
    where = Cell("none found")
    if quote is not None:
        place = f"passage {quote.number}" if quote.number else "corpus"
        title = own_title(quote.number, quote.title)
        linked = of_passages(quote.number) if quote.number and quote.number <= len(case.passages) else ()
        closest = "" if worst.stand in ("borne out", "contradicted") else "closest sentence"
        note = ", ".join(filter(None, (closest, place, title)))
        where = Cell(" ".join(quote.words.split()), note=note, places=linked)
    words = without_markers(case.answer.text[sentence.start : sentence.end])
    fact = worst.text if len(sentence.facts) > 1 else ""
    return Cell(str(number)), Cell(words, note=f"on: {fact}" if fact else ""), _verdict(sentence), where


def _verdict(sentence: SentenceVerdict) -> Cell:
    worst = sentence.facts[0]
    checked = worst.by if worst.probability is None else f"by {worst.by}, probability {worst.probability:.2f}"
    kind = "borne out" if sentence.state == "edited" else sentence.state
    return Cell(sentence.word, note=decided_by(sentence.rewritten or worst.mark) or checked, kind=kind)


def _concluded(case: Case, review: Review) -> Facts:
    said = f"{review.conclusion.value}: {review.conclusion.reason.rstrip('.')}; " if review.conclusion else ""
    file = str(case.stamp.settings.get("file", "not stored in this case"))
    facts = (
        ("Conclusion of the review", f"{said}{_status(review)}"),
        ("Written by", _writer(case)),
        *([("Imported from", file)] if case.origin == "imported" else []),
    )
    return Facts(facts)


def _judged(case: Case, verdict: CaseVerdict) -> list[tuple[str, str]]:
    """Who judged in the last check, how often its verifier is right, and what was not checked."""
    *_, check = (analysis for analysis in case.analyses if analysis.kind == FACTS.name)
    stamp, record = check.stamp, FACTS.read(check)
    facts = {fact.number: fact for sentence in verdict.sentences for fact in sentence.facts}.values()
    by = Counter(fact.by or ("taken out" if fact.state == "edited" else fact.state) for fact in facts).most_common()
    verifier = (
        verdict.verifier,
        stamp.settings.get("base", ""),
        f"weights {stamp.revision or 'not stored in this case'}",
        f"Groundwork {stamp.versions.get('groundwork', 'of a version that is not stored')}",
        when(stamp.created),
    )
    right = "; ".join(f"{word} {share}" for word, share in measured_shares(record).items())
    supported = f"in {verdict.citations_supported} the passage bears out a fact of the sentence"
    corpus = " and the corpus" if case.corpus and record.evidence_from != "case" else ""
    return [
        ("Facts judged by", ", ".join(f"{name} ({count})" for name, count in by) or "nobody"),
        ("Verifier", ", ".join(filter(None, verifier))),
        ("How often the verifier is right", f"{right}; not measured on this case" if right else "not measured"),
        (
            "Citations",
            f"{counted(verdict.citations, 'citation')} checked: {supported}" if verdict.citations else "none",
        ),
        ("Not checked", f"{UNCHECKED}{corpus}"),
    ]


UNCHECKED = "whether the answer is complete; whether the sources are true; anything outside the passages"
_RIGHT = re.compile(
    r"(?P<verdict>supportive|editing required|irrelevant) by .+?, (?P<share>\d.*?) of its (?P=verdict) v"
)


def measured_shares(record: AreRecord) -> dict[str, str]:
    """How often each verdict of the verifier is right on its test sets, as the check stored it with its rulings."""
    checks = (check for fact in record.facts for done in fact.iterations for check in done.checks)
    notes = (record.measured, *(check.ruling.note for check in checks))
    found = {in_words(one["verdict"]): one["share"] for note in notes for one in _RIGHT.finditer(note)}
    return {word: found[word] for word in VERDICTS["fact"] if word in found}


# The analyses: each drawn by its kind, of an unknown kind or shape what was stored.

LONGEST = 200_000  # characters of stored JSON that are printed; the case file has the rest


def analysis_section(case: Case, analysis: Analysis, number: int, review: Review) -> Section:
    """One analysis, headed by its name, with the stamp that tells it from others of its kind."""
    stamp, kind = analysis.stamp, find(analysis.kind)
    title = kind.title if kind else analysis.kind
    if sum(other.kind == analysis.kind for other in case.analyses) > 1:
        title += f": {analysis.id}"  # which says by whom
    foot = f"By {stamp.model}{f', revision {stamp.revision}' if stamp.revision else ''}. {when(stamp.created)}".strip()
    blocks = (Fold("Every figure", tuple(analysis_blocks(case, analysis, review))), plain(foot, "note"))
    return Section(title, blocks, id=f"analysis-{number}", level=3)


def analysis_blocks(case: Case, analysis: Analysis, review: Review) -> list[Block]:
    """The kind's blocks for an analysis; the stored JSON for an unknown kind or shape."""
    kind = find(analysis.kind)
    try:
        if kind is not None:
            return kind.blocks(case, kind.read(analysis), review)
        found = attribution_of(analysis)  # of a method that is not installed here
        return attribution_blocks(case, found) if found else stored_section(analysis)
    except RecordError as error:
        # What another version stored in another shape is shown as it is.
        return [Notice(str(error)), *stored_section(analysis)]


def stored_section(analysis: Analysis) -> list[Block]:
    """Whatever was stored, as a folded table of its plain values and its JSON."""
    pairs = [(path, short(value)) for path, value in leaves(analysis.stored())]
    rows = [(path, value) for path, value in pairs if len(value) <= 200][:200]
    text = msgspec.json.format(msgspec.json.encode(analysis.result, order="sorted"), indent=2).decode()
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]}\n... shortened; the case file has the full text."
    values = table("Stored values", ("Place", "Value"), rows)
    return [Fold("What was stored", (values, Code(text, "Stored JSON")))]


# Definitions and limits of the methods used in a case, and of no others.

DEFINITIONS: dict[str, tuple[str, str]] = {
    name: (term["title"], " ".join(term["text"].split()))
    for name, term in tomllib.loads((ASSETS / "report" / "terms.toml").read_text(encoding="utf-8")).items()
}


def used(case: Case, reviewed: bool) -> list[str]:
    """The definitions that this case needs, in reading order."""
    found = [attribution for analysis in case.analyses if (attribution := attribution_of(analysis))]
    methods = {attribution.method.lower() for attribution in found}
    terms = {term for analysis in case.analyses if (kind := find(analysis.kind)) for term in kind.terms}
    needs = {
        "passage": True,
        "citation": bool(case.answer.citations),
        "retrieval": bool(case.hits),
        "rerank": bool(case.chunk_sets),
        "occlusion": any("occlusion" in method for method in methods),
        "gradient": any("gradient" in method for method in methods),
        "attribution": any(not any(n in m for n in ("occlusion", "gradient")) for m in methods),
        "markers": bool(methods),
        "numerical": any(a.numerical_floor is not None for a in found),
        "placebo": any(a.placebo_floor is not None for a in found),
        "review": reviewed,
        "hashes": True,
    }
    return [name for name in DEFINITIONS if needs.get(name) or name in terms]


# The self-test of every language model that a case used: can its scores and gradients be trusted.

# What quotes or was written elsewhere has no weights to test.
UNTESTED = ("", "reader", "imported", "auto")


def self_test_blocks(case: Case) -> tuple[Block, ...]:
    """A table a model, from the record kept on this machine; a sentence where no test of that model is kept."""
    stamps = (case.stamp, *(analysis.stamp for analysis in case.analyses if analysis.kind != FACTS.name))
    models = dict.fromkeys((s.model, s.revision, s.dtype) for s in stamps if s.revision and s.model not in UNTESTED)
    sections = []
    for name, *weights in models:
        checks = remembered(name, *weights)
        absent = f"No self-test of this model is stored here. Run: python -m engine self-test {name}"
        sections.append(Section(name, (plain(absent) if checks is None else checks_table(name, checks),), level=3))
    return tuple(sections)


def checks_table(name: str, checks: Sequence[SelfTestCheck]) -> Table:
    """The result of a model's self-test."""
    rows = (
        (c.name, "passed" if c.passed else "failed", c.detail, "" if c.figure is None else f"{c.figure:.3g}")
        for c in checks
    )
    return table(f"Self-test of {name}", ("Check", "Result", "What was found", "Figure"), rows, numeric={3})
