"""What ARE is compared with (appendix C.2), each with the chosen model: DRQA, RARR, CCVER, an EFEC-style editor.

DRQA: one search with question and answer, no edit. RARR: questions that check the whole answer, evidence for each, an
agreement gate by question and evidence, an edit of the whole answer. CCVER: the same gate and edit with yes/no
questions. EFEC-style: RARR's questions, then one edit by all evidence. All but DRQA need a language model.
Left out: EFEC's trained T5 (not shipped), CCVER's summaries of web pages. The last part compares facts with questions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from engine.core.errors import CannotDo, InputError
from engine.core.metrics import ENTAILED, attribution_precision_unpaired
from engine.core.progress import Watch
from engine.core.settings import Decoding
from engine.core.values import Prompt, Segment, Value
from engine.methods.are.are import entailment_matrix, measures
from engine.methods.are.decompose import decompose, plain
from engine.methods.are.edit import shares_half
from engine.methods.are.evidence import find_evidence
from engine.methods.are.tools import Task
from engine.methods.are.values import Decomposition, Evidence, Exchange, Measures
from engine.methods.are.verdict import asked, asked_ruling
from engine.models.protocols import LanguageModel, Writer, require
from engine.models.replies import lines
from engine.prompts import ask

ASKS_NOTHING = ("drqa",)
NEEDS_MODEL = "{} needs a language model to ask questions about the answer. Choose a judge model."


def offered(writer: object | None) -> tuple[str, ...]:
    """The methods that can be run with this language model, or with none."""
    return NAMES if writer else ASKS_NOTHING


class Baseline(Value, frozen=True):
    """A baseline's run: queries, the evidence of each, the revised answer, its measures.

    `measures` are unpaired (appendix E): each evidence counts if it entails one whole clause. `aggregated` is the other
    run of Table 5 (D.3): questions asked clause by clause, their evidence paired with that clause; None where the edits
    changed the number of clauses. `before` are the unpaired measures of the answer as it was (Table 3).
    """

    name: str
    queries: tuple[str, ...]
    evidence: tuple[Evidence, ...]
    revised: str
    measures: Measures
    aggregated: Measures | None = None
    before: Measures | None = None
    notes: tuple[str, ...] = ()
    exchanges: tuple[Exchange, ...] = ()


@dataclass
class _Run:
    """The inputs of a baseline, and its notes on the way; the judge of the tools asks, gates and edits."""

    name: str
    task: Task
    watch: Watch
    notes: list[str] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.answer, self.shown = self.task.answer, self.task.settings.demonstrations
        self.found = decompose(self.answer)

    @property
    def writer(self) -> Writer:
        """The language model; `run_baseline` refuses without one."""
        assert self.task.tools.judge is not None
        return self.task.tools.judge

    def best(self, queries: Sequence[str]) -> list[Evidence | None]:
        """The evidence most similar to each query."""
        if not queries:
            return []
        sources, settings = self.task.sources.chosen(self.task.settings), self.task.settings
        found = find_evidence(queries, [(query,) for query in queries], sources, settings, self.watch)
        return [max(seen, key=lambda one: one.score) if seen else None for seen in found]


def run_baseline(name: str, task: Task, watch: Watch = Watch()) -> Baseline:
    """One of `NAMES` on an answer; raise `InputError` for another, `CannotDo` where it lacks a language model."""
    if name not in METHODS:
        raise InputError(f"There is no baseline {name!r}. Choose from: {', '.join(NAMES)}.")
    if name not in offered(task.tools.judge):
        raise CannotDo(NEEDS_MODEL.format(name))
    return METHODS[name](_Run(name, task.remembering(), watch))


def drqa(run: _Run) -> Baseline:
    """Retrieval alone: question and answer as one query."""
    query = f"{run.task.question} {plain(run.answer)}".strip()
    return _result(run, [query], run.best([query]), run.answer)


def efec_style(run: _Run) -> Baseline:
    """All evidence, then one edit of the whole answer (after Thorne and Vlachos 2021; their T5 is not shipped)."""
    queries = _questions(run, "check_questions", run.answer)
    found = run.best(queries)
    replies = [_reply(query, one) for query, one in zip(queries, found, strict=True) if one is not None]
    revised_answer = _edited(run, run.answer, "\n".join(replies)) if replies else run.answer
    run.notes.append("EFEC's trained T5 editor is not included; the chosen model edits instead.")
    return _result(run, queries, found, revised_answer)


def _research_and_revise(run: _Run, kind: Kind) -> Baseline:
    """For each question: evidence, gate (does its reply disagree with the answer so far), edit; then by clause.

    RARR (Gao et al. 2023) asks questions that check the answer, CCVER (Chen et al. 2024) yes/no questions.
    """
    queries = _questions(run, kind, run.answer)
    found = run.best(queries)
    clauses = enumerate(run.found.clauses)
    by_clause = [(query, number) for number, clause in clauses for query in _questions(run, kind, clause.text)]
    beside = run.best([query for query, _ in by_clause])
    clause_queries, numbers = [query for query, _ in by_clause], [number for _, number in by_clause]
    aggregated = _aggregated(run, _revised(run, clause_queries, beside), beside, numbers)
    return _result(run, queries, found, _revised(run, queries, found), aggregated)


def _questions(run: _Run, kind: Kind, text: str) -> tuple[str, ...]:
    """The questions about a text by the run's model; a reply without one is noted."""
    queries, exchange = ask_questions(kind, plain(text), run.writer, run.watch, run.shown)
    run.exchanges.append(exchange)
    if not queries:
        run.notes.append(f"The reply of {run.writer.name} about {plain(text)[:60]!r} does not contain a question.")
    return queries


