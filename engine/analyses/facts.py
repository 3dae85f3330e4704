"""Atomic facts (ARE) of a case's answer: the case's passages and its corpus in, the check with its stamp out.

In the report a reviewer's verdict on a fact and the decision on an edit stand beside the machine's own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import msgspec
from msgspec.structs import replace

from engine.analyses.again import check_unchanged
from engine.analyses.floors import Listening, embedding_floor
from engine.analyses.kind import FACTS, Again, Kind, Loaders, Outcome, RunContext, analysis_by, less
from engine.cases.blocks import (
    Block,
    Cell,
    Facts,
    Fold,
    Notice,
    Table,
    Text,
    TextRun,
    cited,
    decided_by,
    exchanged,
    name_of,
    of_passages,
    part,
    plain,
    table,
)
from engine.cases.places import edit_decisions, numbered, revision
from engine.cases.review import Mark, Review
from engine.core.errors import GroundworkError
from engine.core.files import EMBEDDED
from engine.core.settings import Settings, Verification
from engine.core.text import counted
from engine.core.values import Analysis, Case, Json, Value
from engine.corpus.collection import Collection
from engine.methods.are.are import check_answer, checking
from engine.methods.are.backtrack import Decision, in_order
from engine.methods.are.decompose import RULES, decompose
from engine.methods.are.evidence import Sources, cited_numbers
from engine.methods.are.guards import COPIED, STATED, TOLD
from engine.methods.are.tools import Task, Tools as Judges
from engine.methods.are.values import (
    IN_WORDS,
    OUTCOMES,
    AreRecord,
    Evidence,
    Exchange,
    FactRecord,
    Iteration,
    Placed,
    Report,
    note_in_words,
)
from engine.models.closed import listed
from engine.models.embedder import DEFAULT
from engine.models.verifier import origin_of
from engine.prompts import templates_hash

LANGUAGE_MODEL = "lm:"  # before the name of a language model in the verifier's place
TEMPLATES = ("clauses", "facts", "verdict", "choose_one", "reason_first", "expand", "edit")


def analysis_of(case: Case, record: AreRecord, settings: Settings) -> Analysis:
    """The record as an analysis of the case, stamped with what made it."""
    base, weights = origin_of(record.verifier)
    used = {
        "verification": settings.verification.to_dict(),
        **({"base": base} if base else {}),
        "decomposer": record.decomposer,
        "editor": record.editor,
        "mode": settings.retrieval.mode,
    }
    return analysis_by(case, FACTS, record.verifier, record, used, templates_hash(*TEMPLATES), weights)


def record_of(case: Case) -> AreRecord | None:
    """The check that was added to the case last."""
    return KIND.last(case)


MEASURES = (
    ("Attr_r", "attr_r", "mean over clauses of the highest probability that a piece of evidence entails the clause"),
    ("Attr_p", "attr_p", "share of clauses entailed by their own evidence"),
    ("Pres", "pres", "share of characters that editing left unchanged"),
    ("F1_RP", "f1_rp", "harmonic mean of Attr_r and Pres"),
    ("F1_PP", "f1_pp", "harmonic mean of Attr_p and Pres"),
)
"""Name, field and meaning of what the attribution report measures."""
EDITED = "If all edits are accepted"


def _blocks(case: Case, record: AreRecord, review: Review) -> list[Block]:
    facts = numbered(record)
    notes = [*record.notes, *([] if record.finished else ["The check was stopped. These are the finished facts."])]
    blocks: list[Block] = [
        made(record),
        *map(Notice, notes),
        part("The answer with its edits", tracked_changes(case, record, review)),
        part("Facts and verdicts", _verdicts(case, record, facts, review)),
        part("Evidence", _evidence(case, facts)),
    ]
    if record.report is not None:
        blocks.append(part("Attribution report", attribution_report(case, record, record.report)))
    return [*blocks, *exchange_blocks("What the language model was asked and replied", record.exchanges)]


def made(record: AreRecord) -> Facts:
    """Who did what in a check, with how many facts have which verdict before any review."""
    sources = {"both": "the case's passages and its corpus", "case": "the case's passages", "corpus": "the corpus"}
    counts = Counter(fact.stand for fact in record.facts)
    stands = dict.fromkeys(stand for stand, _ in OUTCOMES.values())
    came = (f"{counts[stand]} {stand}" for stand in stands if counts[stand])
    pairs = (
        ("Facts", f"{len(record.facts)} in {len(record.decomposition.clauses)} clauses"),
        ("Before any review", ", ".join(came) or "nothing to check"),
        ("Decomposed by", record.decomposer),
        ("Verdicts by", record.verifier),
        ("Edits by", record.editor),
        ("Evidence from", sources[record.evidence_from]),
        ("Rounds at most", str(record.max_iterations)),
        ("Cost", f"{record.seconds:.1f} s"),
    )
    return Facts(pairs)


def _verdicts(case: Case, record: AreRecord, facts: dict[str, FactRecord], review: Review) -> list[Block]:
    if not facts:
        return [plain("The answer contains no claim to check.")]
    # What a verdict is worth is said once where it is the same for several facts.
    counts = Counter(fact.ruling.note for fact in facts.values() if fact.ruling)
    shared = [note for note, count in counts.items() if count > 1]
    blocks: list[Block] = [
        plain(f"{note_in_words(note)}.", "note") for note in dict.fromkeys((record.measured, *shared)) if note
    ]
    for number, clause in enumerate(record.decomposition.clauses):
        own = {name: fact for name, fact in facts.items() if fact.clause == number}
        rows = (_fact_row(case, name, fact, review.overrides.get(f"fact:{name}"), shared) for name, fact in own.items())
        columns = ("Fact", "Text", "Machine's verdict", "p", "Evidence", "Reviewer's verdict")
        caption = f"Clause {number + 1}: {' '.join(clause.text.split())}"
        blocks.append(table(caption, columns, rows, numeric={3}))
    return blocks


def _fact_row(case: Case, name: str, fact: FactRecord, mark: Mark | None, shared: list[str]) -> tuple[Cell | str, ...]:
    ruling = fact.ruling
    unsure = ", unsure" if fact.stand == "unsure" else ""
    sure = ruling.scores.get(ruling.verdict) if ruling else None
    own = note_in_words(ruling.note) if ruling and ruling.note not in shared else ""
    note = "; ".join(filter(None, (fact.meaning, own)))
    return (
        name,
        Cell(fact.fact.text, note="split by rules, because a reply was unparsable" if fact.fact.fallback else ""),
        Cell(IN_WORDS.get(ruling.verdict, ruling.verdict) + unsure if ruling else fact.stand, note=note),
        "" if sure is None else f"{sure:.2f}",
        _source(case, fact.evidence) if fact.evidence else "none",
        Cell(mark.value, note=decided_by(mark)) if mark else "none",
    )


def _source(case: Case, evidence: Evidence) -> Cell:
    similar = f"similarity to the fact {evidence.score:.2f}"
    if evidence.number is not None:
        linked = of_passages(evidence.number) if 1 <= evidence.number <= len(case.passages) else ()
        return Cell(f"passage {name_of(case, evidence.number)}", note=similar, places=linked)
    return Cell(f"corpus: {evidence.title or evidence.document}", note=similar)


def _evidence(case: Case, facts: dict[str, FactRecord]) -> list[Block]:
    """The words of each passage that an outcome rests on, once; then every round."""
    resting: dict[str, tuple[Evidence, list[str]]] = {}
    for name, fact in facts.items():
        if fact.evidence is not None:
            resting.setdefault(fact.evidence.text, (fact.evidence, []))[1].append(name)
    blocks: list[Block] = []
    if resting:
        rows = ((_source(case, one), one.text, ", ".join(names)) for one, names in resting.values())
        once = table("Each passage once, with its facts", ("Source", "Text", "Facts"), rows)
        blocks.append(Fold(f"Passages behind the outcomes ({len(resting)})", (once,)))
    rounds = [_round_row(name, n, done) for name, fact in facts.items() for n, done in enumerate(fact.iterations, 1)]
    if rounds:
        columns = ("Fact", "Round", "Search phrases and results", "Considered", "Verdicts on those checked", "Edit")
        every = table("Searched, considered and checked", columns, rounds, numeric={1, 3})
        blocks.append(Fold(f"Every round of every fact ({len(rounds)})", (every,)))
    return blocks


def _round_row(name: str, number: int, done: Iteration) -> tuple[str, ...]:
    said = []
    for place, check in enumerate(done.checks):
        seen = done.considered[check.evidence]
        source = f"corpus: {seen.title or seen.document}" if seen.number is None else f"passage {seen.number}"
        decides = ", decides" if place == done.decided else ""
        scores = ", ".join(f"{IN_WORDS.get(one, one)} {value:.2f}" for one, value in check.ruling.scores.items())
        sure = f" ({scores})" if scores else ""
        verdict = IN_WORDS.get(check.ruling.verdict, check.ruling.verdict)
        said.append(f"{source}: {verdict}{sure}{decides}")
    edit = f"{done.edit.before} becomes {done.edit.after}" if done.edit else ""
    searched = " | ".join(f"{query}: {found_in(done.found_with(place))}" for place, query in enumerate(done.queries))
    return name, str(number), searched, str(len(done.considered)), "; ".join(said), edit


def found_in(found: Sequence[Evidence]) -> str:
    """Where the results of a search are from: the numbers of passages, then titles of the corpus, each once."""
    numbers = [str(one.number) for one in found if one.number is not None]
    titles = dict.fromkeys(f"“{one.title or one.document}”" for one in found if one.number is None)
    passages = f"{'passages' if len(numbers) > 1 else 'passage'} {', '.join(numbers)}" if numbers else ""
    corpus = f"in the corpus {', '.join(titles)}" if titles else ""
    return "; ".join(filter(None, (passages, corpus))) or "nothing"


def exchange_blocks(title: str, exchanges: Sequence[Exchange]) -> list[Block]:
    """Prompts, folded, each with its reply or the probabilities of its answers; nothing where there is none."""
    blocks: list[Block] = []
    for one in exchanges:
        said = f"{one.step}: the prompt, then the reply{'' if one.parsed else ', unparsable'}"
        blocks += exchanged(said, one.prompt, one.reply or listed(one.probabilities), f": {one.step}")
    return [Fold(f"{title} ({len(exchanges)})", tuple(blocks))] if blocks else []


def attribution_report(case: Case, record: AreRecord, report: Report) -> list[Block]:
    """The five measures, as given and if the edits are accepted, and the evidence of each clause."""
    before, after = report.before, report.after
    measures = (
        (name, f"{getattr(before, key):.3f}", f"{getattr(after, key):.3f}", what) for name, key, what in MEASURES
    )
    clauses = (
        (
            str(clause.clause + 1),
            clause.text,
            "; ".join(_source(case, one).text for one in clause.evidence) or "none",
            f"{clause.entails:.2f}",
            f"{clause.best:.2f}",
        )
        for clause in report.clauses
    )
    said = "A reviewer decides on each edit; suggestions are not counted"
    caption = f"{counted(after.clauses, 'clause')}. {said}. Entailment: {note_in_words(record.measured)}."
    columns = ("Clause", EDITED, "Its evidence", "Entailed by it", "By the best evidence")
    blocks: list[Block] = [
        table(caption, ("Measure", "Before editing", EDITED, "What it means"), measures, numeric={1, 2}),
        table("Evidence of each clause", columns, clauses, numeric={3, 4}),
    ]
    if record.revised != record.answer:
        proposed = (plain(record.revised, "answer"),)
        blocks.append(Fold("The answer as the check proposed it, before any review", proposed))
    return blocks


def tracked_changes(case: Case, record: AreRecord, review: Review) -> list[Block]:
    """The answer with its edits drawn in, and a table of them with what was decided."""
    said = (
        "Struck through: taken out. Underlined: put in. An edit is a proposal until a reviewer accepts it. A "
        "rejected edit changes nothing."
    )
    text = tracked_text(case, record, review)
    if not record.edits:
        return [text, plain("No edits found.")]
    return [plain(said, "note"), text, _edits_table(case, record, review)]


def tracked_text(case: Case, record: AreRecord, review: Review) -> Text:
    """The checked answer with its edits drawn in, each with its number and what was decided."""
    runs = tracked_runs(record.checked, *revision(record, case.answer, review), undecided(review))
    return Text(cited(runs, case), "answer")


def undecided(review: Review) -> str:
    """The word for an edit that nobody decided: the text of a sign-off leaves it out."""
    return "left out" if review.status == "signed off" else "not decided"


def tracked_runs(
    answer: str, edits: Iterable[Placed], decided: dict[str, Decision], rest: str = "not decided"
) -> tuple[TextRun, ...]:
    """The answer with the edits that have a certain place or were accepted, struck through and underlined.

    Each is followed by its number and what was decided, `rest` where nothing was.
    """
    runs, position = [], 0
    shown = (e for e in edits if e.status == "placed" or decided.get(e.id) == "accepted")
    for edit in in_order(shown):
        if edit.start < position:
            continue
        runs.append(TextRun(answer[position : edit.start]))
        if decided.get(edit.id) == "rejected":
            runs.append(TextRun(answer[edit.start : edit.end]))
        else:
            runs += [TextRun(answer[edit.start : edit.end], "old"), TextRun(edit.new, "new")]
        runs.append(TextRun(f" (edit {edit.id}, {decided.get(edit.id, rest)})", "strong"))
        position = edit.end
    return tuple(run for run in (*runs, TextRun(answer[position:])) if run.text)


def after_edit(edit: Placed) -> str:
    """The check of the edited fact in plain sentences; empty for a deletion, after which nothing is left to check."""
    ruling = edit.ruling
    if ruling is None:
        return "Not checked after the edit." if edit.new else ""
    reasons = [f"{one[:1].upper()}{one[1:]}." for one in filter(None, ruling.grounds.split("; "))]
    share = ruling.scores.get(ruling.verdict)
    sure = [] if share is None else [f"The verifier gives this a probability of {share:.2f}."]
    doubt = ["It is unsure: read the passage."] if ruling.unsure else []
    return " ".join(("After the edit the fact agrees with the passage.", *reasons, *sure, *doubt))


def _edits_table(case: Case, record: AreRecord, review: Review) -> Table:
    decided, rows = edit_decisions(record, case.answer, review), []
    for edit in record.edits:
        mark = review.overrides.get(f"edit:{edit.id}") if edit.id in decided else None
        left = "a suggestion, not put in" if edit.status == "suggestion" else undecided(review)
        fact = record.facts[edit.fact].fact.text if edit.fact < len(record.facts) else ""
        why, decision = Cell(edit.why, note=after_edit(edit)), Cell(decided.get(edit.id, left), note=decided_by(mark))
        rows.append((edit.id, edit.old or "(nothing)", edit.new or "(nothing)", fact, why, decision))
    columns = ("Edit", "Instead of", "Put in", "Fact", "Why", "Decision")
    return table("Edits, and what was decided", columns, rows)


LATER_GUARDS = ("roles", "left_open", "parties", "sentence_alone", "row_words")  # the first checks were made without
ROUNDED = 1e-4  # scores are stored with four decimals, so one may move by its last
BY_PROMPT = "a language model took part and some of its replies were not saved; check the answer again instead"


class FactsGiven(Value, frozen=True):
    """Who measured, whether a language model took part, and which passages of the corpus were considered."""

    finished: bool
    verifier: str
    by_prompt: bool
    corpus: tuple[str, ...]


def _given(record: AreRecord) -> FactsGiven:
    seen = [e for fact in record.facts for done in fact.iterations for e in done.considered if e.source == "corpus"]
    return FactsGiven(
        finished=record.finished,
        verifier=record.report.after.by if record.report else record.verifier,
        by_prompt=bool(record.exchanges) or record.decomposer != RULES,
        corpus=tuple(dict.fromkeys(e.passage for e in seen)),
    )


def _again(case: Case, analysis: Analysis, tools: Loaders) -> Outcome:
    asked = FactsGiven.from_dict(analysis.result)
    if not asked.finished:
        return Outcome(why="the check was stopped early; check the answer again, then replay it")
    if asked.by_prompt:
        return Outcome(why=BY_PROMPT)
    # A check that is older than a guard ran without it.
    stamped = analysis.stamp.settings.get("verification", {})
    settings = Verification.from_dict({**dict.fromkeys(LATER_GUARDS, False), **stamped})
    collection = _collection(case, settings, asked.corpus, tools)
    embedder, verifier = tools.embedder(DEFAULT), Listening(tools.verifier(asked.verifier))
    mode = analysis.stamp.settings.get("mode", "hybrid")
    sources = Sources(embedder, case.passages, collection, mode, case.searched)
    record = check_answer(Task(case.question, case.answer.text, sources, Judges(verifier), settings))
    cosines = embedding_floor(embedder, case.answer.text, [p.text for p in case.passages])
    most = max(verifier.floor, cosines) + ROUNDED
    return Outcome(values=_compared(record.to_dict()), floor=most)


def _compared(result: Any) -> Any:
    """The values of a check that are compared; checks older than `STATED` call it `COPIED`."""
    written = msgspec.json.encode(less(result)).decode()
    return msgspec.json.decode(written.replace(STATED, COPIED).replace(TOLD[STATED], TOLD[COPIED]))


def _collection(case: Case, settings: Verification, seen: Sequence[str], tools: Loaders) -> Collection | None:
    """The corpus searched for evidence; raise `CaseError` where its results cannot be compared with earlier ones."""
    if case.corpus is None or settings.evidence_from == "case":
        return None
    try:
        collection = tools.collection(case.corpus)
    except GroundworkError:
        if seen:
            raise
        return None  # it may not have been there then either: nothing of it was considered
    check_unchanged(collection, seen)
    return collection


class FactsOptions(Value, frozen=True):
    """Who decides, by name: the verifier, and a language model in each role that is not empty or `rules`.

    With `both` the judge's verdict is shown next to the verifier's, which decides; without it the judge decides and the
    verifier only measures. The verifier `lm:MODEL` means the embedded one, and MODEL judges alone, edits and expands.
    """

    verifier: str = EMBEDDED
    decomposer: str = RULES
    judge: str = ""
    editor: str = ""
    expander: str = ""
    both: bool = True

    @property
    def spelled_out(self) -> FactsOptions:
        """The same with every role of `lm:MODEL` named."""
        if not self.verifier.startswith(LANGUAGE_MODEL):
            return self
        model = self.verifier.removeprefix(LANGUAGE_MODEL)
        editor, expander = self.editor or model, self.expander or model
        return replace(self, verifier=EMBEDDED, judge=model, editor=editor, expander=expander, both=False)

    def load(self, tools: Loaders) -> Judges:
        """Those who decide; raise `ModelNotFound` for a name that is not a model."""
        asked = self.spelled_out
        decomposer, judge, editor, expander = (
            None if name in ("", RULES) else tools.writer(name)
            for name in (asked.decomposer, asked.judge, asked.editor, asked.expander)
        )
        return Judges(tools.verifier(asked.verifier), decomposer, judge, editor, expander, asked.both)


def task_of(case: Case, options: FactsOptions, context: RunContext) -> Task:
    """The case's answer with its evidence and those who decide; the corpus is opened only where it is searched."""
    settings, tools = context.settings, context.tools
    collection = None if settings.verification.evidence_from == "case" else tools.collection_of(case)
    sources = Sources(tools.embedder(DEFAULT), case.passages, collection, settings.retrieval.mode, case.searched)
    return Task(case.question, case.answer.text, sources, options.load(tools), settings.verification)