def _revised(run: _Run, queries: Sequence[str], found: Sequence[Evidence | None]) -> str:
    """The answer after a gate and an edit for each question's evidence."""
    text = run.answer
    for done, (query, one) in enumerate(zip(queries, found, strict=True)):
        run.watch.step(run.name, done, len(found))
        if one is not None and _disagrees(run, text, query, one):
            text = _edited(run, text, _reply(query, one))
    return text


def _disagrees(run: _Run, text: str, query: str, one: Evidence) -> bool:
    """RARR's agreement gate: whether the evidence replies to the question otherwise than the answer."""
    question = ask("agreement", answer=text, question=query, evidence=one.text)
    ruling, exchange = asked_ruling("agreement", question, run.writer, run.watch, run.shown)
    run.exchanges.append(exchange)
    return ruling.verdict == "editing_required"


def _reply(query: str, one: Evidence) -> str:
    return f"{query} {one.text}"


def _edited(run: _Run, text: str, evidence: str) -> str:
    """The answer as the model corrects it by questions and their evidence; as it was where its reply has no fix."""
    prompt = ask("revise_answer", run.shown, answer=text, evidence=evidence)
    limit = Decoding(max_new_tokens=max(300, 100 + 3 * len(text.split())))
    reply = run.writer.generate(prompt, limit, None, run.watch)
    fix = parse_revision(reply.text, text) if reply.finished else None
    run.exchanges.append(Exchange(step="edit", prompt=prompt.text, reply=reply.text, parsed=fix is not None))
    return fix or text


def parse_revision(reply: str, answer: str) -> str | None:
    """The corrected answer: all that follows a reply's first line; None where it shares less than half of the words.

    >>> parse_revision("1913, not 1911.\\nIt burned down in 1913.", "It burned down in 1911.")
    'It burned down in 1913.'
    """
    fix = reply.strip().partition("\n")[2].strip()
    return fix if shares_half(answer, fix) else None


def _result(
    run: _Run, queries: Sequence[str], found: Sequence[Evidence | None], text: str, aggregated: Measures | None = None
) -> Baseline:
    """The run with the unpaired measures of the revised answer and of the answer as it was."""
    unique, verifier = {one.text: one for one in found if one is not None}, run.task.reader

    def unpaired(text: str, split: Decomposition) -> Measures:
        clauses = [plain(clause.text) for clause in split.clauses]
        matrix = entailment_matrix(list(unique), clauses, verifier, run.watch)
        return measures(matrix, run.answer, text, verifier.name, attribution_precision_unpaired(matrix > ENTAILED))

    return Baseline(
        name=run.name,
        queries=tuple(queries),
        evidence=tuple(unique.values()),
        revised=text,
        measures=unpaired(text, decompose(text)),
        aggregated=aggregated,
        before=unpaired(run.answer, run.found),
        notes=tuple(run.notes),
        exchanges=tuple(run.exchanges),
    )