def _run(case: Case, options: FactsOptions, context: RunContext) -> Iterator[Analysis]:
    for record in checking(task_of(case, options, context), context.watch):
        yield analysis_of(case, record, context.settings)


# Pages tell the cost on each redraw, and the rules take seconds for a long answer.
_decomposed = lru_cache(maxsize=32)(decompose)


def _cost(case: Case, options: FactsOptions, settings: Settings) -> str:
    """How many facts there are, verdicts at most, and sentences that the verifier reads to rank passages, at most."""
    chosen = settings.verification
    found = _decomposed(case.answer.text, atomic=chosen.atomic, molecular=chosen.molecular)
    facts = verdicts = read = 0
    for clause in found.clauses:
        cited = len(cited_numbers(case.answer.text, clause)) if chosen.anchored else 0
        searched = {
            "case": min(len(case.passages), chosen.passages + cited),
            "corpus": chosen.passages if case.corpus else 0,
        }
        offered = [n for source, n in searched.items() if chosen.evidence_from in (source, "both")]
        checked = min(sum(min(chosen.keep, n) for n in offered) + chosen.anchored, sum(offered))
        rounds = len(clause.facts) * chosen.max_iterations
        facts, verdicts, read = facts + len(clause.facts), verdicts + rounds * checked, read + rounds * sum(offered)
    asked = options.spelled_out
    ranks = "" if asked.judge and not asked.both else f", {counted(read, 'sentence')} read to rank passages"
    return f"{counted(facts, 'fact')}: at most {counted(verdicts, 'verdict')}{ranks}, and some more for edits"


def figures(record: AreRecord) -> Json:
    """The measures after editing, how many facts came to what, and how many are unsure."""
    after = record.report.after if record.report else None
    reached = {name: getattr(after, name) if after else None for name in ("attr_r", "attr_p", "pres")}
    unsure = sum(fact.stand == "unsure" for fact in record.facts)
    return {**reached, "outcomes": dict(Counter(fact.outcome for fact in record.facts)), "unsure": unsure}


KIND = Kind(
    name=FACTS,
    title="Atomic facts (ARE)",
    result=AreRecord,
    blocks=_blocks,
    options=FactsOptions,
    run=_run,
    cost=_cost,
    terms=("facts", "edits", "report"),
    again=Again(_again, _given, _compared),
    figures=figures,
)