def _aggregated(
    run: _Run, revised_answer: str, found: Sequence[Evidence | None], clauses: Sequence[int]
) -> Measures | None:
    """Measures with the evidence of each clause's questions paired with that clause (Table 5)."""
    texts = [plain(clause.text) for clause in decompose(revised_answer).clauses]
    if not texts or len(texts) != len(run.found.clauses):
        return None
    said = [(one.text, clause) for one, clause in zip(found, clauses, strict=True) if one is not None]
    joined = ["\n".join(dict.fromkeys(text for text, of in said if of == number)) for number in range(len(texts))]
    verifier = run.task.reader
    paired = entailment_matrix(joined, texts, verifier, run.watch)
    return measures(paired, run.answer, revised_answer, verifier.name)


METHODS: Mapping[str, Callable[[_Run], Baseline]] = {
    "drqa": drqa,
    "rarr": lambda run: _research_and_revise(run, "check_questions"),
    "ccver": lambda run: _research_and_revise(run, "yes_no_questions"),
    "efec-style": efec_style,
}
NAMES = tuple(METHODS)


Kind = Literal["check_questions", "yes_no_questions"]
_OPEN = re.compile(r"(?:who|whom|whose|what|when|where|which|why|how)\b", re.IGNORECASE)
_MOST = 24  # questions that are read from a reply


def ask_questions(
    kind: Kind, text: str, writer: Writer, watch: Watch = Watch(), demonstrations: int = 0
) -> tuple[tuple[str, ...], Exchange]:
    """The questions about `text` in the model's order, each once, and the exchange; none where it holds none (C.2)."""

    def parse(reply: str) -> tuple[str, ...] | None:
        return parse_questions(reply, yes_no=kind == "yes_no_questions") or None

    found, exchange = asked("questions", ask(kind, demonstrations, text=text), writer, 300, parse, watch)
    return found or (), exchange


def parse_questions(reply: str, *, yes_no: bool = False) -> tuple[str, ...]:
    """The lines of a reply that ask something; with `yes_no` those that no question word opens.

    >>> parse_questions("1. Did it open in 1990?\\n2. Who built it?\\nIt did.", yes_no=True)
    ('Did it open in 1990?',)
    """
    found = [line for line in lines(reply) if line.endswith("?")]
    return tuple(dict.fromkeys(line for line in found if not (yes_no and _OPEN.match(line))))[:_MOST]


# Entropy of atomic facts against sub-questions (sections 3 "Hypothesis" and 5.5). H(X) = - sum P(x) log P(x), P(x) the
# product of the tokens' probabilities, over the texts of one kind. P of a sentence is so small that the sum hardly sees
# it, and length alone moves it: the surprisal - log P(x) in nats is told with it, as a total and per token. Scored
# without passages, after the same short instruction for both kinds.

INSTRUCTION = "Text:"


class Entropy(Value, frozen=True):
    """Of `texts` texts: the paper's sum, the mean surprisal of a text and of a token (nats), tokens."""

    entropy: float
    surprisal: float
    per_token: float
    texts: int
    tokens: int
    model: str


def entropy(texts: Sequence[str], model: LanguageModel, watch: Watch = Watch()) -> Entropy:
    """Entropy and surprisal of the texts under the model; raise `CannotDo` for one that gives no probabilities."""
    require(model, "score")
    prompt = model.encode(Prompt(segments=(Segment(kind="instruction", text=INSTRUCTION),)))
    totals, tokens = [], 0
    for text in texts:
        answer = model.encode_answer(f" {text}")
        scores = model.score([prompt], [token.id for token in answer.tokens], watch)[0]
        totals.append(float(scores.sum()))
        tokens += len(answer.tokens)
    return Entropy(
        entropy=-sum(math.exp(total) * total for total in totals),
        surprisal=-sum(totals) / len(totals) if totals else 0.0,
        per_token=-sum(totals) / tokens if tokens else 0.0,
        texts=len(totals),
        tokens=tokens,
        model=model.name,
    )


def entropies(
    facts: Sequence[str], questions: Sequence[str], model: LanguageModel, watch: Watch = Watch()
) -> dict[str, Entropy]:
    """Of the facts, and of the yes/no questions that CCVER asks about the same answer (5.5): "facts", "sub_questions".

    Without questions the second is left out. Raise `CannotDo` for a model that gives no probabilities.
    """
    kinds = {"facts": facts, "sub_questions": questions}
    return {kind: entropy(texts, model, watch) for kind, texts in kinds.items() if texts}
